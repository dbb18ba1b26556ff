# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tags of words and the spans that they mark."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from electra_tf.finetuning.tagging.task import TaggingExample, TaggingTask
from electra_tf.prediction.request import Asked, BadInputError
from electra_tf.text.words import read_spans, split_words

_EXPECTED = "a text, or a list of words"


@dataclasses.dataclass(kw_only=True)
class TextOfWords(TaggingExample):
    """A sentence to be tagged.

    Attributes:
      text: the text that the words are from; None if words were given.
      places: with a text, the words' places in it; see `split_words`.
    """

    text: str | None = None
    places: list[tuple[int, int]] | None = None


class TagAnswerer:
    """Asks for the tags of words.

    An item is running text, a list of words, or a mapping with `text` or
    `words`. Answers hold `words`, a tag and its probability for each (None
    for words cut off as too long), and for models of spans the `spans`: type,
    text, first and last word, and with running text the place in characters.
    """

    outputs = ("logits",)

    def __init__(self, task: TaggingTask) -> None:
        self._task = task
        self.fed = (f"{task.name}_labeled_positions",)
        names = {i: label for label, i in task.label_mapping.items()}
        self._labels = [names[i] for i in range(len(names))]
        self._has_spans = not task.is_token_level

    def column_names(self) -> dict[str, tuple[str, ...]]:
        """See `Answerer.column_names`."""
        return {"words": ("words", "tokens", "text")}

    def example(self, item: Any, number: int) -> TextOfWords:
        """See `Answerer.example`."""
        if isinstance(item, Mapping):
            item = item.get("words", item.get("text"))
        text, places = None, None
        if isinstance(item, bytes):
            item = item.decode("utf-8", "ignore")
        if isinstance(item, str):
            text, places = item, split_words(item)
            words = [text[first:last] for first, last in places]
        elif isinstance(item, list | tuple):
            words = list(item)
        else:
            raise BadInputError(item, _EXPECTED)
        if not all(isinstance(word, str) for word in words):
            raise BadInputError(item, _EXPECTED)
        return TextOfWords(
            eid=number,
            task_name=self._task.name,
            words=words,
            labels=[0] * len(words),
            text=text,
            places=places,
        )

    def is_single(self, item: Any) -> bool:
        """Whether it is a text or a mapping; a list is several sentences."""
        return isinstance(item, str | bytes | Mapping)

    def answers(self, asked: Sequence[Asked]) -> list[dict[str, Any]]:
        """See `Answerer.answers`."""
        return [self._answer(one.example, one.rows[0]) for one in asked]

    def _answer(
        self, example: TextOfWords, outputs: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        count = int(outputs["n_words"])
        logits = outputs["logits"][:count].astype(np.float64)  # [words, C]
        odds = np.exp(logits - logits.max(-1, keepdims=True, initial=-np.inf))
        shares = (odds / odds.sum(-1, keepdims=True)).max(-1).tolist()
        tags = [self._labels[i] for i in logits.argmax(-1)] if count else []
        cut = [None] * (len(example.words) - count)
        answer: dict[str, Any] = {
            "words": example.words,
            "tags": [*tags, *cut],
            "probabilities": [*shares, *cut],
        }
        if self._has_spans:
            answer["spans"] = [
                self._span(example, *span) for span in self._read_spans(tags)
            ]
        return answer

    def _read_spans(self, tags: list[str]) -> list[tuple[int, int, str]]:
        # As the figures of an evaluation count them.
        return read_spans(tags, type_change_starts_span=True)

    def _span(
        self, example: TextOfWords, first: int, last: int, kind: str
    ) -> dict[str, Any]:
        span: dict[str, Any] = {"type": kind, "first": first, "last": last}
        if example.places is None:
            span["text"] = " ".join(example.words[first : last + 1])
            return span
        start, end = example.places[first][0], example.places[last][1]
        return span | {
            "start": start,
            "end": end,
            "text": example.text[start:end],
        }
