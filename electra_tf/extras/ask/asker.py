# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The asker, which finds passages with BM25 and reads them with a model."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.extras.ask.index import PassageIndex
from electra_tf.extras.ask.passages import SourcePassage
from electra_tf.finetuning.question_answering import QATask
from electra_tf.prediction.predictor import Predictor
from electra_tf.text.measured_words import split_into_words

NO_WORD = "no word of the question is in the index"
# The keys of an answer, except `answer`, `answerable` and the keys of its
# passage. An empty answer has all keys, too, because the first answer
# determines the columns of a TSV file.
_ANSWER_KEYS = (
    "score",
    "probability",
    "start",
    "end",
    "reader_score",
    "retrieval_score",
)


def check_question(question: Any, location: str) -> None:
    """Raise a UserError unless a question is a text with at least one word.

    Args:
      question: the value to check, of any type.
      location: the place of the question, for the message.
    """
    if not isinstance(question, str) or not split_into_words(question):
        raise UserError(
            f"{location}: found {shorten(repr(question))}; expected a question"
            " with at least one word. Rephrase the question."
        )


class Asker:
    """An asker, which answers each question from `count` passages of a corpus.

    An answer's score is (1 - weight) * reader + weight * retrieval. Here
    `reader` is the model's score of the answer's span (minus the odds of no
    answer, if the model predicts them), and `retrieval` is the BM25 score of
    the passage.
    """

    def __init__(
        self, index: PassageIndex, predictor: Predictor, count: int
    ) -> None:
        if not isinstance(predictor.task, QATask):
            raise UserError(
                f"{predictor.loaded.folder}: the model was fine-tuned on the"
                f" task {predictor.task.name}; expected a task of question"
                " answering. Pass a model that was fine-tuned on such a task,"
                " for example on squad."
            )
        self.index, self.predictor, self.count = index, predictor, count

    def read(self, questions: Sequence[str]) -> list[list[dict[str, Any]]]:
        """Return the best answer in each passage retrieved for each question.

        Returns:
          A list for each question; answers are plain values for JSON, in the
          order in which retrieval ranks their passages.
        """
        passages = [
            (number, self.index.passages[index], score)
            for number, question in enumerate(questions)
            for index, score in self.index.search(question, self.count)
        ]
        predictions = self.predictor(
            [(questions[n], source.passage) for n, source, _ in passages]
        )
        answers: list[list[dict[str, Any]]] = [[] for _ in questions]
        pairs = zip(passages, predictions, strict=True)
        for (number, source, retrieval_score), prediction in pairs:
            # `n_best` is empty if no span of the passage is a possible answer.
            if not prediction.pop("n_best"):
                continue
            odds = prediction.get("null_odds", 0.0)
            scores = {
                "answerable": bool(prediction["answer"]),
                "reader_score": prediction["score"] - odds,
                "retrieval_score": retrieval_score,
            }
            answers[number].append({**prediction, **scores, **source._asdict()})
        return answers

    def ask(
        self, questions: Sequence[str], weight: float
    ) -> list[dict[str, Any]]:
        """Return the best answer to each question, with its source.

        Args:
          questions: texts that `check_question` accepts.
          weight: the weight of retrieval in the scores, from 0 to 1.

        Returns:
          Plain values for JSON; `others` contains the answers of other
          passages, `reason` the cause of an empty answer.
        """
        keys = [*_ANSWER_KEYS, *SourcePassage._fields]
        if self.predictor.task.v2:
            keys.append("null_odds")
        nothing = dict.fromkeys(keys) | {"answer": "", "answerable": False}
        results = []
        for question, answers in zip(
            questions, self.read(questions), strict=True
        ):
            best, *others = rank_answers(answers, weight) or [nothing]
            result = {"question": question, **best, "others": others}
            result["reason"] = None
            if not answers and not self.index.search(question, 1):
                result |= {"answerable": None, "reason": NO_WORD}
            results.append(result)
        return results


def rank_answers(
    answers: Sequence[Mapping[str, Any]], weight: float
) -> list[dict[str, Any]]:
    """Return answers with mixed scores: the best first, empty answers last."""
    scored = []
    for answer in answers:
        reader, retrieval = answer["reader_score"], answer["retrieval_score"]
        score = (1.0 - weight) * reader + weight * retrieval
        scored.append({**answer, "score": score})
    return sorted(scored, key=lambda a: (not a["answer"], -a["score"]))


class AskedCorpus:
    """An asker with the interface of a served model that has one signature."""

    name, version, kind, labels = "ask", 1, "retrieval", ()

    def __init__(self, asker: Asker, weight: float) -> None:
        self._asker, self._weight = asker, weight
        self.metadata, self.defaults = {}, {}
        self.signatures = {"serve_text": self}
        self.config = {"passages": asker.count, "weight": weight}
        self.inputs = {"question": tf.TensorSpec([None], tf.string)}
        self.outputs = ["answer"]

    def __call__(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the answer of `Asker.ask` to each question, as JSON."""
        questions = [
            text.decode("utf-8", "ignore") for text in arrays["question"]
        ]
        for question in questions:
            try:
                check_question(question, "question")
            except UserError as error:
                # This error makes the server respond with status 400.
                raise tf.errors.InvalidArgumentError(
                    None, None, str(error)
                ) from error
        answers = self._asker.ask(questions, self._weight)
        lines = [json.dumps(answer).encode() for answer in answers]
        return {"answer": np.array(lines, object)}
