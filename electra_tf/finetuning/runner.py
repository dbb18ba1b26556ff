# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trials: fine-tunes a model several times over, and says how it went."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import os
import signal
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.formatting import join_names
from electra_tf.checkpoints import tf1
from electra_tf.checkpoints.formats import find_model_folder
from electra_tf.files import filesystem
from electra_tf.finetuning.classification import ClassificationTask
from electra_tf.finetuning.inheritance import with_inherited_heads
from electra_tf.finetuning.initial_checkpoint import open_initial_checkpoint
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.preprocessing import Preprocessor
from electra_tf.finetuning.registry import get_tasks
from electra_tf.finetuning.results import (
    ResultsFiles,
    TrialRecord,
    statistics_lines,
    statistics_of,
)
from electra_tf.finetuning.row_report import bad_rows_in_errors
from electra_tf.finetuning.task import Task
from electra_tf.finetuning.trial import (
    Evaluation,
    Evaluator,
    Row,
    Trial,
    write_test_outputs,
)
from electra_tf.training.checkpointing import (
    CONFIG_FILE,
    find_best_or_latest,
    read_config,
)
from electra_tf.training.devices import create_strategy
from electra_tf.training.loop import TrainingInterruptedError
from electra_tf.training.preemption import PreemptionHandler
from electra_tf.training.run_files import remove_run
from electra_tf.training.summaries import Console, print_start
from electra_tf.training.threads import set_threads
from electra_tf.training.workers import (
    current_worker,
    in_turn,
    refuse_differences,
    reports_lost_workers,
    wait_for_workers,
)

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
    set_threads(config)  # Before TensorFlow starts.
    strategy = create_strategy(config)
    with reports_lost_workers(strategy):
        prepared = _Run(config, strategy, console or Console(), tasks)
        reports = {task.name: task.row_report for task in prepared.tasks}
        with bad_rows_in_errors(reports):
            return prepared.run()


class _Run:
    """The parts of one run, put together."""

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
        self._by_majority = _by_majority(config)
        if self._by_majority:  # There are no models to look for.
            trials = max(config.num_trials, 1)
            config = dataclasses.replace(
                config, do_train=True, num_trials=trials
            )
        elif not config.do_train:
            config = _with_model_to_evaluate(config)
        start = open_initial_checkpoint(config)
        self._config, self._weights = start.config, start.weights
        print_start(console, start.config, self._strategy, start.notes)
        self.tasks = get_tasks(start.config) if tasks is None else tasks
        if not start.config.do_train:
            home = find_model_folder(str(start.config.init_checkpoint))
            for task in self.tasks:  # Those in the data may be others now.
                task.take_labels_of(home)
        if start.weights is not None and not self._by_majority:
            self._weights, notes = with_inherited_heads(
                start.weights, self.tasks, start.config.do_train
            )
            for note in notes:
                console.line(note)
        self._preprocessor = Preprocessor(start.config, self.tasks)
        self._files = ResultsFiles(
            start.config, console, self.tasks, start.weights
        )

    def run(self) -> dict[str, Any]:
        config = self._config
        if config.do_train and not (config.overwrite or self._by_majority):
            _refuse_models_of_others(config)
        with in_turn(self._strategy):
            asked = config.do_eval or (config.do_train and config.overwrite)
            records = self._files.earlier_trials() if asked else []
            done = {record.trial for record in records}
            facts = {"finished trials": sorted(done)}
            if current_worker(self._strategy).count > 1:
                facts |= self._preprocessor.facts()
        refuse_differences(self._strategy, config, facts)
        numbers, interrupted = range(1, config.num_trials + 1), None
        if config.num_trials < 0:
            numbers = itertools.count(1)
        seconds = config.preemption_seconds
        with PreemptionHandler(seconds) as preemption:
            for trial in numbers:
                try:
                    if trial in done:
                        self._console.line(
                            f"Trial {trial}: done by an earlier run"
                        )
                        self._predict_what_is_missing(trial, preemption)
                        continue
                    record = self._run_trial(trial, preemption, config)
                except TrainingInterruptedError:
                    # Another worker may have got it.
                    interrupted = preemption.signal_number or signal.SIGTERM
                    break
                if record:
                    records = sorted([*records, record], key=lambda r: r.trial)
                    if self._is_chief:
                        self._files.write(records)
                last = trial == config.num_trials
                deletes = config.do_train and not config.keep_all_models
                wait_for_workers(self._strategy)  # All are through.
                if deletes and self._is_chief and not last:
                    path = f"{config.model_dir}_{trial}"
                    if remove_run(path, Trial.files):
                        self._console.line(
                            f"keep_all_models is false: deleted {path}"
                        )
        if records:
            self._console.heading(f"Results of {len(records)} trial(s)")
            for text in statistics_lines(records, self._files.metrics):
                self._console.line(text)
        result: dict[str, Any] = {
            "trials": [dataclasses.asdict(record) for record in records],
            "statistics": statistics_of([record.results for record in records]),
        }
        if interrupted is not None:
            result["interrupted"] = interrupted
        return result

    def _print_model(self, model: FinetuningModel) -> None:
        total, encoder = (
            sum(variable.shape.num_elements() for variable in part.variables)
            for part in (model, model.encoder)
        )
        self._console.line(
            f"Model: {total:,} parameters in {len(model.variables)} variables,"
            f" {total - encoder:,} of them in the heads of"
            f" {', '.join(model.task_names)}"
        )

    def _predict_what_is_missing(
        self, trial: int, preemption: PreemptionHandler
    ) -> None:
        """Predicts with an earlier run's model, as far as that is not done."""
        config = self._config
        if not config.write_test_outputs or trial > config.n_writes_test:
            return
        model = find_best_or_latest(f"{config.model_dir}_{trial}")
        made_of = [f"{model}.index"] if model else []
        missing = [
            path
            for task in self.tasks
            for split in task.get_test_splits()
            if task.has_split(split)
            for path in [config.test_predictions(task.name, split, trial)]
            if not tf.io.gfile.exists(path)
            or any(
                tf.io.gfile.stat(path).mtime_nsec
                < tf.io.gfile.stat(used).mtime_nsec
                for used in [*made_of, *(task.data_files(split) or ())[:1]]
            )
        ]
        if not missing:
            return
        if not (self._by_majority or model):
            self._console.warning(
                f"{len(missing)} files of test predictions are not there, or"
                f" older than the test data, such as {missing[0]}; the"
                " model that would make them was not kept (keep_all_models)"
            )
            return
        origins = {**config.origins, "init_checkpoint": _FOUND}
        only = {"do_train": False, "do_eval": False, "origins": origins}
        config = dataclasses.replace(config, **only)
        self._run_trial(trial, preemption, config)

    def _run_trial(
        self,
        trial: int,
        preemption: PreemptionHandler,
        config: FinetuningConfig,
    ) -> TrialRecord | None:
        """Trains, evaluates, predicts; None without evaluation."""
        config = dataclasses.replace(
            config,
            # Of its own draws: data order, dropout, fresh heads.
            seed=zlib.crc32(f"{self._config.seed}:trial {trial}".encode())
            & 0x7FFFFFFF,
            model_dir=f"{self._config.model_dir}_{trial}",
        )
        of = f"/{config.num_trials}" if config.num_trials > 0 else ""
        self._console.heading(f"{config.model_name}: trial {trial}{of}")
        if self._by_majority:
            run = _Majority(self.tasks[0], self._strategy, self._console)
            config = dataclasses.replace(config, model_dir=_NO_MODEL)
            return self._scored(run, trial, config)
        shared = (self._strategy, self._console, preemption)
        run = Trial(
            config, self._weights, self.tasks, self._preprocessor, *shared
        )
        if trial == 1:
            self._print_model(run.model)
        if config.do_train:
            if not run.fine_tune():
                raise TrainingInterruptedError
        else:
            path = str(config.init_checkpoint)
            if config.origins.get("init_checkpoint") == _FOUND:
                path = _trained_model(config.model_dir)
            config = dataclasses.replace(config, init_checkpoint=path)
            run.load(path)
        return self._scored(run, trial, config)

    def _scored(
        self, run: Trial | _Majority, trial: int, config: Any
    ) -> TrialRecord | None:
        record = self._evaluate(run, trial, config) if config.do_eval else None
        if config.write_test_outputs and trial <= config.n_writes_test:
            self._console.heading("Predicting the test set")
            for task in self.tasks:
                if not task.get_test_splits():
                    self._console.warning(
                        f"{task.name} has no test split to predict"
                    )
                write_test_outputs(
                    config, run.evaluator, task, trial, self._console
                )
        return record

    def _evaluate(
        self, run: Trial | _Majority, trial: int, config: FinetuningConfig
    ) -> TrialRecord:
        """Evaluates all tasks on dev, then on their further labelled splits."""
        self._console.heading("Running dev set evaluation")
        others: dict[str, dict[str, float]] = {}
        # The main split last: what scorers write to files is its own.
        for task in self.tasks:
            for split in task.get_dev_splits()[1:]:
                if task.has_split(split):
                    found = run.evaluator.evaluate_task(task, split)
                    others[f"{task.name}/{split}"] = (
                        found.results | found.details
                    )
                    self._console.line(
                        f"{task.name}, {split}: {found.scorer.results_str()}"
                    )
        evaluations = [run.evaluator.evaluate_task(t) for t in self.tasks]
        for found in evaluations:
            self._console.line(f"{found.task}: {found.scorer.results_str()}")
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
            baselines={
                f"{e.task}/{kind}": figures
                for e in evaluations
                for kind, figures in e.scorer.baselines().items()
            },
        )


# WNLI answered by the majority of its training labels, without a model.

_NO_MODEL = "none (wnli_majority)"  # in place of a trial's model


def _by_majority(config: FinetuningConfig) -> bool:
    """Whether a run is of this kind; refuses it beside learned tasks."""
    if config.wnli_majority and len(config.task_names) > 1:
        raise UserError(
            "hparam wnli_majority: wnli is learned together with others"
            f" (task_names {', '.join(config.task_names)}); name wnli alone, or"
            " use run_glue, which takes one task after the other"
        )
    return config.wnli_majority


class _Majority(Evaluator):
    """In a trial's place: every answer is the training labels' shares.

    Source: Mercier, Efficient transfer learning for NLP with ELECTRA (2021),
    table 2: the majority beats all models, and its 56.34 is in the averages.
    """

    global_step = 0

    def __init__(
        self, task: ClassificationTask, strategy: Any, console: Console
    ) -> None:
        """Counts the labels, each once more than it is there."""
        self._config, self._strategy = task.config, strategy
        self.evaluator = self
        examples = task.get_examples("train")
        found = [example.label for example in examples]
        counts = collections.Counter([*task.labels, *found])
        shares = np.array([counts[name] for name in task.labels], np.float32)
        self._logits = np.log(shares / shares.sum())
        for line in task.row_report.summary(task.name):
            console.line(line)
        task.row_report.mark_printed()
        console.line(
            f"{task.name}: no model was used; every answer is"
            f" {max(task.labels, key=counts.get)!r}, the majority of"
            f" {len(examples)} training labels"
        )

    def evaluate_task(self, *arguments: Any) -> Evaluation:
        """That all answers are one is meant here, and no collapse."""
        found = super().evaluate_task(*arguments)
        return dataclasses.replace(found, collapse=None)

    def predict(
        self, task: ClassificationTask, split: str, take: Callable[[Row], None]
    ) -> None:
        for example in task.get_examples(split):
            number = task.label_value(example.label)
            take(
                {
                    "eid": np.int64(example.eid),
                    "label_ids": np.int64(number),
                    "logits": self._logits,
                    "predictions": np.argmax(self._logits),
                    "loss": -self._logits[number],
                }
            )


def _refuse_models_of_others(config: FinetuningConfig) -> None:
    """Raises where training would continue what no run of ours began."""
    folder, stem = os.path.split(f"{config.model_dir}_")
    for name in (
        filesystem.list_directory(folder)
        if filesystem.is_directory(folder)
        else ()
    ):
        trial = name.removeprefix(stem)
        if stem + trial != name or not trial.isdigit():
            continue
        if 0 < config.num_trials < int(trial):
            continue
        found = os.path.join(folder, name)
        path = tf1.find_latest(found)
        if path and read_config(found) is None:
            raise UserError(
                f"{found} holds a model ({os.path.basename(path)}) of the"
                f" original, or of another program: no {CONFIG_FILE} of a run"
                " is beside it. Training does not continue it. To evaluate it,"
                " set do_train to false; to delete it and train anew, use"
                " --overwrite; to keep it beside a new run, give that a"
                " --run_name."
            )


def _with_model_to_evaluate(config: FinetuningConfig) -> FinetuningConfig:
    """Evaluation only: the trials' models and settings, unless given."""
    # Of the trial, or not of evaluation.
    skip = "init_checkpoint model_dir num_trials seed write_test_outputs"
    if config.init_checkpoint and config.is_explicit("init_checkpoint"):
        run = read_config(find_model_folder(config.init_checkpoint)) or {}
        skip += " results_json results_pkl results_txt run_name"
        run = run if "task_names" in run else {}
        config = config.with_run_settings(run, skip.split())
        own = f"{config.model_dir}_1"
        if config.write_test_outputs and find_best_or_latest(own):
            raise UserError(
                f"--init_checkpoint: its test predictions would replace those"
                f" of {own}; give this evaluation another --run_name"
            )
        return dataclasses.replace(config, num_trials=1)
    config = config.with_run_settings(
        read_config(_run_to_evaluate(config)) or {}, skip.split()
    )
    trials = config.num_trials
    if trials < 0 or not config.is_explicit("num_trials"):
        numbered = (f"{config.model_dir}_{k}" for k in itertools.count(1))
        trials = len([*itertools.takewhile(find_best_or_latest, numbered)])
    found = dict.fromkeys(("init_checkpoint", "num_trials"), _FOUND)
    return dataclasses.replace(
        config,
        init_checkpoint=_trained_model(f"{config.model_dir}_1"),
        num_trials=trials,
        origins={**config.origins, **found},
    )


def _run_to_evaluate(config: FinetuningConfig) -> str:
    """Folder of its first trial; without task_names, of the only run."""
    own = f"{config.model_dir}_1"
    if config.is_explicit("task_names") or find_best_or_latest(own):
        return own
    ends = f"_{config.run_name}_model_1" if config.run_name else "_model_1"
    folder = os.path.dirname(config.model_dir)
    found = [
        name
        for name in (
            filesystem.list_directory(folder)
            if filesystem.is_directory(folder)
            else ()
        )
        if name.endswith(ends) and read_config(os.path.join(folder, name))
    ]
    if len(found) > 1:
        raise UserError(
            f"{folder} holds several runs ({join_names(found)}); say which one"
            " to evaluate by its task_names, and run_name if it has one."
        )
    return os.path.join(folder, found[0]) if found else own


def _trained_model(directory: str) -> str:
    path = find_best_or_latest(directory)
    if path is None:
        raise UserError(
            f"do_train is false, and there is no model in {directory}; train"
            " it, lower num_trials, or give the model to evaluate (such as the"
            " trial that keep_all_models=false kept) as init_checkpoint."
        )
    return path
