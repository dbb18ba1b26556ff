# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Heads of transformers are evaluated and trained as those of a run."""

import json

import numpy as np
import pytest

from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import huggingface_reader
from electra_tf.checkpoints.formats import open_weights
from electra_tf.finetuning import runner
from electra_tf.finetuning.inherited_heads import with_inherited_heads
from electra_tf.finetuning.initial_checkpoint import open_initial_checkpoint
from electra_tf.finetuning.registry import get_tasks
from electra_tf.prediction.loading import load_finetuned
from electra_tf.prediction.predictor import Predictor
from electra_tf.training.console import Console
from tests.conftest import TASKS, read_json, refused

KERNEL, BIAS = "dense/kernel", "dense/bias"


@pytest.fixture
def config_of(tmp_path, tiny_vocab):
    """Return a factory of configs of a described task, from a folder."""

    def make(folder, task, lines=("a\tgood", "the king\tbad"), **hparams):
        description = {"name": "films", **task}
        description["files"] = {"train": "train.tsv", "dev": "dev.tsv"}
        if description.get("type") == "tagging":
            description["files"] = {"train": "train.txt", "dev": "dev.txt"}
        head = [] if description.get("type") == "tagging" else ["text\tlabel"]
        for name in description["files"].values():
            text = "\n".join([*head, *lines, "", ""])
            (tmp_path / name).write_text(text)
        (tmp_path / "task.json").write_text(json.dumps(description))
        stated = {
            "task_config": str(tmp_path / "task.json"),
            "task_names": ["films"],
            "init_checkpoint": str(folder),
            "do_train": False,
            "num_trials": 1,
        }
        return FinetuningConfig.create("m", str(tmp_path), **stated | hparams)

    return make


def inherited(config, is_training=False):
    start = open_initial_checkpoint(config)
    tasks = get_tasks(start.config)
    weights, notes = with_inherited_heads(start.weights, tasks, is_training)
    return start.config, tasks, weights, notes


def test_a_head_is_reordered_to_the_labels_of_the_task(
    transformers_folder, config_of
):
    _, folder = transformers_folder("reviews")
    task = {**TASKS["reviews"], "labels": ["so-so", "bad", "good"]}
    config, _, weights, notes = inherited(config_of(folder, task))
    assert config.classification_head_layers == 2
    stored = open_weights(str(folder))
    for name in (KERNEL, BIAS):
        original = stored.read(f"task_specific/classification/{name}")
        reordered = weights.read(f"task_specific/films/{name}")
        np.testing.assert_array_equal(reordered, original[..., [2, 0, 1]])
    hidden = "hidden/kernel"
    np.testing.assert_array_equal(
        weights.read(f"task_specific/films/{hidden}"),
        stored.read(f"task_specific/classification/{hidden}"),
    )
    assert weights.heads["films"].labels == ("so-so", "bad", "good")
    assert notes == [f"films: the head of {folder} is used"]


def test_other_labels_are_refused_and_start_fresh(
    transformers_folder, config_of
):
    _, folder = transformers_folder("reviews")
    task = {**TASKS["reviews"], "labels": ["no", "yes"]}
    config = config_of(folder, task)
    refused(
        "has the labels bad, good, so-so, but task films", inherited, config
    )
    _, _, weights, notes = inherited(config, is_training=True)
    assert not weights.contents.tasks and "films: a fresh head" in notes[0]


def test_unnamed_labels_are_in_the_order_of_the_task(
    transformers_folder, config_of
):
    _, folder = transformers_folder("reviews", fresh=True)
    stated = read_json(folder / "config.json")
    del stated["id2label"]
    (folder / "config.json").write_text(json.dumps(stated))
    _, _, weights, _ = inherited(config_of(folder, TASKS["reviews"]))
    assert weights.heads["films"].labels == ("bad", "good", "so-so")


def test_a_head_of_another_type_is_refused(transformers_folder, config_of):
    _, folder = transformers_folder("reviews")
    config = config_of(folder, TASKS["grade"], ["a\t2", "b\t3"])
    refused("is of type classification; task films", inherited, config)
    _, _, weights, notes = inherited(config, is_training=True)
    assert not weights.contents.tasks and not notes


def test_numbers_are_scaled_to_the_tasks_range(transformers_folder, config_of):
    _, folder = transformers_folder("grade")
    task = {**TASKS["grade"], "range": [-2, 6]}
    _, _, weights, _ = inherited(config_of(folder, task, ["a\t2", "b\t3"]))
    stored = open_weights(str(folder))
    scope = "task_specific/regression"
    bias = stored.read(f"{scope}/{BIAS}")
    np.testing.assert_allclose(
        weights.read(f"task_specific/films/{BIAS}"), (bias + 2) / 8, rtol=1e-6
    )
    kernel = stored.read(f"{scope}/{KERNEL}")
    np.testing.assert_allclose(
        weights.read(f"task_specific/films/{KERNEL}"), kernel / 8, rtol=1e-6
    )


LINES = ["the B-PER", "king I-PER", "of O", "", "city B-LOC", "is O", ""]


@pytest.fixture
def tagger(transformers_folder):
    """Return a function that makes a folder whose head has some tags."""

    def make(*labels):
        _, folder = transformers_folder("kinds", fresh=True)
        path = folder / "config.json"
        id2label = {str(i): name for i, name in enumerate(labels)}
        path.write_text(json.dumps({**read_json(path), "id2label": id2label}))
        return folder

    return make


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("O", "B-X", "I-X"), [[1, 2, 2], [1]]),
        (("O", "I-X", "B-Y"), [[1, 1, 1], [1]]),
        (("O", "U-X", "L-X"), [None, [1]]),
        (("S-X", "B-X", "E-X"), [None, [0]]),
    ],
)
def test_tags_are_those_of_the_head(labels, expected, tagger, config_of):
    task = {"type": "tagging", "format": "conll"}
    lines = ["a B-X", "b I-X", "c I-X", "", "d B-X"]
    config = config_of(tagger(*labels), task, lines)
    config, (task,), weights, _ = inherited(config)
    assert config.fix_tagging_truncation and config.fix_tagging_casing
    assert task.label_mapping == {name: i for i, name in enumerate(labels)}
    assert weights.heads["films"].labels == labels
    actual = {e.eid: e.labels for e in task.get_examples("dev")}
    usable = {i: ids for i, ids in enumerate(expected) if ids is not None}
    assert actual == usable


def test_tags_of_different_types_make_a_fresh_head(tagger, config_of):
    task = {"type": "tagging", "format": "conll"}
    config = config_of(tagger("O", "B-PER", "I-PER"), task, LINES)
    _, (task,), weights, notes = inherited(config, is_training=True)
    assert not weights.contents.tasks and "films: a fresh head" in notes[0]
    assert {*task.label_mapping} == {"O", "B-PER", "E-PER", "S-LOC"}


def test_question_answering_takes_the_heads_settings(
    transformers_folder, config_of
):
    _, folder = transformers_folder("facts")
    config = FinetuningConfig.create(
        "m",
        str(folder.parent / "none"),
        task_names=["squadv1"],
        init_checkpoint=str(folder),
        max_query_length=12,
    )
    config, _, weights, _ = inherited(config)
    assert not config.joint_prediction and not config.answerable_classifier
    assert config.max_seq_length == 48 and config.qa_na_threshold == 0.0
    assert weights.contents.tasks == ("squadv1",)
    assert weights.heads["squadv1"].kind == "question_answering"


def test_explicit_hparams_are_kept(transformers_folder, config_of):
    _, folder = transformers_folder("reviews")
    config = config_of(folder, TASKS["reviews"], max_seq_length=20)
    assert open_initial_checkpoint(config).config.max_seq_length == 20
    config = config_of(folder, TASKS["reviews"])
    assert open_initial_checkpoint(config).config.max_seq_length == 48


TEXTS = ["the king", "a city of the north", "in", "for her", "is that"]


@pytest.mark.slow
def test_a_folder_is_evaluated_and_trained_on(
    transformers_folder, config_of, tmp_path
):
    _, folder = transformers_folder("reviews")
    labels = ["good", "so-so", "bad"]
    answers = Predictor.from_pretrained(str(folder))(TEXTS)
    gold = [answer["label"] for answer in answers]
    gold[0] = next(label for label in labels if label != gold[0])
    lines = [f"{t}\t{label}" for t, label in zip(TEXTS, gold, strict=True)]
    task = {**TASKS["reviews"], "labels": labels}
    config = config_of(folder, task, lines)
    (record,) = runner.run(config, Console())["trials"]
    assert record["results"]["films"]["accuracy"] == pytest.approx(80.0)
    again = {"do_train": True, "learning_rate": 0.0, "train_batch_size": 5}
    again |= {"num_train_epochs": 1.0, "overwrite": False}
    config = config_of(folder, task, lines, **again)
    (record,) = runner.run(config, Console())["trials"]
    assert record["results"]["films"]["accuracy"] == pytest.approx(80.0)
    loaded = load_finetuned(f"{config.model_dir}_1")
    assert loaded.config.classification_head_layers == 2
    assert Predictor(loaded)(TEXTS)[1]["label"] == gold[1]
    # Another process reads the vocabulary to another temporary file.
    huggingface_reader._VOCABULARIES.clear()
    (folder / "vocab.txt").rename(folder / "kept.txt")
    try:
        runner.run(config_of(folder, task, lines, num_trials=2, **again))
    finally:
        (folder / "kept.txt").rename(folder / "vocab.txt")
