# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adversarial training: the generator maximizes the discriminator's loss.

Source: ELECTRA paper, appendix F.
"""

from collections.abc import Mapping
from typing import TypedDict

import tensorflow as tf

from electra_tf.pretraining import losses
from electra_tf.pretraining.networks import Networks

Tensors = Mapping[str, tf.Tensor]
# Names of the values, other than losses, that adversarial training logs.
REWARDS = ("reward", "baseline")


class AdversarialOutputs(TypedDict):
    """Outputs that adversarial training adds, in nats."""

    policy_loss: tf.Tensor  # float32 scalar
    baseline_loss: tf.Tensor  # float32 scalar
    reward: tf.Tensor  # float32 scalar, mean over the chosen positions
    baseline: tf.Tensor  # float32 scalar, mean over the chosen positions
    rewards: tf.Tensor  # float32 [B, N]


def adversarial_losses(
    networks: Networks,
    outputs: Tensors,
    totals: Tensors,
    unigram_share: tf.Tensor | None = None,
) -> AdversarialOutputs:
    """Return the losses of a generator that maximizes a discriminator's loss.

    The gradient is that of REINFORCE, with positions treated as independent:
    the reward R of a sampled token is the discriminator's loss on this token.
    The generator's loss is -(R - b) log p(sampled), with p the sampling
    distribution. The baseline b = -log sigmoid(w h + c), with h the generator's
    vector, is trained by the cross-entropy of exp(-b) with exp(-R), the
    discriminator's probability of the correct label. The gradient of the
    baseline ends before h.

    A position that was drawn twice contains the mean of its two samples' ids
    (see `masking.scatter_update`). A sample that the input does not contain has
    no loss.

    Args:
      networks: networks of the model.
      outputs: outputs of generator and discriminator.
      totals: `mlm`, number of chosen positions in the whole batch; empty: these
        rows are the whole batch.
      unigram_share: float32 scalar; if set, p is the mixture with the token
        counts (see `sampling.mixture_logits`).

    Source: ELECTRA paper, appendix F. Differs: adds c, which the paper omits.
    """
    logits, labels, shown, vectors = (
        tf.gather(tensor, outputs["masked_lm_positions"], batch_dims=1)
        for tensor in (
            outputs["disc_logits"],
            outputs["fake_is_fake_tokens"],
            outputs["fake_input_ids"],
            outputs["generator_layers"][-1],
        )
    )
    cross_entropy = tf.nn.sigmoid_cross_entropy_with_logits
    rewards = cross_entropy(tf.cast(labels, tf.float32), logits)
    rewards = tf.stop_gradient(rewards)
    expected = networks.reward_baseline(tf.stop_gradient(vectors))[..., 0]
    baselines = tf.stop_gradient(tf.nn.softplus(-expected))
    sampled, chosen = outputs["sampled_tokids"], outputs["masked_lm_weights"]
    sampling_logits = networks.sampling_logits(
        outputs["mlm_logits"], outputs["masked_lm_ids"], unigram_share
    )
    log_p = -losses.softmax_cross_entropy(sampling_logits, sampled)
    total = totals.get("mlm")
    # Callers with micro-batches pass `totals`, because `global_sum` cannot sum
    # over replicas within a micro-batch.
    if total is None:
        total = losses.global_sum(chosen)
    trained = chosen * tf.cast(shown == sampled, tf.float32)
    mean = losses.weighted_mean
    return {
        "policy_loss": mean((baselines - rewards) * log_p, trained, total),
        "baseline_loss": mean(
            cross_entropy(tf.exp(-rewards), expected), trained, total
        ),
        "reward": mean(rewards, chosen, total),
        "baseline": mean(baselines, chosen, total),
        "rewards": rewards,
    }
