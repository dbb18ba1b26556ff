# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A picture of how a difference grows from layer to layer."""

import io
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from electra_tf import files
from electra_tf.compare.differences import Difference
from electra_tf.compare.forward import ForwardDifference

_COLORS = ("tab:blue", "tab:orange", "tab:green", "tab:purple")
_MARKERS = ("o", "s", "^", "D")
# Where nothing differs at all, the axis still needs a lower end.
_LOWEST = 1e-8
# Networks stand side by side, so that none hides another.
_SHIFT = 0.16


def draw_layer_differences(
    path: str,
    forward: ForwardDifference,
    tolerance: float,
    title: str,
) -> str:
    """Draws the differences of every layer and of the logits.

    Args:
      forward: of two models; has layers or logits.
    """
    layers, outputs = forward.layers, forward.logits
    figure = Figure(figsize=(8.0, 4.6))
    axes = figure.add_subplot()
    depth = max((len(d) for d in layers.values()), default=0)
    found = [size for sizes in layers.values() for size in sizes]
    floor = _floor([*found, *outputs.values()])
    networks = list(dict.fromkeys([*layers, *outputs]))
    for index, network in enumerate(networks):
        shift = _SHIFT * (index - (len(networks) - 1) / 2)
        points = [
            (number + shift, size)
            for number, size in enumerate(layers.get(network, ()), 1)
        ]
        if network in outputs:
            points.append((depth + 1 + shift, outputs[network]))
        style = {
            "color": _COLORS[index % len(_COLORS)],
            "marker": _MARKERS[index % len(_MARKERS)],
        }
        _draw(axes, network, points, floor, style)
    _label(axes, depth, bool(outputs), title)
    if any(size.is_exact for size in [*found, *outputs.values()]):
        _draw_floor(axes, floor)
    _draw_bounds(axes, tolerance)
    figure.tight_layout()
    _save(figure, path)
    return path


def _floor(found: Sequence[Difference]) -> float:
    """A decade below everything that is not zero."""
    sizes = [v for d in found for v in _values(d) if 0 < v < float("inf")]
    return min([_LOWEST, *(size / 10 for size in sizes)])


def _values(found: Difference) -> tuple[float, float]:
    return found.scaled, found.mean_abs / found.scale


def _draw(
    axes: Axes,
    label: str,
    points: Sequence[tuple[int, Difference]],
    floor: float,
    style: Mapping[str, str],
) -> None:
    places = [x for x, _ in points]
    largest = [max(floor, _values(d)[0]) for _, d in points]
    means = [max(floor, _values(d)[1]) for _, d in points]
    axes.plot(places, largest, label=label, linewidth=1.6, **style)
    axes.plot(
        places,
        means,
        color=style["color"],
        linestyle=":",
        linewidth=1.2,
    )
    equal = [x for x, d in points if d.is_exact]
    axes.plot(
        equal,
        [floor] * len(equal),
        linestyle="none",
        marker=style["marker"],
        markerfacecolor="white",
        markeredgecolor=style["color"],
        zorder=3,
    )


def _draw_floor(axes: Axes, floor: float) -> None:
    """Marks where what is exactly equal is drawn: zero has no logarithm."""
    axes.axhline(floor, color="0.8", linewidth=0.8, zorder=0)
    axes.annotate(
        "0 (exactly equal)",
        (0.995, floor),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        xytext=(0, 5),
        ha="right",
        fontsize=8,
        color="0.4",
    )


def _draw_bounds(axes: Axes, tolerance: float) -> None:
    handles = axes.get_legend_handles_labels()[0]
    handles.append(
        Line2D([], [], color="0.4", linestyle=":", label="mean instead of max")
    )
    if tolerance > 0:
        handles.append(
            axes.axhline(
                tolerance,
                color="tab:red",
                linestyle="--",
                linewidth=1.0,
                label=f"tolerance {tolerance:g}",
            )
        )
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(low, max(high, tolerance * 10))
    axes.legend(
        handles=handles,
        fontsize=8,
        frameon=False,
        ncols=len(handles),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
    )


def _label(axes: Axes, depth: int, has_outputs: bool, title: str) -> None:
    ticks = list(range(1, depth + 1))
    labels = [str(tick) for tick in ticks]
    if has_outputs:
        axes.axvline(depth + 0.5, color="0.85", linewidth=0.8)
        ticks.append(depth + 1)
        labels.append("logits")
    axes.set_xticks(ticks, labels, fontsize=8 if depth <= 16 else 6)
    axes.set_xlim(0.5, depth + 0.5 + has_outputs)
    axes.set_xlabel("layer", fontsize=9)
    axes.set_ylabel("max |A - B| / max(1, max |B|)", fontsize=9)
    axes.set_title(title, fontsize=10)
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, path: str) -> None:
    packed = io.BytesIO()
    figure.savefig(packed, format="png", dpi=120)
    with files.open_file(path + ".part", "wb") as file:
        file.write(packed.getvalue())
    files.rename(path + ".part", path)
