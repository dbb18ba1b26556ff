# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The GLUE tasks, in the schema that tasks of one's own use.

Columns are numbers, because the files' headers differ from copy to copy.

Source: google-research/electra, finetune/classification/
  classification_tasks.py. WNLI, the mismatched dev set and its scores are
  additions.
"""

from typing import Any

from electra_tf.finetuning.schema import TaskSpec

_FILES = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
_YES_NO = ["0", "1"]
_ENTAILMENT = ["entailment", "not_entailment"]
_VALIDATION = {"dev": "validation"}


def _pair(a: int | str, b: int | str, label: int | str) -> dict[str, Any]:
    return {"text_a": a, "text_b": b, "label": label}


def _tfds(name: str, columns: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "name": f"glue/{name}",
        "splits": _VALIDATION,
        "columns": {**columns, "label": "label"},
        **more,
    }


_SENTENCE = {"text_a": "sentence"}
_SENTENCES = {"text_a": "sentence1", "text_b": "sentence2"}
_QUESTIONS = {"text_a": "question1", "text_b": "question2"}
_PREMISE = {"text_a": "premise", "text_b": "hypothesis"}
_QUESTION = {"text_a": "question", "text_b": "sentence"}

_TASKS: dict[str, dict[str, Any]] = {
    "cola": {
        "labels": _YES_NO,
        "header": False,
        "columns": {"text_a": 3, "label": 1},
        "splits": {"test": {"header": True, "columns": {"text_a": 1}}},
        "metric": "mcc",
        "tfds": _tfds("cola", _SENTENCE),
    },
    "sst": {
        "labels": _YES_NO,
        "columns": {"text_a": 0, "label": 1},
        "splits": {"test": {"columns": {"text_a": 1}}},
        "tfds": _tfds("sst2", _SENTENCE),
    },
    "mrpc": {
        "labels": _YES_NO,
        "columns": _pair(3, 4, 0),
        "both_orders": True,
        "tfds": _tfds("mrpc", _SENTENCES),
    },
    "sts": {
        "type": "regression",
        "range": [0.0, 5.0],
        "columns": _pair(-3, -2, -1),
        "splits": {"test": {"columns": {"text_a": -2, "text_b": -1}}},
        "both_orders": True,
        "tfds": _tfds("stsb", _SENTENCES),
    },
    "qqp": {
        "labels": _YES_NO,
        "columns": _pair(3, 4, 5),
        "splits": {"test": {"columns": {"text_a": 1, "text_b": 2}}},
        "tfds": _tfds("qqp", _QUESTIONS),
    },
    "mnli": {
        "labels": ["contradiction", "entailment", "neutral"],
        "files": {
            "train": "train.tsv",
            "dev_matched": "dev_matched.tsv",
            "dev_mismatched": "dev_mismatched.tsv",
            "test_matched": "test_matched.tsv",
            "test_mismatched": "test_mismatched.tsv",
            "diagnostic": "diagnostic.tsv",
        },
        "columns": _pair(8, 9, -1),
        "splits": {"diagnostic": {"columns": {"text_a": 1, "text_b": 2}}},
        "tfds": _tfds(
            "mnli",
            _PREMISE,
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
        "tfds": _tfds("qnli", _QUESTION, label_names=True),
    },
    "rte": {
        "labels": _ENTAILMENT,
        "columns": _pair(1, 2, 3),
        "tfds": _tfds("rte", _SENTENCES, label_names=True),
    },
    "wnli": {
        "labels": _YES_NO,
        "columns": _pair(1, 2, 3),
        "tfds": _tfds("wnli", _SENTENCES),
    },
}

GLUE_TASKS: dict[str, TaskSpec] = {
    name: TaskSpec.from_dict({"name": name, "files": _FILES, **description})
    for name, description in _TASKS.items()
}
