# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saving a run and continuing it to the bit."""

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from configure.formatting import limit_lines
from electra_tf.checkpoints import formats, tf1, tf2
from electra_tf.checkpoints.assignment import Coverage, assign
from electra_tf.checkpoints.contents import Contents
from electra_tf.checkpoints.sizes import list_changes
from electra_tf.checkpoints.weights import Weights
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json
from electra_tf.metrics.direction import lower_is_better

CHECKPOINT_NAME = "model.ckpt"  # model.ckpt-N, as the original names them.
CONFIG_FILE = "config.json"
# Ends the folder in which TensorFlow gathers a checkpoint.
_UNFINISHED = "_temp"


@dataclasses.dataclass
class Checkpoints:
    """The checkpoints of one run: model, optimizer, step and data position."""

    directory: str  # where they are read
    _: dataclasses.KW_ONLY
    model: tf.Module
    optimizer: Any
    step: tf.Variable  # int64 scalar, updates done so far
    position: dict[str, Any]  # what else is continued: the data iterator
    keep: int | None  # newest checkpoints kept; 0 or None keeps all
    keep_every: int = 0  # steps whose multiples are kept beyond these
    write_directory: str = ""  # where they are written; "": the same
    # What a checkpoint may lack.
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
        """The newest checkpoint, or None where there was never one."""
        named = tf1.list_recorded(self.directory)
        found = tf1.find_latest(self.directory)
        if found is None and named:
            others = map(os.path.basename, _listed(self.directory))
            raise UserError(
                f"{os.path.join(self.directory, tf1.STATE)} names"
                f" {os.path.basename(named[-1])},"
                " whose files are missing or incomplete. Still there:"
                f" {', '.join(others) or 'none'}. Copy the missing files back,"
                " correct that file to name another one, or use --overwrite to"
                " start this run anew."
            )
        return found

    def save(self) -> str:
        """Writes `model.ckpt-<step>` and removes what is over the limit.

        A kill at any moment leaves the newest complete checkpoint readable:
        the file `checkpoint` names a new one only when its files are whole,
        and old ones go only after that.
        """
        prefix = self._prefix(self.write_directory)
        _write(self._whole, prefix)
        known = [p for p in _listed(self.write_directory) if p != prefix]
        known.append(prefix)
        tf1.record_latest(self.write_directory, known)
        surplus = self._surplus(known)
        for old in surplus:
            tf1.remove_checkpoint(old)
        if surplus:
            kept = [path for path in known if path not in surplus]
            tf1.record_latest(self.write_directory, kept)
        return prefix

    def save_best(self, directory: str) -> str:
        prefix = self._prefix(directory)
        tf.io.gfile.makedirs(directory)
        former = _listed(directory)
        _write(self._without_position, prefix)
        tf1.record_latest(directory, [prefix])
        for old in former:
            if old != prefix:
                tf1.remove_checkpoint(old)
        return prefix

    def restore(
        self,
        path: str,
        with_position: bool = True,
        exclude: Collection[str] = (),
    ) -> bool:
        """Loads a checkpoint, strictly; whether its position was loaded.

        Parts of the position in `exclude` stay as they are.
        """
        weights = formats.open_weights(path, with_training_state=True)
        check_same_variables(weights, self.model.variables)
        held, wanted = tf2.optimizer_of(weights), self.optimizer.kind
        if held not in (None, wanted):
            raise UserError(
                f"{path} has the slots of optimizer {held!r}, which optimizer"
                f" {wanted!r} cannot go on with. Set optimizer to {held!r}, or"
                " start from its weights alone with --init_checkpoint, in a"
                " model_dir of its own."
            )
        if weights.kind != "native":
            report = assign(
                weights, self.model.variables, optimizer=self.optimizer
            )
            self.step.assign(report.global_step or 0)
            return False
        if held is None:
            raise UserError(
                f"{path} has no Adam slots, which training on needs. Start"
                " from its weights alone with --init_checkpoint, in a"
                " model_dir of its own."
            )
        stored = {key.split("/")[0] for key in weights.dropped}
        with_position = with_position and stored.issuperset(self.position)
        wanted = {k: v for k, v in self.extras.items() if k in stored}
        if with_position:
            position = self.position.items()
            wanted |= {k: v for k, v in position if k not in exclude}
        try:
            status = tf.train.Checkpoint(**self._state, **wanted).read(path)
            status.assert_existing_objects_matched()
        except (
            IndexError,  # TensorFlow's word for a cut data file
            tf.errors.DataLossError,
            tf.errors.OutOfRangeError,
        ) as error:
            raise UserError(self._damaged(path, error)) from error
        except (ValueError, AssertionError, tf.errors.OpError) as error:
            raise UserError(
                f"checkpoint {path} does not fit this run: {error}. Use another"
                " model_name, or --overwrite to start this one anew."
            ) from error
        if exclude or not with_position:
            status.expect_partial()
        return with_position

    def _damaged(self, path: str, error: Exception) -> str:
        """Words for files that are cut or changed, and a way back."""
        text = (
            f"checkpoint {path} cannot be read: {error}. Its data file is"
            " damaged or cut short; copy the checkpoint again"
        )
        older = [other for other in _listed(self.directory) if other != path]
        if not older:
            return f"{text}."
        return (
            f"{text}, or go back: name {os.path.basename(older[-1])} as"
            " model_checkpoint_path in the file `checkpoint`."
        )

    def _prefix(self, directory: str) -> str:
        name = f"{CHECKPOINT_NAME}-{int(self.step.numpy())}"
        return os.path.join(directory, name)

    def _surplus(self, known: list[str]) -> list[str]:
        """Those that the limits let go; other programs' files are not ours."""
        if not self.keep:
            return []
        surplus = []
        for path in known[: -self.keep]:
            number = path.rpartition("-")[2]
            step = int(number) if self.keep_every and number.isdigit() else 0
            is_milestone = step > 0 and step % self.keep_every == 0
            if not is_milestone and tf2.is_native(path):
                surplus.append(path)
        return surplus


def _listed(directory: str) -> list[str]:
    """Prefixes that the file `checkpoint` names and whose files exist."""
    named = tf1.list_recorded(directory)
    return [path for path in named if tf.io.gfile.exists(path + ".index")]


def _write(checkpoint: tf.train.Checkpoint, prefix: str) -> None:
    try:
        checkpoint.write(prefix)
    except (OSError, tf.errors.OpError) as error:
        tf1.remove_tree(f"{prefix}{_UNFINISHED}")
        raise UserError(
            f"checkpoint {prefix} cannot be written: {error}. Earlier ones are"
            " whole: make room or correct the permissions, and run the same"
            " command again."
        ) from error


def sweep(directory: str) -> None:
    """Removes what a run that was killed while it wrote has left."""
    if tf.io.gfile.isdir(directory):
        for name in map(str, tf.io.gfile.listdir(directory)):
            name = name.rstrip("/")
            path = os.path.join(directory, name)
            if name.startswith(CHECKPOINT_NAME) and name.endswith(_UNFINISHED):
                tf1.remove_tree(path)
            # TensorFlow's own temporary name of the file `checkpoint`.
            elif name.startswith("checkpoint.tmp"):
                tf.io.gfile.remove(path)


def restore_model(path: str, model: tf.Module, step: tf.Variable) -> Coverage:
    """Loads the weights and the step (else 0) only, for evaluation."""
    weights = formats.open_weights(path, with_training_state=True)
    check_same_variables(weights, model.variables)
    report = assign(weights, model.variables)
    step.assign(report.global_step or 0)
    return report


def check_same_variables(
    weights: Weights, variables: list[tf.Variable]
) -> None:
    """Compares the model's variables with a checkpoint before it is loaded."""
    named = tf2.variables_by_name(variables)
    wanted = {name: tuple(v.shape) for name, v in named.items()}
    lines, none = [], "does not have it"
    for name in sorted(weights.shapes.keys() | wanted.keys()):
        saved, own = weights.shapes.get(name), wanted.get(name)
        if saved != own:
            lines.append(
                f"{name}: checkpoint {none if saved is None else [*saved]},"
                f" this model {none if own is None else [*own]}"
            )
    if not lines:
        return
    lines = limit_lines(lines) + weights.contents.differences(Contents(wanted))
    raise UserError(
        f"checkpoint {weights.path} is of another model:\n"
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
        return read_json(path)
    except UserError as error:
        raise UserError(
            f"{error}\nRestore {path}, or remove it to accept whatever the"
            " checkpoints hold."
        ) from error


def write_config(directory: str, text: str) -> None:
    """Writes the resolved hparams (JSON text) beside the checkpoints."""
    write_atomically(os.path.join(directory, CONFIG_FILE), text)


class DataFingerprint(tf.train.experimental.PythonState):
    """What a run reads, as plain values: in checkpoints, to be compared."""

    KEY = "data"

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts

    def serialize(self) -> str:
        return json.dumps(self._facts)

    def deserialize(self, text: str) -> None:
        """Those of before are asked for by `changes` alone."""

    def changes(self, path: str, otherwise: Mapping[str, Any]) -> list[str]:
        """What was another then: at a checkpoint, else `otherwise`."""
        name = f"{self.KEY}/.ATTRIBUTES/py_state"
        with contextlib.suppress(IndexError, ValueError, tf.errors.OpError):
            # What is damaged is told where it is restored.
            reader = tf1.load_reader(path)
            if reader.has_tensor(name):
                otherwise = json.loads(reader.get_tensor(name))
        return list_changes(otherwise, self._facts, tuple(self._facts))


STATE_FILE = "best.json"


def find_best_or_latest(path: str) -> str | None:
    """Return a run's best checkpoint; without `best`, its latest one."""
    return formats.find_best_checkpoint(path) or tf1.find_latest(path)


class BestCheckpoint:
    """Saves to `<run>/best` whenever a metric is better than before."""

    def __init__(
        self,
        directory: str,
        metric: str,
        checkpoints: Checkpoints,
        write_settings: Callable[[str], None],
        scored_on: str = "",
    ) -> None:
        """Reads what an earlier part of the run kept, by the same data."""
        self._directory = os.path.join(directory, formats.BEST)
        self._metric = metric
        self._checkpoints = checkpoints
        self._write_settings = write_settings
        self._scored_on = scored_on
        self.chosen_otherwise = False
        self._best = self._read()

    def update(self, step: int, result: Mapping[str, float]) -> str | None:
        value = float(result[self._metric])
        if not math.isfinite(value):
            return None
        sign = -1 if lower_is_better(self._metric) else 1
        if self._best and sign * value <= sign * self._best["value"]:
            return None
        self._write_settings(self._directory)
        prefix = self._checkpoints.save_best(self._directory)
        self._best = {"metric": self._metric, "value": value, "step": step}
        if self._scored_on:
            self._best["scored_on"] = self._scored_on
        path = os.path.join(self._directory, STATE_FILE)
        write_atomically(path, json.dumps(self._best) + "\n")
        return f"best {self._metric} so far, {value:.4f}: kept as {prefix}"

    def _read(self) -> dict[str, Any] | None:
        path = os.path.join(self._directory, STATE_FILE)
        if not tf.io.gfile.exists(path):
            return None
        try:
            best = read_json(path)
            told = best.get("scored_on", self._scored_on)
            # What another metric, or other data, chose means nothing.
            same = best["metric"] == self._metric and told == self._scored_on
            self.chosen_otherwise = not same
            return best if same else None
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path} is damaged ({error!r}); remove it to choose the best"
                " checkpoint anew."
            ) from error
