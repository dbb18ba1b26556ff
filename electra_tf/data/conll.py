# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sentences of CoNLL files: a line a word, a blank line between sentences.

Only spaces and tabs part columns; other white space is part of words. Lines
that are no words are recognized and counted: comments, and in files whose
first column numbers the words (CoNLL-U, GermEval) ranges and empty nodes. One
sentence at a time is in memory.
"""

import collections
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from configure.errors import UserError
from electra_tf.data.tables import Row
from electra_tf.files import Line, LineReader

DOCUMENT_START = "-DOCSTART-"
COMMENTS = "comment lines"
RANGES = "lines of ranges (as 2-3)"
EMPTY_NODES = "lines of empty nodes (as 5.1)"

_BLANKS = " \t"
_CELL = re.compile(r"[^ \t]+")
_NUMBER = re.compile(r"[0-9]+")
_BETWEEN = re.compile(r"[0-9]+([-.])[0-9]+")
_CONLL_U_COLUMNS = 10
# A comment even if it has as many cells as a word's line: `# key = value` of
# CoNLL-U, `# id ...` of MultiCoNER.
_KEY_AND_VALUE = re.compile(
    r"#[ \t]+[^\W\d][\w.:-]*( [\w.:-]+)?[ \t]*=([ \t]|$)|# id[ \t]"
)
# A comment unless it has as many cells as a word's line: also `#<TAB>...` of
# GermEval, `#begin document` of CoNLL-2012.
_MAY_BE_COMMENT = re.compile(
    r"#[ \t]+[^ \t]|#(begin|end) document|#[^\W\d][\w.:-]*[ \t]*="
)
# Lines of words that the dialect is inferred from, and lines in all.
_PEEKED_WORDS = 200
_PEEKED_LINES = 20_000
# How many consecutive numbers a sentence must reach for its first column, if
# it is asked for as a column of texts, to be taken for numbers of words.
_SURE_NUMBERS = 3


@dataclasses.dataclass
class Sentence:
    """One sentence.

    Attributes:
      number: its number in the file, from 0, unusable sentences counted.
      columns: by name, a text for each word.
      lines: the line of each word, from 1.
      is_ended: whether a blank line follows; False: the file ends.
    """

    number: int
    columns: dict[str, list[str]]
    lines: list[int] = dataclasses.field(default_factory=list)
    is_ended: bool = True


@dataclasses.dataclass(frozen=True)
class Dialect:
    """How the lines of a file are to be read.

    Attributes:
      is_numbered: whether a word's line begins with its number, from 1.
      is_conll_u: whether tabs alone part columns, which are ten.
      widths: numbers of cells of words' lines.
      has_tabs: whether all words' lines have tabs.
    """

    is_numbered: bool
    is_conll_u: bool
    widths: frozenset[int]
    has_tabs: bool

    def cells(self, text: str) -> list[str]:
        """Return a line's cells; none for a blank line."""
        if self.is_conll_u and text.count("\t") == _CONLL_U_COLUMNS - 1:
            return [cell.strip(" ") for cell in text.split("\t")]
        return _CELL.findall(text)

    def wordless(
        self, text: str, cells: Sequence[str], is_first: bool
    ) -> str | None:
        """Return the kind of a line that is no word; None for words.

        A "#" is a word if its line has as many cells as other words' lines,
        and tabs if they all do. `is_first` says whether a sentence may begin
        with this line.
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
    """Whether a line may be a comment, so that it shows no dialect."""
    text = text.strip(_BLANKS)
    patterns = (_KEY_AND_VALUE, _MAY_BE_COMMENT)
    return text == "#" or any(pattern.match(text) for pattern in patterns)


def infer_dialect(lines: Iterable[Line], sure_numbers: int) -> Dialect:
    """Infer the dialect from a file's first lines.

    `sure_numbers` is the number that some sentence must reach before its first
    column is taken for numbers of words.
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
    """The sentences of a file, and its bad lines.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      _get_labeled_sentences.
    Differs: only spaces and tabs part columns, and a line of nothing else is
      blank (there also no-break spaces, line separators, ...); lines that are
      no words are left out.

    Attributes:
      skipped: counts of lines that are no words, by kind.
    """

    def __init__(
        self,
        lines: LineReader,
        columns: Mapping[str, int],
        documents_end_sentences: bool = False,
    ) -> None:
        """Read columns by their numbers, from 0, or negative from the end.

        `documents_end_sentences`: whether -DOCSTART- ends a sentence, as a
        blank line does; False: it is passed over, as the original does.
        """
        self.skipped: collections.Counter[str] = collections.Counter()
        self._lines, self._columns = lines, columns
        self._documents_end_sentences = documents_end_sentences
        ends = (c + 1 if c >= 0 else -c for c in columns.values())
        self._fewest = max(*ends, len(columns))

    def __iter__(self) -> Iterator[Sentence | Row]:
        """Yield good sentences, and a row of each problem.

        A sentence with a bad line is left out.
        """
        self.skipped.clear()
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
            if cells and (kind := dialect.wordless(line.text, cells, is_first)):
                self.skipped[kind] += 1
                continue
            if problem := self._problem(line, cells, dialect):
                found, expected = problem
                expected += " (the sentence is left out)"
                yield Row(line.number, [], found, expected)
                is_good = False
                continue
            sentence.lines.append(line.number)
            for name, column in self._columns.items():
                sentence.columns[name].append(cells[column])
        if is_good and sentence.lines:
            sentence.is_ended = False
            yield sentence

    def _new_sentence(self, number: int) -> Sentence:
        return Sentence(number, {name: [] for name in self._columns})

    def _with_dialect(self) -> tuple[Iterator[Line], Dialect]:
        """Return all lines, and the dialect of the first ones."""
        lines, peeked, n_words = iter(self._lines), [], 0
        for line in itertools.islice(lines, _PEEKED_LINES):
            peeked.append(line)
            cells = _CELL.findall(line.text or "")
            n_words += bool(cells) and not cells[0].startswith("#")
            if n_words == _PEEKED_WORDS:
                break
        numbers = [name for name, c in self._columns.items() if c == 0]
        dialect = infer_dialect(peeked, _SURE_NUMBERS if numbers else 1)
        if dialect.is_numbered and numbers:
            raise UserError(
                f"{self._lines.path}: column 0 holds the numbers of words (1,"
                f" 2, 3 ...), not {numbers[0]}. Name another column, such as"
                f" {numbers[0]}=1 (predict: --columns {numbers[0]}=1; a task:"
                ' "columns": {"word": 1, "tag": 3})'
            )
        return itertools.chain(peeked, lines), dialect

    def _problem(
        self, line: Line, cells: Sequence[str], dialect: Dialect
    ) -> tuple[str, str] | None:
        """Return what was found, and what was expected; None if all is well."""
        if line.text is None:
            return line.found, line.expected
        if len(cells) < self._fewest:
            return line.text, f"at least {self._fewest} columns"
        if dialect.is_numbered and not _NUMBER.fullmatch(cells[0]):
            return line.text, "the word's number in the first column"
        for name, column in self._columns.items():
            if not cells[column]:
                return line.text, f"a text in column {column}, the {name}"
        return None
