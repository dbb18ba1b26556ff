# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs two models on the same text, one after the other, and compares.

Positions to mask and replacements are drawn once, from the first model, and
given to both; dropout is off. So equal weights give equal numbers, and what
differs is due to the weights.
"""

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
import tensorflow as tf

from electra_tf.compare.forward import ForwardCollector, ForwardDifference
from electra_tf.pretraining.loading import LoadedModel

# Examples in one forward pass: bounds what attention takes.
_BATCH_SIZE = 8
MASKED_LM_LOGITS = "generator logits"
DISCRIMINATOR_LOGITS = "discriminator logits"
_MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


@dataclasses.dataclass
class BatchRun:
    """What a model made of a batch.

    Attributes:
      features: int32 [B, L], not masked.
      masked_inputs: what was shown, and what was to predict.
      sampled_token_ids: int32 [B, N], None without a discriminator.
      layers: float32 [layers, tokens, H] by network, without padding.
      logits: float32 [predictions, V] and [tokens], by name.
      losses: (sum, weight) by name.
    """

    features: Mapping[str, np.ndarray]
    masked_inputs: Mapping[str, np.ndarray]
    sampled_token_ids: np.ndarray | None
    layers: dict[str, np.ndarray]
    logits: dict[str, np.ndarray]
    losses: dict[str, tuple[float, float]]


def run_first(
    loaded: LoadedModel, features: Mapping[str, np.ndarray], seed: int
) -> list[BatchRun]:
    """Runs the model that masks and samples.

    Args:
      features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.
    """
    return [
        _run(loaded, batch, None, None, tf.constant([seed, i], tf.int32))
        for i, batch in enumerate(_batches(features))
    ]


def compare_second(
    loaded: LoadedModel, runs: list[BatchRun], absent: Mapping[str, str]
) -> ForwardDifference:
    """Runs the other model on the same inputs and compares as it goes."""
    collector = ForwardCollector()
    collector.not_compared |= absent_parts(loaded) | dict(absent)
    sums: dict[str, np.ndarray] = {}
    counts = dict.fromkeys(("examples", "length", "tokens", "predictions"), 0)
    while runs:
        a = runs.pop(0)
        b = _run(loaded, a.features, a.masked_inputs, a.sampled_token_ids)
        _compare(collector, a, b)
        for name in a.losses.keys() & b.losses.keys():
            pair = np.array([a.losses[name], b.losses[name]])
            sums[name] = sums.get(name, 0) + pair
        counts["examples"] += len(a.features["input_ids"])
        counts["length"] = a.features["input_ids"].shape[1]
        counts["tokens"] += int(a.features["input_mask"].sum())
        counts["predictions"] += int(a.masked_inputs["masked_lm_weights"].sum())
    losses = {
        name: tuple(float(x) for x in total[:, 0] / total[:, 1])
        for name, total in sorted(sums.items(), reverse=True)
    }
    return collector.result(counts, losses)


def absent_parts(loaded: LoadedModel) -> dict[str, str]:
    """Names the outputs that a model cannot give, and why."""
    reasons = {
        "generator layers": loaded.lack_of_generator(False),
        MASKED_LM_LOGITS: loaded.lack_of_generator(True),
        "discriminator layers": loaded.lack_of_discriminator(False),
        DISCRIMINATOR_LOGITS: loaded.lack_of_discriminator(True),
    }
    return {name: why for name, why in reasons.items() if why}


def network_layers(
    loaded: LoadedModel, outputs: Mapping[str, tf.Tensor], real: np.ndarray
) -> dict[str, np.ndarray]:
    """Takes the layers of a model's complete networks, without padding.

    Args:
      real: bool [B, L], the positions that are no padding.

    Returns:
      float32 [layers, tokens, H] by network.
    """
    found = {}
    if loaded.lack_of_generator(False) is None:
        stacks = outputs["generator_layers"]
        stacks = stacks if isinstance(stacks, list) else [stacks]
        found = dict(zip(loaded.generator_networks, stacks, strict=True))
    if loaded.lack_of_discriminator(False) is None:
        found["discriminator"] = outputs["discriminator_layers"]
    return {name: layers.numpy()[:, real] for name, layers in found.items()}


def _batches(
    features: Mapping[str, np.ndarray],
) -> Iterator[dict[str, np.ndarray]]:
    for start in range(0, len(features["input_ids"]), _BATCH_SIZE):
        yield {
            name: value[start : start + _BATCH_SIZE]
            for name, value in features.items()
        }


def _run(
    loaded: LoadedModel,
    features: Mapping[str, np.ndarray],
    masked_inputs: Mapping[str, np.ndarray] | None,
    sampled_token_ids: np.ndarray | None,
    seed: tf.Tensor | None = None,
) -> BatchRun:
    tensors = {name: tf.constant(value) for name, value in features.items()}
    outputs = loaded.model.compute(
        tensors, masked_inputs, sampled_token_ids, training=False, seed=seed
    )
    real = features["input_mask"].astype(bool)
    weights = outputs["masked_lm_weights"].numpy()
    masked = {"input_ids": outputs["masked_input_ids"].numpy()}
    masked |= {name: outputs[name].numpy() for name in _MASKED}
    run = BatchRun(
        features=features,
        masked_inputs=masked,
        sampled_token_ids=None,
        layers=network_layers(loaded, outputs, real),
        logits={},
        losses={},
    )
    if "sampled_tokids" in outputs:
        run.sampled_token_ids = outputs["sampled_tokids"].numpy()
    if loaded.lack_of_generator(True) is None:
        run.logits[MASKED_LM_LOGITS] = outputs["mlm_logits"].numpy()[
            weights > 0
        ]
        run.losses["masked LM loss"] = _sums(
            outputs["mlm_per_token_loss"], weights
        )
        if "cloze_per_token_loss" in outputs:
            run.losses["cloze loss"] = _sums(
                outputs["cloze_per_token_loss"], outputs["cloze_weights"]
            )
    if loaded.lack_of_discriminator(True) is None:
        logits = outputs["disc_logits"].numpy()
        run.logits[DISCRIMINATOR_LOGITS] = logits[real]
        losses = tf.nn.sigmoid_cross_entropy_with_logits(
            tf.cast(outputs["fake_is_fake_tokens"], tf.float32), logits
        )
        run.losses["discriminator loss"] = _sums(losses, real)
    return run


def _sums(losses: tf.Tensor, weights: np.ndarray) -> tuple[float, float]:
    """Sum of the weighted losses, and of the weights."""
    weights = np.asarray(weights, np.float64)
    total = float((np.asarray(losses, np.float64) * weights).sum())
    return total, float(weights.sum()) + 1e-6


def _compare(collector: ForwardCollector, a: BatchRun, b: BatchRun) -> None:
    for network in dict.fromkeys([*a.layers, *b.layers]):
        if network in a.layers and network in b.layers:
            collector.add_layers(network, a.layers[network], b.layers[network])
        else:
            # Towers on one side only; what is absent is named already.
            has, lacks = ("A", "B") if network in a.layers else ("B", "A")
            collector.not_compared.setdefault(
                f"{network} layers", f"{has} has this network, {lacks} not"
            )
    for name in sorted(a.logits.keys() & b.logits.keys(), reverse=True):
        add_logits(collector, name, a.logits[name], b.logits[name])


def add_logits(
    collector: ForwardCollector, name: str, a: np.ndarray, b: np.ndarray
) -> None:
    """Adds logits and the decisions that follow from them.

    Args:
      name: one of the two logits.
      a: float32 [predictions, V], or [tokens].
    """
    collector.add_output(name, a, b)
    if name == MASKED_LM_LOGITS:
        collector.add_agreement("most likely word", a.argmax(-1), b.argmax(-1))
    else:
        collector.add_agreement("replaced or not", a > 0, b > 0)
