# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers and vectors are the model's, whatever the batch; bad items named."""

import itertools
import json

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.keras import Encoder
from electra_tf.prediction.answers import BadInputError
from electra_tf.prediction.batch_runner import batch_sizes, run_in_batches
from electra_tf.prediction.embedding import Embedder
from electra_tf.prediction.loading import load_pretrained
from electra_tf.prediction.predictor import Predictor
from tests.conftest import refused

TEXTS = [
    "the king of the north is in the city",
    "that was for her.",
    "",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 3,
    "unknown: \u4e2d\u6587 \U0001f600",
    "on",
]


@pytest.fixture(scope="module")
def predictor(finetuned_folder):
    made = {}

    def make(name, **settings):
        key = (name, repr(settings))
        if key not in made:
            folder = finetuned_folder(name)
            made[key] = Predictor.from_pretrained(folder, **settings)
        return made[key]

    return make


@pytest.fixture
def whole_outputs(head_outputs):
    """The head's outputs for one row that is padded to max_seq_length."""

    def compute(predictor, item):
        example = predictor.answerer.example(item, 0)
        row = predictor.task.featurize(example, False)
        outputs = head_outputs(predictor.loaded, [row])
        return {name: value[0] for name, value in outputs.items()}

    return compute


def test_classes_have_the_logits_probabilities(predictor, whole_outputs):
    ask = predictor("reviews", batch_size=4)
    answers = ask(TEXTS)
    for text, answer in zip(TEXTS, answers, strict=True):
        logits = whole_outputs(ask, text)["logits"]
        found = answer["probabilities"]
        assert list(found) == ["bad", "good", "so-so"]
        wanted = tf.nn.softmax(logits)
        np.testing.assert_allclose(list(found.values()), wanted, atol=1e-5)
        assert answer["label"] == list(found)[int(logits.argmax())]
        assert answer["probability"] == max(found.values())
    json.dumps(answers)
    assert len({answer["label"] for answer in answers}) > 1


def test_items_alone_in_lists_and_pairs(predictor, whole_outputs):
    ask = predictor("reviews", batch_size=4)
    alone = ask("the king")
    assert isinstance(alone, dict)
    (listed,) = ask(["the king"])
    assert alone == listed == ask({"text": "the king"}) == ask(b"the king")
    assert ask([]) == []
    ask = predictor("pairs")
    pair = ("the king", "of that")
    named = {"text_a": "the king", "text_b": "of that"}
    wanted = tf.nn.softmax(whole_outputs(ask, pair)["logits"])
    for answer in (ask(pair), ask(named), *ask([pair, list(pair)])):
        found = answer["probabilities"]
        assert list(found) == ["no", "yes"]
        np.testing.assert_allclose(list(found.values()), wanted, atol=1e-5)
    with pytest.raises(BadInputError, match="a pair of texts"):
        ask("only one")


def test_numbers_and_labels_are_those_of_the_head(predictor, whole_outputs):
    ask = predictor("grade")
    for text in TEXTS:
        raw = float(whole_outputs(ask, text)["predictions"])
        assert ask(text)["value"] == pytest.approx(raw * 6 + 1, abs=1e-4)
    ask = predictor("topics")
    for text in TEXTS:
        logits = whole_outputs(ask, text)["logits"]
        answer = ask(text)
        found = list(answer["probabilities"].values())
        np.testing.assert_allclose(found, tf.sigmoid(logits), atol=1e-5)
        names = np.array(["art", "law", "war"])
        assert answer["labels"] == names[logits > 0].tolist()


def test_words_get_tags_as_far_as_they_fit(predictor, whole_outputs):
    ask = predictor("names")
    text = "The king, (of) the\tNorth is in York."
    answer = ask(text)
    assert answer["words"][:4] == ["The", "king", ",", "("]
    assert len(answer["tags"]) == len(answer["words"]) == 12
    assert all(0 < p <= 1 for p in answer["probabilities"]) and answer["spans"]
    for span in answer["spans"]:
        assert text[span["start"] : span["end"]] == span["text"]
        assert span["type"] in ("PER", "LOC")
    outputs = whole_outputs(ask, answer["words"])
    mapping = ask.task.label_mapping
    wanted = outputs["predictions"][: len(answer["words"])]
    assert [mapping[tag] for tag in answer["tags"]] == wanted.tolist()
    (of_words,) = ask([answer["words"]])
    assert of_words["tags"] == answer["tags"]
    assert "start" not in of_words["spans"][0]
    ask = predictor("kinds")
    answer = ask("the " * 100)
    assert answer["tags"].count(None) == 100 - 46
    assert answer["tags"][0] in ("noun", "verb", "other")
    assert "spans" not in answer
    assert sum(ask.task.row_report.losses.values()) >= 54
    assert ask("")["tags"] == []


@pytest.mark.parametrize(
    ("name", "hparams"),
    [
        ("manuals", {}),
        ("facts", {}),
        ("manuals", {"answerable_classifier": False}),
    ],
)
@pytest.mark.parametrize("by_offset", [True, False])
def test_answers_are_the_evaluation_s(
    finetuned_folder, evaluated_questions, name, hparams, by_offset
):
    folder = finetuned_folder(name, **hparams)
    ask = Predictor.from_pretrained(folder, answer_offsets=by_offset)
    context = "The  king of\nthe north (that is) in the city, was for her. " * 5
    questions = ["who?", "what is in the city?", "is that for her?"]
    pairs = [(question, context) for question in questions]
    scorer = evaluated_questions(ask.loaded, pairs)
    answers = ask(pairs)
    for i, answer in enumerate(answers):
        assert answer["answer"] == scorer.final_answers()[str(i)]
        assert answer["n_best"][0]["answer"] == scorer.predictions[str(i)]
        for one in answer["n_best"]:
            stands = context[one["start"] : one["end"]]
            if not by_offset:  # One space between words.
                stands = " ".join(stands.split())
            assert stands == one["answer"]
        if name == "manuals":
            odds = scorer.null_odds[str(i)]
            assert answer["null_odds"] == pytest.approx(odds, abs=1e-4)
    empty = ask({"question": "what?", "context": ""})
    assert (empty["answer"], empty["start"]) == ("", None)
    json.dumps([answers, empty])


def test_one_graph_serves_every_shape(predictor, monkeypatch):
    ask = predictor("reviews", batch_size=7)
    traced = []
    encoder = ask.loaded.model.encoder
    monkeypatch.setattr(encoder, "call", lambda *a: traced.append(a))
    ask(TEXTS * 3)
    ask("one")
    assert not traced


def test_a_stream_is_read_as_it_is_needed(predictor):
    ask = predictor("reviews", batch_size=2)
    taken = itertools.count()
    answers = ask.stream(f"the {next(taken)}" for _ in itertools.count())
    assert next(answers)[0] == 0
    assert next(taken) == 2  # one batch, and no more
    assert [n for n, _ in itertools.islice(answers, 500)] == [*range(1, 501)]
    assert next(taken) < 2 + 8 + 32 + 64 * 10


def test_bad_items_are_named_or_left_out(predictor):
    ask = predictor("reviews")
    items = ["the", 7, "of", {"question": "?"}, ("a", "b")]
    refused(r"item 1 .*found 7; expected a text", ask, items)
    told = {}
    found = dict(ask.stream(items, lambda n, e: told.update({n: str(e)})))
    assert list(found) == [0, 2]
    assert list(told) == [1, 3, 4]
    refused("expected a text", ask, 3)


def cost(lengths, sizes, call_cost):
    parts = zip([0, *itertools.accumulate(sizes)][:-1], sizes, strict=True)
    tokens = sum(lengths[start] * size for start, size in parts)
    return tokens + call_cost * len(sizes)


def all_cuts(count, most):
    if not count:
        yield []
    for size in range(1, min(most, count) + 1):
        for rest in all_cuts(count - size, most):
            yield [size, *rest]


@pytest.mark.parametrize("call_cost", [0.0, 3.0, 64.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_cut_costs_less(call_cost, seed):
    random = np.random.default_rng(seed)
    lengths = sorted(random.integers(1, 30, 9).tolist(), reverse=True)
    sizes = batch_sizes(lengths, 4, call_cost)
    assert sum(sizes) == 9 and max(sizes) <= 4
    least = min(cost(lengths, cut, call_cost) for cut in all_cuts(9, 4))
    assert cost(lengths, sizes, call_cost) == least


def test_every_row_gets_its_own_output_and_no_more_padding_than_said():
    seen = []

    def function(rows, length):
        seen.append((len(rows), length))
        return {"first": np.array([row["input_ids"][0] for row in rows])}

    lengths = [3, 60, 4, 2, 61, 500]
    rows = [{"input_ids": [i] * n} for i, n in enumerate(lengths)]
    found = run_in_batches(function, rows, lengths, 4, longest=128)
    assert [row["first"] for row in found] == list(range(6))
    assert sorted(seen) == [(1, 128), (2, 61), (3, 4)]

    def fails(rows, length):
        raise ValueError(length)

    with pytest.raises(ValueError, match="128"):
        run_in_batches(fails, rows, lengths, 4, longest=128)


EMBEDDED = ["The king of the north.", "", "that was for her, is it? " * 30]


@pytest.fixture(scope="module")
def embedder(finetuned_folder):
    return Embedder.from_pretrained(finetuned_folder("reviews"), batch_size=2)


def _layers(embedder, text, segment=0):
    """All layers' outputs for one text, [layers + 1, T, H], by hand."""
    tokenizer = embedder._tokenizer
    pieces = tokenizer.tokenize(text)[: embedder.max_length - 2]
    ids = tokenizer.convert_tokens_to_ids(["[CLS]", *pieces, "[SEP]"])
    ids = tf.constant([ids])
    out = embedder.encoder(ids, tf.ones_like(ids), segment * tf.ones_like(ids))
    return np.stack([out.embedding_output[0], *(x[0] for x in out.layers)])


@pytest.mark.parametrize("layer", [0, 1, 2, -1, -3])
def test_a_layer_is_that_layer(embedder, layer):
    found = embedder(EMBEDDED, layers=layer, pooling="none")
    for text, vectors in zip(EMBEDDED, found, strict=True):
        wanted = _layers(embedder, text)[layer]
        np.testing.assert_allclose(vectors, wanted, atol=1e-5)


def test_a_tagger_sees_the_segment_it_learned(finetuned_folder):
    embedder = Embedder.from_pretrained(finetuned_folder("names"))
    wanted = _layers(embedder, "the king", segment=1)[-1]
    found = embedder("the king", pooling="none")
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    ids = {"input_ids": tf.constant([embedder._tokenize("the king").ids])}
    layer = Encoder.from_pretrained(finetuned_folder("names"))
    found = layer(ids)["sequence_output"][0]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_pooling_and_combination_are_what_they_say(embedder):
    every = [_layers(embedder, text) for text in EMBEDDED]
    last = [x[-1] for x in every]
    for pooling, pool in {
        "first": lambda x: x[0],
        "mean": lambda x: x.mean(0),
        "max": lambda x: x.max(0),
    }.items():
        found = embedder(EMBEDDED, pooling=pooling)
        assert found.shape == (3, 16) and found.dtype == np.float32
        wanted = np.stack([pool(x) for x in last])
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    found = embedder(EMBEDDED, layers=(1, 2), pooling="first")
    wanted = np.stack([x[1:].mean(0)[0] for x in every])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    found = embedder(EMBEDDED, (0, -1), "first", combine="concat")
    wanted = np.stack([np.concatenate([x[0, 0], x[-1, 0]]) for x in every])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert embedder([], layers=(0, -1), combine="concat").shape == (0, 32)


def test_words_are_means_of_pieces_and_one_text_gives_one_vector(embedder):
    text = "The kings, that"
    (found,) = embedder.embed([text], pooling="words")
    assert found.units == ["The", "kings", ",", "that"]
    pieces = embedder.embed([text], pooling="none")[0]
    assert pieces.units[:3] == ["[CLS]", "the", "k"]
    count = len(embedder._tokenizer.tokenize("kings"))
    assert count == 3
    wanted = pieces.vectors[2 : 2 + count].mean(0)
    np.testing.assert_allclose(found.vectors[1], wanted, atol=1e-6)
    assert embedder("", pooling="words").shape == (0, 16)
    assert embedder("a text").shape == (16,)
    short, long = embedder.embed([EMBEDDED[0], EMBEDDED[2]], pooling="words")
    whole = len(embedder._tokenizer.tokenize(EMBEDDED[2]))
    assert (short.cut, long.cut) == (0, whole - 62)


def test_what_cannot_be_is_refused(embedder, finetuned_folder):
    refused("layers 1 to 2", embedder, "a", layers=3)
    refused("pooling 'sum': expected one of", embedder, "a", pooling="sum")
    with pytest.raises(UserError, match="no generator"):
        Embedder.from_pretrained(finetuned_folder("reviews"), "generator")
    refused("expected a text", embedder, [3])


def test_pre_trained_models_give_either_part(pretrained_folder):
    folder = pretrained_folder()
    model = load_pretrained(folder).model
    parts = {"encoder": model.discriminator, "generator": model.generator}
    for part, encoder in parts.items():
        embedder = Embedder.from_pretrained(folder, part)
        ours = {v.name: v.numpy() for v in embedder.encoder.variables}
        assert ours and all(
            (v.numpy() == ours[v.name]).all() for v in encoder.variables
        )
        assert embedder("the king").shape == (encoder.config.hidden_size,)
