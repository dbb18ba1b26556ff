# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The pictures of a study: panels with the points of each arm."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from electra_tf.files.figures import encode_png

# Lines with at least this number of points have no markers.
_MOST_MARKED = 20
_HOLLOW = {"linestyle": "", "marker": "o", "markerfacecolor": "white"}
# baseline -> style of the line at its score
_LEVEL_STYLES = {"chance": ":", "majority": "-."}


class Point(NamedTuple):
    """A point of an arm's learning curve, or one of an arm's scores."""

    x: float  # NaN: the arm was not pre-trained in this study
    y: float
    error: float = 0.0  # the standard error, drawn as a bar
    # whether the model predicts one class for all examples; if so, the point is
    # drawn hollow
    is_collapsed: bool = False


@dataclasses.dataclass(frozen=True)
class Panel:
    """The content of one set of axes."""

    title: str
    # Name -> points. The part of the name before a slash is the arm; all lines
    # of an arm share one color and one label.
    lines: Mapping[str, Sequence[Point]]
    # "chance" and "majority" -> values; several values if the runs used
    # different data.
    levels: Mapping[str, Sequence[float]]


def draw(panels: Sequence[Panel], scale: str) -> bytes:
    """Return a PNG of the panels that have points, three in a row.

    Args:
      panels: the panels; empty panels are left out.
      scale: the scale of the x axes, by matplotlib's name.
    """
    # matplotlib is imported late, because the import takes a second and
    # --dry_run does not need it.
    from matplotlib.figure import Figure

    panels = [panel for panel in panels if panel.lines]
    rows = max(1, -(-len(panels) // 3))
    figure = Figure(figsize=(15, 3.6 * rows), layout="constrained")
    colors: dict[str, str] = {}  # arm -> color, the same in all panels
    for number, panel in enumerate(panels, 1):
        axes = figure.add_subplot(rows, 3, number)
        _draw_panel(axes, panel, colors)
        points = (point for line in panel.lines.values() for point in line)
        values = {point.x for point in points if not math.isnan(point.x)}
        if values:
            axes.set_xscale(scale)
        else:
            # Level lines alone have no x, and a logarithmic axis without
            # values cannot be drawn.
            axes.set_xticks([])
        if scale == "log" and len(values) == 1:
            # With a single value, Matplotlib derives limits from rounding
            # errors.
            (x,) = values
            axes.set_xlim(x / 3, x * 3)
        axes.set_title(panel.title, fontsize=9)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6)
    return encode_png(figure)


def _draw_panel(axes: Any, panel: Panel, colors: dict[str, str]) -> None:
    """Draw the lines and levels of a panel; assign colors to new arms."""
    labels: set[str] = set()
    for name, points in panel.lines.items():
        arm = name.split("/")[0]
        label = arm if arm not in labels else None
        labels.add(arm)
        color = colors.setdefault(arm, f"C{len(colors) % 10}")
        _draw_arm(axes, sorted(points), color, label)
    points = [point for line in panel.lines.values() for point in line]
    if any(point.is_collapsed for point in points):
        axes.plot([], [], color="gray", label="collapsed", **_HOLLOW)
    for kind, values in panel.levels.items():
        label = ", ".join(f"{value:.4g}" for value in values)
        for value in values:
            style = {"linestyle": _LEVEL_STYLES[kind], "color": "gray"}
            axes.axhline(value, linewidth=1.0, **style)
        axes.plot([], [], label=f"{kind} {label}", **style)


def _draw_arm(
    axes: Any, points: Sequence[Point], color: str, label: str | None
) -> None:
    """Draw an arm's points; a point whose x is NaN is drawn as a level line."""
    style = {"color": color, "label": label}
    x, y, errors, _ = zip(*points, strict=True)
    collapsed = [point for point in points if point.is_collapsed]
    if any(map(math.isnan, x)):  # the arm was not pre-trained
        axes.axhline(y[0], linestyle="--", **style)
        low, high = y[0] - errors[0], y[0] + errors[0]
        axes.axhspan(low, high, color=color, alpha=0.15)
        across = {"transform": axes.get_yaxis_transform()}
        for point in collapsed:
            axes.plot([0.5], [point.y], color=color, **across, **_HOLLOW)
        return
    if any(errors):
        axes.errorbar(x, y, errors, marker="o", capsize=2, **style)
    else:
        marker = ""
        if len(x) == 1:
            marker = "o"
        elif len(x) < _MOST_MARKED:
            marker = "."
        axes.plot(x, y, marker=marker, **style)
    if len(points) == 1:
        axes.annotate(
            f"{y[0]:.4g}",
            (x[0], y[0]),
            xytext=(6, 4),  # units of 1/72 inch
            textcoords="offset points",
            fontsize=7,
            color=color,
        )
    for point in collapsed:
        axes.plot([point.x], [point.y], color=color, zorder=3, **_HOLLOW)
