# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files and TFDS data sets -> questions with their passages."""

import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from configure.errors import UserError
from electra_tf.data import storage, tables, tfds_tables
from electra_tf.finetuning.question_answering.examples import Passage
from electra_tf.finetuning.rows import RowReport

_SQUAD_FORM = 'a SQuAD file, {"data": [{"paragraphs": [...]}, ...]}'
_PARAGRAPH_FORM = "a paragraph with a context and a list of qas"


class RawQuestion(NamedTuple):
    """A question as it stands in the data.

    Attributes:
      path: the file, or the name of a TFDS split.
      line: finds its line number in it, from 1 (0 where it cannot).
      passage: its passage.
      fields: everything else.
    """

    path: str
    line: Callable[[], int]
    passage: Passage
    fields: dict[str, Any]


def read_squad(
    path: str, report: RowReport, max_paragraphs: int | None = None
) -> Iterator[RawQuestion]:
    """Reads a file of SQuAD 1.1 or 2.0.

    Args:
      path: the file.
      report: told about paragraphs that cannot be used.
      max_paragraphs: stop after so many; None reads all.

    Yields:
      The questions, in order.

    Raises:
      UserError: no such file, malformed JSON, or of another form.
    """
    text = _read_text(path)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}:{error.lineno}: malformed JSON at character"
            f" {error.colno}: {error.msg}; expected {_SQUAD_FORM}"
        ) from error
    articles = document.get("data") if isinstance(document, dict) else None
    if not isinstance(articles, list):
        raise UserError(f"{path}: no list under data; expected {_SQUAD_FORM}")
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
    """Reads a file of the MRQA 2019 shared task, plain or compressed.

    Args:
      path: the file: JSON lines.
      report: told about lines that cannot be used.
      max_lines: stop after so many; None reads all.

    Yields:
      The questions, in order.

    Raises:
      UserError: no such file.
    """
    rows = _compressed_rows(path) if path.endswith(".gz") else None
    for number, row in enumerate(rows or tables.read_rows(path, "jsonl")):
        if number == max_lines:
            return
        if row.expected:
            report.add(path, row.line, row.found, row.expected)
        elif row.cells and "header" not in row.cells:
            line = row.line
            yield from _questions(
                path, row.cells, report, lambda qa, line=line: line, line
            )


def read_tfds(
    name: str,
    split: str,
    data_dir: str | None,
    max_rows: int | None = None,
) -> Iterator[RawQuestion]:
    """Reads a SQuAD data set of TensorFlow Datasets.

    Args:
      name: such as "squad/v2.0".
      split: such as "validation".
      data_dir: where TFDS keeps its data; None for its default.
      max_rows: stop after so many questions; None reads all.

    Yields:
      The questions, in stored order.

    Raises:
      UserError: the data set or the split is not there.
    """
    passages: dict[str, Passage] = {}
    for row in tfds_tables.read_rows(name, split, data_dir, max_rows):
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


def _read_text(path: str) -> str:
    if not storage.exists(path):
        raise UserError(f"{path}: no such file; expected {_SQUAD_FORM}")
    if storage.is_directory(path):
        raise UserError(f"{path}: is a directory, expected a file")
    with storage.open_file(path, "rb") as file:
        raw = file.read()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}:{line}: byte {error.start} is not UTF-8 ({error.reason})"
        ) from error


def _compressed_rows(path: str) -> Iterator[tables.Row]:
    expected = "one JSON object a line"
    with storage.open_file(path, "rb") as packed:
        try:
            for number, raw in enumerate(gzip.GzipFile(fileobj=packed), 1):
                try:
                    value = json.loads(raw)
                except ValueError as error:
                    yield tables.Row(number, {}, f"{error}: {raw!r}", expected)
                    continue
                if isinstance(value, dict):
                    yield tables.Row(number, value)
                else:
                    yield tables.Row(number, {}, repr(raw), expected)
        except (OSError, EOFError) as error:
            raise UserError(f"{path}: cannot be unpacked: {error}") from error
