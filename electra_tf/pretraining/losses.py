# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses: softmax, replaced token detection, copying, Electric's offset."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from electra_tf.training.replicas import sum_over_replicas


def global_sum(weights: tf.Tensor) -> tf.Tensor:
    """Return the sum of the weights of a batch over all replicas.

    If losses are divided by this sum, the gradients of all replicas sum to the
    gradient of the whole batch's loss.

    Args:
      weights: weights of this replica, of any shape and dtype.

    Returns:
      float32 scalar.
    """
    total = tf.reduce_sum(tf.cast(weights, tf.float32))
    return sum_over_replicas([total])[0]


def weighted_mean(
    losses: tf.Tensor, weights: tf.Tensor, total: tf.Tensor | None = None
) -> tf.Tensor:
    """Return the contribution of these losses to a global weighted mean.

    The contribution is sum(losses * weights) / (global sum(weights) + 1e-6).

    Args:
      losses: float32, any shape.
      weights: float32, same shape.
      total: float32 scalar, global sum of the weights, if these belong to a
        micro-batch; None: sum over the replicas.

    Returns:
      Scalar, whose sum over replicas and micro-batches is the global mean.
    """
    if total is None:
        total = global_sum(weights)
    return tf.reduce_sum(losses * weights) / (total + 1e-6)


def softmax_cross_entropy(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Return the loss -log softmax(logits)[target] of each target, in nats.

    Logits [..., V] and targets [...] result in losses [...].
    The loss is computed from the softmax, which the gradient needs in any case.
    TensorFlow's operation takes twice as long for a vocabulary on CPUs.

    Source: google-research/electra, run_pretraining.py, get_softmax_output.
    """
    axes = logits.shape.rank - 1

    @tf.custom_gradient
    def of_logits(logits: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        probs = tf.nn.softmax(logits)
        # The largest probability is at least 1 / V, and its logarithm is
        # therefore finite.
        largest = tf.reduce_max(probs, -1)
        total = tf.reduce_max(logits, -1) - tf.math.log(largest)
        losses = total - tf.gather(logits, targets, batch_dims=axes)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            width = logits.shape[-1]
            rows = tf.reshape(probs * upstream[..., None], [-1, width])
            index = tf.reshape(targets, [-1])
            index = tf.stack([tf.range(tf.size(index)), index], -1)
            change = tf.reshape(upstream, [-1])
            rows = tf.tensor_scatter_nd_sub(rows, index, change)
            return tf.reshape(rows, tf.shape(logits))

        return losses, gradient

    return of_logits(logits)


class Prediction(NamedTuple):
    """Predicted tokens, and the losses of the correct tokens."""

    preds: tf.Tensor  # int32 [B, N], most likely tokens
    per_token_loss: tf.Tensor  # float32 [B, N], nats
    loss: tf.Tensor  # float32 scalar, nats; see `weighted_mean`


def predict(
    logits: tf.Tensor,
    targets: tf.Tensor,
    weights: tf.Tensor,
    total: tf.Tensor | None,
) -> Prediction:
    """Return the most likely tokens, and the losses of the correct tokens.

    Args:
      logits: float32 [B, N, V].
      targets: int32 [B, N].
      weights: float32 [B, N].
      total: see `weighted_mean`.

    Source: google-research/electra, run_pretraining.py, get_softmax_output.
    """
    per_token = softmax_cross_entropy(logits, targets)
    return Prediction(
        preds=tf.argmax(logits, -1, output_type=tf.int32),
        per_token_loss=per_token,
        loss=weighted_mean(per_token, weights, total),
    )


def replaced_token_losses(
    logits: tf.Tensor,
    is_fake_tokens: tf.Tensor,
    weights: tf.Tensor,
    total_weight: tf.Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the losses of replaced token detection.

    Args:
      logits: float32 [B, L].
      is_fake_tokens: int32 [B, L], labels.
      weights: int32 [B, L], 1 for tokens with a loss.
      total_weight: see `weighted_mean`.

    Returns:
      float32 scalar, mean over the batch's tokens with a loss, and float32 [B],
      mean over the tokens of each sequence.

    Source: google-research/electra, run_pretraining.py,
    _get_discriminator_output.
    """
    weights = tf.cast(weights, tf.float32)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.cast(is_fake_tokens, tf.float32), logits=logits
    )
    per_example = tf.reduce_sum(losses * weights, -1) / (
        1e-6 + tf.reduce_sum(weights, -1)
    )
    return weighted_mean(losses, weights, total_weight), per_example


def copy_losses(
    copy_logits: tf.Tensor,
    logits: tf.Tensor,
    input_ids: tf.Tensor,
    target_ids: tf.Tensor,
) -> tf.Tensor:
    """Return the losses of predictions with a copy mechanism.

    The loss is -log(D [target = input] + (1 - D) softmax(logits)[target]). The
    function computes a sum of logarithms, so that D and 1 - D may be tiny.

    Args:
      copy_logits: float32 [B, L], whose sigmoid is D.
      logits: float32 [B, L, V].
      input_ids: int32 [B, L].
      target_ids: int32 [B, L].

    Returns:
      float32 [B, L], nats.

    Source: ELECTRA paper section 3.5, All-Tokens MLM.
    """
    log_copy = tf.math.log_sigmoid(copy_logits)
    log_generated = tf.math.log_sigmoid(-copy_logits)
    log_generated -= softmax_cross_entropy(logits, target_ids)
    log_either = log_copy + tf.math.softplus(log_generated - log_copy)
    return -tf.where(target_ids == input_ids, log_either, log_generated)


def electric_correction(
    cloze_logits: tf.Tensor, corrupted_ids: tf.Tensor, mask_prob: float
) -> tf.Tensor:
    """Return the offset of Electric's logits, log q(token) + log(p / (1 - p)).

    Args:
      cloze_logits: float32 [B, L, V], logits of the generator on unmasked
        inputs.
      corrupted_ids: int32 [B, L], inputs of the discriminator.
      mask_prob: p, share of sampled positions, 0-1.

    Returns:
      float32 [B, L], without gradient.

    Source: Electric paper section 2.2; google-research/electra,
    run_pretraining.py, _get_discriminator_output.
    """
    log_q = -softmax_cross_entropy(cloze_logits, corrupted_ids)
    prior = tf.math.log(tf.constant(mask_prob / (1.0 - mask_prob)))
    return tf.stop_gradient(log_q) + prior
