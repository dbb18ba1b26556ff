# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint holds, told from names and shapes of its variables.

Which networks and heads there are, how they share, their sizes, and the hparams
that make such a model; and whether given hparams would make it.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from configure.config import MODEL_SIZES
from configure.errors import UserError
from configure.pretraining import (
    GeneratorKind,
    PretrainingConfig,
    generator_kind,
)
from electra_tf.modeling.encoder_config import EncoderConfig

Shapes = Mapping[str, Sequence[int]]

# What may be taken out of a checkpoint. An encoder is the transformer of a
# discriminator, or of a masked LM, without a head.
PARTS = ("all", "discriminator", "generator", "encoder")

# Scope of the discriminator (or of the one network for both).
FULL = "electra"
TOWERS = ("generator_ltr/", "generator_rtl/", "cloze_predictions/")
_GENERATORS = ("generator/", "generator_ltr/", "generator_rtl/")
_MASKED_LM_HEADS = ("generator_predictions/", "cloze_predictions/")
_DISCRIMINATOR_HEAD = "discriminator_predictions/"
_TASK_HEADS = "task_specific/"
# Generators of their own, by the scope of their (first) transformer.
_KINDS = {
    "generator": GeneratorKind.SMALL,
    "generator_ltr": GeneratorKind.TWO_TOWER,
}
_LAYER = re.compile(r"(\w+)/encoder/layer_(\d+)/")


_INSTEAD = {
    "generator": " Choose another checkpoint, or --part=discriminator.",
    "discriminator": (
        " Choose another checkpoint, or --part=generator (--part=encoder for"
        " the transformer of a masked LM)."
    ),
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
class TaskHead:
    """What shapes do not show of a fine-tuned task's head."""

    kind: str  # "classification", "tagging" ...: the task's type
    labels: tuple[str, ...] = ()  # names of the classes in order, where known
    pooling: str = "first"  # of texts: "first" token, or "mean"
    # Tagging: words are split as text is elsewhere; else as the original does.
    as_elsewhere: bool = False


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
    untied_embeddings: bool  # whether the generator has tables of its own
    # Whether the replaced-token head is there; None where neither head is.
    discriminates: bool | None

    @property
    def main(self) -> Stack:
        """The encoder, or the generator where that is all there is."""
        stack = self.encoder or self.generator
        assert stack is not None
        return stack


class Contents:
    """What variables of these names and shapes are.

    Attributes:
      shapes: by the original's names, without Adam slots and step.
    """

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = dict(shapes)

    def has(self, *starts: str) -> bool:
        """Whether a variable's name starts so."""
        return any(name.startswith(starts) for name in self.shapes)

    @property
    def discriminates(self) -> bool:
        """Whether the replaced-token head is there."""
        return self.has(_DISCRIMINATOR_HEAD)

    @property
    def generates(self) -> bool:
        """Whether a masked-LM head is there, or that of two towers."""
        return self.has(*_MASKED_LM_HEADS)

    @property
    def is_headless(self) -> bool:
        """Whether it is an encoder without pre-training heads."""
        return self.sizes.discriminates is None

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the fine-tuning tasks whose heads it holds, in order."""
        heads = (n for n in self.shapes if n.startswith(_TASK_HEADS))
        return tuple(dict.fromkeys(name.split("/")[1] for name in heads))

    @property
    def unknown(self) -> list[str]:
        """Variables that no model of the original has."""
        heads = (*_MASKED_LM_HEADS, _DISCRIMINATOR_HEAD, _TASK_HEADS)
        known = (f"{FULL}/", *_GENERATORS, *heads)
        return sorted(n for n in self.shapes if not n.startswith(known))

    @property
    def description(self) -> str:
        """Says in words what it is."""
        if self.tasks:
            return f"a fine-tuned model ({', '.join(self.tasks)})"
        kind = "two-tower generator" if self.has(*TOWERS) else "generator"
        if self.discriminates and self.generates:
            return f"a {kind} and a discriminator"
        if self.discriminates:
            return "a discriminator (no generator)"
        if self.has(*_GENERATORS):
            return f"a {kind} (no discriminator)"
        if self.generates:
            return "a masked LM (no discriminator)"
        if self.has(f"{FULL}/encoder/"):
            return "an encoder (no pre-training heads)"
        scopes = sorted({name.split("/")[0] for name in self.shapes})
        scopes = ", ".join(scopes[:6]) or "none"
        return f"no ELECTRA that is known here (scopes {scopes})"

    def holds(self, part: str) -> bool:
        """Whether one of `PARTS` is there."""
        encodes = self.has(f"{FULL}/encoder/")
        if part == "discriminator":
            # Fine-tuned, it has no pre-training head any more.
            return encodes and (self.discriminates or not self.generates)
        if part == "generator":
            return self.generates
        return part == "all" or encodes

    def prefixes(self, part: str, path: str) -> tuple[str, ...]:
        """Starts of a part's names; a UserError where it is not there."""
        if part not in PARTS:
            expected = ", ".join(PARTS)
            raise UserError(f"part {part!r}: expected one of {expected}.")
        if not self.holds(part):
            what = "encoder of scope `electra`" if part == "encoder" else part
            raise UserError(
                f"{path}: holds no {what}: it is {self.description}."
                + _INSTEAD.get(part, "")
            )
        if part == "encoder":
            return (f"{FULL}/",)
        if part == "discriminator":
            return (f"{FULL}/", _DISCRIMINATOR_HEAD, _TASK_HEADS)
        own = tuple(scope for scope in _GENERATORS if self.has(scope))
        if not own:  # one network for both, or a masked LM
            own = (f"{FULL}/",)
        elif not all(self.has(f"{scope}embeddings/") for scope in own):
            own += (f"{FULL}/embeddings/",)
        return (*own, *_MASKED_LM_HEADS)

    def mistaken_for(self, lacking: Iterable[str]) -> str | None:
        """Says so where one of the two networks was given for the other."""
        wanted = Contents(dict.fromkeys(lacking, ()))
        if wanted.discriminates and not self.has("discriminator"):
            if self.generates:
                return (
                    "It is a generator (or a masked LM); a discriminator is"
                    " needed."
                )
        elif wanted.has("generator") and not self.has("generator"):
            return "It holds no generator; one is needed."
        return None

    # Sizes.

    @functools.cached_property
    def layers(self) -> dict[str, set[int]]:
        """Numbers of the layers of every transformer, by scope."""
        found: dict[str, set[int]] = {}
        for name in self.shapes:
            if match := _LAYER.match(name):
                found.setdefault(match[1], set()).add(int(match[2]))
        return found

    @functools.cached_property
    def sizes(self) -> ModelSizes:
        """All sizes; a UserError where it is no (whole) ELECTRA."""
        small = next((s for s in _KINDS if s in self.layers), None)
        if not (small or FULL in self.layers):
            raise UserError(
                "No encoder among the checkpoint's variables (expected names"
                " such as electra/encoder/layer_0/...); it starts with "
                f"{', '.join(sorted(self.shapes)[:3]) or 'nothing'}."
            )
        table = "embeddings/word_embeddings"
        shares = f"{FULL}/{table}" in self.shapes
        tables = self.tables(FULL if shares else small or FULL)
        if not shares:
            tables["embedding_size"] = None
        kind = GeneratorKind.UNIFORM
        if self.has("generator_predictions/"):
            kind = GeneratorKind.FULL
        headless = not small and kind is GeneratorKind.UNIFORM
        return ModelSizes(
            **tables,
            encoder=self.stack(FULL) if FULL in self.layers else None,
            generator=self.stack(small) if small else None,
            generator_kind=_KINDS.get(small, kind),
            untied_embeddings=f"{small}/{table}" in self.shapes,
            discriminates=self.discriminates or (None if headless else False),
        )

    def tables(self, scope: str) -> dict[str, Any]:
        """Sizes of the embedding tables of a scope."""
        table = f"{scope}/embeddings/"
        return {
            "vocab_size": self._axis(f"{table}word_embeddings", 0),
            "embedding_size": self._axis(f"{table}word_embeddings", 1),
            "max_position_embeddings": self._axis(
                f"{table}position_embeddings", 0
            ),
            "type_vocab_size": self._axis(f"{table}token_type_embeddings", 0),
        }

    def stack(self, scope: str) -> Stack:
        """Sizes of the transformer of a scope."""
        layers = self.layers.get(scope, {0})
        if absent := sorted(set(range(max(layers))) - layers):
            raise UserError(
                f"{scope}/encoder has layers up to {max(layers)} but lacks"
                f" layer {absent[0]}; the checkpoint is incomplete."
            )
        block = f"{scope}/encoder/layer_0"
        return Stack(
            self._axis(f"{block}/attention/self/query/kernel", 0),
            len(layers),
            self._axis(f"{block}/intermediate/dense/bias", 0),
        )

    def _axis(self, name: str, axis: int) -> int:
        if name not in self.shapes:
            raise UserError(
                f"The checkpoint lacks {name}, which every ELECTRA model has."
            )
        return int(self.shapes[name][axis])

    # Hparams.

    def hparams(self) -> dict[str, Any]:
        """Infers the hparams that make a model of these variables.

        A generator alone is described as that of a discriminator of its own
        size; for what shapes cannot tell see `assumptions`.
        """
        sizes, stack = self.sizes, self.sizes.main
        named, size = nearest_size(stack.hidden_size)
        usual = {
            "hidden_size": size.hidden_size,
            "num_hidden_layers": size.num_hidden_layers,
            # These two follow the hidden size unless they are given.
            "intermediate_size": 4 * stack.hidden_size,
            "num_attention_heads": default_heads(stack.hidden_size),
            "max_position_embeddings": size.max_position_embeddings,
            "type_vocab_size": size.type_vocab_size,
        }
        found = {
            **dataclasses.asdict(sizes),
            **dataclasses.asdict(stack),
            "num_attention_heads": stack.heads,
        }
        overrides = {n: found[n] for n, v in usual.items() if found[n] != v}
        hparams: dict[str, Any] = {
            "model_size": named,
            **({"model_hparam_overrides": overrides} if overrides else {}),
            "embedding_size": sizes.embedding_size or stack.hidden_size,
            "vocab_size": sizes.vocab_size,
        }
        if sizes.discriminates is None:
            return hparams
        if sizes.encoder is not None and not sizes.discriminates:
            return hparams | {"electra_objective": False}
        if sizes.generator is None:
            if sizes.generator_kind is GeneratorKind.UNIFORM:
                return hparams | {"uniform_generator": True}
            return hparams | {"untied_generator": False}
        if sizes.generator_kind is GeneratorKind.TWO_TOWER:
            hparams |= {
                "electra_objective": False,
                "electric_objective": True,
                "two_tower_generator": True,
            }
        if sizes.untied_embeddings:
            hparams["untied_generator_embeddings"] = True
        return hparams | {
            hparam: _share(sizes.main, sizes.generator, field)
            for hparam, field in _SHARES.items()
        }

    def assumptions(self) -> list[str]:
        """Lists what `hparams` assumes because shapes do not show it."""
        sizes, kind = self.sizes, self.sizes.generator_kind
        alone = sizes.discriminates and kind is GeneratorKind.UNIFORM
        heads = f"num_attention_heads: {sizes.main.heads} assumed (one for 64"
        notes = {
            f"{heads} hidden units)": True,
            "hidden_act: gelu assumed": True,
            "do_lower_case, strip_accents: true assumed": True,
            "electric_objective: true assumed; two-tower ELECTRA has the same"
            " variables": kind is GeneratorKind.TWO_TOWER,
            "uniform_generator: true assumed; a discriminator without its"
            " generator has the same variables": alone,
            "generator_hidden_size: unknown without the discriminator; sizes"
            " are the generator's own": sizes.encoder is None,
        }
        if (small := sizes.generator) and not small.follows_rule:
            notes[
                f"the generator's feed-forward width {small.intermediate_size}"
                f" is not 4 * {small.hidden_size}: no hparam sets it"
            ] = True
        return [text for text, applies in notes.items() if applies]

    def check_hparams(
        self, given: Mapping[str, Any], where: str = "the given hparams"
    ) -> None:
        """Raises a UserError where given hparams make another model."""
        hparams = merged(self.hparams(), given)
        encoder = _stack_of(encoder_config(hparams))
        if self.sizes.encoder not in (None, encoder):
            # Its generator is in proportion to it; that comes after.
            hparams["uniform_generator"] = True
        if differences := _differences(self.sizes, resolve(hparams)):
            raise UserError(
                f"The checkpoint is of another model than {where} describe:\n"
                + "\n".join(f"  {text}" for text in differences)
            )

    def differences(self, model: "Contents") -> list[str]:
        """Sizes that differ in a model, and the hparam to change.

        Empty where one of the two is no whole ELECTRA.
        """
        try:
            return _differences(self.sizes, model.sizes)
        except UserError:
            return []


def default_heads(hidden_size: int) -> int:
    """Attention heads that a hidden size implies.

    Source: google-research/electra, run_pretraining.py, get_generator_config.
    """
    return max(1, hidden_size // 64)


def _share(whole: Stack, part: Stack, field: str) -> float:
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
}
_SHARES = {
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
    "embeddings of the generator's own": "untied_generator_embeddings",
    "replaced-token head": (
        "electra_objective or electric_objective (false for a masked LM)"
    ),
}


def merged(
    inferred: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Adds to inferred hparams what somebody stated, which wins."""
    key = "model_hparam_overrides"
    overrides = dict(given.get(key) or {})
    if "model_size" not in given:
        overrides = {**inferred.get(key, {}), **overrides}
    return {**inferred, **given, key: overrides}


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


def resolve(hparams: Mapping[str, Any]) -> ModelSizes:
    """Works out the sizes that hparams make."""
    config, encoder = as_config(hparams), encoder_config(hparams)
    kind, generator = generator_kind(config), None
    if kind in _KINDS.values():
        shares = (getattr(config, name) for name in _SHARES)
        generator = _stack_of(encoder.scaled(*shares))
    return ModelSizes(
        vocab_size=encoder.vocab_size,
        max_position_embeddings=encoder.max_position_embeddings,
        type_vocab_size=encoder.type_vocab_size,
        embedding_size=config.embedding_size or encoder.hidden_size,
        encoder=_stack_of(encoder),
        generator=generator,
        generator_kind=kind,
        untied_embeddings=bool(generator)
        and config.untied_generator_embeddings,
        discriminates=config.electra_objective or config.electric_objective,
    )


def _stack_of(config: EncoderConfig) -> Stack:
    return Stack(
        config.hidden_size, config.num_hidden_layers, config.intermediate_size
    )


def _differences(stored: ModelSizes, given: ModelSizes) -> list[str]:
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
        for hparam, field in _SHARES.items():
            share = _share(given.main, stored.generator, field)
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
    }
    if sizes.generator:
        facts["embeddings of the generator's own"] = sizes.untied_embeddings
        for field in _SHARES.values():
            size = getattr(sizes.generator, field)
            facts[f"generator's {field}"] = size
    return facts
