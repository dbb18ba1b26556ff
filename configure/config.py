# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What both configs do: they are made from layers, checked, and saved as JSON.

A field's type says what it may hold, its comment is its help.
"""

import copy
import dataclasses
import difflib
import functools
import json
import math
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from configure.errors import UserError

# How hyperparameters given by a user become typed values.

TRUE_WORDS = frozenset({"true", "t", "yes", "y", "on", "1"})
FALSE_WORDS = frozenset({"false", "f", "no", "n", "off", "0"})
NONE_WORDS = frozenset({"none", "null"})

# What people write for words of the real names.
_ABBREVIATIONS = {"lr": "learning_rate", "len": "length", "bs": "batch_size"}

_TYPE_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    dict: "a JSON object",
    list: "a list of names",
}


def read_hparams(text_or_path: str) -> dict[str, Any]:
    """Reads the value of `--hparams`.

    Source: google-research/electra, run_pretraining.py, main.
    """
    if text_or_path.strip().endswith(".json"):
        path = text_or_path.strip()
        return parse_json(_read_text(path), path)
    return parse_json(text_or_path, "--hparams")


def parse_json(text: str, where: str) -> dict[str, Any]:
    """Parses one JSON object, with errors a person can act on."""

    def reject_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UserError(f"{where}: {', '.join(twice)} given more than once")
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=reject_duplicates)
    except json.JSONDecodeError as e:
        lines = text.splitlines() or [""]
        line = lines[min(e.lineno, len(lines)) - 1]
        start = max(0, e.colno - 31)
        shown = line[start : e.colno + 29]
        pointer = " " * (e.colno - 1 - start) + "^"
        raise UserError(
            f"{where}: not valid JSON at line {e.lineno}, column {e.colno}"
            f" (character {e.pos}): {e.msg}\n  {shown}\n  {pointer}\n"
            + _json_hint(text)
        ) from None
    if not isinstance(value, dict):
        raise UserError(
            f"{where}: expected a JSON object such as"
            f' {{"learning_rate": 1e-4}}, got {json.dumps(value)[:60]}'
        )
    return value


def check_names(
    given: Iterable[str], known: Iterable[str], kind: str = "hparam"
) -> None:
    """Raises for names nobody knows, with the nearest names that exist."""
    known = list(known)
    complaints = []
    for name in given:
        if name in known:
            continue
        near = nearest_names(str(name), known)
        complaints.append(
            f"Unknown {kind} {name}. Nearest names: {', '.join(near)}"
        )
    if complaints:
        raise UserError("\n".join(complaints))


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The `count` names in `known` most like `name`, best first."""
    words = name.lower().strip("-").replace("-", "_").split("_")
    wanted = "_".join(_ABBREVIATIONS.get(word, word) for word in words)

    def likeness(candidate: str) -> float:
        ratio = difflib.SequenceMatcher(None, wanted, candidate).ratio()
        # A shared whole word counts: people forget the rest of a name.
        return ratio + 0.3 * bool(set(words) & set(candidate.split("_")))

    return sorted(known, key=likeness, reverse=True)[:count]


def coerce(name: str, value: Any, declared: Any) -> Any:
    """Converts one value to its declared type.

    Strings that plainly mean the value are taken as it ("False", "1e-4", "4"):
    the original keeps them as strings, so "False" counts as true there.

    Types are `bool`, `int`, `float`, `str`, `dict`, `list[str]`, or one of
    these `| None`. A list may be text, in JSON or as names between commas.
    """
    options = plain_types(declared)
    optional = type(None) in options
    wanted = next(o for o in options if o is not type(None))
    if value is None or (
        isinstance(value, str) and value.strip().lower() in NONE_WORDS
    ):
        if optional:
            return None
        if value is None or wanted is not str:
            raise _mistyped(name, value, wanted, optional)
    convert = _CONVERTERS[wanted]
    try:
        return convert(value)
    except UserError as e:
        raise UserError(f"hparam {name}: {e}") from None
    except (TypeError, ValueError, OverflowError):
        raise _mistyped(name, value, wanted, optional) from None


class Bound(NamedTuple):
    """What a value must be besides its type, as metadata of `Annotated`.

    Attributes:
      holds: whether a value is in bounds.
      words: follow "must be" in messages.
    """

    holds: Callable[[Any], bool]
    words: str


def at_least(least: float) -> Bound:
    """A lower bound."""
    return Bound(lambda value: value >= least, f"at least {least}")


def one_of(*choices: str) -> Bound:
    """A choice of texts."""
    return Bound(lambda value: value in choices, f"one of {', '.join(choices)}")


def bounds(declared: Any) -> list[Bound]:
    """The bounds in a declared type."""
    found = list(getattr(declared, "__metadata__", ()))
    for part in typing.get_args(declared):
        found += bounds(part)
    return found


def check_bounds(name: str, value: Any, declared: Any) -> None:
    """Raises unless a value of the declared type (or None) is in bounds."""
    for bound in bounds(declared) if value is not None else ():
        if not bound.holds(value):
            raise UserError(f"{name}: must be {bound.words}, got {value!r}")


def type_name(declared: Any) -> str:
    """A declared type in words for help pages: `str or none`."""
    words = [
        "none" if option is type(None) else option.__name__
        for option in plain_types(declared)
    ]
    return " or ".join("json" if word == "dict" else word for word in words)


def plain_types(declared: Any) -> tuple[Any, ...]:
    """The alternatives of a declared type, without their bounds."""
    if isinstance(getattr(declared, "__metadata__", None), tuple):
        return plain_types(declared.__origin__)
    if typing.get_origin(declared) in (typing.Union, types.UnionType):
        return tuple(plain_types(a)[0] for a in typing.get_args(declared))
    return (typing.get_origin(declared) or declared,)


def _mistyped(name: str, value: Any, wanted: Any, optional: bool) -> UserError:
    words = _TYPE_WORDS[wanted] + (" or null" if optional else "")
    return UserError(
        f"hparam {name}: expected {words},"
        f" got {value!r} ({type(value).__name__})"
    )


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in TRUE_WORDS:
            return True
        if word in FALSE_WORDS:
            return False
    raise TypeError


def _to_int(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, str):
        try:
            return int(value.strip().replace(",", ""))
        except ValueError:
            value = float(value)  # "1e6" is a whole number
    if value != int(value):
        raise ValueError
    return int(value)


def _to_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        # numpy numbers know __float__; containers do not.
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _to_str(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str):
        return value
    raise TypeError


def _to_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return parse_json(value, "value")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


def _to_names(value: Any) -> list[str]:
    if isinstance(value, str) and value.strip().startswith("["):
        value = json.loads(value)
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    if isinstance(value, list | tuple) and all(
        isinstance(name, str) for name in value
    ):
        return list(value)
    raise TypeError


_CONVERTERS = {
    bool: _to_bool,
    int: _to_int,
    float: _to_float,
    str: _to_str,
    dict: _to_dict,
    list: _to_names,
}


def _read_text(path: str) -> str:
    """Reads a UTF-8 text file, or says why not."""
    try:
        with open(path, encoding="utf-8-sig") as f:
            return f.read()
    except FileNotFoundError:
        raise UserError(f"{path}: no such hparams file") from None
    except UnicodeDecodeError as e:
        raise UserError(
            f"{path}: not UTF-8 text (byte {e.start}); save it as UTF-8"
        ) from None
    except OSError as e:
        raise UserError(f"{path}: cannot read: {e.strerror}") from None


def _json_hint(text: str) -> str:
    """The likeliest reason for malformed JSON."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[", '"')):
        return (
            "Give a JSON object in quotes, or the path of a file whose name"
            " ends in .json."
        )
    if "'" in stripped and '"' not in stripped:
        return "JSON wants double quotes around names and text."
    if any(word in stripped for word in ("True", "False", "None")):
        return "JSON writes true, false and null (not True, False, None)."
    return "Check for a missing quote, brace or comma just before that place."


# Types of hparams: what a value must be, besides a number or text.
Positive = Annotated[int, at_least(1)]
Natural = Annotated[int, at_least(0)]
NonNegative = Annotated[float, at_least(0)]
Ratio = Annotated[float, Bound(lambda value: value > 0, "above 0")]
Share = Annotated[
    float, Bound(lambda value: 0 <= value <= 1, "a fraction from 0 to 1")
]
_Dropout = Annotated[
    float, Bound(lambda value: 0 <= value < 1, "at least 0 and below 1")
]
Seed = Annotated[
    Natural, Bound(lambda value: value < 2**31, "below 2147483648")
]
MODEL_SIZES = ("small", "base", "large")
ModelSize = Annotated[str, one_of(*MODEL_SIZES)]
ReadOrder = Annotated[str, one_of("after_increment", "before_increment")]
Strategy = Annotated[
    str, one_of("auto", "one_device", "mirrored", "multi_worker", "tpu")
]
Precision = Annotated[
    str,
    Bound(
        lambda value: value in ("", "bf16", "fp16"),
        "bf16, fp16 or empty (float32)",
    ),
]

# The original's transformer settings, for model_hparam_overrides.
_OVERRIDES: dict[str, Any] = {
    "vocab_size": Positive,
    "hidden_size": Positive,
    "num_hidden_layers": Positive,
    "num_attention_heads": Positive,
    "hidden_act": str | None,
    "intermediate_size": Positive,
    "hidden_dropout_prob": _Dropout,
    "attention_probs_dropout_prob": _Dropout,
    "max_position_embeddings": Positive,
    "type_vocab_size": Positive,
    "initializer_range": NonNegative,
}
_MAX_POSITION_EMBEDDINGS = 512  # of every size

NAMES = ("model_name", "data_dir")
# Origins that a value has without anybody asking for it.
_SETTLED_ORIGINS = frozenset({"default", "preset", "derived"})

Config = TypeVar("Config", bound="TrainingConfig")


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Base of the configs; they add fields and what is derived.

    Attributes:
      purpose: what the program does, for `--help`.
      origins: where each value came from.
    """

    purpose: ClassVar[str]

    origins: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False, kw_only=True
    )

    def __post_init__(self):
        """Raises for settings that cannot work."""
        for name, declared in self.field_types().items():
            value = getattr(self, name)
            check_bounds(f"hparam {name}", value, declared)
        self._check()
        self._check_shared()

    @classmethod
    def create(
        cls: type[Config], model_name: str, data_dir: str, **hparams: Any
    ) -> Config:
        """Builds a config as the original does."""
        return cls.from_layers(model_name, data_dir, [("argument", hparams)])

    @classmethod
    def from_layers(
        cls: type[Config],
        model_name: str,
        data_dir: str,
        layers: Iterable[tuple[str, Mapping[str, Any]]],
        names_origin: str = "argument",
    ) -> Config:
        """Builds a config from (origin, hparams) pairs, later ones winning.

        The order is the original's: defaults (a preset counts as defaults),
        the given values, what is derived from them, and the given values
        again, so that they always win.
        """
        layers = [(origin, cls.clean_hparams(new)) for origin, new in layers]
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}

        def put(new: Mapping[str, Any], origin: str) -> None:
            values.update(copy.deepcopy(dict(new)))
            origins.update(dict.fromkeys(new, origin))

        put(cls.default_hparams(), "default")
        for name, value in zip(NAMES, (model_name, data_dir), strict=True):
            put({name: coerce(name, value, str)}, names_origin)
        given = {k: v for _, new in layers for k, v in new.items()}
        put(cls.clean_hparams(cls._preset(given)), "preset")
        for origin, new in layers:
            put(new, origin)
        put(cls._derived(values, origins), "derived")
        for origin, new in layers:
            put(new, origin)
        return cls(**values, origins=origins)

    @classmethod
    def command_line_layers(
        cls, given: Mapping[str, Any]
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """Layers that hparams of a command line bring, below their own."""
        return []

    @classmethod
    def _preset(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Hparams that count as defaults, by what is given."""
        return {}

    @classmethod
    def _derived(
        cls, values: Mapping[str, Any], origins: Mapping[str, str]
    ) -> dict[str, Any]:
        """What follows from the values so far."""
        raise NotImplementedError

    def _check(self) -> None:
        """Raises for combinations that cannot work."""
        raise NotImplementedError

    def check_mode(self) -> None:
        """Raises unless there is something to do."""
        raise NotImplementedError

    def warnings(self) -> list[str]:
        """What will run but is probably not meant, one text each."""
        found = []
        if self.do_train and self.learning_rate == 0:
            found.append("learning_rate is 0: no weight will change")
        if self.use_tpu and self.distribution_strategy not in ("auto", "tpu"):
            found.append(
                "use_tpu is set but distribution_strategy is"
                f" {self.distribution_strategy}, which is used"
            )
        return found

    def _check_shared(self) -> None:
        positions = self.model_hparam_overrides.get(
            "max_position_embeddings", _MAX_POSITION_EMBEDDINGS
        )
        if self.max_seq_length > positions:
            raise UserError(
                f"hparam max_seq_length: {self.max_seq_length} is longer than"
                f" the position table, max_position_embeddings = {positions}."
                " Shorten the examples, or use a model of more positions (when"
                " pre-training, set model_hparam_overrides to"
                f' {{"max_position_embeddings": {self.max_seq_length}}})'
            )
        if self.train_batch_size % self.gradient_accumulation_steps:
            raise UserError(
                "hparam gradient_accumulation_steps:"
                f" {self.gradient_accumulation_steps} does not divide"
                f" train_batch_size {self.train_batch_size}"
            )
        if self.keep_best and not self.eval_every_n_steps:
            raise UserError(
                "hparam keep_best: needs evaluations while training; set"
                " eval_every_n_steps"
            )
        try:
            re.compile(self.allow_missing or "")
        except re.error as error:
            raise UserError(
                f"hparam allow_missing: {self.allow_missing!r} is not a"
                f" regular expression ({error})"
            ) from error

    @classmethod
    @functools.cache
    def field_types(cls) -> dict[str, Any]:
        """The declared type of every hparam, in declared order."""
        hints = typing.get_type_hints(cls, include_extras=True)
        names = [field.name for field in dataclasses.fields(cls)]
        return {name: hints[name] for name in names if name != "origins"}

    @classmethod
    def default_hparams(cls) -> dict[str, Any]:
        """Every hparam that has a default, before any derivation."""
        values = {}
        for field in dataclasses.fields(cls):
            if field.default is not dataclasses.MISSING:
                values[field.name] = field.default
            elif field.default_factory is not dataclasses.MISSING:
                values[field.name] = field.default_factory()
        del values["origins"]
        return values

    @classmethod
    def clean_hparams(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Checks names and converts values to their declared types.

        A None for `max_predictions_per_seq`, which asks for the derived value,
        is left out.

        Differs: the original keeps unknown names in `model_hparam_overrides`
        without a word.
        """
        known = cls.field_types()
        check_names(given, [n for n in known if n not in NAMES])
        clean = {
            name: coerce(name, value, known[name])
            for name, value in given.items()
        }
        if clean.get("max_predictions_per_seq", 0) is None:
            del clean["max_predictions_per_seq"]
        if overrides := clean.get("model_hparam_overrides"):
            kind = "model_hparam_overrides"
            check_names(overrides, _OVERRIDES, f"{kind} key")
            for name, value in overrides.items():
                label, declared = f"{kind}.{name}", _OVERRIDES[name]
                overrides[name] = coerce(label, value, declared)
                check_bounds(f"hparam {label}", overrides[name], declared)
        return clean

    @classmethod
    def explicit_hparams(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Undoes `to_json`: keeps only what somebody asked for.

        A value that a default, a preset or a derivation would give again is
        dropped, so that it follows a new model name, task or length; one
        that differs (the file was edited) is kept.
        """
        values = {k: v for k, v in given.items() if not k.startswith("_")}
        origins = given.get("_origins")
        if not isinstance(origins, Mapping):
            return values
        asked = {
            name: value
            for name, value in values.items()
            if name in NAMES or origins.get(name) not in _SETTLED_ORIGINS
        }
        settled = cls.create(
            *(asked.get(name, "") for name in NAMES),
            **{name: v for name, v in asked.items() if name not in NAMES},
        ).as_dict()
        missing = object()
        edited = {
            name: value
            for name, value in values.items()
            if name not in asked and settled.get(name, missing) != value
        }
        return {**asked, **edited}

    @classmethod
    def from_json(cls: type[Config], text_or_path: str) -> Config:
        """Reads back what `to_json` wrote."""
        given = cls.explicit_hparams(read_hparams(text_or_path))
        names = [given.pop(name, "") for name in NAMES]
        return cls.from_layers(*names, [("file", given)], "file")

    def to_json(self) -> str:
        """All values and their origins as JSON text, which `--hparams` takes.

        Derived values are derived again when it is read, so the file can
        serve another task or model.
        """
        values = {**self.as_dict(), "_origins": dict(self.origins)}
        return json.dumps(values, indent=2) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Every hparam by name, in the order declared."""
        names = self.field_types()
        return {name: copy.deepcopy(getattr(self, name)) for name in names}
