# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command that answers questions from a folder of texts."""

import json
import os
import shutil

import pytest

from electra_tf.commands import ask
from tests.conftest import refused

pytest.importorskip("bm25s", reason="no extra ask")
pytest.importorskip("Stemmer", reason="no extra ask")


@pytest.fixture
def run(text_folder, finetuned_folder, tmp_path):
    """Return a function that runs the command and returns its answers."""

    def call(*flags, task="facts"):
        output = tmp_path / "out.jsonl"
        argv = ["ask", str(text_folder), *flags, f"--output={output}"]
        argv += [f"--model={finetuned_folder(task)}", "--overwrite"]
        assert ask.main(ask.parse_flags(argv)) == 0
        return [json.loads(line) for line in output.read_text().splitlines()]

    return call


@pytest.mark.parametrize(
    ("flags", "task", "message"),
    [
        (["?!"], "facts", r"QUESTION: found '\?!'"),
        (
            ["where is it?"],
            "reviews",
            "the task reviews; expected a task of question answering",
        ),
        (["--fit={folder}/a.txt"], "facts", "a.txt:2: malformed JSON"),
        (["--questions={folder}/../out.jsonl"], "facts", "an input"),
        (["is it?", "--language=klingon"], "facts", "=klingon: .*french"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    run, text_folder, tmp_path, flags, task, message
):
    (tmp_path / "out.jsonl").touch()
    flags = [flag.format(folder=text_folder) for flag in flags]
    refused(message, run, *flags, task=task)


@pytest.fixture(params=["facts", "manuals"])
def answered(run, request):
    """Return a question's best answer and the other passages' answers."""
    (answer,) = run("where is the king?", "--weight=0.25", task=request.param)
    return request.param, answer, [answer, *answer["others"]]


def test_an_answer_has_mixed_scores(answered):
    task, answer, answers = answered
    assert answer["question"] == "where is the king?"
    scores = [
        0.75 * each["reader_score"] + 0.25 * each["retrieval_score"]
        for each in answers
    ]
    assert [each["score"] for each in answers] == pytest.approx(scores)
    flags = [bool(each["answer"]) for each in answers]
    assert [each["answerable"] for each in answers] == flags
    assert {"null_odds" in each for each in answers} == {task == "manuals"}


def test_an_answer_is_a_part_of_its_source(answered):
    _, answer, answers = answered
    parts = [
        each["passage"][each["start"] : each["end"]].split()
        for each in answers
        if each["answer"]
    ]
    texts = [each["answer"].split() for each in answers if each["answer"]]
    assert parts == texts
    # Passages that share no word with the question are not read.
    assert len(answer["others"]) == 2
    sources = {(each["file"], each["id"]) for each in answers}
    assert ("c.json", "Kings/0") in sources


def test_questions_of_a_file_are_answered_in_order(run, tmp_path, capsys):
    path = tmp_path / "q.jsonl"
    texts = ["is it the king?", "zebras?", "was she for the city?"]
    rows = [{"question": text, "id": n} for n, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = run(f"--questions={path}", "--batch_size=2")
    assert [answer["question"] for answer in answers] == texts
    assert [answer["question_id"] for answer in answers] == [0, 1, 2]
    nothing = {
        "answer": "",
        "answerable": None,
        "others": [],
        "reason": "no word of the question is in the index",
    }
    assert nothing.items() <= answers[1].items()
    assert answers[0]["reason"] is None and answers[0]["answerable"]
    assert answers[1].keys() == answers[0].keys()
    assert "Pass --fit to fit a weight" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("??", r"q.jsonl:2: .*question with at least one word"),
        (True, r"q.jsonl:2: question is true; expected a text"),
    ],
)
def test_a_bad_line_of_questions_is_refused(run, tmp_path, question, message):
    path = tmp_path / "q.jsonl"
    rows = [{"question": 1963}, {"question": question}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    refused(message, run, f"--questions={path}")


def test_a_fitted_weight_is_stored_for_its_model(run, text_folder, capsys):
    (report,) = run(f"--fit={text_folder / 'c.json'}")
    assert report["questions"] == report["gold_indexed"] == 1
    assert report["gold_in_first_5"] == 1.0
    path = text_folder.parent / "texts.index.fit.json"
    fitted = json.loads(path.read_text())
    assert fitted["weight"] == report["weight"]
    path.write_text(json.dumps({**fitted, "weight": 1.0}))
    capsys.readouterr()
    (answer,) = run("where is the king?")
    assert answer["score"] == answer["retrieval_score"]
    assert "weight" not in capsys.readouterr().err
    (index,) = fitted["model"]
    other = {**fitted, "weight": 1.0, "model": {index: "other weights"}}
    path.write_text(json.dumps(other))
    run("where is the king?")
    assert "Pass --fit to fit a weight" in capsys.readouterr().err
    path.write_text(json.dumps({**fitted, "weight": 2}))
    refused(r"fit.json: weight is 2", run, "where is the king?")


@pytest.fixture
def fitted_file(run, text_folder, capsys):
    """Return the path of a fit with 2 passages, whose weight is set to 1."""
    run(f"--fit={text_folder / 'c.json'}", "--passages=2")
    path = text_folder.parent / "texts.index.fit.json"
    fitted = json.loads(path.read_text())
    path.write_text(json.dumps({**fitted, "weight": 1.0}))
    capsys.readouterr()
    return path


def _uses_default(answer):
    mean = (answer["reader_score"] + answer["retrieval_score"]) / 2
    return answer["score"] == pytest.approx(mean)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--passages=3"], "a weight for --passages=2 instead of 3, so"),
        (
            ["--passages=2", "--language=none"],
            "a weight for --language=english instead of none, so",
        ),
        (
            ["--language=french"],
            "for --language=english instead of french, --passages=2 instead"
            " of 5, so",
        ),
    ],
)
def test_a_weight_fitted_with_other_flags_is_not_used(
    run, fitted_file, capsys, flags, message
):
    (answer,) = run("where is the king?", *flags)
    assert _uses_default(answer)
    assert message in capsys.readouterr().err


def test_a_weight_fitted_to_other_texts_is_not_used_until_they_return(
    run, fitted_file, text_folder, capsys
):
    (text_folder / "new.txt").write_text("A king is here.")
    (answer,) = run("where is the king?", "--passages=2")
    assert _uses_default(answer)
    assert (
        f"{fitted_file} has a weight for other texts, so the default weight 0.5"
        " is used. Pass --fit to fit a weight."
    ) in capsys.readouterr().err
    (text_folder / "new.txt").unlink()
    (answer,) = run("where is the king?", "--passages=2")
    assert answer["score"] == answer["retrieval_score"]
    assert "default weight" not in capsys.readouterr().err


def test_a_weight_of_a_rebuilt_index_is_used_if_its_texts_are_the_same(
    run, fitted_file, text_folder
):
    (text_folder.parent / "texts.index").unlink()
    (answer,) = run("where is the king?", "--passages=2")
    assert answer["score"] == answer["retrieval_score"]


def test_a_weight_of_an_earlier_version_is_not_used(run, fitted_file, capsys):
    fitted = json.loads(fitted_file.read_text())
    for name in ("texts", "language", "passages"):
        del fitted[name]
    fitted_file.write_text(json.dumps(fitted))
    (answer,) = run("where is the king?", "--passages=2")
    assert _uses_default(answer)
    assert (
        "was written by an earlier version, without the texts, language,"
        " passages of the fit, so the default"
    ) in capsys.readouterr().err


def test_an_invalid_weight_can_be_fitted_again(run, fitted_file, text_folder):
    fitted = json.loads(fitted_file.read_text())
    fitted_file.write_text(json.dumps({**fitted, "weight": 2}))
    (report,) = run(f"--fit={text_folder / 'c.json'}", "--passages=2")
    assert json.loads(fitted_file.read_text())["weight"] == report["weight"]


@pytest.mark.parametrize("name", ["squad,chunk_model_1", "m[1]"])
def test_a_model_is_identified_in_any_folder(finetuned_folder, tmp_path, name):
    folder = shutil.copytree(finetuned_folder("facts"), tmp_path / name)
    (path,) = ask._weights_digest(str(folder))
    assert path == f"{folder}/model.ckpt-7.index"
    os.remove(path)
    os.remove(f"{folder}/checkpoint")
    refused("no model.ckpt-<step>", ask._weights_digest, str(folder))


@pytest.mark.parametrize(
    ("corpus", "expected"),
    [
        (".", "{parent}/here.index"),
        ("./", "{parent}/here.index"),
        ("deep/..", "{parent}/here.index"),
        ("..", "{parent}.index"),
        ("texts", "texts.index"),
        ("texts//", "texts.index"),
        ("../texts/a.txt", "../texts/a.txt.index"),
    ],
)
def test_an_index_has_the_name_of_its_corpus(
    corpus, expected, tmp_path, monkeypatch
):
    (tmp_path / "here" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    args = ask.parse_flags(["ask", corpus, "who?", "--model=m"])
    assert args.index == expected.format(parent=tmp_path)
