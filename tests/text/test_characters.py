# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The character classes, checked over all of Unicode."""

import sys
import unicodedata

import pytest

from electra_tf.text import tokenization

ALL = [chr(code_point) for code_point in range(sys.maxunicode + 1)]


@pytest.fixture(scope="module")
def classes():
    """Every predicate's members, in one pass over Unicode."""
    predicates = {
        "whitespace": tokenization.is_whitespace,
        "control": tokenization.is_control,
        "removed": tokenization.is_removed,
        "punctuation": tokenization.is_punctuation,
        "cjk": tokenization.is_cjk,
        "accent": tokenization.is_accent,
    }
    return {name: set(filter(test, ALL)) for name, test in predicates.items()}


def of_category(prefix):
    return {c for c in ALL if unicodedata.category(c).startswith(prefix)}


def test_classes_are_those_of_unicode(classes, reference_tokenizer):
    kept = set("\t\n\r")
    assert classes["whitespace"] == of_category("Zs") | kept
    assert classes["control"] == of_category("C") - kept
    assert classes["removed"] == classes["control"] | {"\ufffd"}
    ascii_marks = reference_tokenizer.ASCII_PUNCTUATION
    assert classes["punctuation"] == of_category("P") | ascii_marks
    assert classes["accent"] == of_category("Mn")
    assert classes["cjk"] == reference_tokenizer.CJK


def test_text_may_be_split_before_it_is_cleaned(classes):
    """What the fast tokenizer builds on, for this Python's Unicode version."""
    removed_splits = set(tokenization.SPLITTING_CONTROLS)
    splitting = {c for c in ALL if len(f"a{c}b".split()) == 2}
    known = classes["whitespace"] | {"\u2028", "\u2029"}
    assert splitting - known == removed_splits <= classes["removed"]
    assert known <= splitting
    assert not any(c.isprintable() for c in removed_splits)
    printable = {c for c in ALL[:128] if c.isprintable()}
    assert not printable & classes["removed"]
    assert printable & classes["whitespace"] == {" "}
