# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates of variables from gradients: clipping, Adam, AdamW and LAMB."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import tensorflow as tf
import tf_keras

from configure.config import OptimizerSettings
from configure.errors import UserError

# Maximum number of elements of a vector that is updated together with other
# vectors.
_SHORT = 4096

EXCLUDED_FROM_DECAY = ("LayerNorm", "layer_norm", "bias")

Gradient: TypeAlias = tf.Tensor | tf.IndexedSlices | None
_Slots: TypeAlias = Sequence[tf.Variable]


class OptimizerState(Protocol):
    """Optimizer state that a checkpoint contains."""

    kind: str  # value of the hparam `optimizer`

    @property
    def m(self) -> Mapping[str, tf.Variable]:
        """First moments, by variable name."""

    @property
    def v(self) -> Mapping[str, tf.Variable]:
        """Second moments, by variable name."""


class Optimizer(OptimizerState, Protocol):
    """Optimizer of a training loop's variables."""

    def update(
        self, gradients: Sequence[Gradient], step: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Update the variables once; see `AdamWeightDecay.update`."""


def variable_name(variable: tf.Variable) -> str:
    """Return a variable's name without its suffix, such as `:0`."""
    return re.sub(r":\d+$", "", variable.name)


def uses_weight_decay(name: str) -> bool:
    """Return whether weight decay applies to a variable.

    Decay does not apply to layer norms and biases, including `output_bias`, but
    applies to embedding tables.
    """
    return not any(re.search(part, name) for part in EXCLUDED_FROM_DECAY)


class AdamWeightDecay(tf.Module):
    """Adam with decoupled weight decay, after clipping by the global norm.

    With g the clipped gradient: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g²,
    w = w - rate (m / (sqrt(v) + eps) + decay w). Every row of an embedding
    table is updated at each step, even if the batch does not contain its token.

    `m` and `v` contain the moments by variable name; the names of the slots are
    `<name>/adam_m` and `<name>/adam_v`.

    Source: google-research/electra, model/optimization.py,
    AdamWeightDecayOptimizer and create_optimizer.
    """

    kind = "original"  # value of the hparam `optimizer`

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
        joins_variables: bool = False,
    ) -> None:
        """Create the slots (first and second moments) of the variables.

        Args:
          variables: variables to update.
          schedule: function from completed updates to the learning rate.
          weight_decay_rate: rate of the decay; 0 or less: no decay.
          beta_1: decay rate of the first moment.
          beta_2: decay rate of the second moment.
          epsilon: constant added to the square root of the second moment.
          clip_norm: maximum global norm of the gradients.
          bias_correction: whether moments are divided by 1 - beta^k at update
            k.
          learning_rate_multipliers: factors of the rate by variable name;
            empty: 1 for all.
          clip_apart: group names by variable name; each group is clipped
            separately to `clip_norm`. Empty: one group.
          joins_variables: whether all variables with equal rates and decays
            are updated as one vector. XLA then makes a few large loops instead
            of several loops for each variable. Values differ by rounding,
            because the norm is summed in another order.
        """
        super().__init__(name="adam_weight_decay")
        self.schedule = schedule
        self.weight_decay_rate = weight_decay_rate
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.clip_norm = clip_norm
        self.bias_correction = bias_correction
        self._multipliers = dict(learning_rate_multipliers or {})
        self._clip_apart = dict(clip_apart or {})
        self._joins_variables = joins_variables
        self.m: dict[str, tf.Variable] = {}
        self.v: dict[str, tf.Variable] = {}
        # Variable name -> the variable, and the index of its gradient.
        self._named: dict[str, tuple[tf.Variable, int]] = {}
        for index, variable in enumerate(variables):
            name = variable_name(variable)
            if name in self._named:
                raise ValueError(
                    f"two variables are named {name}; expected unique names."
                    " Rename one variable"
                )
            self._named[name] = (variable, index)
        self._make_slots()

    @property
    def learning_rate(self) -> float:
        """Raise an AttributeError, because the schedule determines the rate."""
        raise AttributeError(
            "the optimizer has no constant learning_rate, because its schedule"
            " determines the rate of each update. Read the rate that update()"
            " returns"
        )

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        """Raise a UserError, because no update would read the rate."""
        raise UserError(
            f"cannot set optimizer.learning_rate to {rate!r}, because the"
            " schedule determines the rate of each update. Set learning_rate,"
            " num_warmup_steps, num_train_steps and lr_decay_power in the"
            " config."
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
        """Update the variables once.

        Args:
          gradients: a gradient for each variable, in order; None for a variable
            on which the loss does not depend, and which is not updated. The
            norm of an `IndexedSlices` is that of its rows without merging
            repeated rows, as in the original.
          step: int64 scalar, number of updates completed before this update.

        Returns:
          float32 scalars `learning_rate` and `grad_norm` (before clipping),
          and `<group>_grad_norm` of the groups that are clipped separately. If
          the norm is infinite or NaN, trained variables keep their values; the
          moments decay as for a gradient of zero.
        """
        if len(gradients) != len(self._named):
            raise ValueError(
                f"found {len(gradients)} gradients for {len(self._named)}"
                " variables; expected one gradient for each variable. Pass None"
                " for a variable without a gradient"
            )
        norm = self._norm([g for g in gradients if g is not None])
        finite = tf.math.is_finite(norm)
        norms = self._group_norms(gradients) or {"": norm}
        # This is the formula of clip_by_global_norm, except that the scale is 0
        # if the norm is not finite: multiply_no_nan then yields 0, even for a
        # gradient of NaN.
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
        # Groups are updated sequentially in two lanes, and only after the norm
        # is known. Otherwise TensorFlow would compute products of slots and
        # weights at the beginning of a step, keep the products until the step's
        # end, and lose them from the cache between two operations.
        done: list[tf.Tensor] = [norm, norm]
        for names in self._groups_with(gradients):
            variables = [self._named[name][0] for name in names]
            with tf.control_dependencies(done[:1]):
                clipped = self._clipped(names, gradients, scales)
                change = self._update_group(
                    names, variables, clipped, applied_rate, step
                )
            done = [done[1], change]
        values = {"grad_norm": norm, "learning_rate": rate}
        if self._clip_apart:
            values |= {f"{group}_grad_norm": n for group, n in norms.items()}
        return values

    def _group_norms(
        self, gradients: Sequence[Gradient]
    ) -> dict[str, tf.Tensor]:
        """Return the norms of the groups that are clipped separately."""
        groups: dict[str, list[Gradient]] = {}
        for name, group in self._clip_apart.items():
            gradient = gradients[self._named[name][1]]
            if gradient is not None:
                groups.setdefault(group, []).append(gradient)
        return {group: self._norm(members) for group, members in groups.items()}

    def _norm(
        self, gradients: Sequence[tf.Tensor | tf.IndexedSlices]
    ) -> tf.Tensor:
        """Return the global norm, without merging repeated gradient rows."""
        if not self._joins_variables:
            return tf.linalg.global_norm(gradients)
        elements = [
            tf.convert_to_tensor(
                g.values if isinstance(g, tf.IndexedSlices) else g
            )
            for g in gradients
        ]
        return tf.linalg.global_norm([_joined(elements)])

    def groups(self) -> list[list[str]]:
        """Return the variables' names in groups that are updated together."""
        groups: dict[tuple, list[str]] = {}
        for name, (variable, _) in self._named.items():
            key = self._group_key(name, variable)
            groups.setdefault(key, []).append(name)
        return list(groups.values())

    def _clipped(
        self,
        names: Sequence[str],
        gradients: Sequence[Gradient],
        scales: Mapping[str, tf.Tensor],
    ) -> list[tf.Tensor]:
        """Return a group's scaled gradients, or a vector of all of them.

        The vector is returned if `joins_variables` is set.
        """
        present = [gradients[self._named[name][1]] for name in names]
        by_name = [scales[self._clip_apart.get(name, "")] for name in names]
        if self._joins_variables:
            joined = _joined([tf.convert_to_tensor(g) for g in present])
            return [tf.math.multiply_no_nan(joined, by_name[0])]
        return [
            _scaled(gradient, scale)
            for gradient, scale in zip(present, by_name, strict=True)
        ]

    def _groups_with(self, gradients: Sequence[Gradient]) -> list[list[str]]:
        """Return the `groups`, reduced to variables that have a gradient."""
        trained = [
            [
                name
                for name in names
                if gradients[self._named[name][1]] is not None
            ]
            for names in self.groups()
        ]
        return [names for names in trained if names]

    def _group_key(self, name: str, variable: tf.Variable) -> tuple:
        """Return a key that variables share if they are updated together.

        Short vectors with equal rates and decays share a key; each other
        variable has a separate key. A model has hundreds of biases and norms,
        and the twenty operations of an update would take longer to start than
        to run for each of them. With `joins_variables` matrices share a key,
        too.
        """
        if self._joins_variables:
            group = self._clip_apart.get(name)
            return self._multipliers.get(name), uses_weight_decay(name), group
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
        """Update variables with equal rates and decays as one vector."""
        m = [self.m[name] for name in names]
        v = [self.v[name] for name in names]
        gradient = _joined(gradients)
        next_m = self.beta_1 * _joined(m) + (1.0 - self.beta_1) * gradient
        square = tf.square(gradient)
        next_v = self.beta_2 * _joined(v) + (1.0 - self.beta_2) * square
        _assign_parts(m, next_m)
        _assign_parts(v, next_v)
        if self.bias_correction:
            count = tf.cast(step + 1, tf.float32)
            # -expm1(k log b) is 1 - b^k with all digits; float32's power would
            # lose four digits at k = 1.
            next_m /= -tf.math.expm1(count * _log(self.beta_1))
            next_v /= -tf.math.expm1(count * _log(self.beta_2))
        if self._multipliers:
            rate *= self._multipliers[names[0]]
        direction = next_m / (tf.sqrt(next_v) + self.epsilon)
        if self.weight_decay_rate > 0 and uses_weight_decay(names[0]):
            direction += self.weight_decay_rate * _joined(variables)
        change = rate * direction
        if self._joins_variables:
            _assign_parts(variables, _joined(variables) - change)
        else:
            _assign_parts(variables, change, subtract=True)
        return change


def _log(beta: float) -> float:
    return math.log(beta) if beta else -math.inf


def _joined(tensors: Sequence[tf.Tensor | tf.Variable]) -> tf.Tensor:
    """Concatenate tensors to a vector; return a single tensor unchanged."""
    if len(tensors) == 1:
        return tf.convert_to_tensor(tensors[0])
    vectors = [t if t.shape.rank == 1 else tf.reshape(t, [-1]) for t in tensors]
    return tf.concat(vectors, 0)


def _assign_parts(
    variables: Sequence[tf.Variable], joined: tf.Tensor, subtract: bool = False
) -> None:
    """Assign, or subtract, each variable's part of a `_joined` tensor."""
    parts = [joined]
    if len(variables) > 1:
        parts = tf.split(joined, [v.shape.num_elements() for v in variables])
    for variable, part in zip(variables, parts, strict=True):
        assign = variable.assign_sub if subtract else variable.assign
        if part.shape != variable.shape:
            part = tf.reshape(part, variable.shape)
        assign(part)


def _scaled(gradient: tf.Tensor | tf.IndexedSlices, scale: tf.Tensor):
    """Return a gradient times `scale` as a tensor; a scale of 0 yields 0."""
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.math.multiply_no_nan(gradient.values, scale)
        where = (gradient.indices, gradient.dense_shape)
        return tf.convert_to_tensor(tf.IndexedSlices(values, *where))
    return tf.math.multiply_no_nan(gradient, scale)


class AdamW(AdamWeightDecay):
    """AdamW of tf_keras, with the clipping and schedule of the base class.

    Each learning-rate multiplier has a separate library optimizer, whose rate
    and step each update sets.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019).
    Differs: tf_keras adds epsilon to the second moment's root before the bias
      correction of that moment, not after it. At update k, this effectively
      divides epsilon by sqrt(1 - beta_2^k), so that epsilon is 32 times as
      large at the first update. After six updates at a rate of 1e-2, with
      gradients of 0.01 and the default constants, weights differ by 0.0001
      (mean) to 0.0003 (maximum). The decay is multiplied by the learning rate,
      as in PyTorch.
    """

    kind = "adamw"

    def _build_library(
        self, variables: Sequence[tf.Variable], settings: Mapping[str, float]
    ) -> tuple[tf_keras.optimizers.Optimizer, _Slots, _Slots]:
        """Return a library's optimizer with its first and second moments."""
        # The library does not compile the update, because the hparam
        # jit_compile compiles whole steps.
        library = tf_keras.optimizers.AdamW(
            weight_decay=self.weight_decay_rate, jit_compile=False, **settings
        )
        library.exclude_from_weight_decay(var_names=[*EXCLUDED_FROM_DECAY])
        library.build(variables)
        return library, library._momentums, library._velocities

    def _make_slots(self) -> None:
        self._libraries: dict[float, tf_keras.optimizers.Optimizer] = {}
        settings = {
            "learning_rate": 0.0,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
        }
        for names in self.groups():
            variables = [self._named[name][0] for name in names]
            library, m, v = self._build_library(variables, settings)
            self._libraries[self._multipliers.get(names[0], 1.0)] = library
            self.m.update(zip(names, m, strict=True))
            self.v.update(zip(names, v, strict=True))

    def _group_key(self, name: str, variable: tf.Variable) -> tuple:
        """Return a variable's rate multiplier, which identifies its group."""
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
        # The training loop has already summed gradients over replicas.
        pairs = list(zip(gradients, variables, strict=True))
        library.apply_gradients(pairs, experimental_aggregate_gradients=False)
        return rate


class Lamb(AdamW):
    """LAMB, as tf-models-official implements it.

    Source: You et al., Large Batch Optimization for Deep Learning (2020).
    """

    kind = "lamb"

    def _build_library(
        self, variables: Sequence[tf.Variable], settings: Mapping[str, float]
    ) -> tuple[tf_keras.optimizers.Optimizer, _Slots, _Slots]:
        # The package `official` is imported here, because its import takes
        # seconds.
        from official.modeling.optimization.lamb import LAMB

        library = LAMB(
            weight_decay_rate=self.weight_decay_rate,
            exclude_from_weight_decay=[*EXCLUDED_FROM_DECAY],
            **settings,
        )
        library._create_all_weights(variables)
        m = [library.get_slot(variable, "m") for variable in variables]
        v = [library.get_slot(variable, "v") for variable in variables]
        return library, m, v


def make_optimizer(
    settings: OptimizerSettings,
    variables: Sequence[tf.Variable],
    schedule: Callable[[tf.Tensor], tf.Tensor],
    multipliers: Mapping[str, float] | None = None,
    clip_apart: Mapping[str, str] | None = None,
) -> AdamWeightDecay:
    """Return the optimizer that the hparam `optimizer` selects.

    Args:
      settings: hparams of the optimizer.
      variables: variables to update.
      schedule: function from completed updates to the learning rate.
      multipliers: factors of the learning rate by variable name; None: 1 for
        all.
      clip_apart: group names by variable name; see `AdamWeightDecay`.
    """
    kinds = {kind.kind: kind for kind in (AdamWeightDecay, AdamW, Lamb)}
    return kinds[settings.optimizer](
        variables,
        schedule,
        settings.weight_decay_rate,
        settings.beta_1,
        settings.beta_2,
        settings.epsilon,
        bias_correction=settings.bias_correction,
        learning_rate_multipliers=multipliers,
        clip_apart=clip_apart,
        joins_variables=settings.joins_variables,
    )
