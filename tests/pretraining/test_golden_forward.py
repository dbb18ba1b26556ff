# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Passes, gradients and ten steps equal those recorded from the original."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.optimization.optimizer import uses_weight_decay
from electra_tf.pretraining.build import build_optimizer
from electra_tf.pretraining.model import PretrainingModel, build_model
from electra_tf.training.checkpointing import Checkpoints
from tests.conftest import FIXTURES, read_json, restore
from tests.pretraining.conftest import (
    FORWARD_PASSES,
    INPUTS,
    MASKED,
    Recording,
)

PER_TOKEN = """
mlm_logits mlm_per_token_loss cloze_logits cloze_per_token_loss disc_logits
disc_probs
""".split()
LOSSES = ("mlm_loss", "cloze_loss", "disc_loss", "total_loss")
EXACT = """
mlm_preds sampled_tokids fake_input_ids fake_is_fake_tokens disc_preds
""".split()


@pytest.mark.parametrize("name", ["kept", *FORWARD_PASSES])
def test_passes_equal_the_original_s(
    name, request, recorded_config, assert_gradients
):
    if name == "kept":
        directory, name = FIXTURES / "golden", "v200_electra"
    else:  # Skips without the reference data.
        directory = request.getfixturevalue("golden_dir")
    recorded = Recording(directory, f"forward_{name}")
    config = recorded_config(recorded.info["hparams"], directory)
    model, arrays = PretrainingModel(config), recorded.arrays
    report = restore(model, recorded.checkpoint)
    assert not report.missing and not report.unexpected
    with tf.GradientTape() as tape:
        outputs = model.compute(**recorded.compute_arguments())
    real = arrays["input_mask"].astype(bool)

    def both(name):
        """Return computed and recorded values of tokens, not of padding."""
        values = [np.asarray(of[name]) for of in (outputs, arrays)]
        if values[1].shape[:2] != real.shape:
            return values
        return [value[real] for value in values]

    def assert_close(actual, expected, name):
        bound = 1e-5 * max(1.0, np.abs(expected).max())
        assert np.abs(actual - expected).max() <= bound, name

    for name in arrays.keys() & PER_TOKEN:
        assert_close(*both(name), name)
    for name in arrays.keys() & EXACT & outputs.keys():
        np.testing.assert_array_equal(*both(name), name)
    for name in arrays.keys() & LOSSES:
        np.testing.assert_allclose(*both(name), rtol=1e-5, err_msg=name)
    parts = ("generator_layers", "discriminator_layers")
    layers = tf.nest.flatten([outputs.get(part, []) for part in parts])
    names = sorted(n for n in arrays if n.endswith("/all_encoder_layers"))
    assert len(layers) == len(names) > 0
    for actual, name in zip(layers, names, strict=True):
        assert_close(actual.numpy()[:, real], arrays[name][:, real], name)
    names = [name for name in arrays if name.startswith("grad/")]
    if names:
        expected = {name.removeprefix("grad/"): arrays[name] for name in names}
        variables = {v.name[:-2]: v for v in model.trainable_variables}
        gradients = tape.gradient(outputs["total_loss"], variables)
        assert_gradients(gradients, expected, arrays["global_grad_norm"])


TRAJECTORIES = """
electra electra_ordered electric mlm mlm_ordered small_gradients_power2
tied_generator uniform_generator
""".split()
COMPARED = {
    "total_loss": ("total_loss", 1e-5),
    "learning_rate": ("learning_rate_used", 1e-6),
    "grad_norm": ("global_grad_norm_as_used_for_clipping", 1e-5),
}


@pytest.fixture
def recorded_training(golden_dir, recorded_config):
    """Return a function from a case's name to the parts of its training."""

    def make(name, **changes):
        directory = golden_dir / f"train_pretrain_{name}"
        info = read_json(directory / "info.json")
        config = recorded_config(info["hparams"], **changes)
        model = build_model(config)
        optimizer = build_optimizer(config, model)
        recorded = dict(np.load(directory / "steps.npz"))

        @tf.function
        def train_step(batch, masked, sampled, step):
            with tf.GradientTape() as tape:
                outputs = model.compute(batch, masked, sampled, training=True)
            loss = outputs["total_loss"]
            gradients = tape.gradient(loss, model.trainable_variables)
            return {"total_loss": loss, **optimizer.update(gradients, step)}

        def followed(steps):
            for step in steps:
                now = {n: tf.constant(v[step]) for n, v in recorded.items()}
                step_result = train_step(
                    {n: now[n] for n in INPUTS},
                    {"input_ids": now["masked_input_ids"]}
                    | {n: now[n] for n in MASKED},
                    now.get("sampled_tokids"),
                    tf.constant(step, tf.int64),
                )
                for name, (same, rtol) in COMPARED.items():
                    bounds = {"rtol": rtol, "atol": 1e-12, "err_msg": name}
                    np.testing.assert_allclose(
                        step_result[name], now[same], **bounds
                    )
                yield step

        return directory, model, optimizer, followed

    return make


@pytest.mark.parametrize(
    "name",
    [
        name
        if name == "electra"
        else pytest.param(name, marks=pytest.mark.slow)
        for name in TRAJECTORIES
    ],
)
def test_weights_equal_the_original_s_after_every_step(
    name, recorded_training, assert_recorded_weights
):
    order = "before" if name.endswith("_ordered") else "after"
    made = recorded_training(name, lr_read_order=f"{order}_increment")
    directory, model, optimizer, followed = made
    restore(model, str(directory / "model.ckpt-0"))
    for step in followed(range(10)):
        checkpoint = directory / f"model.ckpt-{step + 1}"
        assert_recorded_weights(checkpoint, model, optimizer)


@pytest.mark.slow
def test_an_original_run_resumes_from_its_fifth_step(
    recorded_training, is_noise, assert_recorded_weights
):
    folder, model, optimizer, followed = recorded_training("electra", seed=99)
    step = tf.Variable(0, dtype=tf.int64)
    state = {"model": model, "optimizer": optimizer, "step": step}
    checkpoints = Checkpoints(str(folder), **state, position={}, keep=0)
    checkpoints.restore(str(folder / "model.ckpt-5"))
    assert int(step) == 5
    zero_slots = [
        name
        for slots in (optimizer.m, optimizer.v)
        for name, slot in slots.items()
        if not is_noise(name) and not slot.numpy().any()
    ]
    assert zero_slots == []
    assert [*followed(range(5, 10))]
    assert_recorded_weights(folder / "model.ckpt-10", model, optimizer)


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_the_same_variables_are_excluded_from_decay(name, golden_dir):
    path = golden_dir / f"train_pretrain_{name}" / "info.json"
    table = read_json(path)["weight_decay_applies"]
    assert {n: uses_weight_decay(n) for n in table} == table
