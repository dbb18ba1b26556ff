# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The bytes of a pre-training record: tf.train.Example inside TFRecord.

Written by hand because importing TensorFlow costs each worker several seconds
and its protocol-buffer route is slower than the tokenizer; the tests hold the
bytes against `tf.train.Example` and `tf.io.TFRecordWriter`.
"""

import functools
import struct
from collections.abc import Iterator

import google_crc32c

from electra_tf import files

FEATURE_NAMES = ("input_ids", "input_mask", "segment_ids")

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_HEADER_SIZE = _LENGTH.size + _CRC.size


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    return bytes((value & 0x7F | 0x80,)) + _varint(value >> 7)


@functools.lru_cache(maxsize=1 << 14)
def _field_head(number: int, size: int) -> bytes:
    """What stands before the payload of a length-delimited field."""
    return _varint(number << 3 | 2) + _varint(size)


def _field(number: int, payload: bytes) -> bytes:
    """A length-delimited protocol-buffer field."""
    return _field_head(number, len(payload)) + payload


@functools.lru_cache(maxsize=1 << 14)
def _feature_head(name: str, size: int) -> bytes:
    """What stands before the values in `_feature_entry`."""
    head = b""
    for number in (1, 3, 2):  # int64_list.value, feature.int64_list, value
        head = _field_head(number, len(head) + size) + head
    head = _field(1, name.encode()) + head
    return _field_head(1, len(head) + size) + head


def _feature_entry(name: str, packed: bytes) -> bytes:
    """One entry of tf.train.Features.feature holding packed int64 values."""
    return _feature_head(name, len(packed)) + packed


class ExampleEncoder:
    """Two segments of token ids -> bytes of a serialized tf.train.Example.

    Features are int64 lists of length `max_length`: `input_ids` = [CLS]
    first [SEP] (second [SEP]) and zeros, `input_mask` 1 at tokens,
    `segment_ids` 1 at the second segment and its [SEP]. Equal, byte by byte,
    to the deterministic serialization of the same tf.train.Example.

    Source: build_pretraining_dataset.py, ExampleBuilder._make_tf_example.
    """

    def __init__(
        self, max_length: int, cls_id: int, sep_id: int, vocab_size: int
    ):
        """Prepares the constant parts.

        Args:
          cls_id: id of [CLS].
          sep_id: id of [SEP].
        """
        self._max_length = max_length
        self._varints = list(map(_varint, range(vocab_size)))
        self._cls = _varint(cls_id)
        self._sep = _varint(sep_id)
        self._masks = [
            _feature_entry("input_mask", b"\1" * n + b"\0" * (max_length - n))
            for n in range(max_length + 1)
        ]
        self._segments = functools.lru_cache(maxsize=1 << 14)(
            self._encode_segment_ids
        )

    def encode(self, first: list[int], second: list[int]) -> bytes:
        """Serializes one example."""
        varint = self._varints.__getitem__
        first_length = len(first) + 2
        length = first_length
        ids = self._cls + b"".join(map(varint, first)) + self._sep
        if second:
            ids += b"".join(map(varint, second)) + self._sep
            length += len(second) + 1
        ids += b"\0" * (self._max_length - length)
        features = (
            _feature_entry("input_ids", ids)
            + self._masks[length]
            + self._segments(first_length, length)
        )
        return _field(1, features)

    def _encode_segment_ids(self, first_length: int, length: int) -> bytes:
        packed = b"\0" * first_length + b"\1" * (length - first_length)
        packed += b"\0" * (self._max_length - length)
        return _feature_entry("segment_ids", packed)


def _masked_crc(text: bytes) -> int:
    """CRC-32C (Castagnoli), turned and shifted as TFRecord wants it."""
    crc = google_crc32c.value(text)
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF


@functools.lru_cache(maxsize=4096)
def _header(length: int) -> bytes:
    prefix = _LENGTH.pack(length)
    return prefix + _CRC.pack(_masked_crc(prefix))


def frame_record(payload: bytes) -> bytes:
    """Wraps a serialized example as a TFRecord record."""
    return _header(len(payload)) + payload + _CRC.pack(_masked_crc(payload))


class BrokenRecordError(ValueError):
    """A record file that ends early or holds impossible lengths."""


def read_records(path: str, check_crc: bool = True) -> Iterator[bytes]:
    """Reads a TFRecord file.

    Raises:
      BrokenRecordError: naming file, record number and byte offset.
    """
    with files.open_file(path, "rb") as file:
        number = 0
        while header := file.read(_HEADER_SIZE):
            start = file.tell() - len(header)
            where = f"{path}: record {number} at byte {start}"
            if len(header) < _HEADER_SIZE:
                raise BrokenRecordError(f"{where} ends within its header")
            length = _LENGTH.unpack_from(header)[0]
            if header != _header(length):
                raise BrokenRecordError(f"{where} has a damaged header")
            body = file.read(length + _CRC.size)
            if len(body) < length + _CRC.size:
                raise BrokenRecordError(
                    f"{where} ends after {len(body)} of "
                    f"{length + _CRC.size} bytes"
                )
            payload = body[:length]
            if check_crc and (
                _masked_crc(payload) != _CRC.unpack(body[length:])[0]
            ):
                raise BrokenRecordError(f"{where} has a damaged payload")
            yield payload
            number += 1


def decode_example(payload: bytes) -> dict[str, list[int]]:
    """Reads the int64 features of a serialized tf.train.Example.

    Args:
      payload: the serialized example; only int64 features are returned.
    """
    features = {}
    for _, entries in _fields(payload):
        for _, entry in _fields(entries):
            parts = dict(_fields(entry))
            for kind, values in _fields(parts.get(2, b"")):
                if kind == 3:
                    packed = b"".join(p for _, p in _fields(values))
                    features[parts[1].decode()] = _read_varints(packed)
    return features


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields of a message; single varints re-packed."""
    position = 0
    while position < len(data):
        tag, position = _read_varint(data, position)
        if tag & 7 == 2:
            length, position = _read_varint(data, position)
            yield tag >> 3, data[position : position + length]
            position += length
        elif tag & 7 == 0:
            start = position
            _, position = _read_varint(data, position)
            yield tag >> 3, data[start:position]
        else:
            raise BrokenRecordError(f"unexpected wire type {tag & 7}")


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _read_varints(packed: bytes) -> list[int]:
    values, position = [], 0
    while position < len(packed):
        value, position = _read_varint(packed, position)
        values.append(value)
    return values
