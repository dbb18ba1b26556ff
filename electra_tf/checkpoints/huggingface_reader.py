# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face ELECTRA folders read, without transformers.

transformers keeps one network in a folder, with `config.json`,
`model.safetensors` and tokenizer files. A pre-trained ELECTRA is two of them;
a folder that holds both as `discriminator/` and `generator/` is one model here.
"""

import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import safetensors

from configure.errors import UserError, first_lines
from electra_tf.checkpoints import huggingface_config as configs
from electra_tf.checkpoints import huggingface_names as names
from electra_tf.checkpoints.huggingface_config import (
    INDEX,
    SINGLE,
    TORCH,
    WEIGHT_FILES,
)
from electra_tf.checkpoints.huggingface_names import Network, Pair
from electra_tf.checkpoints.weights import TensorSpec, Weights

# Tensors of a folder, whatever file they are in.

_NARROW = {"F16": "float16", "BF16": "bfloat16", "F64": "float64"}


@dataclasses.dataclass(frozen=True)
class _Stored:
    """The tensors of a folder under the names they have there."""

    path: str  # the file they come from, for messages
    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]  # as safetensors writes them ("F32", "BF16")
    load: Callable[[str], np.ndarray]  # gives a tensor as stored

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor as float32; widening others loses nothing."""
        if self.dtypes[name] != "F32" and self.dtypes[name] not in _NARROW:
            raise UserError(
                f"{self.path}: {name} is stored as {self.dtypes[name]};"
                " expected F32, F16 or BF16. Save the model without"
                " quantization."
            )
        return np.asarray(self.load(name), np.float32, order="C")

    def conversions(self) -> dict[str, str]:
        """Says which tensors are not given as they are stored."""
        codes = list(self.dtypes.values())
        return {
            f"{dtype} values": (
                f"{codes.count(code)} {dtype} tensors are given as float32"
            )
            for code, dtype in _NARROW.items()
            if code in codes
        }


def _open_stored(folder: str) -> _Stored:
    """Finds a folder's weight files."""
    paths = {name: os.path.join(folder, name) for name in WEIGHT_FILES}
    found = next((n for n, p in paths.items() if os.path.isfile(p)), None)
    if found is None:
        raise UserError(
            f"{folder}: no weights; expected {SINGLE}, {INDEX} or {TORCH}"
            " beside config.json. Download the folder again."
        )
    path = paths[found]
    if found == SINGLE:
        return _open_safetensors(path, {path: None})
    if found == INDEX:
        return _open_safetensors(path, _shards(path))
    if found == TORCH:
        return _open_torch(path)
    raise UserError(
        f"{path}: a PyTorch file in shards is not read; save the model as"
        f" {SINGLE} (transformers: save_pretrained)."
    )


def _open_torch(path: str) -> _Stored:
    """PyTorch unpickles tensors, nothing else, mapped where that is allowed."""
    try:
        import torch
    except ImportError as error:
        raise UserError(
            f"{path}: only PyTorch reads this file, and it is not installed."
            " Either `pip install torch`, or, where transformers is installed,"
            " load the model and call save_pretrained, which writes"
            f" {SINGLE}."
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
    return _Stored(
        path,
        {name: tuple(tensor.shape) for name, tensor in tensors.items()},
        {n: codes.get(str(t.dtype), str(t.dtype)) for n, t in tensors.items()},
        lambda name: tensors[name].float().numpy(),
    )


def _open_safetensors(
    path: str, shards: Mapping[str, list[str] | None]
) -> _Stored:
    """Opens one file, or shards with the names that an index expects there.

    Each is opened anew for every tensor: a mapping that stays open would count
    as memory for all that was read.
    """
    paths: dict[str, str] = {}
    stored = _Stored(path, {}, {}, lambda name: _load(paths[name], name))
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
                paths[name] = shard
                stored.shapes[name] = tuple(view.get_shape())
                stored.dtypes[name] = view.get_dtype()
    if "BF16" in stored.dtypes.values():
        import ml_dtypes  # noqa: F401  (gives NumPy the type)
    return stored


def _load(path: str, name: str) -> np.ndarray:
    with _safe_open(path) as file:
        try:
            return file.get_tensor(name)
        except (safetensors.SafetensorError, OSError) as error:
            raise UserError(f"{path}: cannot read {name}: {error}.") from error


def _safe_open(path: str) -> Any:
    """Opens a file; its header is checked against its size on the way."""
    try:
        return safetensors.safe_open(path, framework="np")
    except (safetensors.SafetensorError, OSError) as error:
        raise UserError(f"{path}: {_reason(path, error)}") from error


def _reason(path: str, error: Exception) -> str:
    """Words for a file that does not open."""
    if not os.path.exists(path):
        return "missing; its index names it. Download the folder again."
    with open(path, "rb") as file:
        if file.read(80).startswith(b"version https://git-lfs"):
            return (
                "a Git LFS pointer, not the weights; run `git lfs pull` in the"
                " folder."
            )
    return (
        f"not a whole safetensors file ({error}): cut short or damaged."
        " Download or copy it again."
    )


def _shards(path: str) -> dict[str, list[str]]:
    """Names by shard, from an index file."""
    index = configs.read_json(path)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"{path}: no `weight_map` from tensors to files.")
    shards: dict[str, list[str]] = {}
    for name, file in weight_map.items():
        if not isinstance(file, str) or os.path.basename(file) != file:
            raise UserError(
                f"{path}: weight_map: {name}: {file!r} is not the name of a"
                " file in the folder."
            )
        full = os.path.join(os.path.dirname(path), file)
        shards.setdefault(full, []).append(name)
    return shards


# Folders of the two networks, and what they hold.
_FOLDERS = {"discriminator": names.PRETRAINING, "generator": names.MASKED_LM}
_LAYER = re.compile(r"(?:electra\.)?encoder\.layer\.(\d+)\.")
_FLOAT32 = np.dtype(np.float32)


def is_huggingface(folder: str) -> bool:
    """Whether weights or a config are there under transformers' names.

    There, or in `discriminator/` or `generator/`; what they hold is not looked
    at.
    """
    return _is_one(folder) or bool(_subfolders(folder))


def _is_one(folder: str) -> bool:
    wanted = (configs.CONFIG, *WEIGHT_FILES)
    return any(os.path.isfile(os.path.join(folder, n)) for n in wanted)


def _subfolders(folder: str) -> list[str]:
    return [name for name in _FOLDERS if _is_one(os.path.join(folder, name))]


@dataclasses.dataclass(frozen=True)
class _Source:
    """Where one of our variables is in a folder."""

    stored: _Stored
    theirs: str  # name of the tensor in its file
    row: int | None  # which row of it; None for all
    transposed: bool
    shape: tuple[int, ...]  # of the variable

    def read(self) -> np.ndarray:
        """Reads the values, float32, shaped as our variable."""
        value = self.stored.read(self.theirs)
        if self.row is not None:
            value = value[self.row : self.row + 1]
        return np.ascontiguousarray(value.T if self.transposed else value)


class _Folder:
    """One network as transformers saves it, checked against its config.

    Attributes:
      path: the folder.
      config: config.json, filled in.
      stored: the tensors.
      network: architecture and scopes, as far as the folder alone tells.
      sizes: by config.json's keys, with the number of labels.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.config = configs.read_config(path)
        self.stored = _open_stored(path)
        self.network = self._find_network()
        self.sizes: dict[str, int] = dict(self.config)
        if self.network.architecture == names.TAGGING:
            head = self.stored.shapes.get("classifier.weight", (0,))
            self.sizes[names.LABELS] = head[0]
        self._files = self._match()
        self._check_tied()

    def _find_network(self) -> Network:
        architecture = names.architecture_of(self.stored.shapes)
        declared = self.config.get("architectures") or [None]
        if declared[0] in names.HEADS:
            architecture = declared[0]
        if architecture == names.MASKED_LM:
            scopes = [
                configs.marked(self.config, key) or default
                for key, default in (
                    ("encoder", "generator"),
                    ("embeddings", "electra"),
                )
            ]
            if not set(scopes) <= {"electra", "generator"}:
                raise UserError(
                    f"{self.path}/{configs.CONFIG}: {configs.MARK}: expected"
                    f" 'electra' or 'generator', found {scopes}."
                )
            return Network(architecture, *scopes)
        task = configs.marked(self.config, "task")
        task = task or names.DEFAULT_TASKS.get(architecture, "")
        return Network(architecture, task=task)

    def pairs(self, network: Network | None = None) -> list[Pair]:
        """Tensors there and variables here."""
        return (network or self.network).pairs(self.sizes)

    def _match(self) -> dict[str, str]:
        """Names in the file by names of today; refuses what is not there."""
        held, layers = self.stored.shapes, self.config["num_hidden_layers"]
        files, missing, differing = {}, [], []
        for pair in self.pairs():
            found = next(
                (n for n in names.spellings(pair.theirs) if n in held), None
            )
            if found is None:
                missing.append(pair.theirs)
                continue
            files[pair.theirs] = found
            wanted = pair.their_shape(self.sizes)
            if held[found] != wanted:
                differing.append(
                    f"{found}: {list(held[found])} in the file, {list(wanted)}"
                    f" by {configs.CONFIG} ({', '.join(pair.axes)})"
                )
        differing += [
            f"{name}: of a layer that num_hidden_layers {layers} in"
            f" {configs.CONFIG} does not count"
            for name in held
            if (found := _LAYER.match(name)) and int(found[1]) >= layers
        ]
        for lines, what in (
            (
                missing,
                f"lacks tensors that {self.network.architecture} of {layers}"
                " layers has",
            ),
            (differing, f"does not fit its {configs.CONFIG}"),
        ):
            if lines:
                title = f"{self.stored.path} {what}:"
                raise UserError("\n".join([title, *first_lines(lines, 8)]))
        return files

    def _check_tied(self) -> None:
        """Refuses a masked LM that scores words by a table of its own."""
        table = self._files[names.WORD_TABLE]
        if (
            self.network.architecture != names.MASKED_LM
            or names.LM_HEAD not in self.stored.shapes
            or table == names.LM_HEAD
        ):
            return
        scores = self.stored.read(names.LM_HEAD)
        if not np.array_equal(scores, self.stored.read(table)):
            raise UserError(
                f"{self.stored.path}: {names.LM_HEAD} is not the table of token"
                " embeddings; in the original the two are one."
            )

    def sources(self, network: Network | None = None) -> dict[str, _Source]:
        """Where every variable is."""
        return {
            ours: _Source(
                self.stored,
                self._files[pair.theirs],
                i if len(pair.ours) > 1 else None,
                pair.transposed,
                pair.shape(self.sizes),
            )
            for pair in self.pairs(network)
            for i, ours in enumerate(pair.ours)
        }

    def by_theirs(self) -> dict[str, _Source]:
        """Where every tensor is, by its name there."""
        sources = self.sources()
        return {pair.theirs: sources[pair.ours[0]] for pair in self.pairs()}

    def dropped(self) -> dict[str, str]:
        """What is not used or not as stored, and why."""
        used = {*self._files.values(), names.LM_HEAD}
        notes = {
            name: reason
            for name in self.stored.shapes
            if name not in used and (reason := names.why_unused(name))
        }
        notes |= self.stored.conversions()
        notes |= configs.config_notes(self.config)
        return notes | configs.tokenizer_notes(self.path)

    def hparams(self) -> dict[str, Any]:
        """Hparams that this folder alone states.

        A generator alone is described as that of a discriminator of its size.
        """
        hparams = configs.encoder_hparams(self.config)
        if self.network.encoder == "generator":
            hparams |= {"generator_hidden_size": 1.0, "generator_layers": 1.0}
        elif self.network.architecture == names.MASKED_LM:
            hparams |= {"electra_objective": False}
        if self.network.embeddings == "generator":
            hparams["untied_generator_embeddings"] = True
        return hparams | configs.tokenizer_hparams(self.path)

    @property
    def vocab_file(self) -> str | None:
        """Path of the vocabulary, None where there is none."""
        path = os.path.join(self.path, configs.VOCAB)
        return path if os.path.isfile(path) else None


class _HuggingFaceWeights(Weights):
    """Reads variables from one or two folders."""

    def __init__(
        self, path: str, sources: Mapping[str, _Source], *beside: Any
    ) -> None:
        specs = {n: TensorSpec(s.shape, _FLOAT32) for n, s in sources.items()}
        super().__init__(path, "huggingface", specs, *beside)
        self._sources = sources

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        return self._sources[name].read()


def open_huggingface(folder: str) -> Weights:
    """Opens a model that transformers or `write_huggingface` saved."""
    if os.path.isfile(folder):
        folder = os.path.dirname(folder) or "."
    if not os.path.isdir(folder):
        raise UserError(f"{folder}: no such folder.")
    if _is_one(folder):
        return _opened(_Folder(folder))
    found = {
        name: _Folder(os.path.join(folder, name))
        for name in _subfolders(folder)
    }
    if not found:
        raise UserError(
            f"{folder}: no {configs.CONFIG} and no weights, neither here nor in"
            " discriminator/ or generator/."
        )
    for name, one in found.items():
        if one.network.architecture != _FOLDERS[name]:
            raise UserError(
                f"{one.path} holds {one.network.architecture}; expected the"
                f" {name}, {_FOLDERS[name]}."
            )
    if len(found) == 1:
        return _opened(*found.values())
    return _joined(folder, found["discriminator"], found["generator"])


def _opened(folder: _Folder) -> Weights:
    """The weights of a single folder."""
    dropped = folder.dropped()
    if folder.network.encoder == "generator":
        dropped |= configs.generator_notes(folder.config)
    return _HuggingFaceWeights(
        folder.path,
        folder.sources(),
        dropped,
        folder.hparams(),
        folder.vocab_file,
    )


def _joined(path: str, discriminator: _Folder, generator: _Folder) -> Weights:
    """The two networks of a pre-trained model, as the one that they were."""
    network = _generator_of(path, discriminator, generator)
    dropped = {
        f"{name}/{key}": reason
        for name, folder in zip(
            _FOLDERS, (discriminator, generator), strict=True
        )
        for key, reason in folder.dropped().items()
    }
    hparams = discriminator.hparams()
    configurations = (generator.config, discriminator.config)
    if network.encoder == "electra":
        hparams["untied_generator"] = False
    else:
        hparams |= configs.generator_hparams(*configurations)
        dropped |= configs.generator_notes(generator.config)
    if network.embeddings == "generator":
        hparams["untied_generator_embeddings"] = True
    return _HuggingFaceWeights(
        path,
        discriminator.sources() | generator.sources(network),
        dropped | configs.differing_settings(*configurations),
        hparams,
        discriminator.vocab_file or generator.vocab_file,
    )


def _generator_of(
    path: str, discriminator: _Folder, generator: _Folder
) -> Network:
    """Finds out what the generator shares with the discriminator."""
    width, hidden = (
        generator.config[key] for key in ("embedding_size", "hidden_size")
    )
    own = Network(names.MASKED_LM, "generator", "generator")
    if generator.network == own and width == hidden:
        return own
    both = discriminator, generator
    if differing := _first_difference(*both, names.embedding_pairs("electra")):
        if width == hidden:
            return own
        raise UserError(
            f"{path}: {differing} of discriminator/ and generator/ differ, but"
            " in the original a generator either has the discriminator's"
            f" tables or its own, as wide as its hidden size ({hidden}, not"
            f" {width}). They are not of one model; read one part alone:"
            f" {os.path.join(path, 'discriminator')} or"
            f" {os.path.join(path, 'generator')}."
        )
    layers = max(folder.config["num_hidden_layers"] for folder in both)
    encoder = names.encoder_pairs("electra", layers, width != hidden)
    scope = "generator" if _first_difference(*both, encoder) else "electra"
    return Network(names.MASKED_LM, scope, "electra")


def _first_difference(
    one: _Folder, other: _Folder, pairs: Iterable[Pair]
) -> str | None:
    """Name of the first tensor that is not the same in two folders."""
    first, second = one.by_theirs(), other.by_theirs()
    for pair in pairs:
        a, b = first.get(pair.theirs), second.get(pair.theirs)
        if a is None or b is None or a.shape != b.shape:
            return pair.theirs
        if not np.array_equal(a.read(), b.read()):
            return pair.theirs
    return None
