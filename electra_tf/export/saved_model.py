# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes a module as a SavedModel, with the files a person wants beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from electra_tf.export import versions
from electra_tf.export.signatures import ServingModule
from electra_tf.modeling.layers import inference

EXTRA = "assets.extra"
CONFIG_FILE = "config.json"
LABELS_FILE = "labels.txt"
VOCAB_FILE = "vocab.txt"


def export(
    module: ServingModule,
    output_dir: str,
    version: int | None = None,
    overwrite: bool = False,
    finish: Callable[[str], None] | None = None,
) -> str:
    """Writes `<output_dir>/<version>/`, which TensorFlow Serving can load.

    Beside the SavedModel's own files, `assets.extra/` holds config.json,
    labels.txt (one a line, where there are labels) and vocab.txt, for people
    and programs that do not load the model; the same is inside.

    Args:
      module: what is written.
      output_dir: of all versions; made if need be.
      version: None: one more than the highest there is, or 1.
      overwrite: whether a version that is there may be replaced.
      finish: told the folder, adds what else belongs in it before it gets
        its name (other formats, a card).

    Returns:
      The version's folder.

    Raises:
      UserError: the version is there already, or cannot be written.
    """
    with versions.writing(output_dir, version, overwrite) as (folder, final):
        root = module.root()  # What can be trained is traced here.
        with inference():
            save(root, folder, module.signatures())
        for name, part in module.parts().items():
            save(part, os.path.join(folder, name))
        write_extras(module, folder)
        if finish is not None:
            finish(folder)
    return final


def save(
    root: Any,
    folder: str,
    signatures: Mapping[str, Any] | None = None,
) -> None:
    """Writes a SavedModel, with gradients: it can be trained after loading.

    Args:
      root: the module.
      folder: a fresh one.
      signatures: functions by name.
    """
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(root, folder, signatures, options)


def write_extras(module: ServingModule, folder: str) -> None:
    """Writes config, labels and vocabulary into `assets.extra/`.

    Args:
      module: says what is in them.
      folder: of the SavedModel.
    """
    extra = os.path.join(folder, EXTRA)
    tf.io.gfile.makedirs(extra)
    settings = module.settings
    text = json.dumps(module.config(), indent=2, ensure_ascii=False)
    write_text(os.path.join(extra, CONFIG_FILE), f"{text}\n")
    if settings.labels:
        lines = "".join(f"{label}\n" for label in settings.labels)
        write_text(os.path.join(extra, LABELS_FILE), lines)
    tf.io.gfile.copy(
        settings.vocab_file, os.path.join(extra, VOCAB_FILE), overwrite=True
    )


def write_text(path: str, text: str) -> None:
    """Writes a text file in UTF-8.

    Args:
      path: the file.
      text: its contents.
    """
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(text.encode())
