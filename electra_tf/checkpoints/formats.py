# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which format a path holds, told from its content, and opening it."""

import os
import re

import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints import electra_config, tf1, tf2
from electra_tf.checkpoints.weights import Weights

# How Hugging Face names files of weights, whole or in shards.
_HUGGING_FACE = re.compile(
    r"(model|pytorch_model).*(\.safetensors|\.bin|\.safetensors\.index\.json)"
)


def detect(path: str) -> str:
    """Tells the format of a checkpoint."""
    if _is_weights_file(path):
        return "huggingface"
    if tf.io.gfile.isdir(path):
        theirs, ours = _holds_hugging_face(path), tf1.checkpoints_in(path)
        if theirs and ours:
            raise UserError(
                f"{path}: holds TensorFlow checkpoints ({', '.join(ours[:5])})"
                f" and Hugging Face weights ({theirs}); give the path of the"
                " one to take."
            )
        if theirs:
            return "huggingface"
        _refuse_config_without_weights(path, ours)
    return _detect_tensorflow(tf1.find_checkpoint(path))


def open_weights(path: str) -> Weights:
    """Opens a checkpoint of any format, under the original's names.

    `hparams` and `vocab_file` come from files beside it, where there are any.
    """
    kind = detect(path)
    if kind == "huggingface":
        from electra_tf.checkpoints.huggingface_reader import open_huggingface

        folder = os.path.dirname(path) if _is_weights_file(path) else path
        return open_huggingface(folder or ".")
    prefix = tf1.find_checkpoint(path)
    opening = {
        "native": tf2.open_native,
        "bert": tf1.open_bert,
        "tf1": tf1.open_tf1,
    }
    weights = opening[kind](prefix)
    folder = os.path.dirname(prefix) or "."
    if not weights.hparams:
        weights.hparams = electra_config.read_electra_config(folder)
    vocab_file = os.path.join(folder, electra_config.VOCAB_FILE)
    if weights.vocab_file is None and tf.io.gfile.exists(vocab_file):
        weights.vocab_file = vocab_file
    return weights


def _detect_tensorflow(prefix: str) -> str:
    if tf2.is_native(prefix):
        return "native"
    shapes = tf1.load_reader(prefix).get_variable_to_shape_map()
    if tf1.OBJECT_GRAPH in shapes:
        raise UserError(
            f"{prefix}: a TensorFlow 2 checkpoint of another project: keyed by"
            " its Python objects, whose names this one does not know. Expected"
            " a TF1 checkpoint of the original (or of BERT), one of this"
            " project's, or a Hugging Face folder."
        )
    return "bert" if tf1.is_bert(shapes) else "tf1"


def _is_weights_file(path: str) -> bool:
    return bool(_HUGGING_FACE.fullmatch(os.path.basename(path)))


def _holds_hugging_face(folder: str) -> str | None:
    """Name of the weights in it, or in the folders of its two networks."""
    for part in ("", "discriminator", "generator"):
        inner = os.path.join(folder, part)
        if tf.io.gfile.isdir(inner):
            for name in sorted(tf.io.gfile.listdir(inner)):
                if _is_weights_file(name):
                    return os.path.join(part, name)
    return None


def _refuse_config_without_weights(folder: str, checkpoints: list[str]) -> None:
    names = [name.rstrip("/") for name in tf.io.gfile.listdir(folder)]
    if checkpoints or "config.json" not in names:
        return
    others = [n for n in names if n.endswith((".h5", ".msgpack", ".ot"))]
    found = f" ({', '.join(others)} cannot be read)" if others else ""
    raise UserError(
        f"{folder}: has a config.json but no weights that can be read{found};"
        " expected model.safetensors or pytorch_model.bin, or"
        " model.ckpt-<step>.index with its data."
    )
