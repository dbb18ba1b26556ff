# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loading of the weights of an initial checkpoint into a new run."""

import os

import tensorflow as tf

from electra_tf.checkpoints.assignment import assign
from electra_tf.checkpoints.contents import CORRECTION_HEAD
from electra_tf.checkpoints.formats import open_weights, strip_training_state
from electra_tf.checkpoints.sizes import list_unseen_differences
from electra_tf.checkpoints.weights import Weights
from electra_tf.pretraining.networks import Networks
from electra_tf.training.console import Console

# Pattern of the variables that a BERT checkpoint lacks, or contains with other
# shapes.
_BERT_LACKS = "^(generator|(cloze|discriminator|token)_predictions)"


def load_initial_checkpoint(
    networks: Networks, directory: str, console: Console
) -> None:
    """Load `init_checkpoint`, if set, into networks with initial weights.

    Slots are not loaded, because slots with a wrong step, or slots of zero
    without warm-up, make the first updates too large.

    Args:
      networks: networks with initial weights, whose config names the
        checkpoint.
      directory: model directory.
      console: console for a report on loaded and missing variables.
    """
    # A run finds the latest checkpoint through the file `checkpoint`, which the
    # folder of a released model lacks.
    if paths := sorted(tf.io.gfile.glob(os.path.join(directory, "*.index"))):
        console.warning(
            f"{directory} contains {', '.join(paths[:3])}, but no file"
            " `checkpoint` that names the latest checkpoint. Training therefore"
            " starts at step 0. To start from the weights of a checkpoint, set"
            " init_checkpoint"
        )
    config = networks.config
    if not config.init_checkpoint:
        return
    weights = _open(config.init_checkpoint, config.corrects)
    patterns = []
    if config.allow_missing:
        patterns.append(config.allow_missing)
    if weights.kind == "bert":
        patterns.append(_BERT_LACKS)
    # Only checkpoints of runs contain the correction head.
    if config.corrects:
        patterns.append(f"^{CORRECTION_HEAD}/")
    report = assign(
        weights, networks.variables, allow_missing="|".join(patterns)
    )
    console.line(f"Starting from the weights of {report}")
    if "electra/encoder/layer_0/output/dense/bias" not in weights.shapes:
        # The settings of a checkpoint that contains only a generator do not
        # describe this model.
        return
    for difference in list_unseen_differences(
        weights.hparams, config.as_dict()
    ):
        console.warning(
            f"{difference}; the weights were trained with the first value. Set"
            " the first value, unless the change is intended."
        )


def _open(path: str, with_correction_head: bool) -> Weights:
    """Open a checkpoint; `with_correction_head` keeps its correction head.

    Other readers of checkpoints ignore this head.
    """
    weights = open_weights(path)
    scope = f"{CORRECTION_HEAD}/"
    dropped = any(name.startswith(scope) for name in weights.dropped)
    if with_correction_head and dropped:
        whole = open_weights(path, with_training_state=True)
        return strip_training_state(whole, keep=scope)
    return weights
