# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of a split with their texts and labels picked out."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from configure.errors import UserError
from electra_tf import files
from electra_tf.data import tables
from electra_tf.finetuning.rows import RowReport
from electra_tf.finetuning.schema import TaskSpec

# Rows read in debug mode, a header among them, as in the original.
DEBUG_ROWS = 100


class TextRow(NamedTuple):
    """One readable row.

    Attributes:
      path: the file, or the name of a TFDS split.
      line: line number in it, from 1.
      number: number of the row from 0, bad rows counted, header not.
      text_a: the text.
      text_b: the second text, or None for single texts.
      label: the label's cell, or None in a split without labels.
    """

    path: str
    line: int
    number: int
    text_a: str
    text_b: str | None
    label: Any


def read_files(
    spec: TaskSpec,
    split: str,
    directory: str,
    report: RowReport,
    debug: bool = False,
) -> Iterator[TextRow]:
    """Reads a split from a file."""
    place = spec.split(split, directory)
    if not files.exists(place.path):
        raise UserError(
            f"{place.path}: no such file; the {split} split of task"
            f" {spec.name} is read from there"
        )
    kind = tables.file_format(place.path, spec.format)
    if kind == "conll":
        raise UserError(
            f"{place.path}: a task of type {spec.type} is read from tsv, csv or"
            " jsonl; give its format"
        )
    rows = tables.read_rows(place.path, kind, DEBUG_ROWS if debug else None)
    columns = {
        column: where
        for column, where in place.columns.items()
        if column != "label" or place.labelled
    }
    if kind != "jsonl":
        header = next(rows, None) if place.header else None
        names = header.cells if header is not None else []
        columns = _positions(place.path, columns, names, kind)
    yield from _pick(rows, columns, place.path, place.labelled, report)


def read_tfds(
    spec: TaskSpec,
    split: str,
    data_dir: str | None,
    report: RowReport,
    debug: bool = False,
) -> Iterator[TextRow]:
    """Reads a split from TensorFlow Datasets; see `read_files`.

    Args:
      data_dir: where TFDS keeps its data; None for its default.
    """
    if spec.tfds is None:
        raise UserError(
            f"task {spec.name}: not known to TensorFlow Datasets; use"
            " data_source=files"
        )
    name, theirs = spec.tfds.place(split)
    rows = tables.read_tfds_rows(
        name, theirs, data_dir, DEBUG_ROWS if debug else None
    )
    names = None
    if spec.tfds.label_names:
        label = spec.tfds.columns["label"]
        names = tables.tfds_label_names(name, label, data_dir)
    path = f"tfds:{name}/{theirs}"
    labelled = spec.labelled(split)
    for row in _pick(rows, spec.tfds.columns, path, labelled, report):
        if names is not None and row.label is not None:
            known = 0 <= row.label < len(names)
            row = row._replace(label=names[row.label] if known else row.label)
        yield row


def _positions(
    path: str, columns: Mapping[str, int | str], names: list[str], kind: str
) -> dict[str, int]:
    """Turns column names into numbers."""
    positions = {}
    for column, where in columns.items():
        if isinstance(where, str):
            if where not in names:
                raise UserError(
                    f"{path}:1: no column {where!r} for {column}; the"
                    f" header names: {', '.join(names) or 'nothing'}"
                    + (" (is the format right?)" if kind == "tsv" else "")
                )
            where = names.index(where)
        positions[column] = where
    return positions


def _pick(
    rows: Iterator[tables.Row],
    columns: Mapping[str, int | str],
    path: str,
    labelled: bool,
    report: RowReport,
) -> Iterator[TextRow]:
    wanted = ["text_a", "text_b"] + ["label"] * labelled
    wanted = [column for column in wanted if column in columns]
    if labelled and "label" not in columns:
        raise UserError(
            f"{path}: no column holds the label; name it in columns, or set"
            " labelled to false for this split"
        )
    for number, row in enumerate(rows):
        if row.expected:
            report.add(path, row.line, row.found, row.expected)
            continue
        try:
            cells = {column: row.cells[columns[column]] for column in wanted}
            cells["text_a"] = _text(cells["text_a"])
            if "text_b" in cells:
                cells["text_b"] = _text(cells["text_b"])
        except (IndexError, KeyError, TypeError):
            report.add(path, row.line, _shown(row), _expected(columns, wanted))
            continue
        if not cells["text_a"].strip():
            report.add(path, row.line, _shown(row), "a text", skipped=False)
        yield TextRow(
            path,
            row.line,
            number,
            cells["text_a"],
            cells.get("text_b"),
            cells.get("label"),
        )


def _text(cell: Any) -> str:
    if not isinstance(cell, str):
        raise TypeError
    return cell


def _shown(row: tables.Row) -> str:
    if not row.cells:
        return "an empty line"
    if isinstance(row.cells, dict):
        return f"{row.cells}"
    return f"{len(row.cells)} columns: {row.cells}"


def _expected(columns: Mapping[str, int | str], wanted: list[str]) -> str:
    places = [columns[column] for column in wanted]
    if all(isinstance(place, int) for place in places):
        least = max(p + 1 if p >= 0 else -p for p in places)
        return f"at least {least} columns"
    return f"texts under {', '.join(map(str, places))}"
