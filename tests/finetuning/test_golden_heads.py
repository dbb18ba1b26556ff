# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Heads, losses and gradients equal those recorded from the original.

The recordings were made with the heads' own dropout patched out.
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import tf1
from electra_tf.finetuning import heads
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.registry import get_tasks
from electra_tf.optimization.optimizer import variable_name

HEADS = ("cola", "mnli", "sts", "chunk")


@pytest.fixture
def model_of(tmp_path, tiny_vocab, monkeypatch):
    """A factory: recorded hparams to a model."""
    monkeypatch.setattr(heads, "DROPOUT_RATE", 0.0)

    def make(info):
        config = FinetuningConfig.create(
            "m", str(tmp_path), vocab_file=tiny_vocab, **info["hparams"]
        )
        tasks = get_tasks(config)
        if "label_mapping" in info:
            tasks[0]._label_mapping = info["label_mapping"]
        return FinetuningModel(config, tasks)

    return make


@pytest.mark.parametrize("name", HEADS)
def test_forward_pass_and_gradients_equal_the_recording(
    name, golden_dir, model_of, assert_gradients
):
    info = json.loads((golden_dir / f"head_{name}.json").read_text())
    arrays = dict(np.load(golden_dir / f"head_{name}.npz"))
    model = model_of(info)
    report = tf1.restore(model, str(golden_dir / info["ckpt"]))
    assert not report.missing and not report.unexpected
    features = {
        key.removeprefix("feature/"): tf.constant(value)
        for key, value in arrays.items()
        if key.startswith("feature/")
    }
    assert features["task_id"].numpy()[-1] == 1  # A padding row.
    for mode in ("train", "eval"):
        with tf.GradientTape() as tape:
            outputs = model.compute(features, training=mode == "train")
        _check_outputs(outputs, name, arrays, mode)
    gradients = tape.gradient(outputs["loss"], model.trainable_variables)
    names = [variable_name(v) for v in model.trainable_variables]
    prefix = "train/grad/"
    expected = {
        key.removeprefix(prefix): value
        for key, value in arrays.items()
        if key.startswith(prefix)
    }
    assert names == list(expected)  # In the original's order, too.
    assert_gradients(
        dict(zip(names, gradients, strict=True)),
        expected,
        arrays["train/global_grad_norm_as_used_for_clipping"],
    )


def _check_outputs(outputs, name, arrays, mode):
    np.testing.assert_allclose(
        outputs["loss"], arrays[f"{mode}/loss_sum"], rtol=1e-5
    )
    prefix = f"{mode}/out/"
    recorded = {
        key.removeprefix(prefix): value
        for key, value in arrays.items()
        if key.startswith(prefix)
    }
    assert set(outputs[name]) == set(recorded)
    for key, expected in recorded.items():
        actual = outputs[name][key].numpy()
        if actual.dtype.kind == "f":
            bound = 1e-5 * max(1.0, np.abs(expected).max())
            assert np.abs(actual - expected).max() <= bound, key
        else:
            np.testing.assert_array_equal(actual, expected, key)


def test_the_loss_adds_each_row_to_its_own_task(tmp_path, tiny_vocab):
    config = FinetuningConfig.create(
        "m",
        str(tmp_path),
        vocab_file=tiny_vocab,
        vocab_size=200,
        task_names=["cola", "sts"],
        embedding_size=8,
        max_seq_length=16,
        model_hparam_overrides={
            "hidden_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
        },
    )
    model = FinetuningModel(config, get_tasks(config))
    rows = np.ones([4, 16], np.int32)
    features = {
        "input_ids": rows,
        "input_mask": rows,
        "segment_ids": 0 * rows,
        "task_id": np.array([0, 1, 1, 2]),
        "cola_eid": np.arange(4),
        "cola_label_ids": np.array([1, 0, 0, 0]),
        "sts_eid": np.arange(4),
        "sts_targets": np.array([0.0, 0.5, 1.0, 0.0], np.float32),
    }
    outputs = model.compute(features, training=False)
    cola, sts = outputs["cola"]["loss"].numpy(), outputs["sts"]["loss"].numpy()
    np.testing.assert_allclose(outputs["loss"], cola[0] + sts[1] + sts[2])


@pytest.mark.parametrize("name", ["small_cola", "base_sts", "large_chunk"])
def test_head_variables_are_named_and_shaped_as_the_original_s(
    name, golden_dir
):
    path = golden_dir / "variables_all_configs.json"
    recorded = json.loads(path.read_text())[f"finetune/{name}"]
    size, task = name.split("_")
    hidden = {"small": 256, "base": 768, "large": 1024}[size]
    head = {
        "cola": lambda: heads.ClassificationHead(task, hidden, 2),
        "sts": lambda: heads.RegressionHead(task, hidden),
        "chunk": lambda: heads.TaggingHead(task, hidden, 8),
    }[task]()
    ours = [[variable_name(v), v.shape.as_list()] for v in head.variables]
    theirs = [
        [entry["name"], entry["shape"]]
        for entry in recorded["creation_order_model_variables"]
    ]
    assert ours == [e for e in theirs if e[0].startswith("task_specific/")]


def test_mean_pooling_ignores_padding():
    sequence = tf.constant([[[1.0], [3.0], [100.0]], [[5.0], [7.0], [9.0]]])
    mask = tf.constant([[1, 1, 0], [0, 0, 0]])
    pooled = heads.mean_over_tokens(sequence, mask)
    np.testing.assert_array_equal(pooled, [[2.0], [0.0]])


def test_several_labels_have_independent_losses():
    head = heads.MultiLabelHead("tags", 2, 3)
    head.dense.bias.assign([10.0, -10.0, 10.0])
    head.dense.kernel.assign(tf.zeros([2, 3]))

    class Encoded:
        pooled_output = tf.zeros([1, 2])

    features = {
        "tags_label_ids": tf.constant([[1, 0, 0]]),
        "tags_eid": tf.constant([7]),
    }
    outputs = head.logits(Encoded, features)
    losses = head.loss(outputs, features)
    np.testing.assert_array_equal(outputs["predictions"], [[1, 0, 1]])
    np.testing.assert_allclose(losses, [10.0], atol=1e-3)
