# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sizes that hparams make, and where those of two models differ."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from configure.config import MODEL_SIZES, TOKENIZER_HPARAMS
from configure.errors import UserError
from configure.generator import GeneratorKind, generator_kind
from configure.pretraining import PretrainingConfig, derive_experiments
from electra_tf.modeling.encoder_config import EncoderConfig

# Generators of their own, by the scope of their (first) transformer.
KINDS = {
    "generator": GeneratorKind.SMALL,
    "generator_ltr": GeneratorKind.TWO_TOWER,
}


@dataclasses.dataclass(frozen=True)
class Stack:
    """The sizes of one transformer."""

    hidden_size: int
    num_hidden_layers: int
    intermediate_size: int

    @property
    def follows_rule(self) -> bool:
        """Whether the feed-forward width is what a hidden size implies."""
        return self.intermediate_size == 4 * self.hidden_size

    @property
    def heads(self) -> int:
        """The likely number of attention heads, which shapes do not show."""
        if self == Stack(144, 3, 576):  # the original's debug model
            return 4
        heads = default_heads(self.hidden_size)
        while self.hidden_size % heads:
            heads -= 1
        return heads


@dataclasses.dataclass(frozen=True)
class ModelSizes:
    """What shapes and hparams can both tell."""

    vocab_size: int  # rows of the token table
    max_position_embeddings: int  # rows of the position table
    type_vocab_size: int  # rows of the segment table
    embedding_size: int | None  # of the discriminator's tables, if there
    encoder: Stack | None  # scope `electra`; None for a generator alone
    generator: Stack | None  # the smaller network(s)
    generator_kind: GeneratorKind  # UNIFORM, too, where none is there
    # What two networks share (the hparam); None where one is not there.
    embedding_sharing: str | None
    # Whether the replaced-token head is there; None where no head is.
    discriminates: bool | None
    # Whether the second network's masked-LM head is there; None where no
    # second network is, or no head.
    predicts_tokens: bool | None

    @property
    def main(self) -> Stack:
        """The encoder, or the generator where that is all there is."""
        stack = self.encoder or self.generator
        assert stack is not None
        return stack


def default_heads(hidden_size: int) -> int:
    """Attention heads that a hidden size implies.

    Source: google-research/electra, run_pretraining.py, get_generator_config.
    """
    return max(1, hidden_size // 64)


def fraction_of(whole: Stack, part: Stack, field: str) -> float:
    """Says which fraction of a transformer another one is."""
    size, wanted = getattr(whole, field), getattr(part, field)
    for digits in range(1, 17):
        fraction = round(wanted / size, digits)
        if fraction > 0 and round(size * fraction) == wanted:
            return fraction
    return wanted / size


def nearest_size(hidden_size: int | None) -> tuple[str, EncoderConfig]:
    """The named size of a width; of another width, the first one."""
    sizes = {name: EncoderConfig.for_size(name, 1) for name in MODEL_SIZES}
    for name, size in sizes.items():
        if size.hidden_size == hidden_size:
            return name, size
    return MODEL_SIZES[0], sizes[MODEL_SIZES[0]]


# Do hparams make the model that a checkpoint holds? If not, which one?

# These decide which variables there are, of what shape, and what they learn.
MODEL_HPARAMS = tuple(
    """
    debug electra_objective electric_objective embedding_sharing embedding_size
    generator generator_hidden_size generator_layers model_hparam_overrides
    model_size objective two_tower_generator uniform_generator untied_generator
    untied_generator_embeddings vocab_size
    """.split()
)
# Decides how a run is trained; must not change during the run.
SCHEDULE_HPARAMS = ("training_schedule", "two_stage_steps")
# Sizes and settings of a transformer that no shape shows.
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
# The hparam to change, by what differs: tables and encoder, then what is in
# proportion to it.
_ENCODER_REMEDIES = {
    "tokens in the vocabulary": (
        "vocab_size (and use the vocabulary that it was trained with)"
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
    "generator": "those hparams",
    "embedding_sharing": "embedding_sharing (or untied_generator_embeddings)",
    "replaced-token head": (
        "electra_objective or electric_objective (false for a masked LM)"
    ),
    "head of the second network's masked LM": (
        "objective (replace_mlm and all_tokens_mlm have one)"
    ),
}


def merge_hparams(
    inferred: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Adds to inferred hparams what somebody stated, which wins."""
    key = "model_hparam_overrides"
    overrides = dict(given.get(key) or {})
    if "model_size" not in given:
        overrides = {**inferred.get(key, {}), **overrides}
    return {**inferred, **given, key: overrides}


def complete_hparams(hparams: Mapping[str, Any]) -> PretrainingConfig:
    """Completes the model's hparams; the rest keeps its defaults."""
    kept = {n: v for n, v in hparams.items() if n in MODEL_HPARAMS}
    # Length 1 fits any position table; the length of examples is no size.
    return PretrainingConfig.create(
        "model", "data", max_seq_length=1, max_predictions_per_seq=1, **kept
    )


def encoder_config(hparams: Mapping[str, Any]) -> EncoderConfig:
    """Returns the discriminator's sizes."""
    return EncoderConfig.of(complete_hparams(hparams))


def resolve_sizes(hparams: Mapping[str, Any]) -> ModelSizes:
    """Works out the sizes that hparams make."""
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


def stack_of(config: EncoderConfig) -> Stack:
    """The sizes of a transformer that a config describes."""
    return Stack(
        config.hidden_size, config.num_hidden_layers, config.intermediate_size
    )


def describe_differences(stored: ModelSizes, given: ModelSizes) -> list[str]:
    """One text for each size in which hparams make another model."""
    same = stored.encoder in (None, given.encoder)
    old, new, remedies = _facts(stored), _facts(given), dict(_REMEDIES)
    if not same:
        remedies = dict(_ENCODER_REMEDIES)
        if stored.encoder.follows_rule and given.main.follows_rule:
            del remedies["intermediate_size"]
    elif stored.generator is None:
        is_full = stored.generator_kind is GeneratorKind.FULL
        # A discriminator alone fits any generator's hparams.
        if not (stored.discriminates and is_full):
            del remedies["generator"]
        if is_full and not stored.discriminates and given.generator:
            # The head of a masked LM is as wide as its encoder.
            what = "generator's hidden_size"
            old[what] = stored.main.hidden_size
            remedies[what] = "generator_hidden_size to 1.0"
    else:
        del remedies["replaced-token head"]
        for hparam, field in SHARES.items():
            share = fraction_of(given.main, stored.generator, field)
            remedies[f"generator's {field}"] = f"{hparam} to {share}"
    return [
        f"{what}: checkpoint {old[what]}, hparams {new[what]}; change {remedy}"
        for what, remedy in remedies.items()
        if old.get(what) is not None and what in new and old[what] != new[what]
    ]


def _facts(sizes: ModelSizes) -> dict[str, Any]:
    """Sizes by what messages call them."""
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
    stored: Mapping[str, Any], given: Mapping[str, Any]
) -> list[str]:
    """Compares what changes the outputs but does not show in shapes."""
    if not stored:
        return []
    old, new = (
        {**dataclasses.asdict(encoder_config(hparams)), **hparams}
        for hparams in (stored, given)
    )
    return [
        f"{name}: {old[name]} beside the checkpoint, {new[name]} here"
        for name in (*UNSEEN_SIZES, *TOKENIZER_HPARAMS)
        if name in old and name in new and old[name] != new[name]
    ]


def list_changes(
    before: Mapping[str, Any], now: Mapping[str, Any], names: tuple[str, ...]
) -> list[str]:
    """Texts `name: old -> new` of the named hparams that differ."""
    plain = json.loads(json.dumps(now))  # As they read back from a file.
    return [
        f"{name}: {before[name]!r} -> {plain[name]!r}"
        for name in names
        if name in before and name in plain and before[name] != plain[name]
    ]


def check_same_model(
    before: Mapping[str, Any], now: Mapping[str, Any], path: str
) -> None:
    """Raises UserError naming the model hparams that changed."""
    if before:
        before = {**before, **derive_experiments(before)}
    differing = list_changes(before, now, (*MODEL_HPARAMS, *SCHEDULE_HPARAMS))
    # The head is there or not; its weight may change like disc_weight. Earlier
    # versions had no such hparam.
    name = "correction_weight"
    before = {name: 0.0, **before} if before else {}
    if before and bool(before[name]) != bool(now[name]):
        differing += list_changes(before, now, (name,))
    if differing:
        raise UserError(
            f"checkpoint {path} was trained with other model hparams:\n"
            + "".join(f"  {text}\n" for text in differing)
            + "Set them as they were, choose another model_name, or use"
            " --overwrite to delete that model and start anew."
        )
