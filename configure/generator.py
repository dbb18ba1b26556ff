# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which generator proposes the replacements, read from the hparams."""

import enum
from typing import Protocol


class GeneratorKind(enum.Enum):
    """A way to propose replacements."""

    UNIFORM = "uniform"  # all tokens are equally likely; no variables
    UNIGRAM = "unigram"  # by the tokens' frequency; no variables
    SMALL = "small"  # a smaller masked LM, scope "generator"
    TWO_TOWER = "two_tower"  # Electric's cloze model
    FULL = "full"  # the full-size masked LM, scope "electra"

    @property
    def is_fixed(self) -> bool:
        """Return whether the generator has no variables."""
        return self in (GeneratorKind.UNIFORM, GeneratorKind.UNIGRAM)


class GeneratorHparams(Protocol):
    """The hparams that choose a generator; see `PretrainingConfig`."""

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
    """Return the kind of generator, in the original's order of precedence.

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
