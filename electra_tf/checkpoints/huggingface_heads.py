# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The heads of transformers' classes as heads of tasks.

`config.json` names the class, the labels and the kind of problem; the tokenizer
states the length that texts are cut to.
"""

import os
import re
from collections.abc import Collection, Mapping
from typing import Any

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_layout as layout
from electra_tf.checkpoints.contents import TaskHead
from electra_tf.files.json_files import read_json
from electra_tf.text.tokenizer_settings import TOKENIZER_CONFIG

_KINDS = {problem: kind for kind, problem in layout.PROBLEMS.items()}
# Classes whose head some task of this project has.
_OF_TASKS = {
    layout.TAGGING: "tagging",
    layout.QUESTIONS: "question_answering",
    layout.SENTENCES: "",  # `problem_type` names the kind
}
_HEAD_STARTS = {
    layout.PRETRAINING: "discriminator_predictions.",
    layout.MASKED_LM: "generator_predictions.",
    layout.QUESTIONS: "qa_outputs.",
    layout.SENTENCES: "classifier.dense.",
    layout.TAGGING: "classifier.",
}
# Default names of tasks whose folder has none: scopes of their variables.
_NAMES = {layout.TAGGING: "chunk", layout.QUESTIONS: "squad"}
# Heads that transformers has and this project has not, for messages.
_OTHERS = {
    "ElectraForMultipleChoice": "it chooses among several texts",
    "ElectraForCausalLM": "it continues a text",
}
# Names that `transformers` gives to labels that nobody named.
UNNAMED = re.compile(r"LABEL_\d+")


def architecture_of(
    config: Mapping[str, Any], names: Collection[str]
) -> tuple[str, str]:
    """Returns the class whose tensors a folder holds, and the declared class.

    Tensors' names decide where config.json declares no class that has a
    counterpart here. A task's head is never inferred for a class of another
    name: its layers may mean something else.
    """
    declared = (config.get("architectures") or [""])[0] or ""
    known = (*layout.HEADS, layout.SENTENCES)
    if declared in known:
        return declared, declared
    for architecture, start in _HEAD_STARTS.items():
        # "sequence_summary" is multiple choice's.
        is_guess = architecture in _OF_TASKS
        if is_guess and (declared or _has(names, "sequence_summary.")):
            continue
        if _has(names, start):
            return architecture, declared
    return layout.BARE, declared


def _has(names: Collection[str], start: str) -> bool:
    return any(name.startswith(start) for name in names)


def kind_of(
    architecture: str, config: Mapping[str, Any], n_labels: int, path: str
) -> tuple[str, str]:
    """Returns the type of task of a head, and why no task has such a head.

    Args:
      n_labels: rows of the head's last matrix.
      path: of config.json, for messages.

    Returns:
      The type, "" for a class without a task; the reason, "" for none.

    Source: transformers, modeling_electra.py,
      ElectraForSequenceClassification.forward: without `problem_type` one
      label is a number, and several are classes.
    """
    if architecture != layout.SENTENCES:
        return _OF_TASKS.get(architecture, ""), ""
    problem = config.get("problem_type")
    if problem is None:
        return ("regression" if n_labels == 1 else "classification"), ""
    if problem not in _KINDS:
        raise UserError(
            f"{path}: problem_type is {problem!r}; expected one of"
            f" {', '.join(_KINDS)}, or none. Correct it."
        )
    kind = _KINDS[problem]
    if kind == "regression" and n_labels > 1:
        return kind, f"regression of {n_labels} numbers"
    if kind == "classification" and n_labels == 1:
        return kind, f"{problem} of one label"
    return kind, ""


def default_name(architecture: str, kind: str) -> str:
    """Returns the name of a task whose folder has none."""
    return _NAMES.get(architecture, kind)


def why_no_head(declared: str, detail: str) -> str:
    """Returns why the tensors of a head are dropped, with the remedy."""
    detail = detail or _OTHERS.get(declared, "")
    named = f"head of {declared}" if declared else "head of an unnamed class"
    return (
        f"{named}{f' ({detail})' if detail else ''}: no task of this project"
        " has it. Train a head of your own with run_finetuning.py"
        " --init_checkpoint"
    )


def labels_of(
    config: Mapping[str, Any], count: int, path: str
) -> tuple[str, ...]:
    """Returns the names of a head's labels in order.

    Refuses an `id2label` that does not name each of the `count` labels once.
    """
    given = config.get("id2label")
    if given is None:
        return tuple(f"LABEL_{i}" for i in range(count))
    if not isinstance(given, dict):
        raise UserError(
            f"{path}: id2label is {given!r}; expected an object such as"
            ' {"0": "no", "1": "yes"}. Correct it.'
        )
    expected = [str(i) for i in range(count)]
    if sorted(given) != sorted(expected):
        missing = [f"no {i}" for i in expected if i not in given]
        surplus = [f"{key!r}" for key in given if key not in expected]
        raise UserError(
            f"{path}: id2label names {', '.join(given) or 'nothing'}"
            f" ({', '.join([*missing, *surplus])}), but the head has"
            f" {count} labels; expected the keys 0 to {count - 1}. Correct"
            " it."
        )
    labels = [given[i] for i in expected]
    for i, label in enumerate(labels):
        if isinstance(label, bool) or not isinstance(label, str | int | float):
            raise UserError(
                f"{path}: id2label.{i} is {label!r}; expected a text. Correct"
                " it."
            )
    texts = [str(label) for label in labels]
    if twice := next((t for t in texts if texts.count(t) > 1), None):
        raise UserError(
            f"{path}: id2label names {twice!r} twice; expected different"
            " labels. Correct it."
        )
    return tuple(texts)


def read_max_length(folder: str, positions: int) -> int:
    """Returns the wordpieces that the folder's tokenizer cuts texts to.

    transformers writes a huge number (1e30) where nothing limits it; the
    model's `positions` always do.
    """
    path = os.path.join(folder, TOKENIZER_CONFIG)
    name = "model_max_length"
    stated = read_json(path).get(name) if os.path.isfile(path) else None
    if stated is None:
        return positions
    is_number = isinstance(stated, int | float) and not isinstance(stated, bool)
    if not is_number or not stated >= 1:
        raise UserError(
            f"{path}: {name} is {stated!r}; expected a number above 0. Correct"
            " it, or leave it out."
        )
    return int(min(stated, positions))


def task_head(
    kind: str,
    config: Mapping[str, Any],
    labels: tuple[str, ...],
    max_length: int,
    path: str,
) -> TaskHead:
    """Returns what shapes do not show of a folder's head.

    A folder that this project wrote has its mark: words to tag are split, and
    numbers scaled, as in its training.
    """
    mark = config.get(layout.MARK)
    mark = mark if isinstance(mark, dict) else {"as_elsewhere": True}
    limits = mark.get("range")
    if limits is not None and not (
        isinstance(limits, list)
        and len(limits) == 2
        and all(type(n) in (int, float) for n in limits)
        and limits[0] < limits[1]
    ):
        raise UserError(
            f"{path}: {layout.MARK}.range is {limits!r}; expected [lowest,"
            " highest]. Correct it."
        )
    return TaskHead(
        kind,
        labels,
        as_elsewhere=bool(mark.get("as_elsewhere")),
        range=tuple(limits) if limits and kind == "regression" else None,
        max_length=max_length,
    )
