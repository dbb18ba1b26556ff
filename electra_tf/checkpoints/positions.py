# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A position table of another length."""

import numpy as np

from configure.errors import UserError
from electra_tf.checkpoints.weights import (
    SLOT_SUFFIXES,
    TensorSpec,
    Weights,
)

_TABLE = "position_embeddings"


def extend_positions(weights: Weights, new_length: int) -> Weights:
    """Lengthens or shortens every position table of a checkpoint.

    A longer table keeps its rows and goes on with them from its start again
    (position 512 starts as position 0 was), as a start for further training.
    Adam slots of new rows are zero. A shorter table is cut.

    Args:
      weights: the checkpoint.
      new_length: rows wanted, at least 1.

    Returns:
      A view of it; `hparams` follow where they state the length.

    Raises:
      UserError: if there is no table, or the length is below 1.
    """
    return _Extended(weights, new_length)


def describe_extension(weights: Weights, new_length: int) -> str:
    """Says what `extend_positions` does to a checkpoint, for a report.

    Args:
      weights: the checkpoint before.
      new_length: rows wanted.

    Returns:
      One line.
    """
    old = max(weights.specs[name].shape[0] for name in _tables(weights))
    if new_length == old:
        return f"position tables have {old} rows already"
    if new_length < old:
        return (
            f"position tables cut from {old} to {new_length} rows: longer"
            " sequences no longer fit"
        )
    return (
        f"position tables extended from {old} to {new_length} rows: rows"
        f" {old} and up repeat the table from its start (their Adam slots are"
        " zero); train before use"
    )


class _Extended(Weights):
    """Changes the tables on the way."""

    def __init__(self, source: Weights, length: int) -> None:
        if length < 1:
            raise UserError(
                f"extend_positions is {length}; expected at least 1 row."
            )
        tables = _tables(source)
        if not tables:
            raise UserError(f"{source.path}: has no {_TABLE} to extend.")
        specs = dict(source.specs)
        for name in tables:
            spec = specs[name]
            specs[name] = TensorSpec((length, *spec.shape[1:]), spec.dtype)
        super().__init__(
            source.path,
            source.kind,
            specs,
            source.dropped,
            source.hparams,
            source.vocab_file,
        )
        self._source = source
        self._tables = frozenset(tables)
        overrides = self.hparams.get("model_hparam_overrides")
        if self.hparams:
            self.hparams["model_hparam_overrides"] = {
                **(overrides or {}),
                "max_position_embeddings": length,
            }

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        value = self._source.read(name)
        if name not in self._tables:
            return value
        length = self.specs[name].shape[0]
        if name.endswith(SLOT_SUFFIXES):
            new = np.zeros(self.specs[name].shape, value.dtype)
            new[: len(value)] = value[:length]
            return new
        return value[np.arange(length) % len(value)]


def _tables(weights: Weights) -> list[str]:
    """Names of the tables and of their slots."""
    suffixes = ("", *SLOT_SUFFIXES)
    ends = tuple(f"/{_TABLE}{suffix}" for suffix in suffixes)
    return [name for name in weights.specs if name.endswith(ends)]
