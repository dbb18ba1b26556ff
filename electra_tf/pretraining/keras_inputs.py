# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What Keras's `fit`, `evaluate` and `predict` hand a pre-training model."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from configure.errors import UserError

INPUTS = ("input_ids", "input_mask", "segment_ids")
Features = Mapping[str, tf.Tensor]
_MODEL = "PretrainingModel"
# They assign to `optimizer.lr`.
_RATE_SETTERS = (
    tf_keras.callbacks.LearningRateScheduler,
    tf_keras.callbacks.ReduceLROnPlateau,
)
_ARRAYS = (Mapping, np.ndarray, tf.Tensor, tf.RaggedTensor, list, tuple)


def features_of(data: Any) -> Features:
    """Return the features of a batch as Keras hands it to a step.

    Args:
      data: the features alone; see `check_features`.

    Returns:
      The features; `input_ids`, `input_mask` and `segment_ids` int32 [B, L].

    Raises:
      UserError: they are of another form, or labels or weights come with them.
    """
    features, *others = tf_keras.utils.unpack_x_y_sample_weight(data)
    if any(other is not None for other in others):
        raise UserError(
            f"{_MODEL}: it makes its own labels, and takes no sample_weight;"
            " give features alone"
        )
    check_features(features)
    return {**features, **{n: tf.cast(features[n], tf.int32) for n in INPUTS}}


def check_features(features: Any) -> None:
    """Raise a UserError unless features have the three inputs.

    Args:
      features: a mapping with integers [B, L] (or their specifications) under
        `input_ids`, `input_mask` and `segment_ids`; others are left alone.
    """
    expected = f"expected a dict with {', '.join(INPUTS)}, integers [batch, L]"
    if not isinstance(features, Mapping):
        shape = getattr(features, "shape", None)
        of_shape = ""
        if shape is not None:
            of_shape = f" of shape {tf.TensorShape(shape)}"
        raise UserError(
            f"{_MODEL}: the features are a {type(features).__name__}{of_shape};"
            f" {expected}. Wrap bare ids:"
            ' {"input_ids": ids, "input_mask": mask, "segment_ids": segments}'
        )
    if missing := [name for name in INPUTS if name not in features]:
        raise UserError(
            f"{_MODEL}: features: {', '.join(missing)} missing; {expected}"
        )
    for name in INPUTS:
        value = features[name]
        if not hasattr(value, "dtype"):
            value = np.asarray(value)
        dtype = tf.as_dtype(value.dtype)
        if not (dtype.is_integer or dtype.is_bool):
            raise UserError(
                f"{_MODEL}: features: {name} is {dtype.name}; {expected}"
            )
        shape = tf.TensorShape(value.shape)
        if shape.rank not in (None, 2):
            raise UserError(
                f"{_MODEL}: features: {name} has shape {shape}; {expected}"
                " (a dataset must be batched)"
            )


def check_data(data: Any) -> None:
    """Check the features of `fit` before anything is traced.

    Args:
      data: a dataset or arrays. Generators are checked batch by batch, by
        `features_of`.
    """
    if isinstance(data, tf.data.Dataset):
        data = data.element_spec
        # Labels beside the features are for `features_of` to refuse.
        data = data[0] if isinstance(data, tuple) and data else data
        check_features(data)
    elif data is None or isinstance(data, _ARRAYS):
        check_features(data)


def check_callbacks(callbacks: Any) -> None:
    """Raise a UserError for a callback that sets a learning rate."""
    for callback in tf.nest.flatten(getattr(callbacks, "callbacks", callbacks)):
        if isinstance(callback, _RATE_SETTERS):
            raise UserError(
                f"{_MODEL}.fit: {type(callback).__name__} cannot be used: for"
                ' it the optimizer must have a "lr" to set, and here the rate'
                " follows the config's schedule. Leave it out; set"
                " learning_rate, num_warmup_steps, num_train_steps and"
                " lr_decay_power in the config."
            )
