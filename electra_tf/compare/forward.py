# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How far the outputs of two models on the same inputs are apart."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from electra_tf.compare.differences import Difference, RunningDifference

_LOGITS = " logits"


@dataclasses.dataclass(frozen=True)
class ForwardDifference:
    """Two models, or a model and a recording, on the same inputs.

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

    @property
    def logits(self) -> dict[str, Difference]:
        """The outputs that are logits, by the network that gives them."""
        return {
            name.removesuffix(_LOGITS): found
            for name, found in self.outputs.items()
            if name.endswith(_LOGITS)
        }

    def problems(self, tolerance: float) -> list[str]:
        """Names what is further apart than the tolerance."""
        found = [
            f"{network} layer {number}: {size.text}"
            for network, sizes in self.layers.items()
            for number, size in enumerate(sizes, 1)
            if not size.agrees(tolerance)
        ]
        found += [
            f"{name}: {size.text}"
            for name, size in self.outputs.items()
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
        """Returns everything for a JSON file."""
        return {
            "inputs": dict(self.inputs),
            "layers": {
                network: [size.as_dict() for size in sizes]
                for network, sizes in self.layers.items()
            },
            "outputs": {n: size.as_dict() for n, size in self.outputs.items()},
            "agreement": {
                name: {"equal": equal, "count": count}
                for name, (equal, count) in self.agreement.items()
            },
            "integers": {
                name: {"equal": equal, "count": count}
                for name, (equal, count) in self.integers.items()
            },
            "losses": {
                name: {"a": _number(a), "b": _number(b)}
                for name, (a, b) in self.losses.items()
            },
            "not_compared": dict(self.not_compared),
        }


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None


class ForwardCollector:
    """Adds up the differences of batch after batch."""

    def __init__(self) -> None:
        self.not_compared: dict[str, str] = {}
        self._layers: dict[str, list[RunningDifference]] = {}
        self._outputs: dict[str, RunningDifference] = {}
        self._counts: dict[str, dict[str, list[int]]] = {
            "agreement": {},
            "integers": {},
        }

    def add_layers(self, network: str, a: np.ndarray, b: np.ndarray) -> None:
        """Adds the outputs of a network's layers.

        Args:
          a: float [layers, tokens, H].
        """
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
        self._count("agreement", name, a, b)

    def add_integers(self, name: str, a: np.ndarray, b: np.ndarray) -> None:
        """Adds what must be the same."""
        self._count("integers", name, a, b)

    def _count(
        self, kind: str, name: str, a: np.ndarray, b: np.ndarray
    ) -> None:
        counts = self._counts[kind].setdefault(name, [0, 0])
        counts[0] += int(np.sum(np.asarray(a) == np.asarray(b)))
        counts[1] += int(np.size(b))

    def result(
        self,
        inputs: Mapping[str, int],
        losses: Mapping[str, tuple[float, float]],
    ) -> ForwardDifference:
        """Returns what was collected."""
        pairs = {
            kind: {name: (c[0], c[1]) for name, c in counts.items()}
            for kind, counts in self._counts.items()
        }
        return ForwardDifference(
            inputs=inputs,
            layers={
                network: tuple(layer.result() for layer in layers)
                for network, layers in self._layers.items()
            },
            outputs={n: o.result() for n, o in self._outputs.items()},
            agreement=pairs["agreement"],
            integers=pairs["integers"],
            losses=losses,
            not_compared=dict(self.not_compared),
        )
