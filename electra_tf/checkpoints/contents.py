# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Contents of a checkpoint, inferred from the names and shapes of variables.

The contents are networks, heads, shared tables, sizes, and the hparams of the
model. Hparams from other sources can be checked against the contents.
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
    find_fraction,
    merge_hparams,
    nearest_size,
    resolve_sizes,
    stack_of,
)

Shapes = Mapping[str, Sequence[int]]

# Parts of a checkpoint. An encoder is the transformer of a discriminator or of
# a masked LM, without a head.
PARTS = ("all", "discriminator", "generator", "encoder")

# Scope of the discriminator, or of the single network that has both heads.
FULL = "electra"
# Token table of the discriminator. With gradient-disentangled sharing, this
# table is the sum of two variables: the generator's table and a delta.
TABLE = f"{FULL}/embeddings/word_embeddings"
SHARED_TABLE = f"{FULL}/embeddings/shared_word_embeddings"
DELTA_TABLE = f"{TABLE}_delta"
TOWERS = ("generator_ltr/", "generator_rtl/", "cloze_predictions/")
_GENERATORS = ("generator/", "generator_ltr/", "generator_rtl/")
_MASKED_LM_HEADS = ("generator_predictions/", "cloze_predictions/")
_DISCRIMINATOR_HEAD = "discriminator_predictions/"
# Masked-LM head of the discriminator, for objectives replace_mlm and
# all_tokens_mlm.
_TOKEN_HEAD = "token_predictions/"
_TASK_HEADS = "task_specific/"
# Scope of the first layer of a sentence head with two layers, relative to the
# scope of the task.
HIDDEN = "hidden"
DISCRIMINATOR = (f"{FULL}/", _DISCRIMINATOR_HEAD)
# Variables that are used only in pre-training and never exported: the baseline
# of adversarial training, and the head of correction_weight.
CORRECTION_HEAD = "correction_predictions"
TRAINING_ONLY = ("reward_baseline/", f"{CORRECTION_HEAD}/")
_LAYER = re.compile(r"(\w+)/encoder/layer_(\d+)/")
# Remedies by the part that is missing from a checkpoint.
_REMEDIES = {
    "generator": (
        " Choose a different checkpoint, or pass --part=discriminator."
    ),
    "discriminator": (
        " Choose a different checkpoint, or pass --part=generator"
        " (--part=encoder for the transformer of a masked LM)."
    ),
}


@dataclasses.dataclass(frozen=True)
class TaskHead:
    """Properties of a fine-tuned task's head that shapes do not show."""

    kind: str  # type of the task, such as "classification" or "tagging"
    labels: tuple[str, ...] = ()  # names of the classes in order, if known
    # The vector that the head reads. "first": the vector of the first token;
    # "mean": the mean of all tokens' vectors.
    pooling: str = "first"
    # Whether the head works as in other libraries. Tagging: words are split
    # like any text, while the original splits them differently. Regression:
    # predictions have the unit of the labels, while this project trains on the
    # range from 0 to 1.
    as_elsewhere: bool = False
    # Regression: lowest and highest label.
    range: tuple[float, float] | None = None
    # Maximum number of wordpieces in a text; None if no file states a maximum.
    max_length: int | None = dataclasses.field(default=None, compare=False)


class Contents:
    """Networks and heads of a checkpoint, inferred from its variables."""

    def __init__(self, shapes: Shapes) -> None:
        # Shapes by the original's name, without the shapes of Adam slots and
        # step.
        self.shapes = dict(shapes)
        if SHARED_TABLE in self.shapes:
            self.shapes.setdefault(TABLE, self.shapes[SHARED_TABLE])

    def has(self, *prefixes: str) -> bool:
        """Return whether any name starts with one of the prefixes."""
        return any(name.startswith(prefixes) for name in self.shapes)

    @property
    def discriminates(self) -> bool:
        """Return whether the checkpoint contains the replaced-token head."""
        return self.has(_DISCRIMINATOR_HEAD)

    @property
    def predicts_tokens(self) -> bool:
        """Return whether the discriminator has a masked-LM head."""
        return self.has(_TOKEN_HEAD)

    @property
    def generates(self) -> bool:
        """Return whether there is a generator's masked-LM head."""
        return self.has(*_MASKED_LM_HEADS)

    @property
    def is_headless(self) -> bool:
        """Return whether all pre-training heads are missing."""
        return self.sizes.discriminates is None

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the fine-tuning tasks that have a head, in order."""
        heads = (n for n in self.shapes if n.startswith(_TASK_HEADS))
        return tuple(dict.fromkeys(name.split("/")[1] for name in heads))

    @property
    def unknown(self) -> list[str]:
        """Variables that belong to no known network or head."""
        heads = (*_MASKED_LM_HEADS, *DISCRIMINATOR, _TOKEN_HEAD, _TASK_HEADS)
        prefixes = (*heads, *_GENERATORS, *TRAINING_ONLY)
        return sorted(n for n in self.shapes if not n.startswith(prefixes))

    @property
    def description(self) -> str:
        """Phrase that names the model's networks and heads."""
        if self.tasks:
            return f"a fine-tuned model ({', '.join(self.tasks)})"
        kind = "two-tower generator" if self.has(*TOWERS) else "generator"
        if self.predicts_tokens:
            source = f"a {kind}" if self.generates else "no generator"
            return f"a masked LM that restores replaced tokens ({source})"
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
        return (
            f"not a recognized ELECTRA checkpoint (variable scopes: {scopes})"
        )

    def holds(self, part: str) -> bool:
        """Return whether the checkpoint contains a part, one of `PARTS`."""
        encodes = self.has(f"{FULL}/encoder/")
        if part == "discriminator":
            # Fine-tuning removes the pre-training head, so any encoder without
            # a generator counts as a discriminator.
            has_head = self.discriminates or self.predicts_tokens
            return encodes and (has_head or not self.generates)
        if part == "generator":
            return self.generates
        return part == "all" or encodes

    def prefixes(self, part: str, path: str) -> tuple[str, ...]:
        """Return the prefixes of the names of a part's variables.

        Args:
          part: name of the part, one of `PARTS`.
          path: path of the checkpoint, for messages.

        Raises:
          UserError: the checkpoint does not contain the part.
        """
        if part not in PARTS:
            expected = ", ".join(PARTS)
            raise UserError(
                f"part is {part!r}; expected one of {expected}. Pass one of"
                " these parts."
            )
        if not self.holds(part):
            name = "encoder of scope `electra`" if part == "encoder" else part
            raise UserError(
                f"{path}: no {name} in this checkpoint, which is"
                f" {self.description}." + _REMEDIES.get(part, "")
            )
        if part == "encoder":
            return (f"{FULL}/",)
        if part == "discriminator":
            return (f"{FULL}/", _DISCRIMINATOR_HEAD, _TOKEN_HEAD, _TASK_HEADS)
        scopes = tuple(scope for scope in _GENERATORS if self.has(scope))
        # A generator without a separate scope is the network of scope
        # `electra`.
        if not scopes:
            scopes = (f"{FULL}/",)
        elif not all(self.has(f"{s}embeddings/word_") for s in scopes):
            scopes += (f"{FULL}/embeddings/",)
        return (*scopes, *_MASKED_LM_HEADS)

    def mixup_hint(self, missing_names: Iterable[str]) -> str | None:
        """Return a hint if the checkpoint lacks a whole network, or None."""
        missing = Contents(dict.fromkeys(missing_names, ()))
        if missing.discriminates and not self.has("discriminator"):
            if self.generates:
                return (
                    "The checkpoint is a generator (or a masked LM), but the"
                    " model requires a discriminator."
                )
        elif missing.has("generator") and not self.has("generator"):
            return (
                "The checkpoint contains no generator, but the model requires"
                " a generator."
            )
        return None

    # Sizes of the networks.

    @functools.cached_property
    def layers(self) -> dict[str, set[int]]:
        """Layer numbers of each transformer, by scope."""
        layers: dict[str, set[int]] = {}
        for name in self.shapes:
            if match := _LAYER.match(name):
                layers.setdefault(match[1], set()).add(int(match[2]))
        return layers

    @property
    def _generator_scope(self) -> str | None:
        """Scope of a separate generator's transformer or of its first tower."""
        return next((s for s in KINDS if s in self.layers), None)

    @property
    def embedding_sharing(self) -> str | None:
        """Value of the hparam; None if there is only one network."""
        tables = f"{self._generator_scope}/embeddings/"
        if SHARED_TABLE in self.shapes:
            return "gradient_disentangled"
        if f"{tables}word_embeddings" in self.shapes:
            return "none"
        if f"{tables}position_embeddings" in self.shapes:
            return "token"
        has_both = self._generator_scope and FULL in self.layers
        return "embeddings" if has_both else None

    @property
    def shares_some_tables(self) -> bool:
        """Return whether the original lacks this `embedding_sharing`."""
        return self.embedding_sharing in ("token", "gradient_disentangled")

    @functools.cached_property
    def sizes(self) -> ModelSizes:
        """Sizes of all networks.

        Raises:
          UserError: the variables are not a complete ELECTRA model.
        """
        small = self._generator_scope
        if not (small or FULL in self.layers):
            raise UserError(
                "The checkpoint has no encoder: its variables start with"
                f" {', '.join(sorted(self.shapes)[:3]) or 'nothing'}; expected"
                " names such as electra/encoder/layer_0/... Choose a different"
                " checkpoint."
            )
        has_table = TABLE in self.shapes
        tables = self.tables(FULL if has_table else small or FULL)
        if not has_table:
            tables["embedding_size"] = None
        kind = GeneratorKind.UNIFORM
        if self.has("generator_predictions/"):
            kind = GeneratorKind.FULL
        detects, predicts = self.discriminates, self.predicts_tokens
        generates = small or kind is GeneratorKind.FULL
        is_headless = not (generates or detects or predicts)
        return ModelSizes(
            **tables,
            encoder=self.stack(FULL) if FULL in self.layers else None,
            generator=self.stack(small) if small else None,
            generator_kind=KINDS.get(small, kind),
            embedding_sharing=self.embedding_sharing,
            discriminates=None if is_headless else detects,
            predicts_tokens=(
                predicts if FULL in self.layers and not is_headless else None
            ),
        )

    def tables(self, scope: str) -> dict[str, Any]:
        """Return the sizes of the embedding tables in a scope."""
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
        """Return the sizes of the transformer in a scope."""
        layers = self.layers.get(scope, {0})
        if absent := sorted(set(range(max(layers))) - layers):
            raise UserError(
                f"{scope}/encoder has layers up to {max(layers)}, but lacks"
                f" layer {absent[0]}: the checkpoint is incomplete. Copy the"
                " checkpoint again."
            )
        block = f"{scope}/encoder/layer_0"
        hidden = self._axis(f"{block}/attention/self/query/kernel", 0)
        inner = self._axis(f"{block}/intermediate/dense/bias", 0)
        return Stack(hidden, len(layers), inner)

    def _axis(self, name: str, axis: int) -> int:
        if name not in self.shapes:
            raise UserError(
                f"The checkpoint lacks {name}, which all ELECTRA models"
                " contain. Choose a different checkpoint."
            )
        return int(self.shapes[name][axis])

    # Hparams of the model.

    def hparams(self) -> dict[str, Any]:
        """Infer the hparams of a model with these variables.

        A generator without its discriminator is described as the generator of a
        discriminator of equal size. `assumptions` lists the hparams that shapes
        do not determine.
        """
        sizes, stack = self.sizes, self.sizes.main
        size_name, size = nearest_size(stack.hidden_size)
        defaults = {
            "hidden_size": size.hidden_size,
            "num_hidden_layers": size.num_hidden_layers,
            # The defaults of the next two sizes depend on the hidden size.
            "intermediate_size": 4 * stack.hidden_size,
            "num_attention_heads": default_heads(stack.hidden_size),
            "max_position_embeddings": size.max_position_embeddings,
            "type_vocab_size": size.type_vocab_size,
        }
        actual = {
            **dataclasses.asdict(sizes),
            **dataclasses.asdict(stack),
            "num_attention_heads": stack.heads,
        }
        overrides = {
            name: actual[name]
            for name, default in defaults.items()
            if actual[name] != default
        }
        hparams: dict[str, Any] = {"model_size": size_name}
        if overrides:
            hparams["model_hparam_overrides"] = overrides
        hparams["embedding_size"] = sizes.embedding_size or stack.hidden_size
        hparams["vocab_size"] = sizes.vocab_size
        if sizes.discriminates is None:
            return hparams
        if sizes.predicts_tokens:
            hparams["objective"] = (
                "all_tokens_mlm" if sizes.discriminates else "replace_mlm"
            )
            hparams["electra_objective"] = False
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
            hparam: find_fraction(sizes.main, sizes.generator, field)
            for hparam, field in SHARES.items()
        }

    def assumptions(self) -> list[str]:
        """Return the assumptions of `hparams` that shapes cannot confirm.

        A line about hparams starts with their names: "a, b: ...".
        """
        sizes, kind = self.sizes, self.sizes.generator_kind
        lines = [
            f"num_attention_heads: {sizes.main.heads} assumed (one per 64"
            " hidden units)",
            "hidden_act: gelu assumed",
            "do_lower_case, strip_accents: true assumed",
        ]
        if kind is GeneratorKind.TWO_TOWER:
            lines.append(
                "electric_objective: true assumed; a two-tower ELECTRA model"
                " would have the same variables"
            )
        has_head = sizes.discriminates or sizes.predicts_tokens
        if has_head and kind is GeneratorKind.UNIFORM:
            lines.append(
                "uniform_generator: true assumed; a discriminator whose"
                " generator was left out would have the same variables"
            )
        if sizes.encoder is None:
            lines.append(
                "generator_hidden_size: unknown without the discriminator; all"
                " sizes are the sizes of the generator"
            )
        small = sizes.generator
        if small and not small.follows_rule:
            lines.append(
                "the generator's feed-forward width is"
                f" {small.intermediate_size} instead of 4 *"
                f" {small.hidden_size}, and no hparam sets this width"
            )
        return lines

    def check_hparams(
        self, stated: Mapping[str, Any], origin: str = "the hparams"
    ) -> None:
        """Raise a UserError if hparams contradict the checkpoint's variables.

        Args:
          stated: hparams to check; other hparams are inferred from the
            variables.
          origin: source of the hparams, for messages.
        """
        hparams = merge_hparams(self.hparams(), stated)
        encoder = stack_of(encoder_config(hparams))
        if self.sizes.encoder not in (None, encoder):
            # A generator's sizes are fractions of the encoder's sizes, so only
            # the differences of the encoder are reported.
            hparams.pop("generator", None)
            hparams["uniform_generator"] = True
        if differences := describe_differences(
            self.sizes, resolve_sizes(hparams)
        ):
            raise UserError(
                f"The checkpoint does not match the model that {origin}"
                " describe:\n" + "\n".join(f"  {text}" for text in differences)
            )

    def differences(self, model: "Contents") -> list[str]:
        """Return a line for each size in which checkpoint and model differ.

        The list is empty if the sizes cannot be inferred.
        """
        try:
            return describe_differences(self.sizes, model.sizes)
        except UserError:
            return []
