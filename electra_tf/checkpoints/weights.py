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

from configure.errors import UserError

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

        Returns:
          Its values; shape and dtype are those of its spec.
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
        """Wraps arrays."""
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
        """Wraps variables."""
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
        """Takes a part."""
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
    """Leaves out the Adam slots; the step stays."""
    return Selection(weights, lambda name: not name.endswith(SLOT_SUFFIXES))


# One of the two networks out of a pre-training checkpoint.

PARTS = ("all", "discriminator", "generator", "encoder")

_ENCODER = "electra/"
_SHARED_EMBEDDINGS = "electra/embeddings/"
_SMALL_GENERATORS = ("generator/", "generator_ltr/", "generator_rtl/")
_GENERATOR_HEADS = ("generator_predictions/", "cloze_predictions/")
_DISCRIMINATOR_HEAD = "discriminator_predictions/"
_TASK_HEADS = "task_specific/"


def has_part(weights: Weights, part: str) -> bool:
    """Whether a checkpoint holds a network, or all of it may be meant."""
    encodes = _has(weights, f"{_ENCODER}encoder/")
    generates = any(_has(weights, head) for head in _GENERATOR_HEADS)
    if part == "discriminator":
        judges = _has(weights, _DISCRIMINATOR_HEAD)
        return encodes and (judges or not generates)
    if part == "generator":
        return generates
    return part == "all" or encodes


def select_part(weights: Weights, part: str) -> Weights:
    """Takes a network out of a checkpoint."""
    if part not in PARTS:
        raise UserError(f"part {part!r}: expected one of {', '.join(PARTS)}.")
    if part == "all":
        return weights
    return {
        "discriminator": discriminator_part,
        "generator": generator_part,
        "encoder": _encoder_part,
    }[part](weights)


def discriminator_part(weights: Weights) -> Weights:
    """Takes the discriminator; see `select_part`."""
    if not has_part(weights, "discriminator"):
        found = _what_it_is(weights)
        raise UserError(
            f"{weights.path}: holds no discriminator: {found}. Choose another"
            " checkpoint, or --part=generator (--part=encoder for the"
            " transformer of a masked LM)."
        )
    prefixes = (_ENCODER, _DISCRIMINATOR_HEAD, _TASK_HEADS)
    return _part(weights, "discriminator", lambda n: n.startswith(prefixes))


def generator_part(weights: Weights) -> Weights:
    """Takes the generator (or masked LM); see `select_part`."""
    if not has_part(weights, "generator"):
        raise UserError(
            f"{weights.path}: holds no generator: {_what_it_is(weights)}."
            " Choose another checkpoint, or --part=discriminator."
        )
    scopes = [s for s in _SMALL_GENERATORS if _has(weights, s)]
    prefixes = (*(scopes or [_ENCODER]), *_GENERATOR_HEADS)
    if not all(_has(weights, f"{s}embeddings/") for s in scopes):
        prefixes += (_SHARED_EMBEDDINGS,)
    return _part(weights, "generator", lambda n: n.startswith(prefixes))


def _encoder_part(weights: Weights) -> Weights:
    if not has_part(weights, "encoder"):
        raise UserError(
            f"{weights.path}: holds no encoder of scope `electra`:"
            f" {_what_it_is(weights)}."
        )
    return _part(weights, "encoder", lambda n: n.startswith(_ENCODER))


def _part(
    weights: Weights, part: str, belongs: Callable[[str], bool]
) -> Weights:
    selection = Selection(weights, lambda n: n == STEP_NAME or belongs(n))
    selection.dropped |= {
        name: f"not of the {part}"
        for name in weights.specs
        if name not in selection.specs
    }
    return selection


def _has(weights: Weights, prefix: str) -> bool:
    return any(
        name.startswith(prefix) and not name.endswith(SLOT_SUFFIXES)
        for name in weights.specs
    )


def _what_it_is(weights: Weights) -> str:
    names = sorted({name.split("/")[0] for name in weights.shapes})
    if _has(weights, _DISCRIMINATOR_HEAD):
        kind = "a discriminator"
    elif any(_has(weights, scope) for scope in _SMALL_GENERATORS):
        kind = "a generator"
    elif any(_has(weights, head) for head in _GENERATOR_HEADS):
        kind = "a masked LM"
    elif _has(weights, _TASK_HEADS):
        kind = "a fine-tuned model"
    else:
        kind = "another model"
    return f"it is {kind} (scopes {', '.join(names[:6]) or 'none'})"


# A position table of another length.

_TABLE = "position_embeddings"


def extend_positions(weights: Weights, new_length: int) -> Weights:
    """Lengthens or shortens every position table of a checkpoint.

    A longer table keeps its rows and goes on with them from its start again
    (position 512 starts as position 0 was), as a start for further training.
    Adam slots of new rows are zero. A shorter table is cut.

    Args:
      new_length: rows wanted, at least 1.

    Returns:
      A view of it; `hparams` follow where they state the length.
    """
    return _Extended(weights, new_length)


def describe_extension(weights: Weights, new_length: int) -> str:
    """Says what `extend_positions` does to a checkpoint, for a report."""
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
