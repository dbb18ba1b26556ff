# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Conversion of transformers' heads to heads of fine-tuning tasks.

`config.json` contains the class, the labels and the problem type. The
tokenizer's settings contain the maximum length of texts.
"""

import os
import re
from collections.abc import Collection
from typing import Any

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_layout as layout
from electra_tf.checkpoints.contents import TaskHead
from electra_tf.files.json_files import read_json
from electra_tf.text.tokenizer_settings import TOKENIZER_CONFIG

_KINDS = {problem: kind for kind, problem in layout.PROBLEMS.items()}
# Types of tasks, by the name of the class in transformers.
_TASK_KINDS = {
    layout.TAGGING: "tagging",
    layout.QUESTIONS: "question_answering",
    layout.SENTENCES: "",  # `problem_type` determines the type
}
_HEAD_STARTS = {
    layout.PRETRAINING: "discriminator_predictions.",
    layout.MASKED_LM: "generator_predictions.",
    layout.QUESTIONS: "qa_outputs.",
    layout.SENTENCES: "classifier.dense.",
    layout.TAGGING: "classifier.",
}
# Default names of tasks, which become part of the scopes of variables.
_DEFAULT_NAMES = {layout.TAGGING: "chunk", layout.QUESTIONS: "squad"}
# Purposes, for messages, of transformers classes without a counterpart in this
# project.
_UNSUPPORTED = {
    "ElectraForMultipleChoice": "it chooses among several texts",
    "ElectraForCausalLM": "it continues a text",
}
# Names that transformers generates for labels without names.
UNNAMED = re.compile(r"LABEL_\d+")


def find_architecture(declared: str, names: Collection[str]) -> str:
    """Return the name of the transformers class that a folder contains.

    If config.json declares no supported class, the names of tensors determine
    the class. A task's head is inferred only if no class is declared, because
    the same names may have a different meaning in a different class.

    Args:
      declared: class that config.json declares; "": none.
      names: names of the tensors.
    """
    if declared in (*layout.HEADS, layout.SENTENCES):
        return declared
    for architecture, start in _HEAD_STARTS.items():
        # The multiple-choice head, which also has a layer "classifier", is
        # recognized by its layer "sequence_summary".
        is_guess = architecture in _TASK_KINDS
        if is_guess and (declared or _has(names, "sequence_summary.")):
            continue
        if _has(names, start):
            return architecture
    return layout.BARE


def _has(names: Collection[str], start: str) -> bool:
    return any(name.startswith(start) for name in names)


def find_kind(
    architecture: str, problem: Any, n_labels: int, path: str
) -> tuple[str, str]:
    """Return a head's task type, and the reason if no task has such a head.

    Args:
      problem: `problem_type` of config.json; None if absent.
      n_labels: number of rows in the head's last matrix.
      path: path of config.json, for messages.

    Returns:
      The type, or "" for a class without a task; the reason, or "".

    Source: transformers, modeling_electra.py,
      ElectraForSequenceClassification.forward: without `problem_type` one
      label is a number, and several are classes.
    """
    if architecture != layout.SENTENCES:
        return _TASK_KINDS.get(architecture, ""), ""
    if problem is None:
        return ("regression" if n_labels == 1 else "classification"), ""
    if problem not in _KINDS:
        raise UserError(
            f"{path}: problem_type is {problem!r}; expected one of"
            f" {', '.join(_KINDS)}. Correct problem_type, or remove it."
        )
    kind = _KINDS[problem]
    if kind == "regression" and n_labels > 1:
        return kind, f"regression of {n_labels} numbers"
    if kind == "classification" and n_labels == 1:
        return kind, f"{problem} of one label"
    return kind, ""


def default_name(architecture: str, kind: str) -> str:
    """Return the default name of a task."""
    return _DEFAULT_NAMES.get(architecture, kind)


def why_no_head(declared: str, detail: str) -> str:
    """Return the reason why a head's tensors are dropped, and the remedy."""
    detail = detail or _UNSUPPORTED.get(declared, "")
    head = f"head of {declared}" if declared else "head of an unnamed class"
    if detail:
        head += f" ({detail})"
    return (
        f"{head}: no task of this project has this head. Train a new head: pass"
        " the model as --init_checkpoint to run_finetuning.py"
    )


def read_labels(id2label: Any, count: int, path: str) -> tuple[str, ...]:
    """Return the names of a head's labels in order.

    Args:
      id2label: `id2label` of config.json; None if absent.
      count: number of the head's labels.
      path: path of config.json, for messages.

    Raises:
      UserError: `id2label` does not name each label once.
    """
    if id2label is None:
        return tuple(f"LABEL_{i}" for i in range(count))
    if not isinstance(id2label, dict):
        raise UserError(
            f"{path}: id2label is {id2label!r}; expected an object such as"
            ' {"0": "no", "1": "yes"}. Correct id2label.'
        )
    expected = [str(i) for i in range(count)]
    if sorted(id2label) != sorted(expected):
        missing = [f"{i} is missing" for i in expected if i not in id2label]
        surplus = [f"{k!r} is unknown" for k in id2label if k not in expected]
        keys = f"the keys {', '.join(id2label)}" if id2label else "no keys"
        raise UserError(
            f"{path}: id2label has {keys} ({', '.join([*missing, *surplus])}),"
            f" but the head has {count} labels; expected the keys 0 to"
            f" {count - 1}. Correct id2label."
        )
    labels = [id2label[i] for i in expected]
    for i, label in enumerate(labels):
        if isinstance(label, bool) or not isinstance(label, str | int | float):
            raise UserError(
                f"{path}: id2label.{i} is {label!r}; expected a text. Correct"
                " this label."
            )
    texts = [str(label) for label in labels]
    for text in texts:
        if texts.count(text) > 1:
            raise UserError(
                f"{path}: id2label contains {text!r} twice; expected different"
                " labels. Correct id2label."
            )
    return tuple(texts)


def read_max_length(folder: str, positions: int) -> int:
    """Return the number of wordpieces at which the tokenizer truncates texts.

    transformers writes a huge number (1e30) for an unlimited tokenizer. In this
    case, the limit is the model's `positions`.
    """
    path = os.path.join(folder, TOKENIZER_CONFIG)
    name = "model_max_length"
    stated = read_json(path).get(name) if os.path.isfile(path) else None
    if stated is None:
        return positions
    is_number = isinstance(stated, int | float) and not isinstance(stated, bool)
    if not is_number or not stated >= 1:
        raise UserError(
            f"{path}: {name} is {stated!r}; expected a number of at least 1."
            " Correct or remove this field."
        )
    return int(min(stated, positions))


def make_task_head(
    kind: str,
    labels: tuple[str, ...],
    max_length: int,
    mark: Any,
    path: str,
) -> TaskHead:
    """Return the properties of a task's head that shapes do not show.

    Args:
      mark: settings that this project wrote to config.json (the splitting of
        tagged words, and the range of numbers in training); None if a different
        program wrote config.json.
      path: path of config.json, for messages.
    """
    mark = mark if isinstance(mark, dict) else {"as_elsewhere": True}
    limits = mark.get("range")
    if limits is not None and not (
        isinstance(limits, list)
        and len(limits) == 2
        and all(type(n) in (int, float) for n in limits)
        and limits[0] < limits[1]
    ):
        raise UserError(
            f"{path}: {layout.MARK}.range is {limits!r}; expected two numbers,"
            " [lowest, highest]. Correct this field."
        )
    return TaskHead(
        kind,
        labels,
        as_elsewhere=bool(mark.get("as_elsewhere")),
        range=tuple(limits) if limits and kind == "regression" else None,
        max_length=max_length,
    )
