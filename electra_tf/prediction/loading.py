# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a folder that a run left to a model that can be asked.

`load_finetuned` is for what run_finetuning leaves, `load_pretrained` for
pre-training runs and checkpoints of any kind.
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
from electra_tf.checkpoints.hub import hub_hint
from electra_tf.checkpoints.weights import repeat_segment_row
from electra_tf.finetuning.described import (
    make_config,
    make_tasks,
    open_described,
)
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.registry import get_tasks
from electra_tf.finetuning.task import TASK_FILE, Task
from electra_tf.modeling.encoder import Encoder
from electra_tf.pretraining.loading import PretrainedModel, read_pretrained
from electra_tf.pretraining.loading import load_pretrained as load_pretrained
from electra_tf.text.casing import resolve_casing
from electra_tf.text.tokenization import Tokenizer, open_tokenizer
from electra_tf.text.vocabulary import check_vocab, refuse_other_vocab
from electra_tf.training import checkpointing


@dataclasses.dataclass(frozen=True)
class FinetunedModel:
    """A fine-tuned model with all that its answers need."""

    config: FinetuningConfig  # its hparams, paths as they are now
    tasks: tuple[Task, ...]  # what it learned, in the order of its heads
    model: FinetuningModel  # the weights in place
    tokenizer: Tokenizer  # as in training
    folder: str  # of the run: its config.json, vocab.txt and checkpoints
    checkpoint: str  # prefix of the weights
    global_step: int | None  # updates done, or None where the file does not say
    # Wordpieces that its tokenizer cuts texts to, where a file states it.
    max_length: int | None = None

    def task(self, name: str | None = None) -> Task:
        return self.tasks[self.task_index(name)]

    def task_index(self, name: str | None = None) -> int:
        names = [task.name for task in self.tasks]
        if name is None and len(names) == 1:
            return 0
        if name in names:
            return names.index(name)
        problem = "learned several tasks" if name is None else f"has no {name}"
        raise UserError(
            f"{self.folder}: the model {problem}; choose one of its tasks:"
            f" {', '.join(names)}"
        )


def load_finetuned(folder: str, **overrides: Any) -> FinetunedModel:
    """Loads a fine-tuned model; its training data are not needed."""
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
            f"{checkpointing.CONFIG_FILE}, its labels as the run found them; if"
            " the task or its labels have changed since, put them back, or"
            " train anew.)"
        ) from error
    place = (home, checkpoint, weights.global_step, weights.max_length)
    return FinetunedModel(config, tuple(tasks), model, tokenizer, *place)


def read_run(
    folder: str, **overrides: Any
) -> tuple[FinetuningConfig, Tokenizer, list[Task]]:
    """Reads a fine-tuned model's settings and tasks, without its weights."""
    if weights := open_described(folder):
        config = make_config(weights, overrides)
        check_vocab(config.vocab_file)
        tokenizer = open_tokenizer(
            config.vocab_file, config.do_lower_case, config.strip_accents
        )
        return config, tokenizer, make_tasks(config, tokenizer, weights)
    home, _ = find_run(folder)
    config = _read_config(home, overrides)
    check_vocab(config.vocab_file)
    tokenizer = open_tokenizer(
        config.vocab_file, config.do_lower_case, config.strip_accents
    )
    path, kept = config.task_config, os.path.join(home, TASK_FILE)
    told, described = config.origins.get("task_config") == "argument", config
    if path and not told and tf.io.gfile.exists(kept):
        described = dataclasses.replace(  # Its files are not read.
            config, task_config=kept, allow_outside_files=True
        )
    elif path and not tf.io.gfile.exists(path):
        raise UserError(
            f"{path}: no such file; {home} was trained on the task that it"
            " describes. Give its place now: --task_config=FILE"
        )
    tasks = get_tasks(described, tokenizer)
    for task in tasks:
        if task.directory == os.path.dirname(os.path.abspath(kept)):
            task.directory = os.path.dirname(os.path.abspath(path))  # of data
        if not task.take_labels_of(home) and task.labels_path():
            task.take_labels_of(config.preprocessed_data_dir)
    return config, tokenizer, tasks


def is_finetuned(path: str) -> bool:
    """Whether a path is of a fine-tuned model, not a pre-trained one."""
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
    """Loads a model of either kind."""
    if not is_finetuned(path):
        return load_pretrained(path, vocab_file, overrides)
    stated = {"vocab_file": vocab_file} if vocab_file else {}
    return load_finetuned(path, **{**(overrides or {}), **stated})


def read_settings(
    path: str, vocab_file: str | None = None
) -> FinetuningConfig | PretrainingConfig:
    """Reads the settings of a model of either kind without its weights."""
    if not is_finetuned(path):
        return read_pretrained(path, vocab_file)[1]
    stated = {"vocab_file": vocab_file} if vocab_file else {}
    if weights := open_described(path):
        return make_config(weights, stated)
    return _read_config(find_run(path)[0], stated)


def select_encoder(
    loaded: FinetunedModel | PretrainedModel,
    purpose: str,
    part: str = "encoder",
) -> Encoder:
    """One of a model's encoders, whose weights must all be there.

    `part`: "encoder": the discriminator's, or a masked LM's own; "generator";
    "any": the generator's where there is no discriminator.
    """
    if isinstance(loaded, FinetunedModel):
        if part == "generator":
            raise UserError(
                f"{loaded.folder}: a fine-tuned model has no generator"
            )
        return loaded.model.encoder
    model = loaded.model
    if part == "any":
        part = "generator" if loaded.is_generator_alone else "encoder"
    if part == "encoder" and model.discriminator is not None:
        encoder = model.discriminator
        why = loaded.lacks_discriminator(with_head=False)
    else:
        encoder = model.generator
        why = loaded.lacks_generator(with_head=False)
    if why is None and isinstance(encoder, Encoder):
        return encoder
    raise UserError(
        f"{why or f'{loaded.path} has two towers'}; {purpose} needs one. Give"
        " the run's model directory, or a checkpoint that holds it."
    )


def find_run(folder: str) -> tuple[str, str]:
    """The run's own directory, and the prefix of the weights to take."""
    if weights := open_described(folder):
        return weights.path, weights.path
    place, checkpoint = (
        formats.resolve_reference(folder).rstrip("/") or "/",
        None,
    )
    place = place.removesuffix(".index")
    _refuse_other_head(place)
    if not tf.io.gfile.isdir(place):
        if not tf.io.gfile.exists(place + ".index"):
            found = sorted(tf.io.gfile.glob(f"{place}_*"))
            trials = ", ".join([*filter(_has_config, found)][:3])
            hint = " Pass the path of one." + hub_hint(folder)
            if trials:
                hint = f" Do you mean {trials}?"
            raise UserError(f"{place}: no such folder or checkpoint.{hint}")
        place, checkpoint = os.path.dirname(place) or ".", place
    home = formats.find_model_folder(place)
    if not _has_config(home):
        raise UserError(
            f"{place}: no {checkpointing.CONFIG_FILE}; expected the folder of a"
            f" trial (..._model_1) that run_finetuning left, or its"
            f" {formats.BEST}"
        )
    if checkpoint is None and home != place:
        checkpoint = tf1.find_latest(place)
    elif checkpoint is None:
        checkpoint = checkpointing.find_best_or_latest(home)
    if checkpoint is None:
        raise UserError(
            f"{place}: no model.ckpt-<step>; the run saved none yet, or they"
            " were removed"
        )
    return home, checkpoint


def _refuse_other_head(path: str) -> None:
    """Raises where a Hugging Face folder holds no head of a task."""
    if not (
        tf.io.gfile.isdir(path) and formats.find_hugging_face_weights(path)
    ):
        return
    weights = formats.open_weights(path)
    reasons = [text for text in weights.dropped.values() if "head of" in text]
    classes = (checkpointing.read_config(path) or {}).get("architectures")
    what = reasons[0] if reasons else weights.contents.description
    named = f" {classes[0]}:" if classes and not reasons else ""
    raise UserError(
        f"{path}: no head of a task to ask:{named} {what}. For its encoder"
        " there are embed and export_model --head=encoder, for a pre-trained"
        " model also fill_mask and inspect_tokens."
    )


def _has_config(folder: str) -> bool:
    return tf.io.gfile.exists(os.path.join(folder, checkpointing.CONFIG_FILE))


def _read_config(home: str, overrides: dict[str, Any]) -> FinetuningConfig:
    path = os.path.join(home, checkpointing.CONFIG_FILE)
    stored = checkpointing.read_config(home)
    if not isinstance(stored, dict) or "task_names" not in stored:
        raise UserError(
            f"{path}: not the configuration of a fine-tuning run (no"
            " task_names); for a pre-trained model there are embed, fill_mask"
            " and inspect_tokens"
        )
    given = FinetuningConfig.explicit_hparams(stored)
    names = [given.pop("model_name", ""), given.pop("data_dir", "")]
    names[1] = overrides.pop("data_dir", None) or _moved(home, stored)
    settled = {"model_dir": home}
    if vocab := formats.find_vocab(home):
        settled["vocab_file"] = vocab
    layers = [("file", given), ("file", settled), ("argument", overrides)]
    config = FinetuningConfig.from_layers(*names, layers, "file")
    if "vocab_file" in overrides:
        casing = {name: getattr(config, name) for name in TOKENIZER_HPARAMS}
        labels = {name: f"{name} of {path}" for name in casing}
        resolve_casing(config.vocab_file, casing, labels)
    return config


def _moved(home: str, stored: dict[str, Any]) -> str:
    """The data directory, seen from here: the whole tree may have moved."""
    data_dir, model_dir = stored.get("data_dir", ""), stored.get("model_dir")
    inner = os.path.relpath(model_dir or "", data_dir or ".")
    here = os.path.abspath(home).removesuffix(os.sep + formats.BEST)
    if not inner.startswith("..") and here.endswith(os.sep + inner):
        return here.removesuffix(os.sep + inner) or os.sep
    return data_dir
