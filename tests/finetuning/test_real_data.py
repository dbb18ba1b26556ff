# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The real files load whole: counts as in their sources."""

import pytest

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
SLOW = ("squadv1", "train")


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
        pytest.param(*case, marks=[pytest.mark.slow] * (case == SLOW))
        for case in COUNTS
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
