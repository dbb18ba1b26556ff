# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sampling replacements from the generator, and the corrupted inputs."""

from typing import NamedTuple

import tensorflow as tf

from electra_tf.modeling.sequence_ops import scatter_update

# What `disallow_correct` takes off the true token's logit.
DISALLOWED_PENALTY = 1000.0


def sampling_logits(
    logits: tf.Tensor, temperature: float, disallowed_ids: tf.Tensor | None
) -> tf.Tensor:
    """Applies the temperature to [B, N, V], then rules out ids [B, N].

    Source: google-research/electra, pretrain/pretrain_helpers.py,
    sample_from_softmax, and run_pretraining.py, _get_fake_data.
    """
    if temperature != 1.0:
        logits = logits / temperature
    if disallowed_ids is None:
        return logits
    shape = tf.shape(disallowed_ids)
    rows, slots = tf.meshgrid(
        tf.range(shape[0]), tf.range(shape[1]), indexing="ij"
    )
    index = tf.stack([rows, slots, disallowed_ids], -1)
    penalty = tf.fill(shape, DISALLOWED_PENALTY)
    return tf.tensor_scatter_nd_sub(logits, index, penalty)


def sample_from_softmax(logits: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Draws one id per position from softmax(logits): [B, N, V] to [B, N].

    Source: google-research/electra, pretrain/pretrain_helpers.py,
    sample_from_softmax.

    Differs: on a CPU, TensorFlow's kernel inverts the cumulative distribution
    with one uniform a position where the original adds Gumbel noise to every
    logit; on a GPU the kernel adds such noise, too. The distribution is the
    same (the original's up to its 1e-9 guards).
    """
    vocab_size = logits.shape[-1]
    flat = tf.reshape(tf.stop_gradient(logits), [-1, vocab_size])
    sampled = tf.random.stateless_categorical(flat, 1, seed, tf.int32)
    return tf.reshape(sampled, tf.shape(logits)[:-1])


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
