# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers of parameters of a model, computed from its config."""

import dataclasses

from configure.generator import GeneratorKind, generator_kind
from configure.objectives import Positions
from configure.pretraining import PretrainingConfig
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.plan.network_sizes import list_networks, select_generator


@dataclasses.dataclass(frozen=True)
class ParameterCount:
    """Numbers of parameters by network."""

    generator: int  # only in the generator, including its head
    discriminator: int  # only in the discriminator, including its heads
    shared: int  # in both networks: the embeddings, or all but the heads

    @property
    def total(self) -> int:
        """Number of all parameters that are trained and checkpointed."""
        return self.generator + self.discriminator + self.shared

    @property
    def discriminator_alone(self) -> int:
        """Number of a discriminator's parameters; 0 without a discriminator."""
        return self.discriminator + self.shared if self.discriminator else 0


def pretraining_parameters(config: PretrainingConfig) -> ParameterCount:
    """Count the parameters that pre-training trains, by network."""
    sizes = EncoderConfig.of(config)
    width = config.embedding_size or sizes.hidden_size
    tables = embedding_parameters(sizes, width)
    body = encoder_parameters(sizes, width)
    # The second network can have a head for replacements, a head for tokens,
    # or both heads.
    hidden, disc_head = sizes.hidden_size, 0
    if config.has_discriminator_head:
        disc_head = _dense(hidden, hidden) + _dense(hidden, 1)
    if config.token_positions is not Positions.NONE:
        disc_head += _dense(hidden, width) + 2 * width + sizes.vocab_size
    towers = select_generator(list_networks(config))
    if not towers:
        return ParameterCount(0, tables + body + disc_head, 0)
    _, small, own_width = towers[0]
    generator = _dense(len(towers) * small.hidden_size, own_width)
    # The head also has a layer norm and an output bias.
    generator += 2 * own_width + small.vocab_size
    if config.training_schedule == "adversarial":
        # The baseline of the reward is a dense layer with one output.
        generator += _dense(small.hidden_size, 1)
    if generator_kind(config) is GeneratorKind.FULL:
        if config.has_two_networks:
            return ParameterCount(generator, disc_head, tables + body)
        return ParameterCount(tables + body + generator, 0, 0)
    generator += len(towers) * encoder_parameters(small, own_width)
    discriminator, words = body + disc_head, sizes.vocab_size * width
    own_tables = embedding_parameters(small, own_width)
    if config.embedding_sharing == "none":
        generator += len(towers) * own_tables
        return ParameterCount(generator, discriminator + tables, 0)
    if config.embedding_sharing == "token":
        generator += len(towers) * (own_tables - words)
        return ParameterCount(generator, discriminator + tables - words, words)
    if config.has_delta:
        # The token table of the discriminator is the generator's table plus a
        # delta.
        both = generator + words, discriminator + words
        return ParameterCount(*both, tables - words)
    return ParameterCount(generator, discriminator, tables)


def embedding_parameters(sizes: EncoderConfig, width: int) -> int:
    """Return the number of parameters in embedding tables and layer norm."""
    rows = sizes.vocab_size + sizes.type_vocab_size
    return (rows + sizes.max_position_embeddings + 2) * width


def encoder_parameters(sizes: EncoderConfig, embedding_width: int) -> int:
    """Return the number of an encoder's parameters, without the embeddings."""
    hidden, inner = sizes.hidden_size, sizes.intermediate_size
    block = 4 * _dense(hidden, hidden) + 4 * hidden
    block += _dense(hidden, inner) + _dense(inner, hidden)
    projected = embedding_width != hidden
    projection = _dense(embedding_width, hidden) if projected else 0
    return projection + sizes.num_hidden_layers * block


def _dense(in_width: int, units: int) -> int:
    return (in_width + 1) * units
