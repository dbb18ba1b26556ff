# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers to files: JSON lines or TSV, complete or not under that name."""

import json
import os
import sys
from collections.abc import Mapping
from typing import IO, Any

from configure.errors import UserError
from electra_tf import files

FORMATS = ("jsonl", "tsv")
STDOUT = "-"
PART = ".part"


def check_free(path: str, overwrite: bool) -> None:
    """Raises where a file is in the way, or the folder is not there."""
    if path == STDOUT:
        return
    if files.exists(path) and not overwrite:
        raise UserError(
            f"{path}: is there already; choose another --output, or pass"
            " --overwrite"
        )
    folder = os.path.dirname(path)
    if folder and not files.is_remote(path) and not os.path.isdir(folder):
        raise UserError(f"{folder}: no such folder; make it first")


def format_of(path: str, given: str | None) -> str:
    """Returns the format of the output: as given, or by its name's end.

    Args:
      given: one of `FORMATS`, or None.
    """
    if given is not None:
        return given
    return "tsv" if path.lower().endswith(".tsv") else "jsonl"


class AnswerFile:
    """Takes answers one by one; a file gets its name when it is complete.

    Use it as a context manager. If it ends with an exception, what there is
    stays under `<path>.part`.

    Args:
      format_name: "jsonl": an object a line; "tsv": a header and a column for
        each value, those of nested values as `probabilities.good`, lists as
        JSON.
    """

    def __init__(
        self, path: str, format_name: str, overwrite: bool = False
    ) -> None:
        check_free(path, overwrite)
        self.path, self._format = path, format_name
        self._columns: list[str] | None = None

    def __enter__(self) -> "AnswerFile":
        self._file: IO[bytes]
        if self.path == STDOUT:
            self._file = sys.stdout.buffer
        else:
            try:
                self._file = files.open_file(self.path + PART, "wb")
            except OSError as error:
                raise UserError(
                    f"{self.path}: cannot be written: {error.strerror}"
                ) from error
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if self.path == STDOUT:
            if kind is None:
                self._file.flush()
            return
        self._file.close()
        if kind is None:
            files.rename(self.path + PART, self.path)

    def write(self, answer: Mapping[str, Any]) -> None:
        """Writes an answer."""
        if self._format == "jsonl":
            text = json.dumps(answer, ensure_ascii=False)
        else:
            text = self._tsv_row(answer)
        self._file.write(f"{text}\n".encode("utf-8", "replace"))
        if self.path == STDOUT:
            self._file.flush()

    def _tsv_row(self, answer: Mapping[str, Any]) -> str:
        flat = dict(_flat(answer))
        if self._columns is None:
            self._columns = list(flat)
            header = "\t".join(map(_cell, self._columns))
            self._file.write(f"{header}\n".encode())
        return "\t".join(_cell(flat.get(name)) for name in self._columns)


def _flat(answer: Mapping[str, Any], prefix: str = "") -> Any:
    for name, value in answer.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _cell(value: Any) -> str:
    """A value as TSV has it: no tab, no line end."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | bool):
        return json.dumps(value, ensure_ascii=False)
    # Every line end that some reader knows becomes a space.
    return " ".join(str(value).replace("\t", " ").splitlines())
