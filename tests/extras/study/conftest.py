# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A study of tiny models, its records and a task with data."""

import copy
import json

import pytest


@pytest.fixture
def content(data_dir, sst, tmp_path, tiny_pretraining):
    """Return the content of a study file: two arms, two seeds, one task."""
    pretrain, every = copy.deepcopy(tiny_pretraining), "save_checkpoints_steps"
    del pretrain["num_train_steps"]
    pretrain |= {every: 2, "num_warmup_steps": 2, "log_every_n_steps": 2}
    records = data_dir / "pretrain_tfrecords"
    pretrain["pretrain_tfrecords"] = f"{records}/pretrain_data.tfrecord*"
    sizes = ("train_batch_size", "eval_batch_size", "predict_batch_size")
    finetune = {every: 2, "max_seq_length": 16, "num_train_epochs": 1.0}
    return {
        "data_dir": str(tmp_path),
        "output_dir": str(tmp_path / "out"),
        "pretrain": pretrain,
        "budget": {"steps": 10},
        "finetune": finetune | dict.fromkeys(sizes, 4),
        "tasks": {"sst": {}},
        "arms": {"electra": {}, "mlm": {"pretrain": {"objective": "mlm"}}},
        "against": "mlm",
        "seeds": [1, 2],
    }


@pytest.fixture
def write_study(tmp_path):
    """Return a function that writes a study file, and returns its path."""

    def write(content, name="tiny"):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        return str(path)

    return write
