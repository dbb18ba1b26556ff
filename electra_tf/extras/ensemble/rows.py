# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reader of prediction files, which checks the values of each row."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from configure.formatting import join_names
from electra_tf.data import tables, values
from electra_tf.files.json_files import read_json

Row = Mapping[str, Any]
_ROUNDING = 1e-3  # the accepted deviation of a sum of probabilities from 1


class BadRowError(Exception):
    """An error for an unusable row, with the found and expected content."""

    def __init__(self, row_text: str, expected: str) -> None:
        super().__init__(row_text, expected)
        self.row_text, self.expected = row_text, expected


def read_rows(path: str) -> Iterator[tuple[str, Row]]:
    """Yield the location and the values of each prediction in a file.

    A `.json` file is an evaluation's nbest file: question id -> best answers;
    other files are JSON lines.
    """
    if path.endswith(".json"):
        for key, best in read_json(path).items():
            yield f"{path}: question {key}", {"id": key, "n_best": best}
        return
    for line, row in tables.read_objects(path):
        yield f"{path}:{line}", row


def is_same_id(first: Any, second: Any) -> bool:
    """Return whether two ids are equal; the number 7 equals the text "7"."""
    key = values.as_id(first)
    return first == second or (key is not None and key == values.as_id(second))


def read_number(value: Any, name: str) -> float:
    """Return a value of a row as a finite number.

    Args:
      value: the value in the row.
      name: the name of the value, for the message.

    Raises:
      BadRowError: the value is not a finite number.
    """
    if type(value) not in (int, float) or not math.isfinite(value):
        raise BadRowError(f"{name} {value!r}", "a finite number")
    return float(value)


def read_probability(value: Any, label: str) -> float:
    """Return a value of a row as a probability; see `read_number`."""
    probability = read_number(value, f"{label}:")
    if not 0 <= probability <= 1 + _ROUNDING:
        raise BadRowError(f"{label}: {value!r}", "a probability from 0 to 1")
    return probability


def read_probabilities(value: Any, labels: Sequence[str]) -> list[float]:
    """Return a row's probabilities in the order of the labels.

    Args:
      value: label -> probability.
      labels: all labels of the task.

    Raises:
      BadRowError: the labels differ, or the sum of probabilities is not 1.
    """
    if not isinstance(value, Mapping) or set(value) != set(labels):
        names = join_names(value, 12) if isinstance(value, Mapping) else value
        raise BadRowError(
            f"probabilities of {names}",
            f"probabilities of the labels {join_names(labels, 12)}",
        )
    probabilities = [read_probability(value[name], name) for name in labels]
    if abs(sum(probabilities) - 1) > _ROUNDING:
        raise BadRowError(
            f"probabilities whose sum is {sum(probabilities):g}", "a sum of 1"
        )
    return probabilities
