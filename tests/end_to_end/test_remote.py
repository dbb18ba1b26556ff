# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whole runs in a file system that only tf.io.gfile reaches."""

import io
import json

import pytest
import tensorflow as tf

from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf.finetuning import runner as finetuning
from electra_tf.pretraining import runner as pretraining
from electra_tf.training.summaries import Console


@pytest.fixture
def remote(data_dir, sst, tmp_path, tiny_vocab):
    """A folder in TensorFlow's memory: records, a task and a vocabulary."""
    root = "ram://remote"
    for folder in (data_dir, tmp_path):
        for path in folder.rglob("*.*"):
            there = f"{root}/{path.relative_to(folder)}"
            tf.io.gfile.makedirs(there.rpartition("/")[0])
            tf.io.gfile.copy(str(path), there, overwrite=True)
    tf.io.gfile.copy(str(tiny_vocab), f"{root}/vocab.txt", overwrite=True)
    yield root
    tf.io.gfile.rmtree(root)


def listing(folder):
    return {name.rstrip("/") for name in tf.io.gfile.listdir(folder)}


@pytest.mark.slow
def test_everything_may_lie_in_a_file_system_of_tensorflows(
    remote, tiny_pretraining, tiny_finetuning
):
    console = Console(io.StringIO())
    for steps in (4, 6):
        settings = {
            **tiny_pretraining,
            "vocab_file": f"{remote}/vocab.txt",
            "num_train_steps": steps,
            "save_checkpoints_steps": 2,
            "keep_checkpoint_max": 2,
            "eval_every_n_steps": 2,
            "keep_best": "loss",
        }
        config = PretrainingConfig.create("m", remote, **settings)
        assert config.model_dir.startswith("ram://")
        assert pretraining.run(config, console)["global_step"] == steps
    folder = config.model_dir
    made = {"checkpoint", "best", "export", "results", "train_log.jsonl"}
    assert made <= listing(folder)
    assert "model.ckpt-2.index" not in listing(folder)
    with tf.io.gfile.GFile(f"{folder}/eval_log.jsonl") as log:
        rows = [json.loads(line) for line in log.read().splitlines()]
    assert [row["step"] for row in rows] == [2, 4, 6]

    tuning = {
        **tiny_finetuning,
        "task_names": ["sst"],
        "vocab_file": f"{remote}/vocab.txt",
        "init_checkpoint": folder,
        "max_seq_length": 16,
        "train_batch_size": 4,
        "num_train_epochs": 1.0,
    }
    tuning.pop("model_hparam_overrides")
    tuned = FinetuningConfig.create("m", remote, **tuning)
    (trial,) = finetuning.run(tuned, console)["trials"]
    assert 0 <= trial["results"]["sst"]["accuracy"] <= 100
    assert "checkpoint" in listing(trial["model_dir"])
    again = pretraining.run(
        PretrainingConfig.create(
            "m", remote, **settings, do_train=False, do_eval=True
        ),
        console,
    )
    assert again["loss"] == pytest.approx(rows[-1]["loss"], rel=1e-6)
