# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The looking glass in a terminal and on a page."""

import html.parser
import io
import re

import pytest

from electra_tf.inspection.fill_mask import Candidate
from electra_tf.inspection.glass import (
    Glass,
    Judgement,
    Proposal,
    TokenView,
)
from electra_tf.inspection.glass_page import page
from electra_tf.inspection.glass_terminal import draw, percent, summary
from electra_tf.inspection.terminal import (
    Paint,
    display_width,
    printable,
    wants_colour,
)

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def glass(text="the chef cooked <it>", **changes):
    proposal = Proposal(
        "[MASK]",
        (Candidate("cooked", 3, 0.75), Candidate("a<b", 4, 0.125)),
        0.75,
        1,
        "a<b",
        0.125,
    )
    views = [
        TokenView(0, "[CLS]", "[CLS]", True, None, Judgement(0.0002, False)),
        TokenView(1, "the", "the", False, None, Judgement(0.75, False)),
        TokenView(2, "chef", "chef", False, None, Judgement(0.25, False)),
        TokenView(3, "cooked", "a<b", False, proposal, Judgement(0.9, True)),
        TokenView(4, "\u4e2d", "\u4e2d", False, None, Judgement(0.1, False)),
        TokenView(5, "[SEP]", "[SEP]", True, None, Judgement(0.0, False)),
    ]
    settings = {
        "text": text,
        "model": "runs/x",
        "kind": "ELECTRA, small generator",
        "global_step": 1234,
        "masking": "chosen",
        "seed": 0,
        "tokens": tuple(views),
        "notes": ("A <note>.",),
    }
    return Glass(**{**settings, **changes})


def test_the_drawing_says_in_words_what_colour_says():
    text = draw(glass(), Paint(False), 100)
    assert "\x1b" not in text
    rows = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert rows["original"][1:] == [
        "[CLS]", "the", "chef", "cooked", "\u4e2d", "[SEP]",
    ]  # fmt: skip
    assert rows["generator saw"][2:] == ["[MASK]"]
    assert rows["judged"][4] == "a<b"
    assert rows["replaced?"][1:] == [
        "<0.1%", "75.0%", "25.0%", "90.0%", "10.0%", "0.0%",
    ]  # fmt: skip
    assert rows["verdict"][1:] == [
        "real", "false", "alarm", "real", "found", "real", "real",
    ]  # fmt: skip
    assert "cooked (given 75.0%, rank 1) -> a<b (12.5%)" in text
    assert "- A <note>." in text
    assert "step 1,234" in text


def test_colour_adds_nothing_but_colour():
    plain = draw(glass(), Paint(False), 100)
    coloured = draw(glass(), Paint(True), 100)
    assert "\x1b[38;5;16;48;5;203m" in coloured
    # Blanks at the ends of lines are within the paint.
    stripped = ESCAPE.sub("", coloured).splitlines()
    assert [line.rstrip() for line in stripped] == plain.splitlines()


def test_columns_are_aligned_and_fit_the_width():
    for width in (40, 60, 100):
        lines = draw(glass(), Paint(False), width).splitlines()[3:]
        columns = lines[: lines.index("generator's proposals")]
        assert max(map(display_width, columns)) <= width
    text = draw(glass(), Paint(False), 100)
    judged = next(x for x in text.splitlines() if x.startswith("judged"))
    verdicts = next(x for x in text.splitlines() if x.startswith("verdict"))
    assert judged.index("a<b") == verdicts.index("found")


def test_a_text_cannot_paint_the_terminal():
    text = draw(glass(text="a\x1b[31mb\r\u202ec"), Paint(False), 80)
    assert "\x1b" not in text and "\r" not in text and "\u202e" not in text
    assert printable("e\u0301\u4e2d\x07") == "e\u0301\u4e2d\ufffd"


def test_summary_counts():
    assert summary(glass()) == (
        "1 of 6 tokens masked; the original was the likeliest at 1 of them;"
        " 1 replaced: found 1, missed 0; false alarms: 1."
    )


def test_a_probability_is_never_rounded_to_certainty():
    assert percent(0.0) == "0.0%" and percent(1.0) == "100.0%"
    assert percent(1e-9) == "<0.1%" and percent(0.99999) == ">99.9%"
    assert percent(0.5) == "50.0%"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    "choice, stream, environment, wanted",
    [
        ("auto", Terminal(), {}, True),
        ("auto", Terminal(), {"NO_COLOR": ""}, True),
        ("auto", Terminal(), {"NO_COLOR": "1"}, False),
        ("auto", Terminal(), {"TERM": "dumb"}, False),
        ("auto", io.StringIO(), {}, False),
        ("always", io.StringIO(), {"NO_COLOR": "1"}, True),
        ("never", Terminal(), {}, False),
    ],
)
def test_colour_goes_where_it_is_wanted(choice, stream, environment, wanted):
    assert wants_colour(choice, stream, environment) is wanted


class Reader(html.parser.HTMLParser):
    VOID = ("meta", "br")

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_is_whole_and_escapes_what_it_shows():
    evil = '<script>alert("x")</script>'
    document = "".join(page([glass(text=evil), glass(model=evil)]))
    reader = Reader()
    reader.feed(document)
    reader.close()
    assert reader.open == []
    assert "script" not in reader.tags
    assert not any(n in ("src", "href") for n, _ in reader.attributes)
    assert not any(name.startswith("on") for name, _ in reader.attributes)
    assert evil in reader.text and "a<b" in reader.text
    assert "http" not in document
    assert reader.tags.count("section") == 2


def test_the_page_shows_models_without_a_discriminator():
    views = tuple(
        TokenView(v.position, v.token, v.token, v.special, v.proposal, None)
        for v in glass().tokens
    )
    reader = Reader()
    reader.feed("".join(page([glass(tokens=views)])))
    assert "[MASK]" in reader.text and "found" not in reader.text


def test_the_page_is_written_sentence_by_sentence():
    def glasses():
        yield glass()
        raise RuntimeError("the second one was asked for")

    pieces = page(glasses())
    assert next(pieces).startswith("<!doctype html>")
    assert "<section>" in next(pieces)
