# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores of texts equal what is computed token by token."""

import math

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from configure.errors import UserError
from electra_tf.inspection.fill_mask import padded
from electra_tf.inspection.text_scores import TextScorer, windows

TEXTS = [
    "the cat is on the mat, and that was it.",
    "of",
    "",
    "a quick brown fox; (is it?) for the 3 dogs \u4e2d",
    "that was the end of it",
]
LONG = " ".join(["the", "of", "and", "is", "for", "that", "was"] * 13)


def features_of(pretrained, ids):
    special = pretrained.model.special
    batch = padded([[special.cls_id, *ids, special.sep_id]])
    return {name: tf.constant(values) for name, values in batch.items()}


def direct_electric(pretrained, text):
    """Training's own logits on the text, offset taken off by hand."""
    ids = pretrained.tokenizer.encode(text)
    features = features_of(pretrained, ids)
    nothing = {
        "input_ids": features["input_ids"],
        "masked_lm_positions": np.zeros([1, 1], np.int32),
        "masked_lm_ids": np.zeros([1, 1], np.int32),
        "masked_lm_weights": np.zeros([1, 1], np.float32),
    }
    outputs = pretrained.model.compute(features, masked_inputs=nothing)
    log_q = log_softmax(np.float64(outputs["cloze_logits"]), -1)[0]
    p = pretrained.config.mask_prob
    score = cloze = 0.0
    for place, token in enumerate(ids, 1):
        logit = float(outputs["disc_logits"][0, place])
        score -= logit - log_q[place, token] - math.log(p / (1 - p))
        cloze += log_q[place, token]
    return score, cloze


def test_electric_scores_of_the_originals_model_equal_direct_computation(
    golden_electric,
):
    assert golden_electric.config.mask_prob == 0.25
    found = TextScorer(golden_electric, batch_size=2).score(TEXTS)
    clozes = TextScorer(golden_electric, "cloze").score(TEXTS)
    for text, result, second in zip(TEXTS, found, clozes, strict=True):
        score, cloze = direct_electric(golden_electric, text)
        assert result.text == second.text == text
        assert result.score == pytest.approx(score, abs=2e-4)
        assert second.score == pytest.approx(cloze, abs=2e-4)


def test_electrics_discriminator_alone_gives_the_same_scores(pretrained):
    whole = TextScorer(pretrained("electric")).score(TEXTS)
    alone = TextScorer(pretrained("electric/discriminator")).score(TEXTS)
    for a, b in zip(whole, alone, strict=True):
        assert a.token_scores == pytest.approx(b.token_scores, abs=1e-6)


@pytest.mark.parametrize("kind", ["mlm", "electra"])
def test_masked_lm_scores_mask_one_token_at_a_time(
    pretrained, generator_log_probs, kind
):
    model = pretrained(kind)
    special = model.model.special
    results = TextScorer(model, batch_size=7).score(TEXTS)
    for text, result in zip(TEXTS, results, strict=True):
        ids = model.tokenizer.encode(text)
        row, expected = [special.cls_id, *ids, special.sep_id], []
        for place, token in enumerate(ids, 1):
            masked = [*row[:place], special.mask_id, *row[place + 1 :]]
            log_probs = generator_log_probs(model, masked)
            expected.append(log_probs[place, token])
        np.testing.assert_allclose(result.token_scores, expected, atol=1e-5)
        assert result.score == pytest.approx(sum(expected), abs=1e-4)


@pytest.mark.parametrize(
    "kind, method",
    [("electric", "electric"), ("two_tower", "cloze"), ("mlm", "masked_lm")],
)
def test_scores_do_not_depend_on_batches_or_neighbours(
    pretrained, kind, method
):
    model = pretrained(kind)
    texts = [*TEXTS, LONG, *TEXTS[::-1]]
    together = list(TextScorer(model, batch_size=4).score(texts))
    scorer = TextScorer(model, method, batch_size=1)
    alone = [next(scorer.score([text])) for text in texts]
    for a, b in zip(together, alone, strict=True):
        assert a.text == b.text
        assert a.token_scores == pytest.approx(b.token_scores, abs=1e-4)


def test_a_long_text_counts_every_token_once(pretrained):
    model = pretrained("electric")
    result = next(TextScorer(model).score([LONG]))
    ids = model.tokenizer.encode(LONG)
    assert len(ids) == 91
    assert result.windows > 1
    assert len(result.token_scores) == len(ids)
    assert result.score == pytest.approx(sum(result.token_scores))
    # The first window's first tokens: as if the text ended with it.
    window = next(TextScorer(model).score([" ".join(LONG.split()[:30])]))
    np.testing.assert_allclose(
        result.token_scores[:20], window.token_scores[:20], atol=1e-5
    )


def test_no_tokens_score_0_and_unknown_ones_are_counted(pretrained):
    scorer = TextScorer(pretrained("electric"))
    nothing, unknown = scorer.score(["  \u200b ", "the \u4e2d"])
    assert nothing.score == 0.0 and nothing.tokens == ()
    assert unknown.tokens == ("the", "[UNK]") and unknown.unknown == 1


@pytest.mark.parametrize("room", [1, 2, 3, 7, 30])
def test_every_token_is_answered_for_once_by_a_window_that_shows_it(room):
    for count in range(120):
        answered = []
        for window in windows(count, room):
            assert window.end - window.begin <= room
            assert 0 <= window.begin <= window.first < window.last
            assert window.last <= window.end <= count
            answered += range(window.first, window.last)
        assert answered == list(range(count))


def test_tokens_of_a_long_text_have_context_on_both_sides():
    for window in windows(100, 20)[1:-1]:
        assert window.first - window.begin >= 4
        assert window.end - window.last >= 4


def test_scoring_streams(pretrained):
    taken = []

    def texts():
        for number in range(10_000):
            taken.append(number)
            yield "the end"

    scorer = TextScorer(pretrained("two_tower"), batch_size=2)
    next(scorer.score(texts()))
    assert len(taken) < 100


@pytest.mark.parametrize(
    "name, method, message",
    [
        ("electra", "electric", "not an Electric model"),
        ("electric/generator", "electric", "has no discriminator"),
        ("electric/discriminator", "cloze", "has no generator"),
        ("electra", "cloze", "choose masked_lm"),
        ("electric", "masked_lm", "choose cloze, or electric"),
        ("uniform", "auto", "has no generator"),
        ("electra", "likelihood", "expected one of auto"),
    ],
)
def test_a_model_that_cannot_be_asked_so_is_refused(
    pretrained, name, method, message
):
    with pytest.raises(UserError, match=message):
        TextScorer(pretrained(name), method)
