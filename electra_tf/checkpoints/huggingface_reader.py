# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face ELECTRA folders read, without transformers.

transformers keeps one network in a folder, with `config.json`,
`model.safetensors` and tokenizer files. A pre-trained ELECTRA is two of them;
a folder that holds both as `discriminator/` and `generator/` is one model here.
"""

import dataclasses
import functools
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  (gives NumPy the type bfloat16)
import numpy as np
import safetensors

from configure.errors import UserError
from configure.formatting import limit_lines
from electra_tf.checkpoints import huggingface_heads as heads
from electra_tf.checkpoints import huggingface_layout as layout
from electra_tf.checkpoints.contents import HIDDEN, TaskHead
from electra_tf.checkpoints.huggingface_layout import CONFIG, Network, Pair
from electra_tf.checkpoints.weights import (
    TensorSpec,
    View,
    Weights,
    repeat_segment_row,
)
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import check_digest
from electra_tf.files.json_files import read_json
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

# Tensors of a folder, whatever file they are in.

_NARROW = {"F16": "float16", "BF16": "bfloat16", "F64": "float64"}


@dataclasses.dataclass(frozen=True)
class _Tensor:
    path: str  # of the file that is read, for messages
    name: str  # in that file
    shape: tuple[int, ...]
    dtype: str  # as safetensors writes it ("F32", "BF16")
    load: Callable[[], np.ndarray]  # gives it as stored

    def read(self) -> np.ndarray:
        """Reads it as float32; widening others loses nothing."""
        if self.dtype != "F32" and self.dtype not in _NARROW:
            raise UserError(
                f"{self.path}: {self.name} is stored as {self.dtype}; expected"
                " F32, F16 or BF16. Save the model without quantization."
            )
        return np.asarray(self.load(), np.float32, order="C")


def find_weights(folder: str) -> str:
    """The file of weights, or their index."""
    for name in layout.WEIGHT_FILES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    names = filesystem.list_directory(folder)
    others = [n for n in names if n.endswith((".h5", ".msgpack", ".ot"))]
    found = f" that can be read ({', '.join(others)} cannot)" if others else ""
    raise UserError(
        f"{folder}: no weights{found}; expected {layout.SINGLE}, {layout.INDEX}"
        f" or {layout.TORCH} beside config.json (download the folder again), or"
        " model.ckpt-<step>.index with its data."
    )


def _open_tensors(path: str) -> dict[str, _Tensor]:
    """Opens a file of weights, or what an index names."""
    if path.endswith(layout.TORCH):
        return _open_torch(path)
    if path.endswith(layout.SINGLE):
        return _open_safetensors(path, {path: None})
    if path.endswith(layout.INDEX):
        return _open_safetensors(path, _shards(path))
    raise UserError(
        f"{path}: a PyTorch file in shards is not read; save the model as"
        f" {layout.SINGLE} (transformers: save_pretrained)."
    )


def _open_torch(path: str) -> dict[str, _Tensor]:
    """PyTorch unpickles tensors, nothing else, mapped where that is allowed."""
    try:
        import torch
    except ImportError as error:
        raise UserError(
            f"{path}: only PyTorch reads this file, and it is not installed."
            " Either `pip install torch`, or, where transformers is installed,"
            " load the model and call save_pretrained, which writes"
            f" {layout.SINGLE}."
        ) from error
    options = {"map_location": "cpu", "weights_only": True}
    try:
        try:
            tensors = torch.load(path, mmap=True, **options)
        except RuntimeError:  # files from before PyTorch 1.6
            tensors = torch.load(path, **options)
    except Exception as error:
        # Damage shows as almost any exception of pickle, zip or PyTorch.
        raise UserError(
            f"{path}: PyTorch cannot read this file as tensors alone"
            f" ({type(error).__name__}: {str(error).splitlines()[0]})."
            " It is damaged, or holds other objects, which are not loaded."
        ) from error
    if not isinstance(tensors, dict) or not all(
        hasattr(tensor, "shape") for tensor in tensors.values()
    ):
        raise UserError(f"{path}: expected a dictionary of tensors.")
    codes = {f"torch.{dtype}": code for code, dtype in _NARROW.items()}
    codes["torch.float32"] = "F32"
    return {
        name: _Tensor(
            *(path, name, tuple(tensor.shape)),
            codes.get(str(tensor.dtype), str(tensor.dtype)),
            lambda tensor=tensor: tensor.float().numpy(),
        )
        for name, tensor in tensors.items()
    }


def _open_safetensors(
    path: str, shards: Mapping[str, list[str] | None]
) -> dict[str, _Tensor]:
    """Opens one file, or shards with the names that an index expects there.

    Each is opened anew for every tensor: a mapping that stays open would count
    as memory for all that was read.
    """
    tensors = {}
    for shard, listed in shards.items():
        with _safe_open(shard) as file:
            held = list(file.keys())
            for name in held if listed is None else listed:
                if name not in held:
                    raise UserError(
                        f"{shard}: no tensor {name}, which {path} says is"
                        " there. Download the folder again."
                    )
                view = file.get_slice(name)
                tensors[name] = _Tensor(
                    *(path, name, tuple(view.get_shape()), view.get_dtype()),
                    functools.partial(_load, shard, name),
                )
    return tensors


def _load(path: str, name: str) -> np.ndarray:
    with _safe_open(path) as file:
        try:
            return file.get_tensor(name)
        except (safetensors.SafetensorError, OSError) as error:
            raise UserError(f"{path}: cannot read {name}: {error}.") from error


def _safe_open(path: str) -> Any:
    """Opens a file; its header is checked against its size on the way."""
    if not os.path.exists(path):
        raise UserError(
            f"{path}: missing; its index names it. Download the folder again."
        )
    try:
        return safetensors.safe_open(path, framework="np")
    except (safetensors.SafetensorError, OSError) as error:
        with open(path, "rb") as file:
            if file.read(80).startswith(b"version https://git-lfs"):
                raise UserError(
                    f"{path}: a Git LFS pointer, not the weights; run `git lfs"
                    " pull` in the folder."
                ) from error
        raise UserError(
            f"{path}: not a whole safetensors file ({error}): cut short or"
            " damaged. Download or copy it again."
        ) from error


def _shards(path: str) -> dict[str, list[str]]:
    weight_map = read_json(path).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"{path}: no `weight_map` from tensors to files.")
    shards: dict[str, list[str]] = {}
    for name, file in weight_map.items():
        if (
            not isinstance(file, str)
            or os.path.basename(file) != file
            or file in ("", os.curdir, os.pardir)
        ):
            raise UserError(
                f"{path}: weight_map: {name}: {file!r} is not the name of a"
                " file in the folder."
            )
        full = os.path.join(os.path.dirname(path), file)
        shards.setdefault(full, []).append(name)
    return shards


# Names there: which network they are of, and what has no place here.

# Constants that older versions of transformers saved, and a tied copy.
_BUFFER = re.compile(r"(^|\.)embeddings\.(position_ids|token_type_ids)$")
_LM_HEAD = "generator_lm_head.weight"
_WORD_TABLE = "electra.embeddings.word_embeddings.weight"
_LAYER = re.compile(r"(?:electra\.)?encoder\.layer\.(\d+)\.")


def _spellings(theirs: str) -> list[str]:
    """Names a tensor has in files of various ages."""
    names = [theirs, theirs.removeprefix("electra.")]
    for new, old in (("weight", "gamma"), ("bias", "beta")):
        if theirs.endswith(f"LayerNorm.{new}"):
            names += [n.removesuffix(new) + old for n in names[:2]]
    # Of two tied tensors a file may hold either.
    return [*names, _LM_HEAD] if theirs == _WORD_TABLE else names


def _why_unused(name: str, why_no_head: str) -> str | None:
    """Says why a tensor has no place here; None for mere constants."""
    if _BUFFER.search(name):
        return None
    if name.startswith(("classifier.", "sequence_summary.", "qa_outputs.")):
        return why_no_head
    if "crossattention" in name:
        return "cross attention of a decoder; the original has none"
    return "no counterpart in the original"


class _Folder:
    """One network as transformers saves it, checked against its config."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = find_weights(path)
        check_digest(self._file)
        self.config = layout.read_config(path)  # filled in
        self._stored = _open_tensors(self._file)
        self._sizes: dict[str, int] = dict(self.config)
        for name in ("classifier.weight", "classifier.out_proj.weight"):
            if name in self._stored:
                self._sizes[layout.LABELS] = self._stored[name].shape[0]
        self._kind, self._why_no_head = "", ""  # of its task's head
        self.network = self._find_network()
        self.tensors = self._match()
        table, scores = self.tensors[_WORD_TABLE], self._stored.get(_LM_HEAD)
        # A masked LM may not score words by a table of its own.
        if (
            self.network.architecture == layout.MASKED_LM
            and scores not in (None, table)
            and not np.array_equal(scores.read(), table.read())
        ):
            raise UserError(
                f"{self._file}: {_LM_HEAD} is not the table of token"
                " embeddings; in the original the two are one."
            )

    def _find_network(self) -> Network:
        architecture, declared = heads.architecture_of(
            self.config, self._stored
        )
        mark = self.config.get(layout.MARK)
        mark = mark if isinstance(mark, dict) else {}
        labels, path = (
            self._sizes.get(layout.LABELS, 0),
            f"{self.path}/{CONFIG}",
        )
        kind, detail = heads.kind_of(architecture, self.config, labels, path)
        self._why_no_head = heads.why_no_head(declared, detail)
        if detail and not mark.get("task"):
            return Network(layout.BARE)
        self._kind = kind
        if kind:
            name = heads.default_name(architecture, kind)
            first = self._first_layer() if mark else HIDDEN
            return Network(
                architecture, task=mark.get("task") or name, first=first
            )
        if architecture != layout.MASKED_LM:
            return Network(architecture)
        act = self.config["hidden_act"]
        if layout.ACTIVATIONS[act] != "gelu":
            raise UserError(
                f"{self.path}/{CONFIG}: hidden_act is {act!r}; the head of"
                f" {architecture} has gelu there all the same, here the"
                " encoder's."
            )
        usual = {"encoder": "generator", "embeddings": "electra"}
        scopes = [mark.get(name, scope) for name, scope in usual.items()]
        for scope in scopes:
            if scope not in ("electra", "generator"):
                raise UserError(
                    f"{self.path}/{CONFIG}: {layout.MARK}: expected 'electra'"
                    f" or 'generator', found {scope!r}."
                )
        return Network(architecture, *scopes)

    def _first_layer(self) -> str:
        """Name of a sentence classifier's first layer here."""
        matrix = self._stored.get("classifier.dense.weight")
        if matrix is None or len(matrix.shape) != 2:
            return HIDDEN
        identity = np.eye(*matrix.shape, dtype=np.float32)
        is_ours = np.array_equal(matrix.read(), identity)
        return layout.IDENTITY if is_ours else HIDDEN

    def _match(self) -> dict[str, _Tensor]:
        """Tensors by their names of today; refuses what is not there."""
        held, layers = self._stored, self.config["num_hidden_layers"]
        tensors, missing, differing = {}, [], []
        for pair in self.network.pairs(self._sizes):
            found = next((n for n in _spellings(pair.theirs) if n in held), "")
            if not found:
                missing.append(pair.theirs)
                continue
            tensors[pair.theirs] = tensor = held[found]
            wanted = pair.their_shape(self._sizes)
            if tensor.shape != wanted:
                differing.append(
                    f"{found}: {list(tensor.shape)} in the file, {list(wanted)}"
                    f" by {CONFIG} ({', '.join(pair.axes)})"
                )
        differing += [
            f"{name}: of a layer that num_hidden_layers {layers} in {CONFIG}"
            " does not count"
            for name in held
            if (found := _LAYER.match(name)) and int(found[1]) >= layers
        ]
        lacks = f"lacks tensors that {self.network.architecture} of {layers}"
        for lines, what in (
            (missing, f"{lacks} layers has"),
            (differing, f"does not fit its {CONFIG}"),
        ):
            if lines:
                title = f"{self._file} {what}:"
                raise UserError("\n".join([title, *limit_lines(lines, 8)]))
        return tensors

    def variables(
        self, network: Network
    ) -> dict[str, tuple[_Tensor, Pair, int, TensorSpec]]:
        """Where every variable of ours is, and of which shape."""
        float32 = np.dtype(np.float32)
        return {
            ours: (
                *(self.tensors[pair.theirs], pair, i),
                TensorSpec(pair.shape(self._sizes), float32),
            )
            for pair in network.pairs(self._sizes)
            for i, ours in enumerate(pair.ours)
        }

    def heads(self) -> dict[str, TaskHead]:
        if not self._kind:
            return {}
        path, labels = f"{self.path}/{CONFIG}", ()
        if self._kind != "question_answering":
            count = self._sizes[layout.LABELS]
            labels = heads.labels_of(self.config, count, path)
        length = self.max_length()
        head = heads.task_head(self._kind, self.config, labels, length, path)
        return {self.network.task: head}

    def max_length(self) -> int:
        """The wordpieces that its tokenizer cuts texts to."""
        positions = self.config["max_position_embeddings"]
        return heads.read_max_length(self.path, positions)

    def dropped(self) -> dict[str, str]:
        used = {tensor.name for tensor in self.tensors.values()} | {_LM_HEAD}
        notes = {
            name: reason
            for name in self._stored
            if name not in used
            and (reason := _why_unused(name, self._why_no_head))
        }
        codes = [tensor.dtype for tensor in self._stored.values()]
        for code, dtype in _NARROW.items():
            if code in codes:
                notes[f"{dtype} values"] = (
                    f"{codes.count(code)} {dtype} tensors are given as float32"
                    " (convert_checkpoint --half_precision writes float16)"
                )
        return notes


class _HuggingFaceWeights(Weights):
    """Reads variables from one or two folders."""

    def __init__(
        self,
        path: str,
        folders: Sequence[_Folder],
        networks: Sequence[Network],
        dropped: Mapping[str, str],
    ) -> None:
        self._variables = {}
        for folder, network in zip(folders, networks, strict=True):
            self._variables |= folder.variables(network)
        specs = {name: found[-1] for name, found in self._variables.items()}
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
        tensor, pair, i, _ = self._variables[name]
        return pair.to_ours(tensor.read(), i)


# Vocabularies of folders without vocab.txt, until the process ends.
_VOCABULARIES: dict[tuple[str, str | None], tempfile.TemporaryDirectory] = {}


def _find_vocab(folder: str, settings: TokenizerSettings) -> str | None:
    """Return a folder's vocab.txt, or a file of what tokenizer.json holds."""
    plain = os.path.join(folder, layout.VOCAB)
    whole = os.path.join(folder, TOKENIZER)
    if os.path.isfile(plain) or not os.path.isfile(whole):
        return plain if os.path.isfile(plain) else None
    text, stated = vocabulary_text(whole), settings_text(settings)
    if (text, stated) not in _VOCABULARIES:
        temporary = tempfile.TemporaryDirectory("-electra-vocab")
        _VOCABULARIES[text, stated] = temporary
    place = _VOCABULARIES[text, stated].name
    path = os.path.join(place, layout.VOCAB)
    write_atomically(path, text)
    if stated:
        write_atomically(os.path.join(place, TOKENIZER_CONFIG), stated)
    return path


def _unfolded(
    weights: Weights, network: Network, config: Mapping[str, Any]
) -> Weights:
    """A head without the shifted identity, its bias as stated or as trained."""
    if not network.needs_identity_layer:
        return weights
    scope = network.head_scope
    shift = weights.read(f"{scope}/{layout.IDENTITY}/bias")
    kernel = weights.read(f"{scope}/dense/kernel")

    def change(name: str, value: np.ndarray) -> np.ndarray:
        if name != f"{scope}/dense/bias":
            return value
        stated = np.asarray(config[layout.MARK].get("bias"), np.float32)
        if stated.shape == value.shape and np.array_equal(
            layout.moved_bias(stated, kernel, shift, -1), value
        ):
            return stated
        return layout.moved_bias(value, kernel, shift, 1)

    kept = dict(weights.specs)
    for name in ("kernel", "bias"):
        del kept[f"{scope}/{layout.IDENTITY}/{name}"]
    return View(weights, kept, change)


def open_huggingface(folder: str) -> Weights:
    """Opens a model that transformers or `write_huggingface` saved."""
    if not os.path.isdir(folder):
        raise UserError(f"{folder}: no such folder.")
    names = [""] if _is_one(folder) else [*layout.FOLDERS]
    paths = {name: os.path.join(folder, name).rstrip("/") for name in names}
    found = {n: _Folder(path) for n, path in paths.items() if _is_one(path)}
    if not found:
        raise UserError(
            f"{folder}: no {CONFIG} and no weights, neither here nor in"
            " discriminator/ or generator/."
        )
    for name, one in found.items():
        held, wanted = one.network.architecture, layout.FOLDERS.get(name)
        if wanted not in (None, held):
            raise UserError(
                f"{one.path} holds {held}; expected the {name}, {wanted}."
            )
    folders, dropped = list(found.values()), {}
    networks = [one.network for one in folders]
    configs = [one.config for one in folders]
    for name, one in found.items():
        lead = f"{name}/" if len(found) > 1 else ""
        dropped |= {lead + key: why for key, why in one.dropped().items()}
    if len(found) > 1:
        networks[1] = _generator_of(folder, *folders)
        dropped |= layout.pair_notes(
            networks[1], *reversed(configs), f"{folders[1].path}/{CONFIG}"
        )
    else:
        folder = folders[0].path
        is_small = networks[0].encoder == "generator"
        if is_small and not layout.follows_rule(configs[0]):
            # No generator here has such heads; a masked LM may have them.
            networks[0] = Network(layout.MASKED_LM)
    weights = _HuggingFaceWeights(folder, folders, networks, dropped)
    weights = _unfolded(weights, networks[0], configs[0])
    is_tagger = networks[0].architecture == layout.TAGGING
    return repeat_segment_row(weights, 0) if is_tagger else weights


def _is_one(folder: str) -> bool:
    wanted = (CONFIG, *layout.WEIGHT_FILES)
    return any(os.path.isfile(os.path.join(folder, n)) for n in wanted)


def _generator_of(
    path: str, discriminator: _Folder, generator: _Folder
) -> Network:
    """Finds out what the generator shares with the discriminator."""
    width = generator.config["embedding_size"]
    hidden = generator.config["hidden_size"]
    own = Network(layout.MASKED_LM, "generator", "generator")
    both = discriminator.tensors, generator.tensors
    differing = _first_difference(*both, "electra.embeddings.")
    if width == hidden and (differing or generator.network == own):
        return own
    if differing:
        raise UserError(
            f"{path}: {differing} of discriminator/ and generator/ differ, but"
            " in the original a generator either has the discriminator's"
            f" tables or its own, as wide as its hidden size ({hidden}, not"
            f" {width}). They are not of one model; read one part alone:"
            f" {discriminator.path} or {generator.path}."
        )
    # The rest of the encoder.
    scope = "generator" if _first_difference(*both, "electra.") else "electra"
    return Network(layout.MASKED_LM, scope)


def _first_difference(
    one: Mapping[str, _Tensor], other: Mapping[str, _Tensor], start: str
) -> str | None:
    """Name of the first tensor that is not the same in two networks."""
    for name in {**one, **other}:
        if name.startswith(start):
            a, b = one.get(name), other.get(name)
            if a is None or b is None or a.shape != b.shape:
                return name
            if not np.array_equal(a.read(), b.read()):
                return name
    return None
