# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training the two networks other than jointly: in two stages, adversarially.

Source: ELECTRA paper, section 3.2 (training algorithms) and appendix F.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from electra_tf.pretraining import losses
from electra_tf.training.loop import Chunk, TrainLoop

# The stages of training_schedule two_stage, by what is trained in them.
GENERATOR, DISCRIMINATOR = 1, 2
# What adversarial training logs besides losses.
REWARDS = ("reward", "baseline")


def stage_at(config: Any, step: int) -> int | None:
    """The stage of a model that has made `step` updates; None without stages.

    Weights are copied when the first update of the second stage begins, so
    that a checkpoint needs to hold no more than its step.
    """
    if config.training_schedule != "two_stage":
        return None
    return GENERATOR if step <= config.two_stage_steps else DISCRIMINATOR


def stage_variables(model: Any, stage: int) -> list[tf.Variable]:
    """What a stage trains: one network and its head; none is of both."""
    layers = (model.generator, model.masked_lm_head)
    if stage == DISCRIMINATOR:
        layers = _discriminator_layers(model)
    own = _references(layers)
    return [v for v in model.trainable_variables if v.ref() in own]


def generator_variables(model: Any) -> list[tf.Variable]:
    """Returns the trained variables that only the generator has.

    The tables that both networks look tokens up in are not among them, nor is
    the delta of gradient-disentangled sharing.
    """
    layers = (model.generator, model.masked_lm_head, model.reward_baseline)
    own = _references(layers) - _references(_discriminator_layers(model))
    return [v for v in model.trainable_variables if v.ref() in own]


def _discriminator_layers(model: Any) -> tuple[Any, ...]:
    return (model.discriminator, model.discriminator_head, model.token_head)


def _references(layers: Iterable[Any]) -> set[Any]:
    """References to the layers' variables; a layer may be None."""
    layers = filter(None, layers)
    return {v.ref() for layer in layers for v in layer.trainable_variables}


def copy_generator(model: Any) -> None:
    """Gives the discriminator the generator's tables and transformer."""
    named = {v.name: v for v in model.trainable_variables}
    for name, variable in named.items():
        scope, _, rest = name.partition("/")
        if scope == "generator":
            named[f"electra/{rest}"].assign(variable.numpy())


class TwoStageOptimizer:
    """An optimizer of each stage, with slots and a schedule of its own.

    Each has the variables of its stage alone: the generator is not even
    decayed in the second. `m` and `v` are the slots of both, by name; `build`
    makes an optimizer of variables for a number of steps.
    """

    def __init__(
        self,
        config: Any,
        model: Any,
        build: Callable[[list[tf.Variable], int], Any],
    ) -> None:
        self.switch = config.two_stage_steps
        steps = (self.switch, config.num_train_steps - self.switch)
        self.stages = {
            stage: build(stage_variables(model, stage), number)
            for stage, number in enumerate(steps, GENERATOR)
        }
        first, second = self.stages.values()
        self.kind = first.kind
        self.m, self.v = first.m | second.m, first.v | second.v


class TwoStageLoop:
    """The loop of the stage that a run is in, which its step alone decides.

    The graph of the first stage holds no discriminator. `make` is a `TrainLoop`
    without what the stages differ in.
    """

    def __init__(
        self,
        make: Callable[..., TrainLoop],
        model: Any,
        optimizer: TwoStageOptimizer,
    ) -> None:
        self._model, self._switch = model, optimizer.switch
        self._loops = {
            stage: make(
                compute=functools.partial(model.compute, stage=stage),
                variables=stage_variables(model, stage),
                optimizer=own,
                first_step=self._switch * (stage == DISCRIMINATOR),
            )
            for stage, own in optimizer.stages.items()
        }
        self._loop = self._loops[GENERATOR]

    def train(self, num_steps: int) -> None:
        """Runs updates, all of one stage; see `TrainLoop.train`."""
        done = int(self._loop.step.numpy())
        if done == self._switch:
            copy_generator(self._model)
        stage = DISCRIMINATOR if done >= self._switch else GENERATOR
        self._loop = self._loops[stage]
        self._loop.train(num_steps)

    def take_chunk(self) -> Chunk:
        return self._loop.take_chunk()


def adversarial_losses(
    model: Any,
    outputs: Mapping[str, tf.Tensor],
    totals: Mapping[str, tf.Tensor],
    unigram_share: tf.Tensor | None = None,
) -> dict[str, tf.Tensor]:
    """What makes the generator raise the discriminator's loss, by REINFORCE.

    Positions are taken as independent: the reward R of a sampled token is the
    discriminator's loss on it alone. The generator's loss is
    -(R - b) log p(sampled), p the distribution that was sampled from. The
    baseline b = -log sigmoid(w h + c), h the generator's vector, learns by the
    cross-entropy of exp(-b) with exp(-R), the probability that the
    discriminator gave to the truth; its gradient ends before h.

    A position that was drawn twice shows the mean of its two samples' ids
    (see `masking.scatter_update`): a sample that is not shown has no part.

    Args:
      outputs: the model's, of generator and discriminator.
      totals: `mlm`, the chosen positions of the whole batch; empty: of this.
      unigram_share: float32 scalar; with it p is the mixture with the token
        counts (see `masking.mixture_logits`).

    Returns:
      In nats: scalars `policy_loss` and `baseline_loss`, `reward` and
      `baseline` (means over all chosen positions), and `rewards` [B, N].

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
    expected = model.reward_baseline(tf.stop_gradient(vectors))[..., 0]
    baselines = tf.stop_gradient(tf.nn.softplus(-expected))
    sampled, chosen = outputs["sampled_tokids"], outputs["masked_lm_weights"]
    sampling_logits = model.sampling_logits(
        outputs["mlm_logits"], outputs["masked_lm_ids"], unigram_share
    )
    log_p = -losses.softmax_cross_entropy(sampling_logits, sampled)
    total = totals.get("mlm")
    if total is None:  # Within micro-batches, replicas cannot add up.
        total = losses.global_sum(chosen)
    learned = chosen * tf.cast(shown == sampled, tf.float32)
    values = {
        "policy_loss": ((baselines - rewards) * log_p, learned),
        "baseline_loss": (cross_entropy(tf.exp(-rewards), expected), learned),
        "reward": (rewards, chosen),
        "baseline": (baselines, chosen),
    }
    means = {n: losses.weighted_mean(*v, total) for n, v in values.items()}
    return {**means, "rewards": rewards}
