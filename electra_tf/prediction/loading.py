# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loaders of models from the folders of runs and from checkpoints.

`load_finetuned` loads fine-tuned models, `load_pretrained` pre-training runs
and checkpoints of any kind.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from configure.config import TOKENIZER_HPARAMS
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import formats, tf1
from electra_tf.checkpoints.assignment import assign
from electra_tf.checkpoints.contents import TaskHead
from electra_tf.checkpoints.hub import hub_hint
from electra_tf.checkpoints.weights import Weights, repeat_segment_row
from electra_tf.finetuning.built_in import BUILT_IN
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.registry import get_tasks
from electra_tf.finetuning.self_describing import (
    make_config,
    make_tasks,
    open_described,
)
from electra_tf.finetuning.task import TASK_FILE, Task
from electra_tf.modeling.encoder import Encoder
from electra_tf.pretraining.loading import PretrainedModel, read_pretrained
from electra_tf.pretraining.loading import load_pretrained as load_pretrained
from electra_tf.text.casing import resolve_casing
from electra_tf.text.opening import open_tokenizer
from electra_tf.text.tokenization import Tokenizer
from electra_tf.text.vocabulary import check_vocab, refuse_other_vocab
from electra_tf.training import best_checkpoint, checkpointing


@dataclasses.dataclass(frozen=True)
class FinetunedModel:
    """A fine-tuned model, its tasks and its tokenizer.

    Attributes:
      config: the hparams, with current paths.
      tasks: the tasks, in the order of the heads.
      model: the network with its weights.
      tokenizer: the tokenizer that the model was trained with.
      folder: the run's folder, with config.json, vocab.txt and checkpoints.
      checkpoint: the prefix of the weights.
      global_step: the number of updates; None if the file does not contain it.
      max_length: the number of wordpieces that the tokenizer cuts texts to;
        None if no file contains it.
    """

    config: FinetuningConfig
    tasks: tuple[Task, ...]
    model: FinetuningModel
    tokenizer: Tokenizer
    folder: str
    checkpoint: str
    global_step: int | None
    max_length: int | None = None

    def task(self, name: str | None = None) -> Task:
        """Return a task by name, or the only task."""
        return self.tasks[self.task_index(name)]

    def task_index(self, name: str | None = None) -> int:
        """Return the index of a task by name, or the index of the only task."""
        names = [task.name for task in self.tasks]
        if name is None and len(names) == 1:
            return 0
        if name in names:
            return names.index(name)
        problem = "has several tasks"
        if name is not None:
            problem = f"has no task {name}"
        raise UserError(
            f"{self.folder}: the model {problem}. Pass one of the model's"
            f" tasks: {', '.join(names)}"
        )


def load_finetuned(folder: str, **overrides: Any) -> FinetunedModel:
    """Load a fine-tuned model; its training data is not needed.

    Args:
      folder: the folder of the run or of a trial, a checkpoint, or a Hugging
        Face folder.
      **overrides: hparams.
    """
    home, checkpoint = find_run(folder)
    config, tokenizer, tasks = read_run(folder, **overrides)
    model = FinetuningModel(config, tasks)
    weights = formats.open_weights(checkpoint)
    if {task.head.kind for task in tasks} == {"tagging"}:
        weights = repeat_segment_row(weights, 1)
    if weights.vocab_file:
        refuse_other_vocab(config.vocab_file, weights.vocab_file, home)
    try:
        assign(weights, model.variables)
    except UserError as error:
        if weights.kind == "huggingface":
            raise
        raise UserError(
            f"{error}\n(The model was built from {home}/"
            f"{checkpointing.CONFIG_FILE} with the labels of the run. If the"
            " task or its labels have changed since, restore them, or"
            " retrain.)"
        ) from error
    return FinetunedModel(
        config=config,
        tasks=tuple(tasks),
        model=model,
        tokenizer=tokenizer,
        folder=home,
        checkpoint=checkpoint,
        global_step=weights.global_step,
        max_length=weights.max_length,
    )


def read_run(
    folder: str, **overrides: Any
) -> tuple[FinetuningConfig, Tokenizer, list[Task]]:
    """Return a fine-tuned model's hparams, tokenizer and tasks.

    No weights are read.
    """
    weights = open_described(folder)
    if weights:
        config = make_config(weights, overrides)
    else:
        home, _ = find_run(folder)
        config = _read_config(home, overrides)
    check_vocab(config.vocab_file)
    tokenizer = open_tokenizer(
        config.vocab_file, config.do_lower_case, config.strip_accents
    )
    if weights:
        return config, tokenizer, make_tasks(config, tokenizer, weights)
    # Path of the task's description, as an argument or the run states it.
    path = config.task_config
    is_argument = config.origins.get("task_config") == "argument"
    copy = None
    if path and not is_argument:
        copy = _find_description(home)
    if path and not copy and not tf.io.gfile.exists(path):
        raise UserError(
            f"{path}: no such file; expected the description of the task that"
            f" {home} was trained on. Pass the current path of the description:"
            " --task_config=FILE"
        )
    if not copy:
        tasks = get_tasks(config, tokenizer)
    else:
        # Data files outside of the description's folder are allowed, because
        # these files are not read.
        task_config = dataclasses.replace(
            config, task_config=copy, allow_outside_files=True
        )
        tasks = get_tasks(task_config, tokenizer)
    for task in tasks:
        if copy and task.directory == os.path.dirname(os.path.abspath(copy)):
            # Paths of the data are relative to the user's description, not to
            # the copy.
            task.directory = os.path.dirname(os.path.abspath(path))
        if not task.load_model_labels(home) and task.labels_path():
            task.load_model_labels(config.preprocessed_data_dir)
        task.resolve_labels()
    return config, tokenizer, tasks


def _find_description(home: str) -> str | None:
    """Return the path of a run's task description; None if it is missing."""
    path = os.path.join(home, TASK_FILE)
    return path if tf.io.gfile.exists(path) else None


def read_heads(weights: Weights, path: str) -> dict[str, TaskHead]:
    """Return the heads of a run's tasks, or of a checkpoint's known tasks."""
    if is_finetuned(path):
        return {
            task.name: dataclasses.replace(
                task.head, max_length=task.config.max_seq_length
            )
            for task in read_run(path)[-1]
        }
    names = (name for name in weights.contents.tasks if name in BUILT_IN)
    return {
        name: TaskHead(BUILT_IN[name].type, BUILT_IN[name].labels or ())
        for name in names
    }


def is_finetuned(path: str) -> bool:
    """Return whether a path contains a fine-tuned model."""
    home = formats.find_model_folder(
        formats.resolve_reference(path).rstrip("/") or "/"
    )
    if "task_names" in (checkpointing.read_config(home) or {}):
        return True
    return open_described(path) is not None


def load(
    path: str,
    vocab_file: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> FinetunedModel | PretrainedModel:
    """Load a fine-tuned or a pre-trained model."""
    if not is_finetuned(path):
        return load_pretrained(path, vocab_file, overrides)
    hparams = dict(overrides or {})
    if vocab_file:
        hparams["vocab_file"] = vocab_file
    return load_finetuned(path, **hparams)


def read_settings(
    path: str, vocab_file: str | None = None
) -> FinetuningConfig | PretrainingConfig:
    """Return a fine-tuned or pre-trained model's hparams; read no weights."""
    if not is_finetuned(path):
        return read_pretrained(path, vocab_file)[1]
    overrides = {"vocab_file": vocab_file} if vocab_file else {}
    if weights := open_described(path):
        return make_config(weights, overrides)
    return _read_config(find_run(path)[0], overrides)


def select_encoder(
    loaded: FinetunedModel | PretrainedModel,
    purpose: str,
    part: str = "encoder",
) -> Encoder:
    """Return one encoder of a model, selected by `part`.

    Args:
      loaded: the model.
      purpose: the command or feature that needs the encoder, for messages.
      part: "encoder": the discriminator's or a masked LM's encoder;
        "generator": the generator's encoder; "any": the generator's if there is
        no discriminator.

    Raises:
      UserError: the model has no such encoder, or lacks some of its weights.
    """
    if isinstance(loaded, FinetunedModel):
        if part == "generator":
            raise UserError(
                f"{loaded.folder}: a fine-tuned model has no generator."
                " Pass a pre-trained model."
            )
        return loaded.model.encoder
    model = loaded.model
    if part == "any":
        part = "generator" if loaded.is_generator_alone else "encoder"
    if part == "encoder" and model.discriminator is not None:
        encoder = model.discriminator
        reason = loaded.lacks_discriminator(with_head=False)
    else:
        encoder = model.generator
        reason = loaded.lacks_generator(with_head=False)
    if reason is None and isinstance(encoder, Encoder):
        return encoder
    raise UserError(
        f"{reason or f'{loaded.path} has two towers'}; {purpose} needs one"
        " encoder with all its weights. Pass the run's model directory, or a"
        " checkpoint that contains this encoder."
    )


def find_run(folder: str) -> tuple[str, str]:
    """Return the folder of a run, and the prefix of its weights.

    Args:
      folder: a run's folder, a checkpoint, or a Hugging Face folder.

    Raises:
      UserError: the folder contains no fine-tuned model.
    """
    if weights := open_described(folder):
        return weights.path, weights.path
    path = formats.resolve_reference(folder).rstrip("/") or "/"
    path = path.removesuffix(".index")
    _refuse_other_head(path)
    checkpoint = None
    if not tf.io.gfile.isdir(path):
        if not tf.io.gfile.exists(path + ".index"):
            hint = _path_hint(path, folder)
            raise UserError(f"{path}: no such folder or checkpoint.{hint}")
        path, checkpoint = os.path.dirname(path) or ".", path
    home = formats.find_model_folder(path)
    if not _has_config(home):
        raise UserError(
            f"{path}: no {checkpointing.CONFIG_FILE}; expected the folder of a"
            " trial (..._model_1) of run_finetuning, or its folder"
            f" {formats.BEST}. Pass the path of a trial."
        )
    if checkpoint is None and home != path:
        checkpoint = tf1.find_latest(path)
    elif checkpoint is None:
        checkpoint = best_checkpoint.find_best_or_latest(home)
    if checkpoint is None:
        raise UserError(
            f"{path}: no model.ckpt-<step>; the run has not saved a"
            " checkpoint, or its checkpoints were removed. Continue the run,"
            " or pass another folder."
        )
    return home, checkpoint


def _path_hint(path: str, folder: str) -> str:
    """Return a remedy for a path that does not exist."""
    candidates = sorted(tf.io.gfile.glob(f"{path}_*"))
    trials = [*filter(_has_config, candidates)][:3]
    if trials:
        return f" Pass an existing folder, such as {', '.join(trials)}."
    remedy = " Pass the path of an existing folder or checkpoint."
    return remedy + hub_hint(folder)


def _refuse_other_head(path: str) -> None:
    """Raise a UserError for a Hugging Face folder without a task's head."""
    if not (
        tf.io.gfile.isdir(path) and formats.find_hugging_face_weights(path)
    ):
        return
    weights = formats.open_weights(path)
    reasons = [text for text in weights.dropped.values() if "head of" in text]
    classes = (checkpointing.read_config(path) or {}).get("architectures")
    if reasons:
        what = reasons[0]
    elif classes:
        what = f"{classes[0]}: {weights.contents.description}"
    else:
        what = weights.contents.description
    raise UserError(
        f"{path}: found {what}; expected the head of a task. Use embed or"
        " export_model --head=encoder for the encoder, and fill_mask or"
        " inspect_tokens for a pre-trained model."
    )


def _has_config(folder: str) -> bool:
    return tf.io.gfile.exists(os.path.join(folder, checkpointing.CONFIG_FILE))


def _read_config(home: str, overrides: dict[str, Any]) -> FinetuningConfig:
    path = os.path.join(home, checkpointing.CONFIG_FILE)
    stored = checkpointing.read_config(home)
    if not isinstance(stored, dict) or "task_names" not in stored:
        raise UserError(
            f"{path}: task_names is missing; expected the configuration of a"
            " fine-tuning run. Use embed, fill_mask or inspect_tokens for a"
            " pre-trained model."
        )
    hparams = FinetuningConfig.explicit_hparams(stored)
    model_name = hparams.pop("model_name", "")
    hparams.pop("data_dir", None)
    data_dir = overrides.pop("data_dir", None) or _find_data_dir(home, stored)
    folder_hparams = {"model_dir": home}
    if vocab := formats.find_vocab(home):
        folder_hparams["vocab_file"] = vocab
    config = FinetuningConfig.from_layers(
        model_name,
        data_dir,
        [("file", hparams), ("file", folder_hparams), ("argument", overrides)],
        "file",
    )
    if "vocab_file" in overrides:
        casing = {name: getattr(config, name) for name in TOKENIZER_HPARAMS}
        labels = {name: f"{name} of {path}" for name in casing}
        resolve_casing(config.vocab_file, casing, labels)
    return config


def _find_data_dir(home: str, stored: dict[str, Any]) -> str:
    """Return the data directory, or its new path if the whole tree moved."""
    data_dir, model_dir = stored.get("data_dir", ""), stored.get("model_dir")
    inner = os.path.relpath(model_dir or "", data_dir or ".")
    current = os.path.abspath(home).removesuffix(os.sep + formats.BEST)
    if not inner.startswith("..") and current.endswith(os.sep + inner):
        return current.removesuffix(os.sep + inner) or os.sep
    return data_dir
