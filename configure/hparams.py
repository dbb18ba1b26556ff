# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How hyperparameters given by a user become typed values.

Every complaint is a `UserError` that names the hparam, the value found and the
value wanted.
"""

import difflib
import json
import math
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from configure.errors import UserError

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
