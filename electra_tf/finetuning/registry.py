# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a task's name to the task."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from configure import hparams as hparam_rules
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.classification.glue import GLUE_TASKS
from electra_tf.finetuning.classification.task import (
    ClassificationTask,
    MultiLabelTask,
    RegressionTask,
)
from electra_tf.finetuning.schema import TaskSpec
from electra_tf.finetuning.tagging.task import (
    Chunking,
    NamedEntities,
    PartsOfSpeech,
    TaggingTask,
)
from electra_tf.finetuning.task import Task
from electra_tf.text.tokenization import FullTokenizer

# Tasks from data alone: a JSON file in the schema of `schema.py`.

if TYPE_CHECKING:
    from electra_tf.finetuning.task import Task

_CLASSES = {
    "classification": ClassificationTask,
    "regression": RegressionTask,
    "multilabel": MultiLabelTask,
    "tagging": TaggingTask,
}


def read_task_config(path: str) -> TaskSpec:
    """Reads a task's JSON file."""
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
    """Makes a task of its description."""
    if spec.type == "question_answering":
        from electra_tf.finetuning.question_answering import files

        return files.make_task(config, spec, tokenizer, directory)
    return _CLASSES[spec.type](config, spec, tokenizer, directory)


TaskMaker = Callable[[FinetuningConfig, FullTokenizer], Task]


def _glue(name: str) -> TaskMaker:
    return lambda config, tokenizer: make_task(
        config, GLUE_TASKS[name], tokenizer
    )


def _question_answering(module: str, class_name: str) -> TaskMaker:
    def make(config: FinetuningConfig, tokenizer: FullTokenizer) -> Task:
        import importlib

        room = "electra_tf.finetuning.question_answering"
        task_class = getattr(
            importlib.import_module(f"{room}.{module}"), class_name
        )
        return task_class(config, tokenizer)

    return make


TASKS: dict[str, TaskMaker] = {
    **{name: _glue(name) for name in GLUE_TASKS},
    "squad": _question_answering("files", "SQuAD"),
    "squadv1": _question_answering("files", "SQuADv1"),
    "newsqa": _question_answering("files", "NewsQA"),
    "naturalqs": _question_answering("files", "NaturalQuestions"),
    "triviaqa": _question_answering("files", "TriviaQA"),
    "searchqa": _question_answering("files", "SearchQA"),
    "chunk": Chunking,
    "ner": NamedEntities,
    "pos": PartsOfSpeech,
}


def get_tasks(
    config: FinetuningConfig, tokenizer: FullTokenizer | None = None
) -> list[Task]:
    """Returns the config's tasks, in the order of `task_names`.

    Source: google-research/electra, finetune/task_builder.py, get_tasks.
    """
    if tokenizer is None:
        tokenizer = FullTokenizer(
            config.vocab_file, config.do_lower_case, config.strip_accents
        )
    return [get_task(config, name, tokenizer) for name in config.task_names]


def get_task(
    config: FinetuningConfig, name: str, tokenizer: FullTokenizer
) -> Task:
    """Returns one task.

    Source: google-research/electra, finetune/task_builder.py, get_task.
    """
    own = None
    if config.task_config is not None:
        own = read_task_config(config.task_config)
        if own.name == name:
            return make_task(
                config, own, tokenizer, directory_of(config.task_config)
            )
    if name in TASKS:
        return TASKS[name](config, tokenizer)
    known = [*TASKS, *([own.name] if own else [])]
    near = hparam_rules.nearest_names(name, known)
    raise UserError(
        f"hparam task_names: unknown task {name}. Nearest: {', '.join(near)}."
        " A task of your own is described in a JSON file: --task_config"
    )
