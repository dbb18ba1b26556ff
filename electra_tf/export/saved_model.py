# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes a module as a SavedModel, with the files a person wants beside it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from electra_tf.export.question_answering import QuestionAnsweringModule
from electra_tf.export.signatures import ServingModule, TaskModule
from electra_tf.export.tagging import TaggingModule
from electra_tf.export.text_heads import (
    ClassificationModule,
    MultiLabelModule,
    RegressionModule,
    TextModule,
)
from electra_tf.finetuning.heads import (
    ClassificationHead,
    MultiLabelHead,
    QuestionAnsweringHead,
    RegressionHead,
    TaggingHead,
)
from electra_tf.modeling.layers import inference
from electra_tf.prediction.loading import FinetunedModel

# The served folder: numbered versions, each complete or not there.

_SAVED_MODEL = "saved_model.pb"


def existing(output_dir: str) -> list[int]:
    """Returns the versions in a served folder, the lowest first."""
    if not tf.io.gfile.isdir(output_dir):
        return []
    names = [name.rstrip("/") for name in tf.io.gfile.listdir(output_dir)]
    return sorted(int(name) for name in names if name.isdecimal())


def choose(output_dir: str, version: int | None, overwrite: bool) -> int:
    """Decides what number an export gets.

    Args:
      version: the number asked for; None: the next, or with `overwrite` the
        highest there is.
    """
    if tf.io.gfile.exists(output_dir) and not tf.io.gfile.isdir(output_dir):
        raise UserError(
            f"--output_dir: {output_dir} is a file; name a folder, which gets"
            " <version>/saved_model.pb."
        )
    _refuse_strangers(output_dir)
    there = existing(output_dir)
    if version is None:
        highest = max(there, default=0)
        version = max(highest, 1) if overwrite else highest + 1
    if version < 1:
        raise UserError(f"--version: expected 1 or more, got {version}.")
    folder = os.path.join(output_dir, str(version))
    if version in there and tf.io.gfile.listdir(folder):
        if not overwrite:
            raise UserError(
                f"{folder} is there already; choose another --version (the"
                f" next is {max(there) + 1}), or replace it with --overwrite."
            )
        if not tf.io.gfile.exists(os.path.join(folder, _SAVED_MODEL)):
            raise UserError(
                f"{folder} holds no {_SAVED_MODEL}, so it is no export;"
                " --overwrite replaces exports only. Choose another"
                " --output_dir."
            )
    return version


@contextlib.contextmanager
def writing(
    output_dir: str, version: int | None, overwrite: bool
) -> Iterator[tuple[str, str]]:
    """Gives a folder to write a version to; it gets its name at the end."""
    number = choose(output_dir, version, overwrite)
    final = os.path.join(output_dir, str(number))
    part = os.path.join(output_dir, f"{number}.part")
    try:
        if tf.io.gfile.exists(part):  # of an export that was killed
            tf.io.gfile.rmtree(part)
        tf.io.gfile.makedirs(part)
    except (OSError, tf.errors.OpError) as error:
        raise UserError(
            f"--output_dir: {output_dir} cannot be written: {error}"
        ) from error
    try:
        yield part, final
        if tf.io.gfile.exists(final):
            tf.io.gfile.rmtree(final)
        tf.io.gfile.rename(part, final)
    except (OSError, tf.errors.OpError) as error:
        raise UserError(f"{final} cannot be written: {error}") from error
    finally:
        if tf.io.gfile.exists(part):
            tf.io.gfile.rmtree(part)


def _refuse_strangers(output_dir: str) -> None:
    """Raises where a folder holds what is no export."""
    if not tf.io.gfile.isdir(output_dir):
        return
    names = [name.rstrip("/") for name in tf.io.gfile.listdir(output_dir)]
    others = sorted(
        name
        for name in names
        if not (name.isdecimal() or name.removesuffix(".part").isdecimal())
        and not name.startswith(".")
    )
    if others:
        raise UserError(
            f"--output_dir: {output_dir} holds other files"
            f" ({', '.join(others[:3])}); expected a folder of exported"
            " versions, or one that is not there yet."
        )


EXTRA = "assets.extra"
CONFIG_FILE = "config.json"
LABELS_FILE = "labels.txt"
VOCAB_FILE = "vocab.txt"


def export(
    module: ServingModule,
    output_dir: str,
    version: int | None = None,
    overwrite: bool = False,
    finish: Callable[[str], None] | None = None,
) -> str:
    """Writes `<output_dir>/<version>/`, which TensorFlow Serving can load.

    Beside the SavedModel's own files, `assets.extra/` holds config.json,
    labels.txt (one a line, where there are labels) and vocab.txt, for people
    and programs that do not load the model; the same is inside.

    Args:
      version: None: one more than the highest there is, or 1.
    """
    with writing(output_dir, version, overwrite) as (folder, final):
        root = module.root()  # What can be trained is traced here.
        with inference():
            save(root, folder, module.signatures())
        for name, part in module.parts().items():
            save(part, os.path.join(folder, name))
        write_extras(module, folder)
        if finish is not None:
            finish(folder)
    return final


def save(
    root: Any,
    folder: str,
    signatures: Mapping[str, Any] | None = None,
) -> None:
    """Writes a SavedModel, with gradients: it can be trained after loading."""
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(root, folder, signatures, options)


def write_extras(module: ServingModule, folder: str) -> None:
    """Writes config, labels and vocabulary into `assets.extra/`."""
    extra = os.path.join(folder, EXTRA)
    tf.io.gfile.makedirs(extra)
    settings = module.settings
    text = json.dumps(module.config(), indent=2, ensure_ascii=False)
    write_text(os.path.join(extra, CONFIG_FILE), f"{text}\n")
    if settings.labels:
        lines = "".join(f"{label}\n" for label in settings.labels)
        write_text(os.path.join(extra, LABELS_FILE), lines)
    tf.io.gfile.copy(
        settings.vocab_file, os.path.join(extra, VOCAB_FILE), overwrite=True
    )


def write_text(path: str, text: str) -> None:
    """Writes a text file in UTF-8."""
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(text.encode())


# Which head makes which module.

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
    """Makes the module of one task of a fine-tuned model."""
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
