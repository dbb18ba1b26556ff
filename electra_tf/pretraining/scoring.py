# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Electric as a scorer: how likely each token is in its context, in one pass.

Training teaches the discriminator to tell noise, drawn from q at a share p of
the positions, from text. Its logit for "noise" is written

    disc_logit = E + log q(token | context) + log(p / (1 - p)),

with E the head's raw output. The best classifier's odds of noise are

    p q(token | context) / ((1 - p) P(token | context)),

so exp(disc_logit) = exp(E) p q / (1 - p) makes P(token | context) = exp(-E):
the raw logit is the energy, the normalizing constant is learned to be 1, and

    log P(token | context) = -E
                           = log q(token | context) + log(p / (1 - p))
                             - disc_logit.

The pseudo-log-likelihood of a text is the sum over its tokens, without
[CLS], [SEP], [MASK] and padding.

Source: Clark et al. 2020, "Pre-Training Transformers as Energy-Based Cloze
Models", section 2 (the model and its noise-contrastive loss) and section 3
(pseudo-log-likelihoods); google-research/electra, run_pretraining.py,
_get_discriminator_output, for the sign of the logit.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from electra_tf.pretraining.losses import softmax_cross_entropy
from electra_tf.pretraining.masking import candidates_mask

# int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.
Features = Mapping[str, tf.Tensor]


def discriminator_energies(model: Any, features: Features) -> tf.Tensor:
    """Electric's energies of texts as they are, float32 [B, L].

    The generator is not needed: what training adds to the logits is not added.
    """
    encoded = model.discriminator(
        features["input_ids"], features["input_mask"], features["segment_ids"]
    )
    return model.discriminator_head(encoded.sequence_output)


def electric_scores(model: Any, features: Features) -> dict[str, tf.Tensor]:
    """Scores texts in one pass; see `pseudo_log_likelihood`."""
    energy = discriminator_energies(model, features)
    return pseudo_log_likelihood(model, features, -energy)


def cloze_scores(model: Any, features: Features) -> dict[str, tf.Tensor]:
    """Scores texts with the two-tower cloze model alone: the sum of log q."""
    logits, _ = model.generator_logits(features)
    log_q = -softmax_cross_entropy(logits, features["input_ids"])
    return pseudo_log_likelihood(model, features, log_q)


def pseudo_log_likelihood(
    model: Any, features: Features, log_probs: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Adds up log-probabilities [B, L] of the tokens that count.

    Not [CLS], [SEP], [MASK] and padding, at which training never put noise.

    Returns:
      `score` [B], `token_scores` [B, L] (0 where none counts), both float32
      in nats, `scored` bool [B, L].
    """
    scored = candidates_mask(
        features["input_ids"], features["input_mask"], model.special
    )
    # Not a product: what does not count may be infinite.
    shares = tf.where(scored, log_probs, tf.zeros_like(log_probs))
    return {
        "score": tf.reduce_sum(shares, -1),
        "token_scores": shares,
        "scored": scored,
    }
