# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The examples run: the programs on a tiny model, the notebook for a moment."""

import pathlib
import runpy

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classification", "tagging"])
def test_a_program_runs(pretrained_folder, long_sizes, tmp_path, capsys, name):
    program = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    sizes = long_sizes | {"num_hidden_layers": 1}
    folder = pretrained_folder(model_hparam_overrides=sizes)
    given = ["--model", folder, "--epochs=1", "--sentences=30"]
    if name == "classification":
        given.append(f"--output={tmp_path / 'model.keras'}")
    accuracy = program["main"](given)
    assert 0 <= accuracy <= 1
    said = capsys.readouterr().out
    assert "6 unseen sentences" in said or "unseen words" in said
    assert "->" in said


def test_examples_are_what_they_say():
    """The notebook's outputs are kept; what is tagged follows capitals."""
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(EXAMPLES / "pretraining.ipynb", 4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    kinds = {kind for cell in cells for o in cell.outputs for kind in _data(o)}
    assert {"image/png", "text/html"} <= kinds
    tag = runpy.run_path(str(EXAMPLES / "tagging.py"))["tag"]
    tags = [tag(word) for word in ("a", "I", "It", "IO", "iO")]
    assert tags == [0, 1, 1, 2, 1]


def _data(output):
    assert output.output_type != "error"
    return output.get("data", {})


@pytest.mark.heavy
def test_the_notebook_runs(monkeypatch, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("NOTEBOOK_STEPS", "4")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(EXAMPLES / "pretraining.ipynb", 4)
    client = nbclient.NotebookClient(notebook, timeout=600)
    client.execute()
    printed = "".join(
        output.get("text", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )
    assert "val_disc_loss:" in printed
