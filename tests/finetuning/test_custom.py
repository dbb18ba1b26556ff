# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks from a JSON file, tasks from a class, and the registry."""

import json
import pathlib
import re

import numpy as np
import pytest

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning import registry
from electra_tf.finetuning.classification import ClassificationTask, TextExample
from electra_tf.finetuning.preprocessing import Preprocessor
from electra_tf.finetuning.registry import TYPES, TaskSpec
from electra_tf.text.tokenization import FullTokenizer

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "own_task.md"
BLOCKS = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
COLUMNS = {"text_a": "text", "label": "stars"}


def test_classes_are_collected_from_csv(describe):
    task = describe(
        {"columns": COLUMNS},
        {
            "train.csv": 'stars,text\ngood,"a, b"\nbad,c\n',
            "dev.csv": "stars,text\nfair,d\n",
        },
    )
    assert task.labels == ["bad", "fair", "good"]
    first, second = task.get_examples("train")
    assert (first.text_a, first.text_b, first.label) == ("a, b", None, "good")
    assert task.featurize(first, True)["mine_label_ids"] == 2
    assert second.eid == 1


@pytest.mark.parametrize(
    ("kind", "files", "label_ids"),
    [
        (
            "classification",
            {"train.csv": "text,stars\na,good\nb,unheard\n", "dev.csv": ""},
            0,
        ),
        (
            "multilabel",
            {
                "train.jsonl": '{"text": "x", "stars": ["bad"]}\n'
                '{"text": "y", "stars": ["bad", "unheard"]}\n',
                "dev.jsonl": "",
            },
            [0, 1],
        ),
    ],
)
def test_given_classes_keep_their_order_and_refuse_others(
    kind, files, label_ids, describe
):
    labels = ["good", "bad"]
    task = describe({"type": kind, "columns": COLUMNS, "labels": labels}, files)
    (example,) = task.get_examples("train")
    assert task.featurize(example, True)["mine_label_ids"] == label_ids
    assert "one of: good, bad" in task.row_report.rows[0].expected


def test_pairs_come_from_json_lines(describe):
    text = (
        '{"q": "a", "r": "b", "same": true}\n'
        '{"q": "c", "r": "d", "same": false}\n'
        '{"q": "e"}\n'
    )
    task = describe(
        {"columns": {"text_a": "q", "text_b": "r", "label": "same"}},
        {"train.jsonl": text, "dev.jsonl": text},
    )
    examples = task.get_examples("train")
    assert [e.label for e in examples] == ["true", "false"]
    assert examples[0].text_b == "b"
    assert task.row_report.rows[0].expected == "texts under q, r, same"


def test_any_range_is_mapped_to_zero_and_one_and_back(describe):
    task = describe(
        {"type": "regression", "columns": COLUMNS, "range": [1, 5]},
        {
            "train.tsv": "text\tstars\na\t1\nb\t3\nc\t5\n",
            "dev.tsv": "text\tstars\na\t6\nb\t2\n",
        },
    )
    examples = task.get_examples("train")
    targets = [task.featurize(e, True)["mine_targets"] for e in examples]
    assert targets == [0.0, 0.5, 1.0]
    assert task.unscale(np.array(targets)).tolist() == [1.0, 3.0, 5.0]
    assert len(task.get_examples("dev")) == 1
    assert task.row_report.rows[0].expected == "a number from 1 to 5"


def test_a_range_is_found_in_the_training_data(describe):
    task = describe(
        {"type": "regression", "columns": COLUMNS},
        {
            "train.tsv": "text\tstars\na\t-2\nb\t2\n",
            "dev.tsv": "text\tstars\na\t1\n",
            "test.tsv": "text\na\n",
        },
    )
    assert task.value_range == (-2.0, 2.0)
    (example,) = task.get_examples("dev")
    assert task.featurize(example, False)["mine_targets"] == 0.75
    (example,) = task.get_examples("test")
    assert task.featurize(example, False)["mine_targets"] == 0.5


def test_several_labels_are_separated_or_listed(describe):
    kind = {"type": "multilabel", "label_separator": ";", "format": "tsv"}
    task = describe(
        {"columns": COLUMNS, **kind},
        {
            "train.tsv": "text\tstars\na\tsad; odd\nb\t\nc\tglad\n",
            "dev.tsv": "text\tstars\na\tglad;new\n",
        },
    )
    assert task.labels == ["glad", "new", "odd", "sad"]
    examples = task.get_examples("train")
    features = [task.featurize(e, True)["mine_label_ids"] for e in examples]
    assert features == [[0, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]]
    specs = {s.name: s for s in task.get_feature_specs()}
    assert specs["mine_label_ids"].shape == [4]


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
    )
    task = describe(
        {"type": "tagging", "tags": "words"},
        {"train.jsonl": text, "dev.jsonl": text.splitlines()[0]},
    )
    assert task.label_mapping == {"N": 0, "V": 1}
    assert [e.eid for e in task.get_examples("train")] == [0]
    assert [row.line for row in task.row_report.rows] == [2, 3]


def test_given_entity_types_make_all_their_tags(describe):
    task = describe(
        {"type": "tagging", "labels": ["PER", "LOC"]},
        {"train.txt": "a B-PER\n\nb B-ORG\n\n", "dev.txt": "a O\n\n"},
    )
    assert len(task.label_mapping) == 9
    assert [e.eid for e in task.get_examples("train")] == [0]
    assert task.row_report.rows[0].found == "label 'S-ORG'"


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ({"typ": "x"}, "typ.*Nearest names.*type"),
        ({"type": "ranking"}, "expected one of classification"),
        ({"files": {"train": "t.tsv"}}, "dev is missing"),
        ({"files": {"train": 1, "dev": "d"}}, "expected a path"),
        ({"columns": {"label": 0}}, "text_a is missing"),
        ({"columns": {"text": 0}}, "Nearest names"),
        ({"columns": {"text_a": True}}, "column's name or number"),
        ({"labels": ["a", "a"]}, "different texts"),
        ({"labels": "a"}, "expected a list"),
        ({"type": "regression", "range": [5, 1]}, "lowest, highest"),
        ({"metric": "rouge"}, "accuracy, f1, mcc"),
        ({"splits": {"tset": {}}}, "no 'tset'"),
        ({"header": "yes"}, "true or false"),
    ],
)
def test_a_description_that_cannot_work_is_refused(
    tmp_path, description, words
):
    files = {"train": "t.tsv", "dev": "d.tsv"}
    whole = {"name": "x", "files": files, "columns": COLUMNS, **description}
    path = tmp_path / "task.json"
    path.write_text(json.dumps(whole))
    with pytest.raises(UserError, match=words):
        registry.read_task_config(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("review,stars\nx,a\n", r"train\.csv:1: no column 'text'"),
        ("text,stars\nx,a\ny,a\n", "1 different labels"),
    ],
)
def test_a_file_that_makes_no_task_is_named(text, message, describe):
    task = describe({"columns": COLUMNS}, {"train.csv": text, "dev.csv": text})
    with pytest.raises(UserError, match=message):
        task.get_examples("train")


def test_unknown_tasks_are_refused_with_the_nearest(finetuning_config):
    with pytest.raises(UserError, match=r"unknown task mnil. Nearest: mnli"):
        registry.get_tasks(finetuning_config("mnil"))


class Reviews(ClassificationTask):
    """A task of one's own, as the documentation shows it."""

    def __init__(self, config, tokenizer):
        # "qa" and underscores are only a name.
        spec = TaskSpec("my_qa_task", labels=("bad", "good"))
        super().__init__(config, spec, tokenizer)

    def get_examples(self, split):
        data = [("a", "good"), ("b", "bad"), ("c", "good")]
        return [
            TextExample(eid=i, task_name=self.name, text_a=text, label=label)
            for i, (text, label) in enumerate(data)
        ]


def test_a_class_of_ones_own_goes_all_the_way(finetuning_config):
    config = finetuning_config("my_qa_task")
    task = Reviews(config, FullTokenizer(config.vocab_file))
    batches, steps = Preprocessor(config, [task]).prepare_train()
    assert steps == 3
    found = next(batches().as_numpy_iterator())
    assert found["input_ids"].shape == (4, 16)
    real = found["task_id"] == 0
    ids = found["my_qa_task_eid"][real]
    labels = dict(zip(ids, found["my_qa_task_label_ids"][real], strict=True))
    assert labels.items() <= {0: 1, 1: 0, 2: 1}.items()


@pytest.mark.parametrize("text", BLOCKS)
def test_a_shown_description_is_accepted(text, tmp_path):
    path = tmp_path / "task.json"
    path.write_text(text)
    spec = registry.read_task_config(str(path))
    config = FinetuningConfig.create(
        "m", "d", task_names=spec.name, **spec.hparams
    )
    assert config.task_names == [json.loads(text)["name"]]


def test_every_type_is_shown():
    shown = {json.loads(text).get("type", "classification") for text in BLOCKS}
    assert shown == set(TYPES)
