# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""SQuAD from TensorFlow Datasets: small prepared sets of the same shape.

They are written with TFDS's own writer under the names, features and versions
of the real ones, so that the real loading code finds them there and downloads
nothing.
"""

import pytest

from electra_tf.finetuning.preprocessing import Preprocessor

tfds = pytest.importorskip("tensorflow_datasets")

CONTEXT = "The red café, number {}. It is red."
TASKS = {"squad": "squad/v2.0", "squadv1": "squad"}


def rows(v2):
    for number in range(12):
        impossible = v2 and number % 3 == 0
        answers = {"text": ["café", "red café"], "answer_start": [8, 4]}
        if impossible:
            answers = {"text": [], "answer_start": []}
        row = {
            "id": f"q{number}",
            "title": "A",
            "context": CONTEXT.format(number // 2),
            "question": "the red ?",
            "answers": answers,
        }
        if v2:
            row["is_impossible"] = impossible
            row["plausible_answers"] = {"text": ["red"], "answer_start": [4]}
        yield number, row


@pytest.fixture
def prepared(tmp_path):
    """Prepares the data set of a task; returns its folder."""

    def prepare(task, splits=("train", "validation")):
        directory = str(tmp_path / "tfds")
        real = tfds.builder(TASKS[task], data_dir=directory)
        real_features = real.info.features

        with tfds.core.registered.skip_registration():

            class Squad(tfds.core.GeneratorBasedBuilder):
                VERSION = tfds.core.Version(str(real.version))
                BUILDER_CONFIGS = (
                    tfds.core.BuilderConfig(name=real.builder_config.name),
                )

                def _info(self):
                    return tfds.core.DatasetInfo(
                        builder=self, features=real_features
                    )

                def _split_generators(self, dl_manager):
                    return {s: rows(task == "squad") for s in splits}

                def _generate_examples(self):
                    raise NotImplementedError

        builder = Squad(config=real.builder_config.name, data_dir=directory)
        builder.download_and_prepare()
        return directory

    return prepare


@pytest.fixture
def tfds_task(make_task, prepared):
    def make(name, **hparams):
        return make_task(
            name,
            data_source="tfds",
            tfds_data_dir=prepared(name),
            max_query_length=8,
            beam_size=4,
            **hparams,
        )

    return make


@pytest.mark.parametrize("name", sorted(TASKS))
def test_questions_are_read_with_their_answers(name, tfds_task):
    task = tfds_task(name)
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
    assert dev["q1"].answers == ("café", "red café")
    assert dev["q3"].answers == (
        () if name == "squad" else ("café", "red café")
    )
    assert task.row_report.rows == []


def test_records_are_cached_and_scored(tfds_task, capsys):
    for reused in (False, True):
        task = tfds_task("squad")
        preprocessor = Preprocessor(task.config, [task])
        batches, steps = preprocessor.prepare_train()
        assert (batches.n_examples, steps) == (12, 6)
        assert ("earlier run" in capsys.readouterr().out) == reused
    found = next(batches().as_numpy_iterator())
    assert set(found["squad_is_impossible"].tolist()) <= {0, 1}
    assert len(task.get_scorer()._examples) == 12


def test_debug_reads_few_questions(tfds_task, monkeypatch):
    from electra_tf.finetuning import question_answering

    monkeypatch.setattr(question_answering, "DEBUG_QUESTIONS", 5)
    task = tfds_task("squadv1", debug=True)
    assert len(task.get_examples("train")) == 5
