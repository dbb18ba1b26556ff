# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A picture of the run, drawn from the rows of its logs."""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES_FILE = "curves.png"
Rows = Sequence[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Panel:
    """One set of axes.

    Attributes:
      title: says what is shown, with its unit.
      train: field of the training rows, drawn faint with a running mean.
      evaluation: field of the evaluation rows, drawn with dots.
      baselines: fields of the evaluation rows, drawn dashed.
      chance: a constant to beat, drawn dotted.
      log_scale: whether the y axis is logarithmic.
    """

    title: str
    train: str | None = None
    evaluation: str | None = None
    baselines: tuple[tuple[str, str], ...] = ()  # (field, label)
    chance: float | None = None
    log_scale: bool = False


def draw_curves(
    directory: str,
    panels: Sequence[Panel],
    train_rows: Rows,
    eval_rows: Rows,
    title: str,
) -> str:
    """Draws `curves.png`; panels without data are left out.

    Args:
      directory: where the picture goes.
      panels: what to draw.
      train_rows: rows with `step` and numbers; None stands for a gap.
      eval_rows: the same for evaluations.
      title: above the picture.

    Returns:
      Path of the picture.
    """
    # At the end of a run: its first step need not wait for this.
    from matplotlib.figure import Figure

    panels = [p for p in panels if _has_data(p, train_rows, eval_rows)]
    columns = min(4, max(1, (len(panels) + 1) // 2))
    rows = max(1, -(-len(panels) // columns))
    width, height = 4.2 * columns, 3.2 * rows + 0.4
    figure = Figure(figsize=(width, height))
    # Margins in inches; laying out automatically takes twice the time.
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
    packed = io.BytesIO()
    figure.savefig(packed, format="png", dpi=110)
    path = os.path.join(directory, CURVES_FILE)
    with tf.io.gfile.GFile(path + ".tmp", "wb") as file:
        file.write(packed.getvalue())
    tf.io.gfile.rename(path + ".tmp", path, overwrite=True)
    return path


def _draw(axes: Axes, panel: Panel, train_rows: Rows, eval_rows: Rows) -> None:
    steps, values = _series(train_rows, panel.train)
    if len(steps):
        noisy = len(steps) >= 20
        axes.plot(
            steps,
            values,
            color="tab:blue",
            alpha=0.25 if noisy else 1.0,
            linewidth=1.0,
            label=None if noisy else "training",
        )
        if noisy:
            axes.plot(
                steps, _smooth(values), color="tab:blue", label="training"
            )
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
            axes.plot(
                steps,
                values,
                color=grey,
                linestyle="--",
                marker=".",
                label=label,
            )
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
    points = [
        (row["step"], row[field]) for row in rows if row.get(field) is not None
    ]
    array = np.array(points, np.float64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def _smooth(values: np.ndarray) -> np.ndarray:
    """Centred running mean over a twentieth of the points."""
    width = max(3, len(values) // 20) | 1
    padded = np.pad(values, width // 2, mode="edge")
    return np.convolve(padded, np.ones(width) / width, mode="valid")


def _has_data(panel: Panel, train_rows: Rows, eval_rows: Rows) -> bool:
    return bool(
        len(_series(train_rows, panel.train)[0])
        or len(_series(eval_rows, panel.evaluation)[0])
    )
