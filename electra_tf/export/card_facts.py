# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The facts of a model card that can be measured on the exported files.

Anybody can measure them again; `card_check` does.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.export.conversions import measure_conversions
from electra_tf.text.vocab import vocab_hash

# Inputs of `serve_text` that the card shows the answers to.
PROBES = ("The film was good.", "", "Ein Beispiel: 42 cafés in [MASK]?")
_KEPT_PROBE = 8


def measured(folder: str) -> dict[str, Any]:
    """Measures an exported version."""
    loaded = tf.saved_model.load(folder)
    described = loaded.signatures["describe"]()
    config = json.loads(described["config"].numpy())
    vocab = os.path.join(folder, "assets.extra", "vocab.txt")
    with tf.io.gfile.GFile(vocab) as file:
        tokens = file.read().removesuffix("\n").split("\n")
    conversions = measure_conversions(
        folder, loaded, tokens, config["max_positions"]
    )
    return {
        "kind": described["kind"].numpy().decode(),
        "labels": [label.decode() for label in described["labels"].numpy()],
        "config": {k: v for k, v in config.items() if k != "hparams"},
        "parameters": _parameters(folder),
        "vocabulary": {"tokens": len(tokens), "sha256": vocab_hash(vocab)},
        "signatures": {
            name: _signature(function)
            for name, function in sorted(loaded.signatures.items())
        },
        "files": _files(folder),
        "conversions": [dataclasses.asdict(report) for report in conversions],
        "probes": probe(loaded),
    }


def probe(loaded: Any) -> dict[str, list[list[Any]]]:
    """Asks `serve_text` about fixed texts."""
    function = loaded.signatures["serve_text"]
    names = function.structured_input_signature[1]
    answers = function(**{name: tf.constant(PROBES) for name in names})
    return {
        name: [_first_values(row) for row in value.numpy()]
        for name, value in sorted(answers.items())
    }


def _first_values(row: Any) -> list[Any]:
    values = np.asarray(row).ravel()[:_KEPT_PROBE].tolist()
    return [
        value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for value in values
    ]


def _parameters(folder: str) -> int:
    """Counts the model's floats (labels and config are strings)."""
    reader = tf.train.load_checkpoint(
        os.path.join(folder, "variables", "variables")
    )
    dtypes = reader.get_variable_to_dtype_map()
    return sum(
        int(np.prod(shape))
        for name, shape in reader.get_variable_to_shape_map().items()
        if dtypes[name].is_floating
    )


def _signature(function: Any) -> dict[str, dict[str, str]]:
    def shown(spec: Any) -> str:
        sizes = ", ".join("?" if n is None else str(n) for n in spec.shape)
        return f"{spec.dtype.name} [{sizes}]"

    inputs = function.structured_input_signature[1]
    outputs = function.structured_outputs
    return {
        "inputs": {n: shown(inputs[n]) for n in sorted(inputs)},
        "outputs": {n: shown(outputs[n]) for n in sorted(outputs)},
    }


def _files(folder: str) -> dict[str, dict[str, Any]]:
    """Sizes and hashes of graph, weights and LiteRT files."""
    found = {}
    for place, _, names in tf.io.gfile.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            short = os.path.relpath(path, folder)
            if not short.startswith(("assets.extra", "MODEL_CARD")):
                found[short] = file_facts(path)
    return dict(sorted(found.items()))


def file_facts(path: str) -> dict[str, Any]:
    """Returns size (`bytes`) and `sha256` of a file."""
    digest = hashlib.sha256()
    with tf.io.gfile.GFile(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    size = tf.io.gfile.stat(path).length
    return {"bytes": size, "sha256": digest.hexdigest()}
