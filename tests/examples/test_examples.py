# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The example programs: what they read, compute and write."""

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


def test_other_files_are_refused_by_name_and_number(program, mnist):
    path = mnist / "train-images-idx3-ubyte.gz"
    for content, message in (
        (idx(IMAGES[:, :, :20]), r"shape \[28, 20\]; expected \[28, 28\]"),
        (idx(LABELS), "begins with 00 00 08 01; expected 00 00 08 03"),
        (idx(IMAGES)[:-1], "bytes of data: 31359; expected 31360"),
        (idx(IMAGES[1:]), "40 labels; expected 39, one for each image"),
    ):
        path.write_bytes(gzip.compress(content))
        words = rf"{mnist}.*{message}"
        refused(words, program["read_split"], str(mnist), "train")


def test_only_what_is_not_seen_is_replaced(program):
    images = (IMAGES > 127).astype(np.float32)
    for name, variant in program["VARIANTS"].items():
        made = program["Pair"](variant, seed=1).replace(images)
        unseen, shown = made["unseen"].numpy(), made["shown"].numpy()
        assert (shown[~unseen] == images[~unseen]).all()
        assert set(np.unique(shown.round(4))) <= {0.0, 1.0}
        replaced = made["replaced"].numpy().astype(bool)
        if variant.unseen == "all":
            assert replaced.all(), name
        else:
            assert (replaced == (shown.round() != images)).all()
        shares = {"all": 1.0, "lower": 0.5, "patches": 0.3}
        assert abs(unseen.mean() - shares[variant.unseen]) < 0.05


def test_a_probe_finds_what_is_linear_and_differences_are_welch_s(program):
    draws = np.random.default_rng(1)
    labels = draws.integers(0, 10, 500)
    rows = np.eye(10)[labels] + 0.1 * draws.normal(size=[500, 10])
    assert (program["probe"](rows, labels, rows) == labels).all()
    guessed = program["probe"](draws.normal(size=[500, 10]), labels, rows)
    assert (guessed == labels).mean() < 0.5
    found = program["compare"]([0.9, 0.8, 0.7], [0.5, 0.6, 0.7])
    assert found["above_random"] == pytest.approx(0.2)
    error = (0.1**2 / 3 + 0.1**2 / 3) ** 0.5
    assert found["standard_errors"] == pytest.approx(0.2 / error)
    assert program["compare"]([0.9], [0.5])["standard_errors"] is None


@pytest.mark.heavy
def test_one_command_leaves_numbers_and_pictures(program, mnist, capsys):
    output = mnist / "output"
    argv = ["run.py", f"--data_dir={mnist}", f"--output={output}"]
    argv += ["--steps=2", "--seeds=1"]
    program["main"](program["parse_flags"](argv))
    found = json.loads((output / "results.json").read_text())
    assert set(found["probe"]) == {"random", *program["VARIANTS"]}
    for row in found["probe"].values():
        assert row["values"] == [row["mean"]]
    assert found["probe"]["random"]["above_random"] == 0
    for name in ("curves", "pictures"):
        assert (output / f"{name}.png").read_bytes().startswith(b"\x89PNG")
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


def test_every_edit_is_what_it_is_called(pairs):
    words, counts = "a b c d".split(), {"a": 1, "x": 2}
    for seed in range(50):
        draws = random.Random(seed)
        corrupted = pairs["corrupted"]
        swapped = corrupted(words, "swapped", counts, draws)
        assert sorted(swapped) == words
        assert sum(a != b for a, b in zip(words, swapped, strict=True)) == 2
        replaced = corrupted(words, "replaced", counts, draws)
        assert sum(a != b for a, b in zip(words, replaced, strict=True)) == 1
        dropped = corrupted(words, "dropped", counts, draws)
        assert len(dropped) == 3 and set(dropped) < set(words)


def test_the_higher_score_wins_and_equal_ones_half(pairs):
    edits = np.array([[0, 1, 1, 1, *[2] * 9], [0, 1, 1, 1, *[3] * 9]])
    scores = np.zeros(edits.shape)
    scores[0, 1:] = -1  # the first sentence beats all
    scores[1, 1] = 1  # a twin is above the second, another below it
    scores[1, 2] = -1
    scores[1, 12] = 2
    found = pairs["judge"](scores, edits)
    assert found["pairs"] == pytest.approx((3 + 0 + 1 + 0.5) / 6)
    others = {"swapped": 0.5, "replaced": 1.0, "dropped": 0.75}
    others |= {"lists": 0.5, "edits left": 1.5}
    assert others.items() <= found.items()


@pytest.mark.slow
def test_models_are_scored(pairs, cola, pretrained_folder, tmp_path, capsys):
    mlm = pretrained_folder(electra_objective=False)
    kind = {"electra_objective": False, "electric_objective": True}
    electric = pretrained_folder(**kind)
    output = tmp_path / "output"
    argv = ["electric_pairs.py", f"--cola={cola}", f"--output={output}"]
    argv += [f"--model=electric={electric}", f"--model=mlm={mlm}"]
    pairs["main"](pairs["parse_flags"](argv))
    found = json.loads((output / "results.json").read_text())
    assert (found["sentences"], found["texts"]) == (2, 2 * pairs["TEXTS"])
    _, edits = pairs["make_texts"](pairs["sound_sentences"](str(cola)), 1)
    for name in ("electric", "mlm"):
        lines = (output / f"{name}.jsonl").read_text().splitlines()
        scores = [json.loads(line)["score"] for line in lines]
        judged = pairs["judge"](np.reshape(scores, edits.shape), edits)
        assert found[f"{name}, sum"]["pairs"] == judged["pairs"]
    assert "electric, mean" in capsys.readouterr().out


TEXTS = ["the king", "of the north and the city", "", "Ça ne was that!"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Exports a model and asks it; returns answers by id, and bad rows."""
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
@pytest.mark.parametrize("name", ["pairs", "grade"])
def test_the_answers_are_those_of_predict(answers, finetuned_module, name):
    loaded, module = finetuned_module(name)
    texts = [*zip(TEXTS, reversed(TEXTS), strict=True)]
    rows = [{"text": one, "text_pair": two} for one, two in texts]
    rows = [{"id": str(i), **row} for i, row in enumerate(rows)]
    wanted = Predictor(loaded)(texts if name == "pairs" else TEXTS)
    found, bad = answers(module, map(json.dumps, rows))
    for row, answer in zip(rows, wanted, strict=True):
        _assert_close(found[row["id"]], {"id": row["id"], **answer})
    assert not bad


@pytest.mark.slow
def test_vectors_are_as_of_embed(answers, finetuned_module, finetuned_folder):
    loaded, _ = finetuned_module("reviews")
    rows = [json.dumps({"id": i, "text": t}) for i, t in enumerate(TEXTS)]
    bad_rows = ["not JSON", '{"id": 9}', "[1]", '{"text": "\\ud800"}']
    found, bad = answers(EncoderModule(loaded), [*bad_rows, *rows])
    wanted = Embedder.from_pretrained(finetuned_folder("reviews"))(TEXTS)
    vectors = [found[i]["vector"] for i in range(len(TEXTS))]
    np.testing.assert_allclose(vectors, wanted, atol=1e-5)
    assert sorted(row["found"] for row in bad) == sorted(bad_rows)
    assert any("KeyError('text')" in row["problem"] for row in bad)
