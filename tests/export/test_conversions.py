# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""LiteRT (and, with the extra, ONNX) files give the SavedModel's numbers."""

import sys

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.export import conversions
from electra_tf.export.conversions import compare, runner, sample_inputs
from electra_tf.export.heads import ReplacedTokensModule
from electra_tf.export.signatures import Inputs
from electra_tf.prediction.loading import load_pretrained


@pytest.fixture(scope="module")
def modules(finetuned_module, pretrained_folder):
    return {
        "reviews": finetuned_module("reviews")[1],
        "replaced": ReplacedTokensModule(load_pretrained(pretrained_folder())),
    }


def _numbers(module, batches):
    inputs = [Inputs(*map(tf.constant, batch)) for batch in batches]
    outputs = [*map(module.compute, inputs)]
    return [
        {n: v for n, v in found.items() if v.dtype != tf.string}
        for found in outputs
    ]


def _vocab(module):
    ids = tf.range(module.tokenizer.vocab_size)
    tokens = module.tokenizer.id_to_token(ids).numpy()
    return [token.decode() for token in tokens]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("reviews", ["float", "dynamic"]), ("replaced", ["float"])],
)
def test_float_files_are_equal_and_dynamic_ones_near(
    name, kinds, modules, tmp_path
):
    module = modules[name]
    conversions.write_lite(module, str(tmp_path), kinds)
    batches = sample_inputs(_vocab(module), 512)
    wanted = _numbers(module, batches)
    sizes = {}
    for kind in kinds:
        path = tmp_path / "lite" / f"model_{kind}.tflite"
        sizes[kind] = path.stat().st_size
        # One file, shapes of every size in turn.
        got = [*map(runner(str(path)), batches)]
        assert [set(g) for g in got] == [set(w) for w in wanted]
        largest, mean, same = compare(wanted, got).values()
        assert mean <= largest < {"float": 1e-5, "dynamic": 0.5}[kind]
        assert kind == "dynamic" or same == 1.0
    assert sizes.get("dynamic", 0) < sizes["float"]


def test_comparing_tells_changes_of_floats_and_of_choices():
    one = {"a": np.array([1.0, 2.0]), "i": np.array([1, 2, 3, 4])}
    other = {"a": np.array([1.0, 2.5]), "i": np.array([1, 2, 3, 5])}
    assert [*compare([one], [other]).values()] == [0.5, 0.25, 0.75]
    assert [*compare([one], [{"a": one["a"]}]).values()] == [0.0, 0.0, 1.0]


def test_packages_that_are_absent_are_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(UserError, match=r"--onnx needs tf2onnx.*\[onnx\]"):
        conversions.check_onnx_installed()


def test_onnx_files_are_equal(modules, tmp_path):
    pytest.importorskip("tf2onnx")
    pytest.importorskip("onnxruntime")
    module = modules["reviews"]
    conversions.write_onnx(module, str(tmp_path))
    run = runner(str(tmp_path / "onnx" / "model.onnx"))
    batches = sample_inputs(_vocab(module), 512)
    got = [*map(run, batches)]
    largest, _, same = compare(_numbers(module, batches), got).values()
    assert largest < 1e-5 and same == 1.0
