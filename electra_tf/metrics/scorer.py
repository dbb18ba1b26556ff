# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What every scorer promises: collect predictions, then report figures."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any


class Scorer(abc.ABC):
    """Collects a task's predictions one by one and turns them into figures.

    A subclass extends `update` (calling `super().update(results)`) and
    defines `get_loss` and `_get_results`. The figures are computed once
    per set of predictions: asking again without an update is free.

    Source: finetune/scorer.py.
    """

    def __init__(self) -> None:
        self._updated = False
        self._cached_results: list[tuple[str, float]] = []

    @abc.abstractmethod
    def update(self, results: Mapping[str, Any]) -> None:
        """Takes in the outputs of one example.

        Args:
            results: The head's outputs for one row of a batch: NumPy arrays
                without the batch axis, scalars included.
        """
        self._updated = True

    @abc.abstractmethod
    def get_loss(self) -> float:
        """The loss over everything seen so far, as this scorer reports it."""

    @abc.abstractmethod
    def _get_results(self) -> list[tuple[str, float]]:
        """Computes the figures; `get_results` remembers them."""

    def get_results(self, prefix: str = "") -> list[tuple[str, float]]:
        """The figures in the order they are printed."""
        if self._updated:
            self._cached_results = self._get_results()
            self._updated = False
        return [(prefix + name, value) for name, value in self._cached_results]

    def get_details(self) -> list[tuple[str, float]]:
        """Figures beyond the original's, for the console and the JSON file.

        The original's text and pickle files hold `get_results` only.
        """
        return []

    def single_prediction(self) -> Any | None:
        """What is predicted for every single example, where it is one thing.

        A model that always gives the same answer, though the labels differ,
        has collapsed: its figures say nothing about what it has learned.

        Returns:
            The only prediction there is; None for a model that tells
            examples apart, and where the question makes no sense.
        """
        return None

    def results_str(self) -> str:
        """The figures on one line, `name: 12.34 - name: 5.60`."""
        return " - ".join(
            f"{name}: {value:.2f}" for name, value in self.get_results()
        )
