# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Curves of the values in a run's logs, drawn as a picture."""

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from electra_tf.files.atomic import write_atomically
from electra_tf.files.figures import encode_png

if TYPE_CHECKING:
    from matplotlib.axes import Axes


CURVES_FILE = "curves.png"
Rows = Sequence[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Panel:
    """A plot of fields of the training log and of the evaluation log."""

    title: str  # metric and unit
    train: str | None = None  # field, as a faint line with its running mean
    evaluation: str | None = None  # field, as a line with dots
    baselines: tuple[tuple[str, str], ...] = ()  # (field, label), dashed lines
    chance: float | None = None  # score of guessing, as a dotted line
    log_scale: bool = False


def draw_curves(
    directory: str,
    panels: Sequence[Panel],
    train_rows: Rows,
    eval_rows: Rows,
    title: str,
) -> str:
    """Draw `curves.png`, and return its path; skip panels without data."""
    # matplotlib is imported here, so that the first step of a run need not wait
    # for the import.
    from matplotlib.figure import Figure

    panels = [
        panel
        for panel in panels
        if len(_series(train_rows, panel.train)[0])
        or len(_series(eval_rows, panel.evaluation)[0])
    ]
    columns = min(4, max(1, (len(panels) + 1) // 2))
    rows = max(1, -(-len(panels) // columns))
    width, height = 4.2 * columns, 3.2 * rows + 0.4
    figure = Figure(figsize=(width, height))
    # The numerators are inches. An automatic layout would double the time of
    # drawing.
    figure.subplots_adjust(
        left=0.6 / width,
        right=1 - 0.15 / width,
        bottom=0.5 / height,
        top=1 - 0.75 / height,
        wspace=0.22,
        hspace=0.38,
    )
    figure.suptitle(title)
    for index, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        _draw(axes, panel, train_rows, eval_rows)
    path = os.path.join(directory, CURVES_FILE)
    write_atomically(path, encode_png(figure))
    return path


def _draw(
    axes: "Axes", panel: Panel, train_rows: Rows, eval_rows: Rows
) -> None:
    steps, values = _series(train_rows, panel.train)
    blue = "tab:blue"
    if len(steps) >= 20:
        axes.plot(steps, values, color=blue, alpha=0.25, linewidth=1.0)
        axes.plot(steps, _smooth(values), color=blue, label="training")
    elif len(steps):
        axes.plot(steps, values, color=blue, label="training", linewidth=1.0)
    steps, values = _series(eval_rows, panel.evaluation)
    if len(steps):
        axes.plot(
            steps,
            values,
            color="tab:orange",
            marker="o",
            markersize=3,
            label="held out",
        )
    greys = ("0.35", "0.6")
    for (field, label), grey in zip(panel.baselines, greys, strict=False):
        steps, values = _series(eval_rows, field)
        if len(steps):
            axes.plot(steps, values, "--", color=grey, marker=".", label=label)
    if panel.chance is not None:
        axes.axhline(panel.chance, color="0.7", linestyle=":", label="chance")
    if panel.log_scale:
        axes.set_yscale("log")
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlabel("step", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(fontsize=7, frameon=False)


def _series(rows: Rows, field: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps and values of a field; skip rows without the field."""
    points = [
        (row["step"], row[field])
        for row in rows
        if field is not None and row.get(field) is not None
    ]
    array = np.array(points, np.float64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def _smooth(values: np.ndarray) -> np.ndarray:
    """Return the centered running mean over a twentieth of the points."""
    width = max(3, len(values) // 20) | 1
    padded = np.pad(values, width // 2, mode="edge")
    return np.convolve(padded, np.ones(width) / width, mode="valid")
