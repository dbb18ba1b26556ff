# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The directory of a model: what may be in it, and what must stay the same."""

import os
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints.hparams_check import MODEL_HPARAMS
from electra_tf.pretraining import parts_export
from electra_tf.training import checkpointing
from electra_tf.training.progress import Console
from electra_tf.training.run_directory import remove_run

# The saved data position means something only while these stay.
DATA_HPARAMS = (
    "deterministic_input",
    "max_seq_length",
    "pretrain_tfrecords",
    "seed",
    "shuffle_buffer_size",
    "train_batch_size",
)


def check_same_model(
    before: dict[str, Any], now: dict[str, Any], path: str
) -> None:
    """Raises UserError naming the model hparams that changed.

    Args:
      before: hparams the run was started with; empty when not known.
      now: hparams asked for.
      path: prefix of the checkpoint, for the message.
    """
    differing = checkpointing.changed(before, now, MODEL_HPARAMS)
    if differing:
        raise UserError(
            f"checkpoint {path} was trained with other model hparams:\n"
            + "".join(f"  {text}\n" for text in differing)
            + "Set them as they were, choose another model_name, or use"
            " --overwrite to delete that model and start anew."
        )


def prepare(path: str, overwrite: bool, console: Console) -> None:
    """Makes the model directory; with `overwrite`, deletes it first.

    Args:
      path: the directory.
      overwrite: whether what an earlier run left there is deleted.
      console: told of a deletion.

    Raises:
      UserError: it cannot be written, or holds what no run of ours wrote.
    """
    try:
        if overwrite and tf.io.gfile.exists(path):
            remove_run(
                path,
                "training",
                names=("results", parts_export.DIRECTORY),
                prefixes=("worker_",),
                lead="--overwrite: ",
            )
            console.line(f"--overwrite: deleted {path}")
        tf.io.gfile.makedirs(path)
    except (OSError, tf.errors.OpError) as error:
        raise UserError(
            f"model_dir {path} cannot be written: {error}. Choose another"
            " model_dir or data_dir, or correct its permissions."
        ) from error


def worker_directory(model_dir: str) -> str:
    """Where a worker that is not the chief puts its unused copy."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return os.path.join(model_dir, f"worker_{resolver.task_id}")
