# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a run leaves in its directory, and deleting nothing but that."""

import os
from collections.abc import Collection

import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints import electra_config
from electra_tf.training import checkpointing, summaries

OWN_NAMES = (
    "checkpoint",
    checkpointing.DIRECTORY,
    electra_config.FILE_NAME,
    checkpointing.CONFIG_FILE,
    summaries.CURVES_FILE,
    summaries.TENSORBOARD_DIR,
    summaries.TRAIN_LOG,
    summaries.EVAL_LOG,
)
OWN_PREFIXES = (
    checkpointing.CHECKPOINT_NAME,
    "checkpoint.tmp",
    "non_finite_step_",
)


def remove_run(
    path: str,
    kind: str,
    names: Collection[str] = (),
    prefixes: Collection[str] = (),
    lead: str = "",
) -> None:
    """Deletes the directory of a run."""
    # Without the slash of a directory and what an unfinished write adds.
    entries = [
        entry.rstrip("/").removesuffix(".tmp")
        for entry in tf.io.gfile.listdir(path)
    ]
    own_names = {*OWN_NAMES, *names}
    own_prefixes = (*OWN_PREFIXES, *prefixes)
    strange = [
        name
        for name in entries
        if name not in own_names and not name.startswith(own_prefixes)
    ]
    if strange or os.path.islink(path.rstrip("/")):
        raise UserError(
            f"{lead}{path} is not deleted, since it holds what is not of"
            f" a {kind} run ({', '.join(sorted(strange)[:5]) or 'a link'})."
            " Remove those yourself or choose another model_dir."
        )
    tf.io.gfile.rmtree(path)
