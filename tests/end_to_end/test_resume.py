# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Resumed runs end with equal bits; runs start from other checkpoints."""

import io
import json
import os
import pathlib
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import tf1, tf2
from electra_tf.checkpoints.assignment import assign
from electra_tf.checkpoints.formats import TRAIN_LOG, open_weights
from electra_tf.checkpoints.sizes import encoder_config
from electra_tf.checkpoints.tf1 import write_tf1
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.commands import convert_checkpoint
from electra_tf.pretraining import runner
from electra_tf.training.console import Console
from electra_tf.training.logs import read_rows
from tests.conftest import marked_heavy, refused
from tests.end_to_end.conftest import TIMES, assert_same_tensors, saved_tensors
from tests.pretraining.conftest import TWO_STAGE
from tests.training.conftest import shown

PROGRAM = pathlib.Path(__file__).with_name("worker.py")
HALF = {"mixed_precision": "fp16", "gradient_accumulation_steps": 2}
ELECTRIC = {"electra_objective": False, "electric_objective": True}
LOGS = (TRAIN_LOG, "eval_log.jsonl")


def logs_of(folder):
    """Return the logs of training and evaluations, without times."""
    return tuple(
        [
            {k: v for k, v in row.items() if k not in TIMES}
            for row in read_rows(str(folder / log))
        ]
        for log in LOGS
    )


@pytest.mark.parametrize(
    "objective",
    [
        {**HALF, "optimizer": "adamw"},
        {
            "unigram_steps": 14,
            "unigram_floor": 0.2,
            "generator_learning_rate": 1e-4,
            "clip_networks_apart": True,
            "correction_weight": 5.0,
        },
        *marked_heavy(
            {"pretrain_text": "text.txt"},  # three epochs
            {},
            {"objective": "electra_15", "generator": "unigram"},
            {"optimizer": "lamb"},
            {**HALF, **ELECTRIC, "recompute_grad": True},
            {"embedding_sharing": "gradient_disentangled"},
            # The kill is after the switch, the last checkpoint before.
            {**TWO_STAGE, "two_stage_steps": 12},
            {"training_schedule": "adversarial"},
            {"objective": "replace_mlm"},
            {"objective": "all_tokens_mlm"},
        ),
    ],
    ids=lambda hparams: "-".join(hparams) or "plain",
)
def test_killed_and_continued_equals_uninterrupted(
    data_dir, settings, tmp_path, run_python, objective
):
    if name := objective.get("pretrain_text"):
        document = "the of and in\nto the\n" * 8 + "\n"
        (tmp_path / name).write_text(document * 5)
        objective = {"pretrain_text": str(tmp_path / name)}
    objective = {**objective, "eval_every_n_steps": 5}
    whole, killed = (settings(n, **objective) for n in ("whole", "killed"))
    runner.run(PretrainingConfig.create("m", str(data_dir), **whole))
    arguments = ("--data-dir", data_dir, "--model-name=m", "--hparams")
    # It is killed three steps after a checkpoint.
    run_python(
        PROGRAM,
        *arguments,
        json.dumps(killed),
        env=os.environ | {"DIES_AFTER": "13"},
        status=-signal.SIGKILL,
    )
    assert tf.train.latest_checkpoint(tmp_path / "killed").endswith("-10")
    runner.run(PretrainingConfig.create("m", str(data_dir), **killed))
    expected = saved_tensors(tmp_path / "whole" / "model.ckpt-20")
    tensors = saved_tensors(tmp_path / "killed" / "model.ckpt-20")
    for moment in ("/m/", "/v/"):
        assert sum(moment in name for name in expected) > 20
    start = saved_tensors(tmp_path / "killed" / "model.ckpt-0")
    moved = [not np.array_equal(start[name], expected[name]) for name in start]
    assert np.mean(moved) > 0.9  # Key biases have no gradient.
    assert_same_tensors(tensors, expected)
    train, evaluated = logs_of(tmp_path / "killed")
    assert (train, evaluated) == logs_of(tmp_path / "whole") and train
    assert [row["step"] for row in evaluated] == [5, 10, 15, 20]
    rates = shown(tmp_path / "killed/tensorboard/train", "learning_rate")
    assert [step for step, _ in rates] == [row["step"] for row in train]


@pytest.mark.slow
def test_two_stages_continue_from_any_step_to_equal_bits(
    data_dir, settings, tmp_path
):
    def config(name, **hparams):
        changes = {
            **TWO_STAGE,
            "num_train_steps": 8,
            "save_checkpoints_steps": 1,
            "keep_checkpoint_max": 0,
            "eval_every_n_steps": 2,
            "log_every_n_steps": 3,
            "keep_best": "loss",
        }
        hparams = settings(name, **(changes | hparams))
        return PretrainingConfig.create("m", str(data_dir), **hparams)

    whole = tmp_path / "whole"
    runner.run(config("whole"))
    logs = logs_of(whole)
    # A row of the log ends early at the end of the first stage.
    rows = [(r["step"], r["stage"]) for r in logs[0]]
    assert rows == [(1, 1), (3, 1), (4, 1), (6, 2), (8, 2)]
    assert [("disc_loss" in r) for r in logs[0]] == [False] * 3 + [True] * 2
    assert [(r["step"], r["stage"], "disc_auc" in r) for r in logs[1]] == [
        (2, 1, False),
        (4, 1, False),
        (6, 2, True),
        (8, 2, True),
    ]
    expected = saved_tensors(whole / "model.ckpt-8")
    for step in (4, 5):
        folder = tmp_path / str(step)
        folder.mkdir()
        for path in whole.glob("*"):
            needed = ("config.json", "vocab.txt", *LOGS)
            if f"-{step}." in path.name or path.name in needed:
                shutil.copy(path, folder)
        tf1.record_latest(str(folder), [str(folder / f"model.ckpt-{step}")])
        runner.run(config(str(step)))
        assert_same_tensors(saved_tensors(folder / "model.ckpt-8"), expected)
        assert logs == logs_of(folder)
        # The first stage has smaller losses, which omit the discriminator's.
        best = [(at / "best/best.json").read_text() for at in (folder, whole)]
        assert best[0] == best[1] and json.loads(best[0])["step"] > 4
    with pytest.raises(UserError, match="two_stage_steps: 4 -> 5"):
        runner.run(config("whole", two_stage_steps=5))
    for step, part in ((4, "a generator (no d"), (5, "a generator and a disc")):
        weights = open_weights(str(whole / f"model.ckpt-{step}"))
        assert weights.contents.description.startswith(part)
    weights = open_weights(str(whole / "model.ckpt-4"))
    with pytest.raises(UserError, match="not trained before step 4"):
        assign(weights, runner.build_model(config("other")).variables)
    evaluation = {"do_train": False, "do_eval": True, "overwrite": False}
    result = runner.run(config("whole", **evaluation))
    assert result["disc_loss"] == logs[1][-1]["disc_loss"]


# Variables of a masked LM's head that are as wide as the embeddings, so that
# they fit a generator of any width.
PARTS = ("LayerNorm/beta", "LayerNorm/gamma", "dense/bias", "output_bias")
HEAD_OF_ANY_WIDTH = [f"generator_predictions/{part}" for part in PARTS]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the folder of all runs; each test uses different names."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def start(data_dir, settings_in, runs):
    """Return a function that runs; it returns the console output."""

    def run(name, **hparams):
        settings = settings_in(runs, name, **hparams)
        config = PretrainingConfig.create("m", str(data_dir), **settings)
        output = io.StringIO()
        runner.run(config, Console(output))
        return output.getvalue()

    return run


@pytest.fixture(scope="module")
def first(start, runs):
    """Return the folder and the console output of a finished run."""
    return runs / "first", start("first", num_train_steps=10)


def tensors(path):
    return dict(iter(open_weights(str(path))))


def assert_same(tensors, expected, names):
    assert names
    for name in names:
        assert tensors[name].tobytes() == expected[name].tobytes(), name


def test_a_run_starts_from_weights_without_their_state(start, first, runs):
    settings = {"seed": 5, "init_checkpoint": str(first[0])}
    output = start("second", num_train_steps=2, **settings)
    assert "Starting from the weights of" in output
    assert "0 missing, 0 unexpected" in output
    expected = tensors(first[0] / "model.ckpt-10")
    second = tensors(runs / "second" / "model.ckpt-0")
    assert_same(second, expected, open_weights(str(first[0])).shapes)
    assert second["global_step"] == 0
    slots = [name for name in second if name.endswith(("adam_m", "adam_v"))]
    assert slots and not any(second[name].any() for name in slots)
    # A continued run reads its own checkpoint, not those weights.
    output = start("second", num_train_steps=3, **settings)
    assert "is not read again" in output
    assert "Starting from the weights" not in output


@pytest.fixture(scope="module")
def masked_lm(start, runs):
    """Return the folder of a masked LM."""
    start("mlm", num_train_steps=1, electra_objective=False)
    return runs / "mlm"


def test_missing_variables_need_allow_missing(start, runs, masked_lm):
    assert not (masked_lm / "export" / "discriminator").exists()
    assert tensors(masked_lm / "export" / "generator")
    settings = {"num_train_steps": 1, "init_checkpoint": str(masked_lm)}
    # A masked LM's head is as wide as the encoder, a small generator's is not.
    refused("change generator_hidden_size", start, "full", **settings)
    lacks = r"(?s)discriminator_predictions/dense/kernel.*--allow_missing"
    refused(lacks, start, "full", allow_missing="generator", **settings)
    settings["allow_missing"] = "^(discriminator_predictions|generator)"
    output = start("full", **settings)
    assert "missing, keeps its initial value: generator" in output
    assert "different shape, keeps its initial value: generator" in output
    full = tensors(runs / "full" / "model.ckpt-0")
    mlm = open_weights(str(masked_lm))
    encoder = [name for name in mlm.shapes if name.startswith("electra/")]
    assert_same(full, dict(iter(mlm)), encoder)


def test_a_small_generator_starts_from_the_variables_of_a_bert(
    start, runs, masked_lm
):
    mlm = open_weights(str(masked_lm / "model.ckpt-1"))
    bert = {}
    for name in mlm.shapes:
        head = "cls/predictions/"
        if name.count("/") == 2:
            head += "transform/"
        bert_name = name.replace("generator_predictions/", head)
        bert[bert_name.replace("electra/", "bert/")] = mlm.read(name)
    write_tf1(MemoryWeights(bert), str(runs / "bert" / "bert_model.ckpt"))
    settings = {"num_train_steps": 1, "init_checkpoint": str(runs / "bert")}
    output = start("from_bert", **settings)
    shared = [name for name in mlm.shapes if name.startswith("electra/")]
    shared += HEAD_OF_ANY_WIDTH
    assert_same(tensors(runs / "from_bert/model.ckpt-0"), dict(mlm), shared)
    initial = "keeps its initial value: generator"
    assert f"missing, {initial}/encoder (16 variables)" in output
    assert f"different shape, {initial}_predictions/dense" in output


@pytest.mark.parametrize("write", [write_tf1, tf2.write_native])
def test_a_checkpoint_without_position_continues(start, first, runs, write):
    name = f"from_{write.__name__}"
    write(tf2.open_native(str(first[0])), str(runs / name / "model.ckpt-10"))
    output = start(name, num_train_steps=11)
    assert "model.ckpt-10 (step 10)" in output
    assert "has no data position" in output
    assert (runs / name / "model.ckpt-10.index").exists()
    continued = tensors(runs / name / "model.ckpt-11")
    assert continued["electra/embeddings/word_embeddings/adam_v"].any()
    assert continued["global_step"] == 11


@pytest.mark.parametrize(
    ("network", "other"),
    [("discriminator", "generator"), ("generator", "discriminator")],
)
def test_the_two_networks_are_exported_separately(first, network, other):
    run, output = first
    folder = run / "export" / network
    assert str(folder / "model.ckpt") in output
    exported = tensors(folder)
    assert f"{network}_predictions/dense/kernel" in exported
    assert not any(name.startswith(other) for name in exported)
    assert "electra/embeddings/word_embeddings" in exported
    assert_same(exported, tensors(run / "model.ckpt-10"), list(exported))
    assert (folder / "vocab.txt").exists()
    assert json.loads((folder / "electra_config.json").read_text())


def test_a_run_states_the_encoder_s_config(first):
    run, _ = first
    assert json.loads((run / "electra_config.json").read_text())


def test_milestones_and_the_best_evaluation_are_kept(start, runs):
    run = runs / "kept"
    output = start(
        "kept",
        num_train_steps=8,
        save_checkpoints_steps=1,
        keep_checkpoint_max=1,
        keep_every_n_steps=3,
        eval_every_n_steps=2,
        keep_best="masked_lm_loss",
        export_at_end=False,
    )
    assert not (run / "export").exists()
    names = sorted(path.name for path in run.glob("*.index"))
    assert names == [f"model.ckpt-{n}.index" for n in (3, 6, 8)]
    assert open_weights(str(run / "model.ckpt-3")).global_step == 3
    assert "is the best so far; saved this model as" in output
    best = json.loads((run / "best/best.json").read_text())
    rows = map(json.loads, (run / "eval_log.jsonl").read_text().splitlines())
    losses = {row["step"]: row["masked_lm_loss"] for row in rows}
    assert best["value"] == min(losses.values())
    assert losses[best["step"]] == best["value"]
    weights = open_weights(str(run / "best"))
    assert weights.global_step == best["step"]
    # The copied folder describes the same model; shapes do not show its heads.
    shutil.copytree(run / "best", runs / "alone")
    alone = open_weights(str(runs / "alone"))
    assert encoder_config(alone.hparams).num_attention_heads == 2
    assert alone.hparams == weights.hparams
    assert alone.vocab_file == str(runs / "alone" / "vocab.txt")
    assert "vocab.txt" in (runs / "alone" / "digests.json").read_text()


def test_slots_of_a_library_need_its_optimizer(start, runs, capsys):
    start("adamw", num_train_steps=2, optimizer="adamw")
    with pytest.raises(UserError, match="slots of optimizer 'adamw'.*init_"):
        start("adamw", num_train_steps=3)
    weights = open_weights(str(runs / "adamw"))
    assert not weights.slots and weights.global_step == 2
    target = str(runs / "converted" / "model.ckpt-2")
    argv = ["x", str(runs / "adamw"), target, "--output_format=tf1"]
    convert_checkpoint.main(convert_checkpoint.parse_flags(argv))
    printed = capsys.readouterr().out
    assert ": slots of optimizer adamw, which no other" in printed
    assert "no Adam slots. Pass --init_checkpoint" in printed
    names = open_weights(target).specs
    assert "global_step" in names and len(names) == len(weights.specs)
