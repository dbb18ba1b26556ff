# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Electric's scores equal direct computation on the original's outputs."""

import types

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from electra_tf.checkpoints import tf1
from electra_tf.pretraining import masking, scoring

INPUTS = ("input_ids", "input_mask", "segment_ids")
CLS, SEP, MASK = 101, 102, 103


@pytest.fixture(params=["v200_electric", "v200_electric_untied_embeddings"])
def recorded_pass(request, recording, recorded_model, golden_dir):
    recorded = recording(golden_dir, f"forward_{request.param}")
    model = recorded_model(recorded.info["hparams"], golden_dir)
    tf1.restore(model, recorded.checkpoint)
    return recorded, model


def log_probs(logits, ids):
    """In float64, of the given tokens."""
    values = log_softmax(np.asarray(logits, np.float64), -1)
    return np.take_along_axis(values, ids[..., None].astype(int), -1)[..., 0]


def test_scores_equal_the_sum_of_recorded_logits_without_their_offset(
    recorded_pass,
):
    recorded, model = recorded_pass
    arrays, p = recorded.arrays, recorded.info["hparams"]["mask_prob"]
    fake_ids = arrays["fake_input_ids"]
    # By hand: log q and the prior off the recorded logits.
    offset = log_probs(arrays["cloze_logits"], fake_ids) + np.log(p / (1 - p))
    energies = arrays["disc_logits"].astype(np.float64) - offset
    features = {name: tf.constant(arrays[name]) for name in INPUTS}
    features["input_ids"] = tf.constant(fake_ids)
    scores = scoring.electric_scores(model, features)
    cloze = scoring.cloze_scores(model, features)
    log_q = log_probs(model.compute(features)["cloze_logits"], fake_ids)
    for row, ids in enumerate(fake_ids):
        counted = [
            place
            for place, token in enumerate(ids)
            if arrays["input_mask"][row, place]
            and token not in (CLS, SEP, MASK)
        ]
        expected = -sum(energies[row, place] for place in counted)
        np.testing.assert_allclose(scores["score"][row], expected, rtol=2e-5)
        np.testing.assert_allclose(
            cloze["score"][row], log_q[row, counted].sum(), rtol=2e-5
        )
        assert np.flatnonzero(scores["scored"][row]).tolist() == counted


def test_what_does_not_count_may_be_anything():
    special = masking.SpecialTokens(CLS, SEP, MASK, np.zeros(200, bool))
    ids = tf.constant([[150, CLS, MASK, 151]])
    found = scoring.pseudo_log_likelihood(
        types.SimpleNamespace(special=special),
        {"input_ids": ids, "input_mask": tf.ones_like(ids)},
        tf.constant([[-1.0, -np.inf, np.nan, -2.0]]),
    )
    np.testing.assert_array_equal(found["score"], [-3.0])
    np.testing.assert_array_equal(
        found["token_scores"], [[-1.0, 0.0, 0.0, -2.0]]
    )


def test_padding_does_not_change_a_score(recorded_pass):
    recorded, model = recorded_pass
    arrays = recorded.arrays
    row = int(np.argmin(arrays["input_mask"].sum(-1)))
    length = int(arrays["input_mask"][row].sum())
    whole = {n: tf.constant(arrays[n][row : row + 1]) for n in INPUTS}
    cut = {name: tensor[:, :length] for name, tensor in whole.items()}
    for score in (scoring.electric_scores, scoring.cloze_scores):
        a, b = (score(model, given)["score"] for given in (whole, cut))
        np.testing.assert_allclose(a, b, rtol=1e-5)
