# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records, heads (without their dropout) and steps equal the original's."""

import gzip
import random
import types

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf

from configure.finetuning import FinetuningConfig
from electra_tf.data.feature_spec import decode_example
from electra_tf.finetuning import heads
from electra_tf.finetuning.build import build_model, build_optimizer
from electra_tf.finetuning.heads import (
    ClassificationHead,
    MultiLabelHead,
    mean_over_tokens,
)
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.preprocessing import Preprocessor
from electra_tf.finetuning.registry import get_tasks
from electra_tf.modeling.seeds import SeedStream
from electra_tf.optimization.optimizer import variable_name
from electra_tf.prediction.loading import load_finetuned
from tests.conftest import FIXTURES, differences, read_json, refused, restore

HEADS = """
cola mnli sts chunk squad_joint squad_joint_no_start_feature
squad_joint_not_answerable squad_independent squadv1_joint
""".split()


@pytest.fixture
def configure(golden_dir, tmp_path, tiny_vocab, monkeypatch):
    """Return a function that makes a config and its tasks of a recording."""
    monkeypatch.setattr(heads, "DROPOUT_RATE", 0.0)

    def make(info, **hparams):
        hparams |= info["hparams"] | {"vocab_file": tiny_vocab}
        hparams["max_query_length"] = 16  # of no effect on ready features
        config = FinetuningConfig.create("m", str(tmp_path), **hparams)
        tasks = get_tasks(config)
        if config.task_names == ["chunk"]:
            head = read_json(golden_dir / "head_chunk.json")
            tasks[0].set_labels(head["label_mapping"])
        return config, tasks

    return make


@pytest.fixture
def recorded(golden_dir, configure):
    """Return a function that loads a recorded head: arrays, model, features."""

    def make(name):
        info = read_json(golden_dir / f"head_{name}.json")
        arrays = dict(np.load(golden_dir / f"head_{name}.npz"))
        model = FinetuningModel(*configure(info))
        report = restore(model, str(golden_dir / info["ckpt"]))
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
def test_passes_and_gradients_are_as_recorded(name, recorded, assert_gradients):
    arrays, model, features = recorded(name)
    (task,) = model.task_names
    assert features["task_id"].numpy()[-1] == 1  # A padding row.
    for mode in ("eval", "train"):
        with tf.GradientTape() as tape:
            outputs = model.compute(features, training=mode == "train")
        loss = arrays[f"{mode}/loss_sum"]
        np.testing.assert_allclose(outputs["loss"], loss, rtol=1e-5)
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
            # Masked positions come in any order.
            real = recorded[key.replace("index", "log_probs")] > -500
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
            assert np.abs(actual - expected).max(initial=0.0) <= bound, key


@pytest.mark.parametrize("name", [n for n in HEADS if n.startswith("squad")])
def test_trimmed_batches_change_neither_loss_nor_answers(name, recorded):
    arrays, model, features = recorded(name)
    task = model.task_names[0]
    used = int(arrays["feature/input_mask"].sum(1).max())

    def each_matrix(change):
        matrices = {k: v for k, v in features.items() if v.shape.rank == 2}
        return features | {k: change(v) for k, v in matrices.items()}

    short = each_matrix(lambda value: value[:, :used])
    # Longer than all rows, as with a max_seq_length above a batch's longest.
    spare = each_matrix(lambda value: tf.pad(value, [[0, 0], [0, 8]]))
    for training in (True, False):
        expected = model.compute(features, training=training)
        for batch in (short, spare):
            actual = model.compute(batch, training=training)
            for key in ("loss", "answerable_logit", "start_top_log_probs"):
                pair = actual[task][key], expected[task][key]
                np.testing.assert_allclose(*pair, rtol=1e-5, atol=1e-5)


def test_the_loss_adds_each_row_to_its_own_task(finetuning_config):
    config = finetuning_config("cola", "sts")
    model = FinetuningModel(config, get_tasks(config))
    names = ("input_ids", "input_mask", "segment_ids")
    features = dict.fromkeys(names, np.ones([4, 16], np.int32))
    features |= dict.fromkeys(("cola_eid", "sts_eid"), np.arange(4))
    features["task_id"] = np.array([0, 1, 1, 2])
    features["cola_label_ids"] = np.array([1, 0, 0, 0])
    features["sts_targets"] = np.array([0.0, 0.5, 1.0, 0.0], np.float32)
    outputs = model.compute(features, training=False)
    cola, sts = outputs["cola"]["loss"].numpy(), outputs["sts"]["loss"].numpy()
    np.testing.assert_allclose(outputs["loss"], cola[0] + sts[1] + sts[2])


def test_mean_pooling_ignores_padding():
    sequence = tf.constant([[[1.0], [3.0], [100.0]], [[5.0], [7.0], [9.0]]])
    pooled = mean_over_tokens(sequence, tf.constant([[1, 1, 0], [0, 0, 0]]))
    np.testing.assert_array_equal(pooled, [[2.0], [0.0]])


def test_several_labels_have_independent_losses():
    head = MultiLabelHead("tags", 2, 3)
    head.dense.bias.assign([10.0, -10.0, 10.0])
    head.dense.kernel.assign(tf.zeros([2, 3]))
    encoded = types.SimpleNamespace(pooled_output=tf.zeros([1, 2]))
    features = {"tags_label_ids": [[1, 0, 0]], "tags_eid": [7]}
    features = {name: tf.constant(x) for name, x in features.items()}
    outputs = head.logits(encoded, features)
    np.testing.assert_array_equal(outputs["predictions"], [[1, 0, 1]])
    np.testing.assert_allclose(head.loss(outputs, features), [10.0], atol=1e-3)


TRAJECTORIES = """
cola_layerwise cola_layerwise_ordered cola_no_layerwise sts_layerwise
chunk_layerwise squad_layerwise
""".split()


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAJECTORIES)
def test_weights_follow_the_recorded_trajectory(
    name, golden_dir, configure, assert_recorded_weights
):
    directory = golden_dir / f"train_finetune_{name}"
    info = read_json(directory / "info.json")
    order = "before" if name.endswith("_ordered") else "after"
    config, tasks = configure(info, lr_read_order=f"{order}_increment")
    model = build_model(config, tasks)
    restore(model, str(directory / "model.ckpt-0"))
    optimizer = build_optimizer(config, model, info["num_train_steps"])
    batch = np.load(directory / "batch.npz")
    batch = {key: tf.constant(value) for key, value in batch.items()}

    @tf.function
    def train_step(batch, step):
        with tf.GradientTape() as tape:
            loss = model.compute(batch, training=True)["loss"]
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, optimizer.update(gradients, step)

    recorded = info["steps"]
    for step in range(5):
        loss, update = train_step(batch, tf.constant(step, tf.int64))
        rate = recorded["lr"][step]
        if isinstance(rate, dict):  # The heads' rate is the schedule's.
            rate = rate["task_specific/"]
        for actual, expected, close in (
            (loss, recorded["loss"][step], {"rtol": 1e-4}),
            (update["grad_norm"], recorded["gn"][step], {"rtol": 1e-4}),
            (update["learning_rate"], rate, {"rtol": 1e-6, "atol": 1e-12}),
        ):
            np.testing.assert_allclose(actual, expected, **close)
        checkpoint = directory / f"model.ckpt-{step + 1}"
        assert_recorded_weights(checkpoint, model, optimizer)


MODEL = "models/tiny/finetuning_models/sst_model"


@pytest.fixture
def head():
    """Return a head with random weights, and encoded vectors."""
    made = ClassificationHead("sst", 8, 3, seed=1, layers=2)
    random = np.random.default_rng(0)
    for variable in made.variables:
        variable.assign(random.normal(size=variable.shape))
    vectors = random.normal(size=[5, 8]).astype(np.float32)
    return made, types.SimpleNamespace(pooled_output=tf.constant(vectors))


def test_a_head_of_two_layers_has_gelu_between_dense_layers(head):
    """Compare with transformers' ElectraClassificationHead in float64."""
    made, encoded = head
    names = [variable.name.split(":")[0] for variable in made.variables]
    assert sorted(names) == [
        f"task_specific/sst/{layer}/{part}"
        for layer in ("dense", "hidden")
        for part in ("bias", "kernel")
    ]
    kernel, bias, last_kernel, last_bias = (
        getattr(layer, part).numpy().astype(float)
        for layer in (made.hidden, made.dense)
        for part in ("kernel", "bias")
    )
    inner = encoded.pooled_output.numpy() @ kernel + bias
    inner *= 0.5 * (1 + erf(inner / np.sqrt(2)))
    expected = inner @ last_kernel + last_bias
    actual = made.logits(encoded, {})["logits"]
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


def test_inputs_of_layers_have_separate_dropout(head, monkeypatch):
    made, encoded = head
    seeds = []

    def dropout(vectors, rate, seed):
        seeds.append((vectors.shape[-1], rate, tuple(seed.numpy())))
        return vectors

    monkeypatch.setattr(heads, "dropout", dropout)
    made.logits(encoded, {}, SeedStream(tf.constant([1, 2])))
    assert [seed[:2] for seed in seeds] == [(8, 0.1)] * 2
    assert seeds[0] != seeds[1]
    made.logits(encoded, {})
    assert len(seeds) == 2


@pytest.mark.slow
def test_a_run_trains_a_head_of_two_layers(
    config_of, run, weights_of, tmp_path
):
    """Check with learning rates that differ by layer, the default."""
    hparams = {"optimizer": "adamw", "classification_head_layers": 2}
    result, _ = run(config_of(**hparams))
    model = tmp_path / f"{MODEL}_1"
    assert weights_of(model)["task_specific/sst/hidden/kernel"].any()
    assert load_finetuned(str(model)).model.heads[0].hidden is not None
    # A later evaluation has equal results, and refuses a head of one layer.
    actual, _ = run(config_of(**hparams, do_train=False))
    assert actual["trials"][0]["results"] == result["trials"][0]["results"]
    one_layer = config_of(
        do_train=False,
        init_checkpoint=str(model),
        classification_head_layers=1,
    )
    refused("classification_head_layers to 2", run, one_layer)
    hparams["optimizer"] = "original"
    refused("optimizer: 'adamw' -> 'original'", run, config_of(**hparams))


CASES = """
cola_train cola_dev cola_test cola_train_len16_cased
sst_train sst_dev sst_test
mrpc_train mrpc_dev mrpc_test mrpc_train_len24_nodouble
sts_train sts_dev sts_test
qqp_train qqp_dev qqp_test
mnli_train mnli_dev mnli_test_matched mnli_test_mismatched mnli_diagnostic
qnli_train qnli_dev qnli_test qnli_train_len24
rte_train rte_dev rte_test
chunk_train_len32 chunk_train_len64 chunk_dev_len64 chunk_test_len64
multi_cola_sts_mrpc_train multi_cola_sts_mrpc_dev_sts_only
""".split()
QUESTIONS = """
squad_train_len128_stride32 squad_dev_len128_stride32 squad_test_len128_stride32
squad_train_len128_stride64 squad_dev_len128_stride64 squad_test_len128_stride64
squadv1_train_len128_stride64 squadv1_dev_len128_stride64
triviaqa_train_len128_stride64 triviaqa_dev_len128_stride64
newsqa_train_len128_stride128 newsqa_dev_len128_stride128
""".split()
# The repository has these cases, the reference data have the others.
IN_REPOSITORY = """
cola_train_len16_cased mrpc_train_len24_nodouble chunk_train_len32 qqp_train
sts_train
""".split()
GOLDEN = FIXTURES / "golden"


@pytest.fixture(scope="session")
def vocab_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    packed = GOLDEN / "pretrain_data" / "vocab.txt.gz"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return str(path)


def test_the_cases_are_all_recorded_ones(golden_dir):
    directory = golden_dir / "finetune_features"
    recorded = {path.stem for path in directory.glob("*.npz")}
    others = {name for name in recorded if name.startswith("qa_")}
    assert recorded - others == {*CASES, *QUESTIONS}


@pytest.mark.parametrize("ending", ["npz", "json"])
@pytest.mark.parametrize("case", IN_REPOSITORY)
def test_the_repository_s_cases_equal_the_reference(case, ending, golden_dir):
    name = f"finetune_features/{case}.{ending}"
    assert (GOLDEN / name).read_bytes() == (golden_dir / name).read_bytes()


@pytest.mark.parametrize("case", CASES + QUESTIONS)
def test_records_and_examples_equal_the_original_s(
    case, request, vocab_file, tmp_path
):
    root = GOLDEN
    if case not in IN_REPOSITORY:  # Skips without the reference data.
        root = request.getfixturevalue("golden_dir")
    directory = root / "finetune_features"
    info = read_json(directory / f"{case}.json")
    (tmp_path / "finetuning_data").symlink_to(directory / "raw")
    hparams = {"vocab_file": vocab_file, **info["hparams_passed"]}
    hparams["task_names"] = info["tasks"]
    config = FinetuningConfig.create("m", str(tmp_path), **hparams)
    tasks = get_tasks(config)
    preprocessor = Preprocessor(config, tasks)
    stream = random.Random(4321)
    if info["split"] == "train":
        batches, steps = preprocessor.prepare_train(stream)
    else:
        of_all = not case.endswith("_sts_only")
        chosen = [task for task in tasks if of_all or task.name == "sts"]
        batches, steps = preprocessor.prepare_predict(chosen, info["split"])
    recorded = np.load(directory / f"{case}.npz")
    # The order is that of the file.
    records = list(tf.data.TFRecordDataset(batches.path).as_numpy_iterator())
    parsed = decode_example(batches.specs, tf.constant(records))
    actual = {name: tensor.numpy() for name, tensor in parsed.items()}
    assert list(actual) == info["feature_order"]
    assert differences(actual, recorded) == []
    shapes, recorded_shapes = (
        {name: array.shape for name, array in arrays.items()}
        for arrays in (actual, recorded)
    )
    assert shapes == recorded_shapes
    floats, recorded_floats = (
        {name for name, x in arrays.items() if x.dtype == np.float32}
        for arrays in (actual, recorded)
    )
    assert floats >= recorded_floats
    assert steps == info["steps_returned"]
    assert batches.n_examples == info["metadata"]["n_examples"]
    # The count of random numbers drawn is the original's.
    assert stream.random() == info["random_random_after"]
    if expected := info.get("chunk_label_mapping"):
        assert [*tasks[0].label_mapping.items()] == [*expected.items()]
    if case in QUESTIONS or "test" not in case:
        _check_examples(case, info, tasks)
    if case in QUESTIONS and "train" not in case:
        _check_windows(info, *tasks)


def _check_examples(case, info, tasks):
    by_name = {task.name: task for task in tasks}
    recorded = info["examples_in_get_examples_order"]
    names = dict.fromkeys(example["task_name"] for example in recorded)
    examples = [
        example
        for name in names
        for example in by_name[name].get_examples(info["split"])
    ]
    for example, expected in zip(examples, recorded, strict=True):
        if "diagnostic" in case:
            del expected["label"]  # The original makes one up.
        for key, value in expected.items():
            if key in ("qas_id", "qid"):
                continue  # Predictions are filed under `key`.
            got = getattr(example, key)
            if isinstance(got, float):  # The original keeps the text.
                value = float(value)
            assert got == value, (example.eid, key)


def _check_windows(info, task):
    """Compare the windows that evaluation scores."""
    windows = []
    for example in task.get_examples(info["split"]):
        windows += task.windows(example)
    recorded = info["for_eval_features"]
    for window, features in zip(windows, recorded, strict=True):
        expected = _part(features, f"{task.name}_")
        assert window.eid == expected["eid"]
        assert window.tokens == expected["tokens"]
        indices = {str(i): n for i, n in enumerate(window.words) if n >= 0}
        assert indices == expected["token_to_orig_map"]
        context = {i: bool(window.max_context[int(i)]) for i in indices}
        assert context == expected["token_is_max_context"]
        assert window.max_context.sum() == sum(context.values())


# Counts of rows without headers. MRPC's training pairs count in both orders,
# QQP and MNLI are subsets, and nine answers of TriviaQA have wrong offsets.
COUNTS = {
    "cola": {"train": 8551, "dev": 1043},
    "sst": {"train": 67349, "dev": 872, "test": 1821},
    "mrpc": {"train": 2 * 3668, "dev": 408},
    "rte": {"train": 2490, "dev": 277},
    "qqp": {"train": 30668, "dev": 2496},
    "mnli": {"train": 9471, "dev": 1000},
    "chunk": {"train": 8936, "dev": 2012, "test": 2012},
    "squad": {"train": 8420, "dev": 3453},
    "squadv1": {"train": 87599, "dev": 10570},
    "triviaqa": {"train": 2374 - 9, "dev": 1947},
}


def slow_if(condition):
    return [pytest.mark.slow] if condition else []


@pytest.mark.parametrize(
    ("name", "split"),
    [
        pytest.param(name, split, marks=slow_if(count > 5000))
        for name, counts in COUNTS.items()
        for split, count in counts.items()
    ],
)
def test_every_row_is_usable(
    name, split, reference_dir, golden_dir, make_task, tmp_path
):
    source = reference_dir / "data" / "finetuning_data"
    if not source.is_dir():
        pytest.skip(f"no real data at {source}")
    (tmp_path / "finetuning_data").symlink_to(source)
    lost = 9 if (name, split) == ("triviaqa", "train") else 0
    task = make_task(
        name,
        vocab_file=str(golden_dir / "vocab.txt"),
        vocab_size=30522,
        max_seq_length=128,
        model_hparam_overrides={},
        strict_rows=not lost,
    )
    examples = task.get_examples(split)
    assert len(examples) == COUNTS[name][split]
    assert len(task.row_report.rows) == lost
    is_training = split == "train"
    features = [task.featurize(e, is_training) for e in examples[:100]]
    assert all(features)
