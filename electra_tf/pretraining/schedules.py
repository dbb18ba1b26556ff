# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training schedules: the networks trained in each step, and their losses.

  * `joint`: both networks in every step.
  * `two_stage`: the generator alone, then the discriminator alone, which
    starts from the generator's weights.
  * `adversarial`: both networks, with a generator that raises the
    discriminator's loss.

Source: ELECTRA paper, section 3.2 (training algorithms) and appendix F.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypedDict

import tensorflow as tf

from electra_tf.modeling.layers import ScopedLayer
from electra_tf.optimization.optimizer import AdamWeightDecay
from electra_tf.plan.flops import steps_per_stage
from electra_tf.pretraining import losses
from electra_tf.pretraining.networks import Networks
from electra_tf.training.loop import Chunk, TrainLoop

Tensors = Mapping[str, tf.Tensor]
Layers = tuple[ScopedLayer | None, ...]
# The stages of `two_stage`, by the network that is trained.
GENERATOR, DISCRIMINATOR = 1, 2
# Values besides losses that adversarial training logs.
REWARDS = ("reward", "baseline")
# Makes an optimizer of variables for a number of steps.
BuildOptimizer = Callable[[Sequence[tf.Variable], int], AdamWeightDecay]
# Makes a `TrainLoop`, without the arguments that the stages differ in.
BuildLoop = Callable[..., TrainLoop]


class AdversarialOutputs(TypedDict):
    """The outputs that adversarial training adds, in nats."""

    policy_loss: tf.Tensor  # float32 scalar
    baseline_loss: tf.Tensor  # float32 scalar
    reward: tf.Tensor  # float32 scalar, the mean over the chosen positions
    baseline: tf.Tensor  # float32 scalar, the mean over the chosen positions
    rewards: tf.Tensor  # float32 [B, N]


class Schedule:
    """The joint schedule: one stage, in which both networks are trained."""

    def __init__(self, num_train_steps: int) -> None:
        self._num_train_steps = num_train_steps

    def stage_at(self, step: int) -> int | None:
        """Return the stage of a model after a number of updates.

        Args:
          step: completed updates.

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
        """Return the outputs that adversarial training adds, if it does.

        The arguments are those of `adversarial_losses`.
        """
        return None

    def build_optimizer(
        self, networks: Networks, build: BuildOptimizer
    ) -> "AdamWeightDecay | TwoStageOptimizer":
        """Return the optimizer of all trained variables."""
        return build(networks.trainable_variables, self._num_train_steps)

    def build_loop(
        self,
        networks: Networks,
        optimizer: "AdamWeightDecay | TwoStageOptimizer",
        build: BuildLoop,
    ) -> "TrainLoop | TwoStageLoop":
        """Return the training loop.

        Args:
          networks: a `PretrainingModel`.
          optimizer: what `build_optimizer` returned.
          build: makes a loop.
        """
        return build(
            compute=networks.compute,
            variables=networks.trainable_variables,
            optimizer=optimizer,
        )


class TwoStageSchedule(Schedule):
    """The schedule of two stages, in each of which one network is trained."""

    def __init__(self, num_train_steps: int, two_stage_steps: int) -> None:
        super().__init__(num_train_steps)
        self._steps = steps_per_stage(num_train_steps, two_stage_steps)

    def stage_at(self, step: int) -> int | None:
        """Return the stage of a model after a number of updates.

        After the last update of the first stage the model is still in it: the
        weights are copied when the first update of the second stage begins,
        so that a checkpoint holds no more than its step.
        """
        if step <= self._steps[GENERATOR]:
            return GENERATOR
        return DISCRIMINATOR

    def build_optimizer(
        self, networks: Networks, build: BuildOptimizer
    ) -> "TwoStageOptimizer":
        """Return one optimizer for each stage."""
        return TwoStageOptimizer(self._steps, networks, build)

    def build_loop(
        self,
        networks: Networks,
        optimizer: "AdamWeightDecay | TwoStageOptimizer",
        build: BuildLoop,
    ) -> "TwoStageLoop":
        """Return one training loop for each stage."""
        return TwoStageLoop(networks, optimizer, build)


class AdversarialSchedule(Schedule):
    """The schedule of a generator that raises the discriminator's loss."""

    def generator_loss(self, outputs: Tensors) -> tf.Tensor:
        """Return the generator's loss and that of the rewards' baseline."""
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
      num_train_steps: of all stages.
      two_stage_steps: of the first stage; None for a schedule of one stage.
    """
    if training_schedule == "adversarial":
        return AdversarialSchedule(num_train_steps)
    if training_schedule == "two_stage" and two_stage_steps:
        return TwoStageSchedule(num_train_steps, two_stage_steps)
    return Schedule(num_train_steps)


def stage_variables(networks: Networks, stage: int) -> list[tf.Variable]:
    """Return the variables that a stage trains: one network and its head.

    The two networks share no variable.
    """
    layers: Layers = (networks.generator, networks.masked_lm_head)
    if stage == DISCRIMINATOR:
        layers = _discriminator_layers(networks)
    trained = _references(layers)
    return [v for v in networks.trainable_variables if v.ref() in trained]


def generator_variables(networks: Networks) -> list[tf.Variable]:
    """Return the trained variables that only the generator has.

    Tables that both networks share are not among them. Neither is the delta of
    gradient-disentangled sharing.
    """
    layers = (
        networks.generator,
        networks.masked_lm_head,
        networks.reward_baseline,
    )
    discriminator = _references(_discriminator_layers(networks))
    exclusive = _references(layers) - discriminator
    return [v for v in networks.trainable_variables if v.ref() in exclusive]


def _discriminator_layers(networks: Networks) -> Layers:
    return (
        networks.discriminator,
        networks.discriminator_head,
        networks.token_head,
    )


def _references(layers: Iterable[ScopedLayer | None]) -> set[object]:
    """Return references to the trained variables of the layers there are."""
    return {
        variable.ref()
        for layer in layers
        if layer is not None
        for variable in layer.trainable_variables
    }


def copy_generator(networks: Networks) -> None:
    """Assign the generator's tables and transformer to the discriminator."""
    variables = {v.name: v for v in networks.trainable_variables}
    for name, variable in variables.items():
        scope, _, rest = name.partition("/")
        if scope == "generator":
            variables[f"electra/{rest}"].assign(variable.numpy())


class TwoStageOptimizer:
    """Two optimizers, one a stage, each with its own slots and rates.

    An optimizer has the variables of its stage alone: in the second stage
    nothing changes the generator, not even weight decay.

    Attributes:
      switch: the number of updates in the first stage.
      stages: the optimizer of each stage.
      kind: of both optimizers; see `AdamWeightDecay`.
      m, v: the slots of both stages, by variable name.
    """

    def __init__(
        self,
        steps: Mapping[int | None, int],
        networks: Networks,
        build: BuildOptimizer,
    ) -> None:
        """Build one optimizer for each stage.

        Args:
          steps: of each stage.
          networks: the model's.
          build: makes an optimizer.
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
    """The training loop of the current stage, which the step alone decides.

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
        """Run updates, all of one stage; see `TrainLoop.train`."""
        done = int(self._loop.step.numpy())
        if done == self._switch:
            copy_generator(self._networks)
        stage = DISCRIMINATOR if done >= self._switch else GENERATOR
        self._loop = self._loops[stage]
        self._loop.train(num_steps)

    def take_chunk(self) -> Chunk:
        """Return the scalars of the last updates; see `TrainLoop`."""
        return self._loop.take_chunk()


def adversarial_losses(
    networks: Networks,
    outputs: Tensors,
    totals: Tensors,
    unigram_share: tf.Tensor | None = None,
) -> AdversarialOutputs:
    """Return the losses of a generator that raises the discriminator's loss.

    The gradient is that of REINFORCE, with positions taken as independent: the
    reward R of a sampled token is the discriminator's loss on it alone. The
    generator's loss is -(R - b) log p(sampled), p the distribution that was
    sampled from. The baseline b = -log sigmoid(w h + c), h the generator's
    vector, is trained by the cross-entropy of exp(-b) with exp(-R), the
    probability that the discriminator gave to the right label; its gradient
    ends before h.

    A position that was drawn twice shows the mean of its two samples' ids
    (see `masking.scatter_update`). A sample that is not shown has no loss.

    Args:
      networks: the model's.
      outputs: of generator and discriminator.
      totals: `mlm`, the number of chosen positions in the whole batch; empty:
        the batch is whole.
      unigram_share: float32 scalar; with it p is the mixture with the token
        counts (see `sampling.mixture_logits`).

    Source: ELECTRA paper, appendix F. Differs: c, which the paper leaves out.
    """
    logits, labels, shown, vectors = (
        tf.gather(tensor, outputs["masked_lm_positions"], batch_dims=1)
        for tensor in (
            outputs["disc_logits"],
            outputs["fake_is_fake_tokens"],
            outputs["fake_input_ids"],
            outputs["generator_layers"][-1],
        )
    )
    cross_entropy = tf.nn.sigmoid_cross_entropy_with_logits
    rewards = cross_entropy(tf.cast(labels, tf.float32), logits)
    rewards = tf.stop_gradient(rewards)
    expected = networks.reward_baseline(tf.stop_gradient(vectors))[..., 0]
    baselines = tf.stop_gradient(tf.nn.softplus(-expected))
    sampled, chosen = outputs["sampled_tokids"], outputs["masked_lm_weights"]
    sampling_logits = networks.sampling_logits(
        outputs["mlm_logits"], outputs["masked_lm_ids"], unigram_share
    )
    log_p = -losses.softmax_cross_entropy(sampling_logits, sampled)
    total = totals.get("mlm")
    if total is None:  # Replicas cannot sum within micro-batches.
        total = losses.global_sum(chosen)
    trained = chosen * tf.cast(shown == sampled, tf.float32)
    mean = losses.weighted_mean
    return {
        "policy_loss": mean((baselines - rewards) * log_p, trained, total),
        "baseline_loss": mean(
            cross_entropy(tf.exp(-rewards), expected), trained, total
        ),
        "reward": mean(rewards, chosen, total),
        "baseline": mean(baselines, chosen, total),
        "rewards": rewards,
    }
