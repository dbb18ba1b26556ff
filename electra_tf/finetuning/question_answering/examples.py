# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From questions as they stand in a file to examples."""

import bisect
import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from electra_tf.finetuning.task import Example

# White space that separates words of a passage; a no-break space does not.
_WORD = re.compile("[^ \t\r\n\u202f]+")


class Passage:
    """A text split into words, and the way back from characters to words.

    Args:
      text: the passage.

    Attributes:
      words: its words.
      starts: for each, the place of its first character.
      n_characters: its length.
    """

    def __init__(self, text: str) -> None:
        matches = list(_WORD.finditer(text))
        self.words = [match.group() for match in matches]
        self.n_characters = len(text)
        self.starts = [match.start() for match in matches]

    def word_at(self, offset: int) -> int:
        """Returns the number of the word a character belongs to.

        Args:
          offset: the character's place. White space belongs to the word
            before it; -1 is returned where there is none.
        """
        return bisect.bisect_right(self.starts, offset) - 1


@dataclasses.dataclass(kw_only=True)
class QAExample(Example):
    """A question about a passage.

    Attributes:
      qas_id: the question's id in SQuAD's format, else an id or None.
      qid: the question's id in MRQA's format, else None.
      key: the id that predictions are filed under.
      question_text: the question.
      passage: where the answer is looked for; questions may share it.
      orig_answer_text: training: the answer as given, "" for none.
      start_position: training: its first word, -1 for none.
      end_position: training: its last word, -1 for none.
      is_impossible: training: whether there is no answer.
      answers: the texts that count as right.
    """

    qas_id: str | None
    qid: str | None
    key: str
    question_text: str
    passage: Passage
    orig_answer_text: str | None = None
    start_position: int | None = None
    end_position: int | None = None
    is_impossible: bool = False
    answers: tuple[str, ...] = ()

    @property
    def doc_tokens(self) -> list[str]:
        """The passage's words."""
        return self.passage.words


class UnusableError(ValueError):
    """A question that makes no example.

    Args:
      found: what stands there.
      expected: what should stand there, in words.
    """

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"found {found}, expected {expected}")
        self.found, self.expected = found, expected


def make_example(
    fields: Mapping[str, Any],
    passage: Passage,
    *,
    task_name: str,
    eid: int,
    is_training: bool,
    version: str,
) -> QAExample:
    """Makes an example of a question.

    Args:
      fields: the question as it stands in the file.
      passage: its passage.
      task_name: the task.
      eid: the example's number.
      is_training: whether the place of its answer is needed.
      version: "squad1", "squad2" or "mrqa".

    Returns:
      The example.

    Raises:
      UnusableError: there is no question or id; or, in training, no answer
        whose text stands where it should.

    Source: google-research/electra, finetune/qa/qa_tasks.py, _add_examples.
    Differs: an answer that starts outside the passage, an empty one and none
      at all are unusable like those the original skips; it fails at them, or
      trains on the passage's start. Without `is_impossible` a question of
      SQuAD 2.0 is impossible if it has no answers.
    """
    question = fields.get("question")
    if not isinstance(question, str):
        raise UnusableError(f"question {question!r}", "a text under question")
    example = QAExample(
        eid=eid,
        task_name=task_name,
        qas_id=fields.get("id"),
        qid=fields.get("qid"),
        key=_key(fields, version),
        question_text=question,
        passage=passage,
        answers=_answer_texts(fields),
    )
    if is_training:
        _locate_answer(example, fields, version)
    return example


def _key(fields: Mapping[str, Any], version: str) -> str:
    names = ("qid", "id") if version == "mrqa" else ("id", "qid")
    for name in names:
        if isinstance(fields.get(name), str):
            return fields[name]
    raise UnusableError("no id", f"a text under {names[0]}")


def _answer_texts(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The expected answers: texts in MRQA, objects in SQuAD."""
    answers = fields.get("answers") or ()
    if not isinstance(answers, list | tuple):
        raise UnusableError(f"answers {answers!r}", "a list of answers")
    texts = [a.get("text") if isinstance(a, dict) else a for a in answers]
    for text in texts:
        if not isinstance(text, str):
            raise UnusableError(f"answer {text!r}", "an answer with a text")
    return tuple(texts)


def _locate_answer(
    example: QAExample, fields: Mapping[str, Any], version: str
) -> None:
    """Fills in where the first answer stands; see `make_example`."""
    if version == "squad2":
        impossible = fields.get("is_impossible", not example.answers)
        example.is_impossible = bool(impossible)
    if example.is_impossible:
        example.start_position = example.end_position = -1
        example.orig_answer_text = ""
        return
    text, offset = _first_answer(fields)
    passage, last = example.passage, offset + len(text) - 1
    found = f"answer {text!r} at character {offset}"
    if offset < 0 or last >= passage.n_characters:
        raise UnusableError(
            found, f"an answer within the passage ({passage.n_characters})"
        )
    start, end = passage.word_at(offset), passage.word_at(last)
    there = " ".join(passage.words[start : end + 1])
    if " ".join(text.split()).lower() not in there.lower():
        raise UnusableError(found, f"the text that stands there, {there!r}")
    example.orig_answer_text = text
    example.start_position, example.end_position = start, end


def _first_answer(fields: Mapping[str, Any]) -> tuple[str, int]:
    """Text and character offset of the answer that is trained on."""
    try:
        if "detected_answers" in fields:  # MRQA's format
            answer = fields["detected_answers"][0]
            offset = answer["char_spans"][0][0]
        else:
            answer = fields["answers"][0]
            offset = answer["answer_start"]
        text = answer["text"]
    except (LookupError, TypeError):
        text, offset = None, None
    if not isinstance(text, str) or not isinstance(offset, int):
        raise UnusableError("no answer", "an answer with its text and place")
    if not text.strip():
        raise UnusableError(f"answer {text!r}", "an answer that is not empty")
    return text, offset
