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

Features = Mapping[str, tf.Tensor]


def energies(
    disc_logits: tf.Tensor, log_q: tf.Tensor, mask_prob: float
) -> tf.Tensor:
    """Takes Electric's offset off the logits that `compute` returns.

    Args:
      disc_logits: float32 [B, L], with log q and log(p / (1 - p)) in them.
      log_q: float32 [B, L], the cloze model's log-probability of each token
        that the discriminator saw; see `cloze_log_probs`.
      mask_prob: p, the share of positions sampled in training, 0-1.

    Returns:
      float32 [B, L], the head's raw output: the energy, -log P(token |
      context).
    """
    prior = tf.math.log(tf.constant(mask_prob / (1.0 - mask_prob)))
    return disc_logits - log_q - prior


def cloze_log_probs(cloze_logits: tf.Tensor, input_ids: tf.Tensor) -> tf.Tensor:
    """Returns log q(token | context) of the two-tower cloze model.

    Args:
      cloze_logits: float32 [B, L, V].
      input_ids: int32 [B, L], the tokens to look up.

    Returns:
      float32 [B, L], in nats; without meaning at [CLS] and [SEP], where the
      towers' outputs are rotated from the other end.
    """
    return -softmax_cross_entropy(cloze_logits, input_ids)


def pseudo_log_likelihood(
    energy: tf.Tensor, scored: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns each text's score, and each token's share of it.

    Args:
      energy: float32 [B, L], raw logits of the discriminator's head.
      scored: bool [B, L], True for the tokens that count: see
        `scored_positions`.

    Returns:
      float32 [B], the sum of -energy over them, in nats, and float32 [B, L],
      -energy, 0 elsewhere.
    """
    # Not a product: what does not count may be infinite.
    per_token = tf.where(scored, -energy, tf.zeros_like(energy))
    return tf.reduce_sum(per_token, -1), per_token


def scored_positions(features: Features, special: Any) -> tf.Tensor:
    """Marks the tokens that count.

    Args:
      features: int32 [B, L] `input_ids` and `input_mask`.

    Returns:
      bool [B, L], False for [CLS], [SEP], [MASK] and padding: the positions at
      which training never put noise.
    """
    return candidates_mask(
        features["input_ids"], features["input_mask"], special
    )


def discriminator_energies(model: Any, features: Features) -> tf.Tensor:
    """Runs Electric's discriminator on texts as they are.

    The generator is not needed: what training adds to the logits is not added.

    Args:
      features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.

    Returns:
      float32 [B, L], the energies.
    """
    encoded = model.discriminator(
        features["input_ids"], features["input_mask"], features["segment_ids"]
    )
    return model.discriminator_head(encoded.sequence_output)


def electric_scores(
    model: Any, features: Features, with_cloze: bool = False
) -> dict[str, tf.Tensor]:
    """Scores texts in one pass.

    Args:
      features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.

    Returns:
      `score` [B], `token_scores` [B, L] (0 where none counts), both float32
      in nats, `scored` bool [B, L]; with the cloze model also `cloze_score`
      [B] and `cloze_token_scores` [B, L].
    """
    scored = scored_positions(features, model.special)
    score, token_scores = pseudo_log_likelihood(
        discriminator_energies(model, features), scored
    )
    outputs = {"score": score, "token_scores": token_scores, "scored": scored}
    return outputs | (cloze_scores(model, features) if with_cloze else {})


def cloze_scores(model: Any, features: Features) -> dict[str, tf.Tensor]:
    """Scores texts with the two-tower cloze model alone.

    Args:
      features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.

    Returns:
      `cloze_score` [B], the sum of log q over the tokens that count, and
      `cloze_token_scores` [B, L], float32 in nats; `scored` bool [B, L].
    """
    context, _, _ = model.generator(
        features["input_ids"], features["input_mask"], features["segment_ids"]
    )
    table = model.generator.ltr.embeddings.word_embeddings
    logits = model.masked_lm_head(context, table)
    scored = scored_positions(features, model.special)
    log_q = cloze_log_probs(logits, features["input_ids"])
    score, per_token = pseudo_log_likelihood(-log_q, scored)
    return {
        "cloze_score": score,
        "cloze_token_scores": per_token,
        "scored": scored,
    }
