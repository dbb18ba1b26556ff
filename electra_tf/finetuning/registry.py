# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a task's name to the task, through its description as data.

The built-in tasks are written as `TaskSpec`s, and so is a task of one's own, as
a JSON file given with `--task_config`.

Source: google-research/electra, finetune/task_builder.py.
"""

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.json_text import read_hparams
from configure.validation import check_names, nearest_names
from electra_tf.finetuning.classification import (
    ClassificationTask,
    MultiLabelTask,
    RegressionTask,
    TextTask,
)
from electra_tf.finetuning.question_answering import QATask
from electra_tf.finetuning.summarization import SummarizationTask
from electra_tf.finetuning.tagging import TaggingTask
from electra_tf.finetuning.task import Task
from electra_tf.metrics.matching import MATCHES
from electra_tf.metrics.summaries import ROUGE
from electra_tf.text.tokenization import Tokenizer, open_tokenizer

TYPES = {
    "classification": ClassificationTask,
    "regression": RegressionTask,
    "multilabel": MultiLabelTask,
    "tagging": TaggingTask,
    "question_answering": QATask,
    "summarization": SummarizationTask,
}
_METRICS = {
    "classification": ("accuracy", "f1", "mcc"),
    "regression": ("pearson", "spearman", "mse"),
    "multilabel": ("micro_f1", "macro_f1", "exact_match"),
    "tagging": ("f1", "accuracy"),
    "question_answering": ("f1", "exact_match"),
    "summarization": ROUGE,
}

# The keys that not every type has; TensorFlow Datasets has no tags for us.
_OWN_KEYS = {
    "classification": {"labels", "both_orders", "tfds"},
    "regression": {"range", "both_orders", "tfds"},
    "multilabel": {"labels", "both_orders", "label_separator", "tfds"},
    "tagging": {"labels", "tags"},
    "question_answering": {"version", "match", "tfds"},
    "summarization": {"sentences", "tfds"},
}

_COLUMNS = ("text_a", "text_b", "label", "word", "tag")
_SPLIT_KEYS = {"header": bool, "columns": dict, "labelled": bool}
_TEXTS = "name type format label_separator tags metric version match".split()
_OBJECTS = "files columns splits hparams tfds".split()
_KEYS = {
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(_OBJECTS, dict),
    **dict.fromkeys(("labels", "range"), list),
    **dict.fromkeys(("header", "both_orders"), bool),
    "sentences": int,
}
_WORDS = {
    str: "text",
    dict: "an object",
    list: "a list",
    bool: "true or false",
    int: "a whole number",
}


@dataclasses.dataclass(frozen=True)
class SplitSpec:
    """How to read one split."""

    path: str
    header: bool  # whether the first row names columns
    columns: Mapping[str, int | str]  # what each is: name or position
    labelled: bool  # whether its labels are used


@dataclasses.dataclass(frozen=True)
class TfdsSpec:
    """Where TensorFlow Datasets has the same data."""

    name: str  # the data set, such as "glue/mrpc"
    splits: Mapping[str, str]  # our split to theirs, where the names differ
    columns: Mapping[str, str]  # our column to their feature
    # Whether our labels are their names; else their numbers.
    label_names: bool = False
    # Data sets that hold single splits instead.
    splits_of: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def place(self, split: str) -> tuple[str, str]:
        """Returns data set and split of one of our splits."""
        name = self.splits_of.get(split, self.name)
        return name, self.splits.get(split, split)


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """A task as data; the fields are the keys of its JSON file."""

    name: str
    type: str = "classification"  # one of TYPES
    # By split: train, dev, test, others at will. Paths are relative to the JSON
    # file, and in its folder unless --allow_outside_files is given (built-in
    # tasks: to <data_dir>/finetuning_data/<name>).
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    format: str | None = None  # tsv, csv, jsonl, conll; else by the file's name
    header: bool = True  # whether the first row of csv and tsv names columns
    # What is where: text_a, text_b, label; word and tag for tagging (else the
    # first and last column). A name, or a number from 0, or from the end if
    # negative. jsonl: words and tags are lists. Of summarization, text_a is a
    # document, label its summary, a sentence a line.
    columns: Mapping[str, int | str] = dataclasses.field(default_factory=dict)
    # Where a split differs: its header, columns, labelled (without, splits with
    # "test" or "diagnostic" in their name are not).
    splits: Mapping[str, Mapping[str, Any]] = dataclasses.field(
        default_factory=dict
    )
    labels: tuple[str, ...] | None = None  # in order; None: the data's, sorted
    label_separator: str = ","  # multilabel: between the labels of a cell
    # Regression: lowest and highest; None: as in the training data.
    range: tuple[float, float] | None = None
    both_orders: bool = False  # pairs whose order means nothing: train on both
    tags: str = "spans"  # tagging: or "words", a class per word
    # The figure that counts when runs are compared (classification: also which
    # are reported); None: by type.
    metric: str | None = None
    version: str = "squad1"  # question_answering: or squad2, mrqa
    # question_answering: what F1 and exact match compare, words or characters;
    # None: words, and in built-in tasks those of the official script.
    match: str | None = None
    sentences: int = 3  # summarization: how many a summary has at most
    # What to use unless others are given.
    hparams: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    tfds: TfdsSpec | None = None
    # Whether the task is built in, not described in a file; no key of one.
    original: bool = dataclasses.field(default=False, repr=False)

    @classmethod
    def from_dict(
        cls, given: Mapping[str, Any], where: str = "task"
    ) -> "TaskSpec":
        """Checks a task description and fills in defaults."""
        _check_kinds(given, _KEYS, where)
        values = dict(given)
        if "tfds" in values:
            values["tfds"] = _tfds_of(values["tfds"], f"{where}: tfds")
        for key in ("labels", "range"):
            if key in values:
                values[key] = tuple(values[key])
        if "name" not in values:
            raise UserError(f"{where}: name: missing; give the task a name")
        spec = cls(**values)
        _check(spec, where)
        others = set().union(*_OWN_KEYS.values()) - _OWN_KEYS[spec.type]
        for key in sorted(others & {*given}):
            raise UserError(
                f"{where}: {key}: a task of type {spec.type} has no such"
                f" setting (got {given[key]!r}); take it out"
            )
        return spec

    def file_split(self, split: str) -> str:
        """The split's name among the files: MNLI's dev is `dev_matched`."""
        matched = f"{split}_matched"
        there = self.files
        return matched if split not in there and matched in there else split

    def split(self, name: str, directory: str) -> SplitSpec:
        """Returns how to read a split."""
        name = self.file_split(name)
        if name not in self.files:
            raise UserError(
                f"task {self.name} has no {name} split (it has:"
                f" {', '.join(self.files)})"
            )
        own = self.splits.get(name, {})
        columns = {**self.columns, **own.get("columns", {})}
        return SplitSpec(
            os.path.join(directory, self.files[name]),
            own.get("header", self.header),
            {key: place for key, place in columns.items() if place is not None},
            self.labelled(name),
        )

    def labelled(self, split: str) -> bool:
        """Whether a split's labels are used."""
        unlabelled = "test" in split or "diagnostic" in split
        return self.splits.get(split, {}).get("labelled", not unlabelled)


def _expect(holds: bool, where: str, expected: str, found: Any) -> None:
    if not holds:
        raise UserError(f"{where}: expected {expected}, got {found!r}")


def _check_kinds(given: Any, kinds: Mapping[str, type], where: str) -> None:
    """Refuses unknown keys, values of another kind and empty texts."""
    _expect(isinstance(given, dict), where, _WORDS[dict], given)
    check_names(given, kinds, f"{where} key")
    for key, value in given.items():
        holds = type(value) is kinds[key] and value != ""
        _expect(holds, f"{where}: {key}", _WORDS[kinds[key]], value)


def _tfds_of(given: Any, where: str) -> TfdsSpec:
    kinds = {"name": str, "splits": dict, "columns": dict}
    known = {**kinds, "label_names": bool, "splits_of": dict}
    _check_kinds(given, known, where)
    for key in kinds.keys() - given.keys():
        raise UserError(f"{where}: {key}: missing")
    return TfdsSpec(**given)


def _check(spec: TaskSpec, where: str) -> None:
    """Refuses a description that cannot work."""
    choices = {
        "type": tuple(TYPES),
        "tags": ("spans", "words"),
        "version": ("squad1", "squad2", "mrqa"),
        "match": (None, *MATCHES),
        "metric": (None, *_METRICS.get(spec.type, ())),
    }
    if (spec.type, spec.tags) == ("tagging", "words"):
        choices["metric"] = (None, "accuracy")
    for key, known in choices.items():
        value, words = getattr(spec, key), ", ".join(filter(None, known))
        _expect(value in known, f"{where}: {key}", f"one of {words}", value)
    for split, path in spec.files.items():
        is_path = isinstance(path, str) and bool(path)
        _expect(is_path, f"{where}: files.{split}", "a path", path)
    _check_columns(spec.columns, f"{where}: columns")
    for split, own in spec.splits.items():
        if split not in spec.files:
            raise UserError(
                f"{where}: splits.{split}: files has no {split!r} (it has:"
                f" {', '.join(spec.files)})"
            )
        place = f"{where}: splits.{split}"
        _check_kinds(own, _SPLIT_KEYS, place)
        _check_columns(own.get("columns", {}), place)
    some = spec.sentences > 0
    _expect(some, f"{where}: sentences", "1 or more", spec.sentences)
    reads_text = issubclass(TYPES[spec.type], TextTask | SummarizationTask)
    if reads_text and spec.files and "text_a" not in spec.columns:
        raise UserError(
            f"{where}: columns: text_a is missing; it says which column holds"
            " the text"
        )
    if spec.tfds:
        theirs, place = spec.tfds.columns, f"{where}: tfds.columns"
        _check_columns(theirs, place)
        for name in sorted(spec.columns.keys() - theirs.keys()):
            raise UserError(f"{place}: {name}: missing")
    own = spec.splits.get("train", {}).get("columns", {})
    if spec.both_orders and {**spec.columns, **own}.get("text_b") is None:
        raise UserError(
            f"{where}: both_orders: expected pairs, and columns has no text_b;"
            " name its column, or take both_orders out"
        )
    if spec.labels is not None:
        given, least = list(spec.labels), 1 + (spec.type == "classification")
        texts = all(isinstance(label, str) for label in given)
        differ = texts and len(set(given)) == len(given) >= least
        words = f"{least} or more different texts"
        _expect(differ, f"{where}: labels", words, given)
    if spec.range is not None:
        given = list(spec.range)
        # Float32 holds no more.
        held = (type(n) in (int, float) and abs(n) < 3e38 for n in given)
        rises = [*held] == [True, True] and given[0] < given[1]
        _expect(rises, f"{where}: range", "[lowest, highest] below 3e38", given)


def _check_columns(columns: Mapping[str, Any], where: str) -> None:
    check_names(columns, _COLUMNS, "column")
    for name, place in columns.items():
        right = not isinstance(place, bool) and isinstance(
            place, int | str | None
        )
        _expect(right, f"{where}.{name}", "a column's name or number", place)


# The GLUE tasks. Columns are numbers, because the files' headers differ from
# copy to copy.
#
# Source: google-research/electra, finetune/classification/
#   classification_tasks.py. WNLI, the mismatched dev set and its scores are
#   additions.

_FILES = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
_MNLI = "train dev_matched dev_mismatched"
_MNLI += " test_matched test_mismatched diagnostic"
_YES_NO = ["0", "1"]
_ENTAILMENT = ["entailment", "not_entailment"]


def _pair(a: int, b: int, label: int) -> dict[str, int]:
    return {"text_a": a, "text_b": b, "label": label}


def _tfds(name: str, a: str, b: str | None = None, **more: Any) -> dict:
    columns = {"text_a": a, "text_b": b, "label": "label"}
    return {
        "name": f"glue/{name}",
        "splits": {"dev": "validation"},
        "columns": {key: name for key, name in columns.items() if name},
        **more,
    }


_GLUE: dict[str, dict[str, Any]] = {
    "cola": {
        "labels": _YES_NO,
        "header": False,
        "columns": {"text_a": 3, "label": 1},
        "splits": {"test": {"header": True, "columns": {"text_a": 1}}},
        "metric": "mcc",
        "tfds": _tfds("cola", "sentence"),
    },
    "sst": {
        "labels": _YES_NO,
        "columns": {"text_a": 0, "label": 1},
        "splits": {"test": {"columns": {"text_a": 1}}},
        "tfds": _tfds("sst2", "sentence"),
    },
    "mrpc": {
        "labels": _YES_NO,
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
        "labels": _YES_NO,
        "columns": _pair(3, 4, 5),
        "splits": {"test": {"columns": {"text_a": 1, "text_b": 2}}},
        "tfds": _tfds("qqp", "question1", "question2"),
    },
    "mnli": {
        "labels": ["contradiction", "entailment", "neutral"],
        "files": {name: f"{name}.tsv" for name in _MNLI.split()},
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
        "labels": _YES_NO,
        "columns": _pair(1, 2, 3),
        "tfds": _tfds("wnli", "sentence1", "sentence2"),
    },
}
# Chunks as in CoNLL-2000, named entities and parts of speech.
_CONLL = {
    "type": "tagging",
    "files": {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"},
    "format": "conll",
    "splits": {"test": {"labelled": True}},
}
# Questions; without files they are found as `QATask` says.
_QUESTIONS = {"type": "question_answering"}
_SQUAD_SPLITS = {"splits": {"dev": "validation"}, "columns": {}}
_ARTICLES = {"text_a": "article", "label": "highlights"}
_OTHERS: dict[str, dict[str, Any]] = {
    "chunk": _CONLL,
    "ner": _CONLL,
    # CoNLL-2003 has the part of speech second; so do files of two columns.
    "pos": {**_CONLL, "tags": "words", "columns": {"tag": 1}},
    "squad": {
        **_QUESTIONS,
        "version": "squad2",
        "tfds": {"name": "squad/v2.0", **_SQUAD_SPLITS},
    },
    "squadv1": {**_QUESTIONS, "tfds": {"name": "squad", **_SQUAD_SPLITS}},
    # CNN/DailyMail's rows.
    "summarization": {
        "type": "summarization",
        "files": {name: f"{name}.jsonl" for name in ("train", "dev", "test")},
        "columns": _ARTICLES,
        "splits": {"test": {"labelled": True}},
        "tfds": {
            "name": "cnn_dailymail",
            "splits": {"dev": "validation"},
            "columns": _ARTICLES,
        },
    },
    # The MRQA 2019 shared task's.
    **{
        name: {**_QUESTIONS, "version": "mrqa"}
        for name in ("newsqa", "naturalqs", "triviaqa", "searchqa")
    },
}


def _built_in(name: str, description: Mapping[str, Any]) -> TaskSpec:
    spec = TaskSpec.from_dict({"name": name, **description})
    return dataclasses.replace(spec, original=True)


GLUE_TASKS: dict[str, TaskSpec] = {
    name: _built_in(name, {"files": _FILES, **description})
    for name, description in _GLUE.items()
}
BUILT_IN: dict[str, TaskSpec] = GLUE_TASKS | {
    name: _built_in(name, description) for name, description in _OTHERS.items()
}


def _make_task(
    config: FinetuningConfig,
    tokenizer: Tokenizer,
    spec: TaskSpec,
    directory: str | None = None,
) -> Task:
    return TYPES[spec.type](config, spec, tokenizer, directory)


# A task of one's own in Python goes here, too.
TASKS: dict[str, Callable[[FinetuningConfig, Tokenizer], Task]] = {
    **{
        name: functools.partial(_make_task, spec=spec)
        for name, spec in BUILT_IN.items()
    },
    "chunk": lambda config, tokenizer: TaggingTask(
        config, BUILT_IN["chunk"], tokenizer, type_change_starts_span=False
    ),
}


def get_tasks(
    config: FinetuningConfig, tokenizer: Tokenizer | None = None
) -> list[Task]:
    """Returns the config's tasks, in the order of `task_names`."""
    if tokenizer is None:
        tokenizer = open_tokenizer(
            config.vocab_file, config.do_lower_case, config.strip_accents
        )
    return [get_task(config, name, tokenizer) for name in config.task_names]


def get_task(config: FinetuningConfig, name: str, tokenizer: Tokenizer) -> Task:
    """Returns one task."""
    own = None
    if config.task_config is not None:
        own = read_task_config(config.task_config)
        if own.name == name:
            directory = os.path.dirname(os.path.abspath(config.task_config))
            # A stranger's description may name files elsewhere.
            checked = {} if config.allow_outside_files else own.files
            for split, path in checked.items():
                full = os.path.normpath(os.path.join(directory, path))
                if os.path.commonpath([directory, full]) != directory:
                    raise UserError(
                        f"{config.task_config}: files.{split}: {path!r} is"
                        " outside the file's own folder; move it there, or give"
                        " --allow_outside_files if it is meant"
                    )
            return _make_task(config, tokenizer, own, directory)
    if name in TASKS:
        return TASKS[name](config, tokenizer)
    known = [*TASKS, *([own.name] if own else [])]
    near = nearest_names(name, known)
    raise UserError(
        f"hparam task_names: unknown task {name}. Nearest: {', '.join(near)}."
        " A task of your own is described in a JSON file: --task_config"
    )


def find_spec(config: FinetuningConfig, name: str) -> TaskSpec | None:
    """Returns the description of a task; None for one written in Python."""
    if config.task_config is not None:
        own = read_task_config(config.task_config)
        if own.name == name:
            return own
    return BUILT_IN.get(name)


def read_task_config(path: str) -> TaskSpec:
    """Reads a task's JSON file."""
    if not path.endswith(".json"):
        raise UserError(
            f"hparam task_config: expected the path of a .json file, got"
            f" {path!r}"
        )
    spec = TaskSpec.from_dict(read_hparams(path, "--task_config"), path)
    for split in ("train", "dev"):
        if split not in spec.files:
            raise UserError(
                f"{path}: files: {split} is missing; name the file of the"
                f" {split} split"
            )
        if not spec.labelled(split):
            raise UserError(
                f"{path}: splits.{split}: labelled: expected true, got false;"
                " a split without labels goes by another name"
            )
    return spec
