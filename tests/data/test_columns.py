# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Columns are resolved by the header or by numbers."""

import pytest

from electra_tf.data import columns
from tests.conftest import refused

HEADER = ["id", "text", "label"]


def resolve(options, header=HEADER, optional=()):
    return columns.column_indices(
        {"text": options}, header, "a.tsv", "Name {}".format, optional
    )


@pytest.mark.parametrize(
    ("options", "header", "index"),
    [
        (["text"], HEADER, 1),
        (["body", "text", "label"], HEADER, 1),
        (["body", 0], HEADER, 0),
        ([0, "text"], HEADER, 1),
        ([-1], HEADER, -1),
        (["text", 2, 0], [], 2),
    ],
)
def test_a_name_in_the_header_precedes_the_first_number(options, header, index):
    assert resolve(options, header) == {"text": index}


@pytest.mark.parametrize(
    ("index", "expected"), [(0, 0), (5, 5), (-1, 2), (-3, 0), (-4, 3), (-9, 8)]
)
def test_an_index_from_the_end_becomes_one_from_the_start(index, expected):
    counted = columns.count_from_start({"text": index}, len(HEADER))
    assert counted == {"text": expected}


@pytest.mark.parametrize(
    ("options", "indices"),
    [(["body", 0], {}), ([0], {"text": 0}), (["text", 0], {"text": 1})],
)
def test_an_optional_column_with_names_has_no_number(options, indices):
    assert resolve(options, optional=["text"]) == indices


@pytest.mark.parametrize(
    ("options", "header", "message"),
    [
        (["x", "y"], HEADER, "a.tsv:1: no column 'x' or 'y' for text; .*Name"),
        (["x"], HEADER, "the header contains: id, text, label. Name text"),
        (["x"], [], "no column 'x' for text; the table has no header"),
        (["a"], ["a", "a"], "several columns 'a' for text; .*: a, a"),
    ],
)
def test_a_missing_or_repeated_column_is_refused(options, header, message):
    refused(message, resolve, options, header)


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_a_column_without_a_name_is_refused(name):
    header = [name, "text"]
    message = "column 0, selected for text, has no name .*name of a different"
    refused(message, columns.refuse_unnamed, {"text": 0}, header, "a.csv")


@pytest.mark.parametrize(
    ("index", "header"), [(1, ["", "text"]), (0, [""]), (5, ["", "text"])]
)
def test_other_columns_are_not_refused(index, header):
    columns.refuse_unnamed({"text": index}, header, "a.csv")
