# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loading of checkpoints as pre-trained models with tokenizer and settings."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from configure.errors import UserError
from configure.generator import GeneratorKind
from configure.pretraining import PretrainingConfig, without_derived
from electra_tf.checkpoints import formats
from electra_tf.checkpoints.contents import Contents
from electra_tf.checkpoints.sizes import MODEL_HPARAMS, merge_hparams
from electra_tf.checkpoints.weights import (
    TensorSpec,
    View,
    Weights,
    check_shapes,
    match_tables,
    repeat_segment_row,
    variables_by_name,
)
from electra_tf.files import filesystem
from electra_tf.modeling.embeddings import DisentangledEmbeddings
from electra_tf.pretraining import unigram
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.vocabulary import refuse_other_vocab
from electra_tf.training.checkpointing import read_config

# Hparams, besides the sizes, on which a forward pass depends.
SETTINGS = (
    "disallow_correct",
    "disc_weight",
    "do_lower_case",
    "gen_weight",
    "mask_prob",
    "mask_replace_prob",
    "mask_without_replacement",
    "strip_accents",
    "temperature",
    "whole_word_mask",
)
# Values of hparams (as in JSON) by name.
Hparams = Mapping[str, object]


def model_hparams(weights: Weights) -> dict[str, object]:
    """Return the hparams of a checkpoint's model.

    The hparams are inferred from the variables, and read from a settings file
    of the checkpoint.
    """
    hparams = weights.contents.hparams()
    if weights.contents.is_headless:
        hparams["uniform_generator"] = True
    return merge_hparams(hparams, _model_settings(weights.hparams))


def _model_settings(hparams: Hparams) -> dict[str, object]:
    """Select the hparams that determine a model's sizes and outputs."""
    names = (*MODEL_HPARAMS, *SETTINGS)
    return without_derived({n: v for n, v in hparams.items() if n in names})


def model_config(
    hparams: Hparams, vocab_file: str, length: int
) -> PretrainingConfig:
    """Return the config of a model that is run without training.

    Args:
      hparams: hparams of the model.
      vocab_file: path of the vocabulary.
      length: maximum number of wordpieces in an input.
    """
    ignored = ("init_checkpoint", "allow_missing", "model_name", "data_dir")
    settings = {n: v for n, v in hparams.items() if n not in ignored}
    settings |= {"vocab_file": vocab_file, "max_seq_length": length}
    return PretrainingConfig.create("comparison", "comparison", **settings)


class LoadedModel:
    """A model with the weights of a (possibly incomplete) checkpoint."""

    def __init__(
        self, label: str, weights: Weights, model: PretrainingModel
    ) -> None:
        """Assign a checkpoint's weights to a model, one tensor at a time.

        Args:
          label: name of the model in messages.
          weights: weights of the checkpoint, which may be incomplete.
          model: model that gets the weights.

        Raises:
          UserError: shapes or numbers of layers differ.
        """
        self.label, self.model, self.config = label, model, model.config
        variables = variables_by_name(self.model.variables)
        weights = match_tables(weights, variables)
        shapes = weights.shapes
        self.missing = tuple(name for name in variables if name not in shapes)
        _check_layers(weights, variables)
        # Models are float32, regardless of the file's precision.
        float32 = np.dtype(np.float32)
        specs = {n: TensorSpec(shape, float32) for n, shape in shapes.items()}
        weights = View(
            weights, specs, lambda _, value: value.astype(float32, copy=False)
        )
        targets = {name: v for name, v in variables.items() if name in shapes}
        check_shapes(weights, targets, variables)
        for name, variable in targets.items():
            variable.assign(weights.read(name))

    @property
    def generator_networks(self) -> tuple[str, ...]:
        """Scopes of the generator's encoders, in the order of their outputs."""
        if self.model.generator is None:
            return ()
        if self.model.kind is GeneratorKind.TWO_TOWER:
            return ("generator_ltr", "generator_rtl")
        return ("generator",)

    def lacks_generator(self, with_head: bool = True) -> str | None:
        """Return why the generator (or masked LM) is incomplete, or None.

        Args:
          with_head: whether the head must be complete, too.
        """
        if self.model.generator is None:
            return f"{self.label} has no generator"
        layers: list[tf_keras.layers.Layer] = [self.model.generator]
        if with_head:
            layers.append(self.model.masked_lm_head)
        return self._lack("generator", layers)

    def lacks_discriminator(
        self, with_head: bool = True, corrected: bool = False
    ) -> str | None:
        """Return why the discriminator is incomplete, or None.

        Args:
          with_head: whether the head must be complete, too.
          corrected: whether Electric's logits need the generator's offset, and
            thus a complete generator.
        """
        if self.model.discriminator is None:
            return f"{self.label} has no discriminator"
        layers: list[tf_keras.layers.Layer] = [self.model.discriminator]
        if with_head and self.model.discriminator_head is None:
            return (
                f"{self.label} has no discriminator head, because the second"
                f" network is a masked LM (objective {self.config.objective})"
            )
        if with_head:
            layers.append(self.model.discriminator_head)
            if corrected and self.config.electric_objective:
                if self.model.generator is None:
                    return self.lacks_generator()
                layers += [self.model.generator, self.model.masked_lm_head]
        return self._lack("discriminator", layers)

    def lacks_token_head(self) -> str | None:
        """Return why the second network's masked LM is incomplete, or None."""
        layers: list[tf_keras.layers.Layer] = [
            self.model.discriminator,
            self.model.token_head,
        ]
        return self._lack("second masked LM", layers)

    def _lack(
        self, network: str, layers: Sequence[tf_keras.layers.Layer]
    ) -> str | None:
        """Return a description of the layers' missing variables, or None."""
        names = {
            v.name.split(":")[0] for layer in layers for v in layer.variables
        }
        absent = [name for name in self.missing if name in names]
        if not absent:
            return None
        # Embeddings alone do not count as this network, because generator and
        # discriminator can share embeddings.
        if all(name in absent or "/embeddings/" in name for name in names):
            return f"{self.label} has no {network}"
        return (
            f"{self.label} lacks {len(absent)} of the {network}'s {len(names)}"
            f" variables, such as {absent[0]}"
        )


def _check_layers(
    weights: Weights, variables: Mapping[str, tf.Variable]
) -> None:
    """Raise a UserError if checkpoint and model have unequal layer counts."""
    stored = weights.contents.layers
    built = Contents(dict.fromkeys(variables, ())).layers
    for scope in built.keys() & stored.keys():
        stored_count = max(stored[scope]) + 1
        built_count = max(built[scope]) + 1
        if stored_count != built_count:
            raise UserError(
                f"{weights.path}: {scope} has {stored_count} layers, but the"
                f" hparams describe {built_count}. Change num_hidden_layers in"
                " model_hparam_overrides, or generator_layers."
            )


class PretrainedModel(LoadedModel):
    """A model with a checkpoint's weights and a tokenizer.

    Attributes:
      path, global_step: path and step of the checkpoint.
      stated: names of the hparams from a file or from the caller.
      assumptions: descriptions of assumed hparams.
    """

    def __init__(
        self,
        weights: Weights,
        config: PretrainingConfig,
        stated: frozenset[str],
    ) -> None:
        """Load the model; see `read_pretrained` for the arguments."""
        if {head.kind for head in weights.heads.values()} == {"tagging"}:
            weights = repeat_segment_row(weights, 1)
        super().__init__(weights.path, weights, PretrainingModel(config))
        embeddings = self.model.embeddings
        if isinstance(embeddings, DisentangledEmbeddings):
            # This model is not trained, and therefore needs only the sum of the
            # shared table and the delta.
            self.model.embeddings = embeddings.folded()
            self.model.discriminator.embeddings = self.model.embeddings
        self.path, self.global_step = weights.path, weights.global_step
        self.tokenizer = FullTokenizer(
            config.vocab_file, config.do_lower_case, config.strip_accents
        )
        counts = os.path.join(
            formats.find_model_folder(weights.path), unigram.TOKEN_COUNTS
        )
        if self.model.kind is GeneratorKind.UNIGRAM and filesystem.exists(
            counts
        ):
            vocab_size = self.model.encoder_config.vocab_size
            self.model.token_counts = unigram.read_counts(counts, vocab_size)
        self.stated = stated
        self.assumptions: tuple[str, ...] = ()
        if not stated:
            self.assumptions = tuple(weights.contents.assumptions())

    @property
    def max_length(self) -> int:
        """Maximum number of wordpieces in an input, with [CLS] and [SEP]."""
        return self.config.max_seq_length

    @property
    def is_electric(self) -> bool:
        """Return whether the discriminator is Electric's."""
        return self.model.discriminates and self.config.electric_objective

    @property
    def is_generator_alone(self) -> bool:
        """Return whether all blocks of the discriminator are missing."""
        if self.model.discriminator is None:
            return False
        blocks = self.model.discriminator.blocks
        names = {v.name.split(":")[0] for b in blocks for v in b.variables}
        return names <= set(self.missing)

    def require_generator(self, purpose: str) -> None:
        """Raise a UserError unless the generator and its head are complete.

        Args:
          purpose: purpose of the caller, for the message.
        """
        part = "a complete generator or masked LM"
        _require(self.lacks_generator(), purpose, part)

    def require_discriminator(self, purpose: str) -> None:
        """Raise a UserError unless the discriminator and its head are complete.

        Args:
          purpose: purpose of the caller, for the message.
        """
        part = "a complete discriminator with its head"
        _require(self.lacks_discriminator(), purpose, part)


def _require(lack: str | None, purpose: str, part: str) -> None:
    if lack:
        raise UserError(
            f"{lack}, but {purpose} requires {part}. Pass the run's model"
            f" directory, or a checkpoint that contains {part}."
        )


def load_pretrained(
    path: str,
    vocab_file: str | None = None,
    hparams: Hparams | None = None,
) -> PretrainedModel:
    """Load a pre-trained model; see `read_pretrained`."""
    return PretrainedModel(*read_pretrained(path, vocab_file, hparams))


def read_pretrained(
    path: str,
    vocab_file: str | None = None,
    hparams: Hparams | None = None,
) -> tuple[Weights, PretrainingConfig, frozenset[str]]:
    """Open a checkpoint, and read its settings.

    Args:
      path: folder of a run, an export, a checkpoint of any format, a Hugging
        Face folder, or a name; see `formats.resolve_reference`.
      vocab_file: path of the vocabulary; None: the vocabulary next to the
        checkpoint.
      hparams: values that take precedence over those of the checkpoint.

    Returns:
      The weights, whose values are not yet read, the settings, and the names of
      the hparams from a file or from the caller.

    Raises:
      UserError: the vocabulary is missing, or belongs to a different model.
    """
    path = formats.resolve_reference(path)
    weights = formats.open_weights(path)
    overrides = PretrainingConfig.clean_hparams(dict(hparams or {}))
    run: dict[str, Any] = read_config(formats.find_model_folder(path)) or {}
    if "model_size" not in run:  # A different program wrote config.json.
        run = {}
    settings = merge_hparams(model_hparams(weights), _model_settings(run))
    settings = merge_hparams(settings, overrides)
    vocab = _vocab_file(weights, run, vocab_file or overrides.get("vocab_file"))
    settings = (
        formats.resolve_model_casing(weights, vocab, overrides) | settings
    )
    if weights.vocab_file:
        refuse_other_vocab(vocab, weights.vocab_file, weights.path)
    positions = weights.contents.sizes.max_position_embeddings
    stated = run.get("max_seq_length") or weights.max_length or positions
    length = overrides.get("max_seq_length", min(stated, positions))
    config = model_config(settings, vocab, length)
    return weights, config, frozenset({*weights.hparams, *run, *overrides})


def _vocab_file(weights: Weights, run: Hparams, chosen: str | None) -> str:
    """Return the path of the vocabulary, or raise a UserError."""
    if path := chosen or weights.vocab_file:
        return path
    cause = "no vocabulary exists next to the checkpoint"
    if name := run.get("vocab_file"):
        cause = f"the vocabulary of the run, {name}, no longer exists"
    raise UserError(
        f"{weights.path}: {cause}. Pass --vocab_file with the vocabulary with"
        " which the model was trained."
    )
