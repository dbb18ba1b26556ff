# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of a study."""

import json
import pathlib

import numpy as np
import pytest
import scipy.stats

from electra_tf.plan.counts import PETAFLOP_DAY
from electra_tf.study import report
from electra_tf.study.cells import Study


@pytest.fixture
def finished(said, write_study):
    """A study and lines that draw their scores from a generator."""

    def finish(trials=2, without=(), **more):
        study = Study(write_study({**said, **more}), "")
        random, lines = np.random.RandomState(0), {}
        for cell in study.cells({}):
            scores = random.uniform(50, 90, trials).tolist()
            results = {"accuracy": scores, "loss": [0.1] * trials}
            if cell.facts["kind"] == "pretrain":
                results = {"disc_auc_real_tokens": [0.7]}
            line = {**cell.facts, "cell": cell.name, "results": results}
            if cell.name not in without:
                lines[cell.digest] = line
        return study, lines

    return finish


def scores(lines, arm):
    return [
        line["results"]["accuracy"]
        for line in lines.values()
        if line["arm"] == arm and line["kind"] == "finetune"
    ]


def test_differences_are_in_welch_s_standard_errors(finished):
    study, lines = finished(seeds=[1, 2, 3, 4])
    (table,) = [
        t for t in report.compare(study, lines) if t["title"] == "sst: accuracy"
    ]
    ours, theirs = (np.mean(scores(lines, n), 1) for n in ("electra", "mlm"))
    row, other = table["arms"]["electra"], table["arms"]["mlm"]
    assert row["n"] == 4 and "difference" not in other
    assert row["mean"] == pytest.approx(ours.mean())
    assert row["std"] == pytest.approx(ours.std(ddof=1))
    t = scipy.stats.ttest_ind(ours, theirs, equal_var=False).statistic
    assert row["standard_errors"] == pytest.approx(t)
    assert row["difference"] == pytest.approx(ours.mean() - theirs.mean())
    flops = study.arms[0].cost["flops"]
    assert row["petaflop_days"] == pytest.approx(flops / PETAFLOP_DAY)


def test_of_one_seed_trials_are_counted_and_what_is_missing_is_not(finished):
    study, lines = finished(trials=3, seeds=[1])
    table = report.compare(study, lines)[-1]
    assert table["arms"]["electra"]["values"] == scores(lines, "electra")[0]
    assert "n counts trials" in report.text_of(study, [table])
    study, lines = finished(without=["electra/2/sst", "mlm/1", "mlm/2"])
    pretraining, task = report.compare(study, lines)
    assert task["arms"]["electra"]["n"] == 1
    assert task["arms"]["electra"]["standard_error"] is None
    assert pretraining["arms"]["mlm"]["mean"] is None
    lines = report.text_of(study, [pretraining]).splitlines()
    assert lines[-1].split()[:4] == ["mlm", "-", "-", "0"]


def test_points_of_a_grid_are_compared_at_the_same_place(finished, tmp_path):
    folder = tmp_path / "finetuning_data"
    (folder / "rte").symlink_to(folder / "sst")
    study, lines = finished(
        grid={"budget.steps": [5, 10]}, tasks={"sst": {}, "rte": {}}
    )
    tables = {t["title"]: t["arms"] for t in report.compare(study, lines)}
    means = tables["mean of the tasks"]
    for steps in (5, 10):
        ours, theirs = (
            means[f"{name},steps={steps}"] for name in ("electra", "mlm")
        )
        difference = ours["mean"] - theirs["mean"]
        assert ours["difference"] == pytest.approx(difference)
        assert ours["steps"] == steps
    one, two = (tables[f"{t}: accuracy"] for t in ("sst", "rte"))
    name = "electra,steps=5"
    both = np.mean([one[name]["values"], two[name]["values"]], 0)
    assert means[name]["values"] == pytest.approx(both)


def test_table_json_and_pictures_are_written(finished, tmp_path):
    study, lines = finished(
        arms={"electra": {}, "r": {"start": "random"}}, against="r"
    )
    text = report.write(study, lines, {"mlm/2": "why"})
    out = pathlib.Path(study.output)
    assert (out / "tiny.txt").read_text() == text
    assert json.loads((out / "tiny.json").read_text())["failed"]
    for name in ("scores", "curves"):
        head = (out / f"tiny_{name}.png").read_bytes()[:4]
        assert head == b"\x89PNG"
