# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From questions as they stand in a file to examples."""

import bisect
import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.data import tables, tfds_data, values
from electra_tf.files.reading import read_text
from electra_tf.finetuning.row_report import RowReport
from electra_tf.finetuning.task import Example

# White space that separates words of a passage; a no-break space does not.
_WORD = re.compile("[^ \t\r\n\u202f]+")


class Passage:
    """A text split into words, and the way back from characters to words."""

    def __init__(self, text: str) -> None:
        matches = list(_WORD.finditer(text))
        self.text = text
        self.words = [match.group() for match in matches]
        self.n_characters = len(text)
        self.starts = [match.start() for match in matches]

    def word_at(self, offset: int) -> int:
        """The word at a character, or before its white space; -1 for none."""
        return bisect.bisect_right(self.starts, offset) - 1


@dataclasses.dataclass(kw_only=True)
class QAExample(Example):
    """A question about a passage."""

    text_fields = ("question_text", "doc_tokens")
    key: str  # the id that predictions are filed under
    question_text: str
    passage: Passage  # where the answer is looked for; questions may share it
    orig_answer_text: str | None = None  # training: as given, "" for none
    start_position: int | None = None  # training: its first word, -1 for none
    end_position: int | None = None  # training: its last word, -1 for none
    # Training with answer offsets, in place of the words: its characters,
    # first and one past the last; None for none.
    answer_span: tuple[int, int] | None = None
    is_impossible: bool = False  # training: whether there is no answer
    answers: tuple[str, ...] = ()  # the texts that count as right

    @property
    def doc_tokens(self) -> list[str]:
        """The passage's words."""
        return self.passage.words

    @property
    def passage_text(self) -> str:
        """The passage as it stands in the data."""
        return self.passage.text


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
    answer_offsets: bool = False,
) -> QAExample:
    """Makes an example of a question.

    Numbers that stand for texts, texts that stand for numbers and Hugging
    Face's `answers` are read as `values` and `_answers_of` say.

    Args:
      answer_offsets: whether a training answer is the characters at its
        offset, as in tasks of your own, or is searched in their words.

    Raises UnusableError where there is no question or id; or, in training, no
    answer whose text stands where it should.

    Source: google-research/electra, finetune/qa/qa_tasks.py, _add_examples.
    Differs: an answer that starts outside the passage, an empty one and none
      at all are unusable like those the original skips; it fails at them, or
      trains on the passage's start. Without `is_impossible` a question of
      SQuAD 2.0 is impossible if it has no answers. An id is a text, also
      where the file has a number; `"false"` is false.
    """
    question = values.as_text(fields.get("question"))
    if question is None:
        found = fields.get("question")
        if found is not None:
            found = f"is {values.describe(found)}"
        raise UnusableError(f"question {found}", "a text under question")
    answers = _answers_of(fields)
    example = QAExample(
        eid=eid,
        task_name=task_name,
        key=_key_of(fields, version),
        question_text=question,
        passage=passage,
        answers=tuple(map(_text_of, answers)),
    )
    if not is_training:
        return example
    if version == "squad2":
        example.is_impossible = _is_impossible(fields, example.answers)
    if example.is_impossible:
        example.start_position = example.end_position = -1
        example.orig_answer_text = ""
    elif answer_offsets:
        _take_answer(example, *_first_answer(fields, answers))
    else:
        _locate_answer(example, *_first_answer(fields, answers))
    return example


def _key_of(fields: Mapping[str, Any], version: str) -> str:
    """Returns the id that a question's answers are filed under."""
    names = ("qid", "id") if version == "mrqa" else ("id", "qid")
    for name in names:
        if fields.get(name) is None:
            continue
        key = values.as_id(fields[name])
        if key is None:
            raise UnusableError(
                f"{name} is {values.describe(fields[name])}",
                f"a text or a whole number under {name}",
            )
        return key
    raise UnusableError("no id", f"a text under {names[0]}")


def _is_impossible(fields: Mapping[str, Any], answers: Sequence[str]) -> bool:
    """Returns whether a question of SQuAD 2.0 has no answer."""
    given = fields.get("is_impossible")
    if given is None:
        return not answers
    impossible = values.as_flag(given)
    if impossible is None:
        raise UnusableError(
            f"is_impossible is {values.describe(given)}", "true or false"
        )
    return impossible


_ANSWERS_FORM = "a list of answers, or an object with lists text, answer_start"


def _answers_of(fields: Mapping[str, Any]) -> list[Any]:
    """Returns the expected answers: texts in MRQA, objects in SQuAD.

    Also of Hugging Face's one object for all, with a list of the texts and a
    list of the places.
    """
    given = fields.get("answers")
    if given is None or given in ("", {}):
        return []
    if isinstance(given, list | tuple):
        return list(given)
    if not isinstance(given, Mapping) or "text" not in given:
        raise UnusableError(
            f"answers is {values.describe(given)}", _ANSWERS_FORM
        )
    texts, starts = given["text"], given.get("answer_start")
    if not isinstance(texts, list):
        return [given]
    if starts is None:
        return texts
    if not isinstance(starts, list):
        raise UnusableError(
            f"answers with a list of texts, but answer_start is"
            f" {values.describe(starts)}",
            "a list under answer_start, too",
        )
    if len(starts) != len(texts):
        raise UnusableError(
            f"answers with {len(texts)} text and {len(starts)} answer_start",
            "as many of the one as of the other",
        )
    pairs = zip(texts, starts, strict=True)
    return [{"text": text, "answer_start": start} for text, start in pairs]


def _text_of(answer: Any) -> str:
    given = answer.get("text") if isinstance(answer, Mapping) else answer
    text = values.as_text(given)
    if text is None:
        raise UnusableError(
            f"answer {values.describe(given)}", "an answer with a text"
        )
    return text


def _locate_answer(example: QAExample, text: str, offset: int) -> None:
    """Fills in the words of an answer, which may stand anywhere in them."""
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


def _take_answer(example: QAExample, text: str, offset: int) -> None:
    """Fills in the characters of an answer, which begin at its offset.

    They may differ from the answer's text in case and in white space.
    """
    passage = example.passage
    found = f"answer {text!r} at character {offset}"
    within = f"an answer within the passage ({passage.n_characters})"
    if not 0 <= offset < passage.n_characters:
        raise UnusableError(found, within)
    words = r"\s+".join(map(re.escape, text.split()))
    before = r"\s*" if text[0].isspace() else ""
    match = re.compile(f"{before}({words})", re.IGNORECASE).match(
        passage.text, offset
    )
    if match is None:
        last = offset + len(text)
        if last > passage.n_characters:
            raise UnusableError(found, within)
        there = shorten(repr(passage.text[offset:last]))
        expected = f"the text that stands there, {there}"
        if elsewhere := re.search(words, passage.text, re.IGNORECASE):
            expected += f" (the answer's begins at {elsewhere.start()})"
        raise UnusableError(found, expected)
    example.orig_answer_text = match[1]
    example.answer_span = match.span(1)


def _first_answer(
    fields: Mapping[str, Any], answers: Sequence[Any]
) -> tuple[str, int]:
    """Returns text and character offset of the answer that is trained on."""
    source, name = "answers", "answer_start"
    if "detected_answers" in fields:  # MRQA's format
        source, name = "detected_answers", "char_spans"
        answers = fields[source]
    if not answers:
        raise UnusableError("no answer", "an answer with its text and place")
    if not isinstance(answers, list) or not isinstance(answers[0], Mapping):
        raise UnusableError(
            f"{source} is {values.describe(answers)}",
            "a list of answers, each with its text and place",
        )
    text, place = _text_of(answers[0]), answers[0].get(name)
    if place is None:
        raise UnusableError(
            f"answer {text!r} without {name}", f"its place under {name}"
        )
    if name == "char_spans":
        place = _first_character(place)
    offset = values.as_integer(place)
    if offset is None:
        raise UnusableError(f"{name} is {values.describe(place)}", "an integer")
    if not text.strip():
        raise UnusableError(f"answer {text!r}", "an answer that is not empty")
    return text, offset


def _first_character(spans: Any) -> Any:
    """Returns where the first of MRQA's `char_spans` begins."""
    pair = spans[0] if isinstance(spans, list) and spans else None
    if not isinstance(pair, list) or not pair:
        raise UnusableError(
            f"char_spans is {values.describe(spans)}",
            "a list of pairs of integers",
        )
    return pair[0]


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
    text = read_text(path).removeprefix("\ufeff")
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
        found = "no list under data"
        if articles is not None:
            found = f"data is {values.describe(articles)}"
        elif not isinstance(document, dict):
            found = f"the file holds {values.describe(document)}"
        raise UserError(f"{path}: {found}; expected {_SQUAD_FORM}")
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
            report.add(path, row.line, row.content, row.expected)
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
    for row in tfds_data.read_rows(name, split, data_dir, max_rows):
        context = row.cells["context"]
        if context not in passages:
            passages[context] = Passage(context)
        yield RawQuestion(
            f"tfds:{name}/{split}",
            lambda line=row.line: line,
            passages[context],
            row.cells,
        )


def _questions(
    path: str,
    paragraph: Any,
    report: RowReport,
    line_of: Callable[[dict[str, Any]], int],
    line: int = 0,
) -> Iterator[RawQuestion]:
    """Yields the questions of a paragraph."""
    context = _get(paragraph, "context", str)
    qas = _get(paragraph, "qas", list)
    if context is None or qas is None:
        report.add(path, line, _lack(paragraph), _PARAGRAPH_FORM)
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


def _lack(paragraph: Any) -> str:
    """Names what keeps a paragraph from being one."""
    if isinstance(paragraph, dict):
        for name, kind in (("context", str), ("qas", list)):
            found = paragraph.get(name)
            if found is not None and not isinstance(found, kind):
                return f"{name} is {values.describe(found)}"
    return shorten(paragraph)


def _line_of(text: str, qa: dict[str, Any]) -> int:
    """Returns the line of a file that holds a question's id, or its text.

    0 if the file writes them in another way than this program does.
    """
    for name in ("id", "qid", "question"):
        if qa.get(name) is None:
            continue
        for is_ascii in (True, False):
            written = json.dumps(qa[name], ensure_ascii=is_ascii)
            pattern = rf'"{name}"\s*:\s*{re.escape(written)}(?![\w.])'
            if match := re.search(pattern, text):
                return text.count("\n", 0, match.start()) + 1
    return 0
