# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The encoders that a pre-training step runs through, and their sizes."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from configure.errors import UserError
from configure.generator import GeneratorKind, generator_kind
from configure.pretraining import PretrainingConfig
from electra_tf.modeling.encoder_config import EncoderConfig

_DISCRIMINATOR = "discriminator"


class Network(NamedTuple):
    """An encoder that a step runs through."""

    name: str
    sizes: EncoderConfig
    width: int  # of its embeddings


def list_networks(config: PretrainingConfig) -> list[Network]:
    """All encoders that a step runs through, the discriminator's last."""
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
    """The generator, its two towers, or a masked LM's encoder."""
    return [n for n in networks if n.name != _DISCRIMINATOR]


def check_equal_sizes(networks: Sequence[Network]) -> None:
    """Refuses two stages of unequal networks, one of which becomes the other.

    Sizes that are overridden, such as heads, are the discriminator's alone.

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
                "hparam training_schedule: 'two_stage' makes the generator's"
                " weights the discriminator's, which needs equal sizes, but"
                f" {name.rpartition('.')[2]} is {size} for the generator and"
                f" {other} for the discriminator; set {name} to {size}"
            )
