# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks read data sets of TensorFlow Datasets, here small ones."""

import pytest

from electra_tf.data import tfds_data
from electra_tf.finetuning.glue_tasks import GLUE_TASKS
from tests.conftest import refused

tfds = pytest.importorskip("tensorflow_datasets")


def examples(split, name, features):
    """Yield rows; all labels of test sets are -1, as in the real data."""
    for number in range(12):
        row = {key: f"{key} {number} é" for key in features}
        row["idx"] = number
        # A label may be missing in training, too.
        missing = "test" in split or (split == "train" and number == 11)
        row["label"] = -1 if missing else number % 2
        if name == "stsb":
            row["label"] = -1.0 if "test" in split else number / 4
        yield number, row


@pytest.fixture
def write_set(tmp_path):
    """Return a function that writes a data set and returns their folder."""

    def write(name, splits, rows):
        directory = str(tmp_path / "tfds")
        real = tfds.builder(name, data_dir=directory)
        config = real.builder_config and real.builder_config.name
        configs = [tfds.core.BuilderConfig(name=config)] if config else []

        def info(self):
            return tfds.core.DatasetInfo(
                builder=self, features=real.info.features
            )

        with tfds.core.registered.skip_registration():
            builder = type(
                name.partition("/")[0].title().replace("_", ""),
                (tfds.core.GeneratorBasedBuilder,),
                {
                    "VERSION": tfds.core.Version(str(real.version)),
                    "BUILDER_CONFIGS": configs,
                    "_info": info,
                    "_split_generators": lambda self, dl_manager: {
                        split: rows(split, real.info.features)
                        for split in splits
                    },
                    "_generate_examples": lambda self: None,
                },
            )
        builder(config=config, data_dir=directory).download_and_prepare()
        return directory

    return write


@pytest.fixture
def task_of(make_task, write_set):
    """Return a function that writes `glue/<name>` and opens its task."""

    def make(task, name, splits):
        directory = write_set(
            f"glue/{name}",
            splits.split(),
            lambda split, features: examples(split, name, features),
        )
        return make_task(task, data_source="tfds", tfds_data_dir=directory)

    return make


def test_mnli_has_its_splits_and_the_diagnostic_set(task_of):
    task_of("mnli", "ax", "test")
    task = task_of(
        "mnli",
        "mnli",
        "train validation_matched validation_mismatched"
        " test_matched test_mismatched",
    )
    splits = ["dev", "dev_mismatched", *task.get_test_splits()]
    counts = {split: len(task.get_examples(split)) for split in splits}
    assert counts == dict.fromkeys(splits, 12)
    # TFDS counts entailment 0, neutral 1, contradiction 2.
    labels = {e.text_a: e.label for e in task.get_examples("dev_matched")}
    assert labels["premise 0 é"] == "entailment"
    assert labels["premise 1 é"] == "neutral"
    features = task.featurize(task.get_examples("train")[0], True)
    assert features["mnli_label_ids"] in (1, 2)


def test_numbers_are_read_and_missing_data_are_named(task_of, tmp_path):
    task = task_of("sts", "stsb", "validation")
    actual = {e.label for e in task.get_examples("dev")}
    assert actual == {number / 4 for number in range(12)}
    task = task_of("cola", "cola", "train")
    assert len(task.get_examples("train")) == 11
    (row,) = task.row_report.rows
    assert row.path == "tfds:glue/cola/train" and row.found == "label -1"
    assert row.expected == "one of: 0, 1"
    task = task_of("wnli", "wnli", "train")
    assert task.get_examples("train")[1].label == "1"
    refused(r"no split 'validation'. Use .*: tra", task.get_examples, "dev")
    rows = tfds_data.read_rows("no_such_set", "train", str(tmp_path))
    refused("TFDS data set 'no_such_set'", list, rows)


@pytest.mark.parametrize("name", sorted(GLUE_TASKS))
def test_every_task_names_features_that_the_data_set_has(name, tmp_path):
    spec = GLUE_TASKS[name]
    info = tfds.builder(spec.tfds.name, data_dir=str(tmp_path)).info
    assert set(spec.tfds.columns.values()) <= set(info.features)
    label = info.features["label"]
    if spec.tfds.label_names:
        assert set(label.names) == set(spec.labels)
    elif spec.type == "classification":
        assert label.num_classes == len(spec.labels)


SQUADS = {"squad": "squad/v2.0", "squadv1": "squad"}


def question_rows(v2):
    for number in range(12):
        impossible = v2 and number % 3 == 0
        answers = {"text": ["café", "red café"], "answer_start": [8, 4]}
        if impossible:
            answers = {"text": [], "answer_start": []}
        row = {
            "id": f"q{number}",
            "title": "A",
            "context": f"The red café, number {number // 2}. It is red.",
            "question": "the red ?",
            "answers": answers,
        }
        if v2:
            row["is_impossible"] = impossible
            row["plausible_answers"] = {"text": ["red"], "answer_start": [4]}
        yield number, row


@pytest.mark.parametrize("name", sorted(SQUADS))
def test_questions_are_read_with_their_answers(name, make_task, write_set):
    directory = write_set(
        SQUADS[name],
        ("train", "validation"),
        lambda split, features: question_rows(name == "squad"),
    )
    settings = {"max_query_length": 8, "beam_size": 4}
    settings |= {"data_source": "tfds", "tfds_data_dir": directory}
    task = make_task(name, **settings)
    assert task.has_split("dev") and not task.has_split("test")
    train = {e.key: e for e in task.get_examples("train")}
    assert len(train) == 12
    example = train["q1"]
    assert example.doc_tokens[:4] == ["The", "red", "café,", "number"]
    assert example.orig_answer_text == "café"
    assert (example.start_position, example.end_position) == (2, 2)
    assert train["q0"].passage is train["q1"].passage
    assert train["q3"].is_impossible == (name == "squad")
    dev = {e.key: e for e in task.get_examples("dev")}
    answers = ("café", "red café")
    assert dev["q1"].answers == answers
    assert dev["q3"].answers == (() if name == "squad" else answers)
    assert task.row_report.rows == []


def test_articles_are_read_with_their_highlights(make_task, write_set):
    def rows(split, features):
        assert set(features) == {"article", "highlights", "id", "publisher"}
        for number in range(3):
            text = {key: f"{key} {number} é" for key in features}
            article = f"A café, number {number}.\nIt is red. So it is."
            yield number, text | {"article": article, "highlights": "it\nred"}

    directory = write_set("cnn_dailymail", ("train", "validation"), rows)
    settings = {"data_source": "tfds", "tfds_data_dir": directory}
    task = make_task("summarization", **settings)
    assert task.has_split("dev")
    dev = task.get_examples("dev")
    assert {e.sentences for e in dev} == {
        (f"A café, number {n}.", "It is red.", "So it is.") for n in range(3)
    }
    assert dev[0].summary == "it\nred"
    assert len(task.get_examples("train")) == 3 and task.row_report.rows == []
