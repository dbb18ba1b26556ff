# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The arms of a study: the settings that it compares, and each arm's cost."""

import dataclasses
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.extras.study.checks import (
    check_initial_checkpoint,
    name_location,
)
from electra_tf.extras.study.settings import RANDOM, Settings, merge, nest
from electra_tf.plan.flops import pretraining_step_flops
from electra_tf.plan.parameters import pretraining_parameters
from electra_tf.text.casing import with_vocab_casing

_MAX_STEPS = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Arm:
    """The settings of one arm, which a study compares with other arms."""

    line: str  # the arm's name in the file
    point: str  # the arm's point in the grid
    overrides: Settings  # the keys that the file sets for this arm
    # "": the arm is pre-trained; otherwise RANDOM or an initial checkpoint.
    start: str = ""
    pretrain: Settings = dataclasses.field(default_factory=dict)
    # None: the initial checkpoint has its own config.
    config: PretrainingConfig | None = None
    # The "steps", "tokens" and "flops" of the pre-training.
    cost: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        return ",".join(filter(None, (self.line, self.point))) or "all"

    @property
    def takes_exams(self) -> bool:
        """Return whether an exam can score the arm's model."""
        return self.config.detects_replacements


def read_arms(content: Settings, output: str) -> Iterator[Arm]:
    """Yield the arms of a study file at each point of its grid.

    Args:
      content: the checked content of the file.
      output: the folder of the study's models.

    Raises:
      UserError: the settings of an arm are invalid.
    """
    grid = content.get("grid", {})
    for line, base in content.get("arms", {"": {}}).items():
        for values in itertools.product(*grid.values()):
            coordinates = list(zip(grid, values, strict=True))
            nested = (nest(key, value) for key, value in coordinates)
            overrides = reduce(merge, nested, base)
            point = ",".join(itertools.starmap(_name_coordinate, coordinates))
            point = re.sub(r"[^\w.=,+-]+", "-", point.replace('"', ""))
            with name_location(f"arms.{line}" if line else "pretrain"):
                yield _complete(Arm(line, point, overrides), content, output)


def _name_coordinate(key: str, value: Any) -> str:
    """Format a dotted key with a value as "mask_prob=0.15"."""
    is_number = type(value) in (int, float)
    text = f"{value:.10g}" if is_number else json.dumps(value)
    return f"{key.split('.')[-1]}={text}"


def _complete(arm: Arm, content: Settings, output: str) -> Arm:
    """Return an arm with its config and cost."""
    if not re.fullmatch(r"\w[\w.=,+-]*", arm.name):
        raise UserError(
            f"{arm.name!r}: not a valid folder name; expected letters, digits"
            " and _ . = , + -. Rename the arm."
        )
    settings = merge(content, arm.overrides)
    start, hparams = settings.get("start", ""), settings.get("pretrain", {})
    if start not in ("", RANDOM):
        check_initial_checkpoint(start)
        return dataclasses.replace(arm, start=start)
    config, cost = PretrainingConfig.create(arm.name, output, **hparams), {}
    if not start:
        steps = _compute_cost(config, settings.get("budget", {}))["steps"]
        defaults = {
            "export_at_end": False,
            "keep_checkpoint_max": 1,
            "eval_every_n_steps": steps,
        }
        hparams = {**defaults, **hparams, "num_train_steps": steps}
        config = PretrainingConfig.create(arm.name, output, **hparams)
        cost = _compute_cost(config, {})
        if not config.eval_every_n_steps:
            raise UserError(
                "eval_every_n_steps is 0; expected at least 1, because a study"
                " needs an evaluation. Set eval_every_n_steps to a positive"
                " number."
            )
    config = with_vocab_casing(config)
    return dataclasses.replace(
        arm, start=start, pretrain=hparams, config=config, cost=cost
    )


def _compute_cost(
    config: PretrainingConfig, budget: Mapping[str, float]
) -> Settings:
    """Return the steps, tokens and operations of a run.

    Args:
      config: the settings of the run.
      budget: "steps", "tokens" or "flops" -> the budget, from which the steps
        are computed; {}: the run's num_train_steps.

    Raises:
      UserError: the budget is ambiguous, less than a step, or too large.
    """
    parameters = pretraining_parameters(config).total
    flops = pretraining_step_flops(config, parameters=parameters)
    per_step = {"steps": 1, "tokens": flops.tokens, "flops": flops.total}
    steps = config.num_train_steps
    if len(budget) > 1 or (budget and config.is_explicit("num_train_steps")):
        raise UserError(
            "budget: expected one of steps, tokens, flops and num_train_steps;"
            f" found {json.dumps(budget)}, num_train_steps {steps}. Set exactly"
            " one of the four."
        )
    for name, amount in budget.items():
        steps = round(amount / per_step[name])
        if name == "flops" and config.is_explicit("two_stage_steps"):
            first, second = (
                pretraining_step_flops(config, parameters, stage).total
                for stage in (1, 2)
            )
            steps = _two_stage_steps(
                config.two_stage_steps, first, second, amount
            )
    if steps < 1:
        raise UserError(
            f"budget: {json.dumps(budget)} is less than one step; expected at"
            " least one step. Raise the budget."
        )
    if steps > _MAX_STEPS:
        raise UserError(
            f"budget: {json.dumps(budget)} is {steps:.4g} steps; expected at"
            f" most {_MAX_STEPS:,}. Lower the budget."
        )
    return {name: steps * amount for name, amount in per_step.items()}


def _two_stage_steps(
    first_steps: int, first: int, second: int, flops: float
) -> int:
    """Return the steps of both stages for a budget of operations.

    Args:
      first_steps: the number of steps of the first stage.
      first: the operations of a step of the first stage.
      second: the operations of a step of the second stage.
      flops: the operations of all steps.
    """
    steps = first_steps + round((flops - first_steps * first) / second)
    if steps <= first_steps:
        raise UserError(
            f"budget: {json.dumps({'flops': flops})} ends in the first stage"
            f" (two_stage_steps {first_steps:,}); expected a budget for both"
            " stages. Raise the budget, or lower two_stage_steps."
        )
    return steps
