# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sampling of replacements: temperature, mixture with token counts, draws."""

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

# Value that `disallow_correct` subtracts from the original token's logit.
DISALLOWED_PENALTY = 1000.0
# Lower limit of probabilities, so that their logarithms are finite. Draws have
# a resolution of 2^-23, so a token with this probability is never drawn.
_NEVER = 1e-37


def sampling_logits(
    logits: tf.Tensor,
    temperature: float,
    disallowed_ids: tf.Tensor | None,
    mix: Callable[[tf.Tensor], tf.Tensor] = lambda logits: logits,
) -> tf.Tensor:
    """Return the logits of the distribution of replacements.

    Args:
      logits: float32 [B, N, V], logits of the generator.
      temperature: divisor of the logits; below 1 the distribution is sharper.
      disallowed_ids: int32 [B, N], ids that are never sampled; None: all ids
        may be sampled.
      mix: function that changes the logits after the temperature and before ids
        are disallowed, so that a disallowed id has no share of a mixture.

    Returns:
      float32 [B, N, V].

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


def unigram_share(
    completed_updates: tf.Tensor, steps: int, floor: float
) -> tf.Tensor:
    """Return the share of an update's replacements drawn by token counts.

    The share is max(floor, 1 - t / steps), with t the completed updates: 1 in
    the first update, and `floor` from update `steps`.

    Args:
      completed_updates: int64 scalar.
      steps: number of updates in which the share falls; 0: the share is always
        `floor`.
      floor: minimum share, 0-1.

    Returns:
      float32 scalar.

    Source: the weighting of Fast-ELECTRA (Dong et al., ICLR 2024), whose
    auxiliary model has a temperature that falls with the step.
    Differs: the share of a second, fixed distribution falls instead.
    """
    if steps == 0:
        return tf.constant(floor, tf.float32)
    done = tf.cast(completed_updates, tf.float32)
    return tf.maximum(tf.constant(floor, tf.float32), 1.0 - done / steps)


def mixture_logits(
    logits: tf.Tensor, token_shares: np.ndarray, share: tf.Tensor
) -> tf.Tensor:
    """Return the logits of a mixture of the softmax and token shares.

    The logits are log(a u + (1 - a) softmax(logits)), float32 [B, N, V]. A
    token with probability 0 has the logit log(1e-37). This token is therefore
    never drawn, and its gradient is 0 instead of undefined.

    Args:
      logits: float32 [B, N, V], after the temperature.
      token_shares: u, float64 [V], with sum 1.
      share: a, float32 scalar in [0, 1].
    """
    fixed = share * tf.constant(token_shares, tf.float32)
    mixed = fixed + (1.0 - share) * tf.nn.softmax(logits)
    return tf.math.log(tf.maximum(mixed, _NEVER))


def sample_from_softmax(logits: tf.Tensor, uniform: tf.Tensor) -> tf.Tensor:
    """Return one id for each position, drawn from softmax(logits).

    Args:
      logits: float32 [B, N, V].
      uniform: float32 [B, N, 2] in [0, 1).

    Returns:
      int32 [B, N].

    Source: google-research/electra, pretrain/pretrain_helpers.py,
    sample_from_softmax.

    Differs: inverts the cumulative distribution, first of blocks of ids and
    then within a block, whereas the original adds Gumbel noise to each logit.
    The distributions are equal, except for the original's 1e-9 guards.
    """
    vocab_size = logits.shape[-1]
    # Number of blocks, and number of ids in each block.
    width = math.isqrt(vocab_size - 1) + 1
    flat = tf.reshape(tf.stop_gradient(logits), [-1, vocab_size])
    probs = tf.pad(tf.nn.softmax(flat), [[0, 0], [0, width**2 - vocab_size]])
    blocks = tf.reshape(probs, [-1, width, width])
    uniform = tf.reshape(uniform, [-1, 2])
    block = draw_by_weight(tf.reduce_sum(blocks, -1), uniform[:, :1])
    within = tf.gather(blocks, block[:, 0], batch_dims=1)
    within = draw_by_weight(within, uniform[:, 1:])
    # By rounding, a cumulative sum can rise at an id with weight 0, and a draw
    # could then end in the padding.
    sampled = tf.minimum(block * width + within, vocab_size - 1)
    return tf.reshape(sampled, tf.shape(logits)[:-1])


def draw_by_weight(weights: tf.Tensor, uniform: tf.Tensor) -> tf.Tensor:
    """Return column indices drawn in proportion to weights.

    A column with weight 0 is never drawn. In a row without positive weights, or
    with a weight that is not finite, all draws are column 0.

    Args:
      weights: float32 [R, K].
      uniform: float32 [R, N] in [0, 1).

    Returns:
      int32 [R, N].
    """
    cumulative = tf.cumsum(weights, -1)[:, None]  # [R, 1, K]
    reached = (1.0 - uniform[..., None]) * cumulative[..., -1:]
    return tf.reduce_sum(tf.cast(cumulative < reached, tf.int32), -1)
