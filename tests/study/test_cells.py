# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a study file says, and what is refused before anything is trained."""

import json
import pathlib

import pytest

from configure.errors import UserError
from electra_tf.plan.counts import (
    pretraining_parameters,
    pretraining_step_flops,
)
from electra_tf.study import cells
from electra_tf.study.cells import Study

ROOT = pathlib.Path(__file__).parents[2]
STUDIES = sorted(ROOT.glob("studies/*.json"))
REMOVED = object()


def put(said, place, value):
    """Sets what a dotted place holds."""
    *outer, last = place.split(".")
    for name in outer:
        said = said.setdefault(name, {})
    said[last] = value
    if value is REMOVED:
        del said[last]


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("sedes", [1], "sedes: unknown; nearest: seeds"),
        ("seeds", [], "seeds: empty"),
        ("seeds", [1, "2"], "seeds[1]: '2' is no seed"),
        ("seeds", [1, 2, 1], "seeds: two cells are named electra/1"),
        ("arms", {}, "arms: empty"),
        ("grid", {}, "grid: empty"),
        ("grid", {"pretrain.mask_prob": []}, "grid.pretrain.mask_prob: expect"),
        ("grid", {"pretrain.mask": [0.1]}, "grid.pretrain.mask: Unknown"),
        ("grid", {"budget.steps": [9, 9]}, "two cells are named electra,steps"),
        ("tasks", {}, "tasks: empty"),
        ("tasks", {"stt": {}}, "tasks.stt: hparam task_names: unknown task"),
        ("tasks", {"mrpc": {}}, "tasks.mrpc: "),  # has no data
        ("tasks", {"squadv1": {}}, "tasks.squadv1: "),
        ("tasks.sst", {"max_seq_length": 64}, "tasks.sst: hparam max_seq_len"),
        ("tasks.sst", 3, "expected an object, got 3"),
        ("data_dir", REMOVED, "data_dir: missing"),
        ("against", "bert", "against: there is no arm 'bert'"),
        ("figures", {"chunk": ["f1"]}, "figures.chunk: no such task"),
        ("pretrain.learning_rte", 1, "pretrain.learning_rte: Unknown hparam"),
        ("pretrain.learning_rate", "x", "pretrain.learning_rate: hparam learn"),
        ("pretrain.seed", 1, "pretrain.seed: is set by the study"),
        ("pretrain.num_train_steps", 5, "budget: one of steps, tokens, flops"),
        ("pretrain.pretrain_tfrecords", "none*", "pretrain: No record file"),
        ("finetune.task_names", [], "finetune.task_names: is set by the study"),
        ("budget", {"flops": 1}, 'budget: {"flops": 1} is less than a step'),
        ("budget", {"steps": True}, "budget.steps: expected a number"),
        ("budget.tokens", 5, "budget: one of steps, tokens"),
        ("arms.mlm.pretrian", {}, "arms.mlm.pretrian: unknown; nearest: pr"),
        ("arms.mlm.start", "absent", "arms.mlm: start: absent: no such"),
        ("arms.mlm.pretrain", {"objective": "x"}, "arms.mlm: hparam objective"),
        ("arms.m/l", {}, "arms.m/l: 'm/l': a folder cannot have this name"),
        ("data", {"there": "build"}, "data.there: expected a list"),
        ("choose_learning_rate", {"value": 1}, "choose_learning_rate.value: u"),
        ("choose_learning_rate", {"values": []}, "expected a list"),
        ("choose_learning_rate", {"values": ["x"]}, "expected a number"),
        ("figures", {"sst": "accuracy"}, "figures.sst: expected a list"),
    ],
)
def test_a_file_that_cannot_be_run_is_refused_by_file_and_field(
    said, write_study, place, value, words
):
    put(said, place, value)
    path = write_study(said)
    with pytest.raises(UserError) as caught:
        Study(path, "")
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"seeds": [1],}', "not valid JSON at line 1, column 15"),
        ("[]", "expected a JSON object"),
        ('{"arms": {"a": {}, "a": {}}}', "a given more than once"),
    ],
)
def test_a_file_that_is_no_study_is_refused(tmp_path, text, words):
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(UserError, match=f"s.json: .*{words}"):
        Study(str(path), "")


def hparams_of(cell):
    return json.loads(cell.command[-1].removeprefix("--hparams="))


def test_a_budget_gives_each_arm_its_steps(said, write_study):
    said["budget"] = {"flops": 5e8}
    study = Study(write_study(said), "")
    for arm in study.arms:
        count = pretraining_parameters(arm.config).total
        each = pretraining_step_flops(arm.config, parameters=count).total
        assert arm.cost["steps"] == round(5e8 / each) > 10
        assert arm.cost["flops"] == arm.cost["steps"] * each
        cell = study.pretraining(arm, 1)
        assert hparams_of(cell)["num_train_steps"] == arm.cost["steps"]
        assert cell.facts["tokens"] == arm.cost["steps"] * 4 * 16
    assert study.arms[0].cost["steps"] < study.arms[1].cost["steps"]


def test_a_grid_s_arms_share_what_does_not_differ(said, write_study):
    said["grid"] = {"finetune.layerwise_lr_decay": [0.8, 0.9]}
    said["arms"]["random"] = {"start": "random"}
    own = {"hidden_dropout_prob": 0.2}  # beside the sizes of pre-training
    put(said, "finetune.model_hparam_overrides", own)
    study = Study(write_study(said), "")
    decays = ("layerwise_lr_decay=0.8", "layerwise_lr_decay=0.9")
    names = [f"{n},{d}" for n in ("electra", "mlm", "random") for d in decays]
    assert [arm.name for arm in study.arms] == names
    found = study.cells({})
    kinds = [cell.facts["kind"] for cell in found]
    assert kinds.count("pretrain") == 2 * 2
    assert kinds.count("finetune") == 6 * 2
    assert len({cell.digest for cell in found}) == len(found)
    cell = study.counted(study.arms[-1], 2, "sst", {})
    assert cell.needs == ()
    hparams = hparams_of(cell)
    assert hparams["init_checkpoint"] is None
    assert hparams["vocab_size"] == 200 and hparams["seed"] == 2
    assert hparams["layerwise_lr_decay"] == 0.9
    assert hparams["model_hparam_overrides"].items() >= own.items()
    assert hparams["model_hparam_overrides"]["hidden_size"] == 16


def test_a_digest_is_of_what_makes_the_result(said, write_study):
    def digests(name):
        return {
            c.name: c.digest
            for c in Study(write_study(said, name), "").cells({})
        }

    before = digests("before")
    said["output_dir"] += "_elsewhere"
    said["description"] = "what is said of it changes nothing"
    assert digests("moved") == before
    put(said, "finetune.learning_rate", 3e-4)
    after = digests("tuned")
    assert {n for n in before if before[n] != after[n]} == {
        f"{arm}/{seed}/sst" for arm in ("electra", "mlm") for seed in (1, 2)
    }
    said["arms"]["mlm"]["pretrain"]["mask_prob"] = 0.2
    assert {n for n, d in digests("masked").items() if d != after[n]} == {
        *("mlm/1", "mlm/2", "mlm/1/sst", "mlm/2/sst")
    }


def test_the_learning_rate_is_chosen_by_other_seeds(said, write_study):
    said["choose_learning_rate"] = {"values": [1e-4, 1e-3], "num_trials": 2}
    study = Study(write_study(said), "")
    arm = study.arms[0]
    assert study.counted(arm, 1, "sst", {}).digest == ""
    tried = [c for c in study.cells({}) if "learning_rate=" in c.name]
    assert len(tried) == 2 * 2
    seeds = {hparams_of(cell)["seed"] for cell in tried}
    assert not seeds & set(study.seeds)
    lines = {
        cell.digest: {"results": {"accuracy": [score, None]}}
        for cell, score in zip(tried, (60.0, 70.0), strict=False)
    }
    found = study.counted(arm, 2, "sst", lines)
    assert found.digest and hparams_of(found)["learning_rate"] == 1e-3
    assert "num_trials" not in hparams_of(found)


def test_a_base_is_what_several_studies_share(said, write_study):
    arms = said.pop("arms")
    write_study(said, "base")
    rest = {"base": "base.json", "arms": arms, "finetune": {"pooling": "mean"}}
    study = Study(write_study(rest), "")
    assert hparams_of(study.cells({})[1])["pooling"] == "mean"
    assert hparams_of(study.cells({})[1])["max_seq_length"] == 16


@pytest.fixture
def with_all_data(monkeypatch):
    """No file is asked for."""
    monkeypatch.setattr(cells, "check_records", lambda *_, **__: None)
    monkeypatch.setattr(cells, "_check_task", lambda *_: None)
    monkeypatch.setattr(cells.files, "exists", lambda path: True)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_studies_of_the_repository_can_be_run(path, with_all_data):
    assert Study(str(path), "").cells({})


def test_the_example_of_the_documentation_can_be_run(tmp_path, with_all_data):
    text = (ROOT / "docs/study.md").read_text()
    path = tmp_path / "example.json"
    path.write_text(text.split("```json\n")[1].split("```")[0])
    found = Study(str(path), "").cells({})
    assert {cell.facts["kind"] for cell in found} == {"pretrain", "finetune"}
    assert [need.name for need in found[0].needs] == [
        "data.runs/small/vocab.txt",
        "data.runs/small/records",
    ]
