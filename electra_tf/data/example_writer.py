# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""One job of a build: read its sources, build examples, write its shards."""

import collections
import dataclasses
import functools
import hashlib
import random
from collections.abc import Callable
from typing import Any

from configure.errors import UserError
from electra_tf.data import corpora
from electra_tf.data.example_builder import ExampleBuilder
from electra_tf.data.manifest import HELD_OUT_PREFIX, TRAINING_PREFIX
from electra_tf.data.records import ExampleEncoder
from electra_tf.data.shards import ShardSet
from electra_tf.data.text_reading import ReadingReport
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.vocab import CLS, SEP, UNK

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
        """Opens the job's shards.

        Args:
          options: of the build.
          job: of which this writer does one.
          tokenizer: made from the options' vocabulary and settings.
        """
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
        """Builds and writes the examples of one source.

        Args:
          source: what to read.
          on_piece: called, without arguments, now and then.
        """
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
        """Closes the shards and gives them their names.

        Returns:
          The report of the job.
        """
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

    Args:
      options: of the build.
      job: the job.
      tokenizer: as for ExampleWriter.
      on_progress: called with the share done and the number of examples.

    Returns:
      What was done.

    Raises:
      UserError: if a source is unreadable or a record file not writable.

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
