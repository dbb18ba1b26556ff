# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Words of running text, in Python and in a graph, their pieces and tags."""

import json
import random
import sys

import hypothesis
import hypothesis.strategies as st
import pytest
import tensorflow as tf

from electra_tf.text.graph_normalization import GraphWordSplitter
from electra_tf.text.tagging import read_spans, write_tags
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS
from electra_tf.text.words import WordAligner, split_words
from tests.text import reference_tokenizer


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop.", ["Don", "'", "t", "stop", "."]),
        ("\u4e2d\u6587x", ["\u4e2d", "\u6587", "x"]),
        ("a \x00 \ufffd b\x00c", ["a", "b\x00c"]),
    ],
)
def test_words_are_those_that_tokenization_starts_from(text, words):
    assert [text[first:last] for first, last in split_words(text)] == words


@pytest.fixture(scope="module")
def splitter():
    return GraphWordSplitter()


def _found(splitter, texts):
    spans = splitter.split(tf.constant(texts, tf.string, [len(texts)]))
    columns = [part.to_list() for part in spans]
    return [list(zip(*row, strict=True)) for row in zip(*columns, strict=True)]


def test_words_of_mixed_texts_are_pythons(splitter):
    pool = "ab (c).,- \t\n\u4e2d\u0301\u00a0\u2028\u200b\x00\x0b"
    pool += "\U0001f600\ufffd"
    pool = [char.encode() for char in pool] + [b"\xff", b"\xe2\x82"]
    random_ = random.Random(0)
    texts = [random_.choices(pool, k=random_.randrange(14)) for _ in range(400)]
    texts = [b"".join(text) for text in texts]
    assert b"" in texts and _found(splitter, []) == []
    for text, found in zip(texts, _found(splitter, texts), strict=True):
        places = reference_tokenizer.read_characters(text)
        plain = "".join(char for char, _, _ in places)
        assert found == [
            (plain[first:last].encode(), places[first][1], places[last - 1][2])
            for first, last in split_words(plain)
        ]


def test_every_code_point_between_letters_splits_as_in_python(splitter):
    surrogates, codes = range(0xD800, 0xE000), range(sys.maxunicode + 1)
    points = [chr(code) for code in codes if code not in surrogates]
    # All in one text, letters in between: one answer tells about all.
    for start in range(0, len(points), 1 << 18):
        text = "a" + "a".join(points[start : start + (1 << 18)]) + "a"
        ((found),) = _found(splitter, [text.encode()])
        wanted = [text[a:b].encode() for a, b in split_words(text)]
        assert [word for word, _, _ in found] == wanted


TOKENS = [*SPECIAL_TOKENS, *"cafe café Cafe Café 東 ##京 東京 . a ##b".split()]


@pytest.mark.parametrize(
    ("word", "corrected", "settings", "expected"),
    [
        # The original lower-cases and strips whatever the model ...
        ("Café", False, {}, ["cafe"]),
        ("Café", False, {"do_lower_case": False}, ["cafe"]),
        ("Café", False, {"strip_accents": False}, ["cafe"]),
        # ... and the correction follows the model.
        ("Café", True, {"do_lower_case": False}, ["Café"]),
        ("Café", True, {"strip_accents": False}, ["café"]),
        ("Café", True, {}, ["cafe"]),
        # Only the correction sets Chinese characters apart.
        ("東京", False, {}, ["東京"]),
        ("東京", True, {}, ["東", "[UNK]"]),
        ("a.a\u200bb", False, {}, ["a", ".", "a", "##b"]),
        ("\u200b", False, {}, []),
    ],
)
def test_pieces_of_a_word(write_vocab, word, corrected, settings, expected):
    tokenizer = FullTokenizer(write_vocab(*TOKENS), **settings)
    aligner = WordAligner(tokenizer, corrected)
    ids = aligner.encode_word(word)
    assert tokenizer.convert_ids_to_tokens(ids) == expected
    assert aligner.encode_word(word) == ids  # remembered


def test_spans_equal_the_originals(golden_dir):
    path = golden_dir / "finetune_features" / "qa_metrics.json"
    recorded = json.loads(path.read_text())["classification_and_tagging"]
    cases = recorded["tagging_span_functions"]
    assert cases
    for case in cases:
        found = read_spans(case["tags"])
        assert found == [tuple(s) for s in case["spans"]], case["tags"]
        written = write_tags(found, len(case["tags"]))
        assert written == case["retagged_BIOES"], case["tags"]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["B", "I", "O", "B"], [(0, 1, ""), (3, 3, "")]),
        (["B-x-y", "I-x-y"], [(0, 1, "x-y")]),
        (["I-A", "I-B"], [(0, 1, "B")]),
        (["B-A", "L-A", "U-A"], [(0, 1, "A"), (2, 2, "A")]),
        (["S-A", "S-A"], [(0, 0, "A"), (1, 1, "A")]),
    ],
)
def test_spans_of_all_schemes_are_found(tags, expected):
    assert read_spans(tags) == expected
    if tags == ["I-A", "I-B"]:
        found = read_spans(tags, type_change_starts_span=True)
        assert found == [(0, 0, "A"), (1, 1, "B")]


@pytest.mark.parametrize("tag", ["NN", "X-A", "", "O-A", "BI-A", "b-A"])
def test_what_is_no_tag_is_refused(tag):
    with pytest.raises(ValueError, match="is not a tag"):
        read_spans([tag])


@hypothesis.given(
    st.lists(st.sampled_from(["O", "B-A", "I-A", "S-B", "E-A", "B", "I"]))
)
def test_written_tags_mark_the_same_spans(tags):
    found = read_spans(tags)
    assert read_spans(write_tags(found, len(tags))) == found
