# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is shown and written of a run: rows, lines, curves, results."""

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
from typing import Any, NamedTuple, TextIO

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

EVAL_LOG = "eval_log.jsonl"
TENSORBOARD_DIR = "tensorboard"


class Log:
    """The rows of a run: `<name>_log.jsonl`, and scalars for TensorBoard.

    The file has one JSON object a line, each with its `step`. On opening, rows
    past `resume_step` are removed (they belong to steps that will be done
    again), and so is a last line that was cut off in writing; the file of a run
    that was stopped and continued thus equals the file of one that was not,
    timing aside. TensorBoard's event files only grow: it is told to leave out
    what a stopped run wrote past `resume_step`.
    """

    def __init__(
        self,
        directory: str,
        name: str,
        resume_step: int,
        warn: Callable[[str], None] = lambda text: None,
        every: int = 0,
    ) -> None:
        """Reads the rows that are there; `every` so many steps there is one."""
        self._path = os.path.join(directory, f"{name}_log.jsonl")
        rows = read_rows(self._path, warn)
        self.rows = [row for row in rows if row["step"] <= resume_step]
        steps = [0, *(row["step"] for row in self.rows)]
        # Longer than from row to row: the interval may have been another.
        gap = max([every, *map(operator.sub, steps[1:], steps)])
        # A step is evaluated after its checkpoint is written.
        lost = resume_step - steps[-1] - (name == "eval")
        # A file that is there and empty: there was to be no row so far.
        is_new = not self.rows and filesystem.exists(self._path)
        if every and lost >= gap and not is_new:
            warn(
                f"{self._path}: its last row is of step {steps[-1]:,}, and the"
                f" run is at step {resume_step:,}: the rows between are lost"
            )
        write_atomically(self._path, "".join(map(_dump, self.rows)))
        self._writer = tf.summary.create_file_writer(
            os.path.join(directory, TENSORBOARD_DIR, name)
        )
        self._resume_step: int | None = resume_step

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Appends one row and flushes it."""
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
                " whole: make room and run the same command again."
            ) from error

    def _start_board(self) -> None:
        """Before the first row, makes TensorBoard drop what is done again."""
        if self._resume_step is None:
            return
        start = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)
        event = tf.compat.v1.Event(
            wall_time=time.time(), step=self._resume_step + 1, session_log=start
        )
        # tf.summary has no public function for events that are not summaries.
        # The first start that TensorBoard meets is a run's beginning.
        tf.raw_ops.ImportEvent(
            writer=self._writer._resource, event=event.SerializeToString()
        )
        self._resume_step = None


def read_rows(
    path: str, warn: Callable[[str], None] = lambda text: None
) -> list[dict[str, Any]]:
    """Reads the rows of a log; a damaged line is left out, with a warning.

    A last line that was cut off in writing is left out without one.
    """
    if not tf.io.gfile.exists(path):
        return []
    rows, doubt = [], ""
    for line in LineReader(path):
        if doubt:
            warn(doubt)
        try:
            row, doubt = json.loads(line.text or ""), ""
            whole = isinstance(row["step"], int) and all(
                isinstance(value, int | float | None) for value in row.values()
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            whole = False
        if whole:
            rows.append(row)
        else:
            found = shorten(line.text or line.content)
            doubt = (
                f"{path}:{line.number}: left out, since it is damaged: found"
                f" {found}; expected a row of numbers in JSON"
            )
    if doubt and read_bytes(path).endswith(b"\n"):  # It is whole.
        warn(doubt)
    return rows


def _dump(row: dict[str, Any]) -> str:
    return json.dumps(without_nan(row)) + "\n"


class Console:
    """Writes lines to a stream, flushed at once."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Writes to `stream`, by default to standard output as it is now."""
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
        """Writes a line that cannot be overlooked."""
        self.line(f"WARNING: {text}")


class Progress:
    """Makes the progress line: step, rate, elapsed time, time to go.

    Differs: the first step is left out of the rate (the original's rate has it
    in, and the graph is traced then), so the time to go is right from the
    start; elapsed time has everything in.

    Source: google-research/electra, util/training_utils.py, ETAHook.
    """

    def __init__(
        self,
        start_step: int,
        total_steps: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Starts the clock at `start_step`; steps count to `total_steps`."""
        self._clock = clock
        self._total = total_steps
        self._start_step = start_step
        self._start = clock()
        self._rate_from: tuple[int, float] = (start_step, self._start)
        self._last = self._rate_from

    def first_step_done(self, step: int) -> None:
        """Starts the measuring of rates: the graph has been traced."""
        self._rate_from = self._last = (step, self._clock())

    def timing(
        self, step: int, tokens_per_step: float
    ) -> dict[str, float | None]:
        """Rates since the last call, None before a step has been measured."""
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
        """Leaves what happens inside out of the intervals `timing` measures.

        The rate and the time to go of `line` keep it in: saving and evaluating
        will go on happening.
        """
        begin = self._clock()
        yield
        step, time_of_last = self._last
        self._last = (step, time_of_last + self._clock() - begin)

    def line(self, step: int, shown: dict[str, str]) -> str:
        now = self._clock()
        since, begin = self._rate_from
        if step <= since:
            since, begin = self._start_step, self._start
        per_step = max(now - begin, 1e-9) / max(step - since, 1)
        head = (
            f"{step}/{self._total} = {100.0 * step / max(self._total, 1):.1f}%,"
            f" SPS: {1 / per_step:.1f},"
            f" ELAP: {seconds_text(now - self._start)},"
            f" ETA: {seconds_text(max(self._total - step, 0) * per_step)}"
        )
        return head + "".join(f" - {k}: {v}" for k, v in shown.items())


def seconds_text(seconds: float) -> str:
    """Formats a duration as the original does: 7, 1:05, 2:00:00.

    Leading zeros and empty fields are dropped; from a day on it reads like
    `1 day, 1:00:00`.

    Source: google-research/electra, util/training_utils.py, secs_to_str.
    """
    text = str(datetime.timedelta(seconds=round(seconds)))
    return text.lstrip("0:") or "0"


class ShownValue(NamedTuple):
    """A value of a row, as the progress line shows it."""

    name: str  # in the row
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
    """Return the values that a progress line shows, by label.

    Args:
      row: a row of the training log.
      shown: the first values; those that are the same in all runs follow.
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
      console: where to print.
      config: of the run.
      strategy: of the run, with its devices.
      notes: further lines, before that of the devices.
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
      console: where to print.
      step: the updates that the evaluated model has had.
      result: the metrics, baselines among them.
      baselines: the metrics to print: name, the baseline's name in `result`,
        and what the baseline is, in words.
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
    Differs: the original writes none of the files.
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
        "The checkpoints are safe; make room or correct the permissions,"
        " and evaluate again with --do_train=false --do_eval=true."
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
    """One set of axes: fields of the rows of training and of evaluations."""

    title: str  # says what is shown, with its unit
    train: str | None = None  # drawn faint with a running mean
    evaluation: str | None = None  # drawn with dots
    baselines: tuple[tuple[str, str], ...] = ()  # (field, label), dashed
    chance: float | None = None  # a constant to beat, dotted
    log_scale: bool = False


def draw_curves(
    directory: str,
    panels: Sequence[Panel],
    train_rows: Rows,
    eval_rows: Rows,
    title: str,
) -> str:
    """Draws `curves.png`; panels without data are left out, None is a gap."""
    # At the end of a run: its first step need not wait for this.
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
    # Margins in inches; laying out automatically takes twice the time.
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


def _draw(axes: Any, panel: Panel, train_rows: Rows, eval_rows: Rows) -> None:
    steps, values = _series(train_rows, panel.train)
    style = {"color": "tab:blue", "label": "training"}
    if len(steps) >= 20:
        axes.plot(steps, values, color="tab:blue", alpha=0.25, linewidth=1.0)
        axes.plot(steps, _smooth(values), **style)
    elif len(steps):
        axes.plot(steps, values, linewidth=1.0, **style)
    steps, values = _series(eval_rows, panel.evaluation)
    if len(steps):
        style = {"color": "tab:orange", "marker": "o", "markersize": 3}
        axes.plot(steps, values, label="held out", **style)
    greys = ("0.35", "0.6")
    for (field, label), grey in zip(panel.baselines, greys, strict=False):
        steps, values = _series(eval_rows, field)
        if len(steps):
            style = {"color": grey, "linestyle": "--", "marker": "."}
            axes.plot(steps, values, label=label, **style)
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
    points = [
        (row["step"], row[field]) for row in rows if row.get(field) is not None
    ]
    array = np.array(points, np.float64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def _smooth(values: np.ndarray) -> np.ndarray:
    """Centred running mean over a twentieth of the points."""
    width = max(3, len(values) // 20) | 1
    padded = np.pad(values, width // 2, mode="edge")
    return np.convolve(padded, np.ones(width) / width, mode="valid")
