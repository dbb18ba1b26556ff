# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks from data alone: a JSON file in the schema of `schema.py`.

{"name": "reviews", "type": "classification",
 "files": {"train": "train.csv", "dev": "dev.csv"},
 "columns": {"text_a": "review", "label": "stars"}}
"""

import os
from typing import TYPE_CHECKING

from configure import hparams as hparam_rules
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.classification.regression import RegressionTask
from electra_tf.finetuning.classification.task import (
    ClassificationTask,
    MultiLabelTask,
)
from electra_tf.finetuning.schema import TaskSpec
from electra_tf.finetuning.tagging.task import TaggingTask
from electra_tf.text.tokenization import FullTokenizer

if TYPE_CHECKING:
    from electra_tf.finetuning.task import Task

_CLASSES = {
    "classification": ClassificationTask,
    "regression": RegressionTask,
    "multilabel": MultiLabelTask,
    "tagging": TaggingTask,
}


def read_task_config(path: str) -> TaskSpec:
    """Reads a task's JSON file.

    Args:
      path: the value of the hparam `task_config`.

    Returns:
      The task as data.

    Raises:
      UserError: the file cannot be read, or does not describe a task.
    """
    if not path.endswith(".json"):
        raise UserError(
            f"hparam task_config: expected the path of a .json file, got"
            f" {path!r}"
        )
    spec = TaskSpec.from_dict(hparam_rules.read_hparams(path), path)
    for split in ("train", "dev"):
        if split not in spec.files:
            raise UserError(
                f"{path}: files: {split} is missing; name the file of the"
                f" {split} split"
            )
    return spec


def directory_of(path: str) -> str:
    """Returns what the relative paths in a task's JSON file start from."""
    return os.path.dirname(os.path.abspath(path))


def make_task(
    config: FinetuningConfig,
    spec: TaskSpec,
    tokenizer: FullTokenizer,
    directory: str | None = None,
) -> "Task":
    """Makes a task of its description.

    Args:
      config: the resolved hparams.
      spec: the task as data.
      tokenizer: splits its texts.
      directory: what relative paths start from; by default the task's own in
        the data directory.

    Returns:
      The task.
    """
    if spec.type == "question_answering":
        from electra_tf.finetuning.question_answering import custom

        return custom.make_task(config, spec, tokenizer, directory)
    return _CLASSES[spec.type](config, spec, tokenizer, directory)
