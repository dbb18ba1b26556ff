# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records equal the original's, value by value; the real files load whole."""

import gzip
import json
import pathlib
import random

import numpy as np
import pytest

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning import registry
from electra_tf.finetuning.preprocessing import Preprocessor

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
# These are in the repository; the others are read from the reference data.
KEPT = """
cola_train_len16_cased mrpc_train_len24_nodouble chunk_train_len32 qqp_train
sts_train
""".split()
FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "golden"


@pytest.fixture(scope="session")
def vocab_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    packed = FIXTURES / "pretrain_data" / "vocab.txt.gz"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return str(path)


@pytest.fixture
def find(request):
    """Returns the directory that holds a case; skips without it."""

    def directory(case):
        if case in KEPT:
            return FIXTURES / "finetune_features"
        return request.getfixturevalue("golden_dir") / "finetune_features"

    return directory


@pytest.fixture
def prepare(find, vocab_file, tmp_path):
    """Makes one recorded case's tasks and records."""

    def make(case, **hparams):
        directory = find(case)
        info = json.loads((directory / f"{case}.json").read_text())
        if not (tmp_path / "finetuning_data").exists():
            (tmp_path / "finetuning_data").symlink_to(directory / "raw")
        settings = {"vocab_file": vocab_file, **info["hparams_passed"]}
        settings |= hparams
        config = FinetuningConfig.create(
            "m", str(tmp_path), task_names=info["tasks"], **settings
        )
        tasks = registry.get_tasks(config)
        preprocessor = Preprocessor(config, tasks)
        stream = random.Random(4321)
        if info["split"] == "train":
            batches, steps = preprocessor.prepare_train(stream)
        else:
            chosen = tasks
            if case.endswith("_sts_only"):
                chosen = [task for task in tasks if task.name == "sts"]
            batches, steps = preprocessor.prepare_predict(chosen, info["split"])
        return info, tasks, batches, steps, stream

    return make


def in_file_order(batches):
    """Reads all records as they stand in the file."""
    import tensorflow as tf

    from electra_tf.data.feature_spec import decode_example

    records = list(tf.data.TFRecordDataset(batches.path).as_numpy_iterator())
    parsed = decode_example(batches.specs, tf.constant(records))
    return {name: tensor.numpy() for name, tensor in parsed.items()}


@pytest.mark.parametrize("case", KEPT)
def test_the_kept_cases_are_the_reference_ones(case, golden_dir):
    directory = golden_dir / "finetune_features"
    recorded = {path.stem for path in directory.glob("*.npz")}
    others = {name for name in recorded if name.startswith("qa_")}
    assert recorded - others == {*CASES, *QUESTIONS}
    for name in (f"{case}.npz", f"{case}.json"):
        kept = FIXTURES / "finetune_features" / name
        assert kept.read_bytes() == (directory / name).read_bytes()


@pytest.mark.parametrize("case", CASES + QUESTIONS)
def test_records_and_examples_equal_the_originals(case, prepare, find):
    info, tasks, batches, steps, stream = prepare(case)
    recorded = np.load(find(case) / f"{case}.npz")
    found = in_file_order(batches)
    assert list(found) == info["feature_order"]
    assert set(recorded.files) == set(found)
    for name, wanted in recorded.items():
        np.testing.assert_array_equal(
            found[name], wanted, err_msg=name, strict=wanted.dtype == np.float32
        )
        assert found[name].shape == wanted.shape, name
    assert steps == info["steps_returned"]
    assert batches.n_examples == info["metadata"]["n_examples"]
    # As many random numbers were drawn as by the original.
    assert stream.random() == info["random_random_after"]
    if wanted := info.get("chunk_label_mapping"):
        assert [*tasks[0].label_mapping.items()] == [*wanted.items()]
    if case in QUESTIONS or "test" not in case:
        _check_examples(case, info, tasks)
    if case in QUESTIONS and "train" not in case:
        _check_windows(info, *tasks)


def _check_examples(case, info, tasks):
    by_name = {task.name: task for task in tasks}
    wanted = info["examples_in_get_examples_order"]
    names = dict.fromkeys(example["task_name"] for example in wanted)
    found = [
        e for name in names for e in by_name[name].get_examples(info["split"])
    ]
    assert len(found) == len(wanted)
    for example, expected in zip(found, wanted, strict=True):
        for key, value in expected.items():
            if key == "label" and "diagnostic" in case:
                continue  # the original makes one up
            got = getattr(example, key)
            if isinstance(got, float):  # where the original keeps the text
                value = float(value)
            assert got == value, (example.eid, key)


def _check_windows(info, task):
    """Windows for scoring."""
    windows = []
    for example in task.get_examples(info["split"]):
        windows += task.windows(example)
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
    info, (task,), *_ = prepare(f"{case}_train_len128_stride64")
    assert "23 examples created, 2 failures" in info["log"]
    rows = task.row_report.rows
    assert len(rows) == 2
    for row in rows:
        assert row.path.endswith(f"{case}/train.json")
        assert row.line > 0 and row.skipped
    assert "'100\\xa0years'" in rows[0].expected
    assert "plain spaces for U+00A0" in rows[0].expected
    assert "within the passage" in rows[1].expected


# Rows without headers; MRPC's training pairs count in both orders. QQP and
# MNLI are subsets.
COUNTS = {
    ("cola", "train"): 8551,
    ("cola", "dev"): 1043,
    ("sst", "train"): 67349,
    ("sst", "dev"): 872,
    ("sst", "test"): 1821,
    ("mrpc", "train"): 2 * 3668,
    ("mrpc", "dev"): 408,
    ("rte", "train"): 2490,
    ("rte", "dev"): 277,
    ("qqp", "train"): 30668,
    ("qqp", "dev"): 2496,
    ("mnli", "train"): 9471,
    ("mnli", "dev"): 1000,
    ("chunk", "train"): 8936,
    ("chunk", "dev"): 2012,
    ("chunk", "test"): 2012,
    ("squad", "train"): 8420,
    ("squad", "dev"): 3453,
    ("squadv1", "train"): 87599,
    ("squadv1", "dev"): 10570,
    # Nine answers are not where their offsets say.
    ("triviaqa", "train"): 2374 - 9,
    ("triviaqa", "dev"): 1947,
}


@pytest.fixture
def real_task(reference_dir, golden_dir, make_task, tmp_path):
    source = reference_dir / "data" / "finetuning_data"
    if not source.is_dir():
        pytest.skip(f"no real data at {source}")
    (tmp_path / "finetuning_data").symlink_to(source)
    whole = {
        "vocab_file": str(golden_dir / "vocab.txt"),
        "vocab_size": 30522,
        "max_seq_length": 128,
        "model_hparam_overrides": {},
    }
    return lambda name, **hparams: make_task(name, **whole, **hparams)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (count > 5000))
        for case, count in COUNTS.items()
    ],
)
def test_every_row_is_usable(name, split, real_task):
    lost = 9 * ((name, split) == ("triviaqa", "train"))
    task = real_task(name, strict_rows=not lost)
    examples = task.get_examples(split)
    assert len(examples) == COUNTS[name, split]
    assert len(task.row_report.rows) == lost
    for example in examples[:100]:
        assert task.featurize(example, split == "train")
