# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Masking: positions to predict, masked inputs and corrupted inputs."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.modeling.seeds import SeedStream
from electra_tf.pretraining.sampling import draw_by_weight


@dataclasses.dataclass(frozen=True)
class SpecialTokens:
    """Properties of a vocabulary on which masking depends."""

    cls_id: int
    sep_id: int
    mask_id: int
    continues_word: np.ndarray  # bool [V], True for "##..." wordpieces

    @classmethod
    def of(cls, vocab: Mapping[str, int], vocab_size: int) -> "SpecialTokens":
        """Return the special tokens of a vocabulary.

        Args:
          vocab: ids by token.
          vocab_size: V, number of rows in the embedding table.
        """
        continues = np.zeros([vocab_size], bool)
        for token, index in vocab.items():
            if token.startswith("##") and index < vocab_size:
                continues[index] = True
        return cls(vocab["[CLS]"], vocab["[SEP]"], vocab["[MASK]"], continues)


@dataclasses.dataclass(frozen=True)
class MaskingRule:
    """Rule for choosing positions to predict, and for masking their tokens.

    The defaults are the original's.
    """

    mask_prob: float = 0.15  # share of a sequence's tokens that are chosen
    max_predictions: int = 19  # N, maximum number of positions per sequence
    replace_prob: float = 0.85  # share of chosen tokens replaced by [MASK]
    without_replacement: bool = False  # whether positions are distinct
    whole_words: bool = False  # whether words are chosen as a whole

    @classmethod
    def of(cls, config: PretrainingConfig) -> "MaskingRule":
        """Return the rule that a config's hparams describe."""
        return cls(
            config.mask_prob,
            # The value is not None, because `PretrainingConfig.create` derives
            # a number.
            typing.cast(int, config.max_predictions_per_seq),
            config.mask_replace_prob,
            config.mask_without_replacement,
            config.whole_word_mask,
        )


def scatter_update(
    sequence: tf.Tensor, updates: tf.Tensor, positions: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Replace the ids at some positions of each sequence.

    Position 0 is never replaced, so that unused slots (position 0) have no
    effect. If a position occurs more than once, its updates are summed and
    floor-divided by their number: equal ids do not change, but two different
    sampled ids become their integer mean, as in the original.

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
    """Return the positions that can be masked, bool [B, L].

    [CLS], [SEP], [MASK] and padding are never masked.

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
    """Return the number of positions to choose in each sequence.

    [CLS] and [SEP] count as tokens; the product is rounded half to even.

    Args:
      input_mask: int32 [B, L].
      mask_prob: share of chosen tokens, 0-1.
      max_predictions: N.

    Returns:
      int32 [B], from 1 to N.
    """
    tokens = tf.cast(tf.reduce_sum(input_mask, -1), tf.float32)
    rounded = tf.cast(tf.round(tokens * mask_prob), tf.int32)
    return tf.maximum(1, tf.minimum(max_predictions, rounded))


def _draw_with_replacement(
    candidates: tf.Tensor, draws: int, seed: tf.Tensor
) -> tf.Tensor:
    """Return positions drawn independently and uniformly, int32 [B, draws]."""
    uniform = tf.random.stateless_uniform(
        [tf.shape(candidates)[0], draws], seed
    )
    return draw_by_weight(tf.cast(candidates, tf.float32), uniform)


def _draw_distinct(
    candidates: tf.Tensor, draws: int, seed: tf.Tensor
) -> tf.Tensor:
    """Return distinct drawn positions, candidates first, int32 [B, draws]."""
    noise = tf.random.stateless_uniform(tf.shape(candidates), seed)
    keys = tf.where(candidates, noise, -1.0)
    draws = tf.minimum(draws, tf.shape(candidates)[1])
    return tf.math.top_k(keys, draws).indices


def _draw_whole_words(
    candidates: tf.Tensor,
    continues_word: tf.Tensor,
    pieces: tf.Tensor,
    draws: int,
    seed: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the positions of whole words, at most `pieces` per sequence.

    Words are drawn in random order until the next word would exceed the number.

    Args:
      candidates: bool [B, L].
      continues_word: bool [B, L], True at "##..." wordpieces.
      pieces: int32 [B], number of wordpieces to choose.
      draws: N.
      seed: int32 [2].

    Returns:
      int32 [B, N] positions and float32 [B, N], 1 for used slots. If the first
      word alone exceeds the number, only its first wordpieces are returned.
    """
    length = tf.shape(candidates)[1]
    after_special = ~tf.pad(candidates[:, :-1], [[0, 0], [1, 0]])
    starts = candidates & (~continues_word | after_special)
    # Number (from 1) of the word to which each piece belongs, [B, L].
    word = tf.cumsum(tf.cast(starts, tf.int32), axis=1)
    noise = tf.random.stateless_uniform(tf.shape(candidates), seed)
    key = tf.gather(noise, tf.maximum(word - 1, 0), batch_dims=1)
    key = tf.where(candidates, key, 2.0)
    # A stable sort keeps the pieces of a word together and in order.
    order = tf.argsort(key, axis=1, stable=True)  # [B, L]
    ordered_word = tf.gather(word, order, batch_dims=1)
    usable = tf.gather(candidates, order, batch_dims=1)
    chosen = tf.sequence_mask(pieces, length) & usable
    # The word that crosses the limit is left out whole, unless it is the first
    # word.
    limit = tf.minimum(pieces, length - 1)[:, None]
    crossing = tf.gather(ordered_word, limit, batch_dims=1)
    crosses = (
        tf.gather(usable, limit, batch_dims=1) & (pieces < length)[:, None]
    )
    excluded = crosses & (ordered_word == crossing)
    excluded &= ordered_word != ordered_word[:, :1]
    weights = tf.cast(chosen & ~excluded, tf.float32)
    return order[:, :draws], weights[:, :draws]


def mask_inputs(
    features: Mapping[str, tf.Tensor],
    special: SpecialTokens,
    rule: MaskingRule,
    seeds: SeedStream,
) -> dict[str, tf.Tensor]:
    """Choose positions to predict, and mask most of their tokens.

    Args:
      features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.
      special: special tokens of the vocabulary.
      rule: numbers of positions, and the way of choosing them.
      seeds: seeds, of which the sites `masked_positions` and `show_mask_token`
        are used.

    Returns:
      `input_ids` int32 [B, L] after masking, `masked_lm_positions` and
      `masked_lm_ids` int32 [B, N], `masked_lm_weights` float32 [B, N] (1
      for used slots; unused slots have position 0 and id 0).

    Source: google-research/electra, pretrain/pretrain_helpers.py, mask.

    Differs: a sequence without candidates has weight 0 everywhere; the
    original reads one position past the row's end.
    """
    ids, input_mask = features["input_ids"], features["input_mask"]
    draws = rule.max_predictions
    candidates = candidates_mask(ids, input_mask, special)
    count = number_to_predict(input_mask, rule.mask_prob, draws)
    available = tf.reduce_sum(tf.cast(candidates, tf.int32), -1)  # [B]
    seed = seeds.seed("masked_positions")
    if rule.whole_words:
        continues = tf.gather(tf.constant(special.continues_word), ids)
        count = tf.minimum(count, available)
        positions, weights = _draw_whole_words(
            candidates, continues, count, draws, seed
        )
        weights = _pad_slots(weights, draws)
    elif rule.without_replacement:
        positions = _draw_distinct(candidates, draws, seed)
        count = tf.minimum(count, available)
        weights = tf.sequence_mask(count, draws, dtype=tf.float32)
    else:
        positions = _draw_with_replacement(candidates, draws, seed)
        count = tf.where(available > 0, count, 0)
        weights = tf.sequence_mask(count, draws, dtype=tf.float32)
    positions = _pad_slots(positions, draws)
    used = tf.cast(weights, tf.int32)
    # Position 0 marks unused slots, because `scatter_update` ignores it.
    positions *= used
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
    """Append zeros to a tensor with at most `slots` columns: [B, slots]."""
    # A known static size is used, because XLA needs an additional operation for
    # a dynamic size.
    fewer = tensor.shape[1]
    if fewer is None:
        fewer = tf.shape(tensor)[1]
    padded = tf.pad(tensor, [[0, 0], [0, slots - fewer]])
    if padded.shape[1] is None:
        padded = tf.ensure_shape(padded, [None, slots])
    return padded


class CorruptedInputs(NamedTuple):
    """Inputs of the second network with their labels, both int32 [B, L]."""

    input_ids: tf.Tensor
    is_fake_tokens: tf.Tensor  # 1: replaced, 0: original


def corrupt_inputs(
    original_ids: tf.Tensor,
    sampled_token_ids: tf.Tensor,
    positions: tf.Tensor,
    sampled_is_fake: bool,
) -> CorruptedInputs:
    """Write sampled ids at the chosen positions, and label all tokens.

    Args:
      original_ids: int32 [B, L], unmasked.
      sampled_token_ids: int32 [B, N].
      positions: int32 [B, N]; position 0 marks unused slots.
      sampled_is_fake: whether a sample that equals the original token is
        labeled as replaced (Electric) instead of original (ELECTRA).

    Source: google-research/electra, run_pretraining.py, _get_fake_data.
    """
    corrupted, replaced = scatter_update(
        original_ids, sampled_token_ids, positions
    )
    if not sampled_is_fake:
        replaced *= tf.cast(corrupted != original_ids, tf.int32)
    return CorruptedInputs(corrupted, replaced)
