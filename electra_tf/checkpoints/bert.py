# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""BERT's TF1 checkpoints, seen under the original ELECTRA's names.

BERT's encoder is ELECTRA's without the narrower embeddings, and its masked-LM
head is the generator's. Its pooler and next-sentence head have no counterpart.
"""

from collections.abc import Iterable

import numpy as np

from configure.errors import UserError
from electra_tf.checkpoints.tf1 import open_tf1
from electra_tf.checkpoints.weights import (
    Weights,
)

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
    """Opens a TF1 checkpoint of google-research/bert.

    Args:
      path: its prefix, one of its files, or a directory.

    Returns:
      Its tensors under ELECTRA's names: a masked LM. The pooler and the
      next-sentence head are in `dropped`; names of neither model stay.

    Raises:
      UserError: if it cannot be read or is not BERT's.
    """
    source = open_tf1(path)
    if not is_bert(source.specs):
        raise UserError(
            f"{source.path}: not a BERT checkpoint (no bert/embeddings/...)."
        )
    return _BertWeights(source)


def electra_name(name: str) -> str | None:
    """Translates a name of BERT's.

    Args:
      name: of a variable, a slot or anything else in the file.

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
