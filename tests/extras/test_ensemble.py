# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ensembles: predictions mixed, weights fitted, gains scored, bad rows."""

import json
import math
import pathlib
import runpy
import types

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.commands import ensemble as command
from electra_tf.extras.ensemble import mixing
from electra_tf.extras.ensemble.predictions import Scores
from tests.conftest import refused

COUNT = 40
SPANS = ("O", "S-X")
GOLD = [i % 3 % 2 for i in range(COUNT)]
QUESTIONS = [(f"q{i}", "king" if i % 2 else "north") for i in range(COUNT)]


def _squad():
    context = "the king of the north"
    questions = [
        {
            "id": key,
            "question": "who?",
            "answers": [{"text": text, "answer_start": context.find(text)}],
        }
        for key, text in QUESTIONS
    ]
    paragraph = {"context": context, "qas": questions}
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


def _row(kind, number, share):
    """Return a prediction that gives the label this probability."""
    gold, line = GOLD[number], number + 1
    shares = {str(gold): share, str(1 - gold): 1 - share}
    if kind == "classification":
        return {"line": line + 1, "probabilities": shares}
    if kind == "regression":
        return {"line": line + 1, "value": number % 10 + 5 * (1 - share)}
    if kind == "tagging":
        tags = [
            {"B-X": 0, "I-X": 0, "E-X": 0}
            | {SPANS[tag]: share, SPANS[1 - tag]: 1 - share}
            for tag in (gold, 1 - gold)
        ]
        return {"line": 3 * line - 2, "tag_probabilities": tags}
    key, text = QUESTIONS[number]
    best = [
        {"answer": text, "probability": share},
        {"answer": "of the", "probability": 1 - share},
    ]
    return {"id": key, "n_best": best}


@pytest.fixture
def make(tmp_path):
    """Return a factory of a task: rows and probabilities of two models."""

    def call(kind="classification"):
        described, name, text = KINDS[kind]
        files = {"train": name.replace("dev", "train"), "dev": name}
        spec = {"name": "own", "type": kind, "files": files, **described}
        (tmp_path / "task.json").write_text(json.dumps(spec))
        for path in files.values():
            (tmp_path / path).write_text(text)
        rng = np.random.default_rng(1)
        shares = {"a": rng.uniform(0.3, 1, COUNT), "b": rng.random(COUNT)}
        models = {}
        for model, values in shares.items():
            models[model] = [
                _row(kind, number, round(share, 4))
                for number, share in enumerate(values)
            ]
        return models, shares

    return call


@pytest.fixture
def run(tmp_path, tiny_vocab):
    """Return a function that runs the command, and returns its JSON."""

    def call(models, *flags):
        argv = [
            "ensemble",
            f"--data_dir={tmp_path}",
            f"--task_config={tmp_path / 'task.json'}",
            f"--vocab_file={tiny_vocab}",
            "--resamples=400",
            f"--json={tmp_path / 'out.json'}",
            "--overwrite=true",
            *flags,
        ]
        for name, rows in models.items():
            path = tmp_path / f"{name}.jsonl"
            path.write_text("\n".join(json.dumps(row) for row in rows))
            argv.append(str(path))
        command.main(command.parse_flags(argv))
        text = (tmp_path / "out.json").read_text()
        # JSON has no NaN.
        results = json.loads(text, parse_constant=pytest.fail)
        systems = {
            name.removeprefix(f"{tmp_path}/"): system
            for name, system in results["systems"].items()
        }
        return {**results, "systems": systems}

    return call


@pytest.fixture
def classified(make, run):
    """Return the results of two models, and marks of right predictions."""
    models, shares = make()
    is_right = {
        "a.jsonl": shares["a"] > 0.5,
        "b.jsonl": shares["b"] > 0.5,
        "mean": shares["a"] + shares["b"] > 1,
    }
    is_right["vote"] = is_right["mean"]  # two models disagree or agree
    return run(models), is_right


@pytest.mark.parametrize("name", ["a.jsonl", "b.jsonl", "mean", "vote"])
def test_scores_are_those_of_the_probabilities(classified, name):
    results, is_right = classified
    accuracy = results["systems"][name]["figures"]["accuracy"]
    assert accuracy == pytest.approx(100 * is_right[name].mean())
    assert results["best_file"].endswith("a.jsonl")


def test_gains_have_paired_standard_errors(capfd, classified):
    results, is_right = classified
    files = (is_right["a.jsonl"].astype(float) + is_right["b.jsonl"]) / 2
    differences = 100 * (is_right["mean"] - files)
    gain, error = results["systems"]["mean"]["over_mean"]
    assert gain == pytest.approx(differences.mean())
    expected_error = differences.std() / np.sqrt(COUNT)
    assert error == pytest.approx(expected_error, rel=0.15)
    printed = capfd.readouterr().out
    assert f"{gain:+.2f} ± {error:.2f}" in printed
    assert "scored by 5-fold cross-validation" in printed


@pytest.mark.parametrize("kind", KINDS)
def test_a_written_mixture_scores_like_the_mixture(make, run, tmp_path, kind):
    models, _ = make(kind)
    output = tmp_path / "mean.jsonl"
    first = run(models, "--output", str(output))
    mixed = [json.loads(line) for line in output.read_text().splitlines()]
    second = run({"a": models["a"], "mean": mixed})
    expected = first["systems"]["mean"]["figures"]
    metrics = second["systems"]["mean.jsonl"]["figures"]
    assert metrics == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("classification", "accuracy"),
        ("regression", "pearson"),
        ("tagging", "f1"),
        ("question_answering", "f1"),
    ],
)
def test_mixtures_are_compared_by_the_main_metric(make, run, kind, metric):
    models, _ = make(kind)
    assert run(models)["figure"] == metric


def test_an_evaluations_best_answers_are_predictions(make, run, tmp_path):
    models, shares = make("question_answering")
    nbest = {
        row["id"]: [
            {"text": best["answer"], "probability": best["probability"]}
            for best in row["n_best"]
        ]
        for row in models["b"]
    }
    path = tmp_path / "own_nbest.json"
    path.write_text(json.dumps(nbest))
    systems = run({"a": models["a"]}, str(path))["systems"]
    expected = pytest.approx(100 * (shares["b"] > 0.5).mean())
    assert systems["own_nbest.json"]["figures"]["exact_match"] == expected
    nbest["q3"][0]["probability"] = None
    path.write_text(json.dumps(nbest))
    with pytest.raises(UserError, match=r"own_nbest.json: question q3: found"):
        run({"a": models["a"]}, str(path))


def test_ids_that_are_numbers_are_those_of_the_questions(make, run, tmp_path):
    models, shares = make("question_answering")
    document = json.loads((tmp_path / "dev.json").read_text())
    numbers = {key: n for n, (key, _) in enumerate(QUESTIONS)}
    for article in document["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                question["id"] = numbers[question["id"]]
    (tmp_path / "dev.json").write_text(json.dumps(document))
    for row in models["a"]:
        row["id"] = numbers[row["id"]]
    for row in models["b"]:
        row["id"] = str(numbers[row["id"]])
    systems = run(models)["systems"]
    scores = [
        systems[f"{name}.jsonl"]["figures"]["exact_match"] for name in shares
    ]
    expected = [100 * (right > 0.5).mean() for right in shares.values()]
    assert scores == pytest.approx(expected)


def test_weights_fit_the_inverse_variances_of_errors():
    rng = np.random.default_rng(0)
    errors = np.stack([rng.normal(0, 1, 900), rng.normal(0, 2, 900)], -1)
    weights = mixing.fit_weights(errors, squared=True)
    # The variance of the sum is least with these weights.
    assert weights == pytest.approx([0.8, 0.2], abs=0.05)


def test_weights_are_fitted_without_the_examples_they_are_scored_on():
    rng = np.random.default_rng(0)
    # The models are right about different examples, so that no weight is 0 and
    # the weights differ between folds.
    good = rng.uniform(0.1, 1, 90)
    truth = np.stack([good, 1 - good * rng.uniform(0.7, 1, 90)], -1)
    weights = mixing.fit_weights(truth, squared=False)
    assert weights.sum() == pytest.approx(1) and 0.5 < weights[0] < 0.9
    predictions = types.SimpleNamespace(
        is_squared=False,
        stacks=list(truth[:, :, None]),
        truth=lambda number, stack: stack.T,
    )
    fitted, by_example = mixing.cross_fit(predictions, 3, 0)
    assert fitted == pytest.approx(weights)
    folds = np.unique(by_example, axis=0)
    is_other = [(by_example != fold).any(axis=1) for fold in folds]
    assert [others.sum() for others in is_other] == [60, 60, 60]
    refitted = [mixing.fit_weights(truth[others], False) for others in is_other]
    assert np.array(refitted) == pytest.approx(folds, abs=1e-4)


CONSTANT = [{"line": number + 2, "value": 5.0} for number in range(COUNT)]


@pytest.mark.parametrize("names", [["const", "a"], ["a", "const"]])
def test_a_file_without_a_defined_score_is_never_best(make, run, capfd, names):
    models, _ = make("regression")
    models["const"] = CONSTANT
    results = run({name: models[name] for name in names})
    score = results["systems"]["a.jsonl"]["figures"]["pearson"]
    assert results["best_file"].endswith("a.jsonl")
    assert results["mean_file"] == score
    (undefined_file,) = results["undefined_files"]
    assert undefined_file.endswith("const.jsonl")
    assert results["systems"]["const.jsonl"]["over_best"] == [None, None]
    # Mixing with a constant does not change a correlation.
    gain, error = results["systems"]["mean"]["over_best"]
    assert gain == pytest.approx(0, abs=1e-3)
    assert error == pytest.approx(0, abs=1e-3)
    printed = capfd.readouterr().out
    assert "pearson is undefined for 1 of 2 files: " in printed
    assert "nan" not in printed


def test_files_without_any_defined_score_are_refused(make, run):
    make("regression")
    message = r"c.jsonl, .*d.jsonl: pearson is undefined for every file"
    refused(message, run, {"c": CONSTANT, "d": CONSTANT})


NAN = math.nan


@pytest.mark.parametrize(
    ("metric", "best", "sign"), [("pearson", "b", 1), ("mse", "a", -1)]
)
def test_standard_errors_leave_out_undefined_resamples(metric, best, sign):
    draws = {
        "none": [NAN, NAN, NAN, NAN, NAN],
        "a": [10.0, 20.0, NAN, 40.0, 30.0],
        "b": [25.0, 35.0, 20.0, 30.0, 50.0],
        "mean": [50.0, 60.0, 70.0, NAN, 90.0],
        "rare": [NAN, 60.0, NAN, NAN, NAN],
    }
    scores = {"none": NAN, "a": 20.0, "b": 30.0, "mean": 50.0, "rare": 60.0}
    systems = {
        name: Scores({metric: scores[name]}, draws[name].__getitem__)
        for name in draws
    }
    results = mixing.compare(systems, ["none", "a", "b"], metric, range(5))
    assert (results["best_file"], results["mean_file"]) == (best, 25.0)
    assert results["undefined_files"] == ["none"]
    mean = results["systems"]["mean"]
    # Only resamples 0, 1 and 4 have a mean of the files "a" and "b".
    expected = np.std([50 - 17.5, 60 - 27.5, 90 - 40], ddof=1)
    assert mean["over_mean"] == pytest.approx([sign * 25.0, expected])
    undefined = {"a": [2, 2], "b": [2, 1]}[best]
    assert mean["undefined_resamples"] == undefined
    rare = results["systems"]["rare"]
    assert rare["over_mean"][0] == sign * 35.0
    assert math.isnan(rare["over_mean"][1])


def _shares(probabilities):
    return lambda rows: [{"probabilities": probabilities}, *rows[1:]]


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("classification", lambda r: r[:-1], "1 of 40 .* own, dev .line 41"),
        (
            "classification",
            lambda r: [{**row, "id": i} for i, row in enumerate(r, 1)],
            "found id 1; expected 0, as in .*a.jsonl:1",
        ),
        ("classification", _shares({"0": float("nan"), "1": 1.0}), "0: nan"),
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
def test_a_file_that_does_not_fit_is_refused(make, run, kind, change, message):
    models, _ = make(kind)
    if "found id 1" in message:
        models["a"] = [{**row, "id": i} for i, row in enumerate(models["a"])]
    models["b"] = change(models["b"])
    refused(rf"b.jsonl:.*{message}", run, models)


def test_a_bad_line_of_a_different_split_is_ignored(make, run, tmp_path):
    models, _ = make()
    with open(tmp_path / "train.tsv", "a") as file:
        file.write("alone\n")
    run(models)


@pytest.fixture
def models_of_bad_sentence(make, tmp_path):
    """Return models of a tagging split whose last sentence has a bad line."""
    models, _ = make("tagging")
    with open(tmp_path / "dev.txt", "a") as file:
        file.write("the O\nking\nof O\n\n")
    return models


def test_a_row_of_an_unusable_sentence_is_left_out(models_of_bad_sentence, run):
    for rows in models_of_bad_sentence.values():
        rows.append(rows[0] | {"line": 3 * COUNT + 1})
    run(models_of_bad_sentence)


def test_a_sentence_may_have_no_tagged_word(models_of_bad_sentence, run):
    for rows in models_of_bad_sentence.values():
        rows[0]["tag_probabilities"] = [None, None]
    run(models_of_bad_sentence)


@pytest.mark.parametrize("line", [2, "last"])
def test_a_row_of_an_unknown_line_is_refused(models_of_bad_sentence, run, line):
    rows = models_of_bad_sentence["a"]
    rows.append(rows[0] | {"line": line})
    refused(
        f"line {line}; expected one prediction for", run, models_of_bad_sentence
    )


@pytest.mark.parametrize(
    "text", ["1,2,3", "1,-1", "best", "0,0", "inf,1", "nan,1", "1,1e400"]
)
def test_unusable_weights_are_refused(make, run, text):
    models, _ = make()
    message = r"--weights=.* or 2 finite numbers"
    refused(message, run, models, f"--weights={text}")


def test_weights_whose_sum_is_infinite_count_by_their_ratio(make, run):
    models, _ = make()
    large = run(models, "--weights=1e308,1e308")["systems"]
    equal = run(models, "--weights=1,1")["systems"]
    assert large["1e308,1e308"] == equal["1,1"]


def test_resamples_that_fill_the_memory_are_refused(make, run):
    models, _ = make()
    refused("expected at most", run, models, "--resamples=99999999999")


@pytest.mark.parametrize("flag", ["--json", "--output"])
def test_an_output_never_replaces_an_input(make, run, tmp_path, flag):
    models, _ = make()
    refused("an input", run, models, f"{flag}={tmp_path / 'a.jsonl'}")


@pytest.mark.slow
def test_the_example_lstm_writes_predictions(make, run, tmp_path, tiny_vocab):
    models, _ = make()
    root = pathlib.Path(__file__).parents[2]
    script = runpy.run_path(str(root / "examples/lstm.py"))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 2\nking 1 2\nother 1\n")
    output = tmp_path / "lstm.jsonl"
    argv = [
        f"--data_dir={tmp_path}",
        f"--vocab_file={tiny_vocab}",
        f"--task_config={tmp_path / 'task.json'}",
        "--epochs=1",
        "--width=2",
        "--units=2",
        f"--vectors={vectors}",
        f"--output={output}",
    ]
    script["main"](argv)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["line"] for row in rows] == list(range(2, COUNT + 2))
    run({"a": models["a"], "lstm": rows})
    vectors.write_text("the 1 2\nking 1\n")
    refused(r"vectors.txt:2: found 1 values", script["main"], argv)
