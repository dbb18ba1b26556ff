# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What trials gave: read back, written whole after each, summed up, drawn."""

import dataclasses
import datetime
import itertools
import json
import os
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints.sizes import list_changes
from electra_tf.checkpoints.weights import Weights
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import file_sha256
from electra_tf.files.figures import encode_png
from electra_tf.files.json_files import read_json, without_nan
from electra_tf.finetuning.initial_checkpoint import digest_weights
from electra_tf.finetuning.task import Task
from electra_tf.finetuning.trial import SCORING, changed_hparams
from electra_tf.metrics import statistics
from electra_tf.training.summaries import Console

_FORMAT = 1  # of the results file
_KEPT = ".before"


@dataclasses.dataclass(frozen=True)
class TrialRecord:
    """What one trial gave."""

    trial: int  # its number, from 1
    seed: int  # of its draws
    model_dir: str  # where its model was made, or read from
    global_step: int  # updates done by the weights that were evaluated
    results: dict[str, dict[str, float]]  # task -> the original's figures
    details: dict[str, dict[str, float]]  # task -> figures beyond them
    other_splits: dict[str, dict[str, float]]  # "task/split" -> figures
    collapsed: dict[str, str]  # task -> what is said of every example
    # "task/chance", "task/majority" -> figures of answers without a model;
    # empty in files of earlier versions.
    baselines: dict[str, dict[str, float]] = dataclasses.field(
        default_factory=dict
    )


class ResultsFiles:
    """Reads what earlier trials gave, and writes all files after each."""

    def __init__(
        self,
        config: FinetuningConfig,
        console: Console,
        tasks: Sequence[Task],
        weights: Weights | None = None,
    ) -> None:
        """`weights`: those that the trials start from."""
        self._config = config
        self._console = console
        # Task -> the figure that it names.
        self.metrics = {task.name: task.main_metric for task in tasks}
        self._data = {
            f"data of {task.name}, {split}": file_sha256(paths[0])
            for task in tasks
            for split in ("train", *task.get_dev_splits())
            if config.do_eval and (paths := task.data_files(split))
        } | {
            f"{key} of {task.name}": value
            for task in tasks
            for key, value in dataclasses.asdict(task.spec).items()
            if key
            not in ("files", "hparams", "match")  # compared by what is in them
        }
        self._measures = {
            task.name: task.measure for task in tasks if task.measure
        }
        measures = self._measures.items()
        self._data |= {f"measure of {name}": text for name, text in measures}
        if weights:  # A path may hold others when more trials are asked for.
            self._data["starting weights"] = digest_weights(weights)
        self._in_force = not config.do_train  # whether others' still are
        plot = os.path.splitext(config.results_json)[0] + ".png"
        names = ("results_txt", "results_pkl", "results_json")
        self._paths = [*(getattr(config, name) for name in names), plot]
        trials = range(1, max(config.num_trials, config.n_writes_test) + 1)
        self._predictions = [  # by models that training may replace
            config.test_predictions(task.name, split, trial)
            for task in tasks
            for split in task.get_test_splits()
            for trial in (trials if config.do_train else ())
        ]

    def earlier_trials(self) -> list[TrialRecord]:
        """Finished trials of the run to continue; others' are put aside."""
        config = self._config
        if not config.do_train:
            return []  # They stay until there are others.
        found = None if config.overwrite else _read(config.results_json)
        if not (found and found["config"].get("do_train", True)):
            self._put_aside()
            return []
        before, now = found["config"], config.as_dict()
        differing = changed_hparams(before, now) + list_changes(
            before, now, SCORING
        )
        kept = found.get("data", {})  # Earlier versions have none.
        for name in self._measures:  # Theirs was for English.
            kept.setdefault(f"measure of {name}", "an earlier version's")
        differing += list_changes(kept, self._data, tuple(self._data))
        if differing:
            raise UserError(
                f"{config.results_json} holds the results of a run with other"
                " hparams or data:\n"
                + "".join(f"  {text}\n" for text in differing)
                + "Put them as they were to continue it, give this run a"
                " --run_name, or use --overwrite to start anew. To score its"
                " models anew, set do_train to false."
            )
        return [TrialRecord(**record) for record in found["trials"]]

    def write(self, records: Sequence[TrialRecord]) -> None:
        """Writes all files, each complete or not at all.

        Source: google-research/electra, run_finetuning.py, write_results.
        """
        config = self._config
        results = [record.results for record in records]
        contents = without_nan(self._contents(records))
        text = json.dumps(contents, indent=1, allow_nan=False)
        title = f"{config.model_name}: {', '.join(config.task_names)}"
        # Names that are one object are pickled once: those of an earlier trial
        # come from a file, and would make other bytes of the same values.
        alike = json.loads(json.dumps(results))
        lines = text_of(results) + "".join(
            f"{name}: {text}\n" for name, text in self._measures.items()
        )
        data = [lines, pickle.dumps(alike), f"{text}\n"]
        data.append(draw_scores(records, title, self.metrics))
        if self._in_force:
            self._put_aside()
            self._in_force = False
        for path, content in zip(self._paths, data, strict=True):
            hint = "The model is safe; run the same command again."
            write_atomically(path, content, hint=hint)
        *first, last = self._paths
        self._console.line(f"Wrote {', '.join(first)} and {last}")

    def _contents(self, records: Sequence[TrialRecord]) -> dict[str, Any]:
        everything = [
            {
                task: {**figures, **record.details[task]}
                for task, figures in record.results.items()
            }
            | record.other_splits
            for record in records
        ]
        results = [record.results for record in records]
        best = statistics.best_trial(results, self.metrics)
        now = datetime.datetime.now(datetime.timezone.utc)
        return {
            "format": _FORMAT,
            "time": now.isoformat(timespec="seconds"),
            "trials": [dataclasses.asdict(record) for record in records],
            "statistics": statistics_of(everything),
            "best_trial": None if best is None else records[best].trial,
            "metrics": self.metrics,
            "measures": self._measures,
            "data": self._data,
            "collapsed_trials": [r.trial for r in records if r.collapsed],
            "config": self._config.as_dict(),
        }

    def _put_aside(self) -> None:
        there = [*filter(tf.io.gfile.exists, self._paths + self._predictions)]
        numbered = (f"{_KEPT}{k}" for k in itertools.count(2))
        end = next(
            end
            for end in itertools.chain([_KEPT], numbered)
            if not any(tf.io.gfile.exists(path + end) for path in there)
        )
        for path in there:
            tf.io.gfile.rename(path, path + end)
        if there:
            self._console.line(
                f"Earlier results are kept as {', '.join(there)}, each with"
                f" {end} at the end of its name"
            )


def text_of(results: Sequence[statistics.TrialResults]) -> str:
    """The text file: a line for each trial and task, as the original's."""
    return "".join(
        f"{task}: "
        + " - ".join(f"{name}: {value:.2f}" for name, value in figures.items())
        + "\n"
        for trial in results
        for task, figures in trial.items()
    )


def statistics_of(
    results: Sequence[statistics.TrialResults],
) -> dict[str, dict[str, Any]]:
    """Task -> figure -> statistics, for JSON."""
    return {
        task: {name: found.as_dict() for name, found in figures.items()}
        for task, figures in statistics.summarize(results).items()
    }


def statistics_lines(
    records: Sequence[TrialRecord], metrics: Mapping[str, str | None]
) -> list[str]:
    """The table of all trials, and which of them collapsed."""
    results = [record.results for record in records]
    lines = statistics.table_lines(statistics.summarize(results))
    for record in records:
        for task, what in record.collapsed.items():
            lines.append(f"trial {record.trial} collapsed on {task}: {what}")
    best = statistics.best_trial(results, metrics)
    if len(records) > 1 and best is not None:
        record = records[best]
        lines.append(f"best trial: {record.trial} ({record.model_dir})")
    return lines


def _read(path: str) -> dict[str, Any] | None:
    if not tf.io.gfile.exists(path):
        return None
    try:
        found = read_json(path)
        if found["format"] != _FORMAT:
            raise ValueError(f"format {found['format']}, expected {_FORMAT}")
        for record in found["trials"]:  # The inverse of `without_nan`.
            for group in ("results", "details", "other_splits"):
                for metrics in record[group].values():
                    values = statistics.from_json(metrics.values())
                    metrics.update(zip(metrics, values, strict=True))
        return found
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is no results file of this program ({error!r}); move it"
            " away, or use --overwrite."
        ) from error


def draw_scores(
    records: Sequence[TrialRecord],
    title: str,
    metrics: Mapping[str, str | None],
) -> bytes:
    """Draws the main figure of each task over the trials (at least one)."""
    # After a trial: its first step need not wait for this.
    from matplotlib.figure import Figure

    tasks = list(records[0].results)
    figure = Figure(figsize=(5.0, 3.4 * len(tasks)), layout="constrained")
    figure.suptitle(title)
    grid = figure.subplots(len(tasks), squeeze=False)
    for axes, task in zip(grid.ravel(), tasks, strict=True):
        names = list(records[0].results[task])
        name = statistics.main_metric(names, metrics.get(task))
        values = {r.trial: r.results[task][name] for r in records}
        axes.plot(values.keys(), values.values(), "o-", label=f"dev {name}")
        fell = [r.trial for r in records if task in r.collapsed]
        axes.plot(fell, [values[n] for n in fell], "rx", label="collapsed")
        mean = statistics.describe(list(values.values())).mean
        axes.axhline(mean, linestyle="--", label=f"mean {mean:.2f}")
        axes.set(title=task, xlabel="trial", xticks=list(values))
        axes.legend(fontsize=7)
    return encode_png(figure)
