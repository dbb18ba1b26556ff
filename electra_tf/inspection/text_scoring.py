# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How a scorer walks over texts: in batches of like length, in order."""

import abc
import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from electra_tf.inspection.sentences import Window, room_for_tokens, windows
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.text.vocab import UNK

# Texts are gathered until there are so many batches, and sorted by length.
_BATCHES_AT_ONCE = 16


@dataclasses.dataclass(frozen=True)
class TextScore:
    """How likely a text is.

    Attributes:
      text: as given.
      score: sum of `token_scores`, in nats.
      tokens: its wordpieces.
      token_scores: of each, its log-probability in its context.
      unknown: how many of them are [UNK]; the model cannot tell those apart.
      windows: how many stretches a long text was scored in.
      cloze_token_scores: those of the two-tower cloze model, where asked for.
    """

    text: str
    score: float
    tokens: tuple[str, ...]
    token_scores: tuple[float, ...]
    unknown: int
    windows: int
    cloze_token_scores: tuple[float, ...] | None = None

    @property
    def cloze_score(self) -> float | None:
        """The two-tower cloze model's score, in nats, where asked for."""
        if self.cloze_token_scores is None:
            return None
        return math.fsum(self.cloze_token_scores)


@dataclasses.dataclass(frozen=True)
class Row:
    """One input of a model.

    Attributes:
      text: number of the text.
      window: which of its tokens are shown.
      place: index in the text of the token asked for; None for all.
      ids: of the whole text, shared by its rows.
    """

    text: int
    window: Window
    place: int | None
    ids: Sequence[int]

    @property
    def shown(self) -> Sequence[int]:
        """Ids of the tokens shown, without [CLS] and [SEP]."""
        return self.ids[self.window.begin : self.window.end]


# Of the tokens that a row answers for, log-probabilities by method.
Answer = dict[str, np.ndarray]


class TextScorer(abc.ABC):
    """Scores texts with a pre-trained model.

    Attributes:
      method: name of the score, such as "electric".
    """

    method: str
    # Whether the cloze model's scores are given beside the method's own.
    _also_cloze = False

    def __init__(
        self, pretrained: PretrainedModel, batch_size: int = 32
    ) -> None:
        self.pretrained = pretrained
        self.batch_size = batch_size

    @abc.abstractmethod
    def _rows(self, text: int, ids: Sequence[int]) -> list[Row]:
        """The inputs that score a text."""

    @abc.abstractmethod
    def _run(self, rows: Sequence[Row]) -> list[Answer]:
        """Runs the model on a batch; `self.method` is among the answers."""

    def score(self, texts: Iterable[str]) -> Iterator[TextScore]:
        """Scores texts one after the other, however many there are.

        Yields:
          The scores, in the order of the texts. A text without tokens has
          score 0.
        """
        tokenizer = self.pretrained.tokenizer
        held: list[tuple[str, list[int]]] = []
        rows: list[Row] = []
        for text in texts:
            ids = tokenizer.encode(text)
            rows += self._rows(len(held), ids)
            held.append((text, ids))
            if len(rows) >= self.batch_size * _BATCHES_AT_ONCE:
                yield from self._score_held(held, rows)
                held, rows = [], []
        yield from self._score_held(held, rows)

    def _whole_windows(self, text: int, ids: Sequence[int]) -> list[Row]:
        """One row a window, answering for all that the window counts."""
        room = room_for_tokens(self.pretrained)
        return [Row(text, w, None, ids) for w in windows(len(ids), room)]

    def _score_held(
        self, held: list[tuple[str, list[int]]], rows: list[Row]
    ) -> Iterator[TextScore]:
        # Like lengths together: less padding.
        rows = sorted(rows, key=lambda row: row.window.end - row.window.begin)
        found: list[dict[str, np.ndarray]] = [{} for _ in held]
        for start in range(0, len(rows), self.batch_size):
            batch = rows[start : start + self.batch_size]
            for row, answer in zip(batch, self._run(batch), strict=True):
                for method, values in answer.items():
                    per_token = found[row.text].setdefault(
                        method, np.zeros([len(row.ids)])
                    )
                    first, last = _answered(row)
                    per_token[first:last] = values
        windows_of = [set() for _ in held]
        for row in rows:
            windows_of[row.text].add(row.window.begin)
        for (text, ids), values, seen in zip(
            held, found, windows_of, strict=True
        ):
            yield self._text_score(text, ids, values, len(seen))

    def _text_score(
        self,
        text: str,
        ids: list[int],
        values: dict[str, np.ndarray],
        windows: int,
    ) -> TextScore:
        tokenizer = self.pretrained.tokenizer
        unknown_id = tokenizer.vocab[UNK]
        own = values.get(self.method, np.zeros([0]))
        cloze = values.get("cloze") if self.method != "cloze" else None
        if not ids and self._also_cloze:
            cloze = own
        return TextScore(
            text=text,
            score=math.fsum(own),
            tokens=tuple(tokenizer.convert_ids_to_tokens(ids)),
            token_scores=tuple(own.tolist()),
            unknown=ids.count(unknown_id),
            windows=windows,
            cloze_token_scores=None if cloze is None else tuple(cloze.tolist()),
        )


def _answered(row: Row) -> tuple[int, int]:
    """Indices in the text of what a row answers for."""
    if row.place is not None:
        return row.place, row.place + 1
    return row.window.first, row.window.last
