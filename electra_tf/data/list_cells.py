# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists in table cells, in the notation of Python or JSON."""

import ast
import io
import json
import re
import tokenize
import warnings
from typing import Any

_BRACKETS = {"[": "]", "(": ")", "{": "}"}
# Calls that create Python's sets (an empty set has no literal), and calls that
# create other containers.
_SET_CALL = re.compile(r"(?:frozen)?set\((.*)\)", re.DOTALL)
_OTHER_CALL = re.compile(r"[A-Za-z_][\w.]*\(\s*[\[({'\"].*\)", re.DOTALL)
# A list without an end, as in cells that were cut at a maximum length.
_CUT_LIST = re.compile(r"\[\s*['\"][^\]]*", re.DOTALL)
# Errors that Python raises for a text that is not a literal; TokenError means a
# text without an end.
_NO_LITERAL = (
    SyntaxError,
    ValueError,
    TypeError,
    MemoryError,
    RecursionError,
    tokenize.TokenError,
)


class UnreadableListError(ValueError):
    """Error for a text that resembles a list but cannot be read as one."""


def read_list(text: str) -> list[Any] | None:
    """Read a cell such as `['x', 'y']`; return None for other texts.

    Tuples and sets of Python are also read as lists.

    Raises:
      UnreadableListError: the text has square brackets but is not a list, such
        as `[x, y]` or NumPy's `['x' 'y']`; or the text is a container of
        another kind, such as `array(['x'])`; or the text is a list without an
        end.
    """
    text = text.strip()
    if call := _SET_CALL.fullmatch(text):
        text = call[1].strip() or "[]"
    elif _OTHER_CALL.fullmatch(text) or _CUT_LIST.fullmatch(text):
        raise UnreadableListError(text)
    if len(text) < 2 or _BRACKETS.get(text[0]) != text[-1]:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _python_literal(text)
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if text[0] == "[" and _is_one_pair(text):
        raise UnreadableListError(text)
    return None


def _is_one_pair(text: str) -> bool:
    """Return whether the last bracket closes the first, unlike in `[x],[y]`."""
    depth = 0
    for length, character in enumerate(text, 1):
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        if depth == 0:
            return length == len(text)
    return False


def _python_literal(text: str) -> Any:
    """Return the value of a Python literal; None for other texts."""
    try:
        with warnings.catch_warnings():
            # Python warns about unknown escapes in strings.
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="eval")
        texts = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        n_texts = sum(token.type == tokenize.STRING for token in tokens)
        # A printed NumPy array has no commas, so Python would join its adjacent
        # strings into one.
        if n_texts != len(texts):
            return None
        # A set would lose the order of its elements.
        if isinstance(tree.body, ast.Set):
            return [ast.literal_eval(node) for node in tree.body.elts]
        return ast.literal_eval(tree)
    except _NO_LITERAL:
        return None
