# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A training run: build, restore, train, evaluate, save, finish."""

import collections
import contextlib
import dataclasses
import json
import os
import platform
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, ClassVar

import orbit
import tensorflow as tf

from configure.errors import UserError
from electra_tf import __version__
from electra_tf.checkpoints import formats
from electra_tf.files.digests import DIGESTS_FILE
from electra_tf.files.locks import LOCK_FILE, folder_lock
from electra_tf.modeling.precision import SCALE, SKIPPED_IN_ALL, LossScale
from electra_tf.training import checkpointing, summaries
from electra_tf.training.checkpointing import (
    BestCheckpoint,
    Checkpoints,
    DataFingerprint,
)
from electra_tf.training.devices import describe_devices
from electra_tf.training.loop import (
    MAX_CHUNK_STEPS,
    TOKENS,
    NonFiniteLossError,
    StepMetrics,
    TrainingInterruptedError,
    TrainLoop,
    stop_on_non_finite,
)
from electra_tf.training.preemption import PreemptionHandler
from electra_tf.training.replicas import creation_scope
from electra_tf.training.summaries import Console, Panel, Progress
from electra_tf.training.threads import count_cores
from electra_tf.training.workers import (
    current_worker,
    gather,
    wait_for_workers,
)

MAX_REWINDS = 3  # to one checkpoint
REWINDS = "rewinds.jsonl"


@dataclasses.dataclass(frozen=True)
class Schedule:
    """When things happen, in updates; 0 means never."""

    total_steps: int  # the run ends there
    log_every: int  # a row after the first step and then every so many
    save_every: int  # a checkpoint every so many, and at the end
    eval_every: int  # an evaluation every so many, and at the end
    most_per_chunk: int = MAX_CHUNK_STEPS  # between two looks at the host
    stage_ends: int = 0  # there other steps begin, which no row has in common

    def logs_at(self, step: int) -> bool:
        if step in (1, self.stage_ends, self.total_steps):
            return True
        return _due(step, self.log_every)

    def saves_at(self, step: int) -> bool:
        return step == self.total_steps or _due(step, self.save_every)

    def evaluates_at(self, step: int) -> bool:
        if not self.eval_every:
            return False
        return step == self.total_steps or _due(step, self.eval_every)

    def steps_to_next_stop(self, step: int) -> int:
        """Updates from `step` on until the host has something to do."""
        # Wherever a run began, it stops at the same steps.
        most = min(self.most_per_chunk, MAX_CHUNK_STEPS)
        stops = [self.total_steps, (step // most + 1) * most]
        if step < self.stage_ends:
            stops.append(self.stage_ends)
        for every in (self.log_every, self.save_every, self.eval_every):
            if every:
                stops.append((step // every + 1) * every)
        return max(min(stops) - step, 1)


def _due(step: int, every: int) -> bool:
    return bool(every) and step > 0 and step % every == 0


class Run:
    """One run of a model directory, continuing where an earlier one stopped.

    `train` is the whole course of it; what differs between pre-training and
    fine-tuning are the methods that subclasses write: those below, in the order
    of their calls. Several workers share the directory: all compute, the chief
    writes.
    """

    title: str  # of the curves
    own_files: ClassVar[dict[str, Any]]  # arguments of `remove_run`
    build_model: Callable[[], tf.Module]  # a fresh one
    # The batches to train on, and the number of steps.
    prepare_training: Callable[[], tuple[tf.data.Dataset, int]]
    build_optimizer: Callable[[], Any]  # of the model's variables
    # Gives a model without checkpoint the weights it starts from.
    start_fresh: Callable[[], None]
    # Says where the run is, told whether an evaluation is due; whether nothing
    # is left to do.
    is_finished: Callable[[bool], bool]
    announce: Callable[[], None]  # says what will be trained
    build_loop: Callable[[], TrainLoop]  # over `iterator`
    # What a log row begins with, from the steps since the last.
    losses: Callable[[StepMetrics], dict[str, float]]
    # What the progress line shows of a row.
    shown_losses: Callable[[dict[str, Any]], dict[str, str]]
    evaluate: Callable[[], dict[str, float]]  # the model as it is
    # Logs and shows an evaluation after a step.
    evaluated: Callable[[int, dict[str, float]], None]
    panels: Callable[[], Sequence[Panel]]  # what the curves show

    def __init__(
        self,
        config: Any,
        strategy: tf.distribute.Strategy,
        console: Console,
        preemption: PreemptionHandler,
    ) -> None:
        """Builds the model; reads and writes nothing."""
        self.config, self.strategy = config, strategy
        self.console, self.preemption = console, preemption
        self.directory = config.model_dir
        # The one that writes the logs and the kept checkpoints.
        self.is_chief = current_worker(strategy).is_chief
        # Workers other than the chief keep their copies out of its way.
        self.output = self.directory
        if not self.is_chief:
            resolver = strategy.cluster_resolver
            name = f"worker_{resolver.task_id}"
            self.output = os.path.join(self.directory, name)
        self.stopped_early = False  # An evaluation may set it.
        self.data_fingerprint: DataFingerprint | None = (
            None  # known where it trains
        )
        with creation_scope(strategy):
            self.model = self.build_model()
            self.step = orbit.utils.create_global_step()

    def continue_from(self, path: str, with_position: bool = True) -> bool:
        positioned = self.checkpoints.restore(path, with_position)
        self.console.line(f"Continuing from {path} (step {self.global_step:,})")
        return positioned

    def write_settings(self, directory: str) -> None:
        """Writes what the run and its model are beside the checkpoints."""
        config = self.config
        checkpointing.write_config(directory, config.to_json())
        formats.complete_folder(directory, config.as_dict(), config.vocab_file)

    def logged(self, row: dict[str, Any]) -> None:
        """Looks at a row before it joins the log."""

    def finish(self, again: bool = False) -> None:
        """Does what is left to do at the end.

        Where `again`, the run had ended before, and may have been killed
        meanwhile: only what is missing.
        """

    @property
    def global_step(self) -> int:
        """Updates done by the weights that the model has."""
        return int(self.step.numpy())

    def train(self) -> dict[str, Any]:
        dataset, total_steps = self.prepare_training()
        self._build_training(dataset, total_steps)
        # Not before: what makes no model costs none.
        with self._own_directory():
            return self._continue()

    def _continue(self) -> dict[str, Any]:
        if path := self.checkpoints.latest:
            self.continue_from(path)
        else:
            self.start_fresh()
        self.write_settings(self.output)
        self.open_logs()
        # Waits until all workers have read the directory; none may differ.
        step = self.global_step
        first = gather(self.strategy, step)[0]
        if step != first:
            raise UserError(
                f"this worker would start at step {step:,}, the first one at"
                f" step {first:,}: model_dir {self.directory} must be one"
                " directory that all workers share."
            )
        # The run may have stopped before an evaluation was through.
        rows = [row for row in self.eval_log.rows if row["step"] == step]
        due = self.schedule.evaluates_at(step) and not rows
        due = bool(gather(self.strategy, due)[0])
        metric = self.config.keep_best
        row = rows[-1] if rows else {}
        # Where a kill came between; a first stage has nothing to keep.
        told = row.get(metric) is not None and row.get("stage") != 1
        if self.best and told and not self.best.chosen_otherwise:
            self.best.update(step, row)
        if self.is_finished(due):
            if not self.checkpoints.latest:  # Of no step at all.
                self.checkpoints.save()
            self.draw()
            self.finish(again=True)
            return {**self._last_results(), "global_step": step}
        self.announce()
        result = self._train(due)
        if self.stop_requested():  # The rest is made at the next start.
            result["interrupted"] = self._stop_signal()
        if "interrupted" in result:
            self.console.line(
                f"Stopped at step {self.global_step:,}; saved"
                f" {self.checkpoints.latest}. Run the same command again to"
                " continue from there"
                f"{', without --overwrite' * self.config.overwrite}."
            )
        else:
            self.draw()
            self.finish()
        return {**result, "global_step": self.global_step}

    def scored_on(self) -> str:
        """What evaluations are of, in words; "" where that cannot change."""
        return ""

    def stop_requested(self) -> bool:
        """Whether a signal asks any worker to stop; all ask at once."""
        requested = self.preemption.requested()
        return bool(gather(self.strategy, requested).any())

    def _stop_signal(self) -> int:
        # Another worker may have got it.
        return self.preemption.signal_number or signal.SIGTERM

    def keep_if_best(self, step: int, result: dict[str, float]) -> None:
        """Keeps the best evaluation's checkpoint; draws the curves anew."""
        if self.best and (text := self.best.update(step, result)):
            self.console.line(f"  {text}")
        self.draw()

    def draw(self) -> None:
        rows = (self.train_log.rows, self.eval_log.rows)
        summaries.draw_curves(self.output, self.panels(), *rows, self.title)

    @contextlib.contextmanager
    def _own_directory(self) -> Iterator[None]:
        """Makes the model directory, and keeps other runs out of it.

        With `overwrite`, deletes it first.
        """
        path = self.directory
        with contextlib.ExitStack() as stack:
            try:
                there = tf.io.gfile.exists(path)
                if self.is_chief and self.config.overwrite and there:
                    self._check_not_needed(path)
                    with folder_lock(path):
                        if remove_run(path, **self.own_files):
                            self.console.line(f"--overwrite: deleted {path}")
                wait_for_workers(self.strategy)  # Only now others look.
                tf.io.gfile.makedirs(self.output)
                if self.is_chief:
                    stack.enter_context(folder_lock(path))
            except (OSError, tf.errors.OpError) as error:
                raise UserError(
                    f"model_dir {path} cannot be written: {error}. Choose"
                    " another model_dir or data_dir, or correct its"
                    " permissions."
                ) from error
            for folder in ("", formats.BEST):
                checkpointing.sweep(os.path.join(self.output, folder))
            yield

    def _check_not_needed(self, path: str) -> None:
        """Refuses to delete what the run itself starts from."""
        for name in ("init_checkpoint", "vocab_file"):
            given = os.path.realpath(getattr(self.config, name) or os.devnull)
            if f"{given}/".startswith(f"{os.path.realpath(path)}/"):
                raise UserError(
                    f"--overwrite would delete {name} {given}; copy it"
                    " elsewhere, or choose another model_name"
                )

    def _build_training(
        self, dataset: tf.data.Dataset, total_steps: int
    ) -> None:
        config = self.config
        self.schedule = Schedule(
            total_steps,
            config.log_every_n_steps,
            config.save_checkpoints_steps,
            config.eval_every_n_steps,
            config.iterations_per_loop,
            getattr(config, "two_stage_steps", None) or 0,
        )
        with creation_scope(self.strategy):
            self.optimizer = self.build_optimizer()
            self.loss_scale = LossScale.of(config.mixed_precision)
        with tf.device("/cpu:0"):
            self.iterator = iter(dataset)
        self.step_metrics = StepMetrics()
        self.checkpoints = Checkpoints(
            directory=self.directory,
            model=self.model,
            optimizer=self.optimizer,
            step=self.step,
            # Their names are keys of checkpoints.
            position={"iterator": self.iterator, "interval": self.step_metrics},
            extras={
                name: state
                for name, state in (
                    ("loss_scale", self.loss_scale),
                    (DataFingerprint.KEY, self.data_fingerprint),
                )
                if state is not None
            },
            keep=config.keep_checkpoint_max,
            keep_every=getattr(config, "keep_every_n_steps", 0),
            write_directory=self.output,
        )

    def open_logs(self) -> None:
        """Opens them as they were at the step the model has."""
        step, path = self.global_step, self.output
        every = {
            "train": self.schedule.log_every,
            "eval": self.schedule.eval_every,
        }
        self.train_log, self.eval_log = (
            summaries.Log(path, name, step, self.console.warning, every[name])
            for name in every
        )
        self.best = None
        if metric := self.config.keep_best:
            how = (self.checkpoints, self.write_settings, self.scored_on())
            self.best = BestCheckpoint(path, metric, *how)
            if self.best.chosen_otherwise:
                self.console.warning(
                    f"{formats.BEST}/ was chosen by another metric, or on other"
                    " held-out data; the best is chosen anew"
                )

    def _last_results(self) -> dict[str, Any]:
        """What the logs say of a run that needs no more training."""
        last: dict[str, Any] = {}
        if self.train_log.rows:
            last.update(_under_train(self.train_log.rows[-1]))
        if self.eval_log.rows:
            last.update(self.eval_log.rows[-1])
        last.pop("step", None)
        return last

    def _train(self, evaluate_first: bool) -> dict[str, Any]:
        """Trains, logs, saves and evaluates as the schedule says."""
        step = start = self.global_step
        self._progress = Progress(step, self.schedule.total_steps)
        self._row: dict[str, Any] = {}
        self._saved_step: int | None = None if step == 0 else step
        self._rewinds: collections.Counter[int] = collections.Counter()
        self._save()
        loop = self.build_loop()
        result: dict[str, Any] = {}
        try:
            if evaluate_first:
                result = self._evaluate(step)
            while step < self.schedule.total_steps and not self.stopped_early:
                if self.stop_requested():  # while all this was built
                    raise TrainingInterruptedError
                # The first step traces the graph; it is left out of the rates.
                steps = 1
                if step != start:
                    steps = self.schedule.steps_to_next_stop(step)
                loop.train(steps)
                went_on = self._after_chunk(loop, start)
                step = self.global_step
                if went_on and self.schedule.evaluates_at(step):
                    result = self._evaluate(step)
        except TrainingInterruptedError:
            self._after_chunk(loop, start)
            result = {"interrupted": self._stop_signal()}
        self._save()
        return {**_under_train(self._row), **result}

    def _after_chunk(self, loop: TrainLoop, start: int) -> bool:
        """Logs and saves; false where the run went back instead."""
        chunk = loop.take_chunk()
        if not chunk.batches:  # Stopped during an evaluation.
            return True
        step = chunk.first_step
        if step == start:
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
            if self.schedule.logs_at(step):
                self._log(step)
        if self.schedule.saves_at(step):
            self._save()
        return True

    def _rewind(self, error: NonFiniteLossError) -> None:
        """Goes back to the last checkpoint, and on with the batches to come.

        The iterator stays where it is, so that nothing but checkpoints has to
        be kept: a run that is killed meets the same numbers again, and goes
        back again, to the same weights and batches.
        """
        bad, path = self.global_step, self.checkpoints.latest
        self.step_metrics.take()  # sums of steps to be done again
        self.checkpoints.restore(path, but=("iterator",))
        step = self.global_step
        self._rewinds[step] += 1
        if self._rewinds[step] > MAX_REWINDS:
            raise NonFiniteLossError(
                f"{error}\n{MAX_REWINDS} times the run went back to {path} and"
                " on with other batches; the settings, or the weights there,"
                " are at fault."
            ) from error
        self.open_logs()  # without the rows of steps to be done again
        self._progress.first_step_done(step)
        what = str(error).partition(". ")[0]
        self.console.warning(
            f"{what}. on_nonfinite=rewind: back from"
            f" step {bad:,} to {path}, and on with the batches that follow"
            f" ({self._rewinds[step]} of {MAX_REWINDS} times from there)"
        )
        row = {"step": bad, "back_to": step, "error": what}
        with tf.io.gfile.GFile(os.path.join(self.output, REWINDS), "a") as file:
            file.write(json.dumps(row) + "\n")

    def _log(self, step: int) -> None:
        taken = self.step_metrics.take()
        row = self.losses(taken) | {"grad_norm": taken.update_mean("grad_norm")}
        if SCALE in taken.last:
            row |= {name: taken.last[name] for name in (SCALE, SKIPPED_IN_ALL)}
        row["learning_rate"] = taken.last["learning_rate"]
        row |= self._progress.timing(step, taken.mean(TOKENS))
        shown = {**self.shown_losses(row)}
        shown["grad norm"] = f"{row['grad_norm']:.2f}"
        shown["lr"] = f"{row['learning_rate']:.2e}"
        if row.get(SKIPPED_IN_ALL):
            shown["skipped"] = f"{row[SKIPPED_IN_ALL]:.0f}"
        if row["tokens_per_second"] is not None:
            shown["tokens/s"] = f"{row['tokens_per_second']:,.0f}"
        self.console.line(self._progress.line(step, shown))
        self.logged({"step": step, **row})
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
            self.evaluated(step, result)
        return result


def _under_train(row: dict[str, Any]) -> dict[str, Any]:
    """A training row's values, named apart from an evaluation's."""
    return {f"train_{k}": v for k, v in row.items() if k != "step"}


def print_start(
    console: Console,
    config: Any,
    strategy: tf.distribute.Strategy,
    notes: Sequence[str] = (),
) -> None:
    """Prints what was chosen, the devices and what is probably not meant."""
    values = config.as_dict()
    chosen = {
        name: value
        for name, value in values.items()
        if config.origins.get(name) not in ("default", "preset", "derived")
    }
    console.heading("Config:")
    console.table(chosen)
    console.line(
        f"{len(values) - len(chosen)} more are as by default: --print_config"
    )
    console.line()
    versions = f"electra_tf {__version__}, TensorFlow {tf.__version__}"
    console.line(f"{versions}, Python {platform.python_version()}")
    cores = count_cores(config, strategy)
    for text in (*notes, describe_devices(strategy, cores)):
        console.line(text)
    for text in config.warnings():
        console.warning(text)


# What a run leaves in its directory.
OWN_NAMES = (
    "checkpoint",
    # The original's Estimator.
    "eval",
    "graph.pbtxt",
    formats.BEST,
    formats.ELECTRA_CONFIG,
    *formats.VOCAB_FILES,
    DIGESTS_FILE,
    checkpointing.CONFIG_FILE,
    summaries.CURVES_FILE,
    summaries.TENSORBOARD_DIR,
    summaries.TRAIN_LOG,
    summaries.EVAL_LOG,
    REWINDS,
    LOCK_FILE,
)
OWN_PREFIXES = (
    checkpointing.CHECKPOINT_NAME,
    "checkpoint.tmp",
    "events.out.tfevents.",
    "non_finite_step_",
)


def remove_run(
    path: str,
    kind: str,
    names: Collection[str] = (),
    prefixes: Collection[str] = (),
    suffixes: Collection[str] = (),
) -> bool:
    """Deletes a run's directory, if it is there, unless it holds other files.

    Names, prefixes and suffixes are of what `kind` leaves beyond any run.
    """
    if not tf.io.gfile.exists(path):
        return False
    entries = list(tf.io.gfile.listdir(path))
    if tf.io.gfile.isdir(results := os.path.join(path, "results")):
        entries += [f"results/{n}" for n in tf.io.gfile.listdir(results)]
    # Without the slash of a directory and what an unfinished write adds.
    entries = [entry.rstrip("/").removesuffix(".tmp") for entry in entries]
    own_names = {*OWN_NAMES, *names}
    own_prefixes = (*OWN_PREFIXES, *prefixes)
    strange = [
        name
        for name in entries
        if name not in own_names
        and not name.startswith(own_prefixes)
        and not name.endswith(tuple(suffixes))
    ]
    if strange or os.path.islink(path.rstrip("/")):
        raise UserError(
            f"{path} is not deleted, since it holds what is not of"
            f" a {kind} run ({', '.join(sorted(strange)[:5]) or 'a link'})."
            " Remove those yourself or choose another model_dir."
        )
    tf.io.gfile.rmtree(path)
    return True
