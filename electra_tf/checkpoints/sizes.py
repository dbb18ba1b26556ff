# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From the shapes of a checkpoint to the hparams of its model."""

import dataclasses
from typing import Any

from configure.pretraining_checks import MODEL_SIZES
from electra_tf.checkpoints.measured import (
    TWO_TOWERS,
    ModelSizes,
    Shapes,
    Stack,
    measure,
)
from electra_tf.modeling.encoder_config import EncoderConfig

# The original's debug model, whose heads do not follow the rule.
_DEBUG_SHAPE, _DEBUG_HEADS = (144, 3, 576), 4


def infer_hparams(shapes: Shapes) -> dict[str, Any]:
    """Infers the hparams that make a model of these variables.

    A generator alone is described as that of a discriminator of its own size;
    for what shapes cannot tell see `not_inferable`.

    Args:
      shapes: of the model's variables, by the original's names.

    Returns:
      Hparams by `PretrainingConfig`'s names. Those on objective and generator
      are left out for a fine-tuned model, which shows neither.

    Raises:
      UserError: as `measure`.
    """
    sizes = measure(shapes)
    stack = sizes.encoder or sizes.generator
    assert stack is not None  # `measure` saw to it
    hparams = _encoder_hparams(stack, sizes)
    if sizes.discriminates is None:
        return hparams
    if sizes.encoder is not None and not sizes.discriminates:
        return hparams | {"electra_objective": False}
    if sizes.generator is None:
        if sizes.generator_scope is None:
            return hparams | {"uniform_generator": True}
        return hparams | {"untied_generator": False}
    if sizes.generator_scope == TWO_TOWERS:
        hparams |= {
            "electra_objective": False,
            "electric_objective": True,
            "two_tower_generator": True,
        }
    if sizes.untied_embeddings:
        hparams["untied_generator_embeddings"] = True
    return hparams | {
        "generator_hidden_size": share(stack, sizes.generator, "hidden_size"),
        "generator_layers": share(stack, sizes.generator, "num_hidden_layers"),
    }


def share(whole: Stack, part: Stack, field: str) -> float:
    """Says which fraction of a transformer another one is.

    Args:
      whole: the discriminator.
      part: the generator.
      field: the size to compare.

    Returns:
      The shortest decimal that the original rounds to the generator's size.
    """
    size, wanted = getattr(whole, field), getattr(part, field)
    for digits in range(1, 17):
        fraction = round(wanted / size, digits)
        if fraction > 0 and round(size * fraction) == wanted:
            return fraction
    return wanted / size


def not_inferable(shapes: Shapes) -> list[str]:
    """Lists what was assumed because shapes do not show it.

    Args:
      shapes: of the model's variables.

    Returns:
      One text for each assumption.
    """
    sizes = measure(shapes)
    stack = sizes.encoder or sizes.generator
    assert stack is not None  # `measure` saw to it
    heads = _heads(stack)
    notes = [
        f"num_attention_heads: {heads} assumed (one for 64 hidden units)",
        "hidden_act: gelu assumed",
        "do_lower_case, strip_accents: true assumed",
    ]
    if sizes.generator_scope == TWO_TOWERS:
        notes.append(
            "electric_objective: true assumed; two-tower ELECTRA has the same"
            " variables"
        )
    if sizes.discriminates and sizes.generator_scope is None:
        notes.append(
            "uniform_generator: true assumed; a discriminator without its"
            " generator has the same variables"
        )
    if sizes.encoder is None:
        notes.append(
            "generator_hidden_size: unknown without the discriminator; sizes"
            " are the generator's own"
        )
    generator = sizes.generator
    if generator and generator.intermediate_size != 4 * generator.hidden_size:
        notes.append(
            f"the generator's feed-forward width {generator.intermediate_size}"
            f" is not 4 * {generator.hidden_size}: no hparam sets it"
        )
    return notes


def _encoder_hparams(stack: Stack, sizes: ModelSizes) -> dict[str, Any]:
    named, size = _nearest_size(stack)
    overrides = {
        name: getattr(stack, name)
        for name in ("hidden_size", "num_hidden_layers")
        if getattr(stack, name) != getattr(size, name)
    }
    # These two follow the hidden size unless they are given.
    if stack.intermediate_size != 4 * stack.hidden_size:
        overrides["intermediate_size"] = stack.intermediate_size
    if _heads(stack) != _heads_by_rule(stack):
        overrides["num_attention_heads"] = _heads(stack)
    for name in ("max_position_embeddings", "type_vocab_size"):
        if getattr(sizes, name) != getattr(size, name):
            overrides[name] = getattr(sizes, name)
    hparams: dict[str, Any] = {"model_size": named}
    if overrides:
        hparams["model_hparam_overrides"] = overrides
    width = sizes.embedding_size or stack.hidden_size
    return hparams | {"embedding_size": width, "vocab_size": sizes.vocab_size}


def _nearest_size(stack: Stack) -> tuple[str, EncoderConfig]:
    """The named size that shares most: hidden size and layers count."""

    def differing(size: EncoderConfig) -> int:
        hidden = size.hidden_size != stack.hidden_size
        return 2 * hidden + (size.num_hidden_layers != stack.num_hidden_layers)

    sizes = {n: EncoderConfig.for_size(n, 1) for n in MODEL_SIZES}
    best = min(sizes, key=lambda name: differing(sizes[name]))
    # Of a hidden size that has no name, everything is an override anyway.
    if sizes[best].hidden_size != stack.hidden_size:
        best = MODEL_SIZES[0]
    return best, sizes[best]


def _heads_by_rule(stack: Stack) -> int:
    return max(1, stack.hidden_size // 64)


def _heads(stack: Stack) -> int:
    """The likely number of heads, one that divides the hidden size."""
    if dataclasses.astuple(stack) == _DEBUG_SHAPE:
        return _DEBUG_HEADS
    heads = _heads_by_rule(stack)
    while stack.hidden_size % heads:
        heads -= 1
    return heads
