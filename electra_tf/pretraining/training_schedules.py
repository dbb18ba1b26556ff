# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training schedules: networks trained in each step, and their losses.

  * `joint`: both networks in each step.
  * `two_stage`: first only the generator, then only the discriminator, which
    starts from the generator's weights.
  * `adversarial`: both networks, with a generator that maximizes the
    discriminator's loss.

Source: ELECTRA paper, section 3.2 (training algorithms) and appendix F.
"""

from collections.abc import Mapping

import tensorflow as tf

from electra_tf.optimization.optimizer import AdamWeightDecay
from electra_tf.plan.flops import steps_per_stage
from electra_tf.pretraining.adversarial import (
    AdversarialOutputs,
    adversarial_losses,
)
from electra_tf.pretraining.networks import Networks
from electra_tf.pretraining.two_stage import (
    DISCRIMINATOR,
    GENERATOR,
    BuildLoop,
    BuildOptimizer,
    TwoStageLoop,
    TwoStageOptimizer,
)
from electra_tf.training.loop import TrainLoop

Tensors = Mapping[str, tf.Tensor]


class Schedule:
    """The joint schedule: one stage, in which both networks are trained."""

    def __init__(self, num_train_steps: int) -> None:
        self._num_train_steps = num_train_steps

    def stage_at(self, step: int) -> int | None:
        """Return the stage of a model after a number of updates.

        Args:
          step: number of completed updates.

        Returns:
          None for a schedule of one stage.
        """
        return None

    def generator_loss(self, outputs: Tensors) -> tf.Tensor:
        """Return the loss that trains the generator, a scalar in nats."""
        return outputs.get("cloze_loss", outputs["mlm_loss"])

    def adversarial_outputs(
        self,
        networks: Networks,
        outputs: Tensors,
        totals: Tensors,
        unigram_share: tf.Tensor | None,
    ) -> AdversarialOutputs | None:
        """Return the outputs that adversarial training adds, or None.

        See `adversarial_losses` for the arguments.
        """
        return None

    def build_optimizer(
        self, networks: Networks, build: BuildOptimizer
    ) -> AdamWeightDecay | TwoStageOptimizer:
        """Return the optimizer of all trained variables."""
        return build(networks.trainable_variables, self._num_train_steps)

    def build_loop(
        self,
        networks: Networks,
        optimizer: AdamWeightDecay | TwoStageOptimizer,
        build: BuildLoop,
    ) -> TrainLoop | TwoStageLoop:
        """Return the training loop.

        Args:
          networks: a `PretrainingModel`.
          optimizer: result of `build_optimizer`.
          build: function that builds a loop.
        """
        return build(
            compute=networks.compute,
            variables=networks.trainable_variables,
            optimizer=optimizer,
        )


class TwoStageSchedule(Schedule):
    """The schedule of two stages, each of which trains one network."""

    def __init__(self, num_train_steps: int, two_stage_steps: int) -> None:
        super().__init__(num_train_steps)
        self._steps = steps_per_stage(num_train_steps, two_stage_steps)

    def stage_at(self, step: int) -> int | None:
        """Return the stage of a model after a number of updates.

        After the last update of the first stage, the model is still in the
        first stage: the weights are copied at the beginning of the second
        stage's first update, so that checkpoints need only contain the step.
        """
        if step <= self._steps[GENERATOR]:
            return GENERATOR
        return DISCRIMINATOR

    def build_optimizer(
        self, networks: Networks, build: BuildOptimizer
    ) -> TwoStageOptimizer:
        """Return one optimizer for each stage."""
        return TwoStageOptimizer(self._steps, networks, build)

    def build_loop(
        self,
        networks: Networks,
        optimizer: AdamWeightDecay | TwoStageOptimizer,
        build: BuildLoop,
    ) -> TwoStageLoop:
        """Return one training loop for each stage."""
        return TwoStageLoop(networks, optimizer, build)


class AdversarialSchedule(Schedule):
    """The schedule of a generator that maximizes the discriminator's loss."""

    def generator_loss(self, outputs: Tensors) -> tf.Tensor:
        """Return the sum of the generator's loss and the baseline's loss."""
        return outputs["policy_loss"] + outputs["baseline_loss"]

    def adversarial_outputs(
        self,
        networks: Networks,
        outputs: Tensors,
        totals: Tensors,
        unigram_share: tf.Tensor | None,
    ) -> AdversarialOutputs | None:
        """Return the outputs of `adversarial_losses`."""
        return adversarial_losses(networks, outputs, totals, unigram_share)


def schedule_of(
    training_schedule: str, num_train_steps: int, two_stage_steps: int | None
) -> Schedule:
    """Return a schedule by its name.

    Args:
      training_schedule: joint, two_stage or adversarial.
      num_train_steps: number of steps of all stages.
      two_stage_steps: number of steps of the first stage; None for a single
        stage.
    """
    if training_schedule == "adversarial":
        return AdversarialSchedule(num_train_steps)
    if training_schedule == "two_stage" and two_stage_steps:
        return TwoStageSchedule(num_train_steps, two_stage_steps)
    return Schedule(num_train_steps)
