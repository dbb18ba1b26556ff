# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Do the records fit the run? Asked before training, not after hours of it."""

import hashlib
import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from absl import logging

from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.data.manifest import MANIFEST_NAME, listed_shards, load_manifest
from electra_tf.data.raw_text import RawText
from electra_tf.data.records import (
    FEATURE_NAMES,
    BrokenRecordError,
    count_records,
    decode_example,
    read_records,
)
from electra_tf.files import filesystem
from electra_tf.files.patterns import find_files, normalize_patterns
from electra_tf.text.vocabulary import is_bpe, load_vocab, vocab_hash

# Records without a manifest are read, or counted, one by one up to these.
_RECORDS_DECODED = 100
_BYTES_WALKED = 256 << 20
# Fewer tokens that could have upper case say nothing of the records.
_FEWEST_TOKENS = 1000
# Lower-cased text keeps a few letters that have no other case.
_UPPER_SHARE = 0.001
_NUMBER = re.compile(r"-(\d+)-of-(\d+)$")


class RecordFiles(NamedTuple):
    """Record files, sorted by name."""

    paths: list[str]  # the files that are not empty
    held_out: bool  # whether they hold evaluation records only
    empty: list[str]  # files without a byte, training or evaluation records'


def find_record_files(config: Any, training: bool) -> RecordFiles:
    """Finds the record files of a run."""
    held_out, empty = ([], []) if training else _held_out_files(config)
    if held_out:
        return RecordFiles(held_out, True, empty)
    pattern = config.pretrain_tfrecords
    paths, more = find_files(pattern)
    if not (paths or more):
        raise UserError(
            f"No record file matches pretrain_tfrecords = {pattern!r}. Build "
            "them with build_pretraining_dataset.py, or set the hparam."
        )
    if not paths:
        raise UserError(
            f"All {len(more)} files of pretrain_tfrecords = {pattern!r} "
            "are empty. Build them again."
        )
    return RecordFiles(paths, False, empty + more)


def _held_out_files(config: Any) -> tuple[list[str], list[str]]:
    """Held-out record files, and empty ones; refuses a name for none."""
    pattern = config.eval_tfrecords
    held_out, empty = find_files(pattern)
    origin = getattr(config, "origins", {}).get("eval_tfrecords", "derived")
    if not held_out and origin != "derived":
        raise UserError(
            f"No record file matches eval_tfrecords = {pattern!r}. Correct "
            "it, or leave it out to evaluate on the held-out records "
            "beside pretrain_tfrecords."
        )
    return held_out, empty


def text_hparam(config: Any, training: bool) -> str | None:
    """The hparam that names the text to read; None where records are read."""
    if not training and getattr(config, "eval_text", ""):
        return "eval_text"
    if not getattr(config, "pretrain_text", ""):
        return None
    if not training and _held_out_files(config)[0]:
        return None
    return "pretrain_text"


def check_records(
    config: Any, training: bool, problems: list[str] | None = None
) -> list[str]:
    """Compares records, or text, with what a run expects; returns warnings.

    `problems` takes whatever would stop the run (with `config.strict` doubts
    about the data, too); None: the first is raised.
    """

    def attempt(check: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return check(*arguments)
        except UserError as error:
            if problems is None:
                raise
            problems.append(str(error))

    doubts: list[str] = []
    warnings: list[str] = []
    by_folder: dict[str, list[str]] = {}
    found = None
    if text := attempt(text_hparam, config, training):
        doubts += attempt(lambda: list(RawText(config, text).doubts())) or []
        if not training and text == "pretrain_text":
            warnings.append("No eval_text: evaluating on the training text.")
    elif found := attempt(find_record_files, config, training):
        for path in found.paths + found.empty:
            by_folder.setdefault(os.path.dirname(path), []).append(path)
        if not training and not found.held_out:
            warnings.append(
                "No held-out records (--held_out_fraction when building)"
                f" match eval_tfrecords = {config.eval_tfrecords!r}:"
                " evaluating on the training records, as the original does."
            )
    if training and (text or found):
        doubts += attempt(_also_held_out, config, found) or []
    for folder, paths in by_folder.items():
        manifest = attempt(load_manifest, folder)
        listed = listed_shards(manifest)
        unknown = [p for p in paths if os.path.basename(p) not in listed]
        if manifest is not None and (
            len(unknown) < len(paths) or not manifest["complete"]
        ):
            length = manifest["settings"]["max_seq_length"]
            if not manifest["complete"]:
                done, count = len(manifest["jobs"]), manifest["num_jobs"]
                attempt(
                    _refuse,
                    f"The records in {folder} are not complete ({done} of"
                    f" {count} jobs done): run the command that builds them"
                    " again.",
                )
            attempt(_check_length, config, folder, length)
            attempt(_check_vocabulary, config, folder, manifest["vocabulary"])
            doubts += _manifest_warnings(config, folder, manifest)
            for name, shard in listed.items():
                path, size = os.path.join(folder, name), shard["bytes"]
                if path in paths and filesystem.file_size(path) != size:
                    attempt(
                        _refuse,
                        f"{path} has not the {size} bytes that {MANIFEST_NAME}"
                        " says: the file is cut short or was changed. Copy it"
                        " again, or build the records again.",
                    )
        attempt(_check_empty, unknown)
        doubts += _not_there(folder, unknown)
        ids = attempt(_check_unlisted, config, unknown)
        doubts += _check_casing(config, folder, ids)
    if doubts and getattr(config, "strict", False):
        attempt(_refuse, "\n".join([*doubts, "(Stopped by --strict.)"]))
    for line in [*warnings, *doubts]:
        logging.warning("%s", line)
    return [*warnings, *doubts]


def damaged_record(config: Any) -> str:
    """Where the first is that cannot be read, and what to do; "" if none."""
    paths = []
    for training in (True, False):
        if not text_hparam(config, training):
            paths += find_record_files(config, training).paths
    for path in dict.fromkeys(paths):
        try:
            for _ in read_records(path):
                pass
        except BrokenRecordError as error:
            return (
                f"{error}. Copy the file again, build the records again, or"
                " take it away: its examples are left out then."
            )
    return ""


def _also_held_out(config: Any, found: RecordFiles | None) -> list[str]:
    """Warns of, or refuses, files of training that evaluations are to read."""
    kind = "tfrecords" if found else "text"
    trained = found.paths if found else find_files(config.pretrain_text)[0]
    held_out = find_files(getattr(config, f"eval_{kind}", ""))[0]
    if not (both := sorted({*trained} & {*held_out})):
        return []
    said = (
        f"{join_names(both, 3)}: trained on, and held out for evaluations; give"
        f" pretrain_{kind} = {getattr(config, f'pretrain_{kind}')!r} without."
    )
    if getattr(config, "origins", {}).get(f"eval_{kind}") == "derived":
        raise UserError(said)
    return [said]


def _refuse(text: str) -> None:
    raise UserError(text)


def _check_empty(paths: list[str]) -> None:
    """Refuses files without a byte where no builder would have left them.

    The original's, which writes no manifest, leaves some: each of its jobs has
    every n-th file and deals its examples out to them in turn.
    """
    sizes = {path: filesystem.file_size(path) for path in paths}
    empty = [path for path in paths if not sizes[path]]
    if not empty:
        return
    numbers = {p: int(m[1]) if (m := _NUMBER.search(p)) else 0 for p in paths}
    several = {
        numbers[p]
        for p in paths
        if sizes[p] and count_records(p, 1)[1] < sizes[p]
    }
    for jobs in range(1, len(paths) // 2 + 1):
        if {n % jobs for n in several}.isdisjoint(
            numbers[p] % jobs for p in empty
        ):
            return
    raise UserError(
        f"{join_names(empty, 3)}: 0 bytes, though other files hold several"
        " records,"
        " and no manifest says that it is to be so. Copy it again, build the"
        " records again, or remove it if nothing was ever in it."
    )


def _not_there(folder: str, paths: list[str]) -> list[str]:
    """A warning where a name such as 0-of-4 says that files are missing."""
    there, warnings = set(filesystem.list_directory(folder)), []
    names = (_NUMBER.sub(r"-*-of-\2", os.path.basename(p)) for p in paths)
    for name in dict.fromkeys(names):
        head, _, count = name.partition("-*-of-")
        wanted = {f"{head}-{i}-of-{count}" for i in range(int(count or 0))}
        if missing := wanted - there:
            warnings.append(
                f"{folder}: {len(missing)} of {count} files {name} are missing,"
                f" {min(missing)} first; their examples are left out."
            )
    return warnings


def _check_casing(
    config: Any, folder: str, ids: Counter[int] | None
) -> list[str]:
    path = getattr(config, "vocab_file", None)
    if not (ids and path and filesystem.exists(path)) or is_bpe(path):
        return []
    upper = either = 0
    for token, number in load_vocab(path).items():
        if not token.startswith("[") and token.lower() != token.upper():
            either += ids[number]
            upper += ids[number] * (token != token.lower())
    cased = upper > either * _UPPER_SHARE
    if either < _FEWEST_TOKENS or cased != config.do_lower_case:
        return []
    return [
        f"do_lower_case is {config.do_lower_case}, but {upper:,} of {either:,}"
        f" tokens looked at in {folder} have upper case: use the same setting"
        " wherever the model meets text."
    ]


def _check_vocabulary(config: Any, folder: str, vocabulary: dict) -> None:
    path = getattr(config, "vocab_file", None)
    if path and filesystem.exists(path):
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
    names = ("examples", "held_out_examples")
    counts = manifest.get("counts", {})
    count = sum(counts.get(name, 0) for name in names)
    for name in ("do_lower_case", "strip_accents"):
        wanted = getattr(config, name, settings[name])
        lowered = getattr(config, "do_lower_case", True)
        if name == "strip_accents" and not lowered:
            continue  # No effect: accents stay wherever case does.
        if wanted != settings[name]:
            warnings.append(
                f"{name} is {wanted}, but the {count:,} examples in {folder} "
                f"were built with {settings[name]}: use the same setting "
                "wherever the model meets text."
            )
    listed, present = (
        listed_shards(manifest),
        filesystem.list_directory(folder),
    )
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


def _check_unlisted(config: Any, paths: list[str]) -> Counter[int]:
    """Checks records without a manifest; counts the ids of the first ones."""
    walked, ids = 0, Counter()
    for path in paths:
        size = filesystem.file_size(path)
        walked += size
        is_small = walked <= _BYTES_WALKED and not filesystem.is_remote(path)
        try:
            records = read_records(path)
            first = itertools.islice(records, _RECORDS_DECODED)
            for number, payload in enumerate(first):
                where = f"{path}, record {number}"
                ids.update(_check_example(config, where, payload))
            if is_small:
                for _ in records:
                    pass
        except BrokenRecordError as error:
            raise UserError(
                f"{error}: the file is cut short or damaged. Copy it again, "
                "or build the records again."
            ) from error
    return ids


def _check_example(config: Any, where: str, payload: bytes) -> list[int]:
    """Refuses what is no example for the run; returns its ids."""
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
    return features["input_ids"]


# What the files of a run hold, told in little.

DATA = ("pretrain_tfrecords", "eval_tfrecords", "pretrain_text", "eval_text")
# The saved data position means something only while these stay.
DATA_PATHS = ("pretrain_tfrecords", "pretrain_text")
DATA_HPARAMS = (
    *DATA_PATHS,
    "deterministic_input",
    "max_seq_length",
    "seed",
    "shuffle_buffer_size",
    "train_batch_size",
)
_BEGINNING = 1 << 16  # bytes


def data_facts(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """What a run reads, and how: a saved position is for that alone."""
    facts = {name: hparams[name] for name in DATA_HPARAMS if name in hparams}
    if hparams.get("pretrain_text"):
        facts.pop("pretrain_tfrecords", None)  # They are not read.
    # Another spelling of a path is no other data.
    return facts | {
        n: ",".join(normalize_patterns(facts[n]))
        for n in DATA_PATHS
        if n in facts
    }


def file_facts(config: Any, data: Mapping[str, str | None]) -> dict[str, str]:
    """Name, size and beginning of what a run reads, to be compared, as digests.

    `data`: name -> patterns, beside the vocabulary and the starting weights.
    """
    start = config.init_checkpoint
    patterns = {
        **data,
        "vocab_file": config.vocab_file,
        "init_checkpoint": start and f"{start}*,{start}/*",
    }
    return {
        name: told_files(pattern, _BEGINNING)
        for name, pattern in patterns.items()
    }


def told_files(files_or_patterns: Any, beginning: int = 0) -> str:
    """Names, sizes and so many first bytes of files, told in little."""
    paths = files_or_patterns
    if not isinstance(paths, list):
        paths, _ = find_files(paths or "", skip_folders=True)
    digest, total = hashlib.sha256(), 0
    for path in paths:
        total += (size := filesystem.file_size(path))
        digest.update(f"{os.path.basename(path)} {size}\n".encode())
        if beginning:
            with filesystem.open_file(path, "rb") as file:
                digest.update(file.read(beginning))
    what = "names, sizes and beginnings" if beginning else "names and sizes"
    return (
        f"{len(paths)} files, {total:,} bytes, sha256 of {what}"
        f" {digest.hexdigest()[:12]}"
    )


# How many examples a run will read.


class ExampleCount(NamedTuple):
    """Training examples on disk."""

    examples: int  # how many
    # False where the rest of large files was reckoned from the size.
    exact: bool
    files: int  # files that are not empty


def count_training_examples(config: Any) -> ExampleCount:
    """Counts the examples of an epoch that the hparams name."""
    if hparam := text_hparam(config, training=True):
        text = RawText(config, hparam)
        examples, *_, size = text.sample()
        count = round(examples * text.num_bytes / size)
        return ExampleCount(count, size == text.num_bytes, len(text.paths))
    paths = find_record_files(config, training=True).paths
    folders = {os.path.dirname(path) for path in paths}
    listed = {
        folder: listed_shards(load_manifest(folder)) for folder in folders
    }
    examples = counted = walked = skipped = 0
    for path in paths:
        folder, name = os.path.split(path)
        if shard := listed[folder].get(name):
            examples += shard["records"]
            continue
        records, read = count_records(path, _BYTES_WALKED - walked)
        counted, walked = counted + records, walked + read
        skipped += max(0, filesystem.file_size(path) - read)
    if walked:
        counted += round(counted * skipped / walked)
    return ExampleCount(examples + counted, not skipped, len(paths))
