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


@pytest.mark.parametrize(("name", "split"), list(COUNTS))
def test_every_row_is_usable(name, split, real_task):
    task = real_task(name, strict_rows=True)
    assert len(task.get_examples(split)) == COUNTS[name, split]
    assert task.row_report.rows == []


# Questions in the files; nine training answers of triviaqa are not where
# their offsets say.
QUESTION_COUNTS = {
    ("squad", "train"): 8420,
    ("squad", "dev"): 3453,
    ("squadv1", "train"): 87599,
    ("squadv1", "dev"): 10570,
    ("triviaqa", "train"): 2374 - 9,
    ("triviaqa", "dev"): 1947,
}
SLOW = ("squadv1", "train")


def check_features(task, split):
    """Some hundred questions make sound windows."""
    name = task.name
    to_tokens = task.tokenizer.convert_ids_to_tokens

    def text_of(ids):
        return "".join(to_tokens(ids)).replace("##", "")

    for example in task.get_examples(split)[:300]:
        windows = task.featurize(example, split == "train")
        assert windows
        for window in windows:
            length = sum(window["input_mask"])
            assert length <= 128 == len(window["input_ids"])
            if split == "train" and window[f"{name}_start_positions"]:
                start = window[f"{name}_start_positions"]
                end = window[f"{name}_end_positions"]
                answer = task.tokenizer.encode(example.orig_answer_text)
                found = text_of(window["input_ids"][start : end + 1])
                assert text_of(answer) in found


@pytest.mark.parametrize(
    ("name", "split"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case == SLOW))
        for case in QUESTION_COUNTS
    ],
)
def test_the_real_questions_are_usable(name, split, real_task):
    task = real_task(name)
    assert len(task.get_examples(split)) == QUESTION_COUNTS[name, split]
    lost = (name, split) == ("triviaqa", "train")
    assert len(task.row_report.rows) == 9 * lost
    check_features(task, split)
