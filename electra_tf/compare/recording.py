# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares a checkpoint with a forward pass that another program recorded.

A recording is an `.npz` with the inputs (`input_ids`, `input_mask`,
`segment_ids`; `masked_input_ids`, `masked_lm_positions`, `masked_lm_ids`,
`masked_lm_weights`; `sampled_tokids`) and some of the outputs that `OUTPUTS`
names. A `.json` beside it may state the hparams.
"""

import dataclasses
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.json_text import read_hparams
from electra_tf.checkpoints.sizes import merge_hparams
from electra_tf.checkpoints.weights import Weights
from electra_tf.compare.differences import ForwardDifference, add_equal
from electra_tf.compare.outputs import (
    LOGITS,
    MASKED,
    Outcome,
    Request,
    add_logits,
    assumptions,
    find_vocab_file,
    lacks,
    run_model,
)
from electra_tf.data.records import FEATURE_NAMES
from electra_tf.pretraining.loading import (
    LoadedModel,
    model_config,
    model_hparams,
)

# What a recording may hold, and which network gives it.
OUTPUTS = {
    "mlm_logits": "generator",
    "mlm_per_token_loss": "generator",
    "cloze_logits": "generator",
    "cloze_per_token_loss": "generator",
    "mlm_loss": "generator",
    "cloze_loss": "generator",
    "disc_logits": "discriminator",
    "disc_probs": "discriminator",
    "disc_per_example_loss": "discriminator",
    "disc_loss": "discriminator",
}
_SAMPLED = "sampled_tokids"
_PER_TOKEN = (*FEATURE_NAMES, "masked_input_ids")
_LAYERS = re.compile(r"t(\d+)_(\w+)/all_encoder_layers")
_INTEGERS = ("fake_input_ids", "fake_is_fake_tokens")


@dataclasses.dataclass(frozen=True)
class Recording:
    """One recorded forward pass."""

    path: str
    arrays: Mapping[str, np.ndarray]  # everything in the file, by name
    hparams: Mapping[str, Any]  # of the file beside it; empty without

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


# What NumPy raises for other files, empty ones, single arrays, damaged ones.
_NO_RECORDING = (
    *(OSError, ValueError, AttributeError, EOFError, TypeError),
    *(zipfile.BadZipFile, zlib.error),
)


def read_recording(path: str) -> Recording:
    """Reads a recorded forward pass; nothing in it is unpickled."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError as error:
        raise UserError(f"--expect={path}: no such file.") from error
    except _NO_RECORDING as error:
        raise UserError(
            f"--expect={path}: not an .npz file of plain arrays ({error})."
        ) from error
    hparams: dict[str, Any] = {}
    if os.path.isfile(beside := os.path.splitext(path)[0] + ".json"):
        hparams = read_hparams(beside)
        hparams = dict(hparams.get("hparams", hparams))
    if vocab_file := hparams.pop("vocab_file", None):
        vocab_file = os.path.join(os.path.dirname(beside), vocab_file)
        if os.path.isfile(vocab_file):
            hparams["vocab_file"] = vocab_file
    recording = Recording(path, arrays, hparams)
    _check(recording)
    return recording


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
    slots = MASKED + ((_SAMPLED,) if _SAMPLED in arrays else ())
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


def compare_on_recording(a: Weights, path: str, request: Request) -> Outcome:
    """Runs a checkpoint on recorded inputs and compares its outputs."""
    recording = read_recording(path)
    # What is recorded with the outputs describes the whole model.
    stated = dict(recording.hparams) or model_hparams(a)
    beside = stated.pop("vocab_file", None)
    hparams = merge_hparams(stated, request.hparams)
    if not request.vocab_file and not request.hparams.get("vocab_file"):
        request = dataclasses.replace(request, vocab_file=beside)
    length = recording.arrays["input_ids"].shape[1]
    config = model_config(hparams, find_vocab_file(request, a), length)
    return Outcome(
        forward=_compare(LoadedModel("A", a, config), recording),
        notes=assumptions([a], {**recording.hparams, **request.hparams}),
    )


def _compare(loaded: LoadedModel, recording: Recording) -> ForwardDifference:
    _check_inputs(loaded, recording)
    arrays = recording.arrays
    ids = {n: arrays[n].astype(np.int32) for n in (*_PER_TOKEN, *MASKED[:2])}
    weights = arrays["masked_lm_weights"].astype(np.float32)
    masked = {name: ids[name] for name in MASKED[:2]}
    masked |= {"masked_lm_weights": weights, "input_ids": ids[_PER_TOKEN[-1]]}
    sampled = arrays.get(_SAMPLED)
    if sampled is not None:
        sampled = tf.constant(sampled.astype(np.int32))
    masked = {name: tf.constant(values) for name, values in masked.items()}
    outputs, layers = run_model(loaded, ids, masked, sampled)
    used = (ids["input_mask"] > 0, weights > 0)
    found = ForwardDifference(
        {
            "examples": len(used[0]),
            "length": used[0].shape[1],
            "tokens": int(used[0].sum()),
            "predictions": int(weights.sum()),
        }
    )
    absent = lacks(loaded)
    for network, name in recording.networks.items():
        if network in layers:
            found.add_layers(network, layers[network], arrays[name][:, used[0]])
        else:
            found.not_compared[f"{network} layers"] = absent.get(
                f"{network.split('_')[0]} layers",
                "the model of these hparams has no such network",
            )
    lack = {part: absent.get(f"{part} logits") for part in OUTPUTS.values()}
    if loaded.model.kind.is_fixed and not any(
        network.startswith("generator") for network in recording.networks
    ):
        del lack["generator"]  # it has no weights, and its logits are zeros
    if not loaded.model.discriminates:
        del lack["discriminator"]
    for name in (*OUTPUTS, *_INTEGERS, "total_loss"):
        if name not in arrays:
            continue
        if name in _INTEGERS and name not in outputs:
            continue  # a masked LM was recorded with them, too
        why = lack.get(OUTPUTS.get(name))
        if name == "total_loss":
            why = lack.get("generator") or lack.get("discriminator")
        if why is None and name not in outputs:
            why = "the model of these hparams has no such output"
        if why is not None:
            found.not_compared[LOGITS.get(name, name)] = why
            continue
        a, b = outputs[name], arrays[name]
        if a.shape != b.shape:
            raise UserError(
                f"{recording.path}: {name} has shape {list(b.shape)}, the model"
                f" gives {list(a.shape)}; it was recorded from another model."
            )
        if not a.ndim:
            found.losses[name] = (float(a), float(b))
            continue
        # Of tokens, or of predictions in use, where the axes are those.
        for mask in used:
            if b.shape[:2] == mask.shape:
                a, b = a[mask], b[mask]
                break
        if name in LOGITS:
            add_logits(found, name, a, b)
        elif name in _INTEGERS:
            add_equal(found.integers, name, a, b)
        else:
            found.add_output(name, a, b)
    return found


def _check_inputs(loaded: LoadedModel, recording: Recording) -> None:
    """Refuses recorded inputs that the model has no tables for."""
    arrays, path = recording.arrays, recording.path
    length = arrays["input_ids"].shape[1]
    sizes = loaded.model.encoder_config
    if length > sizes.max_position_embeddings:
        raise UserError(
            f"{path}: examples of {length} wordpieces, but the model has"
            f" {sizes.max_position_embeddings} positions; it was recorded from"
            " another model."
        )
    if loaded.model.discriminates and _SAMPLED not in arrays:
        raise UserError(
            f"{path}: lacks {_SAMPLED}, the replacements that the discriminator"
            " saw."
        )
    tokens = ("input_ids", "masked_input_ids", "masked_lm_ids", _SAMPLED)
    bounds = dict.fromkeys(tokens, sizes.vocab_size)
    for name, bound in (bounds | {"masked_lm_positions": length}).items():
        values = arrays.get(name, np.zeros([1], np.int32))
        if values.size and not 0 <= values.min() <= values.max() < bound:
            raise UserError(
                f"{path}: {name} has values from {values.min()} to"
                f" {values.max()}; expected 0 to {bound - 1} (the model's"
                f" vocab_size is {sizes.vocab_size}). It was recorded from"
                " another model."
            )
