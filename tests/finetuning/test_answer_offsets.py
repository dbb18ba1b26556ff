# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (letters of many scripts are the point here)
"""Answers are the characters at offsets, or searched as in the original."""

import json

import numpy as np
import pytest

from electra_tf.finetuning import registry
from tests.conftest import refused
from tests.made_questions import (
    LANGUAGES,
    SETTINGS,
    LibraryTokenizer,
    make_questions,
    make_vocabulary,
    pieces_under,
)

CHINESE = "1963年以前他在河内。范廷颂1963年被任为主教；他是枢机，也是主教。"
ENGLISH = "The fox saw a fox-like animal near the foxhole."


def squad(*questions, key="answer_start"):
    """Return a file of SQuAD of (question, passage, answer, offset)."""
    paragraphs = [
        {
            "context": passage,
            "qas": [
                {
                    "id": f"q{number}",
                    "question": question,
                    "answers": [{"text": text, key: start}],
                }
            ],
        }
        for number, (question, passage, text, start) in enumerate(questions)
    ]
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(make_vocabulary()) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def qa_task(finetuning_config, write_task, tmp_path, vocab_file):
    """Return a factory of `squadv1`, or of a described task, on one file."""

    def make(name, text, version="squad1", **hparams):
        settings = {
            "vocab_file": vocab_file,
            "do_lower_case": False,
            "strip_accents": False,
            "max_query_length": 16,
            "max_seq_length": 64,
            "doc_stride": 24,
            "joint_prediction": False,
            **hparams,
        }
        if name == "squadv1":
            write_task(name, "train.json", text)
            return registry.get_tasks(finetuning_config(name, **settings))[0]
        (tmp_path / "train.json").write_text(text, encoding="utf-8")
        description = {
            "name": name,
            "type": "question_answering",
            "version": version,
            "files": {"train": "train.json", "dev": "train.json"},
        }
        path = tmp_path / "task.json"
        path.write_text(json.dumps(description))
        config = finetuning_config(name, task_config=str(path), **settings)
        return registry.get_tasks(config)[0]

    return make


def positions(task, example):
    """Return the first and last wordpiece of a training answer."""
    cut = task.window(example)
    return task.answer_span(example, cut.pieces)


# Task, hparams, and if the offsets are used.
QUIRK = [
    ("squadv1", {}, False),
    ("squadv1", {"answer_offsets": True}, True),
    ("mine", {}, True),
    ("mine", {"answer_offsets": False}, False),
]


@pytest.mark.parametrize(("name", "hparams", "by_offset"), QUIRK)
def test_training_follows_the_offset_or_the_first_occurrence(
    name, hparams, by_offset, qa_task
):
    asked = [
        ("什么", CHINESE, "1963年", 15),
        ("他", CHINESE, "主教", 33),
        ("which", ENGLISH, "fox", 14),
    ]
    task = qa_task(name, squad(*asked), **hparams)
    examples = task.get_examples("train")
    actual = [positions(task, example) for example in examples]
    tokens = task.tokenizer.tokenize(CHINESE)
    year, bishop = len(task.tokenizer.tokenize("1963年")), 2
    first = [0, tokens.index("主")]
    if by_offset:  # Characters 15 and 33, counted in wordpieces.
        first = [
            len(task.tokenizer.tokenize(CHINESE[:15])),
            len(task.tokenizer.tokenize(CHINESE[:33])),
        ]
    assert actual[0] == (first[0], first[0] + year - 1)
    assert actual[1] == (first[1], first[1] + bishop - 1)
    # Between spaces both ways find the word at the offset.
    start = len(task.tokenizer.tokenize(ENGLISH[:14]))
    assert actual[2][0] == start


def answers_of(task, example, first, last):
    """Return the answer of an evaluation whose logits choose wordpieces."""
    scorer = task.scorer_of([example])
    for row, (start, length) in zip(
        task.featurize(example, False), task.window(example).spans, strict=True
    ):
        logits = np.full([2, task.config.max_seq_length], -9.0, np.float32)
        shift = row["segment_ids"].index(1) - start
        if start <= first and last < start + length:
            logits[0, first + shift] = logits[1, last + shift] = 9.0
        scorer.update(
            {
                "eid": row[f"{task.name}_eid"],
                "loss": 0.0,
                "answerable_logit": 0.0,
                "start_logits": logits[0],
                "end_logits": logits[1],
            }
        )
    scorer.answer()
    return scorer.best[example.key][0]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_made_questions_have_the_positions_that_the_library_computes(
    language, setting, qa_task
):
    made = make_questions(language, 80, seed=42)
    asked = [
        (q.question, q.passage, q.passage[q.start : q.end], q.start)
        for q in made
    ]
    lower, strip = setting
    settings = {"do_lower_case": lower, "strip_accents": strip}
    settings["max_answer_length"] = 64
    task = qa_task("mine", squad(*asked), **settings)
    examples = task.get_examples("train")
    assert len(examples) == len(made) and not task.row_report.rows
    library = LibraryTokenizer(task.tokenizer.vocab, lower, strip)
    repeated = unknown = inside = 0
    for question, example in zip(made, examples, strict=True):
        passage = question.passage
        pieces = library(passage)
        first, last = pieces_under(pieces, question.start, question.end)
        cut = task.window(example)
        assert cut.pieces.tokens == [token for token, _, _ in pieces]
        assert cut.pieces.spans.tolist() == [[s, e] for _, s, e in pieces]
        assert positions(task, example) == (first, last)
        n_query = len(library(question.question)[:16]) + 2
        for (start, length), row in zip(
            cut.spans, task.featurize(example, True), strict=True
        ):
            expected = [0, 0]
            if start <= first and last < start + length:
                expected = [n_query + first - start, n_query + last - start]
            names = ("mine_start_positions", "mine_end_positions")
            assert [row[name] for name in names] == expected
        span = pieces[first][1], pieces[last][2]
        window = any(s <= first and last < s + n for s, n in cut.spans)
        if window:
            answer = answers_of(task, example, first, last)
            assert answer.span == span
            assert answer.text == passage[slice(*span)]
            inside += 1
        text = passage[question.start : question.end]
        if passage.count(text) > 1:
            repeated += 1
        if "[UNK]" in [token for token, _, _ in pieces[first : last + 1]]:
            unknown += 1
    assert min(repeated, unknown) > 10 and inside > 60


@pytest.mark.parametrize(
    ("passage", "answer", "searched"),
    [
        # With an unknown wordpiece the search returns whole words.
        ("他是ꦗ主教。也是主教", "ꦗ主", "他是ꦗ主教。也是主教"),
        ("foxꦗ, near", "foxꦗ", "foxꦗ,"),
        # The search joins words by one space.
        ("the  fox\tsaw", "the  fox", "the fox"),
    ],
)
@pytest.mark.parametrize("by_offset", [True, False])
def test_answers_are_characters_or_searched(
    passage, answer, searched, by_offset, qa_task
):
    start = passage.index(answer)
    end = start + len(answer)
    file = squad(("which", passage, answer, start))
    task = qa_task("mine", file, answer_offsets=by_offset)
    (example,) = task.get_examples("train")
    pieces = LibraryTokenizer(task.tokenizer.vocab, False, False)(passage)
    actual = answers_of(task, example, *pieces_under(pieces, start, end))
    if by_offset:
        assert (actual.text, actual.span) == (answer, (start, end))
    else:
        assert (actual.text, actual.span) == (searched, None)


def report_of(task):
    """Return the one bad row of a task's training data."""
    refused("no usable question", task.get_examples, "train")
    (row,) = task.row_report.rows
    assert row.path.endswith("train.json") and row.skipped and row.line
    return row


@pytest.mark.parametrize(
    ("text", "start", "named_value", "expected"),
    [
        ("fox", 400, "'fox' at character 400", "which has 47 characters"),
        ("fox", -1, "'fox' at character -1", "which has 47 characters"),
        ("foxhole.", 40, "character 40", "which has 47 characters"),
        (
            "fox",
            3,
            "at character 3",
            "' fo' (the answer occurs at character 4)",
        ),
        ("fo", 5, "at character 5", "at this offset, 'ox' (the answer"),
        (
            "dog",
            4,
            "'dog' at character 4",
            "the passage's text at this offset, 'fox'",
        ),
        ("fox", "x", "answer_start is the text 'x'", "an integer"),
        ("fox", 4.5, "answer_start is the number 4.5", "an integer"),
        ("fox", True, "answer_start is true", "an integer"),
        ("fox", [4], "answer_start is a list [4]", "an integer"),
        ("fox", None, "'fox' without answer_start", "under answer_start"),
    ],
)
def test_an_answer_that_is_not_at_its_offset_is_a_bad_row(
    text, start, named_value, expected, qa_task
):
    row = report_of(qa_task("mine", squad(("which", ENGLISH, text, start))))
    assert named_value in row.found and "'q0'" in row.found
    assert expected in row.expected


@pytest.mark.parametrize(
    ("passage", "text", "start", "span"),
    [
        (ENGLISH, "FOX", 4, (4, 7)),
        (ENGLISH, "fox", "4", (4, 7)),
        (ENGLISH, "fox", 4.0, (4, 7)),
        (ENGLISH, " fox ", 3, (4, 7)),
        ("the  fox\u00a0saw", "the fox saw", 0, (0, 12)),
        ("in 1963", 1963, 3, (3, 7)),
    ],
)
def test_case_white_space_and_certain_values_are_no_fault(
    passage, text, start, span, qa_task
):
    task = qa_task("mine", squad(("which", passage, text, start)))
    (example,) = task.get_examples("train")
    assert example.answer_span == span
    assert task.row_report.rows == []


def test_an_answer_of_removed_characters_alone_is_a_bad_row(qa_task):
    row = report_of(qa_task("mine", squad(("a", "the\u200b fox", "\u200b", 3))))
    assert "'\\u200b'" in row.found and "tokenization keeps" in row.expected


@pytest.mark.parametrize(("name", "hparams", "by_offset"), QUIRK)
def test_only_records_by_offset_have_a_fingerprint_of_answers(
    name, hparams, by_offset, qa_task
):
    file = squad(("which", ENGLISH, "fox", 4))
    fingerprint = qa_task(name, file, **hparams).fingerprint()
    assert ("answers" in fingerprint) == by_offset


# Both kinds of tasks read values that other programs write.


def file_of(**fields):
    """Return a file of SQuAD with one question of these fields."""
    question = {"id": "q", "question": "which", **fields}
    question = {name: x for name, x in question.items() if x != "absent"}
    paragraph = {"context": ENGLISH, "qas": [question]}
    return json.dumps({"data": [{"paragraphs": [paragraph]}]})


FOX = {"answers": [{"text": "fox", "answer_start": 4}]}
KINDS = ["mine", "squadv1"]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"id": 41210}, "41210"),
        ({"id": 41210.0}, "41210"),
        ({"id": 2**70}, str(2**70)),
        ({"id": "absent", "qid": 5}, "5"),
        ({"id": None, "qid": "x"}, "x"),
    ],
)
def test_ids_that_are_numbers_are_decimal_text(name, fields, key, qa_task):
    task = qa_task(name, file_of(**FOX, **fields))
    (example,) = task.get_examples("train")
    assert example.key == key


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("fields", "named_value", "expected"),
    [
        ({"id": True}, "id is true", "a text or a whole number"),
        ({"id": 5.5}, "id is the number 5.5", "a text or a whole number"),
        ({"id": 1e300}, "id is the number 1e+300", "a text or a whole number"),
        ({"id": [5]}, "id is a list [5]", "a text or a whole number"),
        ({"id": "absent"}, "no id", "a text under id"),
        ({"question": 4.5}, "question is the number 4.5", "a text"),
        ({"question": False}, "question is false", "a text"),
        ({"answers": "fox"}, "answers is the text 'fox'", "a list of answers"),
        (
            {"answers": {"text": ["fox", "a"], "answer_start": [4]}},
            "answers has 2 entries in text, but 1 in answer_start",
            "two lists of equal length",
        ),
        (
            {"answers": {"text": ["fox"], "answer_start": 4}},
            "answer_start is the number 4",
            "a list",
        ),
        (
            {"answers": {"text": ["fox"], "answer_start": ["x"]}},
            "answer_start is the text 'x'",
            "an integer",
        ),
    ],
)
def test_an_uncertain_value_is_named_with_its_type(
    name, fields, named_value, expected, qa_task
):
    row = report_of(qa_task(name, file_of(**(FOX | fields))))
    assert named_value in row.found and expected in row.expected


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "answers",
    [
        {"text": ["fox"], "answer_start": [4]},
        {"text": ["fox"], "answer_start": ["4"]},
        {"text": "fox", "answer_start": 4},
        [{"text": "fox", "answer_start": " 4 "}],
    ],
)
def test_answers_of_hugging_face_are_read(name, answers, qa_task):
    task = qa_task(name, file_of(answers=answers))
    (example,) = task.get_examples("train")
    assert example.answers == ("fox",)
    start = len(task.tokenizer.tokenize("The"))
    assert positions(task, example)[0] == start


@pytest.mark.parametrize(
    ("value", "is_impossible"),
    [("true", True), ("False", False), (1, True), (None, False)],
)
def test_impossible_is_read_by_its_meaning(value, is_impossible, qa_task):
    text = file_of(**FOX, is_impossible=value)
    task = qa_task("mine", text, version="squad2")
    (example,) = task.get_examples("train")
    assert example.is_impossible == is_impossible


def line_of(**fields):
    """Return a line of MRQA with one question of these fields."""
    answer = {"text": "fox", "char_spans": [[4, 6]]}
    question = {"qid": "m", "question": "which", "answers": ["fox"]}
    question |= {"detected_answers": [answer], **fields}
    return json.dumps({"context": ENGLISH, "qas": [question]}) + "\n"


def detected(spans):
    return {"detected_answers": [{"text": "fox", "char_spans": spans}]}


@pytest.mark.parametrize(
    ("fields", "key"),
    [({"qid": 7}, "7"), (detected([["4", "6"]]), "m"), ({"answers": []}, "m")],
)
def test_numbers_of_mrqa_are_read(fields, key, qa_task):
    task = qa_task("mine", line_of(**fields), version="mrqa")
    (example,) = task.get_examples("train")
    assert (example.key, example.answer_span) == (key, (4, 7))


@pytest.mark.parametrize(
    ("fields", "named_value"),
    [
        ({"qid": 7.5}, "qid is the number 7.5"),
        (detected("4"), "char_spans is the text '4'"),
        (detected([4, 6]), "char_spans is a list [4, 6]"),
        (detected([[True]]), "char_spans is true"),
        (detected([[400, 402]]), "'fox' at character 400"),
        ({"detected_answers": "fox"}, "detected_answers is the text 'fox'"),
        ({"answers": [4.5]}, "answer the number 4.5"),
    ],
)
def test_an_uncertain_value_of_mrqa_is_named_with_its_type(
    fields, named_value, qa_task
):
    row = report_of(qa_task("mine", line_of(**fields), version="mrqa"))
    assert named_value in row.found and row.line == 1


@pytest.mark.parametrize(
    "answers", [[], {}, None, {"text": [], "answer_start": []}]
)
def test_every_form_of_no_answers_is_a_bad_row(answers, qa_task):
    task = qa_task("mine", file_of(answers=answers))
    assert "no answer" in report_of(task).found
