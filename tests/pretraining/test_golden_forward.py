# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Forward passes and gradients equal those recorded from the original."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints import tf1

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


@pytest.fixture(params=FORWARD_PASSES)
def recorded_pass(request, recording, recorded_model, golden_dir):
    recorded = recording(golden_dir, f"forward_{request.param}")
    model = recorded_model(recorded.info["hparams"], golden_dir)
    report = tf1.restore(model, recorded.checkpoint)
    assert not report.missing and not report.unexpected
    return recorded, model


def test_passes_equal_the_recording(recorded_pass, assert_gradients):
    check_recording(*recorded_pass, assert_gradients)


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
