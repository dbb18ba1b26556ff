# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Record files: tf.train.Example inside TFRecord, and the manifest beside them.

The bytes are written by hand: TensorFlow's import costs a worker seconds, and
its protocol buffers are slower than the tokenizer. The tests hold them against
`tf.train.Example` and `tf.io.TFRecordWriter`.
"""

import functools
import hashlib
import json
import os
import re
import struct
from collections.abc import Iterator
from typing import Any

import google_crc32c

import electra_tf
from configure.errors import UserError, listed
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
    """Reads a TFRecord file; errors name file, record number and byte."""
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
    """Reads the int64 features of a serialized tf.train.Example."""
    # Imported here because only files that nothing is known of are looked into.
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


# What was built and how: `manifest.json` beside the records.

MANIFEST_NAME = "manifest.json"
TRAINING_PREFIX = "pretrain_data"
HELD_OUT_PREFIX = "eval_data"
TEMPORARY_PREFIX = ".tmp-"

_FORMAT = 1
_OWN_NAMES = re.compile(
    rf"({re.escape(TEMPORARY_PREFIX)})?"
    rf"({TRAINING_PREFIX}|{HELD_OUT_PREFIX})\.tfrecord-\d+-of-\d+"
    rf"|{MANIFEST_NAME}|{re.escape(TEMPORARY_PREFIX)}{MANIFEST_NAME}"
)


def shard_name(prefix: str, index: int, count: int) -> str:
    """File name of a shard, as the original spells it (no leading zeros)."""
    return f"{prefix}.tfrecord-{index}-of-{count}"


def is_own_file(name: str) -> bool:
    """Whether a file of this name is written by the builder."""
    return _OWN_NAMES.fullmatch(name) is not None


def new_manifest(
    settings: dict[str, Any],
    vocabulary: dict[str, Any],
    corpus_files: list[tuple[str, int]],
    num_jobs: int,
) -> dict[str, Any]:
    """A manifest before any job is done."""
    names = json.dumps(corpus_files).encode()
    return {
        "format": _FORMAT,
        "written_by": f"electra_tf {electra_tf.__version__}",
        "complete": False,
        "settings": settings,
        "vocabulary": vocabulary,
        "corpus": {
            "fingerprint": hashlib.blake2b(names, digest_size=16).hexdigest(),
            "num_files": len(corpus_files),
            "num_bytes": sum(size for _, size in corpus_files),
            "files": [list(entry) for entry in corpus_files],
        },
        "num_jobs": num_jobs,
        "jobs": {},
        "counts": {},
    }


def load_manifest(directory: str) -> dict[str, Any] | None:
    """Reads a directory's manifest; None if there is none."""
    path = os.path.join(directory, MANIFEST_NAME)
    if not files.exists(path):
        return None
    try:
        with files.open_file(path, "rb") as file:
            manifest = json.loads(file.read())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} is not JSON ({error}); build the records again with "
            "--overwrite."
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise UserError(
            f"{path} is not a manifest of format {_FORMAT}; it was written by "
            "another program or version. Choose another directory or build "
            "again with --overwrite."
        )
    return manifest


def save_manifest(directory: str, manifest: dict[str, Any]) -> None:
    """Writes the manifest under a temporary name, then renames it."""
    # Laid out for people only at the end: that takes ten times as long, and
    # an unfinished one is written after each job.
    indent = 1 if manifest["complete"] else None
    files.write_atomically(
        os.path.join(directory, MANIFEST_NAME),
        json.dumps(manifest, indent=indent) + "\n",
        temporary=os.path.join(directory, TEMPORARY_PREFIX + MANIFEST_NAME),
    )


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Lines such as "seed: built with 1, asked for 2"; none: go on building.

    Only what was asked for is compared, not what came out.
    """
    lines = []
    for name, value in wanted["settings"].items():
        before = found["settings"].get(name)
        if before != value:
            lines.append(f"{name}: built with {before!r}, asked for {value!r}")
    if found["vocabulary"]["hash"] != wanted["vocabulary"]["hash"]:
        lines.append(
            "vocab_file: another vocabulary of "
            f"{found['vocabulary']['size']} tokens, now "
            f"{wanted['vocabulary']['size']}"
        )
    # Newer tables know more characters: the same text gives other tokens.
    before, now = (
        manifest.get("tokenizer", {}).get("unicode_version")
        for manifest in (found, wanted)
    )
    if before != now:
        lines.append(f"Python's Unicode tables: built with {before}, now {now}")
    if found["corpus"]["fingerprint"] != wanted["corpus"]["fingerprint"]:
        lines.append(_corpus_difference(found["corpus"], wanted["corpus"]))
    return lines


def _corpus_difference(found: dict, wanted: dict) -> str:
    before = {tuple(entry) for entry in found["files"]}
    now = {tuple(entry) for entry in wanted["files"]}
    changed = sorted({name for name, _ in before ^ now})
    return f"corpus: files added, removed or of another size: {listed(changed)}"
