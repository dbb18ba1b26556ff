# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Passes, gradients and ten steps equal those recorded from the original."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints import tf1
from electra_tf.optimization.optimizer import uses_weight_decay
from electra_tf.pretraining.build import build_model, build_optimizer
from electra_tf.training.checkpointing import Checkpoints
from tests.pretraining.conftest import INPUTS, MASKED

PER_TOKEN = """
mlm_logits mlm_per_token_loss cloze_logits cloze_per_token_loss disc_logits
disc_probs
""".split()
LOSSES = ("mlm_loss", "cloze_loss", "disc_loss", "total_loss")
EXACT = """
mlm_preds sampled_tokids fake_input_ids fake_is_fake_tokens disc_preds
""".split()
# Of every kind of model.
FORWARD_PASSES = """
tiny_ckpt v200_disallow_correct v200_electra v200_electric
v200_electric_untied_embeddings v200_gen_layers_half_weights v200_mlm
v200_mlm_disallow v200_relu_head3 v200_temperature_half v200_tied_generator
v200_two_tower_electra v200_uniform_generator v200_untied_generator_embeddings
""".split()


@pytest.mark.parametrize("name", FORWARD_PASSES)
def test_passes_equal_the_recording(
    name, recording, recorded_model, golden_dir, assert_gradients
):
    recorded = recording(golden_dir, f"forward_{name}")
    model = recorded_model(recorded.info["hparams"], golden_dir)
    report = tf1.restore(model, recorded.checkpoint)
    assert not report.missing and not report.unexpected
    check_recording(recorded, model, assert_gradients)


def test_forward_pass_equals_the_recording_kept_in_the_repository(
    recording, recorded_model, tiny_vocab, assert_gradients
):
    fixtures = pathlib.Path(tiny_vocab).parent / "golden"
    recorded = recording(fixtures, "forward_v200_electra")
    model = recorded_model(recorded.info["hparams"])
    tf1.restore(model, recorded.checkpoint)
    check_recording(recorded, model, assert_gradients)


def check_recording(recorded, model, assert_gradients):
    arrays = recorded.arrays
    with tf.GradientTape() as tape:
        outputs = model.compute(**recorded.compute_arguments())
    real = arrays["input_mask"].astype(bool)
    for name in PER_TOKEN:
        if name in arrays:
            _assert_close(outputs[name], arrays[name], real)
    for name in EXACT:
        if name in arrays and name in outputs:
            actual, expected = outputs[name].numpy(), arrays[name]
            if expected.shape == real.shape:
                actual, expected = actual[real], expected[real]
            np.testing.assert_array_equal(actual, expected, name)
    for name in LOSSES:
        if name in arrays:
            np.testing.assert_allclose(
                outputs[name], arrays[name], rtol=1e-5, err_msg=name
            )
    _check_layers(outputs, arrays, real)
    _check_gradients(tape, outputs, model, arrays, assert_gradients)


def _assert_close(actual, expected, real):
    actual = np.asarray(actual)
    if expected.shape[:2] == real.shape:
        actual, expected = actual[real], expected[real]
    bound = 1e-5 * max(1.0, np.abs(expected).max())
    assert np.abs(actual - expected).max() <= bound


def _check_layers(outputs, arrays, real):
    layers = []
    if "generator_layers" in outputs:
        generator = outputs["generator_layers"]
        layers += generator if isinstance(generator, list) else [generator]
    if "discriminator_layers" in outputs:
        layers.append(outputs["discriminator_layers"])
    names = sorted(n for n in arrays if n.endswith("/all_encoder_layers"))
    assert len(layers) == len(names) > 0
    for actual, name in zip(layers, names, strict=True):
        expected = arrays[name][:, real]
        bound = 1e-5 * max(1.0, np.abs(expected).max())
        assert np.abs(actual.numpy()[:, real] - expected).max() <= bound, name


def _check_gradients(tape, outputs, model, arrays, assert_gradients):
    recorded = {
        name.removeprefix("grad/"): array
        for name, array in arrays.items()
        if name.startswith("grad/")
    }
    if not recorded:
        return
    variables = model.trainable_variables
    gradients = tape.gradient(outputs["total_loss"], variables)
    names = [variable.name[:-2] for variable in variables]
    found = dict(zip(names, gradients, strict=True))
    assert_gradients(found, recorded, arrays["global_grad_norm"])


TRAJECTORIES = """
electra electra_ordered electric mlm mlm_ordered small_gradients_power2
tied_generator uniform_generator
""".split()


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
    batch = {k: tf.constant(steps[k][step]) for k in INPUTS}
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
