# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tensors of a Hugging Face folder, whatever file they are in."""

import abc
import json
from typing import Any

import numpy as np

from configure.errors import UserError

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

        Args:
          name: one of `shapes`.

        Returns:
          float32; narrower floats are widened, which loses nothing.

        Raises:
          UserError: if it is not of a floating type or cannot be read.
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
    """Reads a JSON object.

    Args:
      path: of a text file in UTF-8.

    Returns:
      The object.

    Raises:
      UserError: if it is missing or holds something else.
    """
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not readable as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object.")
    return value
