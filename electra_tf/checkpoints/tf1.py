# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading the original's TF1 checkpoints."""

from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints.prefixes import find_checkpoint as find_checkpoint
from electra_tf.checkpoints.restore import Coverage, assign
from electra_tf.checkpoints.tf1_writer import write_tf1 as write_tf1
from electra_tf.checkpoints.weights import TensorSpec, Weights

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def open_tf1(path: str) -> Weights:
    """Opens a checkpoint whose tensors are keyed by variable names.

    Args:
      path: its prefix, one of its files, or a directory, whose newest is
        taken.

    Returns:
      Every tensor in it, unknown ones too, under the name it has.

    Raises:
      UserError: if there is none, files of it are missing or damaged, or it
        is keyed by objects as TensorFlow 2 does.
    """
    return _Tf1Weights(find_checkpoint(path))


class _Tf1Weights(Weights):
    """Reads tensors by name, one at a time."""

    def __init__(self, prefix: str) -> None:
        self._reader = load_reader(prefix)
        shapes = self._reader.get_variable_to_shape_map()
        dtypes = self._reader.get_variable_to_dtype_map()
        if OBJECT_GRAPH in shapes:
            raise UserError(
                f"{prefix}: keyed by objects, as TensorFlow 2 writes, not by"
                " variable names as the original's checkpoints are."
            )
        specs = {
            name: TensorSpec(
                tuple(shapes[name]), np.dtype(dtypes[name].as_numpy_dtype)
            )
            for name in sorted(shapes)
        }
        super().__init__(prefix, "tf1", specs)

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        return _read(self._reader, self.path, name)


def load_reader(prefix: str) -> Any:
    """Returns TensorFlow's reader of a checkpoint's index.

    Args:
      prefix: of its files.

    Raises:
      UserError: if the index cannot be read.
    """
    try:
        return tf.train.load_checkpoint(prefix)
    except (tf.errors.OpError, ValueError) as error:
        raise UserError(
            f"{prefix}: unreadable checkpoint: {error}. Its .index file is"
            " damaged or cut short; copy the checkpoint again."
        ) from error


def restore(model: Any, path: str, allow_missing: bool = False) -> Coverage:
    """Restores a model's variables from a checkpoint of the original.

    Args:
      model: a tf_keras model (or tf.Module) whose variables carry the
        original's names.
      path: prefix or directory of the checkpoint.
      allow_missing: whether the model may have variables that the checkpoint
        lacks; they keep their values.

    Returns:
      The report; nothing has been changed if an error is raised.

    Raises:
      UserError: if there is no checkpoint, its data are damaged or cut short,
        a shape differs (the message names the hparam to change), or a variable
        is missing unless allowed.

    Source: google-research/electra, model/modeling.py,
    get_assignment_map_from_checkpoint.
    Differs: what does not match is reported and by default refused.
    """
    return assign(
        open_tf1(path), model.variables, missing_is_fine=allow_missing
    )


def _read(reader: Any, prefix: str, name: str) -> np.ndarray:
    """Returns a tensor; raises a UserError where its bytes are not there."""
    try:
        return np.asarray(reader.get_tensor(name))
    except (tf.errors.OpError, IndexError, ValueError) as error:
        # A cut data file gives an IndexError.
        raise UserError(
            f"{prefix}: cannot read {name}: {error}. The data file is damaged, "
            "cut short or missing; copy the checkpoint again."
        ) from error
