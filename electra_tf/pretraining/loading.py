# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A pre-trained model ready to be asked: from a folder to weights in place."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.hparams_check import merged
from electra_tf.checkpoints.measured import measure
from electra_tf.checkpoints.sizes import not_inferable
from electra_tf.checkpoints.weights import Weights
from electra_tf.pretraining.comparison_models import (
    LoadedModel,
    model_config,
    model_hparams,
    stated_hparams,
)
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.training.checkpointing import read_config


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
        """Raises a UserError unless the generator (or masked LM) is complete.

        Args:
          purpose: what it is needed for: "fill-mask".
        """
        if why := self.lacks_generator():
            raise UserError(
                f"{why}; {purpose} needs one. Give the run's model directory,"
                " or a checkpoint that holds the generator (or a masked LM)."
            )

    def require_discriminator(self, purpose: str) -> None:
        """Raises a UserError unless the discriminator is complete.

        Args:
          purpose: what it is needed for.
        """
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
      path: the directory of a pre-training run, one of its parts under
        `export/`, or any checkpoint that `checkpoints.formats` opens: of the
        original, of BERT, of this project, or a Hugging Face folder.
      vocab_file: the vocabulary; None for the one beside the checkpoint, or
        the one that the run names.
      hparams: what no file states (by `PretrainingConfig`'s names); wins over
        what files do.

    Returns:
      The model. Parts that the checkpoint lacks are there with fresh weights;
      `require_generator` and `require_discriminator` refuse those.

    Raises:
      UserError: nothing there, no vocabulary, or hparams of another model.
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
