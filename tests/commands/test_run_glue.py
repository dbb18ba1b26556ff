# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""All GLUE tasks in one command."""

import json
import math
import zipfile

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.commands import glue_submission, run_glue
from electra_tf.metrics import glue

# Of the original's README: a median of many fine-tunings each.
SMALL = {
    "cola": 57.0,
    "sst": 91.2,
    "mrpc": 88.0,
    "sts": 87.5,
    "qqp": 89.0,
    "mnli": 81.3,
    "qnli": 88.4,
    "rte": 66.7,
}


def trial(task, others=None, **figures):
    return {
        "results": {task: figures},
        "details": {},
        "other_splits": others or {},
    }


def test_the_paper_s_average_is_that_of_the_paper():
    scores = {}
    for task, value in SMALL.items():
        figure = glue.PAPER_FIGURES[task]
        scores[task] = glue.score_task(task, [trial(task, **{figure: value})])
    found = glue.average_scores(scores)["paper"]
    assert found["missing"] == []
    assert found["median"] == pytest.approx(81.1, abs=0.05)


def test_a_task_with_two_figures_counts_their_mean_trial_by_trial():
    trials = [
        trial("mrpc", accuracy=80.0, f1=90.0),
        trial("mrpc", accuracy=90.0, f1=82.0),
        trial("mrpc", accuracy=70.0, f1=80.0),
    ]
    found = glue.score_task("mrpc", trials)
    assert found.score.values == (85.0, 86.0, 75.0)
    assert found.score.best == 86.0 and found.score.median == 85.0
    assert found.paper.best == 90.0


def test_mnli_is_the_mean_of_both_dev_sets_and_says_if_one_is_lacking():
    other = {"mnli/dev_mismatched": {"accuracy": 70.0}}
    found = glue.score_task("mnli", [trial("mnli", other, accuracy=80.0)])
    assert found.score.mean == 75.0 and found.paper.mean == 80.0
    found = glue.score_task("mnli", [trial("mnli", accuracy=80.0)])
    assert found.score.mean == 80.0
    assert found.lacking == ("accuracy, mismatched",)


def test_wnli_is_in_one_average_and_not_in_the_others():
    scores = {
        task: glue.score_task(
            task, [trial(task, **dict.fromkeys(figures, 60.0))]
        )
        for task, figures in glue.LEADERBOARD_FIGURES.items()
    }
    wnli = glue.score_task("wnli", [trial("wnli", accuracy=24.0)])
    found = glue.average_scores({**scores, "wnli": wnli})
    assert found["glue"]["mean"] == 56.0
    assert found["glue_without_wnli"]["mean"] == 60.0
    assert found["paper"]["mean"] == 60.0


def test_undefined_scores_and_missing_tasks_are_named():
    sts = glue.score_task(
        "sts", [trial("sts", pearson=math.nan, spearman=math.nan)]
    )
    found = glue.average_scores({"sts": sts})["paper"]
    assert found["mean"] is None and "cola" in found["missing"]
    lines = glue.table_lines({"sts": sts})
    assert "undefined" in lines[1]
    assert "of 1 of 9 tasks; missing: cola, sst" in lines[-3]


@pytest.fixture
def data(tmp_path):
    """Files of three tasks; CoLA and MNLI have test sets."""
    random = np.random.RandomState(0)
    words = ["the", "of", "and", "in", "to"]

    def text():
        return " ".join(random.choice(words, random.randint(2, 6)))

    def write(name, lines):
        path = tmp_path / "finetuning_data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*lines, ""]))

    labels = ["contradiction", "entailment", "neutral"]
    for split in ("train", "dev"):
        cola = [f"a\t{i % 2}\t\t{text()}" for i in range(8)]
        write(f"cola/{split}.tsv", cola)
        sts = [f"{text()}\t{text()}\t{i % 5}.0" for i in range(7)]
        write(f"sts/{split}.tsv", ["sentence1\tsentence2\tscore", *sts])
    for split in ("train", "dev_matched", "dev_mismatched"):
        filler = "\t".join("x" * 8)
        rows = [
            f"{filler}\t{text()}\t{text()}\t{labels[i % 3]}" for i in range(6)
        ]
        write(f"mnli/{split}.tsv", ["\t".join("h" * 11), *rows])
    write("cola/test.tsv", ["index\tsentence", *(f"{i}\tthe" for i in "0123")])
    return tmp_path


@pytest.fixture
def glue_run(data, tiny_finetuning):
    """Runs the command on them; returns its status."""
    sizes = ("train_batch_size", "eval_batch_size", "predict_batch_size")
    settings = {**tiny_finetuning, **dict.fromkeys(sizes, 4)}
    settings |= {"max_seq_length": 16, "num_train_epochs": 1.0}

    def run(*flags, **hparams):
        argv = ["run_glue", f"--data-dir={data}", "--model-name=m"]
        argv += ["--hparams", json.dumps({**settings, **hparams}), *flags]
        return run_glue.main(run_glue.parse_flags(argv))

    return run


def summary(data):
    return json.loads((data / "models/m/results/glue.json").read_text())


def test_tasks_with_data_run_and_the_rest_is_named(data, glue_run, capsys):
    names = ["cola", "sts", "mnli", "wnli"]
    assert glue_run("--num_trials=2", task_names=names) == 0
    printed = capsys.readouterr().out
    assert "GLUE 3/3: mnli" in printed
    assert "wnli: no data: no " in printed and "wnli/train.tsv" in printed
    assert "not among task_names: sst, mrpc, qqp, qnli, rte" in printed
    found = summary(data)
    assert found["tasks"]["wnli"]["state"] == "no data"
    assert found["tasks"]["mnli"]["lacking"] == []
    cola = found["tasks"]["cola"]
    assert cola["state"] == "done" and cola["trials"] == 2
    results = json.loads(
        (data / "models/m/results/cola_results.json").read_text()
    )
    assert cola["score"]["values"] == [
        r["results"]["cola"]["mcc"] for r in results["trials"]
    ]
    assert found["averages"]["glue"]["missing"] == [
        *("sst", "mrpc", "qqp", "qnli", "rte", "wnli")
    ]
    text = (data / "models/m/results/glue.txt").read_text()
    assert "ELECTRA paper's AVG" in text and text in printed

    # Again: nothing is trained, and what was not asked for before is made up.
    models = data / "models/m/finetuning_models"
    before = {p: p.stat().st_mtime_ns for p in models.rglob("*")}
    flags = ("--num_trials=2", "--write_test_outputs")
    assert glue_run(*flags, task_names=names) == 0
    assert {p: p.stat().st_mtime_ns for p in models.rglob("*")} == before
    assert summary(data)["averages"] == found["averages"]
    predicted = data / "models/m/test_predictions"
    assert sorted(p.name for p in predicted.iterdir()) == [
        "cola_test_1_predictions.pkl",
        "cola_test_2_predictions.pkl",
    ]

    # What was predicted is what the server's file is made of.
    argv = ["x", "--data-dir", str(data), "--model-name=m", "--partial"]
    glue_submission.main(glue_submission.parse_flags(argv))
    with zipfile.ZipFile(predicted / "glue_submission.zip") as archive:
        assert archive.namelist() == ["CoLA.tsv"]
        lines = archive.read("CoLA.tsv").decode().splitlines()
    assert [line.split("\t")[0] for line in lines[1:]] == ["0", "1", "2", "3"]


def test_a_task_s_own_defaults_stay_its_own():
    argv = ["x", "--data-dir=d", "--model-name=m", "--learning_rate=3e-4"]
    config, _ = run_glue.parse_flags(argv)
    assert config.task_names == list(glue.TASKS)
    rte, cola = (
        config.with_values("program", {"task_names": [task]})
        for task in ("rte", "cola")
    )
    assert (rte.num_train_epochs, cola.num_train_epochs) == (10.0, 3.0)
    assert rte.learning_rate == cola.learning_rate == 3e-4
    assert rte.results_json == "d/models/m/results/rte_results.json"
    assert rte.origins["learning_rate"] == "flag"


def test_one_task_s_bad_data_does_not_stop_the_others(data, glue_run, capsys):
    (data / "finetuning_data/cola/train.tsv").write_text("nothing of use\n")
    assert glue_run(task_names=["cola", "sts"]) == 1
    assert "WARNING: cola failed: " in capsys.readouterr().out
    found = summary(data)["tasks"]
    assert (
        found["cola"]["state"] == "failed" and "train" in found["cola"]["why"]
    )
    assert found["sts"]["state"] == "done"


def test_a_stopped_run_leaves_the_rest_for_later(data, glue_run, monkeypatch):
    from electra_tf.finetuning import runner

    original = runner.run
    monkeypatch.setattr(
        runner, "run", lambda *args: {**original(*args), "interrupted": 2}
    )
    assert glue_run(task_names=["cola", "sts"]) == 130
    states = {t: o["state"] for t, o in summary(data)["tasks"].items()}
    assert states == {"cola": "interrupted", "sts": "not reached"}


@pytest.mark.parametrize(
    ("hparams", "words"),
    [
        ({"task_names": ["chunk"]}, "chunk is no GLUE task"),
        ({"model_dir": "x"}, "model_dir: every GLUE task has its own"),
        ({"task_names": ["rte"]}, "no GLUE task has data:\n  rte: no "),
        ({"init_checkpoint": "nowhere"}, "init_checkpoint"),
    ],
)
def test_what_concerns_all_tasks_stops_at_once(hparams, words, data, glue_run):
    with pytest.raises(UserError, match=words):
        glue_run(**hparams)
    assert not (data / "models").exists()
