# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Assignment of a checkpoint's tensors to the variables of a model."""

import collections
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from configure.errors import UserError
from configure.formatting import limit_lines
from electra_tf.checkpoints.contents import Contents
from electra_tf.checkpoints.weights import (
    Weights,
    check_shapes,
    match_tables,
    variables_by_name,
)

# Importing TensorFlow takes seconds, and only type annotations need it here.
if TYPE_CHECKING:
    import tensorflow as tf

_MOST_LINES = 8  # maximum number of variables that a message lists


class AdamSlots(Protocol):
    """Adam's first moments `m` and second moments `v`, by variable name."""

    @property
    def m(self) -> "Mapping[str, tf.Variable]": ...
    @property
    def v(self) -> "Mapping[str, tf.Variable]": ...


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Result of matching a checkpoint's variables to a model's variables."""

    path: str  # Path of the checkpoint.
    kind: str  # Format of the checkpoint.
    loaded: tuple[str, ...]  # variables that were loaded
    # Variables that keep their values, because the checkpoint lacks them.
    missing: tuple[str, ...]
    # Variables that keep their values, because their shapes in the checkpoint
    # and in the model differ, as `allow_missing` permits.
    other_shape: tuple[str, ...]
    # Variables of the checkpoint that the model lacks.
    unexpected: tuple[str, ...]
    dropped: Mapping[str, str]  # contents that were not read, with the reasons
    slots_loaded: int  # number of Adam slots that were loaded
    slots_left: int  # number of Adam slots that were not loaded
    global_step: int | None

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
        missing = self.missing
        # A long list usually contains whole networks, so their scopes are
        # listed instead of single variables.
        if len(missing) > _MOST_LINES:
            scopes = ["/".join(name.split("/")[:2]) for name in missing]
            counts = collections.Counter(scopes).items()
            missing = [f"{scope} ({n} variables)" for scope, n in counts]
        for title, names in (
            ("missing, keeps its initial value", missing),
            ("different shape, keeps its initial value", self.other_shape),
            ("unexpected, not used", self.unexpected),
            ("not read from the file", dropped),
        ):
            lines += limit_lines(names, _MOST_LINES, f"  {title}: ")
        return "\n".join(lines)


def assign(
    weights: Weights,
    variables: "Iterable[tf.Variable]",
    *,
    allow_missing: str | None = None,
    missing_is_fine: bool = False,
    optimizer: "AdamSlots | None" = None,
) -> Coverage:
    """Assign the values in a checkpoint to a model's variables.

    All values are read before the first value is assigned, so that a corrupt
    file changes no variable.

    Args:
      allow_missing: regular expression of variables that may be missing from
        the checkpoint, or have a different shape.
      missing_is_fine: whether all variables may be missing.
      optimizer: optimizer to which the Adam slots are assigned; None: slots are
        not loaded.

    Raises:
      UserError: variables or slots are missing, or shapes differ.

    Source: google-research/electra, model/modeling.py,
    get_assignment_map_from_checkpoint.
    Differs: variables that do not match are reported and by default an error.
    """
    model = variables_by_name(variables)
    _check_sharing(weights, model)
    weights = match_tables(weights, model)
    shapes = weights.shapes
    # By default no shape may differ, because "(?!)" matches no name.
    may_differ = re.compile(allow_missing or "(?!)").search
    missing = tuple(name for name in model if name not in shapes)
    other_shape = tuple(
        name
        for name, variable in model.items()
        if name in shapes
        and shapes[name] != tuple(variable.shape)
        and may_differ(name)
    )
    targets = {
        name: variable
        for name, variable in model.items()
        if name in shapes and name not in other_shape
    }
    check_shapes(weights, targets, model)
    refused = [name for name in missing if not may_differ(name)]
    if refused and not missing_is_fine:
        raise UserError(_describe_missing(weights, refused, len(model)))
    slots = {} if optimizer is None else _slot_targets(weights, optimizer)
    values = {name: weights.read(name) for name in (*targets, *slots)}
    coverage = Coverage(
        path=weights.path,
        kind=weights.kind,
        loaded=tuple(targets),
        missing=missing,
        other_shape=other_shape,
        unexpected=tuple(sorted(n for n in shapes if n not in model)),
        dropped=weights.dropped,
        slots_loaded=len(slots),
        slots_left=len(weights.slots) - len(slots),
        global_step=weights.global_step,
    )
    for name, target in {**targets, **slots}.items():
        target.assign(values.pop(name))
    return coverage


def _check_sharing(weights: Weights, model: Mapping[str, Any]) -> None:
    """Raise a UserError if the model cannot use the checkpoint's sharing."""
    of_model = Contents(dict.fromkeys(model, ())).embedding_sharing
    stored = weights.contents.embedding_sharing
    # Only tables that both networks share can be converted. Of other tables the
    # generator's would be dropped, and its encoder would read different ones.
    if stored not in (None, "embeddings") and of_model not in (None, stored):
        raise UserError(
            f"{weights.path}: embedding_sharing is {stored} in the checkpoint,"
            f" but {of_model} in the model. Set embedding_sharing to {stored},"
            " or extract the discriminator (convert_checkpoint"
            " --part=discriminator) and pass its path as --init_checkpoint,"
            " together with --allow_missing=^generator."
        )


def _describe_missing(
    weights: Weights, names: Sequence[str], n_variables: int
) -> str:
    """Return the error message for variables that a checkpoint lacks."""
    lines = [
        f"{weights.path} ({weights.kind}) lacks {len(names)} of the model's"
        f" {n_variables} variables:",
        *limit_lines(names, _MOST_LINES),
    ]
    if hint := weights.contents.mixup_hint(names):
        lines.append(hint)
    reasons = (weights.dropped.get(name) for name in names)
    if reason := next(filter(None, reasons), None):
        lines.append(
            "The file contains some of these variables, but they are not read:"
            f" {reason}."
        )
    lines.append(
        "Change the hparams, choose a different checkpoint, or pass"
        " --allow_missing=REGEX to keep the initial values of these variables."
    )
    return "\n".join(lines)


def _slot_targets(
    weights: Weights, optimizer: "AdamSlots"
) -> "dict[str, tf.Variable]":
    """Return an optimizer's slots by name.

    Raises:
      UserError: the checkpoint lacks some of the slots.
    """
    targets = {}
    for name, slot in optimizer.m.items():
        targets[f"{name}/adam_m"] = slot
    for name, slot in optimizer.v.items():
        targets[f"{name}/adam_v"] = slot
    missing = [name for name in targets if name not in weights.specs]
    if missing:
        raise UserError(
            f"{weights.path} ({weights.kind}) has {len(weights.slots)} Adam"
            f" slots, but lacks {len(missing)} slots that continued training"
            f" requires, such as {missing[0]}. Released checkpoints have no"
            " slots. To start from the weights alone, pass --init_checkpoint"
            " with a new --model_dir."
        )
    check_shapes(weights, targets)
    return targets
