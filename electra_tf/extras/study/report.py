# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of a study: tables, JSON, learning curves, scores by operations.

A fine-tuning whose model predicts one class for every example is marked
everywhere, because its score does not measure the pre-trained model.
"""

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from configure.text_tables import render_rows
from electra_tf.extras.study.arms import Arm
from electra_tf.extras.study.pictures import Panel, Point, draw
from electra_tf.extras.study.study_file import Lines, Run, Study
from electra_tf.files.atomic import write_atomically
from electra_tf.metrics import trial_statistics
from electra_tf.plan.flops import PETAFLOP_DAY

# The default metrics of pre-training; a study may name different metrics.
_PRETRAINING_METRICS = (
    "masked_lm_accuracy_at_mask",
    "disc_auc_real_tokens",
    "exam_generator_auc",
    "exam_unigram_auc",
)
# column -> format of its values
_COLUMNS = {
    "mean": ".4g",
    "std": ".2g",
    "n": "d",
    "difference": "+.3g",
    "standard_error": ".2g",
    "standard_errors": "+.1f",
    "steps": ",d",
    "tokens": ".3g",
    "petaflop_days": ".3g",
}
# metric of pre-training -> the metric of always predicting the most frequent
# value
_MAJORITY_METRICS = {
    "disc_accuracy": "disc_majority_accuracy",
    "masked_lm_accuracy": "masked_lm_most_frequent_accuracy",
    "masked_lm_accuracy_at_mask": "masked_lm_most_frequent_accuracy",
    "exam_generator_loss": "exam_generator_majority_loss",
    "exam_unigram_loss": "exam_unigram_majority_loss",
}
# Metrics that are 0.5 for random predictions.
_AUCS = (
    "disc_auc",
    "disc_auc_real_tokens",
    "exam_generator_auc",
    "exam_unigram_auc",
)
_COLLAPSED = "*"
Table = dict[str, Any]
# arm -> a value per seed, or per trial of a single seed
Values = dict[str, list[float]]
# arm -> its collapsed fine-tunings: task, seed, trial and prediction
Collapses = dict[str, list[dict[str, Any]]]
Levels = dict[str, list[float]]  # "chance", "majority" -> distinct values


def compare(study: Study, lines: Lines) -> list[Table]:
    """Return a table for each metric, and one for the mean of the tasks.

    A value is a seed's mean over trials. If there is only one seed, each trial
    gives a value.

    Args:
      study: the study.
      lines: digest -> line of a finished run.

    Returns:
      Tables for JSON: `title`, `arms` and `baselines`.
    """
    tables = []
    main_values: list[Values] = []  # the main metric of each task
    main_collapses: list[Collapses] = []
    for kind in ("pretrain", *study.tasks):
        collapses = {
            arm.name: list(_collapses(study, arm, kind, lines))
            for arm in study.arms
        }
        known = _metrics_with_values(study, kind, lines)
        for metric in (metrics := _metrics(study, kind, known)):
            values = {
                arm.name: list(_values(study, arm, kind, metric, lines))
                for arm in study.arms
            }
            title = f"{kind}: {metric}"
            if known and metric not in known:
                title += " (in no result)"
            table = _table(study, title, values, collapses)
            table["baselines"] = _levels(study, kind, metric, lines)
            tables.append(table)
            if kind in study.tasks and metric == metrics[0]:
                main_values.append(values)
                main_collapses.append(collapses)
    if len(main_values) > 1:
        means = _mean_of_tasks(study, main_values)
        collapses = {}
        for arm in study.arms:
            collapses[arm.name] = list(
                itertools.chain.from_iterable(
                    of_task[arm.name] for of_task in main_collapses
                )
            )
        tables.append(_table(study, "mean of the tasks", means, collapses))
    return tables


def _metrics_with_values(study: Study, kind: str, lines: Lines) -> list[str]:
    """Return the names of finished runs' metrics, in order of appearance."""
    known: dict[str, Any] = {}
    for arm, seed in itertools.product(study.arms, study.seeds):
        known |= _results(study, arm, seed, kind, lines)
    return list(known)


def _metrics(study: Study, kind: str, known: Sequence[str]) -> Sequence[str]:
    """Return the metrics that get a table: the study file's or the defaults."""
    defaults = [name for name in _PRETRAINING_METRICS if name in known]
    if kind in study.tasks and known:
        defaults = [known[0]]
    return study.figures.get(kind, defaults)


def _mean_of_tasks(study: Study, task_values: Sequence[Values]) -> Values:
    """Return means over tasks; omit arms with unequal counts of values."""
    means: Values = {}
    for arm in study.arms:
        values = [of_task[arm.name] for of_task in task_values]
        if len(set(map(len, values))) == 1:
            means[arm.name] = [
                sum(one_seed) / len(one_seed)
                for one_seed in zip(*values, strict=True)
            ]
    return means


def _line(
    study: Study, arm: Arm, seed: int, kind: str, lines: Lines
) -> Mapping[str, Any]:
    """Return the results line of a run; {} if the run is not finished.

    Args:
      study: the study.
      arm: the run's arm.
      seed: the run's seed.
      kind: "pretrain", or the task of a fine-tuning.
      lines: digest -> line.
    """
    run = study.pretraining(arm, seed)
    if kind != "pretrain":
        run = study.finetuning(arm, seed, kind, lines)
    return lines.get(run.digest if run else "", {})


def _results(
    study: Study, arm: Arm, seed: int, kind: str, lines: Lines
) -> dict[str, Any]:
    return _line(study, arm, seed, kind, lines).get("results", {})


def _collapses(
    study: Study, arm: Arm, kind: str, lines: Lines
) -> Iterator[dict[str, Any]]:
    """Yield an arm's collapsed trials, whose models predict only one class."""
    for seed in study.seeds:
        line = _line(study, arm, seed, kind, lines)
        # Lines of earlier versions do not record collapses.
        for trial, prediction in line.get("collapsed", {}).items():
            yield {
                "task": kind,
                "seed": seed,
                "trial": int(trial),
                "prediction": prediction,
            }


def _levels(study: Study, kind: str, metric: str, lines: Lines) -> Levels:
    """Return the distinct baseline scores in the runs of all arms and seeds."""
    levels: Levels = {}
    for arm, seed in itertools.product(study.arms, study.seeds):
        line = _line(study, arm, seed, kind, lines)
        baselines = line.get("baselines", {})
        if kind == "pretrain":
            row = {n: v[0] for n, v in line.get("results", {}).items()}
            baselines = _pretraining_baselines(row)
        _add_levels(levels, baselines, metric)
    return levels


def _pretraining_baselines(
    row: Mapping[str, float],
) -> dict[str, dict[str, float]]:
    """Return the metrics of baselines from a row of the evaluation log."""
    majority = {
        metric: row[name]
        for metric, name in _MAJORITY_METRICS.items()
        if row.get(name) is not None
    }
    chance = {name: 0.5 for name in _AUCS if name in row}
    return {"chance": chance, "majority": majority}


def _add_levels(
    levels: Levels, baselines: Mapping[str, Any], metric: str
) -> None:
    """Add the baselines of a metric to `levels`, each value once."""
    for kind, metrics in baselines.items():
        value = metrics.get(metric)
        if value is not None and value not in levels.get(kind, []):
            levels.setdefault(kind, []).append(value)


def _values(
    study: Study, arm: Arm, kind: str, metric: str, lines: Lines
) -> Iterator[float]:
    """Yield each seed's mean over trials, or the trials of a single seed."""
    for seed in study.seeds:
        results = _results(study, arm, seed, kind, lines)
        trials = trial_statistics.from_json(results.get(metric, []))
        if len(study.seeds) == 1:
            yield from trials
        else:
            yield trial_statistics.describe(trials).mean


def _table(
    study: Study, title: str, values: Values, collapses: Collapses
) -> Table:
    """Return a table with a row for each arm."""
    described = {
        arm.name: trial_statistics.describe(values.get(arm.name, []))
        for arm in study.arms
    }
    rows: dict[str, dict[str, Any]] = {}
    for arm in study.arms:
        summary = described[arm.name]
        row = {**summary.as_dict(), **arm.cost, "n": _count(summary)}
        row["std"] = summary.std if row["n"] > 1 else None
        row["petaflop_days"] = arm.cost.get("flops", 0) / PETAFLOP_DAY or None
        row["collapsed"] = collapses[arm.name]
        for other in study.arms:
            if other is not arm and _is_compared_with(study, arm, other):
                row |= _difference(summary, described[other.name])
                row["compared_with"] = other.name
        rows[arm.name] = row
    return {"title": title, "arms": rows, "baselines": {}}


def _is_compared_with(study: Study, arm: Arm, other: Arm) -> bool:
    """Return whether an arm's row shows its difference from another arm.

    `against` names that arm, or its line of arms; then the arm at the same
    point of the grid is meant.
    """
    names = {(other.line, other.point), (other.name, "")}
    return bool(names & {(study.against, arm.point), (study.against, "")})


def _count(summary: trial_statistics.Statistics) -> int:
    """Return the number of values that are not NaN."""
    return len(summary.values) - summary.undefined


def _difference(
    first: trial_statistics.Statistics, second: trial_statistics.Statistics
) -> dict[str, float | None]:
    """Return the difference of two means, also in Welch's standard errors."""
    error = math.nan
    if min(counts := [_count(first), _count(second)]) > 1:
        error = math.sqrt(first.std**2 / counts[0] + second.std**2 / counts[1])
    difference = first.mean - second.mean
    return {
        "difference": trial_statistics.finite(difference),
        "standard_error": trial_statistics.finite(error),
        "standard_errors": trial_statistics.finite(
            difference / (error or math.nan)
        ),
    }


def text_of(study: Study, tables: Sequence[Table]) -> str:
    """Return the tables as text."""
    unit = "pre-training seeds" if len(study.seeds) > 1 else "trials"
    lines = [
        f"{study.path}: n is the number of {unit}; differences are"
        f" relative to {study.against}"
    ]
    for table in tables:
        rows = [["arm", *(name.replace("_", " ") for name in _COLUMNS)]]
        for arm, row in table["arms"].items():
            rows.append([arm, *_cells(table, row)])
        lines += ["", table["title"], *render_rows(rows), *_notes(table)]
    return "\n".join(lines) + "\n"


def _cells(table: Table, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield a row's cells; mark the values of collapsed fine-tunings."""
    arms = table["arms"]
    against = arms.get(row.get("compared_with"), {}).get("collapsed")
    is_marked = {
        "mean": bool(row["collapsed"]),
        "difference": bool(row["collapsed"] or against),
    }
    for name, form in _COLUMNS.items():
        value = row.get(name)
        if value is None:
            yield "-"
            continue
        mark = _COLLAPSED if is_marked.get(name) else ""
        yield f"{value:{form}}{mark}"


def _notes(table: Table) -> Iterator[str]:
    """Yield a footnote for each fine-tuning that collapsed."""
    for arm, row in table["arms"].items():
        for collapse in row["collapsed"]:
            yield (
                f"{_COLLAPSED} {arm}, seed {collapse['seed']}: trial"
                f" {collapse['trial']} collapsed on {collapse['task']}:"
                f" {collapse['prediction']}"
            )


def write(study: Study, lines: Lines, failed: dict[str, str]) -> str:
    """Write the table, the JSON file and the pictures to the study's folder.

    Args:
      study: the study.
      lines: digest -> line of a finished run.
      failed: name of a run -> reason.

    Returns:
      The table.
    """
    tables = compare(study, lines)
    text = text_of(study, tables)
    content = {"study": study.digest, "failed": failed, "tables": tables}
    path = os.path.join(study.output, study.name)
    write_atomically(f"{path}.txt", text)
    write_atomically(f"{path}.json", json.dumps(content, indent=1) + "\n")
    write_atomically(
        f"{path}_scores.png", draw([*_scores(study, tables)], "log")
    )
    write_atomically(f"{path}_curves.png", draw([*_curves(study)], "linear"))
    return text


def _scores(study: Study, tables: Sequence[Table]) -> Iterator[Panel]:
    """Yield panels of scores over operations, as in the paper's Figure 1."""
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
    """Yield panels of the learning curves of all pre-trainings."""
    pairs = itertools.product(study.arms, study.seeds)
    runs = [*filter(None, itertools.starmap(study.pretraining, pairs))]
    metrics = study.figures.get("pretrain", _PRETRAINING_METRICS)
    curves = [("train", "loss")]
    curves += [("eval", metric) for metric in metrics]
    for log, metric in curves:
        points: dict[str, list[Point]] = {}
        levels: dict[str, list[float]] = {}
        for run in runs:
            rows = _read_log(run, log)
            curve = _points(rows, metric)
            if curve:
                points[run.name] = curve
                _add_levels(levels, _pretraining_baselines(rows[-1]), metric)
        yield Panel(f"{metric} ({log}) over steps", points, levels)
    yield from _detection_curves(study, runs)


def _detection_curves(study: Study, runs: Sequence[Run]) -> Iterator[Panel]:
    """Yield a panel of relative discriminator losses and one of unigram shares.

    A loss is divided by the loss of always predicting the share of replaced
    tokens. A value below 1 shows that the discriminator has learned, whatever
    the generator is.
    """
    # TensorFlow is imported late, because --dry_run does not need it.
    from electra_tf.pretraining.metrics import binary_entropy

    objectives = {
        run.digest: arm.config.objective
        for arm, seed in itertools.product(study.arms, study.seeds)
        if (run := study.pretraining(arm, seed))
    }
    losses: dict[str, list[Point]] = {}
    shares: dict[str, list[Point]] = {}
    for run in runs:
        rows = _read_log(run, "train")
        if share_curve := _points(rows, "unigram_share"):
            shares[run.name] = share_curve
        # Losses of other objectives cannot be compared, because they are
        # computed over different tokens.
        if objectives[run.digest] != "electra":
            continue
        loss_curve = []
        for row in rows:
            loss, share = row.get("disc_loss"), row.get("replaced_share")
            # A damaged row may lack a value. If no token is replaced, the
            # baseline is 0, and a loss cannot be divided by 0.
            if loss is not None and share and (base := binary_entropy(share)):
                loss_curve.append(Point(row["step"], loss / base))
        if loss_curve:
            losses[run.name] = loss_curve
    yield Panel(
        "disc_loss / majority's loss (train) over steps",
        losses,
        {"majority": [1.0]},
    )
    yield Panel("unigram_share (train) over steps", shares, {})


def _points(rows: Sequence[Mapping[str, Any]], metric: str) -> list[Point]:
    """Return the values of a metric over steps, from the rows that have it."""
    return [
        Point(row["step"], row[metric])
        for row in rows
        if row.get(metric) is not None
    ]


def _read_log(run: Run, log: str) -> list[dict[str, Any]]:
    """Return the intact rows of a run's log, "train" or "eval".

    A warning names each damaged row.
    """
    # TensorFlow is imported late, because the import takes seconds and is not
    # needed to start runs.
    from electra_tf.training.logs import read_rows

    path = os.path.join(run.folder, f"{log}_log.jsonl")
    return read_rows(path, lambda text: print(f"warning: {text}"))
