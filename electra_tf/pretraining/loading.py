# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint as a pre-trained model with weights, tokenizer and settings."""

import contextlib
import functools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tf_keras

from configure.errors import UserError
from configure.generator import GeneratorKind
from configure.pretraining import PretrainingConfig, beyond_switches
from electra_tf.checkpoints import formats, tf1
from electra_tf.checkpoints.contents import Contents
from electra_tf.checkpoints.sizes import MODEL_HPARAMS, merge_hparams
from electra_tf.checkpoints.weights import (
    ModelWeights,
    TensorSpec,
    View,
    Weights,
    check_shapes,
    match_tables,
    repeat_segment_row,
    select_part,
    variables_by_name,
)
from electra_tf.files import filesystem
from electra_tf.modeling.embeddings import DisentangledEmbeddings
from electra_tf.pretraining import unigram
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.vocabulary import refuse_other_vocab
from electra_tf.training.checkpointing import read_config

# What a forward pass on text depends on besides the sizes.
SETTINGS = tuple(
    """
    disallow_correct disc_weight do_lower_case gen_weight mask_prob
    mask_replace_prob mask_without_replacement strip_accents temperature
    whole_word_mask
    """.split()
)


def model_hparams(weights: Weights) -> dict[str, Any]:
    """Finds out of which hparams a checkpoint's model is."""
    hparams = weights.contents.hparams()
    if weights.contents.is_headless:
        hparams["uniform_generator"] = True
    return merge_hparams(hparams, _stated_hparams(weights.hparams))


def _stated_hparams(given: Mapping[str, Any]) -> dict[str, Any]:
    """Takes from a configuration what sizes and outputs depend on."""
    known = (*MODEL_HPARAMS, *SETTINGS)
    return beyond_switches({n: v for n, v in given.items() if n in known})


def model_config(
    hparams: Mapping[str, Any], vocab_file: str, length: int
) -> PretrainingConfig:
    """Completes hparams to a configuration."""
    left_out = ("init_checkpoint", "allow_missing", "model_name", "data_dir")
    settings = {n: v for n, v in hparams.items() if n not in left_out}
    settings |= {"vocab_file": vocab_file, "max_seq_length": length}
    return PretrainingConfig.create("comparison", "comparison", **settings)


class LoadedModel:
    """A model with a checkpoint's weights, and what stayed without."""

    def __init__(
        self, label: str, weights: Weights, config: PretrainingConfig
    ) -> None:
        """Builds the model and fills it, one tensor at a time."""
        self.label, self.config = label, config
        self.model = PretrainingModel(config)
        wanted = variables_by_name(self.model.variables)
        weights = match_tables(weights, wanted)
        held = weights.shapes
        self.missing = tuple(name for name in wanted if name not in held)
        # Nor is a network run with other layers than it has.
        stored = weights.contents.layers
        given = Contents(dict.fromkeys(wanted, ())).layers
        for scope in given.keys() & stored.keys():
            if (held_to := max(stored[scope])) != max(given[scope]):
                raise UserError(
                    f"{weights.path}: {scope} has {held_to + 1} layers, the"
                    f" hparams describe {max(given[scope]) + 1}; change"
                    " num_hidden_layers in model_hparam_overrides, or"
                    " generator_layers."
                )
        # Another precision is read as the one that models have.
        float32 = np.dtype(np.float32)
        specs = {n: TensorSpec(shape, float32) for n, shape in held.items()}
        weights = View(
            weights, specs, lambda _, value: value.astype(float32, copy=False)
        )
        targets = {name: v for name, v in wanted.items() if name in held}
        check_shapes(weights, targets, wanted)
        # Straight into place: nobody sees this model half-loaded.
        for name, variable in targets.items():
            variable.assign(weights.read(name))

    @property
    def generator_networks(self) -> tuple[str, ...]:
        """Names of the generator's networks, in the order of its outputs."""
        if self.model.generator is None:
            return ()
        if self.model.kind is GeneratorKind.TWO_TOWER:
            return ("generator_ltr", "generator_rtl")
        return ("generator",)

    def lacks_generator(self, with_head: bool = True) -> str | None:
        """Says why there is no (complete) generator or masked LM, if so."""
        if self.model.generator is None:
            return f"{self.label} has no generator"
        layers = [self.model.generator]
        if with_head:
            layers.append(self.model.masked_lm_head)
        return self._lack("generator", layers)

    def lacks_discriminator(
        self, with_head: bool = True, corrected: bool = False
    ) -> str | None:
        """Says why there is no (complete) discriminator, if so.

        Where Electric's logits are to be corrected by its generator, that is
        needed, too; not for the raw ones.
        """
        if self.model.discriminator is None:
            return f"{self.label} has no discriminator"
        layers = [self.model.discriminator]
        if with_head and self.model.discriminator_head is None:
            return (
                f"{self.label} has no discriminator's head: its second network"
                f" is a masked LM (objective {self.config.objective})"
            )
        if with_head:
            layers.append(self.model.discriminator_head)
            if corrected and self.config.electric_objective:
                if self.model.generator is None:
                    return self.lacks_generator()
                layers += [self.model.generator, self.model.masked_lm_head]
        return self._lack("discriminator", layers)

    def lacks_token_head(self) -> str | None:
        """Says why the second network's masked LM is not complete, if so."""
        layers = [self.model.discriminator, self.model.token_head]
        return self._lack("second masked LM", layers)

    def _lack(
        self, what: str, layers: list[tf_keras.layers.Layer]
    ) -> str | None:
        needed = {
            v.name.split(":")[0] for layer in layers for v in layer.variables
        }
        absent = [name for name in self.missing if name in needed]
        if not absent:
            return None
        # Embeddings may be there for the sake of the other network.
        if all(name in absent or "/embeddings/" in name for name in needed):
            return f"{self.label} has no {what}"
        return (
            f"{self.label} lacks {len(absent)} of the {what}'s {len(needed)}"
            f" variables, {absent[0]} first"
        )


class PretrainedModel(LoadedModel):
    """A model with a checkpoint's weights, and what turns text into its ids."""

    def __init__(
        self, weights: Weights, config: PretrainingConfig, stated: frozenset
    ) -> None:
        if {head.kind for head in weights.heads.values()} == {"tagging"}:
            weights = repeat_segment_row(weights, 1)
        super().__init__(weights.path, weights, config)
        embeddings = self.model.embeddings
        if isinstance(embeddings, DisentangledEmbeddings):
            # One table from here on: nobody trains this model.
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
            rows = self.model.encoder_config.vocab_size
            self.model.token_counts = unigram.read_counts(counts, rows)
        self.stated = stated  # hparams, by a file or by the caller
        self.assumptions: tuple[str, ...] = ()  # what nothing states
        if not stated:
            self.assumptions = tuple(weights.contents.assumptions())

    @property
    def max_length(self) -> int:
        """Longest input in wordpieces, [CLS] and [SEP] included."""
        return self.config.max_seq_length

    @property
    def is_electric(self) -> bool:
        return self.model.discriminates and self.config.electric_objective

    @property
    def is_generator_alone(self) -> bool:
        """Whether the checkpoint lacked all of the discriminator's blocks."""
        if self.model.discriminator is None:
            return False
        blocks = self.model.discriminator.blocks
        names = {v.name.split(":")[0] for b in blocks for v in b.variables}
        return names <= set(self.missing)

    def require_generator(self, purpose: str) -> None:
        what = "generator (or a masked LM)"
        _refuse_lack(self.lacks_generator(), purpose, what)

    def require_discriminator(self, purpose: str) -> None:
        what = "discriminator with its head"
        _refuse_lack(self.lacks_discriminator(), purpose, what)


def _refuse_lack(why: str | None, purpose: str, what: str) -> None:
    if why:
        raise UserError(
            f"{why}; {purpose} needs one. Give the run's model directory, or a"
            f" checkpoint that holds the {what}."
        )


def load_pretrained(
    path: str,
    vocab_file: str | None = None,
    hparams: Mapping[str, Any] | None = None,
) -> PretrainedModel:
    """Loads a pre-trained model."""
    return PretrainedModel(*read_pretrained(path, vocab_file, hparams))


def read_pretrained(
    path: str,
    vocab_file: str | None = None,
    hparams: Mapping[str, Any] | None = None,
) -> tuple[Weights, PretrainingConfig, frozenset[str]]:
    """Weights, not read yet, their settings, and which of these are stated."""
    path = formats.resolve_reference(path)
    weights = formats.open_weights(path)
    given = PretrainingConfig.clean_hparams(dict(hparams or {}))
    run = read_config(formats.find_model_folder(path)) or {}
    if "model_size" not in run:  # Of another program.
        run = {}
    hparams = merge_hparams(model_hparams(weights), _stated_hparams(run))
    hparams = merge_hparams(hparams, given)
    vocab = _vocab_file(weights, run, vocab_file or given.get("vocab_file"))
    hparams = formats.resolve_model_casing(weights, vocab, given) | hparams
    if weights.vocab_file:
        refuse_other_vocab(vocab, weights.vocab_file, weights.path)
    positions = weights.contents.sizes.max_position_embeddings
    stated = run.get("max_seq_length") or weights.max_length or positions
    trained = min(stated, positions)
    length = given.get("max_seq_length", trained)
    config = model_config(hparams, vocab, length)
    return weights, config, frozenset({*weights.hparams, *run, *given})


def _vocab_file(
    weights: Weights, run: Mapping[str, Any], given: str | None
) -> str:
    if path := given or weights.vocab_file:
        return path
    named = run.get("vocab_file")
    gone = f" (the run names {named}, which is gone)" if named else ""
    raise UserError(
        f"No vocabulary beside {weights.path}{gone}; give the one that it was"
        " trained with: --vocab_file=FILE."
    )


def write_pretrained(
    weights: Weights, folder: str, config: PretrainingConfig
) -> str:
    """Writes weights, settings and vocabulary; returns the weights' prefix."""
    prefix = os.path.join(folder, "model.ckpt")
    complete = functools.partial(
        formats.complete_folder, folder, config.as_dict(), config.vocab_file
    )
    weights = formats.strip_training_state(weights)
    tf1.write_tf1(weights, prefix, overwrite=True, complete=complete)
    return prefix


EXPORT = "export"  # directory of the two networks apart


def export_parts(
    config: PretrainingConfig,
    model: PretrainingModel,
    step: int,
    directory: str,
    only_missing: bool = False,
) -> list[str]:
    """Writes `<directory>/export/discriminator` and `.../generator`.

    Each holds a checkpoint in the original's format, `electra_config.json` and
    `vocab.txt`: all that fine-tuning, or another program, needs.
    """
    weights = ModelWeights(model.variables, step, directory)
    written = []
    for name in ("discriminator", "generator"):
        if not weights.contents.holds(name):
            continue
        folder = os.path.join(directory, EXPORT, name)
        if only_missing:
            with contextlib.suppress(UserError):
                if formats.open_weights(folder).global_step == step:
                    continue
        part = select_part(weights, name)
        written.append(write_pretrained(part, folder, config))
    return written
