# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Splitting of sentences into examples of two segments."""

import hashlib
import random

from electra_tf.data.build_options import MIN_SEQUENCE_LENGTH

# Token ids of the first and the second segment of an example.
Segments = tuple[list[int], list[int]]

# Shares and lengths of the original's builder.
_ONE_SEGMENT_SHARE = 0.1
_RANDOM_LENGTH_SHARE = 0.05
_ONE_SEGMENT_TARGET = 100000  # tokens


class ExampleBuilder:
    """A builder that splits the sentences of a document into examples.

    Random numbers are drawn in the original's order, so that with the same
    stream each example equals the original's.

    Source: build_pretraining_dataset.py, ExampleBuilder.
    Differs: takes token ids, has a separate random stream, counts the dropped
      tokens and, with `split_long_lines`, keeps these tokens for the next
      example.

    Attributes:
      random: random stream of the builder.
      tokens_in: number of tokens that were added.
      tokens_dropped: number of tokens that were dropped at the ends of
        segments.
    """

    def __init__(
        self,
        max_length: int,
        random_stream: random.Random,
        split_long_lines: bool = False,
    ):
        """Create a builder without sentences.

        Args:
          max_length: number of tokens in an example, including [CLS] and [SEP].
          random_stream: random stream of the splits.
          split_long_lines: whether tokens that exceed an example continue in
            the next example; False: they are dropped.
        """
        self.random = random_stream
        self.tokens_in = 0
        self.tokens_dropped = 0
        self._max_length = max_length
        self._split_long_lines = split_long_lines
        self._sentences: list[_Sentence] = []
        self._length = 0
        self._target_length = max_length

    def restart(self, random_stream: random.Random) -> None:
        """Discard the drawn target length, and use a new random stream."""
        if self._length:
            raise RuntimeError(
                "restart() was called with unfinished sentences; call flush()"
                " first."
            )
        self.random = random_stream
        self._target_length = self._max_length

    def add(self, sentence: list[int]) -> list[Segments]:
        """Add a sentence's token ids, and return the complete examples."""
        if not sentence:  # An empty sentence must not draw a random number.
            return []
        self.tokens_in += len(sentence)
        self._sentences.append(_Sentence([sentence]))
        self._length += len(sentence)
        examples = []
        while self._length >= self._target_length:
            examples.append(self._cut_example())
        return examples

    def flush(self) -> list[Segments]:
        """End the document, and return its remaining examples."""
        examples = []
        while self._length:
            examples.append(self._cut_example())
        return examples

    def _cut_example(self) -> Segments:
        first, second = self._divide()
        first_ids = first.take(self._max_length - 2)  # without [CLS] and [SEP]
        second_room = max(0, self._max_length - len(first_ids) - 3)
        second_ids = second.take(second_room)
        tails = [tail for tail in (first, second) if tail.length]
        tails_length = sum(tail.length for tail in tails)
        if self._split_long_lines:
            self._sentences, self._length = tails, tails_length
        else:
            self._sentences, self._length = [], 0
            self.tokens_dropped += tails_length
        # As in the original, a small share of examples has a random length.
        self._target_length = self._max_length
        if self.random.random() < _RANDOM_LENGTH_SHARE:
            self._target_length = self.random.randint(
                MIN_SEQUENCE_LENGTH, self._max_length
            )
        return first_ids, second_ids

    def _divide(self) -> tuple["_Sentence", "_Sentence"]:
        """Assign the waiting sentences to the two segments."""
        draw = self.random.random
        if draw() < _ONE_SEGMENT_SHARE:
            target = _ONE_SEGMENT_TARGET
        else:
            # The target excludes [CLS] and two [SEP].
            target = (self._target_length - 3) // 2
        first, second = _Sentence([]), _Sentence([])
        for sentence in self._sentences:
            # The order of these tests determines which sentence draws a random
            # number.
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
    """A queue of lists of token ids; the first list may be partly used.

    The rest of a line of millions of tokens passes from example to example
    hundreds of thousands of times, so the remaining ids are never copied.
    """

    def __init__(self, parts: list[list[int]]) -> None:
        self.length = sum(map(len, parts))
        # pairs of a list of ids and the index of its first unused id
        self._parts = [(part, 0) for part in parts]

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


def document_bits(purpose: str, seed: int, name: str, position: str) -> int:
    """Return 64 random bits that depend only on the arguments.

    Args:
      purpose: name of the use, so that different uses are independent.
      seed: seed of the build.
      name: file name of the document.
      position: position of the document in the file.
    """
    text = "\0".join((purpose, str(seed), name, position))
    key = text.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")


def document_draws(seed: int, name: str, position: str) -> random.Random:
    """Return the random stream of a document, equal in all processes."""
    return random.Random(document_bits("document", seed, name, position))
