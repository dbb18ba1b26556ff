# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exported models give the answers of evaluation."""

import random

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export.question_answering import cut_answers, read_passages
from electra_tf.export.signatures import Inputs
from electra_tf.finetuning.questions import Passage
from electra_tf.text.graph_normalization import GraphNormalizer
from electra_tf.text.graph_tokenization import GraphTokenizer
from tests.conftest import differences
from tests.export.conftest import as_numpy
from tests.made_questions import (
    LANGUAGES,
    SETTINGS,
    LibraryTokenizer,
    make_questions,
    make_vocabulary,
    pieces_under,
)

SIZES = {
    "max_seq_length": 40,
    "max_query_length": 8,
    "doc_stride": 12,
    "beam_size": 5,
    "n_best_size": 6,
    "max_answer_length": 6,
    "qa_na_threshold": 4.8,
}
INDEPENDENT = {"joint_prediction": False}
UNCLASSIFIED = {"answerable_classifier": False}
SEARCHED = {"answer_offsets": False}  # as in the original's tasks
# Task and hparams of each kind of head. Three kinds change the windows or the
# casing, too.
KINDS = {
    "v1 joint": ("facts", {}),
    "v1 independent, cased": ("facts", {**INDEPENDENT, "do_lower_case": False}),
    "v2 joint": ("manuals", {}),
    "v2 joint, searched": ("manuals", SEARCHED),
    "v2 unclassified, gaps": ("manuals", {**UNCLASSIFIED, "doc_stride": 50}),
    "v2 independent": (
        "manuals",
        {**INDEPENDENT, **SEARCHED, "answerable_uses_start_logits": False},
    ),
    "v2 independent unclassified, every place": (
        "manuals",
        {**INDEPENDENT, **UNCLASSIFIED, "doc_stride": 1, "max_query_length": 1},
    ),
}
_WORDS = (
    "the king's city, of (the north) was in a-b-a 1990/91 that; on it is for"
    " her U.S. Ha-ha cafe\u0301 caf\u00e9 \u4e2d\u6587 \ud55c\uad6d"
    " no\u00a0break ze\u200bro \u200b \u0130stanbul x\u202fy \u03a3\u03a3"
    " \ufb01ne stra\u00dfe \u2014 \U0001f600 " + "z" * 201
).split(" ")
_SPACES = [" ", " ", " ", "  ", "\n", "\t", "\r\n", "\u202f", " \x0b "]


def _texts(seed, count):
    """Return questions with contexts, of which some are long and some empty."""
    random_ = random.Random(seed)
    pairs = []
    for number in range(count):
        question = " ".join(random_.choices(_WORDS, k=random_.randrange(7)))
        size = [random_.randrange(12), random_.randrange(90)][number % 2]
        context = "".join(
            word + random_.choice(_SPACES)
            for word in random_.choices(_WORDS, k=size)
        )
        pairs.append((question, context))
    return pairs


@pytest.fixture(scope="module")
def model(finetuned_module):
    def make(kind):
        name, hparams = KINDS[kind]
        return finetuned_module(name, **(SIZES | hparams))

    return make


def _compare(scorer, answers, pairs):
    """Compare answers; return the count of n-best that differ in letters."""
    final = scorer.final_answers()
    differing = 0
    for i, (_, context) in enumerate(pairs):
        best = scorer.best[str(i)]
        if best[0].words is None:
            # Evaluation files contain "empty"; the server answers "".
            assert (answers["answer"][i], answers["start"][i]) == (b"", -1)
            assert answers["score"][i] == 0 and answers["probability"][i] == 0
            continue
        texts = [text.decode() for text in answers["answers"][i] if text]
        assert len(texts) <= len(best)
        for rank, (text, expected) in enumerate(zip(texts, best, strict=False)):
            if text != expected.text:
                both = (text, expected.text)
                plain = [t.lower().replace(" ", "") for t in both]
                assert plain[0] == plain[1]
                differing += 1
            score = answers["scores"][i, rank]
            np.testing.assert_allclose(score, expected.score, atol=2e-5)
            start, end = answers["starts"][i, rank], answers["ends"][i, rank]
            cut = context.encode()[start:end].decode()
            if expected.span is None:
                assert " ".join(Passage(cut).words) == text
                continue
            assert cut == text == expected.text
            ends = [len(context[:n].encode()) for n in expected.span]
            assert [start, end] == ends
        if best[0].text == texts[0]:
            assert answers["answer"][i].decode() == final[str(i)]
        if answers["answer"][i]:
            assert answers["start"][i] == answers["starts"][i, 0]
        else:
            assert answers["start"][i] == answers["end"][i] == -1
        odds = scorer.null_odds.get(str(i))
        if odds is not None:
            np.testing.assert_allclose(answers["null_odds"][i], odds, atol=2e-5)
    return differing


@pytest.mark.parametrize("kind", KINDS)
def test_served_answers_are_the_evaluation_s(kind, model, evaluated_questions):
    loaded, module = model(kind)
    pairs = _texts(1, 24)
    asked = [[t.encode("utf-8", "ignore") for t in pair] for pair in pairs]
    outputs = module.compute_text(*map(tf.constant, zip(*asked, strict=True)))
    actual = as_numpy(outputs)
    differing = _compare(evaluated_questions(loaded, pairs), actual, pairs)
    assert differing <= 0.02 * (actual["starts"] >= 0).sum()
    assert max(actual["n_windows"]) > 3 and (actual["n_windows"] == 0).any()
    assert differing == 0 or "answer_offsets" in KINDS[kind][1]
    if kind.startswith("v2 joint"):
        assert {bool(answer) for answer in actual["answer"]} == {True, False}


@pytest.mark.parametrize("shape", [(1, 1), (2, 4), (2, 5), (9, 40), (1, 512)])
def test_signatures_on_ids_take_rows_of_any_length(shape, model, head_outputs):
    loaded, module = model("v2 joint")
    ids = np.random.default_rng(0).integers(0, 200, shape, np.int32)
    actual = module.compute(module.complete(tf.constant(ids)))
    mask = (ids != 0).astype(np.int32)
    is_sep = ids == loaded.tokenizer.vocab["[SEP]"]
    segments = np.where(np.cumsum(is_sep, 1) - is_sep > 0, mask, 0)
    missing = max(0, loaded.config.beam_size - ids.shape[1])
    padded = np.pad([ids, mask, segments], [[0, 0], [0, 0], [0, missing]])
    features = dict(zip(Inputs._fields, padded, strict=True))
    outputs = head_outputs(loaded, features)
    outputs["start_logits"] = outputs["start_logits"][:, : ids.shape[1]]
    assert actual["start_logits"].shape == ids.shape
    assert "end_logits" not in actual and "loss" not in actual
    # The indices of equally good, masked positions may differ.
    names = {name for name in actual if not name.endswith("_index")}
    actual, expected = (
        {name: values[name] for name in names} for values in (actual, outputs)
    )
    assert differences(actual, expected, rtol=1e-6, atol=1e-5) == []


def test_bytes_that_are_not_utf8_are_left_out(model):
    _, module = model("v1 joint")
    spoilt = b"the k\xffing's ci\xc3ty \xf0\x9f was in \xa0 the no\xedrth"
    plain = spoilt.decode("utf-8", "ignore").encode()
    actual, expected = (
        module.compute_text(tf.constant([q]), tf.constant([c]))
        for q, c in [[b"is\xfe it", spoilt], [b"is it", plain]]
    )
    np.testing.assert_array_equal(actual["answers"], expected["answers"])
    np.testing.assert_allclose(actual["scores"], expected["scores"], atol=1e-6)
    answers, starts, ends = (
        actual[name][0].numpy() for name in ("answers", "starts", "ends")
    )
    assert [text.decode() for text in answers] == [
        spoilt[start:end].decode("utf-8", "ignore")
        for start, end in zip(starts, ends, strict=True)
    ]


def test_unequal_counts_of_questions_and_contexts_are_refused(model):
    _, module = model("v1 joint")
    with pytest.raises(tf.errors.InvalidArgumentError, match="equally many"):
        module.compute_text(tf.constant(["a", "b"]), tf.constant(["c"]))


@pytest.mark.parametrize("kind", ["v1 joint", "v2 independent"])
def test_an_empty_batch_has_no_answers(model, kind):
    _, module = model(kind)
    no_strings = tf.zeros([0], tf.string)
    outputs = module.compute_text(no_strings, no_strings)
    assert outputs["answers"].shape == [0, SIZES["n_best_size"]]


@pytest.mark.parametrize("kind", ["v1 joint", "v2 independent"])
def test_contexts_without_words_have_empty_answers(model, kind):
    _, module = model(kind)
    outputs = module.compute_text(
        tf.constant(["", "is it"]), tf.constant(["", " \n\u200b"])
    )
    values = {"answer": b"", "n_windows": 0, "null_score": 1e6, "start": -1}
    actual = {name: outputs[name].numpy().tolist() for name in values}
    assert actual == {name: [value] * 2 for name, value in values.items()}


def test_a_huge_context_is_read_as_far_as_evaluation_reads(model, qa_example):
    loaded, module = model("v1 independent, cased")
    context = " ".join(random.Random(0).choices(_WORDS[:12], k=9000))
    pair = ("is it on the king", context)
    actual = module.compute_text(*(tf.constant([text]) for text in pair))
    assert actual["n_windows"][0] == 1000
    task = loaded.tasks[0]
    assert actual["n_cut"][0] == task.window(qa_example(task, *pair)).n_cut > 0
    assert actual["answer"][0] != b""


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_graph_cuts_made_answers_where_the_library_does(setting):
    vocabulary = {token: n for n, token in enumerate(make_vocabulary())}
    tokenizer = GraphTokenizer(vocabulary, *setting)
    library = LibraryTokenizer(vocabulary, *setting)
    made = [q for name in LANGUAGES for q in make_questions(name, 80, seed=42)]
    contexts = tf.constant([question.passage.encode() for question in made])
    passages = read_passages(contexts, tokenizer, GraphNormalizer(*setting))
    offsets = passages.pieces.row_starts().numpy()
    spans, expected = [], []
    for question, offset in zip(made, offsets, strict=True):
        pieces = library(question.passage)
        first, last = pieces_under(pieces, question.start, question.end)
        spans.append((first + offset, last + offset))
        start, end = pieces[first][1], pieces[last][2]
        before = len(question.passage[:start].encode())
        text = question.passage[start:end].encode()
        expected.append((text, before, before + len(text)))
    first, last = np.array(spans, np.int32).T
    actual = cut_answers(passages, tf.range(len(made)), first, last)
    actual = [part.numpy().tolist() for part in actual]
    assert list(zip(*actual, strict=True)) == expected
