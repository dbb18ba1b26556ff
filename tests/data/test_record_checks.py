# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records and text that do not fit a run are found before training."""

import pathlib
import re

import pytest
import tensorflow as tf

from configure.problems import Level
from electra_tf.data import record_checks
from electra_tf.data.tfrecords import frame_record, read_records
from tests.conftest import read_json, refused


def _shard(config, number):
    return config.folder / f"pretrain_data.tfrecord-{number}-of-4"


def _refuses(config, message, training=True):
    refused(message, record_checks.check_records, config, training)


def test_training_on_held_out_records_is_refused_or_warned_of(config):
    config.pretrain_tfrecords = f"{config.folder}/*.tfrecord*"
    config.origins = {"eval_tfrecords": "derived"}
    _refuses(
        config, "eval_data.*: these files are used for training, but are held"
    )
    config.origins = {"eval_tfrecords": "flag"}
    (warning,) = record_checks.check_records(config, True)
    assert "for training, but are held" in warning


@pytest.fixture(params=["with a manifest", "without a manifest"])
def has_manifest(request, config):
    if request.param == "without a manifest":
        (config.folder / "manifest.json").unlink()
    return request.param == "with a manifest"


@pytest.mark.parametrize("training", [True, False])
def test_suitable_records_pass(config, has_manifest, training):
    assert record_checks.check_records(config, training) == []


def test_a_file_that_is_cut_short_is_refused(config, has_manifest):
    content = _shard(config, 2).read_bytes()
    _shard(config, 2).write_bytes(content[:-10])
    _refuses(config, "2-of-4.*truncated")


def test_records_of_a_different_length_are_refused(config, has_manifest):
    config.max_seq_length = 512
    _refuses(config, "records is 32, but max_seq_length is 512")


def test_records_of_a_larger_vocabulary_are_refused(config, has_manifest):
    config.vocab_file, config.vocab_size = "/nowhere", 100
    size = "305 tokens" if has_manifest else "token id .*"
    _refuses(config, f"{size}, but vocab_size is 100")


def test_missing_records_are_refused(config):
    config.pretrain_tfrecords = "/nowhere/*"
    _refuses(config, r"'/nowhere/\*'.*build_pretraining")


def test_records_of_only_empty_files_are_refused(config):
    for path in config.folder.glob("pretrain_data*"):
        path.write_bytes(b"")
    _refuses(config, "All 4 files.*are empty")


def test_a_missing_file_of_the_manifest_is_a_warning(config):
    manifest = read_json(config.folder / "manifest.json")
    shard = manifest["jobs"]["0"]["shards"][2]
    (config.folder / shard["name"]).unlink()
    (warning,) = record_checks.check_records(config, True)
    assert f"is {shard['name']}), so {shard['records']} ex" in warning


def test_a_casing_that_differs_from_the_manifest_is_a_warning(config):
    config.do_lower_case = False
    (warning,) = record_checks.check_records(config, True)
    assert "do_lower_case is False" in warning
    counts = read_json(config.folder / "manifest.json")["counts"]
    count = counts["examples"] + counts["held_out_examples"]
    assert f"the {count:,} examples" in warning


def test_a_different_casing_is_an_error_with_strict(config):
    config.do_lower_case, config.strict = False, True
    _refuses(config, r"do_lower_case(.|\n)*--strict")


def test_records_of_a_different_vocabulary_are_refused(config, tmp_path):
    path = tmp_path / "other.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n")
    config.vocab_file = str(path)
    _refuses(config, r"a different vocabulary \(305 tokens\)")


def test_records_of_an_incomplete_build_are_refused(config):
    path = config.folder / "manifest.json"
    text = path.read_text()
    path.write_text(text.replace('"complete": true', '"complete": false'))
    _refuses(config, "build of these records is incomplete")


def test_all_problems_of_a_run_are_found(config):
    config.max_seq_length, config.do_lower_case = 512, False
    length, casing = record_checks.find_problems(config, training=True)
    assert (length.level, casing.level) == (Level.ERROR, Level.DOUBT)


@pytest.mark.parametrize(
    "name", ["pretrain_data.tfrecord-1-of-4", "eval_data.tfrecord-0-of-1"]
)
def test_a_shard_that_lost_its_bytes_is_refused(config, has_manifest, name):
    (config.folder / name).write_bytes(b"")
    message = f"{name}: the size is 0 bytes"
    if has_manifest:
        message = (
            f"{name}: the size differs from the [0-9]+ bytes listed in manifest"
        )
    _refuses(config, message, training=name.startswith("pretrain"))


def test_a_missing_file_without_a_manifest_is_a_warning(config):
    (config.folder / "manifest.json").unlink()
    _shard(config, 2).unlink()
    (warning,) = record_checks.check_records(config, True)
    assert "1 of 4 files pretrain_data.tfrecord-*-of-4 are missing" in warning


def test_shards_that_were_built_empty_are_read(config, build, corpus_dir):
    for path in corpus_dir.iterdir():
        path.write_text("")
    (corpus_dir / "text_0.txt").write_text("waa wab wac\n\nwad wae\n")
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
        _refuses(config, ": the size is 0 bytes, although")


def test_the_case_of_records_without_a_manifest_is_checked(config, tmp_path):
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


def test_records_of_a_different_kind_are_refused(config):
    (config.folder / "manifest.json").unlink()
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
    features = tf.train.Features(feature={"label": feature})
    with tf.io.TFRecordWriter(str(_shard(config, 0))) as writer:
        writer.write(tf.train.Example(features=features).SerializeToString())
    _refuses(config, "no int64 feature 'input_ids'.*label")


def test_records_of_the_original_pass(config, golden_dir):
    folder = golden_dir / "pretrain_data/seq128_blanks_true_3files_cased"
    config.pretrain_tfrecords = f"{folder}/pretrain_data.tfrecord*"
    config.max_seq_length, config.vocab_size = 128, 30522
    config.vocab_file = ""
    assert record_checks.check_records(config, True) == []
