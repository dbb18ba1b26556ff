# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of a run's directory, and deletion of the directory."""

import dataclasses
import os

import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints import formats
from electra_tf.files.digests import DIGESTS_FILE
from electra_tf.files.locks import LOCK_FILE
from electra_tf.text.tokenizer_settings import TOKENIZER_CONFIG
from electra_tf.training import checkpointing, curves, logs

REWINDS_FILE = "rewinds.jsonl"

# Names of files that runs of all kinds write to the run's directory.
_NAMES = (
    "checkpoint",
    # Files of the original's Estimator.
    "eval",
    "graph.pbtxt",
    formats.BEST,
    formats.ELECTRA_CONFIG,
    *formats.VOCAB_FILES,
    TOKENIZER_CONFIG,
    DIGESTS_FILE,
    checkpointing.CONFIG_FILE,
    curves.CURVES_FILE,
    logs.TENSORBOARD_DIR,
    formats.TRAIN_LOG,
    logs.EVAL_LOG,
    REWINDS_FILE,
    LOCK_FILE,
)
_PREFIXES = (
    checkpointing.CHECKPOINT_NAME,
    "checkpoint.tmp",
    "events.out.tfevents.",
    "non_finite_step_",
)


@dataclasses.dataclass(frozen=True)
class RunFiles:
    """Files that one kind of run writes besides the files of all runs."""

    kind: str  # kind of the run, for messages
    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()

    def include(self, name: str) -> bool:
        """Return whether a run of this kind writes a file of this name."""
        return (
            name in (*_NAMES, *self.names)
            or name.startswith((*_PREFIXES, *self.prefixes))
            or name.endswith(self.suffixes)
        )


def remove_run(path: str, files: RunFiles) -> bool:
    """Delete a run's directory; return False if it does not exist.

    Raises:
      UserError: the path is a link, or the directory contains files that are
        not the run's.
    """
    if not tf.io.gfile.exists(path):
        return False
    entries = list(tf.io.gfile.listdir(path))
    if tf.io.gfile.isdir(results := os.path.join(path, "results")):
        entries += [f"results/{name}" for name in tf.io.gfile.listdir(results)]
    # `listdir` may append a slash to directories, and a killed run leaves
    # unfinished files with the suffix .tmp.
    names = [entry.rstrip("/").removesuffix(".tmp") for entry in entries]
    if os.path.islink(path.rstrip("/")):
        raise UserError(
            f"Refusing to delete {path}: it is a symbolic link. Remove the link"
            " yourself, or choose a different model_dir."
        )
    foreign = sorted(name for name in names if not files.include(name))
    if foreign:
        raise UserError(
            f"Refusing to delete {path}: it contains files that no {files.kind}"
            f" run writes ({', '.join(foreign[:5])}). Move these files away, or"
            " choose a different model_dir."
        )
    tf.io.gfile.rmtree(path)
    return True
