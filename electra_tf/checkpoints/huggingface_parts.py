# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What of a checkpoint a Hugging Face folder can hold."""

from collections.abc import Iterable, Mapping

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_names as names
from electra_tf.checkpoints.huggingface_names import Part
from electra_tf.checkpoints.weights import STEP_NAME, Weights

# Tasks whose head, one dense layer, labels every token. A sentence classifier
# has the same shapes, but another layer at transformers.
TAGGING_TASKS = ("chunk",)

_TOWERS = ("generator_ltr/", "generator_rtl/", "cloze_predictions/")
_GENERATOR_ONLY = ("generator/", "generator_predictions/", *_TOWERS)
_DISCRIMINATOR_ONLY = ("electra/", "discriminator_predictions/")


def what_part(weights: Weights) -> str:
    """Says in words what a checkpoint holds.

    Args:
      weights: of any format.

    Returns:
      Such as "a generator (no discriminator)".
    """
    held = weights.shapes
    discriminates = _any(held, "discriminator_predictions/")
    towers = any(_any(held, tower) for tower in _TOWERS)
    generates = _any(held, "generator_predictions/")
    tasks = _tasks(held)
    if tasks:
        return f"a model fine-tuned on {', '.join(tasks)}"
    if discriminates and towers:
        return "a discriminator and a two-tower generator"
    if discriminates and generates:
        return "a generator and a discriminator"
    if discriminates:
        return "a discriminator (no generator)"
    if generates and _any(held, "generator/encoder/"):
        return "a generator (no discriminator)"
    if generates:
        return "a masked LM (no discriminator)"
    if _any(held, "electra/encoder/"):
        return "an encoder (no pre-training heads)"
    return "no ELECTRA that is known here"


def find_parts(weights: Weights, part: str) -> list[Part]:
    """Decides which folders are to be written.

    Args:
      weights: the checkpoint.
      part: "all", "discriminator" or "generator".

    Returns:
      One or two parts.

    Raises:
      UserError: if what is asked for is not there.
    """
    if part not in ("all", "discriminator", "generator"):
        raise UserError(
            f"part is {part!r}; expected all, discriminator or generator."
        )
    held = weights.shapes
    found = []
    discriminates = _any(held, "discriminator_predictions/")
    generates = _any(held, "generator_predictions/")
    if part != "generator":
        if discriminates:
            found.append(Part(names.PRETRAINING))
        elif _any(held, "electra/encoder/") and not generates:
            found.append(_fine_tuned(held))
    if part != "discriminator" and generates:
        found.append(
            Part(
                names.MASKED_LM,
                _scope(held, "generator/encoder/"),
                _scope(held, "generator/embeddings/"),
            )
        )
    if not found:
        wanted = "" if part == "all" else f"; there is no {part} to write"
        raise UserError(f"{weights.path} holds {what_part(weights)}{wanted}.")
    return found


def unrepresentable(
    weights: Weights, part: str, covered: Iterable[str]
) -> dict[str, str]:
    """Lists what the folders to be written leave out.

    Args:
      weights: the checkpoint.
      part: "all", "discriminator" or "generator"; what belongs to the other
        one is not asked for and not listed.
      covered: variables that are written.

    Returns:
      Reasons by name of a variable, or by "Adam slots".
    """
    unasked = {
        "all": (),
        "discriminator": _GENERATOR_ONLY,
        "generator": _DISCRIMINATOR_ONLY,
    }[part]
    covered = set(covered)
    held = weights.shapes
    reasons = {
        name: _why(name, held)
        for name in held
        if name not in covered and not name.startswith(unasked)
    }
    concerned = {*covered, *reasons}
    slots = [n for n in weights.slots if n.rpartition("/")[0] in concerned]
    if slots:
        reasons["Adam slots"] = (
            f"{len(slots)} of them; a Hugging Face folder holds weights only"
            " (--strip_optimizer leaves them out)"
        )
    return reasons


def step_note(weights: Weights) -> dict[str, str]:
    """Says where the step went.

    Args:
      weights: the checkpoint.

    Returns:
      A note, or nothing where no step is stored.
    """
    if STEP_NAME not in weights.specs:
        return {}
    return {STEP_NAME: f"{weights.global_step}; not part of a model, left out"}


def _why(name: str, held: Mapping[str, object]) -> str:
    if name.startswith(_TOWERS):
        return "two-tower generator: transformers has no such model"
    if not name.startswith("task_specific/"):
        return "no counterpart in transformers"
    task = name.split("/")[1]
    if f"task_specific/{task}/qa_hidden/kernel" in held:
        return "joint question-answering head: transformers has none"
    if f"task_specific/{task}/dense_1/kernel" in held:
        if "/dense/" in name or "/dense_1/" in name:
            return "second task; a folder holds one"
        return "answerability classifier: transformers has none"
    if task in TAGGING_TASKS:
        return "second task; a folder holds one"
    return (
        "one dense layer on the first token: transformers' classifier has two"
    )


def _fine_tuned(held: Mapping[str, tuple[int, ...]]) -> Part:
    """Encoder with the first head that transformers has, else bare."""
    for task in _tasks(held):
        head = f"task_specific/{task}"
        if task in TAGGING_TASKS:
            return Part(names.TAGGING, task=task)
        kernels = [held.get(f"{head}/{n}/kernel") for n in ("dense", "dense_1")]
        if f"{head}/qa_hidden/kernel" not in held and None not in kernels:
            return Part(names.QUESTIONS, task=task)
    return Part(names.BARE)


def _tasks(held: Iterable[str]) -> list[str]:
    """Names of the fine-tuning tasks, in order."""
    tasks = {n.split("/")[1]: None for n in held if n.startswith("task_spec")}
    return list(tasks)


def _scope(held: Iterable[str], start: str) -> str:
    return "generator" if _any(held, start) else "electra"


def _any(held: Iterable[str], start: str) -> bool:
    return any(name.startswith(start) for name in held)


def sizes_of(weights: Weights, part: Part) -> dict[str, int]:
    """Reads a part's sizes off its shapes.

    Args:
      weights: the checkpoint.
      part: one of its parts.

    Returns:
      By config.json's keys; the number of heads does not show in shapes.

    Raises:
      UserError: if a variable that shows them is missing.
    """
    held = weights.shapes
    tables, encoder = f"{part.embeddings}/embeddings", f"{part.encoder}/encoder"
    where = {
        "vocab_size": (f"{tables}/word_embeddings", 0),
        "embedding_size": (f"{tables}/word_embeddings", 1),
        "type_vocab_size": (f"{tables}/token_type_embeddings", 0),
        "max_position_embeddings": (f"{tables}/position_embeddings", 0),
        "hidden_size": (f"{encoder}/layer_0/attention/self/query/kernel", 1),
        "intermediate_size": (f"{encoder}/layer_0/intermediate/dense/bias", 0),
    }
    if part.architecture == names.TAGGING:
        where[names.LABELS] = (f"{part.head_scope}/dense/bias", 0)
    missing = [name for name, _ in where.values() if name not in held]
    if missing:
        raise UserError(
            f"{weights.path} lacks {', '.join(dict.fromkeys(missing))}."
        )
    sizes = {key: held[name][axis] for key, (name, axis) in where.items()}
    start = f"{encoder}/layer_"
    layers = {
        name.removeprefix(start).split("/")[0]
        for name in held
        if name.startswith(start)
    }
    return sizes | {"num_hidden_layers": len(layers)}
