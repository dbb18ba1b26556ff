# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A study: the validated content of a study file, and its runs.

A run builds data, draws an exam, pre-trains, or fine-tunes on a task. The
digest of a run covers everything that determines its result, so a run that is
changed in the file becomes another run in another folder.
"""

import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from configure.config import SIZE_HPARAMS, TOKENIZER_HPARAMS
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.validation import check_value
from electra_tf.data.record_checks import check_records
from electra_tf.extras.study.arms import Arm, read_arms
from electra_tf.extras.study.checks import (
    CHOOSING_SEEDS,
    check_content,
    check_task,
    name_location,
)
from electra_tf.extras.study.settings import RANDOM, Settings, merge
from electra_tf.files.digests import file_sha256
from electra_tf.files.json_files import read_json
from electra_tf.metrics.direction import lower_is_better
from electra_tf.metrics.trial_statistics import describe, from_json

# Names of inputs whose whole content a line's fingerprint covers.
TASK_FILES = "task_files"
VOCAB_FILE = "vocab_file"
Lines = Mapping[str, Mapping[str, Any]]  # digest -> the line of a finished run


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a study, which a series of processes completes."""

    name: str
    digest: str  # "" until the learning rate is chosen
    # The content of the run's line; {} for data and exams, which have no line.
    facts: dict[str, Any]
    command: Sequence[str] = ()  # program and arguments
    needs: tuple["Run", ...] = ()  # the runs that must finish before this run
    folder: str = ""  # the folder of the model and its results
    makes: str = ""  # the file or folder that the command of data or exam makes
    reads: str = ""  # the patterns of the data files; "": unknown
    # The patterns of all files that determine the results, by name. The exam
    # and checkpoints are compared by themselves.
    inputs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # The initial checkpoint, unless a run of the study makes it.
    start: str = ""


class Study:
    """The arms, tasks and seeds of a study file, and their runs.

    Attributes:
      path: the file.
      name: the file's name without its ending.
      digest: the digest of the file's content and of its base.
      data_dir: the directory of the tasks' data.
      output: the folder of models, log, table and pictures.
      tasks: task -> its hparams.
      seeds: the seeds of pre-training and of the fine-tuning after it.
      figures: task or "pretrain" -> metrics of the table.
      exam: the file of the exam; "" for none.
      arms: the compared settings, at each point of the grid.
      against: the arm, or line of arms, that all others are compared with.
    """

    def __init__(
        self, path: str, output_dir: str = "", data_dir: str = ""
    ) -> None:
        """Read and check a study file.

        Args:
          path: the file.
          output_dir: a replacement for the file's output_dir; "": none.
          data_dir: a replacement for the file's data_dir; "": none.

        Raises:
          UserError: the file has unknown keys or invalid settings, or names
            data that does not exist.
        """
        content = read_json(path)
        base = content.pop("base", "")
        check_value(base, str, f"{path}: base")
        if base:
            base_path = os.path.join(os.path.dirname(path), base)
            content = merge(read_json(base_path), content)
        self.path, self._content = path, content
        self.digest = _digest(content)
        self.name = os.path.splitext(os.path.basename(path))[0]
        with name_location(path):
            check_content(content)
            self.data_dir = data_dir or content.get("data_dir", "")
            folder = os.path.join("runs", self.name)
            self.output = output_dir or content.get("output_dir", folder)
            self.tasks: dict[str, Settings] = content.get("tasks", {})
            self.seeds: list[int] = content.get("seeds", [1])
            self.figures: dict[str, list[str]] = content.get("figures", {})
            self._choice = content.get("choose_learning_rate", {})
            data = list(content.get("data", {}).items())
            self._data = tuple(
                Run(
                    f"data.{file}",
                    _digest(data[:number]),
                    {},
                    command,
                    makes=file,
                )
                for number, (file, command) in enumerate(data, 1)
            )
            self._exams = tuple(
                Run(
                    f"exam.{file}",
                    _digest([data, command]),
                    {},
                    command,
                    makes=file,
                )
                for file, command in content.get("exam", {}).items()
            )
            self.exam = next(iter(content.get("exam", {})), "")
            self.arms = list(read_arms(content, self.output))
            first_arm = self.arms[0].line or self.arms[0].name
            self.against = content.get("against", first_arm)
            self._check_names()
            self._check_runs()

    def update_arms(self) -> None:
        """Read the casing of vocabularies again, after the data was made."""
        with name_location(self.path):
            self.arms = list(read_arms(self._content, self.output))

    def _check_names(self) -> None:
        """Raise a UserError for repeated or unknown names."""
        names = [f"{a.name}/{s}" for a in self.arms for s in self.seeds]
        for name in names:
            if names.count(name) > 1:
                raise UserError(
                    f"arms, grid, seeds: two runs have the name {name};"
                    " expected different names. Change a value or a seed."
                )
        arm_names = {arm.name for arm in self.arms}
        arm_names |= {arm.line for arm in self.arms}
        if self.against not in arm_names:
            raise UserError(
                f"against: unknown arm {self.against!r}; expected one of"
                f" {', '.join(sorted(filter(None, arm_names)))}. Name one of"
                " these arms."
            )
        if self.tasks and not self.data_dir:
            raise UserError(
                "data_dir: missing; expected the directory that contains"
                " finetuning_data. Add data_dir to the file."
            )
        for name in self.figures:
            if name not in ("pretrain", *self.tasks):
                raise UserError(
                    f"figures.{name}: no such task; expected pretrain or a"
                    " task of this study. Add the task, or remove the key."
                )

    def _check_runs(self) -> None:
        """Raise a UserError for invalid settings or missing data."""
        for arm in self.arms:
            if not (arm.start or self._data):
                with name_location("pretrain"):
                    check_records(arm.config, training=True)
            for task in self.tasks:
                # All arms share these metrics, so one check is enough.
                metrics = ()
                if arm is self.arms[0]:
                    metrics = self.figures.get(task, ())
                with name_location(f"tasks.{task}"):
                    self._check_finetuning(arm, task, metrics)

    def _check_finetuning(
        self, arm: Arm, task: str, metrics: Sequence[str]
    ) -> None:
        """Raise a UserError for invalid settings of an arm's fine-tunings."""
        hparams = self._finetuning_hparams(arm, task)
        for choice in ({}, *self._choices()):
            hparams_of_choice = hparams | choice
            config = FinetuningConfig.create(
                arm.name, self.data_dir, **hparams_of_choice
            )
            if config.num_trials < 1:
                raise UserError(
                    f"num_trials is {config.num_trials}; expected at least 1."
                    " Set num_trials to a positive number."
                )
        check_task(config, task, metrics)

    def _finetuning_hparams(self, arm: Arm, task: str) -> Settings:
        """Return the hparams of an arm's fine-tuning on a task."""
        # An arm may start without a checkpoint, so its fine-tunings get the
        # sizes of its pre-training, unless the file sets different sizes.
        sizes = {}
        if arm.config:
            for name in (*SIZE_HPARAMS, *TOKENIZER_HPARAMS):
                sizes[name] = getattr(arm.config, name)
        shared = merge(self._content.get("finetune", {}), self.tasks[task])
        hparams = merge(shared, arm.overrides.get("finetune", {}))
        hparams = {"keep_all_models": False, **hparams, "task_names": [task]}
        return merge(sizes, hparams)

    def runs(self, lines: Lines) -> list[Run]:
        """Return all pre-trainings and fine-tunings, in the order of execution.

        Args:
          lines: the lines of finished runs, which determine the learning rates.
        """
        runs: list[Run] = []
        for seed, arm in itertools.product(self.seeds, self.arms):
            if pretraining := self.pretraining(arm, seed):
                runs.append(pretraining)
            for task in self.tasks:
                runs += self._choosing_runs(arm, task).values()
                runs.append(self.finetuning(arm, seed, task, lines))
        return list({run.name: run for run in runs}.values())

    def pretraining(self, arm: Arm, seed: int) -> Run | None:
        """Return an arm's pre-training; arms with equal settings share one.

        The result is None if the arm has an initial checkpoint or random
        weights.
        """
        if arm.start:
            return None
        arm = next(a for a in self.arms if a.pretrain == arm.pretrain)
        # An exam changes no weight, so the digest does not cover the exam.
        exam = {"exam": self.exam} if self.exam and arm.takes_exams else {}
        facts = {
            "kind": "pretrain",
            "arm": arm.name,
            "seed": seed,
            **arm.cost,
            "hparams": arm.overrides.get("pretrain", {}),
            **exam,
        }
        hparams = {**arm.pretrain, "seed": seed}
        return dataclasses.replace(
            self._make_run(facts, hparams, self._content.get("data"), exam),
            name=f"{arm.name}/{seed}",
            needs=self._data + self._exams,
            reads=arm.config.pretrain_text or arm.config.pretrain_tfrecords,
            inputs=_pretraining_inputs(arm),
        )

    def finetuning(self, arm: Arm, seed: int, task: str, lines: Lines) -> Run:
        """Return the fine-tuning whose scores the study reports."""
        scores = {}
        for rate, run in self._choosing_runs(arm, task).items():
            if results := lines.get(run.digest, {}).get("results"):
                metric = next(iter(results))  # the main metric
                mean = describe(from_json(results[metric])).mean
                if mean == mean:
                    scores[rate] = -mean if lower_is_better(metric) else mean
        overrides: Settings = {}
        if scores:
            overrides["learning_rate"] = max(scores, key=scores.get)
        overrides["seed"] = seed
        run = self._finetuning("", arm, seed, task, overrides)
        if self._choice and not scores:
            return dataclasses.replace(run, digest="")
        return run

    def _choosing_runs(self, arm: Arm, task: str) -> dict[float, Run]:
        """Return the fine-tunings that try learning rates, by learning rate.

        The fine-tunings start from the pre-training of the first seed.
        """
        seed, runs = self.seeds[0], {}
        for choice in self._choices():
            rate = choice["learning_rate"]
            overrides = {**choice, "seed": seed + CHOOSING_SEEDS}
            suffix = f"/learning_rate={rate}"
            runs[rate] = self._finetuning(suffix, arm, seed, task, overrides)
        return runs

    def _choices(self) -> Iterator[Settings]:
        """Yield the hparams for each learning rate that is to be tried."""
        hparams = {"num_trials": 1, **self._choice}
        for rate in hparams.pop("values", ()):
            yield {**hparams, "learning_rate": rate}

    def _finetuning(
        self, suffix: str, arm: Arm, seed: int, task: str, overrides: Settings
    ) -> Run:
        """Return a fine-tuning; its name ends in the suffix."""
        sources: Any = [arm.start, arm.pretrain, self._content.get("data")]
        initial = None if arm.start == RANDOM else arm.start
        start = initial or ""
        pretraining = self.pretraining(arm, seed)
        if pretraining:
            sources, initial = pretraining.digest, pretraining.folder
        paths = {
            "init_checkpoint": initial,
            "preprocessed_data_dir": os.path.join(
                self.output, "finetuning_tfrecords", task
            ),
        }
        if arm.config:
            paths["vocab_file"] = arm.config.vocab_file
        hparams = {**self._finetuning_hparams(arm, task), **overrides}
        reads = os.path.join(self.data_dir, "finetuning_data", task, "*")
        description = hparams.get("task_config")
        if description:
            content = read_json(description)
            if content["name"] == task:
                sources = [sources, file_sha256(description)]
                folder = os.path.dirname(description)
                files = content["files"].values()
                reads = ",".join(os.path.join(folder, name) for name in files)
        inputs = {TASK_FILES: reads}
        if vocab_file := {**paths, **hparams}.get("vocab_file"):
            inputs[VOCAB_FILE] = vocab_file
        stated = arm.overrides.get("finetune", {})
        if "learning_rate" in overrides:
            rate = overrides["learning_rate"]
            stated = {**stated, "learning_rate": rate}
        facts = {
            "kind": "finetune",
            "arm": arm.name,
            "seed": seed,
            "task": task,
            "hparams": stated,
        }
        return dataclasses.replace(
            self._make_run(facts, hparams, sources, paths),
            name=f"{arm.name}/{seed}/{task}{suffix}",
            needs=(pretraining,) if pretraining else self._data,
            reads=reads,
            inputs=inputs,
            start=start,
        )

    def _make_run(
        self,
        facts: dict[str, Any],
        hparams: Settings,
        sources: Any,
        paths: Settings,
    ) -> Run:
        """Return a run with its digest, command and folder.

        Args:
          facts: the content of the run's line.
          hparams: the hparams that determine its result.
          sources: the digests or settings of the runs or files that it starts
            from.
          paths: hparams that the digest does not cover.
        """
        programs = {
            "pretrain": "run_pretraining.py",
            "finetune": "run_finetuning.py",
        }
        digest = _digest([sources, hparams])
        model = f"{facts['kind']}-{digest}"
        command = (
            programs[facts["kind"]],
            f"--data-dir={self.output}",
            f"--model-name={model}",
            f"--hparams={json.dumps({**paths, **hparams})}",
        )
        folder = os.path.join(self.output, "models", model)
        return Run("", digest, facts, command, folder=folder)


def _pretraining_inputs(arm: Arm) -> dict[str, str]:
    """Return the patterns of the files that a pre-training reads, by hparam."""
    config = arm.config
    names = ["pretrain_text" if config.pretrain_text else "pretrain_tfrecords"]
    names.append("eval_text" if config.eval_text else "eval_tfrecords")
    names.append(VOCAB_FILE)
    inputs = {name: getattr(config, name) for name in names}
    return {name: patterns for name, patterns in inputs.items() if patterns}


def _digest(value: Any) -> str:
    """Return the first eight hexadecimal digits of the SHA-256 of a value."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
