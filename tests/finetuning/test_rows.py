# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bad rows of sentences, words and questions are never lost silently."""

import gzip
import json

import hypothesis
import hypothesis.strategies as st
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.finetuning import question_answering
from electra_tf.finetuning.evaluation import Evaluator
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.preprocessing import Preprocessor
from tests.conftest import refused

HEADER = "index\tsentence1\tsentence2\tlabel\n"
GOOD = "0\ta\tb\tentailment\n"
SENTENCE = "the DT B-NP\ncat NN I-NP\nsat VB B-VP\n\n"
NEWS = "summarization"
# Name of the file, header, a good row.
FILES = {
    "rte": ("train.tsv", HEADER, GOOD),
    "sts": ("dev.tsv", "i\tgenre\ts1\ts2\tscore\n", "0\tx\ta\tb\t2.5\n"),
    "chunk": ("train.txt", "", SENTENCE),
    NEWS: ("train.jsonl", "", '{"article": "a", "highlights": "b"}\n'),
}
NUMBER, TAG = "a number from 0 to 5", "O, B-TYPE, I-TYPE"
ARTICLE, SUMMARY = "a text under article", "a summary under highlights"
OBJECT, UTF8 = "one JSON object per line", "text in UTF-8"


@pytest.mark.parametrize(
    ("name", "bad", "named_value", "expected"),
    [
        ("rte", "1\tonly", "['1', 'only']", "at least 4 columns"),
        ("rte", "1\ta\tb\tperhaps", "label 'perhaps'", "one of: entailment"),
        ("rte", b"1\t\xff\tb\tentailment", "xff", UTF8),
        ("rte", "", "an empty line", "at least 4 columns"),
        *(
            ("sts", f"1\tx\ta\tb\t{score}", f"'{score}'", NUMBER)
            for score in ("5.1", "-0.1", "high", "nan", "")
        ),
        ("chunk", "a x NOUN\n", "tag 'NOUN' of 'a'", TAG),
        ("chunk", "lonely\nb x O\n", "lonely", "at least 2 columns"),
        ("chunk", b"\xff\xfe x O\nb x O\n", "xff", UTF8),
        (NEWS, '{"article": " \\n"}', r"article ' \n'", ARTICLE),
        (NEWS, '{"article": "a", "highlights": {}}', "highlights {}", SUMMARY),
        (NEWS, "{", "Expecting", OBJECT),
    ],
)
def test_a_bad_row_leaves_a_gap_in_the_ids_or_stops_strictly(
    make_task, write_task, name, bad, named_value, expected
):
    file, head, good = FILES[name]
    bad = bad if isinstance(bad, bytes) else bad.encode()
    before, good = (head + good).encode(), good.encode()
    path = write_task(name, file, before + bad + b"\n" + good)
    task = make_task(name)
    assert [e.eid for e in task.get_examples(path.stem)] == [0, 2]
    (row,) = task.row_report.rows
    line = 1 + before.count(b"\n")
    assert (row.path, row.line, row.skipped) == (str(path), line, True)
    assert row.expected.startswith(expected) and named_value in row.found
    with pytest.raises(UserError, match=f"{file}:{line}.*{expected}"):
        make_task(name, strict_rows=True).get_examples(path.stem)


def test_an_empty_text_is_reported_and_kept(make_task, write_task):
    write_task("rte", "dev.tsv", HEADER + "0\t \t\tentailment\n")
    task = make_task("rte")
    (example,) = task.get_examples("dev")
    assert task.row_report.rows[0].skipped is False
    with pytest.raises(UserError, match=r"dev\.tsv:2.*a text"):
        make_task("rte", strict_rows=True).get_examples("dev")
    features = task.featurize(example, False)
    assert sum(features["input_mask"]) == 2
    assert sum(features["segment_ids"]) == 0


def test_a_missing_or_empty_split_is_named(make_task, write_task):
    task = make_task("rte")
    assert not task.has_split("train")
    refused(r"rte/train\.tsv: no such file", task.get_examples, "train")
    refused(r"no holdout split .it has: train", task.get_examples, "holdout")
    for text in ("", HEADER, HEADER + "\n\n"):
        write_task("rte", "train.tsv", text)
        with pytest.raises(UserError, match=r"no usable example.*train\.tsv"):
            make_task("rte").get_examples("train")


@hypothesis.settings(
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_bad_rows(make_task, write_task, noise):
    write_task("rte", "dev.tsv", (HEADER + GOOD).encode() + noise)
    task = make_task("rte")
    examples = task.get_examples("dev")
    n_lines = noise.count(b"\n")
    if noise and not noise.endswith(b"\n"):
        n_lines += 1
    skipped = [row for row in task.row_report.rows if row.skipped]
    assert len(examples) + len(skipped) == 1 + n_lines


@pytest.fixture
def chunk(make_task, write_task):
    """Return a factory of the chunking task, or another, on a train file."""

    def make(text, name="chunk", **hparams):
        write_task(name, "train.txt", text)
        return make_task(name, max_seq_length=32, **hparams)

    return make


def labels_of(task):
    """Return the names of the labels of the only sentence."""
    (example,) = task.get_examples("train")
    names = list(task.label_mapping)
    return [names[i] for i in example.labels]


def resolved_labels(task):
    task.resolve_labels()
    return task.label_mapping


def features_of(task):
    return task.featurize(task.get_examples("train")[0], True)


def test_a_last_sentence_without_blank_line_is_dropped_or_kept(chunk):
    text = SENTENCE + "a DT O\ndog NN O"
    task, whole = chunk(text), ["the", "cat", "sat"]
    assert [e.words for e in task.get_examples("train")] == [whole]
    (row,) = task.row_report.rows
    assert row.line == 6 and row.skipped
    assert "fix_last_sentence" in row.expected
    task = chunk(text, fix_last_sentence=True)
    sentences = [e.words for e in task.get_examples("train")]
    assert sentences == [whole, ["a", "dog"]]
    assert task.row_report.rows == []


def test_missing_files_with_labels_are_listed(make_task):
    message = r"cannot determine .*chunk/train.txt.*/dev.txt.*/test.txt\)"
    refused(message, make_task("chunk").resolve_labels)


def test_labels_follow_the_data_or_an_earlier_run(chunk, make_task, tmp_path):
    assert "B-NP" in resolved_labels(chunk(SENTENCE))
    labels = resolved_labels(chunk("a x B-ZZ\n\n"))
    assert set(labels) == {"S-ZZ"}
    (tmp_path / "finetuning_data" / "chunk" / "train.txt").unlink()
    assert resolved_labels(make_task("chunk")) == labels


def test_labels_are_not_read_before_they_are_resolved(chunk):
    with pytest.raises(RuntimeError, match=r"labels are used before"):
        assert chunk(SENTENCE).label_mapping


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("ner", ["S-PER", "S-LOC", "O"]),
        ("chunk", ["B-LOC", "E-LOC", "O"]),
    ],
)
def test_another_type_starts_an_entity_but_no_chunk(chunk, name, labels):
    text = "Ann P C I-PER\nOslo P C I-LOC\nis V C O\n\n"
    assert labels_of(chunk(text, name)) == labels


@pytest.mark.parametrize(
    "text", ["a DT x B-PP\nb NN x O\n\n", "a DT\nb NN\n\n"]
)
def test_parts_of_speech_are_the_second_column(chunk, text):
    assert labels_of(chunk(text, "pos")) == ["DT", "NN"]


@pytest.mark.parametrize("fixed", [False, True])
def test_a_word_of_many_pieces_does_not_overflow(chunk, fixed):
    long_word = ",".join("abcdefghijklmnopqrstuvwxyz")
    task = chunk(f"a x O\n{long_word} x O\n\n", fix_tagging_truncation=fixed)
    features = features_of(task)
    assert len(features["input_ids"]) == 32
    assert sum(features["chunk_labels_mask"]) == 1
    assert list(task.row_report.losses.values()) == [1]


def test_the_original_loses_a_sentence_of_many_words_whole(chunk):
    text = "a x O\n" * 30 + "\n"
    features = features_of(chunk(text))
    assert sum(features["input_mask"]) == 1
    assert sum(features["chunk_labels_mask"]) == 0
    features = features_of(chunk(text, fix_tagging_truncation=True))
    assert sum(features["chunk_labels_mask"]) == 30
    # Words without a wordpiece take no position, but a label each.
    task = chunk("\ufffd x O\n" * 40 + "\n", fix_tagging_truncation=True)
    assert sum(features_of(task)["chunk_labels_mask"]) == 32
    assert list(task.row_report.losses.values()) == [8]


CONTEXT = "The cat sat.  On a\u00a0mat,\tthe red one."
RED = {"text": "red", "answer_start": CONTEXT.index("red")}


def question(number, *answers, **fields):
    asked = {"id": f"q{number}", "question": "the red cat?"}
    return {**asked, "answers": list(answers), **fields}


def answer(text, start):
    return {"answers": [{"text": text, "answer_start": start}]}


def squad(*qas, context=CONTEXT):
    paragraph = {"context": context, "qas": list(qas)}
    document = {"version": "1.1", "data": [{"paragraphs": [paragraph]}]}
    return json.dumps(document, indent=1)


def mrqa(number, text="red", **fields):
    """Return a line of MRQA with one question."""
    start = CONTEXT.index("red")
    answer = {"text": text, "char_spans": [[start, start + len(text) - 1]]}
    qa = {"qid": f"m{number}", "question": "the cat?", "answers": [text]}
    qa |= {"detected_answers": [answer], **fields}
    return json.dumps({"context": CONTEXT, "qas": [qa]}) + "\n"


@pytest.fixture
def qa_task(make_task, write_task):
    """Return a function that writes a split of a task and opens the task."""

    def make(name, text, split="train", file=None, **hparams):
        end = "json" if name in ("squad", "squadv1") else "jsonl"
        write_task(name, file or f"{split}.{end}", text)
        settings = {"max_query_length": 8, "beam_size": 4, **hparams}
        return make_task(name, **settings)

    return make


@pytest.mark.parametrize(
    ("fields", "named_value", "expected"),
    [
        (
            answer("dog", 4),
            "'dog' at character 4",
            "the passage's words at this offset, 'cat'",
        ),
        (answer("cat", 400), "character 400", "which has 36 characters"),
        ({"answers": []}, "no answer", "an answer with its text and offset"),
        (answer(3.5, 4), "the number 3.5", "with a text"),
        ({"answers": {"a": 1}}, "{'a': 1}", "a list of answers"),
        ({"question": None}, "question None", "a text under question"),
    ],
)
def test_an_unusable_question_is_skipped(
    fields, named_value, expected, qa_task
):
    bad = {**question(1, RED), **fields}
    text = squad(question(0, RED), bad, question(2, RED))
    # A byte order mark is valid.
    task = qa_task("squadv1", "\ufeff" + text)
    examples = task.get_examples("train")
    assert [e.key for e in examples] == ["q0", "q2"]
    assert [e.eid for e in examples] == [0, 1]  # no gap, as in the original
    (row,) = task.row_report.rows
    assert row.path.endswith("squadv1/train.json") and row.skipped
    assert named_value in row.found and expected in row.expected
    assert (
        task.row_report.losses[
            "train: questions skipped because of errors in their data"
        ]
        == 1
    )
    if fields.get("id", "q1"):
        assert row.line == 1 + text[: text.index('"q1"')].count("\n")
    task = qa_task("squadv1", text, strict_rows=True)
    refused(r"train.json:\d+: found ", task.get_examples, "train")


def test_answers_of_other_splits_need_no_offset(qa_task):
    text = squad(question(0, {"text": "dog"}), question(1))
    task = qa_task("squadv1", text, "dev")
    assert [e.answers for e in task.get_examples("dev")] == [("dog",), ()]
    assert task.row_report.rows == []
    # SQuAD 1.1 scores questions with an answer, and counts the others.
    assert task.row_report.losses == {
        "dev: questions skipped because of errors in their data": 0,
        "dev: questions whose passage is empty": 0,
        "dev: unscored questions, whose answers are missing": 1,
    }
    # An empty passage gives no window.
    task = qa_task("squad", squad(question(0), context=" "), "dev")
    (example,) = task.get_examples("dev")
    assert task.featurize(example, False) == []
    assert task.row_report.losses["dev: questions whose passage is empty"] == 1
    model = FinetuningModel(task.config, [task])
    rows = Preprocessor(task.config, [task])
    strategy = tf.distribute.get_strategy()
    evaluator = Evaluator(model, [task], rows, strategy)
    actual = evaluator.evaluate_task(task)
    assert actual.results["exact"] == 100.0 and actual.details["loss"] == 0.0


def test_impossible_questions_have_no_position(qa_task):
    qas = [
        question(0, RED, is_impossible=False),
        question(1, is_impossible=True),
        question(2),  # impossible, because it has no answers
        question(0, RED),  # kept in spite of its repeated id
        question(3, RED, is_impossible="no"),  # left out
    ]
    task = qa_task("squad", squad(*qas))
    examples = task.get_examples("train")
    assert [e.is_impossible for e in examples] == [False, True, True, False]
    row, left_out = task.row_report.rows
    assert not row.skipped and "'q0' of an earlier question" in row.found
    assert (
        left_out.skipped and "is_impossible is the text 'no'" in left_out.found
    )
    (features,) = task.featurize(examples[1], True)
    assert features["squad_start_positions"] == 0
    assert features["squad_is_impossible"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"data":\n [,', r"train.json:2: malformed JSON at character 3"),
        ("[]", r"train.json: the file contains a list \[\]; expected a SQuAD"),
        ("{}", "no list under data"),
        ('{"data": 3}', "data is the number 3"),
        ('{"data": []}'.encode("utf-16"), "train.json:1: found UTF-16"),
        (b'{"data": "\xff"}', r"train.json:1: byte 10 is not UTF-8"),
        ('{"data": []}', "no usable question in its train split"),
    ],
)
def test_a_malformed_file_is_an_error_with_its_position(text, message, qa_task):
    refused(message, qa_task("squad", text).get_examples, "train")


def test_broken_paragraphs_and_lines_are_reported_with_their_number(qa_task):
    good = {"context": CONTEXT, "qas": [question(0, RED), "text"]}
    paragraphs = [{"qas": []}, {"context": 3, "qas": []}, "text", good]
    data = [{"title": "no paragraphs"}, {"paragraphs": paragraphs}]
    task = qa_task("squadv1", json.dumps({"data": data}))
    assert len(task.get_examples("train")) == 1
    assert [row.expected for row in task.row_report.rows] == [
        "an article with a list of paragraphs",
        "a paragraph with the text context and the list qas",
        "a paragraph with the text context and the list qas",
        "a paragraph with the text context and the list qas",
        "a question as a JSON object",
    ]
    undetected = ([], [{"text": " ", "char_spans": [[3, 3]]}])
    lines = [
        '{"header": {"dataset": "x"}}\n',
        "{broken\n",
        "\n",
        mrqa(0),
        mrqa(1, "dog"),
        '["no object"]\n',
        '{"context": "a"}\n',
        mrqa(2),
        *(mrqa(3, detected_answers=answers) for answers in undetected),
    ]
    task = qa_task("triviaqa", "".join(lines))
    assert [e.key for e in task.get_examples("train")] == ["m0", "m2"]
    rows = task.row_report.rows
    assert [row.line for row in rows] == [2, 5, 6, 7, 9, 10]
    assert "'dog'" in rows[1].found and rows[4].found.endswith("no answer")
    assert rows[5].found.endswith("answer ' '")


def test_compressed_mrqa_files_are_read(qa_task):
    packed = gzip.compress((mrqa(0) + "{broken\n" + "[]\n").encode())
    task = qa_task("searchqa", packed, file="train.jsonl.gz")
    assert task.has_split("train") and len(task.get_examples("train")) == 1
    assert [row.line for row in task.row_report.rows] == [2, 3]
    assert task.data_files("train")[0].endswith("train.jsonl.gz")
    task = qa_task("naturalqs", packed[:30], file="train.jsonl.gz")
    refused("cannot be decompressed", task.get_examples, "train")


def test_long_questions_and_many_windows_are_cut(qa_task, monkeypatch):
    task = qa_task("squadv1", squad(question(0, RED)), max_query_length=2)
    (example,) = task.get_examples("train")
    assert task.featurize(example, True)[0]["segment_ids"].index(1) == 4
    assert task.row_report.losses["questions cut to max_query_length"] == 1
    monkeypatch.setattr(question_answering, "MAX_WINDOWS", 3)
    answers = [{"text": "red", "answer_start": 796}]
    text = squad(question(0, *answers), context="red " * 200)
    task = qa_task("squadv1", text, doc_stride=4)
    (example,) = task.get_examples("train")
    windows = task.featurize(example, True)
    assert [w["squadv1_eid"] for w in windows] == [0, 1, 2]
    losses = task.row_report.losses
    assert losses["wordpieces cut off passages after 3 windows"] > 100
    assert (
        losses["training questions whose answer is not within a single window"]
        == 1
    )


def test_debug_reads_few_questions(qa_task, write_task, monkeypatch):
    monkeypatch.setattr(question_answering, "DEBUG_LINES", 1)
    text = squad(question(0, RED), question(1, RED))

    def count(name, text):
        return len(qa_task(name, text, debug=True).get_examples("train"))

    assert count("squadv1", text) == 2
    write_task("squadv1", "train-debug.json", squad(question(0, RED)))
    assert count("squadv1", text) == 1
    assert count("newsqa", mrqa(0) + mrqa(1)) == 1


@pytest.fixture
def own_task(describe):
    """Return a function that makes a task from its description."""

    def make(text, max_query_length=8, beam_size=4, **description):
        sizes = {"max_query_length": max_query_length, "beam_size": beam_size}
        description |= {"type": "question_answering"}
        files = {"train.json": text, "dev.json": text}
        return describe(description, files, **sizes)

    return make


@pytest.mark.parametrize(
    ("version", "is_v2", "exact"),
    [("squad1", False, "exact_match"), ("squad2", True, "exact")],
)
def test_a_described_task_of_squad_has_the_metrics_of_its_version(
    own_task, version, is_v2, exact
):
    text = squad(question(0, RED))
    task = own_task(text, version=version)
    assert task.v2 == is_v2
    assert [e.key for e in task.get_examples("dev")] == ["q0"]
    assert task.main_metric == "f1"
    task = own_task(text, metric="exact_match", version=version)
    assert task.main_metric == exact


def test_a_described_task_of_mrqa_has_its_splits_only(own_task):
    task = own_task(mrqa(0), version="mrqa")
    assert [e.key for e in task.get_examples("train")] == ["m0"]
    assert task.get_test_splits() == []
    refused("no test split .it has: train, dev", task.get_examples, "test")


@pytest.mark.parametrize(
    ("description", "match"),
    [
        ({}, "words"),
        ({"match": "words", "version": "squad2"}, "words"),
        ({"match": "characters"}, "characters"),
    ],
)
def test_answers_of_a_described_task_match_by_words_or_characters(
    own_task, description, match
):
    task = own_task(squad(question(0, RED)), **description)
    assert task.match == match
    assert task.measure.startswith(f"match {match}")
    assert "any_script" in task.get_scorer("dev").metric_names


@pytest.mark.parametrize("name", ["squad", "squadv1", "newsqa", "triviaqa"])
def test_built_in_questions_keep_the_official_scripts(make_task, name):
    task = make_task(name, max_query_length=8, beam_size=4)
    assert task.match is None and task.measure is None
    assert "any_script" not in task.scorer_of([]).metric_names


def test_settings_without_room_are_refused(own_task, qa_task):
    text = squad(question(0, RED))
    with pytest.raises(UserError, match="max_query_length 29 leaves no room"):
        own_task(text, max_query_length=29)
    refused("beam_size 33 exceeds the 32", own_task, text, beam_size=33)
    with pytest.raises(UserError, match="newsqa: data_source is tfds"):
        qa_task("newsqa", "", data_source="tfds")
