# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Electric's scores: likelihoods of all tokens in context, in one pass.

The discriminator is trained to distinguish text from noise, which is drawn from
q at a share p of the positions. The logit of "noise" is

    disc_logit = E + log q(token | context) + log(p / (1 - p)),

with E the head's raw output. The best classifier's odds of noise are

    p q(token | context) / ((1 - p) P(token | context)),

and exp(disc_logit) = exp(E) p q / (1 - p) implies P(token | context) = exp(-E):
the raw logit is the energy, the learned normalizing constant is 1, and

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

import tensorflow as tf

from electra_tf.pretraining.losses import softmax_cross_entropy
from electra_tf.pretraining.masking import candidates_mask
from electra_tf.pretraining.networks import Features, Networks


def discriminator_energies(networks: Networks, features: Features) -> tf.Tensor:
    """Return Electric's energies of the tokens of texts, float32 [B, L].

    The energies are the logits without the generator's offset, which only
    training needs.

    Args:
      networks: networks with a discriminator and its head.
      features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.
    """
    encoded = networks.encode_second(features["input_ids"], features, None)
    return networks.discriminator_head(encoded.sequence_output)


def electric_scores(
    networks: Networks, features: Features
) -> dict[str, tf.Tensor]:
    """Return Electric's scores of texts; see `pseudo_log_likelihood`."""
    energy = discriminator_energies(networks, features)
    return pseudo_log_likelihood(networks, features, -energy)


def cloze_scores(
    networks: Networks, features: Features
) -> dict[str, tf.Tensor]:
    """Return the scores of texts by a two-tower cloze model, sums of log q.

    See `pseudo_log_likelihood`.
    """
    logits, _ = networks.generator_logits(features)
    log_q = -softmax_cross_entropy(logits, features["input_ids"])
    return pseudo_log_likelihood(networks, features, log_q)


def pseudo_log_likelihood(
    networks: Networks, features: Features, log_probs: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Return the sums of the tokens' log-probabilities.

    [CLS], [SEP], [MASK] and padding are not counted, because training never
    replaces them.

    Args:
      networks: networks, of which the special tokens are read.
      features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.
      log_probs: float32 [B, L], in nats.

    Returns:
      `score` [B], `token_scores` [B, L] (0 for tokens that are not counted),
      both float32 in nats, and `scored` bool [B, L].
    """
    scored = candidates_mask(
        features["input_ids"], features["input_mask"], networks.special
    )
    # A product with the mask would be NaN if a log-probability that is not
    # counted were infinite.
    token_scores = tf.where(scored, log_probs, tf.zeros_like(log_probs))
    return {
        "score": tf.reduce_sum(token_scores, -1),
        "token_scores": token_scores,
        "scored": scored,
    }
