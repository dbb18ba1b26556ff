# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The results files of an evaluation."""

import datetime
import json
import os
import pickle
from typing import Any

import tensorflow as tf

from configure.errors import UserError


def write_results(
    metrics: dict[str, float],
    *,
    txt: str,
    pkl: str,
    json_path: str,
    config: dict[str, Any],
    step: int,
) -> None:
    """Writes one evaluation in three forms, each complete or not at all.

    Args:
      metrics: name -> value.
      txt: path of the text file: sorted lines `name = value`, as the original
        prints them.
      pkl: path of the pickle: the same dict.
      json_path: path of the JSON file: metrics, step, time, resolved hparams.
      config: resolved hparams.
      step: updates done by the weights that were evaluated.

    Raises:
      UserError: a file cannot be written.

    Source: google-research/electra, run_pretraining.py, train_or_eval (which
    names `results_txt` and `results_pkl` and prints the lines).
    Differs: the original writes none of the files.
    """
    metrics = {key: metrics[key] for key in sorted(metrics)}
    record = {
        "step": step,
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(
            timespec="seconds"
        ),
        "metrics": metrics,
        "config": config,
    }
    _write(txt, "".join(f"{line}\n" for line in lines(metrics)).encode())
    _write(pkl, pickle.dumps({**metrics, "global_step": step}))
    _write(json_path, (json.dumps(record, indent=1) + "\n").encode())


def lines(metrics: dict[str, float]) -> list[str]:
    """Sorted `name = value` lines."""
    return [f"{key} = {metrics[key]}" for key in sorted(metrics)]


def _write(path: str, data: bytes) -> None:
    try:
        tf.io.gfile.makedirs(os.path.dirname(path) or ".")
        with tf.io.gfile.GFile(path + ".tmp", "wb") as file:
            file.write(data)
        tf.io.gfile.rename(path + ".tmp", path, overwrite=True)
    except tf.errors.OpError as error:
        raise UserError(
            f"{path}: the results cannot be written: {error.message}. The"
            " checkpoints are safe; make room or correct the permissions, and"
            " evaluate again with --do_train=false --do_eval=true."
        ) from error
