# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a file of questions through training to answers."""

import json
import random

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.finetuning import registry
from electra_tf.finetuning.build import build_model, build_optimizer
from electra_tf.finetuning.preprocessing import Preprocessor

WORDS = "the of and to in is was for on".split()
ANSWER = "that"  # what every answerable question asks for
STEPS = 120


def write_questions(write_task, split, count, seed):
    """Passages in which one word, if it is there, is the answer."""
    stream = random.Random(seed)
    paragraphs = []
    for number in range(count):
        words = stream.choices(WORDS, k=stream.randint(6, 20))
        answers = []
        if number % 3:
            place = stream.randrange(len(words))
            words[place] = ANSWER
            start = len(" ".join([*words[:place], ""]))
            answers = [{"text": ANSWER, "answer_start": start}]
        qa = {
            "id": f"{split}{number}",
            "question": "is it",
            "answers": answers,
            "is_impossible": not answers,
        }
        paragraphs.append({"context": " ".join(words), "qas": [qa]})
    document = {"version": "v2.0", "data": [{"paragraphs": paragraphs}]}
    write_task("squad", f"{split}.json", json.dumps(document))


@pytest.mark.slow
@pytest.mark.parametrize("joint", [True, False])
def test_a_model_learns_where_the_answer_is(
    joint, finetuning_config, write_task, scored
):
    write_questions(write_task, "train", 300, 1)
    write_questions(write_task, "dev", 40, 2)
    config = finetuning_config(
        "squad",
        joint_prediction=joint,
        max_query_length=4,
        max_seq_length=22,
        doc_stride=8,
        beam_size=4,
        train_batch_size=16,
        eval_batch_size=8,
        learning_rate=5e-3,
        layerwise_lr_decay=-1.0,
        qa_na_threshold=0.0,
    )
    (task,) = registry.get_tasks(config)
    preprocessor = Preprocessor(config, [task])
    train, _ = preprocessor.prepare_train()
    model = build_model(config, [task])
    before = scored(model, preprocessor, task)
    assert dict(before.get_results())["best_f1"] < 80
    optimizer = build_optimizer(config, model, STEPS)

    @tf.function(reduce_retracing=True)
    def train_step(batch, step):
        with tf.GradientTape() as tape:
            loss = model.compute(batch, training=True)["loss"]
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.update(gradients, step)

    for step, batch in zip(range(STEPS), train(), strict=False):
        train_step(batch, tf.constant(step, tf.int64))
    scorer = scored(model, preprocessor, task)
    figures = dict(scorer.get_results())
    assert figures["total"] == 40
    assert figures["HasAns_total"] == 26
    assert figures["HasAns_f1"] > 90
    assert figures["exact"] > 80
    assert scorer.single_prediction() is None
    details = dict(scorer.get_details())
    assert details["questions"] == 40 < details["windows"]
    assert np.isfinite(details["loss"])
    same = figures.keys() & {task.main_metric}
    assert same == {"f1"}
