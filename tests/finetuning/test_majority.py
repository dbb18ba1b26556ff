# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""With `wnli_majority`, the majority of training labels answers WNLI."""

import json
import pickle
import zipfile

import numpy as np
import pytest

from electra_tf.commands import glue_submission, run_glue
from tests.conftest import read_json, refused


@pytest.fixture(autouse=True)
def wnli(write_task):
    for split, labels in (("train", "0101000"), ("dev", "0110"), ("test", "")):
        rows = ["index\tsentence1\tsentence2" + "\tlabel" * bool(labels)]
        for i, label in enumerate(labels or [None] * 4):
            end = f"\t{label}" if labels else ""
            rows.append(f"{i}\tthe of\tof the{end}")
        write_task("wnli", f"{split}.tsv", "\n".join([*rows, ""]))


def test_the_majority_is_scored_and_predicted_without_a_model(
    finetuning_config, run, tmp_path
):
    hparams = {"wnli_majority": True, "write_test_outputs": True}
    config = finetuning_config("wnli", **hparams)
    result, printed = run(config)
    assert (
        "wnli: no model was used; all predictions are '0', the most frequent"
        " of 7 training labels" in printed
    )
    assert "collapsed" not in printed
    actual = result["trials"][0]
    assert actual["results"]["wnli"]["accuracy"] == 50.0
    # The loss counts each label once more than the training data do.
    shares = np.log(np.array([6, 3]) / 9)
    loss = -shares[[0, 1, 1, 0]].mean()
    assert actual["results"]["wnli"]["loss"] == pytest.approx(loss, rel=1e-6)
    assert actual["model_dir"] == "none (wnli_majority)"
    assert not (tmp_path / "models/tiny/finetuning_models").exists()
    with open(config.test_predictions("wnli", "test", 1), "rb") as file:
        predicted = pickle.load(file)
    assert [*predicted] == [0, 1, 2, 3]
    for logits in predicted.values():
        np.testing.assert_allclose(logits, shares, rtol=1e-6)
    _, printed = run(config)
    assert "Trial 1: an earlier run finished this trial" in printed


def test_the_majority_is_refused_with_other_tasks(finetuning_config, run, sst):
    config = finetuning_config("sst", "wnli", wnli_majority=True)
    refused("wnli_majority: wnli cannot be trained", run, config)


@pytest.mark.slow
def test_run_glue_uses_the_majority_and_reports_it(
    tmp_path, tiny_finetuning, cola, capsys
):
    hparams = {
        **tiny_finetuning,
        "task_names": ["cola", "wnli"],
        "max_seq_length": 16,
        "num_train_epochs": 1.0,
        "wnli_majority": True,
    }
    argv = ["x", f"--data-dir={tmp_path}", "--model-name=m"]
    asked = [*argv, "--hparams", json.dumps(hparams)]
    assert run_glue.main(run_glue.parse_flags(asked)) == 0
    # A later run writes the predictions that the first one left out.
    asked.append("--write_test_outputs")
    assert run_glue.main(run_glue.parse_flags(asked)) == 0
    text = (tmp_path / "models/m/results/glue.txt").read_text()
    assert "wnli: no model was used" in text
    results = read_json(tmp_path / "models/m/results/cola_results.json")
    assert results["config"]["wnli_majority"] is False
    glue_submission.main(glue_submission.parse_flags([*argv, "--partial"]))
    path = tmp_path / "models/m/test_predictions/glue_submission.zip"
    with zipfile.ZipFile(path) as archive:
        rows = archive.read("WNLI.tsv").decode().splitlines()
    assert rows == ["index\tprediction", "0\t0", "1\t0", "2\t0", "3\t0"]
