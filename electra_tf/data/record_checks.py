# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks, made before training, that the records or the text fit the run."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from absl import logging

from configure.errors import UserError
from configure.formatting import join_names
from configure.problems import Level, Problem, collect_error, raise_errors
from electra_tf.data.input_files import (
    InputFiles,
    RecordFiles,
)
from electra_tf.data.manifest import MANIFEST_NAME, listed_shards, load_manifest
from electra_tf.data.raw_text import RawText
from electra_tf.data.tfrecords import (
    FEATURE_NAMES,
    BrokenRecordError,
    count_records,
    decode_example,
    read_records,
)
from electra_tf.files import filesystem
from electra_tf.files.patterns import find_files
from electra_tf.text.vocabulary import is_bpe, load_vocab, vocab_hash

if TYPE_CHECKING:
    from configure.pretraining import PretrainingConfig

# Limits for records without a manifest: decoded records per file, and total
# size up to which files are read completely.
_RECORDS_DECODED = 100
_BYTES_READ = 256 << 20
# Minimum number of tokens with letters that have an upper and a lower case.
# Fewer such tokens do not show whether the text was lower-cased.
_FEWEST_TOKENS = 1000
# Maximum share of tokens with upper case in lower-cased text. The share is
# above 0, because some capital letters lack a lower-case form.
_UPPER_SHARE = 0.001
_NUMBER = re.compile(r"-(\d+)-of-(\d+)$")


class _Expected(NamedTuple):
    """Hparams that records must fit."""

    vocab_file: str
    vocab_size: int
    max_seq_length: int
    do_lower_case: bool
    strip_accents: bool

    def has_vocabulary(self) -> bool:
        return bool(self.vocab_file) and filesystem.exists(self.vocab_file)


def check_records(config: PretrainingConfig, training: bool) -> list[str]:
    """Check the records or the text of a run, and log the warnings.

    Raises:
      UserError: an error was found, or a doubt if `config.strict` is set.
    """
    problems = raise_errors(find_problems(config, training), config.strict)
    warnings = [str(problem) for problem in problems]
    for line in warnings:
        logging.warning("%s", line)
    return warnings


def find_problems(
    config: PretrainingConfig, training: bool
) -> Iterator[Problem]:
    """Yield the problems of the records or the text of a run.

    Args:
      config: config of the run.
      training: whether the data is for training; False: evaluation.
    """
    errors: list[Problem] = []
    files, record_files = InputFiles.of(config), None
    text = collect_error(errors, lambda: files.text_hparam(training))
    if text:
        try:
            yield from RawText(config, text).problems()
        except UserError as error:
            yield Problem(Level.ERROR, str(error))
        if not training and text == "pretrain_text":
            message = (
                "eval_text is not set, so the evaluation uses the training"
                " text. Set eval_text."
            )
            yield Problem(Level.WARNING, message)
    elif not errors:
        record_files = collect_error(
            errors, lambda: files.find_records(training)
        )
    yield from errors
    if record_files and not training and not record_files.held_out:
        yield Problem(
            Level.WARNING,
            "No held-out records match eval_tfrecords ="
            f" {config.eval_tfrecords!r}, so the evaluation uses the training"
            " records, as the original does. Build records with"
            " --held_out_fraction to hold out some of them.",
        )
    if training and (text or record_files):
        yield from _check_held_out(files, record_files)
    if record_files:
        expected = _Expected(
            config.vocab_file,
            config.vocab_size,
            config.max_seq_length,
            config.do_lower_case,
            config.strip_accents,
        )
        yield from _check_files(expected, record_files)


def _check_held_out(
    files: InputFiles, record_files: RecordFiles | None
) -> Iterator[Problem]:
    """Yield a problem if files are used for both training and evaluation."""
    if record_files:
        kind, trained = "tfrecords", record_files.paths
    else:
        kind, trained = "text", find_files(files.pretrain_text)[0]
    held_out, _ = find_files(getattr(files, f"eval_{kind}"))
    shared = sorted({*trained} & {*held_out})
    if shared:
        patterns = getattr(files, f"pretrain_{kind}")
        # Users who set the held-out files explicitly may want the overlap.
        is_error = kind == "tfrecords" and files.eval_origin == "derived"
        yield Problem(
            Level.ERROR if is_error else Level.DOUBT,
            f"{join_names(shared, 3)}: these files are used for training, but"
            " are held out for evaluation. Exclude these files from"
            f" pretrain_{kind} = {patterns!r}.",
        )


def _check_files(
    expected: _Expected, record_files: RecordFiles
) -> Iterator[Problem]:
    """Check the record files of each folder."""
    by_folder: dict[str, list[str]] = {}
    for path in record_files.paths + record_files.empty:
        by_folder.setdefault(os.path.dirname(path), []).append(path)
    for folder, paths in by_folder.items():
        try:
            manifest = load_manifest(folder)
        except UserError as error:
            yield Problem(Level.ERROR, str(error))
            manifest = None
        shards = listed_shards(manifest)
        unlisted = [p for p in paths if os.path.basename(p) not in shards]
        is_of_build = manifest is not None and (
            len(unlisted) < len(paths) or not manifest["complete"]
        )
        if is_of_build:
            yield from _check_manifest(expected, folder, manifest)
            yield from _check_sizes(folder, shards, paths)
        yield from _check_unlisted(expected, folder, unlisted)


def _check_manifest(
    expected: _Expected, folder: str, manifest: Mapping[str, Any]
) -> Iterator[Problem]:
    """Check the manifest of a build against the hparams of the run."""
    settings = manifest["settings"]
    if not manifest["complete"]:
        done, count = len(manifest["jobs"]), manifest["num_jobs"]
        yield Problem(
            Level.ERROR,
            f"{folder}: the build of these records is incomplete ({done} of"
            f" {count} jobs are done). Run the same build command again to"
            " continue the build.",
        )
    yield from _check_length(expected, folder, settings["max_seq_length"])
    yield from _check_vocabulary(expected, folder, manifest["vocabulary"])
    yield from _check_settings(expected, folder, manifest)
    shards = listed_shards(manifest)
    missing = sorted(shards.keys() - set(filesystem.list_directory(folder)))
    if missing:
        num_records = sum(shards[name]["records"] for name in missing)
        yield Problem(
            Level.DOUBT,
            f"{folder}: {len(missing)} of {len(shards)} files listed in"
            f" {MANIFEST_NAME} are missing (the first is {missing[0]}), so"
            f" {num_records:,} examples are left out. Copy the files again.",
        )


def _check_length(
    expected: _Expected, where: str, length: int
) -> Iterator[Problem]:
    if length != expected.max_seq_length:
        yield Problem(
            Level.ERROR,
            f"{where}: the length of records is {length}, but max_seq_length is"
            f" {expected.max_seq_length}. Set max_seq_length to {length}, or"
            f" build records with --max-seq-length={expected.max_seq_length}.",
        )


def _check_vocabulary(
    expected: _Expected, folder: str, vocabulary: Mapping[str, Any]
) -> Iterator[Problem]:
    if expected.has_vocabulary():
        if vocab_hash(expected.vocab_file) != vocabulary["hash"]:
            yield Problem(
                Level.ERROR,
                f"The records in {folder} were built with a different"
                f" vocabulary ({vocabulary['size']} tokens) than vocab_file"
                f" {expected.vocab_file}. Set vocab_file to the vocabulary of"
                " the build, or build the records again.",
            )
    elif vocabulary["size"] > expected.vocab_size:
        yield Problem(
            Level.ERROR,
            f"The records in {folder} were built with a vocabulary of"
            f" {vocabulary['size']} tokens, but vocab_size is"
            f" {expected.vocab_size}. Set vocab_size to the size of the"
            " vocabulary.",
        )


def _check_settings(
    expected: _Expected, folder: str, manifest: Mapping[str, Any]
) -> Iterator[Problem]:
    """Check the casing of a build's records."""
    settings, counts = manifest["settings"], manifest.get("counts", {})
    count = counts.get("examples", 0) + counts.get("held_out_examples", 0)
    names = ["do_lower_case"]
    if expected.do_lower_case:  # Cased text always keeps its accents.
        names.append("strip_accents")
    for name in names:
        value = getattr(expected, name)
        if value != settings[name]:
            yield Problem(
                Level.DOUBT,
                f"{name} is {value}, but the {count:,} examples in {folder}"
                f" were built with {settings[name]}. Set the same value for all"
                " programs of this model.",
            )


def _check_sizes(
    folder: str, shards: Mapping[str, Mapping[str, Any]], paths: Iterable[str]
) -> Iterator[Problem]:
    """Check that files have the sizes that their manifest lists."""
    present = set(paths)
    for name, shard in shards.items():
        path, size = os.path.join(folder, name), shard["bytes"]
        if path in present and filesystem.file_size(path) != size:
            yield Problem(
                Level.ERROR,
                f"{path}: the size differs from the {size} bytes listed in"
                f" {MANIFEST_NAME}: the file is truncated or was changed. Copy"
                " the file again, or build the records again.",
            )


def _check_unlisted(
    expected: _Expected, folder: str, paths: list[str]
) -> Iterator[Problem]:
    """Check the files that no manifest lists."""
    yield from _check_empty(paths)
    yield from _check_missing(folder, paths)
    ids: Counter[int] = Counter()
    try:
        for path, number, payload in _read_first_records(paths):
            where = f"{path}, record {number}"
            ids.update(_check_example(expected, where, payload))
    except UserError as error:
        yield Problem(Level.ERROR, str(error))
    else:
        yield from _check_casing(expected, folder, ids)


def _check_empty(paths: list[str]) -> Iterator[Problem]:
    """Yield an error for an empty file that its build should have filled.

    The original's builder, which writes no manifest, leaves some files empty:
    each of its jobs distributes its examples over every n-th file in turn.
    """
    sizes = {path: filesystem.file_size(path) for path in paths}
    empty = [path for path in paths if not sizes[path]]
    if not empty:
        return
    numbers: dict[str, int] = {}
    for path in paths:
        match = _NUMBER.search(path)
        numbers[path] = int(match[1]) if match else 0
    # A job distributes records over its files in turn, so a job with a file of
    # several records has filled all of its files.
    several = {
        numbers[path]
        for path in paths
        if sizes[path] and count_records(path, 1)[1] < sizes[path]
    }
    for num_jobs in range(1, len(paths) // 2 + 1):
        full_jobs = {number % num_jobs for number in several}
        if full_jobs.isdisjoint(numbers[path] % num_jobs for path in empty):
            return
    yield Problem(
        Level.ERROR,
        f"{join_names(empty, 3)}: the size is 0 bytes, although other files"
        " contain several records. Copy the file again, build the records"
        " again, or remove the file if it never contained a record.",
    )


def _check_missing(folder: str, paths: list[str]) -> Iterator[Problem]:
    """Check that no file is missing from a set numbered like 0-of-4."""
    present = set(filesystem.list_directory(folder))
    names = (_NUMBER.sub(r"-*-of-\2", os.path.basename(p)) for p in paths)
    for name in dict.fromkeys(names):
        prefix, _, count = name.partition("-*-of-")
        complete = {f"{prefix}-{i}-of-{count}" for i in range(int(count or 0))}
        missing = complete - present
        if missing:
            yield Problem(
                Level.DOUBT,
                f"{folder}: {len(missing)} of {count} files {name} are missing"
                f" (the first is {min(missing)}), so their examples are left"
                " out. Copy the files again.",
            )


def _read_first_records(
    paths: list[str],
) -> Iterator[tuple[str, int, bytes]]:
    """Yield path, number and payload of the first records of each file.

    The remaining records of small local files are read to find corrupt records.
    """
    num_bytes = 0
    for path in paths:
        num_bytes += filesystem.file_size(path)
        is_local = not filesystem.is_remote(path)
        try:
            payloads = read_records(path)
            first = itertools.islice(payloads, _RECORDS_DECODED)
            for number, payload in enumerate(first):
                yield path, number, payload
            if num_bytes <= _BYTES_READ and is_local:
                for _ in payloads:
                    pass
        except BrokenRecordError as error:
            raise UserError(
                f"{error}: the file is truncated or corrupt. Copy the file"
                " again, or build the records again."
            ) from error


def _check_example(
    expected: _Expected, where: str, payload: bytes
) -> list[int]:
    """Return an example's token ids; raise a UserError if it is invalid."""
    try:
        features = decode_example(payload)
    except BrokenRecordError as error:
        raise UserError(
            f"{where} is not a tf.train.Example. Correct the hparam that names"
            " this file, or build the records again."
        ) from error
    for name in FEATURE_NAMES:
        if name not in features:
            raise UserError(
                f"{where} has no int64 feature {name!r} (it has: "
                f"{', '.join(features) or 'none'}). Correct the hparam that"
                " names the file, or build pre-training records."
            )
        length = len(features[name])
        raise_errors(_check_length(expected, f"{where}, {name}", length))
    largest = max(features["input_ids"])
    if largest >= expected.vocab_size:
        raise UserError(
            f"{where} contains token id {largest}, but vocab_size is"
            f" {expected.vocab_size}. Set vocab_size to the size of the"
            " vocabulary of the build."
        )
    return features["input_ids"]


def _check_casing(
    expected: _Expected, folder: str, ids: Counter[int]
) -> Iterator[Problem]:
    """Check that tokens have upper case exactly if the run keeps upper case."""
    if not (ids and expected.has_vocabulary()) or is_bpe(expected.vocab_file):
        return
    # Number of tokens with upper-case letters, and number of tokens with
    # letters that have two cases.
    upper = either = 0
    for token, number in load_vocab(expected.vocab_file).items():
        if not token.startswith("[") and token.lower() != token.upper():
            either += ids[number]
            if token != token.lower():
                upper += ids[number]
    has_upper = upper > either * _UPPER_SHARE
    if either >= _FEWEST_TOKENS and has_upper == expected.do_lower_case:
        yield Problem(
            Level.DOUBT,
            f"do_lower_case is {expected.do_lower_case}, but {upper:,} of"
            f" {either:,} tokens examined in {folder} have upper case. Set the"
            " same value for all programs of this model.",
        )


def locate_damage(files: InputFiles, trains: bool) -> str:
    """Return a message about the first unreadable record of a run, or "".

    Args:
      files: files of the run.
      trains: whether the run trains; False: it only evaluates, so that training
        records may be missing.
    """
    paths = []
    for training in (True, False) if trains else (False,):
        if not files.text_hparam(training):
            paths += files.find_records(training).paths
    for path in dict.fromkeys(paths):
        try:
            for _ in read_records(path):
                pass
        except BrokenRecordError as error:
            return (
                f"{error}. Copy the file again, build the records again, or"
                " remove the file to leave out its examples."
            )
    return ""
