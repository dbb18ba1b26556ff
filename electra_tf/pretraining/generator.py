# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which generator: small, tied, masked-LM only, uniform or two-tower."""

import enum
from typing import Any

from electra_tf.modeling.encoder_config import EncoderConfig


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
      The kind.

    Raises:
      ValueError: for combinations that make no model.

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
    if config.two_tower_generator and kind is not GeneratorKind.TWO_TOWER:
        raise ValueError(
            "two_tower_generator needs untied_generator=true, "
            "uniform_generator=false and electra_objective or "
            "electric_objective."
        )
    if config.electric_objective and kind is not GeneratorKind.TWO_TOWER:
        raise ValueError("electric_objective needs two_tower_generator=true.")
    return kind


def generator_config(config: Any, encoder: EncoderConfig) -> EncoderConfig:
    """Returns the generator's sizes: fractions of the discriminator's.

    Args:
      config: a `PretrainingConfig`.
      encoder: the discriminator's sizes.

    Returns:
      The scaled sizes.
    """
    return encoder.scaled(config.generator_hidden_size, config.generator_layers)
