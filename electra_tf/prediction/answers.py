# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Conversion of inputs to examples, and of a head's outputs to answers."""

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
from electra_tf.metrics.answer_selection import (
    SPAN_OUTPUTS,
    Answer,
    probabilities,
)
from electra_tf.metrics.summaries import choose
from electra_tf.text.bio_tags import read_spans
from electra_tf.text.words import split_words

_FIRST = ("text", "text_a", "sentence", "sentence1")
_SECOND = ("text_pair", "text_b", "sentence2")
_PASSAGES_CACHED = 64

Outputs = dict[str, np.ndarray]


class BadInputError(UserError):
    """An error for an input that the task cannot use."""

    def __init__(self, content: object, expected: str) -> None:
        self.content, self.expected = shorten(content), expected
        super().__init__(f"found {self.content}; expected {expected}")


class Answerer(abc.ABC):
    """Base class of answerers.

    An answerer converts inputs to examples, and a head's outputs to answers.

    Attributes:
      columns: the values of an input, and their names in files.
      optional: the columns that may be missing from an input.
      head_features: names of the features that the head reads in addition to
        the shared features, all int32 [L].
      outputs: names of the head's outputs that answers are made from.
    """

    columns: dict[str, tuple[str, ...]]
    optional: frozenset[str] = frozenset()
    head_features: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("logits",)

    def __init__(self, task: Task) -> None:
        self._task = task

    @abc.abstractmethod
    def example(self, item: Any, number: int) -> Example:
        """Return the example of an input.

        Args:
          item: the input.
          number: the number of the input, which becomes the example's id.

        Raises:
          BadInputError: the task cannot use the input.
        """

    def is_single(self, item: Any) -> bool:
        """Return whether a value is one input instead of a list of inputs."""
        return isinstance(item, str | bytes | Mapping)

    def answers(
        self, examples: Sequence[Example], rows: Sequence[list[Outputs]]
    ) -> list[dict[str, Any]]:
        """Return the answers, as values that JSON can represent.

        Args:
          examples: the examples.
          rows: the head's outputs for each row of each example. An example has
            several rows if its text has several windows.
        """
        return [
            self.answer(example, windows[0])
            for example, windows in zip(examples, rows, strict=True)
        ]

    def answer(self, example: Example, outputs: Outputs) -> dict[str, Any]:
        """Return the answer for an example that has a single row."""
        raise NotImplementedError

    def echo(self, row_values: Mapping[str, Any]) -> dict[str, Any]:
        """Return an input's values by the keys under which output repeats them.

        Args:
          row_values: the values of an input by column (see `columns`).
        """
        return dict(row_values)


def make_answerer(task: Task, n_best: int) -> Answerer:
    """Return the answerer of a task.

    Args:
      task: the task.
      n_best: the number of answers that question answering returns.

    Raises:
      UserError: predictions do not support this kind of task.
    """
    if isinstance(task, QATask):
        return QuestionAnswerer(task, n_best)
    answerers = {
        # `MultiLabelTask` comes first, because `ClassificationTask` is its base
        # class.
        MultiLabelTask: LabelSetAnswerer,
        ClassificationTask: ClassAnswerer,
        RegressionTask: NumberAnswerer,
        TaggingTask: TagAnswerer,
        SummarizationTask: SummaryAnswerer,
    }
    for task_class, answerer_class in answerers.items():
        if isinstance(task, task_class):
            return answerer_class(task)
    raise UserError(
        f"task {task.name}: predictions do not support the class"
        f" {type(task).__name__}; expected a task of classification,"
        " regression, several labels, tagging, question answering or"
        " summarization. Choose such a task."
    )


def _select_texts(
    item: Any, names: Sequence[tuple[str, ...]], expected: str
) -> list[str]:
    """Return the texts of an input, one for each group of names."""
    if isinstance(item, Mapping):
        parts = []
        for options in names:
            present = (item[n] for n in options if item.get(n) is not None)
            parts.append(next(present, None))
    elif isinstance(item, str | bytes):
        parts = [item]
    elif isinstance(item, Sequence):
        parts = item
    else:
        parts = []
    texts = [_as_text(part) for part in parts]
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
    """Return whether an input has a second text."""
    if isinstance(item, Mapping):
        return any(item.get(name) is not None for name in _SECOND)
    return not isinstance(item, str | bytes) and len(item) == 2


class TextAnswerer(Answerer):
    """Base class of answerers for texts or pairs of texts.

    An input is a text, a pair `("one", "two")`, or a mapping with `text` (or
    `text_a`) and, for pairs, `text_pair` (or `text_b`). A task that only a
    checkpoint describes accepts both texts and pairs.
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
        if self.optional and not _has_second(item):
            names = names[:1]
        if "text_b" not in self.columns and isinstance(item, Mapping):
            if any(map(item.get, _SECOND)):
                raise BadInputError(item, self._expected)
        texts = _select_texts(item, names, self._expected)
        return TextExample(
            eid=number,
            task_name=self._task.name,
            text_a=texts[0],
            text_b=texts[1] if len(texts) > 1 else None,
        )

    def is_single(self, item: Any) -> bool:
        if isinstance(item, tuple) and "text_b" in self.columns:
            return _is_pair(item)
        return super().is_single(item)


class ClassAnswerer(TextAnswerer):
    """Answerer that returns the best label and each label's probability."""

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
    """Answerer that returns each label whose probability is above 0.5."""

    def answer(self, example: TextExample, outputs: Outputs) -> dict[str, Any]:
        """Return the labels with a logit above 0, and all probabilities."""
        labels = list(self._task.labels)
        logits = outputs["logits"].astype(np.float64)
        shares = (0.5 * (1.0 + np.tanh(0.5 * logits))).tolist()
        return {
            "labels": [labels[i] for i in np.flatnonzero(logits > 0.0)],
            "probabilities": dict(zip(labels, shares, strict=True)),
        }


class NumberAnswerer(TextAnswerer):
    """Answerer that returns a number in the labels' unit, without clipping."""

    outputs = ("predictions",)

    def answer(self, example: TextExample, outputs: Outputs) -> dict[str, Any]:
        value = self._task.unscale(float(outputs["predictions"]))
        return {"value": float(value)}


@dataclasses.dataclass(kw_only=True)
class TextOfWords(TaggingExample):
    """A sentence to tag.

    Attributes:
      text: the text of the words; None if the input was a list of words.
      offsets: start and end of each word in the text; None without a text.
    """

    text: str | None = None
    offsets: list[tuple[int, int]] | None = None


class TagAnswerer(Answerer):
    """Answerer of tagging tasks.

    An input is running text, a list of words, or a mapping with `text` or
    `words`. Answers have `words`, and for each word a tag and its probability
    (None for words cut off by the length). Models of spans add `spans`: type,
    text, first and last word, and for running text start and end in characters.

    Attributes:
      all_tags: whether answers have `tag_probabilities`, the probabilities of
        all tags for each word.
    """

    all_tags = False

    def __init__(self, task: TaggingTask) -> None:
        super().__init__(task)
        self.columns = {"words": ("words", "tokens", "text")}
        self.head_features = (f"{task.name}_labeled_positions",)
        self._labels = sorted(task.label_mapping, key=task.label_mapping.get)

    def example(self, item: Any, number: int) -> TextOfWords:
        if isinstance(item, Mapping):
            item = item.get("words", item.get("text"))
        text, offsets, words = _as_text(item), None, item
        if text is not None:
            offsets = split_words(text)
            words = [text[start:end] for start, end in offsets]
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
            offsets=offsets,
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
            by_tag = [dict(zip(self._labels, r, strict=True)) for r in rows]
            answer["tag_probabilities"] = [*by_tag, *cut]
        if not self._task.is_token_level:
            answer["spans"] = [
                self._describe_span(example, *span)
                for span in read_spans(tags, type_change_starts_span=True)
            ]
        return answer

    def echo(self, row_values: Mapping[str, Any]) -> dict[str, Any]:
        """Return running text as `text`, because answers list its `words`."""
        value = row_values["words"]
        return {"text" if isinstance(value, str) else "words": value}

    def _describe_span(
        self, example: TextOfWords, first: int, last: int, kind: str
    ) -> dict[str, Any]:
        span: dict[str, Any] = {"type": kind, "first": first, "last": last}
        if example.offsets is None:
            span["text"] = " ".join(example.words[first : last + 1])
            return span
        start, end = example.offsets[first][0], example.offsets[last][1]
        text = example.text[start:end]
        return {**span, "start": start, "end": end, "text": text}


class SummaryAnswerer(Answerer):
    """Answerer that returns the sentences that summarize a document.

    An input is a text, or a mapping with `text` or `article`. Answers have the
    `summary`, one sentence per line; the chosen `sentences`: number from 0,
    text, start and end in characters, probability; and the `probabilities` of
    all sentences.
    """

    def __init__(self, task: SummarizationTask) -> None:
        super().__init__(task)
        self.columns = {"text_a": (*_FIRST, "article", "document")}
        self.head_features = (
            f"{task.name}_labeled_positions",
            f"{task.name}_numbers",
        )

    def example(self, item: Any, number: int) -> Document:
        (text,) = _select_texts(item, [*self.columns.values()], "a text")
        if not text.strip():
            raise BadInputError(item, "a text with a sentence")
        return Document(eid=number, task_name=self._task.name, text=text)

    def answers(
        self, examples: Sequence[Document], rows: Sequence[list[Outputs]]
    ) -> list[dict[str, Any]]:
        answers = []
        for document, windows in zip(examples, rows, strict=True):
            logits = np.concatenate(
                [row["logits"][: row["n_words"]] for row in windows],
                dtype=np.float64,
            )
            shares = softmax(logits, -1)[:, 1].tolist()
            sentences = [
                {
                    "number": i,
                    "text": document.sentences[i],
                    "start": document.sentence_spans[i][0],
                    "end": document.sentence_spans[i][1],
                    "probability": shares[i],
                }
                for i in choose(shares, self._task.spec.sentences)
            ]
            answers.append(
                {
                    "summary": "\n".join(s["text"] for s in sentences),
                    "sentences": sentences,
                    "probabilities": shares,
                }
            )
        return answers


class QuestionAnswerer(Answerer):
    """Answerer of questions about texts.

    An input is a mapping with `question` and `context`, or a tuple of the two.
    Answers have the `answer`, its `score` (of start and end together) and its
    `probability` among the best answers, its `start` and `end` in the context,
    in characters, and the `n_best`. Models of questions without an answer also
    return the `null_odds`; if these are above the threshold, `answer` is "" and
    its start and end are None.
    """

    def __init__(self, task: QATask, n_best: int) -> None:
        super().__init__(task)
        self.columns = {
            "question": ("question",),
            "context": ("context", "passage"),
        }
        self._n_best = n_best
        spans = SPAN_OUTPUTS[task.config.joint_prediction]
        # The null odds may be computed from start and end logits, even if the
        # head has a logit for answerability.
        outputs = ("answerable_logit", "start_logits", "end_logits", *spans)
        self.outputs = tuple(dict.fromkeys(outputs))
        # Passages are cached, because several questions may be about one
        # passage.
        self._passage = functools.lru_cache(_PASSAGES_CACHED)(Passage)

    def example(self, item: Any, number: int) -> QAExample:
        expected = "a question and a context"
        if isinstance(item, Mapping):
            item = {**item}
            # As in training, a question may be an integer, but a passage may
            # not.
            text = values.as_text(item.get("question"))
            if text is not None:
                item["question"] = text
            for name in ("question", "context", "passage"):
                value = item.get(name)
                if not isinstance(value, str | bytes | None):
                    content = f"{name} is {values.describe(value)}"
                    raise BadInputError(content, expected)
        question, context = _select_texts(
            item, [*self.columns.values()], expected
        )
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
        final_answers, answers = scorer.final_answers(), []
        for example in examples:
            spans = _describe_spans(example, scorer.best[example.key])
            answer = spans[0] if spans else {"score": 0.0, "probability": 0.0}
            answer = {**answer, "answer": "", "start": None, "end": None}
            # `final_answers` contains a text even if no span is possible.
            text = final_answers[example.key]
            if spans and text:
                matches = (span for span in spans if span["answer"] == text)
                answer = next(matches, answer)
            if example.key in scorer.null_odds:
                null_odds = scorer.null_odds[example.key]
                answer = {**answer, "null_odds": null_odds}
            answers.append({**answer, "n_best": spans[: self._n_best]})
        return answers


def _describe_spans(
    example: QAExample, best: Sequence[Answer]
) -> list[dict[str, Any]]:
    """Return the best answers that are spans of the context."""
    return [
        {
            "answer": answer.text,
            "score": float(answer.score),
            "probability": share,
            **_locate(example, answer),
        }
        for answer, share in zip(best, probabilities(best), strict=True)
        if answer.words is not None
    ]


def _locate(example: QAExample, answer: Answer) -> dict[str, int | None]:
    """Return start and end of an answer in its context, in characters."""
    if answer.span is not None:
        return dict(zip(("start", "end"), answer.span, strict=True))
    first, last = answer.words
    words = example.passage.words[first : last + 1]
    # The words are joined with single spaces here, but may be further apart in
    # the context, so offsets are converted.
    offset = " ".join(words).find(answer.text)
    if offset < 0 or not answer.text:
        return {"start": None, "end": None}

    def in_context(offset: int) -> int:
        """Convert an offset in the joined words to an offset in the context."""
        for number, word in enumerate(words, first):
            if offset < len(word):
                return example.passage.starts[number] + offset
            offset -= len(word) + 1
        raise ValueError("the offset is after the last word")

    end = in_context(offset + len(answer.text) - 1) + 1
    return {"start": in_context(offset), "end": end}
