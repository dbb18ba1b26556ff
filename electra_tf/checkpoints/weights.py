# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of any format as named tensors, and their way into a model.

Whatever the file, tensors go by the original's names: `electra/...`,
`generator/...`, Adam slots `<variable>/adam_m` and `<variable>/adam_v`, and
`global_step`. Readers map to these names, writers from them, so formats meet
only here and a checkpoint need not fit in memory twice.
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

if TYPE_CHECKING:  # Its import takes seconds.
    pass

SLOT_SUFFIXES = ("/adam_m", "/adam_v")
STEP_NAME = "global_step"
_POSITIONS = "position_embeddings"
_MOST_LINES = 8


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """Shape and NumPy type of a tensor that has not been read."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size_in_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


def spec_of(value: Any) -> TensorSpec:
    """Shape and type of an array, or of a variable."""
    dtype = getattr(value.dtype, "as_numpy_dtype", value.dtype)
    return TensorSpec(tuple(value.shape), np.dtype(dtype))


@dataclasses.dataclass(eq=False)
class Weights(abc.ABC):
    """Named tensors, read one at a time."""

    path: str  # where they are, for messages
    kind: str  # "tf1", "native", "huggingface", "bert" or "memory"
    # Every tensor by the original's name, slots and step included.
    specs: dict[str, TensorSpec]
    # What the file holds beyond that, and why it is left out.
    dropped: dict[str, str] = dataclasses.field(default_factory=dict)
    # What a configuration beside the file states, under the names of
    # `PretrainingConfig`; empty where there is none.
    hparams: dict[str, Any] = dataclasses.field(default_factory=dict)
    vocab_file: str | None = None  # a vocabulary that comes with it
    # Heads of fine-tuned tasks, where a file says what they are.
    heads: dict[str, TaskHead] = dataclasses.field(default_factory=dict)
    max_length: int | None = None  # wordpieces that its tokenizer cuts texts to

    @abc.abstractmethod
    def read(self, name: str) -> np.ndarray:
        """Reads one tensor, of its spec's shape and dtype."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the model's variables: no slots, no step."""
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
        """Updates done before it was saved, or None where not stored."""
        if STEP_NAME not in self.specs:
            return None
        return int(self.read(STEP_NAME))

    def counts(self) -> dict[str, Any]:
        """Numbers of what it holds; the step is None where not stored."""
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
    """What `Weights.counts` gives, in words."""
    step = counts["global_step"]
    return (
        f"{counts['variables']} variables with {counts['parameters']:,}"
        f" parameters, {counts['slots']} Adam slots, step"
        f" {'not stored' if step is None else step}"
    )


def is_variable(name: str) -> bool:
    """Whether a name is a model's variable, not a slot and not the step."""
    return name != STEP_NAME and not name.endswith(SLOT_SUFFIXES)


class MemoryWeights(Weights):
    """Tensors that are in memory already: arrays, or a model's variables."""

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
    """The variables of a live model, read when asked for."""

    def __init__(self, variables: Iterable[Any], step: int, path: str) -> None:
        named = variables_by_name(variables)
        named[STEP_NAME] = np.asarray(step, np.int64)
        super().__init__(named, path)


def variables_by_name(variables: Iterable[Any]) -> dict[str, Any]:
    """Keys `tf.Variable`s by the original's names."""
    named: dict[str, Any] = {}
    for variable in variables:
        name = variable.name.split(":")[0]
        if name in named:
            raise ValueError(f"Two variables are named {name}.")
        named[name] = variable
    return named


class View(Weights):
    """Another one's tensors, read through it: some of them, or changed."""

    def __init__(
        self,
        source: Weights,
        specs: dict[str, TensorSpec],
        change: Callable[[str, np.ndarray], np.ndarray] | None = None,
        more: "MemoryWeights | None" = None,
    ) -> None:
        """Takes what the tensors are, what makes them so, and further ones."""
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
    """Takes the tensors whose names are wanted."""
    return View(weights, {n: s for n, s in weights.specs.items() if keep(n)})


def repeat_segment_row(weights: Weights, row: int) -> Weights:
    """Gives all segments one row: taggers are asked with 1 here, 0 there."""

    def change(name: str, value: np.ndarray) -> np.ndarray:
        if name != "electra/embeddings/token_type_embeddings":
            return value
        # A segment without a row adds nothing.
        own = value[row] if row < len(value) else np.zeros_like(value[0])
        return np.repeat(own[None], len(value), 0)

    return View(weights, dict(weights.specs), change)


class _Renamed(View):
    """Another one's tensors, those that start so under another name."""

    def __init__(self, source: Weights, old: str, new: str) -> None:
        def renamed(name: str) -> str:
            return new + name[len(old) :] if name.startswith(old) else name

        self._former = {renamed(name): name for name in source.specs}
        specs = {n: source.specs[old] for n, old in self._former.items()}
        super().__init__(source, specs)

    def read(self, name: str) -> np.ndarray:
        return super().read(self._former[name])


def rename_task(weights: Weights, task: str) -> tuple[Weights, str]:
    """Gives the only head of a task another name; returns its former one."""
    tasks = weights.contents.tasks
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", task):
        raise UserError(
            f"--task={task}: expected letters, digits, dots, dashes and"
            " underscores."
        )
    if len(tasks) != 1:
        held = f"heads of {', '.join(tasks)}" if tasks else "no task's head"
        raise UserError(
            f"--task={task}: {weights.path} has {held}; expected one head."
            " Leave --task out."
        )
    (former,) = tasks
    scopes = (f"task_specific/{name}/" for name in (former, task))
    renamed = _Renamed(weights, *scopes)
    heads = weights.heads.items()
    renamed.heads = {task if n == former else n: head for n, head in heads}
    return renamed, former


def select_part(weights: Weights, part: str) -> Weights:
    """Takes one network out of a checkpoint: a name of `contents.PARTS`."""
    if part == "all":
        return weights
    prefixes = weights.contents.prefixes(part, weights.path)
    weights = _with_tables_of(weights, part)
    chosen = select_tensors(
        weights, lambda name: name == STEP_NAME or name.startswith(prefixes)
    )
    left = (name for name in weights.specs if name not in chosen.specs)
    chosen.dropped |= dict.fromkeys(left, f"not of the {part}")
    return chosen


# Tables as another model, or the original, has them. Nothing is rounded.


class _Remade(View):
    """Another one's tensors, some under new names, a sum among them."""

    def __init__(
        self,
        source: Weights,
        made: Mapping[str, tuple[str, ...]],
        left: Collection[str],
        *more: MemoryWeights,
    ) -> None:
        """Takes what new tensors are the sums of, and what is left out."""
        left = [name for name in source.specs if name in left]
        specs = {n: s for n, s in source.specs.items() if n not in left}
        specs |= {n: source.specs[names[0]] for n, names in made.items()}
        super().__init__(source, specs, None, *more)
        self.dropped |= dict.fromkeys(left, "became another table, or in a sum")
        self._made = made

    def read(self, name: str) -> np.ndarray:
        if name not in self._made:
            return super().read(name)
        first, *others = map(self._source.read, self._made[name])
        return sum(others, start=first)


def _with_tables_of(weights: Weights, part: str) -> Weights:
    """Gives one network's tables the names that all models have for them.

    The sum has delta's slots: gradients of the two are the same.
    """
    old, new = DELTA_TABLE, TABLE
    if part == "generator":
        old = SHARED_TABLE
        if weights.contents.embedding_sharing == "token":
            old, new = "generator/embeddings/", "electra/embeddings/"
    made = {
        new + name.removeprefix(old): (name,)
        for name in weights.specs
        if name.startswith(old)
    }
    if DELTA_TABLE in weights.specs and part != "generator":
        made[TABLE] = (SHARED_TABLE, DELTA_TABLE)
    gone = (old, SHARED_TABLE, DELTA_TABLE)
    left = [name for name in weights.specs if name.startswith(gone)]
    return _Remade(weights, made, left) if left else weights


def match_tables(weights: Weights, wanted: Collection[str]) -> Weights:
    """Gives tables the names that a model of these variables has for them.

    A plain model is one whose delta is zero, or whose generator's own tables
    are copies of the discriminator's.
    """
    held, two = weights.specs, {SHARED_TABLE, DELTA_TABLE}
    if TABLE in wanted and DELTA_TABLE in held:
        made = {TABLE: (SHARED_TABLE, DELTA_TABLE)}
        return _Remade(weights, made, two.difference(wanted))
    if DELTA_TABLE in wanted and DELTA_TABLE not in held and TABLE in held:
        zeros = np.zeros(held[TABLE].shape, np.float32)
        more = MemoryWeights({DELTA_TABLE: zeros})
        return _Remade(weights, {SHARED_TABLE: (TABLE,)}, {TABLE}, more)
    own = {
        name: name.replace(f"{name.split('/')[0]}/", "electra/", 1)
        for name in wanted
        if re.match(r"generator\w*/embeddings/", name)
    }
    if not held.keys().isdisjoint(own) or "word_" in "".join(own):
        return weights
    made = {name: (old,) for name, old in own.items() if old in held}
    return _Remade(weights, made, ()) if made else weights


def extend_positions(weights: Weights, new_length: int) -> Weights:
    """Lengthens or shortens every position table of a checkpoint.

    A longer table keeps its rows and goes on with them from its start again
    (position 512 starts as position 0 was), as a start for further training.
    Adam slots of new rows are zero. A shorter table is cut. `hparams` follow
    where they state the length.
    """
    if new_length < 1:
        raise UserError(
            f"extend_positions is {new_length}; expected at least 1 row."
        )
    tables, specs = _tables(weights), dict(weights.specs)
    if not tables:
        raise UserError(f"{weights.path}: has no {_POSITIONS} to extend.")
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
    """Says what `extend_positions` does to a checkpoint, for a report."""
    old = max(weights.specs[name].shape[0] for name in _tables(weights))
    change = f"from {old} to {new_length} rows"
    if new_length == old:
        return f"position tables have {old} rows already"
    if new_length < old:
        return f"position tables cut {change}: longer sequences no longer fit"
    return (
        f"position tables extended {change}: rows {old} and up repeat the table"
        " from its start (their Adam slots are zero); train before use"
    )


def _tables(weights: Weights) -> list[str]:
    """Names of the position tables and of their slots."""
    ends = tuple(f"/{_POSITIONS}{end}" for end in ("", *SLOT_SUFFIXES))
    return [name for name in weights.specs if name.endswith(ends)]


def check_shapes(
    weights: Weights,
    targets: Mapping[str, Any],
    model: Mapping[str, Any] | None = None,
) -> None:
    """Refuses `targets` (of `model`) of another shape or type than there."""
    lines, specs = [], {name: spec_of(v) for name, v in targets.items()}
    for name, spec in specs.items():
        held = weights.specs[name]
        if held.shape != spec.shape:
            lines.append(
                f"{name}: checkpoint {list(held.shape)}, model"
                f" {list(spec.shape)}"
            )
        elif held.dtype != spec.dtype:
            lines.append(
                f"{name}: checkpoint {held.dtype}, model {spec.dtype}; convert"
                " the checkpoint"
            )
    if lines:
        shapes = {n: tuple(v.shape) for n, v in (model or targets).items()}
        differences = weights.contents.differences(Contents(shapes))
        lines = limit_lines(lines, _MOST_LINES) + differences
        title = f"{weights.path} is of another model, shapes differ:"
        raise UserError("\n".join([title, *lines]))
