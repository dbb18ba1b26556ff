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
from electra_tf.finetuning.build import load_weights, resolve_start
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.pretraining import runner
from electra_tf.training.summaries import TIMING_FIELDS, TRAIN_LOG, read_rows

# Dies by SIGKILL in the middle of step 13's row, three steps after a
# checkpoint, as a machine that loses its power does.
KILLED_RUN = """
import json, os, signal, sys
from configure.pretraining import PretrainingConfig
from electra_tf.pretraining import runner
from electra_tf.training import summaries

write = summaries.Log.write

def write_or_die(self, step, values):
    write(self, step, values)
    if step == 13:
        with open(self._path, "a") as file:
            file.write('{"step": 14, "lo')
        os.kill(os.getpid(), signal.SIGKILL)

summaries.Log.write = write_or_die
data_dir, hparams = sys.argv[1:]
runner.run(PretrainingConfig.create("m", data_dir, **json.loads(hparams)))
"""


def saved_tensors(path):
    reader = tf.train.load_checkpoint(str(path))
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if name.endswith("VARIABLE_VALUE") and "save_counter" not in name
    }


def untimed(path):
    return [
        {k: v for k, v in row.items() if k not in TIMING_FIELDS}
        for row in read_rows(str(path))
    ]


def assert_same_tensors(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert np.array_equal(found[name], value), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "experiment",
    [
        {"objective": "electra_15", "generator": "unigram"},
        {"objective": "replace_mlm"},
        {"objective": "all_tokens_mlm"},
    ],
    ids=lambda hparams: "_".join(hparams.values()),
)
def test_an_experiment_goes_on_from_its_checkpoint(
    data_dir, settings, tmp_path, experiment
):
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
        {},
        {
            "electric_objective": True,
            "electra_objective": False,
            "mixed_precision": "fp16",
            "gradient_accumulation_steps": 2,
            "recompute_grad": True,
        },
        {"pretrain_text": "text.txt"},  # of three epochs
        {"embedding_sharing": "gradient_disentangled"},
    ],
    ids=["electra", "electric_with_switches", "raw_text", "disentangled"],
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
    assert len([name for name in expected if "optimizer/m" in name]) > 20
    assert len([name for name in expected if "optimizer/v" in name]) > 20
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
