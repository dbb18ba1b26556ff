# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Experiments of the papers, as hparams that set the original's switches."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from configure.config import hparam_error
from configure.generator import GeneratorKind
from configure.objectives import OBJECTIVES
from configure.problems import Problem

_DETECTING = ("electra", "electra_15")
_ONE_NETWORK = {"two_tower_generator": False, "uniform_generator": False}
_SHARED = {"untied_generator_embeddings": False, "untied_generator": True}
# Switches of the original that each value of an experiment sets. An unset
# experiment gets the first value whose switches equal those of the config.
EXPERIMENTS: dict[str, dict[str, dict[str, bool]]] = {
    "objective": {
        name: dict(objective.switches) for name, objective in OBJECTIVES.items()
    },
    "generator": {
        "two_tower": {**_ONE_NETWORK, "two_tower_generator": True},
        "uniform": {**_ONE_NETWORK, "uniform_generator": True},
        "sized": _ONE_NETWORK,
        "unigram": _ONE_NETWORK,
    },
    "embedding_sharing": {
        "none": {"untied_generator_embeddings": True},
        "embeddings": {"untied_generator_embeddings": False},
        "token": _SHARED,
        "gradient_disentangled": _SHARED,
    },
    "training_schedule": {"joint": {}, "two_stage": {}, "adversarial": {}},
}


def settle_experiments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all experiments and of their switches.

    Args:
      values: all hparams; an experiment that is None is inferred from the
        switches.
    """
    settled: dict[str, Any] = {}
    if values["training_schedule"] == "two_stage":
        # In the second stage, the discriminator would change the tables that it
        # shares with the frozen generator.
        sharing = values["embedding_sharing"] or "none"
        values = {**values, "embedding_sharing": sharing}
    for name, choices in EXPERIMENTS.items():
        value = values[name] or _value_of_switches(values, choices)
        settled |= {name: value, **choices.get(value, {})}
        if value == "electric":  # Electric's generator is a two-tower model.
            values = {**values, "two_tower_generator": True}
    return settled


def _value_of_switches(
    values: Mapping[str, Any], choices: Mapping[str, Mapping[str, bool]]
) -> str | None:
    """Return the first value of an experiment that matches the switches."""
    for value, switches in choices.items():
        if all(values[name] == is_on for name, is_on in switches.items()):
            return value
    return None


def experiment_errors(config: Any) -> Iterator[Problem]:
    """Yield errors about experiments that contradict other hparams."""
    for name, choices in EXPERIMENTS.items():
        value = getattr(config, name)
        switches = dict(choices.get(value, {}))
        untied = "untied_generator_embeddings"
        if value == "none" and not config.is_explicit(untied):
            # A single network has a single set of tables, so "none" requires
            # two networks.
            switches["untied_generator"] = True
        for switch, expected in switches.items():
            actual = getattr(config, switch)
            if actual != expected:
                yield hparam_error(
                    name,
                    f"{value!r} contradicts {switch} = {json.dumps(actual)};"
                    " leave one of the two out",
                )
    yield from _schedule_errors(config)


def _schedule_errors(config: Any) -> Iterator[Problem]:
    """Yield errors about hparams that contradict the training schedule."""
    schedule, steps = config.training_schedule, config.two_stage_steps
    is_two_stage = schedule == "two_stage"
    if steps is not None and not is_two_stage:
        yield hparam_error(
            "two_stage_steps",
            f"{steps} requires training_schedule two_stage, got {schedule};"
            " leave two_stage_steps out",
        )
    if schedule == "joint":
        return
    required: dict[str, tuple[Any, ...]] = {
        "objective": _DETECTING,
        "generator": ("sized",),
        "untied_generator": (True,),
    }
    if is_two_stage:
        required |= {
            "embedding_sharing": ("none",),
            # The discriminator starts from the generator's weights, so both
            # networks must have equal sizes. With `debug`, the networks have
            # different numbers of attention heads.
            "generator_hidden_size": (1.0,),
            "generator_layers": (1.0,),
            "debug": (False,),
        }
    for name, values in required.items():
        actual = getattr(config, name)
        if actual not in values:
            expected = " or ".join(map(json.dumps, values))
            yield hparam_error(
                "training_schedule",
                f"{schedule!r} requires {name} {expected}, got"
                f" {json.dumps(actual)}; set {name}, or leave training_schedule"
                " out",
            )
    if is_two_stage and not 0 < steps < config.num_train_steps:
        yield hparam_error(
            "two_stage_steps",
            f"{steps} leaves one of the two stages without steps, because"
            f" num_train_steps is {config.num_train_steps}; set two_stage_steps"
            " to at least 1 and less than num_train_steps",
        )


def replacement_errors(config: Any, kind: GeneratorKind) -> Iterator[Problem]:
    """Yield errors about hparams that the networks do not support.

    Args:
      kind: kind of the generator.
    """
    obstacle = _obstacle_to_separate_networks(config, kind)
    requested = [
        name
        for name in ("unigram_steps", "unigram_floor", "clip_networks_apart")
        if getattr(config, name)
    ]
    rate = config.generator_learning_rate
    # In two_stage training, each stage uses the learning rate of its network.
    if rate is not None and config.training_schedule != "two_stage":
        requested.append("generator_learning_rate")
    if obstacle:
        for name in requested:
            yield hparam_error(
                name,
                f"{json.dumps(getattr(config, name))} requires a separate"
                " generator that is trained together with the discriminator,"
                f" got {obstacle}; {_removal(config, name)}, or set generator"
                " to 'sized' with untied_generator true and training_schedule"
                " 'joint'",
            )
    mixing = [name for name in requested if name.startswith("unigram_")]
    if config.objective == "electric":
        for name in mixing:
            yield hparam_error(
                name,
                f"{getattr(config, name):g} mixes token counts into the noise,"
                " whose probabilities objective 'electric' takes from the"
                f" generator alone; {_removal(config, name)}, or change"
                " objective",
            )
    if rate and not config.learning_rate:
        yield hparam_error(
            "generator_learning_rate",
            f"{rate:g} is applied as a multiple of learning_rate, which is"
            f" {config.learning_rate:g}; set both above 0",
        )
    if config.correction_weight and config.objective not in _DETECTING:
        yield hparam_error(
            "correction_weight",
            f"{config.correction_weight:g} requires a discriminator (objective"
            f" {' or '.join(_DETECTING)}), got objective {config.objective!r};"
            f" {_removal(config, 'correction_weight')}, or change objective",
        )


def _removal(config: Any, name: str) -> str:
    """Return the remedy that resets an hparam to its default."""
    if config.origins.get(name) != "preset":
        return f"leave {name} out"
    default = json.dumps(config.default_hparams()[name])
    return f"set {name} to {default} in place of the preset's value"


def _obstacle_to_separate_networks(config: Any, kind: GeneratorKind) -> str:
    """Return the setting that rules out separate networks; "" if none does."""
    if kind.is_fixed:
        return f"generator {kind.value!r}, which has no variables"
    if config.objective == "mlm":
        return "objective 'mlm', which has a single network"
    if kind is GeneratorKind.FULL:
        return "untied_generator false, which makes both networks one"
    if config.training_schedule == "two_stage":
        return (
            "training_schedule 'two_stage', which trains one network at a time"
        )
    return ""
