# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Comparison of a checkpoint with outputs that another program recorded.

A recording is an `.npz` file with the inputs (`input_ids`, `input_mask`,
`segment_ids`, `masked_input_ids`, `masked_lm_positions`, `masked_lm_ids`,
`masked_lm_weights`, and for a discriminator `sampled_tokids`) and some of the
outputs in `OUTPUTS`. A `.json` file of the same name may contain the hparams.
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
from configure.hparams_json import read_hparams
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
from electra_tf.data.tfrecords import FEATURE_NAMES
from electra_tf.pretraining.loading import (
    LoadedModel,
    model_config,
    model_hparams,
)
from electra_tf.pretraining.model import PretrainingModel

# The network that computes each output that a recording can contain.
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
    """A recorded forward pass."""

    path: str
    arrays: Mapping[str, np.ndarray]  # all arrays of the file, by name
    # the hparams in the .json file of the same name; {} without such a file
    hparams: Mapping[str, Any]

    @property
    def networks(self) -> dict[str, str]:
        """Names of the arrays with the outputs of all layers, by network."""
        matches = sorted(
            (int(m[1]), m[2], m[0])
            for name in self.arrays
            if (m := _LAYERS.fullmatch(name))
        )
        named = {
            scope: name for _, scope, name in matches if scope != "electra"
        }
        # If both networks have the scope electra, the generator's outputs
        # precede the discriminator's outputs.
        full = [name for _, scope, name in matches if scope == "electra"]
        if full and "disc_logits" in self.arrays:
            named["discriminator"] = full.pop()
        if full:
            named["generator"] = full[0]
        return named


# Errors that NumPy, or the code after `np.load`, raises for files that are not
# .npz files, for empty or damaged files, and for files of a single array.
_READ_ERRORS = (
    OSError,
    ValueError,
    AttributeError,
    EOFError,
    TypeError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_recording(path: str) -> Recording:
    """Read a recorded forward pass.

    Arrays of Python objects are refused, because unpickling may run code.

    Raises:
      UserError: the file is not a recording.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError as error:
        raise UserError(
            f"--expect={path}: no such file. Correct the path."
        ) from error
    except _READ_ERRORS as error:
        raise UserError(
            f"--expect={path}: not an .npz file of numeric arrays"
            f" ({error}). Write the recording with numpy.savez."
        ) from error
    hparams: dict[str, Any] = {}
    hparams_file = os.path.splitext(path)[0] + ".json"
    if os.path.isfile(hparams_file):
        hparams = read_hparams(hparams_file)
        hparams = dict(hparams.get("hparams", hparams))
    if vocab_file := hparams.pop("vocab_file", None):
        vocab_file = os.path.join(os.path.dirname(hparams_file), vocab_file)
        if os.path.isfile(vocab_file):
            hparams["vocab_file"] = vocab_file
    recording = Recording(path, arrays, hparams)
    _check(recording)
    return recording


def _check(recording: Recording) -> None:
    """Raise a UserError if arrays are missing or have unexpected shapes."""
    arrays = recording.arrays
    inputs = (*_PER_TOKEN, *MASKED)
    if absent := [name for name in inputs if name not in arrays]:
        raise UserError(
            f"{recording.path}: the arrays {', '.join(absent)} are missing;"
            f" expected all inputs of the forward pass ({', '.join(inputs)})."
            " Add the missing arrays to the recording."
        )
    if not recording.networks and not any(name in arrays for name in OUTPUTS):
        raise UserError(
            f"{recording.path}: the recording contains no outputs to compare;"
            f" expected at least one of these arrays: {', '.join(OUTPUTS)},"
            " t0_<scope>/all_encoder_layers. Add one of these arrays to the"
            " recording."
        )
    slots = MASKED + ((_SAMPLED,) if _SAMPLED in arrays else ())
    for names in (_PER_TOKEN, slots):
        shapes = [arrays[name].shape for name in names]
        if len(set(shapes)) > 1 or len(shapes[0]) != 2:
            raise UserError(
                f"{recording.path}: the arrays {', '.join(names)} have the"
                f" shapes {shapes}; expected equal shapes with two axes."
                " Record these arrays again."
            )
    for name in recording.networks.values():
        shape = arrays[name].shape
        if len(shape) != 4 or shape[1:3] != arrays["input_ids"].shape:
            raise UserError(
                f"{recording.path}: {name} has shape {list(shape)}; expected"
                " [layers, B, L, H], where [B, L] is the shape of input_ids."
                f" Record {name} again."
            )


def compare_on_recording(a: Weights, path: str, request: Request) -> Outcome:
    """Compare a checkpoint's outputs on recorded inputs with the recording."""
    recording = read_recording(path)
    # The hparams of a recording describe the whole model, so the hparams of the
    # checkpoint are not needed.
    stated = dict(recording.hparams) or model_hparams(a)
    recorded_vocab_file = stated.pop("vocab_file", None)
    hparams = merge_hparams(stated, request.hparams)
    if not request.vocab_file and not request.hparams.get("vocab_file"):
        request = dataclasses.replace(request, vocab_file=recorded_vocab_file)
    length = recording.arrays["input_ids"].shape[1]
    config = model_config(hparams, find_vocab_file(request, a), length)
    loaded = LoadedModel("A", a, PretrainingModel(config))
    return Outcome(
        forward=_compare(loaded, recording),
        notes=assumptions([a], {**recording.hparams, **request.hparams}),
    )


def _compare(loaded: LoadedModel, recording: Recording) -> ForwardDifference:
    """Compare a model's layers and outputs with the recorded arrays."""
    _check_inputs(loaded, recording)
    outputs, layers = _run_on_inputs(loaded, recording.arrays)
    real = recording.arrays["input_mask"] > 0
    weights = recording.arrays["masked_lm_weights"]
    forward = ForwardDifference(
        {
            "examples": len(real),
            "length": real.shape[1],
            "tokens": int(real.sum()),
            "predictions": int(weights.astype(np.float32).sum()),
        }
    )
    absent = lacks(loaded)
    for network, name in recording.networks.items():
        if network in layers:
            recorded = recording.arrays[name][:, real]
            forward.add_layers(network, layers[network], recorded)
        else:
            forward.not_compared[f"{network} layers"] = absent.get(
                f"{network.split('_')[0]} layers",
                "the hparams describe a model without this network",
            )
    _add_outputs(
        forward, outputs, recording, _incomplete_parts(loaded, recording)
    )
    return forward


def _run_on_inputs(
    loaded: LoadedModel, arrays: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the outputs and the layers of a model on recorded inputs."""
    features = {name: arrays[name].astype(np.int32) for name in _PER_TOKEN}
    masked = {
        "masked_lm_positions": arrays["masked_lm_positions"].astype(np.int32),
        "masked_lm_ids": arrays["masked_lm_ids"].astype(np.int32),
        "masked_lm_weights": arrays["masked_lm_weights"].astype(np.float32),
        "input_ids": features["masked_input_ids"],
    }
    masked = {name: tf.constant(values) for name, values in masked.items()}
    sampled = arrays.get(_SAMPLED)
    if sampled is not None:
        sampled = tf.constant(sampled.astype(np.int32))
    return run_model(loaded, features, masked, sampled)


def _incomplete_parts(
    loaded: LoadedModel, recording: Recording
) -> dict[str, str | None]:
    """Return the reasons why the model's parts lack logits, by part.

    The reason is None if the part has logits. A generator that has no weights
    (uniform or unigram) is left out, because its logits do not come from the
    checkpoint. The discriminator is left out if the model has none.
    """
    absent = lacks(loaded)
    reasons = {part: absent.get(f"{part} logits") for part in OUTPUTS.values()}
    has_generator = any(
        network.startswith("generator") for network in recording.networks
    )
    if loaded.model.kind.is_fixed and not has_generator:
        del reasons["generator"]
    if not loaded.model.discriminates:
        del reasons["discriminator"]
    return reasons


def _add_outputs(
    forward: ForwardDifference,
    outputs: Mapping[str, np.ndarray],
    recording: Recording,
    incomplete: Mapping[str, str | None],
) -> None:
    """Compare the model's outputs with the recorded outputs.

    Recorded outputs that the model does not have are added to `not_compared`.
    `incomplete` is the result of `_incomplete_parts`.
    """
    for name in (*OUTPUTS, *_INTEGERS, "total_loss"):
        if name not in recording.arrays:
            continue
        if name in _INTEGERS and name not in outputs:
            # A recording of a masked LM contains these arrays, too, although
            # only a discriminator uses these arrays.
            continue
        reason = incomplete.get(OUTPUTS.get(name))
        if name == "total_loss":
            parts = ("generator", "discriminator")
            reasons = [incomplete.get(part) for part in parts]
            reason = reasons[0] or reasons[1]
        if reason is None and name not in outputs:
            reason = "the hparams describe a model without this output"
        if reason is not None:
            forward.not_compared[LOGITS.get(name, name)] = reason
            continue
        _add_output(forward, name, outputs[name], recording)


def _add_output(
    forward: ForwardDifference,
    name: str,
    output: np.ndarray,
    recording: Recording,
) -> None:
    """Compare a model's output with the recorded output of the same name."""
    recorded = recording.arrays[name]
    if output.shape != recorded.shape:
        raise UserError(
            f"{recording.path}: {name} has shape {list(recorded.shape)};"
            f" expected {list(output.shape)}, the shape of the model's output."
            " Pass the checkpoint that was recorded."
        )
    if not output.ndim:
        forward.losses[name] = (float(output), float(recorded))
        return
    # Padding and unused predictions have no meaningful outputs.
    for mask in ("input_mask", "masked_lm_weights"):
        used = recording.arrays[mask] > 0
        if recorded.shape[:2] == used.shape:
            output, recorded = output[used], recorded[used]
            break
    if name in LOGITS:
        add_logits(forward, name, output, recorded)
    elif name in _INTEGERS:
        add_equal(forward.integers, name, output, recorded)
    else:
        forward.add_output(name, output, recorded)


def _check_inputs(loaded: LoadedModel, recording: Recording) -> None:
    """Raise a UserError if the model cannot read the recorded inputs."""
    arrays, path = recording.arrays, recording.path
    length = arrays["input_ids"].shape[1]
    sizes = loaded.model.encoder_config
    if length > sizes.max_position_embeddings:
        raise UserError(
            f"{path}: examples have {length} wordpieces, but the model has"
            f" {sizes.max_position_embeddings} positions. Pass the checkpoint"
            " that was recorded."
        )
    if loaded.model.discriminates and _SAMPLED not in arrays:
        raise UserError(
            f"{path}: the array {_SAMPLED} is missing; expected the ids of the"
            " replacements that the discriminator read. Add this array to the"
            " recording."
        )
    tokens = ("input_ids", "masked_input_ids", "masked_lm_ids", _SAMPLED)
    bounds = dict.fromkeys(tokens, sizes.vocab_size)
    for name, bound in (bounds | {"masked_lm_positions": length}).items():
        values = arrays.get(name, np.zeros([1], np.int32))
        if values.size and not 0 <= values.min() <= values.max() < bound:
            raise UserError(
                f"{path}: {name} has values from {values.min()} to"
                f" {values.max()}; expected 0 to {bound - 1} (the model's"
                f" vocab_size is {sizes.vocab_size}). Pass the checkpoint that"
                " was recorded."
            )
