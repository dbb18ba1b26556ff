# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""One job of a build: documents become examples, examples become records.

The bytes of records (tf.train.Example inside TFRecord) are written by hand:
TensorFlow's import costs a worker seconds, and its protocol buffers are slower
than the tokenizer. The tests hold them against `tf.train.Example` and
`tf.io.TFRecordWriter`.
"""

import dataclasses
import functools
import hashlib
import os
import random
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import google_crc32c

from configure.errors import UserError
from electra_tf.data import corpora
from electra_tf.data.build_options import MIN_SEQUENCE_LENGTH, BuildOptions
from electra_tf.data.corpora import ReadingReport
from electra_tf.files import filesystem
from electra_tf.text.stripping import ScriptCounter
from electra_tf.text.tokenization import CLS, SEP, UNK, Tokenizer, is_bpe

# Sentences (lists of token ids) become two-segment pre-training examples.

Segments = tuple[list[int], list[int]]

# Shares and lengths of the original's builder.
_ONE_SEGMENT_SHARE = 0.1
_RANDOM_LENGTH_SHARE = 0.05
_ONE_SEGMENT_TARGET = 100000


class ExampleBuilder:
    """Collects sentences until they fill an example, then cuts it in two.

    The order in which random numbers are drawn is part of the contract: with
    the same stream the examples equal the original's one by one.
    `tokens_dropped` counts tokens cut off at the ends of segments so far.

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
        self.random = random_stream
        self.tokens_in = 0
        self.tokens_dropped = 0
        self._max_length = max_length
        self._split_long_lines = split_long_lines
        self._sentences: list[_Sentence] = []
        self._length = 0
        self._target_length = max_length

    def restart(self, random_stream: random.Random) -> None:
        """Forget the drawn target length and take a new random stream."""
        if self._length:
            raise RuntimeError("restart() with sentences waiting; flush first.")
        self.random = random_stream
        self._target_length = self._max_length

    def add(self, sentence: list[int]) -> list[Segments]:
        if not sentence:  # Changes neither a segment nor a draw.
            return []
        self.tokens_in += len(sentence)
        self._sentences.append(_Sentence([sentence]))
        self._length += len(sentence)
        finished = []
        while self._length >= self._target_length:
            finished.append(self._cut_example())
        return finished

    def flush(self) -> list[Segments]:
        """End the document and return the remaining examples."""
        finished = []
        while self._length:
            finished.append(self._cut_example())
        return finished

    def _cut_example(self) -> Segments:
        first, second = self._divide()
        kept_first = first.take(self._max_length - 2)  # [CLS] and [SEP]
        second_room = max(0, self._max_length - len(kept_first) - 3)
        kept_second = second.take(second_room)
        rest = [tail for tail in (first, second) if tail.length]
        rest_length = sum(tail.length for tail in rest)
        if self._split_long_lines:
            self._sentences, self._length = rest, rest_length
        else:
            self._sentences, self._length = [], 0
            self.tokens_dropped += rest_length
        # Now and then the next example is cut at a random length.
        self._target_length = self._max_length
        if self.random.random() < _RANDOM_LENGTH_SHARE:
            self._target_length = self.random.randint(
                MIN_SEQUENCE_LENGTH, self._max_length
            )
        return kept_first, kept_second

    def _divide(self) -> tuple["_Sentence", "_Sentence"]:
        """Assign the waiting sentences to the two segments."""
        draw = self.random.random
        if draw() < _ONE_SEGMENT_SHARE:
            target = _ONE_SEGMENT_TARGET
        else:
            # Three places are for [CLS] and two [SEP].
            target = (self._target_length - 3) // 2
        first, second = _Sentence([]), _Sentence([])
        for sentence in self._sentences:
            # The order of these tests decides which sentence draws a number.
            if (
                not first.length
                or first.length + sentence.length < target
                or (
                    not second.length and first.length < target and draw() < 0.5
                )
            ):
                first.extend(sentence)
            else:
                second.extend(sentence)
        return first, second


class _Sentence:
    """Token ids as a chain of lists, of which the first may be partly used.

    The rest of a line of millions of tokens is carried from one example to
    the next, hundreds of thousands of times: its ids are never copied.
    """

    def __init__(self, parts: list[list[int]]) -> None:
        self.length = sum(map(len, parts))
        self._parts = [(part, 0) for part in parts]  # ids, first unused one

    def extend(self, other: "_Sentence") -> None:
        self._parts += other._parts
        self.length += other.length

    def take(self, limit: int) -> list[int]:
        """Remove and return at most `limit` ids from the start."""
        taken: list[int] = []
        while self._parts and len(taken) < limit:
            ids, start = self._parts.pop(0)
            end = start + limit - len(taken)
            taken += ids[start:end]
            if end < len(ids):
                self._parts.insert(0, (ids, end))
        self.length -= len(taken)
        return taken


# An example -> the bytes of its record, and back.

FEATURE_NAMES = ("input_ids", "input_mask", "segment_ids")

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_HEADER_SIZE = _LENGTH.size + _CRC.size


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    return bytes((value & 0x7F | 0x80,)) + _varint(value >> 7)


@functools.lru_cache(maxsize=1 << 14)
def _field_head(number: int, size: int) -> bytes:
    """What a protocol buffer has before the payload of such a field."""
    return _varint(number << 3 | 2) + _varint(size)


@functools.lru_cache(maxsize=1 << 14)
def _feature_head(name: str, size: int) -> bytes:
    """What stands before the values of an entry of tf.train.Features."""
    head = b""
    for number in (1, 3, 2):  # int64_list.value, feature.int64_list, value
        head = _field_head(number, len(head) + size) + head
    head = _field_head(1, len(name)) + name.encode() + head
    return _field_head(1, len(head) + size) + head


def _feature(name: str, packed: bytes) -> bytes:
    """One entry of tf.train.Features.feature holding packed int64 values."""
    return _feature_head(name, len(packed)) + packed


class ExampleEncoder:
    """Two segments of token ids -> bytes of a serialized tf.train.Example.

    Features are int64 lists of length `max_length`: `input_ids` = [CLS]
    first [SEP] (second [SEP]) and zeros, `input_mask` 1 at tokens,
    `segment_ids` 1 at the second segment and its [SEP]. Equal, byte by byte,
    to the deterministic serialization of the same tf.train.Example.

    Source: build_pretraining_dataset.py, ExampleBuilder._make_tf_example.
    """

    def __init__(
        self, max_length: int, cls_id: int, sep_id: int, vocab_size: int
    ):
        self._max_length = max_length
        self._varints = list(map(_varint, range(vocab_size)))
        self._cls = _varint(cls_id)
        self._sep = _varint(sep_id)
        self._masks = [
            _feature("input_mask", b"\1" * n + b"\0" * (max_length - n))
            for n in range(max_length + 1)
        ]
        remembered = functools.lru_cache(maxsize=1 << 14)
        self._segments = remembered(self._encode_segment_ids)

    def encode(self, first: list[int], second: list[int]) -> bytes:
        varint = self._varints.__getitem__
        first_length = length = len(first) + 2
        ids = self._cls + b"".join(map(varint, first)) + self._sep
        if second:
            ids += b"".join(map(varint, second)) + self._sep
            length += len(second) + 1
        ids += b"\0" * (self._max_length - length)
        features = _feature("input_ids", ids) + self._masks[length]
        features += self._segments(first_length, length)
        return _field_head(1, len(features)) + features

    def _encode_segment_ids(self, first_length: int, length: int) -> bytes:
        packed = b"\0" * first_length + b"\1" * (length - first_length)
        packed += b"\0" * (self._max_length - length)
        return _feature("segment_ids", packed)


def _masked_crc(text: bytes) -> int:
    """CRC-32C (Castagnoli), turned and shifted as TFRecord wants it."""
    crc = google_crc32c.value(text)
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF


@functools.lru_cache(maxsize=4096)
def _header(length: int) -> bytes:
    prefix = _LENGTH.pack(length)
    return prefix + _CRC.pack(_masked_crc(prefix))


def frame_record(payload: bytes) -> bytes:
    """Wraps a serialized example as a TFRecord record."""
    return _header(len(payload)) + payload + _CRC.pack(_masked_crc(payload))


class BrokenRecordError(ValueError):
    """A record file that ends early or holds impossible lengths."""


def read_records(path: str) -> Iterator[bytes]:
    """Reads a TFRecord file; errors name file, record number and byte."""
    with filesystem.open_file(path, "rb") as file:
        number = 0
        while header := file.read(_HEADER_SIZE):
            start = file.tell() - len(header)
            where = f"{path}: record {number} at byte {start}"
            length = int.from_bytes(header[: _LENGTH.size], "little")
            if len(header) == _HEADER_SIZE and header != _header(length):
                raise BrokenRecordError(f"{where} has a damaged header")
            payload, crc = file.read(length), file.read(_CRC.size)
            if len(crc) < _CRC.size:
                raise BrokenRecordError(f"{where} is cut short")
            if crc != _CRC.pack(_masked_crc(payload)):
                raise BrokenRecordError(f"{where} has a damaged payload")
            yield payload
            number += 1


def decode_example(payload: bytes) -> dict[str, list[int]]:
    """Reads the int64 features of a serialized tf.train.Example."""
    # Imported here because only files that nothing is known of are looked into.
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    try:
        features = tf.train.Example.FromString(payload).features.feature
    except DecodeError as error:
        raise BrokenRecordError("not a tf.train.Example") from error
    return {
        name: list(feature.int64_list.value)
        for name, feature in features.items()
        if feature.HasField("int64_list")
    }


# The record files of one job: written under other names, then renamed.

TRAINING_PREFIX = "pretrain_data"
HELD_OUT_PREFIX = "eval_data"
TEMPORARY_PREFIX = ".tmp-"


class ShardSet:
    """Deals records out to files, the n-th to file n modulo their number.

    Source: build_pretraining_dataset.py, ExampleWriter.
    Differs: files carry a temporary name until `publish`.
    """

    def __init__(
        self,
        directory: str,
        prefix: str,
        indices: list[int],
        count: int,
        attempt: str = "",
    ):
        self.num_records = 0
        self._directory = directory
        self._hidden = TEMPORARY_PREFIX + attempt
        self._names = [f"{prefix}.tfrecord-{i}-of-{count}" for i in indices]
        self._sizes = [0] * len(indices)
        if not filesystem.is_remote(directory):
            filesystem.allow_open_files(len(indices))
        self._files = [
            filesystem.open_file(self._temporary(name), "wb")
            for name in self._names
        ]

    def write(self, payload: bytes) -> None:
        record = frame_record(payload)
        number = self.num_records % len(self._files)
        self._files[number].write(record)
        self._sizes[number] += len(record)
        self.num_records += 1

    def close(self) -> None:
        for file in self._files:
            file.close()

    def publish(self) -> list[dict[str, Any]]:
        """Names the closed files; each one's `name`, `records`, `bytes`."""
        entries = []
        shares = divmod(self.num_records, max(1, len(self._names)))
        sized = zip(self._names, self._sizes, strict=True)
        for i, (name, size) in enumerate(sized):
            target = os.path.join(self._directory, name)
            filesystem.rename(self._temporary(name), target)
            records = shares[0] + (i < shares[1])
            entries.append({"name": name, "records": records, "bytes": size})
        return entries

    def _temporary(self, name: str) -> str:
        return os.path.join(self._directory, self._hidden + name)


class Job(NamedTuple):
    """The part of a build that one worker does in one go."""

    index: int  # which of `count` jobs
    count: int  # number of jobs of the build
    sources: list[corpora.Source]  # what it reads
    attempt: str = ""  # in temporary names, where it may be tried at once twice
    every: int = 1  # the letters of one line in so many are counted


# What a finished job did: `counts` that sum up over jobs; `invalid`, by file
# name [offset of the first undecodable byte, number]; `shards` and
# `held_out_shards`, name, records and bytes of each; `scripts`, the letters of
# some of the lines (electra_tf/text/stripping.py).
JobReport = dict[str, Any]


def _digest(purpose: str, seed: int, name: str, position: str) -> int:
    """64 bits that depend on nothing but the arguments."""
    text = "\0".join((purpose, str(seed), name, position))
    key = text.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")


def document_draws(seed: int, name: str, position: str) -> random.Random:
    """The draws of one document, whichever process reads it."""
    return random.Random(_digest("document", seed, name, position))


# What it has worked out already serves the next job of the process, too.
_encoder = functools.lru_cache(maxsize=1)(ExampleEncoder)


def encoder_of(vocab: Mapping[str, int], max_length: int) -> ExampleEncoder:
    """The encoder of examples of a vocabulary's ids."""
    special = (vocab[CLS], vocab[SEP])
    return _encoder(max_length, *special, max(vocab.values()) + 1)


@dataclasses.dataclass
class _Split:
    """Builder and shards of the training or of the held-out documents."""

    builder: ExampleBuilder
    shards: ShardSet
    documents: int = 0


class ExampleWriter:
    """Turns documents into examples and deals them out to shards.

    Source: build_pretraining_dataset.py, ExampleWriter and write_examples.
    """

    def __init__(self, options: BuildOptions, job: Job, tokenizer: Tokenizer):
        self.random = random.Random(options.seed + job.index)
        self.reading = ReadingReport(options.strict)
        self._options, self._tokenizer = options, tokenizer
        self._every = job.every
        self._letters = None
        if not is_bpe(options.vocab_file):
            casing = options.with_casing()
            self._letters = ScriptCounter(
                casing.do_lower_case, casing.do_strip_accents
            )
        self._encoder = encoder_of(tokenizer.vocab, options.max_seq_length)
        names = ("lines", "lines_over_length", "unknown_tokens")
        self._counts = dict.fromkeys(names, 0)

        def split(
            prefix: str, stream: random.Random, indices: list[int], count: int
        ) -> _Split:
            builder = ExampleBuilder(
                options.max_seq_length, stream, options.split_long_lines
            )
            place = (options.output_dir, prefix, indices, count, job.attempt)
            return _Split(builder, ShardSet(*place))

        indices = range(job.index, options.num_shards, job.count)
        self.training = split(
            TRAINING_PREFIX, self.random, list(indices), options.num_shards
        )
        seed = _digest("held out", options.seed, "", str(job.index))
        indices = [job.index] if options.held_out_fraction else []
        self._held_out = split(
            HELD_OUT_PREFIX, random.Random(seed), indices, job.count
        )

    def write(self, source: corpora.Source, on_piece: Callable = int) -> None:
        seed = self._options.seed
        by_document = self._options.draws == "document"
        shuffle = None if by_document else self.random
        self.reading.units_read = 0
        position = None
        for piece in corpora.read_documents(
            source, self._options.corpus, self.reading, shuffle
        ):
            if position is None:
                position = piece.position
                split = self._choose_split(source.name, position)
                if by_document:
                    draws = document_draws(seed, source.name, position)
                    split.builder.restart(draws)
            self._add_lines(split, piece.lines)
            if piece.is_last:
                self._write_examples(split, split.builder.flush())
                position = None
                on_piece()

    def _choose_split(self, name: str, position: str) -> _Split:
        split, share = self.training, self._options.held_out_fraction
        if share:
            draw = _digest("choose", self._options.seed, name, position)
            if draw < share * 2.0**64:
                split = self._held_out
        split.documents += 1
        return split

    def _add_lines(self, split: _Split, lines: list[str]) -> None:
        counts, unknown_id = self._counts, self._tokenizer.vocab[UNK]
        room = self._options.max_seq_length - 2
        counts["lines"] += len(lines)
        for line in lines:
            if self._letters and self._is_counted(line):
                self._letters.add(line)
            ids = self._tokenizer.encode(line)
            counts["lines_over_length"] += len(ids) > room
            counts["unknown_tokens"] += ids.count(unknown_id)
            self._write_examples(split, split.builder.add(ids))

    def _is_counted(self, line: str) -> bool:
        """Return whether a line is of the sample, by its text alone.

        So the sample is the same however many processes share the corpus.
        """
        if self._every == 1:
            return True
        return not zlib.crc32(line.encode("utf-8", "ignore")) % self._every

    def _write_examples(self, split: _Split, finished: list) -> None:
        for first, second in finished:
            split.shards.write(self._encoder.encode(first, second))

    def finish(self) -> JobReport:
        training, held_out = splits = self.training, self._held_out
        for split in splits:
            split.shards.close()
        # Only now: a job that fails leaves no file with a final name.
        shards, held_out_shards = [split.shards.publish() for split in splits]
        builders = [split.builder for split in splits]
        invalid = self.reading.invalid
        counts = {
            **self._counts,
            "documents": training.documents,
            "held_out_documents": held_out.documents,
            "tokens": sum(b.tokens_in for b in builders),
            "tokens_dropped": sum(b.tokens_dropped for b in builders),
            "examples": training.shards.num_records,
            "held_out_examples": held_out.shards.num_records,
            "bytes": self.reading.bytes_read,
            "invalid_bytes": sum(count for _, count in invalid.values()),
        }
        report = {"counts": counts, "invalid": invalid, "shards": shards}
        if self._letters:
            report["scripts"] = self._letters.scripts()
        return report | {"held_out_shards": held_out_shards}


def run_job(
    options: BuildOptions,
    job: Job,
    tokenizer: Tokenizer,
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
            share = min(1.0, share)  # Packed sources are counted unpacked.
            on_progress(share, writer.training.shards.num_records)

        for source in sources:
            with writer.reading.in_errors():
                writer.write(source, on_piece)
            done += source.end - source.start
        return writer.finish()
    except OSError as error:
        raise UserError(
            f"{error.filename or options.output_dir}: "
            f"{error.strerror or error}; check permissions, free space and "
            "the limit on open files (ulimit -n)."
        ) from error
