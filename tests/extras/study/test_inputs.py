# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files that a study's runs read, and that changed after a run."""

import pathlib
import shutil
import types

import pytest

from electra_tf.checkpoints.formats import open_weights
from electra_tf.data.fingerprints import files_fingerprint
from electra_tf.extras.study import runner
from electra_tf.extras.study.inputs import ChangedInputs, describe_inputs
from electra_tf.extras.study.result_lines import read_result_lines
from electra_tf.extras.study.runner import StudyRunner
from electra_tf.extras.study.study_file import Study
from electra_tf.files.digests import file_sha256
from electra_tf.finetuning.results import _make_fingerprint


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


def read_lines(path):
    """Return the lines of a study's results as a list."""
    return list(read_result_lines(f"{path}l").values())


@pytest.fixture
def start_study(content, tmp_path, monkeypatch, pretrained_folder):
    """Return the content of a study of a checkpoint that can be replaced."""
    start = shutil.copytree(pretrained_folder(seed=1), tmp_path / "start")
    content["arms"] = {"started": {"start": str(start)}}
    content |= {"seeds": [1], "against": "started"}
    results = {"data": {"starting weights": runner._start_sha256(str(start))}}
    trial = types.SimpleNamespace(trial=1, collapsed={}, baselines={})
    monkeypatch.setattr(runner, "_read_trials", lambda _: (results, [trial]))
    monkeypatch.setattr(runner, "_results", lambda _: {"accuracy": [50.0]})
    monkeypatch.setattr(StudyRunner, "_run_piece", lambda *_: 0)
    return content


@pytest.mark.parametrize(("seed", "warns"), [(1, False), (2, True)])
def test_a_replaced_initial_checkpoint_is_warned_of(
    start_study, write_study, tmp_path, capsys, pretrained_folder, seed, warns
):
    path = write_study(start_study)
    StudyRunner(Study(path), 60.0, 60.0).run()
    shutil.rmtree(tmp_path / "start")
    shutil.copytree(pretrained_folder(seed=seed), tmp_path / "start")
    assert "warning" not in capsys.readouterr().out
    StudyRunner(Study(path), 60.0, 60.0).run()
    warning = (
        "warning: started/1/sst started from weights that differ from those in"
        f" {tmp_path / 'start'}. To repeat the run with the current weights"
    )
    assert (warning in capsys.readouterr().out) == warns
    assert len(read_lines(path)) == 1


def test_a_line_has_the_weights_that_its_run_recorded(
    start_study, write_study, tmp_path
):
    path = write_study(start_study)
    start = tmp_path / "start"
    recorded = _make_fingerprint([], {}, True, open_weights(str(start)))
    shutil.rmtree(start)
    (start / "generator").mkdir(parents=True)
    (start / "generator" / "model.safetensors").write_text("replaced")
    StudyRunner(Study(path), 60.0, 60.0).run()
    (line,) = read_lines(path)
    assert line["start_sha256"] == recorded["starting weights"]


def test_a_line_without_the_weights_of_its_start_is_not_compared(
    start_study, write_study, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(runner, "_start_digest", lambda _: {})
    path = write_study(start_study)
    for _ in range(2):
        StudyRunner(Study(path), 60.0, 60.0).run()
    assert "start_sha256" not in read_lines(path)[0]
    assert "warning" not in capsys.readouterr().out


@pytest.mark.parametrize(("label", "warns"), [("0", False), ("1", True)])
def test_a_corrected_label_is_warned_of(
    start_study, write_study, tmp_path, capsys, label, warns
):
    path = write_study(start_study)
    StudyRunner(Study(path), 60.0, 60.0).run()
    dev = tmp_path / "finetuning_data" / "sst" / "dev.tsv"
    text = dev.read_text()
    assert text.endswith("\t0\n")
    dev.write_text(f"{text[:-2]}{label}\n")
    assert "warning" not in capsys.readouterr().out
    StudyRunner(Study(path), 60.0, 60.0).run()
    warning = "warning: the data of started/1/sst has changed since the run"
    assert (warning in capsys.readouterr().out) == warns
