# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The fine-tuning of a model in several trials.

Source: google-research/electra, run_finetuning.py, run_finetuning.
"""

from __future__ import annotations

import dataclasses
import itertools
import signal
import zlib
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints.formats import find_model_folder
from electra_tf.finetuning.evaluation import Evaluator
from electra_tf.finetuning.inherited_heads import with_inherited_heads
from electra_tf.finetuning.initial_checkpoint import open_initial_checkpoint
from electra_tf.finetuning.majority import (
    NO_MODEL,
    MajorityEvaluator,
    check_alone,
)
from electra_tf.finetuning.predictions import (
    is_predicted,
    write_test_outputs,
)
from electra_tf.finetuning.preprocessing import Preprocessor
from electra_tf.finetuning.registry import get_tasks
from electra_tf.finetuning.results import (
    ResultsFiles,
    make_record,
    statistics_of,
)
from electra_tf.finetuning.row_report import bad_rows_in_errors
from electra_tf.finetuning.summaries import (
    print_evaluations,
    print_model,
    print_results,
)
from electra_tf.finetuning.task import Task
from electra_tf.finetuning.trained_models import (
    TRAINED,
    find_trained_model,
    refuse_foreign_models,
    with_model_to_evaluate,
)
from electra_tf.finetuning.trial import Trial
from electra_tf.finetuning.trial_records import TrialRecord
from electra_tf.training.best_checkpoint import find_best_or_latest
from electra_tf.training.console import Console, print_start
from electra_tf.training.devices import create_strategy
from electra_tf.training.loop import TrainingInterruptedError
from electra_tf.training.preemption import PreemptionHandler
from electra_tf.training.run_files import remove_run
from electra_tf.training.threads import set_threads
from electra_tf.training.workers import (
    current_worker,
    in_turn,
    refuse_differences,
    reports_lost_workers,
    wait_for_workers,
)


def run(
    config: FinetuningConfig,
    console: Console | None = None,
    tasks: list[Task] | None = None,
) -> dict[str, Any]:
    """Train and evaluate `num_trials` models; skip finished trials.

    Differs: every trial has its own seed, a stopped run can continue, models
      are deleted only if `overwrite` is set, and the results include
      statistics.

    Args:
      config: the settings.
      console: the console to print to.
      tasks: the tasks; None: those that `task_names` names.

    Returns:
      `trials`: the records of all trials; `statistics`: task -> metric ->
      statistics; `interrupted`: the number of the signal that stopped the run,
      if one did.
    """
    config.check_mode()
    # TensorFlow reads these settings only when it starts.
    set_threads(
        config.threads, config.micro_batch_size, config.lets_cores_share
    )
    strategy = create_strategy(config)
    with reports_lost_workers(strategy):
        prepared = _Run(config, strategy, console or Console(), tasks)
        reports = {task.name: task.row_report for task in prepared.tasks}
        with bad_rows_in_errors(reports):
            return prepared.run()


class _Run:
    """The trials of one configuration, and their common state."""

    def __init__(
        self,
        config: FinetuningConfig,
        strategy: tf.distribute.Strategy,
        console: Console,
        tasks: list[Task] | None,
    ) -> None:
        self._console = console
        self._strategy = strategy
        self._is_chief = current_worker(strategy).is_chief
        self._by_majority = config.wnli_majority
        if self._by_majority:
            check_alone(config.task_names)
            # The majority baseline has no model to load, so every trial is
            # computed again.
            config = dataclasses.replace(
                config, do_train=True, num_trials=max(config.num_trials, 1)
            )
        elif not config.do_train:
            config = with_model_to_evaluate(config)
        initial = open_initial_checkpoint(config)
        self._config, self._weights = initial.config, initial.weights
        print_start(console, self._config, strategy, initial.notes)
        self.tasks = get_tasks(self._config) if tasks is None else tasks
        if not self._config.do_train:
            # The model's labels are loaded, because the labels in the data may
            # have changed since training.
            folder = find_model_folder(str(self._config.init_checkpoint))
            for task in self.tasks:
                task.load_model_labels(folder)
        if self._weights is not None and not self._by_majority:
            self._weights, notes = with_inherited_heads(
                self._weights, self.tasks, self._config.do_train
            )
            for note in notes:
                console.line(note)
        self._preprocessor = Preprocessor(self._config, self.tasks)
        self._files = ResultsFiles(
            self._config, console, self.tasks, initial.weights
        )

    def run(self) -> dict[str, Any]:
        config = self._config
        if config.do_train and not (config.overwrite or self._by_majority):
            refuse_foreign_models(config.model_dir, config.num_trials)
        records = self._read_finished_trials()
        finished = {record.trial for record in records}
        interrupted = None
        with PreemptionHandler(config.preemption_seconds) as preemption:
            try:
                for trial in self._trial_numbers():
                    if trial in finished:
                        self._console.line(
                            f"Trial {trial}: an earlier run finished this trial"
                        )
                        self._predict_missing(trial, preemption)
                        continue
                    record = self._run_trial(trial, preemption, config)
                    if record:
                        records.append(record)
                        records.sort(key=lambda record: record.trial)
                        if self._is_chief:
                            self._files.write(records)
                    wait_for_workers(self._strategy)
                    self._delete_unless_kept(trial)
            except TrainingInterruptedError:
                # `signal_number` is not set if another worker received the
                # signal.
                interrupted = preemption.signal_number or signal.SIGTERM
        print_results(self._console, records, self._files.metrics)
        result: dict[str, Any] = {
            "trials": [dataclasses.asdict(record) for record in records],
            "statistics": statistics_of([record.results for record in records]),
        }
        if interrupted is not None:
            result["interrupted"] = interrupted
        return result

    def _read_finished_trials(self) -> list[TrialRecord]:
        """Return the finished trials, which must be the same on all workers.

        Without evaluations, results matter only if `overwrite` renames them.
        """
        config = self._config
        with in_turn(self._strategy):
            records = []
            if config.do_eval or (config.do_train and config.overwrite):
                records = self._files.earlier_trials()
            facts: dict[str, Any] = {
                "finished trials": sorted({record.trial for record in records})
            }
            if current_worker(self._strategy).total > 1:
                facts |= self._preprocessor.facts()
        refuse_differences(self._strategy, config.as_dict(), facts)
        return records

    def _trial_numbers(self) -> Iterable[int]:
        """Return the trials' numbers, without end if num_trials is negative."""
        if self._config.num_trials < 0:
            return itertools.count(1)
        return range(1, self._config.num_trials + 1)

    def _run_trial(
        self,
        trial: int,
        preemption: PreemptionHandler,
        config: FinetuningConfig,
    ) -> TrialRecord | None:
        """Run a trial; return its results, or None if it was not evaluated."""
        name = f"{self._config.seed}:trial {trial}"
        config = dataclasses.replace(
            config,
            # The seed gives each trial its own data order, dropout and initial
            # heads.
            seed=zlib.crc32(name.encode()) & 0x7FFFFFFF,
            model_dir=f"{self._config.model_dir}_{trial}",
        )
        total = f"/{config.num_trials}" if config.num_trials > 0 else ""
        self._console.heading(f"{config.model_name}: trial {trial}{total}")
        if self._by_majority:
            evaluator = MajorityEvaluator(
                self.tasks[0], self._strategy, self._console
            )
            config = dataclasses.replace(config, model_dir=NO_MODEL)
            return self._score(evaluator, trial, config, global_step=0)
        for task in self.tasks:
            # The next statement builds the model, which needs the labels in the
            # data.
            task.resolve_labels()
        run = Trial(
            config,
            self._weights,
            self.tasks,
            self._preprocessor,
            self._strategy,
            self._console,
            preemption,
        )
        if trial == 1:
            print_model(self._console, run.model)
        if config.do_train:
            if not run.fine_tune():
                raise TrainingInterruptedError
        else:
            path = str(config.init_checkpoint)
            if config.origins.get("init_checkpoint") == TRAINED:
                path = find_trained_model(config.model_dir)
            config = dataclasses.replace(config, init_checkpoint=path)
            run.load(path)
        return self._score(run.evaluator, trial, config, run.global_step)

    def _score(
        self,
        evaluator: Evaluator,
        trial: int,
        config: FinetuningConfig,
        global_step: int,
    ) -> TrialRecord | None:
        """Evaluate and predict as `config` sets; return the results.

        The result is None without an evaluation.
        """
        record = None
        if config.do_eval:
            self._console.heading("Running dev set evaluation")
            # The main splits come last, because each evaluation overwrites the
            # scorers' files.
            other_splits = evaluator.evaluate_other_splits(self.tasks)
            evaluations = [evaluator.evaluate_task(t) for t in self.tasks]
            print_evaluations(self._console, trial, evaluations, other_splits)
            model_dir = config.model_dir
            if not config.do_train:
                model_dir = str(config.init_checkpoint)
            record = make_record(
                trial,
                config.seed,
                model_dir,
                global_step,
                evaluations,
                other_splits,
            )
        if config.write_test_outputs and trial <= config.n_writes_test:
            self._console.heading("Predicting the test set")
            for task in self.tasks:
                if not task.get_test_splits():
                    self._console.warning(
                        f"{task.name}: the task has no test split to predict"
                    )
                for split in task.get_test_splits():
                    path = config.test_predictions(task.name, split, trial)
                    write_test_outputs(
                        evaluator, task, split, path, self._console
                    )
        return record

    def _predict_missing(
        self, trial: int, preemption: PreemptionHandler
    ) -> None:
        """Predict the test splits that a finished trial has not predicted."""
        config = self._config
        if not config.write_test_outputs or trial > config.n_writes_test:
            return
        model = find_best_or_latest(f"{config.model_dir}_{trial}")
        missing = []
        for task in self.tasks:
            for split in filter(task.has_split, task.get_test_splits()):
                path = config.test_predictions(task.name, split, trial)
                if not is_predicted(task, split, path, model):
                    missing.append(path)
        if not missing:
            return
        if not (self._by_majority or model):
            self._console.warning(
                f"{len(missing)} files of test predictions, such as"
                f" {missing[0]}, are missing or older than the test data, and"
                f" the model of trial {trial} was not kept. Train again with"
                " keep_all_models set to true"
            )
            return
        config = dataclasses.replace(
            config,
            do_train=False,
            do_eval=False,
            origins={**config.origins, "init_checkpoint": TRAINED},
        )
        self._run_trial(trial, preemption, config)

    def _delete_unless_kept(self, trial: int) -> None:
        """Delete the model of a trial, but not the last model of a run.

        If `keep_all_models` is true, no model is deleted.
        """
        config = self._config
        is_last = trial == config.num_trials
        if is_last or config.keep_all_models or not config.do_train:
            return
        path = f"{config.model_dir}_{trial}"
        if self._is_chief and remove_run(path, Trial.files):
            self._console.line(
                f"Deleted {path}, because keep_all_models is false"
            )
