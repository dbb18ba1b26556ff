# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import json
import types

import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.data import record_checks
from electra_tf.data.records import frame_record, new_manifest, save_manifest


@pytest.fixture
def config(build, vocab_file):
    build("records", held_out_fraction=0.2)
    folder = build.tmp_path / "records"
    return types.SimpleNamespace(
        folder=folder,
        pretrain_tfrecords=f"{folder}/pretrain_data.tfrecord*",
        eval_tfrecords=f"{folder}/eval_data.tfrecord*",
        max_seq_length=32,
        vocab_file=vocab_file,
        vocab_size=305,
        do_lower_case=True,
        strip_accents=True,
    )


def _listed(config):
    manifest = json.loads((config.folder / "manifest.json").read_text())
    return {
        shard["name"]: shard
        for job in manifest["jobs"].values()
        for shard in job["shards"]
    }


def _forget_manifest(config):
    (config.folder / "manifest.json").unlink()


@pytest.mark.parametrize("with_manifest", [True, False])
def test_fitting_records_pass_without_a_word(config, with_manifest):
    if not with_manifest:
        _forget_manifest(config)
    assert record_checks.check_records(config, True) == []
    assert record_checks.check_records(config, False) == []


def test_patterns_may_be_a_list_and_name_parts(config):
    config.pretrain_tfrecords = ",".join(
        f"{config.folder}/pretrain_data.tfrecord-{i}-of-4" for i in (0, 2)
    )
    found = record_checks.find_record_files(config, True)
    assert [path[-6:] for path in found.paths] == ["0-of-4", "2-of-4"]
    assert not found.held_out
    assert record_checks.find_record_files(config, False).held_out


def test_manifest_and_unfinished_files_are_no_records(config):
    (config.folder / ".tmp-pretrain_data.tfrecord-9-of-9").write_text("x")
    found = record_checks.find_record_files(config, True)
    assert len(found.paths) == 4


def test_a_missing_shard_is_counted(config):
    records = _listed(config)["pretrain_data.tfrecord-2-of-4"]["records"]
    (config.folder / "pretrain_data.tfrecord-2-of-4").unlink()
    (warning,) = record_checks.check_records(config, True)
    assert f"missing, pretrain_data.tfrecord-2-of-4 first; {records}" in warning


def test_held_out_records_asked_for_by_name_must_exist(config):
    config.eval_tfrecords = f"{config.folder}/other*"
    config.origins = {"eval_tfrecords": "flag"}
    with pytest.raises(UserError, match=r"eval_tfrecords = '.*other\*'"):
        record_checks.check_records(config, False)
    config.origins = {"eval_tfrecords": "derived"}
    (warning,) = record_checks.check_records(config, False)
    assert "evaluating on the training records" in warning


def test_empty_shards_only_is_an_error(config):
    for path in config.folder.glob("pretrain_data*"):
        path.write_bytes(b"")
    with pytest.raises(UserError, match="All 4 files.*are empty"):
        record_checks.check_records(config, True)


@pytest.mark.parametrize(
    ("settings", "with_manifest", "message"),
    [
        (
            {"pretrain_tfrecords": "/nowhere/*"},
            True,
            r"'/nowhere/\*'.*build_pretraining",
        ),
        ({"max_seq_length": 512}, True, "length 32, max_seq_length is 512"),
        ({"max_seq_length": 512}, False, "length 32, max_seq_length is 512"),
        (
            {"vocab_file": "/nowhere", "vocab_size": 200},
            True,
            "305 tokens, vocab_size is 200",
        ),
        ({"vocab_size": 100}, False, "token id .*, vocab_size is 100"),
    ],
)
def test_records_that_do_not_fit_are_refused(
    config, settings, with_manifest, message
):
    vars(config).update(settings)
    if not with_manifest:
        _forget_manifest(config)
    with pytest.raises(UserError, match=message):
        record_checks.check_records(config, True)


def test_another_vocabulary_is_refused(config, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n")
    config.vocab_file = str(other)
    with pytest.raises(UserError, match=r"another vocabulary \(305 tokens\)"):
        record_checks.check_records(config, True)


def test_other_casing_warns(config):
    config.do_lower_case = False
    (warning,) = record_checks.check_records(config, True)
    assert "do_lower_case is False" in warning


@pytest.mark.parametrize("with_manifest", [True, False])
def test_a_truncated_file_is_named(config, with_manifest):
    path = config.folder / "pretrain_data.tfrecord-2-of-4"
    path.write_bytes(path.read_bytes()[:-10])
    if not with_manifest:
        _forget_manifest(config)
    with pytest.raises(UserError, match="2-of-4.*cut short"):
        record_checks.check_records(config, True)


def test_an_unfinished_build_is_refused(config):
    path = config.folder / "manifest.json"
    text = path.read_text()
    path.write_text(text.replace('"complete": true', '"complete": false'))
    with pytest.raises(UserError, match="not complete"):
        record_checks.check_records(config, True)


def test_records_of_something_else_are_refused(config):
    _forget_manifest(config)
    path = config.folder / "pretrain_data.tfrecord-0-of-4"
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
    features = tf.train.Features(feature={"label": feature})
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(tf.train.Example(features=features).SerializeToString())
    with pytest.raises(UserError, match="no int64 feature 'input_ids'.*label"):
        record_checks.check_records(config, True)


def test_records_of_the_original_are_understood(golden_dir):
    folder = golden_dir / "pretrain_data/seq128_blanks_true_3files_cased"
    config = types.SimpleNamespace(
        pretrain_tfrecords=f"{folder}/pretrain_data.tfrecord*",
        max_seq_length=128,
        vocab_size=30522,
    )
    assert record_checks.check_records(config, True) == []


def _run(directory):
    pattern = str(directory / "pretrain_data.tfrecord*")
    return types.SimpleNamespace(pretrain_tfrecords=pattern)


def _write(directory, number, payloads):
    path = directory / f"pretrain_data.tfrecord-{number}-of-9"
    path.write_bytes(b"".join(map(frame_record, payloads)))


def test_records_are_counted_by_their_lengths(tmp_path):
    _write(tmp_path, 0, [b"four", b"long" * 1000, b"fours"])
    _write(tmp_path, 1, [b"four"])
    (tmp_path / "pretrain_data.tfrecord-2-of-9").touch()
    found = record_checks.count_training_examples(_run(tmp_path))
    assert found == (4, True, 2)


def test_a_manifest_spares_the_counting(tmp_path):
    _write(tmp_path, 0, [b"four", b"four"])
    _write(tmp_path, 1, [b"four"])
    manifest = new_manifest({}, {}, [], 1)
    shard = {"name": "pretrain_data.tfrecord-0-of-9", "records": 70}
    manifest["jobs"]["0"] = {"shards": [shard], "held_out_shards": []}
    save_manifest(str(tmp_path), manifest)
    found = record_checks.count_training_examples(_run(tmp_path))
    assert found == (71, True, 2)  # The second file is not in it.


def test_large_files_are_reckoned_from_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr(record_checks, "_BYTES_COUNTED", 100 * 26)
    for number in range(4):
        _write(tmp_path, number, [b"ten bytes."] * 100)
    found = record_checks.count_training_examples(_run(tmp_path))
    assert found == (400, False, 4)
