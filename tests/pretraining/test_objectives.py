# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Objectives equal the papers' formulas; unigram draws follow the counts."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, log_softmax

from electra_tf.data.tfrecords import ExampleEncoder, frame_record
from electra_tf.files.digests import write_digests
from electra_tf.pretraining import losses
from electra_tf.pretraining.build import prepare_model
from electra_tf.pretraining.logged_values import step_values
from electra_tf.pretraining.metrics import PretrainingMetrics, metric_inputs
from electra_tf.pretraining.model import PretrainingModel, build_model
from electra_tf.pretraining.unigram import TOKEN_COUNTS, read_counts
from tests.conftest import refused
from tests.pretraining.conftest import features_of, masked_at

OBJECTIVES = ("electra_15", "replace_mlm", "all_tokens_mlm")
LENGTH = 16
# Positions drawn with replacement: row 0 has position 3 twice, so that the
# input gets the mean of the samples 150 and 161; zeros are unused slots.
POSITIONS = np.array([[3, 3, 5, 9, 0], [2, 7, 2, 0, 0]], np.int32)
SAMPLES = np.array([[150, 161, 120, 111, 199], [140, 141, 141, 1, 1]], np.int32)


@pytest.fixture
def batch():
    """Return features with padding, and the masked inputs."""
    ids = np.random.RandomState(0).randint(104, 200, [2, LENGTH])
    mask = np.arange(LENGTH) < [[16], [9]]
    ids[0, 9] = SAMPLES[0, 3]  # The generator samples the original token.
    ids = (ids * mask).astype(np.int32)
    used = POSITIONS > 0
    masked = ids.copy()
    np.put_along_axis(masked, POSITIONS * used, 103, 1)
    masked[:, 0] = ids[:, 0]
    return (
        {
            "input_ids": ids,
            "input_mask": mask.astype(np.int32),
            "segment_ids": np.zeros_like(ids),
        },
        {
            "input_ids": masked,
            "masked_lm_positions": POSITIONS,
            "masked_lm_ids": np.take_along_axis(ids, POSITIONS, 1) * used,
            "masked_lm_weights": used.astype(np.float32),
        },
    )


@pytest.fixture
def compute(tiny_config, roughen, batch):
    def run(**hparams):
        model = PretrainingModel(tiny_config(**hparams))
        roughen(model.variables)
        features = {n: tf.constant(v) for n, v in batch[0].items()}
        outputs = model.compute(features, batch[1], tf.constant(SAMPLES))
        return model.config, features, outputs

    return run


def expected_loss(objective, features, outputs):
    """Return the formula's value from the model's logits."""
    ids, mask = features["input_ids"], features["input_mask"] > 0
    shown = ids.copy()
    for row in range(len(ids)):
        for position in set(POSITIONS[row]) - {0}:
            drawn = SAMPLES[row][POSITIONS[row] == position]
            shown[row, position] = drawn.sum() // len(drawn)
    np.testing.assert_array_equal(outputs["fake_input_ids"], shown)
    replaced = shown != ids
    if objective == "replace_mlm":
        log_p = log_softmax(np.float64(outputs["token_logits"]), -1)
        true = np.take_along_axis(ids, POSITIONS, 1)
        of_true = np.take_along_axis(log_p, true[..., None], -1)[..., 0]
        return -of_true[POSITIONS > 0].mean()
    logits = np.float64(outputs["disc_logits"])
    if objective == "electra_15":
        chosen = [(r, p) for r in range(2) for p in set(POSITIONS[r]) - {0}]
        assert len(chosen) == 5
        right = np.where(replaced, expit(logits), expit(-logits))
        return -np.mean([np.log(right[position]) for position in chosen])
    softmax = np.exp(log_softmax(np.float64(outputs["token_logits"]), -1))
    copy = expit(-logits)
    true = np.take_along_axis(softmax, ids[..., None], -1)[..., 0]
    return -np.mean(np.log(copy * ~replaced + (1 - copy) * true)[mask])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "hparams",
    [{}, {"uniform_generator": True}, {"untied_generator": False}],
    ids=["small", "uniform", "one_network"],
)
def test_each_loss_is_its_formula(compute, batch, objective, hparams):
    config, _, outputs = compute(objective=objective, **hparams)
    second = "disc" if objective == "electra_15" else "token"
    loss = np.float64(outputs[f"{second}_loss"])
    formula = expected_loss(objective, batch[0], outputs)
    assert loss == pytest.approx(formula, rel=1e-6)
    weight = 50 if objective == "electra_15" else 1
    assert config.disc_weight == weight
    total = float(outputs["mlm_loss"]) + weight * formula
    assert float(outputs["total_loss"]) == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_steps_and_evaluations_name_the_second_loss(compute, objective):
    _, features, outputs = compute(objective=objective, disc_weight=2.5)
    name = "disc_loss" if objective == "electra_15" else "token_loss"
    values = step_values(features, outputs)
    assert {"disc_loss", "token_loss"} & values.keys() == {name}
    assert values["replaced_tokens"] == 4
    evaluation = PretrainingMetrics(mask_token_id=103, disc_weight=2.5)
    arrays = metric_inputs(features, outputs)
    evaluation.update({n: np.asarray(v) for n, v in arrays.items()}, 1.0)
    result = evaluation.result()
    assert result["replaced_share"] == 4 / 25
    if objective == "electra_15":
        assert result["disc_majority_accuracy"] == 4 / 5
        return
    assert result[name] == pytest.approx(float(values[name]), rel=1e-6)
    slots = objective == "replace_mlm"
    assert result["token_copy_accuracy"] == (1 / 7 if slots else 21 / 25)
    assert ("disc_auc_real_tokens" in result) == (not slots)


def test_all_tokens_mlm_predicts_the_likeliest_of_its_mixture(compute):
    _, _, outputs = compute(objective="all_tokens_mlm")
    logits = np.float64(outputs["token_logits"])
    copy = expit(-np.float64(outputs["disc_logits"]))[..., None]
    p = (1 - copy) * np.exp(log_softmax(logits, -1))
    rows, places = np.indices(p.shape[:2])
    p[rows, places, outputs["fake_input_ids"]] += copy[..., 0]
    np.testing.assert_array_equal(outputs["token_preds"], p.argmax(-1))


def test_copying_is_differentiated_and_stable():
    random = np.random.RandomState(0)
    logits = tf.constant(random.normal(size=[1, 6, 9]))
    copy = tf.constant(random.normal(size=[1, 6]))
    inputs, targets = tf.constant([[1, 2, 3, 4, 5, 6], [1, 2, 3, 0, 0, 0]])
    inputs, targets = inputs[None], targets[None]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([copy, logits])
        copied = losses.copy_losses(copy, logits, inputs, targets)
        generated = tf.gather(tf.nn.softmax(logits), targets, batch_dims=2)
        share, same = tf.sigmoid(copy), tf.cast(inputs == targets, tf.float64)
        plain = -tf.math.log(share * same + (1 - share) * generated)
    np.testing.assert_allclose(copied, plain, rtol=1e-12)
    for source in (copy, logits):
        ours, reference = (tape.gradient(of, source) for of in (copied, plain))
        np.testing.assert_allclose(ours, reference, 1e-9)
    extreme = tf.constant([[200.0, -200.0] * 3])
    with tf.GradientTape() as tape:
        tape.watch(extreme)
        wide = 100 * tf.cast(logits, tf.float32)
        copied = losses.copy_losses(extreme, wide, inputs, targets)
    assert np.isfinite(copied).all()
    assert np.isfinite(tape.gradient(copied, extreme)).all()


UNIGRAM = {"generator": "unigram"}
MASKED = 5000


@pytest.fixture
def records(tmp_path):
    """Return a function that writes segments as records of length 16."""
    path = tmp_path / "pretrain_tfrecords" / "pretrain_data.tfrecord-0-of-1"
    path.parent.mkdir()

    def write(segments):
        encoder = ExampleEncoder(16, cls_id=101, sep_id=102, vocab_size=200)
        framed = [frame_record(encoder.encode(*pair)) for pair in segments]
        path.write_bytes(b"".join(framed))

    return write


def draws(model, step=0):
    """Return samples of many masked positions whose true token is 120."""
    ids = np.full([MASKED // 10, 16], 120, np.int32)
    positions = np.tile(np.arange(1, 11, dtype=np.int32), [len(ids), 1])
    masked = masked_at(ids, positions)
    features = features_of(ids)
    outputs = model.compute(features, masked, seed=tf.constant([0, step]))
    return np.bincount(outputs["sampled_tokids"].numpy().ravel()), outputs


def write_counts(config, counts):
    folder = pathlib.Path(config.model_dir)
    folder.mkdir(parents=True)
    (folder / TOKEN_COUNTS).write_text(json.dumps({"counts": counts}))


def write_checkpoint_state(config):
    """Write the files by which a run finds its latest checkpoint."""
    folder = pathlib.Path(config.model_dir)
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1"')
    (folder / "model.ckpt-1.index").touch()


def counts_of(model):
    return {i: int(n) for i, n in enumerate(model.token_counts) if n}


@pytest.mark.parametrize(
    ("hparams", "weights"),
    [
        ({}, [4, 8, 1]),
        ({"temperature": 2.0}, np.sqrt([4, 8, 1])),
        ({"disallow_correct": True}, [0, 8, 1]),
    ],
    ids=["plain", "temperature", "disallow_correct"],
)
def test_replacements_follow_the_counts(records, tiny_config, hparams, weights):
    # [UNK] (100) is counted, but is never drawn as a replacement.
    records([([120] * 3 + [100], [130] * 6), ([140, 120], [130] * 2)])
    model = build_model(tiny_config(**UNIGRAM, **hparams))
    assert counts_of(model) == {100: 1, 120: 4, 130: 8, 140: 1}
    drawn, outputs = draws(model)
    shares = np.zeros(len(drawn))
    shares[[120, 130, 140]] = weights / np.sum(weights)
    assert not drawn[shares == 0].any()
    assert np.abs(drawn / MASKED - shares).max() < 4 * np.sqrt(0.25 / MASKED)
    again, _ = draws(model)
    np.testing.assert_array_equal(drawn, again)
    assert (draws(model, step=1)[0] != drawn).any()
    assert np.isfinite([outputs["mlm_loss"], outputs["total_loss"]]).all()


def test_a_run_keeps_the_counts_that_it_began_with(records, tiny_config):
    records([([120], [130])])
    config = tiny_config(**UNIGRAM)
    assert counts_of(build_model(config)) == {120: 1, 130: 1}
    write_counts(config, [0] * 198 + [7, 5])
    write_checkpoint_state(config)
    assert counts_of(build_model(config)) == {198: 7, 199: 5}
    again = build_model(tiny_config(overwrite=True, **UNIGRAM))
    assert counts_of(again) == {120: 1, 130: 1}


@pytest.mark.parametrize(
    "hparams", [UNIGRAM, {"unigram_steps": 2}], ids=["unigram", "mixture"]
)
def test_a_run_without_a_checkpoint_counts_again(records, tiny_config, hparams):
    records([([120], [130])])
    config = tiny_config(**hparams)
    write_counts(config, [0] * 198 + [7, 5])
    assert counts_of(build_model(config)) == {120: 1, 130: 1}


@pytest.mark.parametrize(
    "hparams", [UNIGRAM, {"unigram_steps": 2}], ids=["unigram", "mixture"]
)
def test_fit_counts_again_whatever_the_folder_contains(
    records, tiny_config, hparams
):
    records([([120], [130])])
    config = tiny_config(**hparams)
    write_counts(config, [0] * 198 + [7, 5])
    write_checkpoint_state(config)
    model = PretrainingModel(config)
    model.compile()
    assert counts_of(model) == {120: 1, 130: 1}


def test_counts_of_a_program_are_kept_without_reading_records(tiny_config):
    config = tiny_config(unigram_steps=2)
    model = PretrainingModel(config)
    model.token_counts = np.arange(200)
    prepare_model(config, model)
    np.testing.assert_array_equal(model.token_counts, np.arange(200))
    model.token_counts = np.arange(3)
    with pytest.raises(ValueError, match=r"shape \(3,\); expected \(200,\)"):
        prepare_model(config, model)


def test_unsuitable_or_damaged_token_counts_are_refused(tmp_path):
    path = tmp_path / TOKEN_COUNTS
    path.write_text('{"counts": [1, 2]}')
    assert read_counts(str(path), 2).tolist() == [1, 2]
    refused("the `counts` of 3 tokens as integers", read_counts, str(path), 3)
    write_digests(str(tmp_path))
    path.write_text('{"counts": [1, 3]}')
    refused("checksum differs", read_counts, str(path), 2)


def test_without_counts_nothing_is_trained(records, tiny_config):
    refused("No record file matches", build_model, tiny_config(**UNIGRAM))
    records([([120] * 4, [120])])
    message = "fewer than two .* change generator"
    refused(message, build_model, tiny_config(**UNIGRAM))


@pytest.mark.parametrize(
    "value", ["3", None, 1.5, True, -1, 10**400, [1], {}, "é"]
)
def test_counts_of_another_type_are_refused(tmp_path, value):
    path = tmp_path / TOKEN_COUNTS
    path.write_text(json.dumps({"counts": [1, value]}))
    refused("the `counts` of 2 tokens as integers", read_counts, str(path), 2)
