# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Safetensors files: read whole or in shards, written tensor by tensor."""

import abc
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import safetensors

from configure.errors import UserError
from electra_tf.checkpoints.weights import TensorSpec

# Tensors of a Hugging Face folder, whatever file they are in.

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
TORCH = "pytorch_model.bin"
TORCH_INDEX = "pytorch_model.bin.index.json"
WEIGHT_FILES = (SINGLE, INDEX, TORCH, TORCH_INDEX)

NARROW = {"F16": "float16", "BF16": "bfloat16", "F64": "float64"}


class StoredTensors(abc.ABC):
    """The tensors of a folder under the names they have there.

    Attributes:
      path: the file they come from, for messages.
      shapes: by name.
      dtypes: by name, as safetensors writes them ("F32", "BF16").
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, str] = {}

    @abc.abstractmethod
    def _read(self, name: str) -> np.ndarray:
        """Returns a tensor as stored."""

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor.

        Returns:
          float32; narrower floats are widened, which loses nothing.
        """
        if self.dtypes[name] != "F32" and self.dtypes[name] not in NARROW:
            raise UserError(
                f"{self.path}: {name} is stored as {self.dtypes[name]};"
                " expected F32, F16 or BF16. Save the model without"
                " quantization."
            )
        return np.asarray(self._read(name), np.float32, order="C")

    def conversions(self) -> dict[str, str]:
        """Says which tensors are not given as they are stored."""
        notes = {}
        for code, dtype in NARROW.items():
            count = sum(1 for stored in self.dtypes.values() if stored == code)
            if count:
                notes[f"{dtype} values"] = (
                    f"{count} {dtype} tensors are given as float32"
                )
        return notes


def read_json(path: str) -> dict[str, Any]:
    """Reads a JSON object."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not readable as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object.")
    return value


# PyTorch's `pytorch_model.bin`, read where PyTorch is installed.


class TorchFile(StoredTensors):
    """PyTorch unpickles it: tensors, nothing else."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        try:
            import torch
        except ImportError as error:
            raise UserError(
                f"{path}: only PyTorch reads this file, and it is not"
                " installed. Either `pip install torch`, or, where"
                " transformers is installed, load the model and call"
                f" save_pretrained, which writes {SINGLE}."
            ) from error
        self._tensors = _torch_load(torch, path)
        for name, tensor in self._tensors.items():
            if not hasattr(tensor, "shape"):
                raise UserError(f"{path}: {name} is not a tensor.")
            kind = str(tensor.dtype).removeprefix("torch.")
            self.shapes[name] = tuple(tensor.shape)
            codes = {dtype: code for code, dtype in NARROW.items()}
            codes["float32"] = "F32"
            self.dtypes[name] = codes.get(kind, kind)

    def _read(self, name: str) -> np.ndarray:
        return self._tensors[name].float().numpy()


def _torch_load(torch: Any, path: str) -> dict[str, Any]:
    """Unpickles tensors and nothing else, mapped where the file allows it."""
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
    if not isinstance(tensors, dict):
        raise UserError(f"{path}: expected a dictionary of tensors.")
    return tensors


_LFS_START = b"version https://git-lfs"


def open_stored(folder: str) -> StoredTensors:
    """Finds a folder's weight files."""
    paths = {name: os.path.join(folder, name) for name in WEIGHT_FILES}
    found = [name for name, path in paths.items() if os.path.isfile(path)]
    if not found:
        raise UserError(
            f"{folder}: no weights; expected {SINGLE}, {INDEX} or {TORCH}"
            " beside config.json. Download the folder again."
        )
    path = paths[found[0]]
    if found[0] == SINGLE:
        return _SafetensorsFiles(path, {path: None})
    if found[0] == INDEX:
        return _SafetensorsFiles(path, _shards(path))
    if found[0] == TORCH:
        return TorchFile(path)
    raise UserError(
        f"{path}: a PyTorch file in shards is not read; save the model as"
        f" {SINGLE} (transformers: save_pretrained)."
    )


class _SafetensorsFiles(StoredTensors):
    """One file, or shards; each is opened anew for every tensor.

    A mapping that stays open would count as memory for all that was read.
    """

    def __init__(
        self, path: str, shards: Mapping[str, list[str] | None]
    ) -> None:
        super().__init__(path)
        self._files: dict[str, str] = {}
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
                    self._files[name] = shard
                    self.shapes[name] = tuple(view.get_shape())
                    self.dtypes[name] = view.get_dtype()

    def _read(self, name: str) -> np.ndarray:
        path = self._files[name]
        if self.dtypes[name] == "BF16":
            import ml_dtypes  # noqa: F401  (gives NumPy the type)
        with _safe_open(path) as file:
            try:
                return file.get_tensor(name)
            except (safetensors.SafetensorError, OSError) as error:
                raise UserError(
                    f"{path}: cannot read {name}: {error}."
                ) from error


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
        if file.read(len(_LFS_START)) == _LFS_START:
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
    index = read_json(path)
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


def write_safetensors(
    path: str,
    specs: Mapping[str, TensorSpec],
    read: Callable[[str], np.ndarray],
) -> None:
    """Writes a safetensors file, holding one tensor at a time.

    The package's own writer wants all of them in memory at once. It is used
    to check the result: header, offsets and size.

    Args:
      specs: shape and type (float32) of every tensor, in the file's order.

    Source: the safetensors format, https://github.com/huggingface/safetensors.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, spec in specs.items():
        start, end = end, end + spec.size_in_bytes
        header[name] = {
            "dtype": "F32",
            "shape": list(spec.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    try:
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.writelines(_buffers(specs, read))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error}.") from error
    with _safe_open(path):
        pass


def _buffers(
    specs: Mapping[str, TensorSpec], read: Callable[[str], np.ndarray]
) -> Iterable[memoryview]:
    for name, spec in specs.items():
        value = np.asarray(read(name), order="C")
        if value.shape != spec.shape or value.dtype != np.float32:
            raise ValueError(
                f"{name}: {value.dtype} {value.shape}, promised {spec}."
            )
        if sys.byteorder == "big":
            value = value.byteswap()
        yield memoryview(value.reshape(-1).view(np.uint8))
