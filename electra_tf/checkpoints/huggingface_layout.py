# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a Hugging Face ELECTRA folder holds, beside what the original calls it.

Networks and names of their tensors, config.json, tokenizer files: as the
original's variables and hparams, and the other way.
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from configure.errors import UserError
from electra_tf.checkpoints.contents import Contents, TaskHead
from electra_tf.checkpoints.sizes import default_heads
from electra_tf.files.json_files import read_json
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.tokenizer_settings import MARK

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
TORCH = "pytorch_model.bin"
TORCH_INDEX = "pytorch_model.bin.index.json"
WEIGHT_FILES = (SINGLE, INDEX, TORCH, TORCH_INDEX)
CONFIG = "config.json"
VOCAB = "vocab.txt"

# Networks and their tensors.

PRETRAINING = "ElectraForPreTraining"
MASKED_LM = "ElectraForMaskedLM"
TAGGING = "ElectraForTokenClassification"
QUESTIONS = "ElectraForQuestionAnswering"
SENTENCES = "ElectraForSequenceClassification"
BARE = "ElectraModel"
# Those whose head has a counterpart here.
HEADS = (PRETRAINING, MASKED_LM, TAGGING, QUESTIONS)
# Types of tasks for whole texts, and what transformers calls their problem.
PROBLEMS = {
    "classification": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regression": "regression",
}
# A pre-trained ELECTRA is two networks, each in a folder of this name.
FOLDERS = {"discriminator": PRETRAINING, "generator": MASKED_LM}


IDENTITY = "identity"  # a layer below a head's scope that is never stored
ONE = "1"  # an axis of one element
LABELS = "number of labels"

_TABLES = {
    "word_embeddings": "vocab_size",
    "token_type_embeddings": "type_vocab_size",
    "position_embeddings": "max_position_embeddings",
}
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
    def _transposed(self) -> bool:
        """Whether rows there are columns here, as of every kernel."""
        return self.ours[0].endswith("/kernel")

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(1 if a == ONE else sizes[a] for a in self.axes)

    def their_shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        shape = self.shape(sizes)
        shape = shape[::-1] if self._transposed else shape
        return (shape[0] * len(self.ours), *shape[1:])

    def to_ours(self, value: np.ndarray, i: int) -> np.ndarray:
        if len(self.ours) > 1:
            value = value[i : i + 1]
        return np.ascontiguousarray(value.T if self._transposed else value)

    def to_theirs(self, values: Sequence[np.ndarray]) -> np.ndarray:
        if self._transposed:
            values = [value.T for value in values]
        return values[0] if len(values) == 1 else np.concatenate(values)


@dataclasses.dataclass(frozen=True)
class Network:
    """One network, as transformers keeps it: an encoder and a head."""

    architecture: str  # transformers' class
    encoder: str = "electra"  # TF1 scope: that or "generator"
    embeddings: str = "electra"  # TF1 scope of its tables, likewise
    task: str = ""  # the fine-tuning task's name, where it has a head
    # SENTENCES: the first of the head's layers, below its scope.
    first: str = IDENTITY

    @property
    def folder(self) -> str:
        """Name of its folder beside the other network's; empty for neither."""
        names = {network: name for name, network in FOLDERS.items()}
        return names.get(self.architecture, "")

    @property
    def head_scope(self) -> str:
        if self.folder:
            return f"{self.folder}_predictions"
        return f"task_specific/{self.task}"

    @property
    def needs_identity_layer(self) -> bool:
        """Whether a sentence's head has one layer and gets one before it."""
        return self.architecture == SENTENCES and self.first == IDENTITY

    def pairs(self, sizes: Mapping[str, int]) -> list[Pair]:
        """All its tensors, in the order of transformers' files."""
        theirs, ours = "electra.embeddings", f"{self.embeddings}/embeddings"
        width, hidden = "embedding_size", "hidden_size"
        pairs = [
            Pair(
                f"{theirs}.{table}.weight", (f"{ours}/{table}",), (rows, width)
            )
            for table, rows in _TABLES.items()
        ]
        pairs += _norm(theirs, ours, (width,))
        if sizes[width] != sizes[hidden]:
            ours = f"{self.encoder}/embeddings_project"
            pairs += _dense(f"{theirs}_project", ours, (width, hidden))
        for i in range(sizes["num_hidden_layers"]):
            for name, axes in _BLOCK:
                theirs = f"electra.encoder.layer.{i}.{name.replace('/', '.')}"
                ours = f"{self.encoder}/encoder/layer_{i}/{name}"
                make = _dense if len(axes) == 2 else _norm
                pairs += make(theirs, ours, axes)
        return pairs + self._head_pairs()

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
        if self.architecture == SENTENCES:
            own = f"{scope}/{self.first}"
            return [
                *_dense("classifier.dense", own, (hidden, hidden)),
                *_dense("classifier.out_proj", first, (hidden, LABELS)),
            ]
        if self.architecture == QUESTIONS:
            # One row for the start of an answer, one for its end.
            kernels = (f"{first}/kernel", f"{second}/kernel")
            biases = (f"{first}/bias", f"{second}/bias")
            return [
                Pair("qa_outputs.weight", kernels, (hidden, ONE)),
                Pair("qa_outputs.bias", biases, (ONE,)),
            ]
        return []


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


# A sentence's head is one dense layer here, or two as in transformers. What has
# one gets before it the dense layer and GELU of theirs: a shifted identity.

# GELU(z) is z in float32 from here on: 1 + erf(z / sqrt(2)) rounds to 2.
_GELU_IS_IDENTITY = 6.0


def identity_shift(gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Float32 [H] that lifts any output of a layer norm past GELU's bend."""
    # What is normalized is at most sqrt(H - 1) in size.
    reach = np.sqrt(len(gamma) - 1.0) * np.abs(gamma.astype(np.float64))
    return (_GELU_IS_IDENTITY + reach - beta).astype(np.float32)


def moved_bias(
    bias: np.ndarray, kernel: np.ndarray, shift: np.ndarray, sign: int
) -> np.ndarray:
    """The last bias without (sign -1) or with what a shift adds, float32."""
    added = shift.astype(np.float64) @ kernel.astype(np.float64)
    return (bias + sign * added).astype(np.float32)


# config.json as the original's hparams, and the other way.

SIZES = tuple(
    """
    vocab_size embedding_size hidden_size num_hidden_layers num_attention_heads
    intermediate_size max_position_embeddings type_vocab_size
    """.split()
)
SETTINGS = (
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "initializer_range",
    "layer_norm_eps",
)
# Those of transformers' ElectraConfig; a saved file states all of them.
_DEFAULTS = {
    "embedding_size": 128,
    **dataclasses.asdict(EncoderConfig.for_size("small", 30522)),
}
ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu_new"),
    **{name: name for name in ("relu", "tanh", "linear")},
}


def read_config(folder: str) -> dict[str, Any]:
    """Reads a folder's config.json; refuses what cannot be computed here."""
    path = os.path.join(folder, CONFIG)
    if not os.path.isfile(path):
        raise UserError(
            f"{folder}: no {CONFIG}. It states the model's sizes and belongs"
            " to the weights; download the whole folder."
        )
    given = read_json(path)
    config = {**_DEFAULTS, **given}
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    act, eps = config["hidden_act"], "layer_norm_eps"
    kind, position = "model_type", "position_embedding_type"
    problem = None
    if given.get(kind) != "electra":
        problem = f"{kind} is {given.get(kind)!r}; expected 'electra'."
    elif wrong := [
        n for n in SIZES if type(config[n]) is not int or config[n] < 1
    ]:
        found = config[wrong[0]]
        problem = f"{wrong[0]} is {found!r}; expected a number above 0."
    elif type(config[eps]) not in (int, float) or config[eps] < 0:
        problem = f"{eps} is {config[eps]!r}; expected a number, at least 0."
    elif hidden % heads:
        problem = (
            f"hidden_size {hidden} is not a multiple of num_attention_heads"
            f" {heads}."
        )
    elif config.get(position, "absolute") != "absolute":
        problem = (
            f"{position} is {config[position]!r}; the original has 'absolute'"
            " only."
        )
    elif config.get("is_decoder"):
        problem = (
            "is_decoder is true: attention to the left only, which the"
            " original's encoder has not."
        )
    elif act not in ACTIVATIONS:
        expected = ", ".join(ACTIVATIONS)
        problem = f"hidden_act is {act!r}; expected one of {expected}."
    if problem:
        raise UserError(f"{path}: {problem}")
    return config


def follows_rule(config: Mapping[str, Any]) -> bool:
    """Whether heads and feed-forward width are what a generator's size says."""
    hidden = config["hidden_size"]
    return (
        config["num_attention_heads"] == default_heads(hidden)
        and config["intermediate_size"] == 4 * hidden
    )


def pair_notes(
    network: Network,
    config: Mapping[str, Any],
    discriminator: Mapping[str, Any],
    path: str,
) -> dict[str, str]:
    """A generator's settings that give way; refuses what changes outputs."""
    notes, hidden = {}, config["hidden_size"]
    heads = "num_attention_heads"
    same = {n: discriminator[n] for n in (*_TABLES.values(), *SETTINGS, heads)}
    if network.encoder == "generator":
        same[heads] = default_heads(hidden)
    for name, value in same.items():
        if config[name] == value:
            continue
        if name.endswith("_prob") or name == "initializer_range":
            notes[f"generator's {CONFIG}: {name}"] = (
                f"{config[name]} there; here the discriminator's {value}"
                " serves both"
            )
            continue
        raise UserError(
            f"{path}: {name} is {config[name]!r}; a generator beside a"
            f" discriminator has {value!r} here, as in the original. Read one"
            " part alone."
        )
    return notes


def hparams_of(contents: Contents, config: Mapping[str, Any]) -> dict[str, Any]:
    """Hparams of the networks that are there: by shapes, then config.json."""
    hparams = contents.hparams()
    # The generator may just be in another folder.
    hparams.pop("uniform_generator", None)
    overrides = hparams.pop("model_hparam_overrides", {})
    usual = {name: _DEFAULTS[name] for name in SETTINGS}
    usual["num_attention_heads"] = default_heads(config["hidden_size"])
    overrides.pop("num_attention_heads", None)
    stated = {**config, "hidden_act": ACTIVATIONS[config["hidden_act"]]}
    overrides |= {n: stated[n] for n, v in usual.items() if stated[n] != v}
    return hparams | {"model_hparam_overrides": overrides}


def stated_settings(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """What hparams state of an encoder, under the names of config.json."""
    stated = {**hparams, **(hparams.get("model_hparam_overrides") or {})}
    if hparams.get("debug"):  # the original's debug shape wins
        stated = {n: v for n, v in stated.items() if n not in SIZES}
        stated["num_attention_heads"] = 4
    return {n: v for n, v in stated.items() if v is not None}


def make_config(
    network: Network,
    sizes: Mapping[str, int],
    hparams: Mapping[str, Any],
    pad_token_id: int = 0,
    head: TaskHead | None = None,
) -> dict[str, Any]:
    """Describes a network as transformers wants it; `head` is its task's."""
    hidden, stated = sizes["hidden_size"], stated_settings(hparams)
    heads = default_heads(hidden)
    if network.encoder == "electra":
        heads = stated.get("num_attention_heads", heads)
    if hidden % heads:
        raise UserError(
            f"The hidden size ({hidden}) is not a multiple of the number of"
            f" attention heads ({heads}); set num_attention_heads in"
            " model_hparam_overrides."
        )
    mark: dict[str, Any] = {"version": 1}
    if network.architecture == MASKED_LM:
        mark |= {"encoder": network.encoder, "embeddings": network.embeddings}
    if network.task:
        mark["task"] = network.task
    if head and head.range:
        mark["range"] = list(head.range)
    if head and head.as_elsewhere:
        mark["as_elsewhere"] = True
    labels = (head.labels if head else ()) or [
        f"LABEL_{i}" for i in range(sizes.get(LABELS, 0))
    ]
    naming: dict[str, Any] = {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: i for i, label in enumerate(labels)},
    }
    if network.architecture == SENTENCES:
        naming["problem_type"] = PROBLEMS[head.kind]
    return {
        "architectures": [network.architecture],
        "model_type": "electra",
        **{name: sizes[name] for name in SIZES if name in sizes},
        "num_attention_heads": heads,
        **{name: stated.get(name, _DEFAULTS[name]) for name in SETTINGS},
        "position_embedding_type": "absolute",
        "pad_token_id": pad_token_id,
        "tie_word_embeddings": True,
        **(naming if labels else {}),
        MARK: mark,
    }
