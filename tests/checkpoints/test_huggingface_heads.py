# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Heads of transformers' classes as heads of tasks."""

import json
import re

import numpy as np
import pytest

from electra_tf.checkpoints.contents import HIDDEN, TaskHead
from electra_tf.checkpoints.huggingface_layout import Network
from electra_tf.checkpoints.weights import MemoryWeights
from tests.checkpoints.conftest import arrays, same_tensors

SENTENCES = "ElectraForSequenceClassification"
TAGGING = "ElectraForTokenClassification"
QUESTIONS = "ElectraForQuestionAnswering"
UNNAMED = ("LABEL_0", "LABEL_1", "LABEL_2")


@pytest.fixture
def saved(out):
    """Return a factory of folders as transformers saves them."""

    def make(architecture, task, count=3, **config):
        network = Network(architecture, task=task, first_layer=HIDDEN)
        values = arrays(network, labels=count)
        weights = MemoryWeights(values)
        kinds = {SENTENCES: "classification", TAGGING: "tagging"}
        weights.heads = {task: TaskHead(kinds.get(architecture, ""))}
        out.write(weights)
        out.without_digests()
        defaults = {"electra_tf": None, "problem_type": None, "id2label": None}
        out.update_config(defaults | config)
        return out, values

    return make


@pytest.mark.parametrize(
    ("problem", "count", "kind"),
    [
        (None, 3, "classification"),
        (None, 2, "classification"),
        (None, 1, "regression"),
        ("single_label_classification", 2, "classification"),
        ("multi_label_classification", 3, "multilabel"),
        ("multi_label_classification", 1, "multilabel"),
        ("regression", 1, "regression"),
    ],
)
def test_problem_type_and_labels_decide_the_type_of_a_task(
    problem, count, kind, saved
):
    folder, values = saved(SENTENCES, kind, count, problem_type=problem)
    read = folder.weights()
    same_tensors(read, values)
    assert read.heads[kind].kind == kind and not read.dropped
    assert read.heads[kind].labels == UNNAMED[:count]
    assert read.heads[kind].as_elsewhere


@pytest.mark.parametrize(
    ("architecture", "task", "kind"),
    [
        (TAGGING, "chunk", "tagging"),
        (QUESTIONS, "squad", "question_answering"),
        (SENTENCES, "classification", "classification"),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_a_head_is_recognized_by_class_or_tensors(
    architecture, task, kind, declared, saved
):
    classes = [architecture] if declared else None
    folder, _ = saved(architecture, task, architectures=classes)
    assert folder.weights().heads[task].kind == kind


@pytest.mark.parametrize(
    ("id2label", "message"),
    [
        (
            {"0": "a", "2": "c"},
            r"keys 0, 2 \(1 is missing\), but the head has 3",
        ),
        ({"0": "a", "1": "b", "2": "c", "3": "d"}, r"\('3' is unknown\)"),
        ({}, "id2label has no keys"),
        ({"0": "a", "1": "b", "2": "a"}, "contains 'a' twice"),
        ({"0": "a", "1": None, "2": "c"}, r"id2label\.1 is None"),
        (["a", "b", "c"], "expected an object"),
    ],
)
def test_labels_named_twice_or_never_are_refused(id2label, message, saved):
    folder, _ = saved(TAGGING, "chunk", id2label=id2label)
    error = folder.refused()
    assert f"{folder}/config.json" in error and "Correct" in error
    assert re.search(message, error)


def test_an_unknown_problem_is_refused_by_name(saved):
    folder, _ = saved(SENTENCES, "classification", problem_type="ranking")
    assert "problem_type is 'ranking'; expected one of" in folder.refused()


@pytest.mark.parametrize(
    ("config", "count", "name"),
    [
        ({"problem_type": "regression"}, 3, "regression of 3 numbers"),
        ({"problem_type": "single_label_classification"}, 1, "of one label"),
        ({"architectures": ["ElectraForRelations"]}, 2, "ElectraForRelations"),
    ],
)
def test_a_head_that_no_task_has_is_dropped_with_a_remedy(
    config, count, name, saved
):
    folder, values = saved(SENTENCES, "x", count, **config)
    read = folder.weights()
    assert not read.heads and not read.contents.tasks
    tensors = [n for n in folder.tensors() if n.startswith("classifier.")]
    assert read.dropped.keys() == set(tensors)
    (reason,) = set(read.dropped.values())
    assert name in reason and "--init_checkpoint" in reason
    assert len(read.specs) == len(values) - 4


def test_multiple_choice_is_dropped_by_its_name(saved):
    folder, _ = saved("ElectraModel", "", count=1)
    values = folder.tensors()
    values["sequence_summary.summary.weight"] = np.zeros([6, 6], np.float32)
    values["classifier.weight"] = np.zeros([1, 6], np.float32)
    folder.store(values)
    folder.update_config({"architectures": ["ElectraForMultipleChoice"]})
    (reason,) = set(folder.weights().dropped.values())
    assert "head of ElectraForMultipleChoice (it chooses" in reason


@pytest.mark.parametrize(
    ("stated", "length"),
    [(8, 8), (int(1e30), 12), (1e30, 12), (512, 12), (None, 12)],
)
def test_texts_are_cut_to_the_tokenizers_length_within_the_positions(
    stated, length, saved
):
    folder, _ = saved(SENTENCES, "classification")
    config = {"model_max_length": stated, "do_lower_case": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    read = folder.weights()
    assert read.max_length == length
    assert read.heads["classification"].max_length == length


@pytest.mark.parametrize("stated", [0, -1, "512", True])
def test_a_length_below_1_or_of_another_type_is_refused(stated, saved):
    folder, _ = saved(SENTENCES, "classification")
    config = {"model_max_length": stated}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    assert f"model_max_length is {stated!r}" in folder.refused()


def test_a_folder_written_again_keeps_head_and_tensors(saved, tmp_path):
    names = {"0": "no", "1": "yes", "2": "perhaps"}
    folder, values = saved(SENTENCES, "classification", id2label=names)
    again = type(folder)(tmp_path / "again")
    again.write(folder.weights())
    assert again.config()["id2label"] == names
    assert again.weights().heads == folder.weights().heads
    same_tensors(again.weights(), values)
    same_tensors(MemoryWeights(again.tensors()), folder.tensors())


@pytest.fixture
def regression(out):
    network = Network(SENTENCES, task="sts", first_layer=HIDDEN)
    weights = MemoryWeights(arrays(network, labels=1))
    weights.heads = {"sts": TaskHead("regression", range=(0.0, 5.0))}
    out.write(weights)
    return out


def test_a_regression_keeps_its_range(regression):
    assert regression.weights().heads["sts"].range == (0.0, 5.0)
    assert regression.config()["problem_type"] == "regression"


def test_a_range_whose_limits_are_not_increasing_is_refused(regression):
    regression.update_config({"electra_tf": {"task": "sts", "range": [5, 0]}})
    assert "electra_tf.range is [5, 0]" in regression.refused()
