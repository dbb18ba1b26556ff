# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two models on the same text: what is found equal is, and the other way."""

import pathlib

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.compare import outputs as comparison
from electra_tf.compare.recording import read_recording
from electra_tf.pretraining.model import PretrainingModel

LINES = ["the man was not there and he had been with her", "", "it is of us"]
HEADS = {"model_hparam_overrides": {"num_attention_heads": 2}}


@pytest.fixture
def weights(tiny_config):
    """A factory of checkpoints: random weights of a tiny model."""

    def make(**hparams):
        model = PretrainingModel(tiny_config(**hparams))
        random = np.random.default_rng(1)
        values = {
            v.name.split(":")[0]: v.numpy()
            + random.normal(0, 0.2, v.shape).astype(np.float32)
            for v in model.variables
        }
        return MemoryWeights(values)

    return make


def changed(weights, edit):
    values = dict(weights)
    edit(values)
    return MemoryWeights(values)


@pytest.fixture
def request_of(tiny_vocab):
    def make(**settings):
        settings = {"vocab_file": tiny_vocab, "hparams": HEADS, **settings}
        return comparison.Request(
            lines=lambda: LINES * 20, length=16, count=10, **settings
        )

    return make


def compare(a, b, request, **settings):
    return comparison.compare_on_text(a, b, request, **settings).forward


@pytest.mark.parametrize(
    ("hparams", "networks"),
    [
        ({}, {"generator", "discriminator"}),
        ({"untied_generator": False}, {"generator", "discriminator"}),
        ({"electra_objective": False}, {"generator"}),
        ({"uniform_generator": True}, {"discriminator"}),
        ({"objective": "replace_mlm"}, {"generator", "discriminator"}),
        ({"objective": "all_tokens_mlm"}, {"generator", "discriminator"}),
        (
            {"electra_objective": False, "electric_objective": True},
            {"generator_ltr", "generator_rtl", "discriminator"},
        ),
    ],
)
def test_equal_weights_give_equal_outputs(
    weights, request_of, hparams, networks
):
    found = compare(weights(**hparams), weights(**hparams), request_of())
    assert set(found.layers) == networks
    assert all(s.is_exact for sizes in found.layers.values() for s in sizes)
    assert found.outputs and not found.problems(0.0)
    has_tokens = "second masked LM's logits" in found.outputs
    assert has_tokens == ("objective" in hparams)
    assert found.inputs["examples"] == 10 and found.inputs["length"] == 16
    assert all(equal == count for equal, count in found.agreement.values())
    assert all(np.isfinite(pair).all() for pair in found.losses.values())


def test_a_change_shows_from_its_layer_on(weights, request_of):
    a = weights()

    def edit(values):
        name = "electra/encoder/layer_1/output/dense/kernel"
        values[name] = values[name] + np.linspace(-1, 1, 16)

    found = compare(a, changed(a, edit), request_of())
    assert all(size.is_exact for size in found.layers["generator"])
    first, second = found.layers["discriminator"]
    assert first.is_exact and not second.agrees(1e-3)
    assert not found.outputs["discriminator logits"].is_exact
    assert (
        found.losses["masked LM loss"][0] == found.losses["masked LM loss"][1]
    )


def test_padding_does_not_count(weights, request_of):
    found = compare(weights(), weights(), request_of())
    tokens = found.inputs["tokens"]
    assert tokens < 10 * 16
    assert found.layers["generator"][0].count == tokens * 4


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


def test_a_generator_alone_is_compared(weights, request_of):
    names = ("generator", "electra/embeddings/")
    part = MemoryWeights({n: v for n, v in weights() if n.startswith(names)})
    found = compare(part, part, request_of(hparams={}))
    assert set(found.layers) == {"generator"} and not found.problems(0.0)
    reason = found.not_compared["discriminator logits"]
    assert reason == "A has no discriminator"


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
        (MemoryWeights({"x": np.ones([1])}), "No encoder"),
    ):
        outcome = comparison.compare_on_text(weights(), other, request_of())
        assert outcome.forward is None
        assert why in outcome.not_compared["outputs"]


def test_other_vocabularies_are_a_difference(
    weights, request_of, tmp_path, tiny_vocab
):
    lines = pathlib.Path(tiny_vocab).read_text().splitlines()
    lines[150], lines[151] = lines[151], lines[150]
    other = tmp_path / "vocab.txt"
    other.write_text("\n".join(lines) + "\n")
    a, b = weights(), weights()
    a.vocab_file, b.vocab_file = tiny_vocab, str(other)
    outcome = comparison.compare_on_text(a, b, request_of(vocab_file=None))
    assert outcome.forward is None and "line 151" in outcome.problems[0]


def test_heads_stated_by_one_serve_both(weights, request_of):
    a, b = weights(), weights()
    b.hparams = HEADS
    request = request_of(hparams={})
    outcome = comparison.compare_on_text(a, b, request)
    assert not outcome.forward.problems(0.0)
    assert "A has no configuration" in outcome.notes[0]
    assumed = compare(a, weights(), request)  # one head
    assert assumed.losses != outcome.forward.losses


def test_other_precision_is_run(weights, request_of):
    a = weights()
    b = MemoryWeights({n: v.astype(np.float64) for n, v in a})
    assert not compare(a, b, request_of()).problems(0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_file": None}, "--vocab_file=FILE"),
        ({"hparams": {"generator_layers": 1.5}}, "generator has 2 layers"),
        (
            {"hparams": {"model_hparam_overrides": {"num_hidden_layers": 1}}},
            "has 2 layers, the hparams describe 1",
        ),
        ({"hparams": {"no_such": 1}}, "no_such"),
    ],
)
def test_mistakes_are_named(weights, request_of, settings, message):
    with pytest.raises(UserError, match=message):
        compare(weights(), weights(), request_of(**settings))


def test_empty_text_is_refused(weights, tiny_vocab):
    request = comparison.Request(lines=lambda: [""], vocab_file=tiny_vocab)
    with pytest.raises(UserError, match="no words"):
        compare(weights(), weights(), request)


def test_a_recording_that_is_none_is_refused(tmp_path, tiny_vocab):
    golden = pathlib.Path(tiny_vocab).parent / "golden"
    whole = dict(np.load(golden / "forward_v200_electra.npz"))
    features = {n: v for n, v in whole.items() if n[:5] in ("input", "segme")}
    inputs = {n: v for n, v in whole.items() if n[:6] == "masked"} | features
    path = tmp_path / "r.npz"
    for arrays, message in (
        (features, "lacks masked_input_ids"),
        (inputs, "no outputs to compare"),
        (whole | {"masked_lm_ids": np.zeros([4, 3])}, "must have one shape"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(UserError, match=message):
            read_recording(str(path))
    path.write_bytes(b"PK not a zip")
    with pytest.raises(UserError, match="not an .npz"):
        read_recording(str(path))
