# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The weights a run starts from, and what follows from them."""

import dataclasses
import os
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import electra_config
from electra_tf.checkpoints.contents import merged
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.weights import Weights
from electra_tf.finetuning.model import encoder_sizes
from electra_tf.text.vocab import check_vocab
from electra_tf.training import checkpointing
from electra_tf.training.run_directory import remove_run

_SETTLED_ORIGINS = ("default", "derived")
_SIZE_HPARAMS = (
    "model_size",
    "embedding_size",
    "vocab_size",
    "model_hparam_overrides",
)
_TOKENIZER_HPARAMS = ("do_lower_case", "strip_accents")
# Sizes that no shape shows.
_UNSEEN_SIZES = ("num_attention_heads", "hidden_act")


@dataclasses.dataclass(frozen=True)
class Start:
    """What a run starts from.

    Attributes:
      config: the hparams with what follows from the weights filled in.
      weights: the starting weights, opened; None for random ones.
      notes: what was filled in, for the console.
    """

    config: FinetuningConfig
    weights: Weights | None
    notes: tuple[str, ...]


def resolve_start(config: FinetuningConfig) -> Start:
    """Opens the starting weights and takes from them what nobody stated.

    Sizes, casing and vocabulary are the pre-trained model's unless they are
    given; sizes that are given must be the model's.
    """
    weights = None
    adopted: dict[str, Any] = {}
    if config.init_checkpoint:
        weights = _open(config)
        adopted = _sizes_of(config, weights)
        for name in _TOKENIZER_HPARAMS:
            if name in weights.hparams and not is_stated(config, name):
                adopted[name] = weights.hparams[name]
    adopted |= _vocabulary(config, weights)
    now = config.as_dict()
    adopted = {n: v for n, v in adopted.items() if now[n] != v}
    notes = [
        f"{n} = {v} (of the pre-trained model)" for n, v in adopted.items()
    ]
    notes += _tokenizer_notes(config, weights)
    notes += _guesses(config, weights)
    resolved = _with(config, adopted)
    _check_vocabulary(resolved)
    return Start(resolved, weights, tuple(notes))


def _open(config: FinetuningConfig) -> Weights:
    try:
        return open_weights(config.init_checkpoint)
    except UserError as error:
        raise UserError(
            f"init_checkpoint: {error} To start from random weights, set"
            " init_checkpoint to null."
        ) from error


def is_stated(config: FinetuningConfig, name: str) -> bool:
    """Whether somebody asked for a value, rather than a default."""
    return config.origins.get(name, "argument") not in _SETTLED_ORIGINS


def _sizes_of(config: FinetuningConfig, weights: Weights) -> dict[str, Any]:
    """The size hparams that the weights fill in; refuses contradictions."""
    given = {
        name: getattr(config, name)
        for name in (*_SIZE_HPARAMS, "debug")
        if is_stated(config, name)
    }
    weights.contents.check_hparams(given)
    stored = dict(weights.hparams) or weights.contents.hparams()
    whole = merged(stored, given)
    if config.debug:
        return {}
    _check_unseen_sizes(weights, stored, whole)
    return {name: whole[name] for name in _SIZE_HPARAMS if name in whole}


def _check_unseen_sizes(
    weights: Weights, stored: dict[str, Any], whole: dict[str, Any]
) -> None:
    if not weights.hparams:
        return
    theirs, ours = (
        encoder_sizes(_Sizes.of(hparams)) for hparams in (stored, whole)
    )
    for name in _UNSEEN_SIZES:
        if getattr(theirs, name) != getattr(ours, name):
            raise UserError(
                f"{weights.path} was trained with {name}"
                f" {getattr(theirs, name)}, the given hparams make it"
                f" {getattr(ours, name)}; set"
                f" model_hparam_overrides.{name}, or leave the sizes out."
            )


@dataclasses.dataclass(frozen=True)
class _Sizes:
    """What `encoder_sizes` looks at."""

    model_size: str
    vocab_size: int
    model_hparam_overrides: dict[str, Any]
    debug: bool

    @classmethod
    def of(cls, hparams: dict[str, Any]) -> "_Sizes":
        return cls(
            hparams.get("model_size", "small"),
            hparams.get("vocab_size", 30522),
            hparams.get("model_hparam_overrides") or {},
            hparams.get("debug", False),
        )


def _vocabulary(
    config: FinetuningConfig, weights: Weights | None
) -> dict[str, str]:
    """The model's own vocabulary, where it has one and none is given."""
    if is_stated(config, "vocab_file"):
        return {}
    own = os.path.join(config.pretrained_model_dir, "vocab.txt")
    if tf.io.gfile.exists(own):
        return {"vocab_file": own}
    if weights is not None and weights.vocab_file:
        return {"vocab_file": weights.vocab_file}
    return {}


def _tokenizer_notes(
    config: FinetuningConfig, weights: Weights | None
) -> list[str]:
    """Says where a given tokenizer setting is not the model's."""
    if weights is None:
        return []
    return [
        f"{name} = {getattr(config, name)}, as given, though the model was"
        f" pre-trained with {weights.hparams[name]}"
        for name in _TOKENIZER_HPARAMS
        if is_stated(config, name)
        and weights.hparams.get(name, getattr(config, name))
        != getattr(config, name)
    ]


def _guesses(config: FinetuningConfig, weights: Weights | None) -> list[str]:
    """Names what neither the checkpoint nor anybody says."""
    if weights is None or weights.hparams:
        return []
    return [
        f"{note}; it has no file that says so"
        for note in weights.contents.assumptions()
        if note.split(":")[0] not in config.model_hparam_overrides
        and note.startswith(_UNSEEN_SIZES)
    ]


def _check_vocabulary(config: FinetuningConfig) -> None:
    vocab = check_vocab(config.vocab_file)
    sizes = encoder_sizes(config)
    if max(vocab.values()) >= sizes.vocab_size:
        raise UserError(
            f"{config.vocab_file} holds {max(vocab.values()) + 1} tokens but"
            f" the model has {sizes.vocab_size}; use the vocabulary that it was"
            " pre-trained with."
        )


def _with(
    config: FinetuningConfig, adopted: dict[str, Any]
) -> FinetuningConfig:
    """The config as if the adopted values had been its defaults."""
    if not adopted:
        return config
    layers: list[tuple[str, dict[str, Any]]] = []
    for name, value in config.as_dict().items():
        if is_stated(config, name) and name not in ("model_name", "data_dir"):
            origin = config.origins.get(name, "argument")
            layers.append((origin, {name: value}))
    return FinetuningConfig.from_layers(
        config.model_name,
        config.data_dir,
        # The joined overrides hold the given ones.
        [*layers, ("checkpoint", adopted)],
        config.origins.get("model_name", "argument"),
    )


# The directory of a trial: what may be in it, and when it may go.

VOCAB_FILE = electra_config.VOCAB_FILE
# Labels that a task found in its data, copied from beside the records.
LABEL_SUFFIXES = ("_labels.json", "_label_mapping.json")
# A trained model stays what it is when these change.
FREE_HPARAMS = frozenset(
    {
        "data_dir",
        "distribution_strategy",
        "do_eval",
        "do_train",
        "early_stopping_patience",
        "eval_batch_size",
        "eval_every_n_steps",
        "gcp_project",
        "group_eval_by_length",
        "iterations_per_loop",
        "keep_all_models",
        "keep_checkpoint_max",
        "log_every_n_steps",
        "log_examples",
        "max_answer_length",
        "model_dir",
        "n_best_size",
        "n_writes_test",
        "num_tpu_cores",
        "num_trials",
        "overwrite",
        "predict_batch_size",
        "preprocessed_data_dir",
        "qa_na_threshold",
        "recompute_grad",
        "require_gpu",
        "results_json",
        "results_pkl",
        "results_txt",
        "save_checkpoints_steps",
        "strict_rows",
        "tfds_data_dir",
        "threads",
        "tpu_job_name",
        "tpu_name",
        "tpu_zone",
        "use_tfrecords_if_existing",
        "use_tpu",
        "write_distill_outputs",
        "write_test_outputs",
    }
)


def changed_hparams(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Texts `name: old -> new` of what makes another model."""
    names = tuple(name for name in now if name not in FREE_HPARAMS)
    return checkpointing.changed(before, now, names)


def check_same_run(path: str, now: dict[str, Any]) -> None:
    """Raises where a trial's directory is of a run with other hparams."""
    before = checkpointing.read_config(path)
    differing = changed_hparams(before or {}, now)
    if differing:
        raise UserError(
            f"{path} holds a model fine-tuned with other hparams:\n"
            + "".join(f"  {text}\n" for text in differing)
            + "Set them as they were to continue it, choose another model_dir,"
            " or use --overwrite to delete it and start anew."
        )


def make(path: str) -> None:
    """Makes a trial's directory."""
    try:
        tf.io.gfile.makedirs(path)
    except tf.errors.OpError as error:
        raise UserError(
            f"model_dir {path} cannot be written: {error.message}. Choose"
            " another model_dir or data_dir, or correct its permissions."
        ) from error


def remove(path: str) -> bool:
    """Deletes a trial's directory."""
    if not tf.io.gfile.exists(path):
        return False
    labels = [
        n for n in tf.io.gfile.listdir(path) if n.endswith(LABEL_SUFFIXES)
    ]
    remove_run(path, "fine-tuning", names=(VOCAB_FILE, *labels))
    return True


def trained_checkpoint(path: str) -> str | None:
    """The model to evaluate in a trial's directory: best, or newest."""
    kept = os.path.join(path, checkpointing.DIRECTORY)
    return tf.train.latest_checkpoint(kept) or tf.train.latest_checkpoint(path)
