# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Masking, the sampling of replacements, and the corrupted inputs."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.modeling.layers import SeedStream


@dataclasses.dataclass(frozen=True)
class SpecialTokens:
    """What masking needs to know of a vocabulary."""

    cls_id: int
    sep_id: int
    mask_id: int
    continues_word: np.ndarray  # bool [V], True for "##..." wordpieces

    @classmethod
    def of(cls, vocab: Mapping[str, int], vocab_size: int) -> "SpecialTokens":
        continues = np.zeros([vocab_size], bool)
        for token, index in vocab.items():
            if token.startswith("##") and index < vocab_size:
                continues[index] = True
        return cls(vocab["[CLS]"], vocab["[SEP]"], vocab["[MASK]"], continues)


@dataclasses.dataclass(frozen=True)
class MaskingRule:
    """How many positions are chosen, how, and what is shown there."""

    mask_prob: float = 0.15  # share of a sequence's tokens that are chosen
    max_predictions: int = 19  # N, most positions chosen in a sequence
    replace_prob: float = 0.85  # share of chosen positions showing [MASK]
    without_replacement: bool = False  # original: with replacement
    whole_words: bool = False  # choose all pieces of a word together


def scatter_update(
    sequence: tf.Tensor, updates: tf.Tensor, positions: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Replaces the ids at given positions of each sequence.

    Position 0 is never replaced, which is how unused slots (position 0) stay
    without effect. Where a position occurs more than once its updates are
    summed and floor-divided by their number: no change for equal ids, but two
    different sampled ids become their integer mean, as in the original.

    Args:
      sequence: int32 [B, L].
      updates: int32 [B, N].
      positions: int32 [B, N], each in [0, L).

    Returns:
      int32 [B, L] updated ids and int32 [B, L] with 1 where replaced.

    Source: google-research/electra, pretrain/pretrain_helpers.py,
    scatter_update.
    """
    shape = tf.shape(sequence)
    rows = tf.broadcast_to(
        tf.range(tf.shape(positions)[0])[:, None], tf.shape(positions)
    )
    index = tf.stack([rows, positions], -1)  # [B, N, 2]
    total = tf.scatter_nd(index, updates, shape)
    count = tf.scatter_nd(index, tf.ones_like(updates), shape)
    count *= tf.cast(tf.range(shape[1]) > 0, count.dtype)
    mean = tf.math.floordiv(total, tf.maximum(1, count))
    replaced = tf.minimum(count, 1)
    return tf.where(count > 0, mean, sequence), replaced


def candidates_mask(
    input_ids: tf.Tensor, input_mask: tf.Tensor, special: SpecialTokens
) -> tf.Tensor:
    """Marks the positions that may be masked, bool [B, L].

    Not [CLS], [SEP], [MASK] and padding.

    Source: google-research/electra, pretrain/pretrain_helpers.py,
    get_candidates_mask.
    """
    allowed = input_mask > 0
    for token_id in (special.sep_id, special.cls_id, special.mask_id):
        allowed &= input_ids != token_id
    return allowed


def number_to_predict(
    input_mask: tf.Tensor, mask_prob: float, max_predictions: int
) -> tf.Tensor:
    """How many positions of each sequence are chosen, int32 [B], 1 to N.

    [CLS] and [SEP] count as tokens; the product is rounded half to even.
    """
    tokens = tf.cast(tf.reduce_sum(input_mask, -1), tf.float32)
    wanted = tf.cast(tf.round(tokens * mask_prob), tf.int32)
    return tf.maximum(1, tf.minimum(max_predictions, wanted))


def _draw_with_replacement(
    candidates: tf.Tensor, draws: int, seed: tf.Tensor
) -> tf.Tensor:
    """Draws positions uniformly among candidates, independently."""
    uniform = tf.random.stateless_uniform(
        [tf.shape(candidates)[0], draws], seed
    )
    return _drawn(tf.cast(candidates, tf.float32), uniform)


def _draw_distinct(
    candidates: tf.Tensor, draws: int, seed: tf.Tensor
) -> tf.Tensor:
    """Draws distinct positions; beyond the candidates' number, any others."""
    noise = tf.random.stateless_uniform(tf.shape(candidates), seed)
    keys = tf.where(candidates, noise, -1.0)
    draws = tf.minimum(draws, tf.shape(candidates)[1])
    return tf.math.top_k(keys, draws).indices


def _draw_whole_words(
    candidates: tf.Tensor,
    continues_word: tf.Tensor,
    wanted: tf.Tensor,
    draws: int,
    seed: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws words until the next one would exceed the wanted number of pieces.

    Args:
      candidates: bool [B, L].
      continues_word: bool [B, L], True at "##..." pieces.
      wanted: int32 [B], pieces to choose.
      seed: int32 [2].

    Returns:
      int32 [B, N] positions and float32 [B, N], 1 for those in use. Where
      the first word alone exceeds the number, its first pieces are taken.
    """
    length = tf.shape(candidates)[1]
    after_special = ~tf.pad(candidates[:, :-1], [[0, 0], [1, 0]])
    starts = candidates & (~continues_word | after_special)
    word = tf.cumsum(tf.cast(starts, tf.int32), axis=1)  # [B, L], from 1
    noise = tf.random.stateless_uniform(tf.shape(candidates), seed)
    key = tf.gather(noise, tf.maximum(word - 1, 0), batch_dims=1)
    key = tf.where(candidates, key, 2.0)
    # A stable sort keeps the pieces of a word together and in order.
    order = tf.argsort(key, axis=1, stable=True)  # [B, L]
    ordered_word = tf.gather(word, order, batch_dims=1)
    usable = tf.gather(candidates, order, batch_dims=1)
    chosen = tf.sequence_mask(wanted, length) & usable
    # The word that crosses the limit is left out whole, unless it is first.
    limit = tf.minimum(wanted, length - 1)[:, None]
    crossing = tf.gather(ordered_word, limit, batch_dims=1)
    crosses = (
        tf.gather(usable, limit, batch_dims=1) & (wanted < length)[:, None]
    )
    left_out = crosses & (ordered_word == crossing)
    left_out &= ordered_word != ordered_word[:, :1]
    weights = tf.cast(chosen & ~left_out, tf.float32)
    return order[:, :draws], weights[:, :draws]


def mask_inputs(
    features: Mapping[str, tf.Tensor],
    special: SpecialTokens,
    rule: MaskingRule,
    seeds: SeedStream,
) -> dict[str, tf.Tensor]:
    """Chooses positions to predict and hides most of them.

    Args:
      features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.

    Returns:
      `input_ids` int32 [B, L] after masking, `masked_lm_positions` and
      `masked_lm_ids` int32 [B, N], `masked_lm_weights` float32 [B, N] (1
      for slots in use; unused ones have position 0 and id 0).

    Source: google-research/electra, pretrain/pretrain_helpers.py, mask.

    Differs: a sequence without any candidate gets weight 0 everywhere; the
    original reads one position past the row's end.
    """
    ids, input_mask = features["input_ids"], features["input_mask"]
    draws = rule.max_predictions
    candidates = candidates_mask(ids, input_mask, special)
    wanted = number_to_predict(input_mask, rule.mask_prob, draws)
    available = tf.reduce_sum(tf.cast(candidates, tf.int32), -1)  # [B]
    seed = seeds.seed("masked_positions")
    if rule.whole_words:
        continues = tf.gather(tf.constant(special.continues_word), ids)
        wanted = tf.minimum(wanted, available)
        positions, weights = _draw_whole_words(
            candidates, continues, wanted, draws, seed
        )
        weights = _pad_slots(weights, draws)
    elif rule.without_replacement:
        positions = _draw_distinct(candidates, draws, seed)
        wanted = tf.minimum(wanted, available)
        weights = tf.sequence_mask(wanted, draws, dtype=tf.float32)
    else:
        positions = _draw_with_replacement(candidates, draws, seed)
        wanted = tf.where(available > 0, wanted, 0)
        weights = tf.sequence_mask(wanted, draws, dtype=tf.float32)
    positions = _pad_slots(positions, draws)
    used = tf.cast(weights, tf.int32)
    positions *= used  # Unused slots become position 0.
    shown = tf.random.stateless_uniform(
        tf.shape(positions), seeds.seed("show_mask_token")
    )
    hidden = positions * tf.cast(shown < rule.replace_prob, tf.int32)
    masked_ids, _ = scatter_update(
        ids, tf.fill(tf.shape(hidden), special.mask_id), hidden
    )
    return {
        "input_ids": masked_ids,
        "masked_lm_positions": positions,
        "masked_lm_ids": tf.gather(ids, positions, batch_dims=1) * used,
        "masked_lm_weights": weights,
    }


def _pad_slots(tensor: tf.Tensor, slots: int) -> tf.Tensor:
    """Pads [B, fewer] with zeros to [B, slots]."""
    missing = slots - tf.shape(tensor)[1]
    padded = tf.pad(tensor, [[0, 0], [0, missing]])
    return tf.ensure_shape(padded, [None, slots])


# What `disallow_correct` takes off the true token's logit.
DISALLOWED_PENALTY = 1000.0


def sampling_logits(
    logits: tf.Tensor,
    temperature: float,
    disallowed_ids: tf.Tensor | None,
    mix: Callable[[tf.Tensor], tf.Tensor] = lambda logits: logits,
) -> tf.Tensor:
    """Applies the temperature to [B, N, V], then rules out ids [B, N].

    `mix` changes the logits in between, so that what is ruled out is ruled out
    of the mixture.

    Source: google-research/electra, pretrain/pretrain_helpers.py,
    sample_from_softmax, and run_pretraining.py, _get_fake_data.
    """
    if temperature != 1.0:
        logits = logits / temperature
    logits = mix(logits)
    if disallowed_ids is None:
        return logits
    shape = tf.shape(disallowed_ids)
    rows, slots = tf.meshgrid(
        tf.range(shape[0]), tf.range(shape[1]), indexing="ij"
    )
    index = tf.stack([rows, slots, disallowed_ids], -1)
    penalty = tf.fill(shape, DISALLOWED_PENALTY)
    return tf.tensor_scatter_nd_sub(logits, index, penalty)


# What a token without any probability keeps: float32 holds it to its full
# precision, and no draw of 2^-23 resolution ever reaches it.
_NEVER = 1e-37


def unigram_share(
    completed_updates: tf.Tensor, steps: int, floor: float
) -> tf.Tensor:
    """Returns the share of replacements drawn by token counts in an update.

    a = max(floor, 1 - t / steps), a float32 scalar, t the updates made before
    (int64): the first update has 1, updates from `steps` on have `floor`.
    Without steps it is `floor` throughout.

    Source: the weighting of Fast-ELECTRA (Dong et al., ICLR 2024), whose
    auxiliary model has a temperature that falls with the step.
    Differs: what falls is the share of a second, fixed distribution.
    """
    if steps == 0:
        return tf.constant(floor, tf.float32)
    done = tf.cast(completed_updates, tf.float32)
    return tf.maximum(tf.constant(floor, tf.float32), 1.0 - done / steps)


def mixture_logits(
    logits: tf.Tensor, token_shares: np.ndarray, share: tf.Tensor
) -> tf.Tensor:
    """Returns log(a u + (1 - a) softmax(logits)), [B, N, V] to [B, N, V].

    Args:
      logits: float32 [B, N, V], after the temperature.
      token_shares: u, float64 [V], sums to 1.
      share: a, float32 scalar in [0, 1].

    A token without any probability gets log(1e-37): it is never drawn, and
    its gradient is 0 instead of undefined.
    """
    fixed = share * tf.constant(token_shares, tf.float32)
    mixed = fixed + (1.0 - share) * tf.nn.softmax(logits)
    return tf.math.log(tf.maximum(mixed, _NEVER))


def sample_from_softmax(logits: tf.Tensor, uniform: tf.Tensor) -> tf.Tensor:
    """Draws one id per position from softmax(logits): [B, N, V] to [B, N].

    Args:
      uniform: float32 [B, N, 2] in [0, 1).

    Source: google-research/electra, pretrain/pretrain_helpers.py,
    sample_from_softmax.

    Differs: inverts the cumulative distribution, of blocks of ids and then
    within one, where the original adds Gumbel noise to every logit. The
    distribution is the same (the original's up to its 1e-9 guards).
    """
    vocab_size = logits.shape[-1]
    width = math.isqrt(vocab_size - 1) + 1  # of a block; as many blocks
    flat = tf.reshape(tf.stop_gradient(logits), [-1, vocab_size])
    probs = tf.pad(tf.nn.softmax(flat), [[0, 0], [0, width**2 - vocab_size]])
    blocks = tf.reshape(probs, [-1, width, width])
    uniform = tf.reshape(uniform, [-1, 2])
    block = _drawn(tf.reduce_sum(blocks, -1), uniform[:, :1])
    within = tf.gather(blocks, block[:, 0], batch_dims=1)
    within = _drawn(within, uniform[:, 1:])
    # Sums in another order need not be level where there is no weight.
    drawn = tf.minimum(block * width + within, vocab_size - 1)
    return tf.reshape(drawn, tf.shape(logits)[:-1])


def _drawn(weights: tf.Tensor, uniform: tf.Tensor) -> tf.Tensor:
    """Draws by weights [R, K] with numbers in [0, 1), [R, N]: int32 [R, N].

    What has no weight is never drawn; of rows that have none at all, or one
    that is not finite, it is the first.
    """
    cumulative = tf.cumsum(weights, -1)[:, None]  # [R, 1, K]
    reached = (1.0 - uniform[..., None]) * cumulative[..., -1:]
    return tf.reduce_sum(tf.cast(cumulative < reached, tf.int32), -1)


class CorruptedInputs(NamedTuple):
    """What the discriminator sees and what it should say; both int32 [B, L]."""

    input_ids: tf.Tensor
    is_fake_tokens: tf.Tensor  # 1 where replaced


def corrupt_inputs(
    original_ids: tf.Tensor,
    sampled_token_ids: tf.Tensor,
    positions: tf.Tensor,
    sampled_is_fake: bool,
) -> CorruptedInputs:
    """Puts sampled ids at the chosen positions and labels every token.

    Args:
      original_ids: int32 [B, L], unmasked.
      sampled_token_ids: int32 [B, N].
      positions: int32 [B, N]; position 0 marks unused slots.

    Source: google-research/electra, run_pretraining.py, _get_fake_data.
    """
    corrupted, replaced = scatter_update(
        original_ids, sampled_token_ids, positions
    )
    if not sampled_is_fake:
        replaced *= tf.cast(corrupted != original_ids, tf.int32)
    return CorruptedInputs(corrupted, replaced)
