# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ids become inputs, rows go in groups, converted files say the same."""

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
from tests.conftest import refused


class Counted:
    """Stands for a model, and keeps the shapes it was asked with."""

    def __init__(self):
        self.shapes = []

    def __call__(self, inputs, extra):
        def keep(ids):
            self.shapes.append(ids.shape)
            return ids

        ids = tf.numpy_function(keep, [inputs.input_ids], tf.int32)
        ids = tf.cast(ids, tf.float32)
        places = tf.range(1.0, tf.cast(tf.shape(ids)[1], tf.float32) + 1.0)
        total = tf.reduce_sum(ids * places, 1)
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
    given = Inputs(*inputs), tf.constant(lengths, tf.int32)
    found = compute_in_groups(model, *given, specs, rows_at_once, by_length)
    wanted = np.stack([ids @ np.arange(1.0, 13.0), ids.sum(1)], 1)
    np.testing.assert_array_equal(found["sums"], wanted)
    assert found["x"].numpy().tolist() == lengths
    ordered = sorted(lengths, reverse=True) if by_length else lengths
    heads = ordered[::rows_at_once] or [0]
    widths = [max(n, 1) if by_length else 12 for n in heads]
    assert [shape[1] for shape in model.shapes] == widths
    assert sum(shape[0] for shape in model.shapes) == len(lengths)
    assert all(shape[0] <= rows_at_once for shape in model.shapes)


@pytest.mark.parametrize(("name", "layers"), [("pairs", 2), ("topics", 1)])
def test_serve_text_answers_alike_with_groups(name, layers, finetuned_module):
    loaded, plain = finetuned_module(name, classification_head_layers=layers)
    words = [b"the", b"of", b"and", b"to", b"ing"]
    texts = [b" ".join((words * 9)[: 7 * i % 40]) for i in range(11)]
    inputs = {"text": tf.constant(texts)}
    if name == "pairs":
        inputs["text_pair"] = tf.constant(texts[::-1])
    grouped = make_task_module(loaded, rows_at_once=4)
    assert grouped.config()["rows_at_once"] == 4
    wanted = plain.signatures()["serve_text"](**inputs)
    found = grouped.signatures()["serve_text"](**inputs)
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        if value.dtype.is_floating:
            np.testing.assert_allclose(found[key], value, atol=1e-5)
        else:
            np.testing.assert_array_equal(found[key], value)
    empty = {key: value[:0] for key, value in inputs.items()}
    for value in grouped.signatures()["serve_text"](**empty).values():
        assert value.shape[0] == 0


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
        {n: v for n, v in found.items() if v.dtype != tf.string}
        for found in map(module.compute, inputs)
    ]


def _vocab(module):
    ids = tf.range(module.tokenizer.vocab_size)
    tokens = module.tokenizer.id_to_token(ids).numpy()
    return [token.decode() for token in tokens]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("reviews", ["float", "dynamic"]), ("replaced", ["float"])],
)
def test_float_files_are_equal_and_dynamic_near(name, kinds, modules, tmp_path):
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


def test_packages_that_are_absent_are_told(monkeypatch):
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
