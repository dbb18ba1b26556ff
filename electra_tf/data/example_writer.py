# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""One job of a build: read its sources, build examples, write its shards."""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import random
import re
from collections.abc import Callable
from typing import Any

import electra_tf
from configure.errors import UserError, listed
from electra_tf import files
from electra_tf.data import corpora
from electra_tf.data.corpora import ReadingReport
from electra_tf.data.example_builder import ExampleBuilder
from electra_tf.data.records import ExampleEncoder, frame_record
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.vocab import CLS, SEP, UNK

# What was built and how: `manifest.json` beside the records.

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
    """A manifest before any job is done."""
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

    Returns:
      The manifest, or None if there is none.
    """
    path = os.path.join(directory, MANIFEST_NAME)
    if not files.exists(path):
        return None
    try:
        with files.open_file(path, "rb") as file:
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
    # Laid out for people only at the end: that takes ten times as long, and
    # an unfinished one is written after each job.
    indent = 1 if manifest["complete"] else None
    files.write_atomically(
        os.path.join(directory, MANIFEST_NAME),
        json.dumps(manifest, indent=indent) + "\n",
        temporary=os.path.join(directory, TEMPORARY_PREFIX + MANIFEST_NAME),
    )


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Names what differs between two manifests' questions, not answers.

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
    return f"corpus: files added, removed or of another size: {listed(changed)}"


# The record files of one job: written under other names, then renamed.

_SPARE_FILES = 128
_MANY_FILES = 64  # What Linux has room for at first.


class ShardSet:
    """Deals records out to files, the n-th to file n modulo their number.

    Source: build_pretraining_dataset.py, ExampleWriter.
    Differs: files carry a temporary name until `publish`.
    """

    def __init__(
        self, directory: str, prefix: str, indices: list[int], count: int
    ):
        """Creates the files."""
        self.num_records = 0
        self._directory = directory
        self._names = [shard_name(prefix, i, count) for i in indices]
        self._sizes = [0] * len(indices)
        if not files.is_remote(directory):
            _allow_open_files(len(indices))
        self._files = [
            files.open_file(self._temporary(name), "wb") for name in self._names
        ]

    def write(self, payload: bytes) -> None:
        """Adds a record."""
        record = frame_record(payload)
        number = self.num_records % len(self._files)
        self._files[number].write(record)
        self._sizes[number] += len(record)
        self.num_records += 1

    def close(self) -> None:
        """Closes the files."""
        for file in self._files:
            file.close()

    def publish(self) -> list[dict[str, Any]]:
        """Gives the closed files their names.

        Returns:
          For each its `name`, number of `records` and size in `bytes`.
        """
        entries = []
        shares = divmod(self.num_records, max(1, len(self._names)))
        for i, (name, size) in enumerate(
            zip(self._names, self._sizes, strict=True)
        ):
            target = os.path.join(self._directory, name)
            files.rename(self._temporary(name), target)
            records = shares[0] + (i < shares[1])
            entries.append({"name": name, "records": records, "bytes": size})
        return entries

    def _temporary(self, name: str) -> str:
        return os.path.join(self._directory, TEMPORARY_PREFIX + name)


def _allow_open_files(count: int) -> None:
    """Makes room for open files where the system has a limit on them."""
    try:
        import fcntl
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _SPARE_FILES
    # Where the system refuses, opening the files will say so itself.
    with contextlib.suppress(ValueError, OSError):
        if soft != resource.RLIM_INFINITY and soft < wanted:
            if hard != resource.RLIM_INFINITY:
                wanted = min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        # A process with threads (a worker has one) waits some 30 ms each
        # time Linux doubles its table of files; one high number makes it grow
        # once.
        if count >= _MANY_FILES:
            with open(os.devnull, "rb") as file:
                os.close(fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, wanted - 1))


DRAWS = ("stream", "document")


@dataclasses.dataclass(frozen=True)
class BuildOptions:
    """What to build, from what, into where; defaults as the original's.

    Attributes:
      corpus: the text.
      vocab_file: path of the vocabulary.
      output_dir: where the record files go.
      max_seq_length: tokens per example.
      do_lower_case: whether the tokenizer lower-cases.
      strip_accents: whether a lower-casing tokenizer drops accents.
      num_processes: worker processes.
      num_shards: number of training record files.
      seed: where all randomness comes from.
      draws: "stream" draws one stream of numbers per worker, as the original
        after random.seed(seed + worker); "document" draws from seed, file and
        position of the document, so that the examples do not depend on the
        number of workers or on where files are split.
      split_long_lines: continue in the next example what does not fit.
      held_out_fraction: share of the documents that goes to evaluation
        records instead.
      overwrite: remove earlier records of the output directory.
    """

    corpus: corpora.Corpus
    vocab_file: str
    output_dir: str
    max_seq_length: int = 128
    do_lower_case: bool = True
    strip_accents: bool = True
    num_processes: int = 1
    num_shards: int = 1000
    seed: int = 0
    draws: str = "stream"
    split_long_lines: bool = False
    held_out_fraction: float = 0.0
    overwrite: bool = False


@dataclasses.dataclass(frozen=True)
class Job:
    """The part of a build that one worker does in one go.

    Attributes:
      index: which of `count` jobs.
      count: number of jobs of the build.
      sources: what it reads.
    """

    index: int
    count: int
    sources: list[corpora.Source]


@dataclasses.dataclass
class JobReport:
    """What a finished job did; sums up over jobs.

    Attributes:
      counts: documents, held_out_documents, lines, lines_over_length, tokens,
        unknown_tokens, tokens_dropped, examples, held_out_examples,
        invalid_bytes.
      invalid: file name -> [offset of the first undecodable byte, number].
      shards: name, records and bytes of each training shard.
      held_out_shards: the same for evaluation shards.
    """

    counts: dict[str, int]
    invalid: dict[str, list[int]]
    shards: list[dict[str, Any]]
    held_out_shards: list[dict[str, Any]]


def _digest(purpose: str, seed: int, name: str, position: str) -> int:
    """64 bits that depend on nothing but the arguments."""
    key = "\0".join((purpose, str(seed), name, position)).encode(
        "utf-8", "surrogateescape"
    )
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")


# What it has worked out already serves the next job of the process, too.
_encoder = functools.lru_cache(maxsize=1)(ExampleEncoder)


class _Channel:
    """Builder and shards of one split: training or held out."""

    def __init__(self, builder: ExampleBuilder, shards: ShardSet):
        self.builder = builder
        self.shards = shards
        self.documents = 0


class ExampleWriter:
    """Turns documents into examples and deals them out to shards.

    Source: build_pretraining_dataset.py, ExampleWriter and write_examples.
    """

    def __init__(
        self, options: BuildOptions, job: Job, tokenizer: FullTokenizer
    ):
        """Opens the job's shards."""
        self.random = random.Random(options.seed + job.index)
        self.reading = ReadingReport()
        self._options = options
        self._job = job
        self._tokenizer = tokenizer
        vocab = tokenizer.vocab
        self._encoder = _encoder(
            options.max_seq_length,
            vocab[CLS],
            vocab[SEP],
            max(vocab.values()) + 1,
        )
        self._counts: collections.Counter = collections.Counter()
        indices = range(job.index, options.num_shards, job.count)
        self._training = self._channel(
            TRAINING_PREFIX, self.random, list(indices), options.num_shards
        )
        self._held_out = None
        if options.held_out_fraction > 0:
            stream = random.Random(
                _digest("held out", options.seed, "", str(job.index))
            )
            self._held_out = self._channel(
                HELD_OUT_PREFIX, stream, [job.index], job.count
            )

    def _channel(self, prefix, stream, indices, count) -> _Channel:
        options = self._options
        builder = ExampleBuilder(
            options.max_seq_length, stream, options.split_long_lines
        )
        shards = ShardSet(options.output_dir, prefix, indices, count)
        return _Channel(builder, shards)

    @property
    def num_examples(self) -> int:
        """Training examples so far."""
        return self._training.shards.num_records

    def write(self, source: corpora.Source, on_piece: Callable = int) -> None:
        """Builds and writes the examples of one source."""
        by_document = self._options.draws == "document"
        shuffle = None if by_document else self.random
        self.reading.units_read = 0
        position = None
        for piece in corpora.read_documents(
            source, self._options.corpus, self.reading, shuffle
        ):
            if position is None:
                position = piece.position
                channel = self._choose_channel(source.name, position)
                if by_document:
                    channel.builder.restart(
                        random.Random(
                            _digest(
                                "document",
                                self._options.seed,
                                source.name,
                                position,
                            )
                        )
                    )
            self._add_lines(channel, piece.lines)
            if piece.is_last:
                self._write_examples(channel, channel.builder.flush())
                position = None
                on_piece()

    def _choose_channel(self, name: str, position: str) -> _Channel:
        channel = self._training
        if self._held_out is not None:
            draw = _digest("choose", self._options.seed, name, position)
            if draw < self._options.held_out_fraction * 2.0**64:
                channel = self._held_out
        channel.documents += 1
        return channel

    def _add_lines(self, channel: _Channel, lines: list[str]) -> None:
        encode = self._tokenizer.encode
        add = channel.builder.add
        unknown_id = self._tokenizer.vocab[UNK]
        room = self._options.max_seq_length - 2
        over_length = unknown = 0
        for line in lines:
            ids = encode(line)
            unknown += ids.count(unknown_id)
            if len(ids) > room:
                over_length += 1
            if finished := add(ids):
                self._write_examples(channel, finished)
        self._counts["lines"] += len(lines)
        self._counts["lines_over_length"] += over_length
        self._counts["unknown_tokens"] += unknown

    def _write_examples(self, channel: _Channel, finished: list) -> None:
        for first, second in finished:
            channel.shards.write(self._encoder.encode(first, second))

    def finish(self) -> JobReport:
        """Closes the shards and gives them their names."""
        channels = [self._training]
        if self._held_out is not None:
            channels.append(self._held_out)
        for channel in channels:
            channel.shards.close()
        # Only now: a job that fails leaves no file with a final name.
        published = [channel.shards.publish() for channel in channels]
        builders = [channel.builder for channel in channels]
        held_out = self._held_out
        counts = {
            "documents": self._training.documents,
            "held_out_documents": held_out.documents if held_out else 0,
            "lines": self._counts["lines"],
            "lines_over_length": self._counts["lines_over_length"],
            "tokens": sum(b.tokens_in for b in builders),
            "unknown_tokens": self._counts["unknown_tokens"],
            "tokens_dropped": sum(b.tokens_dropped for b in builders),
            "examples": self._training.shards.num_records,
            "held_out_examples": held_out.shards.num_records if held_out else 0,
            "invalid_bytes": sum(n for _, n in self.reading.invalid.values()),
        }
        return JobReport(
            counts,
            self.reading.invalid,
            published[0],
            published[1] if held_out else [],
        )


def run_job(
    options: BuildOptions,
    job: Job,
    tokenizer: FullTokenizer,
    on_progress: Callable[[float, int], None],
) -> JobReport:
    """Does one job from start to end.

    Source: build_pretraining_dataset.py, write_examples.
    """
    try:
        writer = ExampleWriter(options, job, tokenizer)
        sources = list(job.sources)
        if options.draws == "stream":
            writer.random.shuffle(sources)
        total = sum(s.end - s.start for s in sources) or 1
        done = 0

        def on_piece():
            share = (done + writer.reading.units_read) / total
            on_progress(share, writer.num_examples)

        for source in sources:
            writer.write(source, on_piece)
            done += source.end - source.start
        return writer.finish()
    except OSError as error:
        raise UserError(
            f"{error.filename or options.output_dir}: "
            f"{error.strerror or error}; check permissions, free space and "
            "the limit on open files (ulimit -n)."
        ) from error
