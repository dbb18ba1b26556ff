# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (similar letters are intended)
"""Positions of wordpieces, in Python and in the graph."""

import hypothesis
import pytest
from hypothesis import strategies as st

from electra_tf.text.graph_tokenization import GraphTokenizer
from electra_tf.text.offsets import OffsetTokenizer
from electra_tf.text.tokenization import FullTokenizer
from tests.made_questions import SETTINGS, make_vocabulary
from tests.text.reference_tokenizer import TELLING

LETTERS = list("abcéΣσ가e\u0301\u0345\u302f\u1b44中は\u200b\u00a0 \t")
TEXTS = st.one_of(
    st.text(max_size=30),
    st.text(st.sampled_from(TELLING), max_size=20),
    st.text(st.sampled_from(LETTERS), max_size=20),
    st.text(st.characters(categories=["M", "Lm", "Sk", "Lu"]), max_size=12),
)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """Return three tokenizers of each setting: offsets, Python, graph."""
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    letters = ["a", "b", "c", "e", "가", "##b", "##c", "\u1100", "##\u1161"]
    tokens = list(dict.fromkeys([*make_vocabulary(), *letters]))
    path.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    made = {}
    for setting in SETTINGS:
        plain = FullTokenizer(str(path), *setting)
        graph = GraphTokenizer(str(path), *setting)
        made[setting] = OffsetTokenizer(plain), plain, graph
    return made


@pytest.mark.parametrize("setting", SETTINGS)
@hypothesis.given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_wordpieces_and_positions_equal_those_of_the_graph(
    setting, texts, tokenizers
):
    offsets, plain, graph = tokenizers[setting]
    raws = [text.encode() for text in texts]
    _, starts, ends = (p.to_list() for p in graph.encode_with_offsets(raws))
    pieces = list(map(offsets.tokenize, texts))
    tokens = [[piece.token for piece in row] for row in pieces]
    assert tokens == list(map(plain.tokenize, texts))
    assert starts == [
        [len(text[: piece.start].encode()) for piece in row]
        for text, row in zip(texts, pieces, strict=True)
    ]
    assert ends == [
        [len(text[: piece.end].encode()) for piece in row]
        for text, row in zip(texts, pieces, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("ab c", ["a", "b", "c"]),
        # An accent belongs to its letter; a removed character belongs to a
        # wordpiece only between two characters of the wordpiece.
        ("ae\u0301 b\u200b", ["a", "e\u0301", "b"]),
        ("zz\u200bq", ["zz\u200bq"]),
        ("\u0301a \u0301 b", ["a", "b"]),
        ("中\u0301b", ["中\u0301", "b"]),
        # One character, several wordpieces.
        ("가", ["가", "가"]),
        ("😀  b", ["😀", "b"]),
        ("a" * 201 + " b", ["a" * 201, "b"]),
        ("", []),
    ],
)
def test_each_wordpiece_spans_its_characters(text, spans, tokenizers):
    offsets, _, _ = tokenizers[True, True]
    pieces = offsets.tokenize(text)
    assert [text[piece.start : piece.end] for piece in pieces] == spans
