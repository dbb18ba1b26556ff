# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which generator: small, tied, masked-LM only, uniform or two-tower."""

import enum
from typing import Any


class GeneratorKind(enum.Enum):
    """How replacements are proposed."""

    UNIFORM = "uniform"  # every word alike; no variables
    SMALL = "small"  # a smaller masked LM, scope "generator"
    TWO_TOWER = "two_tower"  # Electric's cloze model
    FULL = "full"  # the full-size masked LM, scope "electra"


def generator_kind(config: Any) -> GeneratorKind:
    """Reads the kind from the hparams, in the original's order of precedence.

    Args:
      config: a `PretrainingConfig`.

    Returns:
      The kind. Combinations that make no model do not reach this: a
      `PretrainingConfig` refuses them when it is made.

    Source: google-research/electra, run_pretraining.py, PretrainingModel.
    """
    discriminates = config.electra_objective or config.electric_objective
    if config.uniform_generator:
        kind = GeneratorKind.UNIFORM
    elif discriminates and config.untied_generator:
        kind = (
            GeneratorKind.TWO_TOWER
            if config.two_tower_generator
            else GeneratorKind.SMALL
        )
    else:
        kind = GeneratorKind.FULL
    return kind
