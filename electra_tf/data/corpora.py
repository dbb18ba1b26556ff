# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Documents of a corpus, read from text files, archives and data sets.

An example contains text of a single document. A document consists of the lines
between two blank lines if `blanks_separate_docs`, otherwise of a whole text. A
text is a file of a directory, a record of a JSONL file, a member of an archive
or an example of a TFDS data set. A line is one "sentence".
"""

import contextlib
import dataclasses
import gzip
import io
import itertools
import json
import lzma
import math
import os
import random
import re
import tarfile
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Annotated, Any, NamedTuple

from configure.bounds import check_bounds, one_of
from configure.errors import UserError, append_to_errors
from configure.formatting import join_names, limit_lines
from configure.json_text import DuplicateKeyError, object_of_pairs
from electra_tf.data import archives, tfds_data
from electra_tf.data.tables import JSON_LINES
from electra_tf.files import filesystem
from electra_tf.files.reading import ICONV

# Approximate maximum numbers of lines and characters in a piece. Long documents
# are read in pieces, so that memory stays bounded.
_LINES_PER_PIECE = 4096
_CHARACTERS_PER_PIECE = 1 << 24


class Piece(NamedTuple):
    """Consecutive lines of a document."""

    # Position that identifies the document in its file: the byte offset of the
    # document's first line, prefixed with the member's name or the record's
    # number if the file contains several texts.
    position: str
    lines: list[str]  # nonempty lines without surrounding white space
    is_last: bool  # whether the document ends with this piece


class ReadingReport:
    """Counts of the text that was read so far.

    Attributes:
      strict: whether the first byte that is not UTF-8 is an error.
      units_read: bytes (TFDS: examples) of the current source read so far.
      bytes_read: bytes of text read so far.
      invalid: file name -> [offset of its first invalid byte, number of bytes
        left out].
    """

    def __init__(self, strict: bool = False):
        self.strict = strict
        self.units_read = self.bytes_read = 0
        self.invalid: dict[str, list[int]] = {}

    def decode(self, raw: bytes, name: str, position: int) -> str:
        """Decode UTF-8; leave out and count invalid bytes.

        Args:
          raw: bytes of the text.
          name: name of the file, for messages.
          position: offset of the first byte in the file.

        Source: model/tokenization.py, convert_to_unicode ("ignore").
        Differs: the original's file reader stops at an invalid byte.
        """
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            if self.strict:
                raise UserError(
                    f"{name}: byte {position + error.start} is not UTF-8: found"
                    f" {raw[error.start : error.start + 20]!r}. Convert the"
                    f" file (from Latin-1 with {ICONV}). (Stopped by --strict;"
                    " without --strict, invalid bytes are left out and"
                    " counted.)"
                ) from None
            text = raw.decode("utf-8", "ignore")
            entry = self.invalid.setdefault(name, [position + error.start, 0])
            entry[1] += len(raw) - len(text.encode())
            return text

    def in_errors(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that adds the counts of skipped bytes to errors."""
        return append_to_errors(
            lambda: invalid_bytes_warning(self.invalid, self.bytes_read)
        )


def invalid_bytes_warning(
    invalid: Mapping[str, Sequence[int]], bytes_read: int
) -> list[str]:
    """Return the lines of a warning about bytes that are not UTF-8.

    Args:
      invalid: see `ReadingReport.invalid`.
      bytes_read: number of bytes of text that were read.
    """
    if not invalid:
        return []
    count = sum(left_out for _, left_out in invalid.values())
    share = count / max(count, bytes_read)
    return [
        f"{count:,} of {bytes_read:,} bytes ({share:.3%}) are not UTF-8 and"
        " were left out; a text in a different encoding loses its letters."
        f" Convert these files (from Latin-1 with {ICONV}):",
        *limit_lines(
            [
                f"{name}: {left_out:,} bytes, the first at byte {offset}"
                for name, (offset, left_out) in sorted(invalid.items())
            ]
        ),
    ]


def _read_pieces(
    raw_lines: Iterable[bytes],
    name: str,
    start: int,
    corpus: "Corpus",
    report: ReadingReport,
    prefix: str = "",
) -> Iterator[Piece]:
    """Yield the documents of one text, piece by piece.

    Args:
      raw_lines: lines of the text.
      name: name of its file, for messages.
      start: offset of the first line.
      corpus: settings that define the ends of documents.
      report: counts, to which this text is added.
      prefix: prefix of all positions; "": the text is the whole source, and the
        bytes read are reported after each document.
    """
    position = start
    document = ""
    lines: list[str] = []
    num_characters = 0  # number of characters in `lines`
    for raw in raw_lines:
        try:
            line = raw.decode().strip()
        except UnicodeDecodeError:
            line = report.decode(raw, name, position).strip()
        if not position:  # A byte order mark may begin a text.
            line = line.removeprefix("\ufeff")
        if line:
            if not document:
                document = f"{prefix}{position}"
            lines.append(line)
            num_characters += len(line)
            if (
                len(lines) >= _LINES_PER_PIECE
                or num_characters > _CHARACTERS_PER_PIECE
            ):
                yield Piece(document, lines, False)
                lines, num_characters = [], 0
        elif document and corpus.blanks_separate_docs:
            if not prefix:
                report.units_read = position - start
            yield Piece(document, lines, True)
            document, lines, num_characters = "", [], 0
        position += len(raw)
    if not prefix:
        report.units_read = position - start
    report.bytes_read += position - start
    if document:
        yield Piece(document, lines, True)


def _text_pieces(
    text: str | bytes,
    name: str,
    position: int,
    corpus: "Corpus",
    report: ReadingReport,
) -> Iterator[Piece]:
    """Yield the documents of a text in memory."""
    # JSON may contain lone surrogates, which UTF-8 cannot encode.
    if isinstance(text, str):
        text = text.encode("utf-8", "ignore")
    lines = io.BytesIO(text)
    return _read_pieces(lines, name, 0, corpus, report, f"{position}:")


def _read_archive(
    source: "Source",
    corpus: "Corpus",
    report: ReadingReport,
    shuffle: random.Random | None = None,
) -> Iterator[Piece]:
    """Yield the documents of an archive, member by member.

    Source: build_openwebtext_pretraining_dataset.py, write_examples.
    Differs: no file is extracted; members are sorted by name before they are
      shuffled (the original shuffles the order of the file system).
    """
    try:
        members = archives.read_members(source.path, corpus)
        if shuffle is not None:
            texts = archives.load_members(members, source.path, corpus)
            texts.sort(key=lambda member: member[0])
            shuffle.shuffle(texts)
            members = ((name, io.BytesIO(text), 0) for name, text in texts)
        for member, text, units in members:
            lines = archives.read_lines(
                text, f"{source.path}: {member}", corpus
            )
            name = f"{source.name}!{member}"
            yield from _read_pieces(
                lines, name, 0, corpus, report, prefix=f"{member}:"
            )
            report.units_read = max(report.units_read, units)
    except PermissionError:
        raise
    except (tarfile.TarError, OSError) as error:
        raise archives.damage_error(source.path, error) from error
    report.units_read = source.size


def _read_examples(
    source: "Source", corpus: "Corpus", report: ReadingReport
) -> Iterator[Piece]:
    builder = tfds_data.open_builder(source.path, corpus.tfds_data_dir)
    examples = tfds_data.read_examples(
        builder, corpus.tfds_split, source.start, source.end
    )
    for index, example in enumerate(examples, source.start):
        inside = f"{source.name}[{index}]"
        text = _text_of(example, corpus.text_field, inside)
        yield from _text_pieces(text, inside, index, corpus, report)
        report.units_read += 1


def _text_of(record: Any, field: str, where: str) -> str | bytes:
    """Return the text of a JSONL record or of a TFDS example.

    Args:
      record: record or example.
      field: key of the text, or path of a nested key, such as "outer/inner".
      where: location of the record, for messages.
    """
    value = record
    is_key = isinstance(record, dict) and field in record
    for name in [field] if is_key else field.split("/"):
        if not isinstance(record, dict):
            raise UserError(
                f"{where}: the record is of type {type(record).__name__};"
                " expected an object with fields. Correct the record."
            )
        if not isinstance(value, dict) or name not in value:
            raise UserError(
                f"{where}: the record has no field {field!r} (it has:"
                f" {', '.join(record)}). Pass --text_field with one of these"
                " fields."
            )
        value = value[name]
    if not isinstance(value, str | bytes):
        raise UserError(
            f"{where}: field {field!r} is of type {type(value).__name__};"
            " expected text. Pass --text_field with a different field."
        )
    return value


_Format = Annotated[str, one_of("auto", "text", "jsonl", "openwebtext", "tfds")]

_ARCHIVE_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".xz", ".tar.bz2")
_JSONL = re.compile(r".*\.(jsonl|ndjson)(\.gz|\.xz)?", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Corpus(archives.Limits):
    """Text to read, and the rules that split it into documents."""

    path: str = ""  # directory or file; empty for a TFDS data set
    blanks_separate_docs: bool = True  # whether blank lines end documents

    # ---- Kinds of corpora (extensions) ----
    # auto: infer the kind of a file from its name: JSON lines (.jsonl,
    # .ndjson), archive (.tar, .tar.xz, .xz, ...), otherwise text; .gz files are
    # unpacked.
    corpus_format: _Format = "auto"
    # Field that contains the text of JSONL records or TFDS examples.
    text_field: str = "text"
    tfds_name: str = ""  # name of a TFDS data set
    tfds_split: str = "train"  # split of the TFDS data set
    tfds_data_dir: str = ""  # folder of prepared TFDS data sets


@dataclasses.dataclass(frozen=True)
class Source:
    """A file, or a range of a file, that one worker reads in order."""

    # File name; name and position together identify a document.
    name: str
    path: str
    kind: str  # "text", "jsonl", "archive" or "tfds"
    size: int  # size of the whole file in bytes (TFDS: examples)
    # First byte (TFDS: example) of the range, where a document starts.
    start: int
    end: int  # first byte (TFDS: example) after the range


class Listing(NamedTuple):
    """Files of a corpus, sorted by name, and the names of nested folders."""

    sources: list[Source]
    nested_directories: list[str]


def list_sources(corpus: Corpus) -> Listing:
    """Return the files of a corpus.

    Raises:
      UserError: the corpus contains no text.

    Source: build_pretraining_dataset.py, write_examples (sorted listing).
    Differs: files with a known extension are not read as plain text; see
      `--corpus_format=text`.
    """
    hints = typing.get_type_hints(Corpus, include_extras=True)
    for name, declared in hints.items():
        check_bounds(name, getattr(corpus, name), declared)
    if corpus.corpus_format == "tfds":
        return Listing([_tfds_source(corpus)], [])
    if not filesystem.exists(corpus.path):
        raise UserError(
            f"corpus_dir {corpus.path!r} does not exist. Pass the path of a"
            " directory of text files."
        )
    if filesystem.is_directory(corpus.path):
        folder, names = corpus.path, filesystem.list_directory(corpus.path)
    else:
        folder, *names = os.path.split(corpus.path)
    sources, nested = [], []
    for name in names:
        path = os.path.join(folder, name)
        if filesystem.is_directory(path):
            nested.append(name)
            continue
        if not filesystem.exists(path):
            raise UserError(f"{path}: broken symbolic link; remove it.")
        size = filesystem.file_size(path)
        kind = _kind(name, corpus.corpus_format)
        sources.append(Source(name, path, kind, size, 0, size))
    if not any(source.size for source in sources):
        remedy = " Choose a directory that contains text files."
        if nested:
            remedy = (
                " Directories inside corpus_dir are not read"
                f" ({join_names(nested)}). Pass one of these directories."
            )
        raise UserError(
            f"corpus_dir {corpus.path!r} contains no text (files:"
            f" {len(sources)}, all empty).{remedy}"
        )
    return Listing(sources, nested)


def _tfds_source(corpus: Corpus) -> Source:
    name, split = corpus.tfds_name, corpus.tfds_split
    if not name:
        raise UserError(
            "corpus_format tfds requires the name of a data set. Pass"
            " --tfds_name."
        )
    splits = tfds_data.open_builder(name, corpus.tfds_data_dir).info.splits
    try:
        size = splits[split].num_examples
    except (KeyError, ValueError) as error:
        raise UserError(
            f"tfds_split {split!r} is not a split of {name}. Pass --tfds_split"
            f" with one of: {', '.join(splits)}."
        ) from error
    if not size:
        raise UserError(
            f"{name}, split {split!r}, has no examples. Pass --tfds_split with"
            " a different split."
        )
    return Source(f"{name}:{split}", name, "tfds", size, 0, size)


def _kind(name: str, corpus_format: str) -> str:
    if corpus_format == "openwebtext":
        return "archive"
    if corpus_format in ("text", "jsonl"):
        return corpus_format
    if _JSONL.fullmatch(name):
        return "jsonl"
    return "archive" if name.endswith(_ARCHIVE_ENDINGS) else "text"


def can_be_cut(source: Source, corpus: Corpus) -> bool:
    """Return whether several workers can share a source."""
    is_document = source.kind == "text" and not corpus.blanks_separate_docs
    is_compressed = source.kind != "tfds" and source.path.endswith(
        (".gz", ".xz")
    )
    return not (is_document or is_compressed or source.kind == "archive")


def split_source(source: Source, corpus: Corpus, count: int) -> list[Source]:
    """Return about `count` ranges of a file, cut at document boundaries."""
    if count <= 1 or not can_be_cut(source, corpus):
        return [source]
    aims = [source.size * i // count for i in range(1, count)]
    if source.kind == "tfds":
        bounds = aims
    else:
        with filesystem.open_file(source.path, "rb") as file:
            bounds = [_next_boundary(file, aim, source, corpus) for aim in aims]
    return [
        dataclasses.replace(source, start=start, end=end)
        for start, end in itertools.pairwise(sorted({0, source.size, *bounds}))
    ]


def _next_boundary(
    file: IO[bytes], aim: int, source: Source, corpus: Corpus
) -> int:
    """Return the first start of a document after the offset `aim`.

    A document starts at a line after a blank line; in JSONL, at any line.
    """
    file.seek(aim)
    position, is_rest = aim, True  # The offset `aim` may be inside a line.
    for raw in archives.read_lines(file, source.path, corpus):
        position += len(raw)
        is_blank = not is_rest and not raw.decode("utf-8", "ignore").strip()
        if source.kind == "jsonl" or is_blank:
            break
        is_rest = False
    return position


def read_documents(
    source: Source,
    corpus: Corpus,
    report: ReadingReport,
    shuffle: random.Random | None = None,
) -> Iterator[Piece]:
    """Yield the documents of a source, piece by piece.

    Args:
      source: file or range of a file.
      corpus: settings that define texts and documents.
      report: counts, to which this source is added.
      shuffle: random stream that shuffles the members of archives; None:
        members keep the order of the archive.

    Raises:
      UserError: the file is corrupt or cannot be read.

    Source: build_pretraining_dataset.py, ExampleWriter.write_examples;
      build_openwebtext_pretraining_dataset.py, write_examples.
    """
    try:
        if source.kind == "tfds":
            yield from _read_examples(source, corpus, report)
        elif source.kind == "archive" and archives.is_tar(source.path):
            yield from _read_archive(source, corpus, report, shuffle)
        elif source.kind == "jsonl":
            yield from _read_jsonl(source, corpus, report)
        else:
            yield from _read_text(source, corpus, report)
    except filesystem.DECOMPRESSION_ERRORS as error:
        raise UserError(
            f"{source.path}: the compressed file is corrupt or truncated"
            f" ({error}). Download the file again, or remove it."
        ) from error
    except PermissionError as error:
        raise UserError(
            f"{source.path}: no permission to read this file. Change the"
            " permissions of the file (chmod)."
        ) from error


def _read_text(
    source: Source, corpus: Corpus, report: ReadingReport
) -> Iterator[Piece]:
    with filesystem.open_decompressed(source.path) as file:
        archives.check_text(file, source.path)
        lines = _lines_until(file, source, corpus)
        yield from _read_pieces(
            lines, source.name, source.start, corpus, report
        )


def _lines_until(
    file: IO[bytes], source: Source, corpus: Corpus
) -> Iterator[bytes]:
    """Yield the lines in a source's range; all lines of a compressed file."""
    is_compressed = isinstance(file, gzip.GzipFile | lzma.LZMAFile)
    position = source.start
    end = math.inf if is_compressed else source.end
    if position:
        file.seek(position)
    if position >= end:
        return
    for raw in archives.read_lines(file, source.path, corpus):
        position += len(raw)
        if is_compressed:
            archives.check_ratio(position, source.path, source.size, corpus)
        yield raw
        if position >= end:
            break


def _read_jsonl(
    source: Source, corpus: Corpus, report: ReadingReport
) -> Iterator[Piece]:
    position = source.start
    with filesystem.open_decompressed(source.path) as file:
        for raw in _lines_until(file, source, corpus):
            where = f"{source.path}: the line at byte {position}"
            if raw.strip():
                line = report.decode(raw, source.name, position)
                line = line.removeprefix("\ufeff")
                try:
                    record = json.loads(line, object_pairs_hook=object_of_pairs)
                except DuplicateKeyError as error:
                    raise UserError(
                        f"{where}: {error}; expected one value of each key."
                        " Correct the line, or remove it."
                    ) from error
                except (ValueError, RecursionError) as error:
                    remedy = "Correct the line, or remove it."
                    if line.lstrip().startswith("["):
                        remedy = (
                            f"Expected {JSON_LINES}. Write each object of the"
                            " array on its own line."
                        )
                    raise UserError(
                        f"{where} is not JSON: {error}. {remedy}"
                    ) from error
                if isinstance(record, list):
                    raise UserError(
                        f"{where}: found a JSON array; expected {JSON_LINES}."
                        " Write each object of the array on its own line."
                    )
                text = _text_of(record, corpus.text_field, where)
                yield from _text_pieces(
                    text, source.name, position, corpus, report
                )
            position += len(raw)
            report.units_read += len(raw)
