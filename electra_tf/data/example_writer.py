# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""One job of a build: read its sources, build examples, write its shards."""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import os
import random
from collections.abc import Callable
from typing import Annotated, Any

from configure.config import Bound, Positive, at_least, one_of
from configure.errors import UserError
from electra_tf import files
from electra_tf.data import corpora
from electra_tf.data.corpora import ReadingReport
from electra_tf.data.records import (
    HELD_OUT_PREFIX,
    TEMPORARY_PREFIX,
    TRAINING_PREFIX,
    ExampleEncoder,
    frame_record,
    shard_name,
)
from electra_tf.text.tokenization import CLS, SEP, UNK, FullTokenizer

# Sentences (lists of token ids) become two-segment pre-training examples.

Segments = tuple[list[int], list[int]]

# Shares and lengths of the original's builder.
_ONE_SEGMENT_SHARE = 0.1
_RANDOM_LENGTH_SHARE = 0.05
_ONE_SEGMENT_TARGET = 100000
MIN_SEQUENCE_LENGTH = 5


class ExampleBuilder:
    """Collects sentences until they fill an example, then cuts it in two.

    The order in which random numbers are drawn is part of the contract: with
    the same stream the examples equal the original's one by one.

    Attributes:
      random: the stream of random numbers; may be replaced between examples.
      tokens_in: number of tokens accepted so far.
      tokens_dropped: number of tokens cut off at the ends of segments and
        written nowhere (0 with `split_long_lines`).

    Source: build_pretraining_dataset.py, ExampleBuilder.
    Differs: takes token ids, owns its random stream, counts what it cuts off
      and, with `split_long_lines`, carries it over to the next example.
    """

    def __init__(
        self,
        max_length: int,
        random_stream: random.Random,
        split_long_lines: bool = False,
    ):
        """Takes the tokens per example, [CLS] and [SEP] included."""
        if max_length < MIN_SEQUENCE_LENGTH:
            raise ValueError(
                f"max_length is {max_length}; it must be at least "
                f"{MIN_SEQUENCE_LENGTH}."
            )
        self.random = random_stream
        self.tokens_in = 0
        self.tokens_dropped = 0
        self._max_length = max_length
        self._split_long_lines = split_long_lines
        self._sentences: list[list[int]] = []
        self._length = 0
        self._target_length = max_length

    def restart(self, random_stream: random.Random) -> None:
        """Forgets the drawn target length and takes a new random stream."""
        if self._length:
            raise RuntimeError("restart() with sentences waiting; flush first.")
        self.random = random_stream
        self._target_length = self._max_length

    def add(self, sentence: list[int]) -> list[Segments]:
        """Adds a sentence."""
        if not sentence:  # Changes neither a segment nor a draw.
            return []
        self.tokens_in += len(sentence)
        self._sentences.append(sentence)
        self._length += len(sentence)
        finished = []
        while self._length >= self._target_length:
            finished.append(self._cut_example())
        return finished

    def flush(self) -> list[Segments]:
        """Ends the document; returns what was waiting, as examples."""
        finished = []
        while self._length:
            finished.append(self._cut_example())
        return finished

    def _cut_example(self) -> Segments:
        first, second = self._divide()
        first_room = self._max_length - 2  # [CLS] and [SEP]
        kept_first = first[:first_room]
        second_room = max(0, self._max_length - len(kept_first) - 3)
        kept_second = second[:second_room]
        rest = [
            tail for tail in (first[first_room:], second[second_room:]) if tail
        ]
        rest_length = sum(map(len, rest))
        if self._split_long_lines:
            self._sentences, self._length = rest, rest_length
        else:
            self._sentences, self._length = [], 0
            self.tokens_dropped += rest_length
        self._draw_target_length()
        return kept_first, kept_second

    def _divide(self) -> Segments:
        """Deals the waiting sentences to the two segments."""
        draw = self.random.random
        if draw() < _ONE_SEGMENT_SHARE:
            target = _ONE_SEGMENT_TARGET
        else:
            # Three places are for [CLS] and two [SEP].
            target = (self._target_length - 3) // 2
        first: list[int] = []
        second: list[int] = []
        for sentence in self._sentences:
            # The order of these tests decides which sentence draws a number.
            if (
                not first
                or len(first) + len(sentence) < target
                or (not second and len(first) < target and draw() < 0.5)
            ):
                first += sentence
            else:
                second += sentence
        return first, second

    def _draw_target_length(self) -> None:
        """Now and then the next example is cut at a random length."""
        if self.random.random() < _RANDOM_LENGTH_SHARE:
            self._target_length = self.random.randint(
                MIN_SEQUENCE_LENGTH, self._max_length
            )
        else:
            self._target_length = self._max_length


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
        """Names the closed files; each one's `name`, `records`, `bytes`."""
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


Draws = Annotated[str, one_of("stream", "document")]
_Length = Annotated[int, at_least(MIN_SEQUENCE_LENGTH)]
_Fraction = Annotated[
    float, Bound(lambda value: 0 <= value < 1, "at least 0 and below 1")
]


@dataclasses.dataclass(frozen=True)
class BuildOptions:
    """What to build, from what, into where; defaults as the original's."""

    corpus: corpora.Corpus
    vocab_file: str
    output_dir: str

    # ---- Examples ----
    # Tokens per example, [CLS] and [SEP] included.
    max_seq_length: _Length = 128
    num_processes: Positive = 1  # worker processes
    do_lower_case: bool = True  # --no-lower-case keeps upper case
    do_strip_accents: bool = True  # --no-strip-accents keeps them

    # ---- Extensions (every default keeps what the original does) ----
    seed: int = 0  # of all randomness
    # stream: one stream of random numbers per process, as in the original;
    # document: drawn from seed, file and document, so the examples do not
    # depend on the number of processes, and big files are split at document
    # boundaries.
    draws: Draws = "stream"
    num_shards: Positive = 1000  # record files written
    # Continue a long line in the next example; drop nothing.
    split_long_lines: bool = False
    # Share of documents that goes to eval_data.tfrecord-* instead.
    held_out_fraction: _Fraction = 0.0
    # Remove earlier records (pretrain_data.tfrecord-*, eval_data.tfrecord-*,
    # manifest.json) of the output directory; otherwise the same command
    # continues a build.
    overwrite: bool = False


@dataclasses.dataclass(frozen=True)
class Job:
    """The part of a build that one worker does in one go."""

    index: int  # which of `count` jobs
    count: int  # number of jobs of the build
    sources: list[corpora.Source]  # what it reads


@dataclasses.dataclass
class JobReport:
    """What a finished job did; sums up over jobs."""

    # documents, held_out_documents, lines, lines_over_length, tokens,
    # unknown_tokens, tokens_dropped, examples, held_out_examples, invalid_bytes
    counts: dict[str, int]
    # File name -> [offset of the first undecodable byte, number].
    invalid: dict[str, list[int]]
    # Name, records and bytes of each training shard.
    shards: list[dict[str, Any]]
    held_out_shards: list[dict[str, Any]]  # the same for evaluation shards


def _digest(purpose: str, seed: int, name: str, position: str) -> int:
    """64 bits that depend on nothing but the arguments."""
    key = "\0".join((purpose, str(seed), name, position)).encode(
        "utf-8", "surrogateescape"
    )
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")


# What it has worked out already serves the next job of the process, too.
_encoder = functools.lru_cache(maxsize=1)(ExampleEncoder)


@dataclasses.dataclass
class _Channel:
    """Builder and shards of one split: training or held out."""

    builder: ExampleBuilder
    shards: ShardSet
    documents: int = 0


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
