# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading the original's TF1 checkpoints."""

import dataclasses
import os
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError

_SLOT_SUFFIXES = ("/adam_m", "/adam_v")
_STEP_NAME = "global_step"

# Which hparam to change when a variable's shape differs, by part of its name.
_SHAPE_HINTS = (
    ("position_embeddings", "model_hparam_overrides.max_position_embeddings"),
    ("token_type_embeddings", "model_hparam_overrides.type_vocab_size"),
    ("word_embeddings", "vocab_size (rows) or embedding_size (columns)"),
    ("output_bias", "vocab_size"),
    ("generator", "generator_hidden_size (1.0 for the released small model)"),
    ("cloze_predictions", "generator_hidden_size"),
    ("embeddings", "embedding_size"),
    ("", "model_size or model_hparam_overrides.hidden_size"),
)


@dataclasses.dataclass(frozen=True)
class RestoreReport:
    """What a checkpoint and a model had in common.

    Attributes:
      path: prefix of the checkpoint's files.
      loaded: names restored.
      missing: the model's names that the checkpoint lacks.
      unexpected: the checkpoint's names that the model lacks, Adam slots and
        the step apart.
      slots: number of Adam slots in the checkpoint, not restored here.
      global_step: the checkpoint's step, or None.
    """

    path: str
    loaded: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    slots: int
    global_step: int | None

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {len(self.loaded)} loaded, "
            f"{len(self.missing)} missing, {len(self.unexpected)} unexpected, "
            f"{self.slots} Adam slots, global_step {self.global_step}"
        ]
        lines += [f"  missing: {name}" for name in self.missing]
        lines += [f"  unexpected: {name}" for name in self.unexpected]
        return "\n".join(lines)


def find_checkpoint(path: str) -> str:
    """Returns the prefix of a checkpoint given as prefix or directory.

    Args:
      path: "dir/model.ckpt-1000", or a directory, whose newest is taken.

    Returns:
      The prefix.

    Raises:
      UserError: if there is none.
    """
    if tf.io.gfile.isdir(path):
        newest = tf.train.latest_checkpoint(path)
        if newest is None:
            # Released folders hold files without a `checkpoint` state file.
            found = sorted(tf.io.gfile.glob(os.path.join(path, "*.index")))
            newest = (
                found[0].removesuffix(".index") if len(found) == 1 else None
            )
        if newest is None:
            raise UserError(
                f"{path}: no checkpoint in this directory; expected files "
                "named model.ckpt-<step>.index beside their data."
            )
        return newest
    prefix = path.removesuffix(".index")
    if not tf.io.gfile.exists(prefix + ".index"):
        raise UserError(f"{path}: no such checkpoint ({prefix}.index missing).")
    return prefix


def restore(
    model: Any, path: str, allow_missing: bool = False
) -> RestoreReport:
    """Restores a model's variables from a TF1 name-based checkpoint.

    Args:
      model: a tf_keras model (or tf.Module) whose variables carry the
        original's names.
      path: prefix or directory of the checkpoint.
      allow_missing: whether the model may have variables that the checkpoint
        lacks; they keep their values.

    Returns:
      The report; nothing has been changed if an error is raised.

    Raises:
      UserError: if there is no checkpoint, a shape differs (the message names
        the hparam to change), or a variable is missing unless allowed.

    Source: google-research/electra, model/modeling.py,
    get_assignment_map_from_checkpoint.

    Differs: what does not match is reported and by default refused.
    """
    prefix = find_checkpoint(path)
    try:
        reader = tf.train.load_checkpoint(prefix)
        shapes = reader.get_variable_to_shape_map()
    except (tf.errors.OpError, ValueError) as error:
        raise UserError(f"{prefix}: unreadable checkpoint: {error}") from error
    variables = {v.name.split(":")[0]: v for v in model.variables}
    missing = tuple(name for name in variables if name not in shapes)
    loaded = tuple(name for name in variables if name in shapes)
    slots = [name for name in shapes if name.endswith(_SLOT_SUFFIXES)]
    known = {*variables, *slots, _STEP_NAME}
    unexpected = tuple(sorted(name for name in shapes if name not in known))
    step = None
    if _STEP_NAME in shapes:
        step = int(reader.get_tensor(_STEP_NAME))
    report = RestoreReport(
        prefix, loaded, missing, unexpected, len(slots), step
    )
    _check_shapes(prefix, {n: variables[n] for n in loaded}, shapes)
    if missing and not allow_missing:
        raise UserError(
            "The checkpoint does not hold every variable of the model.\n"
            f"{report}"
        )
    for name in loaded:
        variables[name].assign(np.asarray(reader.get_tensor(name)))
    return report


def _check_shapes(
    prefix: str,
    variables: dict[str, tf.Variable],
    shapes: dict[str, list[int]],
) -> None:
    """Raises a UserError that names differing shapes and the hparam."""
    lines = []
    for name, variable in variables.items():
        if list(variable.shape) != list(shapes[name]):
            hint = next(h for part, h in _SHAPE_HINTS if part in name)
            lines.append(
                f"  {name}: checkpoint {list(shapes[name])}, model "
                f"{list(variable.shape)}; change {hint}"
            )
    if lines:
        shown = lines[:8]
        if len(lines) > len(shown):
            shown.append(f"  ... and {len(lines) - len(shown)} more")
        raise UserError(
            f"{prefix}: shapes differ from the model's:\n" + "\n".join(shown)
        )
