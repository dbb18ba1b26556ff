# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads a forward pass that another program recorded.

A recording is an `.npz` with the inputs (`input_ids`, `input_mask`,
`segment_ids`; `masked_input_ids`, `masked_lm_positions`, `masked_lm_ids`,
`masked_lm_weights`; `sampled_tokids`) and some of the outputs that `OUTPUTS`
names. A `.json` beside it may state the hparams.
"""

import dataclasses
import os
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from configure.errors import UserError
from configure.hparams import read_hparams
from electra_tf.data.records import FEATURE_NAMES

GENERATOR_OUTPUTS = (
    "mlm_logits",
    "mlm_per_token_loss",
    "cloze_logits",
    "cloze_per_token_loss",
    "mlm_loss",
    "cloze_loss",
)
DISCRIMINATOR_OUTPUTS = (
    "disc_logits",
    "disc_probs",
    "disc_per_example_loss",
    "disc_loss",
)
OUTPUTS = (*GENERATOR_OUTPUTS, *DISCRIMINATOR_OUTPUTS)
MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
SAMPLED = "sampled_tokids"
_PER_TOKEN = (*FEATURE_NAMES, "masked_input_ids")
_LAYERS = re.compile(r"t(\d+)_(\w+)/all_encoder_layers")


@dataclasses.dataclass(frozen=True)
class Recording:
    """One recorded forward pass.

    Attributes:
      path: of the file.
      arrays: everything in it, by name.
      hparams: of the file beside it; empty where there is none.
    """

    path: str
    arrays: Mapping[str, np.ndarray]
    hparams: Mapping[str, Any]

    @property
    def networks(self) -> dict[str, str]:
        """Array of all layers' outputs, by network."""
        found = sorted(
            (int(m[1]), m[2], m[0])
            for name in self.arrays
            if (m := _LAYERS.fullmatch(name))
        )
        named = {scope: name for _, scope, name in found if scope != "electra"}
        # One that is generator and discriminator at once comes in this order.
        full = [name for _, scope, name in found if scope == "electra"]
        if full and "disc_logits" in self.arrays:
            named["discriminator"] = full.pop()
        if full:
            named["generator"] = full[0]
        return named


def read_recording(path: str) -> Recording:
    """Reads a recorded forward pass; nothing in it is unpickled."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError as error:
        raise UserError(f"--expect={path}: no such file.") from error
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise UserError(
            f"--expect={path}: not an .npz file of plain arrays ({error})."
        ) from error
    recording = Recording(path, arrays, _hparams_beside(path))
    _check(recording)
    return recording


def _hparams_beside(path: str) -> dict[str, Any]:
    """Reads NAME.json of NAME.npz; its vocabulary is looked for there, too."""
    beside = os.path.splitext(path)[0] + ".json"
    if not os.path.isfile(beside):
        return {}
    hparams = read_hparams(beside)
    hparams = dict(hparams.get("hparams", hparams))
    if vocab_file := hparams.pop("vocab_file", None):
        vocab_file = os.path.join(os.path.dirname(beside), vocab_file)
        if os.path.isfile(vocab_file):
            hparams["vocab_file"] = vocab_file
    return hparams


def _check(recording: Recording) -> None:
    arrays = recording.arrays
    inputs = (*_PER_TOKEN, *MASKED)
    if absent := [name for name in inputs if name not in arrays]:
        raise UserError(
            f"{recording.path}: lacks {', '.join(absent)}; expected a recorded"
            f" forward pass with its inputs {', '.join(inputs)}."
        )
    if not recording.networks and not any(name in arrays for name in OUTPUTS):
        raise UserError(
            f"{recording.path}: no outputs to compare with; expected some of"
            f" {', '.join(OUTPUTS)}, t0_<scope>/all_encoder_layers."
        )
    slots = MASKED + ((SAMPLED,) if SAMPLED in arrays else ())
    for names in (_PER_TOKEN, slots):
        shapes = [arrays[name].shape for name in names]
        if len(set(shapes)) > 1 or len(shapes[0]) != 2:
            raise UserError(
                f"{recording.path}: {', '.join(names)} must have one shape of"
                f" two axes; they have {shapes}."
            )
    for name in recording.networks.values():
        shape = arrays[name].shape
        if len(shape) != 4 or shape[1:3] != arrays["input_ids"].shape:
            raise UserError(
                f"{recording.path}: {name} has shape {list(shape)}; expected"
                " [layers, B, L, H] with the inputs' B and L."
            )


def check_inputs(
    recording: Recording, vocab_size: int, max_length: int
) -> None:
    """Refuses recorded inputs that a model has no tables for."""
    arrays = recording.arrays
    length = arrays["input_ids"].shape[1]
    if length > max_length:
        raise UserError(
            f"{recording.path}: examples of {length} wordpieces, but the model"
            f" has {max_length} positions; it was recorded from another model."
        )
    bounds = dict.fromkeys(
        ("input_ids", "masked_input_ids", "masked_lm_ids", SAMPLED), vocab_size
    )
    bounds["masked_lm_positions"] = length
    for name, bound in bounds.items():
        values = arrays.get(name, np.zeros([1], np.int32))
        if values.size and not 0 <= values.min() <= values.max() < bound:
            raise UserError(
                f"{recording.path}: {name} has values from {values.min()} to"
                f" {values.max()}; expected 0 to {bound - 1} (the model's"
                f" vocab_size is {vocab_size}). It was recorded from another"
                " model."
            )
