# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a task's name to the task.

Source: google-research/electra, finetune/task_builder.py.
"""

import os
from collections.abc import Callable

from configure.config import nearest_names, read_hparams
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.classification import (
    ClassificationTask,
    MultiLabelTask,
    RegressionTask,
)
from electra_tf.finetuning.question_answering import QATask
from electra_tf.finetuning.schema import BUILT_IN, TaskSpec
from electra_tf.finetuning.tagging import TaggingTask
from electra_tf.finetuning.task import Task
from electra_tf.text.tokenization import FullTokenizer

_CLASSES = {
    "classification": ClassificationTask,
    "regression": RegressionTask,
    "multilabel": MultiLabelTask,
    "tagging": TaggingTask,
    "question_answering": QATask,
}


def make_task(
    config: FinetuningConfig,
    spec: TaskSpec,
    tokenizer: FullTokenizer,
    directory: str | None = None,
) -> Task:
    """Makes a task of its description."""
    return _CLASSES[spec.type](config, spec, tokenizer, directory)


def _make_built_in(
    name: str,
) -> Callable[[FinetuningConfig, FullTokenizer], Task]:
    return lambda config, tokenizer: make_task(
        config, BUILT_IN[name], tokenizer
    )


# A task of one's own in Python goes here, too.
TASKS: dict[str, Callable[[FinetuningConfig, FullTokenizer], Task]] = {
    **{name: _make_built_in(name) for name in BUILT_IN},
    "chunk": lambda config, tokenizer: TaggingTask(
        config, BUILT_IN["chunk"], tokenizer, type_change_starts_span=False
    ),
}


def get_tasks(
    config: FinetuningConfig, tokenizer: FullTokenizer | None = None
) -> list[Task]:
    """Returns the config's tasks, in the order of `task_names`."""
    if tokenizer is None:
        tokenizer = FullTokenizer(
            config.vocab_file, config.do_lower_case, config.strip_accents
        )
    return [get_task(config, name, tokenizer) for name in config.task_names]


def get_task(
    config: FinetuningConfig, name: str, tokenizer: FullTokenizer
) -> Task:
    """Returns one task."""
    own = None
    if config.task_config is not None:
        own = read_task_config(config.task_config)
        if own.name == name:
            directory = os.path.dirname(os.path.abspath(config.task_config))
            return make_task(config, own, tokenizer, directory)
    if name in TASKS:
        return TASKS[name](config, tokenizer)
    known = [*TASKS, *([own.name] if own else [])]
    near = nearest_names(name, known)
    raise UserError(
        f"hparam task_names: unknown task {name}. Nearest: {', '.join(near)}."
        " A task of your own is described in a JSON file: --task_config"
    )


def read_task_config(path: str) -> TaskSpec:
    """Reads a task's JSON file."""
    if not path.endswith(".json"):
        raise UserError(
            f"hparam task_config: expected the path of a .json file, got"
            f" {path!r}"
        )
    spec = TaskSpec.from_dict(read_hparams(path), path)
    for split in ("train", "dev"):
        if split not in spec.files:
            raise UserError(
                f"{path}: files: {split} is missing; name the file of the"
                f" {split} split"
            )
    return spec
