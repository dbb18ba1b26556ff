# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layer-wise learning-rate decay: lower layers learn more slowly."""

import dataclasses
import re
from collections.abc import Iterable, Sequence

_LAYER = re.compile(r"encoder/layer_(\d+)/")


@dataclasses.dataclass(frozen=True)
class LayerRate:
    """One row of the table of rates.

    Attributes:
      part: "embeddings", "layer 0", ..., "heads".
      depth: its depth; embeddings are 0.
      multiplier: of the learning rate.
      num_variables: how many variables have it.
    """

    part: str
    depth: int
    multiplier: float
    num_variables: int


def layer_multipliers(
    names: Iterable[str], decay: float, num_layers: int, fixed: bool = False
) -> dict[str, float]:
    """The learning rate of each variable, as a multiple of the heads'.

    Returns:
      Multiplier by name; empty without decay.

    Source: google-research/electra, model/optimization.py, _get_layer_lrs.
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
    """The multipliers part by part, the lowest first."""
    multipliers = layer_multipliers(names, decay, num_layers, fixed)
    counts: dict[int, int] = {}
    found: dict[int, float] = {}
    for name in names:
        depth = _depth(name, num_layers, fixed)
        counts[depth] = counts.get(depth, 0) + 1
        found[depth] = multipliers.get(name, 1.0)
    return [
        LayerRate(_part(depth, num_layers), depth, found[depth], counts[depth])
        for depth in sorted(counts)
    ]


def _head_depth(num_layers: int, fixed: bool) -> int:
    return num_layers + (1 if fixed else 2)


def _depth(name: str, num_layers: int, fixed: bool) -> int:
    if "/embeddings/" in name or "/embeddings_project/" in name:
        return 0
    if match := _LAYER.search(name):
        layer = int(match[1])
        if layer < num_layers:
            return layer + 1
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
