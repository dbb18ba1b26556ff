# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The zip file that the GLUE benchmark's server takes: written, checked."""

import dataclasses
import io
import os
import zipfile
from collections.abc import Mapping, Sequence

from configure.errors import UserError
from electra_tf.data import storage
from electra_tf.finetuning.classification.glue import GLUE_TASKS

_HEADER = "index\tprediction"
# A zip file's earliest date: the same predictions make the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclasses.dataclass(frozen=True)
class Part:
    """One file of a submission.

    Attributes:
      file: its name.
      task: whose predictions it holds.
      split: of which split.
      server_rows: the rows that the server has answers for.
    """

    file: str
    task: str
    split: str
    server_rows: int


PARTS = (
    Part("CoLA.tsv", "cola", "test", 1063),
    Part("SST-2.tsv", "sst", "test", 1821),
    Part("MRPC.tsv", "mrpc", "test", 1725),
    Part("STS-B.tsv", "sts", "test", 1379),
    Part("QQP.tsv", "qqp", "test", 390965),
    Part("MNLI-m.tsv", "mnli", "test_matched", 9796),
    Part("MNLI-mm.tsv", "mnli", "test_mismatched", 9847),
    Part("QNLI.tsv", "qnli", "test", 5463),
    Part("RTE.tsv", "rte", "test", 3000),
    Part("WNLI.tsv", "wnli", "test", 146),
    Part("AX.tsv", "mnli", "diagnostic", 1104),
)


def write_archive(
    files: Mapping[str, Sequence[tuple[int, str]]], path: str
) -> None:
    """Writes the zip file, once it was read back and checked.

    Args:
      files: file -> (index, prediction) of its rows.
      path: of the zip file.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in files.items():
            lines = [_HEADER, *(f"{index}\t{text}" for index, text in rows)]
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, "\n".join([*lines, ""]))
    indices = {
        name: [index for index, _ in rows] for name, rows in files.items()
    }
    check_archive(buffer, indices)
    storage.make_directory(os.path.dirname(path) or ".")
    with storage.open_file(path + ".tmp", "wb") as file:
        file.write(buffer.getvalue())
    storage.rename(path + ".tmp", path)


def check_archive(
    archive: io.BytesIO | str, indices: Mapping[str, Sequence[int]]
) -> None:
    """Raises unless a zip file is a submission for these rows.

    Args:
      archive: the zip file, or its path.
      indices: file -> the indices of its rows, in order.

    Raises:
      UserError: naming the file, the line, and what was expected.
    """
    parts = {part.file: part for part in PARTS}
    with zipfile.ZipFile(archive) as opened:
        if sorted(opened.namelist()) != sorted(indices):
            raise UserError(
                f"the zip file holds {', '.join(opened.namelist())}; expected"
                f" {', '.join(indices)}"
            )
        for name, expected in indices.items():
            lines = opened.read(name).decode().splitlines()
            if lines[:1] != [_HEADER]:
                raise UserError(f"{name}:1: expected {_HEADER!r}")
            if len(lines) - 1 != len(expected):
                raise UserError(
                    f"{name}: {len(lines) - 1} rows, expected {len(expected)}"
                )
            for number, line in enumerate(lines[1:], 2):
                index, _, text = line.partition("\t")
                if index != str(expected[number - 2]):
                    raise UserError(
                        f"{name}:{number}: index {index}, expected"
                        f" {expected[number - 2]}"
                    )
                wanted = _not_valid(parts[name].task, text)
                if wanted:
                    raise UserError(
                        f"{name}:{number}: found {text!r}; expected {wanted}"
                    )


def _not_valid(task: str, text: str) -> str:
    """What was expected instead of a prediction; "" where it is right."""
    spec = GLUE_TASKS[task]
    if spec.labels is not None:
        if text in spec.labels:
            return ""
        return f"one of: {', '.join(spec.labels)}"
    low, high = spec.range
    try:
        right = low <= float(text) <= high
    except ValueError:
        right = False
    return "" if right else f"a number from {low:g} to {high:g}"
