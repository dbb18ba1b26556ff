# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From the shapes of a checkpoint to the hparams of its model."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from configure.config import MODEL_SIZES
from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.modeling.encoder_config import EncoderConfig

# The sizes of a model, read off the shapes of its variables.

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
    """Reads the sizes off a checkpoint."""
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


# The original's debug model, whose heads do not follow the rule.
_DEBUG_SHAPE, _DEBUG_HEADS = (144, 3, 576), 4


def infer_hparams(shapes: Shapes) -> dict[str, Any]:
    """Infers the hparams that make a model of these variables.

    A generator alone is described as that of a discriminator of its own size;
    for what shapes cannot tell see `not_inferable`.
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
    """Says which fraction of a transformer another one is."""
    size, wanted = getattr(whole, field), getattr(part, field)
    for digits in range(1, 17):
        fraction = round(wanted / size, digits)
        if fraction > 0 and round(size * fraction) == wanted:
            return fraction
    return wanted / size


def not_inferable(shapes: Shapes) -> list[str]:
    """Lists what was assumed because shapes do not show it."""
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


# Do hparams make the model that a checkpoint holds? If not, which one?

# These decide which variables there are and of what shape.
MODEL_HPARAMS = (
    "debug",
    "electra_objective",
    "electric_objective",
    "embedding_size",
    "generator_hidden_size",
    "generator_layers",
    "model_hparam_overrides",
    "model_size",
    "two_tower_generator",
    "uniform_generator",
    "untied_generator",
    "untied_generator_embeddings",
    "vocab_size",
)

_STRUCTURE_HPARAMS = {
    GENERATOR: "a small generator (untied_generator=true, two towers off)",
    TWO_TOWERS: "two towers (two_tower_generator or electric_objective=true)",
    FULL: "one network for both parts (untied_generator=false), or a masked LM",
    None: "no generator (uniform_generator=true)",
}
_TABLE_HPARAMS = (
    (
        "tokens in the vocabulary",
        "vocab_size",
        "vocab_size (and use the vocabulary that it was trained with)",
    ),
    (
        "positions",
        "max_position_embeddings",
        "model_hparam_overrides.max_position_embeddings (or convert the"
        " checkpoint with --extend_positions)",
    ),
    ("segments", "type_vocab_size", "model_hparam_overrides.type_vocab_size"),
)
_ENCODER_HPARAMS = (
    ("hidden_size", "model_size or model_hparam_overrides.hidden_size"),
    (
        "num_hidden_layers",
        "model_size or model_hparam_overrides.num_hidden_layers",
    ),
    ("intermediate_size", "model_hparam_overrides.intermediate_size"),
)
_GENERATOR_HPARAMS = (
    ("hidden_size", "generator_hidden_size"),
    ("num_hidden_layers", "generator_layers"),
)

# What differs, in the checkpoint, in the hparams, and the hparam to change.
Pair = tuple[str, Any, Any, str]


def check_hparams(
    inferred: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Raises where given hparams make another model than the inferred ones."""
    _refuse(_differences(resolve(inferred), merged(inferred, given)))


def check_shapes(shapes: Shapes, given: Mapping[str, Any], where: str) -> None:
    """Raises where given hparams contradict a checkpoint or a part of one."""
    stated = merged(infer_hparams(shapes), given)
    _refuse(_differences(measure(shapes), stated), where)


def merged(
    inferred: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Adds to inferred hparams what somebody stated, which wins."""
    key = "model_hparam_overrides"
    overrides = dict(given.get(key) or {})
    if "model_size" not in given:
        overrides = {**inferred.get(key, {}), **overrides}
    return {**inferred, **given, key: overrides}


def resolve(hparams: Mapping[str, Any]) -> ModelSizes:
    """Works out the sizes that hparams make."""
    config = as_config(hparams)
    encoder = encoder_config(hparams)
    discriminates = config.electra_objective or config.electric_objective
    scope: str | None = FULL
    if config.uniform_generator:
        scope = None
    elif discriminates and config.untied_generator:
        scope = TWO_TOWERS if config.two_tower_generator else GENERATOR
    generator = None
    if scope in (GENERATOR, TWO_TOWERS):
        generator = encoder.scaled(
            config.generator_hidden_size, config.generator_layers
        )
    return ModelSizes(
        vocab_size=encoder.vocab_size,
        max_position_embeddings=encoder.max_position_embeddings,
        type_vocab_size=encoder.type_vocab_size,
        embedding_size=config.embedding_size or encoder.hidden_size,
        encoder=_stack_of(encoder),
        generator=_stack_of(generator) if generator else None,
        generator_scope=scope,
        untied_embeddings=bool(generator)
        and config.untied_generator_embeddings,
        discriminates=discriminates,
    )


def as_config(hparams: Mapping[str, Any]) -> PretrainingConfig:
    """Completes the model's hparams; the rest keeps its defaults."""
    kept = {n: v for n, v in hparams.items() if n in MODEL_HPARAMS}
    # Length 1 fits any position table; the length of examples is no size.
    return PretrainingConfig.create(
        "model", "data", max_seq_length=1, max_predictions_per_seq=1, **kept
    )


def encoder_config(hparams: Mapping[str, Any]) -> EncoderConfig:
    """Returns the discriminator's sizes."""
    config = as_config(hparams)
    return EncoderConfig.for_size(
        config.model_size,
        config.vocab_size,
        config.model_hparam_overrides,
        config.debug,
    )


def unseen_differences(
    stored: Mapping[str, Any], given: Mapping[str, Any]
) -> list[str]:
    """Compares what changes the outputs but does not show in shapes."""
    if not stored:
        return []
    old, new = encoder_config(stored), encoder_config(given)
    pairs = [
        (name, getattr(old, name), getattr(new, name))
        for name in ("num_attention_heads", "hidden_act")
    ]
    pairs += [
        (name, stored[name], given[name])
        for name in ("do_lower_case", "strip_accents")
        if name in stored and name in given
    ]
    return [
        f"{name}: {a} beside the checkpoint, {b} here"
        for name, a, b in pairs
        if a != b
    ]


def _stack_of(config: EncoderConfig) -> Stack:
    return Stack(
        config.hidden_size, config.num_hidden_layers, config.intermediate_size
    )


def _refuse(differences: list[str], where: str = "the given hparams") -> None:
    if differences:
        raise UserError(
            f"The checkpoint is of another model than {where} describe:\n"
            + "\n".join(f"  {text}" for text in differences)
        )


def _differences(stored: ModelSizes, hparams: Mapping[str, Any]) -> list[str]:
    """One text for each size in which hparams make another model."""
    encoder = encoder_config(hparams)
    pairs = [
        (what, getattr(stored, field), getattr(encoder, field), hparam)
        for what, field, hparam in _TABLE_HPARAMS
    ]
    given = _stack_of(encoder)
    stacks = _stack_pairs("", stored.encoder, given, _ENCODER_HPARAMS)
    pairs += stacks
    if stored.encoder and _follows(stored.encoder) and _follows(given):
        # 4 * hidden_size on both sides: nothing to set.
        pairs = [pair for pair in pairs if pair[0] != "intermediate_size"]
    # Everything else is in proportion to the encoder: that first.
    if all(old == new for _, old, new, _ in stacks):
        pairs += _proportional_pairs(stored, resolve(hparams))
    return [
        f"{what}: checkpoint {old}, hparams {new}; change {hparam}"
        for what, old, new, hparam in pairs
        if old != new
    ]


def _follows(stack: Stack) -> bool:
    return stack.intermediate_size == 4 * stack.hidden_size


def _proportional_pairs(stored: ModelSizes, given: ModelSizes) -> list[Pair]:
    pairs: list[Pair] = []
    if stored.embedding_size is not None:
        pairs.append(
            (
                "width of the embeddings",
                stored.embedding_size,
                given.embedding_size,
                "embedding_size",
            )
        )
    if stored.generator is not None:
        return pairs + _generator_pairs(stored, given)
    if stored.encoder is not None and stored.discriminates is not None:
        return pairs + _objective_pairs(stored, given)
    return pairs


def _stack_pairs(
    owner: str,
    stored: Stack | None,
    given: Stack | None,
    hparams: tuple[tuple[str, str], ...],
) -> list[Pair]:
    if stored is None or given is None:
        return []
    return [
        (f"{owner}{field}", getattr(stored, field), getattr(given, field), name)
        for field, name in hparams
    ]


def _generator_pairs(stored: ModelSizes, given: ModelSizes) -> list[Pair]:
    pairs: list[Pair] = [
        (
            "generator",
            _STRUCTURE_HPARAMS[stored.generator_scope],
            _STRUCTURE_HPARAMS[given.generator_scope],
            "those hparams",
        )
    ]
    if given.generator is not None:
        pairs.append(
            (
                "embeddings of the generator's own",
                stored.untied_embeddings,
                given.untied_embeddings,
                "untied_generator_embeddings",
            )
        )
    whole = stored.encoder or given.encoder
    assert whole is not None  # hparams always make one
    shares = tuple(
        (field, f"{hparam} to {share(whole, stored.generator, field)}")
        for field, hparam in _GENERATOR_HPARAMS
    )
    return pairs + _stack_pairs(
        "generator's ", stored.generator, given.generator, shares
    )


def _objective_pairs(stored: ModelSizes, given: ModelSizes) -> list[Pair]:
    """For one network: a discriminator alone fits any generator's hparams."""
    pairs: list[Pair] = [
        (
            "replaced-token head",
            stored.discriminates,
            given.discriminates,
            "electra_objective or electric_objective (false for a masked LM)",
        )
    ]
    if stored.discriminates and stored.generator_scope == FULL:
        pairs.append(
            (
                "generator",
                _STRUCTURE_HPARAMS[FULL],
                _STRUCTURE_HPARAMS[given.generator_scope],
                "those hparams",
            )
        )
    return pairs


# Which hparam stands behind an axis of a variable.

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
    """Names the hparams that set the axes in which two shapes differ."""
    hints = next(hints for part, *hints in _SHAPE_HINTS if part in name)
    if len(stored) != len(wanted):
        return " and ".join(hints)
    differing = {
        hints[min(axis, len(hints) - 1)]: None
        for axis, sizes in enumerate(zip(stored, wanted, strict=True))
        if sizes[0] != sizes[1]
    }
    return " and ".join(differing)
