# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Differences of two checkpoints as one screen of text."""

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


def worst_first(found: Iterable[TensorDifference]) -> list[TensorDifference]:
    """Sorts tensors: what was not compared, then by difference."""

    def key(row: TensorDifference) -> tuple[float, ...]:
        return (0,) if row.problem else (1, -row.difference.scaled)

    return sorted(found, key=key)


def variables_table(
    found: Sequence[TensorDifference], tolerance: float
) -> list[str]:
    """Describes variables: how many, and the worst of them."""
    compared = [row for row in found if row.difference is not None]
    exact = sum(row.difference.is_exact for row in compared)
    near = sum(row.agrees(tolerance) for row in compared)
    lines = [
        f"Variables: {len(compared)} compared, {exact} exactly equal,"
        f" {near} within {tolerance:g}" + "".join(_problem_counts(found))
    ]
    lines += limit_lines(absences(found), _MOST_ROWS)
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


def absences(found: Iterable[TensorDifference]) -> list[str]:
    """Describes what is missing or of another shape, whole scopes at once."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in found:
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


def _problem_counts(found: Sequence[TensorDifference]) -> list[str]:
    kinds = [row.problem.split(" |")[0] for row in found if row.problem]
    kinds = ["of another shape" if k[:5] == "shape" else k for k in kinds]
    return [f", {kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]


def forward_table(found: ForwardDifference) -> list[str]:
    """Describes outputs: networks, logits, decisions and losses."""
    inputs = found.inputs
    if not found.layers and not found.outputs:
        return ["Outputs: none that both have"]
    lines = [
        f"Outputs: {inputs['examples']} examples of {inputs['length']}"
        f" wordpieces, {inputs['tokens']:,} tokens,"
        f" {inputs['predictions']:,} predicted",
        f"  {'':{_NAME_WIDTH}}{'max abs':>10}{'mean abs':>10}{'max |B|':>10}",
    ]
    for network, sizes in found.layers.items():
        worst = max(range(len(sizes)), key=lambda i: sizes[i].scaled)
        title = f"{network}, worst of {len(sizes)} layers: {worst + 1}"
        lines.append(_output_row(title, sizes[worst]))
    lines += [_output_row(*named) for named in found.outputs.items()]
    counts = {f"same {name}": n for name, n in found.agreement.items()}
    counts |= {f"equal {name}": n for name, n in found.integers.items()}
    for name, (equal, count) in counts.items():
        share = f"{equal:,} of {count:,}"
        lines.append(f"  {name:{_NAME_WIDTH}}{share:>20}")
    if found.losses:
        lines.append(f"  {'':{_NAME_WIDTH}}{'A':>10}{'B':>10}{'A - B':>10}")
    for name, (a, b) in found.losses.items():
        lines.append(f"  {name:{_NAME_WIDTH}}{a:10.5f}{b:10.5f}{a - b:10.1e}")
    return lines


def _output_row(name: str, found: Difference) -> str:
    return (
        f"  {name:{_NAME_WIDTH}}{found.max_abs:10.2e}{found.mean_abs:10.2e}"
        f"{found.max_b:10.3g}{found.note}"
    )


def not_compared_table(reasons: dict[str, str]) -> list[str]:
    """Lists what was left out, and why."""
    by_reason: dict[str, list[str]] = {}
    for name, why in reasons.items():
        by_reason.setdefault(why, []).append(name)
    return [
        f"Not compared: {', '.join(names)} ({why})"
        for why, names in by_reason.items()
    ]


def optimizer_line(found: Sequence[TensorDifference], decides: bool) -> str:
    """Describes Adam slots and step."""
    compared = [row for row in found if row.difference]
    slots = [row for row in compared if row.name != STEP_NAME]
    text = f"{len(slots)} slots compared"
    if slots:
        worst = slots[0].difference.max_abs
        text += f", largest difference {worst:.2e} ({slots[0].name})"
    if any(r.name == STEP_NAME and not r.difference.is_exact for r in compared):
        text += "; step differs"
    text += "".join(_problem_counts(found))
    return f"Optimizer ({'' if decides else 'not '}deciding): {text}"


def verdict(problems: Sequence[str], is_partial: bool, tolerance: float) -> str:
    """Says in a line whether two models agree."""
    if not problems:
        limit = ", as far as compared" if is_partial else ""
        return f"AGREE within {tolerance:g}{limit}"
    return f"DIFFER by more than {tolerance:g}: {join_names(problems)}"
