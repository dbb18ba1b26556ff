# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning steps give the weights recorded from the original."""

import json

import numpy as np
import pytest
import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import tf1
from electra_tf.finetuning.build import build_model, build_optimizer
from electra_tf.finetuning.registry import get_tasks

TRAJECTORIES = """
cola_layerwise cola_layerwise_ordered cola_no_layerwise sts_layerwise
chunk_layerwise squad_layerwise
""".split()
STEPS = 5


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_weights_follow_the_recorded_trajectory(
    name, golden_dir, tmp_path, tiny_vocab, monkeypatch, assert_recorded_weights
):
    # The recordings have the heads' own dropout patched out, too.
    monkeypatch.setattr("electra_tf.finetuning.model.DROPOUT_RATE", 0.0)
    directory = golden_dir / f"train_finetune_{name}"
    info = json.loads((directory / "info.json").read_text())
    order = "before" if name.endswith("_ordered") else "after"
    config = FinetuningConfig.create(
        "m",
        str(tmp_path),
        vocab_file=tiny_vocab,
        lr_read_order=f"{order}_increment",
        max_query_length=16,  # Of no effect on a ready batch.
        **info["hparams"],
    )
    tasks = get_tasks(config)
    if config.task_names == ["chunk"]:
        head = json.loads((golden_dir / "head_chunk.json").read_text())
        tasks[0].use_labels(head["label_mapping"])
    model = build_model(config, tasks)
    tf1.restore(model, str(directory / "model.ckpt-0"))
    optimizer = build_optimizer(config, model, info["num_train_steps"])
    batch = {
        key: tf.constant(value)
        for key, value in np.load(directory / "batch.npz").items()
    }

    @tf.function
    def train_step(batch, step):
        with tf.GradientTape() as tape:
            loss = model.compute(batch, training=True)["loss"]
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, optimizer.update(gradients, step)

    recorded = info["steps"]
    for step in range(STEPS):
        loss, update = train_step(batch, tf.constant(step, tf.int64))
        rate = recorded["lr"][step]
        if isinstance(rate, dict):  # The heads' rate is the schedule's.
            rate = rate["task_specific/"]
        for found, wanted, close in (
            (loss, recorded["loss"][step], {"rtol": 1e-4}),
            (update["grad_norm"], recorded["gn"][step], {"rtol": 1e-4}),
            (update["learning_rate"], rate, {"rtol": 1e-6, "atol": 1e-12}),
        ):
            np.testing.assert_allclose(found, wanted, **close)
        checkpoint = directory / f"model.ckpt-{step + 1}"
        assert_recorded_weights(checkpoint, model, optimizer)
