# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The descriptions of the nine GLUE tasks.

Columns are given by index, because the headers of published copies differ.

Source: google-research/electra, finetune/classification/
  classification_tasks.py.
Differs: the original has neither WNLI nor scores of the mismatched dev set.
"""

from typing import Any

from electra_tf.finetuning.task_description import TaskSpec

_FILES = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
_MNLI_FILES = {
    "train": "train.tsv",
    "dev_matched": "dev_matched.tsv",
    "dev_mismatched": "dev_mismatched.tsv",
    "test_matched": "test_matched.tsv",
    "test_mismatched": "test_mismatched.tsv",
    "diagnostic": "diagnostic.tsv",
}
_ZERO_ONE = ["0", "1"]
_ENTAILMENT = ["entailment", "not_entailment"]


def _pair(text_a: int, text_b: int, label: int) -> dict[str, int]:
    return {"text_a": text_a, "text_b": text_b, "label": label}


def _tfds(
    name: str, text_a: str, text_b: str | None = None, **settings: Any
) -> dict[str, Any]:
    columns = {"text_a": text_a, "label": "label"}
    if text_b is not None:
        columns = {"text_a": text_a, "text_b": text_b, "label": "label"}
    return {
        "name": f"glue/{name}",
        "splits": {"dev": "validation"},
        "columns": columns,
        **settings,
    }


_DESCRIPTIONS: dict[str, dict[str, Any]] = {
    "cola": {
        "labels": _ZERO_ONE,
        "header": False,
        "columns": {"text_a": 3, "label": 1},
        "splits": {"test": {"header": True, "columns": {"text_a": 1}}},
        "metric": "mcc",
        "tfds": _tfds("cola", "sentence"),
    },
    "sst": {
        "labels": _ZERO_ONE,
        "columns": {"text_a": 0, "label": 1},
        "splits": {"test": {"columns": {"text_a": 1}}},
        "tfds": _tfds("sst2", "sentence"),
    },
    "mrpc": {
        "labels": _ZERO_ONE,
        "columns": _pair(3, 4, 0),
        "both_orders": True,
        "tfds": _tfds("mrpc", "sentence1", "sentence2"),
    },
    "sts": {
        "type": "regression",
        "range": [0.0, 5.0],
        "columns": _pair(-3, -2, -1),
        "splits": {"test": {"columns": {"text_a": -2, "text_b": -1}}},
        "both_orders": True,
        "tfds": _tfds("stsb", "sentence1", "sentence2"),
    },
    "qqp": {
        "labels": _ZERO_ONE,
        "columns": _pair(3, 4, 5),
        "splits": {"test": {"columns": {"text_a": 1, "text_b": 2}}},
        "tfds": _tfds("qqp", "question1", "question2"),
    },
    "mnli": {
        "labels": ["contradiction", "entailment", "neutral"],
        "files": _MNLI_FILES,
        "columns": _pair(8, 9, -1),
        "splits": {"diagnostic": {"columns": {"text_a": 1, "text_b": 2}}},
        "tfds": _tfds(
            "mnli",
            "premise",
            "hypothesis",
            splits={
                "dev_matched": "validation_matched",
                "dev_mismatched": "validation_mismatched",
                "diagnostic": "test",
            },
            splits_of={"diagnostic": "glue/ax"},
            label_names=True,
        ),
    },
    "qnli": {
        "labels": _ENTAILMENT,
        "columns": _pair(1, 2, 3),
        "tfds": _tfds("qnli", "question", "sentence", label_names=True),
    },
    "rte": {
        "labels": _ENTAILMENT,
        "columns": _pair(1, 2, 3),
        "tfds": _tfds("rte", "sentence1", "sentence2", label_names=True),
    },
    "wnli": {
        "labels": _ZERO_ONE,
        "columns": _pair(1, 2, 3),
        "tfds": _tfds("wnli", "sentence1", "sentence2"),
    },
}


GLUE_TASKS: dict[str, TaskSpec] = {
    name: TaskSpec.built_in(name, {"files": _FILES, **description})
    for name, description in _DESCRIPTIONS.items()
}
