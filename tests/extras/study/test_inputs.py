# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files that a study's runs read, and that changed after a run."""

import pathlib
import shutil

import pytest

from electra_tf.data.fingerprints import files_fingerprint
from electra_tf.extras.study.inputs import ChangedInputs, describe_inputs
from electra_tf.extras.study.study_file import Study
from electra_tf.files.digests import file_sha256


@pytest.fixture
def files(content, data_dir, tmp_path):
    """Copy a study's files; return their paths, by name."""
    names = {"pretrain_tfrecords": "train", "eval_tfrecords": "held_out"}
    shards = sorted((data_dir / "pretrain_tfrecords").glob("pretrain_data*"))
    paths = {}
    for name, file in names.items():
        paths[name] = pathlib.Path(shutil.copy(shards[0], tmp_path / file))
        content["pretrain"][name] = str(paths[name])
    vocab_file = content["pretrain"]["vocab_file"]
    paths["vocab_file"] = pathlib.Path(
        shutil.copy(vocab_file, tmp_path / "vocab.txt")
    )
    content["pretrain"]["vocab_file"] = str(paths["vocab_file"])
    paths["task_files"] = tmp_path / "finetuning_data" / "sst" / "dev.tsv"
    return paths


@pytest.fixture
def runs(content, write_study, files):
    """Return a pre-training and a fine-tuning, by kind."""
    runs = Study(write_study(content)).runs({})
    return {run.facts["kind"]: run for run in runs}


def change_a_byte(path):
    """Replace a file's last byte but one, so that its size stays."""
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("pretrain", ["pretrain_tfrecords", "eval_tfrecords", "vocab_file"]),
        ("finetune", ["task_files", "vocab_file"]),
    ],
)
def test_a_line_names_the_files_that_its_run_reads(runs, kind, names):
    assert list(describe_inputs(runs[kind])) == names


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("pretrain", "pretrain_tfrecords"),
        ("pretrain", "eval_tfrecords"),
        ("pretrain", "vocab_file"),
        ("finetune", "task_files"),
        ("finetune", "vocab_file"),
    ],
)
def test_a_change_that_keeps_the_size_of_a_file_is_listed(
    runs, files, kind, name
):
    run = runs[kind]
    before = describe_inputs(run)
    line = {"inputs": before, "data": files_fingerprint(run.reads)}
    assert list(ChangedInputs().list_changes(run, line)) == []
    change_a_byte(files[name])
    after = describe_inputs(run)[name]
    assert list(ChangedInputs().list_changes(run, line)) == [
        f"the fingerprint of {run.inputs[name]} was {before[name]} and is"
        f" {after}"
    ]


def test_the_vocabulary_has_the_digest_of_its_bytes(runs, files):
    (fingerprint,) = {
        describe_inputs(run)["vocab_file"] for run in runs.values()
    }
    assert fingerprint == f"sha256 {file_sha256(str(files['vocab_file']))}"


def test_a_task_file_of_another_name_is_listed(runs, files):
    run = runs["finetune"]
    line = {"inputs": describe_inputs(run)}
    files["task_files"].rename(files["task_files"].with_name("other.tsv"))
    (change,) = ChangedInputs().list_changes(run, line)
    assert run.inputs["task_files"] in change


@pytest.mark.parametrize("name", ["eval_tfrecords", "vocab_file"])
def test_files_that_do_not_exist_here_are_not_compared(runs, files, name):
    run = runs["pretrain"]
    line = {"inputs": describe_inputs(run)}
    files[name].unlink()
    assert list(ChangedInputs().list_changes(run, line)) == []


def test_an_earlier_line_is_compared_by_names_and_sizes(runs, files):
    run = runs["pretrain"]
    line = {"data": files_fingerprint(run.reads)}
    change_a_byte(files["pretrain_tfrecords"])
    assert list(ChangedInputs().list_changes(run, line)) == []
    files["pretrain_tfrecords"].write_bytes(b"longer")
    (change,) = ChangedInputs().list_changes(run, line)
    assert "sha256 of names and sizes" in change
