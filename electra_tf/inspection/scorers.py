# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which scorer: by name, or the best that a model offers."""

from configure.errors import UserError
from configure.pretraining import GeneratorKind
from electra_tf.inspection.electric_score import ClozeScorer, ElectricScorer
from electra_tf.inspection.pseudo_likelihood import PseudoLikelihoodScorer
from electra_tf.inspection.text_scoring import TextScorer
from electra_tf.pretraining.loading import PretrainedModel

METHODS = ("auto", "electric", "cloze", "masked_lm")


def make_scorer(
    pretrained: PretrainedModel,
    method: str = "auto",
    batch_size: int = 32,
    with_cloze: bool = False,
) -> TextScorer:
    """Returns a scorer of texts."""
    if method not in METHODS:
        raise UserError(
            f"method {method!r}: expected one of {', '.join(METHODS)}."
        )
    if method == "auto":
        method = _best_method(pretrained)
    if with_cloze and method != "electric":
        raise UserError(
            f"The cloze score stands beside Electric's; the method is {method}."
        )
    if method == "electric":
        return ElectricScorer(pretrained, batch_size, with_cloze)
    if method == "cloze":
        return ClozeScorer(pretrained, batch_size)
    return PseudoLikelihoodScorer(pretrained, batch_size)


def _best_method(pretrained: PretrainedModel) -> str:
    if pretrained.is_electric and not pretrained.lacks_discriminator():
        return "electric"
    if pretrained.model.kind is GeneratorKind.TWO_TOWER:
        return "cloze"
    return "masked_lm"
