# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings of small runs, and their saved tensors."""

import functools

import numpy as np
import pytest
import tensorflow as tf

# Values that differ between equal runs.
TIMES = ("seconds", "steps_per_second", "tokens_per_second")


def saved_tensors(path, kinds=""):
    """Return a checkpoint's variables by key: all, or those of some kinds."""
    reader = tf.train.load_checkpoint(str(path))
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if name.endswith("VARIABLE_VALUE")
        and name.startswith(kinds)
        and "save_counter" not in name
    }


def assert_same_tensors(tensors, expected):
    assert tensors.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(tensors[name], value, name)


@pytest.fixture(scope="session")
def settings_in(tiny_pretraining):
    """Return a factory of hparams of a tiny run in a folder."""
    return lambda folder, name="run", **hparams: {
        **tiny_pretraining,
        "num_eval_steps": 10,
        "save_checkpoints_steps": 10,
        "log_every_n_steps": 1,
        "shuffle_buffer_size": 20,
        "model_hparam_overrides": tiny_pretraining["model_hparam_overrides"]
        | {"num_hidden_layers": 1},
        "model_dir": str(folder / name),
        "results_txt": str(folder / name / "results" / "r.txt"),
        "results_pkl": str(folder / name / "results" / "r.pkl"),
        "results_json": str(folder / name / "results" / "r.json"),
        **hparams,
    }


@pytest.fixture
def settings(settings_in, tmp_path):
    """Return a factory of hparams of a tiny run in `tmp_path`."""
    return functools.partial(settings_in, tmp_path)


@pytest.fixture
def task_dir(sst, tmp_path):
    """Return a data folder with random rows of SST."""
    return tmp_path


@pytest.fixture
def hparams(tiny_finetuning):
    """Return hparams of a tiny fine-tuning on `task_dir`."""
    sizes = {
        "num_hidden_layers": 1,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    return {
        **tiny_finetuning,
        "task_names": ["sst"],
        "max_seq_length": 32,
        "train_batch_size": 4,
        "eval_batch_size": 4,
        "predict_batch_size": 4,
        "learning_rate": 1e-3,
        "log_every_n_steps": 2,
        "model_hparam_overrides": tiny_finetuning["model_hparam_overrides"]
        | sizes,
    }
