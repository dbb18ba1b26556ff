# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The descriptions of all built-in tasks: GLUE, tagging, questions, summaries.

Source: google-research/electra, finetune/task_builder.py.
"""

from typing import Any

from electra_tf.finetuning.glue_tasks import GLUE_TASKS
from electra_tf.finetuning.task_description import TaskSpec

# The settings that chunking (CoNLL-2000), named entities and parts of speech
# share.
_CONLL: dict[str, Any] = {
    "type": "tagging",
    "files": {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"},
    "format": "conll",
    "splits": {"test": {"labelled": True}},
}
# Column 1 is the part of speech in CoNLL-2003 and in files of two columns.
_POS: dict[str, Any] = {**_CONLL, "tags": "words", "columns": {"tag": 1}}
# The tasks of question answering list no files, because `QATask` finds the
# files by name.
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
# Purpose -> name of the column in CNN/DailyMail.
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


BUILT_IN: dict[str, TaskSpec] = {
    **GLUE_TASKS,
    "chunk": TaskSpec.built_in("chunk", _CONLL),
    "ner": TaskSpec.built_in("ner", _CONLL),
    "pos": TaskSpec.built_in("pos", _POS),
    "squad": TaskSpec.built_in("squad", _SQUAD2),
    "squadv1": TaskSpec.built_in("squadv1", _SQUAD1),
    "summarization": TaskSpec.built_in("summarization", _SUMMARIZATION),
    "newsqa": TaskSpec.built_in("newsqa", _MRQA),
    "naturalqs": TaskSpec.built_in("naturalqs", _MRQA),
    "triviaqa": TaskSpec.built_in("triviaqa", _MRQA),
    "searchqa": TaskSpec.built_in("searchqa", _MRQA),
}
