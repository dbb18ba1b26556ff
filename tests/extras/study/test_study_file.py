# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a study file says, what is refused of it, and the table of a study."""

import json
import pathlib

import numpy as np
import pytest
import scipy.stats

from configure.errors import UserError
from electra_tf.extras.study import arms, pictures, report, runner, study_file
from electra_tf.extras.study.study_file import Run, Study
from electra_tf.plan.flops import PETAFLOP_DAY, pretraining_step_flops
from electra_tf.plan.parameters import pretraining_parameters
from tests.conftest import ROOT, refused

STUDIES = sorted(ROOT.glob("studies/*.json"))
REMOVED = object()


def put(content, key, value):
    """Sets the value of a dotted key."""
    *outer, last = key.split(".")
    for name in outer:
        content = content.setdefault(name, {})
    content[last] = value
    if value is REMOVED:
        del content[last]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sedes", [1], "sedes: unknown key; nearest: seeds"),
        ("seeds", [1, "2"], "seeds[1]: expected a whole number, got '2'"),
        ("seeds", [1, 2, 1], "seeds: two runs are named electra/1"),
        ("grid", {"pretrain.mask": [0.1]}, "grid.pretrain.mask: Unknown"),
        ("tasks", {"mrpc": {}}, "tasks.mrpc: "),  # has no data
        ("tasks.sst", {"max_seq_length": 64}, "tasks.sst: hparam max_seq_len"),
        ("data_dir", REMOVED, "data_dir: missing"),
        ("against", "bert", "against: there is no arm 'bert'"),
        ("pretrain.seed", 1, "pretrain.seed: is set by the study"),
        (
            "pretrain.num_train_steps",
            5,
            "budget: expected one of steps, tok",
        ),
        ("pretrain.pretrain_tfrecords", "none*", "pretrain: No record file"),
        ("budget", {"flops": 1}, 'budget: {"flops": 1} is less than a step'),
        ("arms.mlm.start", "absent", "arms.mlm: start: absent: no such"),
        ("arms.mlm.pretrain", {"objective": "x"}, "arms.mlm: hparam objective"),
        ("arms.m/l", {}, "arms.m/l: 'm/l': a folder cannot have this name"),
        ("data", {"there": ["-m", 6]}, "data.there[1]: expected text, got 6"),
        ("choose_learning_rate", {"values": ["x"]}, "expected a number"),
        ("finetune.num_trials", -1, "num_trials: expected 1 or more"),
        ("pretrain.eval_every_n_steps", 0, "0 leaves no results"),
        ("pretrain.max_seq_length", 10**400, "max_seq_length: expected"),
        ("choose_learning_rate", {}, "choose_learning_rate.values: missing"),
        ("figures", {"sst": ["acuracy"]}, "no figure 'acuracy'; expected one"),
        ("arms.mlm.start", "/", "start: /: no checkpoint in this folder"),
        ("base", ["x"], "base: expected text"),
        ("base", {}, "base: expected text"),
        (
            "budget",
            {"flops": float("nan")},
            "flops: expected a number, got",
        ),
        (
            "budget",
            {"flops": float("inf")},
            "flops: expected a number, got",
        ),
        ("budget", {"flops": -1.0}, "budget.flops: must be a number above 0"),
        ("budget", {"flops": 10**400}, "budget.flops: must be at most 1e+30"),
        ("budget", {"flops": 1e29}, "steps; expected at most"),
        ("budget", {"steps": 1e20}, "steps; expected at most"),
        (
            "grid",
            {"budget.steps": [5, 0]},
            "budget.steps: must be a number ab",
        ),
    ],
)
def test_a_bad_file_is_refused_by_field(
    content, write_study, key, value, message
):
    put(content, key, value)
    path = write_study(content)
    with pytest.raises(UserError) as caught:
        Study(path, "")
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def hparams_of(cell):
    return json.loads(cell.command[-1].removeprefix("--hparams="))


def test_a_budget_gives_each_arm_its_steps(content, write_study):
    content["budget"] = {"flops": 5e8}
    study = Study(write_study(content), "")
    for arm in study.arms:
        count = pretraining_parameters(arm.config).total
        each = pretraining_step_flops(arm.config, parameters=count).total
        assert arm.cost["steps"] == round(5e8 / each) > 10
        assert arm.cost["flops"] == arm.cost["steps"] * each
        cell = study.pretraining(arm, 1)
        assert hparams_of(cell)["num_train_steps"] == arm.cost["steps"]
        assert cell.facts["tokens"] == arm.cost["steps"] * 4 * 16
    assert study.arms[0].cost["steps"] < study.arms[1].cost["steps"]
    content["arms"]["mlm"]["budget"] = {"steps": 7}  # instead, not beside it
    assert Study(write_study(content), "").arms[1].cost["steps"] == 7


def test_two_stages_have_the_budget_of_others(content, write_study):
    put(content, "pretrain.training_schedule", "two_stage")
    put(content, "pretrain.two_stage_steps", 100)
    put(content, "pretrain.generator_layers", 1.0)
    put(content, "pretrain.generator_hidden_size", 1.0)
    put(content, "pretrain.embedding_sharing", "none")
    content |= {"arms": {"electra": {}}, "against": "electra"}
    content["budget"] = {"flops": 1e10}
    (arm,) = Study(write_study(content)).arms
    assert arm.cost["flops"] == pytest.approx(1e10, rel=0.01)
    content["budget"] = {"flops": 5e11 / arm.cost["steps"]}
    refused("ends in the first stage", Study, write_study(content))


def test_an_arm_may_start_from_the_released_model(content, write_study):
    content["arms"]["released"] = {"start": "reference"}
    study = Study(write_study(content), "")
    cell = study.finetuning(study.arms[-1], 1, "sst", {})
    assert hparams_of(cell)["init_checkpoint"] == "reference"


def test_a_grid_s_arms_share_what_does_not_differ(content, write_study):
    content["grid"] = {"finetune.layerwise_lr_decay": [0.8, 0.9]}
    content["arms"]["random"] = {"start": "random"}
    own = {"hidden_dropout_prob": 0.2}  # beside the sizes of pre-training
    put(content, "finetune.model_hparam_overrides", own)
    study = Study(write_study(content), "")
    decays = ("layerwise_lr_decay=0.8", "layerwise_lr_decay=0.9")
    names = [f"{n},{d}" for n in ("electra", "mlm", "random") for d in decays]
    assert [arm.name for arm in study.arms] == names
    found = study.runs({})
    kinds = [cell.facts["kind"] for cell in found]
    assert kinds.count("pretrain") == 2 * 2 and kinds.count("finetune") == 6 * 2
    assert len({cell.digest for cell in found}) == len(found)
    cell = study.finetuning(study.arms[-1], 2, "sst", {})
    assert cell.needs == ()
    hparams = hparams_of(cell)
    assert hparams["init_checkpoint"] is None
    assert hparams["vocab_size"] == 200 and hparams["seed"] == 2
    assert hparams["layerwise_lr_decay"] == 0.9
    assert hparams["model_hparam_overrides"].items() >= own.items()
    assert hparams["model_hparam_overrides"]["hidden_size"] == 16


def test_a_digest_is_of_what_makes_the_result(content, write_study):
    def digests(name):
        found = Study(write_study(content, name), "").runs({})
        return {cell.name: cell.digest for cell in found}

    before = digests("before")
    content["output_dir"] += "_elsewhere"
    content["description"] = "what is content of it changes nothing"
    assert digests("moved") == before
    put(content, "finetune.learning_rate", 3e-4)
    after = digests("tuned")
    arms = ("electra", "mlm")
    wanted = {f"{arm}/{seed}/sst" for arm in arms for seed in (1, 2)}
    assert {n for n in before if before[n] != after[n]} == wanted
    content["arms"]["mlm"]["pretrain"]["mask_prob"] = 0.2
    masked = digests("masked")
    mlm = {"mlm/1", "mlm/2", "mlm/1/sst", "mlm/2/sst"}
    assert {name for name in after if masked[name] != after[name]} == mlm


def test_a_description_makes_the_result(content, write_study, monkeypatch):
    monkeypatch.setattr(study_file, "check_task", lambda *_: None)
    spec = pathlib.Path(place := content["data_dir"], "own.json")
    put(content, "tasks.own.task_config", str(spec))
    told, found = {"name": "own", "files": {"train": "a/b", "dev": "c"}}, []
    for metric in ("f1", "accuracy"):
        spec.write_text(json.dumps({**told, "metric": metric}))
        found.append(Study(write_study(content), "").runs({})[2])
    assert found[0].digest != found[1].digest
    assert found[0].reads == f"{place}/a/b,{place}/c"


def test_a_rate_is_chosen_by_the_task_s_own_figure(tmp_path):
    facts = {"kind": "finetune", "task": "own"}
    trial = {"results": {"own": {"a": 1, "b": 2}}, "details": {"own": {}}}
    told = {"trials": [trial], "metrics": {"own": "b"}}
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "own_results.json").write_text(json.dumps(told))
    cell = Run("", "", facts, folder=str(tmp_path))
    assert [*runner._results(cell)] == ["b", "a"]


def test_the_learning_rate_is_chosen_by_other_seeds(content, write_study):
    content["choose_learning_rate"] = {"values": [1e-4, 1e-3], "num_trials": 2}
    study = Study(write_study(content), "")
    arm = study.arms[0]
    assert study.finetuning(arm, 1, "sst", {}).digest == ""
    tried = [c for c in study.runs({}) if "learning_rate=" in c.name]
    assert len(tried) == 2 * 2
    assert not {hparams_of(cell)["seed"] for cell in tried} & set(study.seeds)
    lines = {
        cell.digest: {"results": {"accuracy": [score, None]}}
        for cell, score in zip(tried, (60.0, 70.0), strict=False)
    }
    found = study.finetuning(arm, 2, "sst", lines)
    assert found.digest and hparams_of(found)["learning_rate"] == 1e-3
    assert "num_trials" not in hparams_of(found)


def test_figures_of_questions_are_known_before_any_vocabulary(
    content, write_study, tmp_path
):
    folder = tmp_path / "finetuning_data" / "squadv1"
    folder.mkdir()
    for name in ("train.json", "dev.json"):
        (folder / name).write_text('{"data": []}')
    content["tasks"] = {"squadv1": {"max_query_length": 4, "beam_size": 4}}
    content["figures"] = {"squadv1": ["f1", "exact_match"]}
    assert Study(write_study(content)).figures == content["figures"]
    content["figures"] = {"squadv1": ["f2"]}
    refused("no figure 'f2'", Study, write_study(content))


def test_a_base_is_what_several_studies_share(content, write_study):
    arms = content.pop("arms")
    write_study(content, "base")
    rest = {"base": "base.json", "arms": arms, "finetune": {"pooling": "mean"}}
    study = Study(write_study(rest), "")
    assert hparams_of(study.runs({})[1])["pooling"] == "mean"
    assert hparams_of(study.runs({})[1])["max_seq_length"] == 16


@pytest.fixture
def with_all_data(monkeypatch):
    """No file of data is asked for, and no checkpoint to start from."""
    monkeypatch.setattr(study_file, "check_records", lambda *_, **__: None)
    monkeypatch.setattr(study_file, "check_task", lambda *_: None)
    monkeypatch.setattr(arms, "check_initial_checkpoint", lambda *_: None)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_studies_of_the_repository_can_be_run(path, with_all_data):
    assert Study(str(path), "").runs({})


def test_the_example_of_the_documentation_can_be_run(tmp_path, with_all_data):
    text = (ROOT / "docs/study.md").read_text()
    path = tmp_path / "example.json"
    path.write_text(text.split("```json\n")[1].split("```")[0])
    found = Study(str(path), "").runs({})
    assert {cell.facts["kind"] for cell in found} == {"pretrain", "finetune"}
    needs = [f"data.runs/small/{name}" for name in ("vocab.txt", "records")]
    assert [need.name for need in found[0].needs] == needs


@pytest.fixture
def finished(content, write_study):
    """A study and lines that draw their scores from a generator."""

    def finish(trials=2, without=(), **more):
        study = Study(write_study({**content, **more}), "")
        random, lines = np.random.RandomState(0), {}
        for cell in study.runs({}):
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


def test_differences_are_in_welch_s_standard_errors(finished, content):
    study, lines = finished(seeds=[1, 2, 3, 4])
    old = {"task": "sst", "kind": "finetune", "results": {"f1": [1.0]}}
    *_, table = report.compare(study, {"": old, **lines})
    assert table["title"] == "sst: accuracy"
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
    del (
        content["arms"],
        content["against"],
    )  # Then the first point is compared with.
    study, lines = finished(grid={"pretrain.mask_prob": [0.1, 0.2]})
    first, second = report.compare(study, lines)[-1]["arms"].values()
    assert "difference" not in first and second["difference"]


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
    grid, tasks = {"budget.steps": [5, 10]}, {"sst": {}, "rte": {}}
    study, lines = finished(grid=grid, tasks=tasks)
    tables = {t["title"]: t["arms"] for t in report.compare(study, lines)}
    means = tables["mean of the tasks"]
    for steps in (5, 10):
        ours, theirs = (means[f"{n},steps={steps}"] for n in ("electra", "mlm"))
        difference = ours["mean"] - theirs["mean"]
        assert ours["difference"] == pytest.approx(difference)
        assert ours["steps"] == steps
    one, two = (tables[f"{t}: accuracy"] for t in ("sst", "rte"))
    name = "electra,steps=5"
    both = np.mean([one[name]["values"], two[name]["values"]], 0)
    assert means[name]["values"] == pytest.approx(both)
    apart = (f"{name}/1/sst", f"{name}/2/rte")  # No seed has both.
    _, lines = finished(grid=grid, tasks=tasks, without=apart)
    assert report.compare(study, lines)[-1]["arms"][name]["n"] == 0


def test_table_json_and_pictures_are_written(finished, tmp_path):
    arms = {"electra": {}, "r": {"start": "random"}}
    figures = {"sst": ["accuracy"], "pretrain": ["acuracy"]}
    study, lines = finished(arms=arms, against="r", figures=figures)
    text = report.write(study, lines, {"mlm/2": "why"})
    out = pathlib.Path(study.output)
    assert (out / "tiny.txt").read_text() == text
    assert "pretrain: acuracy (in no result)\n" in text
    assert "sst: accuracy\n" in text
    assert json.loads((out / "tiny.json").read_text())["failed"]
    for name in ("scores", "curves"):
        assert (out / f"tiny_{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def collapsed(finished):
    """A study whose arm mlm answered one class in a trial of its first seed."""
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


def test_no_footnote_stands_below_what_did_not_collapse(collapsed):
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
    """Returns the axes of what a call draws."""

    def draw(function, *arguments):
        figures = []
        keep = lambda figure: figures.append(figure) or b""  # noqa: E731
        monkeypatch.setattr(pictures, "encode_png", keep)
        function(*arguments)
        return [axes for figure in figures for axes in figure.axes]

    return draw


def hollow(axes):
    """Where hollow marks are, without the legend's."""
    marks = (m for m in axes.lines if m.get_markerfacecolor() == "white")
    return [m.get_xydata().tolist() for m in marks if len(m.get_xydata())]


def test_scores_show_collapse_and_what_is_to_be_beaten(collapsed, axes_of):
    study, lines = collapsed
    axes = axes_of(report.write, study, lines, {})[-1]
    assert axes.get_title() == "sst: accuracy over petaflop/s-days"
    row = report.compare(study, lines)[-1]["arms"]["mlm"]
    assert hollow(axes) == [[[row["petaflop_days"], row["mean"]]]]
    labels = axes.get_legend_handles_labels()[1]
    assert {"collapsed", "chance 50", "majority 60.5"} <= {*labels}


def test_an_arm_that_was_not_pre_trained_is_hollow_too(axes_of):
    points = [pictures.Point(float("nan"), 50.0, 0.5, True)]
    panel = pictures.Panel("", {"random": points}, {})
    (axes,) = axes_of(pictures.draw, [panel], "log")
    assert hollow(axes) == [[[0.5, 50.0]]]


@pytest.mark.parametrize(("count", "texts"), [(1, ["71.25"]), (2, [])])
def test_one_evaluation_is_a_mark_with_its_value(count, texts, axes_of):
    points = [pictures.Point(10.0 * n, 71.25) for n in range(1, count + 1)]
    panel = pictures.Panel("", {"a/1": points}, {})
    (axes,) = axes_of(pictures.draw, [panel], "linear")
    assert [text.get_text() for text in axes.texts] == texts
    assert axes.lines[0].get_marker() == ("o" if count == 1 else ".")


def test_arms_of_equal_cost_are_within_the_picture(axes_of):
    points = [pictures.Point(3.3e-10, 50.0, 0.5)]
    panel = pictures.Panel("", {"a": points, "b": points}, {})
    (axes,) = axes_of(pictures.draw, [panel], "log")
    low, high = axes.get_xlim()
    assert low < 2e-10 and high > 6e-10


def test_a_line_keeps_collapsed_trials_and_baselines(tmp_path):
    facts = {"kind": "finetune", "task": "own"}
    trials = [
        {"trial": number, "collapsed": collapsed, "baselines": baselines}
        for number, collapsed, baselines in (
            (1, {}, {}),
            (2, {"own": "every prediction is 'a'"}, {"own/chance": {"f1": 1}}),
        )
    ]
    (tmp_path / "results").mkdir()
    path = tmp_path / "results" / "own_results.json"
    path.write_text(json.dumps({"trials": trials}))
    cell = Run("", "", facts, folder=str(tmp_path))
    assert runner._verdicts(cell) == {
        "collapsed": {"2": "every prediction is 'a'"},
        "baselines": {"chance": {"f1": 1.0}},
    }


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


EXAM = {"exam.npz": ["-m", "electra_tf", "draw_exam", "exam.npz"]}


def test_an_exam_is_sat_by_arms_that_detect_and_changes_no_digest(
    content, write_study
):
    plain = Study(write_study(content)).runs({})
    cells = Study(write_study({**content, "exam": EXAM})).runs({})
    assert [c.digest for c in cells] == [c.digest for c in plain]
    sat = {c.name: "exam.npz" in c.command[-1] for c in cells}
    own = {
        name: name.startswith("electra") for name in sat if "sst" not in name
    }
    assert {name: sat[name] for name in own} == own
    for cell in cells:
        if cell.facts["kind"] == "pretrain":
            assert [need.name for need in cell.needs] == ["exam.exam.npz"]
            assert cell.facts.get("exam") == (
                "exam.npz" if own[cell.name] else None
            )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "exam",
            {**EXAM, "b.npz": ["-m"]},
            "exam: expected one file, got exam",
        ),
        ("exam", {"exam.npz": "-m"}, "exam.exam.npz: expected a list"),
        ("exam", {"exam.npz": [1]}, r"exam.exam.npz\[0\]: expected text"),
        (
            "pretrain",
            {"exam": "exam.npz"},
            "pretrain.exam: is set by the study",
        ),
    ],
)
def test_a_bad_exam_is_refused_by_field(
    content, write_study, key, value, message
):
    refused(message, Study, write_study({**content, key: value}))


def test_curves_show_detection_against_its_majority(finished, axes_of):
    study, lines = finished()
    (cell,) = (c for c in study.runs(lines) if c.name == "electra/1")
    folder = pathlib.Path(cell.folder)
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
    found = {
        axes.get_title(): axes.lines[0].get_xydata().tolist()
        for axes in axes_of(report.write, study, lines, {})
        if axes.lines
    }
    # No token was replaced in the second: nothing to be compared with.
    ratio = found["disc_loss / its majority's (train) over steps"]
    assert ratio == [[2, pytest.approx(1.0)]]
    share = found["unigram_share (train) over steps"]
    assert share == [[2, 1.0], [4, 0.5]]
