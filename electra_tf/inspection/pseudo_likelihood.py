# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores of texts by a masked LM: one mask, hence one input, a token.

The slow reference: a text of n tokens takes n passes where Electric takes one.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import GeneratorKind
from electra_tf.inspection.sentences import framed, padded
from electra_tf.inspection.text_scoring import Answer, Row, TextScorer
from electra_tf.modeling.layers import inference
from electra_tf.modeling.sequence_ops import gather_positions
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.pretraining.losses import softmax_cross_entropy


class PseudoLikelihoodScorer(TextScorer):
    """Sum over tokens of log P(token | the others), each masked in turn.

    Source: Salazar et al. 2020, "Masked Language Model Scoring", section 2.
    """

    method = "masked_lm"

    def __init__(
        self, pretrained: PretrainedModel, batch_size: int = 32
    ) -> None:
        super().__init__(pretrained, batch_size)
        pretrained.require_generator("the masked-LM score")
        if pretrained.model.kind is GeneratorKind.TWO_TOWER:
            raise UserError(
                f"{pretrained.path}: its two towers need no masks; choose"
                " cloze, or electric."
            )
        self._compute = _masked_log_probs(pretrained.model)

    def _rows(self, text: int, ids: Sequence[int]) -> list[Row]:
        return [
            Row(text, row.window, place, ids)
            for row in self._whole_windows(text, ids)
            for place in range(row.window.first, row.window.last)
        ]

    def _run(self, rows: Sequence[Row]) -> list[Answer]:
        mask_id = self.pretrained.model.special.mask_id
        inputs, positions, targets = [], [], []
        for row in rows:
            position = row.place - row.window.begin + 1
            ids = framed(self.pretrained, row.shown)
            targets.append(ids[position])
            ids[position] = mask_id
            inputs.append(ids)
            positions.append(position)
        log_probs = self._compute(
            **padded(inputs),
            positions=np.array(positions, np.int32)[:, None],
            targets=np.array(targets, np.int32)[:, None],
        ).numpy()
        return [{self.method: values} for values in log_probs]


def _masked_log_probs(model):
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids] * 5)
    def compute(
        input_ids: tf.Tensor,
        input_mask: tf.Tensor,
        segment_ids: tf.Tensor,
        positions: tf.Tensor,
        targets: tf.Tensor,
    ) -> tf.Tensor:
        with inference():
            encoded = model.generator(input_ids, input_mask, segment_ids)
            logits = model.masked_lm_head(
                gather_positions(encoded.sequence_output, positions),
                model.generator.embeddings.word_embeddings,
            )
        return -softmax_cross_entropy(logits, targets)

    return compute
