# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of any format as named tensors that are read on demand.

Whatever the file, tensors go by the original's names: `electra/...`,
`generator/...`, Adam slots `<variable>/adam_m` and `<variable>/adam_v`, and
`global_step`. Readers map to these names, writers from them, so formats meet
only here and a checkpoint need not fit in memory twice.
"""

import abc
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

SLOT_SUFFIXES = ("/adam_m", "/adam_v")
STEP_NAME = "global_step"


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """Shape and type of a tensor that has not been read.

    Attributes:
      shape: its sizes.
      dtype: as NumPy knows it.
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size_in_bytes(self) -> int:
        """Bytes that the values take."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


class Weights(abc.ABC):
    """Named tensors, read one at a time.

    Attributes:
      path: where they are, for messages.
      kind: "tf1", "native", "huggingface", "bert" or "memory".
      specs: every tensor by the original's name, slots and step included.
      dropped: what the file holds beyond that, and why it is left out.
      hparams: hyperparameters that a configuration beside the file states,
        under `PretrainingConfig`'s names; empty where there is none.
      vocab_file: a vocabulary that comes with it, or None.
    """

    def __init__(
        self,
        path: str,
        kind: str,
        specs: Mapping[str, TensorSpec],
        dropped: Mapping[str, str] | None = None,
        hparams: Mapping[str, Any] | None = None,
        vocab_file: str | None = None,
    ) -> None:
        self.path = path
        self.kind = kind
        self.specs = dict(specs)
        self.dropped = dict(dropped or {})
        self.hparams = dict(hparams or {})
        self.vocab_file = vocab_file

    @abc.abstractmethod
    def read(self, name: str) -> np.ndarray:
        """Reads one tensor.

        Args:
          name: one of `specs`.

        Returns:
          Its values; shape and dtype are those of its spec.

        Raises:
          UserError: if the file is damaged, cut short or gone.
        """

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the model's variables: no slots, no step."""
        return {
            name: spec.shape
            for name, spec in self.specs.items()
            if is_variable(name)
        }

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the Adam slots."""
        return tuple(n for n in self.specs if n.endswith(SLOT_SUFFIXES))

    @property
    def global_step(self) -> int | None:
        """Updates done before it was saved, or None where not stored."""
        if STEP_NAME not in self.specs:
            return None
        return int(self.read(STEP_NAME))

    def __iter__(self) -> Iterator[tuple[str, np.ndarray]]:
        """Names and values, one at a time, in the order of `specs`."""
        for name in self.specs:
            yield name, self.read(name)


def is_variable(name: str) -> bool:
    """Whether a name is a model's variable, not a slot and not the step."""
    return name != STEP_NAME and not name.endswith(SLOT_SUFFIXES)


class MemoryWeights(Weights):
    """Tensors that are in memory already."""

    def __init__(
        self, values: Mapping[str, np.ndarray], path: str = "memory"
    ) -> None:
        """Wraps arrays.

        Args:
          values: by the original's names.
          path: what messages call them.
        """
        self._values = {name: np.asarray(v) for name, v in values.items()}
        specs = {
            name: TensorSpec(v.shape, v.dtype)
            for name, v in self._values.items()
        }
        super().__init__(path, "memory", specs)

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        return self._values[name]


class ModelWeights(Weights):
    """The variables of a live model, read when asked for."""

    def __init__(
        self, variables: Mapping[str, Any], step: int, path: str
    ) -> None:
        """Wraps variables.

        Args:
          variables: TensorFlow variables by the original's names.
          step: updates done.
          path: what messages call them.
        """
        self._variables = dict(variables)
        self._step = np.asarray(step, np.int64)
        specs = {
            name: TensorSpec(
                tuple(variable.shape), np.dtype(variable.dtype.as_numpy_dtype)
            )
            for name, variable in self._variables.items()
        }
        specs[STEP_NAME] = TensorSpec((), self._step.dtype)
        super().__init__(path, "memory", specs)

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        return (
            self._step if name == STEP_NAME else self._variables[name].numpy()
        )


class Selection(Weights):
    """Some tensors of another one, read through it."""

    def __init__(self, source: Weights, keep: Callable[[str], bool]) -> None:
        """Takes a part.

        Args:
          source: the whole.
          keep: told a name, says whether it stays.
        """
        specs = {n: spec for n, spec in source.specs.items() if keep(n)}
        super().__init__(
            source.path,
            source.kind,
            specs,
            source.dropped,
            source.hparams,
            source.vocab_file,
        )
        self._source = source

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        return self._source.read(name)


def without_optimizer(weights: Weights) -> Weights:
    """Leaves out the Adam slots; the step stays.

    Args:
      weights: any.

    Returns:
      A view of it.
    """
    return Selection(weights, lambda name: not name.endswith(SLOT_SUFFIXES))
