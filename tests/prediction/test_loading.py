# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuned models are loaded from folders; imports choose the kernels."""

import json
import os
import pathlib
import platform
import shutil

import pytest

from configure.errors import UserError
from electra_tf.checkpoints.formats import open_weights
from electra_tf.prediction.loading import load_finetuned
from tests.conftest import read_json, refused


@pytest.mark.parametrize(
    "name", ["reviews", "grade", "topics", "names", "manuals"]
)
def test_a_task_is_loaded_with_its_weights(finetuned_folder, name):
    folder = finetuned_folder(name)
    loaded = load_finetuned(folder)
    assert loaded.task().name == name and loaded.global_step == 7
    stored = open_weights(folder)
    different = []
    for variable in loaded.model.variables:
        expected = stored.read(variable.name.split(":")[0])
        if name == "names" and "token_type" in variable.name:
            expected = expected[[1, 1]]  # the row that taggers learn
        if not (variable.numpy() == expected).all():
            different.append(variable.name)
    assert not different and loaded.model.variables


@pytest.fixture
def folder_with_best(finetuned_folder):
    """Return a folder whose best model is of step 5, its latest of step 7."""
    folder = finetuned_folder("reviews", fresh=True)
    best = os.path.join(folder, "best")
    os.makedirs(best)
    for name in os.listdir(folder):
        if name.startswith("model.ckpt-7"):
            new_name = name.replace("-7", "-5")
            shutil.copy(f"{folder}/{name}", f"{best}/{new_name}")
    with open(f"{best}/checkpoint", "w") as file:
        file.write('model_checkpoint_path: "model.ckpt-5"\n')
    return folder


@pytest.mark.parametrize(
    ("path", "checkpoint"),
    [
        ("", "best/model.ckpt-5"),
        ("/best", "best/model.ckpt-5"),
        ("/best/", "best/model.ckpt-5"),
        ("/best/model.ckpt-5", "best/model.ckpt-5"),
        ("/model.ckpt-7", "model.ckpt-7"),
    ],
)
def test_the_best_model_is_loaded_unless_another_is_named(
    folder_with_best, path, checkpoint
):
    loaded = load_finetuned(f"{folder_with_best}{path}")
    assert loaded.checkpoint == f"{folder_with_best}/{checkpoint}"


def test_a_different_vocabulary_is_refused(finetuned_folder, tmp_path):
    path = pathlib.Path(finetuned_folder("reviews", fresh=True), "vocab.txt")
    other = tmp_path / "other.txt"
    other.write_text(path.read_text().replace("\nthe\n", "\nThe\n"))
    with pytest.raises(UserError, match=r"other.txt:\d+: found 'The'.*'the'"):
        load_finetuned(str(path.parent), vocab_file=str(other))


def test_a_damaged_vocabulary_is_refused(finetuned_folder):
    path = pathlib.Path(finetuned_folder("reviews", fresh=True), "vocab.txt")
    tokens = path.read_text().split("\n")
    path.write_text("\n".join([*tokens[:-3], tokens[-2], tokens[-3], ""]))
    refused("checksum differs", load_finetuned, str(path.parent))


def test_a_moved_tree_needs_no_flags(finetuned_folder, tmp_path):
    folder = finetuned_folder("reviews", fresh=True)
    data_dir = os.path.dirname(os.path.dirname(folder))
    shutil.move(data_dir, tmp_path / "elsewhere")
    moved = tmp_path / "elsewhere" / "models" / "m_1"
    refused("task_config=FILE", load_finetuned, str(moved))
    task = tmp_path / "elsewhere" / "task.json"
    loaded = load_finetuned(str(moved), task_config=str(task))
    assert loaded.config.data_dir == str(tmp_path / "elsewhere")
    assert loaded.config.vocab_file == str(moved / "vocab.txt")
    shutil.copy(task, moved)  # as training does
    assert load_finetuned(str(moved)).task().labels == loaded.task().labels


def test_the_description_is_that_of_the_training(finetuned_folder):
    folder = finetuned_folder("reviews", fresh=True)
    spec = pathlib.Path(load_finetuned(folder).config.task_config)
    shutil.copy(spec, folder)  # as training does
    columns = {"text_a": "title", "text_b": "text", "label": "label"}
    spec.write_text(json.dumps(read_json(spec) | {"columns": columns}))
    task = load_finetuned(folder).task()
    assert task.spec.columns != columns and task.directory == str(spec.parent)
    task = load_finetuned(folder, task_config=str(spec)).task()
    assert task.spec.columns == columns


@pytest.fixture
def folder_without_labels(finetuned_folder):
    """Return a run's folder whose description and data name no labels."""
    folder = pathlib.Path(finetuned_folder("reviews", fresh=True))
    spec = pathlib.Path(read_json(folder / "config.json")["task_config"])
    task = read_json(spec)
    del task["labels"]
    spec.write_text(json.dumps(task))
    return folder


def test_unknown_labels_are_refused(folder_without_labels):
    folder = str(folder_without_labels)
    refused("cannot determine the labels", load_finetuned, folder)


def test_labels_of_the_model_precede_those_of_records_and_data(
    folder_without_labels,
):
    folder = folder_without_labels
    config = read_json(folder / "config.json")
    records = pathlib.Path(config["preprocessed_data_dir"])
    records.mkdir(parents=True)
    (records / "reviews_labels.json").write_text('["r0", "r1", "r2"]')
    data = pathlib.Path(config["task_config"]).parent / "train.txt"
    data.write_text("text\tlabel\na\tnew\n")
    assert load_finetuned(str(folder)).task().labels == ["r0", "r1", "r2"]
    (folder / "reviews_labels.json").write_text('["m0", "m1", "m2"]')
    assert load_finetuned(str(folder)).task().labels == ["m0", "m1", "m2"]


def test_a_different_count_of_labels_is_refused(
    folder_without_labels,
):
    path = folder_without_labels / "reviews_labels.json"
    path.write_text('["p", "q"]')
    folder = str(folder_without_labels)
    refused("labels have changed", load_finetuned, folder)


def test_an_unknown_task_is_refused(finetuned_folder):
    loaded = load_finetuned(finetuned_folder("grade"))
    refused("model's tasks: grade", loaded.task, "mrpc")


def test_a_path_without_a_model_is_refused(finetuned_folder, tmp_path):
    folder = finetuned_folder("grade")
    refused("such as .*m_1", load_finetuned, folder.removesuffix("_1"))
    refused("no such folder", load_finetuned, str(tmp_path / "nothing"))
    refused("no config.json", load_finetuned, str(tmp_path))


def test_a_folder_without_a_checkpoint_is_refused(finetuned_folder):
    folder = finetuned_folder("grade", fresh=True)
    os.remove(os.path.join(folder, "checkpoint"))
    refused("no model.ckpt-<step>", load_finetuned, folder)


def test_the_configuration_of_a_different_run_is_refused(finetuned_folder):
    folder = finetuned_folder("grade", fresh=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        file.write('{"model_size": "small"}')
    refused("task_names is missing", load_finetuned, folder)


VARIABLE = "TF_ENABLE_ONEDNN_OPTS"
ANSWERING = "import electra_tf.prediction, electra_tf.inspection"
PREDICTING = """from electra_tf.commands import predict
import argparse, contextlib
with contextlib.suppress(Exception):
    predict.main(argparse.Namespace())"""
ON_X86 = platform.machine().lower() in ("x86_64", "amd64")


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [
        ("import electra_tf.training", None, "1" if ON_X86 else None),
        # Packages that answer requests turn oneDNN off; prediction of files
        # leaves oneDNN on.
        (
            f"{ANSWERING}, electra_tf.extras.serving",
            None,
            "0" if ON_X86 else None,
        ),
        (f"{ANSWERING}\n{PREDICTING}", None, "1" if ON_X86 else None),
        # A value that the user set is kept.
        (f"import electra_tf.training\n{ANSWERING}", "1", "1"),
        # TensorFlow reads the variable only when it is imported.
        (
            "import electra_tf, sys\n"
            f"sys.modules['tensorflow'] = sys\n{ANSWERING}",
            None,
            "1" if ON_X86 else None,
        ),
    ],
)
def test_imports_or_the_user_decide_on_onednn(
    run_python, code, value, expected
):
    environment = {k: v for k, v in os.environ.items() if k != VARIABLE}
    if value is not None:
        environment[VARIABLE] = value
    code += f"\nimport os\nprint(os.getenv('{VARIABLE}'))"
    done = run_python("-c", code, env=environment)
    assert done.stdout.strip() == str(expected)
