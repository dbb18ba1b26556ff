# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A pre-trained model ready to be asked: from a folder to weights in place."""

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from configure.errors import UserError
from configure.pretraining import GeneratorKind, PretrainingConfig
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.infer_config import (
    MODEL_HPARAMS,
    infer_hparams,
    measure,
    merged,
    not_inferable,
)
from electra_tf.checkpoints.restore import check_shapes
from electra_tf.checkpoints.tf2 import variables_by_name
from electra_tf.checkpoints.weights import Selection, TensorSpec, Weights
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.training.checkpointing import read_config

# From a checkpoint alone to a model that runs, and what it then lacks.

# What a forward pass on text depends on besides the sizes.
_SETTINGS = (
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
_TWO_TOWERS = "generator_ltr"
_ENCODER_LAYER = re.compile(r"(\w+)/encoder/layer_(\d+)/")


def model_hparams(weights: Weights) -> dict[str, Any]:
    """Finds out of which hparams a checkpoint's model is."""
    hparams = infer_hparams(weights.shapes)
    if is_headless(weights):
        hparams["uniform_generator"] = True
    return merged(hparams, stated_hparams(weights.hparams))


def stated_hparams(given: Mapping[str, Any]) -> dict[str, Any]:
    """Takes from a configuration what sizes and outputs depend on."""
    known = (*MODEL_HPARAMS, *_SETTINGS)
    return {n: v for n, v in given.items() if n in known}


def unshown_hparams(giver: Weights, taker: Weights) -> dict[str, Any]:
    """Takes from one checkpoint's configuration what another does not show.

    Returns:
      Hparams that shapes cannot tell, where only `giver` states them.
    """
    if taker.hparams or not giver.hparams:
        return {}
    same = measure(giver.shapes).encoder == measure(taker.shapes).encoder
    names = ("hidden_act", *(("num_attention_heads",) if same else ()))
    stated = giver.hparams.get("model_hparam_overrides") or {}
    overrides = {name: stated[name] for name in names if name in stated}
    hparams = {n: giver.hparams[n] for n in _SETTINGS if n in giver.hparams}
    if measure(giver.shapes).generator_scope == _TWO_TOWERS:
        objectives = ("electra_objective", "electric_objective")
        kept = [n for n in objectives if n in giver.hparams]
        hparams |= {name: giver.hparams[name] for name in kept}
    return hparams | {"model_hparam_overrides": overrides}


def is_headless(weights: Weights) -> bool:
    """Whether it has an encoder but neither pre-training head."""
    return measure(weights.shapes).discriminates is None


def is_masked_lm(hparams: Mapping[str, Any]) -> bool:
    """Whether hparams make a masked LM without a discriminator."""
    return not (
        hparams.get("electra_objective", True)
        or hparams.get("electric_objective", False)
    )


def as_masked_lm(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """Hparams that take an encoder without heads for a masked LM's."""
    return {**hparams, "electra_objective": False, "uniform_generator": False}


def model_config(
    hparams: Mapping[str, Any], vocab_file: str, length: int
) -> PretrainingConfig:
    """Completes hparams to a configuration."""
    left_out = ("init_checkpoint", "allow_missing", "model_name", "data_dir")
    settings = {n: v for n, v in hparams.items() if n not in left_out}
    settings |= {"vocab_file": vocab_file, "max_seq_length": length}
    return PretrainingConfig.create("comparison", "comparison", **settings)


class LoadedModel:
    """A model with a checkpoint's weights, and what stayed without.

    Attributes:
      label: "A" or "B", for messages.
      model: the `PretrainingModel`.
      missing: names of the model's variables that the checkpoint lacks.
    """

    def __init__(
        self, label: str, weights: Weights, config: PretrainingConfig
    ) -> None:
        """Builds the model and fills it, one tensor at a time."""
        self.label = label
        self.model = PretrainingModel(config)
        wanted = variables_by_name(self.model.variables)
        shapes = weights.shapes
        self.missing = tuple(name for name in wanted if name not in shapes)
        self._refuse_other_depth(weights.path, shapes, wanted)
        weights = _AsFloat32(weights)
        targets = {name: v for name, v in wanted.items() if name in shapes}
        check_shapes(weights.path, targets, weights)
        # Straight into place: nobody sees this model half-loaded.
        for name, variable in targets.items():
            variable.assign(weights.read(name))

    def _refuse_other_depth(
        self, path: str, stored: Iterable[str], wanted: Iterable[str]
    ) -> None:
        """Refuses to run a network with other layers than it has."""
        depths = [_depths(names) for names in (stored, wanted)]
        for scope in depths[0].keys() & depths[1].keys():
            has, would_have = depths[0][scope], depths[1][scope]
            if has != would_have:
                raise UserError(
                    f"{path}: {scope} has {has} layers, the hparams describe"
                    f" {would_have}; change num_hidden_layers in"
                    " model_hparam_overrides, or generator_layers."
                )

    @property
    def generator_networks(self) -> tuple[str, ...]:
        """Names of the generator's networks, in the order of its outputs."""
        if self.model.kind is GeneratorKind.UNIFORM:
            return ()
        if self.model.kind is GeneratorKind.TWO_TOWER:
            return ("generator_ltr", "generator_rtl")
        return ("generator",)

    def lack_of_generator(self, with_head: bool) -> str | None:
        """Says why there is no (complete) generator.

        Returns:
          The reason, None where nothing is missing.
        """
        if self.model.generator is None:
            return f"{self.label} has no generator"
        parts = [self.model.generator]
        if with_head:
            parts.append(self.model.masked_lm_head)
        return self._lack("generator", parts)

    def lack_of_discriminator(self, with_head: bool) -> str | None:
        """Says why there is no (complete) discriminator.

        Args:
          with_head: whether the replaced-token head is needed, too. Electric's
            logits need the generator as well.

        Returns:
          The reason, None where nothing is missing.
        """
        if self.model.discriminator is None:
            return f"{self.label} has no discriminator"
        parts = [self.model.discriminator]
        if with_head:
            parts.append(self.model.discriminator_head)
            if self.model.config.electric_objective:
                if self.model.generator is None:
                    return self.lack_of_generator(True)
                parts += [self.model.generator, self.model.masked_lm_head]
        return self._lack("discriminator", parts)

    def lack_of_judge(self) -> str | None:
        """Says why the discriminator cannot give its head's raw output.

        As `lack_of_discriminator(True)`, but without Electric's generator,
        which only its corrected logits need.
        """
        if self.model.discriminator is None:
            return f"{self.label} has no discriminator"
        return self._lack(
            "discriminator",
            [self.model.discriminator, self.model.discriminator_head],
        )

    def _lack(
        self, what: str, parts: list[tf_keras.layers.Layer]
    ) -> str | None:
        needed = {v.name.split(":")[0] for p in parts for v in p.variables}
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


def _depths(names: Iterable[str]) -> dict[str, int]:
    """Number of layers by scope."""
    found: dict[str, int] = {}
    for name in names:
        if match := _ENCODER_LAYER.match(name):
            found[match[1]] = max(found.get(match[1], 0), int(match[2]) + 1)
    return found


class _AsFloat32(Selection):
    """Another precision, read as the one that models have."""

    def __init__(self, source: Weights) -> None:
        super().__init__(source, lambda name: name in source.shapes)
        float32 = np.dtype(np.float32)
        self.specs = {
            name: TensorSpec(spec.shape, float32)
            for name, spec in self.specs.items()
        }

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        return super().read(name).astype(np.float32, copy=False)


@dataclasses.dataclass(frozen=True)
class PretrainedModel:
    """A model with a checkpoint's weights, and what turns text into its ids.

    Attributes:
      config: of the model; `max_seq_length` is the longest that it can take.
      model: the network(s).
      tokenizer: as in training.
      path: of the checkpoint, for messages.
      global_step: updates done, or None where the file does not say.
      assumptions: what neither the file nor a configuration states, a text
        for each.
      stated: names of the hparams that a file or the caller states.
      loaded: knows which variables the checkpoint lacked.
    """

    config: PretrainingConfig
    model: PretrainingModel
    tokenizer: FullTokenizer
    path: str
    global_step: int | None
    assumptions: tuple[str, ...]
    stated: frozenset[str]
    loaded: LoadedModel

    @property
    def max_length(self) -> int:
        """Longest input in wordpieces, [CLS] and [SEP] included."""
        return self.config.max_seq_length

    @property
    def is_electric(self) -> bool:
        """Whether the discriminator's logits are energies."""
        return self.model.discriminates and self.config.electric_objective

    def lacks_generator(self) -> str | None:
        """Says why there is no generator (or masked LM) to ask, if so."""
        return self.loaded.lack_of_generator(with_head=True)

    def lacks_discriminator(self) -> str | None:
        """Says why there is no discriminator to ask, if so.

        Electric's generator is not needed for the raw logits.
        """
        return self.loaded.lack_of_judge()

    def require_generator(self, purpose: str) -> None:
        """Raises UserError unless the generator (or masked LM) is complete."""
        if why := self.lacks_generator():
            raise UserError(
                f"{why}; {purpose} needs one. Give the run's model directory,"
                " or a checkpoint that holds the generator (or a masked LM)."
            )

    def require_discriminator(self, purpose: str) -> None:
        """Raises a UserError unless the discriminator is complete."""
        if why := self.lacks_discriminator():
            raise UserError(
                f"{why}; {purpose} needs one. Give the run's model directory,"
                " or a checkpoint that holds the discriminator with its head."
            )


def load_pretrained(
    path: str,
    vocab_file: str | None = None,
    hparams: Mapping[str, Any] | None = None,
) -> PretrainedModel:
    """Loads a pre-trained model.

    Args:
      vocab_file: the vocabulary; None for the one beside the checkpoint, or
        the one that the run names.
    """
    weights = open_weights(path)
    given = PretrainingConfig.clean_hparams(dict(hparams or {}))
    run = _run_hparams(path)
    hparams = merged(model_hparams(weights), stated_hparams(run))
    hparams = merged(hparams, given)
    vocab = _vocab_file(
        weights, run, vocab_file or given.get("vocab_file"), path
    )
    config = model_config(
        hparams, vocab, measure(weights.shapes).max_position_embeddings
    )
    known = bool(weights.hparams or run or given)
    return PretrainedModel(
        config=config,
        loaded=(loaded := LoadedModel(weights.path, weights, config)),
        model=loaded.model,
        tokenizer=FullTokenizer(
            vocab, config.do_lower_case, config.strip_accents
        ),
        path=weights.path,
        global_step=weights.global_step,
        stated=frozenset({*weights.hparams, *run, *given}),
        assumptions=() if known else tuple(not_inferable(weights.shapes)),
    )


def _run_hparams(path: str) -> dict[str, Any]:
    """What the run that left the checkpoint was started with, if any did."""
    folder = path if tf.io.gfile.isdir(path) else os.path.dirname(path) or "."
    config = read_config(folder) or {}
    # Other programs call their file config.json, too.
    return config if "model_size" in config else {}


def _vocab_file(
    weights: Weights, run: Mapping[str, Any], given: str | None, place: str
) -> str:
    named = run.get("vocab_file")
    # A data directory that was moved as a whole: DIR/models/NAME.
    moved = os.path.join(place, "..", "..", os.path.basename(named or "-"))
    for path in (given, weights.vocab_file, named, moved):
        if path and (path == given or tf.io.gfile.exists(path)):
            return path
    gone = f" (the run names {named}, which is gone)" if named else ""
    raise UserError(
        f"No vocabulary beside {weights.path}{gone}; give the one that it was"
        " trained with: --vocab_file=FILE."
    )
