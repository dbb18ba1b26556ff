# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (texts of many scripts)
"""Exported taggers agree with evaluation, summarizers with `Predictor`."""

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
    lines = ["\n".join(sentence).encode() for sentence in sentences]
    return as_numpy(module.signatures()["serve_words"](tf.constant(lines)))


def _check(loaded, outputs, sentences, evaluated):
    names = {i: tag for tag, i in loaded.tasks[0].label_mapping.items()}
    n_beyond = 0
    for i, (sentence, expected) in enumerate(
        zip(sentences, evaluated, strict=True)
    ):
        count = outputs["n_words"][i]
        assert count == len(sentence)
        assert outputs["n_read"][i] == len(expected)
        n_beyond += count - len(expected)
        logits = outputs["logits"][i]
        np.testing.assert_allclose(logits[: len(expected)], expected, atol=2e-5)
        ids = outputs["tag_ids"][i]
        assert ids[:count].tolist() == logits[:count].argmax(-1).tolist()
        assert (ids[count:] == -1).all()
        tags = [names[tag].encode() for tag in ids[:count]]
        assert outputs["tags"][i].tolist() == tags + [b""] * (len(ids) - count)
        total = outputs["probabilities"][i].sum(-1)
        np.testing.assert_allclose(total[:count], 1, atol=1e-5)
    return n_beyond


@pytest.mark.parametrize("kind", KINDS)
def test_served_tags_are_those_of_evaluation(kind, model, head_outputs):
    loaded, module = model(kind)
    draw, sizes = random.Random(1), [0, 1, 3, 12, 20, 30, 44, 45, 46, 47, 60]
    sentences = [draw.choices(_WORDS, k=draw.choice(sizes)) for _ in range(30)]
    actual = _serve_words(module, sentences)
    task = loaded.tasks[0]
    examples = [
        TaggingExample(
            eid=number, task_name=task.name, words=w, labels=[0] * len(w)
        )
        for number, w in enumerate(sentences)
    ]
    rows = [task.featurize(example, False) for example in examples]
    logits = head_outputs(loaded, rows)["logits"]
    # Evaluation reads the first words of a sentence only.
    counts = [int(sum(row[f"{task.name}_labels_mask"])) for row in rows]
    evaluated = [row[:n] for row, n in zip(logits, counts, strict=True)]
    assert _check(loaded, actual, sentences, evaluated) > 100
    assert len(set(actual["tags"].ravel())) > 3


def test_words_are_separated_by_lines_or_else_by_spaces():
    lines = [b"a b  c", b" a ", b"a b\nc", b"\na\n", b"", b" ", b"\xff b"]
    assert split_given_words(tf.constant(lines)).to_list() == [
        [b"a", b"b", b"c"],
        [b"a"],
        [b"a b", b"c"],
        [b"", b"a", b""],
        [],
        [],
        [b"\xff", b"b"],
    ]


def test_texts_are_tagged_word_by_word_with_their_offsets(model):
    _, module = model("as the original")
    text = "Was the King's city  in \u4e2d\u6587? caf\u00e9"
    spoilt = b"the k\xffing in \xc3 a"
    actual = as_numpy(module.compute_text(tf.constant([text, "", spoilt])))
    sentence = [text[a:b] for a, b in split_words(text)]
    by_words = _serve_words(module, [sentence, [], ["the", "king", "in", "a"]])
    np.testing.assert_allclose(actual["logits"], by_words["logits"], atol=1e-5)
    assert actual["tags"].tolist() == by_words["tags"].tolist()
    texts = [text.encode(), b"", spoilt]
    assert _cut(texts, actual) == actual["words"].tolist()
    assert actual["starts"][1].tolist() == [-1] * len(sentence)


def _cut(texts, outputs):
    """Return the words of texts at their offsets, without other bytes."""
    spans = np.stack([outputs["starts"], outputs["ends"]], -1).tolist()
    return [
        [text[a:b].decode("utf-8", "ignore").encode() for a, b in row]
        for text, row in zip(texts, spans, strict=True)
    ]


def test_empty_and_huge_texts_are_tagged(model):
    _, module = model("as the original")
    actual = as_numpy(module.compute_text(tf.constant([""])))
    assert actual["tags"].shape == (1, 0)
    huge = tf.constant(["the king of z " * 3000])
    actual = as_numpy(module.compute_text(huge))
    assert actual["n_words"].tolist() == [12000] and actual["n_read"][0] < 48
    assert (actual["tags"] != b"").all()


@pytest.mark.parametrize("shape", [(3, 17), (1, 1), (64, 9), (1, 512)])
def test_signatures_on_ids_tag_every_position(shape, model):
    loaded, module = model("as the original")
    ids = np.random.default_rng(0).integers(0, 200, shape, np.int32)
    actual = module.compute(module.complete(tf.constant(ids)))
    mask = tf.constant((ids != 0).astype(np.int32))
    positions = tf.broadcast_to(tf.range(ids.shape[1]), ids.shape)
    encoded = loaded.model.encoder(tf.constant(ids), mask, mask)
    features = {"names_labeled_positions": positions}
    expected = loaded.model.heads[0].logits(encoded, features)
    np.testing.assert_allclose(actual["logits"], expected["logits"], atol=1e-5)


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
    actual = in_python.split_sentences(text)
    assert [text[start:end] for start, end in actual] == expected


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
def test_a_graph_splits_sentences_like_python(texts):
    strings = tf.constant(texts, tf.string, [len(texts)])
    sentences, starts, ends = split_sentences(strings)
    expected, expected_starts, expected_ends = [], [], []
    for text in texts:
        spans = in_python.split_sentences(text)
        expected.append([text[a:b].encode() for a, b in spans])
        expected_starts.append([len(text[:a].encode()) for a, _ in spans])
        expected_ends.append([len(text[:b].encode()) for _, b in spans])
    assert sentences.to_list() == expected
    assert starts.to_list() == expected_starts
    assert ends.to_list() == expected_ends


@pytest.mark.parametrize(
    ("text", "expected_starts"),
    [
        (b"\xff\xe4\xbd\xa0\xe3\x80\x82\xe5\x86\x8d\xe3\x80\x82", [1, 7]),
        (b"\xe4\xbd\xe3\x80\x82On.\xf5\nIt. \xffAnd", [2, 5, 10, 15]),
        (b"One. \xed\xa0\x80two. \xf0\x9f\x98Three", [0, 16]),
        (b"\xff\x80", []),
    ],
)
def test_bytes_that_are_no_text_split_no_sentence(text, expected_starts):
    sentences, starts, ends = split_sentences(tf.constant([text]))
    valid = text.decode("utf-8", "ignore")
    spans = in_python.split_sentences(valid)
    expected = [valid[a:b].encode() for a, b in spans]
    assert sentences.to_list() == [expected]
    assert starts.to_list() == [expected_starts]
    parts = [
        text[a:b].decode("utf-8", "ignore").encode()
        for a, b in zip(*starts.to_list(), *ends.to_list(), strict=True)
    ]
    assert parts == expected


@pytest.fixture(scope="module")
def news(finetuned_module):
    """Return a predictor, its served function, and summaries of `TEXTS`.

    Windows of 24 tokens give most texts several of them.
    """
    loaded, module = finetuned_module("news", max_seq_length=24)
    serve = module.signatures()["serve_text"]
    summaries = as_numpy(serve(tf.constant(TEXTS)))
    return Predictor(loaded, batch_size=3), serve, summaries


@pytest.mark.parametrize("index", [0, 2, 3, 5])
def test_served_summaries_are_those_of_the_predictor(news, index):
    predictor, _, summaries = news
    text, served = TEXTS[index], {n: v[index] for n, v in summaries.items()}
    count = served["n_sentences"]
    assert count == len(in_python.split_sentences(text))
    answer = predictor(text)
    shares = served["probabilities"][:count]
    np.testing.assert_allclose(shares, answer["probabilities"], atol=1e-5)
    assert served["summary"].decode() == answer["summary"]
    numbers = np.flatnonzero(served["chosen"])
    sentences = answer["sentences"]
    assert [s["number"] for s in sentences] == numbers.tolist()
    chosen = [s["text"] for s in sentences]
    assert [text[s["start"] : s["end"]] for s in sentences] == chosen
    starts, ends = served["starts"][numbers], served["ends"][numbers]
    spans = zip(starts, ends, strict=True)
    assert [text.encode()[a:b].decode() for a, b in spans] == chosen
    assert (served["starts"][count:] == -1).all()
    assert (served["probabilities"][count:] == 0).all()


@pytest.mark.parametrize("index", [1, 4])
def test_texts_without_words_have_an_empty_summary(news, index):
    _, _, summaries = news
    served = {name: value[index] for name, value in summaries.items()}
    assert (served["n_sentences"], served["summary"]) == (0, b"")
    assert not served["chosen"].any() and not served["probabilities"].any()
    assert (served["starts"] == -1).all()


def test_summaries_of_several_windows_choose_different_sentences(news):
    predictor, _, summaries = news
    examples = [predictor.answerer.example(TEXTS[i], 0) for i in (0, 2, 3, 5)]
    windows = [predictor.task.featurize(e, False) for e in examples]
    assert sum(map(len, windows)) > 10
    chosen = {tuple(np.flatnonzero(row)) for row in summaries["chosen"]}
    assert len(chosen) > 2  # so not always the first three sentences


def test_a_text_has_the_same_summary_alone_and_in_a_batch(news):
    _, serve, summaries = news
    alone = serve(tf.constant(TEXTS[:1]))
    assert alone["summary"].numpy()[0] == summaries["summary"][0]
    assert serve(tf.constant([""]))["sentences"].shape == [1, 0]


def test_ids_are_read_as_one_sentence(finetuned_module):
    loaded, module = finetuned_module("news", max_seq_length=24)
    functions = module.signatures()
    texts = ["the king of the north.", "it was for her"]
    ids = [loaded.tokenizer.encode(text) for text in texts]
    rows = tf.ragged.constant([[101, *row, 102] for row in ids]).to_tensor()
    actual = functions["serve_ids"](tf.cast(rows, tf.int32))
    expected = functions["serve_text"](tf.constant(texts))
    shares, expected_shares = (
        outputs["probabilities"] for outputs in (actual, expected)
    )
    np.testing.assert_allclose(shares, expected_shares[:, 0], atol=1e-5)


def test_a_document_is_a_text_or_an_article(news):
    predictor, _, _ = news
    assert predictor({"article": "The king."}) == predictor("The king.")


@pytest.mark.parametrize(
    "item", ["", {"text": " \n"}, {"text": 1}, {"other": "a"}, {}, 5], ids=repr
)
def test_an_item_without_a_text_is_refused(news, item):
    predictor, _, _ = news
    with pytest.raises(BadInputError, match="expected a text"):
        predictor.answerer.example(item, 0)
