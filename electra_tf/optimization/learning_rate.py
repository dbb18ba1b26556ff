# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learning rates: warm-up and decay by step, and multipliers by layer."""

import collections
import dataclasses
import re
from collections.abc import Iterable, Sequence

import tensorflow as tf

_LAYER = re.compile(r"encoder/layer_(\d+)/")


@dataclasses.dataclass(frozen=True)
class WarmupPolynomialDecay:
    """Schedule of the learning rate: linear warm-up and polynomial decay.

    The decay is not shifted by the warm-up: with W warm-up and T total steps
    the peak is learning_rate * (1 - W / T).

    Source: google-research/electra, model/optimization.py, create_optimizer.

    Differs: 0 warm-up steps mean no warm-up in both orders; the original
    divides 0 by 0 under "before_increment".
    """

    learning_rate: float  # rate at step 0 without warm-up
    num_train_steps: int  # T, number of updates until the rate is 0
    # W, updates of linear warm-up; 0: none. W need not be an integer,
    # because fine-tuning computes W as a proportion of T.
    num_warmup_steps: float = 0
    power: float = 1.0  # exponent of the decay; 1: linear
    # "after_increment" reads the rate of update k (k = 1, 2, ...) at step k, as
    # the original was observed to do; the original's graph does not fix the
    # order. "before_increment" reads the rate at step k - 1, so that the first
    # update of a warm-up has rate 0.
    read_order: str = "after_increment"

    def __call__(self, completed_updates: tf.Tensor) -> tf.Tensor:
        """Return the rate (float32) of the update after `completed_updates`."""
        shift = {"after_increment": 1.0, "before_increment": 0.0}
        step = tf.cast(completed_updates, tf.float32) + shift[self.read_order]
        total = tf.constant(self.num_train_steps, tf.float32)
        # XLA rounds the difference of the last update to -3e-8 for some totals,
        # and a root of a negative number is NaN.
        remaining = tf.maximum(0.0, 1.0 - tf.minimum(step, total) / total)
        rate = self.learning_rate * tf.pow(remaining, self.power)
        if self.num_warmup_steps > 0:
            rate *= tf.minimum(1.0, step / float(self.num_warmup_steps))
        return rate


@dataclasses.dataclass(frozen=True)
class LayerRate:
    """Learning rate of one part of a model."""

    part: str  # "embeddings", "layer 0", ..., "heads"
    depth: int  # 0: embeddings
    multiplier: float  # factor of the learning rate
    num_variables: int  # number of variables in the part


def layer_multipliers(
    names: Iterable[str], decay: float, num_layers: int, fixed: bool = False
) -> dict[str, float]:
    """Return each variable's learning rate as a multiple of the heads' rate.

    Source: google-research/electra, model/optimization.py, _get_layer_lrs.

    Args:
      names: names of the variables.
      decay: ratio of a layer's rate to that of the layer above; 0 or less: no
        decay, and the result is empty.
      num_layers: number of transformer blocks of the model.
      fixed: whether the heads are one level above the top layer; False: two
        levels, as in the original.

    Raises:
      ValueError: a name belongs to no layer.
    """
    if decay <= 0:
        return {}
    top = _head_depth(num_layers, fixed)
    return {
        name: decay ** (top - _depth(name, num_layers, fixed)) for name in names
    }


def rate_table(
    names: Sequence[str], decay: float, num_layers: int, fixed: bool = False
) -> list[LayerRate]:
    """Return the learning rate of each part of a model, embeddings first."""
    multipliers = layer_multipliers(names, decay, num_layers, fixed)
    depths = {name: _depth(name, num_layers, fixed) for name in names}
    counts = collections.Counter(depths.values())
    by_depth = {
        depth: multipliers.get(name, 1.0) for name, depth in depths.items()
    }
    return [
        LayerRate(
            _part(depth, num_layers), depth, by_depth[depth], counts[depth]
        )
        for depth in sorted(counts)
    ]


def _head_depth(num_layers: int, fixed: bool) -> int:
    return num_layers + (1 if fixed else 2)


def _depth(name: str, num_layers: int, fixed: bool) -> int:
    if "/embeddings/" in name or "/embeddings_project/" in name:
        return 0
    match = _LAYER.search(name)
    if match and int(match[1]) < num_layers:
        return int(match[1]) + 1
    if "task_specific/" in name:
        return _head_depth(num_layers, fixed)
    raise ValueError(
        f"variable {name} belongs to no layer; expected .../embeddings/...,"
        f" .../encoder/layer_N/... with N below {num_layers}, or"
        " task_specific/..."
    )


def _part(depth: int, num_layers: int) -> str:
    if depth == 0:
        return "embeddings"
    return f"layer {depth - 1}" if depth <= num_layers else "heads"
