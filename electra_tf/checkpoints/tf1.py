# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading the original's TF1 checkpoints."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints.prefixes import find_checkpoint as find_checkpoint
from electra_tf.checkpoints.tf1_writer import write_tf1 as write_tf1
from electra_tf.checkpoints.weights import TensorSpec, Weights

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_SLOT_SUFFIXES = ("/adam_m", "/adam_v")
_STEP_NAME = "global_step"

_HIDDEN = "model_size or model_hparam_overrides.hidden_size"
_INNER = "model_hparam_overrides.intermediate_size (4 * hidden_size unless set)"
_GENERATOR = "generator_hidden_size (1.0 for the released small model)"
_WIDTH = "embedding_size"

# Which hparam sets each axis (the last named one, all further axes), by part
# of the variable's name; the first part that matches counts.
_SHAPE_HINTS = (
    (
        "position_embeddings",
        "model_hparam_overrides.max_position_embeddings",
        _WIDTH,
    ),
    (
        "token_type_embeddings",
        "model_hparam_overrides.type_vocab_size",
        _WIDTH,
    ),
    ("word_embeddings", "vocab_size", _WIDTH),
    ("embeddings/LayerNorm", _WIDTH),
    ("electra/embeddings_project/kernel", _WIDTH, _HIDDEN),
    ("embeddings_project/kernel", _WIDTH, _GENERATOR),
    ("output_bias", "vocab_size"),
    ("generator_predictions/dense/kernel", _GENERATOR, _WIDTH),
    ("cloze_predictions/dense/kernel", _GENERATOR, _WIDTH),
    ("generator_predictions/", _WIDTH),
    ("cloze_predictions/", _WIDTH),
    ("generator", _GENERATOR),
    ("intermediate/dense/kernel", _HIDDEN, _INNER),
    ("intermediate/dense/bias", _INNER),
    ("attention/output/dense/kernel", _HIDDEN),
    ("output/dense/kernel", _INNER, _HIDDEN),
    ("", _HIDDEN),
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
        raise UserError(f"{prefix}: unreadable checkpoint: {error}") from error


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
      UserError: if there is no checkpoint, its data are damaged or cut short,
        a shape differs (the message names the hparam to change), or a variable
        is missing unless allowed.

    Source: google-research/electra, model/modeling.py,
    get_assignment_map_from_checkpoint.

    Differs: what does not match is reported and by default refused.
    """
    prefix = find_checkpoint(path)
    reader = load_reader(prefix)
    shapes = reader.get_variable_to_shape_map()
    variables = {v.name.split(":")[0]: v for v in model.variables}
    missing = tuple(name for name in variables if name not in shapes)
    loaded = tuple(name for name in variables if name in shapes)
    slots = [name for name in shapes if name.endswith(_SLOT_SUFFIXES)]
    known = {*variables, *slots, _STEP_NAME}
    unexpected = tuple(sorted(name for name in shapes if name not in known))
    step = None
    if _STEP_NAME in shapes:
        step = int(_read(reader, prefix, _STEP_NAME))
    report = RestoreReport(
        prefix, loaded, missing, unexpected, len(slots), step
    )
    _check_shapes(prefix, {n: variables[n] for n in loaded}, shapes)
    if missing and not allow_missing:
        raise UserError(
            "The checkpoint does not hold every variable of the model.\n"
            f"{report}"
        )
    # All of it before any of it is assigned: a cut file must change nothing.
    values = {name: _read(reader, prefix, name) for name in loaded}
    for name, value in values.items():
        expected = variables[name].dtype.as_numpy_dtype
        if value.dtype != expected:
            raise UserError(
                f"{prefix}: {name}: checkpoint {value.dtype}, model "
                f"{np.dtype(expected)}; convert the checkpoint."
            )
    for name, value in values.items():
        variables[name].assign(value)
    return report


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


def _check_shapes(
    prefix: str,
    variables: dict[str, tf.Variable],
    shapes: dict[str, list[int]],
) -> None:
    """Raises a UserError that names differing shapes and the hparam."""
    lines = []
    for name, variable in variables.items():
        stored, wanted = list(shapes[name]), list(variable.shape)
        if stored != wanted:
            lines.append(
                f"  {name}: checkpoint {stored}, model {wanted}; change "
                f"{shape_hint(name, stored, wanted)}"
            )
    if lines:
        shown = lines[:8]
        if len(lines) > len(shown):
            shown.append(f"  ... and {len(lines) - len(shown)} more")
        raise UserError(
            f"{prefix}: shapes differ from the model's:\n" + "\n".join(shown)
        )


def shape_hint(name: str, stored: Sequence[int], wanted: Sequence[int]) -> str:
    """Names the hparams that set the axes in which two shapes differ.

    Args:
      name: of the variable.
      stored: its shape in the checkpoint.
      wanted: its shape in the model.

    Returns:
      Names for a message.
    """
    hints = next(hints for part, *hints in _SHAPE_HINTS if part in name)
    if len(stored) != len(wanted):
        return " and ".join(hints)
    differing = {
        hints[min(axis, len(hints) - 1)]: None
        for axis, sizes in enumerate(zip(stored, wanted, strict=True))
        if sizes[0] != sizes[1]
    }
    return " and ".join(differing)
