# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes of models that hparams describe, and differences between models."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from configure.config import MODEL_SIZES, TOKENIZER_HPARAMS
from configure.generator import GeneratorKind, generator_kind
from configure.pretraining import PretrainingConfig
from electra_tf.modeling.encoder_config import EncoderConfig

# Kinds of separate generators, by the scope of the transformer; for two towers,
# by the scope of the first tower.
KINDS = {
    "generator": GeneratorKind.SMALL,
    "generator_ltr": GeneratorKind.TWO_TOWER,
}


@dataclasses.dataclass(frozen=True)
class Stack:
    """Sizes of a transformer."""

    hidden_size: int
    num_hidden_layers: int
    intermediate_size: int

    @property
    def follows_rule(self) -> bool:
        """Return whether the inner width is four times the hidden size."""
        return self.intermediate_size == 4 * self.hidden_size

    @property
    def heads(self) -> int:
        """Likely number of attention heads, which shapes do not show."""
        # The original's debug model has more heads than the rule implies.
        if self == Stack(144, 3, 576):
            return 4
        heads = default_heads(self.hidden_size)
        while self.hidden_size % heads:
            heads -= 1
        return heads


@dataclasses.dataclass(frozen=True)
class ModelSizes:
    """Sizes of a model that can be inferred from shapes or from hparams."""

    vocab_size: int  # rows of the token table
    max_position_embeddings: int  # rows of the position table
    type_vocab_size: int  # rows of the segment table
    # Width of the discriminator's tables; None: no tables.
    embedding_size: int | None
    # Transformer of scope `electra`; None: only a generator is stored.
    encoder: Stack | None
    generator: Stack | None  # sizes of the generator or of each tower
    generator_kind: GeneratorKind  # UNIFORM also if no generator is stored
    # Value of the hparam `embedding_sharing`; None with only one network.
    embedding_sharing: str | None
    # Whether the model has the replaced-token head; None without heads.
    discriminates: bool | None
    # Whether the model has the discriminator's masked-LM head; None without a
    # discriminator or without heads.
    predicts_tokens: bool | None

    @property
    def main(self) -> Stack:
        """Sizes of the encoder, or of the generator if there is no encoder."""
        stack = self.encoder or self.generator
        assert stack is not None
        return stack


def default_heads(hidden_size: int) -> int:
    """Return the number of attention heads that a hidden size implies.

    Source: google-research/electra, run_pretraining.py, get_generator_config.
    """
    return max(1, hidden_size // 64)


def find_fraction(whole: Stack, part: Stack, field: str) -> float:
    """Return the shortest decimal fraction that scales `whole` to `part`."""
    size, part_size = getattr(whole, field), getattr(part, field)
    for digits in range(1, 17):
        fraction = round(part_size / size, digits)
        if fraction > 0 and round(size * fraction) == part_size:
            return fraction
    return part_size / size


def nearest_size(hidden_size: int | None) -> tuple[str, EncoderConfig]:
    """Return the name and config of the model size that has `hidden_size`.

    If no model size has this hidden size, the first model size is returned.
    """
    sizes = {name: EncoderConfig.for_size(name, 1) for name in MODEL_SIZES}
    for name, size in sizes.items():
        if size.hidden_size == hidden_size:
            return name, size
    return MODEL_SIZES[0], sizes[MODEL_SIZES[0]]


# Differences between a checkpoint and the model that hparams describe.

# Hparams that determine a model's variables, the shapes of the variables, and
# the model's objective.
MODEL_HPARAMS = tuple(
    """
    debug electra_objective electric_objective embedding_sharing embedding_size
    generator generator_hidden_size generator_layers model_hparam_overrides
    model_size objective two_tower_generator uniform_generator untied_generator
    untied_generator_embeddings vocab_size
    """.split()
)
# Hparams of the training schedule, which must not change during a run.
SCHEDULE_HPARAMS = ("training_schedule", "two_stage_steps")
# Settings of a transformer that do not change the shapes of variables.
UNSEEN_SIZES = ("num_attention_heads", "hidden_act", "layer_norm_eps")
_KIND_WORDS = {
    GeneratorKind.SMALL: (
        "a small generator (untied_generator=true, two towers off)"
    ),
    GeneratorKind.TWO_TOWER: (
        "two towers (two_tower_generator or electric_objective=true)"
    ),
    GeneratorKind.FULL: (
        "one network for both parts (untied_generator=false), or a masked LM"
    ),
    GeneratorKind.UNIFORM: "no generator (uniform_generator=true)",
    GeneratorKind.UNIGRAM: "no generator (generator=unigram)",
}
SHARES = {
    "generator_hidden_size": "hidden_size",
    "generator_layers": "num_hidden_layers",
}
# Hparam that the user has to change, by the name of the size that differs. If
# the encoder differs, only these sizes are reported, because the generator's
# sizes are fractions of the encoder's sizes.
_ENCODER_REMEDIES = {
    "tokens in the vocabulary": (
        "vocab_size (and use the vocabulary of the checkpoint's training)"
    ),
    "positions": (
        "model_hparam_overrides.max_position_embeddings (or convert the"
        " checkpoint with --extend_positions)"
    ),
    "segments": "model_hparam_overrides.type_vocab_size",
    "hidden_size": "model_size or model_hparam_overrides.hidden_size",
    "num_hidden_layers": (
        "model_size or model_hparam_overrides.num_hidden_layers"
    ),
    "intermediate_size": "model_hparam_overrides.intermediate_size",
}
_REMEDIES = {
    **_ENCODER_REMEDIES,
    "width of the embeddings": "embedding_size",
    "generator": "the hparams in parentheses",
    "embedding_sharing": "embedding_sharing (or untied_generator_embeddings)",
    "replaced-token head": (
        "electra_objective or electric_objective (false for a masked LM)"
    ),
    "head of the second network's masked LM": (
        "objective (replace_mlm and all_tokens_mlm have this head)"
    ),
}


def merge_hparams(
    inferred: Mapping[str, Any], stated: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the inferred hparams, overridden by the stated hparams."""
    key = "model_hparam_overrides"
    overrides = dict(stated.get(key) or {})
    if "model_size" not in stated:
        overrides = {**inferred.get(key, {}), **overrides}
    return {**inferred, **stated, key: overrides}


def complete_hparams(hparams: Mapping[str, Any]) -> PretrainingConfig:
    """Return a config of the model's hparams; other hparams have defaults."""
    of_model = {n: v for n, v in hparams.items() if n in MODEL_HPARAMS}
    # The length of examples is not part of a model; 1 fits any position table.
    return PretrainingConfig.create(
        "model", "data", max_seq_length=1, max_predictions_per_seq=1, **of_model
    )


def encoder_config(hparams: Mapping[str, Any]) -> EncoderConfig:
    """Return the encoder sizes that hparams describe."""
    return EncoderConfig.of(complete_hparams(hparams))


def resolve_sizes(hparams: Mapping[str, Any]) -> ModelSizes:
    """Return the sizes of the model that hparams describe."""
    config, encoder = complete_hparams(hparams), encoder_config(hparams)
    kind, generator = generator_kind(config), None
    if kind in KINDS.values():
        shares = (getattr(config, name) for name in SHARES)
        generator = stack_of(encoder.scaled(*shares))
    return ModelSizes(
        vocab_size=encoder.vocab_size,
        max_position_embeddings=encoder.max_position_embeddings,
        type_vocab_size=encoder.type_vocab_size,
        embedding_size=config.embedding_size or encoder.hidden_size,
        encoder=stack_of(encoder),
        generator=generator,
        generator_kind=kind,
        embedding_sharing=config.embedding_sharing if generator else None,
        discriminates=config.has_discriminator_head,
        predicts_tokens=config.predicts_tokens,
    )


def stack_of(encoder: EncoderConfig) -> Stack:
    """Return the transformer sizes of an encoder's config."""
    return Stack(
        encoder.hidden_size,
        encoder.num_hidden_layers,
        encoder.intermediate_size,
    )


def describe_differences(stored: ModelSizes, stated: ModelSizes) -> list[str]:
    """Return a line for each size in which a checkpoint contradicts hparams.

    Args:
      stored: sizes of the checkpoint.
      stated: sizes that the hparams describe.
    """
    old, new, remedies = _facts(stored), _facts(stated), dict(_REMEDIES)
    if stored.encoder not in (None, stated.encoder):
        remedies = dict(_ENCODER_REMEDIES)
        if stored.encoder.follows_rule and stated.main.follows_rule:
            del remedies["intermediate_size"]
    elif stored.generator is None:
        is_full = stored.generator_kind is GeneratorKind.FULL
        # A discriminator without its generator matches the hparams of any
        # generator.
        if not (stored.discriminates and is_full):
            del remedies["generator"]
        if is_full and not stored.discriminates and stated.generator:
            # The head of a masked LM is as wide as the encoder, so the
            # generator needs the encoder's width.
            name = "generator's hidden_size"
            old[name] = stored.main.hidden_size
            remedies[name] = "generator_hidden_size to 1.0"
    else:
        del remedies["replaced-token head"]
        for hparam, field in SHARES.items():
            share = find_fraction(stated.main, stored.generator, field)
            remedies[f"generator's {field}"] = f"{hparam} to {share}"
    return [
        f"{name}: checkpoint {old[name]}, hparams {new[name]}; change {remedy}"
        for name, remedy in remedies.items()
        if old.get(name) is not None and name in new and old[name] != new[name]
    ]


def _facts(sizes: ModelSizes) -> dict[str, Any]:
    """Return the sizes by the names that messages use."""
    facts = {
        "tokens in the vocabulary": sizes.vocab_size,
        "positions": sizes.max_position_embeddings,
        "segments": sizes.type_vocab_size,
        **(dataclasses.asdict(sizes.encoder) if sizes.encoder else {}),
        "width of the embeddings": sizes.embedding_size,
        "generator": _KIND_WORDS[sizes.generator_kind],
        "replaced-token head": sizes.discriminates,
        "head of the second network's masked LM": sizes.predicts_tokens,
    }
    if sizes.generator:
        facts["embedding_sharing"] = sizes.embedding_sharing
        for field in SHARES.values():
            size = getattr(sizes.generator, field)
            facts[f"generator's {field}"] = size
    return facts


def list_unseen_differences(
    stored: Mapping[str, Any], stated: Mapping[str, Any]
) -> list[str]:
    """Return a line for each differing hparam that changes outputs, not shapes.

    Args:
      stored: hparams next to the checkpoint; {} if none exist.
      stated: hparams of the run.
    """
    if not stored:
        return []
    old, new = (
        {**dataclasses.asdict(encoder_config(hparams)), **hparams}
        for hparams in (stored, stated)
    )
    return [
        f"{name}: {old[name]} next to the checkpoint, {new[name]} in this run"
        for name in (*UNSEEN_SIZES, *TOKENIZER_HPARAMS)
        if name in old and name in new and old[name] != new[name]
    ]
