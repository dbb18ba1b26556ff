# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`examples/beam_predict.py` against `predict` and `embed`."""

import importlib.util
import json

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.export.conftest import (  # noqa: F401
    finetuned_folder,
    finetuned_module,
)

TEXTS = ["the king", "of the north and the city", "", "Ça ne was that!"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Exports a model and asks it; returns answers by id, and bad rows."""
    pytest.importorskip("apache_beam", reason="no extra beam")
    from electra_tf.export.saved_model import export

    spec = importlib.util.spec_from_file_location(
        "beam_predict", ROOT / "examples" / "beam_predict.py"
    )
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)

    def ask(module, lines):
        folder = tmp_path_factory.mktemp("beam")
        (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
        model = export(module, str(folder / "served"))
        flags = {"input": "rows.jsonl", "output": "answers"}
        flags = [f"--{name}={folder / path}" for name, path in flags.items()]
        example.main([f"--model={model}", *flags])
        found, bad = (
            [
                json.loads(line)
                for path in sorted(folder.glob(pattern))
                for line in path.read_text().splitlines()
            ]
            for pattern in ("answers-*.jsonl", "answers.bad-*.jsonl")
        )
        return {row["id"]: row for row in found}, bad

    return ask


def _assert_close(found, wanted):
    if isinstance(wanted, dict):
        assert set(found) == set(wanted)
        for name, value in wanted.items():
            _assert_close(found[name], value)
    elif isinstance(wanted, float):
        assert abs(found - wanted) < 1e-5
    else:
        assert found == wanted


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pairs", "topics", "grade"])
def test_the_answers_are_those_of_predict(answers, finetuned_module, name):
    from electra_tf.prediction.predictor import Predictor

    loaded, module = finetuned_module(name)
    texts = [*zip(TEXTS, reversed(TEXTS), strict=True)]
    rows = [
        {"id": str(i), "text": one, "text_pair": two}
        for i, (one, two) in enumerate(texts)
    ]
    wanted = Predictor(loaded)(texts if name == "pairs" else TEXTS)
    found, bad = answers(module, map(json.dumps, rows))
    for row, answer in zip(rows, wanted, strict=True):
        _assert_close(found[row["id"]], {"id": row["id"], **answer})
    assert not bad


@pytest.mark.slow
def test_vectors_are_those_of_embed_and_bad_rows_are_kept(
    answers, finetuned_module, finetuned_folder
):
    from electra_tf.export.encoder import EncoderModule
    from electra_tf.prediction.embedding import Embedder

    loaded, _ = finetuned_module("reviews")
    rows = [json.dumps({"id": i, "text": t}) for i, t in enumerate(TEXTS)]
    bad_rows = ["not JSON", '{"id": 9}', "[1]", '{"text": "\\ud800"}']
    found, bad = answers(EncoderModule(loaded), [*bad_rows, *rows])
    wanted = Embedder.from_pretrained(finetuned_folder("reviews"))(TEXTS)
    vectors = [found[i]["vector"] for i in range(len(TEXTS))]
    np.testing.assert_allclose(vectors, wanted, atol=1e-5)
    assert sorted(row["found"] for row in bad) == sorted(bad_rows)
    assert {row["expected"] for row in bad} == {
        "a JSON object with the texts text"
    }
    assert any("KeyError('text')" in row["problem"] for row in bad)
