# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a fine-tuning config may not say, and what it probably did not mean."""

import re
import typing
from collections.abc import Sequence

from configure.errors import UserError
from configure.pretraining_checks import (
    DEFAULT_MAX_POSITION_EMBEDDINGS,
    DISTRIBUTION_STRATEGIES,
    LR_READ_ORDERS,
    MODEL_SIZES,
)
from configure.training_switches import check_switches

if typing.TYPE_CHECKING:
    from configure.finetuning import FinetuningConfig

DATA_SOURCES = ("files", "tfds")
POOLINGS = ("first", "mean")
QUESTION_ANSWERING_TASKS = (
    "squad",
    "squadv1",
    "newsqa",
    "naturalqs",
    "triviaqa",
    "searchqa",
)

_CHOICES = {
    "model_size": MODEL_SIZES,
    "data_source": DATA_SOURCES,
    "pooling": POOLINGS,
    "lr_read_order": LR_READ_ORDERS,
    "distribution_strategy": DISTRIBUTION_STRATEGIES,
}
_AT_LEAST_ONE = (
    "num_trials",
    "embedding_size",
    "vocab_size",
    "save_checkpoints_steps",
    "iterations_per_loop",
    "train_batch_size",
    "eval_batch_size",
    "predict_batch_size",
    "max_query_length",
    "doc_stride",
    "n_best_size",
    "max_answer_length",
    "beam_size",
    "num_tpu_cores",
    "log_every_n_steps",
)
_AT_LEAST_ZERO = (
    "learning_rate",
    "weight_decay_rate",
    "answerable_weight",
    "n_writes_test",
    "seed",
    "shuffle_buffer_size",
    "freeze_layers",
    "eval_every_n_steps",
    "early_stopping_patience",
    "keep_checkpoint_max",
)
# [CLS] and [SEP] of a pair and one wordpiece of each text.
_SHORTEST_SEQUENCE = 5
_TASK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_task_names(names: Sequence[str]) -> None:
    """Raises for names that cannot be told apart or be part of a path.

    Args:
      names: the tasks to learn.

    Raises:
      UserError: none, one twice, or one with odd characters.
    """
    if not names:
        raise UserError(
            'hparam task_names: give at least one task, such as ["mrpc"]'
        )
    for name in names:
        if not _TASK_NAME.fullmatch(name):
            raise UserError(
                f"hparam task_names: {name!r} is no task name; letters,"
                " digits, dots, dashes and underscores make one"
            )
        if names.count(name) > 1:
            raise UserError(f"hparam task_names: {name} is given twice")


def validate(config: "FinetuningConfig") -> None:
    """Raises for settings that cannot work.

    Args:
      config: the config to check.

    Raises:
      UserError: names the hparams, their values, and what to change.
    """
    check_task_names(config.task_names)
    for name, choices in _CHOICES.items():
        value = getattr(config, name)
        if value not in choices:
            raise UserError(
                f"hparam {name}: must be one of {', '.join(choices)},"
                f" got {value!r}"
            )
    _check_ranges(config)
    _check_lengths(config)
    _check_training(config)


def check_mode(config: "FinetuningConfig") -> None:
    """Raises unless there is something to do.

    Args:
      config: the config of a run about to start.

    Raises:
      UserError: training, evaluation and test outputs are all turned off.
    """
    if not (config.do_train or config.do_eval or config.write_test_outputs):
        raise UserError(
            "Nothing to do: do_train, do_eval and write_test_outputs are all"
            " false; set one"
        )


def warnings(config: "FinetuningConfig") -> list[str]:
    """Returns what will run but is probably not meant.

    Args:
      config: the config of a run about to start.

    Returns:
      One text per finding, each naming the hparam and a remedy.
    """
    found = []
    origin = config.origins.get("max_seq_length", "default")
    if "naturalqs" in config.task_names and origin == "default":
        found.append(
            "naturalqs keeps max_seq_length 128 and 3 epochs, as in the"
            " original, which gives the other question answering tasks 512"
            " and 2; set max_seq_length to 512"
        )
    if config.debug and config.init_checkpoint:
        found.append(
            "debug still starts from init_checkpoint"
            f" {config.init_checkpoint}, as in the original; set it to null"
            " for random weights"
        )
    if config.layerwise_lr_decay > 1:
        found.append(
            f"layerwise_lr_decay {config.layerwise_lr_decay:g} is above 1:"
            " lower layers learn faster than higher ones"
        )
    if config.do_train and config.learning_rate == 0:
        found.append("learning_rate is 0: no weight will change")
    if config.predict_batch_size != config.eval_batch_size:
        found.append(
            f"predict_batch_size {config.predict_batch_size} has no effect:"
            f" eval_batch_size {config.eval_batch_size} is used (the original"
            " loses examples where the two differ)"
        )
    if config.use_tpu and config.distribution_strategy not in ("auto", "tpu"):
        found.append(
            "use_tpu is set but distribution_strategy is"
            f" {config.distribution_strategy}, which is used"
        )
    return found


def _require(
    config: "FinetuningConfig", name: str, ok: bool, wanted: str
) -> None:
    if not ok:
        raise UserError(
            f"hparam {name}: must be {wanted}, got {getattr(config, name)}"
        )


def _check_ranges(config: "FinetuningConfig") -> None:
    for name in _AT_LEAST_ONE:
        value = getattr(config, name)
        _require(config, name, value is None or value >= 1, "at least 1")
    for name in _AT_LEAST_ZERO:
        value = getattr(config, name)
        _require(config, name, value is None or value >= 0, "at least 0")
    _require(config, "num_train_epochs", config.num_train_epochs > 0, "above 0")
    _require(
        config,
        "warmup_proportion",
        0 <= config.warmup_proportion <= 1,
        "a fraction from 0 to 1",
    )
    _require(config, "seed", config.seed < 2**31, "below 2147483648")


def _check_lengths(config: "FinetuningConfig") -> None:
    """Refuses lengths that no example fits, or that the model lacks."""
    length = config.max_seq_length
    _require(
        config,
        "max_seq_length",
        length >= _SHORTEST_SEQUENCE,
        f"at least {_SHORTEST_SEQUENCE}",
    )
    positions = config.model_hparam_overrides.get(
        "max_position_embeddings", DEFAULT_MAX_POSITION_EMBEDDINGS
    )
    if length > positions:
        raise UserError(
            f"hparam max_seq_length: {length} is longer than the position"
            f" table, max_position_embeddings = {positions}. Shorten it, or"
            " use a model pre-trained on longer examples"
        )
    if not set(config.task_names) & set(QUESTION_ANSWERING_TASKS):
        return
    if config.max_query_length + 3 >= length:
        raise UserError(
            f"hparam max_query_length: {config.max_query_length} wordpieces of"
            f" a question leave no room for its passage in max_seq_length"
            f" {length}; lower the one or raise the other"
        )
    if config.joint_prediction and config.beam_size > length:
        raise UserError(
            f"hparam beam_size: {config.beam_size} is more than the"
            f" {length} positions of max_seq_length"
        )


def _check_training(config: "FinetuningConfig") -> None:
    """Refuses combinations of training settings that cannot work."""
    check_switches(config)
    for name in ("keep_best", "early_stopping_patience"):
        if getattr(config, name) and not config.eval_every_n_steps:
            raise UserError(
                f"hparam {name}: needs evaluations while training; set"
                " eval_every_n_steps"
            )
    try:
        re.compile(config.allow_missing or "")
    except re.error as error:
        raise UserError(
            f"hparam allow_missing: {config.allow_missing!r} is not a regular"
            f" expression ({error})"
        ) from error
