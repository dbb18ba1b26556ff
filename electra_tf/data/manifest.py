# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What was built and how: `manifest.json` beside the records.

It makes a build restartable and lets training check the records' length and
vocabulary before it starts. It holds `complete`, `settings` (any difference
makes other records), `tokenizer`, `vocabulary`, `corpus` (names and sizes),
`num_jobs`, `jobs` (the finished ones: counts and shards), `counts` (totals).
"""

import hashlib
import json
import os
import re
from typing import Any

import electra_tf
from configure.errors import UserError
from electra_tf.data import storage

MANIFEST_NAME = "manifest.json"
TRAINING_PREFIX = "pretrain_data"
HELD_OUT_PREFIX = "eval_data"
TEMPORARY_PREFIX = ".tmp-"

_FORMAT = 1
_OWN_NAMES = re.compile(
    rf"({re.escape(TEMPORARY_PREFIX)})?"
    rf"({TRAINING_PREFIX}|{HELD_OUT_PREFIX})\.tfrecord-\d+-of-\d+"
    rf"|{MANIFEST_NAME}|{re.escape(TEMPORARY_PREFIX)}{MANIFEST_NAME}"
)


def shard_name(prefix: str, index: int, count: int) -> str:
    """File name of a shard, as the original spells it (no leading zeros)."""
    return f"{prefix}.tfrecord-{index}-of-{count}"


def is_own_file(name: str) -> bool:
    """Whether a file of this name is written by the builder."""
    return _OWN_NAMES.fullmatch(name) is not None


def new_manifest(
    settings: dict[str, Any],
    vocabulary: dict[str, Any],
    corpus_files: list[tuple[str, int]],
    num_jobs: int,
) -> dict[str, Any]:
    """A manifest before any job is done.

    Args:
      settings: everything that decides what the records hold.
      vocabulary: its `hash` and `size`.
      corpus_files: names and sizes, sorted.
      num_jobs: how many jobs the build is cut into.

    Returns:
      The manifest, ready for JSON.
    """
    names = json.dumps(corpus_files).encode()
    return {
        "format": _FORMAT,
        "written_by": f"electra_tf {electra_tf.__version__}",
        "complete": False,
        "settings": settings,
        "vocabulary": vocabulary,
        "corpus": {
            "fingerprint": hashlib.blake2b(names, digest_size=16).hexdigest(),
            "num_files": len(corpus_files),
            "num_bytes": sum(size for _, size in corpus_files),
            "files": [list(entry) for entry in corpus_files],
        },
        "num_jobs": num_jobs,
        "jobs": {},
        "counts": {},
    }


def load_manifest(directory: str) -> dict[str, Any] | None:
    """Reads a directory's manifest.

    Args:
      directory: where the records are.

    Returns:
      The manifest, or None if there is none.

    Raises:
      UserError: if it is not readable as one.
    """
    path = os.path.join(directory, MANIFEST_NAME)
    if not storage.exists(path):
        return None
    try:
        with storage.open_file(path, "rb") as file:
            manifest = json.loads(file.read())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} is not JSON ({error}); build the records again with "
            "--overwrite."
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise UserError(
            f"{path} is not a manifest of format {_FORMAT}; it was written by "
            "another program or version. Choose another directory or build "
            "again with --overwrite."
        )
    return manifest


def save_manifest(directory: str, manifest: dict[str, Any]) -> None:
    """Writes the manifest under a temporary name, then renames it."""
    temporary = os.path.join(directory, TEMPORARY_PREFIX + MANIFEST_NAME)
    # Laid out for people only at the end: that takes ten times as long, and
    # an unfinished one is written after each job.
    indent = 1 if manifest["complete"] else None
    with storage.open_file(temporary, "wb") as file:
        file.write(json.dumps(manifest, indent=indent).encode() + b"\n")
    storage.rename(temporary, os.path.join(directory, MANIFEST_NAME))


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Names what differs between two manifests' questions, not answers.

    Args:
      found: the manifest of the directory.
      wanted: the manifest that a new build would begin with.

    Returns:
      Lines such as "seed: built with 1, asked for 2"; empty if the build may
      be continued.
    """
    lines = []
    for name, value in wanted["settings"].items():
        before = found["settings"].get(name)
        if before != value:
            lines.append(f"{name}: built with {before!r}, asked for {value!r}")
    if found["vocabulary"]["hash"] != wanted["vocabulary"]["hash"]:
        lines.append(
            "vocab_file: another vocabulary of "
            f"{found['vocabulary']['size']} tokens, now "
            f"{wanted['vocabulary']['size']}"
        )
    # Newer tables know more characters: the same text gives other tokens.
    before, now = (
        manifest.get("tokenizer", {}).get("unicode_version")
        for manifest in (found, wanted)
    )
    if before != now:
        lines.append(f"Python's Unicode tables: built with {before}, now {now}")
    if found["corpus"]["fingerprint"] != wanted["corpus"]["fingerprint"]:
        lines.append(_corpus_difference(found["corpus"], wanted["corpus"]))
    return lines


def _corpus_difference(found: dict, wanted: dict) -> str:
    before = {tuple(entry) for entry in found["files"]}
    now = {tuple(entry) for entry in wanted["files"]}
    changed = sorted({name for name, _ in before ^ now})
    more = "" if len(changed) <= 5 else f" and {len(changed) - 5} more"
    return (
        "corpus: files added, removed or of another size: "
        f"{', '.join(changed[:5])}{more}"
    )
