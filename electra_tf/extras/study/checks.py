# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The validation of study files: keys, types, budgets, hparams and paths."""

import contextlib
import json
import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from configure.bounds import Bound, Natural, at_most
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from configure.validation import check_object
from electra_tf.checkpoints.formats import (
    find_hugging_face_weights,
    resolve_reference,
)
from electra_tf.checkpoints.hub import hub_hint
from electra_tf.extras.study.settings import BUDGETS, RANDOM, Settings, nest
from electra_tf.files import filesystem

# Runs that choose a learning rate add this number to the seed, so that their
# seeds differ from those of all runs whose scores are reported.
CHOOSING_SEEDS = 2**30
# The limit exceeds the operations and tokens that any machine could compute.
_MAX_OPERATIONS = 1e30
_Amount = Annotated[
    float,
    Bound(lambda value: value > 0, "a number above 0"),
    at_most(_MAX_OPERATIONS),
]
_BUDGET_KEYS = dict.fromkeys(BUDGETS, _Amount)
# The keys of an arm and the types of the values. A study file may also set
# these keys for all arms.
_ARM_KEYS = {"start": str, "pretrain": dict, "finetune": dict, "budget": dict}
_KEYS = {
    "description": str,
    "data_dir": str,
    "output_dir": str,
    "data": dict[str, list[str]],
    "exam": dict[str, list[str]],
    "tasks": dict,
    "arms": dict,
    "grid": dict[str, list],
    "seeds": list[
        Annotated[
            Natural,
            Bound(
                lambda value: value < CHOOSING_SEEDS, f"below {CHOOSING_SEEDS}"
            ),
        ]
    ],
    "against": str,
    "choose_learning_rate": dict,
    "figures": dict[str, list[str]],
    **_ARM_KEYS,
}
_CHOICE_KEYS = {"values": list, "num_trials": int}
_CONFIGS = {"pretrain": PretrainingConfig, "finetune": FinetuningConfig}
# The hparams that a study determines for each run: folders, data, tasks, seed,
# initial checkpoint, exam and results.
_SET_BY_STUDY = frozenset(
    (
        "data_dir",
        "do_eval",
        "do_train",
        "exam",
        "finetune.init_checkpoint",
        "model_dir",
        "model_name",
        "overwrite",
        "preprocessed_data_dir",
        "results_json",
        "results_pkl",
        "results_txt",
        "run_name",
        "seed",
        "task_names",
    )
)


@contextlib.contextmanager
def name_location(location: str) -> Iterator[None]:
    """Prefix the message of a UserError with a location in a study file."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{location}: {error}") from None


def check_content(content: Any) -> None:
    """Raise a UserError unless a file has valid keys, types and hparams."""
    check_object(content, _KEYS, "")
    for key in ("arms", "grid", "seeds", "tasks"):
        if key in content and not content[key]:
            raise UserError(
                f"{key}: empty; expected at least one entry. Add an entry."
            )
    for section in ("data", "exam", "figures", "grid"):
        for key, values in content.get(section, {}).items():
            if not values:
                raise UserError(
                    f"{section}.{key}: empty; expected at least one value. Add"
                    " a value."
                )
    exams = content.get("exam", {})
    if len(exams) > 1:
        raise UserError(
            f"exam: found {', '.join(exams)}; expected one file. Remove all"
            " files but one."
        )
    _check_arm({k: content[k] for k in _ARM_KEYS if k in content}, "")
    for task, hparams in content.get("tasks", {}).items():
        _check_arm({"finetune": hparams}, f"tasks.{task}: ")
    for line, overrides in content.get("arms", {}).items():
        _check_arm(overrides, f"arms.{line}.")
    for key, values in content.get("grid", {}).items():
        for value in values:
            _check_arm(nest(key, value), "grid.")
    if "choose_learning_rate" in content:
        _check_choice(content["choose_learning_rate"])
        _check_fixed_rates(content)
    for line, overrides in content.get("arms", {}).items():
        _check_grid(line, overrides, content.get("grid", {}))
        _check_start(line, overrides, content)


def _check_choice(choice: Any) -> None:
    """Raise a UserError unless the learning rates to try are valid."""
    section = "choose_learning_rate."
    check_object(choice, _CHOICE_KEYS, section)
    rates = choice.get("values")
    if rates is None:
        raise UserError(
            f"{section}values: missing; expected a list of learning rates. Add"
            " a list."
        )
    if not rates:
        raise UserError(
            f"{section}values: empty; expected at least one value. Add a value."
        )
    for rate in rates:
        _check_arm({"finetune": {"learning_rate": rate}}, section)


def _check_fixed_rates(content: Settings) -> None:
    """Raise a UserError if a study chooses a learning rate that is also set."""
    sections = [("finetune", content.get("finetune", {}))]
    for task, hparams in content.get("tasks", {}).items():
        sections.append((f"tasks.{task}", hparams))
    for line, overrides in content.get("arms", {}).items():
        sections.append((f"arms.{line}.finetune", overrides.get("finetune")))
    for key, values in content.get("grid", {}).items():
        for value in values:
            sections.append((f"grid.{key}", nest(key, value).get("finetune")))
    for location, hparams in sections:
        if hparams and "learning_rate" in hparams:
            values = json.dumps(content["choose_learning_rate"]["values"])
            raise UserError(
                f"{location}: learning_rate is {hparams['learning_rate']}, and"
                f" choose_learning_rate.values is {values}; expected one of the"
                " two, because the chosen rate would replace the other. Remove"
                " learning_rate or choose_learning_rate."
            )


def _check_grid(line: str, overrides: Settings, grid: Settings) -> None:
    """Raise a UserError if an arm sets a key of the grid."""
    for key, values in grid.items():
        for value in values:
            for name, arm_value in _shared_values(overrides, nest(key, value)):
                raise UserError(
                    f"arms.{line}.{name} is {json.dumps(arm_value)}, and"
                    f" grid.{key} has {json.dumps(value)}; expected the key in"
                    " one of the two, because the grid would replace the"
                    f" arm's value. Remove {name} from the arm, or {key} from"
                    " the grid."
                )


def _shared_values(
    overrides: Settings, point: Settings
) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys that an arm and a point of the grid both set.

    A budget counts as a whole, because the point would replace all of it.

    Args:
      overrides: the keys of the arm.
      point: the nested keys of the point.

    Yields:
      Each key with its value in the arm.
    """
    for name in overrides.keys() & point.keys():
        before, after = overrides[name], point[name]
        if name == "budget":
            if before:
                yield name, before
        elif isinstance(before, dict) and isinstance(after, dict):
            for key, value in _shared_values(before, after):
                yield f"{name}.{key}", value
        else:
            yield name, before


def _check_start(line: str, overrides: Settings, content: Settings) -> None:
    """Raise a UserError if an arm sets keys that its `start` disregards."""
    start = overrides.get("start", content.get("start", ""))
    if not start or "start" in content.get("grid", {}):
        return
    disregarded = ("budget",) if start == RANDOM else ("pretrain", "budget")
    for key in disregarded:
        if value := overrides.get(key):
            raise UserError(
                f"arms.{line}.{key} is {json.dumps(value)}, and the arm's start"
                f" is {json.dumps(start)}; expected one of the two, because an"
                f" arm with this start has no use for {key}. Remove {key} from"
                " the arm, or remove start."
            )


def _check_arm(overrides: Any, location: str) -> None:
    """Raise a UserError unless an arm has valid keys, budget and hparams."""
    check_object(overrides, _ARM_KEYS, location)
    budget = overrides.get("budget", {})
    check_object(budget, _BUDGET_KEYS, f"{location}budget.")
    for kind, config in _CONFIGS.items():
        for name, value in overrides.get(kind, {}).items():
            with name_location(f"{location}{kind}.{name}"):
                if {name, f"{kind}.{name}"} & _SET_BY_STUDY:
                    raise UserError(
                        "not allowed here, because the study determines the"
                        " folders, data, tasks, seeds, initial checkpoints and"
                        " results of its runs. Remove the hparam."
                    )
                config.clean_hparams({name: value})


def check_initial_checkpoint(start: str) -> None:
    """Raise a UserError unless `start` is a checkpoint or a model's folder."""
    # TensorFlow is imported late, because most studies do not need it.
    from electra_tf.checkpoints import tf1

    path = resolve_reference(start)
    if filesystem.exists(f"{path}.index"):
        return
    if not filesystem.exists(path):
        raise UserError(
            f"start: {start}: no such checkpoint. Correct the path."
            f"{hub_hint(start)}"
        )
    if not filesystem.is_directory(path):
        return
    if not (tf1.list_checkpoints(path) or find_hugging_face_weights(path)):
        raise UserError(
            f"start: {start}: no checkpoint in this folder; expected"
            " model.ckpt-<step> or a Hugging Face folder. Correct the path."
        )


def check_task(
    config: FinetuningConfig, name: str, metrics: Sequence[str]
) -> None:
    """Raise a UserError unless a task has its data and the named metrics.

    Args:
      config: the settings of a fine-tuning on the task.
      name: the name of the task.
      metrics: the metrics that the study's table names.
    """
    # TensorFlow is imported late, because --help does not need it.
    from electra_tf.finetuning.registry import get_task

    # The vocabulary may not exist yet, because the study builds it.
    tokenizer: Any = types.SimpleNamespace(
        convert_tokens_to_ids=lambda tokens: [0 for _ in tokens]
    )
    task = get_task(config, name, tokenizer)
    for split in ("train", "dev"):
        task.check_split(split)
    known = task.metric_names() if metrics else ()
    for metric in metrics:
        if metric not in known:
            raise UserError(
                f"figures.{name}: unknown metric {metric!r}; expected one of"
                f" {', '.join(known)}. Name one of these metrics."
            )
