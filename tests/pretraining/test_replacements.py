# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Easy starts, separate networks and correction: formulas and draws."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax, softmax

from electra_tf.checkpoints.formats import open_weights
from electra_tf.optimization.optimizer import variable_name
from electra_tf.pretraining import sampling
from electra_tf.pretraining.build import build_optimizer
from electra_tf.pretraining.logged_values import step_values
from electra_tf.pretraining.metrics import PretrainingMetrics, metric_inputs
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.pretraining.trained_variables import generator_variables
from tests.conftest import differences
from tests.pretraining.conftest import (
    TWO_STAGE,
    batches,
    features_of,
    make_loop,
    masked_at,
)

DRAWS = 50_000


@pytest.mark.parametrize(
    ("step", "steps", "floor", "share"),
    [
        (0, 4, 0.0, 1.0),
        (1, 4, 0.0, 0.75),
        (4, 4, 0.0, 0.0),
        (9, 4, 0.0, 0.0),
        (3, 4, 0.5, 0.5),
        (7, 0, 0.25, 0.25),
        (1_000_000, 16_000_000, 0.0, 0.9375),
    ],
)
def test_the_share_falls_with_the_step_alone(step, steps, floor, share):
    step = tf.constant(step, tf.int64)
    assert float(sampling.unigram_share(step, steps, floor)) == share


def test_the_mixture_equals_its_formula():
    random = np.random.RandomState(0)
    logits = random.normal(size=[2, 3, 11]) * 5
    counts = random.randint(0, 4, 11)
    shares = counts / counts.sum()
    mixed = sampling.mixture_logits(
        tf.constant(logits, tf.float32), shares, tf.constant(0.3)
    )
    expected = np.log(0.3 * shares + 0.7 * softmax(logits, -1))
    np.testing.assert_allclose(mixed, expected, atol=1e-5)
    shares_of_mixture = softmax(np.float64(mixed), -1)
    np.testing.assert_allclose(shares_of_mixture, np.exp(expected), atol=1e-6)


@pytest.fixture
def counted(tiny_config, roughen):
    """Return a factory of models with known counts of tokens from 104 on."""

    def make(**hparams):
        model = PretrainingModel(tiny_config(**hparams))
        roughen(model.variables)
        counts = np.random.RandomState(1).randint(0, 50, 200)
        counts[:104] = 0
        model.token_counts = counts.copy()
        model.token_counts[100] = 1000  # [UNK] is never drawn
        return model, counts

    return make


@pytest.mark.parametrize(
    ("share", "hparams"),
    [
        (0.0, {}),
        (0.3, {}),
        (1.0, {}),
        (0.5, {"temperature": 2.0}),
        (0.5, {"disallow_correct": True}),
        (1.0, {"disallow_correct": True, "two_tower_generator": True}),
    ],
    ids=str,
)
def test_draws_follow_the_mixture(counted, share, hparams):
    model, counts = counted(**hparams)
    ids = np.full([DRAWS // 10, 16], 120, np.int32)
    positions = np.tile(np.arange(1, 11, dtype=np.int32), [len(ids), 1])
    out = model.compute(
        features_of(ids),
        masked_at(ids, positions),
        seed=tf.constant([0, 7]),
        unigram_share=tf.constant(share),
    )
    scores = np.float64(out["mlm_logits"][0]) / model.config.temperature
    mixed = share * counts / counts.sum() + (1 - share) * softmax(scores, -1)
    if model.config.disallow_correct:
        mixed[:, 120] = 0
    mixed /= mixed.sum(-1, keepdims=True)
    expected = mixed.mean(0)
    drawn = np.bincount(out["sampled_tokids"].numpy().ravel(), minlength=200)
    error = np.sqrt((mixed * (1 - mixed)).mean(0) / DRAWS)
    frequent = expected * DRAWS > 20
    assert frequent.sum() > 10
    deviations = (drawn / DRAWS - expected)[frequent] / error[frequent]
    # 3 errors for each of up to 200 tokens: one in 370 is beyond by chance.
    assert (np.abs(deviations) > 3).sum() <= 1
    assert np.abs(deviations).max() < 4
    assert abs(np.square(deviations).mean() - 1) < 3 * np.sqrt(
        2 / frequent.sum()
    )
    assert not drawn[expected == 0].any()


def test_evaluation_draws_from_the_generator_alone(counted):
    (batch,) = batches(1)
    plain, mixing = counted()[0], counted(unigram_steps=10)[0]
    seed = tf.constant([0, -1])
    a, b = (model.compute(batch, seed=seed) for model in (plain, mixing))
    assert a.keys() == b.keys()
    for name in ("sampled_tokids", "mlm_loss", "disc_loss", "total_loss"):
        np.testing.assert_array_equal(a[name], b[name], name)


def test_the_mixture_changes_draws_and_no_generator_loss(counted):
    model, _ = counted(unigram_steps=10)
    (batch,) = batches(1)
    seed = tf.constant([0, 3])
    share = model.scheduled(tf.constant(0, tf.int64))
    assert {name: float(value) for name, value in share.items()} == {
        "unigram_share": 1.0
    }
    plain = model.compute(batch, seed=seed)
    mixed = model.compute(batch, seed=seed, **share)
    assert (plain["sampled_tokids"] != mixed["sampled_tokids"]).numpy().any()
    np.testing.assert_array_equal(plain["mlm_loss"], mixed["mlm_loss"])
    labels = mixed["fake_input_ids"] != batch["input_ids"]
    np.testing.assert_array_equal(mixed["fake_is_fake_tokens"], labels)


@pytest.mark.parametrize(("share", "learns"), [(1.0, False), (0.5, True)])
def test_the_policy_gradient_of_a_mixture_is_finite(counted, share, learns):
    model, _ = counted(training_schedule="adversarial", unigram_steps=4)
    (batch,) = batches(1)
    variable = model.masked_lm_head.output_bias
    with tf.GradientTape() as tape:
        out = model.compute(batch, unigram_share=tf.constant(share))
    gradient = tape.gradient(out["policy_loss"], variable).numpy()
    assert np.isfinite(gradient).all()
    assert gradient.any() == learns


# Correction.


@pytest.mark.parametrize(
    "hparams",
    [{}, {"objective": "electra_15"}, {"untied_generator": False}],
    ids=str,
)
def test_correction_equals_its_formula(tiny_config, roughen, hparams):
    config = tiny_config(correction_weight=5.0, mask_prob=0.4, **hparams)
    model = PretrainingModel(config)
    roughen(model.variables)
    (batch,) = batches(1)
    out = model.compute(batch)
    weights = np.float64(out["masked_lm_weights"])
    log_p = log_softmax(np.float64(out["token_logits"]), -1)
    targets = np.int64(out["masked_lm_ids"])
    of_true = np.take_along_axis(log_p, targets[..., None], -1)[..., 0]
    expected = -(of_true * weights).sum() / weights.sum()
    assert float(out["token_loss"]) == pytest.approx(expected, rel=1e-6)
    total = float(out["mlm_loss"]) + 50 * float(out["disc_loss"])
    assert float(out["total_loss"]) == pytest.approx(
        total + 5 * expected, rel=1e-6
    )
    assert {"disc_loss", "token_loss"} <= step_values(batch, out).keys()


def test_a_correction_leaves_detection_as_it_is(tiny_config):
    (batch,) = batches(1)
    outputs_by_weight = [
        PretrainingModel(tiny_config(correction_weight=c)).compute(batch)
        for c in (0.0, 1.0)
    ]
    for name in ("mlm_loss", "disc_loss", "disc_logits", "sampled_tokids"):
        np.testing.assert_array_equal(
            outputs_by_weight[0][name], outputs_by_weight[1][name], name
        )


def test_evaluations_report_detection_and_correction(tiny_config):
    model = PretrainingModel(tiny_config(correction_weight=1.0))
    (batch,) = batches(1)
    out = model.compute(batch)
    evaluation = PretrainingMetrics(mask_token_id=103, disc_weight=50.0)
    arrays = metric_inputs(batch, out)
    evaluation.update({n: np.asarray(v) for n, v in arrays.items()}, 1.0)
    result = evaluation.result()
    assert result["token_loss"] == pytest.approx(
        float(out["token_loss"]), rel=1e-6
    )
    assert {"disc_auc_real_tokens", "disc_loss", "token_accuracy"} <= set(
        result
    )


def test_a_correction_leaves_the_saved_discriminator_equal(
    tiny_config, tmp_path
):
    folders = []
    for weight in (0.0, 2.0):
        model = PretrainingModel(tiny_config(correction_weight=weight))
        folders.append(str(tmp_path / str(weight)))
        model.save_pretrained(folders[-1])
    plain, corrected = map(open_weights, folders)
    assert plain.shapes == corrected.shapes
    assert plain.hparams == corrected.hparams
    assert differences(dict(corrected), dict(plain)) == []
    texts = [
        [
            pathlib.Path(folder, name).read_text()
            for name in ("electra_config.json", "vocab.txt")
        ]
        for folder in folders
    ]
    assert texts[0] == texts[1]


# Networks that learn apart.

SHARING = {
    "embeddings": {},
    "none": {"embedding_sharing": "none"},
    "token": {"embedding_sharing": "token"},
    "disentangled": {"embedding_sharing": "gradient_disentangled"},
    "towers": {"two_tower_generator": True},
}


@pytest.mark.parametrize("name", SHARING)
def test_variables_of_the_generator_alone_are_in_no_other_network(
    tiny_config, name
):
    model = PretrainingModel(tiny_config(**SHARING[name]))
    exclusive = {variable_name(v) for v in generator_variables(model)}
    everything = {variable_name(v) for v in model.trainable_variables}
    scopes = ("generator", "cloze_predictions")
    expected = {n for n in everything if n.startswith(scopes)}
    assert exclusive == expected and exclusive != everything


def gradients_of(variables):
    random = np.random.RandomState(0)
    return [tf.constant(random.normal(size=v.shape)) for v in variables]


def test_each_network_is_clipped_by_its_own_norm(tiny_config):
    config = tiny_config(
        clip_networks_apart=True,
        num_warmup_steps=0,
        adam_beta_1=0.0,
    )
    model = PretrainingModel(config)
    optimizer = build_optimizer(config, model)
    exclusive = {variable_name(v) for v in generator_variables(model)}
    variables = model.trainable_variables
    gradients = [
        tf.cast(g, tf.float32)
        * (0.001 if variable_name(v) in exclusive else 3.0)
        for g, v in zip(gradients_of(variables), variables, strict=True)
    ]
    update = optimizer.update(gradients, tf.constant(0, tf.int64))
    norms = {}
    for network in ("generator", "discriminator"):
        total = sum(
            np.square(np.float64(g)).sum()
            for g, v in zip(gradients, variables, strict=True)
            if (variable_name(v) in exclusive) == (network == "generator")
        )
        norms[network] = np.sqrt(total)
    logged = {name: float(update[f"{name}_grad_norm"]) for name in norms}
    assert logged == pytest.approx(norms, rel=1e-5)
    whole = np.hypot(*norms.values())
    assert float(update["grad_norm"]) == pytest.approx(whole, rel=1e-5)
    assert norms["generator"] < 1 < norms["discriminator"]
    clipped = {}
    for gradient, variable in zip(gradients, variables, strict=True):
        name = variable_name(variable)
        network = "generator" if name in exclusive else "discriminator"
        clipped[name] = np.float64(gradient) / max(1.0, norms[network])
    # Without a first moment the slot is the clipped gradient.
    assert differences(optimizer.m, clipped, rtol=1e-4) == []


@pytest.mark.parametrize("kind", ["original", "adamw"])
def test_variables_of_the_generator_alone_have_its_rate(tiny_config, kind):
    def weights(**hparams):
        config = tiny_config(
            optimizer=kind, num_warmup_steps=0, weight_decay_rate=0.0, **hparams
        )
        model = PretrainingModel(config)
        optimizer = build_optimizer(config, model)
        variables = model.trainable_variables
        before = {variable_name(v): v.numpy() for v in variables}
        gradients = [tf.cast(g, tf.float32) for g in gradients_of(variables)]
        optimizer.update(gradients, tf.constant(0, tf.int64))
        exclusive = {variable_name(v) for v in generator_variables(model)}
        return exclusive, {
            variable_name(v): v.numpy() - before[variable_name(v)]
            for v in variables
        }

    rate = {"learning_rate": 0.5}
    exclusive, full = weights(**rate)
    _, slow = weights(generator_learning_rate=0.125, **rate)
    _, same = weights(generator_learning_rate=0.5, **rate)
    for name, change in full.items():
        share = 0.25 if name in exclusive else 1.0
        np.testing.assert_allclose(slow[name], share * change, atol=1e-6)
        np.testing.assert_array_equal(same[name], change)


@pytest.mark.slow
def test_a_stage_of_the_generator_has_its_rate(tiny_config):
    config = tiny_config(
        **TWO_STAGE, generator_learning_rate=0.0, learning_rate=0.01
    )
    model, _, loop = make_loop(config, 1)
    before = [v.numpy() for v in model.generator.trainable_variables]
    loop.train(1)
    for old, variable in zip(
        before, model.generator.trainable_variables, strict=True
    ):
        np.testing.assert_array_equal(old, variable)


ALL_ON = {
    "unigram_steps": 3,
    "unigram_floor": 0.1,
    "generator_learning_rate": 2e-4,
    "clip_networks_apart": True,
    "correction_weight": 5.0,
}


@pytest.mark.slow
@pytest.mark.parametrize("micro_batches", [2, 4])
def test_micro_batches_mix_and_correct_like_the_whole_batch(
    data_dir, tiny_config, micro_batches
):
    def train(count):
        config = tiny_config(
            data_dir=data_dir,
            gradient_accumulation_steps=count,
            model_hparam_overrides={
                **tiny_config().model_hparam_overrides,
                "hidden_dropout_prob": 0.0,
                "attention_probs_dropout_prob": 0.0,
            },
            **ALL_ON,
        )
        model, _, loop = make_loop(config, 4)
        loop.train(4)
        chunk = loop.take_chunk()
        columns = dict(zip(chunk.names, chunk.values.T, strict=True))
        return model, columns

    (whole, values), (cut, cut_values) = train(1), train(micro_batches)
    np.testing.assert_allclose(
        values["unigram_share"], [1, 2 / 3, 1 / 3, 0.1], rtol=1e-6
    )
    assert values.keys() == cut_values.keys()
    assert {"token_loss", "disc_loss", "generator_grad_norm"} <= values.keys()
    for name, column in values.items():
        np.testing.assert_allclose(
            cut_values[name], column, rtol=1e-4, err_msg=name
        )
    for a, b in zip(whole.variables, cut.variables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "hparams", [{"mixed_precision": "bf16"}, {"jit_compile": True}], ids=str
)
def test_half_precision_and_xla_train_with_mixture_and_correction(
    data_dir, tiny_config, hparams
):
    config = tiny_config(data_dir=data_dir, **ALL_ON, **hparams)
    _, _, loop = make_loop(config, 4)
    loop.train(4)
    assert np.isfinite(loop.take_chunk().values).all()


@pytest.mark.slow
def test_an_overflow_skips_both_networks(data_dir, tiny_config):
    from electra_tf.modeling.precision import LossScale

    config = tiny_config(data_dir=data_dir, mixed_precision="fp16", **ALL_ON)
    scale = LossScale(initial=2.0**120)
    model, _, loop = make_loop(config, 1, loss_scale=scale)
    before = [v.numpy() for v in model.trainable_variables]
    loop.train(1)
    chunk = loop.take_chunk()
    values = dict(zip(chunk.names, chunk.values[0], strict=True))
    assert values["skipped"] == 1
    assert values["grad_norm"] == values["generator_grad_norm"] == 0
    for old, variable in zip(before, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(old, variable)
