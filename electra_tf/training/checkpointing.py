# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints from which a run continues with identical results."""

import dataclasses
import os
from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf

from configure.errors import UserError, append_to_errors
from configure.finetuning import FinetuningConfig
from configure.formatting import limit_lines
from configure.pretraining import PretrainingConfig
from configure.values import coerce
from electra_tf.checkpoints import formats, tf1, tf2
from electra_tf.checkpoints.assignment import Coverage, assign
from electra_tf.checkpoints.contents import Contents
from electra_tf.checkpoints.weights import Weights
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json
from electra_tf.optimization.optimizer import OptimizerState

CHECKPOINT_NAME = "model.ckpt"  # followed by -STEP, as in the original
CONFIG_FILE = "config.json"
# Suffix of the folder in which TensorFlow collects a checkpoint's parts.
_UNFINISHED = "_temp"


@dataclasses.dataclass
class Checkpoints:
    """Checkpoints of a run: model, optimizer, step and data position."""

    directory: str  # folder from which checkpoints are read
    _: dataclasses.KW_ONLY
    model: tf.Module
    optimizer: OptimizerState
    step: tf.Variable  # int64 scalar, completed updates
    # Objects that store the position in the data, such as the data iterator, by
    # checkpoint key.
    position: dict[str, Any]
    keep: int | None  # number of latest checkpoints to keep; 0 or None: all
    # Checkpoints at multiples of this number of steps are never removed; 0:
    # `keep` applies to all checkpoints.
    keep_every: int = 0
    write_directory: str = ""  # folder of new checkpoints; "": `directory`
    # Further objects to save, by checkpoint key; a checkpoint without these
    # objects can be loaded, too.
    extras: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.write_directory = self.write_directory or self.directory
        self._state = tf2.checkpoint_state(
            self.model.variables, self.optimizer, self.step
        )
        state = {**self._state, **self.extras}
        self._without_position = tf.train.Checkpoint(**state)
        self._whole = tf.train.Checkpoint(**state, **self.position)

    @property
    def latest(self) -> str | None:
        """Path of the latest checkpoint; None if no checkpoint exists.

        Raises:
          UserError: files of the checkpoint are missing or incomplete.
        """
        recorded = tf1.list_recorded(self.directory)
        path = tf1.find_latest(self.directory)
        if path is None and recorded:
            others = map(os.path.basename, _list_complete(self.directory))
            raise UserError(
                f"{os.path.join(self.directory, tf1.STATE)} names"
                f" {os.path.basename(recorded[-1])}, whose files are missing or"
                " incomplete. Complete checkpoints:"
                f" {', '.join(others) or 'none'}. Copy the missing files back,"
                f" name a different checkpoint in the file {tf1.STATE}, or pass"
                " --overwrite to train from the beginning."
            )
        return path

    def save(self) -> str:
        """Write `model.ckpt-<step>`, and remove old checkpoints.

        `keep` and `keep_every` determine which checkpoints are removed.
        A kill at any time leaves the latest complete checkpoint readable: the
        file `checkpoint` names a new checkpoint only once its files are
        complete, and old checkpoints are removed only after that.
        """
        prefix = self._prefix(self.write_directory)
        _write(self._whole, prefix)
        paths = [p for p in _list_complete(self.write_directory) if p != prefix]
        paths.append(prefix)
        tf1.record_latest(self.write_directory, paths)
        surplus = self._surplus(paths)
        for path in surplus:
            tf1.remove_checkpoint(path)
        if surplus:
            paths = [path for path in paths if path not in surplus]
            tf1.record_latest(self.write_directory, paths)
        return prefix

    def save_best(self, directory: str) -> str:
        """Write a checkpoint to a folder, as the folder's only checkpoint.

        The checkpoint does not contain the data position.
        """
        prefix = self._prefix(directory)
        tf.io.gfile.makedirs(directory)
        former_paths = _list_complete(directory)
        _write(self._without_position, prefix)
        tf1.record_latest(directory, [prefix])
        for path in former_paths:
            if path != prefix:
                tf1.remove_checkpoint(path)
        return prefix

    def restore(
        self,
        path: str,
        with_position: bool = True,
        exclude: Collection[str] = (),
    ) -> bool:
        """Load a checkpoint; return whether its data position was loaded, too.

        Args:
          path: prefix of the checkpoint.
          with_position: whether to load the position, if the checkpoint
            contains it.
          exclude: parts of the position that are not loaded.

        Raises:
          UserError: the checkpoint is corrupt, or belongs to a different model
            or optimizer.
        """
        weights = formats.open_weights(path, with_training_state=True)
        check_same_variables(weights, self.model.variables)
        stored_kind, kind = tf2.optimizer_of(weights), self.optimizer.kind
        if stored_kind not in (None, kind):
            raise UserError(
                f"{path} contains the slots of optimizer {stored_kind!r}, from"
                f" which optimizer {kind!r} cannot continue. Set optimizer to"
                f" {stored_kind!r}, or start from the weights only: pass"
                " --init_checkpoint with a different --model_dir."
            )
        if weights.kind != "native":
            report = assign(
                weights, self.model.variables, optimizer=self.optimizer
            )
            self.step.assign(report.global_step or 0)
            return False
        if stored_kind is None:
            raise UserError(
                f"{path} contains no Adam slots, which continued training"
                " requires. To start from the weights only, pass"
                " --init_checkpoint with a different --model_dir."
            )
        stored = {key.split("/")[0] for key in weights.dropped}
        with_position = with_position and stored.issuperset(self.position)
        state = {k: v for k, v in self.extras.items() if k in stored}
        if with_position:
            position = self.position.items()
            state |= {k: v for k, v in position if k not in exclude}
        try:
            status = tf.train.Checkpoint(**self._state, **state).read(path)
            status.assert_existing_objects_matched()
        except (
            IndexError,  # a truncated data file raises an IndexError
            tf.errors.DataLossError,
            tf.errors.OutOfRangeError,
        ) as error:
            raise UserError(self._damaged(path, error)) from error
        except (ValueError, AssertionError, tf.errors.OpError) as error:
            raise UserError(
                f"checkpoint {path} does not match this run: {error}. Choose a"
                " different model_name, or pass --overwrite to train from the"
                " beginning."
            ) from error
        if exclude or not with_position:
            status.expect_partial()
        return with_position

    def _damaged(self, path: str, error: Exception) -> str:
        """Return the error message about a truncated or corrupt checkpoint."""
        text = (
            f"checkpoint {path} cannot be read: {error}. The data file is"
            " corrupt or truncated. Copy the checkpoint again."
        )
        others = [p for p in _list_complete(self.directory) if p != path]
        if not others:
            return text
        return (
            f"{text} To continue from an earlier checkpoint instead, set"
            f" model_checkpoint_path in the file {tf1.STATE} to"
            f" {os.path.basename(others[-1])}."
        )

    def _prefix(self, directory: str) -> str:
        name = f"{CHECKPOINT_NAME}-{int(self.step.numpy())}"
        return os.path.join(directory, name)

    def _surplus(self, paths: list[str]) -> list[str]:
        """Return the checkpoints of this project that `save` has to remove."""
        if not self.keep:
            return []
        surplus = []
        for path in paths[: -self.keep]:
            number = path.rpartition("-")[2]
            step = int(number) if self.keep_every and number.isdigit() else 0
            is_milestone = step > 0 and step % self.keep_every == 0
            if not is_milestone and tf2.is_native(path):
                surplus.append(path)
        return surplus


def _list_complete(directory: str) -> list[str]:
    """Return the prefixes of recorded checkpoints whose files exist."""
    recorded = tf1.list_recorded(directory)
    return [path for path in recorded if tf.io.gfile.exists(path + ".index")]


def _write(checkpoint: tf.train.Checkpoint, prefix: str) -> None:
    try:
        checkpoint.write(prefix)
    except (OSError, tf.errors.OpError) as error:
        tf1.remove_tree(f"{prefix}{_UNFINISHED}")
        raise UserError(
            f"checkpoint {prefix} cannot be written: {error}. Earlier"
            " checkpoints are complete. Free some space or correct the"
            " permissions, and run the same command again."
        ) from error


def sweep(directory: str) -> None:
    """Remove the unfinished checkpoints that a killed run left in a folder."""
    if tf.io.gfile.isdir(directory):
        for name in map(str, tf.io.gfile.listdir(directory)):
            name = name.rstrip("/")
            path = os.path.join(directory, name)
            if name.startswith(CHECKPOINT_NAME) and name.endswith(_UNFINISHED):
                tf1.remove_tree(path)
            # TensorFlow writes the file `checkpoint` under this temporary name.
            elif name.startswith("checkpoint.tmp"):
                tf.io.gfile.remove(path)


def restore_model(path: str, model: tf.Module, step: tf.Variable) -> Coverage:
    """Load a checkpoint's weights and step; a missing step becomes 0."""
    weights = formats.open_weights(path, with_training_state=True)
    check_same_variables(weights, model.variables)
    report = assign(weights, model.variables)
    step.assign(report.global_step or 0)
    return report


def check_same_variables(
    weights: Weights, variables: list[tf.Variable]
) -> None:
    """Raise a UserError if a checkpoint and a model have different variables.

    The names and the shapes are compared.
    """
    named = tf2.variables_by_name(variables)
    shapes = {name: tuple(v.shape) for name, v in named.items()}
    lines = []
    for name in sorted(weights.shapes.keys() | shapes.keys()):
        saved_shape, shape = weights.shapes.get(name), shapes.get(name)
        if saved_shape != shape:
            lines.append(_describe_difference(name, saved_shape, shape))
    if not lines:
        return
    lines = limit_lines(lines) + weights.contents.differences(Contents(shapes))
    raise UserError(
        f"checkpoint {weights.path} belongs to a different model:\n"
        + "\n".join(lines)
        + "\nRestore the hparams of the checkpoint, choose a different"
        " model_name, or pass --overwrite to train from the beginning."
    )


def _describe_difference(
    name: str,
    saved_shape: tuple[int, ...] | None,
    shape: tuple[int, ...] | None,
) -> str:
    if saved_shape is None:
        return f"{name}: the checkpoint does not contain this variable"
    if shape is None:
        return f"{name}: this model does not contain this variable"
    return (
        f"{name}: the shape is {[*saved_shape]} in the checkpoint, but"
        f" {[*shape]} in this model"
    )


def read_config(directory: str) -> dict[str, object] | None:
    """Return the hparams in a run's `config.json`; None without this file.

    Raises:
      UserError: the file is damaged, or an hparam has a value of another type.
    """
    path = os.path.join(directory, CONFIG_FILE)
    if not tf.io.gfile.exists(path):
        return None
    remedy = (
        f"Restore {path}, or remove this file to accept any checkpoint in the"
        " folder."
    )
    with append_to_errors(lambda: [remedy]):
        values = read_json(path)
        try:
            return {**values, **_convert_hparams(values)}
        except UserError as error:
            raise UserError(f"{path}: {error}") from error


def _convert_hparams(values: Mapping[str, object]) -> dict[str, object]:
    """Return the hparams among a file's values, with their declared types.

    The result is empty if another program wrote the file.
    """
    if "model_size" not in values:
        return {}
    kind = FinetuningConfig if "task_names" in values else PretrainingConfig
    defaults = kind.default_hparams()
    hparams = {}
    for name, declared in kind.field_types().items():
        if name not in values:
            continue
        value = values[name]
        # Null is the default of hparams that other hparams determine.
        is_unset = value is None and defaults.get(name, "") is None
        hparams[name] = None if is_unset else coerce(name, value, declared)
    return hparams


def write_config(directory: str, text: str) -> None:
    """Write the resolved hparams (JSON text) next to the checkpoints."""
    write_atomically(os.path.join(directory, CONFIG_FILE), text)
