# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Raw text as training data, split into different examples each epoch.

The documents of an epoch, their order and their examples are functions of the
seed, the files and the number of documents read so far. A checkpoint therefore
saves only this number.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from configure.bounds import at_least, check_bounds
from configure.errors import UserError
from configure.formatting import join_names
from configure.problems import Level, Problem
from electra_tf.data.build_options import MIN_SEQUENCE_LENGTH
from electra_tf.data.segments import ExampleBuilder, Segments, document_draws
from electra_tf.data.tfrecords import open_encoder
from electra_tf.files import filesystem
from electra_tf.files.patterns import find_files
from electra_tf.files.reading import ICONV
from electra_tf.text import opening, vocabulary

if TYPE_CHECKING:
    from configure.pretraining import PretrainingConfig

# Maximum number of lines in a document. A document is held in memory, so longer
# documents are read as several documents, whose examples differ from those of a
# build even in the first epoch.
_LINES_PER_DOCUMENT = 4096
_SAMPLED_BYTES = 1 << 20  # approximate size of a sample
_NO_PLAIN_TEXT = (
    ".gz",
    ".xz",
    ".bz2",
    ".zip",
    ".tar",
    ".tgz",
    ".jsonl",
    ".ndjson",
)


class Sample(NamedTuple):
    """Counts of a sample of documents."""

    examples: int
    tokens: int
    unknown: int  # number of tokens that are [UNK]
    bytes: int


class RawText:
    """Documents of text files, and their examples in each epoch.

    Source: Mercier, "Efficient transfer learning for NLP with ELECTRA" (2021),
      section 3.2 (dynamic segmentation).
    Differs: an epoch contains whole documents, whereas the study takes a random
      segment of each; segments and pairs are those of the original's builder.
    """

    def __init__(self, config: PretrainingConfig, hparam: str):
        """Find the documents of `pretrain_text` or `eval_text`.

        Raises:
          UserError: the files contain no readable text.
        """
        patterns = getattr(config, hparam)
        self.paths, _ = find_files(patterns)
        if not self.paths:
            raise UserError(
                f"hparam {hparam}: {patterns!r} matches no file that contains"
                " data. Correct the patterns."
            )
        packed = [
            path for path in self.paths if path.lower().endswith(_NO_PLAIN_TEXT)
        ]
        if packed:
            raise UserError(
                f"hparam {hparam}: {join_names(packed, 3)}: these files"
                " are not plain text. Unpack the files into text with one"
                " sentence per line."
            )
        name, least = "hparam max_seq_length", at_least(MIN_SEQUENCE_LENGTH)
        check_bounds(name, config.max_seq_length, Annotated[int, least])
        spans = [_spans(hparam, p, filesystem.file_size(p)) for p in self.paths]
        self._spans = np.concatenate(spans)
        self.num_bytes = int(np.diff(self._spans).sum())
        counts = [len(span) for span in spans]
        self._files = np.repeat(np.arange(len(counts)), counts)
        if not len(self):
            raise UserError(
                f"hparam {hparam}: {join_names(self.paths, 3)}: the files"
                f" contain only blank lines. Set {hparam} to files with text."
            )
        # Training repeats its text forever, in a new order each epoch.
        self.repeats = hparam == "pretrain_text"
        self._hparam, self._seed = hparam, config.seed
        self._length = config.max_seq_length
        vocab = vocabulary.check_vocab(config.vocab_file)
        self._tokenizer = opening.open_tokenizer(
            config.vocab_file, config.do_lower_case, config.strip_accents
        )
        self._encoder = open_encoder(vocab, self._length)

    def __len__(self) -> int:
        return len(self._spans)

    def segments(self, document: int, epoch: int) -> list[Segments]:
        """Return examples that together contain all tokens of a document.

        The examples of the first epoch equal those of a build with
        `draws=document` and `split_long_lines`. In later epochs a document of
        several examples is read from a random line to its end and then from its
        start, so that all boundaries of examples move.

        Args:
          document: 0-based index of the document.
          epoch: 0-based index of the epoch.
        """
        path = self.paths[self._files[document]]
        start, end = self._spans[document].tolist()
        with filesystem.open_file(path, "rb") as file:
            file.seek(start)
            text = file.read(end - start).decode()
        lines = (text if start else text.removeprefix("\ufeff")).split("\n")
        encoded = map(self._tokenizer.encode, map(str.strip, lines))
        sentences = [ids for ids in encoded if ids]
        position = f"{start}@{epoch}" if epoch else f"{start}"
        draws = document_draws(self._seed, os.path.basename(path), position)
        first = 0
        if epoch and sum(map(len, sentences)) > self._length:
            first = draws.randrange(len(sentences))
        builder = ExampleBuilder(self._length, draws, split_long_lines=True)
        examples = []
        for part in (sentences[first:], sentences[:first]):
            for sentence in part:
                examples += builder.add(sentence)
            examples += builder.flush()
        return examples

    def records(self, number: int) -> np.ndarray:
        """Return the serialized examples of a document.

        Args:
          number: index of the document among all documents that the run reads.

        Returns:
          bytes, object [number of examples].
        """
        epoch, document = 0, int(number)
        if self.repeats:
            epoch, index = divmod(document, len(self))
            document = _order(self._seed, epoch, len(self))[index]
        payloads = [
            self._encoder.encode(first, second)
            for first, second in self.segments(document, epoch)
        ]
        return np.array(payloads, object)

    def sample(self) -> Sample:
        """Return the counts of random documents with about 1 MB of text."""
        examples = tokens = unknown = num_bytes = 0
        unknown_id = self._tokenizer.vocab[vocabulary.UNK]
        for document in _order(self._seed, 0, len(self)):
            pairs = self.segments(document, 0)
            examples += len(pairs)
            for first, second in pairs:
                tokens += len(first) + len(second)
                unknown += first.count(unknown_id) + second.count(unknown_id)
            num_bytes += int(np.ptp(self._spans[document]))
            if num_bytes > _SAMPLED_BYTES:
                break
        return Sample(examples, tokens, unknown, num_bytes)

    def problems(self) -> Iterator[Problem]:
        """Yield a problem if a sample has no tokens or many [UNK] tokens."""
        sample = self.sample()
        if not sample.examples:
            yield Problem(
                Level.ERROR,
                f"hparam {self._hparam}: {sample.bytes:,} bytes of"
                f" {join_names(self.paths, 3)} contain no token. Set"
                f" {self._hparam} to files with text.",
            )
        elif sample.unknown > 0.05 * sample.tokens:
            yield Problem(
                Level.DOUBT,
                f"{sample.unknown:,} of {sample.tokens:,} sampled tokens of"
                f" {self._hparam} are [UNK]. Check that vocab_file and"
                " do_lower_case fit the text.",
            )


# Two orders are cached, because documents of two epochs are interleaved at the
# end of an epoch.
@functools.lru_cache(maxsize=2)
def _order(seed: int, epoch: int, count: int) -> np.ndarray:
    """Return the order of documents in an epoch, int [count]."""
    # Only RandomState draws equal numbers in all versions of NumPy.
    return np.random.RandomState([seed, epoch]).permutation(count)


@functools.lru_cache(maxsize=4096)  # Each evaluation reads the same files.
def _spans(hparam: str, path: str, size: int) -> np.ndarray:
    """Return the offsets of each document's start and end, int64 [n, 2]."""
    starts: list[int] = []
    position = lines = 0
    with filesystem.open_file(path, "rb") as file:
        for raw in file:
            try:
                is_blank = not raw.decode().strip()
            except UnicodeDecodeError as error:
                raise UserError(
                    f"hparam {hparam}: {path}: byte {position + error.start} is"
                    f" not UTF-8. Convert the file (from Latin-1 with {ICONV})."
                ) from None
            if is_blank:
                lines = 0
            else:
                if lines % _LINES_PER_DOCUMENT == 0:
                    starts.append(position)
                lines += 1
            position += len(raw)
    edges = np.array([*starts, size], np.int64)
    return np.stack([edges[:-1], edges[1:]], axis=1)
