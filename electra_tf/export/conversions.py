# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What files in other formats cost and change, compared with the SavedModel."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.export import lite, onnx_file
from electra_tf.export.signatures import Inputs
from electra_tf.text.vocab import CLS, SEP

# Shapes that the files are compared on.
_SHAPES = ((1, 8), (4, 32), (2, 64))
_FOLDERS = (lite.FOLDER, onnx_file.FOLDER)


@dataclasses.dataclass(frozen=True)
class ConversionReport:
    """What a file costs and changes.

    Attributes:
      file: its name in the version's folder.
      size: bytes.
      largest_change: by which a float output differs from the SavedModel's at
        most, on random inputs.
      mean_change: the same, on average.
      same_choices: share of whole-number outputs that are the same; None
        where there are none.
    """

    file: str
    size: int
    largest_change: float
    mean_change: float
    same_choices: float | None

    def __str__(self) -> str:
        text = (
            f"{self.file}: {self.size:,} bytes; outputs change by"
            f" {self.largest_change:.2g} at most, {self.mean_change:.2g} on"
            " average"
        )
        if self.same_choices is not None:
            text += f"; {self.same_choices:.1%} of the choices are the same"
        return text


def measure_conversions(
    folder: str, loaded: Any, tokens: Sequence[str], max_positions: int
) -> list[ConversionReport]:
    """Compares the files of a version with its SavedModel."""
    paths = [
        path
        for part in _FOLDERS
        for path in tf.io.gfile.glob(os.path.join(folder, part, "*"))
    ]
    if not paths:
        return []
    batches = sample_inputs(tokens, max_positions)
    serve = loaded.signatures["serving_default"]
    wanted = [serve(**batch._asdict()) for batch in batches]
    reports = []
    for path in sorted(paths):
        with tf.io.gfile.GFile(path, "rb") as file:
            content = file.read()
        is_onnx = path.endswith(".onnx")
        run = (onnx_file.runner if is_onnx else lite.runner)(content)
        got = [run(*batch) for batch in batches]
        name = os.path.relpath(path, folder)
        changes = compare(wanted, got)
        reports.append(ConversionReport(name, len(content), *changes))
    return reports


def sample_inputs(
    tokens: Sequence[str], max_positions: int, seed: int = 0
) -> list[Inputs]:
    """Returns random inputs of several shapes, with padding and segments."""
    random = np.random.default_rng(seed)
    found = []
    for rows, length in _SHAPES:
        length = min(length, max_positions)
        ids = random.integers(1, len(tokens), [rows, length])
        ids[:, 0] = tokens.index(CLS)
        ids[:, length // 2] = ids[:, length - 1] = tokens.index(SEP)
        mask = np.ones_like(ids)
        mask[0, length - length // 4 :] = 0
        segments = np.zeros_like(ids)
        segments[:, length // 2 + 1 :] = 1
        arrays = (ids * mask, mask, segments * mask)
        found.append(Inputs(*(tf.constant(a, tf.int32) for a in arrays)))
    return found


def compare(
    wanted: Sequence[Mapping[str, tf.Tensor]],
    got: Sequence[Mapping[str, np.ndarray]],
) -> tuple[float, float, float | None]:
    """Largest and mean change of floats, and share of equal integers."""
    changes: list[np.ndarray] = []
    same: list[np.ndarray] = []
    for one, other in zip(wanted, got, strict=True):
        for name, theirs in other.items():
            value = np.asarray(one[name])
            if np.issubdtype(value.dtype, np.floating):
                changes.append(np.abs(value - theirs).ravel())
            else:
                same.append((value == theirs).ravel())
    change = np.concatenate(changes) if changes else np.zeros([1])
    share = float(np.concatenate(same).mean()) if same else None
    return float(change.max()), float(change.mean()), share
