# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of labels are read whole or refused."""

import json

import pytest

from electra_tf.finetuning.label_files import read_labels
from tests.conftest import refused

VALID = {
    "classification": ["no", "yes"],
    "multilabel": ["1", "", "\u00e4"],
    "regression": [-1, 5.5],
    "tagging": {"O": 1, "B-NP": 0, "I-NP": 2},
}
DAMAGED = {
    "classification": [5, None, {}, [], [1, 2], ["a", "a"]],
    "multilabel": ["ab", {"a": 0}, ["a", None], [["a"]]],
    "regression": [5, [1], [2, 1], [1, 1], [0, None], ["0", "1"], {}],
    "tagging": [[], ["O"], {}, {"O": 1}, {"O": "0"}, {"O": 0, "B": 0}],
}


@pytest.mark.parametrize("task_type", VALID)
def test_labels_are_read_as_written(tmp_path, task_type):
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(VALID[task_type]), encoding="utf-8")
    assert read_labels(str(path), task_type) == VALID[task_type]


@pytest.mark.parametrize(
    ("task_type", "labels"),
    [(name, labels) for name, cases in DAMAGED.items() for labels in cases],
)
def test_other_values_are_refused(tmp_path, task_type, labels):
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(labels))
    message = rf"^{path}: found .*; expected (a list|an object) of .*Restore"
    refused(message, read_labels, str(path), task_type)


@pytest.mark.parametrize("content", [b"", b"[", b"\xff", b"[" * 100_000])
def test_files_without_json_are_refused(tmp_path, content):
    path = tmp_path / "labels.json"
    path.write_bytes(content)
    refused(f"{path}: not valid JSON", read_labels, str(path), "tagging")
