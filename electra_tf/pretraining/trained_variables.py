# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trained variables of each network."""

from collections.abc import Iterable

import tensorflow as tf

from electra_tf.modeling.layers import ScopedLayer
from electra_tf.pretraining.networks import Networks


def variables_of(
    networks: Networks, layers: Iterable[ScopedLayer | None]
) -> list[tf.Variable]:
    """Return the trained variables of layers, in the networks' order."""
    trained = _references(layers)
    return [v for v in networks.trainable_variables if v.ref() in trained]


def discriminator_variables(networks: Networks) -> list[tf.Variable]:
    """Return the trained variables of the discriminator and its heads."""
    return variables_of(networks, _discriminator_layers(networks))


def generator_variables(networks: Networks) -> list[tf.Variable]:
    """Return the trained variables that only the generator has.

    The tables that both networks share and the delta of gradient-disentangled
    sharing are excluded.
    """
    layers = (
        networks.generator,
        networks.masked_lm_head,
        networks.reward_baseline,
    )
    shared = _references(_discriminator_layers(networks))
    variables = variables_of(networks, layers)
    return [v for v in variables if v.ref() not in shared]


def _discriminator_layers(networks: Networks) -> tuple[ScopedLayer | None, ...]:
    return (
        networks.discriminator,
        networks.discriminator_head,
        networks.token_head,
    )


def _references(layers: Iterable[ScopedLayer | None]) -> set[object]:
    """Return references to the trained variables of existing layers."""
    return {
        variable.ref()
        for layer in layers
        if layer is not None
        for variable in layer.trainable_variables
    }
