# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predicted and measured peak memory of runs, by length and model size.

Three kinds of run are compared: the run of a config, a masked LM of the same
sizes, and a masked LM of BERT's shape, whose embeddings are as wide as its
blocks. Each kind is predicted over LENGTHS, and the first two also over GRID. A
third of the grid's points are measured, so that each pair of values of two
sizes is measured once.
"""

import dataclasses
import functools
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from configure.errors import UserError
from configure.formatting import shorten
from configure.pretraining import PretrainingConfig
from configure.text_tables import render_rows
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.figures import encode_png
from electra_tf.files.lines import LineReader
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.plan.machine import machine_memory
from electra_tf.plan.memory import MIB, pretraining_memory

BATCH = 8
LENGTHS = (32, 64, 128, 256, 384, 512, 768, 1000)
GRID = {
    "hidden_size": (128, 256, 512),
    "num_attention_heads": (2, 4, 8),
    "num_hidden_layers": (4, 6, 8),
}
TOLERANCE = 0.12  # accepted relative error of a prediction
_SHARE = 0.75  # default limit, as a share of the machine's memory
_UNKNOWN_MEMORY = 2**33  # bytes; assumed if the machine's memory is unknown
_LARGEST = 1 << 20  # upper limit of lengths and batch sizes to try
_KEYS = ("part", "kind", "batch", "length", *GRID)
# Hparams that do not affect the peak memory.
_PATHS = ("data_dir", "model_name", "model_dir", "vocab_file")
Row = dict[str, Any]


class Point(NamedTuple):
    """A config whose peak memory is predicted, and measured if requested."""

    part: str  # "lengths" or "grid"
    kind: str
    config: PretrainingConfig
    is_measured: bool

    def row(self) -> Row:
        """Return the settings, and the predicted peak memory in bytes."""
        sizes = EncoderConfig.of(self.config)
        row: Row = {
            "part": self.part,
            "kind": self.kind,
            "batch": self.config.train_batch_size,
            "length": self.config.max_seq_length,
        }
        for name in GRID:
            row[name] = getattr(sizes, name)
        row["predicted"] = pretraining_memory(self.config).total
        row["measured"] = None
        return row

    def key(self) -> str:
        """Return the hparams that the peak depends on, as JSON."""
        saved = json.loads(self.config.to_json())
        hparams = self.config.explicit_hparams(saved)
        hparams = {k: v for k, v in hparams.items() if k not in _PATHS}
        return json.dumps(hparams, sort_keys=True)

    def measure_peak(self) -> int:
        """Train in a new process; return the peak of its memory, in bytes."""
        command = [
            sys.executable,
            "-m",
            "electra_tf",
            "plan",
            "--json",
            f"--data-dir={self.config.data_dir}",
            f"--model-name={self.config.model_name}",
            f"--hparams={self.config.to_json()}",
            "--measured_steps=1",
            f"--measure={self.config.train_batch_size}",
        ]
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode:
            lines = process.stderr.strip().splitlines() or ["no error message"]
            raise UserError(
                "the measured process failed with exit status"
                f" {process.returncode}: {lines[-1]}. Remove the cause, or"
                " lower --memory_gib."
            )
        return json.loads(process.stdout)["measured"]["peak_bytes"]


class MemoryCurve:
    """The peak memory of a run and of two masked LMs, by length and size.

    Attributes:
      configs: kind -> config: the run, a masked LM of the same sizes, and a
        masked LM of BERT's shape.
    """

    def __init__(self, config: PretrainingConfig, limit: int) -> None:
        """Derive the configs of the two masked LMs from the run's config.

        Args:
          config: the settings of the run.
          limit: the memory limit in bytes; points with a higher predicted peak
            are not measured.

        Raises:
          UserError: the run is a masked LM.
        """
        if config.objective == "mlm":
            raise UserError(
                f"objective is {config.objective!r}; expected a different"
                " objective, because --memory_curve compares the run with a"
                " masked LM. Pass --objective=electra, for example."
            )
        masked_lm = {
            "electra_objective": False,
            "electric_objective": False,
            "objective": "mlm",
            "two_tower_generator": False,
            "training_schedule": "joint",
            "generator": "sized",
            "uniform_generator": False,
        }
        width = EncoderConfig.of(config).hidden_size
        bert_shape = {**masked_lm, "embedding_size": width}
        plain = dataclasses.replace(
            config, two_stage_steps=None, keep_best=None
        )
        self.configs: dict[str, PretrainingConfig] = {
            config.objective_facts.title: config,
            "masked LM": plain.with_values("argument", masked_lm),
            "BERT's shape": plain.with_values("argument", bert_shape),
        }
        self._length = config.max_seq_length
        self._limit = limit

    def resize(
        self, kind: str, batch: int, length: int, **sizes: int
    ) -> PretrainingConfig:
        """Return a kind's config with another batch, length and sizes."""
        config = self.configs[kind]
        positions = EncoderConfig.of(config).max_position_embeddings
        overrides = {
            **config.model_hparam_overrides,
            **sizes,
            "max_position_embeddings": max(positions, length),
        }
        return config.with_values(
            "argument",
            {
                "train_batch_size": batch,
                "max_seq_length": length,
                "model_hparam_overrides": overrides,
                "recompute_grad": bool(config.recompute_grad),
                "gradient_accumulation_steps": 1,
            },
        )

    def _fits(self, kind: str, batch: int, length: int, **sizes: int) -> bool:
        resized = self.resize(kind, batch, length, **sizes)
        return pretraining_memory(resized).total <= self._limit

    def points(self) -> Iterator[Point]:
        """Yield all points of the curve."""
        for length, kind in itertools.product(LENGTHS, self.configs):
            resized = self.resize(kind, BATCH, length)
            fits = self._fits(kind, BATCH, length)
            yield Point("lengths", kind, resized, fits)
        choices = [list(enumerate(values)) for values in GRID.values()]
        for chosen in itertools.product(*choices):
            sizes = dict(zip(GRID, (value for _, value in chosen), strict=True))
            # Measuring takes long, so only a third of the grid is measured: the
            # points whose indices have a sum divisible by 3. Among these
            # points, each pair of values of two hparams occurs once.
            is_third = sum(index for index, _ in chosen) % 3 == 0
            for kind in list(self.configs)[:2]:
                resized = self.resize(kind, BATCH, self._length, **sizes)
                fits = self._fits(kind, BATCH, self._length, **sizes)
                yield Point("grid", kind, resized, is_third and fits)

    def measure(self, folder: str) -> list[Row]:
        """Make the missing measurements; return the rows of all points.

        Args:
          folder: the folder of points.jsonl, with a line for each measured
            point.
        """
        path = os.path.join(folder, "points.jsonl")
        filesystem.make_directory(folder)
        peaks = dict(_read_peaks(path))
        rows, all_points = [], list(self.points())
        for number, point in enumerate(all_points, 1):
            row, key = point.row(), point.key()
            if point.is_measured and key not in peaks:
                print(
                    f"{number} of {len(all_points)}: {row['kind']}, length"
                    f" {row['length']}, {row['hidden_size']} x"
                    f" {row['num_hidden_layers']}",
                    file=sys.stderr,
                    flush=True,
                )
                peaks[key] = point.measure_peak()
                line = {"key": key, "measured": peaks[key]}
                with open(path, "a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            rows.append({**row, "measured": peaks.get(key)})
        return rows

    def find_largest(self) -> dict[str, Any]:
        """Return the greatest length and batch sizes within the limit, by kind.

        Returns:
          `length`: the length of the longest rows at BATCH; `batches`: length
          -> largest batch.
        """
        largest = {}
        for kind in self.configs:
            length_fits = functools.partial(self._fits, kind, BATCH)
            # The search begins at the first of LENGTHS, because in shorter rows
            # there may be no token to mask.
            shortest = LENGTHS[0]
            longest = _find_last(length_fits, shortest - 1)
            batches = {}
            for length in LENGTHS:
                batch_fits = functools.partial(self._fits, kind, length=length)
                batches[length] = _find_last(batch_fits, 0)
            largest[kind] = {
                "length": longest if longest >= shortest else 0,
                "batches": batches,
            }
        return largest

    def write(self, folder: str) -> str:
        """Measure the points; write a table, a JSON file and a picture.

        Args:
          folder: the folder for memory.txt, memory.json, memory.png and
            points.jsonl.

        Returns:
          The table.
        """
        largest = self.find_largest()
        rows = self.measure(folder)
        # The same point may be in the grid and among the lengths; it counts
        # once.
        measured_rows = {}
        for row in rows:
            if row["measured"]:
                settings = tuple(row[name] for name in _KEYS[1:])
                measured_rows[settings] = row
        errors = [
            row["predicted"] / row["measured"] - 1
            for row in measured_rows.values()
        ]
        results = {
            "limit_bytes": self._limit,
            "largest": largest,
            "points": rows,
            "measured_points": len(measured_rows),
            "within_tolerance": sum(abs(e) <= TOLERANCE for e in errors),
            "worst_error": max(errors, key=abs, default=None),
        }
        text = _text(results)
        for name, content in (
            ("memory.txt", text),
            ("memory.json", json.dumps(results, indent=1) + "\n"),
            ("memory.png", _draw(rows)),
        ):
            write_atomically(os.path.join(folder, name), content)
        return text


def memory_limit(gibibytes: float | None) -> int:
    """Return the limit in bytes; by default a share of the machine's memory."""
    if gibibytes and (limit := round(gibibytes * 2**30)):
        return limit
    memory = machine_memory() or _UNKNOWN_MEMORY
    return round(_SHARE * memory)


def _read_peaks(path: str) -> Iterator[tuple[str, int]]:
    """Yield the key and the peak of each measured point in a file."""
    if not filesystem.exists(path):
        return
    for number, text in enumerate(LineReader(path).texts(), 1):
        try:
            line = json.loads(text)
            yield line["key"], int(line["measured"])
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise UserError(
                f"{path}:{number}: found {shorten(text)}; expected a line that"
                " this command wrote. Remove the line to measure its point"
                " again."
            ) from error


def _find_last(fits: Callable[[int], bool], low: int) -> int:
    """Return the largest number that fits; `low` if no larger number fits."""
    high = LENGTHS[0]
    while high < _LARGEST and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def _text(results: Mapping[str, Any]) -> str:
    """Return the table of all points and the table of the largest sizes."""
    headings = [name.removeprefix("num_") for name in _KEYS]
    table = [[*headings, "predicted MiB", "measured MiB", "ratio"]]
    for row in results["points"]:
        predicted, measured = row["predicted"], row["measured"]
        peaks = ["-", "-"]
        if measured:
            peaks = [f"{measured / MIB:,.0f}", f"{predicted / measured:.2f}"]
        settings = [str(row[name]) for name in _KEYS]
        table.append([*settings, f"{predicted / MIB:,.0f}", *peaks])
    lines = render_rows(table, left=0)
    if results["measured_points"]:
        lines.append(
            f"\n{results['within_tolerance']} of {results['measured_points']}"
            f" predictions are within {TOLERANCE:.0%} of the measured peak; the"
            f" largest error is {results['worst_error']:+.1%}"
        )
    limit = results["limit_bytes"] / 2**30
    lines.append(f"\nLargest sizes that need at most {limit:,.1f} GiB:")
    headings = [f"batch at {length}" for length in LENGTHS]
    table = [["", f"length at batch {BATCH}", *headings]]
    for kind, largest in results["largest"].items():
        numbers = (largest["length"], *largest["batches"].values())
        table.append([kind, *(f"{n:,}" for n in numbers)])
    return "\n".join([*lines, *render_rows(table, left=0)]) + "\n"


def _draw(rows: Sequence[Row]) -> bytes:
    """Draw peaks by length, grid peaks and prediction errors; return a PNG."""
    # matplotlib is imported late, because the import takes a second and only
    # --memory_curve needs it.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4.5), layout="constrained")
    lengths, grid, errors = figure.subplots(1, 3)
    for number, kind in enumerate(dict.fromkeys(row["kind"] for row in rows)):
        color = f"C{number}"
        kind_rows = [row for row in rows if row["kind"] == kind]
        of_lengths = [row for row in kind_rows if row["part"] == "lengths"]
        x = [row["length"] for row in of_lengths]
        _draw_curve(lengths, x, of_lengths, color)
        of_grid = [row for row in kind_rows if row["part"] == "grid"]
        of_grid.sort(key=lambda row: row["predicted"])
        _draw_curve(grid, range(len(of_grid)), of_grid, color)
        measured = [row for row in kind_rows if row["measured"]]
        errors.plot(
            _gibibytes(measured, "measured"),
            _gibibytes(measured, "predicted"),
            "o",
            c=color,
            label=kind,
        )
    highest = max(row["predicted"] for row in rows) / 2**30
    for factor, style in ((1, "-"), (1 - TOLERANCE, ":"), (1 + TOLERANCE, ":")):
        errors.plot([0, highest], [0, highest * factor], f"k{style}", lw=0.8)
    for axes, x_label, y_label in (
        (lengths, f"length, {BATCH} rows", "GiB (lines: predicted)"),
        (grid, "points of the grid, in order of predictions", "GiB"),
        (errors, "measured, GiB", f"predicted, GiB (dots: {TOLERANCE:.0%})"),
    ):
        axes.set(xlabel=x_label, ylabel=y_label, ylim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return encode_png(figure)


def _draw_curve(
    axes: Any, x: Sequence[int], rows: Sequence[Row], color: str
) -> None:
    """Draw predicted peaks as a line and measured peaks as dots."""
    if rows:
        predicted = _gibibytes(rows, "predicted")
        axes.plot(x, predicted, color=color, label=rows[0]["kind"])
    measured = [i for i, row in enumerate(rows) if row["measured"]]
    dots = _gibibytes([rows[i] for i in measured], "measured")
    axes.plot([x[i] for i in measured], dots, "o", c=color)


def _gibibytes(rows: Sequence[Row], name: str) -> list[float]:
    return [row[name] / 2**30 for row in rows]
