# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers to questions about a text, found in it."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from electra_tf.finetuning.question_answering.examples import Passage, QAExample
from electra_tf.finetuning.question_answering.task import QATask
from electra_tf.metrics.question_answering import Answer, probabilities
from electra_tf.prediction.request import Asked, texts_of

_NAMES = [("question",), ("context", "passage")]
_EXPECTED = "a question and a context"
_PASSAGES_KEPT = 64
_BEAM = (
    "start_top_log_probs",
    "start_top_index",
    "end_top_log_probs",
    "end_top_index",
)


class QuestionAnswerer:
    """Asks questions about texts.

    An item is a mapping with `question` and `context`, or a tuple of the two.
    Answers hold the `answer`, its `score` (of start and end together) and its
    `probability` among the best ones, its `start` and `end` in the context, in
    characters, and the `n_best`. Models that know questions without an answer
    also give the `null_odds`; where they are above the threshold, `answer` is
    "" and has no place.
    """

    fed: tuple[str, ...] = ()

    def __init__(self, task: QATask, n_best: int = 3) -> None:
        self._task = task
        self._n_best = n_best
        joint = task.config.joint_prediction
        spans = _BEAM if joint else ("start_logits", "end_logits")
        self.outputs = ("answerable_logit", *spans)
        # Questions about one text share its wordpieces.
        self._passage = functools.lru_cache(_PASSAGES_KEPT)(Passage)

    def column_names(self) -> dict[str, tuple[str, ...]]:
        """See `Answerer.column_names`."""
        return {"question": _NAMES[0], "context": _NAMES[1]}

    def example(self, item: Any, number: int) -> QAExample:
        """See `Answerer.example`."""
        question, context = texts_of(item, _NAMES, _EXPECTED)
        return QAExample(
            eid=number,
            task_name=self._task.name,
            qas_id=None,
            qid=None,
            key=str(number),
            question_text=question,
            passage=self._passage(context),
        )

    def is_single(self, item: Any) -> bool:
        """Whether it is a mapping or the tuple of two texts."""
        return isinstance(item, Mapping) or (
            isinstance(item, tuple)
            and len(item) == 2
            and all(isinstance(text, str) for text in item)
        )

    def answers(self, asked: Sequence[Asked]) -> list[dict[str, Any]]:
        """See `Answerer.answers`."""
        examples = [one.example for one in asked]
        scorer = self._task.scorer_of(examples)
        for one in asked:
            for row in one.rows:
                scorer.update({**row, "loss": 0.0})
        scorer.answer()
        final = scorer.final_answers()
        return [
            self._answer(
                example,
                scorer.best[example.key],
                final[example.key],
                scorer.null_odds.get(example.key),
            )
            for example in examples
        ]

    def _answer(
        self,
        example: QAExample,
        best: Sequence[Answer],
        final: str,
        null_odds: float | None,
    ) -> dict[str, Any]:
        shares = probabilities(best)
        listed = [
            {
                "answer": found.text,
                "score": float(found.score),
                "probability": share,
                **_place(example, found),
            }
            for found, share in zip(best, shares, strict=True)
            if found.words is not None
        ]
        # Without any span there is none, whatever evaluation calls it.
        final = final if listed else ""
        best_one = listed[0] if listed else {"score": 0.0, "probability": 0.0}
        none = {**best_one, "answer": "", "start": None, "end": None}
        chosen = [one for one in listed if final and one["answer"] == final]
        answer = dict(chosen[0] if chosen else none)
        if null_odds is not None:
            answer["null_odds"] = null_odds
        answer["n_best"] = listed[: self._n_best]
        return answer


def _place(example: QAExample, found: Answer) -> dict[str, int | None]:
    """Where an answer stands in its context, in characters."""
    first, last = found.words
    words = example.passage.words[first : last + 1]
    # In the context other white space may stand between the words.
    offset = " ".join(words).find(found.text)
    if offset < 0 or not found.text:
        return {"start": None, "end": None}
    start = _in_context(example.passage, first, words, offset)
    end = offset + len(found.text) - 1
    return {
        "start": start,
        "end": _in_context(example.passage, first, words, end) + 1,
    }


def _in_context(
    passage: Passage, first: int, words: Sequence[str], offset: int
) -> int:
    """From a place in words joined by spaces to one in the context."""
    for number, word in enumerate(words, first):
        if offset < len(word):
            return passage.starts[number] + offset
        offset -= len(word) + 1
    raise ValueError("the place is behind the words")
