# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts of obstacles to reading the code; each count has a bound.

CONTRIBUTING.md lists the bounds. ruff checks complexity (C901) and the count
of parameters (PLR0913); `pyproject.toml` has their limits.
"""

import ast
import collections
import functools
import re
import tokenize

import pytest

from tests.conftest import ROOT
from tests.test_house import PYTHON, TRACKED

LONGEST_FUNCTION = 60  # lines, without the docstring
WIDEST_LINE = 100  # columns of a document
# Bounds may only become smaller.
BOUNDS = {
    "long functions": 0,
    "splats of literals": 0,
    "products with a boolean": 0,
    "vague names in the product": 31,
    "vague names in tests and benchmarks": 21,
    "loops over cases in tests": 13,
    "functions that take the whole config": 40,
    "typed functions with Any in their signature": 0,
    "lines of documents that are too wide": 0,
    "phrases to avoid": 0,
    "circles of imports": 0,
}
VAGUE = set(
    "found given kept one own place said theirs there told wanted words".split()
)
# These phrases need a second reading, and each has a plainer equivalent.
AVOIDED = re.compile(
    r"\b(anew|alike|beside|whoever|nor (?:is|are)|so many|there is none"
    r"|at will|of one's own)\b",
    re.IGNORECASE,
)
TESTED = ("tests/", "benchmarks/", "examples/")
# These files assemble a program from the whole config.
ASSEMBLERS = re.compile(
    r"configure/|run_\w+\.py|.*/commands/|.*/(?:build|runner|run)\.py"
)
# Packages that mypy checks; pyproject.toml has the same list.
TYPED = re.compile(
    r"electra_tf/(?:modeling|optimization|training|pretraining|metrics)/"
)
TREES = {name: ast.parse(text) for name, text in PYTHON.items()}
PRODUCT = [name for name in TREES if not name.startswith(TESTED)]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def nodes_of(*kinds, names=TREES):
    """Yield the nodes of some kinds, each with the name of its file."""
    for name in names:
        for node in ast.walk(TREES[name]):
            if isinstance(node, kinds):
                yield name, node


def long_functions():
    for name, node in nodes_of(*FUNCTIONS):
        length = node.end_lineno - node.lineno + 1
        if ast.get_docstring(node) is not None:
            docstring = node.body[0]
            length -= docstring.end_lineno - docstring.lineno + 1
        if length > LONGEST_FUNCTION:
            yield f"{name}:{node.lineno} {node.name}: {length} lines"


def splats_of_literals():
    literals = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Constant)
    for name, node in nodes_of(ast.Starred, ast.Call, ast.Dict):
        if isinstance(node, ast.Starred):
            values = [node.value]
        elif isinstance(node, ast.Call):
            values = [k.value for k in node.keywords if k.arg is None]
        else:
            pairs = zip(node.keys, node.values, strict=True)
            values = [value for key, value in pairs if key is None]
        for value in values:
            if isinstance(value, literals):
                yield f"{name}:{value.lineno}"


def products_with_a_boolean():
    for name, node in nodes_of(ast.BinOp):
        if isinstance(node.op, ast.Mult) and any(
            isinstance(side, ast.Compare | ast.BoolOp)
            or (isinstance(side, ast.UnaryOp) and isinstance(side.op, ast.Not))
            for side in (node.left, node.right)
        ):
            yield f"{name}:{node.lineno}"


def vague_names(names):
    for name, node in nodes_of(ast.Name, ast.arg, names=names):
        if isinstance(node, ast.arg):
            stored = node.arg
        else:
            stored = node.id if isinstance(node.ctx, ast.Store) else ""
        if stored in VAGUE:
            yield f"{name}:{node.lineno} {stored}"


def vague_names_in_the_product():
    return vague_names(PRODUCT)


def vague_names_in_tests_and_benchmarks():
    return vague_names([name for name in TREES if name not in PRODUCT])


def loops_over_cases_in_tests():
    for name, node in nodes_of(*FUNCTIONS):
        if not (name.startswith("tests/") and node.name.startswith("test_")):
            continue
        loops = [n for n in ast.walk(node) if isinstance(n, ast.For)]
        inside = [n for loop in loops for n in ast.walk(loop)]
        if any(isinstance(n, ast.Assert) for n in inside):
            yield f"{name}:{node.lineno} {node.name}"


def functions_that_take_the_whole_config():
    for name, node in nodes_of(*FUNCTIONS, names=PRODUCT):
        arguments = node.args.posonlyargs + node.args.args
        arguments += node.args.kwonlyargs
        takes_config = "config" in [argument.arg for argument in arguments]
        if takes_config and not ASSEMBLERS.match(name):
            yield f"{name}:{node.lineno} {node.name}"


def typed_functions_with_any_in_their_signature():
    for name, node in nodes_of(*FUNCTIONS, names=filter(TYPED.match, TREES)):
        signature = [node.args, *filter(None, [node.returns])]
        types = (part for tree in signature for part in ast.walk(tree))
        is_public = not node.name.startswith("_") or node.name == "__init__"
        if is_public and any(
            isinstance(part, ast.Name) and part.id == "Any" for part in types
        ):
            yield f"{name}:{node.lineno} {node.name}"


def documents():
    for path in TRACKED:
        if path.suffix == ".md" and "fixtures" not in path.parts:
            lines = path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, 1):
                yield f"{path.relative_to(ROOT)}:{number}", line


def lines_of_documents_that_are_too_wide():
    for location, line in documents():
        if len(line) > WIDEST_LINE:
            yield f"{location}: {len(line)} columns"


def phrases_to_avoid():
    # CONTRIBUTING.md lists the phrases.
    texts = [t for t in documents() if not t[0].startswith("CONTRIBUTING")]
    kinds = (tokenize.COMMENT, tokenize.STRING)
    for name in PYTHON:
        if name == "tests/test_measures.py":
            continue
        with open(ROOT / name, "rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type in kinds:
                    texts.append((f"{name}:{token.start[0]}", token.string))
    for location, text in texts:
        for match in AVOIDED.finditer(text):
            yield f"{location} {match[0]}"


@functools.cache
def imports():
    """Return the modules that each module imports, anywhere in its code."""
    modules = {}
    for name in PRODUCT:
        module = name.removesuffix(".py").replace("/", ".")
        modules[module.removesuffix(".__init__")] = name
    graph = {module: set() for module in modules}
    for module, name in modules.items():
        for _, node in nodes_of(ast.Import, ast.ImportFrom, names=[name]):
            targets = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                inner = [f"{node.module}.{target}" for target in targets]
                targets = [t if t in modules else node.module for t in inner]
            graph[module] |= {t for t in targets if t in modules}
    return graph


def reachable(graph, start):
    """Return the modules that `start` imports, directly or not."""
    seen, queue = set(), [start]
    while queue:
        for module in graph[queue.pop()] - seen:
            seen.add(module)
            queue.append(module)
    return seen


def circles_of_imports():
    graph = imports()
    reached = {module: reachable(graph, module) for module in graph}
    circles = collections.defaultdict(set)
    for module, others in reached.items():
        members = {o for o in others if module in reached[o]} | {module}
        if len(members) > 1:
            circles[min(members)] = members
    for members in circles.values():
        yield " <-> ".join(sorted(members))


@pytest.mark.parametrize("measure", BOUNDS)
def test_a_measure_is_within_its_bound(measure):
    places = list(globals()[re.sub(r"\W", "_", measure).lower()]())
    assert len(places) <= BOUNDS[measure], "\n".join(places)


SPLATS = """
f(*("a", "b"), *names, **{"c": 1}, **options)
d = {**{"e": 2}, **options}
"""


def test_only_splats_of_literals_are_counted(monkeypatch):
    monkeypatch.setitem(TREES, "splats.py", ast.parse(SPLATS))
    places = [p for p in splats_of_literals() if p.startswith("splats.py")]
    assert sorted(places) == ["splats.py:2", "splats.py:2", "splats.py:3"]


def test_circles_through_functions_are_found(monkeypatch):
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    monkeypatch.setitem(globals(), "imports", lambda: graph)
    assert list(circles_of_imports()) == ["a <-> b <-> c"]
