# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Heads, losses, gradients and steps equal those recorded from the original.

The recordings were made with the heads' own dropout patched out.
"""

import json
import types

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import tf1
from electra_tf.finetuning import model as heads
from electra_tf.finetuning.build import build_model, build_optimizer
from electra_tf.finetuning.model import (
    ClassificationHead,
    FinetuningModel,
    MultiLabelHead,
    QuestionAnsweringHead,
    RegressionHead,
    TaggingHead,
    mean_over_tokens,
)
from electra_tf.finetuning.registry import get_tasks
from electra_tf.modeling.layers import SeedStream
from electra_tf.optimization.optimizer import variable_name
from electra_tf.prediction.loading import load_finetuned

HEADS = """
cola mnli sts chunk squad_joint squad_joint_no_start_feature
squad_joint_not_answerable squad_independent squadv1_joint
""".split()
VARIANTS = """
small_cola base_sts large_chunk small_squad base_squad large_squad
small_squadv1 small_squad_nojoint small_squad_noanswerable
small_squad_answerable_no_start
""".split()
QUESTIONS = [name for name in HEADS if name.startswith("squad")]


@pytest.fixture
def recorded(golden_dir, tmp_path, tiny_vocab, monkeypatch):
    """From a recorded head's name to its recording, model and features."""
    monkeypatch.setattr("electra_tf.finetuning.model.DROPOUT_RATE", 0.0)

    def make(name):
        info = json.loads((golden_dir / f"head_{name}.json").read_text())
        arrays = dict(np.load(golden_dir / f"head_{name}.npz"))
        config = FinetuningConfig.create(
            "m",
            str(tmp_path),
            vocab_file=tiny_vocab,
            max_query_length=16,  # of no effect on ready features
            **info["hparams"],
        )
        tasks = get_tasks(config)
        if "label_mapping" in info:
            tasks[0].use_labels(info["label_mapping"])
        model = FinetuningModel(config, tasks)
        report = tf1.restore(model, str(golden_dir / info["ckpt"]))
        assert not report.missing and not report.unexpected
        return arrays, model, _part(arrays, "feature/", tf.constant)

    return make


def _part(arrays, prefix, convert=lambda value: value):
    return {
        key.removeprefix(prefix): convert(value)
        for key, value in arrays.items()
        if key.startswith(prefix)
    }


@pytest.mark.parametrize("name", HEADS)
def test_forward_pass_and_gradients_equal_the_recording(
    name, recorded, assert_gradients
):
    arrays, model, features = recorded(name)
    (task,) = model.task_names
    assert features["task_id"].numpy()[-1] == 1  # A padding row.
    for mode in ("eval", "train"):
        with tf.GradientTape() as tape:
            outputs = model.compute(features, training=mode == "train")
        np.testing.assert_allclose(
            outputs["loss"], arrays[f"{mode}/loss_sum"], rtol=1e-5
        )
        _check_outputs(outputs[task], arrays, mode)
    gradients = tape.gradient(outputs["loss"], model.trainable_variables)
    names = [variable_name(v) for v in model.trainable_variables]
    expected = _part(arrays, "train/grad/")
    assert names == list(expected)  # In the original's order, too.
    assert_gradients(
        dict(zip(names, gradients, strict=True)),
        expected,
        arrays["train/global_grad_norm_as_used_for_clipping"],
    )


def _check_outputs(outputs, arrays, mode):
    recorded = _part(arrays, f"{mode}/out/")
    assert set(outputs) == set(recorded)
    for key, expected in recorded.items():
        actual = outputs[key].numpy()
        assert actual.shape == expected.shape, key
        if key.endswith("_top_index"):
            # Masked positions come in any order: QUIRKS.
            scores = recorded[key.replace("index", "log_probs")]
            real = scores > -500
            real &= np.sum(recorded["start_top_log_probs"] != 0) > 0
            if key == "end_top_index":
                starts = recorded["start_top_log_probs"] > -500
                real &= starts[:, :, None]
            np.testing.assert_array_equal(actual[real], expected[real], key)
        elif actual.dtype.kind != "f":
            np.testing.assert_array_equal(actual, expected, key)
        else:
            if key == "end_top_log_probs":
                starts = recorded["start_top_log_probs"] > -500
                actual, expected = actual[starts], expected[starts]
            bound = 1e-5 * max(1.0, np.abs(expected).max(initial=0.0))
            error = np.abs(actual - expected).max(initial=0.0)
            assert error <= bound, key


@pytest.mark.parametrize("name", QUESTIONS)
def test_trimmed_batches_change_neither_loss_nor_answers(name, recorded):
    arrays, model, features = recorded(name)
    task = model.task_names[0]
    used = int(arrays["feature/input_mask"].sum(1).max())

    def each_matrix(change):
        return {
            key: change(value) if value.shape.rank == 2 else value
            for key, value in features.items()
        }

    short = each_matrix(lambda value: value[:, :used])
    # Longer than any row, as where max_seq_length is larger than a batch.
    spare = each_matrix(lambda value: tf.pad(value, [[0, 0], [0, 8]]))
    for training in (True, False):
        wanted = model.compute(features, training=training)
        for batch in (short, spare):
            found = model.compute(batch, training=training)
            for key in ("loss", "answerable_logit", "start_top_log_probs"):
                np.testing.assert_allclose(
                    found[task][key], wanted[task][key], rtol=1e-5, atol=1e-5
                )


def test_the_loss_adds_each_row_to_its_own_task(finetuning_config):
    config = finetuning_config("cola", "sts")
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


@pytest.mark.parametrize("name", VARIANTS)
def test_heads_are_named_and_shaped_as_the_original_s(name, golden_dir):
    path = golden_dir / "variables_all_configs.json"
    recorded = json.loads(path.read_text())[f"finetune/{name}"]
    size, task = name.split("_")[:2]
    hidden = {"small": 256, "base": 768, "large": 1024}[size]
    hparams = dict(recorded["hparams"])
    del hparams["model_size"], hparams["task_names"]
    if task == "cola":
        head = ClassificationHead(task, hidden, 2)
    elif task == "sts":
        head = RegressionHead(task, hidden)
    elif task == "chunk":
        head = TaggingHead(task, hidden, 8)
    else:
        config = FinetuningConfig.create("m", "d", task_names=[task], **hparams)
        head = QuestionAnsweringHead(task, hidden, config)
    ours = [[variable_name(v), v.shape.as_list()] for v in head.variables]
    theirs = [
        [entry["name"], entry["shape"]]
        for entry in recorded["creation_order_model_variables"]
    ]
    assert ours == [e for e in theirs if e[0].startswith("task_specific/")]


def test_mean_pooling_ignores_padding():
    sequence = tf.constant([[[1.0], [3.0], [100.0]], [[5.0], [7.0], [9.0]]])
    mask = tf.constant([[1, 1, 0], [0, 0, 0]])
    pooled = mean_over_tokens(sequence, mask)
    np.testing.assert_array_equal(pooled, [[2.0], [0.0]])


def test_several_labels_have_independent_losses():
    head = MultiLabelHead("tags", 2, 3)
    head.dense.bias.assign([10.0, -10.0, 10.0])
    head.dense.kernel.assign(tf.zeros([2, 3]))
    encoded = types.SimpleNamespace(pooled_output=tf.zeros([1, 2]))
    features = {
        "tags_label_ids": tf.constant([[1, 0, 0]]),
        "tags_eid": tf.constant([7]),
    }
    outputs = head.logits(encoded, features)
    losses = head.loss(outputs, features)
    np.testing.assert_array_equal(outputs["predictions"], [[1, 0, 1]])
    np.testing.assert_allclose(losses, [10.0], atol=1e-3)


TRAJECTORIES = """
cola_layerwise cola_layerwise_ordered cola_no_layerwise sts_layerwise
chunk_layerwise squad_layerwise
""".split()
STEPS = 5


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAJECTORIES)
def test_weights_follow_the_recorded_trajectory(
    name, golden_dir, tmp_path, tiny_vocab, monkeypatch, assert_recorded_weights
):
    # The recordings have the heads' own dropout patched out, too.
    monkeypatch.setattr("electra_tf.finetuning.model.DROPOUT_RATE", 0.0)
    directory = golden_dir / f"train_finetune_{name}"
    info = json.loads((directory / "info.json").read_text())
    order = "before" if name.endswith("_ordered") else "after"
    config = FinetuningConfig.create(
        "m",
        str(tmp_path),
        vocab_file=tiny_vocab,
        lr_read_order=f"{order}_increment",
        max_query_length=16,  # Of no effect on a ready batch.
        **info["hparams"],
    )
    tasks = get_tasks(config)
    if config.task_names == ["chunk"]:
        head = json.loads((golden_dir / "head_chunk.json").read_text())
        tasks[0].use_labels(head["label_mapping"])
    model = build_model(config, tasks)
    tf1.restore(model, str(directory / "model.ckpt-0"))
    optimizer = build_optimizer(config, model, info["num_train_steps"])
    batch = {
        key: tf.constant(value)
        for key, value in np.load(directory / "batch.npz").items()
    }

    @tf.function
    def train_step(batch, step):
        with tf.GradientTape() as tape:
            loss = model.compute(batch, training=True)["loss"]
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, optimizer.update(gradients, step)

    recorded = info["steps"]
    for step in range(STEPS):
        loss, update = train_step(batch, tf.constant(step, tf.int64))
        rate = recorded["lr"][step]
        if isinstance(rate, dict):  # The heads' rate is the schedule's.
            rate = rate["task_specific/"]
        for found, wanted, close in (
            (loss, recorded["loss"][step], {"rtol": 1e-4}),
            (update["grad_norm"], recorded["gn"][step], {"rtol": 1e-4}),
            (update["learning_rate"], rate, {"rtol": 1e-6, "atol": 1e-12}),
        ):
            np.testing.assert_allclose(found, wanted, **close)
        checkpoint = directory / f"model.ckpt-{step + 1}"
        assert_recorded_weights(checkpoint, model, optimizer)


MODEL = "models/tiny/finetuning_models/sst_model"
HIDDEN = "task_specific/sst/hidden/kernel"


@pytest.fixture
def head():
    """A head with weights drawn, and vectors to read."""
    made = ClassificationHead("sst", 8, 3, seed=1, layers=2)
    random = np.random.default_rng(0)
    for variable in made.variables:
        variable.assign(random.normal(size=variable.shape))
    vectors = random.normal(size=[5, 8]).astype(np.float32)
    encoded = types.SimpleNamespace(pooled_output=tf.constant(vectors))
    return made, encoded


def test_two_layers_are_dense_gelu_dense(head):
    """As transformers' ElectraClassificationHead, in float64."""
    made, encoded = head
    names = [variable.name.split(":")[0] for variable in made.variables]
    assert sorted(names) == [
        f"task_specific/sst/{layer}/{part}"
        for layer in ("dense", "hidden")
        for part in ("bias", "kernel")
    ]
    kernels, biases = (
        [
            getattr(layer, n).numpy().astype(float)
            for layer in (made.hidden, made.dense)
        ]
        for n in ("kernel", "bias")
    )
    inner = encoded.pooled_output.numpy().astype(float) @ kernels[0] + biases[0]
    inner *= 0.5 * (1 + erf(inner / np.sqrt(2)))
    expected = inner @ kernels[1] + biases[1]
    found = made.logits(encoded, {})["logits"]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_each_layer_s_input_is_dropped_out_apart(head, monkeypatch):
    made, encoded = head
    seeds = []

    def dropout(vectors, rate, seed):
        seeds.append((vectors.shape[-1], rate, tuple(seed.numpy())))
        return vectors

    monkeypatch.setattr(heads, "dropout", dropout)
    stream = SeedStream(tf.constant([1, 2]))
    made.logits(encoded, {}, stream)
    assert [seed[:2] for seed in seeds] == [(8, 0.1)] * 2
    assert seeds[0] != seeds[1]
    made.logits(encoded, {})
    assert len(seeds) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["adamw", pytest.param("lamb", marks=pytest.mark.heavy)]
)
def test_a_run_trains_them(config_of, run, weights_of, tmp_path, kind):
    """With rates layer by layer, which are the default."""
    hparams = {
        "optimizer": kind,
        "classification_head_layers": 2,
        "init_checkpoint": None,
    }
    result, _ = run(config_of(**hparams))
    expected = weights_of(tmp_path / f"{MODEL}_1")
    assert expected[HIDDEN].any()
    loaded = load_finetuned(str(tmp_path / f"{MODEL}_1"))
    assert loaded.model.heads[0].hidden is not None

    # Evaluated again: the same; with another head: refused.
    again = {**hparams, "do_train": False}
    found, _ = run(config_of(**again))
    assert found["trials"][0]["results"] == result["trials"][0]["results"]
    with pytest.raises(UserError, match="classification_head_layers to 2"):
        given = {"init_checkpoint": str(tmp_path / f"{MODEL}_1")}
        run(config_of(do_train=False, **given))
    with pytest.raises(UserError, match=f"optimizer: '{kind}' -> 'original'"):
        run(config_of(**{**hparams, "optimizer": "original"}))
