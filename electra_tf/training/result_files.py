# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files with the results of a run."""

import datetime
import json
import pickle
from collections.abc import Mapping

import tensorflow as tf

from configure.run_config import RunConfig
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import without_nan
from electra_tf.training.console import (
    Console,
)


def write_results(
    console: Console,
    config: RunConfig,
    step: int,
    result: Mapping[str, float],
) -> None:
    """Print an evaluation as the original does, and write the results files.

    Source: google-research/electra, run_pretraining.py, train_or_eval (which
    names `results_txt` and `results_pkl` and prints the lines).
    Differs: the original does not write these files.
    """
    values = {**result, "global_step": step}
    values = {name: values[name] for name in sorted(values)}
    lines = [f"{name} = {value}" for name, value in values.items()]
    for text in lines:
        console.line(f"  {text}")
    now = datetime.datetime.now(datetime.timezone.utc)
    record = {
        "step": step,
        "time": now.isoformat(timespec="seconds"),
        "metrics": without_nan(values),
        "config": config.as_dict(),
    }
    replaces = tf.io.gfile.exists(config.results_json)
    hint = (
        "The checkpoints are complete. Free some space or correct the"
        " permissions, and evaluate again with --do_train=false --do_eval=true."
    )
    for path, content in (
        (config.results_txt, "".join(f"{line}\n" for line in lines)),
        (config.results_pkl, pickle.dumps(values)),
        (config.results_json, f"{json.dumps(record, indent=1)}\n"),
    ):
        write_atomically(path, content, hint=hint)
    paths = (
        f"{config.results_txt}, {config.results_pkl} and {config.results_json}"
    )
    if replaces:
        console.line(f"Replaced the earlier results in {paths}")
    else:
        console.line(f"Wrote {paths}")
