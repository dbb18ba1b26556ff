# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which head makes which module."""

from __future__ import annotations

from configure.errors import UserError
from electra_tf.export.question_answering import QuestionAnsweringModule
from electra_tf.export.tagging import TaggingModule
from electra_tf.export.task_module import TaskModule
from electra_tf.export.text_heads import (
    ClassificationModule,
    MultiLabelModule,
    RegressionModule,
    TextModule,
)
from electra_tf.finetuning.classification.head import (
    ClassificationHead,
    MultiLabelHead,
    RegressionHead,
)
from electra_tf.finetuning.question_answering.head import QuestionAnsweringHead
from electra_tf.finetuning.tagging.head import TaggingHead
from electra_tf.prediction.loading import FinetunedModel

# Class of a task's head -> class of the module that serves it.
TASK_MODULES: dict[type, type[TaskModule]] = {
    ClassificationHead: ClassificationModule,
    MultiLabelHead: MultiLabelModule,
    RegressionHead: RegressionModule,
    QuestionAnsweringHead: QuestionAnsweringModule,
    TaggingHead: TaggingModule,
}


def make_task_module(
    loaded: FinetunedModel,
    task_name: str | None = None,
    rows_at_once: int = 0,
) -> TaskModule:
    """Makes the module of one task of a fine-tuned model.

    Args:
      loaded: the model.
      task_name: which task; may be left out where there is only one.
      rows_at_once: see `TextModule`.

    Raises:
      UserError: no such task, several and none named, a head of a kind
        that nothing here serves, or `rows_at_once` for one that answers
        otherwise than once per text.
    """
    index = loaded.task_index(task_name)
    head, task = loaded.model.heads[index], loaded.tasks[index]
    for head_class, module_class in TASK_MODULES.items():
        if isinstance(head, head_class):
            if issubclass(module_class, TextModule):
                return module_class(loaded, task, rows_at_once)
            if rows_at_once:
                raise UserError(
                    f"--rows_at_once: task {task.name} is no classification or"
                    " regression of whole texts; leave it out."
                )
            return module_class(loaded, task)
    raise UserError(
        f"task {task.name} has a {type(head).__name__}, which cannot be"
        " exported; register a module for it in TASK_MODULES of"
        " electra_tf/export/modules.py."
    )
