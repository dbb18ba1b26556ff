# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The descriptions of all built-in tasks: GLUE, tagging, questions, summaries.

Source: google-research/electra, finetune/task_builder.py.
"""

import dataclasses
from typing import Any

from electra_tf.finetuning.glue_tasks import GLUE_TASKS
from electra_tf.finetuning.task_description import TaskSpec

# Chunks as in CoNLL-2000, named entities and parts of speech.
_CONLL: dict[str, Any] = {
    "type": "tagging",
    "files": {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"},
    "format": "conll",
    "splits": {"test": {"labelled": True}},
}
# CoNLL-2003 has the part of speech second; so do files of two columns.
_POS: dict[str, Any] = {**_CONLL, "tags": "words", "columns": {"tag": 1}}
# Question answering; `QATask` finds the files.
_SQUAD2: dict[str, Any] = {
    "type": "question_answering",
    "version": "squad2",
    "tfds": {
        "name": "squad/v2.0",
        "splits": {"dev": "validation"},
        "columns": {},
    },
}
_SQUAD1: dict[str, Any] = {
    "type": "question_answering",
    "tfds": {"name": "squad", "splits": {"dev": "validation"}, "columns": {}},
}
_MRQA: dict[str, Any] = {"type": "question_answering", "version": "mrqa"}
# The rows of CNN/DailyMail.
_ARTICLES = {"text_a": "article", "label": "highlights"}
_SUMMARIZATION: dict[str, Any] = {
    "type": "summarization",
    "files": {
        "train": "train.jsonl",
        "dev": "dev.jsonl",
        "test": "test.jsonl",
    },
    "columns": _ARTICLES,
    "splits": {"test": {"labelled": True}},
    "tfds": {
        "name": "cnn_dailymail",
        "splits": {"dev": "validation"},
        "columns": _ARTICLES,
    },
}


def _make_spec(name: str, description: dict[str, Any]) -> TaskSpec:
    spec = TaskSpec.from_dict({"name": name, **description})
    return dataclasses.replace(spec, original=True)


BUILT_IN: dict[str, TaskSpec] = {
    **GLUE_TASKS,
    "chunk": _make_spec("chunk", _CONLL),
    "ner": _make_spec("ner", _CONLL),
    "pos": _make_spec("pos", _POS),
    "squad": _make_spec("squad", _SQUAD2),
    "squadv1": _make_spec("squadv1", _SQUAD1),
    "summarization": _make_spec("summarization", _SUMMARIZATION),
    "newsqa": _make_spec("newsqa", _MRQA),
    "naturalqs": _make_spec("naturalqs", _MRQA),
    "triviaqa": _make_spec("triviaqa", _MRQA),
    "searchqa": _make_spec("searchqa", _MRQA),
}
