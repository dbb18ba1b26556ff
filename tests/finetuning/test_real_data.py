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
}


@pytest.fixture
def real_task(reference_dir, make_task, tmp_path):
    source = reference_dir / "data" / "finetuning_data"
    if not source.is_dir():
        pytest.skip(f"no real data at {source}")
    (tmp_path / "finetuning_data").symlink_to(source)
    return make_task


@pytest.mark.parametrize(("name", "split"), list(COUNTS))
def test_every_row_is_usable(name, split, real_task):
    task = real_task(name, strict_rows=True)
    assert len(task.get_examples(split)) == COUNTS[name, split]
    assert task.row_report.rows == []
