# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of pre-trained weights: a whole model, or separate networks."""

import contextlib
import functools
import os
from collections.abc import Mapping

from configure.errors import UserError
from electra_tf.checkpoints import formats, tf1
from electra_tf.checkpoints.weights import ModelWeights, Weights, select_part
from electra_tf.pretraining.networks import Networks

EXPORT = "export"  # folder of the exported networks


def write_pretrained(
    weights: Weights,
    folder: str,
    hparams: Mapping[str, object],
    vocab_file: str,
) -> str:
    """Write weights, settings and vocabulary to a folder.

    Args:
      weights: weights of the model or of one of its networks.
      folder: folder, which is created.
      hparams: hparams of the model.
      vocab_file: vocabulary of the model.

    Returns:
      Prefix of the weights' files.
    """
    prefix = os.path.join(folder, "model.ckpt")
    complete = functools.partial(
        formats.complete_folder, folder, hparams, vocab_file
    )
    weights = formats.strip_training_state(weights)
    tf1.write_tf1(weights, prefix, overwrite=True, complete=complete)
    return prefix


def export_parts(
    networks: Networks,
    step: int,
    directory: str,
    only_missing: bool = False,
) -> list[str]:
    """Write each network to a separate folder in `<directory>/export`.

    The folders `discriminator` and `generator` each contain a checkpoint in the
    original's format, `electra_config.json` and `vocab.txt`, which suffice for
    fine-tuning or for other programs.

    Args:
      networks: networks with the weights to write.
      step: number of completed updates.
      directory: model directory.
      only_missing: whether a folder with this step's weights is kept.

    Returns:
      Prefixes of the weights' files that were written.
    """
    hparams, vocab_file = networks.config.as_dict(), networks.config.vocab_file
    weights = ModelWeights(networks.variables, step, directory)
    prefixes = []
    for name in ("discriminator", "generator"):
        if not weights.contents.holds(name):
            continue
        folder = os.path.join(directory, EXPORT, name)
        if only_missing and _stored_step(folder) == step:
            continue
        part = select_part(weights, name)
        prefixes.append(write_pretrained(part, folder, hparams, vocab_file))
    return prefixes


def _stored_step(folder: str) -> int | None:
    """Return the step of a folder's weights, or None if they are unreadable."""
    with contextlib.suppress(UserError):
        return formats.open_weights(folder).global_step
    return None
