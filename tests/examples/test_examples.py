# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The example programs: their inputs, computations and outputs."""

import gzip
import importlib.util
import json
import random
import runpy
import struct

import numpy as np
import pytest

from electra_tf.export.encoder import EncoderModule
from electra_tf.export.saved_model import export
from electra_tf.prediction.embedding import Embedder
from electra_tf.prediction.predictor import Predictor
from tests.conftest import ROOT, refused
from tests.export.conftest import (  # noqa: F401
    finetuned_folder,
    finetuned_module,
)


@pytest.fixture(scope="module")
def program():
    return runpy.run_path(str(ROOT / "examples/replaced_pixels/run.py"))


def idx(array):
    head = bytes([0, 0, 8, array.ndim])
    return head + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


IMAGES = np.random.default_rng(1).integers(0, 256, [40, 28, 28], np.uint8)
LABELS = (np.arange(40) % 10).astype(np.uint8)


@pytest.fixture
def mnist(tmp_path):
    for split in ("train", "t10k"):
        for name, array in (("images-idx3", IMAGES), ("labels-idx1", LABELS)):
            path = tmp_path / f"{split}-{name}-ubyte.gz"
            path.write_bytes(gzip.compress(idx(array)))
    return tmp_path


def test_images_and_labels_are_read_exactly(program, mnist):
    path = str(mnist / "t10k-images-idx3-ubyte.gz")
    assert (program["read_idx"](path, 28, 28) == IMAGES).all()
    images, labels = program["read_split"](str(mnist), "train")
    assert (images == (IMAGES > 127)).all()
    assert (labels == LABELS).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx(IMAGES[:, :, :20]), r"shape \[28, 20\]; expected \[28, 28\]"),
        (idx(LABELS), "begins with 00 00 08 01; expected 00 00 08 03"),
        (idx(IMAGES)[:-1], "bytes of data: 31359; expected 31360"),
        (idx(IMAGES[1:]), "40 labels; expected 39, one for each image"),
    ],
    ids=["shape", "magic", "size", "labels"],
)
def test_invalid_files_are_refused(program, mnist, content, message):
    path = mnist / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(content))
    message = rf"{mnist}.*{message}"
    refused(message, program["read_split"], str(mnist), "train")


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("noise", 1.0),
        ("no_gradient", 1.0),
        ("occlusion", 0.3),
        ("lower_half", 0.5),
    ],
)
def test_only_unseen_pixels_are_replaced(program, name, share):
    images = (IMAGES > 127).astype(np.float32)
    pair = program["Pair"](program["VARIANTS"][name], seed=1)
    filled = pair.replace(images)
    unseen, shown = filled["unseen"].numpy(), filled["shown"].numpy()
    assert (shown[~unseen] == images[~unseen]).all()
    assert set(np.unique(shown.round(4))) <= {0.0, 1.0}
    differs = (shown.round() != images) | (share == 1.0)
    assert (filled["replaced"].numpy().astype(bool) == differs).all()
    assert abs(unseen.mean() - share) < 0.05


def test_a_probe_learns_a_linear_function(program):
    draws = np.random.default_rng(1)
    labels = draws.integers(0, 10, 500)
    rows = np.eye(10)[labels] + 0.1 * draws.normal(size=[500, 10])
    assert (program["probe"](rows, labels, rows) == labels).all()
    guessed = program["probe"](draws.normal(size=[500, 10]), labels, rows)
    assert (guessed == labels).mean() < 0.5


def test_a_difference_is_in_welch_s_standard_errors(program):
    row = program["compare"]([0.9, 0.8, 0.7], [0.5, 0.6, 0.7])
    assert row["above_random"] == pytest.approx(0.2)
    error = (0.1**2 / 3 + 0.1**2 / 3) ** 0.5
    assert row["standard_errors"] == pytest.approx(0.2 / error)
    assert program["compare"]([0.9], [0.5])["standard_errors"] is None


@pytest.mark.heavy
def test_one_command_writes_numbers_and_plots(program, mnist, capsys):
    output = mnist / "output"
    argv = ["run.py", f"--data_dir={mnist}", f"--output={output}"]
    argv += ["--steps=2", "--seeds=1"]
    program["main"](program["parse_flags"](argv))
    results = json.loads((output / "results.json").read_text())
    assert set(results["probe"]) == {"random", *program["VARIANTS"]}
    rows = results["probe"].values()
    assert [row["values"] for row in rows] == [[row["mean"]] for row in rows]
    assert results["probe"]["random"]["above_random"] == 0
    plots = [output / name for name in ("curves.png", "pictures.png")]
    assert {plot.read_bytes()[:4] for plot in plots} == {b"\x89PNG"}
    assert "features of" in capsys.readouterr().out


COLA = """\
a\t1\t\tThe cat sat on the mat.
a\t0\t*\tThe cat sat mat the on.
b\t1\t\tA dog ran after the cat!
b\t1\t\tNo.
"""


@pytest.fixture(scope="module")
def pairs():
    return runpy.run_path(str(ROOT / "examples/electric_pairs.py"))


@pytest.fixture
def cola(tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text(COLA)
    return path


@pytest.fixture
def corrupt(pairs):
    """Return a function that edits the words a, b, c, d, 50 times."""
    counts = {"a": 1, "x": 2}

    def edit(kind):
        words = ["a", "b", "c", "d"]
        return [
            pairs["corrupted"](words, kind, counts, random.Random(seed))
            for seed in range(50)
        ]

    return edit


def differences(text):
    return sum(a != b for a, b in zip("abcd", text, strict=True))


def test_a_swap_exchanges_two_words(corrupt):
    texts = corrupt("swapped")
    assert all(sorted(text) == ["a", "b", "c", "d"] for text in texts)
    assert {differences(text) for text in texts} == {2}


def test_a_replacement_changes_one_word(corrupt):
    assert {differences(text) for text in corrupt("replaced")} == {1}


def test_a_drop_removes_one_word(corrupt):
    texts = corrupt("dropped")
    assert all(len(text) == 3 and set(text) < set("abcd") for text in texts)


def test_the_higher_score_wins_and_equal_scores_count_half(pairs):
    edits = np.array([[0, 1, 1, 1] + [2] * 9, [0, 1, 1, 1] + [3] * 9])
    scores = np.zeros(edits.shape)
    scores[0, 1:] = -1  # The first sentence beats all its copies.
    scores[1, 1] = 1  # higher than the second sentence; the next: lower
    scores[1, 2] = -1
    scores[1, 12] = 2
    result = pairs["judge"](scores, edits)
    assert result["pairs"] == pytest.approx((3 + 0 + 1 + 0.5) / 6)
    others = {"swapped": 0.5, "replaced": 1.0, "dropped": 0.75}
    others |= {"lists": 0.5, "edits left": 1.5}
    assert others.items() <= result.items()


@pytest.mark.slow
def test_models_are_scored(pairs, cola, pretrained_folder, tmp_path, capsys):
    mlm = pretrained_folder(electra_objective=False)
    kind = {"electra_objective": False, "electric_objective": True}
    electric = pretrained_folder(**kind)
    output = tmp_path / "output"
    argv = ["electric_pairs.py", f"--cola={cola}", f"--output={output}"]
    argv += [f"--model=electric={electric}", f"--model=mlm={mlm}"]
    pairs["main"](pairs["parse_flags"](argv))
    results = json.loads((output / "results.json").read_text())
    assert (results["sentences"], results["texts"]) == (2, 2 * pairs["TEXTS"])
    _, edits = pairs["make_texts"](pairs["sound_sentences"](str(cola)), 1)
    for name in ("electric", "mlm"):
        lines = (output / f"{name}.jsonl").read_text().splitlines()
        scores = [json.loads(line)["score"] for line in lines]
        judged = pairs["judge"](np.reshape(scores, edits.shape), edits)
        assert results[f"{name}, sum"]["pairs"] == judged["pairs"]
    assert "electric, mean" in capsys.readouterr().out


TEXTS = ["the king", "of the north and the city", "", "Ça ne was that!"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return a function from a model and lines to answers and bad rows."""
    pytest.importorskip("apache_beam", reason="no extra beam")
    path = ROOT / "examples" / "beam_predict.py"
    spec = importlib.util.spec_from_file_location("beam_predict", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)

    def ask(module, lines):
        folder = tmp_path_factory.mktemp("beam")
        (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
        model = export(module, str(folder / "served"))
        flags = {"input": "rows.jsonl", "output": "answers"}
        flags = [f"--{name}={folder / path}" for name, path in flags.items()]
        example.main([f"--model={model}", *flags])
        answer_rows, bad = (
            [
                json.loads(line)
                for path in sorted(folder.glob(pattern))
                for line in path.read_text().splitlines()
            ]
            for pattern in ("answers-*.jsonl", "answers.bad-*.jsonl")
        )
        return {row["id"]: row for row in answer_rows}, bad

    return ask


def _assert_close(value, expected):
    if isinstance(expected, dict):
        assert set(value) == set(expected)
        for name, expected_value in expected.items():
            _assert_close(value[name], expected_value)
    elif isinstance(expected, float):
        assert abs(value - expected) < 1e-5
    else:
        assert value == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pairs", "grade"])
def test_answers_equal_those_of_predict(answers, finetuned_module, name):
    loaded, module = finetuned_module(name)
    texts = [*zip(TEXTS, reversed(TEXTS), strict=True)]
    rows = [{"text": text, "text_pair": text_pair} for text, text_pair in texts]
    rows = [{"id": str(i), **row} for i, row in enumerate(rows)]
    expected = Predictor(loaded)(texts if name == "pairs" else TEXTS)
    rows_by_id, bad = answers(module, map(json.dumps, rows))
    for row, answer in zip(rows, expected, strict=True):
        _assert_close(rows_by_id[row["id"]], {"id": row["id"], **answer})
    assert not bad


@pytest.mark.slow
def test_vectors_equal_those_of_embed(
    answers, finetuned_module, finetuned_folder
):
    loaded, _ = finetuned_module("reviews")
    rows = [json.dumps({"id": i, "text": t}) for i, t in enumerate(TEXTS)]
    bad_rows = ["not JSON", '{"id": 9}', "[1]", '{"text": "\\ud800"}']
    rows_by_id, bad = answers(EncoderModule(loaded), [*bad_rows, *rows])
    expected = Embedder.from_pretrained(finetuned_folder("reviews"))(TEXTS)
    vectors = [rows_by_id[i]["vector"] for i in range(len(TEXTS))]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert sorted(row["found"] for row in bad) == sorted(bad_rows)
    assert any("KeyError('text')" in row["problem"] for row in bad)
