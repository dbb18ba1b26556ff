# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists in cells of tables, as Python and JSON write them."""

import ast
import io
import json
import re
import tokenize
import warnings
from typing import Any

_BRACKETS = {"[": "]", "(": ")", "{": "}"}
# Python's sets that have no literal, and other containers' calls.
_SET_CALL = re.compile(r"(?:frozen)?set\((.*)\)", re.DOTALL)
_OTHER_CALL = re.compile(r"[A-Za-z_][\w.]*\(\s*[\[({'\"].*\)", re.DOTALL)
# A list that was cut, as in cells of limited length.
_CUT_LIST = re.compile(r"\[\s*['\"][^\]]*", re.DOTALL)
# What reading a text as Python raises; TokenError is of cut texts.
_NO_LITERAL = (
    SyntaxError,
    ValueError,
    TypeError,
    MemoryError,
    RecursionError,
    tokenize.TokenError,
)


class UnreadableListError(ValueError):
    """A text that looks like a list and is none of Python or JSON."""


def read_list(text: str) -> list[Any] | None:
    """Read a cell such as `['x', 'y']`; None for what is no list.

    Tuples and sets of Python are lists, too. Raises UnreadableListError for
    other texts in square brackets, such as `[x, y]` and NumPy's `['x' 'y']`,
    for other containers, such as `array(['x'])`, and for a list without end.
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
    """Whether the last bracket closes the first, not as in `[x],[y]`."""
    depth = 0
    for place, character in enumerate(text, 1):
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        if depth == 0:
            return place == len(text)
    return False


def _python_literal(text: str) -> Any:
    """Return the value of a literal, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of odd escapes in texts.
            tree = ast.parse(text, mode="eval")
        texts = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        n_texts = sum(token.type == tokenize.STRING for token in tokens)
        # Python joins texts without a comma between; a list of NumPy has none.
        if n_texts != len(texts):
            return None
        if isinstance(tree.body, ast.Set):  # In the order that it is written.
            return [ast.literal_eval(node) for node in tree.body.elts]
        return ast.literal_eval(tree)
    except _NO_LITERAL:
        return None
