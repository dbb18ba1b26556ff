# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Outputs that documents show, compared with those of their commands."""

import pytest

from tests.documents.blocks import difference

PRINTED = (
    "Read 3 files\nloss: 0.25 - lr: 1e-4\n\ntask  mean\nsst   91.2\nDone.\n"
)


@pytest.mark.parametrize(
    "shown",
    [
        PRINTED,
        "Read 1,000 files\nloss: 7 - lr: 0.5\ntask mean\nsst 1\nDone.\n",
        "Read 3 files\n...\nDone.\n",
        "...\nloss: ... lr: 1e-4\n...\n",
    ],
    ids=["the same", "other numbers", "lines left out", "text left out"],
)
def test_an_output_may_differ_in_numbers_and_be_cut(shown):
    assert difference(shown, PRINTED) == ""


@pytest.mark.parametrize(
    "shown, message",
    [
        ("Read 3 files\n...\nEnd.\n", "not printed: End."),
        ("Read 3 files\n", "other"),
        ("Read 3 files\nDone.\n", "other"),
        ("...\nDone.\nRead 3 files\n...\n", "other"),
        ("...\nlos: 0.25 - lr: 1e-4\n...\n", "not printed: los"),
    ],
    ids=["another line", "no end", "no cut", "another order", "another word"],
)
def test_another_output_is_an_error(shown, message):
    assert message in difference(shown, PRINTED)
