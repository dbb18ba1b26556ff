# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The models of earlier runs: their evaluation, and their protection."""

import dataclasses
import itertools
import os
from collections.abc import Iterator
from typing import Any

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.formatting import join_names
from electra_tf.checkpoints import tf1
from electra_tf.checkpoints.formats import find_model_folder
from electra_tf.files import filesystem
from electra_tf.training.best_checkpoint import find_best_or_latest
from electra_tf.training.checkpointing import CONFIG_FILE, read_config

# The origin of an `init_checkpoint` that is a trial's model.
TRAINED = "trained"
# Settings that an evaluation never reads from the settings of a model.
_NOT_INHERITED = (
    "init_checkpoint",
    "model_dir",
    "num_trials",
    "seed",
    "write_test_outputs",
)
_RESULTS = ("results_json", "results_pkl", "results_txt", "run_name")


def refuse_foreign_models(model_dir: str, num_trials: int) -> None:
    """Raise a UserError if training would continue another program's model.

    Args:
      model_dir: the common prefix of the trials' folders.
      num_trials: the number of trials; negative: unlimited.
    """
    folder, prefix = os.path.split(f"{model_dir}_")
    for name in _list_folder(folder):
        trial = name.removeprefix(prefix)
        if prefix + trial != name or not trial.isdigit():
            continue
        if 0 < num_trials < int(trial):
            continue
        directory = os.path.join(folder, name)
        path = tf1.find_latest(directory)
        if path and read_config(directory) is None:
            raise UserError(
                f"{directory} contains a model ({os.path.basename(path)}) of"
                f" the original or of another program: {CONFIG_FILE} is"
                " missing. Training cannot continue this model. To evaluate"
                " it, set do_train to false; to delete it and train again,"
                " pass --overwrite; to keep it, pass a --run_name."
            )


def with_model_to_evaluate(config: FinetuningConfig) -> FinetuningConfig:
    """Return the settings of an evaluation without training.

    Settings that the user did not set are read from the evaluated model. The
    evaluated model is init_checkpoint if the user set it; otherwise, the models
    of the trials are evaluated.

    Raises:
      UserError: no model exists, or several runs exist.
    """
    if config.init_checkpoint and config.is_explicit("init_checkpoint"):
        settings = _read_finetuned(config.init_checkpoint)
        skip = (*_NOT_INHERITED, *_RESULTS)
        config = config.with_run_settings(settings, skip)
        if config.write_test_outputs:
            _refuse_to_replace_predictions(f"{config.model_dir}_1")
        return dataclasses.replace(config, num_trials=1)
    folder = f"{config.model_dir}_1"
    if not (config.is_explicit("task_names") or find_best_or_latest(folder)):
        parent = os.path.dirname(config.model_dir)
        folder = _find_only_run(parent, config.run_name) or folder
    settings = read_config(folder) or {}
    config = config.with_run_settings(settings, _NOT_INHERITED)
    trials = config.num_trials
    if trials < 0 or not config.is_explicit("num_trials"):
        folders = (f"{config.model_dir}_{k}" for k in itertools.count(1))
        trials = len([*itertools.takewhile(find_best_or_latest, folders)])
    origins = {"init_checkpoint": TRAINED, "num_trials": TRAINED}
    return dataclasses.replace(
        config,
        init_checkpoint=find_trained_model(f"{config.model_dir}_1"),
        num_trials=trials,
        origins={**config.origins, **origins},
    )


def _read_finetuned(path: str) -> dict[str, Any]:
    """Return the settings of a fine-tuned model; {} for other models."""
    settings = read_config(find_model_folder(path)) or {}
    # The settings of a pre-trained model do not contain `task_names`.
    return settings if "task_names" in settings else {}


def _refuse_to_replace_predictions(first_trial: str) -> None:
    """Raise a UserError if the folder of a run's first trial has a model."""
    if find_best_or_latest(first_trial):
        raise UserError(
            "--init_checkpoint: the test predictions would replace those of"
            f" {first_trial}. Pass another --run_name for this evaluation."
        )


def _find_only_run(folder: str, run_name: str) -> str | None:
    """Return the folder of the only run's first trial; None if no run exists.

    Args:
      folder: the folder of fine-tuned models.
      run_name: the name of the run; "": the unnamed run.
    """
    suffix = f"_{run_name}_model_1" if run_name else "_model_1"
    runs = [
        name
        for name in _list_folder(folder)
        if name.endswith(suffix) and read_config(os.path.join(folder, name))
    ]
    if len(runs) > 1:
        raise UserError(
            f"{folder} contains several runs ({join_names(runs)}). Pass the"
            " --task_names of the run to evaluate, and its --run_name if it"
            " has one."
        )
    return os.path.join(folder, runs[0]) if runs else None


def find_trained_model(directory: str) -> str:
    """Return the best or the latest checkpoint of a trial.

    Raises:
      UserError: the trial has no checkpoint.
    """
    path = find_best_or_latest(directory)
    if path is None:
        raise UserError(
            f"do_train is false, but {directory} contains no model. Train the"
            " model, lower num_trials, or pass the model to evaluate (such as"
            " the trial that keep_all_models=false kept) as --init_checkpoint."
        )
    return path


def _list_folder(folder: str) -> Iterator[str]:
    """Yield the names in a folder; nothing if it does not exist."""
    if filesystem.is_directory(folder):
        yield from filesystem.list_directory(folder)
