# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights of any format -> a model's variables, with nothing left unsaid."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError, first_lines
from electra_tf.checkpoints.weights import Weights, variables_by_name

_MOST_LINES = 8


@dataclasses.dataclass(frozen=True)
class Coverage:
    """What a checkpoint and a model had in common."""

    path: str  # of the checkpoint
    kind: str  # its format
    loaded: tuple[str, ...]  # names of variables that took its values
    missing: tuple[str, ...]  # the model's that it lacks; these keep theirs
    other_shape: tuple[str, ...]  # allowed to differ in shape; these, too
    unexpected: tuple[str, ...]  # its names that the model lacks
    dropped: Mapping[str, str]  # what its format holds besides, and why
    slots_loaded: int  # Adam slots that took its values
    slots_left: int  # those left in the file
    global_step: int | None

    @property
    def slots(self) -> int:
        """Number of Adam slots in the file."""
        return self.slots_loaded + self.slots_left

    def __str__(self) -> str:
        total = len(self.loaded) + len(self.missing) + len(self.other_shape)
        step = "not stored" if self.global_step is None else self.global_step
        lines = [
            f"{self.path} ({self.kind}, step {step}): {len(self.loaded)} of"
            f" {total} variables loaded, {len(self.missing)} missing,"
            f" {len(self.unexpected)} unexpected; Adam slots:"
            f" {self.slots_loaded} loaded, {self.slots_left} not used"
        ]
        dropped = [f"{name} ({why})" for name, why in self.dropped.items()]
        for title, names in (
            ("missing, keeps its fresh value", self.missing),
            ("of another shape, keeps its fresh value", self.other_shape),
            ("unexpected, not used", self.unexpected),
            ("left in the file", dropped),
        ):
            lines += first_lines(names, _MOST_LINES, f"  {title}: ")
        return "\n".join(lines)


def assign(
    weights: Weights,
    variables: Iterable[tf.Variable],
    *,
    allow_missing: str | None = None,
    missing_is_fine: bool = False,
    optimizer: Any = None,
) -> Coverage:
    """Gives variables a checkpoint's values.

    Args:
      optimizer: takes the Adam slots, all of them; has `m` and `v` by
        variable name. None leaves them in the file.

    Source: google-research/electra, model/modeling.py,
    get_assignment_map_from_checkpoint.
    Differs: what does not match is reported and by default refused.
    """
    wanted = variables_by_name(variables)
    shapes = weights.shapes
    may_lack = _pattern(allow_missing)
    other_shape = tuple(
        name
        for name, variable in wanted.items()
        if may_lack(name)
        and name in shapes
        and shapes[name] != tuple(variable.shape)
    )
    missing = tuple(name for name in wanted if name not in shapes)
    targets = {
        name: variable
        for name, variable in wanted.items()
        if name in shapes and name not in other_shape
    }
    loaded = tuple(targets)
    check_shapes(weights.path, targets, weights)
    if not missing_is_fine:
        refused = [name for name in missing if not may_lack(name)]
        _check_missing(weights, wanted, refused)
    if optimizer is not None:
        targets |= _slot_targets(weights, optimizer)
    # All of it before any of it is assigned: a cut file must change nothing.
    values = {name: weights.read(name) for name in targets}
    report = Coverage(
        path=weights.path,
        kind=weights.kind,
        loaded=loaded,
        missing=missing,
        other_shape=other_shape,
        unexpected=tuple(sorted(n for n in shapes if n not in wanted)),
        dropped=weights.dropped,
        slots_loaded=len(targets) - len(loaded),
        slots_left=len(weights.slots) - (len(targets) - len(loaded)),
        global_step=weights.global_step,
    )
    for name in list(values):
        targets[name].assign(values.pop(name))
    return report


def check_shapes(
    path: str, variables: Mapping[str, tf.Variable], weights: Weights
) -> None:
    """Compares shapes and types before anything is read."""
    lines = []
    for name, variable in variables.items():
        spec, shape = weights.specs[name], tuple(variable.shape)
        if spec.shape != shape:
            remedy = f"change {shape_hint(name, spec.shape, shape)}"
            if name.endswith("position_embeddings"):
                remedy += (
                    ", or make the table fit with convert_checkpoint"
                    f" --extend_positions={shape[0]}"
                )
            lines.append(
                f"{name}: checkpoint {list(spec.shape)}, model {list(shape)};"
                f" {remedy}"
            )
        elif spec.dtype != variable.dtype.as_numpy_dtype:
            lines.append(
                f"{name}: checkpoint {spec.dtype}, model"
                f" {np.dtype(variable.dtype.as_numpy_dtype)}; convert the"
                " checkpoint"
            )
    if lines:
        title = f"{path} is of another model, shapes differ:"
        raise UserError("\n".join([title, *first_lines(lines, _MOST_LINES)]))


def _pattern(allow_missing: str | None) -> Callable[[str], bool]:
    """Whether a variable's name may be missing."""
    if not allow_missing:
        return lambda name: False
    try:
        pattern = re.compile(allow_missing)
    except re.error as error:
        raise UserError(
            f"allow_missing: {allow_missing!r} is not a regular expression"
            f" ({error})."
        ) from error
    return lambda name: bool(pattern.search(name))


def _check_missing(
    weights: Weights, wanted: Mapping[str, Any], refused: list[str]
) -> None:
    if not refused:
        return
    lines = [
        f"{weights.path} ({weights.kind}) lacks {len(refused)} of the model's"
        f" {len(wanted)} variables:",
        *first_lines(refused, _MOST_LINES),
    ]
    if hint := weights.contents.mistaken_for(refused):
        lines.append(hint)
    lines.append(
        "Change the hparams, choose another checkpoint, or let them start"
        " fresh with --allow_missing=REGEX."
    )
    raise UserError("\n".join(lines))


def _slot_targets(weights: Weights, optimizer: Any) -> dict[str, tf.Variable]:
    targets = {}
    for slots, suffix in ((optimizer.m, "adam_m"), (optimizer.v, "adam_v")):
        targets |= {f"{name}/{suffix}": slot for name, slot in slots.items()}
    missing = [name for name in targets if name not in weights.specs]
    if missing:
        raise UserError(
            f"{weights.path} ({weights.kind}) has {len(weights.slots)} Adam"
            f" slots; {len(missing)} that training on needs are missing, the"
            f" first being {missing[0]}. Released checkpoints have none. Start"
            " from its weights alone with --init_checkpoint, in a model_dir of"
            " its own."
        )
    check_shapes(weights.path, targets, weights)
    return targets


# Which hparam stands behind an axis of a variable.

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


def shape_hint(name: str, stored: Sequence[int], wanted: Sequence[int]) -> str:
    """Names the hparams that set the axes in which two shapes differ."""
    hints = next(hints for part, *hints in _SHAPE_HINTS if part in name)
    if len(stored) != len(wanted):
        return " and ".join(hints)
    differing = {
        hints[min(axis, len(hints) - 1)]: None
        for axis, sizes in enumerate(zip(stored, wanted, strict=True))
        if sizes[0] != sizes[1]
    }
    return " and ".join(differing)
