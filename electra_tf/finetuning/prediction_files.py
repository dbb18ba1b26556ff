# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the test predictions that `predictions` writes as pickles.

A pickle can run any code, and a model's directory may come from elsewhere:
only what arrays of numbers are made of is admitted.
"""

import io
import pickle
from typing import Any

from configure.errors import UserError
from electra_tf.data import storage

_NUMPY_ROOMS = ("numpy.core", "numpy._core")
_ADMITTED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
    *((f"{room}.multiarray", "_reconstruct") for room in _NUMPY_ROOMS),
    *((f"{room}.multiarray", "scalar") for room in _NUMPY_ROOMS),
    *((f"{room}.numeric", "_frombuffer") for room in _NUMPY_ROOMS),
}


def read_predictions(path: str) -> dict[int, Any]:
    """Reads a file of predictions.

    Args:
      path: the file.

    Returns:
      Example number -> logits or a number, as NumPy values.

    Raises:
      UserError: the file holds something else.
    """
    with storage.open_file(path, "rb") as file:
        data = file.read()
    try:
        found = _NumbersOnly(io.BytesIO(data)).load()
        return {int(eid): value for eid, value in found.items()}
    except Exception as error:  # what broken pickles raise is not limited
        raise UserError(
            f"{path}: no file of test predictions ({error}); predict the test"
            " set again with write_test_outputs"
        ) from error


class _NumbersOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Refuses what arrays of numbers do not need."""
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"{module}.{name} is not admitted")
        return super().find_class(module, name)
