# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sizes of a model, read off the shapes of its variables."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from configure.errors import UserError

Shapes = Mapping[str, Sequence[int]]

# Scopes that hold a transformer.
GENERATOR, TWO_TOWERS, FULL = "generator", "generator_ltr", "electra"


@dataclasses.dataclass(frozen=True)
class Stack:
    """The sizes of one transformer."""

    hidden_size: int
    num_hidden_layers: int
    intermediate_size: int


@dataclasses.dataclass(frozen=True)
class ModelSizes:
    """What shapes and hparams can both tell.

    Attributes:
      vocab_size: rows of the token table.
      max_position_embeddings: rows of the position table.
      type_vocab_size: rows of the segment table.
      embedding_size: width of the discriminator's tables; None where the
        checkpoint has none.
      encoder: scope `electra`, None for a generator alone.
      generator: the smaller network(s), None where there is none.
      generator_scope: "generator", "generator_ltr" (two towers), "electra"
        (one network for both), or None.
      untied_embeddings: whether the generator has tables of its own.
      discriminates: whether there is a replaced-token head; None where
        neither head is there (a fine-tuned model).
    """

    vocab_size: int
    max_position_embeddings: int
    type_vocab_size: int
    embedding_size: int | None
    encoder: Stack | None
    generator: Stack | None
    generator_scope: str | None
    untied_embeddings: bool
    discriminates: bool | None


def measure(shapes: Shapes) -> ModelSizes:
    """Reads the sizes off a checkpoint.

    Args:
      shapes: of the model's variables, by the original's names.

    Returns:
      The sizes.

    Raises:
      UserError: if it is not ELECTRA's, or layers are missing.
    """
    scopes = [
        scope
        for scope in (FULL, GENERATOR, TWO_TOWERS)
        if any(name.startswith(f"{scope}/encoder/layer_") for name in shapes)
    ]
    if not scopes:
        raise UserError(
            "No encoder among the checkpoint's variables (expected names such"
            " as electra/encoder/layer_0/...); it starts with "
            f"{', '.join(sorted(shapes)[:3]) or 'nothing'}."
        )
    small = next((s for s in scopes if s != FULL), None)
    table = "embeddings/word_embeddings"
    tables = FULL if f"{FULL}/{table}" in shapes else small or FULL
    rows = _axis(shapes, f"{tables}/{table}", 0)
    discriminates: bool | None = _has(shapes, "discriminator_predictions/")
    generates = _has(shapes, "generator_predictions/")
    if not discriminates and not generates and not small:
        discriminates = None
    return ModelSizes(
        vocab_size=rows,
        max_position_embeddings=_axis(
            shapes, f"{tables}/embeddings/position_embeddings", 0
        ),
        type_vocab_size=_axis(
            shapes, f"{tables}/embeddings/token_type_embeddings", 0
        ),
        embedding_size=(
            _axis(shapes, f"{tables}/{table}", 1) if tables == FULL else None
        ),
        encoder=_stack(shapes, FULL) if FULL in scopes else None,
        generator=_stack(shapes, small) if small else None,
        generator_scope=small or (FULL if generates else None),
        untied_embeddings=f"{small}/{table}" in shapes,
        discriminates=discriminates,
    )


def _stack(shapes: Shapes, scope: str) -> Stack:
    pattern = re.compile(re.escape(scope) + r"/encoder/layer_(\d+)/")
    layers = {int(m[1]) for name in shapes if (m := pattern.match(name))}
    absent = sorted(set(range(max(layers))) - layers)
    if absent:
        raise UserError(
            f"{scope}/encoder has layers up to {max(layers)} but lacks layer"
            f" {absent[0]}; the checkpoint is incomplete."
        )
    block = f"{scope}/encoder/layer_0"
    return Stack(
        hidden_size=_axis(shapes, f"{block}/attention/self/query/kernel", 0),
        num_hidden_layers=len(layers),
        intermediate_size=_axis(shapes, f"{block}/intermediate/dense/bias", 0),
    )


def _axis(shapes: Shapes, name: str, axis: int) -> int:
    if name not in shapes:
        raise UserError(
            f"The checkpoint lacks {name}, which every ELECTRA model has."
        )
    return int(shapes[name][axis])


def _has(shapes: Shapes, prefix: str) -> bool:
    return any(name.startswith(prefix) for name in shapes)
