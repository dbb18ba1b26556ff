# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The results file of a study: a line of JSON for each finished run."""

import json
from typing import Any

from configure.errors import UserError
from configure.json_text import parse_json
from electra_tf.files import filesystem
from electra_tf.files.atomic import atomic_file
from electra_tf.files.json_fields import (
    Fields,
    check_fields,
    is_groups_of_metrics,
    is_number,
    is_text,
)
from electra_tf.files.reading import read_text


def read_result_lines(path: str) -> dict[str, dict[str, Any]]:
    """Return the lines of a results file by their runs' digests.

    A file that does not exist has no lines. Repeated lines with equal values
    count once.

    Raises:
      UserError: a study cannot have written a line, or two different lines have
        the same digest.
    """
    if not filesystem.exists(path):
        return {}
    lines: dict[str, dict[str, Any]] = {}
    first_numbers: dict[str, int] = {}  # digest -> number of its first line
    for number, text in enumerate(read_text(path).splitlines(), 1):
        location = f"{path}:{number}"
        line = parse_json(text, location)
        check_fields(line, _FIELDS, location, _REMEDY, _OPTIONAL)
        digest = line["digest"]
        first_number = first_numbers.setdefault(digest, number)
        if lines.setdefault(digest, line) != line:
            raise UserError(
                f"{path}: lines {first_number} and {number} differ, but both"
                f" have the digest {digest}; expected one line for each run."
                " Keep one of these lines, and remove the other."
            )
    return lines


def add_result_line(
    path: str, line: dict[str, Any]
) -> tuple[dict[str, dict[str, Any]], str]:
    """Add the line of a finished run to a results file.

    The line replaces an earlier line of the same digest. If a line of the file
    is damaged, the file stays as it is, and the new line is appended.

    Args:
      path: the results file.
      line: the line of the finished run.

    Returns:
      The lines of the file by their runs' digests, and a message about a
      damaged line. Without damage the message is "", with damage the only line
      is the new line.
    """
    text, damage = json.dumps(line) + "\n", ""
    # The file is read again, because a user or another study may have changed
    # it since the start. Other studies wait here until the file is written.
    with atomic_file(path) as file:
        try:
            lines = read_result_lines(path)
        except UserError as error:
            lines, damage = {}, str(error)
            with filesystem.open_file(path, "rb") as damaged:
                content = damaged.read()
            file.write(content.rstrip(b"\n") + b"\n" + text.encode())
        lines[line["digest"]] = line
        if not damage:
            texts = (json.dumps(value) + "\n" for value in lines.values())
            file.write("".join(texts).encode())
    return lines, damage


def _is_results(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            isinstance(trials, list) and trials and all(map(is_number, trials))
            for trials in value.values()
        )
    )


def _is_collapses(value: Any) -> bool:
    return isinstance(value, dict) and all(
        trial.isascii() and trial.isdecimal() and len(trial) < 10
        for trial in value
    )


def _is_inputs(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_text, value.values()))


_REMEDY = "Restore the line, or remove the line to repeat its run."
_FIELDS: Fields = {
    "digest": (is_text, "a text"),
    "results": (_is_results, "an object that maps metrics to lists of numbers"),
    "collapsed": (
        _is_collapses,
        "an object that maps trial numbers to predictions",
    ),
    "baselines": (
        is_groups_of_metrics,
        "an object that maps baselines to objects of metrics and numbers",
    ),
    "inputs": (_is_inputs, "an object that maps inputs to fingerprints"),
}
# Lines of earlier versions may lack these fields.
_OPTIONAL = ("collapsed", "baselines", "inputs")
