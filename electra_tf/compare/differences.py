# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How far two sets of tensors, or the outputs of two models, are apart."""

import dataclasses
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from electra_tf.checkpoints.weights import Weights
from electra_tf.metrics.statistics import finite

# Elements looked at in one go: bounds the float64 copies of large tables.
_CHUNK = 1 << 20


@dataclasses.dataclass
class Difference:
    """What is left of the element-wise difference of A and B.

    Of finite differences only: a NaN on either side, or an infinity that the
    other side lacks, counts as `not_finite`.
    """

    count: int = 0  # elements
    not_finite: int = 0
    max_abs: float = 0.0  # largest |a - b|
    max_b: float = 0.0  # largest |b|
    sum_abs: float = 0.0  # of |a - b|
    squares: float = 0.0  # sum of (a - b)^2
    squares_b: float = 0.0  # sum of b^2

    def add(self, a: np.ndarray, b: np.ndarray) -> "Difference":
        """Adds numbers of any dtype and the same shape."""
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            raise ValueError(f"shapes {a.shape} and {b.shape}")
        a, b = a.reshape(-1), b.reshape(-1)
        self.count += a.size
        for start in range(0, a.size, _CHUNK):
            piece = slice(start, start + _CHUNK)
            one, other = a[piece].astype(float), b[piece].astype(float)
            with np.errstate(invalid="ignore"):
                difference = np.where(one == other, 0.0, np.abs(one - other))
            finite = difference[np.isfinite(difference)]
            sizes = np.abs(other[np.isfinite(other)])
            self.not_finite += difference.size - finite.size
            self.max_abs = max(self.max_abs, float(finite.max(initial=0.0)))
            self.max_b = max(self.max_b, float(sizes.max(initial=0.0)))
            self.sum_abs += float(finite.sum())
            self.squares += float(finite @ finite)
            self.squares_b += float(sizes @ sizes)
        return self

    @property
    def mean_abs(self) -> float:
        return self.sum_abs / max(1, self.count - self.not_finite)

    @property
    def scaled(self) -> float:
        """Largest difference over max(1, max|b|); infinite where NaN is."""
        if self.not_finite:
            return math.inf
        return self.max_abs / max(1.0, self.max_b)

    @property
    def relative(self) -> float | None:
        """max|a - b| / max|b|; None where b is zero and a is not."""
        return _ratio(self.max_abs, self.max_b)

    @property
    def norm_relative(self) -> float | None:
        return _ratio(math.sqrt(self.squares), math.sqrt(self.squares_b))

    @property
    def is_exact(self) -> bool:
        return self.max_abs == 0 and not self.not_finite

    @property
    def note(self) -> str:
        return f"  {self.not_finite} not finite" if self.not_finite else ""

    @property
    def text(self) -> str:
        """The largest difference, or how many elements have none."""
        return self.note.strip() or f"{self.max_abs:.3g}"

    def agrees(self, tolerance: float) -> bool:
        """Whether no element differs by more, relative to max(1, max|b|)."""
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


# Tensors of the same name in two checkpoints.


@dataclasses.dataclass(frozen=True)
class TensorDifference:
    """One name in two checkpoints; None where a side lacks it."""

    name: str
    shape_a: tuple[int, ...] | None
    shape_b: tuple[int, ...] | None
    dtype_a: str | None
    dtype_b: str | None
    difference: Difference | None  # None, too, where the shapes differ

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
        found = self.difference.as_dict() if self.difference else None
        return {
            "name": self.name,
            "problem": self.problem,
            "shape": [self.shape_a, self.shape_b],
            "dtype": [self.dtype_a, self.dtype_b],
            "difference": found,
        }


def compare_tensors(
    a: Weights, b: Weights, names: Iterable[str]
) -> Iterator[TensorDifference]:
    """Compares tensors of the same name, holding one pair at a time."""
    for name in names:
        specs = (a.specs.get(name), b.specs.get(name))
        shapes = [tuple(s.shape) if s else None for s in specs]
        dtypes = [str(np.dtype(s.dtype)) if s else None for s in specs]
        found = None
        if all(specs) and shapes[0] == shapes[1]:
            found = Difference().add(a.read(name), b.read(name))
        yield TensorDifference(name, *shapes, *dtypes, found)


# Outputs of two models, or of a model and a recording, on the same inputs.

Counts = dict[str, tuple[int, int]]  # equal, all


class ForwardDifference:
    """Differences of what two models made of the same inputs, batch by batch.

    `layers` is by network ("generator", "generator_ltr", "generator_rtl",
    "discriminator"), everything else by the output's name.
    """

    def __init__(
        self,
        inputs: dict[str, int] | None = None,
        not_compared: dict[str, str] | None = None,
    ) -> None:
        self.inputs = inputs or {}  # examples, length, tokens, predictions
        self.not_compared = not_compared or {}  # what was left out, and why
        self.layers: dict[str, list[Difference]] = {}
        self.outputs: dict[str, Difference] = {}  # logits and other floats
        # Of decisions, which a rounding error may turn, and of what must be the
        # same.
        self.agreement: Counts = {}
        self.integers: Counts = {}
        self.losses: dict[str, tuple[float, float]] = {}  # (A, B) in nats

    def add_layers(self, network: str, a: np.ndarray, b: np.ndarray) -> None:
        """Adds the outputs of a network's layers, float [layers, tokens, H]."""
        if a.shape[::2] != b.shape[::2]:
            self.not_compared[f"{network} layers"] = (
                f"{a.shape[0]} of width {a.shape[2]} in A,"
                f" {b.shape[0]} of width {b.shape[2]} in B"
            )
            return
        layers = self.layers.setdefault(network, [Difference() for _ in a])
        for layer, of_a, of_b in zip(layers, a, b, strict=True):
            layer.add(of_a, of_b)

    def add_output(self, name: str, a: np.ndarray, b: np.ndarray) -> None:
        self.outputs.setdefault(name, Difference()).add(a, b)

    def problems(self, tolerance: float) -> list[str]:
        sizes = {
            f"{network} layer {number}": size
            for network, layers in self.layers.items()
            for number, size in enumerate(layers, 1)
        }
        found = [
            f"{name}: {size.text}"
            for name, size in (sizes | self.outputs).items()
            if not size.agrees(tolerance)
        ]
        found += [
            f"{name}: {count - equal} of {count} differ"
            for name, (equal, count) in self.integers.items()
            if equal != count
        ]
        for name, (a, b) in self.losses.items():
            # Written so that a NaN is a problem, too.
            if not abs(a - b) <= tolerance * max(1.0, abs(b)):
                found.append(f"{name}: {a:.6g} | {b:.6g}")
        return found

    def as_dict(self) -> dict[str, Any]:
        def counts(of: Counts) -> dict[str, Any]:
            return {n: {"equal": e, "count": c} for n, (e, c) in of.items()}

        return {
            "inputs": self.inputs,
            "layers": {
                network: [size.as_dict() for size in sizes]
                for network, sizes in self.layers.items()
            },
            "outputs": {n: size.as_dict() for n, size in self.outputs.items()},
            "agreement": counts(self.agreement),
            "integers": counts(self.integers),
            "losses": {
                name: {"a": finite(a), "b": finite(b)}
                for name, (a, b) in self.losses.items()
            },
            "not_compared": self.not_compared,
        }


def add_equal(counts: Counts, name: str, a: np.ndarray, b: np.ndarray) -> None:
    """Adds to `agreement` or `integers`."""
    equal, count = counts.get(name, (0, 0))
    counts[name] = (equal + int(np.sum(a == b)), count + b.size)
