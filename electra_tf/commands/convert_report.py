# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a conversion did: one screen, and the whole of it as JSON."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from electra_tf.checkpoints.weights import Weights

# Scopes of the original's models; other names are kept, but said.
_KNOWN_SCOPES = (
    "electra/",
    "generator/",
    "generator_ltr/",
    "generator_rtl/",
    "generator_predictions/",
    "cloze_predictions/",
    "discriminator_predictions/",
    "task_specific/",
)
_MOST_NAMES = 3


def describe(weights: Weights) -> dict[str, Any]:
    """Counts what a checkpoint holds.

    Args:
      weights: any; only its step is read.

    Returns:
      Path, kind, and numbers of tensors, variables, parameters, slots and
      bytes, and the step (None where not stored).
    """
    shapes = weights.shapes
    return {
        "path": weights.path,
        "kind": weights.kind,
        "tensors": len(weights.specs),
        "variables": len(shapes),
        "parameters": sum(
            int(np.prod(shape, dtype=np.int64)) for shape in shapes.values()
        ),
        "slots": len(weights.slots),
        "global_step": weights.global_step,
        "bytes": sum(s.size_in_bytes for s in weights.specs.values()),
    }


def unknown_variables(weights: Weights) -> list[str]:
    """Lists variables that no model of the original has.

    Args:
      weights: the checkpoint.
    """
    return sorted(n for n in weights.shapes if not n.startswith(_KNOWN_SCOPES))


def by_reason(dropped: Mapping[str, str]) -> dict[str, list[str]]:
    """Groups names by why they were left out.

    Args:
      dropped: reasons by name.
    """
    grouped: dict[str, list[str]] = {}
    for name, reason in dropped.items():
        grouped.setdefault(reason, []).append(name)
    return grouped


def screen(report: Mapping[str, Any]) -> str:
    """Lays a report out for reading.

    Args:
      report: as the command writes it to its JSON file.

    Returns:
      Some twenty lines.
    """
    source, result = report["from"], report["to"]
    lines = [f"Read     {source['path']}", *_counts(source)]
    lines.append(f"Written  {result['path']} (part: {report['part']})")
    lines += _counts(result)
    for name, size in report["files"].items():
        lines.append(f"  {size:>14,} bytes  {name}")
    lines += [f"Changed  {text}" for text in report["changes"]]
    for reason, names in report["dropped"].items():
        lines.append(f"Dropped  {_some(names)}: {reason}")
    if report["unknown"]:
        lines.append(
            f"Unknown  {_some(report['unknown'])}: of no model of the"
            f" original's; {report['unknown_fate']}"
        )
    lines += [f"Note     {text}" for text in report["notes"]]
    lines += [f"Assumed  {text}" for text in report["assumed"]]
    return "\n".join(lines)


def _counts(side: Mapping[str, Any]) -> list[str]:
    step = side["global_step"]
    return [
        f"  {side['kind']}: {side['variables']} variables with"
        f" {side['parameters']:,} parameters, {side['slots']} Adam slots,"
        f" step {'not stored' if step is None else step}"
    ]


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
