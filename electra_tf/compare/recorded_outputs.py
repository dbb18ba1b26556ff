# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares a model with outputs that another program recorded."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import GeneratorKind
from electra_tf.compare.forward import ForwardCollector, ForwardDifference
from electra_tf.compare.outputs import (
    DISCRIMINATOR_LOGITS,
    MASKED_LM_LOGITS,
    add_logits,
    network_layers,
)
from electra_tf.compare.recording import (
    DISCRIMINATOR_OUTPUTS,
    GENERATOR_OUTPUTS,
    MASKED,
    OUTPUTS,
    SAMPLED,
    Recording,
    check_inputs,
)
from electra_tf.data.records import FEATURE_NAMES
from electra_tf.pretraining.loading import LoadedModel

_LOGITS = {"mlm_logits": MASKED_LM_LOGITS, "disc_logits": DISCRIMINATOR_LOGITS}
_INTEGERS = ("fake_input_ids", "fake_is_fake_tokens")
_LOSSES = ("mlm_loss", "cloze_loss", "disc_loss", "total_loss")


def compare_with_recording(
    loaded: LoadedModel, recording: Recording
) -> ForwardDifference:
    """Runs a model on recorded inputs and compares its outputs.

    Source: google-research/electra, run_pretraining.py, whose outputs these
      names stand for.
    """
    outputs = _compute(loaded, recording)
    real = recording.arrays["input_mask"].astype(bool)
    collector = ForwardCollector()
    _compare_layers(collector, loaded, recording, outputs, real)
    reasons = _reasons(loaded, recording)
    losses = {}
    for name in (*OUTPUTS, *_INTEGERS, "total_loss"):
        if name not in recording.arrays:
            continue
        if name in _INTEGERS and name not in outputs:
            continue  # a masked LM was recorded with them, too
        why = reasons.get(name)
        if why is None and name not in outputs:
            why = "the model of these hparams has no such output"
        if why is not None:
            collector.not_compared[_LOGITS.get(name, name)] = why
            continue
        a, b = outputs[name], recording.arrays[name]
        _check_shape(recording, name, a, b)
        if name in _LOSSES:
            losses[name] = (float(a), float(b))
        else:
            _add(collector, name, *_without_padding(recording, a, b))
    counts = {
        "examples": real.shape[0],
        "length": real.shape[1],
        "tokens": int(real.sum()),
        "predictions": int(recording.arrays["masked_lm_weights"].sum()),
    }
    return collector.result(counts, losses)


def _reasons(
    loaded: LoadedModel, recording: Recording
) -> dict[str, str | None]:
    """Says of each output why the model cannot give it, None where it can."""
    generator = loaded.lack_of_generator(True)
    if loaded.model.kind is GeneratorKind.UNIFORM and not any(
        network.startswith("generator") for network in recording.networks
    ):
        generator = None  # it has no weights, and its logits are zeros
    discriminator = None
    if loaded.model.discriminates:
        discriminator = loaded.lack_of_discriminator(True)
    return {
        **dict.fromkeys(GENERATOR_OUTPUTS, generator),
        **dict.fromkeys(DISCRIMINATOR_OUTPUTS, discriminator),
        "total_loss": generator or discriminator,
    }


def _compute(loaded: LoadedModel, recording: Recording) -> dict[str, Any]:
    config = loaded.model.encoder_config
    check_inputs(recording, config.vocab_size, config.max_position_embeddings)
    if loaded.model.discriminates and SAMPLED not in recording.arrays:
        raise UserError(
            f"{recording.path}: lacks {SAMPLED}, the replacements that the"
            " discriminator saw."
        )

    def tensor(name: str) -> tf.Tensor:
        is_weight = name == "masked_lm_weights"
        kind = np.float32 if is_weight else np.int32
        return tf.constant(recording.arrays[name].astype(kind))

    sampled = tensor(SAMPLED) if SAMPLED in recording.arrays else None
    return loaded.model.compute(
        {name: tensor(name) for name in FEATURE_NAMES},
        {name: tensor(name) for name in MASKED}
        | {"input_ids": tensor("masked_input_ids")},
        sampled,
        training=False,
    )


def _compare_layers(
    collector: ForwardCollector,
    loaded: LoadedModel,
    recording: Recording,
    outputs: Mapping[str, tf.Tensor],
    real: np.ndarray,
) -> None:
    found = network_layers(loaded, outputs, real)
    for network, name in recording.networks.items():
        if network in found:
            expected = recording.arrays[name][:, real]
            collector.add_layers(network, found[network], expected)
        else:
            why = (
                loaded.lack_of_discriminator(False)
                if network == "discriminator"
                else loaded.lack_of_generator(False)
            )
            collector.not_compared[f"{network} layers"] = (
                why or "the model of these hparams has no such network"
            )


def _check_shape(
    recording: Recording, name: str, a: np.ndarray, b: np.ndarray
) -> None:
    if tuple(a.shape) != b.shape:
        raise UserError(
            f"{recording.path}: {name} has shape {list(b.shape)}, the model"
            f" gives {list(a.shape)}; it was recorded from another model."
        )


def _without_padding(
    recording: Recording, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Keeps tokens, or predictions in use, where the axes are those."""
    a = np.asarray(a)
    for name in ("input_mask", "masked_lm_weights"):
        used = recording.arrays[name] > 0
        if b.shape[:2] == used.shape:
            return a[used], b[used]
    return a, b


def _add(
    collector: ForwardCollector, name: str, a: np.ndarray, b: np.ndarray
) -> None:
    if name in _LOGITS:
        add_logits(collector, _LOGITS[name], a, b)
    elif name in _INTEGERS:
        collector.add_integers(name, a, b)
    else:
        collector.add_output(name, a, b)
