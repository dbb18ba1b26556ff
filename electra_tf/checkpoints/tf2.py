# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of this project: TensorFlow 2's format, keyed by names.

A checkpoint is a `tf.train.Checkpoint` of plain dictionaries: `model/<name>`,
`optimizer/m/<name>`, `optimizer/v/<name>`, `step`, and other state of a run
(the data position). The slots of adamw and lamb are under `optimizer/<value of
the hparam>/m/<name>`, and only the same optimizer can use them. The keys do not
depend on Python classes, so that code may move, and any set of variables can be
written without building its model.
"""

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints import tf1
from electra_tf.checkpoints.weights import (
    STEP_NAME,
    Weights,
    is_variable,
    variables_by_name,
)

_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
# Key that marks files whose source checkpoint had no step; the step in such
# files is 0.
_NO_STEP = "no_step"
# Keys of the slots in a file, by the suffixes of the original's names.
_MOMENTS = {"/adam_m": "m", "/adam_v": "v"}
_ORIGINAL = "original"
_OTHER_SLOTS = re.compile(r"optimizer/(\w+)/[mv]/")


def checkpoint_state(
    variables: Iterable[tf.Variable], optimizer: Any, step: tf.Variable
) -> dict[str, Any]:
    """Return the objects of a run that a native checkpoint saves, by key."""
    named = variables_by_name(variables)
    state: dict[str, Any] = {"model": named, "step": step}
    if optimizer is not None:
        slots, kind = {"m": optimizer.m, "v": optimizer.v}, optimizer.kind
        state["optimizer"] = slots if kind == _ORIGINAL else {kind: slots}
    return state


def optimizer_of(weights: Weights) -> str | None:
    """Return the kind of optimizer whose slots a checkpoint has, or None."""
    if weights.slots:
        return _ORIGINAL
    kinds = map(_OTHER_SLOTS.match, weights.dropped)
    return next((match[1] for match in kinds if match), None)


def is_native(prefix: str) -> bool:
    """Return whether a checkpoint has this project's format."""
    reader = tf1.load_reader(prefix)
    return all(map(reader.has_tensor, (tf1.OBJECT_GRAPH, "step" + _VALUE)))


def open_native(path: str) -> Weights:
    """Open a checkpoint that a run or `write_native` wrote."""
    prefix = tf1.find_checkpoint(path)
    keys, dropped = {}, {}
    reader = tf1.load_reader(prefix)
    has_no_step = reader.has_tensor(_NO_STEP + _VALUE)
    for key in sorted(reader.get_variable_to_shape_map()):
        if key == _NO_STEP + _VALUE or (has_no_step and key == "step" + _VALUE):
            continue
        if name := _name_of(key):
            keys[name] = key
        elif key != tf1.OBJECT_GRAPH and not key.startswith("save_counter"):
            dropped[key] = "state of the training run"
            if slots := _OTHER_SLOTS.match(key):
                dropped[key] = (
                    f"slots of optimizer {slots[1]}, which no other optimizer"
                    " can use"
                )
    return tf1.TensorFlowWeights(prefix, "native", keys, dropped)


def write_native(
    weights: Weights,
    prefix: str,
    overwrite: bool = False,
    complete: Callable[[], None] | None = None,
) -> None:
    """Write a checkpoint of this project, from which a run can start.

    Files get their names once they are complete, and the file `checkpoint`
    records them. A run in this folder continues from a checkpoint with slots
    and step, but reads its records from their start.

    Args:
      prefix: prefix of the files.
      overwrite: replace a checkpoint with the same prefix.
      complete: function that writes the files next to the checkpoint.

    Raises:
      UserError: files exist or cannot be written.
    """
    if tf.io.gfile.exists(prefix + ".index") and not overwrite:
        raise UserError(
            f"{prefix}: this checkpoint exists. Choose a different name, or"
            " pass --overwrite."
        )
    state: dict[str, Any] = {"model": {}, "optimizer": {"m": {}, "v": {}}}
    for name, value in weights:
        if is_variable(name):
            state["model"][name] = tf.Variable(value, name=name)
        elif name != STEP_NAME:
            variable, _, slot = name.rpartition("/")
            if variable not in weights.specs:
                raise UserError(
                    f"{weights.path}: {name} is the slot of a variable that is"
                    " missing. Pass --strip_optimizer."
                )
            slots = state["optimizer"][_MOMENTS[f"/{slot}"]]
            slots[variable] = tf.Variable(value, name=name)
    if weights.global_step is None:
        state[_NO_STEP] = tf.Variable(True)
    step = weights.global_step or 0
    state["step"] = tf.Variable(step, dtype=tf.int64, name=STEP_NAME)
    if not weights.slots:
        del state["optimizer"]
    directory = os.path.dirname(prefix)
    try:
        if directory:
            tf.io.gfile.makedirs(directory)
        written = tf.train.Checkpoint(**state).write(prefix + ".part")
        tf1.replace_files(written, prefix, complete)
        tf1.record_latest(directory or ".", [prefix])
    except (OSError, tf.errors.OpError) as error:
        raise UserError(
            f"{prefix} cannot be written: {error}. Choose a different path."
        ) from error


def _name_of(key: str) -> str | None:
    """Return the original's name for a checkpoint's key, or None."""
    if not key.endswith(_VALUE):
        return None
    first, _, rest = key.removesuffix(_VALUE).partition("/")
    if first == "step" and not rest:
        return STEP_NAME
    # TensorFlow escapes slashes and dots in keys of dictionaries.
    rest = re.sub(r"\.([S.])", lambda m: "/" if m[1] == "S" else ".", rest)
    if first == "model":
        return rest
    moment, _, name = rest.partition("/")
    for suffix, key_of_moment in _MOMENTS.items():
        if (first, moment) == ("optimizer", key_of_moment):
            return name + suffix
    return None
