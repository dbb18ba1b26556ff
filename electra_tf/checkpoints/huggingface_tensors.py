# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of tensors in Hugging Face folders: safetensors, or PyTorch's.

Tensors are read one at a time and written one at a time.
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

# Types that are widened to float32, by the codes of safetensors.
NARROW_TYPES = {"F16": "float16", "BF16": "bfloat16", "F64": "float64"}


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file that has not been read."""

    path: str  # of the file or its index, for messages
    name: str  # in the file
    shape: tuple[int, ...]
    dtype: str  # code of safetensors: "F32", "BF16"
    load: Callable[[], np.ndarray]  # returns the values in their stored type

    def read(self) -> np.ndarray:
        """Read the tensor as float32, which holds narrower types exactly."""
        if self.dtype != "F32" and self.dtype not in NARROW_TYPES:
            raise UserError(
                f"{self.path}: {self.name} is stored as {self.dtype}; expected"
                " F32, F16 or BF16. Save the model without quantization."
            )
        return np.asarray(self.load(), np.float32, order="C")


def find_weights(folder: str) -> str:
    """Return the path of a folder's file of weights, or of their index."""
    for name in layout.WEIGHT_FILES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    names = filesystem.list_directory(folder)
    unreadable = [n for n in names if n.endswith((".h5", ".msgpack", ".ot"))]
    detail = ""
    if unreadable:
        detail = f" in a readable format (found {', '.join(unreadable)})"
    raise UserError(
        f"{folder}: no weights{detail}; expected {layout.SINGLE},"
        f" {layout.INDEX} or {layout.TORCH} next to config.json, or"
        " model.ckpt-<step>.index with its data. Download the folder again."
    )


def open_tensors(path: str) -> dict[str, StoredTensor]:
    """Open the tensors of a file of weights, or of the shards of an index."""
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
    """Open a PyTorch file; only tensors are unpickled, mapped if possible."""
    try:
        import torch
    except ImportError as error:
        raise UserError(
            f"{path}: only PyTorch reads this file, and it is not installed."
            " Run `pip install torch`, or save the model as"
            f" {layout.SINGLE} where transformers is installed"
            " (save_pretrained)."
        ) from error
    options = {"map_location": "cpu", "weights_only": True}
    try:
        try:
            tensors = torch.load(path, mmap=True, **options)
        except RuntimeError:  # Files from before PyTorch 1.6 cannot be mapped.
            tensors = torch.load(path, **options)
    except Exception as error:
        # Damage raises almost any exception of pickle, zip or PyTorch.
        raise UserError(
            f"{path}: PyTorch cannot read this file as tensors only"
            f" ({type(error).__name__}: {str(error).splitlines()[0]})."
            " It is damaged, or holds other objects, which are not loaded."
            f" Download it again, or save the model as {layout.SINGLE}."
        ) from error
    if not isinstance(tensors, dict) or not all(
        hasattr(tensor, "shape") for tensor in tensors.values()
    ):
        raise UserError(
            f"{path}: expected a dictionary of tensors. Save the model's"
            " state_dict()."
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
    """Open one file, or shards with the names that an index expects in them.

    A file is opened again for every tensor: a mapping that stays open would
    count all that was read as memory in use.
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
    """Open a safetensors file; raise if its header contradicts its size."""
    if not os.path.exists(path):
        raise UserError(
            f"{path}: missing, but an index names it. Download the folder"
            " again."
        )
    try:
        return safetensors.safe_open(path, framework="np")
    except (safetensors.SafetensorError, OSError) as error:
        with open(path, "rb") as file:
            if file.read(80).startswith(b"version https://git-lfs"):
                raise UserError(
                    f"{path}: a Git LFS pointer, not the weights. Run `git lfs"
                    " pull` in the folder."
                ) from error
        raise UserError(
            f"{path}: not a complete safetensors file ({error}): cut short or"
            " damaged. Download or copy it again."
        ) from error


def _shards(path: str) -> dict[str, list[str]]:
    """Return the names of tensors by the path of their shard."""
    weight_map = read_json(path).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(
            f"{path}: no `weight_map` from tensors to files. Download the"
            " folder again."
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
    """Write a safetensors file, with one tensor in memory at a time.

    The writer of the package `safetensors` needs all of them in memory. Its
    reader checks the result: header, offsets and size.

    Args:
      specs: by name, in file order.
      read: returns a tensor of its spec's shape and type.

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
            value = np.asarray(read(name), order="C")
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
