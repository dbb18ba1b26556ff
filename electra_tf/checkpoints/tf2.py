# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Our own checkpoints: TensorFlow 2's format, keyed by variable names.

A `tf.train.Checkpoint` of plain dictionaries: `model/<name>`,
`optimizer/m/<name>`, `optimizer/v/<name>` and `step`, beside whatever else a
run saves (the data position). The keys do not depend on Python classes, so
that code may move without stranding a file, and any set of variables can be
written without building the model it belongs to.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints import find_checkpoint as tf1_writer
from electra_tf.checkpoints.find_checkpoint import find_checkpoint
from electra_tf.checkpoints.weights import (
    SLOT_SUFFIXES,
    STEP_NAME,
    TensorSpec,
    Weights,
    is_variable,
)

_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_MOMENTS = {"/adam_m": "m", "/adam_v": "v"}


def variables_by_name(
    variables: Iterable[tf.Variable],
) -> dict[str, tf.Variable]:
    """Keys variables by the original's names."""
    named: dict[str, tf.Variable] = {}
    for variable in variables:
        name = variable.name.split(":")[0]
        if name in named:
            raise ValueError(f"Two variables are named {name}.")
        named[name] = variable
    return named


def checkpoint_state(
    variables: Iterable[tf.Variable], optimizer: Any, step: tf.Variable
) -> dict[str, Any]:
    """What of a run goes into a native checkpoint, under its keys.

    Args:
      optimizer: has the slots `m` and `v` by variable name; None for none.
      step: int64 scalar, updates done.
    """
    state: dict[str, Any] = {
        "model": variables_by_name(variables),
        "step": step,
    }
    if optimizer is not None:
        state["optimizer"] = {"m": optimizer.m, "v": optimizer.v}
    return state


def is_native(prefix: str) -> bool:
    """Whether a checkpoint's prefix belongs to this format."""
    reader = _reader(prefix)
    return reader.has_tensor(_GRAPH_KEY) and reader.has_tensor("step" + _VALUE)


def open_native(path: str) -> Weights:
    """Opens a checkpoint that a run or `write_native` wrote."""
    return _NativeWeights(find_checkpoint(path))


class _NativeWeights(Weights):
    """Reads tensors by key."""

    def __init__(self, prefix: str) -> None:
        if not is_native(prefix):
            raise UserError(
                f"{prefix}: not a checkpoint of this project (it has no `step`"
                " and `model` as those have)."
            )
        self._reader = _reader(prefix)
        shapes = self._reader.get_variable_to_shape_map()
        dtypes = self._reader.get_variable_to_dtype_map()
        self._keys: dict[str, str] = {}
        dropped = {}
        for key in sorted(shapes):
            name = _name_of(key)
            if name is not None:
                self._keys[name] = key
            elif key != _GRAPH_KEY and not key.startswith("save_counter"):
                dropped[key] = "state of the training run"
        specs = {
            name: TensorSpec(
                tuple(shapes[key]), np.dtype(dtypes[key].as_numpy_dtype)
            )
            for name, key in self._keys.items()
        }
        super().__init__(prefix, "native", specs, dropped)

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        try:
            return np.asarray(self._reader.get_tensor(self._keys[name]))
        except (tf.errors.OpError, IndexError, ValueError) as error:
            raise UserError(
                f"{self.path}: cannot read {name}: {error}. The data file is"
                " damaged, cut short or missing; copy the checkpoint again."
            ) from error


def write_native(
    weights: Weights, prefix: str, overwrite: bool = False
) -> None:
    """Writes tensors as a checkpoint that a run can start from.

    The files appear under their names when they are complete. With slots and
    step, a run whose model directory holds the file (and a `checkpoint` file
    naming it, which is written too) continues from it; its records are read
    from their start.
    """
    if tf.io.gfile.exists(prefix + ".index") and not overwrite:
        raise UserError(
            f"{prefix}: there is a checkpoint already; choose another name or"
            " pass --overwrite."
        )
    state: dict[str, Any] = {"model": {}, "optimizer": {"m": {}, "v": {}}}
    for name, value in weights:
        if is_variable(name):
            state["model"][name] = _variable(name, value)
        elif name != STEP_NAME:
            variable, moment = _slot_parts(name)
            if variable not in weights.specs:
                raise UserError(f"{weights.path}: {name} has no variable.")
            state["optimizer"][moment][variable] = _variable(name, value)
    step = weights.global_step or 0
    state["step"] = tf.Variable(step, dtype=tf.int64, name=STEP_NAME)
    if not weights.slots:
        del state["optimizer"]
    directory = os.path.dirname(prefix)
    try:
        if directory:
            tf.io.gfile.makedirs(directory)
        written = tf.train.Checkpoint(**state).write(prefix + ".part")
        _rename(written, prefix)
        record_newest(directory or ".", [prefix])
    except (OSError, tf.errors.OpError) as error:
        raise UserError(f"{prefix} cannot be written: {error}") from error


def record_newest(directory: str, prefixes: list[str]) -> None:
    """Writes the file `checkpoint`, which names the newest one."""
    names = [os.path.basename(prefix) for prefix in prefixes]
    lines = [f'model_checkpoint_path: "{names[-1]}"'] if names else []
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
    path = os.path.join(directory, "checkpoint")
    with tf.io.gfile.GFile(path + ".tmp", "w") as file:
        file.write("\n".join(lines) + "\n")
    tf.io.gfile.rename(path + ".tmp", path, overwrite=True)


def _rename(written: str, prefix: str) -> None:
    """Gives the files their names, the index last: it makes a checkpoint."""
    # An old index must not be seen beside new data.
    for path in tf1_writer.files_of(prefix):
        tf.io.gfile.remove(path)
    files = tf.io.gfile.glob(glob_escape(written) + ".*")
    for path in sorted(files, key=lambda name: name.endswith(".index")):
        suffix = path[len(written) :]
        tf.io.gfile.rename(path, prefix + suffix, overwrite=True)


def glob_escape(path: str) -> str:
    """Quotes what a pattern would take as a wildcard."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)


def _variable(name: str, value: np.ndarray) -> tf.Variable:
    return tf.Variable(value, name=name, trainable=False)


def _slot_parts(name: str) -> tuple[str, str]:
    """Variable and moment of a slot's name."""
    for suffix, moment in _MOMENTS.items():
        if name.endswith(suffix):
            return name.removesuffix(suffix), moment
    raise ValueError(f"{name} is not a slot.")


def _name_of(key: str) -> str | None:
    """The original's name for a checkpoint key, None where it has none."""
    if not key.endswith(_VALUE):
        return None
    first, _, rest = key.removesuffix(_VALUE).partition("/")
    if first == "step" and not rest:
        return STEP_NAME
    if first == "model":
        return _unescape(rest)
    if first == "optimizer":
        moment, _, name = rest.partition("/")
        for suffix in SLOT_SUFFIXES:
            if _MOMENTS[suffix] == moment:
                return _unescape(name) + suffix
    return None


def _unescape(part: str) -> str:
    """Undoes what TensorFlow does to keys of a dictionary."""
    return re.sub(r"\.([S.])", lambda m: "/" if m[1] == "S" else ".", part)


def _reader(prefix: str) -> Mapping[str, Any]:
    try:
        return tf.train.load_checkpoint(prefix)
    except (tf.errors.OpError, ValueError) as error:
        raise UserError(
            f"{prefix}: unreadable checkpoint: {error}. Its .index file is"
            " damaged or cut short; copy the checkpoint again."
        ) from error
