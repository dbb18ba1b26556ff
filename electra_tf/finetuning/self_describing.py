# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuned models that are described by their checkpoint alone.

Checkpoints that describe their heads (Hugging Face folders, and conversions of
them by `convert_checkpoint`) need no files of a run: their settings and tasks
are read from the checkpoint.
"""

import re
from collections.abc import Mapping
from typing import Any

from configure.config import SIZE_HPARAMS, TOKENIZER_HPARAMS
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import formats
from electra_tf.checkpoints.contents import HIDDEN, TaskHead
from electra_tf.checkpoints.hub import model_name
from electra_tf.checkpoints.weights import Weights
from electra_tf.finetuning.built_in import BUILT_IN
from electra_tf.finetuning.registry import TYPES
from electra_tf.finetuning.task import Task
from electra_tf.finetuning.task_description import TaskSpec
from electra_tf.text.tokenization import Tokenizer
from electra_tf.training.checkpointing import read_config

# Hparams that match heads trained with transformers. There, tagging processes
# case as other tasks do, and truncates only sentences above max_seq_length;
# question answering has a null threshold of 0 and uses the offsets of answers.
_TRANSFORMERS_HPARAMS = {
    "tagging": {"fix_tagging_truncation": True, "fix_tagging_casing": True},
    "question_answering": {"qa_na_threshold": 0.0, "answer_offsets": True},
}
_SENTENCE_LEVEL = ("classification", "multilabel", "regression")
_MIN_LENGTH = 5  # the lower bound of `max_seq_length`
_TAG = re.compile(r"O|[BIESLU]-.+|[BIESLU]")


def open_described(path: str) -> Weights | None:
    """Open a checkpoint, or return None if it does not describe its heads.

    The config.json of a run takes precedence over such descriptions.
    """
    path = formats.resolve_reference(path).rstrip("/") or "/"
    if not formats.describes_itself(path):
        return None
    if "task_names" in (read_config(formats.find_model_folder(path)) or {}):
        return None
    weights = formats.open_weights(path)
    return weights if described_heads(weights) else None


def described_heads(weights: Weights) -> dict[str, TaskHead]:
    """Return the heads that a checkpoint describes, by name."""
    tasks = weights.contents.tasks
    return {name: h for name, h in weights.heads.items() if name in tasks}


def head_hparams(weights: Weights, name: str) -> dict[str, Any]:
    """Return the hparams that a task's head was trained with."""
    head, scope = weights.heads[name], f"task_specific/{name}/"
    has = weights.contents.has
    hparams: dict[str, Any] = {}
    if head.kind in _SENTENCE_LEVEL:
        has_two_layers = has(f"{scope}{HIDDEN}/")
        hparams["classification_head_layers"] = 2 if has_two_layers else 1
        hparams["pooling"] = head.pooling
    elif head.kind == "tagging":
        hparams["fix_tagging_casing"] = head.as_elsewhere
    elif head.kind == "question_answering":
        hparams["joint_prediction"] = has(f"{scope}qa_hidden/")
        hparams["answerable_classifier"] = has(f"{scope}dense_2/")
        hparams["answerable_uses_start_logits"] = has(f"{scope}dense_3/")
        spec = BUILT_IN.get(name)
        hparams["answer_offsets"] = not (spec and spec.original)
    if head.as_elsewhere:
        hparams |= _TRANSFORMERS_HPARAMS.get(head.kind, {})
    return hparams


def make_config(
    weights: Weights, overrides: Mapping[str, Any]
) -> FinetuningConfig:
    """Return the settings of a model that its checkpoint describes.

    Args:
      weights: the checkpoint.
      overrides: the hparams that the user set.
    """
    heads = described_heads(weights)
    for name in ("task_config", "data_dir"):
        if overrides.get(name):
            raise UserError(
                f"--{name}={overrides[name]}: cannot be set, because"
                f" {weights.path} describes its own task. Remove the flag."
            )
    model_hparams = {**weights.contents.hparams(), **weights.hparams}
    hparams = {
        name: model_hparams[name]
        for name in (*SIZE_HPARAMS, *TOKENIZER_HPARAMS)
        if name in model_hparams
    }
    for name in heads:
        hparams |= head_hparams(weights, name)
    lengths = [head.max_length for head in heads.values() if head.max_length]
    positions = weights.contents.sizes.max_position_embeddings
    length = overrides.get("max_seq_length") or min([positions, *lengths])
    if length < _MIN_LENGTH:
        raise UserError(
            f"{weights.path}: its tokenizer cuts texts to {length} wordpieces;"
            f" expected {_MIN_LENGTH} or more. Correct model_max_length in"
            " tokenizer_config.json."
        )
    hparams |= _question_hparams(length)
    hparams |= {
        "task_names": list(heads),
        "max_seq_length": length,
        "init_checkpoint": weights.path,
        "model_dir": weights.path,
    }
    if weights.vocab_file:
        hparams["vocab_file"] = weights.vocab_file
    elif not overrides.get("vocab_file"):
        raise UserError(
            f"{weights.path}: found no vocabulary (vocab.txt or"
            " tokenizer.json). Download the model's tokenizer files into this"
            " folder, or pass --vocab_file."
        )
    layers = [("file", hparams), ("argument", overrides)]
    name = model_name(weights.path)
    return FinetuningConfig.from_layers(name, "", layers, "file")


def _question_hparams(length: int) -> dict[str, int]:
    """Return question length, stride and beam size that fit the windows."""
    defaults = FinetuningConfig.default_hparams()
    half = max(1, (length - 3) // 2)
    return {
        "max_query_length": half,
        "doc_stride": min(defaults["doc_stride"], half),
        "beam_size": min(defaults["beam_size"], length),
    }


def make_tasks(
    config: FinetuningConfig, tokenizer: Tokenizer, weights: Weights
) -> list[Task]:
    """Return the tasks of the heads that a checkpoint describes."""
    tasks = []
    for name, head in described_heads(weights).items():
        task = TYPES[head.kind](config, _make_spec(name, head), tokenizer)
        if head.kind == "tagging":
            task.set_model_labels(head.labels)
        if head.kind != "question_answering" and not (
            head.labels or head.kind == "regression"
        ):
            raise UserError(
                f"{weights.path}: the checkpoint does not name the labels of"
                f" head {name}. Run convert_checkpoint on the folder of the run"
                " that trained the head."
            )
        tasks.append(task)
    return tasks


def _make_spec(name: str, head: TaskHead) -> TaskSpec:
    """Return the description of the task that a head belongs to."""
    settings: dict[str, Any] = {}
    if head.kind in ("classification", "multilabel"):
        settings["labels"] = head.labels
    elif head.kind == "regression":
        # A regression head of transformers predicts in the units of the labels,
        # so the range from 0 to 1 keeps the predictions unchanged.
        settings["range"] = head.range or (0.0, 1.0)
    elif head.kind == "tagging":
        has_spans = all(map(_TAG.fullmatch, head.labels))
        settings["tags"] = "spans" if has_spans else "words"
    return TaskSpec(name, head.kind, **settings)
