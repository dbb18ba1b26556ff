# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers (predict) and vectors (embed) of texts in files."""

import json
import types

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.commands import embed, predict
from electra_tf.prediction.embedding import Embedder
from tests.conftest import refused


@pytest.fixture
def run(tmp_path, finetuned_folder):
    """Return a function that writes a file, and returns its answers."""

    def call(task, name, text, *flags, output="out.jsonl"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        output = tmp_path / output
        argv = ["predict", "--model", finetuned_folder(task), str(path), *flags]
        argv += ["--output", str(output), "--overwrite"]
        assert predict.main(predict.parse_flags(argv)) == 0
        return [json.loads(line) for line in output.read_text().splitlines()]

    return call


def test_bad_and_blank_lines_are_named_counted_and_left_out(run, capfd):
    answers = run("reviews", "in.txt", b"the king\n\nof \xff\nthat\n", "--echo")
    assert [a["line"] for a in answers] == [1, 4]
    assert answers[1]["text_a"] == "that"
    assert list(answers[0])[:3] == ["line", "text_a", "label"]
    assert set(answers[0]["probabilities"]) == {"bad", "good", "so-so"}
    err = capfd.readouterr().err
    assert "in.txt:3: found b'of \\xff'; expected text in UTF-8" in err
    assert "2 answers in" in err
    assert "1 bad line left out; 1 blank line left out" in err


@pytest.mark.parametrize(
    ("name", "text", "echo"),
    [
        ("a.txt", "The  king, is in.\n", {"text": "The  king, is in."}),
        ("a.tsv", "words\nThe king\n", {"text": "The king"}),
        ("a.jsonl", '{"text": "The king"}\n', {"text": "The king"}),
        ("a.jsonl", '{"words": "The king"}\n', {"text": "The king"}),
        ("a.jsonl", '{"words": ["The", "a b"]}\n', {"words": ["The", "a b"]}),
        ("a.conll", "The O\nking O\n", {"words": ["The", "king"]}),
    ],
)
def test_echo_repeats_the_input_of_taggers(run, name, text, echo):
    (plain,) = run("names", name, text)
    (answer,) = run("names", name, text, "--echo")
    assert answer == plain | echo
    spans = [span for span in answer["spans"] if "start" in span]
    parts = [answer["text"][span["start"] : span["end"]] for span in spans]
    assert parts == [span["text"] for span in spans]


@pytest.mark.parametrize(
    ("location", "echo", "answer"),
    [
        ({}, {"label": "x"}, {"label": "y"}),
        ({"label": 1}, {}, {"label": 2}),
        ({"label": 1}, {"label": 2}, {}),
    ],
)
def test_different_values_of_a_key_are_refused(location, echo, answer):
    message = "different values for the key 'label'.* Remove --echo"
    refused(message, predict._merge, location, echo, answer)


PAIRS = "two,one,label,key\nof that,the king,no,k1\n,the,yes,k2\n"


def test_an_id_column_is_copied(run):
    answers = run("pairs", "a.csv", PAIRS, "--id_column=key")
    assert [answer["id"] for answer in answers] == ["k1", "k2"]


@pytest.mark.parametrize(
    ("table", "flags"),
    [
        (
            "x,y\nof that,the king\n,the\n",
            ("--columns=text_a=y,text_b=x", "--header"),
        ),
        (PAIRS, ("--like=dev",)),
    ],
)
def test_columns_are_found_by_flags_or_by_a_split(run, table, flags):
    expected = run("pairs", "a.csv", PAIRS)
    answers = run("pairs", "b.csv", table, *flags)
    labels = [answer["label"] for answer in expected]
    assert [answer["label"] for answer in answers] == labels
    probabilities = [answer["probabilities"] for answer in expected]
    assert [answer["probabilities"] for answer in answers] == probabilities


def test_an_unknown_column_is_refused(run):
    flags = ("--columns=text_a=--7", "--header")
    refused("no column '--7'", run, "pairs", "d.csv", "x,y\na,b\n", *flags)


@pytest.mark.parametrize("columns", ["text_a=x,text_a=y", "text_a=0, text_a=0"])
def test_two_columns_of_one_value_are_refused(run, columns):
    flags = (f"--columns={columns}", "--header")
    message = "text_a has two columns; expected one"
    refused(message, run, "pairs", "d.csv", "x,y\na,b\n", *flags)


def test_an_id_may_be_missing_or_a_number(run):
    rows = '{"text": "of", "key": null}\n{"text": "of", "key": 7}\n'
    answers = run("reviews", "a.jsonl", rows, "--id_column=key")
    assert [answer["id"] for answer in answers] == [None, 7]


@pytest.mark.parametrize("name", ["a.txt", "a.conll"])
@pytest.mark.parametrize("flag", ["--id_column=key", "--header=False"])
def test_a_flag_of_columns_is_refused_for_other_formats(run, name, flag):
    refused(
        f"{flag}.* (no id column|not apply to files)",
        run,
        "names",
        name,
        "of x\n\n",
        flag,
    )


def test_like_reads_sentences_as_the_split_does(run):
    text = "The x\nking x\n\nof x\n"
    answers = run("kinds", "d.txt", text, "--like=dev")
    assert [answer["words"] for answer in answers] == [["The", "king"], ["of"]]


def test_words_may_be_under_the_name_in_the_task():
    spec = types.SimpleNamespace(columns={"word": "toks"})
    predictor = types.SimpleNamespace(task=types.SimpleNamespace(spec=spec))
    predictor.answerer = types.SimpleNamespace(columns={"words": ["words"]})
    assert predict._find_columns(predictor, None)[0] == {
        "words": ["toks", "words", 0]
    }


ASKED = '{"question": "who?", "context": "The king is in."}\n'


@pytest.mark.parametrize(
    ("task", "name", "text", "key"),
    [
        ("grade", "a.tsv", "text\nthe king\n", "value"),
        ("topics", "a.jsonl", '{"text": "of"}\n', "labels"),
        ("names", "a.conll", "The O\nking O\n\nof O\n", "spans"),
        ("kinds", "a.txt", "The king is in.\n", "tags"),
        ("manuals", "a.jsonl", ASKED, "n_best"),
        ("facts", "a.tsv", "who?\tThe king is in.\n", "probability"),
    ],
)
def test_every_kind_of_task_answers(run, task, name, text, key):
    answers = run(task, name, text)
    assert all(key in answer for answer in answers)
    assert len(answers) == (2 if name == "a.conll" else 1)


def test_all_tags_have_probabilities_with_all_tags(run):
    (answer,) = run("kinds", "a.txt", "The king is in.\n", "--all_tags")
    all_probabilities = answer["tag_probabilities"]
    assert len(answer["words"]) == len(all_probabilities) == 5
    names = {frozenset(probabilities) for probabilities in all_probabilities}
    assert names == {frozenset(("noun", "verb", "other"))}
    sums = [sum(probabilities.values()) for probabilities in all_probabilities]
    assert sums == pytest.approx([1] * 5, abs=1e-5)
    best = [max(probabilities.values()) for probabilities in all_probabilities]
    assert best == pytest.approx(answer["probabilities"], abs=1e-5)
    tags = [max(p, key=p.get) for p in all_probabilities]
    assert tags == answer["tags"]


def test_an_unusable_input_is_a_bad_line(run, tmp_path, capfd):
    lines = '{"text": "the"}\n{"text": 7}\n["a", "b"]\n'
    assert [a["line"] for a in run("reviews", "a.jsonl", lines)] == [1]
    err = capfd.readouterr().err
    assert "a.jsonl:2: found {'text_a': 7}; expected a text" in err
    assert "a.jsonl:3" in err
    with pytest.raises(UserError, match=r"a.jsonl:2: .*--strict"):
        run("reviews", "a.jsonl", lines, "--strict")
    before = (tmp_path / "out.jsonl").read_text()
    refused("no line could be answered", run, "reviews", "a.jsonl", "7\n")
    assert (tmp_path / "out.jsonl").read_text() == before != ""


def test_a_question_may_be_an_integer_and_no_other_number(run, capfd):
    rows = [
        {"question": 1963, "context": "the king"},
        {"question": "who", "context": 7},
        {"question": True, "context": "the king"},
        {"question": "who"},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    answers = run("facts", "q.jsonl", lines)
    assert [a["line"] for a in answers] == [1] and answers[0]["answer"]
    err = capfd.readouterr().err
    assert "q.jsonl:2: found context is the number 7; expected a q" in err
    assert "q.jsonl:3: found question is true; expected a question" in err
    assert "q.jsonl:4: found the keys question" in err


def test_a_missing_file_is_refused_before_the_model(tmp_path):
    argv = ["predict", "--model", "none", str(tmp_path / "gone.txt")]
    refused(r"gone.txt: no such file", predict.main, predict.parse_flags(argv))


@pytest.mark.parametrize(
    ("output", "flag", "message"),
    [
        ("out.npy", "--batch_size=0", "--batch_size=0: expected 1 or more"),
        ("out.txt", "--layers=1", r"ends in \.npy or \.npz"),
        ("out.npy", "--pooling=none", r"\.npz, because"),
        ("out.npy", "--layers=last", "whole numbers"),
    ],
)
def test_flags_are_checked_before_the_model(tmp_path, output, flag, message):
    (tmp_path / "in.txt").write_text("a\n")
    argv = ["--model=none", tmp_path / "in.txt", flag]
    refused(message, _embed, *argv, "--output", tmp_path / output)


def test_standard_input_is_answered_on_standard_output(
    finetuned_folder, run_python
):
    folder = finetuned_folder("reviews")
    argv = ("-m", "electra_tf", "predict", "--model", folder)
    process = run_python(
        *argv, "--no_probabilities", input="the king\nthat was\n"
    )
    answers = [json.loads(line) for line in process.stdout.splitlines()]
    assert [set(a) for a in answers] == [{"line", "label", "probability"}] * 2
    assert "2 answers in" in process.stderr


def _embed(*argv):
    return embed.main(embed.parse_flags(["embed", *map(str, argv)]))


def test_each_text_has_one_vector(finetuned_folder, tmp_path, capfd):
    folder = finetuned_folder("reviews")
    text = tmp_path / "in.txt"
    text.write_bytes(b"the king\n\n\xff\nthat was for her\n")
    out = tmp_path / "out.npy"
    argv = ("--model", folder, text, "--output", out)
    _embed(*argv, "--layers=1,2", "--batch_size=1")
    vectors = np.load(out)
    embedder = Embedder.from_pretrained(folder)
    expected = embedder(["the king", "that was for her"], layers=(1, 2))
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    facts = json.loads((tmp_path / "out.json").read_text())
    assert (facts["texts"], facts["vectors"], facts["width"]) == (2, 2, 16)
    rows = (tmp_path / "out.rows.jsonl").read_text().splitlines()
    assert [json.loads(row)["line"] for row in rows] == [1, 4]
    assert "1 bad line left out; 1 blank line" in capfd.readouterr().err
    stated = json.dumps({"vocab_file": f"{folder}/vocab.txt"})
    _embed(*argv, "--overwrite", "--layers=1,2", f"--hparams={stated}")
    np.testing.assert_allclose(np.load(out), vectors, atol=1e-5)
    refused("--overwrite", _embed, *argv)
    overwriting = ("--model", folder, tmp_path / "out.json", "--overwrite")
    refused(
        "out.json: the output is also an input",
        _embed,
        *overwriting,
        "--output",
        out,
    )


@pytest.mark.parametrize("text", [b"\xff\n\xfe\n", b"\n\n\xff"])
def test_a_file_without_usable_lines_is_an_error(
    finetuned_folder, tmp_path, capfd, text
):
    (tmp_path / "in.txt").write_bytes(text)
    out = tmp_path / "out.npy"
    argv = ("--model", finetuned_folder("reviews"), tmp_path / "in.txt")
    argv += ("--output", out, "--overwrite")
    out.write_bytes(b"of an earlier command")
    refused("no line could be embedded", _embed, *argv)
    assert out.read_bytes() == b"of an earlier command"
    assert not (tmp_path / "out.json").exists()
    assert "0 texts in" in capfd.readouterr().err


def test_vectors_of_words_have_offsets_and_names(finetuned_folder, tmp_path):
    folder = finetuned_folder("reviews")
    text = tmp_path / "in.jsonl"
    text.write_text('{"text": "The king,"}\n{"text": ""}\n{"text": "of"}\n')
    out = tmp_path / "out.npz"
    _embed("--model", folder, text, "--output", out, "--pooling=words")
    with np.load(out) as arrays:
        offsets, vectors = arrays["offsets"], arrays["vectors"]
    assert offsets.tolist() == [0, 3, 3, 4]
    expected = Embedder.from_pretrained(folder)("of", pooling="words")
    np.testing.assert_allclose(vectors[3:], expected, atol=1e-5)
    rows = (tmp_path / "out.rows.jsonl").read_text().splitlines()
    assert json.loads(rows[0])["units"] == ["The", "king", ","]
    names = "in.jsonl out.json out.npz out.rows.jsonl"
    assert sorted(p.name for p in tmp_path.iterdir()) == names.split()
    text.write_text("\n")
    out = tmp_path / "out.npy"
    argv = ("--model", folder, text, "--output", out)
    _embed(*argv, "--combine=concat", "--layers=0,1", "--overwrite")
    assert np.load(out).shape == (0, 32)
