# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trials: fine-tunes a model several times over, and says how it went."""

import dataclasses
import zlib
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning import report, scoring
from electra_tf.finetuning import start as directories
from electra_tf.finetuning.preprocessing import Preprocessor
from electra_tf.finetuning.registry import get_tasks
from electra_tf.finetuning.results import (
    ResultsFiles,
    TrialRecord,
    statistics_lines,
)
from electra_tf.finetuning.start import is_stated, resolve_start
from electra_tf.finetuning.task import Task
from electra_tf.finetuning.trial import Trial
from electra_tf.metrics import trials
from electra_tf.training import strategy as strategies
from electra_tf.training.loop import TrainingInterruptedError
from electra_tf.training.session import PreemptionHandler
from electra_tf.training.summaries import Console

# Origin of an `init_checkpoint` that is a trial's own model.
_FOUND = "trained"


def run(
    config: FinetuningConfig,
    console: Console | None = None,
    tasks: list[Task] | None = None,
) -> dict[str, Any]:
    """Trains and evaluates `num_trials` models, as far as that is not done.

    Source: google-research/electra, run_finetuning.py, run_finetuning.
    Differs: seeded, continues, never deletes without `overwrite`, statistics.
    """
    config.check_mode()
    strategies.use_threads(config.threads)  # Before TensorFlow starts.
    return _Run(config, console or Console(), tasks).run()


def trial_seed(seed: int, trial: int) -> int:
    """Seed of a trial's own draws: data order, dropout, fresh heads."""
    return zlib.crc32(f"{seed}:trial {trial}".encode()) & 0x7FFFFFFF


class _Run:
    """The parts of one run, put together."""

    def __init__(
        self,
        config: FinetuningConfig,
        console: Console,
        tasks: list[Task] | None,
    ) -> None:
        self._console = console
        self._strategy = _strategy(config)
        if not config.do_train:
            config = _with_model_to_evaluate(config)
        start = resolve_start(config)
        self._config, self._weights = start.config, start.weights
        report.print_start(console, start.config, start.notes, self._strategy)
        self._tasks = get_tasks(start.config) if tasks is None else tasks
        self._preprocessor = Preprocessor(start.config, self._tasks)
        self._files = ResultsFiles(start.config, console)

    def run(self) -> dict[str, Any]:
        """Runs the trials that are left."""
        config = self._config
        records: list[TrialRecord] = []
        if config.do_eval:
            records = self._files.earlier_trials()
        done = {record.trial for record in records}
        trial, interrupted = 1, None
        with PreemptionHandler() as interruption:
            while config.num_trials < 0 or trial <= config.num_trials:
                if trial in done:
                    self._console.line(f"Trial {trial}: done by an earlier run")
                else:
                    try:
                        record = self._run_trial(trial, interruption)
                    except TrainingInterruptedError:
                        interrupted = interruption.signal_number
                        break
                    if record:
                        records = sorted(
                            [*records, record], key=lambda r: r.trial
                        )
                        self._files.write(records)
                    self._let_go(trial)
                trial += 1
        return self._finish(records, interrupted)

    def _run_trial(
        self, trial: int, interruption: PreemptionHandler
    ) -> TrialRecord | None:
        """Trains, evaluates, predicts; None without evaluation."""
        config = dataclasses.replace(
            self._config,
            seed=trial_seed(self._config.seed, trial),
            model_dir=f"{self._config.model_dir}_{trial}",
        )
        of = f"/{config.num_trials}" if config.num_trials > 0 else ""
        self._console.heading(f"{config.model_name}: trial {trial}{of}")
        run = Trial(
            config,
            self._weights,
            self._tasks,
            self._preprocessor,
            self._strategy,
            self._console,
            interruption,
        )
        if trial == 1:
            report.print_model(self._console, run.model)
        if config.do_train:
            if not run.train():
                raise TrainingInterruptedError
        else:
            config = dataclasses.replace(
                config, init_checkpoint=_model_to_evaluate(config)
            )
            run.load(config.init_checkpoint)
        record = None
        if config.do_eval:
            record = self._evaluate(run, trial, config)
        if config.write_test_outputs and trial <= config.n_writes_test:
            self._console.heading("Predicting the test set")
            for task in self._tasks:
                scoring.write_test_outputs(
                    config, run.evaluator, task, trial, self._console
                )
        return record

    def _evaluate(
        self, run: Trial, trial: int, config: FinetuningConfig
    ) -> TrialRecord:
        """Evaluates all tasks on dev, then on their further labelled splits."""
        self._console.heading("Running dev set evaluation")
        others: dict[str, dict[str, float]] = {}
        # The main split last: what scorers write to files is its own.
        for task in self._tasks:
            for split in task.get_dev_splits()[1:]:
                if task.has_split(split):
                    found = run.evaluator.evaluate_task(task, split)
                    others[f"{task.name}/{split}"] = (
                        found.results | found.details
                    )
                    self._console.line(f"{task.name}, {split}: {found.text}")
        evaluations = [run.evaluator.evaluate_task(t) for t in self._tasks]
        for found in evaluations:
            self._console.line(f"{found.task}: {found.text}")
            for name, value in found.details.items():
                self._console.line(f"  {name}: {value:.2f}")
            if found.collapse:
                self._console.warning(
                    f"trial {trial} collapsed on {found.task}:"
                    f" {found.collapse}. Its figures say nothing of the"
                    " pre-trained model; try other seeds or a lower"
                    " learning_rate."
                )
        return TrialRecord(
            trial=trial,
            seed=config.seed,
            model_dir=config.model_dir
            if config.do_train
            else str(config.init_checkpoint),
            global_step=run.global_step,
            results={e.task: e.results for e in evaluations},
            details={e.task: e.details for e in evaluations},
            other_splits=others,
            collapsed={e.task: e.collapse for e in evaluations if e.collapse},
        )

    def _let_go(self, trial: int) -> None:
        """Deletes a trial's model unless all are kept, or it is the last."""
        config = self._config
        if config.keep_all_models or not config.do_train:
            return
        if trial != config.num_trials:
            path = f"{config.model_dir}_{trial}"
            directories.remove(path)
            self._console.line(f"keep_all_models is false: deleted {path}")

    def _finish(
        self, records: list[TrialRecord], interrupted: int | None
    ) -> dict[str, Any]:
        if records:
            self._console.heading(f"Results of {len(records)} trial(s)")
            for text in statistics_lines(records):
                self._console.line(text)
        summary = trials.summarize([record.results for record in records])
        result: dict[str, Any] = {
            "trials": [dataclasses.asdict(record) for record in records],
            "statistics": {
                task: {name: found.as_dict() for name, found in figures.items()}
                for task, figures in summary.items()
            },
        }
        if interrupted is not None:
            result["interrupted"] = interrupted
        return result


def _strategy(config: FinetuningConfig) -> tf.distribute.Strategy:
    if config.distribution_strategy == "multi_worker":
        raise UserError(
            "distribution_strategy multi_worker: fine-tuning runs on one"
            " machine; use mirrored or auto."
        )
    return strategies.from_config(config)


def _with_model_to_evaluate(config: FinetuningConfig) -> FinetuningConfig:
    """Evaluation only: the trials' own models, unless one is given."""
    if config.init_checkpoint and is_stated(config, "init_checkpoint"):
        return dataclasses.replace(config, num_trials=1)
    path = directories.trained_checkpoint(f"{config.model_dir}_1")
    if path is None:
        raise UserError(
            f"do_train is false, and there is no model in {config.model_dir}_1;"
            " train one, or give the model to evaluate as init_checkpoint."
        )
    return dataclasses.replace(
        config,
        init_checkpoint=path,
        origins={**config.origins, "init_checkpoint": _FOUND},
    )


def _model_to_evaluate(config: FinetuningConfig) -> str:
    """The model that a trial evaluates without training."""
    if config.origins.get("init_checkpoint") != _FOUND:
        return str(config.init_checkpoint)
    path = directories.trained_checkpoint(config.model_dir)
    if path is None:
        raise UserError(
            f"do_train is false, and there is no model in {config.model_dir};"
            " lower num_trials, or train it."
        )
    return path
