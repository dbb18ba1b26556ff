# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A picture of the scores of each trial."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from electra_tf.evaluation.trials import describe, main_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from electra_tf.finetuning.results import TrialRecord


def draw_scores(records: Sequence[TrialRecord], title: str) -> bytes:
    """Draws the main figure of each task over the runs.

    Args:
      records: of the trials, at least one.
      title: above the picture.

    Returns:
      A PNG file's contents.
    """
    # After a trial: its first step need not wait for this.
    from matplotlib.figure import Figure

    tasks = list(records[0].results) if records else []
    columns = min(3, max(1, len(tasks)))
    rows = max(1, -(-len(tasks) // columns))
    figure = Figure(
        figsize=(1.0 + 4.2 * columns, 0.6 + 3.4 * rows), layout="constrained"
    )
    figure.suptitle(title)
    for index, task in enumerate(tasks):
        axes = figure.add_subplot(rows, columns, index + 1)
        _draw_task(axes, task, records)
    packed = io.BytesIO()
    figure.savefig(packed, format="png", dpi=110)
    return packed.getvalue()


def _draw_task(axes: Axes, task: str, records: Sequence[TrialRecord]) -> None:
    from matplotlib.ticker import MaxNLocator

    name = main_figure(list(records[0].results[task]))
    runs = np.array([record.trial for record in records])
    values = np.array([record.results[task][name] for record in records])
    fell = np.array([task in record.collapsed for record in records])
    found = describe(values.tolist())
    axes.plot(runs, values, color="tab:blue", marker="o", markersize=4)
    if fell.any():
        axes.plot(
            runs[fell],
            values[fell],
            linestyle="none",
            marker="x",
            markersize=9,
            color="tab:red",
            label="collapsed",
        )
    if len(records) > 1:
        axes.axhline(
            found.mean,
            color="0.35",
            linestyle="--",
            label=f"mean {found.mean:.2f} (std {found.std:.2f})",
        )
        axes.axhline(
            found.median,
            color="0.6",
            linestyle=":",
            label=f"median {found.median:.2f}",
        )
    axes.set_title(f"{task}: dev {name}", fontsize=10)
    axes.set_xlabel("run", fontsize=8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, frameon=False)
