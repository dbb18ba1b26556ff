# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cells with lists are read as lists, other texts are not."""

import json

import hypothesis
import hypothesis.strategies as st
import pytest

from electra_tf.data.list_cells import UnreadableListError, read_list


@pytest.mark.parametrize(
    ("cell", "values"),
    [
        ("['x', 'y']", ["x", "y"]),
        ('["x", "y"]', ["x", "y"]),
        (" ['x,y', \"it's\"] ", ["x,y", "it's"]),
        ("('x', 'y')", ["x", "y"]),
        ("('x',)", ["x"]),
        ("{'y', 'x'}", ["y", "x"]),
        ("[1, 2.0, true, null]", [1, 2.0, True, None]),
        ("[True, None, -1]", [True, None, -1]),
        ("['\\d']", ["\\d"]),
        ("[]", []),
        ("set()", []),
        ("frozenset()", []),
        ("frozenset({'x'})", ["x"]),
        ("set(['x', 'y'])", ["x", "y"]),
        ("[['x']]", [["x"]]),
    ],
)
def test_lists_of_python_and_json_are_read(cell, values):
    assert read_list(cell) == values


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "[",
        "x, y",
        "f(x)",
        "set(x)",
        "(x)",
        "('x')",
        "{}",
        "{'a': 1}",
        "[x",
        "5",
        "[x],[y]",
    ],
)
def test_texts_in_other_notations_are_no_lists(cell):
    assert read_list(cell) is None


@pytest.mark.parametrize(
    "cell",
    [
        "['x' 'y']",
        "[x, y]",
        "[1 2]",
        "['x',\n y]",
        "[nan]",
        "[x for x in y]",
        "array(['x'], dtype=object)",
        "dict_keys(['x', 'y'])",
        "['x', 'y",
        "['x', ...",
    ],
)
def test_an_unreadable_list_is_refused(cell):
    with pytest.raises(UnreadableListError):
        read_list(cell)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@hypothesis.given(st.lists(TEXTS))
def test_any_list_of_texts_is_read_back(texts):
    assert read_list(json.dumps(texts)) == texts
    assert read_list(repr(texts)) == texts


@pytest.mark.parametrize("form", ["{}", "[{}]", "({})", "{{{}}}"])
@hypothesis.given(TEXTS)
def test_any_text_is_a_list_none_or_refused(form, text):
    cell = form.format(text)
    try:
        values = read_list(cell)
    except UnreadableListError:
        assert "[" in cell or "(" in cell
    else:
        assert values is None or isinstance(values, list)
