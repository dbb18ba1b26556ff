# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a study found: a table, the same in JSON, curves, score over FLOPs.

A fine-tuning that answers one class for every example is marked in all of
them: its score says nothing of the pre-trained model.
"""

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from configure.text_tables import render_rows
from electra_tf.extras.study.cells import Arm, Cell, Lines, Study
from electra_tf.extras.study.pictures import Panel, Point, draw
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.reading import read_text
from electra_tf.metrics import statistics
from electra_tf.plan.flops import PETAFLOP_DAY

# Of pre-training, unless the study names others.
_FIGURES = (
    "masked_lm_accuracy_at_mask",
    "disc_auc_real_tokens",
    "exam_generator_auc",
    "exam_unigram_auc",
)
_COLUMNS = {
    **{"mean": ".4g", "std": ".2g", "n": "d", "difference": "+.3g"},
    **{"standard_error": ".2g", "standard_errors": "+.1f", "steps": ",d"},
    **{"tokens": ".3g", "petaflop_days": ".3g"},
}
# Figures of pre-training -> the figure of always answering the most frequent.
_MAJORITY_FIGURES = {
    "disc_accuracy": "disc_majority_accuracy",
    "masked_lm_accuracy": "masked_lm_most_frequent_accuracy",
    "masked_lm_accuracy_at_mask": "masked_lm_most_frequent_accuracy",
    "exam_generator_loss": "exam_generator_majority_loss",
    "exam_unigram_loss": "exam_unigram_majority_loss",
}
_AUCS = ("disc_auc", "disc_auc_real_tokens")
_EXAM_AUCS = ("exam_generator_auc", "exam_unigram_auc")
_CHANCE = dict.fromkeys((*_AUCS, *_EXAM_AUCS), 0.5)
_COLLAPSED = "*"
Table = dict[str, Any]
Values = dict[str, list[float]]  # arm -> a value each seed, or trial
# Arm -> fine-tunings that answered one class: task, seed, trial, prediction.
Collapses = dict[str, list[dict[str, Any]]]
Levels = dict[str, list[float]]  # "chance", "majority" -> different values


def compare(study: Study, lines: Lines) -> list[Table]:
    """A table for each figure of pre-training and of each task, and their mean.

    A value is a seed's mean over trials; where there is one seed, a trial's.
    """
    tables, mains = [], []
    for of in ("pretrain", *study.tasks):
        collapses = {
            arm.name: list(_collapses(study, arm, of, lines))
            for arm in study.arms
        }
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
            table = _table(study, f"{of}: {figure}{odd}", values, collapses)
            table["baselines"] = _levels(study, of, figure, lines)
            tables.append(table)
            if of in study.tasks and figure == figures[0]:
                mains.append((values, collapses))
    if len(mains) > 1:
        # Of arms whose tasks are equally far.
        means = {
            arm.name: [sum(of) / len(of) for of in zip(*each, strict=True)]
            for arm in study.arms
            for each in [[values[arm.name] for values, _ in mains]]
            if len({len(values) for values in each}) == 1
        }
        of_all = {
            arm.name: [one for _, of in mains for one in of[arm.name]]
            for arm in study.arms
        }
        tables.append(_table(study, "mean of the tasks", means, of_all))
    return tables


def _line(
    study: Study, arm: Arm, seed: int, of: str, lines: Lines
) -> Mapping[str, Any]:
    """Return the line of a finished cell; {} while it is not finished."""
    cell = study.pretraining(arm, seed)
    if of != "pretrain":
        cell = study.counted(arm, seed, of, lines)
    return lines.get(cell.digest if cell else "", {})


def _results(
    study: Study, arm: Arm, seed: int, of: str, lines: Lines
) -> dict[str, Any]:
    return _line(study, arm, seed, of, lines).get("results", {})


def _collapses(
    study: Study, arm: Arm, of: str, lines: Lines
) -> Iterator[dict[str, Any]]:
    for seed in study.seeds:
        line = _line(study, arm, seed, of, lines)
        # Lines of earlier versions do not record it.
        for trial, prediction in line.get("collapsed", {}).items():
            yield {
                "task": of,
                "seed": seed,
                "trial": int(trial),
                "prediction": prediction,
            }


def _levels(study: Study, of: str, figure: str, lines: Lines) -> Levels:
    """Return what answers without a model score, over all arms and seeds."""
    levels: Levels = {}
    for arm, seed in itertools.product(study.arms, study.seeds):
        line = _line(study, arm, seed, of, lines)
        baselines = line.get("baselines", {})
        if of == "pretrain":
            row = {n: v[0] for n, v in line.get("results", {}).items()}
            baselines = _pretraining_baselines(row)
        _add_levels(levels, baselines, figure)
    return levels


def _pretraining_baselines(
    row: Mapping[str, float],
) -> dict[str, dict[str, float]]:
    """Return the baselines that an evaluation of pre-training holds."""
    majority = {
        figure: row[name]
        for figure, name in _MAJORITY_FIGURES.items()
        if row.get(name) is not None
    }
    chance = {name: v for name, v in _CHANCE.items() if name in row}
    return {"chance": chance, "majority": majority}


def _add_levels(
    levels: Levels, baselines: Mapping[str, Any], figure: str
) -> None:
    for kind, figures in baselines.items():
        value = figures.get(figure)
        if value is not None and value not in levels.setdefault(kind, []):
            levels[kind].append(value)
    for kind in [kind for kind, values in levels.items() if not values]:
        del levels[kind]


def _values(
    study: Study, arm: Arm, of: str, figure: str, lines: Lines
) -> Iterator[float]:
    for seed in study.seeds:
        results = _results(study, arm, seed, of, lines)
        trials = statistics.from_json(results.get(figure, []))
        if len(study.seeds) == 1:
            yield from trials
        else:
            yield statistics.describe(trials).mean


def _table(
    study: Study, title: str, values: Values, collapses: Collapses
) -> Table:
    found = {
        a.name: statistics.describe(values.get(a.name, [])) for a in study.arms
    }
    rows: dict[str, dict[str, Any]] = {}
    for arm in study.arms:
        mine = found[arm.name]
        row = {**mine.as_dict(), **arm.cost, "n": _count(mine)}
        row["std"] = mine.std if row["n"] > 1 else None
        row["petaflop_days"] = arm.cost.get("flops", 0) / PETAFLOP_DAY or None
        row["collapsed"] = collapses[arm.name]
        # The named arm, or its point at the same place in the grid.
        wanted = {(study.against, arm.point), (study.against, "")}
        for other in study.arms:
            own = {(other.line, other.point), (other.name, "")}
            if wanted & own and other is not arm:
                row |= _difference(mine, found[other.name])
                row["compared_with"] = other.name
        rows[arm.name] = row
    return {"title": title, "arms": rows, "baselines": {}}


def _count(of: statistics.Statistics) -> int:
    return len(of.values) - of.undefined


def _difference(one: Any, two: Any) -> dict[str, float | None]:
    """Of two means, and how many of Welch's standard errors it is."""
    error = math.nan
    if min(counts := [_count(one), _count(two)]) > 1:
        error = math.sqrt(one.std**2 / counts[0] + two.std**2 / counts[1])
    difference = one.mean - two.mean
    return {
        "difference": statistics.finite(difference),
        "standard_error": statistics.finite(error),
        "standard_errors": statistics.finite(difference / (error or math.nan)),
    }


def text_of(study: Study, tables: Sequence[Table]) -> str:
    """The tables, as people read them."""
    unit = "pre-training seeds" if len(study.seeds) > 1 else "trials"
    lines = [f"{study.path}: n counts {unit}; compared with {study.against}"]
    for table in tables:
        rows = [["arm", *(name.replace("_", " ") for name in _COLUMNS)]]
        for arm, row in table["arms"].items():
            rows.append([arm, *_texts(table, row)])
        lines += ["", table["title"], *render_rows(rows), *_notes(table)]
    return "\n".join(lines) + "\n"


def _texts(table: Table, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield a row's cells; figures of collapsed fine-tunings have a mark."""
    arms = table["arms"]
    is_marked = any(other["collapsed"] for other in arms.values())
    against = arms.get(row.get("compared_with"), {}).get("collapsed")
    marked = {
        "mean": bool(row["collapsed"]),
        "difference": bool(row["collapsed"] or against),
    }
    for name, form in _COLUMNS.items():
        value = row.get(name)
        text = "-" if value is None else format(value, form)
        if is_marked and name in marked:
            # Digits stay below digits.
            text += _COLLAPSED if marked[name] and value is not None else " "
        yield text


def _notes(table: Table) -> Iterator[str]:
    """Yield a footnote for each fine-tuning that collapsed."""
    for arm, row in table["arms"].items():
        for one in row["collapsed"]:
            yield (
                f"{_COLLAPSED} {arm}, seed {one['seed']}: trial {one['trial']}"
                f" collapsed on {one['task']}: {one['prediction']}"
            )


def write(study: Study, lines: Lines, failed: dict[str, str]) -> str:
    """Writes table, JSON and pictures; returns the table."""
    tables = compare(study, lines)
    text = text_of(study, tables)
    found = {"study": study.digest, "failed": failed, "tables": tables}
    for name, content in (
        (".txt", text),
        (".json", json.dumps(found, indent=1) + "\n"),
        ("_scores.png", draw([*_scores(study, tables)], "log")),
        ("_curves.png", draw([*_curves(study)], "linear")),
    ):
        path = os.path.join(study.output, study.name)
        write_atomically(path + name, content)
    return text


def _scores(study: Study, tables: Sequence[Table]) -> Iterator[Panel]:
    """Score over operations, as the paper's Figure 1."""
    for table in tables:
        points: dict[str, list[Point]] = {}
        for arm in study.arms:
            row = table["arms"][arm.name]
            if row["n"]:
                x = row["petaflop_days"] or math.nan
                error = (row["std"] or 0.0) / math.sqrt(row["n"])
                point = Point(x, row["mean"], error, bool(row["collapsed"]))
                points.setdefault(arm.line, []).append(point)
        title = f"{table['title']} over petaflop/s-days"
        yield Panel(title, points, table["baselines"])


def _curves(study: Study) -> Iterator[Panel]:
    pairs = itertools.product(study.arms, study.seeds)
    cells = [*filter(None, itertools.starmap(study.pretraining, pairs))]
    figures = study.figures.get("pretrain", _FIGURES)
    for log, figure in (("train", "loss"), *(("eval", n) for n in figures)):
        points: dict[str, list[Point]] = {}
        levels: dict[str, list[float]] = {}
        for cell in cells:
            rows = _rows(cell, log)
            points[cell.name] = [
                Point(row["step"], row[figure])
                for row in rows
                if row.get(figure) is not None
            ]
            if points[cell.name]:
                _add_levels(levels, _pretraining_baselines(rows[-1]), figure)
        points = {name: of for name, of in points.items() if of}
        yield Panel(f"{figure} ({log}) over steps", points, levels)
    yield from _detection_curves(study, cells)


def _detection_curves(study: Study, cells: Sequence[Cell]) -> Iterator[Panel]:
    """The discriminator's loss against its majority's; the share of counts.

    A loss in multiples of that of always giving the share of replaced tokens:
    below 1 a discriminator has learned something, whatever its generator.
    """
    from electra_tf.pretraining.metrics import binary_entropy

    objectives = {
        cell.digest: arm.config.objective
        for arm, seed in itertools.product(study.arms, study.seeds)
        if (cell := study.pretraining(arm, seed))
    }
    losses: dict[str, list[Point]] = {}
    shares: dict[str, list[Point]] = {}
    for cell in cells:
        rows = _rows(cell, "train")
        shares[cell.name] = [
            Point(row["step"], row["unigram_share"])
            for row in rows
            if row.get("unigram_share") is not None
        ]
        if objectives[cell.digest] == "electra":  # Others' is of other tokens.
            losses[cell.name] = [
                Point(row["step"], row["disc_loss"] / majority)
                for row in rows
                if row.get("disc_loss") is not None
                if (majority := binary_entropy(row["replaced_share"]))
            ]
    yield Panel(
        "disc_loss / its majority's (train) over steps",
        {name: of for name, of in losses.items() if of},
        {"majority": [1.0]},
    )
    yield Panel(
        "unigram_share (train) over steps",
        {name: of for name, of in shares.items() if of},
        {},
    )


def _rows(cell: Cell, log: str) -> list[dict[str, Any]]:
    """Return the rows of a run's log, "train" or "eval"."""
    path = os.path.join(cell.folder, f"{log}_log.jsonl")
    text = read_text(path) if filesystem.exists(path) else ""
    return [json.loads(line) for line in text.splitlines()]
