# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The checkpoint whose weights a new run starts from."""

import os

import tensorflow as tf

from electra_tf.checkpoints.assignment import assign
from electra_tf.checkpoints.contents import CORRECTION_HEAD
from electra_tf.checkpoints.formats import open_weights, strip_training_state
from electra_tf.checkpoints.sizes import list_unseen_differences
from electra_tf.checkpoints.weights import Weights
from electra_tf.pretraining.networks import Networks
from electra_tf.training.summaries import Console

# Variables that a BERT checkpoint lacks, or holds with other shapes.
_BERT_LACKS = "^(generator|(cloze|discriminator|token)_predictions)"


def load_initial_checkpoint(
    networks: Networks, directory: str, console: Console
) -> None:
    """Load `init_checkpoint` into fresh networks, if it is set.

    Slots are not loaded: with a step that is not theirs, or at zero without a
    warm-up, they make the first updates too large.

    Args:
      networks: with initial weights; their config names the checkpoint.
      directory: the model directory.
      console: where to report what is loaded and what is not.
    """
    # Released models lack the file `checkpoint`.
    if paths := sorted(tf.io.gfile.glob(os.path.join(directory, "*.index"))):
        console.warning(
            f"{', '.join(paths[:3])}: not read, since {directory} has no file"
            " `checkpoint` that names the latest one; training starts from"
            " initial weights. Set init_checkpoint to start from it."
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
    if config.corrects:  # Only checkpoints of runs hold this head.
        patterns.append(f"^{CORRECTION_HEAD}/")
    report = assign(
        weights, networks.variables, allow_missing="|".join(patterns)
    )
    console.line(f"Starting from the weights of {report}")
    if "electra/encoder/layer_0/output/dense/bias" not in weights.shapes:
        return  # The settings of a generator alone are not the model's.
    for difference in list_unseen_differences(
        weights.hparams, config.as_dict()
    ):
        console.warning(
            f"{difference}; the weights were trained with the first value. Set"
            " it, unless you mean the change."
        )


def _open(path: str, with_correction_head: bool) -> Weights:
    """Open a checkpoint, with its correction head if the run has one.

    Other readers of checkpoints do not use the head.
    """
    weights = open_weights(path)
    scope = f"{CORRECTION_HEAD}/"
    dropped = any(name.startswith(scope) for name in weights.dropped)
    if with_correction_head and dropped:
        whole = open_weights(path, with_training_state=True)
        return strip_training_state(whole, keep=scope)
    return weights
