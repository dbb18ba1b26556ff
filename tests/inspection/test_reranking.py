# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""n-best lists: reading, re-ranking, tuning; word errors."""

import functools
import itertools

import pytest

from configure.errors import UserError
from electra_tf.inspection.electric_score import ElectricScorer
from electra_tf.inspection.nbest_files import (
    read_hypotheses,
    read_references,
    record_of,
    text_line,
)
from electra_tf.inspection.reranking import (
    Hypothesis,
    Scored,
    errors_of,
    reranked,
    score_lists,
    tune_weight,
)
from electra_tf.inspection.text_scoring import TextScore
from electra_tf.inspection.word_errors import WordErrors, word_errors


def scored(list_id, *rows):
    """An n-best list of (text, base score, score)."""
    return [
        Scored(
            Hypothesis(list_id, text, base),
            TextScore(text, score, (text,), (score,), 0, 1),
            place,
        )
        for place, (text, base, score) in enumerate(rows)
    ]


def slow_distance(a, b):
    @functools.lru_cache(None)
    def distance(i, j):
        if i == 0 or j == 0:
            return i + j
        return min(
            distance(i - 1, j - 1) + (a[i - 1] != b[j - 1]),
            distance(i - 1, j) + 1,
            distance(i, j - 1) + 1,
        )

    return distance(len(a), len(b))


def test_word_errors_equal_the_recursion():
    texts = [
        " ".join(words)
        for length in range(5)
        for words in itertools.product("ab", repeat=length)
    ]
    for a, b in itertools.product(texts, texts):
        wanted = WordErrors(slow_distance(a.split(), b.split()), len(a.split()))
        assert word_errors(a, b) == wanted


def test_word_error_rates():
    assert word_errors("the cat sat", "the cat sat").rate == 0.0
    assert word_errors("the cat sat", "a cat sat down").rate == 2 / 3
    assert word_errors("", "x").rate == float("inf")
    assert word_errors("", "").rate == 0.0
    assert str(WordErrors(3, 2000)) == "0.15% (3 of 2,000)"


def test_the_weight_decides_between_base_score_and_model():
    nbest = scored("1", ("heard", -1.0, -30.0), ("likely", -4.0, -10.0))
    assert reranked(nbest, 0.0)[0].hypothesis.text == "heard"
    assert reranked(nbest, 0.1)[0].hypothesis.text == "heard"
    assert reranked(nbest, 0.2)[0].hypothesis.text == "likely"
    assert nbest[1].combined(0.2) == pytest.approx(-6.0)


def test_equal_scores_keep_their_order():
    nbest = scored("1", ("first", None, -1.0), ("second", None, -1.0))
    assert [s.hypothesis.text for s in reranked(nbest, 0.0)] == [
        "first",
        "second",
    ]


def test_tuning_finds_the_weight_with_fewest_word_errors():
    lists = [
        scored("1", ("the cat sad", -1.0, -9.0), ("the cat sat", -2.0, -5.0)),
        scored("2", ("a mat", -1.0, -6.0), ("a hat", -3.0, -5.5)),
    ]
    references = {"1": "the cat sat", "2": "a mat"}
    tuning = tune_weight(lists, references)
    assert tuning.base == WordErrors(1, 5)
    assert tuning.errors == tuning.oracle == WordErrors(0, 5)
    assert 0.25 < tuning.weight < 4.0
    # The smallest of the equally good ones.
    smaller = [w for w in tuning.tried if w < tuning.weight]
    assert all(tuning.tried[w].errors > 0 for w in smaller)
    assert errors_of(lists, references, tuning.weight) == tuning.errors
    assert errors_of(lists, references, 100.0) == WordErrors(1, 5)


def test_a_list_without_reference_is_named():
    lists = [scored("7", ("a", None, -1.0))]
    with pytest.raises(UserError, match="'7' has no reference"):
        tune_weight(lists, {"1": "a"})
    with pytest.raises(UserError, match="No n-best lists"):
        tune_weight([], {})


def test_lists_are_gathered_and_scored_in_order(pretrained):
    scorer = ElectricScorer(pretrained("electric"), batch_size=2)
    texts = ["the end", "of it", "and that was it", "for the mat", "is"]
    ids = ["a", "a", "b", "b", "b"]
    hypotheses = [Hypothesis(*pair) for pair in zip(ids, texts, strict=True)]
    lists = list(score_lists(scorer, hypotheses))
    assert [len(nbest) for nbest in lists] == [2, 3]
    assert [s.place for s in lists[1]] == [0, 1, 2]
    flat = [s for nbest in lists for s in nbest]
    for one, text in zip(flat, texts, strict=True):
        assert one.hypothesis.text == one.text_score.text == text


def test_a_list_in_two_places_is_refused(pretrained):
    scorer = ElectricScorer(pretrained("electric"))
    hypotheses = [Hypothesis(i, "the") for i in ("a", "b", "a")]
    with pytest.raises(UserError, match="'a': its hypotheses are not one"):
        list(score_lists(scorer, hypotheses))


def test_formats_are_read():
    assert list(read_hypotheses(["a b", "", "c"], "lines", "f")) == [
        Hypothesis("1", "a b"),
        Hypothesis("2", ""),
        Hypothesis("3", "c"),
    ]
    assert list(read_hypotheses(["u1\ta b\t-3.5"], "tsv", "f")) == [
        Hypothesis("u1", "a b", -3.5)
    ]
    assert list(read_hypotheses(["u1\ta b"], "tsv", "f")) == [
        Hypothesis("u1", "a b")
    ]
    lines = ['{"id": 3, "text": "a", "score": -1}', '{"text": "b", "score": 0}']
    assert list(read_hypotheses(lines, "jsonl", "f")) == [
        Hypothesis("3", "a", -1.0),
        Hypothesis("2", "b", 0.0),
    ]
    assert read_references(["u1\tright"], "tsv", "f") == {"u1": "right"}


@pytest.mark.parametrize(
    "lines, form, message",
    [
        (["u\ta", "u"], "tsv", "f, line 2: 1 columns; expected id<TAB>text"),
        (["u\ta\t1\tx"], "tsv", "f, line 1: 4 columns"),
        (["u\ta", ""], "tsv", "f, line 2: blank"),
        (["u\ta\tnan"], "tsv", "base score 'nan'; expected a finite"),
        (["u\ta\tlow"], "tsv", "base score 'low'"),
        (["u\ta\t1", "u\tb"], "tsv", "line 2: no base score, unlike"),
        (["u\ta", "u\tb\t1"], "tsv", "line 2: a base score, unlike"),
        (["{"], "jsonl", "f, line 1: not JSON"),
        (["[1]"], "jsonl", "f, line 1: expected an object"),
        (['{"id": "1"}'], "jsonl", "f, line 1: expected an object"),
        (['{"text": "a", "score": Infinity}'], "jsonl", "base score inf"),
    ],
)
def test_lines_that_cannot_be_understood_are_named(lines, form, message):
    with pytest.raises(UserError, match=message):
        list(read_hypotheses(lines, form, "f"))


def test_a_reference_given_twice_is_refused():
    with pytest.raises(UserError, match="id 'u' twice"):
        read_references(["u\ta", "u\tb"], "tsv", "f")


def test_scores_are_written_beside_what_was_read():
    (one,) = scored("u", ("a b", -2.5, -10.0))
    assert text_line(one, "tsv", None) == "u\ta b\t-2.5\t-10.0000"
    assert text_line(one, "tsv", 0.5) == "u\ta b\t-2.5\t-10.0000\t-7.5000"
    assert text_line(one, "lines", None) == "-10.0000\ta b"
    assert record_of(one, 0.5, True) == {
        "id": "u",
        "text": "a b",
        "score": -10.0,
        "tokens": 1,
        "unknown_tokens": 0,
        "base_score": -2.5,
        "combined_score": -7.5,
        "token_scores": [("a b", -10.0)],
    }
