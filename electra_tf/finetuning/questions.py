# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Questions read from SQuAD, MRQA and TFDS data, and their examples."""

import bisect
import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from configure.errors import UserError
from configure.formatting import shorten
from configure.json_text import DuplicateKeyError, object_of_pairs
from electra_tf.data import tables, tfds_data, values
from electra_tf.files.reading import read_text
from electra_tf.finetuning.row_report import RowReport
from electra_tf.finetuning.task import Example

# The pattern of a word. The characters in the brackets separate words. Other
# white space, such as the no-break space, does not separate words.
_WORD = re.compile("[^ \t\r\n\u202f]+")


class Passage:
    """A text split into words, with a map from characters to words."""

    def __init__(self, text: str) -> None:
        matches = list(_WORD.finditer(text))
        self.text = text
        self.words = [match.group() for match in matches]
        self.n_characters = len(text)
        self.starts = [match.start() for match in matches]

    def word_at(self, offset: int) -> int:
        """Return the index of the word at a character, or of the word before.

        The result is -1 if no word begins at or before the character.
        """
        return bisect.bisect_right(self.starts, offset) - 1


@dataclasses.dataclass(kw_only=True)
class QAExample(Example):
    """A question about a passage."""

    text_fields = ("question_text", "doc_tokens")
    key: str  # the id under which the question's prediction is stored
    question_text: str
    passage: Passage  # the text with the answer; questions can share a passage
    # Set in training: the answer as in the data ("": no answer), and the
    # indices of the answer's first and last word (-1: no answer).
    orig_answer_text: str | None = None
    start_position: int | None = None
    end_position: int | None = None
    # Set in training with answer offsets, instead of the indices: the offsets
    # of the answer's first character and of the character after the answer;
    # None: no answer.
    answer_span: tuple[int, int] | None = None
    # set in training: whether the question has no answer
    is_impossible: bool = False
    answers: tuple[str, ...] = ()  # the texts that are accepted as correct

    @property
    def doc_tokens(self) -> list[str]:
        """The words of the passage."""
        return self.passage.words

    @property
    def passage_text(self) -> str:
        """The text of the passage, unchanged."""
        return self.passage.text


class UnusableError(ValueError):
    """An error for an unusable question.

    The arguments are the content that was found and the expected content.
    """


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
    """Return the example of a question.

    Args:
      fields: the question in the data. `values` and `_read_answers` define the
        accepted notations of texts, numbers and answers.
      passage: the passage of the question.
      task_name: the name of the task.
      eid: the number of the example in its split.
      is_training: whether to locate the answer in the passage.
      version: squad1, squad2 or mrqa.
      answer_offsets: whether a training answer consists of the characters at
        its offset, as in your own tasks; False: the answer is searched in the
        words at the offset.

    Raises:
      UnusableError: the question or the id is missing; or, in training, the
        answer's text is not at the answer's offset.

    Source: google-research/electra, finetune/qa/qa_tasks.py, _add_examples.
    Differs: an answer that starts outside the passage, an empty answer and a
      missing answer are unusable; the original fails at them, or trains on the
      start of the passage. Without `is_impossible` a question of SQuAD 2.0 is
      impossible if it has no answers. An id is a text even if the file has a
      number; `"false"` is false.
    """
    question = values.as_text(fields.get("question"))
    if question is None:
        content = fields.get("question")
        if content is not None:
            content = f"is {values.describe(content)}"
        raise UnusableError(f"question {content}", "a text under question")
    answers = _read_answers(fields)
    example = QAExample(
        eid=eid,
        task_name=task_name,
        key=_read_key(fields, version),
        question_text=question,
        passage=passage,
        answers=tuple(map(_read_text, answers)),
    )
    if not is_training:
        return example
    if version == "squad2":
        example.is_impossible = _is_impossible(fields, example.answers)
    if example.is_impossible:
        example.start_position = example.end_position = -1
        example.orig_answer_text = ""
    elif answer_offsets:
        _locate_characters(example, *_first_answer(fields, answers))
    else:
        _locate_words(example, *_first_answer(fields, answers))
    return example


def _read_key(fields: Mapping[str, Any], version: str) -> str:
    """Return the id under which a question's answers are stored."""
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
    """Return whether a question of SQuAD 2.0 has no answer."""
    value = fields.get("is_impossible")
    if value is None:
        return not answers
    is_impossible = values.as_flag(value)
    if is_impossible is None:
        raise UnusableError(
            f"is_impossible is {values.describe(value)}", "true or false"
        )
    return is_impossible


_ANSWERS_FORM = (
    "a list of answers, or an object with the lists text and answer_start"
)


def _read_answers(fields: Mapping[str, Any]) -> list[Any]:
    """Return the expected answers: texts in MRQA, objects in SQuAD.

    Hugging Face's form is also accepted: one object with a list of texts and a
    list of offsets.
    """
    answers = fields.get("answers")
    if answers is None or answers in ("", {}):
        return []
    if isinstance(answers, list | tuple):
        return list(answers)
    if not isinstance(answers, Mapping) or "text" not in answers:
        raise UnusableError(
            f"answers is {values.describe(answers)}", _ANSWERS_FORM
        )
    texts, starts = answers["text"], answers.get("answer_start")
    if not isinstance(texts, list):
        return [answers]
    if starts is None:
        return texts
    if not isinstance(starts, list):
        raise UnusableError(
            "answers has a list under text, but answer_start is"
            f" {values.describe(starts)}",
            "a list of offsets under answer_start",
        )
    if len(starts) != len(texts):
        raise UnusableError(
            f"answers has {len(texts)} entries in text, but {len(starts)} in"
            " answer_start",
            "two lists of equal length",
        )
    pairs = zip(texts, starts, strict=True)
    return [{"text": text, "answer_start": start} for text, start in pairs]


def _read_text(answer: Any) -> str:
    """Return the text of an answer."""
    value = answer.get("text") if isinstance(answer, Mapping) else answer
    text = values.as_text(value)
    if text is None:
        raise UnusableError(
            f"answer {values.describe(value)}", "an answer with a text"
        )
    return text


def _locate_words(example: QAExample, text: str, offset: int) -> None:
    """Set the positions of an answer's words, which must contain `text`."""
    passage, last = example.passage, offset + len(text) - 1
    content = f"answer {text!r} at character {offset}"
    if offset < 0 or last >= passage.n_characters:
        raise UnusableError(content, _inside(passage))
    start, end = passage.word_at(offset), passage.word_at(last)
    passage_text = " ".join(passage.words[start : end + 1])
    if " ".join(text.split()).lower() not in passage_text.lower():
        odd_spaces = {c for c in text if c.isspace()} - set(" \t\r\n\u202f")
        expected = f"the passage's words at this offset, {passage_text!r}"
        if odd_spaces and text.lower() in passage_text.lower():
            codes = sorted(f"U+{ord(c):04X}" for c in odd_spaces)
            expected = (
                f"plain spaces in {passage_text!r} instead of"
                f" {' and '.join(codes)}, which does not separate words"
            )
        raise UnusableError(content, expected)
    example.orig_answer_text = text
    example.start_position, example.end_position = start, end


def _inside(passage: Passage) -> str:
    """Return the expected content if an answer is not inside the passage."""
    count = passage.n_characters
    return f"an answer inside the passage, which has {count} characters"


def _locate_characters(example: QAExample, text: str, offset: int) -> None:
    """Set the span of an answer that begins at `offset`.

    The characters of the span may differ from the answer's text in case and in
    white space.
    """
    passage = example.passage
    content = f"answer {text!r} at character {offset}"
    if not 0 <= offset < passage.n_characters:
        raise UnusableError(content, _inside(passage))
    pattern = r"\s+".join(map(re.escape, text.split()))
    before = r"\s*" if text[0].isspace() else ""
    match = re.compile(f"{before}({pattern})", re.IGNORECASE).match(
        passage.text, offset
    )
    if match is None:
        end = offset + len(text)
        if end > passage.n_characters:
            raise UnusableError(content, _inside(passage))
        passage_text = shorten(repr(passage.text[offset:end]))
        expected = f"the passage's text at this offset, {passage_text}"
        if elsewhere := re.search(pattern, passage.text, re.IGNORECASE):
            expected += f" (the answer occurs at character {elsewhere.start()})"
        raise UnusableError(content, expected)
    example.orig_answer_text = match[1]
    example.answer_span = match.span(1)


def _first_answer(
    fields: Mapping[str, Any], answers: Sequence[Any]
) -> tuple[str, int]:
    """Return the text and the offset of the answer to train on."""
    source, name = "answers", "answer_start"
    if "detected_answers" in fields:  # MRQA's format
        source, name = "detected_answers", "char_spans"
        answers = fields[source]
    if not answers:
        raise UnusableError("no answer", "an answer with its text and offset")
    if not isinstance(answers, list) or not isinstance(answers[0], Mapping):
        raise UnusableError(
            f"{source} is {values.describe(answers)}",
            "a list of answers, each with its text and offset",
        )
    text, value = _read_text(answers[0]), answers[0].get(name)
    if value is None:
        raise UnusableError(
            f"answer {text!r} without {name}", f"an offset under {name}"
        )
    if name == "char_spans":
        value = _first_character(value)
    offset = values.as_integer(value)
    if offset is None:
        raise UnusableError(f"{name} is {values.describe(value)}", "an integer")
    if not text.strip():
        raise UnusableError(f"answer {text!r}", "an answer that is not empty")
    return text, offset


def _first_character(spans: Any) -> Any:
    """Return the first offset in MRQA's `char_spans`."""
    pair = spans[0] if isinstance(spans, list) and spans else None
    if not isinstance(pair, list) or not pair:
        raise UnusableError(
            f"char_spans is {values.describe(spans)}",
            "a list of pairs of integers",
        )
    return pair[0]


_SQUAD_FORM = 'a SQuAD file, {"data": [{"paragraphs": [...]}, ...]}'
_PARAGRAPH_FORM = "a paragraph with the text context and the list qas"


class RawQuestion(NamedTuple):
    """A question as read from the data."""

    path: str  # the file, or the name of a TFDS split
    # returns the line number in the file, from 1; 0: unknown
    line: Callable[[], int]
    passage: Passage
    fields: dict[str, Any]  # the question's fields in the data


def read_articles(path: str) -> tuple[str, list[Any]]:
    """Return the text of a SQuAD file, and the articles in it."""
    text = read_text(path).removeprefix("\ufeff")
    try:
        document = json.loads(text, object_pairs_hook=object_of_pairs)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}:{error.lineno}: malformed JSON at character"
            f" {error.colno}: {error.msg}; expected {_SQUAD_FORM}. Correct the"
            " file."
        ) from error
    except DuplicateKeyError as error:
        line = _line_of(text, dict(error.pairs))
        where = f"{path}:{line}" if line else path
        content = shorten(dict(error.pairs))
        raise UserError(
            f"{where}: {error} in the object {content}; expected one value of"
            " each key. Correct the file."
        ) from None
    except (ValueError, RecursionError) as error:
        # Numbers with too many digits raise a ValueError, too deep nesting
        # raises a RecursionError.
        raise UserError(
            f"{path}: {error}; expected {_SQUAD_FORM}. Correct the file."
        ) from error
    articles = document.get("data") if isinstance(document, dict) else None
    if not isinstance(articles, list):
        content = "no list under data"
        if articles is not None:
            content = f"data is {values.describe(articles)}"
        elif not isinstance(document, dict):
            content = f"the file contains {values.describe(document)}"
        raise UserError(
            f"{path}: {content}; expected {_SQUAD_FORM}. Correct the file."
        )
    return text, articles


def read_squad(
    path: str, report: RowReport, max_paragraphs: int | None = None
) -> Iterator[RawQuestion]:
    """Yield the questions of a file of SQuAD 1.1 or 2.0."""
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
    """Yield the questions of a file of MRQA 2019, plain or compressed."""
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
    """Yield the questions of a SQuAD data set of TensorFlow Datasets."""
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
    """Yield the questions of a paragraph."""
    context = _get(paragraph, "context", str)
    qas = _get(paragraph, "qas", list)
    if context is None or qas is None:
        content = _describe_paragraph(paragraph)
        report.add(path, line, content, _PARAGRAPH_FORM)
        return
    passage = Passage(context)
    for qa in qas:
        if not isinstance(qa, dict):
            report.add(path, line, qa, "a question as a JSON object")
            continue
        yield RawQuestion(path, lambda qa=qa: line_of(qa), passage, qa)


def _get(value: Any, name: str, kind: type) -> Any:
    """Return a field's value; None if the type is not `kind`."""
    field = value.get(name) if isinstance(value, dict) else None
    return field if isinstance(field, kind) else None


def _describe_paragraph(paragraph: Any) -> str:
    """Return a description of the first field with a wrong type.

    If all types are right, the whole paragraph is described.
    """
    if isinstance(paragraph, dict):
        for name, kind in (("context", str), ("qas", list)):
            value = paragraph.get(name)
            if value is not None and not isinstance(value, kind):
                return f"{name} is {values.describe(value)}"
    return shorten(paragraph)


def _line_of(text: str, qa: dict[str, Any]) -> int:
    """Return the number of the line with a question's id or text.

    The result is 0 if the file's notation differs from that of `json.dumps`.
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
