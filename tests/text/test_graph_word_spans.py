# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The graph finds the words that Python finds, in any bytes."""

import random
import sys

import pytest

tf = pytest.importorskip("tensorflow")

from electra_tf.text.graph_normalization import GraphWordSplitter  # noqa: E402
from electra_tf.text.words import split_words  # noqa: E402


@pytest.fixture(scope="module")
def splitter():
    return GraphWordSplitter()


def _expected(text):
    """Words and byte offsets of bytes, by Python."""
    plain, places = "", []
    for place in range(len(text)):
        for size in range(1, 5):
            char = text[place : place + size]
            try:
                decoded = char.decode()
            except UnicodeDecodeError:
                continue
            if len(decoded) == 1 and len(char) == size:
                plain += decoded
                places.append((place, place + size))
            break
    return [
        (plain[a:b].encode(), places[a][0], places[b - 1][1])
        for a, b in split_words(plain)
    ]


def _found(splitter, texts):
    spans = splitter.split(tf.constant(texts, tf.string, [len(texts)]))
    columns = [part.to_list() for part in spans]
    return [list(zip(*row, strict=True)) for row in zip(*columns, strict=True)]


def test_words_of_mixed_texts_are_pythons(splitter):
    pool = [
        *"ab (c).,- \t\n",
        "\u4e2d",
        "\u0301",
        "\u00a0",
        "\u2028",
        "\u200b",
        "\x00",
        "\x0b",
        "\U0001f600",
        "\ufffd",
    ]
    pool = [char.encode() for char in pool] + [b"\xff", b"\xe2\x82"]
    random_ = random.Random(0)
    texts = [
        b"".join(random_.choices(pool, k=random_.randrange(14)))
        for _ in range(400)
    ]
    for text, found in zip(texts, _found(splitter, texts), strict=True):
        if b"\xe2\x82" in text:  # Its tail may make a character with the next.
            words = [word.decode() for word, _, _ in found]
            plain = text.decode("utf-8", "ignore")
            assert words == [plain[a:b] for a, b in split_words(plain)]
        else:
            assert found == _expected(text)


def test_every_code_point_between_letters_splits_as_in_python(splitter):
    points = [
        chr(i) for i in range(sys.maxunicode + 1) if not 0xD800 <= i < 0xE000
    ]
    # All in one text, letters in between: one answer tells about all.
    for start in range(0, len(points), 1 << 18):
        text = "a" + "a".join(points[start : start + (1 << 18)]) + "a"
        ((found),) = _found(splitter, [text.encode()])
        wanted = [text[a:b].encode() for a, b in split_words(text)]
        assert [word for word, _, _ in found] == wanted


def test_empty_batches_and_texts_have_no_words(splitter):
    assert _found(splitter, []) == []
    assert _found(splitter, ["", " ", "\u200b", "\x00 \x01"]) == [[]] * 4
