# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of labels, which a run writes next to its model and its records."""

import json
from typing import Any

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.files.digests import check_digest
from electra_tf.files.json_fields import is_integer, is_number
from electra_tf.files.reading import read_bytes


def read_labels(path: str, task_type: str) -> Any:
    """Return the labels in a file.

    Args:
      path: path of the file.
      task_type: type of the task.

    Returns:
      The ids by tag for "tagging", the lowest and the highest number for
      "regression", and otherwise the list of labels.

    Raises:
      UserError: the file is damaged, or differs from the digests of its folder.
    """
    check_digest(path)
    try:
        labels = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path}: not valid JSON: {error}. Restore the file."
        ) from None
    is_valid, expected = {
        "tagging": (_is_mapping, "an object of tags and their ids from 0"),
        "regression": (_is_range, "a list of two increasing numbers"),
    }.get(task_type, (_is_names, "a list of different labels"))
    if not is_valid(labels):
        raise UserError(
            f"{path}: found {shorten(repr(labels))}; expected {expected}."
            " Restore the file."
        )
    return labels


def _is_mapping(labels: Any) -> bool:
    if not isinstance(labels, dict) or not labels:
        return False
    ids = list(labels.values())
    return all(map(is_integer, ids)) and sorted(ids) == [*range(len(ids))]


def _is_range(labels: Any) -> bool:
    if not isinstance(labels, list) or len(labels) != 2:
        return False
    low, high = labels
    return all(is_number(n) and n is not None for n in labels) and low < high


def _is_names(labels: Any) -> bool:
    if not isinstance(labels, list):
        return False
    are_texts = all(isinstance(label, str) for label in labels)
    return are_texts and 0 < len(labels) == len(set(labels))
