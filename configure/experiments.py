# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The papers' experiments as hparams, beside the original's switches."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from configure.objectives import OBJECTIVES

# The original's switches, as several experiments have them.
_NEITHER = {"two_tower_generator": False, "uniform_generator": False}
_SHARED = {"untied_generator_embeddings": False, "untied_generator": True}
# The papers' experiments, and what each value says of the original's switches.
# Unset, the first value that the switches agree with.
EXPERIMENTS: dict[str, dict[str, dict[str, bool]]] = {
    "objective": {name: dict(o.switches) for name, o in OBJECTIVES.items()},
    "generator": {
        "two_tower": {**_NEITHER, "two_tower_generator": True},
        "uniform": {**_NEITHER, "uniform_generator": True},
        "sized": _NEITHER,
        "unigram": _NEITHER,
    },
    "embedding_sharing": {
        "none": {"untied_generator_embeddings": True},
        "embeddings": {"untied_generator_embeddings": False},
        "token": _SHARED,
        "gradient_disentangled": _SHARED,
    },
    "training_schedule": {"joint": {}, "two_stage": {}, "adversarial": {}},
}


def settle(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settles the experiments and the original's switches by each other."""
    found: dict[str, Any] = {}
    if values["training_schedule"] == "two_stage":
        # A frozen generator cannot share what the discriminator changes.
        sharing = values["embedding_sharing"] or "none"
        values = {**values, "embedding_sharing": sharing}
    for name, choices in EXPERIMENTS.items():
        agreeing = (
            value
            for value, switches in choices.items()
            if all(values[n] == on for n, on in switches.items())
        )
        value = values[name] or next(agreeing, None)
        found |= {name: value, **choices.get(value, {})}
        if value == "electric":  # it has a tower generator
            values = {**values, "two_tower_generator": True}
    return found


def replacement_problems(config: Any, kind: str) -> Iterator[str]:
    """Yields hparams of easy starts and separate networks that cannot work.

    Args:
      kind: the generator's, a value of `GeneratorKind`.
    """
    if kind in ("uniform", "unigram"):
        network = f"generator {kind!r}, which has no variables"
    elif config.objective == "mlm":
        network = "objective 'mlm', which has one network"
    elif kind == "full":
        network = "untied_generator false, one network for both parts"
    elif config.training_schedule == "two_stage":
        network = "training_schedule 'two_stage', one network at a time"
    else:
        network = ""
    is_two_stage = network.startswith("training_schedule")
    rate = config.generator_learning_rate
    given = {
        "unigram_steps": config.unigram_steps or None,
        "unigram_floor": config.unigram_floor or None,
        "clip_networks_apart": config.clip_networks_apart or None,
        "generator_learning_rate": None if is_two_stage else rate,
    }
    for name, value in given.items():
        if network and value is not None:
            yield (
                f"{name}: {json.dumps(value)} needs a generator network of its"
                " own that is trained with the discriminator, got"
                f" {network}; leave {name} out, or set generator to 'sized'"
                " with untied_generator true and training_schedule 'joint'"
            )
    if rate and not config.learning_rate:
        yield (
            f"generator_learning_rate: {rate:g} is set as a multiple of"
            f" learning_rate, got {config.learning_rate:g}; set both above 0"
        )
    detects = ("electra", "electra_15")
    if config.correction_weight and config.objective not in detects:
        yield (
            f"correction_weight: {config.correction_weight:g} needs a"
            f" discriminator (objective {' or '.join(detects)}), got objective"
            f" {config.objective!r}; leave correction_weight out, or change"
            " objective"
        )


def problems(config: Any) -> Iterator[str]:
    """What a config's experiments cannot be combined with."""
    for name, choices in EXPERIMENTS.items():
        value = getattr(config, name)
        switches = dict(choices.get(value, {}))
        untied = "untied_generator_embeddings"
        if value == "none" and not config.is_stated(untied):
            # The switch itself has no effect on one network.
            switches["untied_generator"] = True
        for switch, wanted in switches.items():
            if (got := getattr(config, switch)) != wanted:
                yield (
                    f"{name}: {value!r} contradicts {switch} ="
                    f" {json.dumps(got)}; leave one of the two out"
                )
    schedule, steps = config.training_schedule, config.two_stage_steps
    is_two_stage = schedule == "two_stage"
    if steps is not None and not is_two_stage:
        yield (
            f"two_stage_steps: {steps} is of training_schedule two_stage,"
            f" got {schedule}; leave two_stage_steps out"
        )
    if schedule == "joint":
        return
    needed = {
        "objective": ("electra", "electra_15"),
        "generator": ("sized",),
        "untied_generator": (True,),
    }
    if is_two_stage:
        needed |= {
            "embedding_sharing": ("none",),
            # Equal sizes: the generator's weights become those of the
            # discriminator. The debug model's heads are not equal.
            "generator_hidden_size": (1.0,),
            "generator_layers": (1.0,),
            "debug": (False,),
        }
    for name, values in needed.items():
        if (got := getattr(config, name)) not in values:
            words = " or ".join(map(json.dumps, values))
            yield (
                f"training_schedule: {schedule!r} needs {name} {words}, got"
                f" {json.dumps(got)}; set {name}, or leave"
                " training_schedule out"
            )
    if is_two_stage and not 0 < steps < config.num_train_steps:
        yield (
            f"two_stage_steps: {steps} of num_train_steps"
            f" {config.num_train_steps} leave a stage without steps; give at"
            " least 1, below num_train_steps"
        )
