# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adaptation, to the tasks of a run, of heads that transformers trained.

A head of transformers has no task name, its labels may be in a different order,
and a regression head predicts in the units of the labels. Before such a head is
evaluated or trained, it is given the name of the task, the order of the task's
labels and their scale.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.checkpoints.contents import TaskHead
from electra_tf.checkpoints.huggingface_heads import UNNAMED
from electra_tf.checkpoints.weights import MemoryWeights, View, Weights
from electra_tf.finetuning.classification import RegressionTask
from electra_tf.finetuning.registry import find_spec
from electra_tf.finetuning.self_describing import described_heads, head_hparams
from electra_tf.finetuning.tagging import TaggingTask
from electra_tf.finetuning.task import Task

_SHOWN_LABELS = 12  # the maximum number of labels in a message


def inherited_hparams(
    weights: Weights,
    task_names: Sequence[str],
    task_config: str | None,
    max_seq_length: int,
) -> dict[str, Any]:
    """Return the hparams of a run that follow from heads of transformers.

    Args:
      weights: the checkpoint.
      task_names: the names of the run's tasks.
      task_config: the file that describes your own task; None: no file.
      max_seq_length: the run's maximum length, which a shorter maximum length
        of the model replaces.
    """
    types = {}
    for name in task_names:
        spec = find_spec(task_config, name)
        if spec:
            types[name] = spec.type
    hparams: dict[str, Any] = {}
    for name in _match_heads(_transformers_heads(weights), types).values():
        hparams |= head_hparams(weights, name)
    length = weights.max_length
    if length is not None and length < max_seq_length:
        hparams["max_seq_length"] = length
    return hparams


def _transformers_heads(weights: Weights) -> dict[str, TaskHead]:
    """Return the heads that transformers trained."""
    heads = described_heads(weights)
    return {name: head for name, head in heads.items() if head.as_elsewhere}


def _match_heads(
    heads: Mapping[str, TaskHead], types: Mapping[str, str]
) -> dict[str, str]:
    """Map tasks to the names of their heads by equal names, then by type.

    Args:
      heads: the heads by name.
      types: the types of the tasks by name.
    """
    matches = {}
    for task, task_type in types.items():
        if task in heads and heads[task].kind == task_type:
            matches[task] = task
    for name, head in heads.items():
        tasks = [t for t, task_type in types.items() if task_type == head.kind]
        if name not in matches.values() and len(tasks) == 1:
            matches.setdefault(tasks[0], name)
    return matches


def with_inherited_heads(
    weights: Weights, tasks: Sequence[Task], is_training: bool = False
) -> tuple[Weights, list[str]]:
    """Return weights with the heads of the tasks, and notes for the console.

    Args:
      weights: the weights of a checkpoint.
      tasks: the tasks of the run; heads may set labels of tagging tasks.
      is_training: whether the heads are trained. If so, a head with other
        labels is left out, and a fresh head is trained.

    Raises:
      UserError: a head to evaluate is of another type or has other labels.
    """
    heads = _transformers_heads(weights)
    if not heads:
        return weights, []
    matches = _match_heads(heads, {t.name: t.spec.type for t in tasks})
    prefixes = tuple(f"task_specific/{name}/" for name in heads)
    specs = {
        name: spec
        for name, spec in weights.specs.items()
        if not name.startswith(prefixes)
    }
    tensors: dict[str, np.ndarray] = {}
    inherited_heads: dict[str, TaskHead] = {}
    notes = []
    for task in tasks:
        name = matches.get(task.name)
        if name is None:
            if not is_training:
                types = join_names(head.kind for head in heads.values())
                raise UserError(
                    f"{weights.path}: its head is of type {types}; task"
                    f" {task.name} expects type {task.spec.type}. Set"
                    " task_names to a task of the head's type."
                )
            continue
        problem, order = _order_labels(task, heads[name], is_training)
        if problem and not is_training:
            raise UserError(f"{weights.path}: {problem}")
        if problem:
            notes.append(
                f"{task.name}: a fresh head is trained instead of the head in"
                f" {weights.path}: {problem}"
            )
            continue
        tensors |= _convert_head(weights, name, task, order)
        inherited_heads[task.name] = task.head
        notes.append(f"{task.name}: the head of {weights.path} is used")
    view = View(weights, specs, None, MemoryWeights(tensors))
    view.heads = inherited_heads
    return view, notes


def _convert_head(
    weights: Weights, name: str, task: Task, order: list[int] | None
) -> dict[str, np.ndarray]:
    """Return a head's variables with a task's name, label order and scale."""
    prefix, task_prefix = (
        f"task_specific/{name}/",
        f"task_specific/{task.name}/",
    )
    tensors = {
        task_prefix + variable.removeprefix(prefix): weights.read(variable)
        for variable in weights.specs
        if variable.startswith(prefix)
    }
    kernel, bias = f"{task_prefix}dense/kernel", f"{task_prefix}dense/bias"
    if order is not None:
        tensors[kernel] = tensors[kernel][:, order]
        tensors[bias] = tensors[bias][order]
    is_scaled = weights.heads[name].range is not None
    if isinstance(task, RegressionTask) and not is_scaled:
        low, high = map(np.float32, task.value_range)
        tensors[kernel] = tensors[kernel] / (high - low)
        tensors[bias] = (tensors[bias] - low) / (high - low)
    return tensors


def _order_labels(
    task: Task, head: TaskHead, is_training: bool
) -> tuple[str, list[int] | None]:
    """Return the reason why a head does not fit a task, and a label order.

    The reason is "" if the head fits. The order permutes the head's outputs;
    None keeps them.
    """
    if isinstance(task, TaggingTask):
        return _set_tags(task, head, is_training), None
    task.resolve_labels()
    head_labels, task_labels = [*head.labels], [*task.head.labels]
    # Regression and question answering have no labels.
    if not task_labels or head_labels == task_labels:
        return "", None
    if {*head_labels} == {*task_labels}:
        return "", [head_labels.index(label) for label in task_labels]
    if len(head_labels) == len(task_labels) and all(
        map(UNNAMED.fullmatch, head_labels)
    ):
        return "", None  # unnamed labels are assumed to be in the task's order
    return (
        "the head has the labels"
        f" {join_names(head_labels, _SHOWN_LABELS)}, but task {task.name} has"
        f" {join_names(task_labels, _SHOWN_LABELS)}. To use the head, pass a"
        " --task_config that describes the task with the labels of the head."
    ), None


def _set_tags(task: TaggingTask, head: TaskHead, is_training: bool) -> str:
    """Give a task the labels of a head, or return why the head does not fit.

    In training, the data may have labels that are unknown to the head.
    """
    data_labels: dict[str, int] = {}
    if is_training:
        task.resolve_labels()
        data_labels = task.label_mapping
    task.set_model_labels(head.labels)
    others = [label for label in data_labels if not task.has_label_for(label)]
    if others:
        task.set_labels(data_labels)
        return (
            "the head has the labels"
            f" {join_names(head.labels, _SHOWN_LABELS)}, but the data of task"
            f" {task.name} also has {join_names(others)}"
        )
    return ""
