# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A training run: build, restore, train, evaluate, save, finish."""

import abc
import collections
import contextlib
import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import orbit
import tensorflow as tf

from configure.errors import UserError
from configure.run_config import RunConfig
from electra_tf.checkpoints import formats
from electra_tf.checkpoints.hparam_changes import list_changes
from electra_tf.files.locks import folder_lock
from electra_tf.modeling.precision import SCALE, SKIPPED_IN_ALL, LossScale
from electra_tf.optimization.optimizer import OptimizerState
from electra_tf.training import checkpointing, curves, logs
from electra_tf.training.best_checkpoint import BestCheckpoint
from electra_tf.training.checkpointing import Checkpoints
from electra_tf.training.console import (
    Console,
    Progress,
    ShownValue,
    format_row,
)
from electra_tf.training.curves import Panel
from electra_tf.training.data_position import (
    ITERATOR,
    DataFingerprint,
    open_iterator,
)
from electra_tf.training.intervals import Intervals
from electra_tf.training.loop import (
    TOKENS,
    Loop,
    StepMetrics,
    TrainingInterruptedError,
)
from electra_tf.training.non_finite_loss import (
    NonFiniteLossError,
    stop_on_non_finite,
)
from electra_tf.training.preemption import PreemptionHandler
from electra_tf.training.replicas import creation_scope
from electra_tf.training.run_files import REWINDS_FILE, RunFiles, remove_run
from electra_tf.training.workers import (
    current_worker,
    gather,
    wait_for_workers,
)

MAX_REWINDS = 3  # maximum number of rewinds to one checkpoint


class Run(abc.ABC):
    """A training run, which continues an earlier run in the same directory.

    `train` executes the whole run, from the first line on the console to the
    last file. Pre-training and fine-tuning differ in the abstract methods,
    which are listed in the order of their calls. Several workers share the
    directory: all workers compute, and the chief writes.
    """

    title: str  # title of the curves
    files: ClassVar[RunFiles]  # files that the run writes
    shown: ClassVar[Sequence[ShownValue]]  # values in the progress line
    # Hparams of which every metric of equal weights is a function.
    evaluation_hparams: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def build_model(self) -> tf.Module:
        """Return a model with initial weights."""

    @abc.abstractmethod
    def prepare_training(self) -> tuple[tf.data.Dataset, int]:
        """Return the training batches and the number of training steps."""

    @abc.abstractmethod
    def build_optimizer(self) -> OptimizerState:
        """Return the optimizer of the model's variables."""

    @abc.abstractmethod
    def start_fresh(self) -> None:
        """Load the initial checkpoint, if any, into the model."""

    @abc.abstractmethod
    def build_loop(self) -> Loop:
        """Return the loop that makes updates from batches of `iterator`."""

    @abc.abstractmethod
    def losses(self, interval: StepMetrics) -> dict[str, float]:
        """Return the first values of the log row for an interval of steps.

        Args:
          interval: sums of the step values over these steps.
        """

    @abc.abstractmethod
    def evaluate(self) -> dict[str, float]:
        """Return the metrics of the model with its current weights."""

    @abc.abstractmethod
    def record_evaluation(self, step: int, result: dict[str, float]) -> None:
        """Write an evaluation to `eval_log`; print the metrics and warnings."""

    def __init__(
        self,
        config: RunConfig,
        strategy: tf.distribute.Strategy,
        console: Console,
        preemption: PreemptionHandler,
    ) -> None:
        """Build the model without writing files."""
        self.config, self.strategy = config, strategy
        self.console, self.preemption = console, preemption
        self.directory = config.model_dir
        self.is_chief = current_worker(strategy).is_chief
        # Workers other than the chief write their copies of the files to
        # folders that the chief ignores.
        self.output = self.directory
        if not self.is_chief:
            resolver = strategy.cluster_resolver
            name = f"worker_{resolver.task_id}"
            self.output = os.path.join(self.directory, name)
        self.stopped_early = False  # `record_evaluation` can set this flag.
        # `prepare_training` sets the fingerprint.
        self.data_fingerprint: DataFingerprint | None = None
        with creation_scope(strategy):
            self.model = self.build_model()
            self.step = orbit.utils.create_global_step()

    # Methods that subclasses may extend.

    def continue_from(self, path: str, with_position: bool = True) -> bool:
        """Restore a checkpoint; return whether its position was loaded, too."""
        positioned = self.checkpoints.restore(path, with_position)
        self.console.line(f"Continuing from {path} (step {self.global_step:,})")
        return positioned

    def write_settings(self, directory: str) -> None:
        """Write the hparams and the vocabulary next to the checkpoints."""
        config = self.config
        checkpointing.write_config(directory, config.to_json())
        formats.complete_folder(directory, config.as_dict(), config.vocab_file)

    def open_logs(self) -> None:
        """Open the logs, and drop the rows of steps after the current step."""
        step, path = self.global_step, self.output
        intervals = {
            "train": self.intervals.log_every,
            "eval": self.intervals.eval_every,
        }
        self.train_log, self.eval_log = (
            logs.Log(path, name, step, self.console.warning, interval)
            for name, interval in intervals.items()
        )
        self.best = None
        if metric := self.config.keep_best:
            self.best = BestCheckpoint(
                path,
                metric,
                self.checkpoints,
                self.write_settings,
                self.describe_evaluation_data(),
                self.settings_of_metric(metric),
                starts_over=step == 0,
            )
            if self.best.chosen_otherwise:
                self.console.warning(
                    f"the checkpoint in {formats.BEST}/ was chosen by a"
                    " different metric, on other held-out data, with other"
                    " settings of the metric, or before this run started at"
                    " step 0. The best checkpoint is chosen again"
                )

    def describe_evaluation_data(self) -> str:
        """Return a fingerprint of the evaluation data; "" without such data."""
        return ""

    def settings_of_metric(self, metric: str) -> dict[str, object]:
        """Return further hparams of which a metric is a function."""
        return {}

    def is_finished(self, evaluation_due: bool) -> bool:
        """Return whether all steps and evaluations are done."""
        return self.global_step >= self.intervals.total_steps and (
            not evaluation_due
        )

    def announce(self) -> None:
        """Print a description of the training."""
        self.console.heading("Running training")

    def check_row(self, row: Mapping[str, float]) -> None:  # noqa: B027 (optional)
        """Inspect a row before it is written to `train_log`."""

    def panels(self) -> Sequence[Panel]:
        """Return the panels of the curves."""
        return (
            Panel("Gradient norm before clipping", "grad_norm", log_scale=True),
            Panel("Learning rate", "learning_rate"),
        )

    def finish(self, again: bool = False) -> None:  # noqa: B027 (optional)
        """Write the files of a finished run.

        Args:
          again: whether the run had already ended. Files that a killed run
            left unwritten are written now.
        """

    # Methods that train the model.

    @property
    def global_step(self) -> int:
        """Number of updates of the model's weights."""
        return int(self.step.numpy())

    def train(self) -> dict[str, float]:
        """Train to the last step; return the last row and evaluation.

        If a signal stopped the run, the result contains the signal's number as
        `interrupted`.
        """
        dataset, total_steps = self.prepare_training()
        self._build_training(dataset, total_steps)
        # An error before this line leaves no directory behind.
        with self._locked_directory():
            return self._continue()

    def _build_training(
        self, dataset: tf.data.Dataset, total_steps: int
    ) -> None:
        config = self.config
        self.intervals = Intervals(
            total_steps,
            log_every=config.log_every_n_steps,
            save_every=config.save_checkpoints_steps,
            eval_every=config.eval_every_n_steps,
            max_chunk_steps=config.iterations_per_loop,
            stage_end=getattr(config, "two_stage_steps", None) or 0,
        )
        with creation_scope(self.strategy):
            self.optimizer = self.build_optimizer()
            self.loss_scale = LossScale.of(config.mixed_precision)
        self.iterator = open_iterator(dataset)
        self.step_metrics = StepMetrics()
        # Checkpoints contain the keys of `extras` and `position`, which
        # therefore must not change.
        extras: dict[str, Any] = {}
        if self.loss_scale is not None:
            extras["loss_scale"] = self.loss_scale
        if self.data_fingerprint is not None:
            extras[DataFingerprint.KEY] = self.data_fingerprint
        self.checkpoints = Checkpoints(
            directory=self.directory,
            model=self.model,
            optimizer=self.optimizer,
            step=self.step,
            position={ITERATOR: self.iterator, "interval": self.step_metrics},
            extras=extras,
            keep=config.keep_checkpoint_max,
            keep_every=getattr(config, "keep_every_n_steps", 0),
            write_directory=self.output,
        )

    @contextlib.contextmanager
    def _locked_directory(self) -> Iterator[None]:
        """Create the model directory, and lock it against other runs.

        With `overwrite`, an earlier run in the directory is deleted first.
        """
        path = self.directory
        with contextlib.ExitStack() as stack:
            try:
                exists = tf.io.gfile.exists(path)
                if self.is_chief and self.config.overwrite and exists:
                    self._check_inputs_are_outside(path)
                    with folder_lock(path):
                        if remove_run(path, self.files):
                            self.console.line(f"--overwrite: deleted {path}")
                # Other workers search for checkpoints only after the chief's
                # deletion.
                wait_for_workers(self.strategy)
                tf.io.gfile.makedirs(self.output)
                if self.is_chief:
                    stack.enter_context(folder_lock(path))
            except (OSError, tf.errors.OpError) as error:
                raise UserError(
                    f"model_dir {path} cannot be written: {error}. Choose a"
                    " different model_dir or data_dir, or correct the"
                    " permissions."
                ) from error
            for folder in ("", formats.BEST):
                checkpointing.sweep(os.path.join(self.output, folder))
            yield

    def _check_inputs_are_outside(self, path: str) -> None:
        """Raise a UserError if deleting `path` would delete an input."""
        for name in ("init_checkpoint", "vocab_file"):
            source = os.path.realpath(getattr(self.config, name) or os.devnull)
            if f"{source}/".startswith(f"{os.path.realpath(path)}/"):
                raise UserError(
                    f"--overwrite would delete {name} {source}. Copy {name}"
                    " elsewhere, or choose a different model_name."
                )

    def _continue(self) -> dict[str, Any]:
        if path := self.checkpoints.latest:
            self.continue_from(path)
        else:
            self.start_fresh()
        previous = checkpointing.read_config(self.directory) or {}
        self.write_settings(self.output)
        self.open_logs()
        self._check_steps_of_workers()
        evaluation_due = self._resume_evaluation(previous)
        if self.is_finished(evaluation_due):
            # A run of 0 steps has no checkpoint yet.
            if not self.checkpoints.latest:
                self.checkpoints.save()
            self.draw_curves()
            self.finish(again=True)
            return {**self._last_results(), "global_step": self.global_step}
        self.announce()
        result = self._train(evaluation_due)
        if self.stop_requested():  # The next start writes missing files.
            result["interrupted"] = self._stop_signal()
        if "interrupted" in result:
            self._print_interruption()
        else:
            self.draw_curves()
            self.finish()
        return {**result, "global_step": self.global_step}

    def _check_steps_of_workers(self) -> None:
        """Wait until all workers have loaded checkpoints; compare the steps."""
        step = self.global_step
        chief_step = gather(self.strategy, step)[0]
        if step != chief_step:
            raise UserError(
                f"this worker would start at step {step:,}, but the chief would"
                f" start at step {chief_step:,}. Set --model_dir to one"
                " directory that all workers share."
            )

    def _resume_evaluation(self, previous: Mapping[str, object]) -> bool:
        """Return whether the current step still has to be evaluated.

        The run may have been killed during an evaluation. If the run was killed
        after the evaluation, but before the update of the best checkpoint, this
        method makes the update.

        Args:
          previous: hparams of the start that wrote the last evaluation.
        """
        step = self.global_step
        rows = [row for row in self.eval_log.rows if row["step"] == step]
        due = self.intervals.evaluates_at(step) and not rows
        due = bool(gather(self.strategy, due)[0])
        if self.best:
            self._resume_best(self.best, rows, previous)
        return due

    def _resume_best(
        self,
        best: BestCheckpoint,
        rows: Sequence[Mapping[str, Any]],
        previous: Mapping[str, object],
    ) -> None:
        """Update the best checkpoint from the evaluation of the current step.

        Args:
          best: the best checkpoint.
          rows: evaluations of the current step.
          previous: hparams of the start that wrote these evaluations.
        """
        metric = self.config.keep_best or ""
        names = (*self.evaluation_hparams, *self.settings_of_metric(metric))
        changes = list_changes(previous, self.config.as_dict(), names)
        # Another worker may have read the hparams that the chief has written
        # meanwhile.
        is_changed = bool(gather(self.strategy, bool(changes))[0])
        # The first of two stages trains only the generator, so only models of
        # the second stage can be the best.
        rows = [
            row
            for row in rows
            if row.get(metric) is not None and row.get("stage") != 1
        ]
        if not rows or best.chosen_otherwise:
            return
        if not is_changed:
            best.update(self.global_step, rows[-1])
            return
        self.console.warning(
            f"the evaluation at step {self.global_step:,} is not compared with"
            f" later ones, because its settings differ: {'; '.join(changes)}"
        )

    def stop_requested(self) -> bool:
        """Return whether any worker received a signal to stop.

        All workers must call this method at the same steps.
        """
        requested = self.preemption.requested()
        return bool(gather(self.strategy, requested).any())

    def _stop_signal(self) -> int:
        # The signal's number is unknown if a different worker received the
        # signal.
        return self.preemption.signal_number or signal.SIGTERM

    def _print_interruption(self) -> None:
        remedy = "Run the same command again to continue from this step."
        if self.config.overwrite:
            remedy = (
                "Run the same command again without --overwrite to continue"
                " from this step."
            )
        self.console.line(
            f"Stopped at step {self.global_step:,}; saved"
            f" {self.checkpoints.latest}. {remedy}"
        )

    def keep_if_best(self, step: int, result: Mapping[str, float]) -> None:
        """Save the model if its evaluation is the best so far; draw curves."""
        if self.best and (text := self.best.update(step, result)):
            self.console.line(f"  {text}")
        self.draw_curves()

    def draw_curves(self) -> None:
        rows = (self.train_log.rows, self.eval_log.rows)
        curves.draw_curves(self.output, self.panels(), *rows, self.title)

    def _last_results(self) -> dict[str, Any]:
        """Return the last values of the logs of a finished run."""
        last: dict[str, Any] = {}
        if self.train_log.rows:
            last.update(_with_prefix(self.train_log.rows[-1]))
        if self.eval_log.rows:
            last.update(self.eval_log.rows[-1])
        last.pop("step", None)
        return last

    def _train(self, evaluate_first: bool) -> dict[str, Any]:
        """Make the remaining updates, with checkpoints and evaluations."""
        step = first_step = self.global_step
        self._progress = Progress(step, self.intervals.total_steps)
        self._row: dict[str, Any] = {}
        self._saved_step: int | None = None if step == 0 else step
        self._rewinds: collections.Counter[int] = collections.Counter()
        self._save()
        loop = self.build_loop()
        result: dict[str, Any] = {}
        try:
            if evaluate_first:
                result = self._evaluate(step)
            while step < self.intervals.total_steps and not self.stopped_early:
                # A signal may have been received during the preparation.
                if self.stop_requested():
                    raise TrainingInterruptedError
                # The first chunk has only one step, because the first step
                # traces the graph, and is excluded from the rates.
                steps = 1
                if step != first_step:
                    steps = self.intervals.steps_to_next_stop(step)
                loop.train(steps)
                continued = self._after_chunk(loop, first_step)
                step = self.global_step
                if continued and self.intervals.evaluates_at(step):
                    result = self._evaluate(step)
        except TrainingInterruptedError:
            self._after_chunk(loop, first_step)
            result = {"interrupted": self._stop_signal()}
        self._save()
        return {**_with_prefix(self._row), **result}

    def _after_chunk(self, loop: Loop, first_step: int) -> bool:
        """Log and save a chunk of steps; return False if the run is rewound."""
        chunk = loop.take_chunk()
        if not chunk.batches:  # A signal was received during an evaluation.
            return True
        step = chunk.first_step
        if step == first_step:
            self._progress.first_step_done(step + 1)
        try:
            stop_on_non_finite(chunk, self.config.seed, self.output)
        except NonFiniteLossError as error:
            if self.config.on_nonfinite != "rewind":
                raise
            self._rewind(error)
            return False
        for values in chunk.values:
            step += 1
            self.step_metrics.add(chunk.names, values)
            if self.intervals.logs_at(step):
                self._log(step)
        if self.intervals.saves_at(step):
            self._save()
        return True

    def _rewind(self, error: NonFiniteLossError) -> None:
        """Restore the latest checkpoint, and continue with the next batches.

        The iterator keeps its position. No state of the rewind is saved,
        because a killed run reaches the same numbers again, and rewinds again
        to the same weights and batches.
        """
        bad_step, path = self.global_step, self.checkpoints.latest
        # A run saves a checkpoint before its first step, so the path is None
        # only if the checkpoints were deleted.
        if path is None:
            raise error
        # The sums are discarded, because they belong to steps that are
        # repeated.
        self.step_metrics.take()
        self.checkpoints.restore(path, exclude=(ITERATOR,))
        step = self.global_step
        self._rewinds[step] += 1
        if self._rewinds[step] > MAX_REWINDS:
            raise NonFiniteLossError(
                f"{error}\nThe run was rewound to {path} {MAX_REWINDS} times"
                " and continued with other batches each time. The cause is"
                " therefore in the settings or in these weights. Lower"
                " learning_rate, or raise num_warmup_steps."
            ) from error
        # Opening the logs again drops the rows of steps that are repeated.
        self.open_logs()
        self._progress.first_step_done(step)
        reason = str(error).partition(". ")[0]
        self.console.warning(
            f"{reason}. on_nonfinite=rewind: going back from step {bad_step:,}"
            f" to {path}, and continuing with the following batches (rewind"
            f" {self._rewinds[step]} of at most {MAX_REWINDS} to this"
            " checkpoint)"
        )
        row = {"step": bad_step, "back_to": step, "error": reason}
        rewinds_path = os.path.join(self.output, REWINDS_FILE)
        with tf.io.gfile.GFile(rewinds_path, "a") as file:
            file.write(json.dumps(row) + "\n")

    def _log(self, step: int) -> None:
        interval = self.step_metrics.take()
        row: dict[str, Any] = {**self.losses(interval)}
        row["grad_norm"] = interval.update_mean("grad_norm")
        if SCALE in interval.last:
            row[SCALE] = interval.last[SCALE]
            row[SKIPPED_IN_ALL] = interval.last[SKIPPED_IN_ALL]
        row["learning_rate"] = interval.last["learning_rate"]
        row |= self._progress.timing(step, interval.mean(TOKENS))
        shown = format_row(row, self.shown)
        self.console.line(self._progress.line(step, shown))
        self.check_row({"step": step, **row})
        self.train_log.write(step, row)
        self._row = row

    def _save(self) -> None:
        step = self.global_step
        if step != self._saved_step:
            with self._progress.pause():
                self.checkpoints.save()
            self._saved_step = step

    def _evaluate(self, step: int) -> dict[str, float]:
        with self._progress.pause():
            result = self.evaluate()
            self.record_evaluation(step, result)
        return result


def _with_prefix(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a training row's values with the prefix `train_`."""
    return {f"train_{k}": v for k, v in row.items() if k != "step"}
