# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predictions of several models as one: mixed, fitted, scored, refused."""

import json
import pathlib
import runpy
import types

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.commands import ensemble as command
from electra_tf.extras import ensemble
from tests.conftest import refused

COUNT = 40
SPANS = ("O", "S-X")
GOLD = [i % 3 % 2 for i in range(COUNT)]
QUESTIONS = [(f"q{i}", "king" if i % 2 else "north") for i in range(COUNT)]


def _squad():
    context = "the king of the north"
    asked = [
        {
            "id": key,
            "question": "who?",
            "answers": [{"text": text, "answer_start": context.find(text)}],
        }
        for key, text in QUESTIONS
    ]
    paragraph = {"context": context, "qas": asked}
    return json.dumps({"data": [{"title": "t", "paragraphs": [paragraph]}]})


KINDS = {
    "classification": (
        {"columns": {"text_a": "text", "label": "label"}},
        "dev.tsv",
        "text\tlabel\n" + "".join(f"the king\t{g}\n" for g in GOLD),
    ),
    "regression": (
        {"columns": {"text_a": "text", "label": "label"}, "range": [0, 10]},
        "dev.tsv",
        "text\tlabel\n" + "".join(f"the\t{i % 10}\n" for i in range(COUNT)),
    ),
    "tagging": (
        {"labels": ["X"], "format": "conll"},
        "dev.txt",
        "".join(f"the {SPANS[g]}\nking {SPANS[1 - g]}\n\n" for g in GOLD),
    ),
    "question_answering": ({}, "dev.json", _squad()),
}


def _row(kind, number, right, line):
    """A prediction that gives the truth so much probability."""
    gold = GOLD[number]
    shares = {str(gold): right, str(1 - gold): 1 - right}
    if kind == "classification":
        return {"line": line + 1, "probabilities": shares}
    if kind == "regression":
        return {"line": line + 1, "value": number % 10 + 5 * (1 - right)}
    if kind == "tagging":
        words = [
            {"B-X": 0, "I-X": 0, "E-X": 0}
            | {SPANS[tag]: right, SPANS[1 - tag]: 1 - right}
            for tag in (gold, 1 - gold)
        ]
        return {"line": 3 * line - 2, "tag_probabilities": words}
    key, text = QUESTIONS[number]
    best = [(text, right), ("of the", 1 - right)]
    best = [{"answer": t, "probability": p} for t, p in best]
    return {"id": key, "n_best": best}


@pytest.fixture
def setting(tmp_path, tiny_vocab):
    """A task's folder, the files of two members, and the command."""

    def make(kind="classification"):
        described, name, text = KINDS[kind]
        files = {"train": name.replace("dev", "train"), "dev": name}
        spec = {"name": "own", "type": kind, "files": files, **described}
        (tmp_path / "task.json").write_text(json.dumps(spec))
        for path in files.values():
            (tmp_path / path).write_text(text)
        rng = np.random.default_rng(1)
        shares = {"a": rng.uniform(0.3, 1, COUNT), "b": rng.random(COUNT)}
        return {
            name: [
                _row(kind, i, round(share, 4), i + 1)
                for i, share in enumerate(own)
            ]
            for name, own in shares.items()
        }, shares

    def run(members, *words):
        for name, rows in members.items():
            lines = (json.dumps(row) for row in rows)
            (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
        words = [
            *("ensemble", "--data_dir", str(tmp_path)),
            *("--task_config", str(tmp_path / "task.json")),
            *("--vocab_file", tiny_vocab, "--resamples=400"),
            *("--json", str(tmp_path / "out.json"), "--overwrite=true", *words),
            *(str(tmp_path / f"{name}.jsonl") for name in members),
        ]
        command.main(command.parse_flags(words))
        found = json.loads((tmp_path / "out.json").read_text())
        systems = found["systems"].items()
        own = {n.removeprefix(f"{tmp_path}/"): one for n, one in systems}
        return {**found, "systems": own}

    return make, run


def test_mean_vote_and_gains_are_those_of_the_probabilities(setting, capfd):
    make, run = setting
    members, shares = make()
    found = run(members)
    right = {
        "a.jsonl": shares["a"] > 0.5,
        "b.jsonl": shares["b"] > 0.5,
        "mean": shares["a"] + shares["b"] > 1,
    }
    right["vote"] = right["mean"]  # of two, which disagree or agree
    for name, own in right.items():
        figure = found["systems"][name]["figures"]["accuracy"]
        assert figure == pytest.approx(100 * own.mean())
    assert found["best_file"].endswith("a.jsonl")
    files = (right["a.jsonl"].astype(float) + right["b.jsonl"]) / 2
    difference = 100 * (right["mean"] - files)
    gain, error = found["systems"]["mean"]["over_mean"]
    assert gain == pytest.approx(difference.mean())
    assert error == pytest.approx(difference.std() / np.sqrt(COUNT), rel=0.15)
    out = capfd.readouterr().out
    assert f"{gain:+.2f} ± {error:.2f}" in out
    assert "scored by 5-fold cross-validation" in out


@pytest.mark.parametrize("kind", KINDS)
def test_a_written_mixture_is_a_member_like_it(setting, tmp_path, kind):
    make, run = setting
    members, _ = make(kind)
    output = tmp_path / "mean.jsonl"
    first = run(members, "--output", str(output))
    mixed = [json.loads(line) for line in output.read_text().splitlines()]
    second = run({"a": members["a"], "mean": mixed})
    wanted = first["systems"]["mean"]["figures"]
    figures = second["systems"]["mean.jsonl"]["figures"]
    assert figures == pytest.approx(wanted, abs=1e-3)
    figure = {"classification": "accuracy", "regression": "pearson"}
    assert first["figure"] == figure.get(kind, "f1")


def test_an_evaluations_best_answers_are_a_member(setting, tmp_path):
    make, run = setting
    members, shares = make("question_answering")
    nbest = {
        row["id"]: [
            {"text": one["answer"], "probability": one["probability"]}
            for one in row["n_best"]
        ]
        for row in members["b"]
    }
    path = tmp_path / "own_nbest.json"
    path.write_text(json.dumps(nbest))
    systems = run({"a": members["a"]}, str(path))["systems"]
    wanted = pytest.approx(100 * (shares["b"] > 0.5).mean())
    assert systems["own_nbest.json"]["figures"]["exact_match"] == wanted
    nbest["q3"][0]["probability"] = None
    path.write_text(json.dumps(nbest))
    with pytest.raises(UserError, match=r"own_nbest.json: question q3: found"):
        run({"a": members["a"]}, str(path))


def test_ids_that_are_numbers_are_those_of_the_questions(setting, tmp_path):
    make, run = setting
    members, shares = make("question_answering")
    document = json.loads((tmp_path / "dev.json").read_text())
    numbers = {key: n for n, (key, _) in enumerate(QUESTIONS)}
    for article in document["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                question["id"] = numbers[question["id"]]
    (tmp_path / "dev.json").write_text(json.dumps(document))
    for row in members["a"]:
        row["id"] = numbers[row["id"]]
    for row in members["b"]:
        row["id"] = str(numbers[row["id"]])
    systems = run(members)["systems"]
    for name, own in shares.items():
        figure = systems[f"{name}.jsonl"]["figures"]["exact_match"]
        assert figure == pytest.approx(100 * (own > 0.5).mean())


def test_weights_are_fitted_without_the_examples_they_are_scored_on():
    rng = np.random.default_rng(0)
    # One is right where the other is not: no weight is 0, no fold's another's.
    good = rng.uniform(0.1, 1, 90)
    truth = np.stack([good, 1 - good * rng.uniform(0.7, 1, 90)], -1)
    weights = ensemble.fit_weights(truth, squared=False)
    assert weights.sum() == pytest.approx(1) and 0.5 < weights[0] < 0.9
    errors = np.stack([rng.normal(0, 1, 900), rng.normal(0, 2, 900)], -1)
    # The least variance of a sum: weights as the inverse variances.
    found = ensemble.fit_weights(errors, squared=True)
    assert found == pytest.approx([0.8, 0.2], abs=0.05)
    members = types.SimpleNamespace(
        squared=False,
        stacks=list(truth[:, :, None]),
        truth=lambda number, stack: stack.T,
    )
    fitted, own = ensemble.cross_fit(members, 3, 0)
    assert fitted == pytest.approx(weights)
    for fold in np.unique(own, axis=0):
        others = (own != fold).any(axis=1)
        again = ensemble.fit_weights(truth[others], False)
        assert len(truth) - others.sum() == 30
        assert again == pytest.approx(fold, abs=1e-4)


def _shares(**probabilities):
    return lambda rows: [{"probabilities": probabilities}, *rows[1:]]


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("classification", lambda r: r[:-1], "1 of 40 .* own, dev: line 41"),
        (
            "classification",
            lambda r: [{**row, "id": i} for i, row in enumerate(r, 1)],
            "found id 1; expected 0, as .*a.jsonl:1 has",
        ),
        ("classification", _shares(**{"0": float("nan"), "1": 1.0}), "0: nan"),
        ("regression", lambda r: [{"line": 2}, *r[1:]], "found value None"),
        (
            "tagging",
            lambda r: [{**r[0], "words": ["of", "the"]}],
            r"found words \['of', 'the'\]; expected \['the', 'ki",
        ),
        (
            "question_answering",
            lambda r: [{**r[0], "n_best": [{"answer": 7, "probability": 1}]}],
            "found n_best .*7.*; expected answers and prob",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused(setting, kind, change, message):
    make, run = setting
    members, _ = make(kind)
    if "found id 1" in message:
        members["a"] = [{**row, "id": i} for i, row in enumerate(members["a"])]
    members["b"] = change(members["b"])
    refused(rf"b.jsonl:.*{message}", run, members)


def test_rows_of_what_the_task_cannot_use_are_left_out(setting, tmp_path):
    make, run = setting
    members, _ = make()  # A bad line of another split is none of dev's.
    with open(tmp_path / "train.tsv", "a") as file:
        file.write("alone\n")
    run(members)
    members, _ = make("tagging")
    with open(tmp_path / "dev.txt", "a") as file:
        file.write("the O\nking\nof O\n\n")
    line = 3 * COUNT + 1
    for rows in members.values():
        rows.append(rows[0] | {"line": line})
    run(members)
    for rows in members.values():  # All its words were cut off.
        rows[0]["tag_probabilities"] = [None, None]
    run(members)
    for line in (2, "last"):
        rows = [*members["a"], members["a"][0] | {"line": line}]
        with pytest.raises(UserError, match=f"line {line}; expected one for"):
            run({"a": rows, "b": members["b"]})


@pytest.mark.parametrize(
    "text", ["1,2,3", "1,-1", "best", "0,0", "inf,1", "nan,1", "1,1e400"]
)
def test_weights_that_cannot_be_used_are_refused(setting, text):
    make, run = setting
    members, _ = make()
    words = r"--weights=.* or 2 finite numbers"
    refused(words, run, members, f"--weights={text}")


def test_weights_whose_sum_is_infinite_count_by_their_ratio(setting):
    make, run = setting
    members, _ = make()
    large = run(members, "--weights=1e308,1e308")["systems"]
    equal = run(members, "--weights=1,1")["systems"]
    assert large["1e308,1e308"] == equal["1,1"]


def test_resamples_that_fill_the_memory_are_refused(setting):
    make, run = setting
    members, _ = make()
    refused("expected at most", run, members, "--resamples=99999999999")


@pytest.mark.parametrize("flag", ["--json", "--output"])
def test_an_input_is_never_an_output(setting, tmp_path, flag):
    make, run = setting
    members, _ = make()
    refused("an input", run, members, f"{flag}={tmp_path / 'a.jsonl'}")


@pytest.mark.slow
def test_the_example_lstm_writes_a_member(setting, tmp_path, tiny_vocab):
    make, run = setting
    members, _ = make()
    root = pathlib.Path(__file__).parents[2]
    script = runpy.run_path(str(root / "examples/lstm.py"))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 2\nking 1 2\nother 1\n")
    output = tmp_path / "lstm.jsonl"
    words = [
        *("--data_dir", str(tmp_path), "--vocab_file", tiny_vocab),
        *("--task_config", str(tmp_path / "task.json"), "--epochs=1"),
        *("--width=2", "--units=2", f"--vectors={vectors}"),
        *("--output", str(output)),
    ]
    script["main"](words)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["line"] for row in rows] == list(range(2, COUNT + 2))
    run({"a": members["a"], "lstm": rows})
    vectors.write_text("the 1 2\nking 1\n")
    refused(r"vectors.txt:2: found 1 values", script["main"], words)
