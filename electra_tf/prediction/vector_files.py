# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vectors to NumPy's files, row by row: their number need not be known."""

import io
import os
import zipfile
from typing import IO, Any

import numpy as np

from configure.errors import UserError
from electra_tf.prediction.writer import PART

# The header is written first and again at the end, when the rows are counted.
_HEADER_BYTES = 128


class RowsFile:
    """An `.npy` file of float32 rows that grows.

    Args:
      width: numbers of a row; None: the file is one int64 column.
    """

    def __init__(self, path: str, width: int | None) -> None:
        self.path, self._width = path, width
        self._dtype = np.dtype("<i8" if width is None else "<f4")
        self.rows = 0
        self._file: IO[bytes] = open(path + PART, "wb")
        self._file.write(self._header())

    def append(self, values: Any) -> None:
        """Adds rows."""
        array = np.ascontiguousarray(values, self._dtype)
        self.rows += len(array)
        self._file.write(array.tobytes())

    def close(self) -> str:
        """Completes the file under its name with `.part`; returns that."""
        self._file.seek(0)
        self._file.write(self._header())
        self._file.close()
        return self.path + PART

    def _header(self) -> bytes:
        shape = [self.rows] + ([] if self._width is None else [self._width])
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            buffer,
            {
                "descr": self._dtype.str,
                "fortran_order": False,
                "shape": tuple(shape),
            },
        )
        header = buffer.getvalue()
        if len(header) != _HEADER_BYTES:
            raise ValueError(f"an .npy header of {len(header)} bytes")
        return header


class VectorFile:
    """Takes the vectors of texts; files get their names when complete.

    `.npy` holds `vectors` [rows, width] alone. `.npz` also holds `offsets`
    [texts + 1]: the rows of text i are `offsets[i]` to `offsets[i + 1]`.

    Use it as a context manager.
    """

    def __init__(self, path: str, width: int) -> None:
        if not path.endswith((".npy", ".npz")):
            raise UserError(
                f"{path}: expected a name that ends in .npy or .npz"
            )
        self.path, self._width = path, width
        self._packed = path.endswith(".npz")

    def __enter__(self) -> "VectorFile":
        inner = self.path + ".vectors" if self._packed else self.path
        self._vectors = RowsFile(inner, self._width)
        self._offsets = None
        if self._packed:
            self._offsets = RowsFile(self.path + ".offsets", None)
            self._offsets.append([0])
        return self

    def append(self, vectors: np.ndarray) -> None:
        """Adds the vectors of one text, float32 [n, width]."""
        self._vectors.append(vectors)
        if self._offsets is not None:
            self._offsets.append([self._vectors.rows])

    @property
    def rows(self) -> int:
        """Vectors so far."""
        return self._vectors.rows

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        made = [self._vectors.close()]
        if self._offsets is None:
            if kind is None:
                os.replace(made[0], self.path)
            return
        made.append(self._offsets.close())
        if kind is None:
            names = ("vectors.npy", "offsets.npy")
            with zipfile.ZipFile(self.path + PART, "w") as packed:
                for path, name in zip(made, names, strict=True):
                    packed.write(path, name)
            os.replace(self.path + PART, self.path)
        for path in made:
            os.remove(path)
