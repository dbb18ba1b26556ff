# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The notebooks: links, code, kept outputs, and their execution."""

import ast
import importlib.util
import re

import pytest

from tests.conftest import ROOT

nbformat = pytest.importorskip("nbformat")
inputtransformer2 = pytest.importorskip("IPython.core.inputtransformer2")
EXAMPLES = ROOT / "examples"
# Notebooks, and a text that the last of their computations prints.
NOTEBOOKS = {
    "finetuning": "majority:",
    "keras": "most frequent subject:",
    "pretraining": "val_disc_loss:",
}
MACHINE_PATH = r"/(?:home|private|root|tmp|Users|usr|var|work)/"


@pytest.fixture(params=NOTEBOOKS)
def notebook(request):
    return nbformat.read(EXAMPLES / f"{request.param}.ipynb", 4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def parsed_code(notebook):
    """Return the syntax trees of the code cells, magics included."""
    to_python = inputtransformer2.TransformerManager().transform_cell
    return [ast.parse(to_python(cell.source)) for cell in code_cells(notebook)]


def printed_text(notebook):
    return "".join(
        output.get("text", "")
        for cell in code_cells(notebook)
        for output in cell.outputs
    )


def test_every_notebook_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == set(NOTEBOOKS)


def test_imported_names_of_the_project_exist(notebook):
    missing = [
        f"{node.module}.{alias.name}"
        for tree in parsed_code(notebook)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module.split(".")[0] in ("configure", "electra_tf")
        for alias in node.names
        if not hasattr(importlib.import_module(node.module), alias.name)
        and importlib.util.find_spec(f"{node.module}.{alias.name}") is None
    ]
    assert missing == []


def test_the_first_cells_open_and_install_in_colab(notebook):
    first, second = notebook.cells[:2]
    assert "](https://colab.research.google.com/github/)" in first.source
    assert '"google.colab" in sys.modules' in second.source
    assert "%pip install" in second.source


def test_the_outputs_of_a_complete_execution_are_kept(request, notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    outputs = [o for cell in code_cells(notebook) for o in cell.outputs]
    assert all(output.output_type != "error" for output in outputs)
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert "image/png" in kinds
    name = request.node.callspec.params["notebook"]
    assert NOTEBOOKS[name] in printed_text(notebook)


def test_sources_and_outputs_name_no_path_of_a_machine(notebook):
    outputs = [o for cell in code_cells(notebook) for o in cell.outputs]
    texts = [cell.source for cell in notebook.cells]
    texts += [output.get("text", "") for output in outputs]
    for output in outputs:
        data = output.get("data", {})
        texts += [data[kind] for kind in data if kind.startswith("text/")]
    assert [text for text in texts if re.search(MACHINE_PATH, text)] == []


@pytest.mark.heavy
def test_a_notebook_runs(request, notebook, monkeypatch, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("NOTEBOOK_STEPS", "4")
    monkeypatch.setenv("NOTEBOOK_SENTENCES", "60")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for cell in code_cells(notebook):
        cell.outputs = []
    nbclient.NotebookClient(notebook, timeout=600).execute()
    name = request.node.callspec.params["notebook"]
    assert NOTEBOOKS[name] in printed_text(notebook)
