# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Do the records fit the run? Asked before training, not after hours of it."""

import glob
import itertools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from absl import logging

from configure.errors import UserError
from electra_tf import files
from electra_tf.data.build import MANIFEST_NAME, load_manifest
from electra_tf.data.example_writer import (
    FEATURE_NAMES,
    HELD_OUT_PREFIX,
    BrokenRecordError,
    decode_example,
    read_records,
)
from electra_tf.text.tokenization import vocab_hash

# Records without a manifest are read, or counted, one by one up to these.
_RECORDS_DECODED = 100
_BYTES_WALKED = 256 << 20


class RecordFiles(NamedTuple):
    """Record files that are not empty, sorted by name."""

    paths: list[str]  # the files
    held_out: bool  # whether they hold evaluation records only


def find_record_files(config: Any, training: bool) -> RecordFiles:
    """Finds the record files of a run."""
    if not training:
        pattern = getattr(config, "eval_tfrecords", None)
        if not pattern:
            folder = os.path.dirname(config.pretrain_tfrecords.split(",")[0])
            pattern = os.path.join(folder, f"{HELD_OUT_PREFIX}.tfrecord*")
        if held_out := [p for p in _glob(pattern) if files.file_size(p)]:
            return RecordFiles(held_out, True)
        origin = getattr(config, "origins", {}).get("eval_tfrecords", "derived")
        if origin != "derived":
            raise UserError(
                f"No record file matches eval_tfrecords = {pattern!r}. Correct "
                "it, or leave it out to evaluate on the held-out records "
                "beside pretrain_tfrecords."
            )
    pattern = config.pretrain_tfrecords
    matches = _glob(pattern)
    if not matches:
        raise UserError(
            f"No record file matches pretrain_tfrecords = {pattern!r}. Build "
            "them with build_pretraining_dataset.py, or set the hparam."
        )
    if not (paths := [path for path in matches if files.file_size(path)]):
        raise UserError(
            f"All {len(matches)} files of pretrain_tfrecords = {pattern!r} "
            "are empty. Build them again."
        )
    return RecordFiles(paths, False)


def _glob(patterns: str) -> list[str]:
    paths = []
    for pattern in map(str.strip, patterns.split(",")):
        if files.is_remote(pattern):
            import tensorflow as tf

            paths += sorted(tf.io.gfile.glob(pattern))
        else:
            paths += sorted(glob.glob(pattern))
    return paths


def check_records(
    config: Any, training: bool, problems: list[str] | None = None
) -> list[str]:
    """Compares the records with what a run expects; returns warnings.

    Args:
      problems: takes whatever would stop the run; None: the first is raised.
    """

    def attempt(check: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return check(*arguments)
        except UserError as error:
            if problems is None:
                raise
            problems.append(str(error))

    found = attempt(find_record_files, config, training)
    if found is None:
        return []
    warnings = []
    if not training and not found.held_out:
        warnings.append(
            "No held-out records (--held_out_fraction when building): "
            "evaluating on the training records, as the original does."
        )
    by_folder: dict[str, list[str]] = {}
    for path in found.paths:
        by_folder.setdefault(os.path.dirname(path), []).append(path)
    for folder, paths in by_folder.items():
        manifest = attempt(load_manifest, folder)
        listed = _listed_shards(manifest)
        unknown = [p for p in paths if os.path.basename(p) not in listed]
        if manifest is not None and (
            len(unknown) < len(paths) or not manifest["complete"]
        ):
            length = manifest["settings"]["max_seq_length"]
            attempt(_check_complete, folder, manifest)
            attempt(_check_length, config, folder, length)
            attempt(_check_vocabulary, config, folder, manifest["vocabulary"])
            warnings += _manifest_warnings(config, folder, manifest)
            for name, shard in listed.items():
                if (path := os.path.join(folder, name)) in paths:
                    attempt(_check_size, path, shard["bytes"])
        attempt(_check_unlisted, config, unknown)
    for line in warnings:
        logging.warning("%s", line)
    return warnings


def _listed_shards(manifest: dict | None) -> dict[str, dict]:
    """A manifest's entries of record files, by their names."""
    if manifest is None:
        return {}
    return {
        shard["name"]: shard
        for job in manifest["jobs"].values()
        for shard in job["shards"] + job["held_out_shards"]
    }


def _check_size(path: str, size: int) -> None:
    if files.file_size(path) != size:
        raise UserError(
            f"{path} has not the {size} bytes that {MANIFEST_NAME} says: the"
            " file is cut short or was changed. Copy it again, or build the"
            " records again."
        )


def _check_complete(folder: str, manifest: dict) -> None:
    if not manifest["complete"]:
        done, count = len(manifest["jobs"]), manifest["num_jobs"]
        raise UserError(
            f"The records in {folder} are not complete ({done} of {count} "
            "jobs done): run the command that builds them again."
        )


def _check_vocabulary(config: Any, folder: str, vocabulary: dict) -> None:
    path = getattr(config, "vocab_file", None)
    if path and files.exists(path):
        if vocab_hash(path) != vocabulary["hash"]:
            raise UserError(
                f"The records in {folder} were built with another vocabulary "
                f"({vocabulary['size']} tokens) than vocab_file {path}. Use "
                "the one they were built with, or build them again."
            )
    elif vocabulary["size"] > config.vocab_size:
        raise UserError(
            f"The records in {folder} were built with {vocabulary['size']} "
            f"tokens, vocab_size is {config.vocab_size}. Set vocab_size to "
            "the size of the vocabulary."
        )


def _manifest_warnings(config: Any, folder: str, manifest: dict) -> list[str]:
    warnings, settings = [], manifest["settings"]
    for name in ("do_lower_case", "strip_accents"):
        wanted = getattr(config, name, settings[name])
        if wanted != settings[name]:
            warnings.append(
                f"{name} is {wanted}, but the records in {folder} were built "
                f"with {settings[name]}: use the same setting wherever the "
                "model meets text."
            )
    listed, present = _listed_shards(manifest), files.list_directory(folder)
    if missing := sorted(listed.keys() - set(present)):
        records = sum(listed[name]["records"] for name in missing)
        warnings.append(
            f"{folder}: {len(missing)} of {len(listed)} files listed in "
            f"{MANIFEST_NAME} are missing, {missing[0]} first; {records:,} "
            "examples are left out."
        )
    return warnings


def _check_length(config: Any, where: str, length: int) -> None:
    if length != config.max_seq_length:
        raise UserError(
            f"{where}: records are length {length}, max_seq_length is "
            f"{config.max_seq_length}. Set max_seq_length to {length}, or "
            f"build records with --max-seq-length={config.max_seq_length}."
        )


def _check_unlisted(config: Any, paths: list[str]) -> None:
    """Looks into records that have no manifest, such as the original's."""
    walked = 0
    for path in paths:
        size = files.file_size(path)
        walked += size
        is_small = walked <= _BYTES_WALKED and not files.is_remote(path)
        try:
            records = read_records(path)
            first = itertools.islice(records, _RECORDS_DECODED)
            for number, payload in enumerate(first):
                _check_example(config, f"{path}, record {number}", payload)
            if is_small:
                for _ in records:
                    pass
        except BrokenRecordError as error:
            raise UserError(
                f"{error}: the file is cut short or damaged. Copy it again, "
                "or build the records again."
            ) from error


def _check_example(config: Any, where: str, payload: bytes) -> None:
    try:
        features = decode_example(payload)
    except BrokenRecordError as error:
        raise UserError(f"{where} is not a tf.train.Example.") from error
    for name in FEATURE_NAMES:
        if name not in features:
            raise UserError(
                f"{where} has no int64 feature {name!r} (it has: "
                f"{', '.join(features) or 'none'}). Are these pre-training "
                "records?"
            )
        _check_length(config, f"{where}, {name}", len(features[name]))
    largest = max(features["input_ids"])
    if largest >= config.vocab_size:
        raise UserError(
            f"{where} holds token id {largest}, vocab_size is "
            f"{config.vocab_size}. Set vocab_size to that of the vocabulary "
            "the records were built with."
        )


# How many examples a run will read.


class ExampleCount(NamedTuple):
    """Training examples on disk."""

    examples: int  # how many
    # False where the rest of large files was reckoned from the size.
    exact: bool
    files: int  # record files that are not empty


def count_training_examples(config: Any) -> ExampleCount:
    """Counts the records that `pretrain_tfrecords` names."""
    paths = find_record_files(config, training=True).paths
    folders = {os.path.dirname(path) for path in paths}
    listed = {
        folder: _listed_shards(load_manifest(folder)) for folder in folders
    }
    examples = counted = walked = skipped = 0
    for path in paths:
        folder, name = os.path.split(path)
        if shard := listed[folder].get(name):
            examples += shard["records"]
            continue
        records, read = _walk(path, _BYTES_WALKED - walked)
        counted, walked = counted + records, walked + read
        skipped += max(0, files.file_size(path) - read)
    if walked:
        counted += round(counted * skipped / walked)
    return ExampleCount(examples + counted, not skipped, len(paths))


def _walk(path: str, limit: int) -> tuple[int, int]:
    """Counts records by their lengths; stops after `limit` bytes."""
    records = position = 0
    with files.open_file(path, "rb") as file:
        while position < limit and (length := file.read(8)):
            records += 1
            # The length is framed by its checksum and that of the payload.
            position += 16 + int.from_bytes(length, "little")
            file.seek(position)
    return records, position
