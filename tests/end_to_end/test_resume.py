# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A run that was killed ends where one that was not ends, to the bit."""

import json
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import tf1
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.weights import assign
from electra_tf.finetuning.build import load_weights, resolve_start
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.pretraining import runner
from electra_tf.training.summaries import TIMING_FIELDS, TRAIN_LOG, read_rows
from tests.end_to_end.conftest import (
    TWO_STAGE,
    assert_same_tensors,
    saved_tensors,
)

# Dies by SIGKILL in the middle of step 13's row, three steps after a
# checkpoint, as a machine that loses its power does.
KILLED_RUN = """
import json, os, signal, sys
from configure.pretraining import PretrainingConfig
from electra_tf.pretraining import runner, unigram
from electra_tf.training import summaries

write = summaries.Log.write

def write_or_die(self, step, values):
    write(self, step, values)
    if step == 13:
        with open(self._path, "a") as file:
            file.write('{"step": 14, "lo')
        os.kill(os.getpid(), signal.SIGKILL)

summaries.Log.write = write_or_die
unigram.count_tokens.__defaults__ = (100,)  # as in conftest.py
data_dir, hparams = sys.argv[1:]
runner.run(PretrainingConfig.create("m", data_dir, **json.loads(hparams)))
"""


def untimed(path):
    return [
        {k: v for k, v in row.items() if k not in TIMING_FIELDS}
        for row in read_rows(str(path))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "experiment",
    [
        {"objective": "electra_15", "generator": "unigram"},
        pytest.param({"objective": "replace_mlm"}, marks=pytest.mark.heavy),
        {"objective": "all_tokens_mlm"},
    ],
    ids=lambda hparams: "_".join(hparams.values()),
)
def test_an_experiment_goes_on(data_dir, settings, tmp_path, experiment):
    """Stopped after step 2 of 4, its newest checkpoint lost, and gone on."""
    hparams = settings(
        "whole",
        num_train_steps=4,
        save_checkpoints_steps=2,
        eval_every_n_steps=2,
        **experiment,
    )
    run, cut = tmp_path / "whole", tmp_path / "cut"
    runner.run(PretrainingConfig.create("m", str(data_dir), **hparams))
    shutil.copytree(run, cut)
    for path in cut.glob("model.ckpt-4*"):
        path.unlink()
    state = (cut / "checkpoint").read_text()
    (cut / "checkpoint").write_text(
        "".join(f"{x}\n" for x in state.splitlines() if "ckpt-4" not in x)
        + 'model_checkpoint_path: "model.ckpt-2"\n'
    )
    hparams["model_dir"] = str(cut)
    runner.run(PretrainingConfig.create("m", str(data_dir), **hparams))
    expected = saved_tensors(run / "model.ckpt-4")
    assert_same_tensors(saved_tensors(cut / "model.ckpt-4"), expected)
    for log in ("train_log.jsonl", "eval_log.jsonl"):
        rows = untimed(run / log)
        assert rows and untimed(cut / log) == rows
    assert {"loss", "replaced_share"} < rows[0].keys()
    start = resolve_start(
        FinetuningConfig.create(
            "f",
            str(tmp_path),
            init_checkpoint=str(run / "export" / "discriminator"),
            task_names=["cola"],
            max_seq_length=16,
        )
    )
    model = FinetuningModel(start.config, [])
    assert not load_weights(start.config, start.weights, model).missing
    config = PretrainingConfig.create(
        "m", str(data_dir), **{**hparams, "objective": "electra"}
    )
    with pytest.raises(UserError, match="objective: .* -> 'electra'"):
        runner.run(config)


def shown_steps(path, tag):
    """The steps that TensorBoard shows, in its own order."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.plugin_event_accumulator"
    )
    reader = accumulator.EventAccumulator(str(path)).Reload()
    return [event.step for event in reader.Tensors(tag)]


@pytest.mark.parametrize(
    "objective",
    [
        {
            "optimizer": "adamw",
            "mixed_precision": "fp16",
            "gradient_accumulation_steps": 2,
        },
        {"pretrain_text": "text.txt"},  # of three epochs
        *(
            pytest.param(hparams, marks=pytest.mark.heavy)
            for hparams in (
                {},
                {"optimizer": "lamb"},
                {
                    "electric_objective": True,
                    "electra_objective": False,
                    "mixed_precision": "fp16",
                    "gradient_accumulation_steps": 2,
                    "recompute_grad": True,
                },
                {"embedding_sharing": "gradient_disentangled"},
                # Killed after the switch, its last checkpoint before it.
                {**TWO_STAGE, "two_stage_steps": 12},
                {"training_schedule": "adversarial"},
            )
        ),
    ],
    ids=[
        *("adamw_with_switches", "raw_text", "plain", "lamb"),
        *("electric_with_switches", "disentangled", "two_stage"),
        "adversarial",
    ],
)
def test_killed_and_continued_equals_uninterrupted(
    data_dir, settings, tmp_path, run_python, objective
):
    if name := objective.get("pretrain_text"):
        document = "the of and in\nto the\n" * 8 + "\n"
        (tmp_path / name).write_text(document * 5)
        objective = {"pretrain_text": str(tmp_path / name)}
    whole, killed = (
        settings(name, eval_every_n_steps=5, **objective)
        for name in ("whole", "killed")
    )
    runner.run(PretrainingConfig.create("m", str(data_dir), **whole))

    arguments = (data_dir, json.dumps(killed))
    run_python("-c", KILLED_RUN, *arguments, status=-signal.SIGKILL)
    assert tf.train.latest_checkpoint(tmp_path / "killed").endswith("-10")
    runner.run(PretrainingConfig.create("m", str(data_dir), **killed))

    expected = saved_tensors(tmp_path / "whole" / "model.ckpt-20")
    found = saved_tensors(tmp_path / "killed" / "model.ckpt-20")
    for moment in ("/m/", "/v/"):
        assert sum(moment in name for name in expected) > 20
    start = saved_tensors(tmp_path / "killed" / "model.ckpt-0")
    moved = [not np.array_equal(start[name], expected[name]) for name in start]
    assert np.mean(moved) > 0.9  # Key biases have no gradient.
    assert_same_tensors(found, expected)
    for log in ("train_log.jsonl", "eval_log.jsonl"):
        rows = untimed(tmp_path / "whole" / log)
        assert rows
        assert untimed(tmp_path / "killed" / log) == rows
    assert [r["step"] for r in rows] == [5, 10, 15, 20]
    assert shown_steps(
        tmp_path / "killed" / "tensorboard" / "train", "learning_rate"
    ) == [r["step"] for r in read_rows(str(tmp_path / "killed" / TRAIN_LOG))]


@pytest.mark.slow
def test_two_stages_continue_from_any_step_and_are_read_for_what_they_are(
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
            "keep_best": "disc_loss",
        }
        return PretrainingConfig.create(
            "m", str(data_dir), **settings(name, **{**changes, **hparams})
        )

    whole = tmp_path / "whole"
    runner.run(config("whole"))
    logs = [untimed(whole / f"{log}_log.jsonl") for log in ("train", "eval")]
    # A row ends with the first stage, whatever the interval.
    assert [(r["step"], r["stage"]) for r in logs[0]] == [
        *((1, 1), (3, 1), (4, 1)),
        *((6, 2), (8, 2)),
    ]
    assert [("disc_loss" in r) for r in logs[0]] == [False] * 3 + [True] * 2
    assert [(r["step"], r["stage"], "disc_auc" in r) for r in logs[1]] == [
        *((2, 1, False), (4, 1, False)),
        *((6, 2, True), (8, 2, True)),
    ]
    expected = saved_tensors(whole / "model.ckpt-8")
    for step in (3, 4, 5):
        folder = tmp_path / str(step)
        folder.mkdir()
        for path in whole.glob("*"):
            name = path.name
            if f"-{step}." in name or name in ("config.json", "vocab.txt"):
                shutil.copy(path, folder)
        for log in ("train_log.jsonl", "eval_log.jsonl"):
            shutil.copy(whole / log, folder)
        tf1.record_newest(str(folder), [str(folder / f"model.ckpt-{step}")])
        runner.run(config(str(step)))
        assert_same_tensors(saved_tensors(folder / "model.ckpt-8"), expected)
        assert logs == [
            untimed(folder / f"{log}_log.jsonl") for log in ("train", "eval")
        ]

    with pytest.raises(UserError, match="two_stage_steps: 4 -> 5"):
        runner.run(config("whole", two_stage_steps=5))
    for step, part in ((4, "a generator (no d"), (5, "a generator and a disc")):
        weights = open_weights(str(whole / f"model.ckpt-{step}"))
        assert weights.contents.description.startswith(part)
    weights = open_weights(str(whole / "model.ckpt-4"))
    with pytest.raises(UserError, match="not trained up to step 4"):
        model = runner.build_model(config("other"))
        assign(weights, model.variables)
    result = runner.run(
        config("whole", do_train=False, do_eval=True, overwrite=False)
    )
    assert result["disc_loss"] == logs[1][-1]["disc_loss"]
