# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of answers: whole or not there, never replaced unasked."""

import json

import pytest

from configure.errors import UserError
from electra_tf.prediction.writer import answer_file, format_of

ANSWER = {
    "line": 3,
    "label": "a\tb\u2028c",
    "probabilities": {"x": 0.25, "y": 1 / 3},
    "tags": ["O", None],
    "start": None,
}


def test_tsv_has_a_column_for_each_value(tmp_path):
    path = tmp_path / "out.tsv"
    with answer_file(str(path), format_of(str(path), None)) as write:
        write(ANSWER)
        write({"line": 4, "label": "z"})
    rows = [line.split("\t") for line in path.read_text().split("\n")]
    names = "line label probabilities.x probabilities.y tags start"
    assert rows == [
        names.split(),
        ["3", "a b c", "0.25", "0.333333", '["O", null]', ""],
        ["4", "z", "", "", "", ""],
        [""],
    ]


def test_json_lines_are_replaced_only_if_asked_and_only_by_a_whole_file(
    tmp_path,
):
    path = tmp_path / "out.jsonl"
    with answer_file(str(path), "jsonl") as write:
        write(ANSWER)
        assert not path.exists()
    assert json.loads(path.read_text()) == ANSWER
    with pytest.raises(UserError, match="--overwrite"):
        with answer_file(str(path), "jsonl"):
            pass
    with pytest.raises(RuntimeError):
        with answer_file(str(path), "jsonl", overwrite=True) as write:
            write({"line": 4})
            raise RuntimeError
    assert json.loads(path.read_text()) == ANSWER
    assert (tmp_path / "out.jsonl.part").exists()
    with pytest.raises(UserError, match="no such folder"):
        with answer_file(str(tmp_path / "no" / "out"), "jsonl"):
            pass
