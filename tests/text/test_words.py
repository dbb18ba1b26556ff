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

from electra_tf.text.bio_tags import read_spans, write_tags
from electra_tf.text.graph_normalization import GraphWordSplitter
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
def test_text_splits_into_the_words_of_tokenization(text, words):
    assert [text[first:last] for first, last in split_words(text)] == words


@pytest.fixture(scope="module")
def splitter():
    return GraphWordSplitter()


def words_in_graph(splitter, texts):
    """Return the words of each text with their first and last bytes."""
    spans = splitter.split(tf.constant(texts, tf.string, [len(texts)]))
    columns = [part.to_list() for part in spans]
    return [list(zip(*row, strict=True)) for row in zip(*columns, strict=True)]


def words_in_python(text):
    characters = reference_tokenizer.read_characters(text)
    plain = "".join(char for char, _, _ in characters)
    return [
        (
            plain[first:last].encode(),
            characters[first][1],
            characters[last - 1][2],
        )
        for first, last in split_words(plain)
    ]


def test_the_graph_splits_mixed_texts_as_python_does(splitter):
    alphabet = "ab (c).,- \t\n\u4e2d\u0301\u00a0\u2028\u200b\x00\x0b"
    alphabet += "\U0001f600\ufffd"
    parts = [char.encode() for char in alphabet] + [b"\xff", b"\xe2\x82"]
    generator = random.Random(0)
    texts = [b""]
    for _ in range(400):
        length = generator.randrange(14)
        texts.append(b"".join(generator.choices(parts, k=length)))
    assert words_in_graph(splitter, texts) == list(map(words_in_python, texts))


def test_the_graph_splits_an_empty_batch(splitter):
    assert words_in_graph(splitter, []) == []


@pytest.mark.parametrize("start", range(0, sys.maxunicode + 1, 1 << 18))
def test_the_graph_splits_every_code_point_as_python_does(splitter, start):
    end = min(start + (1 << 18), sys.maxunicode + 1)
    surrogates = range(0xD800, 0xE000)
    points = [chr(code) for code in range(start, end) if code not in surrogates]
    # Letters separate the code points, so a single text tests all of them.
    text = "a" + "a".join(points) + "a"
    (spans,) = words_in_graph(splitter, [text.encode()])
    expected = [text[a:b].encode() for a, b in split_words(text)]
    assert [word for word, _, _ in spans] == expected


TOKENS = [*SPECIAL_TOKENS, *"cafe café Cafe Café 東 ##京 東京 . a ##b".split()]


@pytest.mark.parametrize(
    ("word", "corrected", "settings", "expected"),
    [
        # The original lower-cases and strips accents for every model.
        ("Café", False, {}, ["cafe"]),
        ("Café", False, {"do_lower_case": False}, ["cafe"]),
        ("Café", False, {"strip_accents": False}, ["cafe"]),
        # The correction uses the casing of the model.
        ("Café", True, {"do_lower_case": False}, ["Café"]),
        ("Café", True, {"strip_accents": False}, ["café"]),
        ("Café", True, {}, ["cafe"]),
        # Only the correction splits Chinese characters.
        ("東京", False, {}, ["東京"]),
        ("東京", True, {}, ["東", "[UNK]"]),
        ("a.a\u200bb", False, {}, ["a", ".", "a", "##b"]),
        ("\u200b", False, {}, []),
    ],
)
def test_words_have_the_expected_pieces(
    write_vocab, word, corrected, settings, expected
):
    tokenizer = FullTokenizer(write_vocab(*TOKENS), **settings)
    aligner = WordAligner(tokenizer, corrected)
    ids = aligner.encode_word(word)
    assert tokenizer.convert_ids_to_tokens(ids) == expected
    assert aligner.encode_word(word) == ids  # from the memo


def test_spans_and_tags_equal_the_originals(golden_dir):
    path = golden_dir / "finetune_features" / "qa_metrics.json"
    recorded = json.loads(path.read_text())["classification_and_tagging"]
    cases = recorded["tagging_span_functions"]
    assert cases
    spans = [read_spans(case["tags"]) for case in cases]
    assert spans == [list(map(tuple, case["spans"])) for case in cases]
    tags = [
        write_tags(of_case, len(case["tags"]))
        for of_case, case in zip(spans, cases, strict=True)
    ]
    assert tags == [case["retagged_BIOES"] for case in cases]


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
def test_tags_of_every_scheme_mark_spans(tags, expected):
    assert read_spans(tags) == expected


def test_a_change_of_type_may_start_a_span():
    spans = read_spans(["I-A", "I-B"], type_change_starts_span=True)
    assert spans == [(0, 0, "A"), (1, 1, "B")]


@pytest.mark.parametrize("tag", ["NN", "X-A", "", "O-A", "BI-A", "b-A"])
def test_other_texts_are_refused_as_tags(tag):
    with pytest.raises(ValueError, match="is not the tag"):
        read_spans([tag])


@hypothesis.given(
    st.lists(st.sampled_from(["O", "B-A", "I-A", "S-B", "E-A", "B", "I"]))
)
def test_written_tags_mark_the_same_spans(tags):
    spans = read_spans(tags)
    assert read_spans(write_tags(spans, len(tags))) == spans
