# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Memory against length and sizes: predicted, and measured a process a point.

Three kinds: a run as it is, the masked LM of its sizes, and BERT's shape, whose
embeddings are as wide as its blocks. Each over LENGTHS; the first two also over
GRID, of whose points a third is measured: every pair of two sizes' values once.
"""

import dataclasses
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from configure.errors import UserError
from configure.formatting import shorten
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
TOLERANCE = 0.12  # How far a prediction may be from what is measured.
_SHARE = 0.75  # Of a machine's memory, where none is given.
_MOST = 1 << 20  # No length or batch is sought beyond it.
_KEYS = ("part", "kind", "batch", "length", *GRID)
Row = dict[str, Any]


class Point(NamedTuple):
    """A config whose peak is predicted, and perhaps measured."""

    part: str  # "lengths" or "grid"
    kind: str
    config: Any
    is_measured: bool

    def row(self) -> Row:
        """What it is and what is predicted."""
        sizes, config = EncoderConfig.of(self.config), self.config
        batch, length = config.train_batch_size, config.max_seq_length
        return {
            **{"part": self.part, "kind": self.kind},
            **{"batch": batch, "length": length},
            **{name: getattr(sizes, name) for name in GRID},
            **{"predicted": pretraining_memory(config).total, "measured": None},
        }


def kinds(config: Any) -> dict[str, Any]:
    """The config by kind: itself, its masked LM, BERT's shape."""
    if config.objective == "mlm":
        raise UserError(
            "--memory_curve compares with the masked LM of the same sizes, and"
            f" objective is {config.objective!r}; expected another, such as"
            " electra."
        )
    switches = ("electra_objective", "electric_objective")
    twin = {**dict.fromkeys(switches, False), "objective": "mlm"}
    twin |= {"two_tower_generator": False, "training_schedule": "joint"}
    twin |= {"generator": "sized", "uniform_generator": False}
    shape = {**twin, "embedding_size": EncoderConfig.of(config).hidden_size}
    plain = dataclasses.replace(config, two_stage_steps=None, keep_best=None)
    return {
        config.objective_facts.title: config,
        "masked LM": plain.with_values("argument", twin),
        "BERT's shape": plain.with_values("argument", shape),
    }


def resized(config: Any, batch: int, length: int, **sizes: int) -> Any:
    """The config with another batch, length and sizes of the encoder."""
    rows = max(EncoderConfig.of(config).max_position_embeddings, length)
    overrides = {**config.model_hparam_overrides, **sizes}
    overrides["max_position_embeddings"] = rows
    return config.with_values(
        "argument",
        {
            **{"train_batch_size": batch, "max_seq_length": length},
            "model_hparam_overrides": overrides,
            "recompute_grad": bool(config.recompute_grad),
            "gradient_accumulation_steps": 1,
        },
    )


def points(config: Any, limit: int) -> Iterator[Point]:
    """All points; none is measured that is predicted to take more than that."""

    def point(part: str, kind: str, made: Any, is_chosen: bool) -> Point:
        fits = pretraining_memory(made).total <= limit
        return Point(part, kind, made, is_chosen and fits)

    found = kinds(config)
    for length, (kind, own) in itertools.product(LENGTHS, found.items()):
        yield point("lengths", kind, resized(own, BATCH, length), True)
    choices = [list(enumerate(values)) for values in GRID.values()]
    for chosen in itertools.product(*choices):
        sizes = dict(zip(GRID, (value for _, value in chosen), strict=True))
        is_third = sum(place for place, _ in chosen) % 3 == 0
        for kind in list(found)[:2]:
            made = resized(found[kind], BATCH, config.max_seq_length, **sizes)
            yield point("grid", kind, made, is_third)


def measured_peak(config: Any) -> int:
    """Bytes that a process of its own held at most while it trained."""
    command = [sys.executable, "-m", "electra_tf", "plan", "--json"]
    command += ["--data-dir", config.data_dir]
    command += ["--model-name", config.model_name]
    command += ["--hparams", config.to_json(), "--measured_steps", "1"]
    command += ["--measure", str(config.train_batch_size)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise UserError(
            f"the process that was to be measured ended with status"
            f" {done.returncode}: {said[-1]}"
        )
    return json.loads(done.stdout)["measured"]["peak_bytes"]


def measure(config: Any, folder: str, limit: int) -> list[Row]:
    """Rows of all points; those of earlier calls are read, not measured."""
    path = os.path.join(folder, "points.jsonl")
    filesystem.make_directory(folder)
    known = dict(_known(path))
    rows, todo = [], list(points(config, limit))
    for number, point in enumerate(todo, 1):
        row, key = point.row(), _key(point.config)
        if point.is_measured and key not in known:
            print(
                f"{number} of {len(todo)}: {row['kind']}, length"
                f" {row['length']}, {row['hidden_size']} x"
                f" {row['num_hidden_layers']}",
                file=sys.stderr,
                flush=True,
            )
            known[key] = measured_peak(point.config)
            line = {"key": key, "measured": known[key]}
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        rows.append({**row, "measured": known.get(key)})
    return rows


def _key(config: Any) -> str:
    """What a peak depends on."""
    hparams = config.explicit_hparams(json.loads(config.to_json()))
    places = ("data_dir", "model_name", "model_dir", "vocab_file")
    hparams = {k: v for k, v in hparams.items() if k not in places}
    return json.dumps(hparams, sort_keys=True)


def _known(path: str) -> Iterator[tuple[str, int]]:
    if not filesystem.exists(path):
        return
    for number, text in enumerate(LineReader(path).texts(), 1):
        try:
            line = json.loads(text)
            yield line["key"], int(line["measured"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path}:{number}: found {shorten(text)}; expected a"
                " line that this command wrote. Remove the line: its point is"
                " measured again."
            ) from error


def largest(config: Any, limit: int) -> dict[str, Any]:
    """By kind: the longest rows at BATCH, and the largest batch a length."""

    def most(own: Any, batch: int | None, length: int | None) -> int:
        """Of what is None; the memory grows with it."""

        def fits(number: int) -> bool:
            made = resized(own, batch or number, length or number)
            return pretraining_memory(made).total <= limit

        # Of shorter rows than LENGTHS begin with, nothing may be masked.
        low, high = LENGTHS[0] - 1 if length is None else 0, LENGTHS[0]
        while high < _MOST and fits(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low if length or low >= LENGTHS[0] else 0

    return {
        kind: {
            "length": most(own, BATCH, None),
            "batches": {length: most(own, None, length) for length in LENGTHS},
        }
        for kind, own in kinds(config).items()
    }


def run(config: Any, folder: str, gibibytes: float | None) -> str:
    """Measures what is not yet; writes table, JSON, picture; the table."""
    limit = round((gibibytes or 0) * 2**30)
    limit = limit or round(_SHARE * (machine_memory() or 2**33))
    found = {"limit_bytes": limit, "largest": largest(config, limit)}
    rows = measure(config, folder, limit)
    # A point of the grid may be one of the lengths, too.
    both = {
        tuple(row[name] for name in _KEYS[1:]): row
        for row in rows
        if row["measured"]
    }.values()
    errors = [row["predicted"] / row["measured"] - 1 for row in both]
    found["points"] = rows
    found["measured_points"] = len(both)
    found["within_tolerance"] = sum(abs(e) <= TOLERANCE for e in errors)
    found["worst_error"] = max(errors, key=abs, default=None)
    text = _text(found)
    for name, content in (
        ("memory.txt", text),
        ("memory.json", json.dumps(found, indent=1) + "\n"),
        ("memory.png", _draw(rows)),
    ):
        write_atomically(os.path.join(folder, name), content)
    return text


def _text(found: Mapping[str, Any]) -> str:
    head = (*_KEYS, "predicted MiB", "measured MiB", "ratio")
    table = [[name.removeprefix("num_") for name in head]]
    for row in found["points"]:
        peaks = ["-", "-"]
        if row["measured"]:
            ratio = row["predicted"] / row["measured"]
            peaks = [f"{row['measured'] / MIB:,.0f}", f"{ratio:.2f}"]
        cells = [str(row[name]) for name in _KEYS]
        table.append([*cells, f"{row['predicted'] / MIB:,.0f}", *peaks])
    lines = render_rows(table, left=0)
    if found["measured_points"]:
        lines.append(
            f"\n{found['within_tolerance']} of {found['measured_points']}"
            f" predictions within {TOLERANCE:.0%} of what was measured; the"
            f" worst {found['worst_error']:+.1%}"
        )
    lines.append(f"\nIn {found['limit_bytes'] / 2**30:,.1f} GiB, predicted:")
    head = (f"length at batch {BATCH}", *(f"batch at {n}" for n in LENGTHS))
    table = [["", *head]]
    for kind, most in found["largest"].items():
        numbers = (most["length"], *most["batches"].values())
        table.append([kind, *(f"{n:,}" for n in numbers)])
    return "\n".join([*lines, *render_rows(table, left=0)]) + "\n"


def _draw(rows: Sequence[Row]) -> bytes:
    """Peaks over the length; of the grid; predicted against measured."""
    from matplotlib.figure import Figure  # takes a second

    figure = Figure(figsize=(15, 4.5), layout="constrained")
    lengths, grid, both = figure.subplots(1, 3)

    def gib(of: Sequence[Row], name: str) -> list[float]:
        return [row[name] / 2**30 for row in of]

    for place, kind in enumerate(dict.fromkeys(row["kind"] for row in rows)):
        color = f"C{place}"
        mine = [row for row in rows if row["kind"] == kind]
        for axes, part in ((lengths, "lengths"), (grid, "grid")):
            here = [row for row in mine if row["part"] == part]
            x = [row["length"] for row in here]
            if part == "grid":  # From the least to the most.
                here.sort(key=lambda row: row["predicted"])
                x = list(range(len(here)))
            if here:
                axes.plot(x, gib(here, "predicted"), color=color, label=kind)
            seen = [i for i, row in enumerate(here) if row["measured"]]
            dots = [here[i] for i in seen]
            axes.plot([x[i] for i in seen], gib(dots, "measured"), "o", c=color)
        mine = [row for row in mine if row["measured"]]
        peaks = gib(mine, "measured"), gib(mine, "predicted")
        both.plot(*peaks, "o", c=color, label=kind)
    most = max(row["predicted"] for row in rows) / 2**30
    for factor, style in ((1, "-"), (1 - TOLERANCE, ":"), (1 + TOLERANCE, ":")):
        both.plot([0, most], [0, most * factor], f"k{style}", lw=0.8)
    for axes, x, y in (
        (lengths, f"length, {BATCH} rows", "GiB: predicted, dots measured"),
        (grid, "sizes of the grid, by prediction", "GiB"),
        (both, "measured, GiB", f"predicted, GiB; dotted: {TOLERANCE:.0%}"),
    ):
        axes.set(xlabel=x, ylabel=y, ylim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return encode_png(figure)
