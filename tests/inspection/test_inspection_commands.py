# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""inspect_tokens, fill_mask and score, as they are called."""

import io
import json
import os
import subprocess
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


def test_inspect_tokens_paints_when_told_to(run):
    arguments = ("electra", "--text=the cat", "--color=always")
    assert "\x1b[" in run(inspect_tokens, *arguments).out


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
        ((), "as files .* or by --text"),
        (("--text=the", "--mask_none", "--mask_words=the"), "--mask_none"),
        (("--text=a", "--mask_positions=a"), "--mask_positions=a: expected"),
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
    printed = run(fill_mask, "electra", texts, "--output_format=json").out
    records = [json.loads(line) for line in printed.splitlines()]
    assert [len(record["masks"]) for record in records] == [1, 2]
    assert records[0]["text"] == "the [MASK]"
    assert len(records[0]["masks"][0]["candidates"]) == 5


def test_score_of_lines_keeps_their_order_and_number(run, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_bytes(b"the cat was it\n\nof \xff that\n")
    printed = run(score, "electric", texts, "--with_cloze")
    rows = [line.split("\t") for line in printed.out.splitlines()]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert [row[3] for row in rows] == ["the cat was it", "", "of  that"]
    assert rows[1][1:3] == ["0.0000", "0.0000"]
    assert float(rows[0][1]) != float(rows[0][2])
    assert "1 line(s) with bytes that are not UTF-8" in printed.err
    assert "3 texts, 9 tokens scored by electric" in printed.err
    arguments = ("--token_scores", "--output_format=jsonl")
    printed = run(score, "electric", texts, *arguments).out
    record = json.loads(printed.splitlines()[0])
    assert sum(s for _, s in record["token_scores"]) == pytest.approx(
        record["score"]
    )
    assert f"{record['score']:.4f}" == rows[0][1]


def test_score_hands_ids_on(run, tmp_path):
    table, records = tmp_path / "texts.tsv", tmp_path / "texts.jsonl"
    table.write_text("u1\tthe cat\nu2\tof that\n")
    records.write_text('{"id": "u1", "text": "the cat"}\n{"text": "of that"}\n')
    out = run(score, "mlm", table, records).out
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[0] for row in rows] == ["u1", "u2", "u1", "2"]
    assert rows[0] == rows[2]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("texts.tsv", "a\tb\n\n", "texts.tsv:2: found nothing; expected id"),
        ("texts.tsv", "one\n", "texts.tsv:1: found .*expected id<TAB>text"),
        ("texts.jsonl", "{}\n", 'texts.jsonl:1: found .*"text"'),
        ("texts.jsonl", "{\n", "texts.jsonl:1: found"),
    ],
)
def test_score_names_a_line_it_cannot_use(
    run, tmp_path, name, content, message
):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        run(score, "mlm", path)


def test_score_reads_standard_input(run, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(b"the end\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    printed = run(score, "electra", "-")
    assert printed.out.endswith("\tthe end\n")
    assert "scored by masked_lm" in printed.err
    assert "pseudo-perplexity" in printed.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inspect_tokens", "fill_mask", "score"])
def test_a_mistake_is_one_line(name, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the\n")
    command = [sys.executable, "-m", "electra_tf", name]
    arguments = ["--model", str(tmp_path / "none"), str(text)]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    errors = [x for x in done.stderr.splitlines() if x.startswith("error:")]
    assert len(errors) == 1 and "none" in errors[0]
    assert "Traceback" not in done.stderr
