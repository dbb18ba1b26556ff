# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From questions as they stand in a file to examples."""

import bisect
import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from configure.errors import UserError
from electra_tf import files
from electra_tf.data import tables
from electra_tf.finetuning.row_report import RowReport
from electra_tf.finetuning.task import Example

# White space that separates words of a passage; a no-break space does not.
_WORD = re.compile("[^ \t\r\n\u202f]+")


class Passage:
    """A text split into words, and the way back from characters to words."""

    def __init__(self, text: str) -> None:
        matches = list(_WORD.finditer(text))
        self.words = [match.group() for match in matches]
        self.n_characters = len(text)
        self.starts = [match.start() for match in matches]

    def word_at(self, offset: int) -> int:
        """The word at a character, or before its white space; -1 for none."""
        return bisect.bisect_right(self.starts, offset) - 1


@dataclasses.dataclass(kw_only=True)
class QAExample(Example):
    """A question about a passage."""

    key: str  # the id that predictions are filed under
    question_text: str
    passage: Passage  # where the answer is looked for; questions may share it
    orig_answer_text: str | None = None  # training: as given, "" for none
    start_position: int | None = None  # training: its first word, -1 for none
    end_position: int | None = None  # training: its last word, -1 for none
    is_impossible: bool = False  # training: whether there is no answer
    answers: tuple[str, ...] = ()  # the texts that count as right

    @property
    def doc_tokens(self) -> list[str]:
        """The passage's words."""
        return self.passage.words


class UnusableError(ValueError):
    """A question makes no example: what was found, what was expected."""


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

    Raises UnusableError where there is no question or id; or, in training, no
    answer whose text stands where it should.

    Source: google-research/electra, finetune/qa/qa_tasks.py, _add_examples.
    Differs: an answer that starts outside the passage, an empty one and none
      at all are unusable like those the original skips; it fails at them, or
      trains on the passage's start. Without `is_impossible` a question of
      SQuAD 2.0 is impossible if it has no answers.
    """
    question = fields.get("question")
    if not isinstance(question, str):
        raise UnusableError(f"question {question!r}", "a text under question")
    names = ("qid", "id") if version == "mrqa" else ("id", "qid")
    keys = [fields[n] for n in names if isinstance(fields.get(n), str)]
    if not keys:
        raise UnusableError("no id", f"a text under {names[0]}")
    example = QAExample(
        eid=eid,
        task_name=task_name,
        key=keys[0],
        question_text=question,
        passage=passage,
        answers=_answer_texts(fields),
    )
    if not is_training:
        return example
    if version == "squad2":
        impossible = fields.get("is_impossible", not example.answers)
        if impossible not in (True, False):
            found = f"is_impossible {impossible!r}"
            raise UnusableError(found, "true or false")
        example.is_impossible = bool(impossible)
    if example.is_impossible:
        example.start_position = example.end_position = -1
        example.orig_answer_text = ""
    else:
        _locate_answer(example, *_first_answer(fields))
    return example


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


def _locate_answer(example: QAExample, text: str, offset: int) -> None:
    """Fills in where an answer stands."""
    passage, last = example.passage, offset + len(text) - 1
    found = f"answer {text!r} at character {offset}"
    if offset < 0 or last >= passage.n_characters:
        raise UnusableError(
            found, f"an answer within the passage ({passage.n_characters})"
        )
    start, end = passage.word_at(offset), passage.word_at(last)
    there = " ".join(passage.words[start : end + 1])
    if " ".join(text.split()).lower() not in there.lower():
        odd = {c for c in text if c.isspace()} - set(" \t\r\n\u202f")
        why = "the text that stands there,"
        if odd and text.lower() in there.lower():
            names = " and ".join(sorted(f"U+{ord(c):04X}" for c in odd))
            why = f"plain spaces for {names}, which does not separate words:"
        raise UnusableError(found, f"{why} {there!r}")
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
    if not isinstance(text, str) or type(offset) is not int:
        raise UnusableError("no answer", "an answer with its text and place")
    if not text.strip():
        raise UnusableError(f"answer {text!r}", "an answer that is not empty")
    return text, offset


# Files and TFDS data sets -> questions with their passages.

_SQUAD_FORM = 'a SQuAD file, {"data": [{"paragraphs": [...]}, ...]}'
_PARAGRAPH_FORM = "a paragraph with a context and a list of qas"


class RawQuestion(NamedTuple):
    """A question as it stands in the data."""

    path: str  # the file, or the name of a TFDS split
    # Finds its line number in it, from 1 (0 where it cannot).
    line: Callable[[], int]
    passage: Passage
    fields: dict[str, Any]  # everything else


def read_articles(path: str) -> tuple[str, list[Any]]:
    """A SQuAD file's text, and the articles in it."""
    text = files.read_text(path).removeprefix("\ufeff")
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}:{error.lineno}: malformed JSON at character"
            f" {error.colno}: {error.msg}; expected {_SQUAD_FORM}"
        ) from error
    except (ValueError, RecursionError) as error:  # Too long, too deep.
        raise UserError(f"{path}: {error}; expected {_SQUAD_FORM}") from error
    articles = document.get("data") if isinstance(document, dict) else None
    if not isinstance(articles, list):
        raise UserError(f"{path}: no list under data; expected {_SQUAD_FORM}")
    return text, articles


def read_squad(
    path: str, report: RowReport, max_paragraphs: int | None = None
) -> Iterator[RawQuestion]:
    """Reads a file of SQuAD 1.1 or 2.0."""
    text, articles = read_articles(path)
    count = 0
    for article in articles:
        paragraphs = _get(article, "paragraphs", list)
        if paragraphs is None:
            report.add(path, 0, article, "an article with a list of paragraphs")
            continue
        for paragraph in paragraphs:
            if count == max_paragraphs:
                return
            count += 1
            yield from _questions(
                path, paragraph, report, lambda qa: _line_of(text, qa)
            )


def read_mrqa(
    path: str, report: RowReport, max_lines: int | None = None
) -> Iterator[RawQuestion]:
    """Reads a file of the MRQA 2019 shared task, plain or compressed."""
    for row in tables.read_rows(path, "jsonl", max_lines):
        if row.expected:
            report.add(path, row.line, row.found, row.expected)
        elif row.cells and "header" not in row.cells:
            line = row.line
            yield from _questions(
                path, row.cells, report, lambda qa, line=line: line, line
            )


def read_tfds(
    name: str, split: str, data_dir: str | None, max_rows: int | None = None
) -> Iterator[RawQuestion]:
    """Reads a SQuAD data set of TensorFlow Datasets."""
    passages: dict[str, Passage] = {}
    for row in tables.read_tfds_rows(name, split, data_dir, max_rows):
        context = row.cells["context"]
        if context not in passages:
            passages[context] = Passage(context)
        fields = dict(row.cells)
        answers = fields["answers"]
        fields["answers"] = [
            {"text": text, "answer_start": start}
            for text, start in zip(
                answers["text"], answers["answer_start"], strict=True
            )
        ]
        yield RawQuestion(
            f"tfds:{name}/{split}",
            lambda line=row.line: line,
            passages[context],
            fields,
        )


def _questions(
    path: str,
    paragraph: Any,
    report: RowReport,
    line_of: Callable[[dict[str, Any]], int],
    line: int = 0,
) -> Iterator[RawQuestion]:
    """The questions of a paragraph."""
    context = _get(paragraph, "context", str)
    qas = _get(paragraph, "qas", list)
    if context is None or qas is None:
        report.add(path, line, paragraph, _PARAGRAPH_FORM)
        return
    passage = Passage(context)
    for qa in qas:
        if not isinstance(qa, dict):
            report.add(path, line, qa, "a question as an object")
            continue
        yield RawQuestion(path, lambda qa=qa: line_of(qa), passage, qa)


def _get(value: Any, name: str, kind: type) -> Any:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, kind) else None


def _line_of(text: str, qa: dict[str, Any]) -> int:
    """The line of a file on which a question's id stands."""
    for written in (json.dumps(qa.get("id")), f'"{qa.get("id")}"'):
        place = text.find(written)
        if place >= 0:
            return text.count("\n", 0, place) + 1
    return 0
