# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Differences worked out by hand, and those of two models on the same text."""

import pathlib

import numpy as np
import pytest

from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.compare import differences
from electra_tf.compare import outputs as comparison
from electra_tf.compare.recording import read_recording
from electra_tf.pretraining.model import PretrainingModel
from tests.checkpoints.conftest import RandomWeights
from tests.conftest import refused


def difference(a, b):
    return differences.Difference().add(a, b)


def test_small_differences_are_those_worked_out_by_hand():
    found = difference([1.0, -4.0, 0.0], [1.0, -2.0, 0.0])
    assert (found.count, found.max_abs, found.max_b) == (3, 2.0, 2.0)
    assert found.mean_abs == pytest.approx(2 / 3) and found.relative == 1.0
    assert found.norm_relative == pytest.approx(2 / np.sqrt(5))
    assert found.scaled == 1.0 and not found.is_exact
    assert found.agrees(1.0) and not found.agrees(0.99)
    assert difference([0.001], [0.0011]).agrees(2e-4)
    assert difference([1000.1], [1000.0]).agrees(2e-4)
    assert not difference([1.1], [1.0]).agrees(2e-4)
    assert difference([-np.inf, 2.0], [-np.inf, 2.0]).is_exact
    assert difference([0.0], [0.0]).relative == 0.0
    assert difference([1.0], [0.0]).relative is None
    with pytest.raises(ValueError, match=r"\(2, 1\) and \(2,\)"):
        difference(np.ones([2, 1]), np.ones([2]))


@pytest.mark.parametrize("a", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_never_agrees(a):
    found = difference([a, 1.0], [2.0, 1.0])
    assert found.not_finite == 1 and found.max_abs == 0
    assert found.text == "1 not finite"
    assert not found.agrees(1e9) and not found.is_exact
    assert not difference([np.nan], [np.nan]).agrees(1e9)


def test_pieces_give_what_the_whole_gives(monkeypatch):
    monkeypatch.setattr(differences, "_CHUNK", 7)
    a, b = np.random.default_rng(0).normal(size=(2, 5, 11))
    whole = difference(a, b)
    running = differences.Difference()
    for row_a, row_b in zip(a, b, strict=True):
        running.add(row_a, row_b)
    assert running.max_abs == whole.max_abs == np.abs(a - b).max()
    assert whole.mean_abs == pytest.approx(np.abs(a - b).mean())
    assert np.sqrt(whole.squares) == pytest.approx(np.linalg.norm(a - b))
    assert np.sqrt(running.squares_b) == pytest.approx(np.linalg.norm(b))


class Tensors(MemoryWeights):
    """Counts how many are read."""

    def __init__(self, **values):
        super().__init__(values)
        self.was_read = []

    def read(self, name):
        self.was_read.append(name)
        return super().read(name)


def test_missing_shapes_and_types_are_told_without_reading():
    a = Tensors(x=np.float32([1, 2]), only_a=[1.0], y=np.zeros([2, 3]))
    b = Tensors(x=np.float64([1, 3]), only_b=[1.0], y=np.zeros([3, 2]))
    names = ("x", "only_a", "only_b", "y")
    found = {row.name: row for row in differences.compare_tensors(a, b, names)}
    assert found["x"].problem is None and found["x"].difference.max_abs == 1
    assert (found["x"].dtype_a, found["x"].dtype_b) == ("float32", "float64")
    assert found["only_a"].problem == "missing in B"
    assert found["only_b"].problem == "missing in A"
    assert found["y"].problem == "shape [2, 3] | [3, 2]"
    assert not any(found[name].agrees(9.0) for name in names[1:])
    assert a.was_read == b.was_read == ["x"]


LINES = ["the man was not there and he had been with her", "", "it is of us"]
HEADS = {"model_hparam_overrides": {"num_attention_heads": 2}}


@pytest.fixture
def weights(tiny_config):
    """A factory of checkpoints: random weights of a tiny model."""

    def make(**hparams):
        variables = PretrainingModel(tiny_config(**hparams)).variables
        shapes = {v.name[:-2]: v.shape for v in variables}
        return RandomWeights(shapes, slots=False, step=None)

    return make


@pytest.fixture
def request_of(tiny_vocab):
    def make(**settings):
        usual = {"lines": lambda: LINES * 20, "vocab_file": tiny_vocab}
        settings = {**usual, "hparams": HEADS, **settings}
        return comparison.Request(length=16, count=10, **settings)

    return make


def compare(a, b, request):
    return comparison.compare_on_text(a, b, request).forward


TOWERS = ("generator_ltr", "generator_rtl")


@pytest.mark.parametrize(
    ("hparams", "networks"),
    [
        ({}, {"generator", "discriminator"}),
        ({"untied_generator": False}, {"generator", "discriminator"}),
        ({"electra_objective": False}, {"generator"}),
        ({"uniform_generator": True}, {"discriminator"}),
        ({"objective": "replace_mlm"}, {"generator", "discriminator"}),
        ({"objective": "all_tokens_mlm"}, {"generator", "discriminator"}),
        ({"objective": "electric"}, {*TOWERS, "discriminator"}),
    ],
)
def test_equal_weights_agree_exactly(weights, request_of, hparams, networks):
    found = compare(weights(**hparams), weights(**hparams), request_of())
    assert set(found.layers) == networks
    sizes = [size for sizes in found.layers.values() for size in sizes]
    assert all(size.is_exact for size in sizes)
    assert found.outputs and not found.problems(0.0)
    has_tokens = "second masked LM's logits" in found.outputs
    assert has_tokens == hparams.get("objective", "").endswith("mlm")
    assert found.inputs["examples"] == 10 and found.inputs["length"] == 16
    # Padding does not count.
    assert found.inputs["tokens"] < 10 * 16
    if not hparams:
        count = found.layers["generator"][0].count
        assert count == 4 * found.inputs["tokens"]
    assert all(equal == count for equal, count in found.agreement.values())
    assert all(np.isfinite(pair).all() for pair in found.losses.values())


def test_a_part_is_compared_with_the_whole(weights, request_of):
    whole = weights()
    scopes = ("electra", "discriminator")
    part = MemoryWeights({n: v for n, v in whole if n.startswith(scopes)})
    for a, b, label in ((whole, part, "B"), (part, whole, "A")):
        found = compare(a, b, request_of())
        assert set(found.layers) == {"discriminator"}
        assert not found.problems(0.0)
        reason = f"{label} has no generator"
        assert found.not_compared["generator logits"] == reason


def test_an_encoder_without_heads_is_compared(weights, request_of):
    whole = weights()
    tuned = {n: v for n, v in whole if n.startswith("electra/")}
    tuned["task_specific/cola/dense/kernel"] = np.zeros([16, 2], np.float32)
    found = compare(whole, MemoryWeights(tuned), request_of())
    assert not found.problems(0.0) and set(found.layers) == {"discriminator"}
    assert "B lacks 4" in found.not_compared["discriminator logits"]
    masked_lm = weights(electra_objective=False)
    tuned = {n: v for n, v in masked_lm if n.startswith("electra/")}
    found = compare(MemoryWeights(tuned), masked_lm, request_of())
    assert set(found.layers) == {"generator"} and not found.problems(0.0)


def test_other_depth_compares_what_text_alone_decides(weights, request_of):
    a, b = weights(), weights(generator_layers=0.5)
    found = compare(a, b, request_of())
    assert "generator layers" in found.not_compared
    assert {"generator logits", "discriminator logits"} == set(found.outputs)
    assert {"masked LM loss", "discriminator loss"} == set(found.losses)


def test_what_cannot_run_on_the_same_text_is_said(weights, request_of):
    for other, why in (
        (weights(vocab_size=210), "200 in A and 210 in B"),
        (MemoryWeights({"x": np.ones([1])}), "no encoder"),
    ):
        outcome = comparison.compare_on_text(weights(), other, request_of())
        assert outcome.forward is None
        assert why in outcome.not_compared["outputs"]


def test_other_vocabularies_differ(weights, request_of, tmp_path, tiny_vocab):
    lines = pathlib.Path(tiny_vocab).read_text().splitlines()
    lines[150], lines[151] = lines[151], lines[150]
    other = tmp_path / "vocab.txt"
    other.write_text("\n".join(lines) + "\n")
    a, b = weights(), weights()
    a.vocab_file, b.vocab_file = tiny_vocab, str(other)
    outcome = comparison.compare_on_text(a, b, request_of(vocab_file=None))
    assert outcome.forward is None and "txt:151:" in outcome.problems[0]
    other.write_text(pathlib.Path(tiny_vocab).read_text(), newline="\r\n")
    outcome = comparison.compare_on_text(a, b, request_of(vocab_file=None))
    assert outcome.forward is not None


def test_heads_stated_by_one_serve_both(weights, request_of):
    a, b = weights(), weights()
    b.hparams = HEADS
    request = request_of(hparams={})
    outcome = comparison.compare_on_text(a, b, request)
    assert not outcome.forward.problems(0.0)
    assert "A has no configuration" in outcome.notes[0]
    assumed = compare(a, weights(), request)  # one head
    assert assumed.losses != outcome.forward.losses


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_file": None}, "--vocab_file=FILE"),
        ({"hparams": {"generator_layers": 1.5}}, "has 2 layers, .* describe 3"),
        ({"lines": lambda: [""]}, "no words"),
    ],
)
def test_mistakes_are_named(weights, request_of, settings, message):
    refused(message, compare, weights(), weights(), request_of(**settings))


def test_a_recording_that_is_none_is_refused(tmp_path, tiny_vocab):
    golden = pathlib.Path(tiny_vocab).parent / "golden"
    whole = dict(np.load(golden / "forward_v200_electra.npz"))
    features = {n: v for n, v in whole.items() if n[:5] in ("input", "segme")}
    inputs = {n: v for n, v in whole.items() if n[:6] == "masked"} | features
    path = tmp_path / "r.npz"
    np.save(tmp_path / "one.npy", np.zeros(3))
    one = (tmp_path / "one.npy").read_bytes()
    for content, message in (
        (features, "lacks masked_input_ids"),
        (inputs, "no outputs to compare"),
        (whole | {"masked_lm_ids": np.zeros([4, 3])}, "must have one shape"),
        *((content, "not an .npz") for content in (b"PK not a zip", b"", one)),
    ):
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            np.savez(path, **content)
        refused(message, read_recording, str(path))
