# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0

"""Documents become windows of labeled sentences; a run scores summaries."""

import json

import pytest

from electra_tf.metrics.summaries import BASELINES, ROUGE, find_oracle
from tests.conftest import refused

pytest.importorskip("rouge_score", reason="no extra rouge")
ARTICLE = (
    "The king of the north is in the city. That was for her."
    " The king was in the north. And it is for the city?"
)
SUMMARY = "the king was in the north\nit is for the city"
ROW = {"id": "a", "article": ARTICLE, "highlights": SUMMARY}


@pytest.fixture
def write_rows(write_task):
    """Return a function that writes rows of a split as JSON Lines."""

    def write(split, *rows):
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        write_task("summarization", f"{split}.jsonl", text)

    return write


def test_a_description_names_columns_and_the_number_of_sentences(describe):
    summarization = {"type": "summarization", "sentences": 1}
    columns = {"text_a": "body", "label": "gist"}
    text = 'body,gist\n"A b. C d.",a\n,b\n'
    rows = {"train.csv": text, "dev.csv": text}
    task = describe({**summarization, "columns": columns}, rows)
    (example,) = task.get_examples("train")
    assert example.sentences == ("A b.", "C d.")
    assert "train.csv:3: found body ''" in str(task.row_report.rows[0])
    rows["train.csv"] += "E f.,\n"
    splits = {s: {"columns": {"label": "gist"}} for s in ("train", "dev")}
    only = {"columns": {"text_a": "body"}, "splits": splits}
    task = describe({**summarization, **only}, rows)
    assert len(task.get_examples("train")) == 1
    assert "found gist ''" in str(task.row_report.rows[1])
    refused("columns.text_a: missing", describe, summarization, rows)
    none = {**summarization, "columns": columns, "sentences": 0}
    refused("sentences: must be at least 1, got 0", describe, none, rows)
    task = describe({**summarization, "columns": {"text_a": 0}}, rows)
    refused("names no column of the labels", task.get_examples, "train")


@pytest.mark.parametrize("length", [5, 12, 24, 64])
def test_windows_hold_each_sentence_once(make_task, write_rows, length):
    write_rows("train", ROW)
    task = make_task("summarization", max_seq_length=length)
    (example,) = task.get_examples("train")
    assert find_oracle(example.sentences, example.summary, 3) == (2, 3)
    rows = task.featurize(example, True)
    assert (len(rows) > 1) == (length < 64)
    seen, labels, n_cut = [], [], 0
    for row in rows:
        count = int(sum(row["summarization_labels_mask"]))
        numbers = row["summarization_numbers"]
        assert not any(numbers[count:])
        starts, ids = row["summarization_labeled_positions"], row["input_ids"]
        assert len(ids) == len(starts) == len(numbers) == length
        end = sum(row["input_mask"]) - 1
        special = task.tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
        assert [ids[0], ids[end]] == special
        ends = [*starts[1:count], end]
        for number, first, last in zip(numbers, starts, ends, strict=False):
            whole = task.tokenizer.encode(example.sentences[number - 1])
            assert ids[first:last] == [*whole][: length - 2]
            n_cut += last - first < len(whole)
        seen += numbers[:count]
        labels += row["summarization_labels"][:count]
        assert row["summarization_eid"] == 0
    assert seen == [1, 2, 3, 4]
    assert labels == [0, 0, 1, 1]
    cut = task.row_report.losses["sentences cut to max_seq_length"]
    assert cut == n_cut and (cut > 0) == (length < 24)


@pytest.mark.parametrize(
    ("text", "gist", "label"),
    [
        ("Река течёт. Дети играют в саду. Тепло.", "Дети играют в саду.", 1),
        ("今天很热。北京是首都。他读书。", "他读书。", 2),
        ("राम गया। आज गर्मी है। सीता आई।", "राम गया।", 0),
    ],
)
def test_sentences_of_any_script_become_labels(describe, text, gist, label):
    rows = json.dumps({"body": text, "gist": gist}) + "\n"
    description = {
        "type": "summarization",
        "sentences": 1,
        "columns": {"text_a": "body", "label": "gist"},
    }
    task = describe(description, {"train.jsonl": rows, "dev.jsonl": rows})
    (example,) = task.get_examples("train")
    (features,) = task.featurize(example, True)
    labels = features["mine_labels"][: len(example.sentences)]
    assert labels == [int(i == label) for i in range(3)]


@pytest.mark.slow
def test_a_run_scores_summaries(finetuning_config, write_rows, run, tmp_path):
    write_rows("train", ROW, ROW, ROW, ROW)
    write_rows("dev", ROW, ROW)
    write_rows("test", {"article": ROW["article"], "highlights": SUMMARY})
    config = finetuning_config(
        "summarization",
        num_train_epochs=40.0,
        learning_rate=1e-2,
        max_seq_length=16,
        train_batch_size=2,
        write_test_outputs=True,
    )
    result, _ = run(config)
    (trial,) = result["trials"]
    figures = trial["results"]["summarization"]
    assert list(figures) == [*ROUGE, "loss"]
    details = trial["details"]["summarization"]
    means = [f"{b}_{r}" for b in BASELINES for r in ROUGE]
    assert [*details] == [*means, "any_script"]
    assert details["oracle_rouge1"] > details["lead_rouge1"]
    # Three of four sentences are chosen, the oracle's two among them.
    with open(config.qa_file("summarization", "summaries")) as file:
        rows = json.load(file)
    assert len(rows) == 2 and {2, 3} < {*rows[0]["model"]["sentences"]}
    rouge = rows[0]["model"]["rouge"]
    assert figures["rouge2"] == pytest.approx(rouge["rouge2"])
    with open(config.test_predictions("summarization", "test", 1)) as file:
        assert len(json.load(file)["0"].split("\n")) == 3
