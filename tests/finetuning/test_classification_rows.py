# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bad rows of sentence tasks: reported, counted, skipped; and GLUE's splits."""

import hypothesis
import hypothesis.strategies as st
import pytest

from configure.errors import UserError
from electra_tf.finetuning.registry import GLUE_TASKS

HEADER = "index\tsentence1\tsentence2\tlabel\n"


GOOD = b"0\ta\tb\tentailment\n"


@pytest.mark.parametrize(
    ("bad", "found", "expected"),
    [
        (b"1\tonly\n", "['1', 'only']", "at least 4 columns"),
        (
            b"1\ta\tb\tperhaps\n",
            "label 'perhaps'",
            "one of: entailment, not_entailment",
        ),
        (b"1\t\xff\tb\tentailment\n", "xff", "text in UTF-8"),
        (b"\n", "an empty line", "at least 4 columns"),
    ],
)
def test_a_bad_row_leaves_a_gap_in_the_ids_or_stops_strictly(
    make_task, write_task, bad, found, expected
):
    path = write_task("rte", "train.tsv", HEADER.encode() + GOOD + bad + GOOD)
    task = make_task("rte")
    assert [e.eid for e in task.get_examples("train")] == [0, 2]
    (row,) = task.row_report.rows
    assert (row.path, row.line, row.skipped) == (str(path), 3, True)
    assert row.expected.startswith(expected)
    assert found in row.found
    with pytest.raises(UserError, match=r"train\.tsv:3.*" + expected):
        make_task("rte", strict_rows=True).get_examples("train")


@pytest.mark.parametrize("label", ["5.1", "-0.1", "high", "nan", ""])
def test_a_number_out_of_range_costs_a_row(make_task, write_task, label):
    rows = f"0\tx\ta\tb\t2.5\n1\tx\ta\tb\t{label}\n"
    write_task("sts", "dev.tsv", "i\tgenre\ts1\ts2\tscore\n" + rows)
    task = make_task("sts")
    assert [e.label for e in task.get_examples("dev")] == [2.5]
    assert task.row_report.rows[0].expected == "a number from 0 to 5"


def test_an_empty_text_is_reported_and_kept_as_in_the_original(
    make_task, write_task
):
    write_task("rte", "dev.tsv", HEADER + "0\t \t\tentailment\n")
    task = make_task("rte")
    (example,) = task.get_examples("dev")
    assert task.row_report.rows[0].skipped is False
    with pytest.raises(UserError, match=r"dev\.tsv:2.*a text"):
        make_task("rte", strict_rows=True).get_examples("dev")
    features = task.featurize(example, False)
    assert sum(features["input_mask"]) == 2
    assert sum(features["segment_ids"]) == 0


def test_a_missing_or_empty_split_is_an_error_that_names_the_file(
    make_task, write_task
):
    task = make_task("rte")
    assert not task.has_split("train")
    with pytest.raises(UserError, match=r"rte/train\.tsv: no such file"):
        task.get_examples("train")
    with pytest.raises(UserError, match=r"no holdout split .it has: train"):
        task.get_examples("holdout")
    for text in ("", HEADER, HEADER + "\n\n"):
        write_task("rte", "train.tsv", text)
        with pytest.raises(UserError, match=r"no usable example.*train\.tsv"):
            make_task("rte").get_examples("train")


def test_both_orders_are_trained_on_where_order_means_nothing(
    make_task, write_task
):
    rows = "1\t1\t2\tfirst\tsecond\n0\t3\t4\tthird\tfourth\n"
    for split in ("train", "dev"):
        write_task("mrpc", f"{split}.tsv", "Quality\t1\t2\tA\tB\n" + rows)
    task = make_task("mrpc")
    pairs = [(e.eid, e.text_a, e.text_b) for e in task.get_examples("train")]
    assert pairs[2:] == [(2, "second", "first"), (3, "fourth", "third")]
    assert len(task.get_examples("dev")) == 2
    single = make_task("mrpc", double_unordered=False)
    assert len(single.get_examples("train")) == 2
    doubled = {n for n, spec in GLUE_TASKS.items() if spec.both_orders}
    assert doubled == {"mrpc", "sts"}


def test_mnli_has_two_dev_sets_and_a_diagnostic_one(make_task, write_task):
    before = "\t" * 8
    for split in ("matched", "mismatched"):
        text = f"{before}s1\ts2\tgold\n{before}{split}\tb\tneutral\n"
        write_task("mnli", f"dev_{split}.tsv", text)
    write_task("mnli", "diagnostic.tsv", "index\ts1\ts2\n0\ta\tb\n")
    task = make_task("mnli")
    assert task.get_dev_splits() == ["dev", "dev_mismatched"]
    tests = ["test_matched", "test_mismatched", "diagnostic"]
    assert task.get_test_splits() == tests
    assert task.get_examples("dev")[0].text_a == "matched"
    assert task.get_examples("dev_mismatched")[0].text_a == "mismatched"
    (example,) = task.get_examples("diagnostic")
    assert example.label is None
    assert task.featurize(example, False)["mnli_label_ids"] == 0
    assert task.has_split("dev") and not task.has_split("test_matched")


def test_a_summary_shows_the_first_rows_and_counts_the_rest(
    make_task, write_task
):
    rows = "0\ta\tb\tentailment\n" + "bad\n" * 9
    path = write_task("rte", "dev.tsv", HEADER + rows)
    task = make_task("rte")
    task.get_examples("dev")
    task.get_examples("dev")  # counted once
    lines = task.row_report.summary("rte")
    assert lines[0] == f"rte: {path}: 9 bad rows, 9 skipped, 0 kept"
    assert "dev.tsv:3" in lines[1]
    assert lines[-1] == "rte:   ... and 4 more"


@hypothesis.settings(
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_bad_rows(make_task, write_task, noise):
    write_task("rte", "dev.tsv", HEADER.encode() + GOOD + noise)
    task = make_task("rte")
    examples = task.get_examples("dev")
    lines = noise.count(b"\n") + (not noise.endswith(b"\n")) * bool(noise)
    skipped = [row for row in task.row_report.rows if row.skipped]
    assert len(examples) + len(skipped) == 1 + lines
