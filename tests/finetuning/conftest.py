# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the fine-tuning room's tests."""

import pytest


@pytest.fixture
def finetuning_config(tmp_path, tiny_vocab):
    """A factory of tiny `FinetuningConfig`s over `tmp_path`."""

    def make(*task_names, data_dir=None, **hparams):
        from configure.finetuning import FinetuningConfig

        settings = {
            "vocab_file": tiny_vocab,
            "vocab_size": 200,
            "embedding_size": 8,
            "max_seq_length": 32,
            "train_batch_size": 4,
            "eval_batch_size": 4,
            "predict_batch_size": 4,
            "init_checkpoint": None,
            "model_hparam_overrides": {
                "hidden_size": 16,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "intermediate_size": 32,
                "max_position_embeddings": 64,
            },
        }
        if task_names:
            settings["task_names"] = list(task_names)
        settings.update(hparams)
        return FinetuningConfig.create(
            "tiny", str(data_dir or tmp_path), **settings
        )

    return make


@pytest.fixture
def write_task(tmp_path):
    """Writes a task's file where it is looked for; returns the path."""

    def write(task, name, text):
        path = tmp_path / "finetuning_data" / task / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def make_task(finetuning_config):
    """Makes a built-in task: `make_task("mrpc", strict_rows=True)`."""

    def make(name, **hparams):
        from electra_tf.finetuning import registry

        config = finetuning_config(name, **hparams)
        return registry.get_tasks(config)[0]

    return make
