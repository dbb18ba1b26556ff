# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two stages and adversarial training: losses, gradients, frozen variables."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax, softmax

from electra_tf.checkpoints.formats import open_weights
from electra_tf.pretraining.build import build_optimizer
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.training.checkpointing import Checkpoints
from tests.conftest import differences, refused
from tests.pretraining.conftest import (
    TWO_STAGE,
    batches,
    features_of,
    make_loop,
    masked_at,
)

ADVERSARIAL = {"training_schedule": "adversarial", "temperature": 0.7}
SCOPES = ("electra/", "discriminator_predictions/")


def test_adversarial_losses_equal_their_formulas(tiny_config, roughen):
    hparams = {"mask_prob": 0.4, "disallow_correct": True, "gen_weight": 3.0}
    config = tiny_config(**ADVERSARIAL, **hparams)
    model = PretrainingModel(config)
    roughen(model.variables)
    (batch,) = batches(1, shortest=8)
    computed = model.compute(batch)
    out = {n: np.float64(v) for n, v in computed.items() if np.ndim(v) < 4}
    at = np.int64(out["masked_lm_positions"])
    sampled = np.int64(out["sampled_tokids"])
    weights = out["masked_lm_weights"]

    def chosen(name):
        return np.take_along_axis(out[name], at, 1)

    logits, is_fake = chosen("disc_logits"), chosen("fake_is_fake_tokens")
    rewards = np.logaddexp(0, np.where(is_fake == 1, -logits, logits))
    np.testing.assert_allclose(out["rewards"], rewards, atol=1e-6)
    layer = np.float64(computed["generator_layers"])[-1]
    vectors = np.take_along_axis(layer, at[..., None], 1)
    kernel, bias = map(np.float64, model.reward_baseline.variables)
    expected = (vectors @ kernel + bias)[..., 0]
    baseline = np.logaddexp(0, -expected)
    scores = out["mlm_logits"] / config.temperature
    true_ids = np.int64(out["masked_lm_ids"])[..., None]
    scores[np.arange(200) == true_ids] -= 1000.0
    log_p = np.take_along_axis(log_softmax(scores, -1), sampled[..., None], 2)
    shown = chosen("fake_input_ids") == sampled
    # Some positions are drawn twice, so that neither sample is shown.
    assert (~shown & (weights > 0)).any()

    def mean(values, where=True):
        return (values * weights * where).sum() / (weights.sum() + 1e-6)

    truth = np.exp(-rewards)
    losses = np.logaddexp(0, expected) - truth * expected
    formulas = {
        "policy_loss": mean((baseline - rewards) * log_p[..., 0], shown),
        "baseline_loss": mean(losses, shown),
        "reward": mean(rewards),
        "baseline": mean(baseline),
    }
    computed = {name: float(out[name]) for name in formulas}
    assert computed == pytest.approx(formulas, rel=1e-6, abs=1e-6)
    generator = formulas["policy_loss"] + formulas["baseline_loss"]
    total = 3.0 * generator + 50.0 * out["disc_loss"]
    assert out["total_loss"] == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_mean_gradient_is_rewards(tmp_path, tiny_config, roughen, temperature):
    """Check the gradient of the output biases over every sample."""
    path = tmp_path / "vocab_20.txt"
    tokens = [f"word{i}" for i in range(15)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    path.write_text("\n".join([*special, *tokens]) + "\n")
    config = tiny_config(
        vocab_file=str(path),
        vocab_size=20,
        max_seq_length=8,
        max_predictions_per_seq=1,
        training_schedule="adversarial",
        temperature=temperature,
    )
    model = PretrainingModel(config)
    roughen(model.variables)
    ids = np.int32([[2, 7, 9, 11, 5, 13, 19, 3]])
    features = features_of(ids)
    masked = masked_at(ids, [[3]], mask_id=4)
    bias = model.masked_lm_head.output_bias

    @tf.function
    def sample_gradient(token):
        with tf.GradientTape() as tape:
            out = model.compute(features, masked, token[None, None])
            loss = out["policy_loss"]
        gradient = tape.gradient(loss, bias)
        return gradient, out["rewards"][0, 0], out["mlm_logits"][0, 0]

    samples = [sample_gradient(tf.constant(token)) for token in range(20)]
    columns = zip(*samples, strict=True)
    gradients, rewards, logits = (np.float64(column) for column in columns)
    assert np.ptp(rewards) > 0.1

    def expected_reward(change):
        return softmax((logits[0] + change) / temperature) @ rewards

    steps = 1e-4 * np.eye(20)
    changes = [expected_reward(s) - expected_reward(-s) for s in steps]
    uphill = np.array(changes) / 2e-4
    probs = softmax(logits[0] / temperature)
    np.testing.assert_allclose(probs @ gradients, -uphill, atol=1e-6)


def test_gradients_do_not_flow_through_rewards_and_baseline(tiny_config):
    model = PretrainingModel(tiny_config(**ADVERSARIAL))
    (batch,) = batches(1)
    with tf.GradientTape(persistent=True) as tape:
        out = model.compute(batch, training=True)
        discriminator = model.config.disc_weight * out["disc_loss"]

    def reached(loss, layer):
        gradients = tape.gradient(loss, layer.trainable_variables)
        return [gradient for gradient in gradients if gradient is not None]

    assert reached(out["policy_loss"], model.generator.blocks[0])
    assert reached(out["baseline_loss"], model.reward_baseline)
    assert not reached(out["policy_loss"], model.reward_baseline)
    assert not reached(out["policy_loss"], model.discriminator.blocks[0])
    assert not reached(out["policy_loss"], model.discriminator_head)
    assert not reached(out["baseline_loss"], model.generator)
    assert not reached(out["baseline_loss"], model.masked_lm_head)
    block = model.discriminator.blocks[0]
    both = reached(out["total_loss"], block), reached(discriminator, block)
    for whole, other in zip(*both, strict=True):
        np.testing.assert_array_equal(whole, other)


def test_the_rewards_baseline_is_in_no_export(tiny_config, tmp_path):
    model = PretrainingModel(tiny_config(**ADVERSARIAL))
    assert "reward_baseline" in {v.name.split("/")[0] for v in model.variables}
    model.save_pretrained(str(tmp_path / "saved"))
    run = Checkpoints(
        str(tmp_path / "run"),
        model=model,
        optimizer=build_optimizer(model.config, model),
        step=tf.Variable(3, dtype=tf.int64),
        position={},
        keep=0,
    )
    path = run.save()

    def has_baseline(folder, whole):
        names = open_weights(folder, whole).specs
        return any("reward_baseline" in name for name in names)

    assert not has_baseline(str(tmp_path / "saved"), whole=True)
    assert not has_baseline(path, whole=False)
    assert has_baseline(path, whole=True)
    run.restore(path)


def moved(now, before):
    """Return True if all changed except key biases, which have no gradient."""
    names = [name for name in now if not name.endswith("key/bias:0")]
    return all((now[name] != before[name]).any() for name in names)


def train_step(loop):
    """Train a step; return its logged values by name."""
    loop.train(1)
    chunk = loop.take_chunk()
    return dict(zip(chunk.names, chunk.values[0], strict=True))


def weights_by_network(model):
    """Return the discriminator's values by name, and the others."""
    values = {v.name: v.numpy() for v in model.variables}
    discriminator = {n: v for n, v in values.items() if n.startswith(SCOPES)}
    others = {n: v for n, v in values.items() if n not in discriminator}
    return discriminator, others


@pytest.mark.slow
@pytest.mark.parametrize(
    "hparams",
    [{}, {"gradient_accumulation_steps": 2, "adam_bias_correction": True}],
    ids=["plain", "micro_batches"],
)
def test_one_network_is_trained_at_a_time(tiny_config, hparams):
    config = tiny_config(
        **TWO_STAGE,
        num_train_steps=6,
        num_warmup_steps=2,
        learning_rate=0.01,
        weight_decay_rate=0.1,
        **hparams,
    )
    model, optimizer, loop = make_loop(config, 6)

    fresh, before = weights_by_network(model)
    first = [train_step(loop) for _ in range(3)]
    assert all("disc_loss" not in values for values in first)
    untouched, generator = weights_by_network(model)
    assert differences(untouched, fresh) == []
    assert moved(generator, before)
    slots = {n: slot.numpy() for n, slot in optimizer.m.items()}
    assert not any(v.any() for n, v in slots.items() if n.startswith(SCOPES))
    second = [train_step(loop)]
    copied, frozen = weights_by_network(model)
    assert differences(frozen, generator) == []
    changes = {}  # in units of the learning rate
    for name, value in copied.items():
        start = fresh[name]
        if name.startswith("electra/"):
            start = frozen[name.replace("electra/", "generator/", 1)]
        change = np.abs(value - start).max()
        changes[name] = change / second[0]["learning_rate"]
    # The copy differs by one update, at most the rate, and the decay.
    assert {name: c for name, c in changes.items() if c >= 4} == {}
    if config.adam_bias_correction:
        # With bias correction, Adam's first step is as large as the rate.
        bias = "discriminator_predictions/dense_1/bias:0"
        assert changes[bias] == pytest.approx(1, rel=0.01)
    second += [train_step(loop) for _ in range(2)]
    weighted = [config.disc_weight * values["disc_loss"] for values in second]
    losses = [values["total_loss"] for values in second]
    assert losses == pytest.approx(weighted, rel=1e-6)
    trained, frozen = weights_by_network(model)
    assert differences(frozen, generator) == []
    assert moved(trained, copied)
    generator_slots, later_slots = (
        {name: moments[name] for name in slots if not name.startswith(SCOPES)}
        for moments in (slots, optimizer.m)
    )
    assert differences(later_slots, generator_slots) == []
    rates = [[v["learning_rate"] for v in stage] for stage in (first, second)]
    assert rates[0] == rates[1] and rates[0][-1] == 0.0


def test_two_stages_of_unequal_sizes_and_by_fit_are_refused(tiny_config):
    unequal = tiny_config(**(TWO_STAGE | {"embedding_size": 8}))
    refused("embedding_size is 16 .* and 8 for", PretrainingModel, unequal)
    model = PretrainingModel(tiny_config(**TWO_STAGE))
    refused("compile: training_schedule 'two_stage'", model.compile)
