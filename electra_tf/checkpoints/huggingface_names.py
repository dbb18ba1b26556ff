# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Networks and tensor names of Hugging Face's ELECTRA beside the original's."""

import dataclasses
import re
from collections.abc import Iterable, Mapping

from electra_tf.checkpoints.contents import TOWERS, Contents

PRETRAINING = "ElectraForPreTraining"
MASKED_LM = "ElectraForMaskedLM"
TAGGING = "ElectraForTokenClassification"
QUESTIONS = "ElectraForQuestionAnswering"
BARE = "ElectraModel"
# Those whose head has a counterpart here.
HEADS = (PRETRAINING, MASKED_LM, TAGGING, QUESTIONS)

# Default names of tasks for heads whose folder does not say.
DEFAULT_TASKS = {TAGGING: "chunk", QUESTIONS: "squad"}
# Tasks whose head, one dense layer, labels every token. A sentence classifier
# has the same shapes, but another layer at transformers.
_TAGGING_TASKS = ("chunk",)

ONE = "1"  # an axis of one element
LABELS = "number of labels"

_HEAD_START = {
    PRETRAINING: "discriminator_predictions.",
    MASKED_LM: "generator_predictions.",
    QUESTIONS: "qa_outputs.",
}
# Constants that older versions of transformers saved, and a tied copy.
_BUFFER = re.compile(r"(^|\.)embeddings\.(position_ids|token_type_ids)$")
LM_HEAD = "generator_lm_head.weight"
WORD_TABLE = "electra.embeddings.word_embeddings.weight"

# Layers of a transformer block, in the order of transformers' files: dense
# ones with two axes, layer norms with one.
_BLOCK = (
    ("attention/self/query", ("hidden_size", "hidden_size")),
    ("attention/self/key", ("hidden_size", "hidden_size")),
    ("attention/self/value", ("hidden_size", "hidden_size")),
    ("attention/output/dense", ("hidden_size", "hidden_size")),
    ("attention/output", ("hidden_size",)),
    ("intermediate/dense", ("hidden_size", "intermediate_size")),
    ("output/dense", ("intermediate_size", "hidden_size")),
    ("output", ("hidden_size",)),
)


@dataclasses.dataclass(frozen=True)
class Pair:
    """A tensor there and the variable, or two variables, it is here."""

    theirs: str  # in a Hugging Face file, with the prefix `electra.`
    # The original's name; two where a matrix of two rows is two here.
    ours: tuple[str, ...]
    # What sets each axis of one of ours: a key of config.json, LABELS or ONE.
    axes: tuple[str, ...]

    @property
    def transposed(self) -> bool:
        """Whether rows there are columns here, as of every kernel."""
        return self.ours[0].endswith("/kernel")

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of one of ours."""
        return tuple(1 if a == ONE else sizes[a] for a in self.axes)

    def their_shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of the tensor there."""
        shape = self.shape(sizes)
        shape = shape[::-1] if self.transposed else shape
        return (shape[0] * len(self.ours), *shape[1:])


@dataclasses.dataclass(frozen=True)
class Network:
    """One network, as transformers keeps it: an encoder and a head."""

    architecture: str  # transformers' class
    encoder: str = "electra"  # TF1 scope: that or "generator"
    embeddings: str = "electra"  # TF1 scope of its tables, likewise
    task: str = ""  # the fine-tuning task's name, for TAGGING and QUESTIONS

    @property
    def folder(self) -> str:
        """Name of its folder beside the other network's; empty for neither."""
        names = {PRETRAINING: "discriminator", MASKED_LM: "generator"}
        return names.get(self.architecture, "")

    @property
    def head_scope(self) -> str:
        """TF1 scope of the head."""
        if self.folder:
            return f"{self.folder}_predictions"
        return f"task_specific/{self.task}"

    def pairs(self, sizes: Mapping[str, int]) -> list[Pair]:
        """All its tensors, in the order of transformers' files."""
        projected = sizes["embedding_size"] != sizes["hidden_size"]
        layers = sizes["num_hidden_layers"]
        return [
            *embedding_pairs(self.embeddings),
            *encoder_pairs(self.encoder, layers, projected),
            *self._head_pairs(),
        ]

    def _head_pairs(self) -> list[Pair]:
        scope, hidden = self.head_scope, "hidden_size"
        first, second = f"{scope}/dense", f"{scope}/dense_1"
        if self.architecture == PRETRAINING:
            return [
                *_dense(f"{scope}.dense", first, (hidden, hidden)),
                *_dense(f"{scope}.dense_prediction", second, (hidden, ONE)),
            ]
        if self.architecture == MASKED_LM:
            width, bias = "embedding_size", f"{scope}/output_bias"
            return [
                *_dense(f"{scope}.dense", first, (hidden, width)),
                *_norm(scope, scope, (width,)),
                Pair("generator_lm_head.bias", (bias,), ("vocab_size",)),
            ]
        if self.architecture == TAGGING:
            return _dense("classifier", first, (hidden, LABELS))
        if self.architecture == QUESTIONS:
            # One row for the start of an answer, one for its end.
            kernels = (f"{first}/kernel", f"{second}/kernel")
            biases = (f"{first}/bias", f"{second}/bias")
            return [
                Pair("qa_outputs.weight", kernels, (hidden, ONE)),
                Pair("qa_outputs.bias", biases, (ONE,)),
            ]
        return []


def embedding_pairs(scope: str) -> list[Pair]:
    """Tables and layer norm that generator and discriminator share."""
    pairs = [
        Pair(
            f"electra.embeddings.{table}.weight",
            (f"{scope}/embeddings/{table}",),
            (rows, "embedding_size"),
        )
        for table, rows in (
            ("word_embeddings", "vocab_size"),
            ("token_type_embeddings", "type_vocab_size"),
            ("position_embeddings", "max_position_embeddings"),
        )
    ]
    ours = f"{scope}/embeddings"
    return pairs + _norm("electra.embeddings", ours, ("embedding_size",))


def encoder_pairs(scope: str, layers: int, projected: bool) -> list[Pair]:
    """What follows the tables."""
    pairs = []
    if projected:
        pairs += _dense(
            "electra.embeddings_project",
            f"{scope}/embeddings_project",
            ("embedding_size", "hidden_size"),
        )
    for i in range(layers):
        for name, axes in _BLOCK:
            theirs = f"electra.encoder.layer.{i}.{name.replace('/', '.')}"
            make = _dense if len(axes) == 2 else _norm
            pairs += make(theirs, f"{scope}/encoder/layer_{i}/{name}", axes)
    return pairs


def _dense(theirs: str, ours: str, axes: tuple[str, ...]) -> list[Pair]:
    return [
        Pair(f"{theirs}.weight", (f"{ours}/kernel",), axes),
        Pair(f"{theirs}.bias", (f"{ours}/bias",), axes[1:]),
    ]


def _norm(theirs: str, ours: str, axes: tuple[str, ...]) -> list[Pair]:
    return [
        Pair(f"{theirs}.LayerNorm.{there}", (f"{ours}/LayerNorm/{here}",), axes)
        for there, here in (("bias", "beta"), ("weight", "gamma"))
    ]


# Files there: which network, and what has no place here.


def architecture_of(names: Iterable[str]) -> str:
    """Tells a class from tensors' names; `BARE` where no head is known."""
    names = list(names)
    for architecture, start in _HEAD_START.items():
        if any(name.startswith(start) for name in names):
            return architecture
    if any(name.startswith("sequence_summary.") for name in names):
        return BARE  # multiple choice; its classifier is another
    return TAGGING if "classifier.weight" in names else BARE


def spellings(theirs: str) -> list[str]:
    """Names a tensor has in files of various ages."""
    names = [theirs, theirs.removeprefix("electra.")]
    for new, old in (("weight", "gamma"), ("bias", "beta")):
        ending = f"LayerNorm.{new}"
        if theirs.endswith(ending):
            names += [n.removesuffix(new) + old for n in names[:2]]
    # Of two tied tensors a file may hold either.
    return [*names, LM_HEAD] if theirs == WORD_TABLE else names


def why_unused(name: str) -> str | None:
    """Says why a tensor has no place here; None for mere constants."""
    if _BUFFER.search(name):
        return None
    if name.startswith(("classifier.", "sequence_summary.")):
        return (
            "transformers' classifier has a dense layer that the original's"
            " heads have not"
        )
    if "crossattention" in name:
        return "cross attention of a decoder; the original has none"
    return "no counterpart in the original"


# Checkpoints here: which network, and what has no place there.


def networks_in(contents: Contents, part: str) -> list[Network]:
    """The networks that a folder there can hold, of those asked for."""
    found = []
    generates = contents.has("generator_predictions/")
    if part != "generator":
        if contents.discriminates:
            found.append(Network(PRETRAINING))
        elif contents.has("electra/encoder/") and not generates:
            found.append(_fine_tuned(contents))
    if part != "discriminator" and generates:
        scopes = (
            "generator" if contents.has(f"generator/{inner}/") else "electra"
            for inner in ("encoder", "embeddings")
        )
        found.append(Network(MASKED_LM, *scopes))
    return found


def _fine_tuned(contents: Contents) -> Network:
    """Encoder with the first head that transformers has, else bare."""
    for task in contents.tasks:
        head = f"task_specific/{task}"
        if task in _TAGGING_TASKS:
            return Network(TAGGING, task=task)
        kernels = {f"{head}/dense/kernel", f"{head}/dense_1/kernel"}
        joint = f"{head}/qa_hidden/kernel" in contents.shapes
        if kernels <= contents.shapes.keys() and not joint:
            return Network(QUESTIONS, task=task)
    return Network(BARE)


def why_unrepresentable(name: str, contents: Contents) -> str:
    """Says why a variable has no place there."""
    if name.startswith(TOWERS):
        return "two-tower generator: transformers has no such model"
    if not name.startswith("task_specific/"):
        return "no counterpart in transformers"
    task = name.split("/")[1]
    if f"task_specific/{task}/qa_hidden/kernel" in contents.shapes:
        return "joint question-answering head: transformers has none"
    if f"task_specific/{task}/dense_1/kernel" in contents.shapes:
        if "/dense/" in name or "/dense_1/" in name:
            return "second task; a folder holds one"
        return "answerability classifier: transformers has none"
    if task in _TAGGING_TASKS:
        return "second task; a folder holds one"
    return (
        "one dense layer on the first token: transformers' classifier has two"
    )
