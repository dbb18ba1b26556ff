# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A head that transformers trained, as the head of a task of a run.

It has no task's name, and its labels may be in another order; a regression
answers in the units of the labels. What is evaluated or trained on gets the
names, the order and the scale of the task.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.formatting import join_names
from electra_tf.checkpoints.contents import TaskHead
from electra_tf.checkpoints.huggingface_heads import UNNAMED
from electra_tf.checkpoints.weights import MemoryWeights, View, Weights
from electra_tf.finetuning.classification import RegressionTask
from electra_tf.finetuning.described import head_hparams, heads_of
from electra_tf.finetuning.registry import find_spec
from electra_tf.finetuning.tagging import TaggingTask
from electra_tf.finetuning.task import Task

_SHOWN_LABELS = 12


def inherited_hparams(
    config: FinetuningConfig, weights: Weights
) -> dict[str, Any]:
    """Returns the hparams that heads of transformers bring to a run's tasks."""
    specs = {
        name: find_spec(config.task_config, name) for name in config.task_names
    }
    kinds = {name: spec.type for name, spec in specs.items() if spec}
    hparams: dict[str, Any] = {}
    for name in _matches(weights, kinds).values():
        hparams |= head_hparams(weights, name)
    length = weights.max_length
    if length is not None and length < config.max_seq_length:
        hparams["max_seq_length"] = length
    return {n: v for n, v in hparams.items() if not config.is_explicit(n)}


def _heads(weights: Weights) -> dict[str, TaskHead]:
    """Returns the heads that transformers trained."""
    heads = heads_of(weights)
    return {name: head for name, head in heads.items() if head.as_elsewhere}


def _matches(weights: Weights, kinds: Mapping[str, str]) -> dict[str, str]:
    """Returns the head of each task that has one: by name, else by kind."""
    heads, found = _heads(weights), {}
    for task, kind in kinds.items():
        if task in heads and heads[task].kind == kind:
            found[task] = task
    for name, head in heads.items():
        tasks = [t for t, kind in kinds.items() if kind == head.kind]
        if name not in found.values() and len(tasks) == 1:
            found.setdefault(tasks[0], name)
    return found


def with_inherited_heads(
    weights: Weights, tasks: Sequence[Task], is_training: bool = False
) -> tuple[Weights, list[str]]:
    """Returns weights whose heads are those of the tasks, and notes.

    A head of other labels is left out where it is trained, since a fresh one
    is; to evaluate one is a UserError.
    """
    heads = _heads(weights)
    if not heads:
        return weights, []
    matches = _matches(weights, {t.name: t.spec.type for t in tasks})
    specs = {
        name: spec
        for name, spec in weights.specs.items()
        if not name.startswith(tuple(f"task_specific/{n}/" for n in heads))
    }
    tensors, held, notes = {}, {}, []
    for task in tasks:
        name = matches.get(task.name)
        if name is None:
            if not is_training:
                kinds = [f"{head.kind}" for head in heads.values()]
                raise UserError(
                    f"{weights.path}: its head is of type {join_names(kinds)},"
                    " but"
                    f" task {task.name} is of type {task.spec.type}. Choose a"
                    " task of its type."
                )
            continue
        problem, order = _order_of_labels(task, heads[name], is_training)
        if problem and not is_training:
            raise UserError(f"{weights.path}: {problem}")
        if problem:
            reason = f"{weights.path}: {problem}"
            notes.append(f"{task.name}: a fresh head is trained. {reason}")
            continue
        tensors |= _tensors(weights, name, task, order)
        held[task.name] = task.head
        notes.append(f"{task.name}: the head of {weights.path} is used")
    found = View(weights, specs, None, MemoryWeights(tensors))
    found.heads = held
    return found, notes


def _tensors(
    weights: Weights, name: str, task: Task, order: list[int] | None
) -> dict[str, np.ndarray]:
    """Returns a head's variables, named, ordered and scaled as a task's."""
    old, new = f"task_specific/{name}/", f"task_specific/{task.name}/"
    tensors = {
        new + variable.removeprefix(old): weights.read(variable)
        for variable in weights.specs
        if variable.startswith(old)
    }
    kernel, bias = f"{new}dense/kernel", f"{new}dense/bias"
    if order is not None:
        tensors[kernel] = tensors[kernel][:, order]
        tensors[bias] = tensors[bias][order]
    is_scaled = weights.heads[name].range is not None
    if isinstance(task, RegressionTask) and not is_scaled:
        low, high = map(np.float32, task.value_range)
        tensors[kernel] = tensors[kernel] / (high - low)
        tensors[bias] = (tensors[bias] - low) / (high - low)
    return tensors


def _order_of_labels(
    task: Task, head: TaskHead, is_training: bool
) -> tuple[str, list[int] | None]:
    """Returns what keeps a head from being a task's, and its labels' order.

    The order is of the head's outputs; None leaves them as they are.
    """
    if isinstance(task, TaggingTask):
        return _take_tags(task, head, is_training), None
    theirs, ours = [*head.labels], [*task.head.labels]
    if not ours or theirs == ours:  # Numbers and questions have no labels.
        return "", None
    if {*theirs} == {*ours}:
        return "", [theirs.index(label) for label in ours]
    if len(theirs) == len(ours) and all(map(UNNAMED.fullmatch, theirs)):
        return "", None  # Nobody named them: they are in the task's order.
    return (
        f"its head has the labels {join_names(theirs, _SHOWN_LABELS)}; task"
        f" {task.name} has {join_names(ours, _SHOWN_LABELS)}. Describe the task"
        " with the labels of the head (--task_config)."
    ), None


def _take_tags(task: TaggingTask, head: TaskHead, is_training: bool) -> str:
    """Has a task learn a head's tags; returns what keeps it from that."""
    own = task.known_labels if is_training else {}
    task.use_labels_of_model(head.labels)
    others = [label for label in own if not task.knows(label)]
    if others:
        task.use_labels(own)
        return (
            f"its head has the labels {join_names(head.labels, _SHOWN_LABELS)};"
            f" the data of task {task.name} also {join_names(others)}"
        )
    return ""
