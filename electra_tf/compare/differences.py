# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How far two sets of arrays are apart, reading one pair at a time."""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

# Elements looked at in one go: bounds the float64 copies of large tables.
_CHUNK = 1 << 20


@dataclasses.dataclass(frozen=True)
class Difference:
    """What is left of the element-wise difference of A and B.

    Attributes:
      count: number of elements.
      max_abs: largest |a - b| of those that are finite.
      mean_abs: mean of these.
      max_b: largest finite |b|.
      norm_diff: Euclidean norm of a - b.
      norm_b: Euclidean norm of b.
      not_finite: elements whose difference is no number: a NaN on either
        side, or an infinity that the other side lacks.
    """

    count: int
    max_abs: float
    mean_abs: float
    max_b: float
    norm_diff: float
    norm_b: float
    not_finite: int = 0

    @property
    def scale(self) -> float:
        """What a tolerance is relative to: max(1, max|b|)."""
        return max(1.0, self.max_b)

    @property
    def scaled(self) -> float:
        """Largest difference in units of `scale`; infinite where NaN is."""
        return math.inf if self.not_finite else self.max_abs / self.scale

    @property
    def relative(self) -> float | None:
        """max|a - b| / max|b|; None where b is zero and a is not."""
        return _ratio(self.max_abs, self.max_b)

    @property
    def norm_relative(self) -> float | None:
        """|a - b| / |b| in Euclidean norms; None as for `relative`."""
        return _ratio(self.norm_diff, self.norm_b)

    @property
    def is_exact(self) -> bool:
        """Whether all elements are equal."""
        return self.max_abs == 0 and not self.not_finite

    @property
    def text(self) -> str:
        """The largest difference, or how many elements have none."""
        if self.not_finite:
            return f"{self.not_finite} not finite"
        return f"{self.max_abs:.3g}"

    def agrees(self, tolerance: float) -> bool:
        """Whether no element differs by more than tolerance * `scale`."""
        return self.scaled <= tolerance

    def as_dict(self) -> dict[str, Any]:
        """Returns the numbers for a JSON file."""
        return {
            "count": self.count,
            "max_abs": self.max_abs,
            "mean_abs": self.mean_abs,
            "relative": self.relative,
            "norm_relative": self.norm_relative,
            "max_abs_of_b": self.max_b,
            "not_finite": self.not_finite,
        }


def _ratio(part: float, whole: float) -> float | None:
    if whole:
        return part / whole
    return None if part else 0.0


class RunningDifference:
    """Collects the difference of arrays that come in pieces."""

    def __init__(self) -> None:
        self._count = self._not_finite = 0
        self._max_abs = self._max_b = 0.0
        self._sum_abs = self._squares = self._squares_b = 0.0

    def add(self, a: np.ndarray, b: np.ndarray) -> None:
        """Adds a piece.

        Args:
          a: numbers, any shape and dtype.
        """
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            raise ValueError(f"shapes {a.shape} and {b.shape}")
        a, b = a.reshape(-1), b.reshape(-1)
        self._count += a.size
        for start in range(0, a.size, _CHUNK):
            piece = slice(start, start + _CHUNK)
            self._add(a[piece].astype(np.float64), b[piece].astype(np.float64))

    def _add(self, a: np.ndarray, b: np.ndarray) -> None:
        with np.errstate(invalid="ignore"):
            difference = np.where(a == b, 0.0, np.abs(a - b))
        finite = difference[np.isfinite(difference)]
        self._not_finite += difference.size - finite.size
        sizes = np.abs(b[np.isfinite(b)])
        self._max_abs = max(self._max_abs, finite.max(initial=0.0))
        self._max_b = max(self._max_b, sizes.max(initial=0.0))
        self._sum_abs += finite.sum()
        self._squares += finite @ finite
        self._squares_b += sizes @ sizes

    def result(self) -> Difference:
        """Returns the difference of all that was added."""
        numbers = max(1, self._count - self._not_finite)
        return Difference(
            count=self._count,
            max_abs=float(self._max_abs),
            mean_abs=float(self._sum_abs) / numbers,
            max_b=float(self._max_b),
            norm_diff=math.sqrt(self._squares),
            norm_b=math.sqrt(self._squares_b),
            not_finite=self._not_finite,
        )


def difference(a: np.ndarray, b: np.ndarray) -> Difference:
    """Compares two arrays.

    Args:
      a: numbers, any shape and dtype.
    """
    running = RunningDifference()
    running.add(a, b)
    return running.result()


class NamedTensors(Protocol):
    """What `compare_tensors` asks of a checkpoint."""

    @property
    def specs(self) -> Mapping[str, Any]:
        """Shape and dtype by name."""

    def read(self, name: str) -> np.ndarray:
        """Returns one tensor's values."""


@dataclasses.dataclass(frozen=True)
class TensorDifference:
    """One name in two checkpoints.

    Attributes:
      name: of the tensor.
      shape_a: its shape in A, None where A lacks it.
      shape_b: its shape in B, None where B lacks it.
      dtype_a: its type in A.
      dtype_b: its type in B.
      difference: of the values; None where there is nothing to subtract.
    """

    name: str
    shape_a: tuple[int, ...] | None
    shape_b: tuple[int, ...] | None
    dtype_a: str | None
    dtype_b: str | None
    difference: Difference | None

    @property
    def problem(self) -> str | None:
        """Why values were not compared, or None."""
        if self.shape_a is None:
            return "missing in A"
        if self.shape_b is None:
            return "missing in B"
        if self.shape_a != self.shape_b:
            return f"shape {list(self.shape_a)} | {list(self.shape_b)}"
        return None

    def agrees(self, tolerance: float) -> bool:
        """Whether both have it, with the same values."""
        return self.difference is not None and self.difference.agrees(tolerance)

    def as_dict(self) -> dict[str, Any]:
        """Returns everything for a JSON file."""
        found = self.difference.as_dict() if self.difference else None
        return {
            "name": self.name,
            "problem": self.problem,
            "shape": [self.shape_a, self.shape_b],
            "dtype": [self.dtype_a, self.dtype_b],
            "difference": found,
        }


def compare_tensors(
    a: NamedTensors, b: NamedTensors, names: Iterable[str]
) -> Iterator[TensorDifference]:
    """Compares tensors of the same name, holding one pair at a time."""
    for name in names:
        in_a, in_b = a.specs.get(name), b.specs.get(name)
        found = None
        if in_a and in_b and tuple(in_a.shape) == tuple(in_b.shape):
            found = difference(a.read(name), b.read(name))
        yield TensorDifference(
            name=name,
            shape_a=tuple(in_a.shape) if in_a else None,
            shape_b=tuple(in_b.shape) if in_b else None,
            dtype_a=str(np.dtype(in_a.dtype)) if in_a else None,
            dtype_b=str(np.dtype(in_b.dtype)) if in_b else None,
            difference=found,
        )
