# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Raw text as training data: examples that every epoch cuts anew, no records.

Nothing has a state: the documents of an epoch, their order and their cuts are
functions of the seed, the files and a number that counts documents. That number
is all of the position which a checkpoint has to keep.
"""

import functools
import os
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np

from configure.bounds import at_least, check_bounds
from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.data.build_options import MIN_SEQUENCE_LENGTH
from electra_tf.data.records import open_encoder
from electra_tf.data.segments import ExampleBuilder, Segments, document_draws
from electra_tf.files import filesystem
from electra_tf.files.patterns import find_files
from electra_tf.files.reading import ICONV
from electra_tf.text import tokenization, vocabulary

# Longer documents count as several: one is in memory as a whole. Here a build's
# examples are others, in the first epoch, too.
_LINES_PER_DOCUMENT = 4096
_SAMPLED_BYTES = 1 << 20
_PACKED = tuple(".gz .xz .bz2 .zip .tar .tgz .jsonl .ndjson".split())


class RawText:
    """The documents of text files, and the examples of each in any epoch.

    Source: Mercier, "Efficient transfer learning for NLP with ELECTRA" (2021),
      section 3.2 (dynamic segmentation).
    Differs: an epoch takes all of a document, where the study takes one random
      segment of it; segments and pairs are the original builder's.
    """

    def __init__(self, config: Any, hparam: str):
        """Finds the documents of `pretrain_text` or `eval_text`."""
        patterns = getattr(config, hparam)
        self.paths, _ = find_files(patterns)
        if not self.paths:
            raise UserError(
                f"hparam {hparam}: no file with text matches {patterns!r};"
                " correct it"
            )
        if packed := [p for p in self.paths if p.lower().endswith(_PACKED)]:
            raise UserError(
                f"hparam {hparam}: {join_names(packed, 3)}: not plain text, in"
                " which documents can be found; unpack it, a sentence a line"
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
                f"hparam {hparam}: {join_names(self.paths, 3)}: only blank"
                " lines"
            )
        # Training text is read for ever, in an order of each epoch's own.
        self.repeats = hparam == "pretrain_text"
        self._hparam, self._seed = hparam, config.seed
        self._length = config.max_seq_length
        vocab = vocabulary.check_vocab(config.vocab_file)
        self._tokenizer = tokenization.open_tokenizer(
            config.vocab_file, config.do_lower_case, config.strip_accents
        )
        self._encoder = open_encoder(vocab, self._length)

    def __len__(self) -> int:
        return len(self._spans)

    def segments(self, document: int, epoch: int) -> list[Segments]:
        """A document's examples, which hold every token of it.

        In the first epoch they are those of a build with `draws=document` and
        `split_long_lines`. In later ones a document that fills several is read
        from a random line on and then from its start, so that all cuts move.
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
        found = []
        for part in (sentences[first:], sentences[:first]):
            for sentence in part:
                found += builder.add(sentence)
            found += builder.flush()
        return found

    def records(self, number: int) -> np.ndarray:
        """The records of the run's n-th document: object [n], of bytes."""
        epoch, document = 0, int(number)
        if self.repeats:
            epoch, place = divmod(document, len(self))
            document = _order(self._seed, epoch, len(self))[place]
        found = self.segments(document, epoch)
        return np.array([self._encoder.encode(*p) for p in found], object)

    def sample(self) -> list[int]:
        """Examples, tokens, [UNK]s, bytes of random documents: 1 MB, or all."""
        found = np.zeros(4, np.int64)
        unknown = self._tokenizer.vocab[vocabulary.UNK]
        for document in _order(self._seed, 0, len(self)):
            pairs = self.segments(document, 0)
            ids = [number for a, b in pairs for number in a + b]
            size = np.ptp(self._spans[document])
            found += (len(pairs), len(ids), ids.count(unknown), size)
            if found[3] > _SAMPLED_BYTES:
                break
        return found.tolist()

    def doubts(self) -> Iterator[str]:
        """Whether the vocabulary suits the text; raises if there is nothing."""
        examples, tokens, unknown, size = self.sample()
        if not examples:
            raise UserError(
                f"hparam {self._hparam}: {size:,} bytes of"
                f" {join_names(self.paths, 3)} hold no token; give files with"
                " text"
            )
        if unknown > 0.05 * tokens:
            yield (
                f"{unknown:,} of {tokens:,} tokens looked at in"
                f" {self._hparam} are [UNK]: do vocab_file and do_lower_case"
                " suit the text?"
            )


@functools.lru_cache(maxsize=2)  # Two epochs meet among interleaved documents.
def _order(seed: int, epoch: int, count: int) -> np.ndarray:
    """An epoch's order of documents, int [count]."""
    # The one stream that NumPy promises not to change.
    return np.random.RandomState([seed, epoch]).permutation(count)


@functools.lru_cache(maxsize=4096)  # Every evaluation asks again.
def _spans(hparam: str, path: str, size: int) -> np.ndarray:
    """First byte and end of each document of a file, int64 [n, 2]."""
    starts: list[int] = []
    position = lines = 0
    with filesystem.open_file(path, "rb") as file:
        for raw in file:
            try:
                is_blank = not raw.decode().strip()
            except UnicodeDecodeError as error:
                raise UserError(
                    f"hparam {hparam}: {path}: byte"
                    f" {position + error.start} is not UTF-8; convert the file"
                    f" ({ICONV}, where it is in Latin-1)"
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
