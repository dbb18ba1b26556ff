# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two-stage training: first the generator, then the discriminator.

Source: ELECTRA paper, section 3.2.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from electra_tf.optimization.optimizer import AdamWeightDecay
from electra_tf.pretraining.networks import Networks
from electra_tf.pretraining.trained_variables import (
    discriminator_variables,
    variables_of,
)
from electra_tf.training.loop import Chunk, TrainLoop

# Stages, named after the network that each of them trains.
GENERATOR, DISCRIMINATOR = 1, 2
# Function that builds an optimizer of variables for a number of steps.
BuildOptimizer = Callable[[Sequence[tf.Variable], int], AdamWeightDecay]
# Function from the arguments that differ by stage to a `TrainLoop`.
BuildLoop = Callable[..., TrainLoop]


def stage_variables(networks: Networks, stage: int) -> list[tf.Variable]:
    """Return the variables that a stage trains: one network and its head.

    The networks share no variable.
    """
    if stage == DISCRIMINATOR:
        return discriminator_variables(networks)
    return variables_of(networks, (networks.generator, networks.masked_lm_head))


def copy_generator(networks: Networks) -> None:
    """Assign the generator's tables and transformer to the discriminator."""
    variables = {v.name: v for v in networks.trainable_variables}
    for name, variable in variables.items():
        scope, _, rest = name.partition("/")
        if scope == "generator":
            variables[f"electra/{rest}"].assign(variable.numpy())


class TwoStageOptimizer:
    """Two optimizers, one for each stage, with separate slots and rates.

    An optimizer has only the variables of its stage, so that in the second
    stage not even weight decay changes the generator.

    Attributes:
      switch: number of updates in the first stage.
      stages: optimizer of each stage.
      kind: kind of both optimizers; see `AdamWeightDecay`.
      m, v: slots of both stages, by variable name.
    """

    def __init__(
        self,
        steps: Mapping[int | None, int],
        networks: Networks,
        build: BuildOptimizer,
    ) -> None:
        """Build an optimizer for each stage.

        Args:
          steps: number of steps of each stage.
          networks: networks of the model.
          build: function that builds an optimizer.
        """
        self.switch = steps[GENERATOR]
        self.stages = {
            stage: build(stage_variables(networks, stage), steps[stage])
            for stage in (GENERATOR, DISCRIMINATOR)
        }
        first, second = self.stages.values()
        self.kind = first.kind
        self.m, self.v = first.m | second.m, first.v | second.v


class TwoStageLoop:
    """Training loop of the current stage, which depends only on the step.

    The graph of the first stage contains no discriminator.
    """

    def __init__(
        self,
        networks: Networks,
        optimizer: TwoStageOptimizer,
        build: BuildLoop,
    ) -> None:
        self._networks, self._switch = networks, optimizer.switch
        first_steps = {GENERATOR: 0, DISCRIMINATOR: self._switch}
        self._loops = {
            stage: build(
                compute=functools.partial(networks.compute, stage=stage),
                variables=stage_variables(networks, stage),
                optimizer=stage_optimizer,
                first_step=first_steps[stage],
            )
            for stage, stage_optimizer in optimizer.stages.items()
        }
        self._loop = self._loops[GENERATOR]

    def train(self, num_steps: int) -> None:
        """Make updates, all in one stage; see `TrainLoop.train`."""
        done = int(self._loop.step.numpy())
        if done == self._switch:
            copy_generator(self._networks)
        stage = DISCRIMINATOR if done >= self._switch else GENERATOR
        self._loop = self._loops[stage]
        self._loop.train(num_steps)

    def take_chunk(self) -> Chunk:
        """Return the scalars of recent updates; see `TrainLoop.take_chunk`."""
        return self._loop.take_chunk()
