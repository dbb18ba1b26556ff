# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers are those of the model in any batch, and bad inputs are named."""

import itertools
import json

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.prediction.answers import BadInputError
from electra_tf.prediction.batch_runner import batch_sizes, run_in_batches
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
    predictors = {}

    def make(name, **settings):
        key = (name, repr(settings))
        if key not in predictors:
            folder = finetuned_folder(name)
            predictors[key] = Predictor.from_pretrained(folder, **settings)
        return predictors[key]

    return make


@pytest.fixture
def whole_outputs(head_outputs):
    """Return a function from an item to the head's outputs for a padded row."""

    def compute(predictor, item):
        example = predictor.answerer.example(item, 0)
        row = predictor.task.featurize(example, False)
        outputs = head_outputs(predictor.loaded, [row])
        return {name: value[0] for name, value in outputs.items()}

    return compute


def test_classes_have_the_logits_probabilities(predictor, whole_outputs):
    ask = predictor("reviews", batch_size=4)
    answers = ask(TEXTS)
    logits = np.stack([whole_outputs(ask, text)["logits"] for text in TEXTS])
    labels = ["bad", "good", "so-so"]
    shares = [[a["probabilities"][name] for name in labels] for a in answers]
    np.testing.assert_allclose(shares, tf.nn.softmax(logits), atol=1e-5)
    expected = [labels[i] for i in logits.argmax(-1)]
    assert [answer["label"] for answer in answers] == expected
    assert [answer["probability"] for answer in answers] == [*map(max, shares)]
    assert len({*expected}) > 1
    json.dumps(answers)


@pytest.mark.parametrize(
    "item", [["the king"], {"text": "the king"}, b"the king"]
)
def test_a_text_has_the_same_answer_in_any_form(predictor, item):
    ask = predictor("reviews", batch_size=4)
    answer = ask("the king")
    assert isinstance(answer, dict)
    assert ask(item) == ([answer] if isinstance(item, list) else answer)


def test_an_empty_input_has_no_answers(predictor):
    assert predictor("reviews")([]) == []


@pytest.mark.parametrize(
    "item",
    [
        ("the king", "of that"),
        {"text_a": "the king", "text_b": "of that"},
        [("the king", "of that")],
        [["the king", "of that"]],
    ],
)
def test_pairs_have_the_logits_probabilities(predictor, whole_outputs, item):
    ask = predictor("pairs")
    outputs = whole_outputs(ask, ("the king", "of that"))
    answer = ask(item)
    if isinstance(item, list):
        (answer,) = answer
    shares = answer["probabilities"]
    assert list(shares) == ["no", "yes"]
    expected = tf.nn.softmax(outputs["logits"])
    np.testing.assert_allclose(list(shares.values()), expected, atol=1e-5)


def test_one_text_is_no_pair(predictor):
    with pytest.raises(BadInputError, match="a pair of texts"):
        predictor("pairs")("only one")


@pytest.mark.parametrize("text", TEXTS)
def test_a_number_is_that_of_the_head(predictor, whole_outputs, text):
    ask = predictor("grade")
    output = float(whole_outputs(ask, text)["predictions"])
    assert ask(text)["value"] == pytest.approx(output * 6 + 1, abs=1e-4)


@pytest.mark.parametrize("text", TEXTS)
def test_labels_are_those_of_the_head(predictor, whole_outputs, text):
    ask = predictor("topics")
    logits = whole_outputs(ask, text)["logits"]
    answer = ask(text)
    shares = list(answer["probabilities"].values())
    np.testing.assert_allclose(shares, tf.sigmoid(logits), atol=1e-5)
    names = np.array(["art", "law", "war"])
    assert answer["labels"] == names[logits > 0].tolist()


NAMES = "The king, (of) the\tNorth is in York."


def test_words_have_the_tags_of_the_head(predictor, whole_outputs):
    ask = predictor("names")
    answer = ask(NAMES)
    assert answer["words"][:4] == ["The", "king", ",", "("]
    assert len(answer["tags"]) == len(answer["words"]) == 12
    assert all(0 < p <= 1 for p in answer["probabilities"])
    ids = whole_outputs(ask, answer["words"])["predictions"][:12]
    mapping = ask.task.label_mapping
    assert [mapping[tag] for tag in answer["tags"]] == ids.tolist()


def test_spans_have_their_text_and_offsets(predictor):
    spans = predictor("names")(NAMES)["spans"]
    texts = [NAMES[span["start"] : span["end"]] for span in spans]
    assert texts == [span["text"] for span in spans] != []
    assert {span["type"] for span in spans} <= {"PER", "LOC"}


def test_a_list_of_words_has_the_same_tags_and_no_offsets(predictor):
    ask = predictor("names")
    of_text = ask(NAMES)
    (of_words,) = ask([of_text["words"]])
    assert of_words["tags"] == of_text["tags"]
    assert "start" not in of_words["spans"][0]


def test_words_beyond_the_length_have_no_tag(predictor):
    ask = predictor("kinds")
    answer = ask("the " * 100)
    assert answer["tags"].count(None) == 100 - 46
    assert answer["tags"][0] in ("noun", "verb", "other")
    assert "spans" not in answer
    assert sum(ask.task.row_report.losses.values()) >= 54


def test_an_empty_text_has_no_tags(predictor):
    assert predictor("kinds")("")["tags"] == []


CONTEXT = "The  king of\nthe north (that is) in the city, was for her. " * 5


@pytest.mark.parametrize(
    ("name", "hparams"),
    [
        ("manuals", {}),
        ("facts", {}),
        ("manuals", {"answerable_classifier": False}),
    ],
)
@pytest.mark.parametrize("by_offset", [True, False])
def test_answers_are_those_of_the_evaluation(
    finetuned_folder, evaluated_questions, name, hparams, by_offset
):
    folder = finetuned_folder(name, **hparams)
    ask = Predictor.from_pretrained(folder, answer_offsets=by_offset)
    questions = ["who?", "what is in the city?", "is that for her?"]
    pairs = [(question, CONTEXT) for question in questions]
    scorer = evaluated_questions(ask.loaded, pairs)
    answers = ask(pairs)
    keys = ["0", "1", "2"]
    finals = scorer.final_answers()
    assert [a["answer"] for a in answers] == [finals[key] for key in keys]
    best = [answer["n_best"][0]["answer"] for answer in answers]
    assert best == [scorer.predictions[key] for key in keys]
    if name == "manuals":
        odds = [answer["null_odds"] for answer in answers]
        expected = [scorer.null_odds[key] for key in keys]
        assert odds == pytest.approx(expected, abs=1e-4)
    json.dumps(answers)


@pytest.mark.parametrize("by_offset", [True, False])
def test_answers_have_their_offsets_in_the_context(finetuned_folder, by_offset):
    ask = Predictor.from_pretrained(
        finetuned_folder("facts"), answer_offsets=by_offset
    )
    spans = ask(("what is in the city?", CONTEXT))["n_best"]
    texts = [CONTEXT[span["start"] : span["end"]] for span in spans]
    if not by_offset:  # Answers have one space between words.
        texts = [" ".join(text.split()) for text in texts]
    assert texts == [span["answer"] for span in spans] != []


def test_an_empty_context_has_no_answer(predictor):
    answer = predictor("manuals")({"question": "what?", "context": ""})
    assert (answer["answer"], answer["start"]) == ("", None)
    json.dumps(answer)


def test_one_graph_serves_every_shape(predictor, monkeypatch):
    ask = predictor("reviews", batch_size=7)
    traced = []
    encoder = ask.loaded.model.encoder
    monkeypatch.setattr(encoder, "call", lambda *a: traced.append(a))
    ask(TEXTS * 3)
    ask("one")
    assert not traced


def test_a_stream_is_read_as_far_as_needed(predictor):
    ask = predictor("reviews", batch_size=2)
    counter = itertools.count()
    answers = ask.stream(f"the {next(counter)}" for _ in itertools.count())
    assert next(answers)[0] == 0
    assert next(counter) == 2  # items of one batch
    assert [n for n, _ in itertools.islice(answers, 500)] == [*range(1, 501)]
    assert next(counter) < 2 + 8 + 32 + 64 * 10


def test_bad_items_are_named_or_left_out(predictor):
    ask = predictor("reviews")
    items = ["the", 7, "of", {"question": "?"}, ("a", "b")]
    refused(r"item 1 .*found 7; expected a text", ask, items)
    errors = []
    answers = dict(ask.stream(items, lambda number, _: errors.append(number)))
    assert list(answers) == [0, 2]
    assert errors == [1, 3, 4]
    refused("expected a text", ask, 3)


def _cost(lengths, sizes, call_cost):
    parts = zip([0, *itertools.accumulate(sizes)][:-1], sizes, strict=True)
    tokens = sum(lengths[start] * size for start, size in parts)
    return tokens + call_cost * len(sizes)


def _all_cuts(count, most):
    if not count:
        yield []
    for size in range(1, min(most, count) + 1):
        for rest in _all_cuts(count - size, most):
            yield [size, *rest]


@pytest.mark.parametrize("call_cost", [0.0, 3.0, 64.0])
@pytest.mark.parametrize("seed", range(4))
def test_batches_have_the_least_cost_of_all_cuts(call_cost, seed):
    random = np.random.default_rng(seed)
    lengths = sorted(random.integers(1, 30, 9).tolist(), reverse=True)
    sizes = batch_sizes(lengths, 4, call_cost)
    assert sum(sizes) == 9 and max(sizes) <= 4
    least = min(_cost(lengths, cut, call_cost) for cut in _all_cuts(9, 4))
    assert _cost(lengths, sizes, call_cost) == least


LENGTHS = [3, 60, 4, 2, 61, 500]
ROWS = [{"input_ids": [i] * n} for i, n in enumerate(LENGTHS)]


def test_rows_run_in_batches_of_similar_length():
    shapes = []

    def function(rows, length):
        shapes.append((len(rows), length))
        return {"first": np.array([row["input_ids"][0] for row in rows])}

    outputs = run_in_batches(function, ROWS, LENGTHS, 4, 128, str)
    assert [row["first"] for row in outputs] == list(range(6))
    assert sorted(shapes) == [(1, 128), (2, 61), (3, 4)]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_output_that_is_not_finite_is_refused(value):
    def function(rows, length):
        bad = [value if len(row["input_ids"]) == 60 else 0.0 for row in rows]
        return {"ids": np.arange(len(rows)), "logits": np.array([bad, bad]).T}

    refused(
        f"text 1: the model's output logits is {value}; expected a finite",
        lambda: run_in_batches(
            function, ROWS, LENGTHS, 4, 128, lambda row: f"text {row}"
        ),
    )


def test_the_text_of_an_output_that_is_not_finite_is_named(
    predictor, monkeypatch
):
    ask = predictor("reviews", batch_size=1)
    compute = ask._function

    def overflow(rows, length):
        outputs = compute(rows, length)
        is_bad = [sum(row["input_mask"]) > 40 for row in rows]
        outputs["logits"][is_bad] = np.inf
        return outputs

    monkeypatch.setattr(ask, "_function", overflow)
    refused("^'a b c d e f .*logits is inf", lambda: ask(TEXTS))


def test_an_error_of_a_batch_is_raised():
    def fails(rows, length):
        raise ValueError(length)

    with pytest.raises(ValueError, match="128"):
        run_in_batches(fails, ROWS, LENGTHS, 4, 128, str)
