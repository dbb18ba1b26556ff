# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading and copying of the tokenizer settings next to a vocabulary."""

import os

from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.text import huggingface_tokenizer
from electra_tf.text.tokenizer_settings import (
    TOKENIZER_CONFIG,
    TokenizerSettings,
    settings_text,
)


def read_settings(vocab_file: str | os.PathLike) -> TokenizerSettings:
    """Read the tokenizer settings in the files next to a vocabulary."""
    path = os.fspath(vocab_file)
    if path.endswith(".json"):  # A byte-level BPE file contains its settings.
        return TokenizerSettings()
    folder = os.path.dirname(path)
    if huggingface_tokenizer.is_tokenizer(folder):
        return huggingface_tokenizer.read_tokenizer(folder, path)
    return TokenizerSettings()


def copy_settings(vocab_file: str, folder: str) -> None:
    """Write a vocabulary's tokenizer settings next to its copy in a folder."""
    path = os.path.join(folder, TOKENIZER_CONFIG)
    text = settings_text(read_settings(vocab_file))
    if text is not None:
        write_atomically(path, text)
    elif filesystem.exists(path):
        filesystem.remove(path)
