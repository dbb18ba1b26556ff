# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sampling follows softmax; corruption labels what really changed."""

import json

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.pretraining import sampling

DRAWS = 200_000


@pytest.mark.parametrize("case", range(4))
def test_frequencies_agree_with_the_recorded_softmax(case, golden_dir):
    stats = json.loads((golden_dir / "mask_stats.json").read_text())
    recorded = stats["gumbel"][case]
    disallowed = recorded["disallow_index"]
    logits = tf.tile(tf.constant([[recorded["logits"]]]), [1, DRAWS, 1])
    if disallowed is not None:
        disallowed = tf.fill([1, DRAWS], disallowed)
    logits = sampling.sampling_logits(logits, 1.0, disallowed)
    drawn = sampling.sample_from_softmax(logits, tf.constant([1, 2 + case]))
    size = len(recorded["logits"])
    frequency = np.bincount(drawn.numpy().ravel(), minlength=size) / DRAWS
    expected = np.array(recorded["softmax"])
    deviation = np.sqrt(expected * (1 - expected) / DRAWS)
    assert (np.abs(frequency - expected) <= 3 * deviation + 1e-9).all()
    if disallowed is not None:
        assert frequency[recorded["disallow_index"]] == 0


def test_sampling_logits_equal_the_recorded_ones(recording, golden_dir):
    for name in ("v200_disallow_correct", "v200_temperature_half"):
        recorded = recording(golden_dir, f"forward_{name}")
        hparams, arrays = recorded.info["hparams"], recorded.arrays
        disallowed = None
        if hparams.get("disallow_correct"):
            disallowed = tf.constant(arrays["masked_lm_ids"])
        actual = sampling.sampling_logits(
            tf.constant(arrays["mlm_logits"]),
            hparams.get("temperature", 1.0),
            disallowed,
        )
        np.testing.assert_allclose(
            actual, arrays["sampling_logits_after_disallow"], atol=1e-4
        )


def test_a_sample_equal_to_the_original_counts_as_real_except_for_electric():
    ids = tf.constant([[5, 6, 7, 8]])
    positions, sampled = tf.constant([[1, 3, 0]]), tf.constant([[6, 9, 4]])
    electra = sampling.corrupt_inputs(ids, sampled, positions, False)
    electric = sampling.corrupt_inputs(ids, sampled, positions, True)
    assert electra.input_ids.numpy().tolist() == [[5, 6, 7, 9]]
    assert electra.is_fake_tokens.numpy().tolist() == [[0, 0, 0, 1]]
    assert electric.is_fake_tokens.numpy().tolist() == [[0, 1, 0, 1]]
