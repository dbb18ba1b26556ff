# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The console of a run: settings, progress, warnings and evaluations."""

import contextlib
import datetime
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TextIO

import tensorflow as tf

from configure.run_config import RunConfig
from electra_tf import __version__
from electra_tf.modeling.precision import SKIPPED_IN_ALL
from electra_tf.training.devices import describe_devices
from electra_tf.training.threads import count_cores


class Console:
    """A console that flushes each line immediately."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Set the stream; None means the current standard output."""
        self._stream = stream or sys.stdout

    def line(self, text: str = "") -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def heading(self, text: str) -> None:
        rule = "=" * 80
        self.line(rule)
        self.line(text)
        self.line(rule)

    def table(self, values: dict[str, object]) -> None:
        width = max(map(len, values), default=0)
        for key, value in values.items():
            self.line(f"{key + ':':<{width + 1}} {value}")

    def warning(self, text: str) -> None:
        """Write a line that starts with WARNING."""
        self.line(f"WARNING: {text}")


class Progress:
    """The progress line: step, rate, elapsed and remaining time.

    Source: google-research/electra, util/training_utils.py, ETAHook.

    Differs: the rate excludes the first step, in which the graph is traced, so
    that the remaining time is accurate from the start; the original's rate
    includes this step. The elapsed time includes all steps.
    """

    def __init__(
        self,
        start_step: int,
        total_steps: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Start the clock at `start_step` of `total_steps`."""
        self._clock = clock
        self._total = total_steps
        self._start_step = start_step
        self._start = clock()
        self._rate_from: tuple[int, float] = (start_step, self._start)
        self._last = self._rate_from

    def first_step_done(self, step: int) -> None:
        """Measure rates from `step` on, to exclude the tracing of the graph."""
        self._rate_from = self._last = (step, self._clock())

    def timing(
        self, step: int, tokens_per_step: float
    ) -> dict[str, float | None]:
        """Return the elapsed time, and the rates since the last call.

        Rates are None until a step has been measured.
        """
        now = self._clock()
        steps, seconds = step - self._last[0], now - self._last[1]
        self._last = (step, now)
        rate = steps / max(seconds, 1e-9) if steps else None
        return {
            "seconds": now - self._start,
            "steps_per_second": rate,
            "tokens_per_second": rate and rate * tokens_per_step,
        }

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Exclude the block's time from the rates of `timing`.

        The rate and the remaining time of `line` include this time, because
        later saving and evaluating takes time, too.
        """
        begin = self._clock()
        yield
        step, time_of_last = self._last
        self._last = (step, time_of_last + self._clock() - begin)

    def line(self, step: int, shown: dict[str, str]) -> str:
        """Return the progress line, with labelled values at its end."""
        now = self._clock()
        first_step, begin = self._rate_from
        if step <= first_step:
            first_step, begin = self._start_step, self._start
        per_step = max(now - begin, 1e-9) / max(step - first_step, 1)
        head = (
            f"{step}/{self._total} = {100.0 * step / max(self._total, 1):.1f}%,"
            f" SPS: {1 / per_step:.1f},"
            f" ELAP: {seconds_text(now - self._start)},"
            f" ETA: {seconds_text(max(self._total - step, 0) * per_step)}"
        )
        return head + "".join(f" - {k}: {v}" for k, v in shown.items())


def seconds_text(seconds: float) -> str:
    """Return a duration in the original's format: 7, 1:05, 2:00:00.

    Leading zeros and empty fields are dropped; longer durations have the format
    `1 day, 1:00:00`.

    Source: google-research/electra, util/training_utils.py, secs_to_str.
    """
    text = str(datetime.timedelta(seconds=round(seconds)))
    return text.lstrip("0:") or "0"


class ShownValue(NamedTuple):
    """A value of a log row that the progress line shows."""

    name: str  # name of the value in the row
    label: str
    format: str = "{:.4f}"


_SHOWN_IN_ALL_RUNS = (
    ShownValue("grad_norm", "grad norm", "{:.2f}"),
    ShownValue("learning_rate", "lr", "{:.2e}"),
    ShownValue(SKIPPED_IN_ALL, "skipped", "{:.0f}"),
    ShownValue("tokens_per_second", "tokens/s", "{:,.0f}"),
)


def format_row(
    row: Mapping[str, float], shown: Sequence[ShownValue]
) -> dict[str, str]:
    """Return the formatted values of a progress line, by label.

    Args:
      row: row of the training log.
      shown: values at the beginning; the values that every run shows follow.
    """
    values = {}
    for name, label, template in (*shown, *_SHOWN_IN_ALL_RUNS):
        if row.get(name) is None or (name == SKIPPED_IN_ALL and not row[name]):
            continue
        values[label] = template.format(row[name])
    return values


def print_start(
    console: Console,
    config: RunConfig,
    strategy: tf.distribute.Strategy,
    notes: Sequence[str] = (),
) -> None:
    """Print the hparams that were set, the devices and the warnings.

    Args:
      console: console to print to.
      config: config of the run.
      strategy: strategy of the run, with its devices.
      notes: lines to print before the line of devices.
    """
    values = config.as_dict()
    chosen = {
        name: value
        for name, value in values.items()
        if config.origins.get(name) not in ("default", "preset", "derived")
    }
    console.heading("Config:")
    console.table(chosen)
    console.line(
        f"{len(values) - len(chosen)} hparams have defaults; to list them, pass"
        " --print_config"
    )
    console.line()
    versions = f"electra_tf {__version__}, TensorFlow {tf.__version__}"
    console.line(f"{versions}, Python {platform.python_version()}")
    cores = count_cores(config, strategy)
    for text in (*notes, describe_devices(strategy, cores)):
        console.line(text)
    for text in config.warnings():
        console.warning(text)


def print_evaluation(
    console: Console, step: int, result: Mapping[str, float]
) -> None:
    """Print all metrics of an evaluation in one line."""
    text = ", ".join(f"{name} {value:.4f}" for name, value in result.items())
    console.line(f"Evaluation at step {step:,}: {text}")


def print_evaluation_with_baselines(
    console: Console,
    step: int,
    result: Mapping[str, float],
    baselines: Sequence[tuple[str, str, str]],
) -> None:
    """Print metrics of an evaluation, each next to its baseline.

    Args:
      console: console to print to.
      step: number of updates of the evaluated model.
      result: metrics, including baselines.
      baselines: metrics to print: name, the baseline's name in `result`, and a
        description of the baseline.
    """
    console.line(f"Evaluation at step {step:,}:")
    for name, baseline, description in baselines:
        if name in result:
            text = f"  {name} {result[name]:.4f}"
            if baseline in result:
                text += f" ({description}: {result[baseline]:.4f})"
            console.line(text)
