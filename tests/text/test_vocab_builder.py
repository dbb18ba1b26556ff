# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vocabularies learned from text."""

import itertools
import pydoc_data.topics
import random

import pytest

from configure.errors import UserError
from electra_tf.text import vocab, vocab_builder
from electra_tf.text.tokenization import FullTokenizer


@pytest.fixture(scope="module")
def prose():
    topics = pydoc_data.topics.topics
    text = "\n".join(topics[name] for name in sorted(topics))
    return text[:150_000].split("\n")


@pytest.fixture(scope="module")
def word_counts(prose):
    return vocab_builder.count_words(prose)


def test_words_are_counted_as_the_tokenizer_splits_them():
    lines = ["The Café, the", "cafe\u200b!", b"caf\xc3\xa9 \xff"]
    assert vocab_builder.count_words(lines) == {
        "the": 2,
        "cafe": 3,
        ",": 1,
        "!": 1,
    }
    cased = vocab_builder.count_words(["The Café"], do_lower_case=False)
    assert cased == {"The": 1, "Café": 1}
    accented = vocab_builder.count_words(["The Café"], strip_accents=False)
    assert accented == {"the": 1, "café": 1}


def test_pieces_are_merged_from_frequent_to_rare():
    counts = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    # es: 9, then est: 9 (it needs ##es), then ow, low, ...
    pieces = vocab_builder.learn_pieces(counts, set("lowernstid"), 4)
    assert pieces == ["##es", "##est", "##ow", "low"]


def test_overlapping_pairs_are_merged_from_the_left():
    pieces = vocab_builder.learn_pieces({"baaaaa": 2}, {"a", "b"}, 3)
    assert pieces[0] == "##aa"
    assert set(pieces[1:]) <= {"##aaaa", "##aaa", "baa", "##aaaaa", "baaaa"}


def test_rare_pairs_are_not_merged():
    assert vocab_builder.learn_pieces({"ab": 1, "cd": 3}, "abcd", 9) == ["cd"]
    assert vocab_builder.learn_pieces({"ab": 1}, "ab", 9, min_count=1) == ["ab"]


def test_words_with_other_characters_teach_nothing():
    assert vocab_builder.learn_pieces({"abé": 9, "cd": 3}, "abcd", 9) == ["cd"]


def test_incremental_counts_equal_counting_anew():
    generator = random.Random(7)
    words = {
        "".join(generator.choices("abc", k=generator.randint(1, 8))): (
            generator.randint(1, 9)
        )
        for _ in range(150)
    }
    learned = vocab_builder.learn_pieces(words, "abc", 60)
    assert learned == plain_merges(words, 60)
    assert len(learned) == 60


def plain_merges(words, max_pieces):
    split = {word: vocab_builder.spell(word) for word in words}
    learned = {}
    while len(learned) < max_pieces:
        counts = {}
        for word, pieces in split.items():
            for pair in itertools.pairwise(pieces):
                counts[pair] = counts.get(pair, 0) + words[word]
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merged = best[0] + best[1][2:]
        learned[merged] = None
        for word, pieces in split.items():
            joined = []
            for piece in pieces:
                if joined and (joined[-1], piece) == best:
                    joined[-1] = merged
                else:
                    joined.append(piece)
            split[word] = joined
    return list(learned)


def test_specials_come_first_then_the_unused(word_counts):
    tokens = vocab_builder.build_vocab(word_counts, 1000, num_unused=7)
    assert tokens[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokens[5:12] == [f"[unused{n}]" for n in range(7)]
    assert len(tokens) == len(set(tokens)) == 1000


def test_order_of_the_words_does_not_matter(word_counts):
    items = list(word_counts.items())
    random.Random(3).shuffle(items)
    shuffled = vocab_builder.build_vocab(dict(items), 800)
    assert shuffled == vocab_builder.build_vocab(word_counts, 800)


def test_every_frequent_character_is_included(word_counts):
    tokens = set(vocab_builder.build_vocab(word_counts, 800))
    for word, count in word_counts.items():
        if count >= 2:
            assert set(word) <= tokens
    assert "," in tokens and "##," not in tokens
    assert {"e", "##e"} <= tokens


def test_only_words_with_rare_characters_are_unknown():
    counts = {"abc": 5, "é": 1, "cab": 2}
    tokens = vocab_builder.build_vocab(counts, 50, num_unused=0)
    coverage = vocab_builder.measure_coverage(tokens, counts)
    assert (coverage.words, coverage.unknown) == (8, 1)
    assert coverage.unknown_rate == 1 / 8


def test_max_characters_keeps_the_most_frequent():
    counts = {"a": 5, "b": 4, "c": 4, "d": 9}
    tokens = vocab_builder.build_vocab(
        counts, 50, num_unused=0, max_characters=3
    )
    assert tokens[5:] == ["a", "b", "d", "##a", "##b", "##d"]


def test_text_with_nothing_more_gives_fewer_tokens():
    tokens = vocab_builder.build_vocab({"ab": 2}, 500, num_unused=0)
    assert tokens[5:] == ["a", "b", "##a", "##b", "ab"]


def test_learned_vocabulary_passes_the_checks(prose, write_vocab):
    tokens = vocab_builder.build_vocab(prose, 1200)
    path = write_vocab(*tokens)
    assert list(vocab.check_vocab(path)) == tokens
    tokenizer = FullTokenizer(path)
    split = [tokenizer.tokenize(line) for line in prose]
    counts = vocab_builder.count_words(prose)
    coverage = vocab_builder.measure_coverage(tokens, counts)
    assert sum(map(len, split)) == coverage.pieces
    unknown = sum(line.count("[UNK]") for line in split)
    assert unknown == coverage.unknown


@pytest.mark.parametrize("words", [["", " \u200b"], {"a" * 201: 9}])
def test_no_words_are_refused(words):
    with pytest.raises(UserError, match="no words"):
        vocab_builder.build_vocab(words, 100)


def test_too_small_a_size_says_what_is_needed(word_counts):
    with pytest.raises(UserError, match=r"vocab_size 120 .*num_unused"):
        vocab_builder.build_vocab(word_counts, 120)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocab_size", 0),
        ("num_unused", -1),
        ("min_count", 0),
        ("max_characters", 0),
    ],
)
def test_numbers_out_of_range_are_named(name, value):
    with pytest.raises(UserError, match=f"{name} is {value}"):
        vocab_builder.build_vocab({"a": 1}, **{name: value})
