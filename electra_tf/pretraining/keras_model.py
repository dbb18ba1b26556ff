# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keras's `compile`, `fit`, `evaluate` and `predict` of a pre-training model.

The updates of `fit` equal those of a run with the same config to the bit. The
optimizer, the step and the means are hidden from Keras, so that the model's
variables are those of a checkpoint.
"""

import inspect
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
import tf_keras

from configure.errors import UserError
from electra_tf.checkpoints.weights import ModelWeights
from electra_tf.modeling.graph_modes import inference
from electra_tf.modeling.precision import LossScale
from electra_tf.optimization.optimizer import AdamWeightDecay
from electra_tf.pretraining import build
from electra_tf.pretraining.adversarial import REWARDS
from electra_tf.pretraining.logged_values import (
    REPLACED_TOKENS,
    UNIGRAM_SHARE,
    logged_losses,
    step_values,
)
from electra_tf.pretraining.networks import INPUTS, Features, Networks
from electra_tf.pretraining.saving import write_pretrained
from electra_tf.pretraining.two_stage import TwoStageLoop
from electra_tf.training.loop import TOKENS, TrainLoop, draws_seed
from electra_tf.training.replicas import (
    creation_scope,
    replica_seed,
    sum_over_replicas,
)

_MODEL = "PretrainingModel"
_COMPILE_ARGUMENTS = ("run_eagerly", "steps_per_execution", "jit_compile")
# Callbacks that are rejected, because they set `optimizer.lr`, but the config's
# schedule determines the rate.
_RATE_SETTERS = (
    tf_keras.callbacks.LearningRateScheduler,
    tf_keras.callbacks.ReduceLROnPlateau,
)
_ARRAYS = (Mapping, np.ndarray, tf.Tensor, tf.RaggedTensor, list, tuple)
_MEANS = ("loss", "gen_loss", "mlm_loss", "disc_loss", "token_loss")
# Data of `fit`: a dataset, arrays or a generator.
Data: TypeAlias = object


class KerasModel(Networks):
    """Base class of pre-training models, which Keras can train."""

    _loop: TrainLoop | TwoStageLoop | None = None  # set by `compile`
    # Means by name. Keras would track the values of a plain dict.
    _means: Mapping[str, tf_keras.metrics.Mean] = types.MappingProxyType({})

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def compile(
        self, optimizer: AdamWeightDecay | None = None, **settings: object
    ) -> None:
        """Prepare `fit` to make the updates of a run with this config.

        Args:
          optimizer: optimizer of the model's variables; None: the config's
            optimizer, with its schedule.
          **settings: Keras's `run_eagerly`, `steps_per_execution` and
            `jit_compile`. Losses and metrics are the model's.

        Raises:
          UserError: an argument or optimizer is not supported, or the schedule
            is `two_stage`.
        """
        if self.config.training_schedule == "two_stage":
            raise UserError(
                f"{_MODEL}.compile: training_schedule 'two_stage' trains other"
                " variables after step two_stage_steps"
                f" ({self.config.two_stage_steps}), which fit does not support."
                " Use run_pretraining.py, or set a different training_schedule."
            )
        for name in settings:
            if name not in _COMPILE_ARGUMENTS:
                raise UserError(
                    f"{_MODEL}.compile: unknown argument {name}; expected"
                    f" optimizer, {', '.join(_COMPILE_ARGUMENTS)}. Leave out"
                    f" {name}, because the model defines its losses and"
                    " metrics."
                )
        if not isinstance(optimizer, AdamWeightDecay | None):
            raise UserError(
                f"{_MODEL}.compile: optimizer is {optimizer!r}; expected an"
                " AdamWeightDecay of the model's variables. Leave out optimizer"
                " to use that of the config."
            )
        strategy = self.distribute_strategy
        # `fit` starts at step 0, whatever the model directory contains.
        build.prepare_model(self.config, self, starts_over=True)
        with creation_scope(strategy):
            super().compile(**settings)
            self.optimizer = optimizer or build.build_optimizer(
                self.config, self
            )
            self._step = tf.Variable(0, trainable=False, dtype=tf.int64)
            self._loop = build.build_train_loop(
                self.config,
                self,
                self.optimizer,
                iter(()),
                self._step,
                strategy,
                loss_scale=LossScale.of(self.config.mixed_precision),
            )
            means = {
                name: tf_keras.metrics.Mean(name)
                for name in (*_MEANS, "replaced_share", *REWARDS)
            }
            # Keras would intercept a plain assignment, and track the means.
            hidden = types.MappingProxyType(means)
            object.__setattr__(self, "_means", hidden)

    def fit(self, *arguments: object, **settings: object) -> object:
        """Train the model with Keras's `fit`.

        Args:
          *arguments: arguments of Keras. The features are a dict of integers
            [B, L], without labels.
          **settings: settings of Keras. Callbacks must not set a learning rate.

        Returns:
          History of Keras.

        Raises:
          UserError: features or callbacks are not supported; the error is
            raised before the first step.
        """
        bound = _bind(super().fit, arguments, settings)
        check_callbacks(bound.get("callbacks"))
        check_data(bound.get("x"))
        return super().fit(*arguments, **settings)

    def evaluate(self, *arguments: object, **settings: object) -> object:
        """Evaluate the model with Keras; see `fit` for the features."""
        check_data(_bind(super().evaluate, arguments, settings).get("x"))
        return super().evaluate(*arguments, **settings)

    def predict(self, *arguments: object, **settings: object) -> object:
        """Predict with Keras; see `fit` for the features."""
        check_data(_bind(super().predict, arguments, settings).get("x"))
        return super().predict(*arguments, **settings)

    @property
    def metrics(self) -> Collection[tf_keras.metrics.Metric]:
        """Means that Keras resets after an epoch.

        The collection is not a list, because Keras would save a list.
        """
        return self._means.values()

    @property
    def global_step(self) -> int:
        """Number of updates made by `fit`."""
        return int(self._step)

    @tf.autograph.experimental.do_not_convert
    def train_step(self, data: Data) -> dict[str, tf.Tensor]:
        """Train on a batch.

        Returns:
          Means of the epoch so far, and the update's rate, gradient norm and
          share of replacements drawn by token counts.
        """
        # `compile` refuses two-stage training, which uses a loop of another
        # class.
        assert isinstance(self._loop, TrainLoop)
        values = self._loop.update(features_of(data))
        names = ("grad_norm", "learning_rate", UNIGRAM_SHARE)
        last = {name: values[name] for name in names if name in values}
        return self._update_means(values) | last

    @tf.autograph.experimental.do_not_convert
    def test_step(self, data: Data) -> dict[str, tf.Tensor]:
        """Evaluate a batch.

        On a single device the random draws equal those of a run's evaluation.
        """
        features = features_of(data)
        seed = draws_seed(self.config.seed, -1 - self._test_counter)
        seed = replica_seed(seed)
        with inference():
            outputs = self.compute(features, seed=seed)
        values = {
            "total_loss": outputs["total_loss"],
            **step_values(features, outputs),
        }
        sums = sum_over_replicas(list(values.values()))
        return self._update_means(dict(zip(values, sums, strict=True)))

    def _update_means(
        self, values: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """Add a step's values to the means; return the means by logged name."""
        losses = logged_losses(values)
        names = list(losses)
        for name, value_name in losses.items():
            self._means[name].update_state(values[value_name])
        if REPLACED_TOKENS in values:
            names.append("replaced_share")
            self._means["replaced_share"].update_state(
                values[REPLACED_TOKENS] / values[TOKENS], values[TOKENS]
            )
        return {name: self._means[name].result() for name in names}

    def save_pretrained(self, folder: str) -> str:
        """Write weights, settings and vocabulary, which all commands can read.

        Returns:
          Prefix of the weights' files.
        """
        step = self.global_step if self._loop else 0
        weights = ModelWeights(self.variables, step, folder)
        return write_pretrained(
            weights, folder, self.config.as_dict(), self.config.vocab_file
        )

    def save(self, *_: object, **__: object) -> None:
        """Raise a UserError that names the supported methods."""
        raise UserError(
            f"{_MODEL}.save is not supported. Use save_pretrained to write a"
            " folder that electra_tf.keras.Encoder.from_pretrained and all"
            " commands can read, or save_weights to write only the weights."
        )


def _bind(
    method: Callable[..., object],
    arguments: Sequence[object],
    settings: Mapping[str, object],
) -> dict[str, object]:
    """Return the arguments of a call by name."""
    bound = inspect.signature(method).bind(*arguments, **settings)
    return bound.arguments


def features_of(data: Data) -> Features:
    """Return the features of a batch that Keras passes to a step.

    Args:
      data: features without labels; see `check_features`.

    Returns:
      Features `input_ids`, `input_mask` and `segment_ids`, int32 [B, L].

    Raises:
      UserError: the batch has labels or weights, or invalid features.
    """
    features, *others = tf_keras.utils.unpack_x_y_sample_weight(data)
    if any(other is not None for other in others):
        raise UserError(
            f"{_MODEL}: the batch has labels or sample_weight; expected only"
            " features, from which the model derives its labels. Remove labels"
            " and sample_weight, for example with dataset.map."
        )
    check_features(features)
    return {**features, **{n: tf.cast(features[n], tf.int32) for n in INPUTS}}


def check_features(features: object) -> None:
    """Raise a UserError if one of the three inputs is missing or invalid.

    Args:
      features: mapping with integers [B, L] (or their specifications) under
        `input_ids`, `input_mask` and `segment_ids`; other keys are ignored.
    """
    names = ", ".join(INPUTS)
    expected = (
        f"expected a dict with the keys {names}, and integers [batch, L] as"
        " values"
    )
    if not isinstance(features, Mapping):
        shape = getattr(features, "shape", None)
        described = type(features).__name__
        if shape is not None:
            described += f" {tf.TensorShape(shape)}"
        raise UserError(
            f"{_MODEL}: the features are a {described}; {expected}. Wrap ids in"
            ' a dict: {"input_ids": ids, "input_mask": mask, "segment_ids":'
            " segments}"
        )
    if missing := [name for name in INPUTS if name not in features]:
        raise UserError(
            f"{_MODEL}: the features lack {', '.join(missing)}; {expected}. Add"
            " the missing features to the dict."
        )
    for name in INPUTS:
        _check_feature(name, features[name], expected)


def _check_feature(name: str, value: object, expected: str) -> None:
    """Raise a UserError if a feature is not an array of integers [B, L]."""
    array: Any = value if hasattr(value, "dtype") else np.asarray(value)
    dtype = tf.as_dtype(array.dtype)
    if not (dtype.is_integer or dtype.is_bool):
        raise UserError(
            f"{_MODEL}: features: {name} is {dtype.name}; {expected}. Cast"
            f" {name} to int32."
        )
    shape = tf.TensorShape(array.shape)
    if shape.rank not in (None, 2):
        raise UserError(
            f"{_MODEL}: features: {name} has shape {shape}; {expected}. Batch"
            " the dataset (dataset.batch)."
        )


def check_data(data: Data) -> None:
    """Raise a UserError for invalid features, before any graph is traced.

    Args:
      data: dataset or arrays. A generator is ignored, because `features_of`
        checks its batches.
    """
    if isinstance(data, tf.data.Dataset):
        data = data.element_spec
        # Labels next to the features are ignored here, because `features_of`
        # reports them.
        data = data[0] if isinstance(data, tuple) and data else data
        check_features(data)
    elif data is None or isinstance(data, _ARRAYS):
        check_features(data)


def check_callbacks(callbacks: object) -> None:
    """Raise a UserError for a callback that sets a learning rate.

    Args:
      callbacks: one or several callbacks, Keras's CallbackList, or None.
    """
    for callback in tf.nest.flatten(getattr(callbacks, "callbacks", callbacks)):
        if isinstance(callback, _RATE_SETTERS):
            raise UserError(
                f"{_MODEL}.fit: {type(callback).__name__} sets the"
                ' "lr" of an optimizer, but the'
                " config's schedule determines the rate. Leave this callback"
                " out, and set learning_rate, num_warmup_steps,"
                " num_train_steps and lr_decay_power in the config."
            )
