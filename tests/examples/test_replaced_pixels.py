# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pixels replaced: the reader of idx files, the variants, the whole command."""

import gzip
import json
import pathlib
import runpy
import struct

import numpy as np
import pytest

from configure.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
        (idx(IMAGES[:, :, :20]), "shape [28, 20]; expected [28, 28]"),
        (idx(LABELS), "begins with 00 00 08 01; expected 00 00 08 03"),
        (b"", "begins with ; expected 00 00 08 03"),
        (idx(IMAGES)[:9], "bytes of header: 9; expected 16"),
        (idx(IMAGES)[:-1], "bytes of data: 31359; expected 31360"),
        (idx(IMAGES) + b"x", "bytes of data: 31361; expected 31360"),
        (idx(IMAGES[:0]), "bytes of data: 0; expected 1"),
    ],
)
def test_other_files_are_refused_by_name(program, tmp_path, content, message):
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(UserError) as refusal:
        program["read_idx"](str(path), 28, 28)
    assert str(path) in str(refusal.value)
    assert message in str(refusal.value)


def test_labels_that_do_not_fit_are_refused(program, mnist):
    path = mnist / "train-labels-idx1-ubyte.gz"
    for labels, message in (
        (LABELS[1:], "39 labels; expected 40, one for each image"),
        (LABELS + 1, "label 10 is 10; expected 0 to 9"),
    ):
        path.write_bytes(gzip.compress(idx(labels)))
        with pytest.raises(UserError, match=message):
            program["read_split"](str(mnist), "train")
    path.write_bytes(b"no gzip")
    with pytest.raises(UserError, match="cannot be unpacked"):
        program["read_split"](str(mnist), "train")


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
