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
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.tf2 import variables_by_name, write_native
from electra_tf.checkpoints.weights import ModelWeights
from electra_tf.commands import fill_mask, inspect_tokens, score
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.training.checkpointing import write_config

KINDS = {"electra": {}, "electric": {"electric_objective": True}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_vocab):
    """A factory: what a run of a kind leaves."""
    made = {}

    def make(kind):
        if kind not in made:
            path = str(tmp_path_factory.mktemp(kind))
            config = PretrainingConfig.create(
                "tiny",
                path,
                vocab_file=tiny_vocab,
                vocab_size=200,
                embedding_size=8,
                max_seq_length=16,
                model_hparam_overrides={
                    "hidden_size": 16,
                    "num_hidden_layers": 2,
                    "num_attention_heads": 2,
                    "max_position_embeddings": 32,
                    "initializer_range": 0.5,
                },
                **KINDS[kind],
            )
            model = PretrainingModel(config)
            variables = variables_by_name(model.variables)
            weights = ModelWeights(variables, 7, path)
            write_native(weights, os.path.join(path, "model.ckpt-7"))
            write_config(path, config.to_json())
            made[kind] = path
        return made[kind]

    return make


@pytest.fixture
def run(capsys):
    """Runs a command in this process; returns what it printed."""

    def call(command, *arguments):
        arguments = [str(argument) for argument in arguments]
        assert command.main(command.parse_flags(["", *arguments])) == 0
        return capsys.readouterr()

    return call


def test_inspect_tokens_prints_draws_and_writes(run, folder, tmp_path):
    page, records = tmp_path / "glass.html", tmp_path / "glass.jsonl"
    printed = run(
        inspect_tokens,
        f"--model={folder('electra')}",
        "--text=the cat was it",
        "--text=the [MASK] of that",
        f"--html={page}",
        f"--json={records}",
    ).out
    assert "\x1b" not in printed  # not a terminal
    assert printed.count("ELECTRA, small generator") == 2
    assert "generator's proposals" in printed and "verdict" in printed
    lines = records.read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == [
        "the cat was it",
        "the [MASK] of that",
    ]
    assert page.read_text().count("<section>") == 2


def test_inspect_tokens_paints_when_told_to(run, folder):
    arguments = (f"--model={folder('electra')}", "--text=the cat")
    assert "\x1b[" in run(inspect_tokens, *arguments, "--color=always").out


def test_inspect_tokens_prints_json_alone(run, folder):
    printed = run(
        inspect_tokens,
        f"--model={folder('electric')}",
        "--text=the cat was it",
        "--mask_words=cat, it",
        "--json=-",
    ).out
    record = json.loads(printed)
    masked = [t["token"] for t in record["tokens"] if t["proposal"]]
    assert masked == ["c", "##a", "##t", "i", "##t"]


def test_inspect_tokens_refuses_contradictions(folder):
    model = f"--model={folder('electra')}"

    def attempt(*arguments):
        flags = inspect_tokens.parse_flags(["", model, *arguments])
        inspect_tokens.main(flags)

    with pytest.raises(UserError, match="--text, or a file by --input"):
        attempt()
    with pytest.raises(UserError, match="--mask_none"):
        attempt("--text=the", "--mask_none", "--mask_words=the")
    with pytest.raises(UserError, match="--mask_positions=a: expected whole"):
        attempt("--text=the", "--mask_positions=a")
    with pytest.raises(UserError, match="nowhere.txt: no such file"):
        attempt("--input=nowhere.txt")


def test_a_page_that_fails_leaves_no_half_of_it(folder, tmp_path):
    page = tmp_path / "glass.html"
    page.write_text("before")
    arguments = [
        f"--model={folder('electra')}",
        "--text=the",
        "--mask_words=cat",
        f"--html={page}",
    ]
    with pytest.raises(UserError, match="'cat'"):
        inspect_tokens.main(inspect_tokens.parse_flags(["", *arguments]))
    assert os.listdir(tmp_path) == ["glass.html"]
    assert page.read_text() == "before"


def test_fill_mask_prints_a_table_and_json(run, folder, tmp_path):
    model = f"--model={folder('electra')}"
    table = run(fill_mask, model, "--text=the [MASK].", "--top_k=3").out
    assert "[MASK] at token 2" in table and "likeliest: the " in table
    texts = tmp_path / "texts.txt"
    texts.write_bytes("\ufeffthe [MASK]\r\n\n[MASK] [MASK] it\n".encode())
    printed = run(fill_mask, model, f"--input={texts}", "--format=json").out
    records = [json.loads(line) for line in printed.splitlines()]
    assert [len(record["masks"]) for record in records] == [1, 2]
    assert records[0]["text"] == "the [MASK]"
    assert len(records[0]["masks"][0]["candidates"]) == 5


def test_score_of_lines_keeps_their_order_and_number(run, folder, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_bytes(b"the cat was it\n\nof \xff that\n")
    model = f"--model={folder('electric')}"
    printed = run(score, model, f"--input={texts}", "--with_cloze")
    rows = [line.split("\t") for line in printed.out.splitlines()]
    assert [row[2] for row in rows] == ["the cat was it", "", "of  that"]
    assert rows[1][:2] == ["0.0000", "0.0000"]
    assert float(rows[0][0]) != float(rows[0][1])
    assert "1 line(s) with bytes that are not UTF-8" in printed.err
    assert "3 texts, 9 tokens scored by electric" in printed.err
    printed = run(score, model, f"--input={texts}", "--token_scores").out
    record = json.loads(printed.splitlines()[0])
    assert sum(s for _, s in record["token_scores"]) == pytest.approx(
        record["score"]
    )
    assert f"{record['score']:.4f}" == rows[0][0]


def test_score_reads_standard_input(run, folder, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(b"the end\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    printed = run(score, f"--model={folder('electra')}", "--input=-")
    assert printed.out.endswith("\tthe end\n")
    assert "scored by masked_lm" in printed.err
    assert "pseudo-perplexity" in printed.err


@pytest.fixture
def nbest(tmp_path):
    path = tmp_path / "nbest.tsv"
    path.write_text(
        "u1\tthe cat was it\t-1\nu1\tthe mat was it\t-1.5\n"
        "u2\tof that\t-2\nu2\tfor that\t-2.5\n"
    )
    return path


def test_score_reranks_with_a_given_weight(run, folder, nbest):
    model = f"--model={folder('electric')}"
    plain = run(score, model, f"--input={nbest}").out.splitlines()
    scores = [float(line.split("\t")[3]) for line in plain]
    given = run(
        score, model, f"--input={nbest}", "--rerank", "--weight=2"
    ).out.splitlines()
    assert len(given) == 4
    combined = [float(line.split("\t")[4]) for line in given]
    assert combined[0] >= combined[1] and combined[2] >= combined[3]
    base = (-1.0, -1.5, -2.0, -2.5)
    expected = [b + 2 * s for b, s in zip(base, scores, strict=True)]
    assert sorted(combined) == pytest.approx(sorted(expected), abs=1e-3)


def test_score_tunes_the_weight_on_references(run, folder, nbest, tmp_path):
    references = tmp_path / "references.tsv"
    references.write_text("u1\tthe cat was it\nu2\tof that\n")
    printed = run(
        score,
        f"--model={folder('electric')}",
        f"--input={nbest}",
        "--rerank",
        f"--references={references}",
        "--best",
    )
    # The base scores alone are right: no weight can be better.
    assert "0.00% (0 of 6) with weight 0 (tuned here)" in printed.err
    texts = [line.split("\t")[1] for line in printed.out.splitlines()]
    assert texts == ["the cat was it", "of that"]


def test_score_refuses_what_makes_no_sense(folder, nbest, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("the\n")

    def attempt(path, *arguments):
        model = f"--model={folder('electric')}"
        arguments = [model, f"--input={path}", *arguments]
        score.main(score.parse_flags(["", *arguments]))

    with pytest.raises(UserError, match="lines of text are no n-best lists"):
        attempt(lines, "--rerank", "--weight=1")
    with pytest.raises(UserError, match="--rerank takes --weight"):
        attempt(nbest, "--rerank")
    with pytest.raises(UserError, match="--weight is for --rerank"):
        attempt(nbest, "--weight=1")
    with pytest.raises(UserError, match="--weight=-1"):
        attempt(nbest, "--rerank", "--weight=-1.0")
    with pytest.raises(UserError, match="no_such.tsv: no such file"):
        attempt("no_such.tsv")
    with pytest.raises(UserError, match="--batch_size=0"):
        attempt(nbest, "--batch_size=0")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inspect_tokens", "fill_mask", "score"])
def test_a_mistake_is_one_line(name, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the\n")
    command = [sys.executable, "-m", "electra_tf", name]
    arguments = ["--model", str(tmp_path / "none"), "--input", str(text)]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    errors = [x for x in done.stderr.splitlines() if x.startswith("error:")]
    assert len(errors) == 1 and "none" in errors[0]
    assert "Traceback" not in done.stderr
    helped = subprocess.run(
        [*command, "--help"], capture_output=True, text=True, check=False
    )
    assert helped.returncode == 0
    assert max(map(len, helped.stdout.splitlines())) <= 80
