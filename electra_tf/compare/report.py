# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The text report on the differences between two checkpoints."""

import posixpath
from collections.abc import Iterable, Sequence

from configure.formatting import join_names, limit_lines
from electra_tf.checkpoints.weights import STEP_NAME
from electra_tf.compare.differences import (
    Difference,
    ForwardDifference,
    TensorDifference,
)

_MOST_ROWS = 10
_NAME_WIDTH = 46


def worst_first(rows: Iterable[TensorDifference]) -> list[TensorDifference]:
    """Sort tensors: uncompared tensors first, then by decreasing difference."""

    def key(row: TensorDifference) -> tuple[float, ...]:
        return (0,) if row.problem else (1, -row.difference.scaled)

    return sorted(rows, key=key)


def variables_table(
    rows: Sequence[TensorDifference], tolerance: float
) -> list[str]:
    """Return lines with the counts of variables and the largest differences."""
    compared = [row for row in rows if row.difference is not None]
    exact = sum(row.difference.is_exact for row in compared)
    near = sum(row.agrees(tolerance) for row in compared)
    lines = [
        f"Variables: {len(compared)} compared, {exact} exactly equal,"
        f" {near} within {tolerance:g}" + "".join(_problem_counts(rows))
    ]
    lines += limit_lines(absences(rows), _MOST_ROWS)
    worst = [r for r in compared if not r.difference.is_exact][:_MOST_ROWS]
    if worst:
        heads = f"{'max abs':>10}{'rel':>10}{'norm rel':>10}"
        lines.append(f"  {'worst':{_NAME_WIDTH}}{heads}")
    for row in worst:
        size, name = row.difference, row.name
        if len(name) >= _NAME_WIDTH:
            name = "..." + name[4 - _NAME_WIDTH :]
        ratios = "".join(
            f"{'-':>10}" if value is None else f"{value:10.2e}"
            for value in (size.relative, size.norm_relative)
        )
        numbers = f"{size.max_abs:10.2e}{ratios}{size.note}"
        lines.append(f"  {name:{_NAME_WIDTH}}{numbers}")
    return lines


def absences(rows: Iterable[TensorDifference]) -> list[str]:
    """Return lines about tensors that are missing or have different shapes.

    Missing tensors of the same scope share one line.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.problem is not None:
            scope = row.name.split("/")[0]
            is_missing = row.shape_a is None or row.shape_b is None
            key = (row.problem, scope if is_missing else row.name)
            groups.setdefault(key, []).append(row.name)
    return [
        f"{names[0]}: {problem}"
        if len(names) == 1
        else f"{posixpath.commonpath(names)}/... ({len(names)}): {problem}"
        for (problem, _), names in groups.items()
    ]


def _problem_counts(rows: Sequence[TensorDifference]) -> list[str]:
    kinds = [row.problem.split(" |")[0] for row in rows if row.problem]
    kinds = ["of a different shape" if k[:5] == "shape" else k for k in kinds]
    return [f", {kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]


def forward_table(forward: ForwardDifference) -> list[str]:
    """Return lines about layers, logits, decisions and losses."""
    inputs = forward.inputs
    if not forward.layers and not forward.outputs:
        return ["Outputs: A and B have no outputs in common"]
    lines = [
        f"Outputs: {inputs['examples']} examples of {inputs['length']}"
        f" wordpieces, {inputs['tokens']:,} tokens,"
        f" {inputs['predictions']:,} predicted",
        f"  {'':{_NAME_WIDTH}}{'max abs':>10}{'mean abs':>10}{'max |B|':>10}",
    ]
    for network, sizes in forward.layers.items():
        worst = max(range(len(sizes)), key=lambda i: sizes[i].scaled)
        title = f"{network}, worst of {len(sizes)} layers: {worst + 1}"
        lines.append(_output_row(title, sizes[worst]))
    lines += [_output_row(*named) for named in forward.outputs.items()]
    counts = {f"same {name}": n for name, n in forward.agreement.items()}
    counts |= {f"equal {name}": n for name, n in forward.integers.items()}
    for name, (equal, count) in counts.items():
        share = f"{equal:,} of {count:,}"
        lines.append(f"  {name:{_NAME_WIDTH}}{share:>20}")
    if forward.losses:
        lines.append(f"  {'':{_NAME_WIDTH}}{'A':>10}{'B':>10}{'A - B':>10}")
    for name, (a, b) in forward.losses.items():
        lines.append(f"  {name:{_NAME_WIDTH}}{a:10.5f}{b:10.5f}{a - b:10.1e}")
    return lines


def _output_row(name: str, size: Difference) -> str:
    return (
        f"  {name:{_NAME_WIDTH}}{size.max_abs:10.2e}{size.mean_abs:10.2e}"
        f"{size.max_b:10.3g}{size.note}"
    )


def not_compared_table(reasons: dict[str, str]) -> list[str]:
    """Return a line for each reason why outputs were not compared."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    return [
        f"Not compared: {', '.join(names)} ({reason})"
        for reason, names in by_reason.items()
    ]


def optimizer_line(rows: Sequence[TensorDifference], decides: bool) -> str:
    """Return a line about the optimizer's slots and step."""
    compared = [row for row in rows if row.difference]
    slots = [row for row in compared if row.name != STEP_NAME]
    text = f"{len(slots)} slots compared"
    if slots:
        worst = slots[0].difference.max_abs
        text += f", largest difference {worst:.2e} ({slots[0].name})"
    if any(r.name == STEP_NAME and not r.difference.is_exact for r in compared):
        text += "; the step differs"
    text += "".join(_problem_counts(rows))
    effect = "counts for" if decides else "does not change"
    return f"Optimizer ({effect} the verdict): {text}"


def verdict(problems: Sequence[str], is_partial: bool, tolerance: float) -> str:
    """Return a line that states whether two models agree."""
    if not problems:
        limit = ", but some outputs were not compared" if is_partial else ""
        return f"AGREE within {tolerance:g}{limit}"
    return f"DIFFER by more than {tolerance:g}: {join_names(problems)}"
