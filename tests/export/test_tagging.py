# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Served tags are those of evaluation; words beyond its cut are tagged too."""

import random

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export.tagging import (
    split_given_words,
)
from electra_tf.finetuning.tagging import TaggingExample
from electra_tf.text.words import split_words

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


def _sentences(seed, count):
    random_ = random.Random(seed)
    sizes = [0, 1, 3, 12, 20, 30, 44, 45, 46, 47, 60]
    return [
        random_.choices(_WORDS, k=random_.choice(sizes)) for _ in range(count)
    ]


@pytest.fixture(scope="module")
def model(finetuned_module):
    return lambda kind: finetuned_module("names", **KINDS[kind])


@pytest.fixture(scope="module")
def evaluate(head_outputs):
    """The head's logits of the words that evaluation reads."""

    def logits(loaded, sentences):
        task = loaded.tasks[0]
        examples = [
            TaggingExample(
                eid=number, task_name=task.name, words=w, labels=[0] * len(w)
            )
            for number, w in enumerate(sentences)
        ]
        rows = [task.featurize(example, False) for example in examples]
        found = head_outputs(loaded, rows)["logits"]
        counts = [int(sum(row[f"{task.name}_labels_mask"])) for row in rows]
        return [row[:count] for row, count in zip(found, counts, strict=True)]

    return logits


def _numpy(outputs):
    return {name: value.numpy() for name, value in outputs.items()}


def _serve_words(module, sentences):
    lines = ["\n".join(words).encode() for words in sentences]
    return _numpy(module.signatures()["serve_words"](tf.constant(lines)))


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
def test_served_tags_are_those_of_evaluation(kind, model, evaluate):
    loaded, module = model(kind)
    sentences = _sentences(1, 30)
    found = _serve_words(module, sentences)
    evaluated = evaluate(loaded, sentences)
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
    found = _numpy(module.compute_text(tf.constant([text, "", spoilt])))
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
    found = _numpy(module.compute_text(tf.constant([""])))
    assert found["tags"].shape == (1, 0)
    found = _numpy(module.compute_text(tf.constant(["the king of z " * 3000])))
    assert found["n_words"].tolist() == [12000]
    assert found["n_read"][0] < 48
    assert (found["tags"] != b"").all()


@pytest.mark.parametrize("shape", [(3, 17), (1, 1), (64, 9), (1, 512)])
def test_signatures_on_ids_tag_every_position(shape, model):
    loaded, module = model("as the original")
    ids = np.random.default_rng(0).integers(0, 200, shape, np.int32)
    found = module.compute(module.complete(tf.constant(ids)))
    mask = tf.constant((ids != 0).astype(np.int32))
    places = tf.broadcast_to(tf.range(ids.shape[1]), ids.shape)
    encoded = loaded.model.encoder(tf.constant(ids), mask, mask)
    wanted = loaded.model.heads[0].logits(
        encoded, {"names_labeled_positions": places}
    )
    np.testing.assert_allclose(found["logits"], wanted["logits"], atol=1e-5)
