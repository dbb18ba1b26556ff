# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores of texts in one pass: Electric's, and the two-tower cloze model's."""

import abc
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import GeneratorKind
from electra_tf.inspection.sentences import framed, padded
from electra_tf.inspection.text_scoring import Answer, Row, TextScorer
from electra_tf.modeling.layers import inference
from electra_tf.pretraining import scoring
from electra_tf.pretraining.loading import PretrainedModel

Outputs = Mapping[str, tf.Tensor]


class _OnePassScorer(TextScorer):
    """Every token of a window in one input."""

    _compute: Callable[..., Outputs]

    def _rows(self, text: int, ids: Sequence[int]) -> list[Row]:
        return self._whole_windows(text, ids)

    def _run(self, rows: Sequence[Row]) -> list[Answer]:
        features = padded([framed(self.pretrained, row.shown) for row in rows])
        outputs = self._compute(**features)
        values = {
            method: outputs[name].numpy()
            for method, name in self._outputs().items()
        }
        answers = []
        for place, row in enumerate(rows):
            window = row.window
            # One further on: [CLS] comes first.
            first = window.first - window.begin + 1
            last = window.last - window.begin + 1
            answers.append(
                {name: v[place, first:last] for name, v in values.items()}
            )
        return answers

    @abc.abstractmethod
    def _outputs(self) -> dict[str, str]:
        """Names of the per-token outputs by method."""


class ElectricScorer(_OnePassScorer):
    """Pseudo-log-likelihood by Electric: minus the sum of its energies.

    Source: see `electra_tf.pretraining.scoring`.
    """

    method = "electric"

    def __init__(
        self,
        pretrained: PretrainedModel,
        batch_size: int = 32,
        with_cloze: bool = False,
    ) -> None:
        super().__init__(pretrained, batch_size)
        if not pretrained.is_electric:
            raise UserError(
                f"{pretrained.path}: not an Electric model; only Electric's"
                " discriminator gives likelihoods (ELECTRA's tells real from"
                " replaced, against its own generator). Methods for other"
                " models: cloze (two towers), masked_lm."
            )
        pretrained.require_discriminator("scoring")
        self._also_cloze = with_cloze
        if with_cloze:
            pretrained.require_generator("the cloze score")
        model = pretrained.model
        self._compute = _in_graph(
            lambda features: scoring.electric_scores(
                model, features, with_cloze
            )
        )

    def _outputs(self) -> dict[str, str]:
        names = {"electric": "token_scores"}
        if self._also_cloze:
            names["cloze"] = "cloze_token_scores"
        return names


class ClozeScorer(_OnePassScorer):
    """Pseudo-log-likelihood by the two-tower cloze model alone."""

    method = "cloze"

    def __init__(
        self, pretrained: PretrainedModel, batch_size: int = 32
    ) -> None:
        super().__init__(pretrained, batch_size)
        pretrained.require_generator("the cloze score")
        model = pretrained.model
        if model.kind is not GeneratorKind.TWO_TOWER:
            raise UserError(
                f"{pretrained.path}: the cloze score is that of a two-tower"
                " cloze model, and this generator is a masked LM; choose"
                " masked_lm."
            )
        self._compute = _in_graph(
            lambda features: scoring.cloze_scores(model, features)
        )

    def _outputs(self) -> dict[str, str]:
        return {"cloze": "cloze_token_scores"}


def _in_graph(
    function: Callable[[Mapping[str, tf.Tensor]], Outputs],
) -> Callable[..., Outputs]:
    """One graph for every batch size and length."""
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids, ids, ids])
    def compute(
        input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor
    ) -> Outputs:
        with inference():
            return function(
                {
                    "input_ids": input_ids,
                    "input_mask": input_mask,
                    "segment_ids": segment_ids,
                }
            )

    return compute
