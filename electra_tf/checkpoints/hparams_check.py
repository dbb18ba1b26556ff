# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Do hparams make the model that a checkpoint holds? If not, which one?"""

from collections.abc import Mapping
from typing import Any

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.measured import (
    FULL,
    GENERATOR,
    TWO_TOWERS,
    ModelSizes,
    Shapes,
    Stack,
    measure,
)
from electra_tf.checkpoints.sizes import infer_hparams, share
from electra_tf.modeling.encoder_config import EncoderConfig

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
    """Raises where given hparams make another model than the inferred ones.

    Args:
      inferred: what `infer_hparams` returned.
      given: hparams that somebody stated; what they leave out follows the
        inferred ones.

    Raises:
      UserError: naming every hparam to change, and to which value.
    """
    _refuse(_differences(resolve(inferred), merged(inferred, given)))


def check_shapes(shapes: Shapes, given: Mapping[str, Any], where: str) -> None:
    """Raises where given hparams contradict a checkpoint or a part of one.

    Args:
      shapes: of the checkpoint's variables.
      given: hparams that somebody stated, of the whole model.
      where: who stated them, for the message.

    Raises:
      UserError: naming every hparam to change, and to which value.
    """
    stated = merged(infer_hparams(shapes), given)
    _refuse(_differences(measure(shapes), stated), where)


def merged(
    inferred: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Adds to inferred hparams what somebody stated, which wins.

    Args:
      inferred: what `infer_hparams` returned.
      given: hparams that somebody stated.

    Returns:
      Both. Overrides are joined, unless `model_size` is stated, on which they
      build: then the stated ones count alone.
    """
    key = "model_hparam_overrides"
    overrides = dict(given.get(key) or {})
    if "model_size" not in given:
        overrides = {**inferred.get(key, {}), **overrides}
    return {**inferred, **given, key: overrides}


def resolve(hparams: Mapping[str, Any]) -> ModelSizes:
    """Works out the sizes that hparams make.

    Args:
      hparams: by `PretrainingConfig`'s names; others than `MODEL_HPARAMS` do
        not count.

    Returns:
      The sizes.

    Raises:
      UserError: if they cannot work together.
    """
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
    """Returns the discriminator's sizes.

    Args:
      hparams: by `PretrainingConfig`'s names.
    """
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
    """Compares what changes the outputs but does not show in shapes.

    Args:
      stored: hparams beside a checkpoint; empty where there are none.
      given: hparams of the model that takes its weights.

    Returns:
      One text for each of heads, activation and case in which they differ.
    """
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
