# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reader of CoNLL files: one word per line, blank lines after sentences.

Only spaces and tabs separate columns; other white space is part of a word.
Lines without a word are comments and, in files whose first column numbers the
words (CoNLL-U, GermEval), ranges and empty nodes; they are skipped and counted.
The reader holds one sentence at a time in memory.
"""

import collections
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from configure.errors import UserError
from electra_tf.data.tables import Row
from electra_tf.files.lines import Line, LineReader

DOCUMENT_START = "-DOCSTART-"
COMMENTS = "comment lines"
RANGES = "lines of ranges (such as 2-3)"
EMPTY_NODES = "lines of empty nodes (such as 5.1)"

_BLANKS = " \t"
_CELL = re.compile(r"[^ \t]+")
_NUMBER = re.compile(r"[0-9]+")
_BETWEEN = re.compile(r"[0-9]+([-.])[0-9]+")
_CONLL_U_COLUMNS = 10
# Lines that are comments even if they have as many cells as a line with a word:
# `# key = value` of CoNLL-U, `# id ...` of MultiCoNER.
_KEY_AND_VALUE = re.compile(
    r"#[ \t]+[^\W\d][\w.:-]*( [\w.:-]+)?[ \t]*=([ \t]|$)|# id[ \t]"
)
# Lines that are comments unless they have as many cells as a line with a word:
# any `# text`, such as `#<TAB>...` of GermEval, and `#begin document` of
# CoNLL-2012.
_MAY_BE_COMMENT = re.compile(
    r"#[ \t]+[^ \t]|#(begin|end) document|#[^\W\d][\w.:-]*[ \t]*="
)
# Maximum numbers of lines from which the dialect of a file is inferred.
_PEEKED_WORDS = 200  # lines with a word
_PEEKED_LINES = 20_000  # lines of any kind
# A first column that the caller reads as text is taken for word numbers only if
# its largest number is at least this value. Lower numbers may be words that
# consist of digits.
_SURE_NUMBERS = 3


@dataclasses.dataclass
class Sentence:
    """One sentence of a file.

    Attributes:
      number: 0-based index of the sentence in the file, invalid sentences
        included.
      columns: texts of the words, by column name.
      lines: 1-based line number of each word.
    """

    number: int
    columns: dict[str, list[str]]
    lines: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Dialect:
    """Notation of a file's lines.

    Attributes:
      is_numbered: whether a line begins with the 1-based number of its word.
      is_conll_u: whether lines have ten tab-separated columns.
      widths: numbers of cells in the lines with a word.
      has_tabs: whether all lines with a word contain tabs.
    """

    is_numbered: bool
    is_conll_u: bool
    widths: frozenset[int]
    has_tabs: bool

    def cells(self, text: str) -> list[str]:
        """Return the cells of a line; an empty list for a blank line."""
        if self.is_conll_u and text.count("\t") == _CONLL_U_COLUMNS - 1:
            return [cell.strip(" ") for cell in text.split("\t")]
        return _CELL.findall(text)

    def kind_without_word(
        self, text: str, cells: Sequence[str], is_first: bool
    ) -> str | None:
        """Return the kind of a line that has no word; None for other lines.

        A "#" is a word if its line has as many cells as the lines with words
        and, in case all lines with words contain tabs, contains a tab.

        Args:
          text: text of the line.
          cells: cells of the line.
          is_first: whether a sentence may begin with this line.
        """
        if self.is_numbered:
            if between := _BETWEEN.fullmatch(cells[0]):
                return RANGES if between[1] == "-" else EMPTY_NODES
            return COMMENTS if cells[0].startswith("#") else None
        text = text.strip(_BLANKS)
        fits = not self.widths or len(cells) in self.widths
        if self.has_tabs and "\t" not in text:
            return COMMENTS if _MAY_BE_COMMENT.match(text) else None
        is_comment = (
            _KEY_AND_VALUE.match(text) and (is_first or not fits)
        ) or (_MAY_BE_COMMENT.match(text) and is_first and not fits)
        return COMMENTS if is_comment else None


def _is_doubtful(text: str) -> bool:
    """Return whether a line could be a comment, which shows no dialect."""
    text = text.strip(_BLANKS)
    return bool(
        text == "#" or _KEY_AND_VALUE.match(text) or _MAY_BE_COMMENT.match(text)
    )


def infer_dialect(lines: Iterable[Line], sure_numbers: int) -> Dialect:
    """Infer the dialect of a file from its first lines.

    Args:
      lines: first lines of the file.
      sure_numbers: a first column is taken for word numbers only if its largest
        number is at least this value.
    """
    widths: set[int] = set()
    last = highest = n_numbered = n_other = n_conll_u = n_without_tabs = 0
    for line in lines:
        text = line.text or ""
        cells = _CELL.findall(text)
        if not cells:
            last = 0
        if not cells or cells[0] == DOCUMENT_START or _is_doubtful(text):
            continue
        widths.add(len(cells))
        n_without_tabs += "\t" not in text.strip(_BLANKS)
        if cells[0].startswith("#"):
            continue
        n_conll_u += text.count("\t") == _CONLL_U_COLUMNS - 1
        if cells[0] == str(last + 1):
            n_numbered, last = n_numbered + 1, last + 1
            highest = max(highest, last)
        elif not _BETWEEN.fullmatch(cells[0]):
            n_other += 1
    is_numbered = highest >= sure_numbers and n_numbered > 2 * n_other
    is_conll_u = is_numbered and 2 * n_conll_u > n_numbered + n_other
    has_tabs = bool(widths) and n_without_tabs == 0
    return Dialect(is_numbered, is_conll_u, frozenset(widths), has_tabs)


class ConllReader:
    """Iterable of the sentences and the invalid lines of a file.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      _get_labeled_sentences.
    Differs: only spaces and tabs separate columns, and a line that contains
      nothing else is blank (the original also splits at no-break spaces, line
      separators, ...); lines without a word are skipped; if an index counts
      from the end, lines with other numbers of cells are invalid.

    Attributes:
      skipped: number of lines without a word, by kind.
    """

    def __init__(
        self,
        lines: LineReader,
        columns: Mapping[str, int | str],
        documents_end_sentences: bool = False,
        keeps_unended: bool = True,
    ) -> None:
        """Set the lines and the columns to read.

        Args:
          lines: lines of the file.
          columns: 0-based index of each column; a negative index counts from
            the end, and then all lines must have as many cells as the first
            line with a word.
          documents_end_sentences: whether -DOCSTART- ends a sentence, as a
            blank line does; False: -DOCSTART- is ignored, as in the original.
          keeps_unended: whether a last sentence without a blank line is kept;
            False: a problem is yielded, because the original drops the
            sentence.

        Raises:
          UserError: a column is a name, which CoNLL files do not contain.
        """
        for name, column in columns.items():
            if not isinstance(column, int):
                raise UserError(
                    f"{lines.path}: column {column!r} for {name} is a name, but"
                    " CoNLL files have no header. Pass the number of the"
                    f" column, such as {name}=0 for the first column."
                )
        self.skipped: collections.Counter[str] = collections.Counter()
        self._lines, self._columns = lines, dict(columns)
        self._documents_end_sentences = documents_end_sentences
        self._keeps_unended = keeps_unended
        ends = [c + 1 if c >= 0 else -c for c in self._columns.values()]
        self._fewest = max(*ends, len(ends))
        # In a line that lacks a cell, an index that counts from the end would
        # select another column.
        self._needs_same_width = any(c < 0 for c in self._columns.values())
        self._first_width: tuple[int, int] | None = None  # cells, line

    def __iter__(self) -> Iterator[Sentence | Row]:
        """Yield sentences, and a row for each problem.

        A sentence with an invalid line is left out.
        """
        self.skipped.clear()
        self._first_width = None
        lines, dialect = self._with_dialect()
        sentence, is_good = self._new_sentence(0), True
        for line in lines:
            cells = dialect.cells(line.text or "")
            is_start = bool(cells) and cells[0] == DOCUMENT_START
            ends = is_start and self._documents_end_sentences
            if line.text is not None and (ends or not cells):
                if is_good and sentence.lines:
                    yield sentence
                if sentence.lines or not is_good:
                    sentence = self._new_sentence(sentence.number + 1)
                is_good = True
                continue
            if is_start:
                continue
            is_first = is_good and not sentence.lines
            if cells and (
                kind := dialect.kind_without_word(line.text, cells, is_first)
            ):
                self.skipped[kind] += 1
                continue
            if problem := self._problem(line, cells, dialect):
                content, expected = problem
                expected += " (the sentence is left out)"
                yield Row(line.number, [], content, expected)
                is_good = False
                continue
            sentence.lines.append(line.number)
            for name, column in self._columns.items():
                sentence.columns[name].append(cells[column])
        if is_good and sentence.lines:
            yield self._last(sentence)

    def _new_sentence(self, number: int) -> Sentence:
        return Sentence(number, {name: [] for name in self._columns})

    def _last(self, sentence: Sentence) -> Sentence | Row:
        """Return the last sentence, or a problem if a blank line is missing."""
        if self._keeps_unended:
            return sentence
        return Row(
            sentence.lines[-1],
            [],
            f"the end of the file inside a sentence of {len(sentence.lines)}"
            " words",
            "a blank line after the last sentence (add this line, or set"
            " fix_last_sentence)",
        )

    def _with_dialect(self) -> tuple[Iterator[Line], Dialect]:
        """Return an iterator of all lines, and the file's dialect."""
        lines, peeked, n_words = iter(self._lines), [], 0
        for line in itertools.islice(lines, _PEEKED_LINES):
            peeked.append(line)
            cells = _CELL.findall(line.text or "")
            n_words += bool(cells) and not cells[0].startswith("#")
            if n_words == _PEEKED_WORDS:
                break
        first_names = [name for name, c in self._columns.items() if c == 0]
        dialect = infer_dialect(peeked, _SURE_NUMBERS if first_names else 1)
        if dialect.is_numbered and first_names:
            name = first_names[0]
            raise UserError(
                f"{self._lines.path}: column 0 contains the numbers of words"
                f" (1, 2, 3 ...), not {name}. Pass a different column, such as"
                f' {name}=1 (predict: --columns {name}=1; a task: "columns":'
                ' {"word": 1, "tag": 3})'
            )
        return itertools.chain(peeked, lines), dialect

    def _problem(
        self, line: Line, cells: Sequence[str], dialect: Dialect
    ) -> tuple[str, str] | None:
        """Return content and requirement of an invalid line; None: valid."""
        if line.text is None:
            return line.content, line.expected
        if len(cells) < self._fewest:
            return line.text, f"at least {self._fewest} columns"
        if dialect.is_numbered and not _NUMBER.fullmatch(cells[0]):
            return line.text, "the number of the word in the first column"
        for name, column in self._columns.items():
            if not cells[column]:
                return line.text, f"a text in column {column} ({name})"
        return self._width_problem(line, cells)

    def _width_problem(
        self, line: Line, cells: Sequence[str]
    ) -> tuple[str, str] | None:
        """Return the problem of a line with more or fewer cells than the first.

        The first valid line with a word defines the number of cells.
        """
        if not self._needs_same_width:
            return None
        if self._first_width is None:
            self._first_width = len(cells), line.number
        width, number = self._first_width
        if len(cells) == width:
            return None
        return f"{len(cells)} columns", f"{width}, as in line {number}"
