# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layout of Hugging Face ELECTRA folders.

This module maps networks, names of tensors and the contents of config.json to
the original's variables and hparams, and back.
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
HUB_PREFIX = "hf:"  # prefix of the names of models on the hub

# Networks and their tensors.

PRETRAINING = "ElectraForPreTraining"
MASKED_LM = "ElectraForMaskedLM"
TAGGING = "ElectraForTokenClassification"
QUESTIONS = "ElectraForQuestionAnswering"
SENTENCES = "ElectraForSequenceClassification"
BARE = "ElectraModel"
# Classes whose head has a counterpart in this project.
HEADS = (PRETRAINING, MASKED_LM, TAGGING, QUESTIONS)
# transformers' `problem_type` by the type of a task on whole texts.
PROBLEMS = {
    "classification": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regression": "regression",
}
# A pre-trained ELECTRA consists of two networks in folders of these names.
FOLDERS = {"discriminator": PRETRAINING, "generator": MASKED_LM}

IDENTITY = "identity"  # name of an added layer, used only while converting
# Names of axes whose sizes have no key in config.json.
ONE = "1"  # an axis of one element
LABELS = "number of labels"

_TABLES = {
    "word_embeddings": "vocab_size",
    "token_type_embeddings": "type_vocab_size",
    "position_embeddings": "max_position_embeddings",
}
# Layers of a transformer block, in the order of transformers' files. Dense
# layers have two axes, layer norms have one axis.
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
    """A tensor of transformers, and the variables that the tensor contains."""

    # Name of the tensor in files of classes with a head. In such files, the
    # encoder's tensors have the prefix `electra.`.
    tensor: str
    # The original's names of the variables; two names if each row of the tensor
    # is a variable.
    variables: tuple[str, ...]
    # Size of each axis of a variable: a key of config.json, LABELS or ONE.
    axes: tuple[str, ...]

    @property
    def _is_transposed(self) -> bool:
        """Return whether the tensor is the transpose of the variable."""
        return self.variables[0].endswith("/kernel")

    def variable_shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape of each variable."""
        return tuple(1 if axis == ONE else sizes[axis] for axis in self.axes)

    def tensor_shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape of the tensor."""
        shape = self.variable_shape(sizes)
        if self._is_transposed:
            shape = shape[::-1]
        return (shape[0] * len(self.variables), *shape[1:])

    def to_variable(self, value: np.ndarray, i: int) -> np.ndarray:
        """Return the value of variable number `i` from the tensor `value`."""
        if len(self.variables) > 1:
            value = value[i : i + 1]
        return np.ascontiguousarray(value.T if self._is_transposed else value)

    def to_tensor(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return the tensor that contains the values of all variables."""
        if self._is_transposed:
            values = [value.T for value in values]
        return values[0] if len(values) == 1 else np.concatenate(values)


@dataclasses.dataclass(frozen=True)
class Network:
    """A network in the layout of transformers: an encoder and a head."""

    architecture: str  # class of transformers
    # TF1 scope of the encoder: "electra" or "generator"
    encoder: str = "electra"
    # TF1 scope of the tables: "electra" or "generator"
    embeddings: str = "electra"
    task: str = ""  # name of the fine-tuning task; "" without a task's head
    # Name of a SENTENCES head's first layer, relative to the head's scope.
    first_layer: str = IDENTITY

    @property
    def folder(self) -> str:
        """Name of the network's folder in a model of two networks, or ""."""
        names = {network: name for name, network in FOLDERS.items()}
        return names.get(self.architecture, "")

    @property
    def head_scope(self) -> str:
        if self.folder:
            return f"{self.folder}_predictions"
        return f"task_specific/{self.task}"

    @property
    def needs_identity_layer(self) -> bool:
        """Return whether a sentence head needs an identity layer."""
        if self.architecture != SENTENCES:
            return False
        return self.first_layer == IDENTITY

    def pairs(self, sizes: Mapping[str, int]) -> list[Pair]:
        """Return all tensors of the network, in transformers' order."""
        module, scope = "electra.embeddings", f"{self.embeddings}/embeddings"
        width, hidden = "embedding_size", "hidden_size"
        pairs = [
            Pair(
                f"{module}.{table}.weight", (f"{scope}/{table}",), (rows, width)
            )
            for table, rows in _TABLES.items()
        ]
        pairs += _norm(module, scope, (width,))
        if sizes[width] != sizes[hidden]:
            scope = f"{self.encoder}/embeddings_project"
            pairs += _dense(f"{module}_project", scope, (width, hidden))
        for i in range(sizes["num_hidden_layers"]):
            for name, axes in _BLOCK:
                module = f"electra.encoder.layer.{i}.{name.replace('/', '.')}"
                scope = f"{self.encoder}/encoder/layer_{i}/{name}"
                make_pairs = _dense if len(axes) == 2 else _norm
                pairs += make_pairs(module, scope, axes)
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
            below = f"{scope}/{self.first_layer}"
            return [
                *_dense("classifier.dense", below, (hidden, hidden)),
                *_dense("classifier.out_proj", first, (hidden, LABELS)),
            ]
        if self.architecture == QUESTIONS:
            # The first row is for the start of an answer, the second for its
            # end.
            kernels = (f"{first}/kernel", f"{second}/kernel")
            biases = (f"{first}/bias", f"{second}/bias")
            return [
                Pair("qa_outputs.weight", kernels, (hidden, ONE)),
                Pair("qa_outputs.bias", biases, (ONE,)),
            ]
        return []


def _dense(module: str, scope: str, axes: tuple[str, ...]) -> list[Pair]:
    return [
        Pair(f"{module}.weight", (f"{scope}/kernel",), axes),
        Pair(f"{module}.bias", (f"{scope}/bias",), axes[1:]),
    ]


def _norm(module: str, scope: str, axes: tuple[str, ...]) -> list[Pair]:
    tensor, variable = f"{module}.LayerNorm", f"{scope}/LayerNorm"
    return [
        Pair(f"{tensor}.bias", (f"{variable}/beta",), axes),
        Pair(f"{tensor}.weight", (f"{variable}/gamma",), axes),
    ]


# A sentence head of this project has one dense layer by default, whereas
# transformers' head has two dense layers and a GELU between the layers. A head
# of one layer is written with an additional first layer that GELU does not
# change: an identity that shifts values into GELU's linear range.

# GELU(z) is z in float32 for z >= 6, because 1 + erf(z / sqrt(2)) rounds to 2.
_GELU_IS_IDENTITY = 6.0


def identity_shift(gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return a shift of layer norm outputs to GELU's linear range, float32 [H].

    Args:
      gamma: float32 [H], scale of the layer norm.
      beta: float32 [H], offset of the layer norm.
    """
    # The absolute values of normalized vectors are at most sqrt(H - 1).
    reach = np.sqrt(len(gamma) - 1.0) * np.abs(gamma.astype(np.float64))
    return (_GELU_IS_IDENTITY + reach - beta).astype(np.float32)


def shift_bias(
    bias: np.ndarray, kernel: np.ndarray, shift: np.ndarray, sign: int
) -> np.ndarray:
    """Return `bias` plus `sign` times the product of `shift` and `kernel`.

    The result is float32.

    Args:
      bias: [C]; kernel: [H, C]; shift: [H].
      sign: 1 or -1.
    """
    added = shift.astype(np.float64) @ kernel.astype(np.float64)
    return (bias + sign * added).astype(np.float32)


# Conversion of config.json to the original's hparams, and back.

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
# Defaults of transformers' ElectraConfig, for keys that a file leaves out.
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
    """Read a folder's config.json, completed with transformers' defaults.

    Raises:
      UserError: the file is missing, or a setting is not supported.
    """
    path = os.path.join(folder, CONFIG)
    if not os.path.isfile(path):
        raise UserError(
            f"{folder}: {CONFIG} is missing; expected this file with the"
            " model's sizes. Download the whole folder."
        )
    stated = read_json(path)
    config = {**_DEFAULTS, **stated}
    if problem := _config_problem(stated):
        raise UserError(
            f"{path}: {problem} Correct this setting, or choose a different"
            " model."
        )
    return config


def _config_problem(stated: Mapping[str, Any]) -> str | None:
    """Return a message about the first unsupported setting, or None.

    Args:
      stated: contents of the file, which may leave out defaults.
    """
    settings = {**_DEFAULTS, **stated}
    hidden, heads = settings["hidden_size"], settings["num_attention_heads"]
    act, eps = settings["hidden_act"], "layer_norm_eps"
    kind, position = "model_type", "position_embedding_type"
    if stated.get(kind) != "electra":
        return f"{kind} is {stated.get(kind)!r}; expected 'electra'."
    for name in SIZES:
        size = settings[name]
        if type(size) is not int or size < 1:
            return f"{name} is {size!r}; expected a number above 0."
    if type(settings[eps]) not in (int, float) or settings[eps] < 0:
        return f"{eps} is {settings[eps]!r}; expected a number of at least 0."
    if hidden % heads:
        return (
            f"hidden_size is {hidden}; expected a multiple of"
            f" num_attention_heads ({heads})."
        )
    if settings.get(position, "absolute") != "absolute":
        return (
            f"{position} is {settings[position]!r}; expected 'absolute', as in"
            " the original."
        )
    if settings.get("is_decoder"):
        return (
            "is_decoder is true (attention to the left only); expected false,"
            " because the original's encoder attends in both directions."
        )
    if act not in ACTIVATIONS:
        expected = ", ".join(ACTIVATIONS)
        return f"hidden_act is {act!r}; expected one of {expected}."
    return None


def follows_generator_rule(
    hidden_size: int, num_attention_heads: int, intermediate_size: int
) -> bool:
    """Return whether the hidden size implies the other two sizes."""
    return (
        num_attention_heads == default_heads(hidden_size)
        and intermediate_size == 4 * hidden_size
    )


def pair_notes(
    network: Network,
    generator: Mapping[str, Any],
    discriminator: Mapping[str, Any],
    path: str,
) -> dict[str, str]:
    """Return a note for each setting of the generator that is not used.

    Args:
      network: generator.
      generator: config.json of the generator.
      discriminator: config.json of the discriminator, whose settings apply to
        both networks.
      path: path of the generator's config.json, for messages.

    Raises:
      UserError: the networks differ in a setting that changes outputs.
    """
    notes, hidden = {}, generator["hidden_size"]
    heads = "num_attention_heads"
    shared_names = (*_TABLES.values(), *SETTINGS, heads)
    expected = {name: discriminator[name] for name in shared_names}
    if network.encoder == "generator":
        expected[heads] = default_heads(hidden)
    for name, value in expected.items():
        if generator[name] == value:
            continue
        if name.endswith("_prob") or name == "initializer_range":
            notes[f"generator's {CONFIG}: {name}"] = (
                f"{generator[name]} in the file is replaced by the"
                f" discriminator's {value}, which applies to both networks"
            )
            continue
        raise UserError(
            f"{path}: {name} is {generator[name]!r}; expected {value!r},"
            " because generator and discriminator share this setting, as in the"
            " original. Convert discriminator/ and generator/ separately."
        )
    return notes


def hparams_of(
    contents: Contents, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the hparams that shapes and settings imply.

    Args:
      contents: contents of the folder, with the shapes.
      settings: settings of the encoder, by the keys of config.json.
    """
    hparams = contents.hparams()
    # A discriminator's folder does not show whether a generator was trained, so
    # the kind of generator is left out.
    hparams.pop("uniform_generator", None)
    overrides = hparams.pop("model_hparam_overrides", {})
    defaults = {name: _DEFAULTS[name] for name in SETTINGS}
    defaults["num_attention_heads"] = default_heads(settings["hidden_size"])
    overrides.pop("num_attention_heads", None)
    stated = {**settings, "hidden_act": ACTIVATIONS[settings["hidden_act"]]}
    for name, default in defaults.items():
        if stated[name] != default:
            overrides[name] = stated[name]
    return hparams | {"model_hparam_overrides": overrides}


def encoder_settings(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """Return the encoder's settings in hparams, by the keys of config.json."""
    stated = {**hparams, **(hparams.get("model_hparam_overrides") or {})}
    if hparams.get("debug"):  # The original's debug sizes override other sizes.
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
    """Return the config.json of a network.

    Args:
      sizes: sizes by the keys of config.json, and LABELS.
      head: head of the network's task, if any.
    """
    hidden, settings = sizes["hidden_size"], encoder_settings(hparams)
    heads = default_heads(hidden)
    if network.encoder == "electra":
        heads = settings.get("num_attention_heads", heads)
    if hidden % heads:
        raise UserError(
            f"hidden_size is {hidden}; expected a multiple of"
            f" num_attention_heads ({heads}). Set num_attention_heads in"
            " model_hparam_overrides with --hparams."
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
    labels = head.labels if head else ()
    if not labels:
        labels = [f"LABEL_{i}" for i in range(sizes.get(LABELS, 0))]
    label_keys: dict[str, Any] = {}
    if labels:
        label_keys["id2label"] = dict(enumerate(labels))
        label_keys["label2id"] = {label: i for i, label in enumerate(labels)}
        if network.architecture == SENTENCES:
            label_keys["problem_type"] = PROBLEMS[head.kind]
    return {
        "architectures": [network.architecture],
        "model_type": "electra",
        **{name: sizes[name] for name in SIZES if name in sizes},
        "num_attention_heads": heads,
        **{name: settings.get(name, _DEFAULTS[name]) for name in SETTINGS},
        "position_embedding_type": "absolute",
        "pad_token_id": pad_token_id,
        "tie_word_embeddings": True,
        **label_keys,
        MARK: mark,
    }
