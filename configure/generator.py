# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Choice of the generator by the hparams."""

import enum
from typing import Protocol


class GeneratorKind(enum.Enum):
    """Kind of the generator, which proposes the replacements."""

    # All tokens are equally likely; the generator has no variables.
    UNIFORM = "uniform"
    # Tokens are drawn by frequency; the generator has no variables.
    UNIGRAM = "unigram"
    SMALL = "small"  # a smaller masked LM, scope "generator"
    TWO_TOWER = "two_tower"  # Electric's cloze model with two towers
    FULL = "full"  # the full-size masked LM, scope "electra"

    @property
    def is_fixed(self) -> bool:
        """Return whether the generator has no variables."""
        return self in (GeneratorKind.UNIFORM, GeneratorKind.UNIGRAM)


class GeneratorHparams(Protocol):
    """Interface of the hparams that choose a generator."""

    @property
    def generator(self) -> str | None: ...
    @property
    def uniform_generator(self) -> bool: ...
    @property
    def two_tower_generator(self) -> bool: ...
    @property
    def untied_generator(self) -> bool: ...
    @property
    def has_two_networks(self) -> bool: ...


def generator_kind(config: GeneratorHparams) -> GeneratorKind:
    """Return the generator's kind, by the original's precedence of hparams.

    Source: google-research/electra, run_pretraining.py, PretrainingModel.
    """
    if config.generator == "unigram":
        return GeneratorKind.UNIGRAM
    if config.uniform_generator:
        return GeneratorKind.UNIFORM
    if not (config.has_two_networks and config.untied_generator):
        return GeneratorKind.FULL
    if config.two_tower_generator:
        return GeneratorKind.TWO_TOWER
    return GeneratorKind.SMALL
