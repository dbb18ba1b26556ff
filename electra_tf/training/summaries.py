# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Outputs of a run: console lines, logs, curves and results files."""

import contextlib
import dataclasses
import datetime
import json
import operator
import os
import pickle
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.formatting import shorten
from configure.run_config import RunConfig
from electra_tf import __version__
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.figures import encode_png
from electra_tf.files.json_files import without_nan
from electra_tf.files.lines import LineReader
from electra_tf.files.reading import read_bytes
from electra_tf.modeling.precision import SKIPPED_IN_ALL
from electra_tf.training.devices import describe_devices
from electra_tf.training.threads import count_cores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVAL_LOG = "eval_log.jsonl"
TENSORBOARD_DIR = "tensorboard"


class Log:
    """Log rows of a run: `<name>_log.jsonl`, and scalars for TensorBoard.

    The file contains one JSON object per line, each with its `step`. On
    opening, rows after `resume_step` are removed, because their steps are
    repeated, and a truncated last line is removed. The log of a continued run
    therefore equals that of an uninterrupted run, except for times.
    TensorBoard's event files only grow: a session start makes TensorBoard drop
    a stopped run's scalars after `resume_step`.
    """

    def __init__(
        self,
        directory: str,
        name: str,
        resume_step: int,
        warn: Callable[[str], None] = lambda text: None,
        every: int = 0,
    ) -> None:
        """Open the log of a run that continues from `resume_step`.

        Args:
          directory: folder of the run.
          name: "train" or "eval".
          resume_step: number of completed updates.
          warn: function of a warning about lost or corrupt rows.
          every: number of steps between rows; 0: unknown.
        """
        self._path = os.path.join(directory, f"{name}_log.jsonl")
        rows = read_rows(self._path, warn)
        self.rows = [row for row in rows if row["step"] <= resume_step]
        steps = [0, *(row["step"] for row in self.rows)]
        # An earlier part of the run may have had longer intervals.
        gap = max([every, *map(operator.sub, steps[1:], steps)])
        steps_without_row = resume_step - steps[-1]
        # A step is evaluated after its checkpoint was saved.
        if name == "eval":
            steps_without_row -= 1
        # An existing empty file shows that no row was due so far.
        is_new = not self.rows and filesystem.exists(self._path)
        if every and steps_without_row >= gap and not is_new:
            warn(
                f"{self._path}: the last row is that of step {steps[-1]:,}, but"
                f" the run is at step {resume_step:,}, so that rows between are"
                " lost"
            )
        write_atomically(self._path, "".join(map(_dump, self.rows)))
        self._writer = tf.summary.create_file_writer(
            os.path.join(directory, TENSORBOARD_DIR, name)
        )
        self._resume_step: int | None = resume_step

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Append a row, and flush the file."""
        row = {"step": step, **values}
        self.rows.append(row)
        try:
            with tf.io.gfile.GFile(self._path, "a") as file:
                file.write(_dump(row))
            self._start_board()
            with self._writer.as_default():
                for name, value in values.items():
                    if isinstance(value, int | float):
                        tf.summary.scalar(name, float(value), step=step)
            self._writer.flush()
        except (OSError, tf.errors.OpError) as error:
            raise UserError(
                f"{self._path} cannot be written: {error}. The checkpoints are"
                " complete. Free some space, and run the same command again."
            ) from error

    def _start_board(self) -> None:
        """Make TensorBoard drop repeated steps before the first row."""
        if self._resume_step is None:
            return
        start = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)
        event = tf.compat.v1.Event(
            wall_time=time.time(), step=self._resume_step + 1, session_log=start
        )
        # tf.summary has no public function for events that are not summaries.
        # The first session start is the beginning of a run for TensorBoard.
        tf.raw_ops.ImportEvent(
            writer=self._writer._resource, event=event.SerializeToString()
        )
        self._resume_step = None


def read_rows(
    path: str, warn: Callable[[str], None] = lambda text: None
) -> list[dict[str, Any]]:
    """Return the rows of a log; skip corrupt lines with a warning.

    A truncated last line is skipped without a warning.
    """
    if not tf.io.gfile.exists(path):
        return []
    rows, warning = [], ""
    for line in LineReader(path):
        if warning:
            warn(warning)
        warning = ""
        try:
            row = json.loads(line.text or "")
            is_valid = isinstance(row["step"], int) and all(
                isinstance(value, int | float | None) for value in row.values()
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            is_valid = False
        if is_valid:
            rows.append(row)
        else:
            text = shorten(line.text or line.content)
            warning = (
                f"{path}:{line.number}: skipping a corrupt line: found {text};"
                " expected a row of numbers in JSON"
            )
    # A last line without a line end was interrupted, and is not corrupt.
    if warning and read_bytes(path).endswith(b"\n"):
        warn(warning)
    return rows


def _dump(row: dict[str, Any]) -> str:
    return json.dumps(without_nan(row)) + "\n"


class Console:
    """A stream of lines, each flushed at once."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Set the stream; None: current standard output."""
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
        """Start to measure rates, after the graph was traced."""
        self._rate_from = self._last = (step, self._clock())

    def timing(
        self, step: int, tokens_per_step: float
    ) -> dict[str, float | None]:
        """Return the time, and the rates since the last call.

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
    """A value of a row in the progress line."""

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
    row: Mapping[str, Any], shown: Sequence[ShownValue]
) -> dict[str, str]:
    """Return the values of a progress line, by label.

    Args:
      row: row of the training log.
      shown: first values; the values of all runs follow.
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
      notes: further lines, before the line of devices.
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


def write_results(
    console: Console,
    config: RunConfig,
    step: int,
    result: Mapping[str, float],
) -> None:
    """Print an evaluation as the original does, and write the results files.

    Source: google-research/electra, run_pretraining.py, train_or_eval (which
    names `results_txt` and `results_pkl` and prints the lines).
    Differs: the original does not write these files.
    """
    values = {**result, "global_step": step}
    values = {name: values[name] for name in sorted(values)}
    lines = [f"{name} = {value}" for name, value in values.items()]
    for text in lines:
        console.line(f"  {text}")
    now = datetime.datetime.now(datetime.timezone.utc)
    record = {
        "step": step,
        "time": now.isoformat(timespec="seconds"),
        "metrics": without_nan(values),
        "config": config.as_dict(),
    }
    replaces = tf.io.gfile.exists(config.results_json)
    hint = (
        "The checkpoints are complete. Free some space or correct the"
        " permissions, and evaluate again with --do_train=false --do_eval=true."
    )
    for path, content in (
        (config.results_txt, "".join(f"{line}\n" for line in lines)),
        (config.results_pkl, pickle.dumps(values)),
        (config.results_json, f"{json.dumps(record, indent=1)}\n"),
    ):
        write_atomically(path, content, hint=hint)
    verb = "Replaced the earlier results in" if replaces else "Wrote"
    console.line(
        f"{verb} {config.results_txt}, {config.results_pkl} and"
        f" {config.results_json}"
    )


CURVES_FILE = "curves.png"
Rows = Sequence[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Panel:
    """A plot with fields of the rows of training and of evaluations."""

    title: str  # metric and unit
    train: str | None = None  # field drawn faint with a running mean
    evaluation: str | None = None  # field drawn with dots
    baselines: tuple[tuple[str, str], ...] = ()  # (field, label), drawn dashed
    chance: float | None = None  # constant to beat, drawn dotted
    log_scale: bool = False


def draw_curves(
    directory: str,
    panels: Sequence[Panel],
    train_rows: Rows,
    eval_rows: Rows,
    title: str,
) -> str:
    """Draw `curves.png`, and return its path; skip panels without data."""
    # matplotlib is imported here, so that the first step of a run need not wait
    # for the import.
    from matplotlib.figure import Figure

    panels = [
        panel
        for panel in panels
        if len(_series(train_rows, panel.train)[0])
        or len(_series(eval_rows, panel.evaluation)[0])
    ]
    columns = min(4, max(1, (len(panels) + 1) // 2))
    rows = max(1, -(-len(panels) // columns))
    width, height = 4.2 * columns, 3.2 * rows + 0.4
    figure = Figure(figsize=(width, height))
    # Margins are in inches; an automatic layout takes twice the time.
    figure.subplots_adjust(
        left=0.6 / width,
        right=1 - 0.15 / width,
        bottom=0.5 / height,
        top=1 - 0.75 / height,
        wspace=0.22,
        hspace=0.38,
    )
    figure.suptitle(title)
    for index, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        _draw(axes, panel, train_rows, eval_rows)
    path = os.path.join(directory, CURVES_FILE)
    write_atomically(path, encode_png(figure))
    return path


def _draw(
    axes: "Axes", panel: Panel, train_rows: Rows, eval_rows: Rows
) -> None:
    steps, values = _series(train_rows, panel.train)
    blue = "tab:blue"
    if len(steps) >= 20:
        axes.plot(steps, values, color=blue, alpha=0.25, linewidth=1.0)
        axes.plot(steps, _smooth(values), color=blue, label="training")
    elif len(steps):
        axes.plot(steps, values, color=blue, label="training", linewidth=1.0)
    steps, values = _series(eval_rows, panel.evaluation)
    if len(steps):
        axes.plot(
            steps,
            values,
            color="tab:orange",
            marker="o",
            markersize=3,
            label="held out",
        )
    greys = ("0.35", "0.6")
    for (field, label), grey in zip(panel.baselines, greys, strict=False):
        steps, values = _series(eval_rows, field)
        if len(steps):
            axes.plot(steps, values, "--", color=grey, marker=".", label=label)
    if panel.chance is not None:
        axes.axhline(panel.chance, color="0.7", linestyle=":", label="chance")
    if panel.log_scale:
        axes.set_yscale("log")
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlabel("step", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(fontsize=7, frameon=False)


def _series(rows: Rows, field: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps and values of rows with a field."""
    points = [
        (row["step"], row[field])
        for row in rows
        if field is not None and row.get(field) is not None
    ]
    array = np.array(points, np.float64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def _smooth(values: np.ndarray) -> np.ndarray:
    """Return the centered running mean over a twentieth of the points."""
    width = max(3, len(values) // 20) | 1
    padded = np.pad(values, width // 2, mode="edge")
    return np.convolve(padded, np.ones(width) / width, mode="valid")
