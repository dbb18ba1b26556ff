# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saving a run and continuing it to the bit."""

import json
import os
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from configure.errors import UserError
from electra_tf.checkpoints.tf1 import shape_hint

CHECKPOINT_NAME = "model.ckpt"  # model.ckpt-N, as the original names them.
CONFIG_FILE = "config.json"
_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"


class Checkpoints:
    """The checkpoints of one run: model, optimizer, step and data position."""

    def __init__(
        self,
        directory: str,
        *,
        model: tf.Module,
        optimizer: Any,
        step: tf.Variable,
        position: dict[str, Any],
        keep: int | None,
        write_directory: str | None = None,
    ) -> None:
        """Ties the objects of a run to a directory; reads and writes nothing.

        Args:
          directory: where the checkpoints are.
          model: holds the weights.
          optimizer: holds the slots.
          step: int64 scalar, updates done so far.
          position: what else an exact continuation needs (the data iterator,
            the sums of the log); left out when the data settings changed.
          keep: newest checkpoints kept; 0 or None keeps all.
          write_directory: for workers other than the chief: where their copy
            goes.
        """
        self.directory = directory
        self._model = model
        self._step = step
        self._state = {"model": model, "optimizer": optimizer, "step": step}
        self._manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(**self._state, **position),
            write_directory or directory,
            max_to_keep=keep or None,
            checkpoint_name=CHECKPOINT_NAME,
        )

    @property
    def latest(self) -> str | None:
        """Prefix of the newest checkpoint, or None."""
        return tf.train.latest_checkpoint(self.directory)

    def save(self) -> str:
        """Writes `model.ckpt-<step>` and removes what is over the limit."""
        return self._manager.save(checkpoint_number=int(self._step.numpy()))

    def restore(self, path: str, with_position: bool = True) -> None:
        """Loads a checkpoint, strictly.

        Args:
          path: checkpoint prefix.
          with_position: also the data position and the sums of the log.

        Raises:
          UserError: for a checkpoint of another model, or one written by the
            original code (which has no optimizer state of this form).
        """
        check_shapes(path, self._model.variables)
        if with_position:
            checkpoint = self._manager.checkpoint
        else:
            checkpoint = tf.train.Checkpoint(**self._state)
        try:
            status = checkpoint.restore(path)
            status.assert_existing_objects_matched()
        except (ValueError, AssertionError, tf.errors.OpError) as error:
            raise UserError(
                f"checkpoint {path} does not fit this run: {error}. Use another"
                " model_name, or --overwrite to start this one anew."
            ) from error
        if not with_position:
            status.expect_partial()


def restore_model(path: str, model: tf.Module, step: tf.Variable) -> None:
    """Loads the weights and the step only, for evaluation.

    Args:
      path: prefix of a checkpoint that `Checkpoints.save` wrote.
      model: as it was saved.
      step: int64 scalar.

    Raises:
      UserError: for a checkpoint of another model.
    """
    check_shapes(path, model.variables)
    status = tf.train.Checkpoint(model=model, step=step).restore(path)
    status.assert_existing_objects_matched()
    status.expect_partial()


def is_name_based(path: str) -> bool:
    """Whether a checkpoint is of the original's (TensorFlow 1) kind."""
    return not tf.train.load_checkpoint(path).has_tensor(_GRAPH_KEY)


def check_shapes(path: str, variables: list[tf.Variable]) -> None:
    """Compares the model's variables with a checkpoint before it is loaded.

    Args:
      path: checkpoint prefix.
      variables: the model's.

    Raises:
      UserError: naming up to five variables of other shapes, missing or
        unexpected, and the hparams that set those shapes.
    """
    reader = tf.train.load_checkpoint(path)
    if not reader.has_tensor(_GRAPH_KEY):
        raise UserError(
            f"checkpoint {path} is of the original's TensorFlow 1 kind; it can"
            " be evaluated (do_eval) but not continued. Choose another"
            " model_name to train."
        )
    saved = _saved_model_shapes(reader)
    wanted = {
        variable.name.split(":")[0]: tuple(variable.shape)
        for variable in variables
    }
    problems = []
    for name in sorted(saved.keys() | wanted.keys()):
        if saved.get(name) != wanted.get(name):
            problems.append((name, saved.get(name), wanted.get(name)))
    if not problems:
        return
    lines = [
        f"  {name}: checkpoint {_shape_text(old)}, this model"
        f" {_shape_text(new)} (see {_hparam(name, old, new)})"
        for name, old, new in problems[:5]
    ]
    if len(problems) > 5:
        lines.append(f"  ... and {len(problems) - 5} more")
    raise UserError(
        f"checkpoint {path} is of another model:\n"
        + "\n".join(lines)
        + "\nSet these hparams as they were, choose another model_name, or use"
        " --overwrite to start this one anew."
    )


def read_config(directory: str) -> dict[str, Any] | None:
    """The hparams a run was started with, or None when there are none."""
    path = os.path.join(directory, CONFIG_FILE)
    if not tf.io.gfile.exists(path):
        return None
    try:
        with tf.io.gfile.GFile(path) as file:
            return json.load(file)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path} is not JSON ({error}); restore it, or remove it to accept"
            " whatever the checkpoints hold."
        ) from error


def write_config(directory: str, text: str) -> None:
    """Writes the resolved hparams (JSON text) beside the checkpoints."""
    path = os.path.join(directory, CONFIG_FILE)
    with tf.io.gfile.GFile(path + ".tmp", "w") as file:
        file.write(text)
    tf.io.gfile.rename(path + ".tmp", path, overwrite=True)


def changed(
    before: dict[str, Any], now: dict[str, Any], names: tuple[str, ...]
) -> list[str]:
    """Texts `name: old -> new` of the named hparams that differ."""
    plain = json.loads(json.dumps(now))  # As they read back from a file.
    return [
        f"{name}: {before[name]!r} -> {plain[name]!r}"
        for name in names
        if name in before and name in plain and before[name] != plain[name]
    ]


def _saved_model_shapes(reader) -> dict[str, tuple[int, ...]]:
    """Shapes of the saved variables that hang on the root's `model`."""
    graph = trackable_object_graph_pb2.TrackableObjectGraph()
    graph.ParseFromString(reader.get_tensor(_GRAPH_KEY))
    shapes = reader.get_variable_to_shape_map()
    found, seen = {}, set()
    waiting = [
        child.node_id
        for child in graph.nodes[0].children
        if child.local_name == "model"
    ]
    while waiting:
        index = waiting.pop()
        if index in seen:
            continue
        seen.add(index)
        node = graph.nodes[index]
        waiting.extend(child.node_id for child in node.children)
        for attribute in node.attributes:
            if attribute.checkpoint_key in shapes and attribute.full_name:
                shape = shapes[attribute.checkpoint_key]
                found[attribute.full_name] = tuple(shape)
    return found


def _shape_text(shape: tuple[int, ...] | None) -> str:
    return "does not have it" if shape is None else str(list(shape))


def _hparam(
    name: str, old: tuple[int, ...] | None, new: tuple[int, ...] | None
) -> str:
    """Names the hparam behind a variable that differs or is on one side."""
    if old is not None and new is not None:
        return shape_hint(name, old, new)
    if "/encoder/layer_" not in name:
        return "the objective and generator hparams"
    if name.startswith("generator"):
        return "generator_layers"
    return "model_size or model_hparam_overrides.num_hidden_layers"
