# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The registry that turns the names in `task_names` into tasks.

`built_in` describes the built-in tasks; a JSON file, passed as `--task_config`,
describes your own task.

Source: google-research/electra, finetune/task_builder.py.
"""

import os
from collections.abc import Callable

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.suggestions import suggest_names
from electra_tf.finetuning.built_in import BUILT_IN
from electra_tf.finetuning.classification import (
    ClassificationTask,
    MultiLabelTask,
    RegressionTask,
)
from electra_tf.finetuning.question_answering import QATask
from electra_tf.finetuning.summarization import SummarizationTask
from electra_tf.finetuning.tagging import TaggingTask
from electra_tf.finetuning.task import Task
from electra_tf.finetuning.task_description import TaskSpec, read_task_config
from electra_tf.text.opening import open_tokenizer
from electra_tf.text.tokenization import Tokenizer

TYPES: dict[str, type[Task]] = {
    "classification": ClassificationTask,
    "regression": RegressionTask,
    "multilabel": MultiLabelTask,
    "tagging": TaggingTask,
    "question_answering": QATask,
    "summarization": SummarizationTask,
}


# The tasks that need more than a description. Add your own task in Python here.
TASKS: dict[str, Callable[[FinetuningConfig, Tokenizer], Task]] = {
    "chunk": lambda config, tokenizer: TaggingTask(
        config, BUILT_IN["chunk"], tokenizer, type_change_starts_span=False
    )
}


def get_tasks(
    config: FinetuningConfig, tokenizer: Tokenizer | None = None
) -> list[Task]:
    """Return the tasks of the config, in the order of `task_names`."""
    if tokenizer is None:
        tokenizer = open_tokenizer(
            config.vocab_file, config.do_lower_case, config.strip_accents
        )
    return [get_task(config, name, tokenizer) for name in config.task_names]


def get_task(config: FinetuningConfig, name: str, tokenizer: Tokenizer) -> Task:
    """Return the task with a given name.

    Raises:
      UserError: no task has the name, or the files of its description are
        outside the folder of the description.
    """
    described_names = []
    if config.task_config is not None:
        spec = read_task_config(config.task_config)
        described_names.append(spec.name)
        if spec.name == name:
            directory = os.path.dirname(os.path.abspath(config.task_config))
            if not config.allow_outside_files:
                _refuse_outside_files(spec, config.task_config, directory)
            return TYPES[spec.type](config, spec, tokenizer, directory)
    if name in TASKS:
        return TASKS[name](config, tokenizer)
    if name in BUILT_IN:
        spec = BUILT_IN[name]
        return TYPES[spec.type](config, spec, tokenizer)
    known = BUILT_IN | TASKS
    nearest = suggest_names(name, [*known, *described_names])
    raise UserError(
        f"hparam task_names: unknown task {name}. {nearest}. Describe your own"
        " task in a JSON file and pass the file as --task_config."
    )


def _refuse_outside_files(spec: TaskSpec, path: str, directory: str) -> None:
    """Raise a UserError if a description names files outside its folder.

    Otherwise, a description from a stranger could make the program read any
    file of the user.
    """
    for split, file in spec.files.items():
        full = os.path.normpath(os.path.join(directory, file))
        if os.path.commonpath([directory, full]) != directory:
            raise UserError(
                f"{path}: files.{split}: {file!r} is outside the folder of the"
                " description; expected a path inside the folder. Move the file"
                " into this folder, or pass --allow_outside_files if you trust"
                " the description."
            )


def find_spec(task_config: str | None, name: str) -> TaskSpec | None:
    """Return the description of a task; None for a task written in Python."""
    if task_config is not None:
        spec = read_task_config(task_config)
        if spec.name == name:
            return spec
    return BUILT_IN.get(name)
