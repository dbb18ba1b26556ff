# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics equal the original's; warnings about runs that learn nothing."""

import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import roc_auc_score

from electra_tf.pretraining.collapse import (
    CollapseWatch,
    predicts_one_class,
)
from electra_tf.pretraining.evaluation import Evaluation
from electra_tf.pretraining.metrics import (
    OUTPUTS,
    PretrainingMetrics,
    exact_auc,
)
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.pretraining.runner import watch_loss
from tests.conftest import read_json, refused
from tests.pretraining.conftest import FORWARD_PASSES

MASK_ID = 103


def test_the_cases_are_all_recorded_passes(golden_dir):
    paths = golden_dir.glob("forward_*.json")
    assert sorted(path.stem for path in paths) == sorted(
        f"forward_{name}" for name in FORWARD_PASSES
    )


@pytest.mark.parametrize("name", FORWARD_PASSES)
def test_every_original_metric_equals_the_original(name, golden_dir):
    path = golden_dir / f"forward_{name}.json"
    arrays = np.load(path.with_suffix(".npz"))
    info = read_json(path)
    weight = info["hparams"].get("disc_weight", 50.0)
    names = [*OUTPUTS, "input_mask"]
    picked = {name: arrays[name] for name in names if name in arrays}
    if "disc_logits" not in picked:
        picked.pop("sampled_tokids", None)
    computed = results(picked, weight, float(arrays["total_loss"]))
    recorded = info["metrics_one_batch"]
    actual = {name: computed[name] for name in recorded}
    assert actual == pytest.approx(recorded, rel=2e-6, abs=1e-7)
    if name == "v200_mlm":
        assert not [name for name in computed if name.startswith("disc_")]
        assert "sampled_masked_lm_accuracy" not in computed


def test_exact_auc_counts_ties_half():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 500)
    scores = rng.integers(0, 20, 500).astype(np.float32)
    reference = pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    assert exact_auc(labels, scores) == reference
    assert np.isnan(exact_auc(np.ones(3, int), np.arange(3)))


def hand_batch():
    """Return [CLS] 5 6 7 [SEP] [PAD]: 5, 6 masked, 7 drawn but shown."""
    return {
        "mlm_preds": np.array([[5, 5, 7, 0]]),
        "mlm_per_token_loss": np.array([[1.0, 2.0, 3.0, 9.0]]),
        "masked_input_ids": np.array([[101, MASK_ID, MASK_ID, 7, 102, 0]]),
        "masked_lm_positions": np.array([[1, 2, 3, 0]]),
        "masked_lm_ids": np.array([[5, 6, 7, 0]]),
        "masked_lm_weights": np.array([[1.0, 1.0, 1.0, 0.0]]),
        "sampled_tokids": np.array([[5, 9, 7, 0]]),
        "fake_input_ids": np.array([[101, 5, 9, 7, 102, 0]]),
        "fake_is_fake_tokens": np.array([[0, 0, 1, 0, 0, 0]]),
        "disc_logits": np.array([[-3.0, 1.0, 2.0, -1.0, -2.0, 9.0]]),
        "disc_probs": 1 / (1 + np.exp([[3.0, -1.0, -2.0, 1.0, 2.0, -9.0]])),
        "disc_preds": np.array([[0, 1, 1, 0, 0, 1]]),
        "disc_per_example_loss": np.array([0.5]),
        "input_mask": np.array([[1, 1, 1, 1, 1, 0]]),
    }


def results(batch, disc_weight=50.0, loss=4.0, **arguments):
    arguments |= {"mask_token_id": MASK_ID, "disc_weight": disc_weight}
    metrics = PretrainingMetrics(**arguments)
    metrics.update(batch, loss)
    return metrics.result()


def test_hand_computed_batch():
    counts = np.ones(200, np.int64)
    counts[[101, 102, 5, 7]] = [50, 50, 20, 10]  # 9 is the rarest shown token.
    result = results(hand_batch(), token_counts=counts)
    expected = {
        "loss": 4.0,
        "masked_lm_accuracy": 2 / 3,
        "masked_lm_loss": 2.0,
        "masked_lm_accuracy_at_mask": 0.5,
        "masked_lm_most_frequent_accuracy": 0.5,
        "sampled_masked_lm_accuracy": 2 / 3,
        "disc_accuracy": 4 / 5,
        "disc_precision": 0.5,
        "disc_recall": 1.0,
        "replaced_share": 1 / 5,
        "disc_majority_accuracy": 4 / 5,
        "disc_auc_real_tokens": 1.0,
        "disc_auc_frequency_rank": 1.0,
    }
    assert {n: result[n] for n in expected} == pytest.approx(expected)
    # A discriminator that is not trained has no metrics.
    names = results(hand_batch(), disc_weight=0.0)
    assert "sampled_masked_lm_accuracy" in names
    assert not [name for name in names if name.startswith("disc_")]
    # Precision is 0 if no token is predicted as replaced.
    batch = hand_batch() | {"disc_preds": np.zeros([1, 6], int)}
    assert results(batch)["disc_precision"] == 0.0


SHARE = 0.13
GUESSING = -SHARE * np.log(SHARE) - (1 - SHARE) * np.log(1 - SHARE)


@pytest.mark.slow  # Traces an evaluation.
@pytest.mark.parametrize(
    ("layer", "output"),
    [("discriminator_head", "disc_logits"), ("masked_lm_head", "mlm_per_tok")],
)
def test_outputs_that_are_not_finite_are_refused(
    data_dir, tiny_config, layer, output
):
    model = PretrainingModel(tiny_config(data_dir=data_dir))
    kernel = getattr(model, layer).dense.kernel
    kernel.assign(kernel * np.nan)
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    evaluation = Evaluation(model, strategy, lambda: False, print)
    message = f"evaluation, row 1: the model's output {output}.* is nan"
    refused(message, evaluation.run, None, lambda loss: None)


def test_collapse_is_reported_after_patience_evaluations_in_a_row():
    one_class = {"disc_predicted_replaced_share": 0.0}
    both = {"disc_predicted_replaced_share": 0.1}
    watch = CollapseWatch(3)
    assert [watch.update(r) for r in (one_class, one_class)] == [1, 2]
    assert watch.message is None
    assert watch.update(one_class) == 3
    assert "3 consecutive evaluations" in watch.message
    watch.update(both)
    assert watch.message is None
    continued = CollapseWatch(3, earlier=[both, one_class, one_class])
    continued.update(one_class)
    assert continued.message is not None


@pytest.mark.parametrize(
    ("share", "is_collapsed"),
    [(1e-5, True), (1 - 1e-5, True), (0.01, False)],
)
def test_a_stray_token_of_the_other_class_does_not_hide_a_collapse(
    share, is_collapsed
):
    result = {"disc_predicted_replaced_share": share}
    assert predicts_one_class(result) is is_collapsed


def test_without_a_discriminator_there_is_no_collapse():
    assert not predicts_one_class({})


def rows(relative_losses, every=100):
    """Log rows whose loss is a share of the guessing loss, with noise."""
    random = np.random.default_rng(0)
    for i, relative in enumerate(relative_losses):
        noise = 1 + 0.02 * random.standard_normal()
        yield {
            "step": (i + 1) * every,
            "disc_loss": GUESSING * relative * noise,
            "replaced_share": SHARE,
        }


def alarms(config, series):
    watch = watch_loss(config)
    messages = {row["step"]: watch.update(row) for row in series}
    return {step: text for step, text in messages.items() if text}


def test_a_loss_no_better_than_guessing_is_reported_once_a_window(tiny_config):
    messages = alarms(tiny_config(num_warmup_steps=1000), rows([1.002] * 180))
    assert [*messages] == [6000, 11000, 16000]
    assert "over the last 5,000 steps" in messages[6000]
    assert f"tokens ({GUESSING:.4f})" in messages[6000]
    assert "generator_hidden_size" not in messages[6000]
    messages = alarms(tiny_config(collapse_window=500), rows([1.0] * 12))
    assert [*messages] == [600, 1100]


def test_healthy_starts_cause_no_warning_and_a_later_collapse_does(tiny_config):
    plateau = [3.0] * 2 + [0.98] * 38
    config = tiny_config(num_warmup_steps=500)
    assert not alarms(config, rows([*plateau, *np.linspace(0.98, 0.7, 100)]))
    assert not alarms(config, rows([0.99] * 200))
    # A high loss in the warm-up is no sign of anything.
    config = tiny_config(num_warmup_steps=2000)
    assert not alarms(config, rows([1.5] * 20 + [0.98] * 100))
    config = tiny_config(num_warmup_steps=0)
    assert [*alarms(config, rows([0.8] * 60 + [1.0] * 100))] == [15000]


def test_a_continued_run_goes_on_with_its_window(tiny_config):
    config = tiny_config()
    series = [*rows([1.0] * 60)]
    watch = watch_loss(config, series[:40])
    alarm_steps = [row["step"] for row in series[40:] if watch.update(row)]
    assert alarm_steps == [*alarms(config, series)] == [5100]


@pytest.mark.parametrize(
    "hparams",
    [
        {"collapse_window": 0},
        {"electra_objective": False},
        {"electra_objective": False, "electric_objective": True},
    ],
)
def test_other_losses_raise_no_alarm(tiny_config, hparams):
    assert not alarms(tiny_config(**hparams), rows([2.0] * 200))
