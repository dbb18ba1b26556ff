# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which Hugging Face folders a checkpoint becomes, and whether it can."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_names as names
from electra_tf.checkpoints import huggingface_parts as parts
from electra_tf.checkpoints import huggingface_tokenizer as tokenizers
from electra_tf.checkpoints.huggingface_made_config import (
    make_config,
    setting,
)
from electra_tf.checkpoints.huggingface_names import Pair, Part
from electra_tf.checkpoints.weights import Weights

_MOST_LINES = 12


@dataclasses.dataclass(frozen=True)
class Job:
    """A folder to be written.

    Attributes:
      folder: its path.
      part: the network.
      sizes: by config.json's keys.
      config: contents of config.json.
    """

    folder: str
    part: Part
    sizes: Mapping[str, int]
    config: Mapping[str, Any]

    @property
    def pairs(self) -> list[Pair]:
        """Tensors there and variables here."""
        return names.part_pairs(
            self.part,
            self.sizes["num_hidden_layers"],
            self.sizes["embedding_size"] != self.sizes["hidden_size"],
        )


def make_jobs(
    weights: Weights,
    folder: str,
    part: str,
    vocab_file: str | None,
    hparams: Mapping[str, Any],
) -> tuple[list[Job], dict[str, int] | None]:
    """Decides what goes where.

    Args:
      weights: the checkpoint.
      folder: where to.
      part: "all", "discriminator" or "generator".
      vocab_file: path of the vocabulary, or None.
      hparams: by `PretrainingConfig`'s names.

    Returns:
      One or two folders, and the vocabulary.

    Raises:
      UserError: if there is nothing to write, or hparams or vocabulary are of
        another model.
    """
    if "://" in folder:
        raise UserError(
            f"{folder}: Hugging Face folders are written to a local disk only."
        )
    jobs, vocab = [], None
    for found in parts.find_parts(weights, part):
        sizes = parts.sizes_of(weights, found)
        _check_hparams(weights, found, sizes, hparams)
        if vocab_file and vocab is None:
            vocab = tokenizers.read_vocabulary(vocab_file, sizes["vocab_size"])
        pad = vocab[tokenizers.PAD] if vocab else 0
        config = make_config(found, sizes, hparams, pad)
        below = found.folder if part == "all" else ""
        jobs.append(Job(os.path.join(folder, below), found, sizes, config))
    return jobs, vocab


def _check_hparams(
    weights: Weights,
    part: Part,
    sizes: Mapping[str, int],
    hparams: Mapping[str, Any],
) -> None:
    """Refuses hparams of another model."""
    if part.encoder != "electra" or hparams.get("debug"):
        return
    for name, value in sizes.items():
        stated = setting(hparams, name)
        if stated is not None and stated != value:
            raise UserError(
                f"{weights.path}: {name} is {value} by the weights' shapes but"
                f" {stated} by the hparams; correct the hparams."
            )


def check_job(job: Job, weights: Weights) -> None:
    """Refuses missing variables, other shapes and other types.

    Args:
      job: a folder to be written.
      weights: the checkpoint.

    Raises:
      UserError: naming them.
    """
    lines = []
    for pair in job.pairs:
        wanted = pair.shape(job.sizes)
        for name in pair.ours:
            spec = weights.specs.get(name)
            if spec is None:
                lines.append(f"  {name}: missing")
            elif spec.shape != wanted or spec.dtype != np.float32:
                lines.append(
                    f"  {name}: {spec.dtype} {list(spec.shape)}, expected"
                    f" float32 {list(wanted)}"
                )
    if lines:
        raise UserError(
            "\n".join(
                [
                    f"{weights.path}: not a whole {job.part.architecture}:",
                    *lines[:_MOST_LINES],
                ]
            )
        )


def computed_otherwise(
    jobs: list[Job], hparams: Mapping[str, Any]
) -> dict[str, str]:
    """Names what transformers computes in another way.

    Args:
      jobs: the folders.
      hparams: by `PretrainingConfig`'s names.

    Returns:
      Reasons by subject.
    """
    act = setting(hparams, "hidden_act")
    if act in (None, "gelu"):
        return {}
    return {
        f"hidden_act {act} of generator_predictions": (
            "transformers has gelu there, whatever the config says"
        )
        for job in jobs
        if job.part.architecture == names.MASKED_LM
    }


def remarks(
    weights: Weights,
    jobs: list[Job],
    vocab: Mapping[str, int] | None,
    hparams: Mapping[str, Any],
) -> dict[str, str]:
    """What a user may want to know beside.

    Args:
      weights: the checkpoint.
      jobs: the folders.
      vocab: the vocabulary, or None.
      hparams: by `PretrainingConfig`'s names.

    Returns:
      Remarks by subject.
    """
    notes = parts.step_note(weights)
    if vocab is None:
        notes["vocabulary"] = (
            "none given (vocab_file), so there are no tokenizer files"
        )
    stated = setting(hparams, "num_attention_heads") is not None
    if not stated and "model_size" not in hparams:
        for job in jobs:
            if job.part.encoder == "electra":
                notes["num_attention_heads"] = (
                    f"not stated; {job.config['num_attention_heads']}, one for"
                    " 64 hidden units, is assumed"
                )
    if hparams.get("electric_objective") and any(
        job.part.architecture == names.PRETRAINING for job in jobs
    ):
        notes["electric_objective"] = (
            "transformers gives Electric's energies without the generator's"
            " log-probabilities that training adds"
        )
    if [j.part.encoder for j in jobs].count("electra") == 2:
        notes["untied_generator=false"] = (
            "the one encoder is written to both folders"
        )
    return notes
