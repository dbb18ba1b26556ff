# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks of a JSON file or a class have rows, features, models and scores."""

import json
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.commands import convert_checkpoint
from electra_tf.finetuning import registry
from electra_tf.finetuning.classification import ClassificationTask, TextExample
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.preprocessing import Preprocessor
from electra_tf.finetuning.registry import TYPES
from electra_tf.finetuning.task_description import TaskSpec
from electra_tf.prediction.predictor import Predictor
from tests.conftest import refused

PAGE = (pathlib.Path(__file__).parents[2] / "docs/own_task.md").read_text()
BLOCKS = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
COLUMNS = {"text_a": "text", "label": "stars"}


# By claim: description, train, dev, features, expectations of the bad rows.
ROWS = {
    "classes are collected and sorted": (
        {"format": "csv"},
        'stars,text\ngood,"a, b"\nbad,c\n',
        "stars,text\nfair,d\n",
        [2, 0],
    ),
    "given classes keep their order": (
        {"format": "csv", "labels": ["good", "bad"]},
        # An unpaired quotation mark makes a row invalid, too.
        'text,stars\na,good\nb,unheard\n"c,bad\nd,good\n',
        "",
        [0],
        "one of: good, bad",
        "a row of CSV",
    ),
    "pairs and truth values": (
        {"columns": {"text_a": "q", "text_b": "r", "label": "same"}},
        '{"q": "a", "r": "b", "same": true}\n'
        '{"q": "c", "r": "d", "same": false}\n'
        '{"q": "e"}\n',
        "",
        [1, 0],
        "texts under q, r, same",
    ),
    "a label that is none": (
        {},
        '{"text": "a", "stars": null}\n{"text": "b", "stars": 2}\n'
        '{"text": "c", "stars": "x"}\n{"text": "e", "stars": NaN}\n'
        '{"text": "f", "stars": "\\ud83d"}\n',
        '{"text": "d", "stars": ["2"]}\n',
        [0, 1],
        "a text, a number, true or false",
        "a text, a number, true or false",
        "a text of valid Unicode characters",
    ),
    "several given labels": (
        {"type": "multilabel", "labels": ["good", "bad"]},
        '{"text": "x", "stars": ["bad"]}\n'
        '{"text": "y", "stars": ["bad", "unheard"]}\n',
        "",
        [[0, 1]],
        "labels from this list: good, bad",
    ),
    "several labels between separators": (
        {"type": "multilabel", "label_separator": ";", "format": "tsv"},
        "text\tstars\na\tsad; odd\nb\t\nc\tglad\n",
        "text\tstars\na\tglad;new\n",
        [[0, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]],
    ),
    "a given range, and a number too large for a float": (
        {"type": "regression", "range": [1, 5]},
        "".join(f'{{"text": "a", "stars": {n}}}\n' for n in [1, 3, 6, 10**400]),
        "",
        [0.0, 0.5],
        "a number from 1 to 5",
        "a number from 1 to 5",
    ),
    "rows with surplus cells": (
        {"format": "csv", "labels": ["no", "yes"]},
        "text,stars\na,no\nb, c,yes\nd,yes,\n",
        "",
        [0, 1],
        "2 cells, as in the header",
    ),
    "the range of the training data": (
        {"type": "regression", "format": "tsv"},
        "text\tstars\na\t-2\nb\t2\nc\t1\n",
        "",
        [0.0, 1.0, 0.75],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_become_features_and_others_are_refused(name, describe):
    description, train, dev, values, *refused = ROWS[name]
    task = describe(
        {"columns": COLUMNS, "format": "jsonl", **description},
        {"train.x": train, "dev.x": dev},
    )
    examples = task.get_examples("train")
    (spec,) = task.get_feature_specs()[1:]
    actual = [task.featurize(e, True)[spec.name] for e in examples]
    assert actual == values and np.shape(actual[0]) == tuple(spec.shape)
    assert [row.expected for row in task.row_report.rows] == refused


def test_tagging_takes_columns_by_number(describe):
    task = describe(
        {"type": "tagging", "columns": {"word": 1, "tag": 2}},
        {
            "train.txt": "0 Ann B-PER\n1 sat O\n\n",
            "dev.txt": "0 Bob S-PER\n\n",
            "test.txt": "0 Eve\n\n",
        },
    )
    (example,) = task.get_examples("train")
    assert example.words == ["Ann", "sat"]
    assert task.label_mapping == {"O": 0, "S-PER": 1}
    # Test files need no tags.
    assert task.get_examples("test")[0].labels == [0]


def test_tagging_takes_lists_from_json_lines(describe):
    text = (
        '{"words": ["Ann", "sat"], "tags": ["N", "V"]}\n'
        '{"words": ["Ann", "sat"], "tags": ["N"]}\n'
        '{"words": "Ann sat", "tags": ["N", "V"]}\n'
        '{"words": [], "tags": []}\n'
        '{"words": ["Ann"], "tags": ["\\ud83d"]}\n'
    )
    task = describe(
        {"type": "tagging", "tags": "words"},
        {"train.jsonl": text, "dev.jsonl": text.splitlines()[0]},
    )
    assert [e.eid for e in task.get_examples("train")] == [0]
    assert task.label_mapping == {"N": 0, "V": 1}
    assert [row.line for row in task.row_report.rows] == [2, 3, 4, 5]


def test_entity_types_in_a_description_make_all_their_tags(describe):
    task = describe(
        {"type": "tagging", "labels": ["PER", "LOC"]},
        {"train.txt": "a B-PER\n\nb B-ORG\n\n", "dev.txt": "a O\n\n"},
    )
    assert [e.eid for e in task.get_examples("train")] == [0]
    assert len(task.label_mapping) == 9
    assert task.row_report.rows[0].found == "label 'S-ORG'"


TFDS = {"name": "a", "splits": {}, "columns": {"text_a": "text"}}


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"typ": "x"}, "typ.*Nearest names.*type"),
        ({"type": "ranking"}, "type: must be one of classification"),
        ({"columns": {"label": 0}}, "text_a: missing"),
        ({"files": {"train": ""}}, "files.train: must be a text"),
        ({"files": {"train": 5}}, "files.train: expected text, got 5"),
        ({"labels": ["a", 5]}, r"labels\[1\]: expected text, got 5"),
        ({"columns": {"text_a": True}}, "columns.text_a: expected a whole"),
        (
            {"splits": {"dev": {"columns": {"lable": 0}}}},
            r"dev\.columns\.lable",
        ),
        ({"labels": ["a", "a"]}, "distinct texts"),
        ({"type": "regression", "range": [0, 10**400]}, "below 3e38"),
        (
            {"type": "regression", "sentences": 2},
            "not a setting of tasks of type regression",
        ),
        ({"match": "words"}, "not a setting of tasks of type classification"),
        (
            {"type": "summarization", "match": "words"},
            "tasks of type summarization",
        ),
        (
            {"type": "question_answering", "match": "letters"},
            "match: must be one of words, characters, got 'letters'",
        ),
        ({"type": "question_answering", "match": 5}, "match: expected text"),
        (
            {"type": "tagging", "columns": {}, "tfds": TFDS},
            "not a setting of tasks of type",
        ),
        ({"tfds": TFDS}, r"tfds\.columns\.label: missing"),
        ({"tfds": TFDS | {"columns": {"lable": "l"}}}, "lable.*label"),
        ({"type": "tagging", "tags": "words", "metric": "f1"}, "of accuracy,"),
        ({"both_orders": True}, "both_orders: needs pairs"),
        ({"splits": {"tset": {}}}, "'tset': no such split"),
        ({"splits": {"dev": 5}}, "splits.dev: expected a JSON object"),
        ({"splits": {"dev": {"labelled": "false"}}}, "labelled: expected true"),
        ({"type": "multilabel", "label_separator": ""}, "_separator: must be"),
    ],
)
def test_an_impossible_description_is_refused(tmp_path, description, message):
    files = {"train": "t.tsv", "dev": "d.tsv"}
    whole = {"name": "x", "files": files, "columns": COLUMNS, **description}
    path = tmp_path / "task.json"
    path.write_text(json.dumps(whole))
    refused(message, registry.read_task_config, str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("review,stars\nx,a\n", r"train\.csv:1: no column 'text'"),
        ("text,stars,stars\nx,a,b\n", "several columns 'stars'"),
        ("text,stars\nx,a\ny,a\n", "1 distinct labels"),
        ("text,stars\nx,a\ny, a\n", "' a' and 'a' differ only in white space"),
    ],
)
def test_a_file_that_makes_no_task_is_named(text, message, describe):
    task = describe({"columns": COLUMNS}, {"train.csv": text, "dev.csv": text})
    refused(message, task.get_examples, "train")


def test_unknown_tasks_are_refused_with_the_nearest(finetuning_config):
    message = r"unknown task mnil\. Nearest names: mnli"
    refused(message, registry.get_tasks, finetuning_config("mnil"))


class Reviews(ClassificationTask):
    """The custom task of the documentation."""

    LABELS = ("bad", "good")

    def __init__(self, config, tokenizer):
        # The name may contain "qa" and underscores.
        spec = TaskSpec("my_qa_task", labels=self.LABELS)
        super().__init__(config, spec, tokenizer)

    def get_examples(self, split):
        data = [("a", "good"), ("b", "bad"), ("c", "good")]
        return [
            TextExample(eid=i, task_name=self.name, text_a=text, label=label)
            for i, (text, label) in enumerate(data)
        ]


@pytest.mark.slow
def test_a_class_keeps_its_order(finetuning_config, run, monkeypatch, tmp_path):
    monkeypatch.setitem(registry.TASKS, "my_qa_task", Reviews)
    run(finetuning_config("my_qa_task", num_train_epochs=1.0))
    model = tmp_path / "models/tiny/finetuning_models/my_qa_task_model_1"
    converted = tmp_path / "converted"
    argv = ["", str(model), str(converted), "--output_format=huggingface"]
    argv.append("--strip_optimizer")
    convert_checkpoint.main(convert_checkpoint.parse_flags(argv))
    assert Predictor.from_pretrained(str(model))("a")["label"] in Reviews.LABELS
    monkeypatch.setattr(Reviews, "LABELS", ("good", "bad"))
    with pytest.raises(UserError, match=r"_labels.json: the model was tr"):
        Predictor.from_pretrained(str(model))
    for path in (model, converted):
        evaluation = {"do_train": False, "init_checkpoint": str(path)}
        with pytest.raises(UserError, match=f"{path}.*: the model was tr"):
            run(finetuning_config("my_qa_task", **evaluation))


def read_description(folder, text):
    path = folder / "task.json"
    path.write_text(text)
    return registry.read_task_config(str(path))


@pytest.mark.parametrize(
    "text", BLOCKS, ids=[json.loads(text)["name"] for text in BLOCKS]
)
def test_a_description_of_the_page_is_accepted(tmp_path, text):
    spec = read_description(tmp_path, text)
    hparams = {"task_names": spec.name, **spec.hparams}
    config = FinetuningConfig.create("m", "d", **hparams)
    assert config.task_names == [json.loads(text)["name"]]


def test_the_page_describes_tasks_of_every_type(tmp_path):
    types = {read_description(tmp_path, text).type for text in BLOCKS}
    assert types == set(TYPES)


TEXT = {"columns": {"text_a": "text", "label": "label"}, "format": "tsv"}
DATA = {
    "classification": "text\tlabel\na b\tx\nc\ty\nd\tz\na\tx\nb\ty\n",
    "regression": "text\tlabel\na b\t1\nc\t2.5\nd\t4\na\t3\nb\t2\n",
    "multilabel": "text\tlabel\na b\tx,y\nc\ty\nd\t\na\tz\nb\tx\n",
    "tagging": "a B-X\nb I-X\nc O\n\nd O\ne B-Y\n\n",
}


@pytest.fixture
def own_task(describe):
    """Return a factory of tasks of a type on `DATA`, or another dev set."""

    def make(kind, dev=None, description=None, **hparams):
        columns = {"format": "conll"} if kind == "tagging" else TEXT
        description = {"type": kind, **columns, **(description or {})}
        files = {"train.x": DATA[kind], "dev.x": dev or DATA[kind]}
        return describe(description, files, **hparams)

    return make


@pytest.mark.parametrize(
    ("kind", "description", "metric"),
    [
        ("classification", {}, "accuracy"),
        ("classification", {"metric": "f1", "labels": ["x", "y"]}, "f1"),
        ("classification", {"metric": "mcc"}, "mcc"),
        ("regression", {}, "pearson"),
        ("multilabel", {"metric": "macro_f1"}, "macro_f1"),
        ("tagging", {}, "f1"),
        ("tagging", {"tags": "words"}, "accuracy"),
    ],
)
def test_data_head_and_scorer_fit_together(kind, description, metric, own_task):
    task = own_task(kind, description=description)
    preprocessor = Preprocessor(task.config, [task])
    train, steps = preprocessor.prepare_train()
    assert steps >= 3
    model = FinetuningModel(task.config, [task])
    batch = next(iter(train()))
    with tf.GradientTape() as tape:
        loss = model.compute(batch, training=True)["loss"]
    gradients = tape.gradient(loss, model.heads[0].trainable_variables)
    assert np.isfinite(loss) and all(g is not None for g in gradients)
    scorer = task.get_scorer("dev")
    dev, _ = preprocessor.prepare_predict([task], "dev")
    for batch in dev():
        outputs = model.compute(batch, training=False)[task.name]
        arrays = {name: value.numpy() for name, value in outputs.items()}
        for row in np.flatnonzero(batch["task_id"].numpy() == 0):
            scorer.update({k: v[row] for k, v in arrays.items()})
    figures = dict(scorer.get_results())
    assert metric in figures and np.isfinite(figures["loss"])
    assert task.main_metric in (None, *figures)
    # The scorer lists all names, so that a wrong `keep_best` fails at once.
    assert {*figures, *dict(scorer.get_details())} == set(scorer.metric_names)


def test_f1_of_one_class_is_refused_for_three_classes(own_task):
    task = own_task("classification", description={"metric": "f1"})
    task.resolve_labels()
    refused(
        "the task has 3 classes. Set metric to accuracy or mcc", task.get_scorer
    )


def test_accuracy_of_three_classes_has_no_f1(own_task):
    task = own_task("classification")
    task.resolve_labels()
    scorer = task.get_scorer()
    scorer.update({"loss": 0.0, "label_ids": 0, "predictions": 1})
    assert scorer.get_details() == []


# Kind of task, dev set, warning.
LABELS_OF_DEV = [
    ("classification", "text\tlabel\na\tx\nb\tn\nc\tn\n", "2 of 3 .*'n' 2"),
    ("multilabel", "text\tlabel\na\tx,new\n", "1 of 2 .*'new' 1"),
    ("tagging", "a S-NEW\nb O\nc S-NEW\n\n", "2 of 3 .*'S-NEW' 2"),
]


def warnings_of_run(task, capsys):
    preprocessor = Preprocessor(task.config, [task])
    preprocessor.prepare_train()
    preprocessor.prepare_predict([task], "dev")
    preprocessor.prepare_predict([task], "dev")
    return re.findall("WARNING: .*", capsys.readouterr().out)


@pytest.mark.parametrize(("kind", "dev", "warning"), LABELS_OF_DEV)
def test_labels_only_in_dev_cause_one_warning_per_run(
    kind, dev, warning, own_task, capsys
):
    task = own_task(kind, dev)
    (first,) = warnings_of_run(task, capsys)
    assert re.search(f"mine: {warning}", first)
    # The second run reads the records of the first.
    assert warnings_of_run(task, capsys) == [first]


@pytest.mark.parametrize(("kind", "dev", "warning"), LABELS_OF_DEV)
def test_labels_only_in_dev_are_refused_by_strict(kind, dev, warning, own_task):
    task = own_task(kind, dev, strict=True)
    preprocessor = Preprocessor(task.config, [task])
    preprocessor.prepare_train()
    with pytest.raises(UserError, match=f"{warning}.*--strict"):
        preprocessor.prepare_predict([task], "dev")


@pytest.mark.parametrize("strict", [False, True])
def test_labels_of_the_training_data_are_not_warned_of(
    strict, own_task, capsys
):
    task = own_task("classification", strict=strict)
    assert warnings_of_run(task, capsys) == []
