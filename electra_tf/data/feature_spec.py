# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Features of fine-tuning examples, and their tf.Example format.

Source: google-research/electra, finetune/feature_spec.py; finetune/
preprocessing.py, _make_tf_example.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class FeatureSpec:
    """One input of a model.

    Attributes:
      name: key of the feature.
      shape: shape without the batch axis; [] is a scalar.
      is_int_feature: whether the feature is int64 on disk and int32 in a batch;
        False: float32.
      per_token: whether the first axis is the axis of tokens. A batch then
        leaves out the columns that contain only padding.
    """

    name: str
    shape: list[int]
    is_int_feature: bool = True
    per_token: bool = False


def shared_feature_specs(max_seq_length: int) -> list[FeatureSpec]:
    """Return the specs of the inputs that all tasks share."""
    return [
        FeatureSpec("input_ids", [max_seq_length], per_token=True),
        FeatureSpec("input_mask", [max_seq_length], per_token=True),
        FeatureSpec("segment_ids", [max_seq_length], per_token=True),
        FeatureSpec("task_id", []),
    ]


def encode_example(
    specs: Sequence[FeatureSpec], values: Mapping[str, Any]
) -> tf.train.Example:
    """Return an example's features as a tf.Example; missing features are 0.

    Raises:
      ValueError: a feature is unknown, or has a wrong number of values.
    """
    names = {spec.name for spec in specs}
    for name in values:
        if name not in names:
            raise ValueError(f"Unknown feature {name}")
    example = tf.train.Example()
    for spec in specs:
        value = values.get(spec.name, [0] * math.prod(spec.shape))
        flat = _flatten(value, np.int64 if spec.is_int_feature else np.float32)
        if len(flat) != math.prod(spec.shape):
            raise ValueError(
                f"Feature {spec.name} has {len(flat)} values; expected shape"
                f" {spec.shape}"
            )
        feature = example.features.feature[spec.name]
        kind = "int64_list" if spec.is_int_feature else "float_list"
        getattr(feature, kind).value.extend(flat)
    return example


def decode_example(
    specs: Sequence[FeatureSpec], record: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Decode the features of a serialized tf.Example, or of a batch.

    Args:
      specs: features to decode.
      record: string, scalar or [B].

    Returns:
      int32 or float32 tensors by name, with the feature's shape; [B, ...] for a
      batch.
    """
    parsing = {}
    for spec in specs:
        dtype = tf.int64 if spec.is_int_feature else tf.float32
        parsing[spec.name] = tf.io.FixedLenFeature(spec.shape, dtype)
    parsed = tf.io.parse_example(record, parsing)
    features = {}
    for spec in specs:
        values = parsed[spec.name]
        if spec.is_int_feature:
            values = tf.cast(values, tf.int32)
        features[spec.name] = values
    return features


def _flatten(value: Any, dtype: type) -> list[Any]:
    """Return the numbers of a feature as a flat list."""
    # This fast path covers the usual case; NumPy takes several times as long.
    if isinstance(value, list) and (
        not value or isinstance(value[0], int | float)
    ):
        return value
    return np.asarray(value, dtype).ravel().tolist()
