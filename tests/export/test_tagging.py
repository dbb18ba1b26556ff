# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (texts of many scripts)
"""Served tags are those of evaluation, served summaries the predictor's."""

import random

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from electra_tf.export.summarization import split_sentences
from electra_tf.export.tagging import split_given_words
from electra_tf.finetuning.tagging import TaggingExample
from electra_tf.prediction.answers import BadInputError
from electra_tf.prediction.predictor import Predictor
from electra_tf.text import sentences as in_python
from electra_tf.text.words import split_words
from tests.export.conftest import as_numpy

KINDS = {
    "as the original": {},
    "fixed": {"fix_tagging_truncation": True, "fix_tagging_casing": True},
    "cased": {"do_lower_case": False, "fix_tagging_truncation": True},
}
_WORDS = (
    "The King's city of the NORTH was in a-b-a 1990/91 that is it U.S. for her"
    " cafe\u0301 \u4e2d\u6587x \ud55c\uad6d \u200b \u0130s \u03a3\u0391\u03a3"
    " \ufb01ne \u2014 \U0001f600 ((((( " + "z" * 201 + " " + "-" * 30
).split(" ")


@pytest.fixture(scope="module")
def model(finetuned_module):
    return lambda kind: finetuned_module("names", **KINDS[kind])


def _serve_words(module, sentences):
    lines = ["\n".join(words).encode() for words in sentences]
    return as_numpy(module.signatures()["serve_words"](tf.constant(lines)))


def _check(loaded, found, sentences, evaluated):
    names = {i: tag for tag, i in loaded.tasks[0].label_mapping.items()}
    n_beyond = 0
    for i, (words, wanted) in enumerate(zip(sentences, evaluated, strict=True)):
        count = found["n_words"][i]
        assert count == len(words)
        assert found["n_read"][i] == len(wanted)
        n_beyond += count - len(wanted)
        logits = found["logits"][i]
        np.testing.assert_allclose(logits[: len(wanted)], wanted, atol=2e-5)
        ids = found["tag_ids"][i]
        assert ids[:count].tolist() == logits[:count].argmax(-1).tolist()
        assert (ids[count:] == -1).all()
        tags = [names[tag].encode() for tag in ids[:count]]
        assert found["tags"][i].tolist() == tags + [b""] * (len(ids) - count)
        total = found["probabilities"][i].sum(-1)
        np.testing.assert_allclose(total[:count], 1, atol=1e-5)
    return n_beyond


@pytest.mark.parametrize("kind", KINDS)
def test_served_tags_are_those_of_evaluation(kind, model, head_outputs):
    loaded, module = model(kind)
    draw, sizes = random.Random(1), [0, 1, 3, 12, 20, 30, 44, 45, 46, 47, 60]
    sentences = [draw.choices(_WORDS, k=draw.choice(sizes)) for _ in range(30)]
    found = _serve_words(module, sentences)
    task = loaded.tasks[0]
    examples = [
        TaggingExample(
            eid=number, task_name=task.name, words=w, labels=[0] * len(w)
        )
        for number, w in enumerate(sentences)
    ]
    rows = [task.featurize(example, False) for example in examples]
    logits = head_outputs(loaded, rows)["logits"]
    # Of the words that evaluation reads.
    counts = [int(sum(row[f"{task.name}_labels_mask"])) for row in rows]
    evaluated = [row[:n] for row, n in zip(logits, counts, strict=True)]
    assert _check(loaded, found, sentences, evaluated) > 100
    assert len(set(found["tags"].ravel())) > 3


def test_words_come_one_a_line_or_between_spaces():
    given = [b"a b  c", b" a ", b"a b\nc", b"\na\n", b"", b" ", b"\xff b"]
    assert split_given_words(tf.constant(given)).to_list() == [
        [b"a", b"b", b"c"],
        [b"a"],
        [b"a b", b"c"],
        [b"", b"a", b""],
        [],
        [],
        [b"\xff", b"b"],
    ]


def test_texts_are_tagged_word_by_word_at_their_places(model):
    _, module = model("as the original")
    text = "Was the King's city  in \u4e2d\u6587? caf\u00e9"
    spoilt = b"the k\xffing in \xc3 a"
    found = as_numpy(module.compute_text(tf.constant([text, "", spoilt])))
    words = [text[a:b] for a, b in split_words(text)]
    by_words = _serve_words(module, [words, [], ["the", "king", "in", "a"]])
    np.testing.assert_allclose(found["logits"], by_words["logits"], atol=1e-5)
    assert found["tags"].tolist() == by_words["tags"].tolist()
    for i, raw in ((0, text.encode()), (2, spoilt)):
        for place in range(found["n_words"][i]):
            start, end = found["starts"][i, place], found["ends"][i, place]
            cut = raw[start:end].decode("utf-8", "ignore").encode()
            assert cut == found["words"][i, place]
    assert found["starts"][1].tolist() == [-1] * len(words)


def test_nothing_and_huge_texts_are_tagged(model):
    _, module = model("as the original")
    found = as_numpy(module.compute_text(tf.constant([""])))
    assert found["tags"].shape == (1, 0)
    huge = tf.constant(["the king of z " * 3000])
    found = as_numpy(module.compute_text(huge))
    assert found["n_words"].tolist() == [12000] and found["n_read"][0] < 48
    assert (found["tags"] != b"").all()


@pytest.mark.parametrize("shape", [(3, 17), (1, 1), (64, 9), (1, 512)])
def test_signatures_on_ids_tag_every_position(shape, model):
    loaded, module = model("as the original")
    ids = np.random.default_rng(0).integers(0, 200, shape, np.int32)
    found = module.compute(module.complete(tf.constant(ids)))
    mask = tf.constant((ids != 0).astype(np.int32))
    places = tf.broadcast_to(tf.range(ids.shape[1]), ids.shape)
    encoded = loaded.model.encoder(tf.constant(ids), mask, mask)
    features = {"names_labeled_positions": places}
    wanted = loaded.model.heads[0].logits(encoded, features)
    np.testing.assert_allclose(found["logits"], wanted["logits"], atol=1e-5)


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
        ("Он жил. В 1990 г. он умер. «Да!» Ночь.",
         ["Он жил.", "В 1990 г. он умер.", "«Да!»", "Ночь."]),
        ("今天很热。他说：“真的？！”我走了。3.5度",
         ["今天很热。", "他说：“真的？！”", "我走了。", "3.5度"]),
        ("राम घर गया। सीता आई॥", ["राम घर गया।", "सीता आई॥"]),
        ("کیا؟ ہاں۔نہیں", ["کیا؟", "ہاں۔", "نہیں"]),
        ("a\x02\nb\x02c。", ["a\x02", "b\x02c。"]),
    ],
)  # fmt: skip
def test_sentences_end_at_punctuation_and_lines(text, expected):
    found = in_python.split_sentences(text)
    assert [text[start:end] for start, end in found] == expected


@given(
    st.lists(
        st.text(
            st.sampled_from(
                list("aAbM.?!\"')”  \t\r\n\f\x0bé中。。？」।»\x01\x02\x1c\xa0")
            )
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
        assert [*zip(starts[i].numpy(), ends[i].numpy(), strict=True)] == places


def test_served_summaries_are_those_of_the_predictor(finetuned_module):
    # Windows of 24, so that most texts have several.
    loaded, module = finetuned_module("news", max_seq_length=24)
    serve = module.signatures()["serve_text"]
    found = as_numpy(serve(tf.constant(TEXTS)))
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
        shares = found["probabilities"][i, :count]
        np.testing.assert_allclose(shares, answer["probabilities"], atol=1e-5)
        assert found["summary"][i].decode() == answer["summary"]
        assert [s["number"] for s in answer["sentences"]] == numbers
        for sentence in answer["sentences"]:
            assert text[sentence["start"] : sentence["end"]] == sentence["text"]
            place = i, sentence["number"]
            start, end = (found[name][place] for name in ("starts", "ends"))
            assert text.encode()[start:end].decode() == sentence["text"]
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
    shares, others = (one["probabilities"] for one in (found, wanted))
    np.testing.assert_allclose(shares, others[:, 0], atol=1e-5)
    ask = Predictor(loaded)
    assert ask({"article": "The king."}) == ask("The king.")
    for item in ("", {"text": " \n"}, {"text": 1}, {"other": "a"}, {}, 5):
        with pytest.raises(BadInputError, match="expected a text"):
            ask.answerer.example(item, 0)
