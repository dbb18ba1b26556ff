# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows in groups and converted files give the outputs of the module."""

import functools
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from electra_tf.export import conversions
from electra_tf.export.conversions import compare, runner, sample_inputs
from electra_tf.export.heads import ReplacedTokensModule
from electra_tf.export.saved_model import make_task_module
from electra_tf.export.signatures import Inputs, compute_in_groups
from electra_tf.prediction.loading import load_pretrained
from tests.conftest import differences, refused


class Counted:
    """A function in place of a model that records the shapes of its inputs."""

    def __init__(self):
        self.shapes = []

    def __call__(self, inputs, extra):
        def keep(ids):
            self.shapes.append(ids.shape)
            return ids

        ids = tf.numpy_function(keep, [inputs.input_ids], tf.int32)
        ids = tf.cast(ids, tf.float32)
        weights = tf.range(1.0, tf.cast(tf.shape(ids)[1], tf.float32) + 1.0)
        total = tf.reduce_sum(ids * weights, 1)
        return {"sums": tf.stack([total, tf.reduce_sum(ids, 1)], 1), "x": extra}


@given(
    lengths=st.lists(st.integers(0, 9), max_size=20),
    rows_at_once=st.integers(1, 7),
    by_length=st.booleans(),
)
def test_groups_keep_the_order_and_are_narrow(lengths, rows_at_once, by_length):
    model = Counted()
    mask = np.arange(12) < np.array(lengths, int).reshape(-1, 1)
    ids = np.random.default_rng(0).integers(1, 99, mask.shape) * mask
    inputs = [tf.constant(x, tf.int32) for x in (ids, mask, 0 * mask)]
    specs = {
        "sums": tf.TensorSpec([None, 2], tf.float32),
        "x": tf.TensorSpec([None], tf.int32),
    }
    actual = compute_in_groups(
        model,
        Inputs(*inputs),
        tf.constant(lengths, tf.int32),
        specs,
        rows_at_once,
        by_length,
    )
    expected = np.stack([ids @ np.arange(1.0, 13.0), ids.sum(1)], 1)
    np.testing.assert_array_equal(actual["sums"], expected)
    assert actual["x"].numpy().tolist() == lengths
    ordered = sorted(lengths, reverse=True) if by_length else lengths
    heads = ordered[::rows_at_once] or [0]
    widths = [max(n, 1) if by_length else 12 for n in heads]
    assert [shape[1] for shape in model.shapes] == widths
    assert sum(shape[0] for shape in model.shapes) == len(lengths)
    assert all(shape[0] <= rows_at_once for shape in model.shapes)


@pytest.mark.parametrize(("name", "layers"), [("pairs", 2), ("topics", 1)])
def test_serve_text_gives_equal_answers_with_groups(
    name, layers, finetuned_module
):
    loaded, by_default = finetuned_module(
        name, classification_head_layers=layers
    )
    assert by_default.config()["rows_at_once"] == 8
    plain = make_task_module(loaded, rows_at_once=0)
    tokens = [b"the", b"of", b"and", b"to", b"ing"] * 9
    texts = [b" ".join(tokens[: 7 * i % 40]) for i in range(11)]
    inputs = {"text": tf.constant(texts)}
    if name == "pairs":
        inputs["text_pair"] = tf.constant(texts[::-1])
    grouped = make_task_module(loaded, rows_at_once=4)
    assert grouped.config()["rows_at_once"] == 4
    expected = plain.signatures()["serve_text"](**inputs)
    actual = grouped.signatures()["serve_text"](**inputs)
    assert actual.keys() == expected.keys()
    floats = {n for n, value in expected.items() if value.dtype.is_floating}
    actual_floats, expected_floats = (
        {name: outputs.pop(name) for name in floats}
        for outputs in (actual, expected)
    )
    assert differences(actual_floats, expected_floats, 1e-7, 1e-5) == []
    assert differences(actual, expected) == []
    empty = {key: value[:0] for key, value in inputs.items()}
    answers = grouped.signatures()["serve_text"](**empty)
    assert {value.shape[0] for value in answers.values()} == {0}


def test_heads_that_do_not_answer_once_per_text_refuse_groups(finetuned_module):
    module = finetuned_module("names")[0]
    refused("--rows_at_once", make_task_module, module, rows_at_once=8)


@pytest.fixture(scope="module")
def modules(finetuned_module, pretrained_folder):
    return {
        "reviews": finetuned_module("reviews")[1],
        "replaced": ReplacedTokensModule(load_pretrained(pretrained_folder())),
    }


def _numbers(module, batches):
    inputs = [Inputs(*map(tf.constant, batch)) for batch in batches]
    return [
        {n: v for n, v in outputs.items() if v.dtype != tf.string}
        for outputs in map(module.compute, inputs)
    ]


def _vocab(module):
    ids = tf.range(module.tokenizer.vocab_size)
    tokens = module.tokenizer.id_to_token(ids).numpy()
    return [token.decode() for token in tokens]


@pytest.fixture(scope="module")
def lite_folder(modules, tmp_path_factory):
    """Return a function that converts a module once and returns the folder."""

    @functools.cache
    def convert(name):
        kinds = {"reviews": ["float", "dynamic"], "replaced": ["float"]}[name]
        folder = tmp_path_factory.mktemp(name)
        conversions.write_lite(modules[name], str(folder), kinds)
        return folder / "lite"

    return convert


@pytest.mark.parametrize(
    ("name", "kind", "bound", "least_equal"),
    [
        ("reviews", "float", 1e-5, 1.0),
        ("reviews", "dynamic", 0.5, 0.0),
        ("replaced", "float", 1e-5, 1.0),
    ],
)
def test_converted_files_give_the_module_s_outputs(
    name, kind, bound, least_equal, modules, lite_folder
):
    batches = sample_inputs(_vocab(modules[name]), 512)
    expected = _numbers(modules[name], batches)
    # One file takes shapes of all sizes in turn.
    run = runner(str(lite_folder(name) / f"model_{kind}.tflite"))
    got = [*map(run, batches)]
    assert [set(g) for g in got] == [set(e) for e in expected]
    largest, mean, same = compare(expected, got).values()
    assert mean <= largest < bound and same >= least_equal


def test_files_of_dynamic_range_are_smaller(lite_folder):
    sizes = {
        kind: (lite_folder("reviews") / f"model_{kind}.tflite").stat().st_size
        for kind in ("float", "dynamic")
    }
    assert sizes["dynamic"] < sizes["float"]


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    refused(r"--onnx needs tf2onnx.*\[onnx\]", conversions.check_onnx_installed)


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
