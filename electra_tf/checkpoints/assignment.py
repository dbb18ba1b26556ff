# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Assignment of a checkpoint's tensors to the variables of a model."""

import collections
import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from configure.errors import UserError
from configure.formatting import limit_lines
from electra_tf.checkpoints.contents import Contents
from electra_tf.checkpoints.weights import (
    Weights,
    check_shapes,
    match_tables,
    variables_by_name,
)

if TYPE_CHECKING:  # Its import takes seconds.
    import tensorflow as tf

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
        if len(missing) > _MOST_LINES:  # Whole networks.
            scopes = ["/".join(name.split("/")[:2]) for name in missing]
            counts = collections.Counter(scopes).items()
            missing = [f"{scope} ({n} variables)" for scope, n in counts]
        for title, names in (
            ("missing, keeps its fresh value", missing),
            ("of another shape, keeps its fresh value", self.other_shape),
            ("unexpected, not used", self.unexpected),
            ("left in the file", dropped),
        ):
            lines += limit_lines(names, _MOST_LINES, f"  {title}: ")
        return "\n".join(lines)


def assign(
    weights: Weights,
    variables: "Iterable[tf.Variable]",
    *,
    allow_missing: str | None = None,
    missing_is_fine: bool = False,
    optimizer: Any = None,
) -> Coverage:
    """Gives variables a checkpoint's values.

    `optimizer` takes the Adam slots, all of them; it has `m` and `v` by
    variable name. None leaves them in the file.

    Source: google-research/electra, model/modeling.py,
    get_assignment_map_from_checkpoint.
    Differs: what does not match is reported and by default refused.
    """
    wanted = variables_by_name(variables)
    given = Contents(dict.fromkeys(wanted, ())).embedding_sharing
    held = weights.contents.embedding_sharing
    if weights.contents.shares_some_tables and given not in (None, held):
        # Two networks' tables where the model has one for both.
        raise UserError(
            f"{weights.path}: embedding_sharing is {held} there, {given} in the"
            f" model. Set embedding_sharing to {held}, or take one network"
            " (convert_checkpoint --part=discriminator) and start from it with"
            " --allow_missing=^generator."
        )
    weights = match_tables(weights, wanted)
    shapes = weights.shapes
    # Nothing matches "(?!)".
    may_lack = re.compile(allow_missing or "(?!)").search
    missing = tuple(name for name in wanted if name not in shapes)
    other_shape = tuple(
        name
        for name, variable in wanted.items()
        if name in shapes
        and shapes[name] != tuple(variable.shape)
        and may_lack(name)
    )
    targets = {
        name: variable
        for name, variable in wanted.items()
        if name in shapes and name not in other_shape
    }
    loaded = tuple(targets)
    check_shapes(weights, targets, wanted)
    refused = [name for name in missing if not may_lack(name)]
    if refused and not missing_is_fine:
        lines = [
            f"{weights.path} ({weights.kind}) lacks {len(refused)} of the"
            f" model's {len(wanted)} variables:",
            *limit_lines(refused, _MOST_LINES),
        ]
        if hint := weights.contents.mixup_hint(refused):
            lines.append(hint)
        reasons = (weights.dropped.get(name) for name in refused)
        if why := next(filter(None, reasons), None):
            lines.append(f"There are such, {why}.")
        lines.append(
            "Change the hparams, choose another checkpoint, or let them start"
            " fresh with --allow_missing=REGEX."
        )
        raise UserError("\n".join(lines))
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


def _slot_targets(weights: Weights, optimizer: Any) -> "dict[str, tf.Variable]":
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
    check_shapes(weights, targets)
    return targets
