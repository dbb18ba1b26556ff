# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a pre-training config may not say, and what it probably did not mean."""

import re
import typing
from collections.abc import Mapping
from typing import Any

from configure import hparams as hparam_rules
from configure.errors import UserError
from configure.hparams import check_switches

if typing.TYPE_CHECKING:
    from configure.pretraining import PretrainingConfig

MODEL_SIZES = ("small", "base", "large")
LR_READ_ORDERS = ("after_increment", "before_increment")
DISTRIBUTION_STRATEGIES = (
    "auto",
    "one_device",
    "mirrored",
    "multi_worker",
    "tpu",
)
DEFAULT_MAX_POSITION_EMBEDDINGS = 512

# The original's transformer settings, for model_hparam_overrides.
OVERRIDE_TYPES: dict[str, Any] = {
    "vocab_size": int,
    "hidden_size": int,
    "num_hidden_layers": int,
    "num_attention_heads": int,
    "hidden_act": str | None,
    "intermediate_size": int,
    "hidden_dropout_prob": float,
    "attention_probs_dropout_prob": float,
    "max_position_embeddings": int,
    "type_vocab_size": int,
    "initializer_range": float,
}

# Metrics of an evaluation that can choose the best checkpoint.
BEST_METRICS = (
    "loss",
    "masked_lm_loss",
    "masked_lm_accuracy",
    "masked_lm_accuracy_at_mask",
    "sampled_masked_lm_accuracy",
    "disc_loss",
    "disc_auc",
    "disc_auc_real_tokens",
    "disc_accuracy",
    "disc_precision",
    "disc_recall",
)

_CHOICES = {
    "model_size": MODEL_SIZES,
    "lr_read_order": LR_READ_ORDERS,
    "distribution_strategy": DISTRIBUTION_STRATEGIES,
}
_AT_LEAST_ONE = (
    "iterations_per_loop",
    "save_checkpoints_steps",
    "num_eval_steps",
    "embedding_size",
    "vocab_size",
    "max_seq_length",
    "train_batch_size",
    "eval_batch_size",
    "num_tpu_cores",
    "max_predictions_per_seq",
    "log_every_n_steps",
)
_AT_LEAST_ZERO = (
    "gen_weight",
    "disc_weight",
    "learning_rate",
    "lr_decay_power",
    "weight_decay_rate",
    "num_warmup_steps",
    "num_train_steps",
    "keep_checkpoint_max",
    "seed",
    "eval_every_n_steps",
    "shuffle_buffer_size",
    "collapse_patience",
    "keep_every_n_steps",
)
_ABOVE_ZERO = ("generator_layers", "generator_hidden_size", "temperature")
_PROBABILITY_OVERRIDES = ("hidden_dropout_prob", "attention_probs_dropout_prob")


def clean_overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    """Checks and converts the contents of `model_hparam_overrides`.

    Differs: the original keeps unknown names without a word.
    """
    hparam_rules.check_names(
        given, OVERRIDE_TYPES, "model_hparam_overrides key"
    )
    clean = {}
    for name, value in given.items():
        label = f"model_hparam_overrides.{name}"
        declared = OVERRIDE_TYPES[name]
        clean[name] = hparam_rules.coerce(label, value, declared)
        if declared is int and clean[name] < 1:
            raise UserError(f"hparam {label}: must be at least 1, got {value}")
        if name in _PROBABILITY_OVERRIDES and not 0 <= clean[name] < 1:
            raise UserError(
                f"hparam {label}: must be at least 0 and below 1, got {value}"
            )
    return clean


def validate(config: "PretrainingConfig") -> None:
    """Raises for settings that cannot work."""
    for name, choices in _CHOICES.items():
        value = getattr(config, name)
        if value not in choices:
            raise UserError(
                f"hparam {name}: must be one of {', '.join(choices)},"
                f" got {value!r}"
            )
    _check_ranges(config)
    _check_generator(config)
    _check_keep_best(config)
    _check_pattern(config)
    _check_milestones(config)
    check_switches(config)
    positions = config.model_hparam_overrides.get(
        "max_position_embeddings", DEFAULT_MAX_POSITION_EMBEDDINGS
    )
    if config.max_seq_length > positions:
        raise UserError(
            f"hparam max_seq_length: {config.max_seq_length} is longer than"
            f" the position table, max_position_embeddings = {positions}."
            " Shorten the examples, or set model_hparam_overrides to"
            f' {{"max_position_embeddings": {config.max_seq_length}}}'
        )


def check_mode(config: "PretrainingConfig") -> None:
    """Raises unless exactly one of `do_train` and `do_eval` is set."""
    if config.do_train == config.do_eval:
        raise UserError(
            "Exactly one of `do_train` or `do_eval` must be True."
            f" Both are {config.do_train}: to evaluate, give"
            " --do_train=false --do_eval=true"
        )


def warnings(config: "PretrainingConfig") -> list[str]:
    """Returns what will run but is probably not meant."""
    return [
        *_size_warnings(config),
        *_length_warnings(config),
        *_ignored_warnings(config),
    ]


def _check_ranges(config: "PretrainingConfig") -> None:
    def require(name: str, ok: bool, wanted: str) -> None:
        if not ok:
            raise UserError(
                f"hparam {name}: must be {wanted}, got {getattr(config, name)}"
            )

    require(
        "mask_prob",
        0 < config.mask_prob < 1,
        "a fraction above 0 and below 1 (0.15 for 15%)",
    )
    for name in _AT_LEAST_ONE:
        value = getattr(config, name)
        if name == "max_predictions_per_seq" and value is not None:
            if value < 1:
                raise UserError(
                    f"hparam max_predictions_per_seq: {value} means that no"
                    f" token is ever masked (mask_prob {config.mask_prob},"
                    f" max_seq_length {config.max_seq_length}); give at"
                    " least 1"
                )
        require(name, value is None or value >= 1, "at least 1")
    for name in _AT_LEAST_ZERO:
        value = getattr(config, name)
        require(name, value is None or value >= 0, "at least 0")
    for name in _ABOVE_ZERO:
        require(name, getattr(config, name) > 0, "above 0")
    require(
        "mask_replace_prob",
        0 <= config.mask_replace_prob <= 1,
        "a fraction from 0 to 1",
    )
    initializer_range = config.model_hparam_overrides.get("initializer_range")
    if initializer_range is not None and initializer_range < 0:
        raise UserError(
            "hparam model_hparam_overrides.initializer_range: must be at least"
            f" 0, got {initializer_range}"
        )
    require("seed", config.seed < 2**31, "below 2147483648")


def _check_keep_best(config: "PretrainingConfig") -> None:
    """Refuses metrics that no evaluation of the run will have."""
    name = config.keep_best
    if name is None:
        return
    discriminates = config.electra_objective or config.electric_objective
    known = [
        metric
        for metric in BEST_METRICS
        if discriminates or not metric.startswith(("disc_", "sampled_"))
    ]
    if name not in known:
        raise UserError(
            f"hparam keep_best: must be one of {', '.join(known)}, got {name!r}"
        )
    if not config.eval_every_n_steps:
        raise UserError(
            "hparam keep_best: needs evaluations while training; set"
            " eval_every_n_steps"
        )


def _check_milestones(config: "PretrainingConfig") -> None:
    """Refuses milestones at which nothing is saved."""
    every, saved = config.keep_every_n_steps, config.save_checkpoints_steps
    if every % saved:
        raise UserError(
            f"hparam keep_every_n_steps: must be a multiple of"
            f" save_checkpoints_steps ({saved}), got {every}: only what is"
            " saved can be kept"
        )


def _check_pattern(config: "PretrainingConfig") -> None:
    """Refuses an `allow_missing` that cannot be searched for."""
    try:
        re.compile(config.allow_missing or "")
    except re.error as error:
        raise UserError(
            f"hparam allow_missing: {config.allow_missing!r} is not a regular"
            f" expression ({error})"
        ) from error


def _check_generator(config: "PretrainingConfig") -> None:
    """Refuses the combinations that crash in the original."""
    if config.uniform_generator and not (
        config.electra_objective or config.electric_objective
    ):
        raise UserError(
            "hparam uniform_generator: needs electra_objective, since without"
            " a discriminator there is nothing to train; choose one"
        )
    if config.electric_objective and not config.two_tower_generator:
        raise UserError(
            "hparam two_tower_generator: electric_objective needs the"
            " two-tower generator; leave two_tower_generator out"
        )
    if not config.two_tower_generator:
        return
    why = "electric_objective" if config.electric_objective else ""
    why = f" (asked for by {why})" if why else ""
    if not config.untied_generator:
        raise UserError(
            f"hparam untied_generator: the two-tower generator{why} cannot"
            " share the discriminator's weights; leave untied_generator out"
        )
    if config.uniform_generator:
        raise UserError(
            f"hparam uniform_generator: cannot be combined with the two-tower"
            f" generator{why}; choose one"
        )
    if not (config.electra_objective or config.electric_objective):
        raise UserError(
            "hparam two_tower_generator: needs electra_objective or"
            " electric_objective; a masked LM has no separate generator"
        )


def _size_warnings(config: "PretrainingConfig") -> list[str]:
    """Finds base and large models with small's settings."""
    if (
        config.model_size == "small"
        or config.model_hparam_overrides.get("hidden_size", 768) < 512
    ):
        return []
    small = {"learning_rate": 5e-4}
    left = {"max_seq_length": 128, "train_batch_size": 128}
    if config.model_size == "base":
        left["generator_hidden_size"] = 0.25
    else:
        left["mask_prob"] = 0.15
    if not config.debug:
        # Somebody who asked for these values has said what they want.
        small |= {
            name: value
            for name, value in left.items()
            if config.origins.get(name, "default") == "default"
        }
    found = [
        f"{name} {getattr(config, name):g}"
        for name, value in small.items()
        if getattr(config, name) == value
    ]
    if not found:
        return []
    return [
        f"model_size is {config.model_size} but these are the small model's"
        f" settings: {', '.join(found)}. The paper's are one flag away:"
        f" --preset={config.model_size}"
        + (
            ". At this learning_rate larger discriminators have collapsed;"
            " the paper uses 0.0002"
            if config.learning_rate == 5e-4
            else ""
        )
    ]


def _length_warnings(config: "PretrainingConfig") -> list[str]:
    """Finds schedules and step counts that do not fit together."""
    if not config.do_train:
        return []
    found = []
    if 0 < config.num_train_steps <= config.num_warmup_steps:
        found.append(
            f"num_warmup_steps {config.num_warmup_steps} is not below"
            f" num_train_steps {config.num_train_steps}: the learning rate"
            f" never reaches {config.learning_rate:g}. Lower num_warmup_steps"
            f" (a tenth of the run is usual:"
            f" {max(1, config.num_train_steps // 10)})"
        )
    if config.learning_rate == 0:
        found.append("learning_rate is 0: no weight will change")
    if config.max_predictions_per_seq > config.max_seq_length:
        found.append(
            f"max_predictions_per_seq {config.max_predictions_per_seq} is more"
            f" than max_seq_length {config.max_seq_length}: the rest is padding"
        )
    return found


def _ignored_warnings(config: "PretrainingConfig") -> list[str]:
    """Finds settings that something else makes void, as in the original."""
    found = []
    overrides = config.model_hparam_overrides
    if overrides.get("vocab_size", config.vocab_size) != config.vocab_size:
        found.append(
            f"vocab_size {config.vocab_size} gives way to"
            f" {overrides['vocab_size']} in model_hparam_overrides"
        )
    sizes = (
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
    )
    lost = [name for name in sizes if name in overrides]
    if config.debug and lost:
        found.append(
            f"debug replaces {', '.join(lost)} of model_hparam_overrides by"
            " its own tiny sizes"
        )
    has_own_generator = (
        (config.electra_objective or config.electric_objective)
        and config.untied_generator
        and not config.uniform_generator
    )
    given = [
        name
        for name in (
            "generator_layers",
            "generator_hidden_size",
            "untied_generator_embeddings",
        )
        if config.origins.get(name, "default") not in ("default", "preset")
    ]
    if given and not has_own_generator:
        found.append(
            f"{', '.join(given)}: no effect, since there is no separate"
            " generator network with these settings"
        )
    if config.use_tpu and config.distribution_strategy not in ("auto", "tpu"):
        found.append(
            f"use_tpu is set but distribution_strategy is"
            f" {config.distribution_strategy}, which is used"
        )
    return found
