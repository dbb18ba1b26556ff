# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""All GLUE tasks in one command, and the zip file for the server."""

import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from electra_tf.commands import glue_submission, run_glue
from electra_tf.data import tfds_data
from electra_tf.data.tables import Row
from electra_tf.finetuning import runner
from electra_tf.finetuning.glue_submission import PARTS, read_predictions
from electra_tf.finetuning.glue_tasks import GLUE_TASKS
from tests.conftest import read_json, refused


@pytest.fixture
def data(tmp_path, write_task):
    """Return a folder with three tasks; CoLA and MNLI have test sets."""
    random = np.random.RandomState(0)

    def text():
        return " ".join(random.choice(["the", "of", "and", "in"], 5))

    def write(name, lines):
        write_task(*name.split("/"), "\n".join([*lines, ""]))

    labels = ["contradiction", "entailment", "neutral"]
    for split in ("train", "dev"):
        cola = [f"a\t{i % 2}\t\t{text()}" for i in range(8)]
        write(f"cola/{split}.tsv", cola)
        sts = [f"{text()}\t{text()}\t{i % 5}.0" for i in range(7)]
        write(f"sts/{split}.tsv", ["sentence1\tsentence2\tscore", *sts])
    for split in ("train", "dev_matched", "dev_mismatched"):
        unused = "\t".join("x" * 8)
        rows = [
            f"{unused}\t{text()}\t{text()}\t{labels[i % 3]}" for i in range(6)
        ]
        write(f"mnli/{split}.tsv", ["\t".join("h" * 11), *rows])
    test_rows = [f"{i}\tthe" for i in "0123"]
    write("cola/test.tsv", ["index\tsentence", *test_rows])
    return tmp_path


@pytest.fixture
def glue_run(data, tiny_finetuning):
    """Return a function that runs the command, and returns its status."""
    sizes = ("train_batch_size", "eval_batch_size", "predict_batch_size")
    settings = {**tiny_finetuning, **dict.fromkeys(sizes, 4)}
    settings |= {"max_seq_length": 16, "num_train_epochs": 1.0}

    def run(*flags, **hparams):
        argv = ["run_glue", f"--data-dir={data}", "--model-name=m"]
        argv += ["--hparams", json.dumps({**settings, **hparams}), *flags]
        return run_glue.main(run_glue.parse_flags(argv))

    return run


def summary(data):
    return read_json(data / "models/m/results/glue.json")


NAMES = ["cola", "sts", "mnli", "wnli"]


def test_tasks_with_data_run_and_missing_tasks_are_named(
    data, glue_run, capsys
):
    assert glue_run(task_names=NAMES) == 0
    printed = capsys.readouterr().out
    assert "GLUE 3/3: mnli" in printed
    assert "wnli: no data: missing: " in printed and "wnli/train.tsv" in printed
    assert "does not contain them: sst, mrpc, qqp, qnli, rte" in printed
    results = summary(data)
    assert results["tasks"]["wnli"]["state"] == "no data"
    assert results["tasks"]["mnli"]["lacking"] == []
    cola = results["tasks"]["cola"]
    assert cola["state"] == "done" and cola["trials"] == 1
    path = data / "models/m/results/cola_results.json"
    trials = [trial["results"]["cola"] for trial in read_json(path)["trials"]]
    assert cola["score"]["values"] == [metrics["mcc"] for metrics in trials]
    missing = ["sst", "mrpc", "qqp", "qnli", "rte", "wnli"]
    assert results["averages"]["glue"]["missing"] == missing
    text = (data / "models/m/results/glue.txt").read_text()
    assert "ELECTRA paper's AVG" in text and text in printed
    # A second call trains nothing, and adds the predictions.
    models = data / "models/m/finetuning_models"
    before = {p: p.stat().st_mtime_ns for p in models.rglob("*")}
    assert glue_run("--write_test_outputs", task_names=NAMES) == 0
    assert {p: p.stat().st_mtime_ns for p in models.rglob("*")} == before
    assert summary(data)["averages"] == results["averages"]
    (path,) = (data / "models/m/test_predictions").iterdir()
    assert path.name == "cola_test_1_predictions.pkl"
    # The submission holds these predictions.
    submit(data, "--partial")
    ((name, text),) = archive_of(data).items()
    lines = text.splitlines()[1:]
    assert name == "CoLA.tsv" and [line[0] for line in lines] == list("0123")


def test_each_task_keeps_its_defaults():
    argv = ["x", "--data-dir=d", "--model-name=m", "--learning_rate=3e-4"]
    config, _ = run_glue.parse_flags(argv)
    assert config.task_names == list(GLUE_TASKS)
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
    tasks = summary(data)["tasks"]
    assert tasks["cola"]["state"] == "failed"
    assert "train" in tasks["cola"]["why"] and tasks["sts"]["state"] == "done"


def test_a_stopped_run_leaves_the_remaining_tasks_for_later(
    data, glue_run, monkeypatch
):
    original, stopped = runner.run, {"interrupted": 2}
    monkeypatch.setattr(runner, "run", lambda *args: original(*args) | stopped)
    assert glue_run(task_names=["cola", "sts"]) == 130
    states = {t: o["state"] for t, o in summary(data)["tasks"].items()}
    assert states == {"cola": "interrupted", "sts": "not reached"}


@pytest.mark.parametrize(
    ("hparams", "message"),
    [
        ({"model_dir": "x"}, "model_dir: the GLUE tasks cannot share"),
        (
            {"distribution_strategy": "multi_worker"},
            "to the other workers only once",
        ),
        ({"task_names": ["rte"]}, "no GLUE task has data:\n  rte: missing: "),
    ],
)
def test_a_setting_of_all_tasks_is_refused_at_once(
    hparams, message, data, glue_run
):
    refused(message, glue_run, **hparams)
    assert not (data / "models").exists()


ROWS = 4
RESULTS = "models/m/results/sst_results.json"


@pytest.fixture
def model(tmp_path):
    """Test files and predictions of all tasks; row i is of class i % n."""
    for part in PARTS:
        spec = GLUE_TASKS[part.task]
        path = tmp_path / "finetuning_data" / part.task
        path.mkdir(parents=True, exist_ok=True)
        rows = [f"{10 + i}\ta\tb\tc" for i in range(ROWS)]
        text = "\n".join(["index\tx\ty\tz", *rows, ""])
        (path / spec.files[part.split]).write_text(text)
        if spec.labels:
            classes = np.eye(len(spec.labels), dtype=np.float32)
            predictions = {i: classes[i % len(classes)] for i in range(ROWS)}
        else:
            predictions = {i: np.float32(0.1 + 0.2 * i) for i in range(ROWS)}
        write(tmp_path, f"{part.task}_{part.split}_1", predictions)
    return tmp_path


def write(data_dir, name, value):
    directory = data_dir / "models/m/test_predictions"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}_predictions.pkl"
    path.write_bytes(pickle.dumps(value))
    return path


def write_results(data_dir, results):
    (data_dir / RESULTS).parent.mkdir()
    (data_dir / RESULTS).write_text(json.dumps(results))


def submit(data_dir, *flags):
    argv = ["x", "--data-dir", str(data_dir), "--model-name", "m", *flags]
    glue_submission.main(glue_submission.parse_flags(argv))


def archive_of(data_dir, name="glue_submission"):
    path = data_dir / f"models/m/test_predictions/{name}.zip"
    with zipfile.ZipFile(path) as archive:
        return {n: archive.read(n).decode() for n in archive.namelist()}


def test_a_submission_has_a_file_for_each_test_set(model, capsys):
    submit(model)
    assert sorted(archive_of(model)) == [
        "AX.tsv",
        "CoLA.tsv",
        "MNLI-m.tsv",
        "MNLI-mm.tsv",
        "MRPC.tsv",
        "QNLI.tsv",
        "QQP.tsv",
        "RTE.tsv",
        "SST-2.tsv",
        "STS-B.tsv",
        "WNLI.tsv",
    ]
    printed = capsys.readouterr().out
    assert "QQP.tsv has 4 rows, but the server" in printed
    assert "the server expects 390965" in printed


@pytest.mark.parametrize(
    ("name", "predictions"),
    [
        ("CoLA.tsv", ["0", "1", "0", "1"]),
        ("RTE.tsv", ["entailment", "not_entailment"] * 2),
        ("STS-B.tsv", ["0.5000", "1.5000", "2.5000", "3.5000"]),
        (
            "AX.tsv",
            ["contradiction", "entailment", "neutral", "contradiction"],
        ),
    ],
)
def test_predictions_have_the_labels_of_the_server(model, name, predictions):
    submit(model)
    head, *rows = archive_of(model)[name].splitlines()
    assert head == "index\tprediction"
    expected = [f"{10 + i}\t{text}" for i, text in enumerate(predictions)]
    assert rows == expected


def test_a_submission_is_replaced_only_by_overwrite(model):
    submit(model)
    files = archive_of(model)
    refused("Pass --overwrite", submit, model)
    submit(model, "--overwrite")
    assert archive_of(model) == files


def test_a_named_run_has_its_own_submission(model):
    write(model, "rte_long_test_1", {i: np.eye(2)[1] for i in range(ROWS)})
    submit(model, "--run_name=long", "--partial")
    ((name, text),) = archive_of(model, "glue_submission_long").items()
    assert name == "RTE.tsv"
    assert text.count("\tnot_entailment\n") == ROWS


def test_numbers_outside_the_range_are_clipped_and_counted(model, capsys):
    predictions = {0: np.float32(-0.1), 1: 1.2, 2: 1.0, 3: np.float64(0.25)}
    write(model, "sts_test_1", predictions)
    submit(model)
    values = archive_of(model)["STS-B.tsv"].split()[3::2]
    assert values == ["0.0000", "5.0000", "5.0000", "1.2500"]
    assert "STS-B.tsv: 2 predictions were outside" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ({0: [0.0, 1.0], 1: [0.0, 1.0], 3: [1.0, 0.0]}, "1 of 4 rows have no"),
        ({i: [0.0, 1.0] for i in range(5)}, "5 predictions; expected 4"),
        (None, "sst_test_1_predictions.pkl does not exist"),
    ],
)
def test_an_incomplete_file_is_refused_or_left_out(
    predictions, message, model, capsys
):
    if predictions is None:
        folder = model / "models/m/test_predictions"
        (folder / "sst_test_1_predictions.pkl").unlink()
    else:
        value = {
            key: np.asarray(v, np.float32) for key, v in predictions.items()
        }
        write(model, "sst_test_1", value)
    refused(f"submission:\n  SST-2.tsv: .*{message}", submit, model)
    assert not list((model / "models/m/test_predictions").glob("*.zip"))
    submit(model, "--partial")
    assert "SST-2.tsv" not in archive_of(model) and len(archive_of(model)) == 10
    assert "Missing:\n  SST-2.tsv" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("index\ts\nx\ta\n", "test.tsv:2: found 'x'; expected an index"),
        ("index\ts\n\xb2\ta\n", "test.tsv:2: found '\xb2'; expected an index"),
        ("index\ts\n7\ta\n8\n\n9\tb\n", "has index 8 .*test.tsv:3"),
    ],
)
def test_an_unusable_test_file_is_named(text, message, model):
    (model / "finetuning_data/sst/test.tsv").write_text(text)
    value = np.zeros(2, np.float32)
    write(model, "sst_test_1", {0: value, 3: value})
    refused(message, submit, model)


@pytest.mark.parametrize(
    ("flags", "classes"), [([], "1111"), (["--trial=1"], "0101")]
)
def test_the_best_trial_is_packed_unless_one_is_named(model, flags, classes):
    config = {"data_source": "files", "tfds_data_dir": None}
    write_results(model, {"best_trial": 2, "config": config})
    write(model, "sst_test_2", {i: np.eye(2)[1] for i in range(ROWS)})
    submit(model, *flags)
    lines = archive_of(model)["SST-2.tsv"].splitlines()[1:]
    assert [line[-1] for line in lines] == list(classes)


SOURCE = {"data_source": "files", "tfds_data_dir": None}


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({"best_trial": 2}, "config is missing"),
        ({"best_trial": 2, "config": []}, "config is"),
        ({"best_trial": 2, "config": {}}, "config: data_source is missing"),
        ({"config": SOURCE}, "best_trial is missing"),
        ({"config": SOURCE, "best_trial": "2"}, "best_trial is '2'"),
        ({"config": SOURCE, "best_trial": 0}, "best_trial is '0'"),
        ({"config": SOURCE, "best_trial": 2.5}, "best_trial is '2.5'"),
        (
            {"config": SOURCE | {"tfds_data_dir": 5}, "best_trial": 1},
            "config: tfds_data_dir is '5'; expected a text, or null",
        ),
        ([], "expected a JSON object"),
    ],
)
def test_a_damaged_results_file_is_refused(results, message, model):
    write_results(model, results)
    message = rf"sst_results.json: (?s:.*){message}(?s:.*)Move the file away"
    refused(message, submit, model)


class Attack:
    """An object whose unpickling runs a command."""

    def __reduce__(self):
        return (os.system, ("echo run",))


@pytest.mark.parametrize("value", [Attack(), {0: Attack()}, [1]])
def test_a_pickle_with_code_is_not_executed(value, tmp_path, capfd):
    path = write(tmp_path, "sst_test_1", value)
    refused("not a file of test predictions", read_predictions, str(path))
    assert "run\n" not in capfd.readouterr().out


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_and_numbers_of_every_protocol_are_read(protocol, tmp_path):
    value = {np.int64(3): np.arange(2, dtype=np.float32), 4: np.float32(0.5)}
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(value, protocol))
    predictions = read_predictions(str(path))
    assert predictions[3].tolist() == [0.0, 1.0]
    assert predictions[4] == 0.5


def test_the_order_of_tfds_is_undone_by_indices(model, monkeypatch):
    requests = []

    def read_rows(name, split, data_dir):
        requests.append((name, split, data_dir))
        return (Row(i + 1, {"idx": idx}) for i, idx in enumerate((2, 0, 3, 1)))

    monkeypatch.setattr(tfds_data, "read_rows", read_rows)
    config = {"data_source": "tfds", "tfds_data_dir": "there"}
    write_results(model, {"best_trial": None, "config": config})
    submit(model)
    assert requests == [("glue/sst2", "test", "there")]
    lines = archive_of(model)["SST-2.tsv"].splitlines()[1:]
    assert lines == ["2\t0", "0\t1", "3\t0", "1\t1"]
