# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which positions of a sentence are masked: drawn, chosen, or none."""

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.modeling.seeds import SeedStream
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.pretraining.masking import MaskingRule, mask_inputs
from electra_tf.text.tokenization import JOINER

Features = dict[str, tf.Tensor]


def drawn_inputs(
    pretrained: PretrainedModel,
    features: Features,
    mask_prob: float,
    seed: tf.Tensor,
) -> Features:
    """Draws positions as training does, but distinct ones.

    Args:
      pretrained: the model; whole-word masking and the share that shows
        [MASK] are its own.
      features: int32 [1, L] `input_ids`, `input_mask`, `segment_ids`.
      seed: int32 [2].
    """
    model = pretrained.model
    length = int(features["input_ids"].shape[1])
    rule = MaskingRule(
        mask_prob,
        max(1, math.ceil(length * mask_prob)),
        model.masking_rule.replace_prob,
        without_replacement=True,
        whole_words=model.masking_rule.whole_words,
    )
    return mask_inputs(features, model.special, rule, SeedStream(seed))


def chosen_inputs(
    pretrained: PretrainedModel,
    features: Features,
    words: Sequence[str],
    positions: Sequence[int],
) -> Features:
    """Masks what somebody chose, all of it in sight as [MASK].

    Args:
      features: int32 [1, L] `input_ids`, `input_mask`, `segment_ids`.
      positions: tokens, counted from 1 ([CLS] is 0).

    Returns:
      As `drawn_inputs`. Where the text says [MASK], that is chosen, too.
    """
    special = pretrained.model.special
    ids = features["input_ids"].numpy()[0].tolist()
    chosen = {i for i, token in enumerate(ids) if token == special.mask_id}
    for position in positions:
        if not 1 <= position <= len(ids) - 2:
            raise UserError(
                f"position {position}: the text has tokens 1 to"
                f" {len(ids) - 2} (0 is [CLS])."
            )
        chosen.add(position)
    tokens = pretrained.tokenizer.convert_ids_to_tokens(ids)
    for word in words:
        chosen.update(_places_of(pretrained, word, tokens))
    return _masked_at(features, sorted(chosen), special.mask_id)


def untouched_inputs(features: Features) -> Features:
    """Masks nothing; see `drawn_inputs` for what is returned."""
    return _masked_at(features, [], 0)


def _places_of(
    pretrained: PretrainedModel, word: str, tokens: Sequence[str]
) -> list[int]:
    """Positions of a word's pieces, wherever it stands as a whole word."""
    pieces = pretrained.tokenizer.tokenize(word)
    count = len(pieces)
    places: list[int] = []
    # [CLS] and [SEP] are in no word.
    for start in range(1, len(tokens) - count):
        end = start + count
        if list(tokens[start:end]) == pieces and not (
            tokens[end].startswith(JOINER)
        ):
            places += range(start, end)
    if not places or not pieces:
        raise UserError(
            f"mask_words: {word!r} ({' '.join(pieces) or 'no tokens'}) is not"
            f" in the text, whose tokens are: {' '.join(tokens[1:-1])}"
        )
    return places


def _masked_at(
    features: Features, positions: Sequence[int], mask_id: int
) -> Features:
    ids = features["input_ids"].numpy()
    masked = ids.copy()
    masked[0, list(positions)] = mask_id
    # One slot at least: position 0 with weight 0 is an unused one.
    slots = np.zeros([1, max(1, len(positions))], np.int32)
    slots[0, : len(positions)] = positions
    weights = (slots > 0).astype(np.float32)
    return {
        "input_ids": tf.constant(masked),
        "masked_lm_positions": tf.constant(slots),
        "masked_lm_ids": tf.constant(
            (ids[0][slots] * weights).astype(np.int32)
        ),
        "masked_lm_weights": tf.constant(weights),
    }
