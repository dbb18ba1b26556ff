# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Study files: their errors, and the runs that follow from them."""

import json
import pathlib
import re

import pytest

from configure.errors import UserError
from electra_tf.extras.study import arms, study_file
from electra_tf.extras.study.study_file import Study
from electra_tf.plan.flops import pretraining_step_flops
from electra_tf.plan.parameters import pretraining_parameters
from tests.conftest import ROOT, refused

STUDIES = sorted(ROOT.glob("studies/*.json"))
REMOVED = object()
DROPOUT = {"hidden_dropout_prob": 0.2}


def put(content, key, value):
    """Set the value of a dotted key."""
    *outer, last = key.split(".")
    for name in outer:
        content = content.setdefault(name, {})
    content[last] = value
    if value is REMOVED:
        del content[last]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sedes", [1], "sedes: unknown key. Nearest names: seeds"),
        ("seeds", [1, "2"], "seeds[1]: expected a whole number, got '2'"),
        ("seeds", [1, 2, 1], "seeds: two runs have the name electra/1"),
        ("grid", {"pretrain.mask": [0.1]}, "grid.pretrain.mask: Unknown"),
        ("tasks", {"mrpc": {}}, "tasks.mrpc: "),  # has no data
        ("tasks.sst", {"max_seq_length": 64}, "tasks.sst: hparam max_seq_len"),
        ("data_dir", REMOVED, "data_dir: missing"),
        ("against", "bert", "against: unknown arm 'bert'"),
        ("pretrain.seed", 1, "pretrain.seed: not allowed here"),
        (
            "pretrain.num_train_steps",
            5,
            "budget: expected one of steps, tok",
        ),
        ("pretrain.pretrain_tfrecords", "none*", "pretrain: No record file"),
        ("budget", {"flops": 1}, 'budget: {"flops": 1} is less than one step'),
        ("arms.electra.start", "absent", "electra: start: absent: no such"),
        ("arms.mlm.pretrain", {"objective": "x"}, "arms.mlm: hparam objective"),
        ("arms.m/l", {}, "arms.m/l: 'm/l': not a valid folder name"),
        ("data", {"there": ["-m", 6]}, "data.there[1]: expected text, got 6"),
        ("choose_learning_rate", {"values": ["x"]}, "expected a number"),
        ("finetune.num_trials", -1, "num_trials is -1; expected at least 1"),
        ("pretrain.eval_every_n_steps", 0, "eval_every_n_steps is 0"),
        ("pretrain.max_seq_length", 10**400, "max_seq_length: expected"),
        ("choose_learning_rate", {}, "choose_learning_rate.values: missing"),
        (
            "figures",
            {"sst": ["acuracy"]},
            "unknown metric 'acuracy'; expected one",
        ),
        ("arms.electra.start", "/", "start: /: no checkpoint in this folder"),
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


CHOICE = ("choose_learning_rate", {"values": [1e-4, 1e-3]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            [CHOICE, ("finetune.learning_rate", 0.5)],
            "finetune: learning_rate is 0.5, and choose_learning_rate.values is"
            " [0.0001, 0.001]; expected one of the two",
        ),
        (
            [CHOICE, ("tasks.sst.learning_rate", 0.5)],
            "tasks.sst: learning_rate is 0.5, and choose",
        ),
        (
            [CHOICE, ("arms.mlm.finetune", {"learning_rate": 0.5})],
            "arms.mlm.finetune: learning_rate is 0.5, and choose",
        ),
        (
            [CHOICE, ("grid", {"finetune.learning_rate": [0.5]})],
            "grid.finetune.learning_rate: learning_rate is 0.5, and choose",
        ),
        (
            [("grid", {"pretrain.objective": ["electra"]})],
            'arms.mlm.pretrain.objective is "mlm", and grid.pretrain.objective'
            ' has "electra"; expected the key in one of the two',
        ),
        (
            [
                ("arms.mlm.budget", {"steps": 7}),
                ("grid", {"budget.flops": [5e8]}),
            ],
            'arms.mlm.budget is {"steps": 7}, and grid.budget.flops has',
        ),
        (
            [
                ("arms.mlm.finetune", {"model_hparam_overrides": DROPOUT}),
                ("grid", {"finetune.model_hparam_overrides": [DROPOUT]}),
            ],
            "arms.mlm.finetune.model_hparam_overrides.hidden_dropout_prob is",
        ),
        (
            [("arms.mlm.start", "reference")],
            'arms.mlm.pretrain is {"objective": "mlm"}, and the arm\'s start is'
            ' "reference"; expected one of the two',
        ),
        (
            [("start", "reference")],
            'arms.mlm.pretrain is {"objective": "mlm"}, and the arm\'s start',
        ),
        (
            [("arms.b", {"start": "reference", "budget": {"steps": 7}})],
            'arms.b.budget is {"steps": 7}, and the arm\'s start is',
        ),
        (
            [("arms.b", {"start": "random", "budget": {"steps": 7}})],
            'arms.b.budget is {"steps": 7}, and the arm\'s start is "random"',
        ),
    ],
)
def test_values_that_a_study_would_drop_are_refused(
    content, write_study, changes, message
):
    for key, value in changes:
        put(content, key, value)
    path = write_study(content)
    refused(re.escape(f"{path}: {message}"), Study, path)


@pytest.mark.parametrize(
    "changes",
    [
        [("arms.b.start", "reference")],
        [("arms.b", {"start": "random", "pretrain": {"mask_prob": 0.3}})],
        [("arms.b", {"start": "reference", "pretrain": {}, "budget": {}})],
        [("arms.b.start", "reference"), ("grid", {"budget.steps": [5, 6]})],
        [
            ("arms.electra.finetune", {"model_hparam_overrides": DROPOUT}),
            (
                "grid",
                {"finetune.model_hparam_overrides.initializer_range": [0.1]},
            ),
        ],
        [CHOICE, ("pretrain.learning_rate", 1e-3)],
    ],
)
def test_values_of_all_arms_may_be_unused_by_some(
    content, write_study, changes
):
    for key, value in changes:
        put(content, key, value)
    assert Study(write_study(content)).runs({})


def hparams_of(run):
    return json.loads(run.command[-1].removeprefix("--hparams="))


@pytest.fixture
def study_of_flops(content, write_study):
    """Return a study whose arms have equal operations."""
    content["budget"] = {"flops": 5e8}
    return Study(write_study(content))


@pytest.mark.parametrize("number", [0, 1])
def test_a_budget_gives_an_arm_its_steps(study_of_flops, number):
    arm = study_of_flops.arms[number]
    count = pretraining_parameters(arm.config).total
    flops = pretraining_step_flops(arm.config, parameters=count).total
    assert arm.cost["steps"] == round(5e8 / flops) > 10
    assert arm.cost["flops"] == arm.cost["steps"] * flops
    run = study_of_flops.pretraining(arm, 1)
    assert hparams_of(run)["num_train_steps"] == arm.cost["steps"]
    assert run.facts["tokens"] == arm.cost["steps"] * 4 * 16


def test_a_larger_arm_has_fewer_steps(study_of_flops):
    electra, mlm = study_of_flops.arms
    assert electra.cost["steps"] < mlm.cost["steps"]


def test_the_budget_of_an_arm_replaces_the_common_budget(content, write_study):
    content["budget"] = {"flops": 5e8}
    content["arms"]["mlm"]["budget"] = {"steps": 7}
    assert Study(write_study(content)).arms[1].cost["steps"] == 7


def test_arms_of_two_stages_have_the_budget_of_other_arms(content, write_study):
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
    run = study.finetuning(study.arms[-1], 1, "sst", {})
    assert hparams_of(run)["init_checkpoint"] == "reference"


@pytest.fixture
def study_of_decays(content, write_study):
    """Return a study of three arms at two points of a grid, one arm random."""
    content["grid"] = {"finetune.layerwise_lr_decay": [0.8, 0.9]}
    content["arms"]["random"] = {"start": "random"}
    put(content, "finetune.model_hparam_overrides", DROPOUT)
    return Study(write_study(content))


def test_every_arm_is_at_every_point_of_a_grid(study_of_decays):
    decays = ("layerwise_lr_decay=0.8", "layerwise_lr_decay=0.9")
    names = [f"{n},{d}" for n in ("electra", "mlm", "random") for d in decays]
    assert [arm.name for arm in study_of_decays.arms] == names


def test_arms_that_differ_in_fine_tuning_share_pre_training(study_of_decays):
    runs = study_of_decays.runs({})
    kinds = [run.facts["kind"] for run in runs]
    assert kinds.count("pretrain") == 2 * 2 and kinds.count("finetune") == 6 * 2
    assert len({run.digest for run in runs}) == len(runs)


def test_a_random_arm_has_the_sizes_of_pre_training(study_of_decays):
    run = study_of_decays.finetuning(study_of_decays.arms[-1], 2, "sst", {})
    assert run.needs == ()
    hparams = hparams_of(run)
    assert hparams["init_checkpoint"] is None
    assert hparams["vocab_size"] == 200 and hparams["seed"] == 2
    assert hparams["layerwise_lr_decay"] == 0.9
    assert hparams["model_hparam_overrides"].items() >= DROPOUT.items()
    assert hparams["model_hparam_overrides"]["hidden_size"] == 16


def test_a_digest_depends_on_what_changes_the_result(content, write_study):
    def digests(name):
        runs = Study(write_study(content, name), "").runs({})
        return {run.name: run.digest for run in runs}

    before = digests("before")
    content["output_dir"] += "_elsewhere"
    content["description"] = "a description changes no digest"
    assert digests("moved") == before
    put(content, "finetune.learning_rate", 3e-4)
    after = digests("tuned")
    arms = ("electra", "mlm")
    finetunings = {f"{arm}/{seed}/sst" for arm in arms for seed in (1, 2)}
    assert {n for n in before if before[n] != after[n]} == finetunings
    content["arms"]["mlm"]["pretrain"]["mask_prob"] = 0.2
    masked = digests("masked")
    mlm = {"mlm/1", "mlm/2", "mlm/1/sst", "mlm/2/sst"}
    assert {name for name in after if masked[name] != after[name]} == mlm


def test_the_description_of_a_task_changes_the_digest(
    content, write_study, monkeypatch
):
    monkeypatch.setattr(study_file, "check_task", lambda *_: None)
    folder = content["data_dir"]
    path = pathlib.Path(folder, "own.json")
    put(content, "tasks.own.task_config", str(path))
    description = {"name": "own", "files": {"train": "a/b", "dev": "c"}}
    runs = []
    for metric in ("f1", "accuracy"):
        path.write_text(json.dumps({**description, "metric": metric}))
        runs.append(Study(write_study(content), "").runs({})[2])
    assert runs[0].digest != runs[1].digest
    assert runs[0].reads == f"{folder}/a/b,{folder}/c"


def test_the_learning_rate_is_chosen_by_other_seeds(content, write_study):
    content["choose_learning_rate"] = {"values": [1e-4, 1e-3], "num_trials": 2}
    study = Study(write_study(content), "")
    arm = study.arms[0]
    assert study.finetuning(arm, 1, "sst", {}).digest == ""
    tried = [run for run in study.runs({}) if "learning_rate=" in run.name]
    assert len(tried) == 2 * 2
    assert not {hparams_of(run)["seed"] for run in tried} & set(study.seeds)
    lines = {
        run.digest: {"results": {"accuracy": [score, None]}}
        for run, score in zip(tried, (60.0, 70.0), strict=False)
    }
    chosen = study.finetuning(arm, 2, "sst", lines)
    assert chosen.digest and hparams_of(chosen)["learning_rate"] == 1e-3
    assert "num_trials" not in hparams_of(chosen)


def test_metrics_of_questions_are_checked_without_a_vocabulary(
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
    refused("unknown metric 'f2'", Study, write_study(content))


def test_a_base_holds_the_defaults_of_a_study(content, write_study):
    arms = content.pop("arms")
    write_study(content, "base")
    rest = {"base": "base.json", "arms": arms, "finetune": {"pooling": "mean"}}
    study = Study(write_study(rest), "")
    assert hparams_of(study.runs({})[1])["pooling"] == "mean"
    assert hparams_of(study.runs({})[1])["max_seq_length"] == 16


@pytest.fixture
def with_all_data(monkeypatch):
    """Skip the checks of data and initial checkpoints."""
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
    runs = Study(str(path), "").runs({})
    assert {run.facts["kind"] for run in runs} == {"pretrain", "finetune"}
    needs = [f"data.runs/small/{name}" for name in ("vocab.txt", "records")]
    assert [need.name for need in runs[0].needs] == needs


EXAM = {"exam.npz": ["-m", "electra_tf", "draw_exam", "exam.npz"]}


@pytest.fixture
def runs_with_exam(content, write_study):
    return Study(write_study({**content, "exam": EXAM})).runs({})


def test_an_exam_changes_no_digest(content, write_study, runs_with_exam):
    plain = Study(write_study(content)).runs({})
    digests = [run.digest for run in plain]
    assert [run.digest for run in runs_with_exam] == digests


def test_only_arms_that_detect_take_an_exam(runs_with_exam):
    pretrainings = [r for r in runs_with_exam if r.facts["kind"] == "pretrain"]
    takes_exam = {r.name: "exam.npz" in r.command[-1] for r in pretrainings}
    assert takes_exam == {
        "electra/1": True,
        "electra/2": True,
        "mlm/1": False,
        "mlm/2": False,
    }
    exams = {run.name: run.facts.get("exam") for run in pretrainings}
    assert exams == {
        "electra/1": "exam.npz",
        "electra/2": "exam.npz",
        "mlm/1": None,
        "mlm/2": None,
    }


def test_an_exam_is_drawn_before_pre_training(runs_with_exam):
    needs = [
        [need.name for need in run.needs]
        for run in runs_with_exam
        if run.facts["kind"] == "pretrain"
    ]
    assert needs == [["exam.exam.npz"]] * 4


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "exam",
            {**EXAM, "b.npz": ["-m"]},
            "exam: found exam.npz, b.npz; expected one file",
        ),
        ("exam", {"exam.npz": "-m"}, "exam.exam.npz: expected a list"),
        ("exam", {"exam.npz": [1]}, r"exam.exam.npz\[0\]: expected text"),
        (
            "pretrain",
            {"exam": "exam.npz"},
            "pretrain.exam: not allowed here",
        ),
    ],
)
def test_a_bad_exam_is_refused_by_field(
    content, write_study, key, value, message
):
    refused(message, Study, write_study({**content, key: value}))
