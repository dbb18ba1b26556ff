# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Export of a module as a version that TensorFlow Serving can load."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator

import tensorflow as tf

from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.export import heads
from electra_tf.export.question_answering import QuestionAnsweringModule
from electra_tf.export.signatures import ServingModule, TaskModule
from electra_tf.export.summarization import SummarizationModule
from electra_tf.export.tagging import TaggingModule
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import write_digests
from electra_tf.files.reading import read_bytes
from electra_tf.finetuning import heads as task_heads
from electra_tf.modeling.graph_modes import inference
from electra_tf.prediction.loading import FinetunedModel
from electra_tf.text.settings_files import read_settings
from electra_tf.text.tokenizer_settings import TOKENIZER_CONFIG, settings_text

EXTRA = "assets.extra"
_SAVED_MODEL = "saved_model.pb"
# The module class for each head class. The first head class that matches is
# used.
TASK_MODULES: dict[type, type[TaskModule]] = {
    task_heads.ClassificationHead: heads.ClassificationModule,
    task_heads.MultiLabelHead: heads.MultiLabelModule,
    task_heads.RegressionHead: heads.RegressionModule,
    task_heads.QuestionAnsweringHead: QuestionAnsweringModule,
    # SummarizationHead must precede its base class, TaggingHead.
    task_heads.SummarizationHead: SummarizationModule,
    task_heads.TaggingHead: TaggingModule,
}


def make_task_module(
    loaded: FinetunedModel,
    task_name: str | None = None,
    rows_at_once: int | None = None,
) -> TaskModule:
    """Return the module of one task of a fine-tuned model.

    Args:
      task_name: the name of the task; None: the only task.
      rows_at_once: the number of texts that are computed together; 0: all;
        None: the default of `TextModule`.

    Raises:
      UserError: the task does not exist, or its head cannot be exported.
    """
    index = loaded.task_index(task_name)
    head, task = loaded.model.heads[index], loaded.tasks[index]
    classes = (m for h, m in TASK_MODULES.items() if isinstance(head, h))
    module_class = next(classes, None)
    if module_class is None:
        raise UserError(
            f"task {task.name}: a {type(head).__name__} cannot be exported."
            " Register a module for this class in TASK_MODULES of"
            " electra_tf/export/saved_model.py."
        )
    if issubclass(module_class, heads.TextModule):
        if rows_at_once is None:
            return module_class(loaded, task)
        return module_class(loaded, task, rows_at_once)
    if rows_at_once is not None:
        raise UserError(
            f"--rows_at_once: task {task.name} does not classify or rate whole"
            " texts. Remove --rows_at_once."
        )
    return module_class(loaded, task)


def export(
    module: ServingModule,
    output_dir: str,
    version: int | None = None,
    overwrite: bool = False,
    finish: Callable[[str], None] | None = None,
) -> str:
    """Write `<output_dir>/<version>/`, which TensorFlow Serving can load.

    Besides the SavedModel, `assets.extra/` contains config.json, vocab.txt and,
    if there are labels, labels.txt (one per line), for people and programs that
    do not load the model.

    Args:
      version: the number of the version; None: one more than the highest, or 1.
      overwrite: whether to replace an existing version.
      finish: a function that writes further files to a folder before the folder
        gets its final name.

    Returns:
      The path of the version.

    Raises:
      UserError: `output_dir` contains other files, or cannot be written.
    """
    with writing(output_dir, version, overwrite) as (folder, final):
        # `root` traces functions for training, so this call precedes
        # `inference()`.
        root = module.root()
        # Gradients are saved, so that the loaded model can be trained.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        with inference():
            tf.saved_model.save(root, folder, module.signatures(), options)
        for name, part in module.parts().items():
            path = os.path.join(folder, name)
            tf.saved_model.save(part, path, options=options)
        config = module.config()
        extras = {
            "config.json": json.dumps(config, indent=2, ensure_ascii=False)
            + "\n",
            "vocab.txt": read_bytes(module.loaded.config.vocab_file),
        }
        settings = read_settings(module.loaded.config.vocab_file)
        if text := settings_text(settings):
            extras[TOKENIZER_CONFIG] = text
        if labels := config["labels"]:
            extras["labels.txt"] = "".join(f"{label}\n" for label in labels)
        for name, content in extras.items():
            write_atomically(os.path.join(folder, EXTRA, name), content)
        if finish is not None:
            finish(folder)
        write_digests(folder)
    return final


@contextlib.contextmanager
def writing(
    output_dir: str, version: int | None, overwrite: bool
) -> Iterator[tuple[str, str]]:
    """Yield the folder to write a version to, and its final name.

    The folder gets the final name after the last statement of the `with` block.
    """
    number = choose_version(output_dir, version, overwrite)
    final = os.path.join(output_dir, str(number))
    part = f"{final}.part"

    def remove(folder: str) -> None:
        if tf.io.gfile.exists(folder):
            tf.io.gfile.rmtree(folder)

    try:
        remove(part)  # An export that was killed may have left this folder.
        tf.io.gfile.makedirs(part)
        yield part, final
        remove(final)
        tf.io.gfile.rename(part, final)
    except (OSError, tf.errors.OpError) as error:
        raise UserError(
            f"--output_dir: {final} cannot be written: {error}. Choose another"
            " folder."
        ) from error
    finally:
        with contextlib.suppress(OSError, tf.errors.OpError):
            remove(part)


def choose_version(
    output_dir: str, version: int | None, overwrite: bool
) -> int:
    """Return the requested version, or by default the next version.

    With `overwrite`, the default is the highest version.

    Raises:
      UserError: the version cannot be written.
    """
    names: list[str] = []
    if tf.io.gfile.isdir(output_dir):
        names = [n.rstrip("/") for n in tf.io.gfile.listdir(output_dir)]
    elif tf.io.gfile.exists(output_dir):
        raise UserError(
            f"--output_dir: {output_dir} is a file; expected a folder,"
            f" in which <version>/{_SAVED_MODEL} is written. Choose a folder."
        )
    version_name = re.compile(r"\d+(\.part)?|\..*")
    if others := sorted(n for n in names if not version_name.fullmatch(n)):
        raise UserError(
            f"--output_dir: {output_dir} contains other files"
            f" ({join_names(others, limit=3)}); expected a folder of exported"
            " versions only. Choose a new folder."
        )
    highest = max((int(n) for n in names if n.isdecimal()), default=0)
    if version is None:
        version = max(highest, 1) if overwrite else highest + 1
    if version < 1:
        raise UserError(
            f"--version is {version}; expected 1 or more. Pass a larger number."
        )
    folder = os.path.join(output_dir, str(version))
    if str(version) in names and tf.io.gfile.listdir(folder):
        if not overwrite:
            raise UserError(
                f"{folder} exists. Choose another --version (the next is"
                f" {highest + 1}), or pass --overwrite to replace this version."
            )
        if not tf.io.gfile.exists(os.path.join(folder, _SAVED_MODEL)):
            raise UserError(
                f"{folder}: no {_SAVED_MODEL}; --overwrite replaces only"
                " exported models. Choose another --output_dir."
            )
    return version
