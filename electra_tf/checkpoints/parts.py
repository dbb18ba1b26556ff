# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""One of the two networks out of a pre-training checkpoint."""

from collections.abc import Callable

from configure.errors import UserError
from electra_tf.checkpoints.weights import (
    SLOT_SUFFIXES,
    STEP_NAME,
    Selection,
    Weights,
)

PARTS = ("all", "discriminator", "generator", "encoder")

_ENCODER = "electra/"
_SHARED_EMBEDDINGS = "electra/embeddings/"
_SMALL_GENERATORS = ("generator/", "generator_ltr/", "generator_rtl/")
_GENERATOR_HEADS = ("generator_predictions/", "cloze_predictions/")
_DISCRIMINATOR_HEAD = "discriminator_predictions/"
_TASK_HEADS = "task_specific/"


def has_part(weights: Weights, part: str) -> bool:
    """Whether a checkpoint holds a network, or all of it may be meant.

    Args:
      weights: the checkpoint.
      part: one of `PARTS`.

    Returns:
      For "discriminator" false for a masked LM, which has none; the encoder
      of a fine-tuned model counts as one. For "generator" true for a masked
      LM.
    """
    encodes = _has(weights, f"{_ENCODER}encoder/")
    generates = any(_has(weights, head) for head in _GENERATOR_HEADS)
    if part == "discriminator":
        judges = _has(weights, _DISCRIMINATOR_HEAD)
        return encodes and (judges or not generates)
    if part == "generator":
        return generates
    return part == "all" or encodes


def select_part(weights: Weights, part: str) -> Weights:
    """Takes a network out of a checkpoint.

    Args:
      weights: the checkpoint.
      part: "all"; "discriminator"; "generator"; or "encoder", the
        discriminator (or masked LM) without any head.

    Returns:
      A view: the network's variables with their slots, and the step. Tied
      embeddings are in both parts. What is left out is in `dropped`.

    Raises:
      UserError: if the checkpoint does not hold it.
    """
    if part not in PARTS:
        raise UserError(f"part {part!r}: expected one of {', '.join(PARTS)}.")
    if part == "all":
        return weights
    return {
        "discriminator": discriminator_part,
        "generator": generator_part,
        "encoder": _encoder_part,
    }[part](weights)


def discriminator_part(weights: Weights) -> Weights:
    """Takes the discriminator; see `select_part`.

    Args:
      weights: the checkpoint.

    Returns:
      A view of it; fine-tuning heads stay with the encoder they sit on.
    """
    if not has_part(weights, "discriminator"):
        found = _what_it_is(weights)
        raise UserError(
            f"{weights.path}: holds no discriminator: {found}. Choose another"
            " checkpoint, or --part=generator (--part=encoder for the"
            " transformer of a masked LM)."
        )
    prefixes = (_ENCODER, _DISCRIMINATOR_HEAD, _TASK_HEADS)
    return _part(weights, "discriminator", lambda n: n.startswith(prefixes))


def generator_part(weights: Weights) -> Weights:
    """Takes the generator (or masked LM); see `select_part`.

    Args:
      weights: the checkpoint.

    Returns:
      A view of it. Where one network plays both parts, that is the generator.
    """
    if not has_part(weights, "generator"):
        raise UserError(
            f"{weights.path}: holds no generator: {_what_it_is(weights)}."
            " Choose another checkpoint, or --part=discriminator."
        )
    scopes = [s for s in _SMALL_GENERATORS if _has(weights, s)]
    prefixes = (*(scopes or [_ENCODER]), *_GENERATOR_HEADS)
    if not all(_has(weights, f"{s}embeddings/") for s in scopes):
        prefixes += (_SHARED_EMBEDDINGS,)
    return _part(weights, "generator", lambda n: n.startswith(prefixes))


def _encoder_part(weights: Weights) -> Weights:
    if not has_part(weights, "encoder"):
        raise UserError(
            f"{weights.path}: holds no encoder of scope `electra`:"
            f" {_what_it_is(weights)}."
        )
    return _part(weights, "encoder", lambda n: n.startswith(_ENCODER))


def _part(
    weights: Weights, part: str, belongs: Callable[[str], bool]
) -> Weights:
    selection = Selection(weights, lambda n: n == STEP_NAME or belongs(n))
    selection.dropped |= {
        name: f"not of the {part}"
        for name in weights.specs
        if name not in selection.specs
    }
    return selection


def _has(weights: Weights, prefix: str) -> bool:
    return any(
        name.startswith(prefix) and not name.endswith(SLOT_SUFFIXES)
        for name in weights.specs
    )


def _what_it_is(weights: Weights) -> str:
    names = sorted({name.split("/")[0] for name in weights.shapes})
    if _has(weights, _DISCRIMINATOR_HEAD):
        kind = "a discriminator"
    elif any(_has(weights, scope) for scope in _SMALL_GENERATORS):
        kind = "a generator"
    elif any(_has(weights, head) for head in _GENERATOR_HEADS):
        kind = "a masked LM"
    elif _has(weights, _TASK_HEADS):
        kind = "a fine-tuned model"
    else:
        kind = "another model"
    return f"it is {kind} (scopes {', '.join(names[:6]) or 'none'})"
