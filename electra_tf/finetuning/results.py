# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The results of trials: the files that store them, and their picture.

Source: google-research/electra, run_finetuning.py, write_results.
"""

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
from electra_tf.checkpoints.hparam_changes import list_changes
from electra_tf.checkpoints.weights import Weights
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import file_sha256
from electra_tf.files.figures import encode_png
from electra_tf.files.json_files import without_nan
from electra_tf.finetuning.evaluation import Evaluation
from electra_tf.finetuning.hparam_changes import SCORING, changed_hparams
from electra_tf.finetuning.initial_checkpoint import digest_weights
from electra_tf.finetuning.task import Task
from electra_tf.finetuning.trial_records import (
    FORMAT,
    TrialRecord,
    read_results,
)
from electra_tf.metrics import trial_statistics
from electra_tf.training.console import Console

_BACKUP_SUFFIX = ".before"


def make_record(
    trial: int,
    seed: int,
    model_dir: str,
    global_step: int,
    evaluations: Sequence[Evaluation],
    other_splits: Mapping[str, Evaluation],
) -> TrialRecord:
    """Return the record of a trial.

    Args:
      trial: the number of the trial, from 1.
      seed: the seed of the trial's random draws.
      model_dir: the folder to which the trial's model was written, or from
        which the model was read.
      global_step: the number of updates of the evaluated weights.
      evaluations: the evaluation of each task on the main split.
      other_splits: "task/split" -> the evaluation on a further split.
    """
    baselines = {}
    for evaluation in evaluations:
        for kind, metrics in evaluation.scorer.baselines().items():
            baselines[f"{evaluation.task}/{kind}"] = metrics
    return TrialRecord(
        trial=trial,
        seed=seed,
        model_dir=model_dir,
        global_step=global_step,
        results={e.task: e.results for e in evaluations},
        details={e.task: e.details for e in evaluations},
        other_splits={
            name: evaluation.results | evaluation.details
            for name, evaluation in other_splits.items()
        },
        collapsed={e.task: e.collapse for e in evaluations if e.collapse},
        baselines=baselines,
    )


class ResultsFiles:
    """The files of a run's results: text, pickle, JSON and picture.

    Attributes:
      metrics: task -> the metric that its description names.
    """

    def __init__(
        self,
        config: FinetuningConfig,
        console: Console,
        tasks: Sequence[Task],
        weights: Weights | None = None,
    ) -> None:
        """Record the data and hparams of the results; write no file.

        Args:
          config: the settings of the run.
          console: the console to print to.
          tasks: the tasks of the run.
          weights: the initial weights; None: random.
        """
        self._config = config
        self._console = console
        self.metrics = {task.name: task.main_metric for task in tasks}
        self._measures = {
            task.name: task.measure for task in tasks if task.measure
        }
        self._fingerprint = _make_fingerprint(
            tasks, self._measures, config.do_eval, weights
        )
        # Without training, the files may contain results of another run.
        self._has_foreign_results = not config.do_train
        self._paths = [
            config.results_txt,
            config.results_pkl,
            config.results_json,
            os.path.splitext(config.results_json)[0] + ".png",
        ]
        self._predictions: list[str] = []
        # Predictions of an earlier run are renamed, too, because training may
        # replace the models that made the predictions.
        if config.do_train:
            n_trials = max(config.num_trials, config.n_writes_test)
            self._predictions = [
                config.test_predictions(task.name, split, trial)
                for task in tasks
                for split in task.get_test_splits()
                for trial in range(1, n_trials + 1)
            ]

    def earlier_trials(self) -> list[TrialRecord]:
        """Return the finished trials of the run to continue.

        Results of another run are renamed: here if the run trains, and by
        `write` if the run only evaluates.

        Raises:
          UserError: hparams or data changed since the finished trials, or the
            results file is damaged.
        """
        config = self._config
        if not config.do_train:
            return []
        contents, records = None, []
        if not config.overwrite and tf.io.gfile.exists(config.results_json):
            contents, records = read_results(config.results_json)
        if not (contents and contents["config"].get("do_train", True)):
            self._rename_earlier_results()
            return []
        before, now = contents["config"], config.as_dict()
        changes = changed_hparams(before, now)
        changes += list_changes(before, now, SCORING)
        # Results of earlier versions may have no fingerprint.
        fingerprint = contents.get("data", {})
        # Earlier versions always compared answers as in English.
        for name in self._measures:
            fingerprint.setdefault(f"measure of {name}", "an earlier version's")
        changes += list_changes(
            fingerprint, self._fingerprint, tuple(self._fingerprint)
        )
        if changes:
            listing = "".join(f"  {text}\n" for text in changes)
            raise UserError(
                f"{config.results_json} contains the results of a run with"
                f" other hparams or data:\n{listing}Restore these values to"
                " continue that run, pass a --run_name for this run, or pass"
                " --overwrite to start again. To score the existing models, set"
                " do_train to false."
            )
        return records

    def write(self, records: Sequence[TrialRecord]) -> None:
        """Write all files, each of them completely or not at all."""
        config = self._config
        results = [record.results for record in records]
        contents = without_nan(self._json_contents(records))
        title = f"{config.model_name}: {', '.join(config.task_names)}"
        lines = text_of(results)
        for name, measure in self._measures.items():
            lines += f"{name}: {measure}\n"
        # Pickle's bytes depend on whether equal names are the same object, and
        # results that were read from a file contain separate objects. After a
        # conversion to JSON and back, equal results have equal bytes.
        uniform_results = json.loads(json.dumps(results))
        files = [
            lines,
            pickle.dumps(uniform_results),
            json.dumps(contents, indent=1, allow_nan=False) + "\n",
            draw_scores(records, title, self.metrics),
        ]
        if self._has_foreign_results:
            self._rename_earlier_results()
            self._has_foreign_results = False
        for path, content in zip(self._paths, files, strict=True):
            hint = "The model is safe. Run the same command again."
            write_atomically(path, content, hint=hint)
        *first, last = self._paths
        self._console.line(f"Wrote {', '.join(first)} and {last}")

    def _json_contents(self, records: Sequence[TrialRecord]) -> dict[str, Any]:
        all_metrics = []
        for record in records:
            metrics = {
                task: {**results, **record.details[task]}
                for task, results in record.results.items()
            }
            all_metrics.append(metrics | record.other_splits)
        results = [record.results for record in records]
        best = trial_statistics.best_trial(results, self.metrics)
        now = datetime.datetime.now(datetime.timezone.utc)
        return {
            "format": FORMAT,
            "time": now.isoformat(timespec="seconds"),
            "trials": [dataclasses.asdict(record) for record in records],
            "statistics": statistics_of(all_metrics),
            "best_trial": None if best is None else records[best].trial,
            "metrics": self.metrics,
            "measures": self._measures,
            "data": self._fingerprint,
            "collapsed_trials": [r.trial for r in records if r.collapsed],
            "config": self._config.as_dict(),
        }

    def _rename_earlier_results(self) -> None:
        """Rename earlier results and predictions with an unused suffix."""
        paths = [*filter(tf.io.gfile.exists, self._paths + self._predictions)]
        if not paths:
            return
        suffix, number = _BACKUP_SUFFIX, itertools.count(2)
        while any(tf.io.gfile.exists(path + suffix) for path in paths):
            suffix = f"{_BACKUP_SUFFIX}{next(number)}"
        for path in paths:
            tf.io.gfile.rename(path, path + suffix)
        self._console.line(
            f"Earlier results were renamed: {', '.join(paths)}, each with"
            f" {suffix} at the end of its name"
        )


def _make_fingerprint(
    tasks: Sequence[Task],
    measures: Mapping[str, str],
    do_eval: bool,
    weights: Weights | None,
) -> dict[str, Any]:
    """Return the facts, apart from hparams, on which results depend."""
    fingerprint: dict[str, Any] = {}
    for task in tasks if do_eval else ():
        for split in ("train", *task.get_dev_splits()):
            if paths := task.data_files(split):
                digest = file_sha256(paths[0])
                fingerprint[f"data of {task.name}, {split}"] = digest
    for task in tasks:
        for key, value in dataclasses.asdict(task.spec).items():
            # The content of files is compared instead of their paths; hparams
            # and `match` are compared elsewhere.
            if key not in ("files", "hparams", "match"):
                fingerprint[f"{key} of {task.name}"] = value
    for name, measure in measures.items():
        fingerprint[f"measure of {name}"] = measure
    # The path does not identify the weights, because the file may be replaced.
    if weights:
        fingerprint["starting weights"] = digest_weights(weights)
    return fingerprint


def text_of(results: Sequence[trial_statistics.TrialResults]) -> str:
    """Return the content of the text file: a line for each trial and task.

    Source: google-research/electra, run_finetuning.py, write_results.
    """
    lines = []
    for trial in results:
        for task, metrics in trial.items():
            values = [f"{name}: {value:.2f}" for name, value in metrics.items()]
            lines.append(f"{task}: {' - '.join(values)}\n")
    return "".join(lines)


def statistics_of(
    results: Sequence[trial_statistics.TrialResults],
) -> dict[str, dict[str, Any]]:
    """Return the statistics as JSON values: task -> metric -> statistics."""
    return {
        task: {name: metric.as_dict() for name, metric in metrics.items()}
        for task, metrics in trial_statistics.summarize(results).items()
    }


def draw_scores(
    records: Sequence[TrialRecord],
    title: str,
    metrics: Mapping[str, str | None],
) -> bytes:
    """Return a picture of each task's main metric over the trials.

    Args:
      records: the trials, at least one.
      title: the title of the picture.
      metrics: task -> the metric that its description names.
    """
    # matplotlib is imported here, so that training starts without it.
    from matplotlib.figure import Figure

    tasks = list(records[0].results)
    figure = Figure(figsize=(5.0, 3.4 * len(tasks)), layout="constrained")
    figure.suptitle(title)
    grid = figure.subplots(len(tasks), squeeze=False)
    for axes, task in zip(grid.ravel(), tasks, strict=True):
        names = list(records[0].results[task])
        name = trial_statistics.main_metric(names, metrics.get(task))
        values = {r.trial: r.results[task][name] for r in records}
        axes.plot(values.keys(), values.values(), "o-", label=f"dev {name}")
        collapsed = [r.trial for r in records if task in r.collapsed]
        axes.plot(
            collapsed, [values[n] for n in collapsed], "rx", label="collapsed"
        )
        mean = trial_statistics.describe(list(values.values())).mean
        axes.axhline(mean, linestyle="--", label=f"mean {mean:.2f}")
        axes.set(title=task, xlabel="trial", xticks=list(values))
        axes.legend(fontsize=7)
    return encode_png(figure)
