# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of any format as named tensors, and selections of tensors.

Tensors of all formats have the original's names: `electra/...`,
`generator/...`, Adam slots `<variable>/adam_m` and `<variable>/adam_v`, and
`global_step`. Readers convert names to these names, and writers convert these
names to names of their format, so that no format depends on another format.
"""

import abc
import dataclasses
import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from configure.errors import UserError
from configure.formatting import limit_lines
from electra_tf.checkpoints.contents import (
    DELTA_TABLE,
    SHARED_TABLE,
    TABLE,
    Contents,
    TaskHead,
)

if TYPE_CHECKING:
    pass

SLOT_SUFFIXES = ("/adam_m", "/adam_v")
STEP_NAME = "global_step"
_POSITIONS = "position_embeddings"
_MOST_LINES = 8  # maximum number of tensors that a message lists


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """Shape and NumPy dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size_in_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


def spec_of(value: Any) -> TensorSpec:
    """Return the shape and dtype of an array or variable."""
    dtype = getattr(value.dtype, "as_numpy_dtype", value.dtype)
    return TensorSpec(tuple(value.shape), np.dtype(dtype))


@dataclasses.dataclass(eq=False)
class Weights(abc.ABC):
    """Named tensors of a checkpoint, read on demand."""

    path: str  # Prefix or folder, for messages.
    kind: str  # "tf1", "native", "huggingface", "bert" or "memory"
    # All tensors by the original's name, including slots and step.
    specs: dict[str, TensorSpec]
    # Contents of the file that are left out, with the reasons.
    dropped: dict[str, str] = dataclasses.field(default_factory=dict)
    # Hparams in a config next to the file, under the names of
    # `PretrainingConfig`; empty without a config.
    hparams: dict[str, Any] = dataclasses.field(default_factory=dict)
    vocab_file: str | None = None  # vocabulary next to the file
    # Heads of fine-tuned tasks that a file describes, by task name.
    heads: dict[str, TaskHead] = dataclasses.field(default_factory=dict)
    # Number of wordpieces at which the tokenizer truncates texts.
    max_length: int | None = None

    @abc.abstractmethod
    def read(self, name: str) -> np.ndarray:
        """Read one tensor, with the shape and dtype of its spec."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the model's variables, without slots and step."""
        return {
            name: spec.shape
            for name, spec in self.specs.items()
            if is_variable(name)
        }

    @functools.cached_property
    def contents(self) -> Contents:
        return Contents(self.shapes)

    @property
    def slots(self) -> tuple[str, ...]:
        return tuple(n for n in self.specs if n.endswith(SLOT_SUFFIXES))

    @property
    def global_step(self) -> int | None:
        """Number of updates before saving; None if the file has no step."""
        if STEP_NAME not in self.specs:
            return None
        return int(self.read(STEP_NAME))

    def counts(self) -> dict[str, Any]:
        """Return the numbers of tensors, parameters and bytes, and the step."""
        shapes = self.shapes.values()
        return {
            "tensors": len(self.specs),
            "variables": len(shapes),
            "parameters": sum(int(np.prod(s, dtype=np.int64)) for s in shapes),
            "slots": len(self.slots),
            "global_step": self.global_step,
            "bytes": sum(s.size_in_bytes for s in self.specs.values()),
        }

    def __iter__(self) -> Iterator[tuple[str, np.ndarray]]:
        for name in self.specs:
            yield name, self.read(name)


def describe_counts(counts: Mapping[str, Any]) -> str:
    """Return `Weights.counts` as text."""
    step = counts["global_step"]
    return (
        f"{counts['variables']} variables with {counts['parameters']:,}"
        f" parameters, {counts['slots']} Adam slots, step"
        f" {'not stored' if step is None else step}"
    )


def is_variable(name: str) -> bool:
    """Return whether a name belongs to a model's variable.

    Slots and the step are not variables of a model.
    """
    return name != STEP_NAME and not name.endswith(SLOT_SUFFIXES)


class MemoryWeights(Weights):
    """Tensors in memory: arrays, or a model's variables."""

    def __init__(self, values: Mapping[str, Any], path: str = "memory") -> None:
        self._values = {
            n: v if hasattr(v, "shape") else np.asarray(v)
            for n, v in values.items()
        }
        specs = {name: spec_of(value) for name, value in self._values.items()}
        super().__init__(path, "memory", specs)

    def read(self, name: str) -> np.ndarray:
        return np.asarray(self._values[name])


class ModelWeights(MemoryWeights):
    """Variables of a model in memory; `read` returns their current values."""

    def __init__(self, variables: Iterable[Any], step: int, path: str) -> None:
        named = variables_by_name(variables)
        named[STEP_NAME] = np.asarray(step, np.int64)
        super().__init__(named, path)


def variables_by_name(variables: Iterable[Any]) -> dict[str, Any]:
    """Return variables by name, without the suffix that TensorFlow adds."""
    named: dict[str, Any] = {}
    for variable in variables:
        name = variable.name.split(":")[0]
        if name in named:
            raise ValueError(
                f"Two variables are named {name}; expected unique names. Rename"
                " one variable."
            )
        named[name] = variable
    return named


class View(Weights):
    """A selection of a source's tensors, with changed or additional tensors."""

    def __init__(
        self,
        source: Weights,
        specs: dict[str, TensorSpec],
        change: Callable[[str, np.ndarray], np.ndarray] | None = None,
        more: "MemoryWeights | None" = None,
    ) -> None:
        """Set the tensors of the view.

        Args:
          specs: specs of the tensors, by their names in the source.
          change: function of a tensor's name and value that returns the new
            value.
          more: additional tensors.
        """
        super().__init__(
            source.path,
            source.kind,
            {**specs, **(more.specs if more else {})},
            dict(source.dropped),
            dict(source.hparams),
            source.vocab_file,
            dict(source.heads),
            source.max_length,
        )
        self._source, self._change, self._more = source, change, more

    def read(self, name: str) -> np.ndarray:
        if self._more and name in self._more.specs:
            return self._more.read(name)
        value = self._source.read(name)
        return self._change(name, value) if self._change else value


def select_tensors(weights: Weights, keep: Callable[[str], bool]) -> Weights:
    """Return a view of the tensors whose names `keep` accepts."""
    return View(weights, {n: s for n, s in weights.specs.items() if keep(n)})


def repeat_segment_row(weights: Weights, row: int) -> Weights:
    """Return weights with one row of the segment table copied to all rows.

    Taggers of this project use segment 1, taggers of transformers segment 0.
    """

    def change(name: str, value: np.ndarray) -> np.ndarray:
        if name != "electra/embeddings/token_type_embeddings":
            return value
        # A row that the table lacks would add nothing to the embeddings, so
        # zeros replace the row.
        vector = value[row] if row < len(value) else np.zeros_like(value[0])
        return np.repeat(vector[None], len(value), 0)

    return View(weights, dict(weights.specs), change)


def with_description(
    weights: Weights, hparams: Mapping[str, Any], vocab_file: str | None
) -> Weights:
    """Return weights whose hparams and vocabulary are replaced."""
    view = View(weights, dict(weights.specs))
    view.hparams, view.vocab_file = dict(hparams), vocab_file
    return view


class _Renamed(View):
    """Tensors of a source, with the prefix of some names replaced."""

    def __init__(self, source: Weights, old: str, new: str) -> None:
        def renamed(name: str) -> str:
            return new + name[len(old) :] if name.startswith(old) else name

        self._former_names = {renamed(name): name for name in source.specs}
        specs = {
            name: source.specs[former]
            for name, former in self._former_names.items()
        }
        super().__init__(source, specs)

    def read(self, name: str) -> np.ndarray:
        return super().read(self._former_names[name])


def rename_task(weights: Weights, task: str) -> tuple[Weights, str]:
    """Rename the only task; return the new weights and the former name."""
    tasks = weights.contents.tasks
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", task):
        raise UserError(
            f"--task={task}: expected a name of letters, digits, dots, dashes"
            " and underscores that begins with a letter or a digit. Choose a"
            " different name."
        )
    if len(tasks) != 1:
        heads = f"the heads of {', '.join(tasks)}" if tasks else "no task head"
        raise UserError(
            f"--task={task}: {weights.path} contains {heads}; expected exactly"
            " one task head. Remove --task."
        )
    (former,) = tasks
    scopes = (f"task_specific/{name}/" for name in (former, task))
    renamed = _Renamed(weights, *scopes)
    renamed.heads = {
        task if name == former else name: head
        for name, head in weights.heads.items()
    }
    return renamed, former


def select_part(weights: Weights, part: str) -> Weights:
    """Return the tensors of a checkpoint's part, one of `contents.PARTS`."""
    if part == "all":
        return weights
    prefixes = weights.contents.prefixes(part, weights.path)
    weights = _with_tables_of(weights, part)
    chosen = select_tensors(
        weights, lambda name: name == STEP_NAME or name.startswith(prefixes)
    )
    others = (name for name in weights.specs if name not in chosen.specs)
    chosen.dropped |= dict.fromkeys(others, f"not of the {part}")
    return chosen


# Views that convert embedding tables to the tables of a different model, or of
# the original. The new tables give the same outputs.


class _WithSums(View):
    """Tensors of a source; some tensors are replaced by sums of tensors."""

    def __init__(
        self,
        source: Weights,
        sums: Mapping[str, tuple[str, ...]],
        removed: Collection[str],
        more: MemoryWeights | None = None,
    ) -> None:
        """Define the sums and the removed tensors.

        Args:
          sums: names of the source's tensors that are summed for each new
            tensor.
          removed: names of the source's tensors that are left out.
          more: additional tensors.
        """
        removed = [name for name in source.specs if name in removed]
        specs = {n: s for n, s in source.specs.items() if n not in removed}
        specs |= {n: source.specs[terms[0]] for n, terms in sums.items()}
        super().__init__(source, specs, None, more)
        reason = "replaced by a different table or a sum"
        self.dropped |= dict.fromkeys(removed, reason)
        self._sums = sums

    def read(self, name: str) -> np.ndarray:
        if name not in self._sums:
            return super().read(name)
        first, *others = map(self._source.read, self._sums[name])
        return sum(others, start=first)


def _with_tables_of(weights: Weights, part: str) -> Weights:
    """Return weights with one network's tables under the original's names.

    A sum gets the slots of the delta, because both have the same gradient.
    """
    old, new = DELTA_TABLE, TABLE
    if part == "generator":
        old = SHARED_TABLE
        if weights.contents.embedding_sharing == "token":
            old, new = "generator/embeddings/", "electra/embeddings/"
    sums: dict[str, tuple[str, ...]] = {
        new + name.removeprefix(old): (name,)
        for name in weights.specs
        if name.startswith(old)
    }
    if DELTA_TABLE in weights.specs and part != "generator":
        sums[TABLE] = (SHARED_TABLE, DELTA_TABLE)
    prefixes = (old, SHARED_TABLE, DELTA_TABLE)
    removed = [name for name in weights.specs if name.startswith(prefixes)]
    return _WithSums(weights, sums, removed) if removed else weights


def match_tables(weights: Weights, names: Collection[str]) -> Weights:
    """Return weights whose embedding tables are those of a model.

    A checkpoint with one table fits a model with gradient-disentangled sharing
    (with a delta of zero) and a model whose generator has separate position and
    segment tables (with copies of the tables). In the opposite direction tables
    are summed.

    Args:
      names: names of the model's variables.
    """
    specs, terms = weights.specs, {SHARED_TABLE, DELTA_TABLE}
    if TABLE in names and DELTA_TABLE in specs:
        sums = {TABLE: (SHARED_TABLE, DELTA_TABLE)}
        return _WithSums(weights, sums, terms.difference(names))
    if DELTA_TABLE in names and DELTA_TABLE not in specs and TABLE in specs:
        zeros = np.zeros(specs[TABLE].shape, np.float32)
        more = MemoryWeights({DELTA_TABLE: zeros})
        return _WithSums(weights, {SHARED_TABLE: (TABLE,)}, {TABLE}, more)
    of_generator = {
        name: name.replace(f"{name.split('/')[0]}/", "electra/", 1)
        for name in names
        if re.match(r"generator\w*/embeddings/", name)
    }
    has_word_table = any("word_" in name for name in of_generator)
    if has_word_table or not specs.keys().isdisjoint(of_generator):
        return weights
    copies = {
        name: (original,)
        for name, original in of_generator.items()
        if original in specs
    }
    return _WithSums(weights, copies, ()) if copies else weights


def extend_positions(weights: Weights, new_length: int) -> Weights:
    """Return weights with position tables of a new length.

    A longer table repeats its rows from the start (row 512 is a copy of row 0),
    as initial values for further training. Adam slots of new rows are zero. A
    shorter table is truncated. If `hparams` contain the length, they are
    updated.
    """
    if new_length < 1:
        raise UserError(
            f"--extend_positions is {new_length}; expected at least 1 row. Pass"
            " a larger number."
        )
    tables, specs = _tables(weights), dict(weights.specs)
    if not tables:
        raise UserError(
            f"{weights.path}: no {_POSITIONS} to extend. Remove"
            " --extend_positions."
        )
    for name in tables:
        shape = (new_length, *specs[name].shape[1:])
        specs[name] = dataclasses.replace(specs[name], shape=shape)

    def resized(name: str, value: np.ndarray) -> np.ndarray:
        if name not in tables:
            return value
        if name.endswith(SLOT_SUFFIXES):
            new = np.zeros(specs[name].shape, value.dtype)
            new[: len(value)] = value[:new_length]
            return new
        return value[np.arange(new_length) % len(value)]

    extended = View(weights, specs, resized)
    if extended.hparams:
        extended.hparams["model_hparam_overrides"] = {
            **(extended.hparams.get("model_hparam_overrides") or {}),
            "max_position_embeddings": new_length,
        }
    return extended


def describe_extension(weights: Weights, new_length: int) -> str:
    """Return a description of the effect of `extend_positions`, for reports."""
    old = max(weights.specs[name].shape[0] for name in _tables(weights))
    change = f"from {old} to {new_length} rows"
    if new_length == old:
        return f"position tables already have {old} rows"
    if new_length < old:
        return (
            f"position tables truncated {change}; the model cannot read longer"
            " sequences"
        )
    return (
        f"position tables extended {change}: the rows after the first"
        f" {old} repeat the table from its start, and their Adam slots are"
        " zero. Train the model before you use it"
    )


def _tables(weights: Weights) -> list[str]:
    """Return the names of the position tables and of their slots."""
    ends = tuple(f"/{_POSITIONS}{end}" for end in ("", *SLOT_SUFFIXES))
    return [name for name in weights.specs if name.endswith(ends)]


def check_shapes(
    weights: Weights,
    targets: Mapping[str, Any],
    model: Mapping[str, Any] | None = None,
) -> None:
    """Raise a UserError if `targets` and the checkpoint do not match.

    Shapes and types must be equal.

    Args:
      targets: variables or specs, by their names in the checkpoint.
      model: all variables of the model, for messages; default: `targets`.
    """
    lines = []
    for name, target in targets.items():
        stored, spec = weights.specs[name], spec_of(target)
        if stored.shape != spec.shape:
            lines.append(
                f"{name}: checkpoint {list(stored.shape)}, model"
                f" {list(spec.shape)}"
            )
        elif stored.dtype != spec.dtype:
            lines.append(
                f"{name}: checkpoint {stored.dtype}, model {spec.dtype};"
                f" save the tensor as {spec.dtype}"
            )
    if lines:
        shapes = {n: tuple(v.shape) for n, v in (model or targets).items()}
        differences = weights.contents.differences(Contents(shapes))
        lines = limit_lines(lines, _MOST_LINES) + differences
        title = (
            f"{weights.path} does not match the model; these shapes or types"
            " differ:"
        )
        raise UserError("\n".join([title, *lines]))
