# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The initial checkpoint of fine-tuning, and the settings read from it."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from configure.config import SIZE_HPARAMS, TOKENIZER_HPARAMS
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import formats
from electra_tf.checkpoints.sizes import (
    UNSEEN_SIZES,
    encoder_config,
    merge_hparams,
)
from electra_tf.checkpoints.weights import Weights
from electra_tf.files.digests import file_sha256
from electra_tf.finetuning.inherited_heads import inherited_hparams
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text import vocabulary
from electra_tf.text.casing import resolve_casing
from electra_tf.text.settings_files import read_settings
from electra_tf.training.checkpointing import read_config


@dataclasses.dataclass(frozen=True)
class InitialCheckpoint:
    """The weights that a run starts from, and the resulting settings."""

    config: FinetuningConfig  # the settings, completed from the weights
    weights: Weights | None  # the opened checkpoint; None: random weights
    notes: tuple[str, ...]  # filled-in settings and warnings, for the console


def open_initial_checkpoint(config: FinetuningConfig) -> InitialCheckpoint:
    """Open the initial weights and fill in the settings that are not set.

    Sizes, casing and vocabulary are read from the pre-trained model unless the
    user set them.

    Raises:
      UserError: the checkpoint cannot be read, or a size or vocabulary that is
        set differs from the model's.
    """
    explicit = {
        name: value
        for name, value in config.as_dict().items()
        if config.is_explicit(name)
    }
    casing = _select(explicit, TOKENIZER_HPARAMS)
    weights = None
    values: dict[str, Any] = {}
    warnings: list[str] = []
    if config.init_checkpoint:
        weights = _open_weights(config.init_checkpoint)
        sizes = _select(explicit, (*SIZE_HPARAMS, "debug"))
        values = _read_sizes(weights, sizes, config.debug)
        inherited = inherited_hparams(
            weights,
            config.task_names,
            config.task_config,
            config.max_seq_length,
        )
        values |= {n: v for n, v in inherited.items() if n not in explicit}
        warnings = _list_warnings(
            weights,
            config.max_seq_length,
            casing,
            config.model_hparam_overrides,
        )
    if "vocab_file" not in explicit:
        values |= _find_vocab_file(config.pretrained_model_dir, weights)
    vocab_file = values.get("vocab_file", config.vocab_file)
    values |= _read_casing(weights, vocab_file, casing)
    # Without `fix_tagging_casing`, tagging splits words as the original does,
    # and ignores added tokens.
    has_added_tokens = bool(read_settings(vocab_file).distinctive)
    if has_added_tokens and "fix_tagging_casing" not in explicit:
        values["fix_tagging_casing"] = True
    current = config.as_dict()
    values = {n: v for n, v in values.items() if current[n] != v}
    notes = [
        f"{n} = {v} (from the pre-trained model)" for n, v in values.items()
    ]
    if values:
        config = config.with_values("checkpoint", values)
    rows = EncoderConfig.of(config).vocab_size
    count = len(vocabulary.check_vocab(config.vocab_file, rows))
    if weights is not None and weights.vocab_file:
        vocabulary.refuse_other_vocab(
            config.vocab_file, weights.vocab_file, weights.path
        )
    else:
        vocabulary.check_vocab_size(
            config.vocab_file,
            count,
            config.token_rows,
            config.implied_rows_origin,
        )
    return InitialCheckpoint(config, weights, (*notes, *warnings))


def _find_vocab_file(model_dir: str, weights: Weights | None) -> dict[str, Any]:
    """Return `vocab_file` of the pre-trained model; {} if it has none.

    Args:
      model_dir: default folder of the model, if the weights name no file.
      weights: the opened checkpoint; None: random weights.
    """
    vocab_file = None if weights is None else weights.vocab_file
    if not vocab_file:
        vocab_file = formats.find_vocab(model_dir)
    return {"vocab_file": vocab_file} if vocab_file else {}


def _select(
    hparams: Mapping[str, Any], names: Collection[str]
) -> dict[str, Any]:
    return {name: hparams[name] for name in names if name in hparams}


def _open_weights(path: str) -> Weights:
    try:
        return formats.open_weights(path)
    except UserError as error:
        raise UserError(
            f"init_checkpoint: {error} To start from random weights, set"
            " init_checkpoint to null."
        ) from error


def digest_weights(weights: Weights) -> str:
    """Return the digest of a file that changes whenever the weights change."""
    return file_sha256(formats.digest_file(weights.path))


def _list_warnings(
    weights: Weights,
    max_seq_length: int,
    casing: Mapping[str, bool],
    overrides: Collection[str],
) -> list[str]:
    """Return warnings about differences between the run and pre-training.

    Args:
      weights: the checkpoint.
      max_seq_length: the length of the run's examples.
      casing: the casing hparams that the user set.
      overrides: the names of the size hparams that the user set.
    """
    warnings = []
    settings = read_config(formats.find_model_folder(weights.path)) or {}
    # The settings of a fine-tuned model do not contain the length in
    # pre-training.
    if "task_names" not in settings:
        length = settings.get("max_seq_length", max_seq_length)
        if length < max_seq_length:
            warnings.append(
                f"max_seq_length is {max_seq_length}, but the model was"
                f" pre-trained with {length}, so the embeddings of later"
                " positions are untrained"
            )
    for name, value in casing.items():
        trained_value = weights.hparams.get(name, value)
        if trained_value != value:
            warnings.append(
                f"{name} = {value} was set, but the model was pre-trained with"
                f" {trained_value}"
            )
    if weights.hparams:
        return warnings
    for note in weights.contents.assumptions():
        is_overridden = note.split(":")[0] in overrides
        if note.startswith(UNSEEN_SIZES) and not is_overridden:
            warnings.append(f"{note}; no file of the model confirms this")
    return warnings


def _read_casing(
    weights: Weights | None, vocab_file: str, stated: Mapping[str, bool]
) -> dict[str, bool]:
    """Return the casing hparams that the model or its vocabulary determines.

    Args:
      weights: the checkpoint; None: random weights.
      vocab_file: the vocabulary of the run.
      stated: the casing hparams that the user set.
    """
    if weights is None:
        casing = resolve_casing(vocab_file, stated)
    else:
        casing = formats.resolve_model_casing(weights, vocab_file, stated)
    return {name: v for name, v in casing.items() if name not in stated}


def _read_sizes(
    weights: Weights, stated: Mapping[str, Any], debug: bool
) -> dict[str, Any]:
    """Return the size hparams that the weights determine.

    Args:
      weights: the checkpoint.
      stated: the size hparams that the user set.
      debug: whether the run trains a tiny model.

    Raises:
      UserError: a size that is set differs from the model's.
    """
    origin = "the given hparams"
    if debug:
        origin = "the hparams of debug (set init_checkpoint to null)"
    weights.contents.check_hparams(stated, origin)
    model_hparams = dict(weights.hparams) or weights.contents.hparams()
    hparams = merge_hparams(model_hparams, stated)
    if debug:
        return {}
    if weights.hparams:
        _refuse_other_sizes(
            encoder_config(model_hparams), encoder_config(hparams), weights.path
        )
    return {name: hparams[name] for name in SIZE_HPARAMS if name in hparams}


def _refuse_other_sizes(
    trained: EncoderConfig, stated: EncoderConfig, path: str
) -> None:
    """Raise a UserError if a size that tensor shapes do not show differs."""
    for name in UNSEEN_SIZES:
        trained_value, value = getattr(trained, name), getattr(stated, name)
        if trained_value != value:
            raise UserError(
                f"{path}: trained with {name} {trained_value}, but the hparams"
                f" set {value}. Set model_hparam_overrides.{name} to the"
                " trained value, or remove the sizes from the hparams."
            )
