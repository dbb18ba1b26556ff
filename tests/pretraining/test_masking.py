# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Masking draws from the original's distribution; options of masking."""

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.seeds import SeedStream
from electra_tf.pretraining import masking, sampling
from tests.conftest import read_json
from tests.pretraining.conftest import Recording

CLS, SEP, MASK = 101, 102, 103
# Ids from 150 continue a word.
SPECIAL = masking.SpecialTokens(CLS, SEP, MASK, np.arange(200) >= 150)


def draw(ids, input_mask, rule, seed=0):
    features = {
        "input_ids": tf.constant(ids, tf.int32),
        "input_mask": tf.constant(input_mask, tf.int32),
    }
    stream = SeedStream(tf.constant([7, seed]))
    masked = masking.mask_inputs(features, SPECIAL, rule, stream)
    return {name: value.numpy() for name, value in masked.items()}


def one_row(length, tokens):
    """Return a row: [CLS] tokens [SEP], and padding to `length`."""
    row = [CLS, *tokens, SEP]
    pad = length - len(row)
    return [row + [0] * pad], [[1] * len(row) + [0] * pad]


sentences = st.lists(
    st.integers(104, 199) | st.just(MASK) | st.just(SEP), max_size=20
)


@pytest.mark.parametrize(
    "options", [{}, {"without_replacement": True}, {"whole_words": True}]
)
@hypothesis.given(tokens=sentences, seed=st.integers(0, 1000))
def test_only_candidates_are_chosen_and_ids_kept(options, tokens, seed):
    ids, mask = one_row(24, tokens)
    out = draw(ids, mask, masking.MaskingRule(0.3, 8, **options), seed)
    original = np.array(ids[0])
    used = out["masked_lm_weights"][0] > 0
    positions = out["masked_lm_positions"][0]
    chosen = original[positions[used]]
    assert not set(chosen) & {CLS, SEP, MASK, 0}
    np.testing.assert_array_equal(out["masked_lm_ids"][0][used], chosen)
    assert not positions[~used].any()
    assert not out["masked_lm_ids"][0][~used].any()
    changed = out["input_ids"][0] != original
    assert set(np.flatnonzero(changed)) <= set(positions[used])
    assert (out["input_ids"][0][changed] == MASK).all()
    candidates = sum(token >= 104 for token in tokens)
    share = round(np.float32(len(tokens) + 2) * np.float32(0.3))
    expected_count = max(1, min(8, share))
    if not options:
        assert used.sum() == (expected_count if candidates else 0)
    else:
        assert len(set(positions[used])) == used.sum() <= expected_count
    if options == {"without_replacement": True}:
        assert used.sum() == min(expected_count, candidates)


@hypothesis.given(tokens=sentences, seed=st.integers(0, 1000))
def test_whole_word_masking_splits_a_word_only_if_alone(tokens, seed):
    ids, mask = one_row(24, tokens)
    out = draw(ids, mask, masking.MaskingRule(0.4, 8, whole_words=True), seed)
    chosen = set(out["masked_lm_positions"][0][out["masked_lm_weights"][0] > 0])
    word_starts = []
    for position, token in enumerate(ids[0]):
        if token < 104:
            word_starts.append([])
        elif token < 150 or not word_starts or not word_starts[-1]:
            word_starts.append([position])
        else:
            word_starts[-1].append(position)
    split = [w for w in word_starts if 0 < len(chosen & set(w)) < len(w)]
    assert not split or (len(split) == 1 and chosen <= set(split[0]))
    if any(word_starts):
        assert chosen


def test_the_number_to_predict_is_rounded_half_to_even_as_recorded(golden_dir):
    stats = read_json(golden_dir / "mask_stats.json")
    for prob, counts in stats["round_half_to_even_table"]["values"].items():
        lengths = np.arange(1, 513)
        input_mask = (np.arange(512) < lengths[:, None]).astype(np.int32)
        actual = masking.number_to_predict(input_mask, float(prob), 512)
        np.testing.assert_array_equal(actual, np.maximum(1, counts))


MASKING_RUNS = 2000


@pytest.fixture(
    scope="module", params=["mask_L64_p15", "mask_L128_p15", "mask_L128_p25"]
)
def masked_runs(request, golden_dir):
    """Mask a recorded batch many times.

    Return the recorded statistics, how often each run drew each position,
    and whether it shows [MASK] there [runs, B, L].
    """
    stats = read_json(golden_dir / "mask_stats.json")[request.param]
    runs = MASKING_RUNS
    ids, mask = np.array(stats["input_ids"]), np.array(stats["input_mask"])
    batch, length = ids.shape
    count = stats["max_predictions_per_seq"]
    rule = masking.MaskingRule(stats["mask_prob"], count)
    out = draw(np.tile(ids, [runs, 1]), np.tile(mask, [runs, 1]), rule)
    positions = out["masked_lm_positions"].reshape(runs, batch, -1)
    used = out["masked_lm_weights"].reshape(runs, batch, -1) > 0
    shown = out["input_ids"].reshape(runs, batch, length) == MASK
    multiplicity = np.zeros([runs, batch, length], int)
    for slot in range(positions.shape[-1]):
        run, row = np.nonzero(used[..., slot])
        np.add.at(multiplicity, (run, row, positions[run, row, slot]), 1)
    return stats, multiplicity, shown


def test_the_mean_count_of_positions_agrees_with_the_recorded_one(masked_runs):
    stats, multiplicity, _ = masked_runs
    distinct = (multiplicity > 0).sum(-1)  # [runs, B]
    means = stats["mean_distinct_positions_per_example"]
    # Both means are estimates from 2,000 runs.
    bounds = 3 * np.sqrt(2 / MASKING_RUNS) * distinct.std(0) + 1e-9
    assert (np.abs(distinct.mean(0) - means) <= bounds).all()


def test_mask_is_shown_as_often_as_recorded(masked_runs):
    stats, multiplicity, shown = masked_runs
    ids, deviations = np.array(stats["input_ids"]), {}
    for times, recorded in stats[
        "fraction_of_chosen_distinct_positions_shown_as_MASK_by_multiplicity"
    ].items():
        where = (multiplicity == int(times)) & (ids != MASK)
        count, expected = where.sum(), recorded["expected"]
        if count > 30:
            error = abs(shown[where].mean() - expected)
            deviation = np.sqrt(expected * (1 - expected) / count)
            deviations[times] = error / deviation
    assert len(deviations) >= 3
    assert max(deviations.values()) <= 3, deviations


def test_positions_are_drawn_uniformly_from_the_candidates(masked_runs):
    stats, multiplicity, _ = masked_runs
    ids, mask = np.array(stats["input_ids"]), np.array(stats["input_mask"])
    allowed = (mask > 0) & ~np.isin(ids, [CLS, SEP, MASK])
    counts = multiplicity.sum(0)  # [B, L]
    assert not counts[~allowed].any()
    dofs = allowed.sum(-1) - 1
    recorded = stats["chi2_uniform_over_candidates_per_example"]
    assert dofs.tolist() == [row["dof"] for row in recorded]
    deviations = []
    for row in np.flatnonzero(dofs):
        dof, drawn = dofs[row], counts[row][allowed[row]]
        expected = drawn.sum() / len(drawn)
        chi2 = ((drawn - expected) ** 2 / expected).sum()
        # Wilson and Hilferty: the cube root is close to normal.
        variance = 2 / (9 * dof)
        score = (chi2 / dof) ** (1 / 3) - (1 - variance)
        deviations.append(abs(score) / np.sqrt(variance))
    assert deviations and max(deviations) <= 3, deviations


SAMPLES = 200_000


@pytest.mark.parametrize("case", range(4))
def test_frequencies_agree_with_the_recorded_softmax(case, golden_dir):
    recorded = read_json(golden_dir / "mask_stats.json")["gumbel"][case]
    disallowed = recorded["disallow_index"]
    logits = tf.tile(tf.constant([[recorded["logits"]]]), [1, SAMPLES, 1])
    if disallowed is not None:
        disallowed = tf.fill([1, SAMPLES], disallowed)
    logits = sampling.sampling_logits(logits, 1.0, disallowed)
    uniform = tf.random.stateless_uniform([1, SAMPLES, 2], [1, 2 + case])
    drawn = sampling.sample_from_softmax(logits, uniform)
    size = len(recorded["logits"])
    frequency = np.bincount(drawn.numpy().ravel(), minlength=size) / SAMPLES
    expected = np.array(recorded["softmax"])
    deviation = np.sqrt(expected * (1 - expected) / SAMPLES)
    assert (np.abs(frequency - expected) <= 3 * deviation + 1e-9).all()
    if disallowed is not None:
        assert frequency[recorded["disallow_index"]] == 0


def test_sampling_logits_equal_the_recorded_ones(golden_dir):
    for name in ("v200_disallow_correct", "v200_temperature_half"):
        recorded = Recording(golden_dir, f"forward_{name}")
        hparams, arrays = recorded.info["hparams"], recorded.arrays
        disallowed = None
        if hparams.get("disallow_correct"):
            disallowed = tf.constant(arrays["masked_lm_ids"])
        actual = sampling.sampling_logits(
            tf.constant(arrays["mlm_logits"]),
            hparams.get("temperature", 1.0),
            disallowed,
        )
        expected = arrays["sampling_logits_after_disallow"]
        np.testing.assert_allclose(actual, expected, atol=1e-4)


def int_arrays(shape, low, high):
    return hnp.arrays(np.int32, shape, elements=st.integers(low, high))


@st.composite
def batches(draw):
    """Return a sequence, updates and positions, many of which repeat."""
    rows, length, count = (draw(st.integers(1, n)) for n in (3, 8, 10))
    return (
        draw(int_arrays((rows, length), 0, 30_000)),
        draw(int_arrays((rows, count), 0, 30_000)),
        draw(int_arrays((rows, count), 0, length - 1)),
    )


def plain_scatter(sequence, updates, positions):
    updated, replaced = sequence.copy(), np.zeros_like(sequence)
    for row in range(sequence.shape[0]):
        for position in range(1, sequence.shape[1]):
            here = updates[row][positions[row] == position]
            if len(here):
                updated[row, position] = int(here.sum()) // len(here)
                replaced[row, position] = 1
    return updated, replaced


@hypothesis.given(batches())
def test_updates_equal_the_plain_loop(batch):
    updated, replaced = masking.scatter_update(*map(tf.constant, batch))
    expected_ids, expected_mask = plain_scatter(*batch)
    np.testing.assert_array_equal(updated, expected_ids)
    np.testing.assert_array_equal(replaced, expected_mask)
