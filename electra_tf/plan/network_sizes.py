# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The encoders that a pre-training step runs through, and their sizes."""

import dataclasses
from typing import NamedTuple

from configure.errors import UserError
from configure.generator import GeneratorKind, generator_kind
from configure.pretraining import PretrainingConfig
from electra_tf.modeling.encoder_config import EncoderConfig


class Network(NamedTuple):
    """An encoder that a step runs through."""

    name: str
    sizes: EncoderConfig
    width: int  # of its embeddings


def list_generator_networks(config: PretrainingConfig) -> list[Network]:
    """The generator, its two towers, or a masked LM's encoder."""
    kind, sizes = generator_kind(config), EncoderConfig.of(config)
    width, names = config.embedding_size or sizes.hidden_size, ["generator"]
    if kind.is_fixed:
        return []
    if kind is not GeneratorKind.FULL:
        sizes = sizes.scaled(
            config.generator_hidden_size, config.generator_layers
        )
        if config.embedding_sharing == "none":
            width = sizes.hidden_size
    if kind is GeneratorKind.TWO_TOWER:
        names = ["left tower", "right tower"]
    return [Network(name, sizes, width) for name in names]


def list_networks(config: PretrainingConfig) -> list[Network]:
    """All encoders that a step runs through."""
    found = list_generator_networks(config)
    if config.has_two_networks:
        sizes = EncoderConfig.of(config)
        width = config.embedding_size or sizes.hidden_size
        found.append(Network("discriminator", sizes, width))
    return found


def check_equal_sizes(config: PretrainingConfig) -> None:
    """Refuses two stages of unequal networks, one of which becomes the other.

    Sizes that are overridden, such as heads, are the discriminator's alone.
    """
    if config.training_schedule != "two_stage":
        return
    (_, sizes, width), (_, others, other_width) = list_networks(config)
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
