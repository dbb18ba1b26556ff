# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights, size and scores of an export's formats.

The formats are the SavedModel and its LiteRT and ONNX files. All formats are
scored on the same batches of ids.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.data.tfrecords import FEATURE_NAMES
from electra_tf.export.conversions import describe_weights, runner
from electra_tf.export.signatures import Inputs, ServingModule, TaskModule
from electra_tf.finetuning.task import Task

_SAVED_MODEL = "SavedModel"
Features = dict[str, np.ndarray]
Run = Callable[[Inputs], Mapping[str, Any]]


def check_scoring(module: ServingModule, split: str) -> None:
    """Raise a UserError if the formats cannot be scored on a split."""
    is_task = isinstance(module, TaskModule)
    if not is_task or type(module).scored_outputs is TaskModule.scored_outputs:
        raise UserError(
            "--score_split: no metric can be computed from the ids of a"
            f" {module.KIND} export; expected a task that classifies, rates,"
            " tags or answers. Remove --score_split."
        )
    if split not in module.task.get_dev_splits():
        splits = join_names(module.task.get_dev_splits())
        raise UserError(
            f"--score_split: task {module.task.name} has no labelled split"
            f" {split}. Pass one of: {splits}."
        )
    module.task.check_split(split)


def describe_formats(
    folder: str, module: ServingModule, split: str | None = None
) -> dict[str, dict[str, Any]]:
    """Return weight types, size and metrics of each format, by file path.

    Args:
      folder: an export.
      module: the module of the export.
      split: a labelled split of the task, on which the formats are scored;
        None: the formats are not scored.

    Returns:
      Facts by file; empty if the export contains only the SavedModel.
    """
    patterns = (os.path.join(folder, part) for part in ("lite/*", "onnx/*"))
    paths = [p for part in patterns for p in sorted(tf.io.gfile.glob(part))]
    if not paths:
        return {}
    size = _saved_model_bytes(folder)
    formats: dict[str, dict[str, Any]] = {
        _SAVED_MODEL: {"weights": "float32", "bytes": size}
    }
    for path in paths:
        formats[os.path.relpath(path, folder)] = {
            "weights": describe_weights(path),
            "bytes": tf.io.gfile.stat(path).length,
        }
    if split is not None and isinstance(module, TaskModule):
        # Formats are loaded in turn, so that only one format is in memory.
        formats[_SAVED_MODEL] |= _scores(module, _run_saved(folder), split)
        for path in paths:
            name = os.path.relpath(path, folder)
            formats[name] |= _scores(module, runner(path), split)
    return formats


def _saved_model_bytes(folder: str) -> int:
    patterns = (os.path.join(folder, p) for p in ("*.pb", "variables/*"))
    paths = itertools.chain.from_iterable(map(tf.io.gfile.glob, patterns))
    return sum(tf.io.gfile.stat(path).length for path in paths)


def _run_saved(folder: str) -> Run:
    loaded = tf.saved_model.load(folder)

    def run(inputs: Inputs) -> Mapping[str, tf.Tensor]:
        tensors = {n: tf.constant(v) for n, v in inputs._asdict().items()}
        # The reference to `loaded` in this function keeps `loaded` alive, which
        # the signatures require.
        outputs = loaded.signatures["serving_default"](**tensors)
        return {n: v for n, v in outputs.items() if v.dtype != tf.string}

    return run


def _scores(module: TaskModule, run: Run, split: str) -> dict[str, Any]:
    """Return the metrics of a format on a split, as evaluation computes them.

    Batches have `eval_batch_size` rows in the order of the data, and are as
    wide as their longest row. Batches affect the metrics, because ONNX's 8-bit
    products have a single range of values for a whole batch.
    """
    task, head = module.task, module.head
    scorer = task.get_scorer(split)
    n_rows = 0
    for features in _batches(task, split):
        longest = int(features["input_mask"].sum(1).max())
        inputs = Inputs(*(features[n][:, :longest] for n in FEATURE_NAMES))
        outputs = {n: tf.convert_to_tensor(v) for n, v in run(inputs).items()}
        results = module.scored_outputs(outputs, features)
        assert (
            results is not None
        )  # `check_scoring` refuses modules without scored outputs.
        results = {**results, "loss": head.loss(results, features)}
        for name in (*head.labels, "eid"):
            if f"{task.name}_{name}" in features:
                results[name] = features[f"{task.name}_{name}"]
        arrays = {name: np.asarray(value) for name, value in results.items()}
        for row in range(len(inputs.input_ids)):
            scorer.update({name: array[row] for name, array in arrays.items()})
        n_rows += len(inputs.input_ids)
    metrics = {f"{split} {n}": float(v) for n, v in scorer.get_results()}
    return {**metrics, f"{split} rows": n_rows}


def _batches(task: Task, split: str) -> Iterator[Features]:
    """Yield the features of a split, int32 or float32 [B, ...] each."""
    specs = task.get_feature_specs()
    dtypes = {
        s.name: np.int32 if s.is_int_feature else np.float32 for s in specs
    }
    zeros = {s.name: np.zeros(s.shape, dtypes[s.name]) for s in specs}
    rows = _rows(task, split)
    while batch := [*itertools.islice(rows, task.config.eval_batch_size)]:
        yield {
            name: np.array(
                [row.get(name, zeros.get(name)) for row in batch],
                dtypes.get(name, np.int32),
            )
            for name in {**zeros, **batch[0]}
        }


def _rows(task: Task, split: str) -> Iterator[dict[str, Any]]:
    for example in task.get_examples(split):
        rows = task.featurize(example, False)
        yield from rows if isinstance(rows, list) else [rows]
