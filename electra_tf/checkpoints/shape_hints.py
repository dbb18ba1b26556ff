# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which hparam stands behind an axis of a variable."""

from collections.abc import Sequence

_HIDDEN = "model_size or model_hparam_overrides.hidden_size"
_INNER = "model_hparam_overrides.intermediate_size (4 * hidden_size unless set)"
_GENERATOR = "generator_hidden_size (1.0 for the released small model)"
_WIDTH = "embedding_size"

# Which hparam sets each axis (the last named one, all further axes), by part
# of the variable's name; the first part that matches counts.
_SHAPE_HINTS = (
    (
        "position_embeddings",
        "model_hparam_overrides.max_position_embeddings",
        _WIDTH,
    ),
    (
        "token_type_embeddings",
        "model_hparam_overrides.type_vocab_size",
        _WIDTH,
    ),
    ("word_embeddings", "vocab_size", _WIDTH),
    ("embeddings/LayerNorm", _WIDTH),
    ("electra/embeddings_project/kernel", _WIDTH, _HIDDEN),
    ("embeddings_project/kernel", _WIDTH, _GENERATOR),
    ("output_bias", "vocab_size"),
    ("generator_predictions/dense/kernel", _GENERATOR, _WIDTH),
    ("cloze_predictions/dense/kernel", _GENERATOR, _WIDTH),
    ("generator_predictions/", _WIDTH),
    ("cloze_predictions/", _WIDTH),
    ("generator", _GENERATOR),
    ("intermediate/dense/kernel", _HIDDEN, _INNER),
    ("intermediate/dense/bias", _INNER),
    ("attention/output/dense/kernel", _HIDDEN),
    ("output/dense/kernel", _INNER, _HIDDEN),
    ("", _HIDDEN),
)


def shape_hint(name: str, stored: Sequence[int], wanted: Sequence[int]) -> str:
    """Names the hparams that set the axes in which two shapes differ.

    Args:
      name: of the variable.
      stored: its shape in the checkpoint.
      wanted: its shape in the model.

    Returns:
      Names for a message.
    """
    hints = next(hints for part, *hints in _SHAPE_HINTS if part in name)
    if len(stored) != len(wanted):
        return " and ".join(hints)
    differing = {
        hints[min(axis, len(hints) - 1)]: None
        for axis, sizes in enumerate(zip(stored, wanted, strict=True))
        if sizes[0] != sizes[1]
    }
    return " and ".join(differing)
