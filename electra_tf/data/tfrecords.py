# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pre-training records: tf.train.Example in TFRecord files.

Records are encoded without TensorFlow, because its import costs each worker
seconds and its protocol buffers are slower than the tokenizer. The tests
compare the bytes with those of `tf.train.Example` and `tf.io.TFRecordWriter`.
"""

import functools
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import google_crc32c

from electra_tf.files import filesystem
from electra_tf.text.vocabulary import CLS, SEP

FEATURE_NAMES = ("input_ids", "input_mask", "segment_ids")

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_HEADER_SIZE = _LENGTH.size + _CRC.size  # bytes


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    return bytes((value & 0x7F | 0x80,)) + _varint(value >> 7)


@functools.lru_cache(maxsize=1 << 14)
def _field_head(number: int, size: int) -> bytes:
    """Return the bytes before the payload of a length-delimited field."""
    return _varint(number << 3 | 2) + _varint(size)


@functools.lru_cache(maxsize=1 << 14)
def _feature_head(name: str, size: int) -> bytes:
    """Return the bytes before the values of an entry of tf.train.Features."""
    head = b""
    for number in (1, 3, 2):  # Int64List.value, Feature.int64_list, map value
        head = _field_head(number, len(head) + size) + head
    head = _field_head(1, len(name)) + name.encode() + head
    return _field_head(1, len(head) + size) + head


def _feature(name: str, packed: bytes) -> bytes:
    """Return an entry of tf.train.Features.feature with packed int64 values."""
    return _feature_head(name, len(packed)) + packed


class ExampleEncoder:
    """An encoder that serializes two segments as a tf.train.Example.

    Features are int64 lists of length `max_length`: `input_ids` contains [CLS]
    first [SEP] (second [SEP]) and zeros, `input_mask` is 1 at tokens, and
    `segment_ids` is 1 at the second segment and its [SEP]. The bytes equal the
    deterministic serialization of the same tf.train.Example.

    Source: build_pretraining_dataset.py, ExampleBuilder._make_tf_example.
    """

    def __init__(
        self, max_length: int, cls_id: int, sep_id: int, vocab_size: int
    ):
        self._max_length = max_length
        self._varints = list(map(_varint, range(vocab_size)))
        self._cls = _varint(cls_id)
        self._sep = _varint(sep_id)
        self._masks = [
            _feature("input_mask", b"\1" * n + b"\0" * (max_length - n))
            for n in range(max_length + 1)
        ]
        memoized = functools.lru_cache(maxsize=1 << 14)
        self._segments = memoized(self._encode_segment_ids)

    def encode(self, first: list[int], second: list[int]) -> bytes:
        """Return a serialized example; `second` can be empty."""
        varint = self._varints.__getitem__
        first_length = length = len(first) + 2
        ids = self._cls + b"".join(map(varint, first)) + self._sep
        if second:
            ids += b"".join(map(varint, second)) + self._sep
            length += len(second) + 1
        ids += b"\0" * (self._max_length - length)
        features = _feature("input_ids", ids) + self._masks[length]
        features += self._segments(first_length, length)
        return _field_head(1, len(features)) + features

    def _encode_segment_ids(self, first_length: int, length: int) -> bytes:
        packed = b"\0" * first_length + b"\1" * (length - first_length)
        packed += b"\0" * (self._max_length - length)
        return _feature("segment_ids", packed)


# The jobs of a process share an encoder and its cache.
_shared_encoder = functools.lru_cache(maxsize=1)(ExampleEncoder)


def open_encoder(vocab: Mapping[str, int], max_length: int) -> ExampleEncoder:
    """Return the encoder of a vocabulary, shared within the process."""
    vocab_size = max(vocab.values()) + 1
    return _shared_encoder(max_length, vocab[CLS], vocab[SEP], vocab_size)


def decode_example(payload: bytes) -> dict[str, list[int]]:
    """Return the int64 features of a serialized tf.train.Example.

    Raises:
      BrokenRecordError: the bytes are not a tf.train.Example.
    """
    # TensorFlow is imported here, because only records without a manifest are
    # decoded.
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    try:
        features = tf.train.Example.FromString(payload).features.feature
    except DecodeError as error:
        raise BrokenRecordError("not a tf.train.Example") from error
    return {
        name: list(feature.int64_list.value)
        for name, feature in features.items()
        if feature.HasField("int64_list")
    }


def _masked_crc(text: bytes) -> int:
    """Return the CRC-32C (Castagnoli), rotated and offset as in TFRecord."""
    crc = google_crc32c.value(text)
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF


@functools.lru_cache(maxsize=4096)
def _header(length: int) -> bytes:
    prefix = _LENGTH.pack(length)
    return prefix + _CRC.pack(_masked_crc(prefix))


def frame_record(payload: bytes) -> bytes:
    """Return a serialized example as a record of a TFRecord file."""
    return _header(len(payload)) + payload + _CRC.pack(_masked_crc(payload))


class BrokenRecordError(ValueError):
    """Error for a record that is truncated, corrupt or not an example."""


def read_records(path: str) -> Iterator[bytes]:
    """Yield the payloads of a TFRecord file.

    Raises:
      BrokenRecordError: a record is invalid; the error names file, record
        number and byte.
    """
    with filesystem.open_file(path, "rb") as file:
        number = 0
        while header := file.read(_HEADER_SIZE):
            start = file.tell() - len(header)
            where = f"{path}: record {number} at byte {start}"
            length = int.from_bytes(header[: _LENGTH.size], "little")
            if len(header) == _HEADER_SIZE and header != _header(length):
                raise BrokenRecordError(f"{where} has a corrupt header")
            payload, crc = file.read(length), file.read(_CRC.size)
            if len(crc) < _CRC.size:
                raise BrokenRecordError(f"{where} is truncated")
            if crc != _CRC.pack(_masked_crc(payload)):
                raise BrokenRecordError(f"{where} has a corrupt payload")
            yield payload
            number += 1


def count_records(path: str, limit: int) -> tuple[int, int]:
    """Return the number of a file's records, and their total size in bytes.

    Only the lengths of records are read. Counting stops at the first record
    that begins after `limit` bytes.
    """
    records = position = 0
    with filesystem.open_file(path, "rb") as file:
        while position < limit and (length := file.read(_LENGTH.size)):
            records += 1
            length = int.from_bytes(length, "little")
            position += _HEADER_SIZE + length + _CRC.size
            file.seek(position)
    return records, position


# Prefixes of the names of training records, of evaluation records, and of files
# that a build has not finished.
TRAINING_PREFIX = "pretrain_data"
HELD_OUT_PREFIX = "eval_data"
TEMPORARY_PREFIX = ".tmp-"


class ShardSet:
    """Record files of a job, which receive the job's records in turn.

    Source: build_pretraining_dataset.py, ExampleWriter.
    Differs: files have a temporary name until `publish`.

    Attributes:
      num_records: number of records in all files.
    """

    def __init__(
        self,
        directory: str,
        prefix: str,
        indices: list[int],
        count: int,
        attempt: str = "",
    ):
        """Open the record files of a job.

        Args:
          directory: folder of the files.
          prefix: prefix of the file names.
          indices: indices of the job's files among all files.
          count: number of files of the build.
          attempt: part of the temporary names, for a job that may run twice at
            the same time.
        """
        self.num_records = 0
        self._directory = directory
        self._hidden = TEMPORARY_PREFIX + attempt
        self._names = [f"{prefix}.tfrecord-{i}-of-{count}" for i in indices]
        self._sizes = [0] * len(indices)
        if not filesystem.is_remote(directory):
            filesystem.allow_open_files(len(indices))
        self._files = [
            filesystem.open_file(self._temporary(name), "wb")
            for name in self._names
        ]

    def write(self, payload: bytes) -> None:
        """Write a record to the next file in turn."""
        record = frame_record(payload)
        number = self.num_records % len(self._files)
        self._files[number].write(record)
        self._sizes[number] += len(record)
        self.num_records += 1

    def close(self) -> None:
        for file in self._files:
            file.close()

    def publish(self) -> list[dict[str, Any]]:
        """Rename the closed files; return names, record counts and sizes."""
        entries = []
        share, remainder = divmod(self.num_records, max(1, len(self._names)))
        for i, name in enumerate(self._names):
            target = os.path.join(self._directory, name)
            filesystem.rename(self._temporary(name), target)
            records = share + 1 if i < remainder else share
            size = self._sizes[i]
            entries.append({"name": name, "records": records, "bytes": size})
        return entries

    def _temporary(self, name: str) -> str:
        return os.path.join(self._directory, self._hidden + name)
