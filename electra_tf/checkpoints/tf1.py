# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading the original's TF1 checkpoints."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints.find_checkpoint import find_checkpoint
from electra_tf.checkpoints.restore import Coverage, assign
from electra_tf.checkpoints.weights import TensorSpec, Weights

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def open_tf1(path: str) -> Weights:
    """Opens a checkpoint whose tensors are keyed by variable names."""
    return _Tf1Weights(find_checkpoint(path))


class _Tf1Weights(Weights):
    """Reads tensors by name, one at a time."""

    def __init__(self, prefix: str) -> None:
        self._reader = load_reader(prefix)
        shapes = self._reader.get_variable_to_shape_map()
        dtypes = self._reader.get_variable_to_dtype_map()
        if OBJECT_GRAPH in shapes:
            raise UserError(
                f"{prefix}: keyed by objects, as TensorFlow 2 writes, not by"
                " variable names as the original's checkpoints are."
            )
        specs = {
            name: TensorSpec(
                tuple(shapes[name]), np.dtype(dtypes[name].as_numpy_dtype)
            )
            for name in sorted(shapes)
        }
        super().__init__(prefix, "tf1", specs)

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        return _read(self._reader, self.path, name)


def load_reader(prefix: str) -> Any:
    """Returns TensorFlow's reader of a checkpoint's index."""
    try:
        return tf.train.load_checkpoint(prefix)
    except (tf.errors.OpError, ValueError) as error:
        raise UserError(
            f"{prefix}: unreadable checkpoint: {error}. Its .index file is"
            " damaged or cut short; copy the checkpoint again."
        ) from error


def restore(model: Any, path: str, allow_missing: bool = False) -> Coverage:
    """Restores a model's variables from a checkpoint of the original.

    Source: google-research/electra, model/modeling.py,
    get_assignment_map_from_checkpoint.
    Differs: what does not match is reported and by default refused.
    """
    return assign(
        open_tf1(path), model.variables, missing_is_fine=allow_missing
    )


def _read(reader: Any, prefix: str, name: str) -> np.ndarray:
    """Returns a tensor; raises a UserError where its bytes are not there."""
    try:
        return np.asarray(reader.get_tensor(name))
    except (tf.errors.OpError, IndexError, ValueError) as error:
        # A cut data file gives an IndexError.
        raise UserError(
            f"{prefix}: cannot read {name}: {error}. The data file is damaged, "
            "cut short or missing; copy the checkpoint again."
        ) from error


# BERT's TF1 checkpoints, seen under the original ELECTRA's names.

_RENAMED = (
    ("bert/", "electra/"),
    ("cls/predictions/transform/", "generator_predictions/"),
    ("cls/predictions/", "generator_predictions/"),
)
_DROPPED = (
    ("bert/pooler/", "BERT's pooler: ELECTRA uses the first token's vector"),
    ("cls/seq_relationship/", "BERT's next-sentence head: ELECTRA has none"),
)


def is_bert(names: Iterable[str]) -> bool:
    """Whether a checkpoint's names are BERT's."""
    return any(name.startswith("bert/embeddings/") for name in names)


def open_bert(path: str) -> Weights:
    """Opens a TF1 checkpoint of google-research/bert."""
    source = open_tf1(path)
    if not is_bert(source.specs):
        raise UserError(
            f"{source.path}: not a BERT checkpoint (no bert/embeddings/...)."
        )
    return _BertWeights(source)


def electra_name(name: str) -> str | None:
    """Translates a name of BERT's.

    Returns:
      ELECTRA's name; None for what ELECTRA has no place for.
    """
    if any(name.startswith(prefix) for prefix, _ in _DROPPED):
        return None
    for old, new in _RENAMED:
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


class _BertWeights(Weights):
    """Renames on the way."""

    def __init__(self, source: Weights) -> None:
        self._source = source
        self._names: dict[str, str] = {}
        dropped = {}
        for name in source.specs:
            new = electra_name(name)
            if new is None:
                dropped[name] = next(
                    why for start, why in _DROPPED if name.startswith(start)
                )
            else:
                self._names[new] = name
        specs = {new: source.specs[old] for new, old in self._names.items()}
        super().__init__(source.path, "bert", specs, dropped)

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        return self._source.read(self._names[name])
