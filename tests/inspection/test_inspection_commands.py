# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""inspect_tokens, fill_mask and score, as they are called."""

import io
import json
import os
import sys

import pytest

from configure.errors import UserError
from electra_tf.commands import fill_mask, inspect_tokens, score


@pytest.fixture
def run(capsys, folders):
    """Runs a command in this process; returns what it printed."""

    def call(command, kind, *arguments):
        arguments = ["", f"--model={folders(kind)}", *map(str, arguments)]
        assert command.main(command.parse_flags(arguments)) == 0
        return capsys.readouterr()

    return call


def test_inspect_tokens_prints_draws_and_writes(run, tmp_path):
    page, records = tmp_path / "page.html", tmp_path / "records.jsonl"
    printed = run(
        inspect_tokens,
        "electra",
        "--text=the cat was it",
        "--text=the [MASK] of that",
        f"--html={page}",
        f"--json={records}",
    ).out
    assert "\x1b" not in printed  # not a terminal
    assert printed.count("ELECTRA, small generator") == 2
    assert "proposals" in printed and "verdict" in printed
    lines = records.read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == [
        "the cat was it",
        "the [MASK] of that",
    ]
    assert page.read_text().count("ELECTRA, small generator") == 2


def test_inspect_tokens_prints_json_alone(run):
    printed = run(
        inspect_tokens,
        "electric",
        "--text=the cat was it",
        "--mask_words=cat, it",
        "--json=-",
    ).out
    record = json.loads(printed)
    masked = [t["token"] for t in record["tokens"] if t["proposal"]]
    assert masked == ["c", "##a", "##t", "i", "##t"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--text=a", "a.txt"), "as files or by --text"),
        (("--text=the", "--mask_none", "--mask_words=the"), "--mask_none"),
        (("nowhere.txt",), "nowhere.txt: no such file"),
    ],
)
def test_inspect_tokens_refuses_contradictions(run, arguments, message):
    with pytest.raises(UserError, match=message):
        run(inspect_tokens, "electra", *arguments)


def test_a_page_that_fails_leaves_no_half_of_it(run, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("before")
    arguments = ("--text=the", "--mask_words=cat", f"--html={page}")
    with pytest.raises(UserError, match="'cat'"):
        run(inspect_tokens, "electra", *arguments)
    assert os.listdir(tmp_path) == ["page.html"]
    assert page.read_text() == "before"


def test_fill_mask_prints_a_table_and_json(run, tmp_path):
    arguments = ("electra", "--text=the [MASK].", "--top_k=3")
    table = run(fill_mask, *arguments).out
    assert "[MASK] at token 2" in table and "likeliest: the " in table
    texts = tmp_path / "texts.txt"
    texts.write_bytes("\ufeffthe [MASK]\r\n\n[MASK] [MASK] it\n".encode())
    printed = run(fill_mask, "electra", texts, "--output=-").out
    records = [json.loads(line) for line in printed.splitlines()]
    assert [len(record["masks"]) for record in records] == [1, 2]
    assert [record["line"] for record in records] == [1, 3]
    assert records[0]["text"] == "the [MASK]"
    assert len(records[0]["masks"][0]["candidates"]) == 5


def test_score_of_lines_says_whose_they_are(run, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_bytes(b"the cat was it\n\nof \xff that\nof that\n")
    printed = run(score, "electric", texts, "--token_scores")
    records = [json.loads(line) for line in printed.out.splitlines()]
    assert [record["line"] for record in records] == [1, 4]
    for record in records:
        total = sum(score for _, score in record["token_scores"])
        assert total == pytest.approx(record["score"])
    assert "texts.txt:3: found b'of \\xff that'; expected text" in printed.err
    assert "2 texts scored by electric" in printed.err
    assert "1 bad line left out; 1 blank line left out" in printed.err
    assert "9 tokens," in printed.err


def test_score_hands_ids_on_and_reads_tables(run, tmp_path):
    table, records = tmp_path / "texts.tsv", tmp_path / "texts.jsonl"
    table.write_text("id\ttext\nu1\tthe cat\nu2\tof that\n")
    records.write_text('{"id": "u1", "text": "the cat"}\n{"text": 7}\n')
    output = tmp_path / "scores.tsv"
    arguments = (table, records, "--id_column=id", f"--output={output}")
    printed = run(score, "mlm", *arguments)
    header, *rows = output.read_text().splitlines()
    assert header.split("\t")[:5] == ["file", "line", "id", "score", "text"]
    rows = [row.split("\t")[2:] for row in rows]
    assert [row[0] for row in rows] == ["u1", "u2", "u1"]
    assert rows[0] == rows[2]
    assert "texts.jsonl:2: found 7; expected a text" in printed.err
    with pytest.raises(UserError, match=r"texts.jsonl:2: .*--strict"):
        run(score, "mlm", records, "--strict")


def test_score_reads_standard_input(run, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(b"the end\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    printed = run(score, "electra")
    assert json.loads(printed.out)["text"] == "the end"
    assert "scored by masked_lm" in printed.err
    assert "pseudo-perplexity" in printed.err
