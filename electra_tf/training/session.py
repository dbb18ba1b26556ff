# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The outer loop of a run: log, save, evaluate, stop."""

import contextlib
import dataclasses
import io
import os
import signal
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Protocol

import orbit
import tensorflow as tf

from electra_tf.training.checkpointing import Checkpoints
from electra_tf.training.loop import (
    MAX_CHUNK_STEPS,
    EvalLoop,
    StepMetrics,
    TrainingInterruptedError,
    TrainLoop,
    stop_on_non_finite,
)
from electra_tf.training.summaries import Console, Progress

# Turns SIGTERM and SIGINT into a request to stop after the current step.


class PreemptionHandler:
    """While active, notes the first signal; a second one stops at once."""

    def __init__(self) -> None:
        """Nothing is installed before `with`."""
        self.signal_number: int | None = None
        self._previous: dict[int, object] = {}

    def requested(self) -> bool:
        """Whether a stop was asked for."""
        return self.signal_number is not None

    def __enter__(self) -> "PreemptionHandler":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *unused: object) -> None:
        self._put_back()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested():
            self._put_back()
            raise KeyboardInterrupt
        self.signal_number = number
        # Not print: the signal may have come in the middle of one.
        os.write(2, b"\nstopping after this step; once more stops at once\n")

    def _put_back(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}


class Sink(Protocol):
    """Takes rows of numbers."""

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Takes one row."""


@dataclasses.dataclass(frozen=True)
class Schedule:
    """When things happen, in updates; 0 means never.

    Attributes:
      total_steps: the run ends there.
      log_every: a row after the first step and then every so many.
      save_every: a checkpoint every so many, and at the end.
      eval_every: an evaluation every so many, and at the end.
      eval_steps: batches of an evaluation.
      most_per_chunk: updates between two looks at the host.
    """

    total_steps: int
    log_every: int
    save_every: int
    eval_every: int
    eval_steps: int
    most_per_chunk: int = MAX_CHUNK_STEPS

    def logs_at(self, step: int) -> bool:
        """Whether a row is written after update `step`."""
        return step in (1, self.total_steps) or _due(step, self.log_every)

    def saves_at(self, step: int) -> bool:
        """Whether a checkpoint is written after update `step`."""
        return step == self.total_steps or _due(step, self.save_every)

    def evaluates_at(self, step: int) -> bool:
        """Whether an evaluation follows update `step`."""
        if not self.eval_every:
            return False
        return step == self.total_steps or _due(step, self.eval_every)

    def steps_to_next_stop(self, step: int) -> int:
        """Updates from `step` on until the host has something to do."""
        most = min(self.most_per_chunk, MAX_CHUNK_STEPS)
        stops = [self.total_steps, step + most]
        for every in (self.log_every, self.save_every, self.eval_every):
            if every:
                stops.append((step // every + 1) * every)
        return max(min(stops) - step, 1)

    def next_evaluation(self, step: int) -> int:
        """The step at which training next pauses for an evaluation."""
        if not self.eval_every:
            return self.total_steps
        after = (step // self.eval_every + 1) * self.eval_every
        return min(after, self.total_steps)


@dataclasses.dataclass
class Reporting:
    """What the room above wants to see of a run.

    Attributes:
      row: interval -> the values of a log row (timing is added).
      shown: row -> items of the progress line, as text.
      tokens: name of the step value that counts tokens, for the rate.
      train_sinks: take the training rows.
      evaluated: called with step and result after each evaluation.
    """

    row: Callable[[StepMetrics], dict[str, Any]]
    shown: Callable[[dict[str, Any]], dict[str, str]]
    tokens: str
    train_sinks: Sequence[Sink]
    evaluated: Callable[[int, dict[str, float]], None]


class TrainingSession:
    """Drives `orbit.Controller` through the schedule."""

    def __init__(
        self,
        *,
        schedule: Schedule,
        trainer: TrainLoop,
        evaluator: EvalLoop | None,
        checkpoints: Checkpoints,
        interval: StepMetrics,
        interruption: PreemptionHandler,
        reporting: Reporting,
        console: Console,
        step: tf.Variable,
        seed: int,
        directory: str,
        strategy: tf.distribute.Strategy,
    ) -> None:
        """Ties the parts of a run; see their own docs.

        Args:
          evaluator: runs an evaluation, or None.
          step: int64 scalar, updates done so far.
        """
        self._schedule = schedule
        self._trainer = trainer
        self._evaluator = evaluator
        self._checkpoints = checkpoints
        self._interval = interval
        self._interruption = interruption
        self._reporting = reporting
        self._console = console
        self._step = step
        self._seed = seed
        self._directory = directory
        self._strategy = strategy
        self._start_step = 0
        self._saved_step: int | None = None
        self._row: dict[str, Any] = {}

    def run(self, evaluate_first: bool = False) -> dict[str, Any]:
        """Trains to the end of the schedule, or until a stop is asked for."""
        step = self._start_step = int(self._step.numpy())
        self._progress = Progress(step, self._schedule.total_steps)
        if step == 0:
            self._save()
        else:
            self._saved_step = step
        result: dict[str, Any] = {}
        try:
            controller = self._controller()
            if evaluate_first:
                result = self._evaluate(controller)
            while step < self._schedule.total_steps:
                step = self._schedule.next_evaluation(step)
                with _silence():
                    controller.train(step, checkpoint_at_completion=False)
                if self._schedule.evaluates_at(step):
                    result = self._evaluate(controller)
        except TrainingInterruptedError:
            self._after_chunk({})
            self._save()
            result = {"interrupted": self._interruption.signal_number}
        return {**under_train(self._row), **result}

    def _controller(self) -> orbit.Controller:
        return orbit.Controller(
            global_step=self._step,
            trainer=self._trainer,
            evaluator=self._evaluator,
            strategy=self._strategy,
            train_actions=[self._after_chunk],
            steps_per_loop=self._steps_to_next_stop,
        )

    def _steps_to_next_stop(self, step: int) -> int:
        if step == self._start_step:
            return 1  # Traces the graph; left out of the rates.
        return self._schedule.steps_to_next_stop(step)

    def _after_chunk(self, unused_output: dict[str, Any]) -> None:
        chunk = self._trainer.take_chunk()
        if not chunk.batches:  # Stopped during an evaluation.
            return
        step = chunk.first_step
        if step == self._start_step:
            self._progress.first_step_done(step + 1)
        stop_on_non_finite(chunk, self._seed, self._directory)
        for values in chunk.values:
            step += 1
            self._interval.add(chunk.names, values)
            if self._schedule.logs_at(step):
                self._log(step)
        if self._schedule.saves_at(step):
            self._save()

    def _log(self, step: int) -> None:
        taken = self._interval.take()
        timing = self._progress.timing(step, taken.mean(self._reporting.tokens))
        self._row = {**self._reporting.row(taken), **timing}
        shown = self._reporting.shown(self._row)
        self._console.line(self._progress.line(step, shown))
        for sink in self._reporting.train_sinks:
            sink.write(step, self._row)

    def _save(self) -> None:
        step = int(self._step.numpy())
        if step != self._saved_step:
            with self._progress.pause():
                self._checkpoints.save()
            self._saved_step = step

    def _evaluate(self, controller: orbit.Controller) -> dict[str, float]:
        with self._progress.pause():
            with _silence():
                result = controller.evaluate(self._schedule.eval_steps)
            result.pop("steps_per_second", None)
            self._reporting.evaluated(int(self._step.numpy()), result)
        return result


def under_train(row: dict[str, Any]) -> dict[str, Any]:
    """A training row's values, named apart from an evaluation's."""
    return {f"train_{k}": v for k, v in row.items() if k != "step"}


@contextlib.contextmanager
def _silence():
    """Drops orbit's own lines on standard output; ours go to the console."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def _due(step: int, every: int) -> bool:
    return bool(every) and step > 0 and step % every == 0
