# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a study found: a table, the same in JSON, curves, score over FLOPs."""

import itertools
import json
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

from configure.errors import aligned
from electra_tf import files
from electra_tf.metrics import scorers
from electra_tf.plan.counts import PETAFLOP_DAY
from electra_tf.study.cells import Arm, Lines, Study

# Of pre-training, unless the study names others.
_FIGURES = ("masked_lm_accuracy_at_mask", "disc_auc_real_tokens")
_COLUMNS = {
    **{"mean": ".4g", "std": ".2g", "n": "d", "difference": "+.3g"},
    **{"standard_error": ".2g", "standard_errors": "+.1f", "steps": ",d"},
    **{"tokens": ".3g", "petaflop_days": ".3g"},
}
Table = dict[str, Any]
Values = dict[str, list[float]]  # arm -> a value each seed, or trial


def compare(study: Study, lines: Lines) -> list[Table]:
    """A table for each figure of pre-training and of each task, and their mean.

    A value is a seed's mean over trials; where there is one seed, a trial's.
    """
    tables, mains = [], []
    for of in ("pretrain", *study.tasks):
        known: dict[str, Any] = {}
        for arm, seed in itertools.product(study.arms, study.seeds):
            known |= _results(study, arm, seed, of, lines)
        figures = [name for name in _FIGURES if name in known]
        if of in study.tasks and known:
            figures = [next(iter(known))]
        for figure in (figures := study.figures.get(of, figures)):
            values = {
                arm.name: list(_values(study, arm, of, figure, lines))
                for arm in study.arms
            }
            odd = " (in no result)" * (bool(known) and figure not in known)
            tables.append(_table(study, f"{of}: {figure}{odd}", values))
            if of in study.tasks and figure == figures[0]:
                mains.append(values)
    if len(mains) > 1:
        # Of arms whose tasks are equally far.
        means = {
            arm.name: [sum(of) / len(of) for of in zip(*each, strict=True)]
            for arm in study.arms
            for each in [[values[arm.name] for values in mains]]
            if len({len(values) for values in each}) == 1
        }
        tables.append(_table(study, "mean of the tasks", means))
    return tables


def _results(
    study: Study, arm: Arm, seed: int, of: str, lines: Lines
) -> dict[str, Any]:
    cell = study.pretraining(arm, seed)
    if of != "pretrain":
        cell = study.counted(arm, seed, of, lines)
    return lines.get(cell.digest if cell else "", {}).get("results", {})


def _values(
    study: Study, arm: Arm, of: str, figure: str, lines: Lines
) -> Iterator[float]:
    for seed in study.seeds:
        results = _results(study, arm, seed, of, lines)
        trials = scorers.of_json(results.get(figure, []))
        if len(study.seeds) == 1:
            yield from trials
        else:
            yield scorers.describe(trials).mean


def _table(study: Study, title: str, values: Values) -> Table:
    found = {
        a.name: scorers.describe(values.get(a.name, [])) for a in study.arms
    }
    rows: dict[str, dict[str, Any]] = {}
    for arm in study.arms:
        mine = found[arm.name]
        row = {**mine.as_dict(), **arm.cost, "n": _count(mine)}
        row["std"] = mine.std if row["n"] > 1 else None
        row["petaflop_days"] = arm.cost.get("flops", 0) / PETAFLOP_DAY or None
        # The named arm, or its point at the same place in the grid.
        wanted = {(study.against, arm.point), (study.against, "")}
        for other in study.arms:
            own = {(other.line, other.point), (other.name, "")}
            if wanted & own and other is not arm:
                row |= _difference(mine, found[other.name])
        rows[arm.name] = row
    return {"title": title, "arms": rows}


def _count(of: scorers.Statistics) -> int:
    return len(of.values) - of.undefined


def _difference(one: Any, two: Any) -> dict[str, float | None]:
    """Of two means, and how many of Welch's standard errors it is."""
    error = math.nan
    if min(counts := [_count(one), _count(two)]) > 1:
        error = math.sqrt(one.std**2 / counts[0] + two.std**2 / counts[1])
    difference = one.mean - two.mean
    return {
        "difference": scorers.finite(difference),
        "standard_error": scorers.finite(error),
        "standard_errors": scorers.finite(difference / (error or math.nan)),
    }


def text_of(study: Study, tables: Sequence[Table]) -> str:
    """The tables, as people read them."""
    unit = "pre-training seeds" if len(study.seeds) > 1 else "trials"
    lines = [f"{study.path}: n counts {unit}; compared with {study.against}"]
    for table in tables:
        rows = [["arm", *(name.replace("_", " ") for name in _COLUMNS)]]
        for arm, row in table["arms"].items():
            shown = ((row.get(name), form) for name, form in _COLUMNS.items())
            texts = ["-" if v is None else format(v, form) for v, form in shown]
            rows.append([arm, *texts])
        lines += ["", table["title"], *aligned(rows)]
    return "\n".join(lines) + "\n"


def write(study: Study, lines: Lines, failed: dict[str, str]) -> str:
    """Writes table, JSON and pictures; returns the table."""
    tables = compare(study, lines)
    text = text_of(study, tables)
    found = {"study": study.digest, "failed": failed, "tables": tables}
    for name, content in (
        (".txt", text),
        (".json", json.dumps(found, indent=1) + "\n"),
        ("_scores.png", _draw([*_scores(study, tables)], "log")),
        ("_curves.png", _draw([*_curves(study)], "linear")),
    ):
        path = os.path.join(study.output, study.name)
        files.write_atomically(path + name, content)
    return text


# Pictures: panels of a title and of lines, name -> points (x, y, error).
Panel = tuple[str, dict[str, list[tuple[float, float, float]]]]


def _scores(study: Study, tables: Sequence[Table]) -> Iterator[Panel]:
    """Score over operations, as the paper's Figure 1."""
    for table in tables:
        points: dict[str, list] = {}
        for arm in study.arms:
            row = table["arms"][arm.name]
            if row["n"]:
                x = row["petaflop_days"] or math.nan
                error = (row["std"] or 0.0) / math.sqrt(row["n"])
                points.setdefault(arm.line, []).append((x, row["mean"], error))
        yield f"{table['title']} over petaflop/s-days", points


def _curves(study: Study) -> Iterator[Panel]:
    pairs = itertools.product(study.arms, study.seeds)
    cells = [*filter(None, itertools.starmap(study.pretraining, pairs))]
    figures = study.figures.get("pretrain", _FIGURES)
    for log, figure in (("train", "loss"), *(("eval", n) for n in figures)):
        points: dict[str, list] = {}
        for cell in cells:
            path = os.path.join(cell.folder, f"{log}_log.jsonl")
            text = files.read_text(path) if files.exists(path) else ""
            points[cell.name] = [
                (row["step"], row[figure], 0.0)
                for row in map(json.loads, text.splitlines())
                if row.get(figure) is not None
            ]
        points = {name: of for name, of in points.items() if of}
        yield f"{figure} ({log}) over steps", points


def _draw(panels: Sequence[Panel], scale: str) -> bytes:
    from matplotlib.figure import Figure  # takes a second

    panels = [panel for panel in panels if panel[1]]
    rows = max(1, -(-len(panels) // 3))
    figure = Figure(figsize=(15, 3.6 * rows), layout="constrained")
    for place, (title, lines) in enumerate(panels, 1):
        axes = figure.add_subplot(rows, 3, place)
        colors: dict[str, str] = {}
        for name, points in lines.items():
            arm = name.split("/")[0]  # Its seeds look alike.
            style = {"label": arm if arm not in colors else None}
            style["color"] = colors.setdefault(arm, f"C{len(colors) % 10}")
            x, y, errors = zip(*sorted(points), strict=True)
            if any(map(math.isnan, x)):  # Nothing was pre-trained.
                axes.axhline(y[0], linestyle="--", **style)
                low, high = y[0] - errors[0], y[0] + errors[0]
                axes.axhspan(low, high, color=style["color"], alpha=0.15)
            elif any(errors):
                axes.errorbar(x, y, errors, marker="o", capsize=2, **style)
            else:
                axes.plot(x, y, marker="." if len(x) < 20 else "", **style)
        axes.set_xscale(scale)
        axes.set_title(title, fontsize=9)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6)
    return files.png(figure)
