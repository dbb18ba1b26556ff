# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The directory of a trial: what may be in it, and when it may go."""

import os
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints import electra_config
from electra_tf.training import best, checkpointing
from electra_tf.training.run_directory import remove_run

VOCAB_FILE = electra_config.VOCAB_FILE
# Labels that a task found in its data, copied from beside the records.
LABEL_SUFFIXES = ("_labels.json", "_label_mapping.json")
# A trained model stays what it is when these change.
FREE_HPARAMS = frozenset(
    {
        "data_dir",
        "distribution_strategy",
        "do_eval",
        "do_train",
        "early_stopping_patience",
        "eval_batch_size",
        "eval_every_n_steps",
        "gcp_project",
        "group_eval_by_length",
        "iterations_per_loop",
        "keep_all_models",
        "keep_checkpoint_max",
        "log_every_n_steps",
        "log_examples",
        "max_answer_length",
        "model_dir",
        "n_best_size",
        "n_writes_test",
        "num_tpu_cores",
        "num_trials",
        "overwrite",
        "predict_batch_size",
        "preprocessed_data_dir",
        "qa_na_threshold",
        "recompute_grad",
        "require_gpu",
        "results_json",
        "results_pkl",
        "results_txt",
        "save_checkpoints_steps",
        "strict_rows",
        "tfds_data_dir",
        "threads",
        "tpu_job_name",
        "tpu_name",
        "tpu_zone",
        "use_tfrecords_if_existing",
        "use_tpu",
        "write_distill_outputs",
        "write_test_outputs",
    }
)


def changed_hparams(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Texts `name: old -> new` of what makes another model.

    Args:
      before: hparams of an earlier run.
      now: hparams asked for.
    """
    names = tuple(name for name in now if name not in FREE_HPARAMS)
    return checkpointing.changed(before, now, names)


def check_same_run(path: str, now: dict[str, Any]) -> None:
    """Raises where a trial's directory is of a run with other hparams.

    Args:
      path: the directory; need not exist.
      now: hparams asked for.

    Raises:
      UserError: naming what differs.
    """
    before = checkpointing.read_config(path)
    differing = changed_hparams(before or {}, now)
    if differing:
        raise UserError(
            f"{path} holds a model fine-tuned with other hparams:\n"
            + "".join(f"  {text}\n" for text in differing)
            + "Set them as they were to continue it, choose another model_dir,"
            " or use --overwrite to delete it and start anew."
        )


def make(path: str) -> None:
    """Makes a trial's directory.

    Args:
      path: the directory.

    Raises:
      UserError: it cannot be made.
    """
    try:
        tf.io.gfile.makedirs(path)
    except tf.errors.OpError as error:
        raise UserError(
            f"model_dir {path} cannot be written: {error.message}. Choose"
            " another model_dir or data_dir, or correct its permissions."
        ) from error


def remove(path: str) -> bool:
    """Deletes a trial's directory.

    Args:
      path: the directory.

    Returns:
      Whether there was one.

    Raises:
      UserError: it holds what no trial wrote.
    """
    if not tf.io.gfile.exists(path):
        return False
    labels = [
        n for n in tf.io.gfile.listdir(path) if n.endswith(LABEL_SUFFIXES)
    ]
    remove_run(path, "fine-tuning", names=(VOCAB_FILE, *labels))
    return True


def trained_checkpoint(path: str) -> str | None:
    """Prefix of the model to evaluate in a trial's directory: best, or newest.

    Args:
      path: the directory.
    """
    kept = os.path.join(path, best.DIRECTORY)
    return tf.train.latest_checkpoint(kept) or tf.train.latest_checkpoint(path)
