# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The character classes, checked over all of Unicode."""

import sys
import unicodedata

import pytest

from electra_tf.text import characters

ALL = [chr(code_point) for code_point in range(sys.maxunicode + 1)]


@pytest.fixture(scope="module")
def classes():
    """Every predicate's members, in one pass over Unicode."""
    predicates = {
        "whitespace": characters.is_whitespace,
        "control": characters.is_control,
        "removed": characters.is_removed,
        "punctuation": characters.is_punctuation,
        "cjk": characters.is_cjk,
        "accent": characters.is_accent,
    }
    return {name: set(filter(test, ALL)) for name, test in predicates.items()}


def of_category(prefix):
    return {c for c in ALL if unicodedata.category(c).startswith(prefix)}


def test_whitespace_is_zs_and_three_controls(classes):
    assert classes["whitespace"] == of_category("Zs") | set("\t\n\r")


def test_controls_are_every_c_category_but_three(classes):
    assert classes["control"] == of_category("C") - set("\t\n\r")
    assert classes["removed"] == classes["control"] | {"\ufffd"}
    assert "\0" in classes["removed"]


def test_punctuation_is_p_and_all_ascii_non_alphanumerics(classes):
    ascii_ranges = [(33, 47), (58, 64), (91, 96), (123, 126)]
    ascii_marks = {
        chr(n) for first, last in ascii_ranges for n in range(first, last + 1)
    }
    assert classes["punctuation"] == of_category("P") | ascii_marks
    assert {"$", "`", "~"} <= classes["punctuation"]
    assert not {"€", "§"} & classes["punctuation"] - of_category("P")


def test_accents_are_the_non_spacing_marks(classes):
    assert classes["accent"] == of_category("Mn")


@pytest.mark.parametrize(
    ("char", "expected"),
    [
        *[("\u33ff", False), ("\u3400", True), ("\u4dbf", True)],
        *[("\u4dc0", False), ("\u4e00", True), ("\u9fff", True)],
        *[("\ua000", False), ("\uf8ff", False), ("\uf900", True)],
        *[("\ufaff", True), ("\ufb00", False)],
        *[("\U0001ffff", False), ("\U00020000", True), ("\U0002a6df", True)],
        *[("\U0002a6e0", False), ("\U0002a700", True), ("\U0002b73f", True)],
        *[("\U0002b740", True), ("\U0002b81f", True), ("\U0002b820", True)],
        *[("\U0002ceaf", True), ("\U0002ceb0", False)],
        *[("\U0002f7ff", False), ("\U0002f800", True), ("\U0002fa1f", True)],
        *[("\U0002fa20", False), ("あ", False), ("한", False), ("⺀", False)],
    ],
)
def test_cjk_ranges_start_and_end_where_they_should(char, expected):
    assert characters.is_cjk(char) is expected


# The fast tokenizer splits before it cleans. That is right only while the three
# claims below hold for the Unicode version of this Python.


def test_split_splits_only_at_known_characters(classes):
    splitting = {c for c in ALL if len(f"a{c}b".split()) == 2}
    known = classes["whitespace"] | {"\u2028", "\u2029"}
    assert splitting - known == set(characters.SPLITTING_CONTROLS)
    assert known <= splitting
    assert set(characters.SPLITTING_CONTROLS) <= classes["removed"]


def test_printable_text_holds_no_splitting_control():
    assert not any(c.isprintable() for c in characters.SPLITTING_CONTROLS)


def test_printable_ascii_needs_no_cleaning(classes):
    printable = {c for c in ALL[:128] if c.isprintable()}
    assert not printable & classes["removed"]
    assert printable & classes["whitespace"] == {" "}


def test_cleaning_table_agrees_with_the_predicates(classes):
    table = characters.CleaningTable()
    for char in ALL:
        if char in classes["removed"]:
            expected = ""
        elif char in classes["whitespace"]:
            expected = " "
        else:
            expected = f" {char} " if char in classes["cjk"] else char
        row = table[ord(char)]
        assert (chr(row) if isinstance(row, int) else row or "") == expected


@pytest.mark.parametrize("drop_accents", [True, False])
def test_splitting_table_agrees_with_the_predicates(classes, drop_accents):
    table = characters.SplittingTable(drop_accents)
    dropped = classes["accent"] if drop_accents else set()
    for char in ALL:
        row = table[ord(char)]
        if char in dropped:
            assert row is None
        elif char in classes["punctuation"]:
            assert row == f" {char} "
        else:
            assert row == ord(char)
