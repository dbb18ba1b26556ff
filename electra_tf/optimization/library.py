# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""AdamW and LAMB as their libraries have them, and the hparam that chooses.

Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019);
You et al., Large Batch Optimization for Deep Learning (2020).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from electra_tf.optimization.optimizer import (
    EXCLUDED_FROM_DECAY,
    AdamWeightDecay,
)

_EXCLUDED = [*EXCLUDED_FROM_DECAY]


class AdamW(AdamWeightDecay):
    """Updates by tf_keras's AdamW; all else is the base class's.

    For each of the layers' rates there is one, told rate and step each time.
    """

    kind = "adamw"

    def _library(self, variables: Any, **settings: float) -> Any:
        """Returns an optimizer of variables and its moments, in their order."""
        # A step is compiled as a whole (jit_compile) or not at all.
        made = tf_keras.optimizers.AdamW(
            weight_decay=self.weight_decay_rate, jit_compile=False, **settings
        )
        made.exclude_from_weight_decay(var_names=_EXCLUDED)
        made.build(variables)
        return made, made._momentums, made._velocities

    def _make_slots(self) -> None:
        self._libraries: dict[float, Any] = {}
        for names in self._groups([tf.zeros([])] * len(self._named)):
            made, m, v = self._library(
                [self._named[name][0] for name in names],
                learning_rate=0.0,
                beta_1=self.beta_1,
                beta_2=self.beta_2,
                epsilon=self.epsilon,
            )
            self._libraries[self._multipliers.get(names[0], 1.0)] = made
            self.m.update(zip(names, m, strict=True))
            self.v.update(zip(names, v, strict=True))

    def _group_key(self, name: str, variable: tf.Variable) -> tuple:
        """Alike for what has one rate."""
        return (self._multipliers.get(name, 1.0),)

    def _update_group(
        self,
        names: Sequence[str],
        variables: Sequence[tf.Variable],
        gradients: Sequence[tf.Tensor],
        rate: tf.Tensor,
        step: tf.Tensor,
    ) -> tf.Tensor:
        multiplier = self._multipliers.get(names[0], 1.0)
        library = self._libraries[multiplier]
        library.iterations.assign(step)
        library.learning_rate.assign(multiplier * rate)
        # The training loop has added gradients up over replicas.
        pairs = list(zip(gradients, variables, strict=True))
        library.apply_gradients(pairs, experimental_aggregate_gradients=False)
        return rate


class Lamb(AdamW):
    """Updates by tf-models-official's LAMB."""

    kind = "lamb"

    def _library(self, variables: Any, **settings: float) -> Any:
        # Its package imports much that nothing else needs.
        from official.modeling.optimization.lamb import LAMB

        settings["weight_decay_rate"] = self.weight_decay_rate
        made = LAMB(exclude_from_weight_decay=_EXCLUDED, **settings)
        made._create_all_weights(variables)
        m, v = ([made.get_slot(x, name) for x in variables] for name in "mv")
        return made, m, v


def make_optimizer(
    config: Any,
    variables: Sequence[tf.Variable],
    schedule: Callable[[tf.Tensor], tf.Tensor],
    multipliers: Mapping[str, float] | None = None,
) -> AdamWeightDecay:
    """Returns the optimizer that a config's hparams ask for."""
    kinds = {made.kind: made for made in (AdamWeightDecay, AdamW, Lamb)}
    return kinds[config.optimizer](
        variables,
        schedule,
        config.weight_decay_rate,
        config.adam_beta_1,
        config.adam_beta_2,
        config.adam_epsilon,
        bias_correction=config.adam_bias_correction,
        learning_rate_multipliers=multipliers,
    )
