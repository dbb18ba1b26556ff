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

from configure.errors import UserError
from configure.generator import GeneratorKind
from electra_tf.checkpoints.sizes import (
    KINDS,
    SHARES,
    ModelSizes,
    Stack,
    default_heads,
    describe_differences,
    encoder_config,
    fraction_of,
    merge_hparams,
    nearest_size,
    resolve_sizes,
    stack_of,
)

Shapes = Mapping[str, Sequence[int]]

# What may be taken out of a checkpoint. An encoder is the transformer of a
# discriminator, or of a masked LM, without a head.
PARTS = ("all", "discriminator", "generator", "encoder")

# Scope of the discriminator (or of the one network for both).
FULL = "electra"
# The discriminator's token table. With gradient-disentangled sharing it is the
# sum of two variables: the generator's table, and what is added to it.
TABLE = f"{FULL}/embeddings/word_embeddings"
SHARED_TABLE = f"{FULL}/embeddings/shared_word_embeddings"
DELTA_TABLE = f"{TABLE}_delta"
TOWERS = ("generator_ltr/", "generator_rtl/", "cloze_predictions/")
_GENERATORS = ("generator/", "generator_ltr/", "generator_rtl/")
_MASKED_LM_HEADS = ("generator_predictions/", "cloze_predictions/")
_DISCRIMINATOR_HEAD = "discriminator_predictions/"
# Of the second network's own masked LM: objectives replace_mlm and
# all_tokens_mlm.
_TOKEN_HEAD = "token_predictions/"
_TASK_HEADS = "task_specific/"
# Below a task's scope, the first of a sentence head's two layers.
HIDDEN = "hidden"
DISCRIMINATOR = (f"{FULL}/", _DISCRIMINATOR_HEAD)
# Of the run alone, and in no export: the baseline of adversarial training, the
# head of correction_weight.
CORRECTION_HEAD = "correction_predictions"
TRAINING_ONLY = ("reward_baseline/", f"{CORRECTION_HEAD}/")
_LAYER = re.compile(r"(\w+)/encoder/layer_(\d+)/")


_INSTEAD = {
    "generator": " Choose another checkpoint, or --part=discriminator.",
    "discriminator": (
        " Choose another checkpoint, or --part=generator (--part=encoder for"
        " the transformer of a masked LM)."
    ),
}


@dataclasses.dataclass(frozen=True)
class TaskHead:
    """What shapes do not show of a fine-tuned task's head."""

    kind: str  # "classification", "tagging" ...: the task's type
    labels: tuple[str, ...] = ()  # names of the classes in order, where known
    pooling: str = "first"  # of texts: "first" token, or "mean"
    # Tagging: words are split as text is elsewhere; else as the original does.
    # Regression: answers are in the units of the labels; else in those of
    # training, 0 to 1.
    as_elsewhere: bool = False
    range: tuple[float, float] | None = None  # regression: lowest and highest
    # Wordpieces that texts are cut to, where a file states it.
    max_length: int | None = dataclasses.field(default=None, compare=False)


class Contents:
    """What variables of these names and shapes are."""

    def __init__(self, shapes: Shapes) -> None:
        # By the original's names, without Adam slots and step.
        self.shapes = dict(shapes)
        if SHARED_TABLE in self.shapes:
            self.shapes.setdefault(TABLE, self.shapes[SHARED_TABLE])

    def has(self, *starts: str) -> bool:
        return any(name.startswith(starts) for name in self.shapes)

    @property
    def discriminates(self) -> bool:
        """Whether the replaced-token head is there."""
        return self.has(_DISCRIMINATOR_HEAD)

    @property
    def predicts_tokens(self) -> bool:
        return self.has(_TOKEN_HEAD)

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
        heads = (*_MASKED_LM_HEADS, *DISCRIMINATOR, _TOKEN_HEAD, _TASK_HEADS)
        known = (*heads, *_GENERATORS, *TRAINING_ONLY)
        return sorted(n for n in self.shapes if not n.startswith(known))

    @property
    def description(self) -> str:
        if self.tasks:
            return f"a fine-tuned model ({', '.join(self.tasks)})"
        kind = "two-tower generator" if self.has(*TOWERS) else "generator"
        if self.predicts_tokens:
            source = f"a {kind}" if self.generates else "no generator"
            return f"a masked LM of replaced tokens ({source})"
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
        encodes = self.has(f"{FULL}/encoder/")
        if part == "discriminator":
            # Fine-tuned, it has no pre-training head any more.
            learns = self.discriminates or self.predicts_tokens
            return encodes and (learns or not self.generates)
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
            return (f"{FULL}/", _DISCRIMINATOR_HEAD, _TOKEN_HEAD, _TASK_HEADS)
        own = tuple(scope for scope in _GENERATORS if self.has(scope))
        if not own:  # one network for both, or a masked LM
            own = (f"{FULL}/",)
        elif not all(self.has(f"{s}embeddings/word_") for s in own):
            own += (f"{FULL}/embeddings/",)
        return (*own, *_MASKED_LM_HEADS)

    def mixup_hint(self, lacking: Iterable[str]) -> str | None:
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

    @property
    def _small(self) -> str | None:
        """Scope of a generator's own (first) transformer."""
        return next((s for s in KINDS if s in self.layers), None)

    @property
    def embedding_sharing(self) -> str | None:
        """The hparam of this name; None where one network is not there."""
        tables = f"{self._small}/embeddings/"
        if SHARED_TABLE in self.shapes:
            return "gradient_disentangled"
        if f"{tables}word_embeddings" in self.shapes:
            return "none"
        if f"{tables}position_embeddings" in self.shapes:
            return "token"
        both = self._small and FULL in self.layers
        return "embeddings" if both else None

    @property
    def shares_some_tables(self) -> bool:
        """Whether two networks share tables as none of the original's do."""
        return self.embedding_sharing in ("token", "gradient_disentangled")

    @functools.cached_property
    def sizes(self) -> ModelSizes:
        """All sizes; a UserError where it is no (whole) ELECTRA."""
        small = self._small
        if not (small or FULL in self.layers):
            raise UserError(
                "No encoder among the checkpoint's variables (expected names"
                " such as electra/encoder/layer_0/...); it starts with "
                f"{', '.join(sorted(self.shapes)[:3]) or 'nothing'}."
            )
        shares = TABLE in self.shapes
        tables = self.tables(FULL if shares else small or FULL)
        if not shares:
            tables["embedding_size"] = None
        kind = GeneratorKind.UNIFORM
        if self.has("generator_predictions/"):
            kind = GeneratorKind.FULL
        detects, predicts = self.discriminates, self.predicts_tokens
        generates = small or kind is GeneratorKind.FULL
        headless = not (generates or detects or predicts)
        return ModelSizes(
            **tables,
            encoder=self.stack(FULL) if FULL in self.layers else None,
            generator=self.stack(small) if small else None,
            generator_kind=KINDS.get(small, kind),
            embedding_sharing=self.embedding_sharing,
            discriminates=None if headless else detects,
            predicts_tokens=(
                predicts if FULL in self.layers and not headless else None
            ),
        )

    def tables(self, scope: str) -> dict[str, Any]:
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
        layers = self.layers.get(scope, {0})
        if absent := sorted(set(range(max(layers))) - layers):
            raise UserError(
                f"{scope}/encoder has layers up to {max(layers)} but lacks"
                f" layer {absent[0]}; the checkpoint is incomplete."
            )
        block = f"{scope}/encoder/layer_0"
        hidden = self._axis(f"{block}/attention/self/query/kernel", 0)
        inner = self._axis(f"{block}/intermediate/dense/bias", 0)
        return Stack(hidden, len(layers), inner)

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
        if sizes.predicts_tokens:
            name = "all_tokens_mlm" if sizes.discriminates else "replace_mlm"
            hparams |= {"objective": name, "electra_objective": False}
        elif sizes.encoder is not None and not sizes.discriminates:
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
        if sizes.embedding_sharing == "none":
            hparams["untied_generator_embeddings"] = True
        elif sizes.embedding_sharing not in (None, "embeddings"):
            hparams["embedding_sharing"] = sizes.embedding_sharing
        return hparams | {
            hparam: fraction_of(sizes.main, sizes.generator, field)
            for hparam, field in SHARES.items()
        }

    def assumptions(self) -> list[str]:
        """Lists what `hparams` assumes because shapes do not show it."""
        sizes, kind = self.sizes, self.sizes.generator_kind
        learns = sizes.discriminates or sizes.predicts_tokens
        alone = learns and kind is GeneratorKind.UNIFORM
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
        hparams = merge_hparams(self.hparams(), given)
        encoder = stack_of(encoder_config(hparams))
        if self.sizes.encoder not in (None, encoder):
            # Its generator is in proportion to it; that comes after.
            hparams.pop("generator", None)
            hparams["uniform_generator"] = True
        if differences := describe_differences(
            self.sizes, resolve_sizes(hparams)
        ):
            raise UserError(
                f"The checkpoint is of another model than {where} describe:\n"
                + "\n".join(f"  {text}" for text in differences)
            )

    def differences(self, model: "Contents") -> list[str]:
        """Sizes that differ in a model; none if one of the two is not whole."""
        try:
            return describe_differences(self.sizes, model.sizes)
        except UserError:
            return []
