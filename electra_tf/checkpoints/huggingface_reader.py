# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading of Hugging Face ELECTRA folders, without transformers.

transformers saves each network in a folder with `config.json`,
`model.safetensors` and tokenizer files. A pre-trained ELECTRA consists of two
networks. A folder with the subfolders `discriminator/` and `generator/` is read
as one model.
"""

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from configure.errors import UserError
from configure.formatting import limit_lines
from electra_tf.checkpoints import huggingface_heads as heads
from electra_tf.checkpoints import huggingface_layout as layout
from electra_tf.checkpoints.contents import HIDDEN, TaskHead
from electra_tf.checkpoints.huggingface_layout import CONFIG, Network, Pair
from electra_tf.checkpoints.huggingface_weight_files import (
    NARROW_TYPES,
    StoredTensor,
    find_weights,
    open_tensors,
)
from electra_tf.checkpoints.weights import (
    TensorSpec,
    View,
    Weights,
    repeat_segment_row,
)
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import check_digest
from electra_tf.text.huggingface_tokenizer import (
    TOKENIZER,
    read_tokenizer,
    vocabulary_text,
)
from electra_tf.text.tokenizer_settings import (
    TOKENIZER_CONFIG,
    TokenizerSettings,
    settings_text,
)

# Constants that older versions of transformers saved with the weights.
_BUFFER = re.compile(r"(^|\.)embeddings\.(position_ids|token_type_ids)$")
_LM_HEAD = "generator_lm_head.weight"  # a tied copy of the word table
_WORD_TABLE = "electra.embeddings.word_embeddings.weight"
_LAYER = re.compile(r"(?:electra\.)?encoder\.layer\.(\d+)\.")


class _StoredVariable(NamedTuple):
    """Location of one of the original's variables in a folder's tensors."""

    tensor: StoredTensor
    pair: Pair
    index: int  # index of the variable in `pair.variables`
    spec: TensorSpec


def _spellings(tensor: str) -> list[str]:
    """Return a tensor's names in all versions of transformers, newest first."""
    names = [tensor, tensor.removeprefix("electra.")]
    for new, old in (("weight", "gamma"), ("bias", "beta")):
        if tensor.endswith(f"LayerNorm.{new}"):
            names += [name.removesuffix(new) + old for name in names[:2]]
    # The output table of a masked LM is tied to the word table, so some files
    # contain only the output table.
    if tensor == _WORD_TABLE:
        names.append(_LM_HEAD)
    return names


def _why_unused(name: str, why_no_head: str) -> str | None:
    """Return the reason why a tensor is not read; None for constants."""
    if _BUFFER.search(name):
        return None
    if name.startswith(("classifier.", "sequence_summary.", "qa_outputs.")):
        return why_no_head
    if "crossattention" in name:
        return "cross attention, which the original's encoder does not have"
    return "no counterpart in the original"


class _Folder:
    """A network that transformers saved, checked against its config."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = find_weights(path)
        check_digest(self._file)
        self.config = layout.read_config(path)
        self._stored = open_tensors(self._file)
        self._sizes: dict[str, int] = dict(self.config)
        for name in ("classifier.weight", "classifier.out_proj.weight"):
            if name in self._stored:
                self._sizes[layout.LABELS] = self._stored[name].shape[0]
        self._kind, self._why_no_head = "", ""  # set by _find_network
        self.network = self._find_network()
        self.tensors = self._match_tensors()
        self._check_tied_table()

    def _check_tied_table(self) -> None:
        """Raise a UserError if a masked LM has a separate output table."""
        if self.network.architecture != layout.MASKED_LM:
            return
        table, scores = self.tensors[_WORD_TABLE], self._stored.get(_LM_HEAD)
        if scores in (None, table):
            return
        if not np.array_equal(scores.read(), table.read()):
            raise UserError(
                f"{self._file}: {_LM_HEAD} differs from the table of token"
                " embeddings; expected equal tensors, as in the original."
                " Choose a model with tied embeddings."
            )

    def _find_network(self) -> Network:
        declared = (self.config.get("architectures") or [""])[0] or ""
        architecture = heads.find_architecture(declared, self._stored)
        mark = self.config.get(layout.MARK)
        mark = mark if isinstance(mark, dict) else {}
        n_labels = self._sizes.get(layout.LABELS, 0)
        path = f"{self.path}/{CONFIG}"
        kind, detail = heads.find_kind(
            architecture, self.config.get("problem_type"), n_labels, path
        )
        self._why_no_head = heads.why_no_head(declared, detail)
        if detail and not mark.get("task"):
            return Network(layout.BARE)
        self._kind = kind
        if kind:
            task = mark.get("task") or heads.default_name(architecture, kind)
            first_layer = self._first_layer() if mark else HIDDEN
            return Network(architecture, task=task, first_layer=first_layer)
        if architecture != layout.MASKED_LM:
            return Network(architecture)
        return self._find_masked_lm(mark)

    def _find_masked_lm(self, mark: Mapping[str, Any]) -> Network:
        """Return a masked LM's network, with the scopes in its config.json."""
        activation = self.config["hidden_act"]
        if layout.ACTIVATIONS[activation] != "gelu":
            raise UserError(
                f"{self.path}/{CONFIG}: hidden_act is {activation!r}; expected"
                f" gelu, because the head of {layout.MASKED_LM} always has"
                " gelu, while the original's head has the encoder's activation."
                " Convert only the discriminator."
            )
        scopes = [
            mark.get("encoder", "generator"),
            mark.get("embeddings", "electra"),
        ]
        for scope in scopes:
            if scope not in ("electra", "generator"):
                raise UserError(
                    f"{self.path}/{CONFIG}: {layout.MARK}: {scope!r} is not a"
                    " scope; expected 'electra' or 'generator'. Correct this"
                    " scope."
                )
        return Network(layout.MASKED_LM, *scopes)

    def _first_layer(self) -> str:
        """Return the name of a sentence classifier's first layer."""
        matrix = self._stored.get("classifier.dense.weight")
        if matrix is None or len(matrix.shape) != 2:
            return HIDDEN
        identity = np.eye(*matrix.shape, dtype=np.float32)
        is_identity = np.array_equal(matrix.read(), identity)
        return layout.IDENTITY if is_identity else HIDDEN

    def _match_tensors(self) -> dict[str, StoredTensor]:
        """Return the network's tensors by their names in current transformers.

        Raises:
          UserError: tensors are missing, or do not match config.json.
        """
        stored, n_layers = self._stored, self.config["num_hidden_layers"]
        tensors, missing, differing = {}, [], []
        for pair in self.network.pairs(self._sizes):
            names = [n for n in _spellings(pair.tensor) if n in stored]
            if not names:
                missing.append(pair.tensor)
                continue
            tensors[pair.tensor] = tensor = stored[names[0]]
            expected = pair.tensor_shape(self._sizes)
            if tensor.shape != expected:
                differing.append(
                    f"{names[0]}: {list(tensor.shape)} in the file, but"
                    f" {list(expected)} according to {CONFIG}"
                    f" ({', '.join(pair.axes)})"
                )
        for name in stored:
            match = _LAYER.match(name)
            if match and int(match[1]) >= n_layers:
                differing.append(
                    f"{name}: belongs to layer {match[1]}, but"
                    f" num_hidden_layers is {n_layers} in {CONFIG}"
                )
        architecture = self.network.architecture
        for lines, problem in (
            (
                missing,
                f"lacks tensors of {architecture} (num_hidden_layers is"
                f" {n_layers})",
            ),
            (differing, f"does not match its {CONFIG}"),
        ):
            if lines:
                title = f"{self._file} {problem}:"
                remedy = "Download the folder again."
                raise UserError(
                    "\n".join([title, *limit_lines(lines, 8), remedy])
                )
        return tensors

    def variables(self, network: Network) -> dict[str, _StoredVariable]:
        """Return the location of each variable of a network, by name."""
        variables = {}
        for pair in network.pairs(self._sizes):
            shape = pair.variable_shape(self._sizes)
            spec = TensorSpec(shape, np.dtype(np.float32))
            tensor = self.tensors[pair.tensor]
            for i, name in enumerate(pair.variables):
                variables[name] = _StoredVariable(tensor, pair, i, spec)
        return variables

    def heads(self) -> dict[str, TaskHead]:
        """Return the description of the task's head, by the task's name."""
        if not self._kind:
            return {}
        path, labels = f"{self.path}/{CONFIG}", ()
        if self._kind != "question_answering":
            count = self._sizes[layout.LABELS]
            labels = heads.read_labels(self.config.get("id2label"), count, path)
        mark = self.config.get(layout.MARK)
        length = self.max_length()
        head = heads.make_task_head(self._kind, labels, length, mark, path)
        return {self.network.task: head}

    def max_length(self) -> int:
        """Return the number of wordpieces at which texts are truncated."""
        positions = self.config["max_position_embeddings"]
        return heads.read_max_length(self.path, positions)

    def dropped(self) -> dict[str, str]:
        """Return unread or converted tensors, each with the reason."""
        used = {tensor.name for tensor in self.tensors.values()} | {_LM_HEAD}
        notes = {}
        for name in self._stored:
            reason = _why_unused(name, self._why_no_head)
            if name not in used and reason:
                notes[name] = reason
        codes = [tensor.dtype for tensor in self._stored.values()]
        for code, dtype in NARROW_TYPES.items():
            if code in codes:
                notes[f"{dtype} values"] = (
                    f"{codes.count(code)} {dtype} tensors are read as float32"
                    " (convert_checkpoint --half_precision writes float16)"
                )
        return notes


class _HuggingFaceWeights(Weights):
    """Weights in the folders of one or two networks."""

    def __init__(
        self,
        path: str,
        folders: Sequence[_Folder],
        networks: Sequence[Network],
        dropped: Mapping[str, str],
    ) -> None:
        self._variables: dict[str, _StoredVariable] = {}
        for folder, network in zip(folders, networks, strict=True):
            self._variables |= folder.variables(network)
        specs = {name: v.spec for name, v in self._variables.items()}
        super().__init__(path, "huggingface", specs, dropped)
        self.hparams = layout.hparams_of(self.contents, folders[0].config)
        for folder in reversed(folders):
            settings = read_tokenizer(folder.path)
            self.hparams |= settings.hparams
            vocab_file = _find_vocab(folder.path, settings)
            self.vocab_file = vocab_file or self.vocab_file
        self.heads = folders[0].heads()
        self.max_length = folders[0].max_length()

    def read(self, name: str) -> np.ndarray:
        variable = self._variables[name]
        value = variable.tensor.read()
        return variable.pair.to_variable(value, variable.index)


# Temporary folders with the vocabularies of model folders that lack vocab.txt.
# The temporary folders are kept until the process ends.
_VOCABULARIES: dict[tuple[str, str | None], tempfile.TemporaryDirectory] = {}


def _find_vocab(folder: str, settings: TokenizerSettings) -> str | None:
    """Return the path of vocab.txt, or of a copy made from tokenizer.json."""
    vocab_file = os.path.join(folder, layout.VOCAB)
    if os.path.isfile(vocab_file):
        return vocab_file
    tokenizer = os.path.join(folder, TOKENIZER)
    if not os.path.isfile(tokenizer):
        return None
    text, config_text = vocabulary_text(tokenizer), settings_text(settings)
    if (text, config_text) not in _VOCABULARIES:
        temporary = tempfile.TemporaryDirectory("-electra-vocab")
        _VOCABULARIES[text, config_text] = temporary
    directory = _VOCABULARIES[text, config_text].name
    path = os.path.join(directory, layout.VOCAB)
    write_atomically(path, text)
    if config_text:
        config_path = os.path.join(directory, TOKENIZER_CONFIG)
        write_atomically(config_path, config_text)
    return path


def _without_identity(
    weights: Weights, network: Network, stated_bias: Sequence[float] | None
) -> Weights:
    """Remove a sentence head's identity layer and its shift of the next bias.

    `stated_bias` is the bias before the conversion, which is returned bit for
    bit unless transformers has since trained the model.
    """
    if not network.needs_identity_layer:
        return weights
    scope = network.head_scope
    shift = weights.read(f"{scope}/{layout.IDENTITY}/bias")
    kernel = weights.read(f"{scope}/dense/kernel")

    def change(name: str, value: np.ndarray) -> np.ndarray:
        if name != f"{scope}/dense/bias":
            return value
        bias = np.asarray(stated_bias, np.float32)
        if bias.shape == value.shape and np.array_equal(
            layout.shift_bias(bias, kernel, shift, -1), value
        ):
            return bias
        return layout.shift_bias(value, kernel, shift, 1)

    specs = dict(weights.specs)
    for name in ("kernel", "bias"):
        del specs[f"{scope}/{layout.IDENTITY}/{name}"]
    return View(weights, specs, change)


def open_huggingface(folder: str) -> Weights:
    """Open a model that transformers or `write_huggingface` saved.

    Raises:
      UserError: the folder contains no model, or a model that is incomplete,
        corrupt or not supported.
    """
    if not os.path.isdir(folder):
        raise UserError(f"{folder}: no such folder. Correct the path.")
    folders = _open_folders(folder)
    networks = [network_folder.network for network_folder in folders.values()]
    configs = [network_folder.config for network_folder in folders.values()]
    dropped = {}
    for name, network_folder in folders.items():
        prefix = f"{name}/" if len(folders) > 1 else ""
        for tensor, reason in network_folder.dropped().items():
            dropped[prefix + tensor] = reason
    if len(folders) > 1:
        discriminator, generator = folders.values()
        networks[1] = _find_generator(folder, discriminator, generator)
        dropped |= layout.pair_notes(
            networks[1], *reversed(configs), f"{generator.path}/{CONFIG}"
        )
    else:
        (folder,) = [network_folder.path for network_folder in folders.values()]
        is_generator = networks[0].encoder == "generator"
        follows_rule = layout.follows_generator_rule(
            configs[0]["hidden_size"],
            configs[0]["num_attention_heads"],
            configs[0]["intermediate_size"],
        )
        if is_generator and not follows_rule:
            # In a generator, the hidden size determines the number of attention
            # heads and the feed-forward width. A network with different values
            # is a separate masked LM.
            networks[0] = Network(layout.MASKED_LM)
    weights: Weights = _HuggingFaceWeights(
        folder, list(folders.values()), networks, dropped
    )
    mark = configs[0].get(layout.MARK)
    stated_bias = mark.get("bias") if isinstance(mark, dict) else None
    weights = _without_identity(weights, networks[0], stated_bias)
    is_tagger = networks[0].architecture == layout.TAGGING
    return repeat_segment_row(weights, 0) if is_tagger else weights


def _open_folders(folder: str) -> dict[str, _Folder]:
    """Open the folders of one or two networks, by network name."""
    names = [""] if _has_network(folder) else [*layout.FOLDERS]
    folders = {}
    for name in names:
        path = os.path.join(folder, name).rstrip("/")
        if _has_network(path):
            folders[name] = _Folder(path)
    if not folders:
        raise UserError(
            f"{folder}: missing {CONFIG} and weights; expected these files in"
            " this folder, in discriminator/ or in generator/. Correct the"
            " path."
        )
    for name, network_folder in folders.items():
        architecture = network_folder.network.architecture
        expected = layout.FOLDERS.get(name)
        if expected not in (None, architecture):
            raise UserError(
                f"{network_folder.path} contains {architecture}; expected the"
                f" {name}, {expected}. Pass the path of this folder to read"
                " only this network."
            )
    return folders


def _has_network(folder: str) -> bool:
    names = (CONFIG, *layout.WEIGHT_FILES)
    return any(os.path.isfile(os.path.join(folder, n)) for n in names)


def _find_generator(
    path: str, discriminator: _Folder, generator: _Folder
) -> Network:
    """Return the generator's network, with the scopes of shared parts."""
    width = generator.config["embedding_size"]
    hidden = generator.config["hidden_size"]
    separate = Network(layout.MASKED_LM, "generator", "generator")
    both = discriminator.tensors, generator.tensors
    differing = _first_difference(*both, "electra.embeddings.")
    if width == hidden and (differing or generator.network == separate):
        return separate
    if differing:
        raise UserError(
            f"{path}: {differing} differs between discriminator/ and"
            " generator/; expected equal tables, or a generator's tables as"
            f" wide as its hidden size ({hidden}, not {width}). The networks do"
            " not belong to one model. Convert the networks separately:"
            f" {discriminator.path} or {generator.path}."
        )
    # The tables are equal here. If all other tensors of the encoders are equal,
    # too, the networks share one encoder.
    scope = "generator" if _first_difference(*both, "electra.") else "electra"
    return Network(layout.MASKED_LM, scope)


def _first_difference(
    first: Mapping[str, StoredTensor],
    second: Mapping[str, StoredTensor],
    prefix: str,
) -> str | None:
    """Return the name of the first tensor that differs, or None."""
    for name in {**first, **second}:
        if name.startswith(prefix):
            a, b = first.get(name), second.get(name)
            if a is None or b is None or a.shape != b.shape:
                return name
            if not np.array_equal(a.read(), b.read()):
                return name
    return None
