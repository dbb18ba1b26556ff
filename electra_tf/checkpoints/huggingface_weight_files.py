# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tensor files in Hugging Face folders: safetensors or PyTorch.

Only one tensor at a time is read or written.
"""

import dataclasses
import functools
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes  # noqa: F401  (gives NumPy the type bfloat16)
import numpy as np
import safetensors

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_layout as layout
from electra_tf.checkpoints.weights import TensorSpec
from electra_tf.files import filesystem
from electra_tf.files.json_files import read_json

# Names of the types that are converted to float32, by the types' codes in
# safetensors.
NARROW_TYPES = {"F16": "float16", "BF16": "bfloat16", "F64": "float64"}


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file, read on demand."""

    path: str  # Path of the file or its index, for messages.
    name: str  # Name in the file.
    shape: tuple[int, ...]
    dtype: str  # code of safetensors, such as "F32" or "BF16"
    load: Callable[[], np.ndarray]  # returns the values in their stored type

    def read(self) -> np.ndarray:
        """Read the tensor as float32; float64 values are rounded."""
        if self.dtype != "F32" and self.dtype not in NARROW_TYPES:
            raise UserError(
                f"{self.path}: {self.name} is stored as {self.dtype}; expected"
                " F32, F16 or BF16. Save the model without quantization."
            )
        return np.asarray(self.load(), np.float32, order="C")


def find_weights(folder: str) -> str:
    """Return the path of a folder's weight file, or of its shards' index."""
    for name in layout.WEIGHT_FILES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    names = filesystem.list_directory(folder)
    unreadable = [n for n in names if n.endswith((".h5", ".msgpack", ".ot"))]
    problem = "no weights"
    if unreadable:
        listed = ", ".join(unreadable)
        problem = f"the format of the weights is not supported ({listed})"
    raise UserError(
        f"{folder}: {problem}; expected {layout.SINGLE},"
        f" {layout.INDEX} or {layout.TORCH} next to config.json, or"
        " model.ckpt-<step>.index with its data. Download the folder again."
    )


def open_tensors(path: str) -> dict[str, StoredTensor]:
    """Open the tensors of a weight file, or of the shards of an index."""
    if path.endswith(layout.TORCH):
        return _open_torch(path)
    if path.endswith(layout.SINGLE):
        return _open_safetensors(path, {path: None})
    if path.endswith(layout.INDEX):
        return _open_safetensors(path, _shards(path))
    raise UserError(
        f"{path}: PyTorch files in shards are not supported; expected"
        f" {layout.SINGLE}. Save the model with transformers' save_pretrained."
    )


def _open_torch(path: str) -> dict[str, StoredTensor]:
    """Open a PyTorch file; only tensors are unpickled."""
    try:
        import torch
    except ImportError as error:
        raise UserError(
            f"{path}: reading this file requires PyTorch, which is not"
            " installed. Run `pip install torch`, or save the model as"
            f" {layout.SINGLE} (save_pretrained) where transformers is"
            " installed."
        ) from error
    options = {"map_location": "cpu", "weights_only": True}
    try:
        try:
            tensors = torch.load(path, mmap=True, **options)
        # Files from before PyTorch 1.6 cannot be memory-mapped.
        except RuntimeError:
            tensors = torch.load(path, **options)
    except Exception as error:
        # A corrupt file raises almost any exception of pickle, zip or PyTorch.
        cause = str(error).partition("\n")[0]
        raise UserError(
            f"{path}: PyTorch cannot load tensors from this file"
            f" ({type(error).__name__}: {cause}). The file is corrupt, or"
            " contains other objects, which are not loaded."
            f" Download the file again, or save the model as {layout.SINGLE}."
        ) from error
    if not isinstance(tensors, dict) or not all(
        hasattr(tensor, "shape") for tensor in tensors.values()
    ):
        raise UserError(
            f"{path}: this file does not contain a dictionary of tensors;"
            " expected a state_dict. Save the model's state_dict()."
        )
    codes = {f"torch.{dtype}": code for code, dtype in NARROW_TYPES.items()}
    codes["torch.float32"] = "F32"
    return {
        name: StoredTensor(
            path,
            name,
            tuple(tensor.shape),
            codes.get(str(tensor.dtype), str(tensor.dtype)),
            lambda tensor=tensor: tensor.float().numpy(),
        )
        for name, tensor in tensors.items()
    }


def _open_safetensors(
    path: str, shards: Mapping[str, list[str] | None]
) -> dict[str, StoredTensor]:
    """Open a safetensors file, or the shards that an index lists.

    A file is opened again for each tensor, because all tensors read through an
    open memory map would count as memory in use.
    """
    tensors = {}
    for shard, expected in shards.items():
        with _safe_open(shard) as file:
            stored = list(file.keys())
            for name in stored if expected is None else expected:
                if name not in stored:
                    raise UserError(
                        f"{shard}: no tensor {name}, which {path} lists for"
                        " this file. Download the folder again."
                    )
                view = file.get_slice(name)
                tensors[name] = StoredTensor(
                    path,
                    name,
                    tuple(view.get_shape()),
                    view.get_dtype(),
                    functools.partial(_load, shard, name),
                )
    return tensors


def _load(path: str, name: str) -> np.ndarray:
    with _safe_open(path) as file:
        try:
            return file.get_tensor(name)
        except (safetensors.SafetensorError, OSError) as error:
            raise UserError(
                f"{path}: cannot read {name}: {error}. Download the folder"
                " again."
            ) from error


def _safe_open(path: str) -> Any:
    """Open a safetensors file; raise a UserError if it is absent or corrupt."""
    if not os.path.exists(path):
        raise UserError(
            f"{path}: missing; expected this file, because an index lists it."
            " Download the folder again."
        )
    try:
        return safetensors.safe_open(path, framework="np")
    except (safetensors.SafetensorError, OSError) as error:
        with open(path, "rb") as file:
            if file.read(80).startswith(b"version https://git-lfs"):
                raise UserError(
                    f"{path}: this file is a Git LFS pointer; expected weights."
                    " Run `git lfs pull` in the folder."
                ) from error
        raise UserError(
            f"{path}: truncated or corrupt safetensors file ({error}). Download"
            " or copy the file again."
        ) from error


def _shards(path: str) -> dict[str, list[str]]:
    """Return the names of the tensors in each shard, by the shard's path."""
    weight_map = read_json(path).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(
            f"{path}: no `weight_map`; expected an object that maps tensors to"
            " files. Download the folder again."
        )
    shards: dict[str, list[str]] = {}
    for name, file in weight_map.items():
        if (
            not isinstance(file, str)
            or os.path.basename(file) != file
            or file in ("", os.curdir, os.pardir)
        ):
            raise UserError(
                f"{path}: weight_map: {name} is {file!r}; expected the name of"
                " a file in the folder. Download the folder again."
            )
        shard = os.path.join(os.path.dirname(path), file)
        shards.setdefault(shard, []).append(name)
    return shards


def write_safetensors(
    path: str,
    specs: Mapping[str, TensorSpec],
    read: Callable[[str], np.ndarray],
) -> None:
    """Write a safetensors file, with one tensor at a time in memory.

    The writer of the package `safetensors` would need all tensors in memory.
    The package's reader checks the result: header, offsets and size.

    Args:
      specs: shapes and types by name, in file order.
      read: function that returns a tensor with the shape of its spec, of the
        same or a wider type.

    Raises:
      UserError: a value is too large for its spec's type.

    Source: the safetensors format, https://github.com/huggingface/safetensors.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, spec in specs.items():
        start, end = end, end + spec.size_in_bytes
        header[name] = {
            "dtype": f"F{8 * spec.dtype.itemsize}",
            "shape": list(spec.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, spec in specs.items():
            value = _converted(name, np.asarray(read(name)), spec.dtype)
            if value.shape != spec.shape or value.dtype != spec.dtype:
                raise ValueError(
                    f"{name}: {value.dtype} {value.shape}; expected {spec}."
                )
            value = value.byteswap() if sys.byteorder == "big" else value
            file.write(memoryview(value.reshape(-1).view(np.uint8)))
        file.flush()
        os.fsync(file.fileno())
    with safetensors.safe_open(path, framework="np"):
        pass


def _converted(name: str, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a tensor's values in a type, which must not make them infinite."""
    with np.errstate(over="ignore"):
        converted = np.asarray(values, dtype, order="C")
    overflowed = np.isinf(converted) & np.isfinite(values)
    if overflowed.any():
        raise UserError(
            f"{name}: the value {values[overflowed][0]:g} is too large for"
            f" {dtype}; expected magnitudes up to {np.finfo(dtype).max:g}."
            " Remove --half_precision."
        )
    return converted
