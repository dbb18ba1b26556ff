# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import io
import json

import pytest
import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import tf2
from electra_tf.finetuning import registry, runner
from electra_tf.training.console import Console
from tests.transformers_folders import transformers_folder  # noqa: F401

WORDS = ["the", "of", "and", "in", "to"]


@pytest.fixture
def finetuning_config(tmp_path, tiny_finetuning):
    """Return a factory of tiny `FinetuningConfig`s in `tmp_path`."""
    sizes = ("train_batch_size", "eval_batch_size", "predict_batch_size")
    settings = {**tiny_finetuning, **dict.fromkeys(sizes, 4)}
    settings["max_seq_length"] = 32

    def make(*task_names, **hparams):
        values = {**settings, "task_names": list(task_names), **hparams}
        return FinetuningConfig.create("tiny", str(tmp_path), **values)

    return make


@pytest.fixture
def make_task(finetuning_config):
    """Return a factory of built-in tasks: `make_task("mrpc")`."""

    def make(name, **hparams):
        return registry.get_tasks(finetuning_config(name, **hparams))[0]

    return make


@pytest.fixture
def describe(tmp_path, finetuning_config):
    """Return a function that writes and opens a task `mine` with its data."""

    def make(description, files, **hparams):
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        splits = {name.split(".")[0]: name for name in files}
        task = {"name": "mine", "files": splits, **description}
        path = tmp_path / "task.json"
        path.write_text(json.dumps(task))
        config = finetuning_config("mine", task_config=str(path), **hparams)
        return registry.get_tasks(config)[0]

    return make


@pytest.fixture
def cola(write_task):
    """Write eight made-up rows of CoLA for training and evaluation."""
    rows = "".join(f"a\t{i % 2}\tx\tthe {WORDS[i % 5]}\n" for i in range(8))
    write_task("cola", "train.tsv", rows)
    write_task("cola", "dev.tsv", rows)


@pytest.fixture
def config_of(finetuning_config, tiny_finetuning, sst):
    """Return a factory of configs of runs on the made-up rows of SST."""
    sizes = tiny_finetuning["model_hparam_overrides"]
    sizes = sizes | {"num_hidden_layers": 1}
    settings = {"learning_rate": 1e-3, "log_every_n_steps": 3}

    def make(**hparams):
        values = {**settings, "model_hparam_overrides": sizes, **hparams}
        return finetuning_config("sst", **values)

    return make


@pytest.fixture(scope="session")
def run():
    """Return a function that runs a config: result and printed text."""

    def call(config):
        stream = io.StringIO()
        return runner.run(config, Console(stream)), stream.getvalue()

    return call


@pytest.fixture(scope="session")
def weights_of():
    """Return a function that reads a folder's latest checkpoint by name."""

    def read(directory):
        return dict(tf2.open_native(tf.train.latest_checkpoint(str(directory))))

    return read
