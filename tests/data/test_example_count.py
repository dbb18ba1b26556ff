# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The training examples of an epoch are counted or estimated."""

import json
import types

import pytest

from electra_tf.data import example_count
from electra_tf.data.manifest import MANIFEST_FORMAT
from electra_tf.data.tfrecords import frame_record


@pytest.fixture
def write_records(tmp_path):
    """Return a function that writes a record file, and the run's config."""

    def write(number, payloads):
        path = tmp_path / f"pretrain_data.tfrecord-{number}-of-9"
        path.write_bytes(b"".join(map(frame_record, payloads)))

    write.config = types.SimpleNamespace(
        pretrain_tfrecords=str(tmp_path / "pretrain_data.tfrecord*"),
        eval_tfrecords="",
        pretrain_text="",
        eval_text="",
        origins={},
    )
    return write


def test_training_examples_are_counted(write_records):
    write_records(0, [b"four", b"long" * 1000, b"fours"])
    write_records(1, [b"four"])
    write_records(2, [])
    count = example_count.count_training_examples(write_records.config)
    assert count == (4, True, 2)


def test_the_counts_of_a_manifest_are_used(write_records, tmp_path):
    write_records(0, [b"four"])
    write_records(1, [b"four"])
    shard = {"name": "pretrain_data.tfrecord-0-of-9", "records": 70}
    jobs = {"0": {"shards": [shard], "held_out_shards": []}}
    manifest = {"format": MANIFEST_FORMAT, "jobs": jobs}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    count = example_count.count_training_examples(write_records.config)
    assert count == (71, True, 2)


def test_the_count_of_large_files_is_estimated(write_records, monkeypatch):
    monkeypatch.setattr(example_count, "_BYTES_COUNTED", 100 * 26)
    for number in range(4):
        write_records(number, [b"ten bytes."] * 100)
    count = example_count.count_training_examples(write_records.config)
    assert count == (400, False, 4)
