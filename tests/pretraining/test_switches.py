# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Switches for speed and memory do not change the training."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.modeling.precision import LossScale
from electra_tf.plan import machine
from electra_tf.pretraining import sampling
from electra_tf.pretraining.model import build_model
from tests.conftest import differences, marked_heavy
from tests.pretraining.conftest import SIZES, batches, make_loop

pytestmark = pytest.mark.slow  # Each test traces several graphs.

RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
NO_DROPOUT = SIZES | dict.fromkeys(RATES, 0.0)
# All losses of the remaining objectives occur in these objectives, too.
OBJECTIVES = {
    "electra": {},
    "electric": {"electra_objective": False, "electric_objective": True},
    "adversarial": {"training_schedule": "adversarial"},
    # Leaves row-wise gradients of the embedding table.
    "uniform_generator": {"uniform_generator": True},
    "replace_mlm": {"objective": "replace_mlm"},
    "all_tokens_mlm": {"objective": "all_tokens_mlm"},
}


def first_gradients(config):
    """Return dense gradients of the first step by variable name."""
    model = build_model(config)
    batch = next(batches(1, config.train_batch_size))

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            outputs = model.compute(batch, training=True)
        dense = tape.gradient(outputs["total_loss"], model.trainable_variables)
        return [tf.convert_to_tensor(gradient) for gradient in dense]

    names = [variable.name for variable in model.trainable_variables]
    return dict(zip(names, gradients(), strict=True))


def train(config, steps=3):
    """Train a model; return the logged values by name, and the weights."""
    scaling = LossScale.of(config.mixed_precision)
    model, _, loop = make_loop(config, steps, loss_scale=scaling)
    loop.train(tf.constant(steps))
    chunk = loop.take_chunk()
    values = dict(zip(chunk.names, chunk.values.T, strict=True))
    return values, {v.name: v.numpy() for v in model.trainable_variables}


def likeliest_token(logits, uniform):
    return tf.argmax(logits, -1, output_type=tf.int32)


@pytest.fixture
def likeliest_samples(monkeypatch):
    """Take the likeliest tokens, because micro-batches draw separately."""
    monkeypatch.setattr(sampling, "sample_from_softmax", likeliest_token)


@pytest.mark.parametrize(
    "objective",
    [
        "electra",
        "adversarial",
        "uniform_generator",
        "all_tokens_mlm",
        *marked_heavy("electric", "replace_mlm"),
    ],
)
def test_micro_batches_sum_to_the_whole_step(
    tiny_config, likeliest_samples, objective, monkeypatch
):
    def run(parts, threads=2):
        """Train; with one thread per operation, two cores share a batch."""
        monkeypatch.setattr(machine, "machine_cores", lambda: 2)
        monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        getter = "get_intra_op_parallelism_threads"
        monkeypatch.setattr(tf.config.threading, getter, lambda: threads)
        return train(
            tiny_config(
                train_batch_size=8,
                learning_rate=1e-2,
                model_hparam_overrides={**NO_DROPOUT, "num_hidden_layers": 1},
                gradient_accumulation_steps=parts,
                **OBJECTIVES[objective],
            )
        )

    whole, weights = run(1)
    electra = objective == "electra"
    # (count of micro-batches, threads of an operation)
    for parts in ((2,), (8,), (1, 1), (4, 1)) if electra else ((1, 1),):
        divided, values = run(*parts)
        assert differences(divided, whole, rtol=1e-5) == []
        assert differences(values, weights, atol=5e-6) == []


@pytest.mark.parametrize(
    "hparams",
    [*marked_heavy({}), OBJECTIVES["electric"] | {"mixed_precision": "bf16"}],
)
def test_recomputed_blocks_give_the_same_gradients(tiny_config, hparams):
    """Train with dropout: both computations must draw equal masks."""
    stored, again = (
        first_gradients(
            tiny_config(train_batch_size=8, recompute_grad=recompute, **hparams)
        )
        for recompute in (False, True)
    )
    assert {gradient.dtype for gradient in stored.values()} == {tf.float32}
    assert [n for n, g in stored.items() if not np.isfinite(g).all()] == []
    assert differences(again, stored, rtol=1e-6, atol=1e-7) == []


@pytest.fixture(scope="module")
def train_at(tiny_pretraining, tmp_path_factory):
    """Return a function that trains at a precision without random samples."""
    folder = str(tmp_path_factory.mktemp("precision"))

    @functools.cache
    def run(precision):
        settings = {
            **tiny_pretraining,
            "train_batch_size": 8,
            "learning_rate": 1e-3,
            "model_hparam_overrides": {**NO_DROPOUT, "hidden_size": 32},
            "mixed_precision": precision,
        }
        config = PretrainingConfig.create("tiny", folder, **settings)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sampling, "sample_from_softmax", likeliest_token)
            return train(config, steps=20)

    return run


def test_a_run_in_float32_learns(train_at):
    first, last = np.split(train_at("")[0]["mlm_loss"], 2)
    assert last.mean() < first.mean() - 0.03


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains_like_float32(train_at, precision):
    (plain, weights), (half, half_weights) = train_at(""), train_at(precision)
    names = ("total_loss", "mlm_loss", "disc_loss")
    plain_losses, half_losses = (
        {name: values[name] for name in names} for values in (plain, half)
    )
    assert len(differences(half_losses, plain_losses)) == len(names)
    assert differences(half_losses, plain_losses, rtol=0.03) == []
    assert np.isfinite(half["grad_norm"]).all()
    np.testing.assert_allclose(half["grad_norm"], plain["grad_norm"], rtol=0.2)
    assert {v.dtype for v in half_weights.values()} == {np.dtype("float32")}
    assert differences(half_weights, weights, atol=0.01) == []
    if precision == "fp16":
        assert half["skipped_updates"][-1] == half["skipped"].sum()
    else:
        assert "loss_scale" not in half


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_outputs_and_variables_stay_float32(tiny_config, precision):
    model = build_model(tiny_config(mixed_precision=precision))
    outputs = model.compute(next(batches(1)), training=True)
    dtype = {"bf16": tf.bfloat16, "fp16": tf.float16}[precision]
    half = {n for n, v in outputs.items() if tf.as_dtype(v.dtype) == dtype}
    assert not half  # Logits, losses, probabilities.
    encoded = model.discriminator(*next(batches(1)).values())
    assert encoded.layers[0].dtype == dtype  # Blocks compute in half precision.
    assert encoded.sequence_output.dtype == tf.float32
    assert {v.dtype for v in model.variables} == {tf.float32}
