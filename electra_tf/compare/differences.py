# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How far two sets of tensors, or the outputs of two models, are apart."""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

# Elements looked at in one go: bounds the float64 copies of large tables.
_CHUNK = 1 << 20


@dataclasses.dataclass(frozen=True)
class Difference:
    """What is left of the element-wise difference of A and B."""

    count: int  # elements
    max_abs: float  # largest |a - b| of those that are finite
    mean_abs: float  # mean of these
    max_b: float  # largest finite |b|
    norm_diff: float  # Euclidean norm of a - b
    norm_b: float  # Euclidean norm of b
    # Elements whose difference is no number: a NaN on either side, or an
    # infinity that the other side lacks.
    not_finite: int = 0

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
        """Whether no element differs by more, relative to max(1, max|b|)."""
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
        """Adds numbers of any dtype and the same shape."""
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
    """Compares two arrays of numbers."""
    running = RunningDifference()
    running.add(a, b)
    return running.result()


# Tensors of the same name in two checkpoints.


class NamedTensors(Protocol):
    """What `compare_tensors` asks of a checkpoint."""

    @property
    def specs(self) -> Mapping[str, Any]:
        """Shape and dtype by name."""

    def read(self, name: str) -> np.ndarray:
        """Returns one tensor's values."""


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
        specs = (a.specs.get(name), b.specs.get(name))
        shapes = [tuple(s.shape) if s else None for s in specs]
        dtypes = [str(np.dtype(s.dtype)) if s else None for s in specs]
        found = None
        if all(specs) and shapes[0] == shapes[1]:
            found = difference(a.read(name), b.read(name))
        yield TensorDifference(name, *shapes, *dtypes, found)


# Outputs of two models, or of a model and a recording, on the same inputs.


@dataclasses.dataclass(frozen=True)
class ForwardDifference:
    """Differences of what two models made of the same inputs.

    Attributes:
      inputs: what they were given, counted: examples, length, tokens,
        predictions.
      layers: differences of every layer, by network ("generator",
        "generator_ltr", "generator_rtl", "discriminator").
      outputs: of logits and other arrays, by name.
      agreement: (equal, all) decisions, by name: most likely word, sign.
      integers: (equal, all) of arrays that must be the same, by name.
      losses: (A, B), by name, in nats.
      not_compared: what was left out, and why.
    """

    inputs: Mapping[str, int]
    layers: Mapping[str, tuple[Difference, ...]]
    outputs: Mapping[str, Difference]
    agreement: Mapping[str, tuple[int, int]]
    integers: Mapping[str, tuple[int, int]]
    losses: Mapping[str, tuple[float, float]]
    not_compared: Mapping[str, str]

    def problems(self, tolerance: float) -> list[str]:
        """Names what is further apart than the tolerance."""
        sizes = {
            f"{network} layer {number}": size
            for network, layers in self.layers.items()
            for number, size in enumerate(layers, 1)
        }
        found = [
            f"{name}: {size.text}"
            for name, size in (sizes | dict(self.outputs)).items()
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
        """Returns everything for a JSON file, which has no NaN."""

        def counts(of: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
            return {n: {"equal": e, "count": c} for n, (e, c) in of.items()}

        def number(value: float) -> float | None:
            return value if math.isfinite(value) else None

        return {
            "inputs": dict(self.inputs),
            "layers": {
                network: [size.as_dict() for size in sizes]
                for network, sizes in self.layers.items()
            },
            "outputs": {n: size.as_dict() for n, size in self.outputs.items()},
            "agreement": counts(self.agreement),
            "integers": counts(self.integers),
            "losses": {
                name: {"a": number(a), "b": number(b)}
                for name, (a, b) in self.losses.items()
            },
            "not_compared": dict(self.not_compared),
        }


class ForwardCollector:
    """Adds up the differences of batch after batch."""

    def __init__(self) -> None:
        self.not_compared: dict[str, str] = {}
        self._layers: dict[str, list[RunningDifference]] = {}
        self._outputs: dict[str, RunningDifference] = {}
        self._agreement: dict[str, tuple[int, int]] = {}
        self._integers: dict[str, tuple[int, int]] = {}

    def add_layers(self, network: str, a: np.ndarray, b: np.ndarray) -> None:
        """Adds the outputs of a network's layers, float [layers, tokens, H]."""
        if a.shape[::2] != b.shape[::2]:
            self.not_compared[f"{network} layers"] = (
                f"{a.shape[0]} of width {a.shape[2]} in A,"
                f" {b.shape[0]} of width {b.shape[2]} in B"
            )
            return
        running = self._layers.setdefault(
            network, [RunningDifference() for _ in a]
        )
        for layer, of_a, of_b in zip(running, a, b, strict=True):
            layer.add(of_a, of_b)

    def add_output(self, name: str, a: np.ndarray, b: np.ndarray) -> None:
        """Adds floats, of any shape but the same."""
        self._outputs.setdefault(name, RunningDifference()).add(a, b)

    def add_agreement(self, name: str, a: np.ndarray, b: np.ndarray) -> None:
        """Adds decisions, which a rounding error may turn."""
        _count(self._agreement, name, a, b)

    def add_integers(self, name: str, a: np.ndarray, b: np.ndarray) -> None:
        """Adds what must be the same."""
        _count(self._integers, name, a, b)

    def result(
        self,
        inputs: Mapping[str, int],
        losses: Mapping[str, tuple[float, float]],
    ) -> ForwardDifference:
        """Returns what was collected."""
        return ForwardDifference(
            inputs=inputs,
            layers={
                network: tuple(layer.result() for layer in layers)
                for network, layers in self._layers.items()
            },
            outputs={n: o.result() for n, o in self._outputs.items()},
            agreement=self._agreement,
            integers=self._integers,
            losses=losses,
            not_compared=dict(self.not_compared),
        )


def _count(
    counts: dict[str, tuple[int, int]], name: str, a: np.ndarray, b: np.ndarray
) -> None:
    equal, count = counts.get(name, (0, 0))
    equal += int(np.sum(np.asarray(a) == np.asarray(b)))
    counts[name] = (equal, count + int(np.size(b)))
