# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A study of tiny models, its records and a task with data."""

import copy
import json

import pytest

from tests.conftest import TINY


@pytest.fixture
def said(data_dir, sst, tmp_path, tiny_vocab):
    """What the file of a tiny study says: two arms, two seeds, one task."""
    records = data_dir / "pretrain_tfrecords"
    return {
        "data_dir": str(tmp_path),
        "output_dir": str(tmp_path / "out"),
        "pretrain": {
            "vocab_file": tiny_vocab,
            "pretrain_tfrecords": f"{records}/pretrain_data.tfrecord*",
            **copy.deepcopy(TINY),
            "max_seq_length": 16,
            "train_batch_size": 4,
            "eval_batch_size": 4,
            "num_eval_steps": 2,
            "num_warmup_steps": 2,
            "save_checkpoints_steps": 2,
            "log_every_n_steps": 2,
        },
        "budget": {"steps": 10},
        "finetune": {
            "max_seq_length": 16,
            "train_batch_size": 4,
            "eval_batch_size": 4,
            "predict_batch_size": 4,
            "num_train_epochs": 1.0,
            "save_checkpoints_steps": 2,
        },
        "tasks": {"sst": {}},
        "arms": {"electra": {}, "mlm": {"pretrain": {"objective": "mlm"}}},
        "against": "mlm",
        "seeds": [1, 2],
    }


@pytest.fixture
def write_study(tmp_path):
    """Writes a study file; returns its path."""

    def write(said, name="tiny"):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(said))
        return str(path)

    return write
