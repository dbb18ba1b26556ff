# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layer-wise learning rates: lower layers learn more slowly."""

import collections
import dataclasses
import re
from collections.abc import Iterable, Sequence

_LAYER = re.compile(r"encoder/layer_(\d+)/")


@dataclasses.dataclass(frozen=True)
class LayerRate:
    """The learning rate of one part of a model."""

    part: str  # "embeddings", "layer 0", ..., "heads"
    depth: int  # 0 for the embeddings
    multiplier: float  # of the learning rate
    num_variables: int  # of the part


def layer_multipliers(
    names: Iterable[str], decay: float, num_layers: int, fixed: bool = False
) -> dict[str, float]:
    """Return each variable's learning rate as a multiple of the heads' rate.

    Source: google-research/electra, model/optimization.py, _get_layer_lrs.

    Args:
      names: of the variables.
      decay: multiplier from a layer to the one below; 0 or less: none, and the
        result is empty.
      num_layers: transformer blocks of the model.
      fixed: the heads are one level above the top layer; the original's heads
        are two levels above it.

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
    """Return the multipliers of `layer_multipliers` by part, lowest first."""
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
        f"variable {name} is in no layer: expected .../embeddings/...,"
        f" .../encoder/layer_N/... with N below {num_layers}, or"
        " task_specific/..."
    )


def _part(depth: int, num_layers: int) -> str:
    if depth == 0:
        return "embeddings"
    return f"layer {depth - 1}" if depth <= num_layers else "heads"
