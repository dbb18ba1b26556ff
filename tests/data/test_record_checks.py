# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import types

import pytest
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.data import example_count, record_checks, record_files
from electra_tf.data.manifest import MANIFEST_FORMAT
from electra_tf.data.records import frame_record, read_records
from tests.conftest import refused


def _shard(config, number):
    return config.folder / f"pretrain_data.tfrecord-{number}-of-4"


def _refuses(config, message, training=True):
    refused(message, record_checks.check_records, config, training)


def test_files_are_those_of_the_pattern_and_asked_for_must_exist(config):
    (config.folder / ".tmp-pretrain_data.tfrecord-9-of-9").write_text("x")
    assert len(record_files.find_record_files(config, True).paths) == 4
    config.pretrain_tfrecords = f"{_shard(config, 0)},{_shard(config, 2)}"
    found = record_files.find_record_files(config, True)
    assert [path[-6:] for path in found.paths] == ["0-of-4", "2-of-4"]
    assert not found.held_out
    assert record_files.find_record_files(config, False).held_out
    config.eval_tfrecords = f"{config.folder}/other*"
    config.origins = {"eval_tfrecords": "flag"}
    _refuses(config, r"eval_tfrecords = '.*other\*'", training=False)
    config.origins = {"eval_tfrecords": "derived"}
    (warning,) = record_checks.check_records(config, False)
    assert "evaluating on the training records" in warning
    # Unless they are named, they are looked for beside the others.
    pattern = f"{config.folder}/pretrain_data.tfrecord*"
    own = PretrainingConfig.create("m", "other", pretrain_tfrecords=pattern)
    assert record_files.find_record_files(own, False).held_out
    config.pretrain_tfrecords = f"{config.folder}/*.tfrecord*"
    config.eval_tfrecords = f"{config.folder}/eval_data.tfrecord*"
    _refuses(config, "eval_data.*: both trained on and held out")
    config.origins = {"eval_tfrecords": "flag"}
    (warning,) = record_checks.check_records(config, True)
    assert "trained on and held" in warning


@pytest.mark.parametrize("with_manifest", [True, False])
def test_fitting_records_pass_and_others_are_refused(config, with_manifest):
    if not with_manifest:
        (config.folder / "manifest.json").unlink()
    assert record_checks.check_records(config, True) == []
    assert record_checks.check_records(config, False) == []
    path = _shard(config, 2)
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    _refuses(config, "2-of-4.*cut short")
    path.write_bytes(content)
    config.max_seq_length = 512
    _refuses(config, "length 32, max_seq_length is 512")
    config.max_seq_length = 32
    config.vocab_file, config.vocab_size = "/nowhere", 100
    had = "305 tokens" if with_manifest else "token id .*"
    _refuses(config, f"{had}, vocab_size is 100")
    config.pretrain_tfrecords = "/nowhere/*"
    _refuses(config, r"'/nowhere/\*'.*build_pretraining")


def test_what_the_manifest_says_otherwise_is_noticed(config, tmp_path):
    path = config.folder / "manifest.json"
    text = path.read_text()
    missing = json.loads(text)["jobs"]["0"]["shards"][2]
    content = _shard(config, 2).read_bytes()
    _shard(config, 2).unlink()
    (warning,) = record_checks.check_records(config, True)
    name = _shard(config, 2).name
    assert f"missing, {name} first; {missing['records']}" in warning
    _shard(config, 2).write_bytes(content)
    config.do_lower_case = False
    (warning,) = record_checks.check_records(config, True)
    assert "do_lower_case is False" in warning
    counts = json.loads(text)["counts"]
    count = counts["examples"] + counts["held_out_examples"]
    assert f"the {count:,} examples" in warning
    config.strict = True
    _refuses(config, r"do_lower_case(.|\n)*--strict")
    config.strict = False
    other = tmp_path / "other.txt"
    other.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n")
    config.vocab_file = str(other)
    _refuses(config, r"another vocabulary \(305 tokens\)")
    path.write_text(text.replace('"complete": true', '"complete": false'))
    _refuses(config, "not complete")
    for path in config.folder.glob("pretrain_data*"):
        path.write_bytes(b"")
    _refuses(config, "All 4 files.*are empty")


@pytest.mark.parametrize("with_manifest", [True, False])
@pytest.mark.parametrize(
    "name", ["pretrain_data.tfrecord-1-of-4", "eval_data.tfrecord-0-of-1"]
)
def test_a_shard_that_lost_its_bytes_is_refused(config, name, with_manifest):
    (config.folder / name).write_bytes(b"")
    message = f"{name} has not the [0-9]+ bytes that manifest"
    if not with_manifest:
        (config.folder / "manifest.json").unlink()
        message = f"{name}: 0 bytes"
    _refuses(config, message, training=name.startswith("pretrain"))


def test_a_name_without_a_manifest_says_how_many_files_belong(config):
    (config.folder / "manifest.json").unlink()
    _shard(config, 2).unlink()
    (warning,) = record_checks.check_records(config, True)
    assert "1 of 4 files pretrain_data.tfrecord-*-of-4 are missing" in warning


def test_shards_that_were_built_empty_are_read(config, build, corpus_dir):
    for path in corpus_dir.iterdir():
        path.write_text("waa wab wac\n\nwad wae\n" * (path.name < "text_1"))
    build("few", num_shards=9, num_processes=2)
    folder = build.tmp_path / "few"
    assert any(p.stat().st_size == 0 for p in folder.iterdir())
    config.pretrain_tfrecords = f"{folder}/pretrain_data.tfrecord*"
    assert record_checks.check_records(config, True) == []


@pytest.mark.parametrize(
    ("records", "are_read"),
    [
        ([1, 1, 1, 0, 0, 0], True),  # fewer examples than files
        ([4, 0, 3, 0, 3, 0], True),  # a second process without text
        ([4, 4, 0, 3, 3, 3], False),
        ([4, 0], False),
    ],
)
def test_empty_files_of_the_original_are_read(config, records, are_read):
    payload = next(read_records(str(_shard(config, 0))))
    for path in config.folder.iterdir():
        path.unlink()
    for number, count in enumerate(records):
        name = f"pretrain_data.tfrecord-{number}-of-{len(records)}"
        (config.folder / name).write_bytes(frame_record(payload) * count)
    if are_read:
        assert record_checks.check_records(config, True) == []
    else:
        _refuses(config, ": 0 bytes, though")


def test_the_case_of_records_without_a_manifest_is_looked_at(config, tmp_path):
    (config.folder / "manifest.json").unlink()
    config.do_lower_case = False
    (warning,) = record_checks.check_records(config, True)
    count = re.search("but 0 of ([0-9,]+) tokens", warning)[1]
    tokens = pathlib.Path(config.vocab_file).read_text().splitlines()
    cased = [t if t.startswith("[") else t.title() for t in tokens]
    config.vocab_file = str(tmp_path / "cased.txt")
    pathlib.Path(config.vocab_file).write_text("\n".join(cased))
    assert record_checks.check_records(config, True) == []
    config.do_lower_case, config.strict = True, True
    _refuses(config, f"{count} of {count} tokens .*upper")


def test_records_of_the_original_alone_are_understood(config, golden_dir):
    (config.folder / "manifest.json").unlink()
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
    features = tf.train.Features(feature={"label": feature})
    with tf.io.TFRecordWriter(str(_shard(config, 0))) as writer:
        writer.write(tf.train.Example(features=features).SerializeToString())
    _refuses(config, "no int64 feature 'input_ids'.*label")
    folder = golden_dir / "pretrain_data/seq128_blanks_true_3files_cased"
    config.pretrain_tfrecords = f"{folder}/pretrain_data.tfrecord*"
    config.max_seq_length, config.vocab_size = 128, 30522
    config.vocab_file = ""
    assert record_checks.check_records(config, True) == []


def test_training_examples_are_counted(tmp_path, monkeypatch):
    def write(number, payloads):
        path = tmp_path / f"pretrain_data.tfrecord-{number}-of-9"
        path.write_bytes(b"".join(map(frame_record, payloads)))

    pattern = str(tmp_path / "pretrain_data.tfrecord*")
    config = types.SimpleNamespace(pretrain_tfrecords=pattern, pretrain_text="")
    count = example_count.count_training_examples
    write(0, [b"four", b"long" * 1000, b"fours"])
    write(1, [b"four"])
    write(2, [])
    assert count(config) == (4, True, 2)
    # A manifest spares the counting of the files it lists.
    shard = {"name": "pretrain_data.tfrecord-0-of-9", "records": 70}
    jobs = {"0": {"shards": [shard], "held_out_shards": []}}
    manifest = {"format": MANIFEST_FORMAT, "jobs": jobs}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert count(config) == (71, True, 2)
    # Of large files it is reckoned from their size.
    (tmp_path / "manifest.json").unlink()
    monkeypatch.setattr(example_count, "_BYTES_COUNTED", 100 * 26)
    for number in range(4):
        write(number, [b"ten bytes."] * 100)
    assert count(config) == (400, False, 4)
