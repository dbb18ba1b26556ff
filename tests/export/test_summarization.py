# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Served summaries are the predictor's; a graph splits sentences as Python."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from electra_tf.export.summarization import split_sentences
from electra_tf.prediction.answers import BadInputError
from electra_tf.prediction.predictor import Predictor
from electra_tf.text import words as in_python

TEXTS = [
    "The king of the north is in the city. That was for her! Was it?\n"
    "\N{LEFT DOUBLE QUOTATION MARK}And so is it.\N{RIGHT DOUBLE QUOTATION MARK}"
    " Mr. A. King of the U.S. north was in it. For the city, ünïcödé. The end",
    "",
    "On.",
    "the king . The north .\r\n\r\n  Of it . " * 9,
    " \t\n \n",
    "unknown \u4e2d\u6587 \U0001f600. \u200b\n\u200b",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two? (Three!) four.", ["One.", "Two?", "(Three!) four."]),
        ('He said "No." She left.', ['He said "No."', "She left."]),
        ("Mr. B. Obama of the U.S. Senate. It's 3.5 p.m. now. 5 came.",
         ["Mr. B. Obama of the U.S. Senate.", "It's 3.5 p.m. now.", "5 came."]),
        ("a\nb\r\n\n c", ["a", "b", "c"]),
        ("By . Press . 14:11 EST", ["By .", "Press .", "14:11 EST"]),
    ],
)  # fmt: skip
def test_sentences_end_at_punctuation_and_lines(text, expected):
    found = in_python.split_sentences(text)
    assert [text[start:end] for start, end in found] == expected


@given(
    st.lists(
        st.text(
            st.sampled_from(list("aAbM.?!\"')”  \t\r\n\f\x0bé中\x01\x1c\xa0"))
            | st.characters(codec="utf-8"),
            max_size=30,
        ),
        max_size=4,
    )
)
def test_a_graph_splits_sentences_as_python(texts):
    given = tf.constant(texts, tf.string, [len(texts)])
    sentences, starts, ends = split_sentences(given)
    for i, text in enumerate(texts):
        spans = in_python.split_sentences(text)
        wanted = [text[start:end] for start, end in spans]
        assert [s.decode() for s in sentences[i].numpy()] == wanted
        places = [
            (len(text[:a].encode()), len(text[:b].encode())) for a, b in spans
        ]
        found = zip(starts[i].numpy(), ends[i].numpy(), strict=True)
        assert [*found] == places


def test_served_summaries_are_those_of_the_predictor(finetuned_module):
    # Windows of 24, so that most texts have several.
    loaded, module = finetuned_module("news", max_seq_length=24)
    serve = module.signatures()["serve_text"]
    found = {n: x.numpy() for n, x in serve(tf.constant(TEXTS)).items()}
    ask = Predictor(loaded, batch_size=3)
    n_windows = 0
    for i, text in enumerate(TEXTS):
        count = found["n_sentences"][i]
        assert count == len(in_python.split_sentences(text))
        numbers = np.flatnonzero(found["chosen"][i]).tolist()
        assert (found["starts"][i, count:] == -1).all()
        assert (found["probabilities"][i, count:] == 0).all()
        if not count:
            assert (found["summary"][i], numbers) == (b"", [])
            continue
        example = ask.answerer.example(text, 0)
        n_windows += len(ask.task.featurize(example, False))
        answer = ask(text)
        np.testing.assert_allclose(
            found["probabilities"][i, :count],
            answer["probabilities"],
            atol=1e-5,
        )
        assert found["summary"][i].decode() == answer["summary"]
        assert [s["number"] for s in answer["sentences"]] == numbers
        for sentence in answer["sentences"]:
            assert text[sentence["start"] : sentence["end"]] == sentence["text"]
            place = slice(
                found["starts"][i, sentence["number"]],
                found["ends"][i, sentence["number"]],
            )
            assert text.encode()[place].decode() == sentence["text"]
    assert n_windows > 10
    chosen = [tuple(np.flatnonzero(row)) for row in found["chosen"]]
    assert len({*chosen}) > 2  # not the first three of each
    alone = serve(tf.constant(TEXTS[:1]))
    assert alone["summary"].numpy()[0] == found["summary"][0]
    assert serve(tf.constant([""]))["sentences"].shape == [1, 0]


def test_ids_are_a_sentence_and_no_document_is_refused(finetuned_module):
    loaded, module = finetuned_module("news", max_seq_length=24)
    functions = module.signatures()
    texts = ["the king of the north.", "it was for her"]
    ids = [loaded.tokenizer.encode(text) for text in texts]
    rows = tf.ragged.constant([[101, *row, 102] for row in ids]).to_tensor()
    found = functions["serve_ids"](tf.cast(rows, tf.int32))
    wanted = functions["serve_text"](tf.constant(texts))
    np.testing.assert_allclose(
        found["probabilities"], wanted["probabilities"][:, 0], atol=1e-5
    )
    loaded, _ = finetuned_module("news", max_seq_length=24)
    ask = Predictor(loaded)
    assert ask({"article": "The king."}) == ask("The king.")
    for item in ("", {"text": " \n"}, {"text": 1}, {"other": "a"}, {}, 5):
        with pytest.raises(BadInputError, match="expected a text"):
            ask.answerer.example(item, 0)
