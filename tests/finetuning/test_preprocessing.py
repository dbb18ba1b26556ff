# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Features, batches, and the cache of records with its fingerprint."""

import dataclasses
import os
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data.feature_spec import (
    FeatureSpec,
    decode_example,
    encode_example,
    shared_feature_specs,
)
from electra_tf.finetuning import registry
from electra_tf.finetuning.batches import Batches
from electra_tf.finetuning.preprocessing import Preprocessor
from tests.conftest import differences, refused

HEADER = "index\tsentence1\tsentence2\tlabel\n"


def rows(count, start=0):
    return HEADER + "".join(
        f"{i}\t{'a ' * (1 + i % 7)}\tb\tentailment\n"
        for i in range(start, start + count)
    )


@pytest.fixture
def prepare(finetuning_config, write_task):
    """Return a function that prepares RTE: batches, steps, task."""

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


def test_other_settings_words_or_data_make_other_records(
    prepare, write_task, tiny_vocab, tmp_path, capsys
):
    tokens = open(tiny_vocab, encoding="utf-8").read().splitlines()
    tokens[150], tokens[151] = tokens[151], tokens[150]
    other = tmp_path / "vocab.txt"
    other.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    settings = (
        {},
        {"max_seq_length": 24},
        {"train_batch_size": 5},
        {"do_lower_case": False},
        {"strip_accents": False},
        {"double_unordered": False},
        {"seed": 3},
        {"vocab_file": str(other)},
    )
    paths = {prepare(**hparams)[0].path for hparams in settings}
    write_task("rte", "train.tsv", rows(10, start=1))
    paths.add(prepare()[0].path)
    assert not was_reused(capsys)
    assert len(paths) == len(settings) + 1


@pytest.mark.parametrize("suffix", [".tfrecord", ".metadata"])
@pytest.mark.parametrize("share", [0, 0.2, 0.4, 0.6, 0.8, 0.999])
def test_a_changed_byte_of_cached_records_is_named_and_repaired(
    prepare, capsys, suffix, share
):
    batches, *_ = prepare()
    path = pathlib.Path(batches.path).with_suffix(suffix)
    right = path.read_bytes()
    capsys.readouterr()
    damaged = bytearray(right)
    damaged[int(share * len(right))] ^= 1
    path.write_bytes(damaged)
    prepare()
    assert f"WARNING: {path}: the checksum differs" in capsys.readouterr().out
    assert path.read_bytes() == right


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


def test_bad_rows_of_cached_records_are_reported_again(
    prepare, write_task, capsys
):
    bad = rows(3) + "only\n" + f"9\t{'a ' * 99}\tb\tentailment\n"
    write_task("rte", "train.tsv", bad)
    lines, counts, losses = [], [], []
    for _ in range(2):
        *_, task = prepare()
        out = capsys.readouterr().out.splitlines()
        lines.append([line for line in out if line.startswith("rte: ")])
        counts.append(len(task.row_report.rows))
        losses.append(task.row_report.losses)
    assert counts == [1, 1]
    assert losses == [{"examples cut to max_seq_length": 1}] * 2
    assert lines[0] == lines[1] and "1 bad row, 1 skipped" in lines[0][0]
    refused("strict_rows", prepare, strict_rows=True)


def test_letters_that_the_casing_changes_are_reported_each_time(
    prepare, write_task, capsys
):
    hindi = "".join(f"{i}\tकी में\tb\tentailment\n" for i in range(10))
    write_task("rte", "train.tsv", rows(3) + hindi)
    prepare()
    out = capsys.readouterr().out
    pattern = "WARNING: Stripping accents changes 40.0% of the letters.*"
    (warning,) = re.findall(pattern, out)
    assert "was pre-trained with --strip_accents=false" in out
    prepare()
    assert re.findall(pattern, capsys.readouterr().out) == [warning]
    prepare(strip_accents=False)
    assert "Stripping" not in capsys.readouterr().out
    refused("of Devanagari .* by --strict", prepare, strict=True)


@pytest.mark.parametrize("size", [3, 4, 8, 32])
def test_evaluation_loses_no_row_at_any_batch_size(prepare, size):
    settings = {"predict_batch_size": 8, "group_eval_by_length": False}
    batches, steps, _ = prepare("dev", **settings)
    assert steps == 3
    chosen = dataclasses.replace(batches, batch_size=size)
    actual = list(chosen().as_numpy_iterator())
    ids, tasks = (
        np.concatenate([batch[name] for batch in actual]).tolist()
        for name in ("rte_eid", "task_id")
    )
    lengths = [sum(row) for batch in actual for row in batch["input_mask"]]
    assert ids[:10] == list(range(10))
    # Padding rows belong to no task.
    assert tasks == [0] * 10 + [1] * (len(tasks) - 10)
    assert all(lengths[:10]) and not any(lengths[10:])


LENGTH = 64
COUNT = 48
OPTIONS = {"is_int_feature": False, "per_token": True}
LABELS = FeatureSpec("x_labels_mask", [LENGTH], **OPTIONS)


def write(path, specs, rows):
    with tf.io.TFRecordWriter(path) as writer:
        for row in rows:
            writer.write(encode_example(specs, row).SerializeToString())


@pytest.fixture(scope="module")
def lengths():
    return np.random.RandomState(5).randint(1, LENGTH + 1, COUNT)


@pytest.fixture(scope="module")
def batches(tmp_path_factory, lengths):
    path = str(tmp_path_factory.mktemp("records") / "x.tfrecord")
    specs = [
        *shared_feature_specs(LENGTH),
        FeatureSpec("x_eid", []),
        FeatureSpec("x_many", [LENGTH]),
        LABELS,
    ]

    def row(number, length):
        real = [1] * length + [0] * (LENGTH - length)
        return {
            "input_ids": [number + 1 if r else 0 for r in real],
            "input_mask": real,
            "x_eid": number,
            "x_many": [number] * LENGTH,
            "x_labels_mask": [float(r) for r in real],
        }

    write(path, specs, [row(*item) for item in enumerate(lengths)])
    return Batches(path, specs, COUNT, 8, LENGTH, training=True, seed=3)


def take(dataset, count):
    return list(dataset.take(count).as_numpy_iterator())


def ids(batch):
    return batch["x_eid"].tolist()


def all_ids(batches):
    return [number for batch in batches for number in ids(batch)]


@pytest.mark.parametrize("multiple", [1, 3])
def test_trimmed_batches_lose_only_their_padding(batches, lengths, multiple):
    # Batches of two rows differ in width in any order.
    batches = dataclasses.replace(batches, batch_size=2, multiple=multiple)
    whole = take(dataclasses.replace(batches, trim=False)(), 24)
    trimmed = take(batches(), 24)
    assert [ids(batch) for batch in trimmed] == [ids(batch) for batch in whole]
    longest = [max(lengths[i] for i in ids(batch)) for batch in trimmed]
    widths = [batch["input_ids"].shape[1] for batch in trimmed]
    assert widths == [min(LENGTH, n + -n % multiple) for n in longest]
    assert len(set(widths)) > 1
    names = ("input_ids", "input_mask", "x_labels_mask")
    padded, expected = {}, {}
    for index, (batch, full) in enumerate(zip(trimmed, whole, strict=True)):
        padding = [[0, 0], [0, LENGTH - widths[index]]]
        for name in names:
            padded[name, index] = np.pad(batch[name], padding)
            expected[name, index] = full[name]
    assert differences(padded, expected) == []
    assert {batch["x_many"].shape for batch in trimmed} == {(2, LENGTH)}


def test_labels_beyond_the_last_token_are_kept(tmp_path):
    path = str(tmp_path / "y.tfrecord")
    specs = [*shared_feature_specs(LENGTH), LABELS]
    row = {
        "input_mask": [1] * 3 + [0] * (LENGTH - 3),
        "x_labels_mask": [1.0] * 20 + [0.0] * (LENGTH - 20),
    }
    write(path, specs, [row])
    (batch,) = take(Batches(path, specs, 1, 1, LENGTH, training=False)(), 9)
    assert batch["x_labels_mask"].shape == (1, 20)
    assert batch["x_labels_mask"].sum() == 20


@pytest.mark.parametrize("by_length", [False, True])
def test_each_epoch_of_the_whole_set_has_every_example_once(batches, by_length):
    order = {"shuffle_whole_set": not by_length, "by_length": by_length}
    actual = take(dataclasses.replace(batches, **order)(), 12)
    widths = [b["input_ids"].shape[1] for b in actual]
    assert (np.mean(widths) < 0.8 * LENGTH) == by_length
    epochs = [all_ids(actual[:6]), all_ids(actual[6:])]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(COUNT))
    assert epochs[0] != epochs[1]


def test_evaluation_keeps_the_order_or_sorts_by_length(batches, lengths):
    plain = dataclasses.replace(batches, training=False)
    assert not plain().options().autotune.enabled
    assert all_ids(take(plain(), 99)) == list(range(COUNT))
    actual = take(dataclasses.replace(plain, by_length=True)(), 99)
    assert sorted(all_ids(actual)) == list(range(COUNT))
    widths = [b["input_ids"].shape[1] for b in actual]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    "changes",
    [{}, {"shuffle_whole_set": True}, {"by_length": True}],
    ids=["buffer", "whole set", "by length"],
)
def test_an_interrupted_iteration_goes_on(batches, tmp_path, changes):
    chosen = dataclasses.replace(batches, **changes)
    expected = [ids(b) for b in take(chosen(), 15)]
    iterator = iter(chosen())
    for _ in range(7):
        next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "c"))
    again = iter(chosen())
    tf.train.Checkpoint(iterator=again).restore(saved)
    actual = [next(again)["x_eid"].numpy().tolist() for _ in range(8)]
    assert actual == expected[7:]


SPECS = [
    FeatureSpec("whole", [3]),
    FeatureSpec("number", [], is_int_feature=False),
    FeatureSpec("absent", [2]),
]


@pytest.mark.parametrize(
    "number", [2, 2.5, np.float32(2.5), np.array(2.5), [2.5]]
)
def test_values_of_any_kind_are_read_as_written(number):
    values = {"whole": [1, True, np.int64(7)], "number": number}
    record = encode_example(SPECS, values).SerializeToString()
    actual = decode_example(SPECS, tf.constant(record))
    assert list(actual) == ["whole", "number", "absent"]
    assert actual["whole"].numpy().tolist() == [1, 1, 7]
    assert actual["whole"].dtype == tf.int32
    assert actual["number"].numpy() == np.float32(np.ravel(number)[0])
    assert actual["absent"].numpy().tolist() == [0, 0]
    nothing = encode_example(SPECS, {}).SerializeToString()
    actual = decode_example(SPECS, tf.constant([record, nothing]))
    assert actual["whole"].numpy().tolist() == [[1, 1, 7], [0, 0, 0]]
    assert actual["number"].numpy()[1] == 0.0
    with pytest.raises(ValueError, match="Unknown feature other"):
        encode_example(SPECS, {"other": 1})
    with pytest.raises(ValueError, match="whole has 2 values"):
        encode_example(SPECS, {"whole": [1, 2]})
