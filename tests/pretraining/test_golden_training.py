# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ten training steps give the weights recorded from the original."""

import json

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints import tf1
from electra_tf.optimization.optimizer import uses_weight_decay
from electra_tf.pretraining.build import build_model, build_optimizer
from electra_tf.training.checkpointing import Checkpoints

TRAJECTORIES = """
electra electra_ordered electric mlm mlm_ordered small_gradients_power2
tied_generator uniform_generator
""".split()
BATCH = ("input_ids", "input_mask", "segment_ids")
MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


@pytest.fixture
def recorded_training(golden_dir, recorded_config):
    """A factory: a trajectory's name to what it holds and what trains it."""

    def make(name, **changes):
        directory = golden_dir / f"train_pretrain_{name}"
        info = json.loads((directory / "info.json").read_text())
        config = recorded_config(info["hparams"], **changes)
        model = build_model(config)
        optimizer = build_optimizer(config, model)
        steps = np.load(directory / "steps.npz")
        return directory, steps, model, optimizer

    return make


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name != "electra"))
        for name in TRAJECTORIES
    ],
)
def test_weights_follow_the_recorded_trajectory(
    name, recorded_training, assert_recorded_weights
):
    order = "before" if name.endswith("_ordered") else "after"
    directory, steps, model, optimizer = recorded_training(
        name, lr_read_order=f"{order}_increment"
    )
    tf1.restore(model, str(directory / "model.ckpt-0"))
    train_step = _train_step(model, optimizer)
    for step in range(10):
        loss, update = train_step(*_inputs(steps, step))
        _check_step(steps, step, loss, update)
        checkpoint = directory / f"model.ckpt-{step + 1}"
        assert_recorded_weights(checkpoint, model, optimizer)


@pytest.mark.slow
def test_an_original_run_resumes_from_its_fifth_step(
    recorded_training, is_noise, assert_recorded_weights
):
    directory, steps, model, optimizer = recorded_training("electra", seed=99)
    step = tf.Variable(0, dtype=tf.int64)
    checkpoints = Checkpoints(
        str(directory),
        model=model,
        optimizer=optimizer,
        step=step,
        position={},
        keep=0,
    )
    checkpoints.restore(str(directory / "model.ckpt-5"))
    assert int(step) == 5
    for slots in (optimizer.m, optimizer.v):
        assert all(np.any(slots[n].numpy()) for n in slots if not is_noise(n))
    train_step = _train_step(model, optimizer)
    for number in range(5, 10):
        loss, update = train_step(*_inputs(steps, number))
        _check_step(steps, number, loss, update)
    assert_recorded_weights(directory / "model.ckpt-10", model, optimizer)


def _inputs(steps, step):
    batch = {k: tf.constant(steps[k][step]) for k in BATCH}
    masked = {k: tf.constant(steps[k][step]) for k in MASKED}
    masked["input_ids"] = tf.constant(steps["masked_input_ids"][step])
    sampled = None
    if "sampled_tokids" in steps:
        sampled = tf.constant(steps["sampled_tokids"][step])
    return batch, masked, sampled, tf.constant(step, tf.int64)


def _train_step(model, optimizer):
    @tf.function
    def train_step(batch, masked, sampled, step):
        with tf.GradientTape() as tape:
            outputs = model.compute(batch, masked, sampled, training=True)
        loss = outputs["total_loss"]
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, optimizer.update(gradients, step)

    return train_step


def _check_step(steps, step, loss, update):
    for found, name, rtol in (
        (loss, "total_loss", 1e-5),
        (update["learning_rate"], "learning_rate_used", 1e-6),
        (update["grad_norm"], "global_grad_norm_as_used_for_clipping", 1e-5),
    ):
        np.testing.assert_allclose(
            found, steps[name][step], rtol, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_the_same_variables_are_excluded_from_decay(name, golden_dir):
    path = golden_dir / f"train_pretrain_{name}" / "info.json"
    table = json.loads(path.read_text())["weight_decay_applies"]
    assert {n: uses_weight_decay(n) for n in table} == table
