# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Heads of fine-tuned tasks in Hugging Face folders."""

import json

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints import huggingface_layout as layout
from electra_tf.checkpoints.contents import HIDDEN, TaskHead
from electra_tf.checkpoints.huggingface_layout import Network
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.modeling.layers import gelu

LABELS = ("bad", "neutral", "good")
SEGMENTS = "electra.embeddings.token_type_embeddings.weight"


def test_a_taggers_segments_and_casing_are_the_taggers(
    out, arrays, tiny_vocab, same_tensors
):
    values = arrays(Network("ElectraForTokenClassification", task="pos"))
    weights = MemoryWeights(values)
    weights.heads = {"pos": TaskHead("tagging", LABELS)}
    hparams = {"do_lower_case": False}
    out.write(weights, vocab_file=tiny_vocab, hparams=hparams)
    config = out.config()
    assert config["id2label"] == dict(zip("012", LABELS, strict=True))
    table = values["electra/embeddings/token_type_embeddings"]
    assert (out.tensors()[SEGMENTS] == table[1]).all()
    tokenizer = json.loads((out / "tokenizer_config.json").read_text())
    assert tokenizer["do_lower_case"] is True
    assert tokenizer["tokenize_chinese_chars"] is False
    read = out.weights()
    assert read.heads == weights.heads
    values["electra/embeddings/token_type_embeddings"] = table[[1, 1]]
    same_tensors(read, values)


@pytest.mark.parametrize("kind", layout.PROBLEMS)
def test_a_sentences_head_passes_a_shifted_identity(
    kind, out, arrays, same_tensors
):
    values = arrays(Network("ElectraModel"), hidden_size=64)
    random = np.random.RandomState(2)
    head = {"kernel": random.randn(64, 3) / 8, "bias": random.randn(3)}
    head = {n: v.astype(np.float32) for n, v in head.items()}
    for name, value in head.items():
        values[f"task_specific/own/dense/{name}"] = value
    weights = MemoryWeights(values)
    weights.heads = {"own": TaskHead(kind, LABELS)}
    report = out.write(weights)
    assert (
        not report.left_out and "rounding" in report.notes["classifier.dense"]
    )
    assert out.config()["problem_type"] == layout.PROBLEMS[kind]
    there = out.tensors()
    norm = "electra/encoder/layer_1/output/LayerNorm"
    gamma, beta = values[f"{norm}/gamma"], values[f"{norm}/beta"]
    # What a layer norm gives, its extremes too.
    normal = random.randn(100, 64)
    normal[:64] = 1e3 * np.eye(64) * random.choice([-1, 1], 64)
    normal = (normal - normal.mean(1, keepdims=True)) / normal.std(
        1, keepdims=True
    )
    vectors = (normal * gamma + beta).astype(np.float32)
    inner = vectors @ there["classifier.dense.weight"].T
    inner += there["classifier.dense.bias"]
    np.testing.assert_array_equal(gelu(tf.constant(inner)), inner)
    logits = inner @ there["classifier.out_proj.weight"].T
    logits += there["classifier.out_proj.bias"]
    expected = vectors @ head["kernel"] + head["bias"]
    np.testing.assert_allclose(logits, expected, rtol=0, atol=3e-5)
    read = out.weights()
    assert read.heads == weights.heads
    same_tensors(read, values)
    # Trained on in transformers, it is no longer the bias that was.
    there["classifier.out_proj.bias"] += 1
    out.without_digests().store(there)
    moved = out.weights().read("task_specific/own/dense/bias") - head["bias"]
    np.testing.assert_allclose(moved, 1, rtol=1e-5)


def test_a_head_of_two_layers_is_transformers_own(out, arrays, same_tensors):
    network = Network(layout.SENTENCES, task="own", first=HIDDEN)
    values = arrays(network)
    weights = MemoryWeights(values)
    weights.heads = {"own": TaskHead("classification", LABELS)}
    report = out.write(weights)
    assert not report.left_out and "classifier.dense" not in report.notes
    there, ours = out.tensors(), "task_specific/own"
    for theirs, name in (("dense", HIDDEN), ("out_proj", "dense")):
        kernel, bias = (
            values[f"{ours}/{name}/{part}"] for part in ("kernel", "bias")
        )
        held = there[f"classifier.{theirs}.weight"]
        np.testing.assert_array_equal(held, kernel.T)
        np.testing.assert_array_equal(there[f"classifier.{theirs}.bias"], bias)
    read = out.weights()
    assert read.heads == weights.heads
    same_tensors(read, values)


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (TaskHead("classification", (), "mean"), "pooling is mean"),
        (TaskHead("parsing"), "no head for a task of type parsing"),
        (None, "shapes do not tell a tagger from a classifier"),
    ],
)
def test_a_head_that_transformers_lacks_is_refused(head, why, out, arrays):
    weights = MemoryWeights(
        arrays(Network("ElectraForTokenClassification", task="own"))
    )
    weights.heads = {"own": head} if head else {}
    assert why in out.write_refused(weights)
