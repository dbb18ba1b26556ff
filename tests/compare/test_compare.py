# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Differences of arrays and files, and of two models on the same text."""

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


def test_a_difference_equals_the_difference_computed_by_hand():
    size = difference([1.0, -4.0, 0.0], [1.0, -2.0, 0.0])
    assert (size.count, size.max_abs, size.max_b) == (3, 2.0, 2.0)
    assert size.mean_abs == pytest.approx(2 / 3) and size.relative == 1.0
    assert size.norm_relative == pytest.approx(2 / np.sqrt(5))
    assert size.scaled == 1.0 and not size.is_exact
    assert size.agrees(1.0) and not size.agrees(0.99)


@pytest.mark.parametrize(
    ("a", "b", "agrees"),
    [(0.001, 0.0011, True), (1000.1, 1000.0, True), (1.1, 1.0, False)],
)
def test_the_tolerance_is_relative_above_1(a, b, agrees):
    assert difference([a], [b]).agrees(2e-4) is agrees


def test_equal_infinities_are_exact():
    assert difference([-np.inf, 2.0], [-np.inf, 2.0]).is_exact


@pytest.mark.parametrize(("a", "relative"), [(0.0, 0.0), (1.0, None)])
def test_a_difference_from_zero_has_no_ratio(a, relative):
    assert difference([a], [0.0]).relative == relative


def test_arrays_of_different_shapes_are_an_error():
    with pytest.raises(ValueError, match=r"\(2, 1\) and \(2,\)"):
        difference(np.ones([2, 1]), np.ones([2]))


@pytest.mark.parametrize("a", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_never_agrees(a):
    size = difference([a, 1.0], [2.0, 1.0])
    assert size.not_finite == 1 and size.max_abs == 0
    assert size.text == "1 not finite"
    assert not size.agrees(1e9) and not size.is_exact


def test_two_nans_never_agree():
    assert not difference([np.nan], [np.nan]).agrees(1e9)


def test_chunks_add_up_to_the_whole_difference(monkeypatch):
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
    """Tensors that record the names that are read."""

    def __init__(self, **values):
        super().__init__(values)
        self.was_read = []

    def read(self, name):
        self.was_read.append(name)
        return super().read(name)


def test_missing_tensors_and_other_shapes_are_reported_unread():
    a = Tensors(x=np.float32([1, 2]), only_a=[1.0], y=np.zeros([2, 3]))
    b = Tensors(x=np.float64([1, 3]), only_b=[1.0], y=np.zeros([3, 2]))
    names = ("x", "only_a", "only_b", "y")
    rows = {row.name: row for row in differences.compare_tensors(a, b, names)}
    assert rows["x"].problem is None and rows["x"].difference.max_abs == 1
    assert (rows["x"].dtype_a, rows["x"].dtype_b) == ("float32", "float64")
    assert rows["only_a"].problem == "missing in B"
    assert rows["only_b"].problem == "missing in A"
    assert rows["y"].problem == "shape [2, 3] | [3, 2]"
    assert not any(rows[name].agrees(9.0) for name in names[1:])
    assert a.was_read == b.was_read == ["x"]


LINES = ["the man was not there and he had been with her", "", "it is of us"]
HEADS = {"model_hparam_overrides": {"num_attention_heads": 2}}


@pytest.fixture
def weights(tiny_config):
    """Return a factory of checkpoints: random weights of a tiny model."""

    def make(**hparams):
        variables = PretrainingModel(tiny_config(**hparams)).variables
        shapes = {v.name[:-2]: v.shape for v in variables}
        return RandomWeights(shapes, slots=False, step=None)

    return make


@pytest.fixture
def request_of(tiny_vocab):
    def make(**settings):
        defaults = {"lines": lambda: LINES * 20, "vocab_file": tiny_vocab}
        settings = {**defaults, "hparams": HEADS, **settings}
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
    forward = compare(weights(**hparams), weights(**hparams), request_of())
    assert set(forward.layers) == networks
    sizes = [size for layers in forward.layers.values() for size in layers]
    assert all(size.is_exact for size in sizes)
    assert forward.outputs and not forward.problems(0.0)
    has_tokens = "second masked LM's logits" in forward.outputs
    assert has_tokens == hparams.get("objective", "").endswith("mlm")
    assert all(equal == count for equal, count in forward.agreement.values())
    assert all(np.isfinite(pair).all() for pair in forward.losses.values())


def test_padding_does_not_count(weights, request_of):
    forward = compare(weights(), weights(), request_of())
    assert forward.inputs["examples"] == 10 and forward.inputs["length"] == 16
    assert forward.inputs["tokens"] < 10 * 16
    count = forward.layers["generator"][0].count
    assert count == 4 * forward.inputs["tokens"]


@pytest.mark.parametrize("label", "AB")
def test_a_discriminator_is_compared_with_a_whole_model(
    label, weights, request_of
):
    whole = weights()
    scopes = ("electra", "discriminator")
    part = MemoryWeights({n: v for n, v in whole if n.startswith(scopes)})
    a, b = (part, whole) if label == "A" else (whole, part)
    forward = compare(a, b, request_of())
    assert set(forward.layers) == {"discriminator"}
    assert not forward.problems(0.0)
    reason = f"{label} has no generator"
    assert forward.not_compared["generator logits"] == reason


def test_a_fine_tuned_encoder_is_compared_with_a_discriminator(
    weights, request_of
):
    whole = weights()
    tuned = {n: v for n, v in whole if n.startswith("electra/")}
    tuned["task_specific/cola/dense/kernel"] = np.zeros([16, 2], np.float32)
    forward = compare(whole, MemoryWeights(tuned), request_of())
    assert set(forward.layers) == {"discriminator"}
    assert not forward.problems(0.0)
    assert "B lacks 4" in forward.not_compared["discriminator logits"]


def test_an_encoder_is_compared_with_a_masked_lm(weights, request_of):
    masked_lm = weights(electra_objective=False)
    encoder = {n: v for n, v in masked_lm if n.startswith("electra/")}
    forward = compare(MemoryWeights(encoder), masked_lm, request_of())
    assert set(forward.layers) == {"generator"} and not forward.problems(0.0)


def test_models_of_different_depth_are_compared_by_logits(weights, request_of):
    forward = compare(weights(), weights(generator_layers=0.5), request_of())
    assert "generator layers" in forward.not_compared
    assert {"generator logits", "discriminator logits"} == set(forward.outputs)
    assert {"masked LM loss", "discriminator loss"} == set(forward.losses)


def outcome_of(a, b, request):
    return comparison.compare_on_text(a, b, request)


def test_models_of_different_vocabularies_are_not_run(weights, request_of):
    outcome = outcome_of(weights(), weights(vocab_size=210), request_of())
    assert outcome.forward is None
    assert "200 in A and 210 in B" in outcome.not_compared["outputs"]


def test_variables_without_an_encoder_are_not_run(weights, request_of):
    other = MemoryWeights({"x": np.ones([1])})
    outcome = outcome_of(weights(), other, request_of())
    assert outcome.forward is None
    assert "no encoder" in outcome.not_compared["outputs"]


@pytest.fixture
def with_vocabularies(weights, tiny_vocab, tmp_path):
    """Return a factory of two equal checkpoints, one with a new vocabulary."""

    def make(change):
        path = tmp_path / "vocab.txt"
        lines = change(pathlib.Path(tiny_vocab).read_text().splitlines(True))
        path.write_text("".join(lines), newline="")
        a, b = weights(), weights()
        a.vocab_file, b.vocab_file = tiny_vocab, str(path)
        return a, b

    return make


def test_vocabularies_in_different_orders_differ(with_vocabularies, request_of):
    a, b = with_vocabularies(
        lambda lines: [*lines[:150], lines[151], lines[150], *lines[152:]]
    )
    outcome = outcome_of(a, b, request_of(vocab_file=None))
    assert outcome.forward is None and "txt:151:" in outcome.problems[0]


def test_line_ends_do_not_make_vocabularies_differ(
    with_vocabularies, request_of
):
    a, b = with_vocabularies(
        lambda lines: [line.replace("\n", "\r\n") for line in lines]
    )
    outcome = outcome_of(a, b, request_of(vocab_file=None))
    assert outcome.forward is not None


def test_heads_that_one_checkpoint_states_apply_to_both(weights, request_of):
    a, b = weights(), weights()
    b.hparams = HEADS
    request = request_of(hparams={})
    outcome = comparison.compare_on_text(a, b, request)
    assert not outcome.forward.problems(0.0)
    assert "A has no configuration" in outcome.notes[0]
    assumed = compare(a, weights(), request)  # with the default number of heads
    assert assumed.losses != outcome.forward.losses


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_file": None}, "--vocab_file=FILE"),
        ({"hparams": {"generator_layers": 1.5}}, "has 2 layers, .* describe 3"),
        ({"lines": lambda: [""]}, "no words"),
    ],
)
def test_an_invalid_request_is_refused(weights, request_of, settings, message):
    refused(message, compare, weights(), weights(), request_of(**settings))


@pytest.fixture
def recording(tiny_vocab):
    """Return the arrays of a recorded forward pass."""
    golden = pathlib.Path(tiny_vocab).parent / "golden"
    return dict(np.load(golden / "forward_v200_electra.npz"))


FEATURES = ("input_", "segment")
INPUTS = (*FEATURES, "masked")


def keep(arrays, prefixes):
    return {n: v for n, v in arrays.items() if n.startswith(prefixes)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: keep(arrays, FEATURES), "masked_input_ids, .* missing"),
        (lambda arrays: keep(arrays, INPUTS), "no outputs to compare"),
        (
            lambda arrays: arrays | {"masked_lm_ids": np.zeros([4, 3])},
            "expected equal shapes with two axes",
        ),
    ],
    ids=["features", "inputs", "shapes"],
)
def test_an_incomplete_recording_is_refused(
    change, message, recording, tmp_path
):
    path = tmp_path / "r.npz"
    np.savez(path, **change(recording))
    refused(message, read_recording, str(path))


@pytest.mark.parametrize("content", [b"PK not a zip", b"", None])
def test_a_file_without_arrays_is_refused(content, tmp_path):
    path = tmp_path / "r.npz"
    if content is None:  # A single array.
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    else:
        path.write_bytes(content)
    refused("not an .npz", read_recording, str(path))
