# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's `pytorch_model.bin`, read where PyTorch is installed."""

from typing import Any

import numpy as np

from configure.errors import UserError
from electra_tf.checkpoints.stored_tensors import (
    NARROW,
    SINGLE,
    StoredTensors,
)


class TorchFile(StoredTensors):
    """PyTorch unpickles it: tensors, nothing else.

    Args:
      path: of the file.

    Raises:
      UserError: if PyTorch is not there, or finds anything but tensors.
    """

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
