# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The logs of one trial, and the picture drawn from them."""

import os
from typing import Any

from electra_tf.finetuning import report
from electra_tf.training import curves, summaries


class TrialLogs:
    """Rows of training and of evaluations, in files and for TensorBoard.

    Args:
      directory: the trial's.
      step: where it continues; later rows no longer count.
      title: above the picture.
    """

    def __init__(self, directory: str, step: int, title: str) -> None:
        self._directory = directory
        self._title = title
        self._train, self._evaluations = (
            summaries.JsonLines(os.path.join(directory, name), step)
            for name in (summaries.TRAIN_LOG, summaries.EVAL_LOG)
        )
        self._train_board, self._evaluation_board = (
            summaries.TensorBoard(directory, name, step)
            for name in ("train", "eval")
        )

    @property
    def train_sinks(self) -> tuple[Any, ...]:
        """What takes the rows of training."""
        return (self._train, self._train_board)

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        """The rows of the evaluations so far."""
        return self._evaluations.rows

    def write_evaluation(self, step: int, result: dict[str, float]) -> None:
        """Takes an evaluation.

        Args:
          step: updates done.
          result: figures by name.
        """
        self._evaluations.write(step, result)
        self._evaluation_board.write(step, result)

    def draw(self) -> None:
        """Draws the curves anew."""
        rows = self._evaluations.rows
        figures = [name for name in rows[-1] if name != "step"] if rows else []
        curves.draw_curves(
            self._directory,
            report.panels(figures),
            self._train.rows,
            rows,
            self._title,
        )
