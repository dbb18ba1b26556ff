# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tables and pictures of a study, and the results of its runs."""

import json
import pathlib
import re

import numpy as np
import pytest
import scipy.stats

from electra_tf.extras.study import pictures, report, runner
from electra_tf.extras.study.study_file import Run, Study
from electra_tf.plan.flops import PETAFLOP_DAY
from tests.conftest import refused


@pytest.fixture
def finished(content, write_study):
    """Return a study and lines that draw their scores from a generator."""

    def finish(trials=2, without=(), **more):
        study = Study(write_study({**content, **more}), "")
        random, lines = np.random.RandomState(0), {}
        for run in study.runs({}):
            scores = random.uniform(50, 90, trials).tolist()
            results = {"accuracy": scores, "loss": [0.1] * trials}
            if run.facts["kind"] == "pretrain":
                results = {"disc_auc_real_tokens": [0.7]}
            line = {**run.facts, "cell": run.name, "results": results}
            if run.name not in without:
                lines[run.digest] = line
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
    old = {"task": "sst", "kind": "finetune", "results": {"f1": [1.0]}}
    *_, table = report.compare(study, {"": old, **lines})
    assert table["title"] == "sst: accuracy"
    electra, mlm = (np.mean(scores(lines, n), 1) for n in ("electra", "mlm"))
    row, other = table["arms"]["electra"], table["arms"]["mlm"]
    assert row["n"] == 4 and "difference" not in other
    assert row["mean"] == pytest.approx(electra.mean())
    assert row["std"] == pytest.approx(electra.std(ddof=1))
    t = scipy.stats.ttest_ind(electra, mlm, equal_var=False).statistic
    assert row["standard_errors"] == pytest.approx(t)
    assert row["difference"] == pytest.approx(electra.mean() - mlm.mean())
    flops = study.arms[0].cost["flops"]
    assert row["petaflop_days"] == pytest.approx(flops / PETAFLOP_DAY)


def test_without_arms_points_are_compared_with_the_first(finished, content):
    del content["arms"], content["against"]
    study, lines = finished(grid={"pretrain.mask_prob": [0.1, 0.2]})
    first, second = report.compare(study, lines)[-1]["arms"].values()
    assert "difference" not in first and second["difference"]


def test_trials_of_one_seed_are_counted(finished):
    study, lines = finished(trials=3, seeds=[1])
    table = report.compare(study, lines)[-1]
    assert table["arms"]["electra"]["values"] == scores(lines, "electra")[0]
    assert "n is the number of trials" in report.text_of(study, [table])


def test_missing_runs_are_not_counted(finished):
    study, lines = finished(without=["electra/2/sst", "mlm/1", "mlm/2"])
    pretraining, task = report.compare(study, lines)
    assert task["arms"]["electra"]["n"] == 1
    assert task["arms"]["electra"]["standard_error"] is None
    assert pretraining["arms"]["mlm"]["mean"] is None
    lines = report.text_of(study, [pretraining]).splitlines()
    assert lines[-1].split()[:4] == ["mlm", "-", "-", "0"]


GRID = {"budget.steps": [5, 10]}
TASKS = {"sst": {}, "rte": {}}


@pytest.fixture
def finish_grid(finished, tmp_path):
    """Return a function that returns the tables of a study with a grid."""
    folder = tmp_path / "finetuning_data"
    (folder / "rte").symlink_to(folder / "sst")

    def finish(without=()):
        study, lines = finished(grid=GRID, tasks=TASKS, without=without)
        return {t["title"]: t["arms"] for t in report.compare(study, lines)}

    return finish


@pytest.mark.parametrize("steps", [5, 10])
def test_points_of_a_grid_are_compared_at_the_same_point(finish_grid, steps):
    means = finish_grid()["mean of the tasks"]
    electra, mlm = (means[f"{n},steps={steps}"] for n in ("electra", "mlm"))
    difference = electra["mean"] - mlm["mean"]
    assert electra["difference"] == pytest.approx(difference)
    assert electra["steps"] == steps


def test_the_mean_of_the_tasks_is_that_of_each_seed(finish_grid):
    tables = finish_grid()
    name = "electra,steps=5"
    values = [tables[f"{task}: accuracy"][name]["values"] for task in TASKS]
    mean = tables["mean of the tasks"][name]["values"]
    assert mean == pytest.approx(np.mean(values, 0))


def test_an_arm_without_a_seed_of_all_tasks_has_no_mean(finish_grid):
    name = "electra,steps=5"
    tables = finish_grid(without=(f"{name}/1/sst", f"{name}/2/rte"))
    assert tables["mean of the tasks"][name]["n"] == 0


def test_table_json_and_pictures_are_written(finished):
    arms = {"electra": {}, "r": {"start": "random"}}
    figures = {"sst": ["accuracy"], "pretrain": ["acuracy"]}
    study, lines = finished(arms=arms, against="r", figures=figures)
    text = report.write(study, lines, {"mlm/2": "why"})
    output = pathlib.Path(study.output)
    assert (output / "tiny.txt").read_text() == text
    assert "pretrain: acuracy (in no result)\n" in text
    assert "sst: accuracy\n" in text
    assert json.loads((output / "tiny.json").read_text())["failed"]
    pictures_written = sorted(path.name for path in output.glob("*.png"))
    assert pictures_written == ["tiny_curves.png", "tiny_scores.png"]


@pytest.fixture
def collapsed(finished):
    """Return a study whose arm mlm collapsed in a trial of its first seed."""
    study, lines = finished()
    for line in lines.values():
        if line["kind"] == "finetune":
            chance = {"chance": {"accuracy": 50.0}}
            line["baselines"] = chance | {"majority": {"accuracy": 60.5}}
            line["collapsed"] = {}
            if line["cell"] == "mlm/1/sst":
                line["collapsed"] = {"2": "every prediction is '1'"}
    return study, lines


def test_a_collapsed_figure_has_a_mark_and_a_footnote(collapsed):
    study, lines = collapsed
    text = report.text_of(study, report.compare(study, lines)[-1:])
    *_, electra, mlm, note = text.splitlines()
    assert note == (
        "* mlm, seed 1: trial 2 collapsed on sst: every prediction is '1'"
    )
    # Columns: arm, mean, std, n, difference (from mlm, which collapsed).
    assert mlm.split()[1].endswith("*")
    assert electra.split()[4].endswith("*")
    assert not electra.split()[1].endswith("*")


def test_a_table_without_collapses_has_no_footnote(collapsed):
    study, lines = collapsed
    for line in lines.values():
        line["collapsed"] = {}
    assert "*" not in report.text_of(study, report.compare(study, lines))


def test_json_names_collapsed_trials_and_baselines(collapsed):
    study, lines = collapsed
    report.write(study, lines, {})
    path = pathlib.Path(study.output, "tiny.json")
    table = json.loads(path.read_text())["tables"][-1]
    assert table["arms"]["electra"]["collapsed"] == []
    assert table["arms"]["electra"]["compared_with"] == "mlm"
    (collapse,) = table["arms"]["mlm"]["collapsed"]
    assert (collapse["seed"], collapse["trial"]) == (1, 2)
    assert table["baselines"] == {"chance": [50.0], "majority": [60.5]}


def test_the_mean_of_tasks_names_the_task_that_collapsed(finished, tmp_path):
    folder = tmp_path / "finetuning_data"
    (folder / "rte").symlink_to(folder / "sst")
    study, lines = finished(tasks={"sst": {}, "rte": {}})
    for line in lines.values():
        if line["cell"] == "electra/2/rte":
            line["collapsed"] = {"1": "every prediction is '0'"}
    mean = report.compare(study, lines)[-1]
    assert mean["title"] == "mean of the tasks"
    (collapse,) = mean["arms"]["electra"]["collapsed"]
    assert (collapse["task"], collapse["seed"]) == ("rte", 2)


@pytest.fixture
def axes_of(monkeypatch):
    """Return a function that returns the axes that a call draws."""

    def draw(function, *arguments):
        figures = []
        keep = lambda figure: figures.append(figure) or b""  # noqa: E731
        monkeypatch.setattr(pictures, "encode_png", keep)
        function(*arguments)
        return [axes for figure in figures for axes in figure.axes]

    return draw


def hollow(axes):
    """Return the positions of hollow marks, without those of the legend."""
    marks = (m for m in axes.lines if m.get_markerfacecolor() == "white")
    return [m.get_xydata().tolist() for m in marks if len(m.get_xydata())]


def test_scores_show_collapses_and_baselines(collapsed, axes_of):
    study, lines = collapsed
    axes = axes_of(report.write, study, lines, {})[-1]
    assert axes.get_title() == "sst: accuracy over petaflop/s-days"
    row = report.compare(study, lines)[-1]["arms"]["mlm"]
    assert hollow(axes) == [[[row["petaflop_days"], row["mean"]]]]
    labels = axes.get_legend_handles_labels()[1]
    assert {"collapsed", "chance 50", "majority 60.5"} <= {*labels}


def test_points_of_arms_without_pre_training_are_hollow(axes_of):
    points = [pictures.Point(float("nan"), 50.0, 0.5, True)]
    panel = pictures.Panel("", {"random": points}, {})
    (axes,) = axes_of(pictures.draw, [panel], "log")
    assert hollow(axes) == [[[0.5, 50.0]]]


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("is_collapsed", [False, True])
def test_arms_without_pre_training_alone_are_drawn(scale, is_collapsed):
    points = [pictures.Point(float("nan"), 50.0, 0.5, is_collapsed)]
    panel = pictures.Panel("", {"random": points}, {"chance": [40.0]})
    assert pictures.draw([panel], scale).startswith(b"\x89PNG")


@pytest.mark.parametrize(("count", "texts"), [(1, ["71.25"]), (2, [])])
def test_one_evaluation_is_a_mark_with_its_value(count, texts, axes_of):
    points = [pictures.Point(10.0 * n, 71.25) for n in range(1, count + 1)]
    panel = pictures.Panel("", {"a/1": points}, {})
    (axes,) = axes_of(pictures.draw, [panel], "linear")
    assert [text.get_text() for text in axes.texts] == texts
    assert axes.lines[0].get_marker() == ("o" if count == 1 else ".")


def test_points_of_equal_cost_are_inside_the_axes(axes_of):
    points = [pictures.Point(3.3e-10, 50.0, 0.5)]
    panel = pictures.Panel("", {"a": points, "b": points}, {})
    (axes,) = axes_of(pictures.draw, [panel], "log")
    low, high = axes.get_xlim()
    assert low < 2e-10 and high > 6e-10


def _finetuning_run(folder, trials, **fields):
    """Return a fine-tuning of the task `own` whose results file exists."""
    complete = [
        {
            "trial": number,
            "seed": number,
            "model_dir": "m",
            "global_step": 1,
            "results": {"own": {"f1": 1.0}},
            "details": {"own": {}},
            "other_splits": {},
            "collapsed": {},
            **trial,
        }
        for number, trial in enumerate(trials, 1)
    ]
    content = {"format": 1, "config": {}, "trials": complete, **fields}
    (folder / "results").mkdir()
    path = folder / "results" / "own_results.json"
    path.write_text(json.dumps(content))
    facts = {"kind": "finetune", "task": "own"}
    return Run("", "", facts, folder=str(folder))


def test_a_line_keeps_collapsed_trials_and_baselines(tmp_path):
    collapsed = {"own": "every prediction is 'a'"}
    baselines = {"own/chance": {"f1": 1}, "b/chance": {"f1": 2}}
    second = {"collapsed": collapsed, "baselines": baselines}
    run = _finetuning_run(tmp_path, [{}, second])
    assert runner._verdicts(run) == {
        "collapsed": {"2": "every prediction is 'a'"},
        "baselines": {"chance": {"f1": 1.0}},
    }


def test_undefined_results_of_a_trial_are_null_in_a_line(tmp_path):
    trials = [
        {"results": {"own": {"f1": value}}} for value in (None, 0.1234567)
    ]
    run = _finetuning_run(tmp_path, trials)
    assert runner._results(run) == {"f1": [None, 0.123457]}


@pytest.mark.parametrize(
    "trials",
    [
        [],
        [{"results": {"b": {"f1": 1.0}}, "details": {"b": {}}}],
        [{"results": {"own": {}}}],
        [{"results": {"own": {"f1": "1"}}}],
        [{"results": 1}],
        [{"baselines": {"own/chance": 1}}],
    ],
)
@pytest.mark.parametrize("read", [runner._results, runner._verdicts])
def test_damaged_results_of_a_run_are_refused_by_file(tmp_path, trials, read):
    run = _finetuning_run(tmp_path, trials)
    path = re.escape(str(tmp_path / "results" / "own_results.json"))
    refused(f"^{path}: .*expected", read, run)


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("", "eval_log.jsonl: the file is empty; expected a line"),
        ("{}\n[1]\n", "eval_log.jsonl:2: .*object"),
        ('{"loss": 1.0}\n{"lo', "eval_log.jsonl:2: not valid JSON"),
        (
            '{"loss": "1.0"}\n',
            "eval_log.jsonl:1: loss is '1.0'; expected a num",
        ),
    ],
)
def test_a_damaged_log_of_a_pretraining_is_refused(tmp_path, log, message):
    (tmp_path / "eval_log.jsonl").write_text(log)
    run = Run("", "", {"kind": "pretrain"}, folder=str(tmp_path))
    refused(message, runner._results, run)


def test_an_arm_has_one_color_in_all_panels(axes_of):
    points = [pictures.Point(1.0, 2.0)]
    panels = [
        pictures.Panel("", dict.fromkeys(names, points), {})
        for names in (("a/1", "a/2", "b/1"), ("b/1", "a/1"))
    ]
    first, second = axes_of(pictures.draw, panels, "linear")
    colors = [line.get_color() for line in first.lines]
    assert colors[0] == colors[1] != colors[2]
    assert [line.get_color() for line in second.lines] == colors[:0:-1]
    names = [axes.get_legend_handles_labels()[1] for axes in (first, second)]
    assert names == [["a", "b"], ["b", "a"]]


def test_curves_show_detection_against_its_majority(finished, axes_of):
    study, lines = finished()
    (run,) = (run for run in study.runs(lines) if run.name == "electra/1")
    folder = pathlib.Path(run.folder)
    folder.mkdir(parents=True)
    rows = [
        {"step": 2, "disc_loss": 0.3250829734, "replaced_share": 0.1},
        {"step": 4, "disc_loss": 0.25, "replaced_share": 0.0},
    ]
    shares = (1.0, 0.5)
    text = "".join(
        json.dumps({**row, "loss": 9.0, "unigram_share": share}) + "\n"
        for row, share in zip(rows, shares, strict=True)
    )
    (folder / "train_log.jsonl").write_text(text)
    curves = {
        axes.get_title(): axes.lines[0].get_xydata().tolist()
        for axes in axes_of(report.write, study, lines, {})
        if axes.lines
    }
    # No token was replaced in the second row, which has no ratio.
    ratio = curves["disc_loss / majority's loss (train) over steps"]
    assert ratio == [[2, pytest.approx(1.0)]]
    share = curves["unigram_share (train) over steps"]
    assert share == [[2, 1.0], [4, 0.5]]


def test_the_main_metric_of_a_task_is_the_first_result(tmp_path):
    trial = {"results": {"own": {"a": 1, "b": 2}}}
    run = _finetuning_run(tmp_path, [trial], metrics={"own": "b"})
    assert [*runner._results(run)] == ["b", "a"]


def test_damaged_rows_of_a_log_are_left_out_of_curves(
    finished, tmp_path, capsys
):
    study, _ = finished()
    run = study.pretraining(study.arms[0], study.seeds[0])
    folder = pathlib.Path(run.folder)
    folder.mkdir(parents=True)
    rows = [
        {"step": 1, "disc_loss": 0.3, "replaced_share": 0.1},
        {"step": 2, "disc_loss": 0.3, "replaced_shar": 0.1},
        {"step": 3, "disc_loss": 0.3, "replaced_share": None},
    ]
    lines = [*map(json.dumps, rows), '{"step": 4, "disc', "[]", "null"]
    log = folder / "train_log.jsonl"
    log.write_text("".join(f"{line}\n" for line in lines))
    panels = report._curves(study)
    (losses,) = [panel for panel in panels if "disc_loss" in panel.title]
    assert [point.x for point in losses.lines[run.name]] == [1]
    assert "train_log.jsonl:4: " in capsys.readouterr().out
