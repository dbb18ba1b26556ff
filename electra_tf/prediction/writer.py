# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The writers of answers and vectors.

A file gets its name only when it is complete.
"""

import array
import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import IO, Any

import numpy as np

from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.files import filesystem
from electra_tf.files.atomic import atomic_file, part_path

FORMATS = ("jsonl", "tsv")
STDOUT = "-"
# Characters that answers contain only as JSON's escapes: UTF-8 has no form of
# lone surrogates, and some readers end lines at U+0085, U+2028 and U+2029.
_ESCAPED = re.compile("[\x85\u2028\u2029\ud800-\udfff]")


def check_free(
    path: str, overwrite: bool, inputs: Collection[str] = ()
) -> None:
    """Raise a UserError if an output cannot be written.

    Args:
      path: the output; "-": standard output.
      overwrite: whether an existing file may be replaced.
      inputs: the files that are read; the output must not replace them.
    """
    if path == STDOUT:
        return
    if os.path.realpath(path) in map(os.path.realpath, inputs):
        raise UserError(
            f"{path}: the output is also an input. Choose another file."
        )
    if filesystem.exists(path) and not overwrite:
        raise UserError(
            f"{path}: already exists. Choose another name, or pass --overwrite."
        )
    folder = os.path.dirname(path)
    if folder and not filesystem.is_remote(path) and not os.path.isdir(folder):
        raise UserError(f"{folder}: no such folder. Create the folder.")


def choose_format(path: str, requested: str | None) -> str:
    """Return the requested format, or the format of the path's extension."""
    if requested is not None:
        return requested
    return "tsv" if path.lower().endswith(".tsv") else "jsonl"


@contextlib.contextmanager
def answer_file(
    path: str, format_name: str, overwrite: bool = False
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Yield a function that writes an answer to a file or standard output.

    Until the file is complete, and after an error, the answers are in
    `<path>.<process>.part`. Two processes cannot write the same path.

    Args:
      path: the file; "-": standard output.
      format_name: "jsonl": an object per line; "tsv": a header and a column for
        each value, nested values as `probabilities.good`, lists as JSON.
      overwrite: whether an existing file is replaced.

    Raises:
      UserError: the file exists, or an answer has columns that the first answer
        does not have.
    """
    check_free(path, overwrite)
    columns: list[str] = []
    with contextlib.ExitStack() as stack:
        file: IO[bytes] = sys.stdout.buffer
        if path != STDOUT:
            file = stack.enter_context(
                atomic_file(path, part_path(path), keep=True)
            )

        def write_line(text: str) -> None:
            file.write(f"{text}\n".encode())
            if path == STDOUT:
                file.flush()

        def write(answer: Mapping[str, Any]) -> None:
            if format_name == "jsonl":
                write_line(_format_json(answer))
                return
            flat = dict(_flatten(answer))
            if not columns:
                columns.extend(flat)
                write_line("\t".join(map(_cell, columns)))
            if new_columns := flat.keys() - set(columns):
                raise UserError(
                    f"{path}: a later answer has columns that the first answer"
                    f" does not have: {join_names(sorted(new_columns), 3)}."
                    " Write a .jsonl file instead."
                )
            write_line("\t".join(_cell(flat.get(name)) for name in columns))

        yield write
        # Another process may have written the file in the meantime.
        check_free(path, overwrite)


def _flatten(
    answer: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield the column names and values of an answer."""
    for name, value in answer.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _format_json(value: Any) -> str:
    """Return a value as JSON in one line of valid UTF-8."""
    return _escape(json.dumps(value, ensure_ascii=False))


def _escape(text: str) -> str:
    """Return a text with JSON's escapes of the characters in `_ESCAPED`."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _cell(value: Any) -> str:
    """Return a value as a TSV cell, without tabs and line ends."""
    if value is None:
        return ""
    if isinstance(value, list | tuple | bool):
        return _format_json(value)
    # All line ends become spaces, because readers of TSV files disagree about
    # which of them end a row.
    return _escape(" ".join(str(value).replace("\t", " ").splitlines()))


class VectorFile:
    """Writer of a file of vectors, for any number of texts.

    `.npy` has only `vectors`, float32 [rows, width]. `.npz` also has `offsets`,
    int64 [texts + 1]: the rows of text i are `offsets[i]` to `offsets[i + 1]`.

    Use it as a context manager: the file appears if the block ends without an
    error.
    """

    def __init__(self, path: str, width: int) -> None:
        self.path, self._width = path, width
        self._offsets = array.array("q", [0])

    @property
    def rows(self) -> int:
        """Return the number of vectors so far."""
        return self._offsets[-1]

    def append(self, vectors: np.ndarray) -> None:
        """Add the vectors of a text, float32 [N, width]."""
        self._rows.write(np.ascontiguousarray(vectors, "<f4").tobytes())
        self._offsets.append(self.rows + len(vectors))

    def __enter__(self) -> "VectorFile":
        folder = os.path.dirname(self.path) or "."
        self._rows: IO[bytes] = tempfile.TemporaryFile(dir=folder)
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        with self._rows:
            if kind is None:
                self._save()

    def _save(self) -> None:
        with atomic_file(self.path) as file:
            if self.path.endswith(".npy"):
                self._copy_rows(file)
                return
            with zipfile.ZipFile(file, "w") as packed:
                with packed.open("vectors.npy", "w", force_zip64=True) as part:
                    self._copy_rows(part)
                with packed.open("offsets.npy", "w") as part:
                    np.save(part, np.asarray(self._offsets))

    def _copy_rows(self, file: IO[bytes]) -> None:
        shape = (self.rows, self._width)
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        self._rows.seek(0)
        shutil.copyfileobj(self._rows, file)
