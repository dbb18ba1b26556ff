# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The zip file for the GLUE server."""

import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.commands import glue_submission as command
from electra_tf.finetuning import glue
from electra_tf.finetuning.registry import GLUE_TASKS

ROWS = 4


@pytest.fixture
def model(tmp_path):
    """Test files and predictions of all tasks; row i is of class i % n."""
    for part in glue.PARTS:
        spec = GLUE_TASKS[part.task]
        path = tmp_path / "finetuning_data" / part.task
        path.mkdir(parents=True, exist_ok=True)
        rows = [f"{10 + i}\ta\tb\tc" for i in range(ROWS)]
        text = "\n".join(["index\tx\ty\tz", *rows, ""])
        (path / spec.files[part.split]).write_text(text)
        if spec.labels:
            classes = np.eye(len(spec.labels), dtype=np.float32)
            found = {i: classes[i % len(classes)] for i in range(ROWS)}
        else:
            found = {i: np.float32(0.1 + 0.2 * i) for i in range(ROWS)}
        write(tmp_path, f"{part.task}_{part.split}_1", found)
    return tmp_path


def write(data_dir, name, value):
    directory = data_dir / "models/m/test_predictions"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}_predictions.pkl"
    path.write_bytes(pickle.dumps(value))
    return path


def write_results(data_dir, results):
    path = data_dir / "models/m/results/sst_results.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(results))


def submit(data_dir, *flags):
    argv = ["x", "--data-dir", str(data_dir), "--model-name", "m", *flags]
    command.main(command.parse_flags(argv))


def archive_of(data_dir):
    path = data_dir / "models/m/test_predictions/glue_submission.zip"
    with zipfile.ZipFile(path) as archive:
        return {n: archive.read(n).decode() for n in archive.namelist()}


def test_eleven_files_in_the_server_s_words(model, capsys):
    submit(model)
    found = archive_of(model)
    assert sorted(found) == [
        *("AX.tsv", "CoLA.tsv", "MNLI-m.tsv", "MNLI-mm.tsv", "MRPC.tsv"),
        *("QNLI.tsv", "QQP.tsv", "RTE.tsv", "SST-2.tsv", "STS-B.tsv"),
        "WNLI.tsv",
    ]
    assert found["CoLA.tsv"] == (
        "index\tprediction\n10\t0\n11\t1\n12\t0\n13\t1\n"
    )
    assert found["AX.tsv"].split() == [
        *("index", "prediction", "10", "contradiction", "11", "entailment"),
        *("12", "neutral", "13", "contradiction"),
    ]
    assert "10\tentailment\n11\tnot_entailment" in found["RTE.tsv"]
    assert found["STS-B.tsv"].splitlines()[1] == "10\t0.5000"
    printed = capsys.readouterr().out
    assert "QQP.tsv: 4 rows, as in the test set that was predicted" in printed
    assert "the server expects 390965" in printed
    with pytest.raises(UserError, match="add --overwrite"):
        submit(model)
    before = archive_of(model)
    submit(model, "--overwrite")
    assert archive_of(model) == before


def test_a_named_run_has_a_submission_of_its_own(model):
    write(model, "rte_long_test_1", {i: np.eye(2)[1] for i in range(ROWS)})
    submit(model, "--run_name=long", "--partial")
    path = model / "models/m/test_predictions/glue_submission_long.zip"
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["RTE.tsv"]
        rows = archive.read("RTE.tsv").decode().splitlines()[1:]
    assert all(row.endswith("\tnot_entailment") for row in rows)


def test_numbers_outside_the_range_are_clipped_and_counted(model, capsys):
    found = {0: np.float32(-0.1), 1: 1.2, 2: 1.0, 3: np.float64(0.25)}
    write(model, "sts_test_1", found)
    submit(model)
    values = [line.split("\t")[1] for line in
              archive_of(model)["STS-B.tsv"].splitlines()[1:]]  # fmt: skip
    assert values == ["0.0000", "5.0000", "5.0000", "1.2500"]
    assert "STS-B.tsv: 2 predictions were outside" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({0: [0.0, 1.0], 1: [0.0, 1.0], 3: [1.0, 0.0]}, "1 of 4 rows have no"),
        ({i: [0.0, 1.0] for i in range(5)}, "5 predictions, but .* 4 rows"),
        ({i: [0.0, 1.0, 2.0] for i in range(4)}, "expected 2 finite logits"),
        ({i: [0.0, np.nan] for i in range(4)}, "expected 2 finite logits"),
        (None, "no .*sst_test_1_predictions.pkl; predict with"),
    ],
)
def test_what_is_not_whole_is_refused_or_left_out(found, words, model, capsys):
    if found is None:
        os.remove(
            model / "models/m/test_predictions/sst_test_1_predictions.pkl"
        )
    else:
        value = {key: np.asarray(v, np.float32) for key, v in found.items()}
        write(model, "sst_test_1", value)
    with pytest.raises(UserError, match=f"lack\n  SST-2.tsv: .*{words}"):
        submit(model)
    path = model / "models/m/test_predictions/glue_submission.zip"
    assert not path.exists()
    submit(model, "--partial")
    assert "SST-2.tsv" not in archive_of(model)
    assert len(archive_of(model)) == 10
    assert "Missing:\n  SST-2.tsv" in capsys.readouterr().out


def test_a_row_without_prediction_is_named_with_its_line(model):
    directory = model / "finetuning_data/sst"
    (directory / "test.tsv").write_text("index\ts\n7\ta\n8\n\n9\tb\n")
    value = np.zeros(2, np.float32)
    write(model, "sst_test_1", {0: value, 3: value})
    with pytest.raises(UserError, match=r"first is index 8, .*test.tsv:3"):
        submit(model)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("index\ts\n7\ta\n7\tb\n", "has an index twice"),
        ("index\ts\nx\ta\n", "test.tsv:2: found 'x'; expected an index"),
    ],
)
def test_indices_that_cannot_be_are_refused(text, words, model):
    (model / "finetuning_data/sst/test.tsv").write_text(text)
    with pytest.raises(UserError, match=words):
        submit(model, "--partial")


def test_each_task_s_best_trial_is_taken_unless_one_is_given(model):
    used = {"data_source": "files", "tfds_data_dir": None}
    write_results(model, {"best_trial": 2, "config": used})
    other = {i: np.array([0, 1], np.float32) for i in range(ROWS)}
    write(model, "sst_test_2", other)
    submit(model)
    ones = "index\tprediction\n10\t1\n11\t1\n12\t1\n13\t1\n"
    assert archive_of(model)["SST-2.tsv"] == ones
    submit(model, "--trial=1", "--overwrite")
    assert archive_of(model)["SST-2.tsv"] != ones


def test_a_damaged_results_file_is_named(model):
    write_results(model, [])
    with pytest.raises(UserError, match="sst_results.json is no results"):
        submit(model)


class Attack:
    """What a pickle from elsewhere could do."""

    def __reduce__(self):
        return (os.system, ("echo run",))


@pytest.mark.parametrize("value", [Attack(), {0: Attack()}, [1]])
def test_a_pickle_that_is_no_prediction_is_not_run(value, tmp_path, capfd):
    path = write(tmp_path, "sst_test_1", value)
    with pytest.raises(UserError, match="no file of test predictions"):
        glue.read_predictions(str(path))
    assert "run\n" not in capfd.readouterr().out


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_and_numbers_of_every_protocol_are_read(protocol, tmp_path):
    value = {np.int64(3): np.arange(2, dtype=np.float32), 4: np.float32(0.5)}
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(value, protocol))
    found = glue.read_predictions(str(path))
    assert found[3].tolist() == [0.0, 1.0] and found[4] == 0.5


def test_nothing_at_all_is_refused(tmp_path):
    with pytest.raises(UserError, match="nothing to submit.*\n.*CoLA.tsv"):
        submit(tmp_path, "--partial")


def test_tfds_s_own_order_is_undone_by_its_indices(model, monkeypatch):
    from electra_tf.data import tables
    from electra_tf.data.tables import Row

    asked = []

    def read_rows(name, split, data_dir):
        asked.append((name, split, data_dir))
        return (Row(i + 1, {"idx": idx}) for i, idx in enumerate((2, 0, 3, 1)))

    monkeypatch.setattr(tables, "read_tfds_rows", read_rows)
    used = {"data_source": "tfds", "tfds_data_dir": "there"}
    write_results(model, {"best_trial": None, "config": used})
    submit(model)
    assert asked == [("glue/sst2", "test", "there")]
    lines = archive_of(model)["SST-2.tsv"].splitlines()[1:]
    assert lines == ["2\t0", "0\t1", "3\t0", "1\t1"]
