# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Encoders that a pre-training step runs, and their sizes."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from configure.errors import UserError
from configure.generator import GeneratorKind, generator_kind
from configure.pretraining import PretrainingConfig
from electra_tf.modeling.encoder_config import EncoderConfig

_DISCRIMINATOR = "discriminator"


class Network(NamedTuple):
    """An encoder that a pre-training step runs."""

    name: str
    sizes: EncoderConfig
    width: int  # width of the encoder's embeddings


def list_networks(config: PretrainingConfig) -> list[Network]:
    """Return all encoders that a step runs, a discriminator's (if any) last."""
    kind, encoder = generator_kind(config), EncoderConfig.of(config)
    encoder_width = config.embedding_size or encoder.hidden_size
    sizes, width, names = encoder, encoder_width, ["generator"]
    if kind.is_fixed:
        names = []
    elif kind is not GeneratorKind.FULL:
        sizes = encoder.scaled(
            config.generator_hidden_size, config.generator_layers
        )
        if config.embedding_sharing == "none":
            width = sizes.hidden_size
    if kind is GeneratorKind.TWO_TOWER:
        names = ["left tower", "right tower"]
    networks = [Network(name, sizes, width) for name in names]
    if config.has_two_networks:
        networks.append(Network(_DISCRIMINATOR, encoder, encoder_width))
    return networks


def select_generator(networks: Sequence[Network]) -> list[Network]:
    """Return the encoders of the generator: all except the discriminator."""
    return [n for n in networks if n.name != _DISCRIMINATOR]


def check_equal_sizes(networks: Sequence[Network]) -> None:
    """Raise a UserError if generator and discriminator differ in size.

    With two stages, the discriminator starts with the generator's weights.
    Overridden sizes, such as heads, apply only to the discriminator.

    Args:
      networks: generator and discriminator.
    """
    (_, sizes, width), (_, others, other_width) = networks
    unequal = {"embedding_size": (width, other_width)}
    for name, size in dataclasses.asdict(sizes).items():
        unequal[f"model_hparam_overrides.{name}"] = size, getattr(others, name)
    for name, (size, other) in unequal.items():
        if size != other:
            raise UserError(
                "hparam training_schedule: 'two_stage' copies the generator's"
                " weights to the discriminator, which requires equal sizes, but"
                f" {name.rpartition('.')[2]} is {size} for the generator and"
                f" {other} for the discriminator. Set {name} to {size}"
            )
