# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sentences (lists of token ids) become two-segment pre-training examples."""

import random

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
        """Makes an empty builder.

        Args:
          max_length: tokens per example, [CLS] and [SEP] included, at least 5.
        """
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
        """Forgets the drawn target length and takes a new random stream.

        Raises:
          RuntimeError: if sentences are waiting; call `flush` first.
        """
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
        """Ends the document.

        Returns:
          What was waiting, as finished examples; empty if nothing was.
        """
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
