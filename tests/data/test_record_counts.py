# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Examples counted from manifests, lengths and sizes."""

import types

import pytest

from configure.errors import UserError
from electra_tf.data import record_checks
from electra_tf.data.records import frame_record, new_manifest, save_manifest


def config(directory):
    pattern = str(directory / "pretrain_data.tfrecord*")
    return types.SimpleNamespace(pretrain_tfrecords=pattern)


def write(directory, number, payloads):
    path = directory / f"pretrain_data.tfrecord-{number}-of-9"
    path.write_bytes(b"".join(map(frame_record, payloads)))


def test_records_are_counted_by_their_lengths(tmp_path):
    write(tmp_path, 0, [b"four", b"long" * 1000, b"fours"])
    write(tmp_path, 1, [b"four"])
    (tmp_path / "pretrain_data.tfrecord-2-of-9").touch()
    found = record_checks.count_training_examples(config(tmp_path))
    assert found == (4, True, 2)


def test_a_manifest_spares_the_counting(tmp_path):
    write(tmp_path, 0, [b"four", b"four"])
    write(tmp_path, 1, [b"four"])
    manifest = new_manifest({}, {}, [], 1)
    shard = {"name": "pretrain_data.tfrecord-0-of-9", "records": 70}
    manifest["jobs"]["0"] = {"shards": [shard], "held_out_shards": []}
    save_manifest(str(tmp_path), manifest)
    found = record_checks.count_training_examples(config(tmp_path))
    assert found == (71, True, 2)  # The second file is not in it.


def test_large_files_are_reckoned_from_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr(record_checks, "_BYTES_COUNTED", 100 * 26)
    for number in range(4):
        write(tmp_path, number, [b"ten bytes."] * 100)
    found = record_checks.count_training_examples(config(tmp_path))
    assert found == (400, False, 4)


def test_no_records_are_an_error(tmp_path):
    with pytest.raises(UserError, match="No record file matches"):
        record_checks.count_training_examples(config(tmp_path))
