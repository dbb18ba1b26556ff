# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From gradients to updates: schedule, clipping, Adam, AdamW and LAMB."""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import tensorflow as tf
import tf_keras

from configure.errors import UserError


@dataclasses.dataclass(frozen=True)
class WarmupPolynomialDecay:
    """The learning rate of every update.

    The decay is not shifted by the warm-up: with W warm-up and T total steps
    the peak is learning_rate * (1 - W / T).

    Source: google-research/electra, model/optimization.py, create_optimizer.

    Differs: a warm-up of 0 means none under either order; the original
    divides 0 by 0 under the second.
    """

    learning_rate: float  # rate at step 0 without warm-up
    num_train_steps: int  # T, updates after which the rate is 0
    # W, updates of linear warm-up; 0 for none. May be a fraction, as fine-
    # tuning's proportion of T gives.
    num_warmup_steps: float = 0
    power: float = 1.0  # of the decay; 1 is linear
    # "after_increment" reads update k's rate (k = 1, 2, ...) at step k, as the
    # original was observed to do: its graph leaves the order open.
    # "before_increment" reads it at k - 1, so that the first update of a warm-
    # up has rate 0.
    read_order: str = "after_increment"

    def __call__(self, completed_updates: tf.Tensor) -> tf.Tensor:
        """Maps updates made so far (int64) to the next one's rate (float32)."""
        shift = {"after_increment": 1.0, "before_increment": 0.0}
        step = tf.cast(completed_updates, tf.float32) + shift[self.read_order]
        total = tf.constant(self.num_train_steps, tf.float32)
        remaining = 1.0 - tf.minimum(step, total) / total
        rate = self.learning_rate * tf.pow(remaining, self.power)
        if self.num_warmup_steps > 0:
            rate *= tf.minimum(1.0, step / float(self.num_warmup_steps))
        return rate


_SHORT = 4096  # elements of a vector that is updated with others

EXCLUDED_FROM_DECAY = ("LayerNorm", "layer_norm", "bias")

Gradient: TypeAlias = tf.Tensor | tf.IndexedSlices | None


class OptimizerState(Protocol):
    """What a checkpoint holds of an optimizer."""

    kind: str  # the hparam `optimizer`
    m: dict[str, tf.Variable]  # first moments by variable name
    v: dict[str, tf.Variable]  # second moments by variable name


class Optimizer(OptimizerState, Protocol):
    """An optimizer of the variables of a training loop."""

    def update(
        self, gradients: Sequence[Gradient], step: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Make one update; see `AdamWeightDecay.update`."""


def variable_name(variable: tf.Variable) -> str:
    """Returns a variable's name without its output number."""
    return re.sub(r":\d+$", "", variable.name)


def uses_weight_decay(name: str) -> bool:
    """Tells whether a variable of this name is decayed.

    Layer norms and all biases (`output_bias` too) are not; embedding tables
    are.
    """
    return not any(re.search(part, name) for part in EXCLUDED_FROM_DECAY)


class AdamWeightDecay(tf.Module):
    """Clips by global norm, then updates every variable, decay decoupled.

    With g the clipped gradient: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g²,
    w = w - rate (m / (sqrt(v) + eps) + decay w). Every row of an embedding
    table is updated at each step, also those absent from the batch.

    `m` and `v` hold the moments by variable name, slots `<name>/adam_m` and
    `<name>/adam_v`. A decay of 0 or less is none.

    Source: google-research/electra, model/optimization.py,
    AdamWeightDecayOptimizer and create_optimizer.
    """

    kind = "original"  # the hparam `optimizer`

    def __init__(
        self,
        variables: Sequence[tf.Variable],
        schedule: Callable[[tf.Tensor], tf.Tensor],
        weight_decay_rate: float = 0.0,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        clip_norm: float = 1.0,
        bias_correction: bool = False,
        learning_rate_multipliers: Mapping[str, float] | None = None,
        clip_apart: Mapping[str, str] | None = None,
    ) -> None:
        """Makes the slots.

        Args:
          variables: all that is updated.
          learning_rate_multipliers: by variable name; empty: 1 for all.
          clip_apart: names of groups by variable name, each of which is
            clipped by its own norm to `clip_norm`; empty: one group.
        """
        super().__init__(name="adam_weight_decay")
        self.schedule = schedule
        self.weight_decay_rate = weight_decay_rate
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.clip_norm = clip_norm
        self.bias_correction = bias_correction
        self._multipliers = dict(learning_rate_multipliers or {})
        self._clip_apart = dict(clip_apart or {})
        self.m: dict[str, tf.Variable] = {}
        self.v: dict[str, tf.Variable] = {}
        # Name -> variable and its place among the gradients.
        self._named: dict[str, tuple[tf.Variable, int]] = {}
        for index, variable in enumerate(variables):
            name = variable_name(variable)
            if name in self._named:
                raise ValueError(f"Two variables are named {name}.")
            self._named[name] = (variable, index)
        self._make_slots()

    @property
    def learning_rate(self) -> float:
        """Absent, as Keras asks of an optimizer whose rate nobody may set."""
        raise AttributeError("the rate follows from the optimizer's schedule")

    @learning_rate.setter
    def learning_rate(self, rate: Any) -> None:
        """Refuse; Python would keep a rate that no update reads."""
        raise UserError(
            f"optimizer.learning_rate = {rate!r}: the rate of every update"
            " follows from the optimizer's schedule, made of learning_rate,"
            " num_warmup_steps, num_train_steps and lr_decay_power; set them in"
            " the config"
        )

    lr = learning_rate

    def _make_slots(self) -> None:
        for name, (variable, _) in self._named.items():
            zeros = tf.zeros(variable.shape)
            for slots, suffix in ((self.m, "adam_m"), (self.v, "adam_v")):
                label = f"{name}/{suffix}"
                slots[name] = tf.Variable(zeros, trainable=False, name=label)

    def update(
        self, gradients: Sequence[Gradient], step: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Makes one update.

        Args:
          gradients: one for each variable, in order; None for a variable
            that the loss does not depend on, which is then left alone. The
            norm of an `IndexedSlices` is taken over its rows as they are,
            repeated rows unmerged, as in the original.
          step: int64 scalar, updates completed before this one.

        Returns:
          float32 scalars `learning_rate` and `grad_norm` (before clipping),
          and `<group>_grad_norm` of the groups that are clipped apart.
          When the norm is not finite no trained variable changes; the
          moments decay as for a gradient of zero.
        """
        if len(gradients) != len(self._named):
            raise ValueError(
                f"{len(gradients)} gradients for {len(self._named)} variables"
            )
        norm = tf.linalg.global_norm([g for g in gradients if g is not None])
        finite = tf.math.is_finite(norm)
        norms = self._group_norms(gradients) or {"": norm}
        # clip_by_global_norm's own formula, with 0 for a norm that is not a
        # number: multiply_no_nan then gives 0 whatever the gradient holds.
        scales = {
            group: tf.where(
                finite,
                self.clip_norm * tf.minimum(1.0 / n, 1.0 / self.clip_norm),
                0.0,
            )
            for group, n in norms.items()
        }
        rate = self.schedule(step)
        applied_rate = tf.where(finite, rate, 0.0)
        # One after the other in two lanes, none before the norm is known: else
        # products of slots and weights are made at the beginning of a step,
        # are kept to its end, and leave the cache between two operations.
        done: list[tf.Tensor] = [norm, norm]
        for names in self._groups(gradients):
            variables = [self._named[name][0] for name in names]
            with tf.control_dependencies(done[:1]):
                clipped = [
                    _scaled(
                        gradients[self._named[name][1]],
                        scales[self._clip_apart.get(name, "")],
                    )
                    for name in names
                ]
                change = self._update_group(
                    names, variables, clipped, applied_rate, step
                )
            done = [done[1], change]
        found = {"grad_norm": norm, "learning_rate": rate}
        if self._clip_apart:
            found |= {f"{group}_grad_norm": n for group, n in norms.items()}
        return found

    def _group_norms(
        self, gradients: Sequence[Gradient]
    ) -> dict[str, tf.Tensor]:
        """Returns the norms of the groups that are clipped apart, if any."""
        groups: dict[str, list[Gradient]] = {}
        for name, group in self._clip_apart.items():
            gradient = gradients[self._named[name][1]]
            if gradient is not None:
                groups.setdefault(group, []).append(gradient)
        return {g: tf.linalg.global_norm(of) for g, of in groups.items()}

    def _groups(self, gradients: Sequence[Gradient]) -> list[list[str]]:
        """Names of what is updated together, of those with a gradient."""
        groups: dict[tuple, list[str]] = {}
        for name, (variable, index) in self._named.items():
            if gradients[index] is not None:
                key = self._group_key(name, variable)
                groups.setdefault(key, []).append(name)
        return list(groups.values())

    def _group_key(self, name: str, variable: tf.Variable) -> tuple:
        """Alike for what is updated together: short vectors, else one alone.

        A model has hundreds of biases and norms, and for each of them the
        twenty operations of an update take longer to start than to run.
        """
        if variable.shape.rank == 1 and variable.shape[0] <= _SHORT:
            return self._multipliers.get(name), uses_weight_decay(name)
        return (name,)

    def _update_group(
        self,
        names: Sequence[str],
        variables: Sequence[tf.Variable],
        gradients: Sequence[tf.Tensor],
        rate: tf.Tensor,
        step: tf.Tensor,
    ) -> tf.Tensor:
        """Updates variables of one rate and one decay, as if joined."""
        m, v = ([slots[n] for n in names] for slots in (self.m, self.v))
        gradient = _joined(gradients)
        next_m = self.beta_1 * _joined(m) + (1.0 - self.beta_1) * gradient
        square = tf.square(gradient)
        next_v = self.beta_2 * _joined(v) + (1.0 - self.beta_2) * square
        _assign_parts(m, next_m)
        _assign_parts(v, next_v)
        if self.bias_correction:
            count = tf.cast(step + 1, tf.float32)
            # 1 - b^k; float32's power loses four digits of it at k = 1.
            next_m /= -tf.math.expm1(count * _log(self.beta_1))
            next_v /= -tf.math.expm1(count * _log(self.beta_2))
        if self._multipliers:
            rate *= self._multipliers[names[0]]
        direction = next_m / (tf.sqrt(next_v) + self.epsilon)
        if self.weight_decay_rate > 0 and uses_weight_decay(names[0]):
            direction += self.weight_decay_rate * _joined(variables)
        change = rate * direction
        _assign_parts(variables, change, subtract=True)
        return change


def _log(beta: float) -> float:
    return math.log(beta) if beta else -math.inf


def _joined(tensors: Sequence[tf.Tensor | tf.Variable]) -> tf.Tensor:
    """One tensor as it is, several vectors one after the other."""
    if len(tensors) == 1:
        return tf.convert_to_tensor(tensors[0])
    return tf.concat([tf.convert_to_tensor(t) for t in tensors], 0)


def _assign_parts(
    variables: Sequence[tf.Variable], joined: tf.Tensor, subtract: bool = False
) -> None:
    """Undoes `_joined`; each variable takes its part, or is less by it."""
    parts = [joined]
    if len(variables) > 1:
        parts = tf.split(joined, [v.shape[0] for v in variables])
    for variable, part in zip(variables, parts, strict=True):
        assign = variable.assign_sub if subtract else variable.assign
        assign(part)


def _scaled(gradient: tf.Tensor | tf.IndexedSlices, scale: tf.Tensor):
    """Multiplies a gradient and makes it dense; scale 0 gives exactly 0."""
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.math.multiply_no_nan(gradient.values, scale)
        where = (gradient.indices, gradient.dense_shape)
        return tf.convert_to_tensor(tf.IndexedSlices(values, *where))
    return tf.math.multiply_no_nan(gradient, scale)


# The optimizers of libraries.


class AdamW(AdamWeightDecay):
    """Updates by tf_keras's AdamW; all else is the base class's.

    For each of the layers' rates there is one, told rate and step each time.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019).
    Differs: as tf_keras does, it adds epsilon to the second moment's root
      before the bias correction of that moment, not after it: at update k as
      if epsilon were divided by sqrt(1 - beta_2^k), 32 times as large at the
      first. After six updates at a rate of 1e-2, of gradients of 0.01 and with
      the default constants, weights differ by 0.0001 (mean) to 0.0003 (most).
      The decay is multiplied by the learning rate, as in PyTorch.
    """

    kind = "adamw"

    def _library(self, variables: Any, **settings: float) -> Any:
        """Returns an optimizer of variables and its moments, in their order."""
        # A step is compiled as a whole (jit_compile) or not at all.
        made = tf_keras.optimizers.AdamW(
            weight_decay=self.weight_decay_rate, jit_compile=False, **settings
        )
        made.exclude_from_weight_decay(var_names=[*EXCLUDED_FROM_DECAY])
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
    """Updates by tf-models-official's LAMB.

    Source: You et al., Large Batch Optimization for Deep Learning (2020).
    """

    kind = "lamb"

    def _library(self, variables: Any, **settings: float) -> Any:
        # Its package imports much that nothing else needs.
        from official.modeling.optimization.lamb import LAMB

        settings["weight_decay_rate"] = self.weight_decay_rate
        excluded = [*EXCLUDED_FROM_DECAY]
        made = LAMB(exclude_from_weight_decay=excluded, **settings)
        made._create_all_weights(variables)
        m, v = ([made.get_slot(x, name) for x in variables] for name in "mv")
        return made, m, v


def make_optimizer(
    config: Any,
    variables: Sequence[tf.Variable],
    schedule: Callable[[tf.Tensor], tf.Tensor],
    multipliers: Mapping[str, float] | None = None,
    clip_apart: Mapping[str, str] | None = None,
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
        clip_apart=clip_apart,
    )
