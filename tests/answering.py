# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures for questions: texts, and a loaded model's outputs and answers."""

import gzip
import json

import pytest

QUESTION = {
    "id": "q1",
    "question": "where is the king?",
    "answers": [{"text": "city", "answer_start": 19}],
}
SQUAD = {
    "data": [
        {
            "title": "Kings",
            "paragraphs": [
                {"context": "The king is in the city.", "qas": [QUESTION]},
                {"context": "She was for the north.", "qas": []},
            ],
        }
    ]
}


@pytest.fixture(scope="session")
def head_outputs():
    """Return a function from features (or rows) to a head's outputs."""
    import tensorflow as tf

    def compute(loaded, features):
        if isinstance(features, list):
            rows = features
            features = {name: [row[name] for row in rows] for name in rows[0]}
        features = {n: tf.constant(value) for n, value in features.items()}
        inputs = ("input_ids", "input_mask", "segment_ids")
        encoded = loaded.model.encoder(*(features[name] for name in inputs))
        outputs = loaded.model.heads[0].logits(encoded, features)
        return {name: value.numpy() for name, value in outputs.items()}

    return compute


@pytest.fixture(scope="session")
def qa_example():
    """Return a factory of examples: `qa_example(task, question, text)`."""
    from electra_tf.finetuning.questions import Passage, QAExample

    return lambda task, question, context, number=0: QAExample(
        eid=number,
        task_name=task.name,
        key=str(number),
        question_text=question,
        passage=Passage(context),
    )


@pytest.fixture(scope="session")
def evaluated_questions(head_outputs, qa_example):
    """Return a function that scores (question, context) pairs."""

    def scored(loaded, pairs):
        task = loaded.tasks[0]
        examples = [qa_example(task, *pair, n) for n, pair in enumerate(pairs)]
        scorer = task.scorer_of(examples)
        rows = [row for e in examples for row in task.featurize(e, False)]
        outputs = head_outputs(loaded, rows)
        for i, row in enumerate(rows):
            row_outputs = {name: value[i] for name, value in outputs.items()}
            eid = row[f"{task.name}_eid"]
            scorer.update({**row_outputs, "eid": eid, "loss": 0.0})
        scorer.answer()
        return scorer

    return scored


@pytest.fixture
def text_folder(tmp_path):
    """Return a folder of a text, JSON lines in gzip and a file of SQuAD."""
    path = tmp_path / "texts"
    (path / "deep").mkdir(parents=True)
    lines = ["", "The king built", "three castles.", "", "Her city was quiet."]
    (path / "a.txt").write_text("\n".join(lines))
    rows = '{"id": 7, "text": "Bees make honey."}\n\n{"text": "Ice melts."}\n'
    (path / "deep" / "b.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    (path / "c.json").write_text(json.dumps(SQUAD))
    return path
