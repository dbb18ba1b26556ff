# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Differences between the tensors or between the outputs of two models."""

import dataclasses
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from electra_tf.checkpoints.weights import Weights
from electra_tf.metrics.trial_statistics import finite

# Number of elements in each step of a comparison. The number is limited,
# because a float64 copy of a whole table would need much memory.
_CHUNK = 1 << 20


@dataclasses.dataclass
class Difference:
    """Statistics of the element-wise differences between arrays a and b.

    The statistics cover finite differences only: a NaN on either side, or an
    infinity on one side, counts as `not_finite`.
    """

    count: int = 0  # number of elements
    not_finite: int = 0
    max_abs: float = 0.0  # largest |a - b|
    max_b: float = 0.0  # largest |b|
    sum_abs: float = 0.0  # sum of |a - b|
    squares: float = 0.0  # sum of (a - b)^2
    squares_b: float = 0.0  # sum of b^2

    def add(self, a: np.ndarray, b: np.ndarray) -> "Difference":
        """Add the differences between two arrays of equal shape."""
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            raise ValueError(f"shapes {a.shape} and {b.shape} differ")
        a, b = a.reshape(-1), b.reshape(-1)
        self.count += a.size
        for start in range(0, a.size, _CHUNK):
            chunk = slice(start, start + _CHUNK)
            chunk_a, chunk_b = a[chunk].astype(float), b[chunk].astype(float)
            with np.errstate(invalid="ignore"):
                # Two equal infinities have the difference 0, although inf - inf
                # is NaN.
                difference = np.where(
                    chunk_a == chunk_b, 0.0, np.abs(chunk_a - chunk_b)
                )
            measured = difference[np.isfinite(difference)]
            sizes = np.abs(chunk_b[np.isfinite(chunk_b)])
            self.not_finite += difference.size - measured.size
            self.max_abs = max(self.max_abs, float(measured.max(initial=0.0)))
            self.max_b = max(self.max_b, float(sizes.max(initial=0.0)))
            self.sum_abs += float(measured.sum())
            self.squares += float(measured @ measured)
            self.squares_b += float(sizes @ sizes)
        return self

    @property
    def mean_abs(self) -> float:
        """The mean of |a - b| over finite differences."""
        return self.sum_abs / max(1, self.count - self.not_finite)

    @property
    def scaled(self) -> float:
        """max|a - b| / max(1, max|b|); infinite if `not_finite` > 0."""
        if self.not_finite:
            return math.inf
        return self.max_abs / max(1.0, self.max_b)

    @property
    def relative(self) -> float | None:
        """max|a - b| / max|b|; None if b is all zeros and a is not."""
        return _ratio(self.max_abs, self.max_b)

    @property
    def norm_relative(self) -> float | None:
        """The norm of a - b, divided by the norm of b.

        The value is None if b is all zeros and a is not.
        """
        return _ratio(math.sqrt(self.squares), math.sqrt(self.squares_b))

    @property
    def is_exact(self) -> bool:
        return self.max_abs == 0 and not self.not_finite

    @property
    def note(self) -> str:
        return f"  {self.not_finite} not finite" if self.not_finite else ""

    @property
    def text(self) -> str:
        """The largest difference, or the number of non-finite differences."""
        return self.note.strip() or f"{self.max_abs:.3g}"

    def agrees(self, tolerance: float) -> bool:
        """Return whether the largest difference is within a tolerance.

        The tolerance is relative to max(1, max|b|).
        """
        return self.scaled <= tolerance

    def as_dict(self) -> dict[str, Any]:
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


# Comparison of tensors of the same name in two checkpoints.


@dataclasses.dataclass(frozen=True)
class TensorDifference:
    """Shapes and dtypes of a tensor in A and B, and the values' difference.

    A shape or dtype is None if its checkpoint does not contain the tensor.
    """

    name: str
    shape_a: tuple[int, ...] | None
    shape_b: tuple[int, ...] | None
    dtype_a: str | None
    dtype_b: str | None
    difference: Difference | None  # None: the values were not compared

    @property
    def problem(self) -> str | None:
        """The reason why values were not compared, or None."""
        if self.shape_a is None:
            return "missing in A"
        if self.shape_b is None:
            return "missing in B"
        if self.shape_a != self.shape_b:
            return f"shape {list(self.shape_a)} | {list(self.shape_b)}"
        return None

    def agrees(self, tolerance: float) -> bool:
        """Return whether values were compared and agree within a tolerance."""
        return self.difference is not None and self.difference.agrees(tolerance)

    def as_dict(self) -> dict[str, Any]:
        difference = self.difference.as_dict() if self.difference else None
        return {
            "name": self.name,
            "problem": self.problem,
            "shape": [self.shape_a, self.shape_b],
            "dtype": [self.dtype_a, self.dtype_b],
            "difference": difference,
        }


def compare_tensors(
    a: Weights, b: Weights, names: Iterable[str]
) -> Iterator[TensorDifference]:
    """Yield each tensor's difference, with one tensor per model in memory."""
    for name in names:
        specs = (a.specs.get(name), b.specs.get(name))
        shapes = [tuple(s.shape) if s else None for s in specs]
        dtypes = [str(np.dtype(s.dtype)) if s else None for s in specs]
        difference = None
        if all(specs) and shapes[0] == shapes[1]:
            difference = Difference().add(a.read(name), b.read(name))
        yield TensorDifference(name, *shapes, *dtypes, difference)


# Comparison of the outputs of two models, or of a model and a recording.

# The number of equal values and the number of all values, by the name of the
# decision or output.
Counts = dict[str, tuple[int, int]]


class ForwardDifference:
    """Differences between the outputs of two models on the same batches.

    The keys of `layers` are networks ("generator", "generator_ltr",
    "generator_rtl", "discriminator"); all other keys are names of outputs.
    """

    def __init__(
        self,
        inputs: dict[str, int] | None = None,
        not_compared: dict[str, str] | None = None,
    ) -> None:
        # the number of examples, tokens and predictions, and the length of
        # the examples
        self.inputs = inputs or {}
        # the reasons why outputs were not compared, by the output's name
        self.not_compared = not_compared or {}
        self.layers: dict[str, list[Difference]] = {}
        self.outputs: dict[str, Difference] = {}  # logits and other floats
        # Rounding errors can change decisions. Unequal decisions (`agreement`)
        # are therefore only counted, but unequal `integers` are problems.
        self.agreement: Counts = {}
        self.integers: Counts = {}
        self.losses: dict[str, tuple[float, float]] = {}  # (A, B) in nats

    def add_layers(self, network: str, a: np.ndarray, b: np.ndarray) -> None:
        """Compare a network's layers in A and B, each [layers, tokens, H]."""
        if a.shape[::2] != b.shape[::2]:
            self.not_compared[f"{network} layers"] = (
                f"number and width of the layers are {a.shape[0]} and"
                f" {a.shape[2]} in A, but {b.shape[0]} and {b.shape[2]} in B"
            )
            return
        layers = self.layers.setdefault(network, [Difference() for _ in a])
        for layer, outputs_a, outputs_b in zip(layers, a, b, strict=True):
            layer.add(outputs_a, outputs_b)

    def add_output(self, name: str, a: np.ndarray, b: np.ndarray) -> None:
        self.outputs.setdefault(name, Difference()).add(a, b)

    def problems(self, tolerance: float) -> list[str]:
        """Return a line for each output that differs too much."""
        differences = {
            f"{network} layer {number}": difference
            for network, layers in self.layers.items()
            for number, difference in enumerate(layers, 1)
        }
        problems = [
            f"{name}: {difference.text}"
            for name, difference in (differences | self.outputs).items()
            if not difference.agrees(tolerance)
        ]
        problems += [
            f"{name}: {count - equal} of {count} values differ"
            for name, (equal, count) in self.integers.items()
            if equal != count
        ]
        for name, (a, b) in self.losses.items():
            # NaN must count as a problem: "not <=" is true for NaN, but ">" is
            # false.
            if not abs(a - b) <= tolerance * max(1.0, abs(b)):
                problems.append(f"{name}: {a:.6g} | {b:.6g}")
        return problems

    def as_dict(self) -> dict[str, Any]:
        def name_counts(counts: Counts) -> dict[str, Any]:
            return {
                name: {"equal": equal, "count": count}
                for name, (equal, count) in counts.items()
            }

        layers = {}
        for network, differences in self.layers.items():
            layers[network] = [layer.as_dict() for layer in differences]
        return {
            "inputs": self.inputs,
            "layers": layers,
            "outputs": {n: size.as_dict() for n, size in self.outputs.items()},
            "agreement": name_counts(self.agreement),
            "integers": name_counts(self.integers),
            "losses": {
                name: {"a": finite(a), "b": finite(b)}
                for name, (a, b) in self.losses.items()
            },
            "not_compared": self.not_compared,
        }


def add_equal(counts: Counts, name: str, a: np.ndarray, b: np.ndarray) -> None:
    """Add the numbers of equal values and of all values to the counts."""
    equal, count = counts.get(name, (0, 0))
    counts[name] = (equal + int(np.sum(a == b)), count + b.size)
