# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tensor names of Hugging Face's ELECTRA beside the original's."""

import dataclasses
import functools
import re
from collections.abc import Mapping

PRETRAINING = "ElectraForPreTraining"
MASKED_LM = "ElectraForMaskedLM"
TAGGING = "ElectraForTokenClassification"
QUESTIONS = "ElectraForQuestionAnswering"
BARE = "ElectraModel"

# Default names of tasks for heads whose folder does not say.
DEFAULT_TASKS = {TAGGING: "chunk", QUESTIONS: "squad"}

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


@dataclasses.dataclass(frozen=True)
class Pair:
    """A tensor there and the variable, or two variables, it is here.

    Attributes:
      theirs: its name in a Hugging Face file, with the prefix `electra.`.
      ours: the original's name. Two where a matrix of two rows is two here.
      axes: what sets each axis of one of ours: a key of config.json, `LABELS`
        or `ONE`.
    """

    theirs: str
    ours: tuple[str, ...]
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
class Part:
    """One network, as transformers keeps it: an encoder and a head.

    Attributes:
      architecture: transformers' class.
      encoder: TF1 scope of the encoder, "electra" or "generator".
      embeddings: TF1 scope of its tables, likewise.
      task: the fine-tuning task's name, for `TAGGING` and `QUESTIONS`.
    """

    architecture: str
    encoder: str = "electra"
    embeddings: str = "electra"
    task: str = ""

    @property
    def folder(self) -> str:
        """Name of its folder beside the other part's; empty for neither."""
        names = {PRETRAINING: "discriminator", MASKED_LM: "generator"}
        return names.get(self.architecture, "")

    @property
    def head_scope(self) -> str:
        """TF1 scope of the head."""
        if self.folder:
            return f"{self.folder}_predictions"
        return f"task_specific/{self.task}"


def architecture_of(names: Mapping[str, object]) -> str:
    """Tells the architecture from the tensors' names.

    Returns:
      One of the classes above; `BARE` where no head is known.
    """
    for architecture, start in _HEAD_START.items():
        if any(name.startswith(start) for name in names):
            return architecture
    if any(name.startswith("sequence_summary.") for name in names):
        return BARE  # multiple choice; its classifier is another
    return TAGGING if "classifier.weight" in names else BARE


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
    return pairs + _norm(
        "electra.embeddings", f"{scope}/embeddings", "embedding_size"
    )


def encoder_pairs(scope: str, layers: int, projected: bool) -> list[Pair]:
    """What follows the tables."""
    pairs = []
    hidden, inner = "hidden_size", "intermediate_size"
    if projected:
        pairs += _dense(
            "electra.embeddings_project",
            f"{scope}/embeddings_project",
            ("embedding_size", hidden),
        )
    for i in range(layers):
        theirs = f"electra.encoder.layer.{i}"
        ours = f"{scope}/encoder/layer_{i}"
        block = functools.partial(_inside, theirs, ours)
        for name in ("query", "key", "value"):
            pairs += block(_dense, f"attention/self/{name}", (hidden, hidden))
        pairs += block(_dense, "attention/output/dense", (hidden, hidden))
        pairs += block(_norm, "attention/output", hidden)
        pairs += block(_dense, "intermediate/dense", (hidden, inner))
        pairs += block(_dense, "output/dense", (inner, hidden))
        pairs += block(_norm, "output", hidden)
    return pairs


def head_pairs(part: Part) -> list[Pair]:
    """The head's tensors."""
    scope, hidden = part.head_scope, "hidden_size"
    if part.architecture == PRETRAINING:
        return [
            *_dense(f"{scope}.dense", f"{scope}/dense", (hidden, hidden)),
            *_dense(
                f"{scope}.dense_prediction", f"{scope}/dense_1", (hidden, ONE)
            ),
        ]
    if part.architecture == MASKED_LM:
        width = "embedding_size"
        return [
            *_dense(f"{scope}.dense", f"{scope}/dense", (hidden, width)),
            *_norm(scope, scope, width),
            Pair(
                "generator_lm_head.bias",
                (f"{scope}/output_bias",),
                ("vocab_size",),
            ),
        ]
    if part.architecture == TAGGING:
        return _dense("classifier", f"{scope}/dense", (hidden, LABELS))
    if part.architecture == QUESTIONS:
        # One row for the start of an answer, one for its end.
        start, end = f"{scope}/dense", f"{scope}/dense_1"
        kernels = (f"{start}/kernel", f"{end}/kernel")
        biases = (f"{start}/bias", f"{end}/bias")
        return [
            Pair("qa_outputs.weight", kernels, (hidden, ONE)),
            Pair("qa_outputs.bias", biases, (ONE,)),
        ]
    return []


def part_pairs(part: Part, layers: int, projected: bool) -> list[Pair]:
    """All tensors of a part."""
    return [
        *embedding_pairs(part.embeddings),
        *encoder_pairs(part.encoder, layers, projected),
        *head_pairs(part),
    ]


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
    """Says why a tensor has no place here.

    Returns:
      The reason; None for constants, which are not worth a word.
    """
    if _BUFFER.search(name):
        return None
    if name.startswith("classifier.") or name.startswith("sequence_summary."):
        return (
            "transformers' classifier has a dense layer that the original's"
            " heads have not"
        )
    if "crossattention" in name:
        return "cross attention of a decoder; the original has none"
    return "no counterpart in the original"


def _inside(theirs, ours, make, name, axes) -> list[Pair]:
    """Pairs of a layer inside a block."""
    return make(f"{theirs}.{name.replace('/', '.')}", f"{ours}/{name}", axes)


def _dense(theirs: str, ours: str, axes: tuple[str, str]) -> list[Pair]:
    return [
        Pair(f"{theirs}.weight", (f"{ours}/kernel",), axes),
        Pair(f"{theirs}.bias", (f"{ours}/bias",), axes[1:]),
    ]


def _norm(theirs: str, ours: str, axis: str) -> list[Pair]:
    return [
        Pair(f"{theirs}.LayerNorm.bias", (f"{ours}/LayerNorm/beta",), (axis,)),
        Pair(
            f"{theirs}.LayerNorm.weight", (f"{ours}/LayerNorm/gamma",), (axis,)
        ),
    ]
