# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Named features of fine-tuning examples, and their tf.Example form.

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
    """One input of a model."""

    name: str
    shape: list[int]  # its shape without the batch axis; [] is a scalar
    # Int64 on disk and int32 in a batch; else float32.
    is_int_feature: bool = True
    # Whether the first axis is that of tokens, so that columns which are
    # padding in a whole batch are left out.
    per_token: bool = False


def shared_feature_specs(max_seq_length: int) -> list[FeatureSpec]:
    """The inputs that every task has."""
    return [
        FeatureSpec("input_ids", [max_seq_length], per_token=True),
        FeatureSpec("input_mask", [max_seq_length], per_token=True),
        FeatureSpec("segment_ids", [max_seq_length], per_token=True),
        FeatureSpec("task_id", []),
    ]


def encode_example(
    specs: Sequence[FeatureSpec], values: Mapping[str, Any]
) -> tf.train.Example:
    """Makes a tf.Example of an example's features; those not given are 0."""
    known = {spec.name for spec in specs}
    for name in values:
        if name not in known:
            raise ValueError(f"Unknown feature {name}")
    example = tf.train.Example()
    for spec in specs:
        given = values.get(spec.name, [0] * math.prod(spec.shape))
        flat = _flatten(given, np.int64 if spec.is_int_feature else np.float32)
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
    """Reads one serialized tf.Example (a string scalar), or a batch [B].

    Each feature by name: int32 or float32, of its shape, after [B] for a batch.
    """
    parsing = {}
    for spec in specs:
        dtype = tf.int64 if spec.is_int_feature else tf.float32
        parsing[spec.name] = tf.io.FixedLenFeature(spec.shape, dtype)
    parsed = tf.io.parse_example(record, parsing)
    return {
        spec.name: tf.cast(parsed[spec.name], tf.int32)
        if spec.is_int_feature
        else parsed[spec.name]
        for spec in specs
    }


def _flatten(given: Any, dtype: type) -> list[Any]:
    """A feature's values as a flat list."""
    if isinstance(given, list) and (
        not given or isinstance(given[0], int | float)
    ):
        return given  # the usual case, several times as quick
    return np.asarray(given, dtype).ravel().tolist()
