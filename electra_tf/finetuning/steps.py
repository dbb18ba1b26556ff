# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The inner loops of fine-tuning: training steps, and predictions row by row.

Batches may differ in length. The graph is traced once for any length, so that
a continued run computes with the same graph as one that never stopped.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.training.loop import EvalLoop, TrainLoop, step_function

Features = dict[str, tf.Tensor]
Row = dict[str, np.ndarray]


class FinetuningLoop(TrainLoop):
    """A `TrainLoop` that is traced once for batches of any length.

    Args:
      element_spec: types of a batch; lengths may be None.
      jit_compile: make one XLA program of a step, for each length.
      **arguments: those of `TrainLoop`.
    """

    def __init__(
        self,
        *,
        element_spec: Any,
        jit_compile: bool = False,
        **arguments: Any,
    ) -> None:
        super().__init__(jit_compile=jit_compile, **arguments)
        self._run_step = step_function(
            self._distributed_step, jit_compile, [element_spec]
        )


class PredictLoop(EvalLoop):
    """An `EvalLoop` that hands the outputs of real rows to whoever asks.

    Args:
      task_names: in the order of their `task_id`.
      batch_size: rows of every batch.
      **arguments: those of `EvalLoop` besides what is read and measured.
    """

    def __init__(
        self, *, task_names: tuple[str, ...], batch_size: int, **arguments: Any
    ) -> None:
        self._task_names = task_names
        self._batch_size = batch_size
        self._dataset: tf.data.Dataset | None = None
        self._take: Callable[[str, Row], None] = lambda task, row: None
        self._traced: Any = None
        super().__init__(
            create_dataset=lambda: self._dataset,
            create_metrics=lambda: _Rows(self._task_names, self._take),
            outputs=self._flat_outputs,
            **arguments,
        )
        self._run_step = self._traced_step

    def predict(
        self, dataset: tf.data.Dataset, take: Callable[[str, Row], None]
    ) -> None:
        """Runs the model over a data set.

        Args:
          dataset: batches of all features.
          take: called with the task's name and the outputs of each row that
            is no padding, in the order of the data set.

        Raises:
          TrainingInterruptedError: a stop was asked for.
        """
        with tf.device("/cpu:0"):
            self._dataset = dataset
            self._take = take
            self.evaluate(tf.constant(-1))

    def _flat_outputs(
        self, features: Features, outputs: Mapping[str, Any]
    ) -> Features:
        flat = {"task_id": features["task_id"]}
        for name in self._task_names:
            for key, value in outputs[name].items():
                flat[f"{name}/{key}"] = value
        return flat

    def _traced_step(self, features: Features, index: tf.Tensor):
        if self._traced is None:
            spec = {
                name: tf.TensorSpec(
                    [self._batch_size, *element.shape[1:]], element.dtype
                )
                for name, element in self._dataset.element_spec.items()
            }
            self._traced = step_function(
                self._distributed_step,
                self._jit_compile,
                [spec, tf.TensorSpec([], tf.int32)],
            )
        return self._traced(features, index)


class _Rows:
    """Splits batches into rows and leaves out padding."""

    def __init__(
        self, task_names: tuple[str, ...], take: Callable[[str, Row], None]
    ) -> None:
        self._task_names = task_names
        self._take = take

    def update(self, arrays: Row, total_loss: float) -> None:
        """Takes the outputs of a batch."""
        del total_loss
        keys: dict[str, list[tuple[str, str]]] = {
            name: [
                (key, key.removeprefix(f"{name}/"))
                for key in arrays
                if key.startswith(f"{name}/")
            ]
            for name in self._task_names
        }
        for row, task_id in enumerate(arrays["task_id"]):
            if task_id < len(self._task_names):
                name = self._task_names[task_id]
                self._take(
                    name, {short: arrays[key][row] for key, short in keys[name]}
                )

    def result(self) -> dict[str, float]:
        """Nothing: the rows have gone where they should."""
        return {}
