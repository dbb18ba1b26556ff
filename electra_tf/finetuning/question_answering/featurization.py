# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sliding windows over passages that are longer than the model's input."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.question_answering.examples import Passage, QAExample
from electra_tf.metrics.question_answering import Window
from electra_tf.text.tokenization import FullTokenizer

# A window's number is this times its example's, plus its place in the
# passage, so there can be no more windows than this.
MAX_WINDOWS = 1000
_PASSAGES_KEPT = 1024


class Pieces(NamedTuple):
    """A passage in wordpieces.

    Attributes:
      tokens: the wordpieces.
      words: for each, the word it belongs to.
      starts: for each word, its first wordpiece; where a word has none, the
        next one's.
    """

    tokens: list[str]
    words: list[int]
    starts: list[int]


@dataclasses.dataclass(frozen=True)
class Cut:
    """A question with the windows over its passage.

    Attributes:
      query: the question's wordpieces, cut to `max_query_length`.
      n_query_lost: wordpieces cut off.
      pieces: the passage's.
      spans: start and length of each window, in wordpieces of the passage.
      n_lost: wordpieces of the passage that no window holds.
    """

    query: list[str]
    n_query_lost: int
    pieces: Pieces
    spans: list[tuple[int, int]]
    n_lost: int

    def tokens(self, number: int) -> list[str]:
        """Returns all wordpieces of a window."""
        start, length = self.spans[number]
        part = self.pieces.tokens[start : start + length]
        return ["[CLS]", *self.query, "[SEP]", *part, "[SEP]"]


class WindowCutter:
    """Cuts examples into windows.

    Args:
      max_seq_length: wordpieces of a window, question and specials included.

    Source: google-research/electra, finetune/qa/qa_tasks.py, featurize.
    Differs: windows beyond `MAX_WINDOWS` are left out, where the original
      gives them the numbers of the next example's.
    """

    def __init__(
        self,
        tokenizer: FullTokenizer,
        max_seq_length: int,
        max_query_length: int,
        doc_stride: int,
    ) -> None:
        self._tokenizer = tokenizer
        self._max_seq_length = max_seq_length
        self._max_query_length = max_query_length
        self._doc_stride = doc_stride
        self._pieces = functools.lru_cache(_PASSAGES_KEPT)(self._split)

    def cut(self, example: QAExample) -> Cut:
        """Lays windows over an example's passage."""
        whole = self._tokenizer.tokenize(example.question_text)
        query = whole[: self._max_query_length]
        pieces = self._pieces(example.passage)
        count = len(pieces.tokens)
        room = self._max_seq_length - len(query) - 3  # [CLS], twice [SEP]
        spans, start = [], 0
        while start < count and len(spans) < MAX_WINDOWS:
            length = min(count - start, room)
            spans.append((start, length))
            if start + length == count:
                break
            start += min(length, self._doc_stride)
        held = sum(spans[-1]) if spans else 0
        return Cut(query, len(whole) - len(query), pieces, spans, count - held)

    def windows(self, example: QAExample) -> list[Window]:
        """Returns an example's windows as scoring needs them."""
        cut = self.cut(example)
        best = _windows_of_most_context(cut.spans, len(cut.pieces.tokens))
        words = np.array(cut.pieces.words, np.int32)
        before = np.full(len(cut.query) + 2, -1)
        after = np.full(1, -1)
        windows = []
        for number, (start, length) in enumerate(cut.spans):
            part = slice(start, start + length)
            places = np.concatenate([before, best[part], after])
            windows.append(
                Window(
                    eid=window_eid(example, number),
                    tokens=cut.tokens(number),
                    words=np.concatenate([before, words[part], after]),
                    max_context=places == number,
                )
            )
        return windows

    def answer_span(
        self, example: QAExample, pieces: Pieces
    ) -> tuple[int, int]:
        """Returns the answer's first and last wordpiece in its passage.

        The answer's words may hold more than the answer, such as a bracket;
        if the wordpieces of the answer alone are among theirs, it is those.

        Source: google-research/electra, finetune/qa/qa_tasks.py, featurize
        and _improve_answer_span.
        """
        start = pieces.starts[example.start_position]
        if example.end_position < len(example.doc_tokens) - 1:
            end = pieces.starts[example.end_position + 1] - 1
        else:
            end = len(pieces.tokens) - 1
        answer = self._tokenizer.tokenize(example.orig_answer_text)
        if answer:
            for first in range(start, end + 2 - len(answer)):
                if pieces.tokens[first : first + len(answer)] == answer:
                    return first, first + len(answer) - 1
        return start, end

    def _split(self, passage: Passage) -> Pieces:
        tokens, words, starts = [], [], []
        for number, word in enumerate(passage.words):
            starts.append(len(tokens))
            own = self._tokenizer.tokenize(word)
            tokens += own
            words += [number] * len(own)
        return Pieces(tokens, words, starts)


def check_lengths(config: FinetuningConfig, name: str) -> None:
    """Raises unless windows have room for a passage and for the beam."""
    length = config.max_seq_length
    if config.max_query_length + 3 >= length:
        raise UserError(
            f"task {name}: max_query_length {config.max_query_length} leaves no"
            f" room for a passage in max_seq_length {length}; lower the one or"
            " raise the other"
        )
    if config.joint_prediction and config.beam_size > length:
        raise UserError(
            f"task {name}: beam_size {config.beam_size} is more than the"
            f" {length} positions of max_seq_length"
        )


def window_eid(example: QAExample, number: int) -> int:
    """Returns the number of a window among all of a split."""
    return MAX_WINDOWS * example.eid + number


def _windows_of_most_context(
    spans: list[tuple[int, int]], count: int
) -> np.ndarray:
    """Returns, for each wordpiece, the window that shows most around it.

    That is the window where the smaller of its left and right context is
    largest; of equal windows the first.

    Source: google-research/electra, finetune/qa/qa_tasks.py,
    _check_is_max_context.
    """
    best = np.full(count, -1)
    best_score = np.full(count, -1.0)
    for number, (start, length) in enumerate(spans):
        left = np.arange(length)
        score = np.minimum(left, length - 1 - left) + 0.01 * length
        part = slice(start, start + length)
        better = score > best_score[part]
        best[part][better] = number
        best_score[part][better] = score[better]
    return best
