# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checksums for those model files whose formats contain no checksum."""

import hashlib
import json
import os
import re
from typing import Any

from configure.errors import UserError
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json
from electra_tf.files.reading import read_blocks

DIGESTS_FILE = "digests.json"
# Names of the files to list: vocabularies, labels, safetensors and the graph of
# a SavedModel, which contain no checksum. Checkpoints are not listed, because
# TensorFlow verifies their checksums. Files of settings are not listed, because
# users may edit settings.
_DIGESTED = re.compile(
    r"vocab\.txt|tokenizer\.json|tokenizer_config\.json|token_counts\.json"
    r"|.*_labels\.json|.*_label_mapping\.json"
    r"|.*\.safetensors|saved_model\.pb"
)
_BLOCK = 2**20  # bytes


def file_sha256(path: str) -> str:
    """Return the SHA-256 of a file's bytes, as `sha256sum` prints it."""
    digest = hashlib.sha256()
    for block in read_blocks(path, _BLOCK):
        digest.update(block)
    return digest.hexdigest()


def file_digest(path: str) -> dict[str, Any]:
    """Return the size and the SHA-256 of a file."""
    return {"bytes": filesystem.file_size(path), "sha256": file_sha256(path)}


def write_digests(folder: str) -> None:
    """Write the digests of the files in a complete model folder."""
    names = filesystem.list_directory(folder)
    names = [name for name in names if _DIGESTED.fullmatch(name)]
    if "vocab.txt" in names and "tokenizer.json" in names:
        # Only transformers reads these tokenizer files, which users may edit.
        names = [name for name in names if not name.startswith("tokenizer")]
    digests = {name: file_digest(os.path.join(folder, name)) for name in names}
    path = os.path.join(folder, DIGESTS_FILE)
    write_atomically(path, json.dumps(digests, indent=2) + "\n")


def add_digest(path: str) -> None:
    """Add a file's digest to the list of its folder; drop missing files."""
    folder, name = os.path.split(path)
    listing = os.path.join(folder, DIGESTS_FILE)
    digests = read_json(listing) if filesystem.exists(listing) else {}
    present = {
        listed_name: digest
        for listed_name, digest in digests.items()
        if filesystem.exists(os.path.join(folder, listed_name))
    }
    present[name] = file_digest(path)
    write_atomically(listing, json.dumps(present, indent=2) + "\n")


def check_digest(path: str) -> None:
    """Raise a UserError if a file was changed or any listed file is missing."""
    folder, name = os.path.split(path)
    listing = os.path.join(folder, DIGESTS_FILE)
    if not filesystem.exists(listing):
        return
    for listed_name, digest in read_json(listing).items():
        listed_path = os.path.join(folder, listed_name)
        if not filesystem.exists(listed_path):
            problem = f"the file is missing, but {listing} lists the file"
        elif listed_name == name and file_digest(listed_path) != digest:
            problem = (
                f"checksum differs from {listing}: the file was replaced or"
                " is corrupt"
            )
        else:
            continue
        raise UserError(
            f"{listed_path}: {problem}. Copy the folder again, or remove"
            f" {listing} if you changed or removed the file on purpose."
        )
