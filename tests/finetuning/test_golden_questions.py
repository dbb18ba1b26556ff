# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records, windows and heads of questions equal those of the original."""

import json
import random

import numpy as np
import pytest
import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import tf1
from electra_tf.data.feature_spec import decode_example
from electra_tf.finetuning import registry
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.preprocessing import Preprocessor
from electra_tf.optimization.optimizer import variable_name

FEATURES = """
squad_train_len128_stride32 squad_dev_len128_stride32 squad_test_len128_stride32
squad_train_len128_stride64 squad_dev_len128_stride64 squad_test_len128_stride64
squadv1_train_len128_stride64 squadv1_dev_len128_stride64
triviaqa_train_len128_stride64 triviaqa_dev_len128_stride64
newsqa_train_len128_stride128 newsqa_dev_len128_stride128
""".split()
HEADS = """
squad_joint squad_joint_no_start_feature squad_joint_not_answerable
squad_independent squadv1_joint
""".split()
VARIANTS = """
small_squad base_squad large_squad small_squadv1 small_squad_nojoint
small_squad_noanswerable small_squad_answerable_no_start
""".split()


@pytest.fixture
def prepare(golden_dir, tmp_path):
    """Makes one recorded case's task and records."""

    def make(case):
        directory = golden_dir / "finetune_features"
        info = json.loads((directory / f"{case}.json").read_text())
        (tmp_path / "finetuning_data").symlink_to(directory / "raw")
        config = FinetuningConfig.create(
            "m",
            str(tmp_path),
            task_names=info["tasks"],
            vocab_file=str(golden_dir / "vocab.txt"),
            **info["hparams_passed"],
        )
        (task,) = registry.get_tasks(config)
        preprocessor = Preprocessor(config, [task])
        stream = random.Random(4321)
        if info["split"] == "train":
            batches, steps = preprocessor.prepare_train(stream)
        else:
            batches, steps = preprocessor.prepare_predict([task], info["split"])
        return info, task, batches, steps, stream

    return make


def test_every_recorded_case_of_questions_is_here(golden_dir):
    names = ("squad", "triviaqa", "newsqa")
    recorded = (golden_dir / "finetune_features").glob("*.npz")
    cases = {path.stem for path in recorded if path.stem.startswith(names)}
    assert cases == set(FEATURES)


@pytest.mark.parametrize("case", FEATURES)
def test_records_equal_the_originals(case, prepare, golden_dir):
    info, _, batches, steps, stream = prepare(case)
    recorded = np.load(golden_dir / "finetune_features" / f"{case}.npz")
    records = list(tf.data.TFRecordDataset(batches.path).as_numpy_iterator())
    found = decode_example(batches.specs, tf.constant(records))
    assert list(found) == info["feature_order"]
    assert set(recorded.files) == set(found)
    for name in recorded.files:
        np.testing.assert_array_equal(found[name], recorded[name], name)
    assert steps == info["steps_returned"]
    assert batches.n_examples == info["metadata"]["n_examples"]
    # As many random numbers were drawn as by the original.
    assert stream.random() == info["random_random_after"]


@pytest.mark.parametrize("case", FEATURES)
def test_examples_equal_the_originals(case, prepare):
    info, task, *_ = prepare(case)
    examples = task.get_examples(info["split"])
    wanted = info["examples_in_get_examples_order"]
    assert len(examples) == len(wanted)
    for example, expected in zip(examples, wanted, strict=True):
        for key, value in expected.items():
            assert getattr(example, key) == value, (example.eid, key)


@pytest.mark.parametrize("case", [c for c in FEATURES if "train" not in c])
def test_windows_for_scoring_equal_the_originals(case, prepare):
    info, task, *_ = prepare(case)
    windows = []
    for example in task.get_examples(info["split"]):
        windows += task._cutter.windows(example)
    wanted = info["for_eval_features"]
    assert len(windows) == len(wanted)
    for window, features in zip(windows, wanted, strict=True):
        expected = {
            key.removeprefix(f"{task.name}_"): value
            for key, value in features.items()
        }
        assert window.eid == expected["eid"]
        assert window.tokens == expected["tokens"]
        words = {
            str(i): word for i, word in enumerate(window.words) if word >= 0
        }
        assert words == expected["token_to_orig_map"]
        context = {i: bool(window.max_context[int(i)]) for i in words}
        assert context == expected["token_is_max_context"]
        assert window.max_context.sum() == sum(context.values())


@pytest.mark.parametrize("case", ["squad", "squadv1"])
def test_the_recorded_unusable_answers_are_reported(case, prepare):
    info, task, *_ = prepare(f"{case}_train_len128_stride64")
    assert "23 examples created, 2 failures" in info["log"]
    rows = task.row_report.rows
    assert len(rows) == 2
    for row in rows:
        assert row.path.endswith(f"{case}/train.json")
        assert row.line > 0 and row.skipped
    assert "'100\\xa0years'" in rows[0].expected
    assert "within the passage" in rows[1].expected


@pytest.fixture
def head_model(golden_dir, tmp_path, tiny_vocab):
    """From a recorded head's name to its recording and the model."""

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
        model = FinetuningModel(config, registry.get_tasks(config))
        report = tf1.restore(model, str(golden_dir / info["ckpt"]))
        assert not report.missing and not report.unexpected
        features = {
            key.removeprefix("feature/"): tf.constant(value)
            for key, value in arrays.items()
            if key.startswith("feature/")
        }
        return arrays, model, features

    return make


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("name", HEADS)
def test_forward_pass_equals_the_recording(name, mode, head_model):
    arrays, model, features = head_model(name)
    outputs = model.compute(features, training=mode == "train")
    np.testing.assert_allclose(
        outputs["loss"], arrays[f"{mode}/loss_sum"], rtol=1e-5
    )
    check_outputs(outputs[model.task_names[0]], arrays, mode)


def check_outputs(outputs, arrays, mode):
    recorded = {
        key.removeprefix(f"{mode}/out/"): value
        for key, value in arrays.items()
        if key.startswith(f"{mode}/out/")
    }
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
        elif key == "end_top_log_probs":
            starts = recorded["start_top_log_probs"] > -500
            check_close(actual[starts], expected[starts], key)
        elif actual.dtype.kind == "f":
            check_close(actual, expected, key)
        else:
            np.testing.assert_array_equal(actual, expected, key)


def check_close(actual, expected, name):
    bound = 1e-5 * max(1.0, np.abs(expected).max())
    assert np.abs(actual - expected).max() <= bound, name


@pytest.mark.parametrize("name", HEADS)
def test_gradients_equal_the_recording(name, head_model, assert_gradients):
    arrays, model, features = head_model(name)
    with tf.GradientTape() as tape:
        loss = model.compute(features, training=True)["loss"]
    gradients = tape.gradient(loss, model.trainable_variables)
    names = [variable_name(v) for v in model.trainable_variables]
    expected = {
        key.removeprefix("train/grad/"): value
        for key, value in arrays.items()
        if key.startswith("train/grad/")
    }
    assert names == list(expected)  # In the original's order, too.
    assert_gradients(
        dict(zip(names, gradients, strict=True)),
        expected,
        arrays["train/global_grad_norm_as_used_for_clipping"],
    )


@pytest.mark.parametrize("name", ["squad_joint", "squad_independent"])
def test_the_head_alone_equals_the_recording(name, head_model):
    from electra_tf.modeling.transformer import EncoderOutput

    arrays, model, features = head_model(name)
    for mode in ("train", "eval"):
        layers = tf.unstack(tf.constant(arrays[f"{mode}/all_encoder_layers"]))
        encoded = EncoderOutput(layers[0], tuple(layers), ())
        training = mode == "train"
        outputs = model.heads[0].compute(encoded, features, training)
        check_outputs(outputs, arrays, mode)


@pytest.mark.parametrize("name", HEADS)
def test_trimmed_batches_change_neither_loss_nor_answers(name, head_model):
    arrays, model, features = head_model(name)
    task = model.task_names[0]
    used = int(arrays["feature/input_mask"].sum(1).max())
    short = {
        key: value[:, :used] if value.shape.rank == 2 else value
        for key, value in features.items()
    }
    # Longer than any row, as where max_seq_length is larger than a batch.
    spare = {
        key: tf.pad(value, [[0, 0], [0, 8]]) if value.shape.rank == 2 else value
        for key, value in features.items()
    }
    for training in (True, False):
        wanted = model.compute(features, training=training)
        for batch in (short, spare):
            found = model.compute(batch, training=training)
            for key in ("loss", "answerable_logit", "start_top_log_probs"):
                np.testing.assert_allclose(
                    found[task][key], wanted[task][key], rtol=1e-5, atol=1e-5
                )


@pytest.mark.parametrize("name", VARIANTS)
def test_variables_are_named_and_shaped_as_the_originals(name, golden_dir):
    from electra_tf.finetuning.heads import QuestionAnsweringHead

    path = golden_dir / "variables_all_configs.json"
    recorded = json.loads(path.read_text())[f"finetune/{name}"]
    size, task = name.split("_")[:2]
    hidden = {"small": 256, "base": 768, "large": 1024}[size]
    hparams = recorded["hparams"]
    del hparams["model_size"], hparams["task_names"]
    head = QuestionAnsweringHead(task, hidden, max_seq_length=512, **hparams)
    ours = [[variable_name(v), v.shape.as_list()] for v in head.variables]
    theirs = [
        [entry["name"], entry["shape"]]
        for entry in recorded["creation_order_model_variables"]
    ]
    assert ours == [e for e in theirs if e[0].startswith("task_specific/")]
