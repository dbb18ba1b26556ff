# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Manifest of a build: `manifest.json` next to its records.

The manifest contains the settings, the vocabulary, the corpus, and the record
files of each finished job, so that an interrupted build can continue and a run
can check its records.
"""

import dataclasses
import hashlib
import json
import os
import re
import unicodedata
from typing import Any

import electra_tf
from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.data.archives import Limits
from electra_tf.data.build_options import BuildOptions
from electra_tf.data.corpora import Listing
from electra_tf.data.tfrecords import (
    HELD_OUT_PREFIX,
    TEMPORARY_PREFIX,
    TRAINING_PREFIX,
)
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json
from electra_tf.text import vocabulary

MANIFEST_NAME = "manifest.json"
MANIFEST_FORMAT = 1
_FINAL_NAMES = (
    rf"{MANIFEST_NAME}|({TRAINING_PREFIX}|{HELD_OUT_PREFIX})"
    r"\.tfrecord-\d+-of-\d+"
)
# Names of files that builds write, including temporary names.
BUILD_FILES = re.compile(
    rf"{_FINAL_NAMES}|{re.escape(TEMPORARY_PREFIX)}"
    rf"([0-9a-f]+-)?({_FINAL_NAMES}|job-\d+\.json)"
)
# Options that a manifest leaves out: options that do not change the records,
# and paths, because fingerprints represent the files.
_UNRECORDED = (
    "path",
    "vocab_file",
    "output_dir",
    "tfds_data_dir",
    "overwrite",
    "strict",
    "runner",
    "beam_options",
)


def new_manifest(
    options: BuildOptions, listing: Listing, num_jobs: int
) -> dict[str, Any]:
    """Return the manifest of a build without finished jobs."""
    settings = dataclasses.asdict(options)
    settings |= settings.pop("corpus")
    settings["strip_accents"] = settings.pop("do_strip_accents")
    for name in _UNRECORDED:
        del settings[name]
    for field in dataclasses.fields(Limits):
        del settings[field.name]
    if options.draws != "stream":
        del settings["num_processes"]
    sources = [[source.name, source.size] for source in listing.sources]
    names = json.dumps(sources).encode()
    return {
        "format": MANIFEST_FORMAT,
        "written_by": f"electra_tf {electra_tf.__version__}",
        "complete": False,
        "settings": settings,
        "vocabulary": {
            "hash": vocabulary.vocab_hash(options.vocab_file),
            "size": len(vocabulary.check_vocab(options.vocab_file)),
        },
        "corpus": {
            "fingerprint": hashlib.blake2b(names, digest_size=16).hexdigest(),
            "num_files": len(sources),
            "num_bytes": sum(size for _, size in sources),
            "files": sources,
        },
        "tokenizer": {
            "do_lower_case": options.do_lower_case,
            "strip_accents": options.do_strip_accents,
            "unicode_version": unicodedata.unidata_version,
        },
        "num_jobs": num_jobs,
        "jobs": {},
        "counts": {},
    }


def load_manifest(directory: str) -> dict[str, Any] | None:
    """Return the manifest of a directory, or None if it has no manifest.

    Raises:
      UserError: the file is not a manifest of this version.
    """
    path = os.path.join(directory, MANIFEST_NAME)
    if not filesystem.exists(path):
        return None
    try:
        manifest = read_json(path)
        if manifest["format"] == MANIFEST_FORMAT:
            return manifest
        reason = "a different program or version wrote this file"
    except (ValueError, TypeError, KeyError) as error:
        reason = repr(error)
    raise UserError(
        f"{path} is not a manifest of format {MANIFEST_FORMAT} ({reason})."
        " Choose a different directory, or build again with --overwrite."
    )


def save_manifest(directory: str, manifest: dict[str, Any]) -> None:
    """Write the manifest under a temporary name, then rename the file."""
    # Line breaks make writing ten times slower, and a manifest is written after
    # each job. Therefore only the final manifest has line breaks.
    indent = 1 if manifest["complete"] else None
    # Jobs end in a different order each time, but equal builds should write
    # equal manifests.
    jobs = dict(sorted(manifest["jobs"].items(), key=lambda job: int(job[0])))
    write_atomically(
        os.path.join(directory, MANIFEST_NAME),
        json.dumps(manifest | {"jobs": jobs}, indent=indent) + "\n",
        temporary=os.path.join(directory, TEMPORARY_PREFIX + MANIFEST_NAME),
    )


def find_differences(
    existing: dict[str, Any], requested: dict[str, Any]
) -> list[str]:
    """Return the differences that prevent continuing an existing build.

    A difference is a line such as "seed: built with 1, requested 2".
    """
    lines = []
    for name, value in requested["settings"].items():
        before = existing["settings"].get(name)
        if before != value:
            lines.append(f"{name}: built with {before!r}, requested {value!r}")
    if existing["vocabulary"]["hash"] != requested["vocabulary"]["hash"]:
        lines.append(
            "vocab_file: built with a vocabulary of"
            f" {existing['vocabulary']['size']} tokens, requested a different"
            f" vocabulary of {requested['vocabulary']['size']} tokens"
        )
    # Newer Unicode tables contain more characters, so the same text may have
    # different tokens.
    before = existing.get("tokenizer", {}).get("unicode_version")
    now = requested["tokenizer"]["unicode_version"]
    if before != now:
        lines.append(f"Python's Unicode tables: built with {before}, now {now}")
    if existing["corpus"]["fingerprint"] != requested["corpus"]["fingerprint"]:
        old_files = {tuple(entry) for entry in existing["corpus"]["files"]}
        new_files = {tuple(entry) for entry in requested["corpus"]["files"]}
        changed = join_names(
            sorted({name for name, _ in old_files ^ new_files})
        )
        lines.append(
            f"corpus: these files were added, removed or resized: {changed}"
        )
    return lines


def listed_shards(manifest: dict[str, Any] | None) -> dict[str, dict]:
    """Return the entry of each record file in a manifest, by file name."""
    if manifest is None:
        return {}
    return {
        shard["name"]: shard
        for job in manifest["jobs"].values()
        for shard in job["shards"] + job["held_out_shards"]
    }
