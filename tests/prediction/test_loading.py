# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From folders to models; whose kernels TensorFlow is asked for."""

import json
import os
import pathlib
import platform
import shutil

import pytest

from configure.errors import UserError
from electra_tf.checkpoints.formats import open_weights
from electra_tf.files.digests import write_digests
from electra_tf.prediction.loading import load_finetuned
from tests.conftest import read_json, refused


def test_every_kind_of_task_comes_back_with_its_weights(finetuned_folder):
    for name in ("reviews", "grade", "topics", "names", "manuals"):
        folder = finetuned_folder(name)
        loaded = load_finetuned(folder)
        stored = open_weights(folder)
        assert loaded.task().name == name and loaded.global_step == 7
        for variable in loaded.model.variables:
            wanted = stored.read(variable.name.split(":")[0])
            if name == "names" and "token_type" in variable.name:
                wanted = wanted[[1, 1]]  # the one that taggers learn
            assert (variable.numpy() == wanted).all()


def test_the_best_model_is_taken_and_can_be_named(finetuned_folder):
    folder = finetuned_folder("reviews", fresh=True)
    best = os.path.join(folder, "best")
    os.makedirs(best)
    for name in os.listdir(folder):
        if name.startswith("model.ckpt-7"):
            new = name.replace("-7", "-5")
            shutil.copy(f"{folder}/{name}", f"{best}/{new}")
    with open(f"{best}/checkpoint", "w") as file:
        file.write('model_checkpoint_path: "model.ckpt-5"\n')
    for place in (folder, best, f"{best}/", f"{best}/model.ckpt-5"):
        assert load_finetuned(place).checkpoint.endswith("best/model.ckpt-5")
    newest = load_finetuned(f"{folder}/model.ckpt-7")
    assert newest.checkpoint == f"{folder}/model.ckpt-7"


def test_a_damaged_or_another_vocabulary_is_refused(finetuned_folder, tmp_path):
    path = pathlib.Path(finetuned_folder("reviews", fresh=True), "vocab.txt")
    other = tmp_path / "other.txt"
    other.write_text(path.read_text().replace("\nthe\n", "\nThe\n"))
    with pytest.raises(UserError, match=r"other.txt:\d+: found 'The'.*'the'"):
        load_finetuned(str(path.parent), vocab_file=str(other))
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
    shutil.copy(task, moved)  # Where training puts it.
    assert load_finetuned(str(moved)).task().labels == loaded.task().labels


def test_the_description_stays_as_it_was_learned(finetuned_folder):
    folder = finetuned_folder("reviews", fresh=True)
    spec = pathlib.Path(load_finetuned(folder).config.task_config)
    shutil.copy(spec, folder)  # Where training puts it.
    now = {"text_a": "title", "text_b": "text", "label": "label"}
    spec.write_text(json.dumps({**read_json(spec), "columns": now}))
    task = load_finetuned(folder).task()
    assert task.spec.columns != now and task.directory == str(spec.parent)
    task = load_finetuned(folder, task_config=str(spec)).task()
    assert task.spec.columns == now


def test_labels_found_in_data_stay_even_if_the_data_change(finetuned_folder):
    folder = pathlib.Path(finetuned_folder("reviews", fresh=True))
    config = json.loads((folder / "config.json").read_text())
    spec = pathlib.Path(config["task_config"])
    task = json.loads(spec.read_text())
    del task["labels"]
    spec.write_text(json.dumps(task))
    refused("cannot determine the labels", load_finetuned, str(folder))
    records = pathlib.Path(config["preprocessed_data_dir"])
    records.mkdir(parents=True)
    for place in (records, folder):  # the later goes before
        labels = [f"{place.name[0]}{i}" for i in range(3)]
        (place / "reviews_labels.json").write_text(json.dumps(labels))
        (spec.parent / "train.txt").write_text("text\tlabel\na\tnew\n")
        assert load_finetuned(str(folder)).task().labels == labels
    (folder / "reviews_labels.json").write_text('["p", "q"]')
    refused("labels have changed", load_finetuned, str(folder))


@pytest.fixture
def labels_of_data(finetuned_folder):
    """The labels file of a model whose description states no labels."""
    folder = pathlib.Path(finetuned_folder("reviews", fresh=True))
    spec = pathlib.Path(read_json(folder / "config.json")["task_config"])
    task = read_json(spec)
    del task["labels"]
    spec.write_text(json.dumps(task))
    path = folder / "reviews_labels.json"
    path.write_text('["bad", "good", "so-so"]')
    return path


def test_damaged_labels_are_refused(labels_of_data):
    write_digests(str(labels_of_data.parent))
    load_finetuned(str(labels_of_data.parent))
    labels_of_data.write_text('["bad", "gold", "so-so"]')
    words = "reviews_labels.json: checksum differs from .*digests.json"
    refused(words, load_finetuned, str(labels_of_data.parent))


def test_missing_labels_are_refused(labels_of_data):
    write_digests(str(labels_of_data.parent))
    labels_of_data.unlink()
    words = "reviews_labels.json: missing, but listed in"
    refused(words, load_finetuned, str(labels_of_data.parent))


def test_labels_of_a_folder_without_their_digest_are_read(labels_of_data):
    labels_of_data.write_text('["p", "q", "r"]')
    loaded = load_finetuned(str(labels_of_data.parent))
    assert loaded.task().labels == ["p", "q", "r"]


def test_what_is_missing_is_named(finetuned_folder, tmp_path):
    folder = finetuned_folder("grade", fresh=True)
    refused("its tasks: grade", load_finetuned(folder).task, "mrpc")
    refused("Do you mean .*m_1", load_finetuned, folder.removesuffix("_1"))
    refused("no such folder", load_finetuned, str(tmp_path / "nothing"))
    refused("no config.json", load_finetuned, str(tmp_path))
    with open(os.path.join(folder, "config.json"), "w") as file:
        file.write('{"model_size": "small"}')
    refused("no task_names", load_finetuned, folder)
    os.remove(os.path.join(folder, "checkpoint"))
    refused("no model.ckpt-<step>", load_finetuned, folder)


VARIABLE = "TF_ENABLE_ONEDNN_OPTS"
ANSWERING = "import electra_tf.prediction, electra_tf.inspection"
MANY = """from electra_tf.commands import predict
import argparse, contextlib
with contextlib.suppress(Exception):
    predict.main(argparse.Namespace())"""
ON_X86 = platform.machine().lower() in ("x86_64", "amd64")


@pytest.mark.parametrize(
    ("code", "wish", "wanted"),
    [
        ("import electra_tf.training", None, "1" if ON_X86 else None),
        # Packages that answer do without, but for files of many texts.
        (
            f"{ANSWERING}, electra_tf.extras.serving",
            None,
            "0" if ON_X86 else None,
        ),
        (f"{ANSWERING}\n{MANY}", None, "1" if ON_X86 else None),
        # What the user says stands.
        (f"import electra_tf.training\n{ANSWERING}", "1", "1"),
        # Nothing is taken back once TensorFlow has read it.
        (
            "import electra_tf, sys\n"
            f"sys.modules['tensorflow'] = sys\n{ANSWERING}",
            None,
            "1" if ON_X86 else None,
        ),
    ],
)
def test_imports_decide_on_onednn_or_the_user(run_python, code, wish, wanted):
    given = {k: v for k, v in os.environ.items() if k != VARIABLE}
    given |= {VARIABLE: wish} if wish else {}
    ending = f"\nimport os\nprint(os.getenv('{VARIABLE}'))"
    shown = run_python("-c", code + ending, env=given)
    assert shown.stdout.strip() == str(wanted)
