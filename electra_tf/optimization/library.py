# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""AdamW and LAMB as their libraries have them, and the hparam that chooses."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from electra_tf.optimization.optimizer import (
    EXCLUDED_FROM_DECAY,
    AdamWeightDecay,
    Gradient,
    clipping,
    scaled,
    variable_name,
)


class LibraryOptimizer:
    """A library's optimizer behind the interface of `AdamWeightDecay`.

    Clipping, the schedule, the layers' rates and what happens to gradients
    that are not finite are ours. The update is the library's: for each of the
    layers' rates it has an optimizer, told its rate and the step each time.

    `m` and `v` hold the moments by variable name.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization
    (2019); You et al., Large Batch Optimization for Deep Learning (2020).
    """

    def __init__(
        self,
        kind: str,
        variables: Sequence[tf.Variable],
        schedule: Callable[[tf.Tensor], tf.Tensor],
        weight_decay_rate: float = 0.0,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        clip_norm: float = 1.0,
        learning_rate_multipliers: Mapping[str, float] | None = None,
    ) -> None:
        """Makes all slots; `kind` is "adamw" or "lamb"."""
        self.kind, self.schedule, self.clip_norm = kind, schedule, clip_norm
        self.m: dict[str, tf.Variable] = {}
        self.v: dict[str, tf.Variable] = {}
        self._count = len(variables)
        multipliers = learning_rate_multipliers or {}
        # Multiplier -> places among the gradients, and variables.
        groups: dict[float, list[tuple[int, tf.Variable]]] = {}
        for index, variable in enumerate(variables):
            multiplier = multipliers.get(variable_name(variable), 1.0)
            groups.setdefault(multiplier, []).append((index, variable))
        settings = {"beta_1": beta_1, "beta_2": beta_2, "epsilon": epsilon}
        make = {"adamw": _adamw, "lamb": _lamb}[kind]
        self._groups = []
        for multiplier, members in groups.items():
            own = [variable for _, variable in members]
            optimizer, m, v = make(own, weight_decay_rate, settings)
            self._groups.append((multiplier, members, optimizer))
            for variable, *moments in zip(own, m, v, strict=True):
                name = variable_name(variable)
                if name in self.m:
                    raise ValueError(f"Two variables are named {name}.")
                self.m[name], self.v[name] = moments

    def update(
        self, gradients: Sequence[Gradient], step: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Makes one update; see `AdamWeightDecay.update`."""
        if len(gradients) != self._count:
            raise ValueError(
                f"{len(gradients)} gradients for {self._count} variables"
            )
        norm, finite, scale = clipping(gradients, self.clip_norm)
        rate = self.schedule(step)
        applied_rate = tf.where(finite, rate, 0.0)
        for multiplier, members, optimizer in self._groups:
            optimizer.iterations.assign(step)
            optimizer.learning_rate.assign(multiplier * applied_rate)
            pairs = [
                (scaled(gradients[index], scale), variable)
                for index, variable in members
                if gradients[index] is not None
            ]
            # The training loop has added them up over replicas.
            optimizer.apply_gradients(
                pairs, experimental_aggregate_gradients=False
            )
        return {"learning_rate": rate, "grad_norm": norm}


_Made = tuple[Any, Sequence[tf.Variable], Sequence[tf.Variable]]


def _adamw(
    variables: Sequence[tf.Variable], decay: float, settings: dict[str, float]
) -> _Made:
    # A step is compiled as a whole (jit_compile) or not at all.
    optimizer = tf_keras.optimizers.AdamW(
        0.0, decay, jit_compile=False, **settings
    )
    optimizer.exclude_from_weight_decay(var_names=[*EXCLUDED_FROM_DECAY])
    optimizer.build(variables)
    return optimizer, optimizer._momentums, optimizer._velocities


def _lamb(
    variables: Sequence[tf.Variable], decay: float, settings: dict[str, float]
) -> _Made:
    # Its package imports much that nothing else needs.
    from official.modeling.optimization.lamb import LAMB

    optimizer = LAMB(
        0.0,
        weight_decay_rate=decay,
        exclude_from_weight_decay=[*EXCLUDED_FROM_DECAY],
        **settings,
    )
    optimizer._create_all_weights(variables)
    m, v = ([optimizer.get_slot(x, n) for x in variables] for n in "mv")
    return optimizer, m, v


Optimizer = AdamWeightDecay | LibraryOptimizer


def make_optimizer(
    config: Any,
    variables: Sequence[tf.Variable],
    schedule: Callable[[tf.Tensor], tf.Tensor],
    learning_rate_multipliers: Mapping[str, float] | None = None,
) -> Optimizer:
    """Returns the optimizer that a config's hparams ask for."""
    settings = {
        "weight_decay_rate": config.weight_decay_rate,
        "beta_1": config.adam_beta_1,
        "beta_2": config.adam_beta_2,
        "epsilon": config.adam_epsilon,
        "learning_rate_multipliers": learning_rate_multipliers,
    }
    if config.optimizer != AdamWeightDecay.kind:
        return LibraryOptimizer(
            config.optimizer, variables, schedule, **settings
        )
    return AdamWeightDecay(
        variables,
        schedule,
        bias_correction=config.adam_bias_correction,
        **settings,
    )
