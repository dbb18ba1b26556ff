# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inspections drawn in a terminal and on a page."""

import dataclasses
import html
import io

import pytest
import rich.console

from electra_tf.inspection.fill_mask import Candidate
from electra_tf.inspection.tables import (
    inspection_view,
    percent,
    printable,
    summary,
)
from electra_tf.inspection.token_inspection import (
    InspectedToken,
    Prediction,
    Proposal,
    TokenInspection,
)


def inspection(**changes):
    proposal = Proposal(
        "[MASK]",
        (Candidate("cooked", 3, 0.75), Candidate("a<b", 4, 0.125)),
        0.75,
        1,
        "a<b",
        0.125,
    )
    tokens = [
        ("[CLS]", "[CLS]", None, Prediction(0.0002, False)),
        ("the", "the", None, Prediction(0.75, False)),
        ("chef", "chef", None, Prediction(0.25, False)),
        ("cooked", "a<b", proposal, Prediction(0.9, True)),
        ("\u4e2d", "\u4e2d", None, Prediction(0.1, False)),
        ("[SEP]", "[SEP]", None, Prediction(0.0, False)),
    ]
    settings = {
        "text": "the chef cooked <it>",
        "model": "runs/x",
        "kind": "ELECTRA, small generator",
        "global_step": 1234,
        "masking": "chosen",
        "seed": 0,
        "tokens": tuple(
            InspectedToken(i, token, seen, token[0] == "[", made, predicted)
            for i, (token, seen, made, predicted) in enumerate(tokens)
        ),
        "notes": ("A <note>.",),
    }
    return TokenInspection(**{**settings, **changes})


def drawn(seen, colour=False, width=100):
    console = rich.console.Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="truecolor" if colour else None,
        record=True,
    )
    console.print(inspection_view(seen))
    return console


def test_the_drawing_says_in_words_what_colour_says():
    text = drawn(inspection()).file.getvalue()
    assert "\x1b" not in text
    rows = {
        line.split()[0]: line.split()[1:]
        for line in text.splitlines()
        if line[:4].strip().isdecimal()
    }
    assert rows["0"] == ["[CLS]", "[CLS]", "<0.1%", "real"]
    assert rows["1"] == ["the", "the", "75.0%", "false", "alarm"]
    assert rows["3"][:2] == ["cooked", "[MASK]"]
    assert rows["3"][2:6] == ["cooked", "75.0%", "75.0%", "a<b"]
    assert rows["3"][6:] == ["a<b", "90.0%", "found"]
    below = text.splitlines()
    below = below[[line.strip()[:1] for line in below].index("3") + 1]
    assert below.split() == ["a<b", "12.5%", "rank", "1", "12.5%"]
    assert "- A <note>." in text and "step 1,234" in text


def test_colour_adds_nothing_but_colour():
    plain = drawn(inspection()).file.getvalue()
    coloured = drawn(inspection(), colour=True)
    assert "48;2;255;135;135" in coloured.file.getvalue()  # found: red
    without = coloured.export_text(clear=False)
    assert without.split() == plain.split()


def test_the_drawing_fits_the_width():
    for width in (50, 80):
        lines = drawn(inspection(), width=width).file.getvalue().splitlines()
        assert max(map(rich.cells.cell_len, lines)) <= width


def test_a_text_cannot_paint_the_terminal():
    seen = inspection(text="a\x1b[31mb\r\u202ec [red]")
    text = drawn(seen).file.getvalue()
    assert not {"\x1b", "\r", "\u202e"} & set(text) and "[red]" in text
    assert printable("e\u0301\u4e2d\x07") == "e\u0301\u4e2d\ufffd"


def test_the_page_escapes_what_it_shows():
    evil = '<script>alert("x")</script>'
    page = drawn(inspection(text=evil, model=evil)).export_html()
    assert "<script" not in page and "src=" not in page and "http" not in page
    assert evil in html.unescape(page)


def test_models_without_a_discriminator_have_no_column_for_it():
    tokens = tuple(
        dataclasses.replace(t, input_token=t.token, prediction=None)
        for t in inspection().tokens
    )
    text = drawn(inspection(tokens=tokens)).file.getvalue()
    assert "[MASK]" in text and "replaced?" not in text


def test_summary_counts():
    assert summary(inspection()) == (
        "1 of 6 tokens masked, the original the likeliest at 1 of them;"
        " found: 1; false alarm: 1."
    )


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0.0%"), (1e-9, "<0.1%"), (0.5, "50.0%"), (0.99999, ">99.9%")],
)
def test_a_probability_is_never_rounded_to_certainty(share, text):
    assert percent(share) == text
