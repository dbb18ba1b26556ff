# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The two networks apart, without optimizer, for whoever uses the model."""

import os

import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import electra_config, parts
from electra_tf.checkpoints.native import variables_by_name
from electra_tf.checkpoints.tf1_writer import write_tf1
from electra_tf.checkpoints.weights import ModelWeights
from electra_tf.pretraining.model import PretrainingModel

DIRECTORY = "export"


def export_parts(
    config: PretrainingConfig,
    model: PretrainingModel,
    step: int,
    directory: str,
) -> list[str]:
    """Writes `<directory>/export/discriminator` and `.../generator`.

    Each holds a checkpoint in the original's format, `electra_config.json` and
    `vocab.txt`: all that fine-tuning, or another program, needs. An earlier
    export of the same run is replaced.

    Args:
      config: of the run.
      model: whose weights are written.
      step: updates done.
      directory: the run's.

    Returns:
      Prefixes of the checkpoints written; parts that the objective does not
      have (the discriminator of a masked LM) are left out.
    """
    weights = ModelWeights(variables_by_name(model.variables), step, directory)
    written = []
    for name in ("discriminator", "generator"):
        if not parts.has_part(weights, name):
            continue
        folder = os.path.join(directory, DIRECTORY, name)
        prefix = os.path.join(folder, "model.ckpt")
        write_tf1(parts.select_part(weights, name), prefix, overwrite=True)
        electra_config.write_electra_config(folder, config.as_dict())
        tf.io.gfile.copy(
            config.vocab_file, os.path.join(folder, "vocab.txt"), overwrite=True
        )
        written.append(prefix)
    return written
