# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a model can be asked, and what turns a head's outputs into answers."""

import abc
import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.data import values
from electra_tf.finetuning.classification import (
    ClassificationTask,
    MultiLabelTask,
    RegressionTask,
    TextExample,
    TextTask,
)
from electra_tf.finetuning.question_answering import QATask
from electra_tf.finetuning.questions import Passage, QAExample
from electra_tf.finetuning.summarization import Document, SummarizationTask
from electra_tf.finetuning.tagging import TaggingExample, TaggingTask
from electra_tf.finetuning.task import Example, Task
from electra_tf.metrics.question_answering import (
    SPAN_OUTPUTS,
    Answer,
    probabilities,
)
from electra_tf.metrics.summaries import choose
from electra_tf.text.tagging import read_spans
from electra_tf.text.words import split_words

_FIRST = ("text", "text_a", "sentence", "sentence1")
_SECOND = ("text_pair", "text_b", "sentence2")
_PASSAGES_KEPT = 64

Outputs = dict[str, np.ndarray]


class BadInputError(UserError):
    """Something that this model cannot be asked."""

    def __init__(self, found: Any, expected: str) -> None:
        self.content, self.expected = shorten(found), expected
        super().__init__(f"found {self.content}; expected {expected}")


class Answerer(abc.ABC):
    """Asks one kind of task.

    Attributes:
      columns: the values of a question, and what files call them.
      optional: those of them that a question need not have.
      fed: names of the task's own features that its head reads besides the
        shared ones, all int32 [L].
      outputs: names of the head's outputs that answers are made of.
    """

    columns: dict[str, tuple[str, ...]]
    optional: frozenset[str] = frozenset()
    fed: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("logits",)

    def __init__(self, task: Task) -> None:
        self._task = task

    @abc.abstractmethod
    def example(self, item: Any, number: int) -> Example:
        """Makes an example, or raises BadInputError."""

    def is_single(self, item: Any) -> bool:
        """Whether something is one question rather than a list of them."""
        return isinstance(item, str | bytes | Mapping)

    def answers(
        self, examples: Sequence[Example], rows: Sequence[list[Outputs]]
    ) -> list[dict[str, Any]]:
        """Returns the answers, plain values that JSON can hold.

        `rows` are the head's outputs, one dictionary for each input row of an
        example: several are windows of a question's text.
        """
        return [
            self.answer(example, own[0])
            for example, own in zip(examples, rows, strict=True)
        ]

    def answer(self, example: Example, outputs: Outputs) -> dict[str, Any]:
        """Returns the answer to a question of one row."""
        raise NotImplementedError


def make_answerer(task: Task, n_best: int) -> Answerer:
    """Returns the answerer of a task's kind."""
    for task_class, make in (
        (QATask, functools.partial(QuestionAnswerer, n_best=n_best)),
        (MultiLabelTask, LabelSetAnswerer),
        (ClassificationTask, ClassAnswerer),
        (RegressionTask, NumberAnswerer),
        (TaggingTask, TagAnswerer),
        (SummarizationTask, SummaryAnswerer),
    ):
        if isinstance(task, task_class):
            return make(task)
    raise UserError(
        f"task {task.name} is a {type(task).__name__}; there are predictions"
        " for classification, regression, several labels, tagging, question"
        " answering and summarization"
    )


def _texts_of(
    item: Any, names: Sequence[tuple[str, ...]], expected: str
) -> list[str]:
    """Takes the texts of these names out of a question."""
    if isinstance(item, Mapping):
        given = [
            next((item[n] for n in options if item.get(n) is not None), None)
            for options in names
        ]
    elif isinstance(item, str | bytes):
        given = [item]
    elif isinstance(item, Sequence):
        given = item
    else:
        given = []
    texts = [_as_text(value) for value in given]
    if len(texts) != len(names) or None in texts:
        raise BadInputError(item, expected)
    return texts


def _as_text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "ignore")
    return value if isinstance(value, str) else None


def _is_pair(item: Any) -> bool:
    return (
        isinstance(item, tuple)
        and len(item) == 2
        and all(isinstance(text, str) for text in item)
    )


def _has_second(item: Any) -> bool:
    """Whether a question about texts has a second one."""
    if isinstance(item, Mapping):
        return any(item.get(name) is not None for name in _SECOND)
    return not isinstance(item, str | bytes) and len(item) == 2


class TextAnswerer(Answerer):
    """Asks about texts or pairs of texts.

    An item is a text, a pair `("one", "two")`, or a mapping with `text` (or
    `text_a`) and, for pairs, `text_pair` (or `text_b`). A task that only a
    checkpoint describes takes texts and pairs alike.
    """

    def __init__(self, task: TextTask) -> None:
        super().__init__(task)
        self.columns = {"text_a": _FIRST}
        self._expected = "a text"
        if task.may_have_pairs:
            self.columns["text_b"] = _SECOND
            self._expected = "a pair of texts"
        if task.pairs_are_optional:
            self.optional = frozenset({"text_b"})
            self._expected = "a text, or a pair of texts"

    def example(self, item: Any, number: int) -> TextExample:
        names = [*self.columns.values()]
        alone = "text_b" not in self.columns
        if self.optional and not _has_second(item):
            names = names[:1]
        if alone and isinstance(item, Mapping) and any(map(item.get, _SECOND)):
            raise BadInputError(item, self._expected)
        first, second = (*_texts_of(item, names, self._expected), None)[:2]
        return TextExample(
            eid=number, task_name=self._task.name, text_a=first, text_b=second
        )

    def is_single(self, item: Any) -> bool:
        if isinstance(item, tuple) and "text_b" in self.columns:
            return _is_pair(item)
        return super().is_single(item)


class ClassAnswerer(TextAnswerer):
    """`label`, its `probability`, and the `probabilities` of all labels."""

    def answer(self, example: TextExample, outputs: Outputs) -> dict[str, Any]:
        labels = list(self._task.labels)
        shares = softmax(np.float64(outputs["logits"]), -1).tolist()
        best = int(outputs["logits"].argmax())
        return {
            "label": labels[best],
            "probability": shares[best],
            "probabilities": dict(zip(labels, shares, strict=True)),
        }


class LabelSetAnswerer(TextAnswerer):
    """`labels` that are likelier than not, and all `probabilities`."""

    def answer(self, example: TextExample, outputs: Outputs) -> dict[str, Any]:
        """Returns the labels whose logit is above 0."""
        labels = list(self._task.labels)
        logits = outputs["logits"].astype(np.float64)
        shares = (0.5 * (1.0 + np.tanh(0.5 * logits))).tolist()
        return {
            "labels": [labels[i] for i in np.flatnonzero(logits > 0.0)],
            "probabilities": dict(zip(labels, shares, strict=True)),
        }


class NumberAnswerer(TextAnswerer):
    """`value`, in the units of the labels; not clipped to their range."""

    outputs = ("predictions",)

    def answer(self, example: TextExample, outputs: Outputs) -> dict[str, Any]:
        value = self._task.unscale(float(outputs["predictions"]))
        return {"value": float(value)}


@dataclasses.dataclass(kw_only=True)
class TextOfWords(TaggingExample):
    """A sentence to be tagged."""

    # The text that the words are from; None if words were given.
    text: str | None = None
    # With a text, the words' places in it; see `split_words`.
    places: list[tuple[int, int]] | None = None


class TagAnswerer(Answerer):
    """Asks for the tags of words.

    An item is running text, a list of words, or a mapping with `text` or
    `words`. Answers hold `words`, a tag and its probability for each (None
    for words cut off as too long), and for models of spans the `spans`: type,
    text, first and last word, and with running text the place in characters.

    Attributes:
      all_tags: whether `tag_probabilities` has each word's, tag by tag.
    """

    all_tags = False

    def __init__(self, task: TaggingTask) -> None:
        super().__init__(task)
        self.columns = {"words": ("words", "tokens", "text")}
        self.fed = (f"{task.name}_labeled_positions",)
        self._labels = sorted(task.label_mapping, key=task.label_mapping.get)

    def example(self, item: Any, number: int) -> TextOfWords:
        if isinstance(item, Mapping):
            item = item.get("words", item.get("text"))
        text, places, words = _as_text(item), None, item
        if text is not None:
            places = split_words(text)
            words = [text[first:last] for first, last in places]
        if not isinstance(words, list | tuple) or not all(
            isinstance(word, str) for word in words
        ):
            raise BadInputError(item, "a text, or a list of words")
        return TextOfWords(
            eid=number,
            task_name=self._task.name,
            words=list(words),
            labels=[0] * len(words),
            text=text,
            places=places,
        )

    def answer(self, example: TextOfWords, outputs: Outputs) -> dict[str, Any]:
        count = int(outputs["n_words"])
        logits = outputs["logits"][:count]  # [words, C]
        shares = softmax(np.float64(logits), -1)
        tags = [self._labels[i] for i in logits.argmax(-1)] if count else []
        cut = [None] * (len(example.words) - count)
        answer: dict[str, Any] = {
            "words": example.words,
            "tags": [*tags, *cut],
            "probabilities": [*shares.max(-1).tolist(), *cut],
        }
        if self.all_tags:
            rows = shares.astype(float).round(6).tolist()
            named = [dict(zip(self._labels, r, strict=True)) for r in rows]
            answer["tag_probabilities"] = [*named, *cut]
        if not self._task.is_token_level:
            answer["spans"] = [
                self._span(example, *span)
                for span in read_spans(tags, type_change_starts_span=True)
            ]
        return answer

    def _span(
        self, example: TextOfWords, first: int, last: int, kind: str
    ) -> dict[str, Any]:
        span: dict[str, Any] = {"type": kind, "first": first, "last": last}
        if example.places is None:
            span["text"] = " ".join(example.words[first : last + 1])
            return span
        start, end = example.places[first][0], example.places[last][1]
        text = example.text[start:end]
        return {**span, "start": start, "end": end, "text": text}


class SummaryAnswerer(Answerer):
    """Asks for the sentences that summarize a document.

    An item is a text, or a mapping with `text` or `article`. Answers hold the
    `summary`, a sentence a line; its `sentences`: number from 0, text, place in
    characters, probability; and the `probabilities` of all sentences.
    """

    def __init__(self, task: SummarizationTask) -> None:
        super().__init__(task)
        self.columns = {"text_a": (*_FIRST, "article", "document")}
        fed = ("labeled_positions", "numbers")
        self.fed = tuple(f"{task.name}_{name}" for name in fed)

    def example(self, item: Any, number: int) -> Document:
        (text,) = _texts_of(item, [*self.columns.values()], "a text")
        if not text.strip():
            raise BadInputError(item, "a text with a sentence")
        return Document(eid=number, task_name=self._task.name, text=text)

    def answers(
        self, examples: Sequence[Document], rows: Sequence[list[Outputs]]
    ) -> list[dict[str, Any]]:
        found = []
        for document, own in zip(examples, rows, strict=True):
            windows = [row["logits"][: row["n_words"]] for row in own]
            logits = np.concatenate(windows, dtype=np.float64)
            shares = softmax(logits, -1)[:, 1].tolist()
            chosen = [
                {
                    "number": i,
                    "text": document.sentences[i],
                    "start": document.places[i][0],
                    "end": document.places[i][1],
                    "probability": shares[i],
                }
                for i in choose(shares, self._task.spec.sentences)
            ]
            summary = "\n".join(one["text"] for one in chosen)
            answer = {"summary": summary, "sentences": chosen}
            found.append({**answer, "probabilities": shares})
        return found


class QuestionAnswerer(Answerer):
    """Asks questions about texts.

    An item is a mapping with `question` and `context`, or a tuple of the two.
    Answers hold the `answer`, its `score` (of start and end together) and its
    `probability` among the best ones, its `start` and `end` in the context, in
    characters, and the `n_best`. Models that know questions without an answer
    also give the `null_odds`; where they are above the threshold, `answer` is
    "" and has no place.
    """

    def __init__(self, task: QATask, n_best: int) -> None:
        super().__init__(task)
        self.columns = {
            "question": ("question",),
            "context": ("context", "passage"),
        }
        self._n_best = n_best
        spans = SPAN_OUTPUTS[task.config.joint_prediction]
        # The odds of no answer may be of start and end, whatever the spans'.
        outputs = ("answerable_logit", "start_logits", "end_logits", *spans)
        self.outputs = tuple(dict.fromkeys(outputs))
        # Questions about one text share its wordpieces.
        self._passage = functools.lru_cache(_PASSAGES_KEPT)(Passage)

    def example(self, item: Any, number: int) -> QAExample:
        expected = "a question and a context"
        if isinstance(item, Mapping):
            item = {**item}
            # As in training: an integer is a question, and no passage.
            text = values.as_text(item.get("question"))
            if text is not None:
                item["question"] = text
            for name in ("question", "context", "passage"):
                value = item.get(name)
                if not isinstance(value, str | bytes | None):
                    found = f"{name} is {values.describe(value)}"
                    raise BadInputError(found, expected)
        question, context = _texts_of(item, [*self.columns.values()], expected)
        return QAExample(
            eid=number,
            task_name=self._task.name,
            key=str(number),
            question_text=question,
            passage=self._passage(context),
        )

    def is_single(self, item: Any) -> bool:
        return isinstance(item, Mapping) or _is_pair(item)

    def answers(
        self, examples: Sequence[QAExample], rows: Sequence[list[Outputs]]
    ) -> list[dict[str, Any]]:
        scorer = self._task.scorer_of(examples)
        for row in itertools.chain.from_iterable(rows):
            scorer.update({**row, "loss": 0.0})
        scorer.answer()
        final, answers = scorer.final_answers(), []
        for example in examples:
            key, best = example.key, scorer.best[example.key]
            listed = [
                {
                    "answer": found.text,
                    "score": float(found.score),
                    "probability": share,
                    **_place(example, found),
                }
                for found, share in zip(best, probabilities(best), strict=True)
                if found.words is not None
            ]
            first = listed[0] if listed else {"score": 0.0, "probability": 0.0}
            answer = {**first, "answer": "", "start": None, "end": None}
            # Without any span there is none, whatever evaluation calls it.
            if listed and final[key]:
                chosen = (one for one in listed if one["answer"] == final[key])
                answer = next(chosen, answer)
            if key in scorer.null_odds:
                answer = {**answer, "null_odds": scorer.null_odds[key]}
            answers.append({**answer, "n_best": listed[: self._n_best]})
        return answers


def _place(example: QAExample, found: Answer) -> dict[str, int | None]:
    """Returns where an answer stands in its context, in characters."""
    if found.span is not None:
        return dict(zip(("start", "end"), found.span, strict=True))
    first, last = found.words
    words = example.passage.words[first : last + 1]
    # In the context other white space may stand between the words.
    offset = " ".join(words).find(found.text)
    if offset < 0 or not found.text:
        return {"start": None, "end": None}

    def in_context(offset: int) -> int:
        """From a place in words joined by spaces to one in the context."""
        for number, word in enumerate(words, first):
            if offset < len(word):
                return example.passage.starts[number] + offset
            offset -= len(word) + 1
        raise ValueError("the place is behind the words")

    end = in_context(offset + len(found.text) - 1) + 1
    return {"start": in_context(offset), "end": end}
