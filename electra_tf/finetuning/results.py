# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The results files of a fine-tuning: text, pickle, JSON, picture."""

from __future__ import annotations

import dataclasses
import datetime
import io
import json
import math
import os
import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning import start
from electra_tf.metrics import trials
from electra_tf.metrics.trials import describe, main_figure
from electra_tf.training.summaries import Console

# A picture of the scores of each trial.

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    pass


def draw_scores(records: Sequence[TrialRecord], title: str) -> bytes:
    """Draws the main figure of each task over the runs.

    Args:
      records: of the trials, at least one.
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


_FORMAT = 1
_KEPT = ".before"


@dataclasses.dataclass(frozen=True)
class TrialRecord:
    """What one trial gave.

    Attributes:
      trial: its number, from 1.
      seed: of its draws.
      model_dir: where its model was made, or read from.
      global_step: updates done by the weights that were evaluated.
      results: task -> the original's figures.
      details: task -> figures beyond them.
      other_splits: "task/split" -> figures of further labelled splits.
      collapsed: task -> what is said of every example, where it is one thing.
    """

    trial: int
    seed: int
    model_dir: str
    global_step: int
    results: dict[str, dict[str, float]]
    details: dict[str, dict[str, float]]
    other_splits: dict[str, dict[str, float]]
    collapsed: dict[str, str]


class ResultsFiles:
    """Reads what earlier trials gave, and writes all files after each."""

    def __init__(self, config: FinetuningConfig, console: Console) -> None:
        self._config = config
        self._console = console
        self._plot = os.path.splitext(config.results_json)[0] + ".png"

    def earlier_trials(self) -> list[TrialRecord]:
        """Returns the finished trials of the run that is being continued.

        Results of another kind of run are put aside, under names that end in
        `.before`.
        """
        found = _read(self._config.results_json)
        config = self._config
        is_training = found and found["config"].get("do_train", True)
        if config.overwrite or not (config.do_train and is_training):
            self._put_aside()
            return []
        differing = start.changed_hparams(found["config"], config.as_dict())
        if differing:
            raise UserError(
                f"{config.results_json} holds the results of a run with other"
                " hparams:\n"
                + "".join(f"  {text}\n" for text in differing)
                + "Set them as they were to continue it, give another model_dir"
                " and other results_txt, results_pkl and results_json, or use"
                " --overwrite to start anew."
            )
        return [TrialRecord(**record) for record in found["trials"]]

    def write(self, records: Sequence[TrialRecord]) -> None:
        """Writes all files, each complete or not at all.

        Source: google-research/electra, run_finetuning.py, write_results.
        """
        config = self._config
        results = [record.results for record in records]
        _write(config.results_txt, text_of(results).encode())
        _write(config.results_pkl, pickle.dumps(results))
        text = json.dumps(self._contents(records), indent=1, allow_nan=False)
        _write(config.results_json, f"{text}\n".encode())
        title = f"{config.model_name}: {', '.join(config.task_names)}"
        _write(self._plot, draw_scores(records, title))
        self._console.line(
            f"Wrote {config.results_txt}, {config.results_pkl},"
            f" {config.results_json} and {self._plot}"
        )

    def _contents(self, records: Sequence[TrialRecord]) -> dict[str, Any]:
        results = [record.results for record in records]
        everything = [
            {task: {**figures, **record.details[task]}
             for task, figures in record.results.items()}
            | record.other_splits
            for record in records
        ]  # fmt: skip
        best = trials.best_trial(results)
        now = datetime.datetime.now(datetime.timezone.utc)
        return {
            "format": _FORMAT,
            "time": now.isoformat(timespec="seconds"),
            "trials": [
                _without_nan(dataclasses.asdict(record)) for record in records
            ],
            "statistics": {
                task: {name: found.as_dict() for name, found in figures.items()}
                for task, figures in trials.summarize(everything).items()
            },
            "best_trial": None if best is None else records[best].trial,
            "collapsed_trials": [r.trial for r in records if r.collapsed],
            "config": self._config.as_dict(),
        }

    def _put_aside(self) -> None:
        config = self._config
        paths = (
            config.results_txt,
            config.results_pkl,
            config.results_json,
            self._plot,
        )
        there = [path for path in paths if tf.io.gfile.exists(path)]
        for path in there:
            tf.io.gfile.rename(path, path + _KEPT, overwrite=True)
        if there:
            self._console.line(
                f"Earlier results are kept as {', '.join(there)}, each with"
                f" {_KEPT} at the end of its name"
            )


def text_of(results: Sequence[trials.TrialResults]) -> str:
    """The text file: a line for each trial and task, as the original's."""
    return "".join(
        f"{task}: "
        + " - ".join(f"{name}: {value:.2f}" for name, value in figures.items())
        + "\n"
        for trial in results
        for task, figures in trial.items()
    )


def statistics_lines(records: Sequence[TrialRecord]) -> list[str]:
    """The table of all trials, and which of them collapsed."""
    results = [record.results for record in records]
    lines = trials.table_lines(trials.summarize(results))
    for record in records:
        for task, what in record.collapsed.items():
            lines.append(f"trial {record.trial} collapsed on {task}: {what}")
    best = trials.best_trial(results)
    if len(records) > 1 and best is not None:
        record = records[best]
        lines.append(f"best trial: {record.trial} ({record.model_dir})")
    return lines


def _read(path: str) -> dict[str, Any] | None:
    if not tf.io.gfile.exists(path):
        return None
    try:
        with tf.io.gfile.GFile(path) as file:
            found = json.load(file)
        if found["format"] != _FORMAT:
            raise ValueError(f"format {found['format']}, expected {_FORMAT}")
        found["trials"] = [_with_nan(record) for record in found["trials"]]
        return found
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is no results file of this program ({error!r}); move it"
            " away, or use --overwrite."
        ) from error


def _write(path: str, data: bytes) -> None:
    try:
        tf.io.gfile.makedirs(os.path.dirname(path) or ".")
        with tf.io.gfile.GFile(path + ".tmp", "wb") as file:
            file.write(data)
        tf.io.gfile.rename(path + ".tmp", path, overwrite=True)
    except tf.errors.OpError as error:
        raise UserError(
            f"{path}: the results cannot be written: {error.message}. The"
            " model is safe; make room or correct the permissions, and run the"
            " same command again."
        ) from error


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: None stands for it."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _with_nan(record: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `_without_nan`."""
    groups = ("results", "details", "other_splits")
    return record | {
        group: {
            name: {k: math.nan if v is None else v for k, v in figures.items()}
            for name, figures in record[group].items()
        }
        for group in groups
    }
