# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hparams that changed between two runs of a model."""

import json
from collections.abc import Mapping
from typing import Any

from configure.errors import UserError
from configure.pretraining import derive_experiments
from electra_tf.checkpoints.sizes import (
    MODEL_HPARAMS,
    SCHEDULE_HPARAMS,
)


def list_changes(
    before: Mapping[str, Any], now: Mapping[str, Any], names: tuple[str, ...]
) -> list[str]:
    """Return a text `name: old -> new` for each hparam that changed."""
    # `before` was read from a file, so the values of `now` are also converted
    # to JSON's types.
    now = json.loads(json.dumps(now))
    return [
        f"{name}: {before[name]!r} -> {now[name]!r}"
        for name in names
        if name in before and name in now and before[name] != now[name]
    ]


def check_same_model(
    before: Mapping[str, Any], now: Mapping[str, Any], path: str
) -> None:
    """Raise a UserError if a continued run changes model hparams.

    Args:
      before: hparams in the run's folder; {} for a new run.
      now: hparams of this command.
      path: path of the run's checkpoint, for messages.
    """
    if not before:
        return
    before = {**before, **derive_experiments(before)}
    differing = list_changes(before, now, (*MODEL_HPARAMS, *SCHEDULE_HPARAMS))
    # Hparams of earlier versions do not include this weight; its default is 0
    # (no correction head). Training can continue with a different weight above
    # 0, but the head must not be added or removed.
    name = "correction_weight"
    before.setdefault(name, 0.0)
    if bool(before[name]) != bool(now[name]):
        differing += list_changes(before, now, (name,))
    if differing:
        raise UserError(
            f"checkpoint {path} was trained with different model hparams:\n"
            + "".join(f"  {text}\n" for text in differing)
            + "Restore these hparams, choose a different --model_name, or pass"
            " --overwrite to delete the model and start again."
        )
