# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders as runs leave them, with fresh weights: made in a second."""

import json
import os
import shutil

import pytest

TASKS = {
    "reviews": {
        "columns": {"text_a": "text", "label": "label"},
        "labels": ["bad", "good", "so-so"],
    },
    "pairs": {
        "columns": {"text_a": "one", "text_b": "two", "label": "label"},
        "labels": ["no", "yes"],
    },
    "grade": {
        "type": "regression",
        "columns": {"text_a": "text", "label": "label"},
        "range": [1, 7],
    },
    "topics": {
        "type": "multilabel",
        "columns": {"text_a": "text", "label": "label"},
        "labels": ["art", "law", "war"],
    },
    "names": {
        "type": "tagging",
        "format": "conll",
        "columns": {"word": 0, "tag": -1},
        "labels": ["PER", "LOC"],
    },
    "kinds": {
        "type": "tagging",
        "tags": "words",
        "format": "conll",
        "columns": {"word": 0, "tag": -1},
        "labels": ["noun", "verb", "other"],
    },
    "manuals": {"type": "question_answering", "version": "squad2"},
    "facts": {"type": "question_answering", "version": "squad1"},
}
SETTINGS = {
    "vocab_size": 200,
    "embedding_size": 8,
    "max_seq_length": 48,
    "max_query_length": 12,
    "doc_stride": 16,
    "beam_size": 5,
    "init_checkpoint": None,
    "fix_tagging_truncation": True,
    "model_hparam_overrides": {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
    },
}


def write_run(config, tasks, folder):
    """Writes what a finished trial leaves; weights are the fresh ones."""
    import tensorflow as tf

    from electra_tf.checkpoints import native
    from electra_tf.finetuning.model import FinetuningModel
    from electra_tf.training import checkpointing

    model = FinetuningModel(config, tasks)
    # Fresh weights are too small for texts to make a difference.
    random = tf.random.Generator.from_seed(3)
    for variable in model.variables:
        if "kernel" in variable.name or "_embeddings" in variable.name:
            variable.assign(random.normal(variable.shape, stddev=0.7))
    os.makedirs(folder, exist_ok=True)
    checkpointing.write_config(str(folder), config.to_json())
    shutil.copy(config.vocab_file, os.path.join(folder, "vocab.txt"))
    step = tf.Variable(7, dtype=tf.int64)
    state = native.checkpoint_state(model.variables, None, step)
    tf.train.Checkpoint(**state).write(os.path.join(folder, "model.ckpt-7"))
    native.record_newest(str(folder), [os.path.join(folder, "model.ckpt-7")])
    return str(folder)


@pytest.fixture(scope="session")
def finetuned_folder(tmp_path_factory, tiny_vocab):
    """A factory of trials' folders: `finetuned_folder("reviews")`."""
    made = {}

    def make(name, description=None, fresh=False, **hparams):
        from configure.finetuning import FinetuningConfig
        from electra_tf.finetuning.registry import get_tasks

        key = (name, repr(description), repr(hparams))
        if key in made and not fresh:
            return made[key]
        data_dir = tmp_path_factory.mktemp(name)
        spec = data_dir / "task.json"
        files = {"train": "train.txt", "dev": "dev.txt"}
        spec.write_text(
            json.dumps(
                {"name": name, "files": files, **(description or TASKS[name])}
            )
        )
        config = FinetuningConfig.create(
            "tiny",
            str(data_dir),
            vocab_file=tiny_vocab,
            task_config=str(spec),
            task_names=[name],
            model_dir=str(data_dir / "models" / "m_1"),
            **{**SETTINGS, **hparams},
        )
        folder = write_run(config, get_tasks(config), config.model_dir)
        if not fresh:  # The caller breaks those.
            made[key] = folder
        return folder

    return make
