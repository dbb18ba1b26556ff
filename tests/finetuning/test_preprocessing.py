# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cache of records and its fingerprint; nothing lost at the end."""

import dataclasses
import os

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.finetuning import registry
from electra_tf.finetuning.preprocessing import Preprocessor

HEADER = "index\tsentence1\tsentence2\tlabel\n"


def rows(count, start=0):
    return HEADER + "".join(
        f"{i}\t{'a ' * (1 + i % 7)}\tb\tentailment\n"
        for i in range(start, start + count)
    )


@pytest.fixture
def prepare(finetuning_config, write_task):
    """Prepares RTE; says whether records were written or used again."""

    def make(split="train", **hparams):
        config = finetuning_config("rte", **hparams)
        tasks = registry.get_tasks(config)
        preprocessor = Preprocessor(config, tasks)
        if split == "train":
            return (*preprocessor.prepare_train(), tasks[0])
        return (*preprocessor.prepare_predict(tasks, split), tasks[0])

    write_task("rte", "train.tsv", rows(10))
    write_task("rte", "dev.tsv", rows(10))
    return make


def was_reused(capsys):
    return "of an earlier run" in capsys.readouterr().out


def test_the_same_data_and_settings_are_prepared_once(prepare, capsys):
    first, steps, _ = prepare(log_examples=True)
    shown = capsys.readouterr().out
    assert "of an earlier run" not in shown
    assert "tokens: [CLS]" in shown and "rte_label_ids: 0" in shown
    second, again, _ = prepare()
    assert was_reused(capsys)
    assert (first.path, steps) == (second.path, again)
    # 10 examples, 2 padding rows, batches of 4, 10 epochs.
    assert (first.n_examples, steps) == (12, 30)


@pytest.mark.parametrize(
    "hparams",
    [
        {"max_seq_length": 24},
        {"train_batch_size": 5},
        {"do_lower_case": False},
        {"strip_accents": False},
        {"double_unordered": False},
        {"seed": 3},
    ],
)
def test_other_settings_make_other_records(hparams, prepare, capsys):
    first, *_ = prepare()
    second, *_ = prepare(**hparams)
    assert not was_reused(capsys)
    assert first.path != second.path


def test_other_data_or_words_make_other_records(
    prepare, write_task, tiny_vocab, tmp_path, capsys
):
    first, *_ = prepare()
    words = open(tiny_vocab, encoding="utf-8").read().splitlines()
    words[150], words[151] = words[151], words[150]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(words) + "\n", encoding="utf-8")
    second, *_ = prepare(vocab_file=str(path))
    write_task("rte", "train.tsv", rows(10, start=1))
    third, *_ = prepare()
    assert not was_reused(capsys)
    assert len({first.path, second.path, third.path}) == 3


def test_truncated_or_unwanted_records_are_written_again(prepare, capsys):
    batches, *_ = prepare()
    prepare(use_tfrecords_if_existing=False)
    assert not was_reused(capsys)
    size = os.path.getsize(batches.path)
    with open(batches.path, "r+b") as file:
        file.truncate(size - 3)
    prepare()
    assert not was_reused(capsys)
    assert os.path.getsize(batches.path) == size


def test_what_was_wrong_with_the_data_is_told_again(
    prepare, write_task, capsys
):
    bad = rows(3) + "only\n" + f"9\t{'a ' * 99}\tb\tentailment\n"
    write_task("rte", "train.tsv", bad)
    told = []
    for _ in range(2):
        *_, task = prepare()
        out = capsys.readouterr().out.splitlines()
        told.append([line for line in out if line.startswith("rte: ")])
        assert len(task.row_report.rows) == 1
        assert task.row_report.losses == {"examples cut to max_seq_length": 1}
    assert told[0] == told[1]
    assert "1 bad row, 1 skipped" in told[0][0]
    with pytest.raises(UserError, match="strict_rows"):
        prepare(strict_rows=True)


@pytest.mark.parametrize("size", [3, 4, 8, 32])
def test_evaluation_loses_nothing_whatever_the_batch_size(prepare, size):
    batches, steps, _ = prepare(
        "dev", predict_batch_size=8, group_eval_by_length=False
    )
    assert steps == 3
    chosen = dataclasses.replace(batches, batch_size=size)
    found = list(chosen().as_numpy_iterator())
    ids, tasks, lengths = (
        np.concatenate([value(batch) for batch in found]).tolist()
        for value in (
            lambda batch: batch["rte_eid"],
            lambda batch: batch["task_id"],
            lambda batch: batch["input_mask"].sum(1),
        )
    )
    assert ids[:10] == list(range(10))
    # Padding rows belong to no task.
    assert tasks == [0] * 10 + [1] * (len(tasks) - 10)
    assert all(lengths[:10]) and not any(lengths[10:])
