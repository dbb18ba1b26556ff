# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning settings that follow from others: paths, tasks, sizes, debug.

Source: google-research/electra, configure_finetuning.py.
"""

import os
from collections.abc import Mapping
from typing import Any

# Tasks that get the longer inputs of question answering. The original looks
# for "squad" or "qa" in the name, which misses naturalqs.
_LONG_TASKS = ("squad", "squadv1", "newsqa", "triviaqa", "searchqa")

# What `debug` sets unless told otherwise.
_DEBUG_SETTINGS = {
    "save_checkpoints_steps": 1000000,
    "use_tfrecords_if_existing": False,
    "num_trials": 1,
    "iterations_per_loop": 1,
    "train_batch_size": 32,
    "num_train_epochs": 3.0,
    "log_examples": True,
}


def locations(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the default paths.

    Args:
      values: `data_dir`, `model_name` and `task_names` by name.
    """
    data_dir = values["data_dir"]
    model = os.path.join(data_dir, "models", values["model_name"])
    tasks = ",".join(values["task_names"])
    results = os.path.join(model, "results", f"{tasks}_results")
    records = os.path.join(model, "finetuning_tfrecords", f"{tasks}_tfrecords")
    return {
        "vocab_file": os.path.join(data_dir, "vocab.txt"),
        "init_checkpoint": model,
        "model_dir": os.path.join(model, "finetuning_models", f"{tasks}_model"),
        "preprocessed_data_dir": records,
        "results_txt": results + ".txt",
        "results_pkl": results + ".pkl",
        "results_json": results + ".json",
    }


def derived_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what follows from task, size and debug, in that order.

    Args:
      values: hparams by name, as given.
    """
    derived: dict[str, Any] = {}
    if len(values["task_names"]) == 1:
        derived.update(_task_defaults(values["task_names"][0]))
    if values["model_size"] == "large":
        derived.update(learning_rate=5e-5, layerwise_lr_decay=0.9)
    elif values["model_size"] == "small":
        derived["embedding_size"] = 128
    if values["debug"]:
        derived.update(_DEBUG_SETTINGS)
    return derived


def _task_defaults(task_name: str) -> dict[str, Any]:
    """Returns the settings of a task learned alone."""
    if task_name in ("rte", "sts"):
        return {"num_train_epochs": 10.0}
    if task_name in _LONG_TASKS:
        return {
            "max_seq_length": 512,
            "num_train_epochs": 2.0,
            "write_distill_outputs": False,
            "write_test_outputs": False,
        }
    if task_name == "chunk":
        return {"max_seq_length": 256}
    return {"num_train_epochs": 3.0}
