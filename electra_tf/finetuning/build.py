# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a configuration to starting weights, model and optimizer."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from configure.config import SIZE_HPARAMS, TOKENIZER_HPARAMS
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import formats
from electra_tf.checkpoints.assignment import Coverage, assign
from electra_tf.checkpoints.sizes import (
    UNSEEN_SIZES,
    encoder_config,
    merge_hparams,
)
from electra_tf.checkpoints.weights import Weights
from electra_tf.files.digests import file_sha256
from electra_tf.finetuning.inheritance import inherited_hparams
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.task import Task
from electra_tf.modeling.activation_checkpointing import needs_checkpointing
from electra_tf.modeling.encoder import ComputePolicy, set_compute_policy
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.precision import block_dtype
from electra_tf.optimization import layer_rates as rates
from electra_tf.optimization import optimizer
from electra_tf.plan.machine import machine_memory
from electra_tf.plan.memory import activations_limit, finetuning_memory
from electra_tf.text import tokenization
from electra_tf.text.casing import resolve_casing
from electra_tf.text.tokenizer_settings import read_settings
from electra_tf.training.checkpointing import read_config
from electra_tf.training.replicas import rows_per_machine

# Variables that the starting weights may lack.
HEADS = "^task_specific/"


def build_model(
    config: FinetuningConfig, tasks: Sequence[Task]
) -> FinetuningModel:
    """Returns a freshly initialized model."""
    model = FinetuningModel(config, tasks)
    sizes = model.encoder_config
    trained = max(0, sizes.num_hidden_layers - config.freeze_layers)
    estimate = finetuning_memory(
        config,
        dataclasses.replace(sizes, num_hidden_layers=trained),
        sum(v.shape.num_elements() for v in model.variables),
        rows_per_machine(config.train_batch_size),
    )
    checkpoints = config.do_train and needs_checkpointing(
        config.recompute_grad,
        estimate.total,
        activations_limit(machine_memory()),
    )
    dtype = block_dtype(config.mixed_precision)
    set_compute_policy(model, ComputePolicy(dtype, checkpoints))
    return model


def load_weights(
    config: FinetuningConfig, weights: Weights, model: FinetuningModel
) -> Coverage:
    """Gives a model the starting weights; heads that lack there stay fresh."""
    allowed = HEADS
    if config.allow_missing:
        allowed = f"(?:{HEADS})|(?:{config.allow_missing})"
    return assign(weights, model.variables, allow_missing=allowed)


def trained_variables(
    config: FinetuningConfig, model: FinetuningModel
) -> list[tf.Variable]:
    """Returns the variables that training changes."""
    frozen = config.freeze_layers
    if not frozen:
        return list(model.trainable_variables)
    layers = model.encoder_config.num_hidden_layers
    if frozen > layers:
        raise UserError(
            f"freeze_layers is {frozen} but the model has {layers} layers."
        )
    prefixes = ["electra/embeddings/", "electra/embeddings_project/"]
    prefixes += [f"electra/encoder/layer_{i}/" for i in range(frozen)]
    return [
        variable
        for variable in model.trainable_variables
        if not variable.name.startswith(tuple(prefixes))
    ]


def build_optimizer(
    config: FinetuningConfig, model: FinetuningModel, num_train_steps: int
) -> optimizer.AdamWeightDecay:
    """Returns the optimizer of a model's trained variables."""
    schedule = optimizer.WarmupPolynomialDecay(
        config.learning_rate,
        num_train_steps,
        num_train_steps * config.warmup_proportion,
        read_order=config.lr_read_order,
    )
    variables = trained_variables(config, model)
    multipliers = rates.layer_multipliers(
        map(optimizer.variable_name, variables),
        *_layerwise_arguments(config, model),
    )
    return optimizer.make_optimizer(config, variables, schedule, multipliers)


def layer_rates(
    config: FinetuningConfig, model: FinetuningModel
) -> list[rates.LayerRate]:
    """Returns the table of the trained layers' rates, the lowest first."""
    names = [*map(optimizer.variable_name, trained_variables(config, model))]
    return rates.rate_table(names, *_layerwise_arguments(config, model))


def _layerwise_arguments(
    config: FinetuningConfig, model: FinetuningModel
) -> tuple[float, int, bool]:
    return (
        config.layerwise_lr_decay,
        model.encoder_config.num_hidden_layers,
        config.fix_layerwise_lr_decay,
    )


@dataclasses.dataclass(frozen=True)
class Start:
    """What a run starts from."""

    config: FinetuningConfig  # with what follows from the weights filled in
    weights: Weights | None  # opened; None for random ones
    notes: tuple[str, ...]  # what was filled in, for the console


def resolve_start(config: FinetuningConfig) -> Start:
    """Opens the starting weights and takes from them what nobody stated.

    Sizes, casing and vocabulary are the pre-trained model's unless they are
    given; sizes that are given must be the model's.
    """
    weights = None
    adopted: dict[str, Any] = {}
    notes = []
    if config.init_checkpoint:
        try:
            weights = formats.open_weights(config.init_checkpoint)
        except UserError as error:
            raise UserError(
                f"init_checkpoint: {error} To start from random weights, set"
                " init_checkpoint to null."
            ) from error
        adopted = _sizes_of(config, weights)
        adopted |= inherited_hparams(config, weights)
        run = read_config(formats.find_model_folder(weights.path)) or {}
        if "task_names" not in run:  # Pre-trained, and by this project.
            length = run.get("max_seq_length", config.max_seq_length)
            if length < config.max_seq_length:
                notes.append(
                    f"max_seq_length {config.max_seq_length}: the model was"
                    f" pre-trained at {length}; positions beyond are random"
                )
        for name in filter(config.is_stated, TOKENIZER_HPARAMS):
            ours = getattr(config, name)
            theirs = weights.hparams.get(name, ours)
            if theirs != ours:
                notes.append(
                    f"{name} = {ours}, as given, though the model was"
                    f" pre-trained with {theirs}"
                )
        notes += [
            f"{note}; it has no file that says so"
            for note in weights.contents.assumptions()
            if note.split(":")[0] not in config.model_hparam_overrides
            and note.startswith(UNSEEN_SIZES)
            and not weights.hparams
        ]
    if not config.is_stated("vocab_file"):
        theirs = getattr(weights, "vocab_file", None)
        if own := theirs or formats.find_vocab(config.pretrained_model_dir):
            adopted["vocab_file"] = own
    vocab_file = adopted.get("vocab_file", config.vocab_file)
    adopted |= _casing(config, weights, vocab_file)
    # The original's way to split words to tag knows no added tokens.
    has_own_rules = bool(read_settings(vocab_file).distinctive)
    if has_own_rules and not config.is_stated("fix_tagging_casing"):
        adopted["fix_tagging_casing"] = True
    now = config.as_dict()
    adopted = {n: v for n, v in adopted.items() if now[n] != v}
    taken = [
        f"{n} = {v} (of the pre-trained model)" for n, v in adopted.items()
    ]
    if adopted:  # The joined overrides hold the given ones.
        config = config.with_values("checkpoint", adopted)
    _check_vocabulary(config, weights)
    return Start(config, weights, (*taken, *notes))


def _casing(
    config: FinetuningConfig, weights: Weights | None, vocab_file: str
) -> dict[str, bool]:
    """Return the casing hparams that the model or its vocabulary fills in."""
    given = {
        name: getattr(config, name)
        for name in filter(config.is_stated, TOKENIZER_HPARAMS)
    }
    if weights is None:
        casing = resolve_casing(vocab_file, given)
    else:
        casing = formats.resolve_model_casing(weights, vocab_file, given)
    return {name: v for name, v in casing.items() if name not in given}


def digest_of_start(weights: Weights) -> str:
    """Of the file that changes with the weights, whatever they are."""
    return file_sha256(formats.digest_file(weights.path))


def _sizes_of(config: FinetuningConfig, weights: Weights) -> dict[str, Any]:
    """The size hparams that the weights fill in; refuses contradictions."""
    given = {
        name: getattr(config, name)
        for name in (*SIZE_HPARAMS, "debug")
        if config.is_stated(name)
    }
    of = "debug (set init_checkpoint to null)" if config.debug else "the given"
    weights.contents.check_hparams(given, f"{of} hparams")
    stored = dict(weights.hparams) or weights.contents.hparams()
    whole = merge_hparams(stored, given)
    if config.debug:
        return {}
    theirs, ours = encoder_config(stored), encoder_config(whole)
    for name in UNSEEN_SIZES if weights.hparams else ():
        if getattr(theirs, name) != getattr(ours, name):
            raise UserError(
                f"{weights.path} was trained with {name}"
                f" {getattr(theirs, name)}, the given hparams make it"
                f" {getattr(ours, name)}; set"
                f" model_hparam_overrides.{name}, or leave the sizes out."
            )
    return {name: whole[name] for name in SIZE_HPARAMS if name in whole}


def _check_vocabulary(
    config: FinetuningConfig, weights: Weights | None
) -> None:
    rows = EncoderConfig.of(config).vocab_size
    count = len(tokenization.check_vocab(config.vocab_file, rows))
    if weights is not None and weights.vocab_file:
        own = weights.vocab_file
        tokenization.refuse_other_vocab(config.vocab_file, own, weights.path)
    else:
        tokenization.check_vocab_size(config, count)
