# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How many numbers a pre-training model learns, counted from its config."""

import dataclasses
from typing import Any

from configure.pretraining import GeneratorKind, generator_kind
from electra_tf.modeling.encoder_config import EncoderConfig


@dataclasses.dataclass(frozen=True)
class ParameterCount:
    """Parameters by whose they are."""

    generator: int  # only in the generator, its head with it
    discriminator: int  # only in the discriminator, its head with it
    shared: int  # in both: the embeddings, or all but the heads

    @property
    def total(self) -> int:
        """All that is trained and kept in a checkpoint."""
        return self.generator + self.discriminator + self.shared

    @property
    def discriminator_alone(self) -> int:
        """What is fine-tuned; the paper's number. 0 without one."""
        return self.discriminator + self.shared if self.discriminator else 0


def pretraining_parameters(config: Any) -> ParameterCount:
    """Counts the trained numbers of a model."""
    sizes = encoder_sizes(config)
    width = config.embedding_size or sizes.hidden_size
    discriminates = config.electra_objective or config.electric_objective
    tables = embedding_parameters(sizes, width)
    body = encoder_parameters(sizes, width)
    disc_head = _discriminator_head(sizes.hidden_size) if discriminates else 0
    kind = generator_kind(config)
    if kind is GeneratorKind.UNIFORM:
        return ParameterCount(0, tables + body + disc_head, 0)
    if kind is GeneratorKind.FULL:
        head = _masked_lm_head(sizes, sizes.hidden_size, width)
        if discriminates:
            return ParameterCount(head, disc_head, tables + body)
        return ParameterCount(tables + body + head, 0, 0)
    small = generator_sizes(config, sizes)
    towers = 2 if kind is GeneratorKind.TWO_TOWER else 1
    own_tables, own_width = 0, width
    if config.untied_generator_embeddings:
        own_width = small.hidden_size
        own_tables = embedding_parameters(small, own_width)
    generator = towers * (own_tables + encoder_parameters(small, own_width))
    generator += _masked_lm_head(small, towers * small.hidden_size, own_width)
    if config.untied_generator_embeddings:
        return ParameterCount(generator, tables + body + disc_head, 0)
    return ParameterCount(generator, body + disc_head, tables)


def encoder_sizes(config: Any) -> EncoderConfig:
    """Returns the sizes of the discriminator, or of a masked LM's encoder."""
    return EncoderConfig.for_size(
        config.model_size,
        config.vocab_size,
        config.model_hparam_overrides,
        config.debug,
    )


def generator_sizes(config: Any, sizes: EncoderConfig) -> EncoderConfig:
    """Returns the sizes of the generator, or of one of its towers."""
    if generator_kind(config) is GeneratorKind.FULL:
        return sizes
    return sizes.scaled(config.generator_hidden_size, config.generator_layers)


def embedding_parameters(sizes: EncoderConfig, width: int) -> int:
    """Counts the tables of tokens, segments and positions, and their norm."""
    rows = sizes.vocab_size + sizes.type_vocab_size
    return (rows + sizes.max_position_embeddings + 2) * width


def encoder_parameters(sizes: EncoderConfig, embedding_width: int) -> int:
    """Counts an encoder's projection and blocks, without the tables."""
    hidden, inner = sizes.hidden_size, sizes.intermediate_size
    block = 4 * _dense(hidden, hidden) + 4 * hidden
    block += _dense(hidden, inner) + _dense(inner, hidden)
    projected = embedding_width != hidden
    projection = _dense(embedding_width, hidden) if projected else 0
    return projection + sizes.num_hidden_layers * block


def _masked_lm_head(sizes: EncoderConfig, in_width: int, width: int) -> int:
    return _dense(in_width, width) + 2 * width + sizes.vocab_size


def _discriminator_head(hidden: int) -> int:
    return _dense(hidden, hidden) + _dense(hidden, 1)


def _dense(in_width: int, units: int) -> int:
    return (in_width + 1) * units
