# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists in cells of tables, as Python and JSON write them."""

import ast
import io
import json
import tokenize
import warnings
from typing import Any

_BRACKETS = {"[": "]", "(": ")", "{": "}"}
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
    """A text in square brackets that is no list of Python or JSON."""


def read_list(text: str) -> list[Any] | None:
    """Read a cell such as `['x', 'y']`; None for what is no list.

    Tuples and sets of Python are lists, too. Raises UnreadableListError for
    other texts in square brackets, such as `[x, y]` and NumPy's `['x' 'y']`.
    """
    text = text.strip()
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
