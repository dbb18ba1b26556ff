# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Filled masks and scores are the model's; two commands print them."""

import json

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from electra_tf.commands import fill_mask, inspect_tokens, score
from electra_tf.inspection.fill_mask import MaskFiller, encode, padded
from electra_tf.inspection.text_scores import TextScorer, windows
from electra_tf.inspection.token_inspection import TokenInspector
from electra_tf.pretraining import scoring
from electra_tf.pretraining.loading import load_pretrained
from tests.conftest import differences, refused
from tests.inspection.conftest import generator_log_probs

MASKED = ["the [MASK] is on that [MASK].", "[MASK]", "a b c [MASK]ing d e f g"]


@pytest.mark.parametrize(
    "kind", ["electra", "electra/generator", "mlm", "two_tower", "tied"]
)
@pytest.mark.parametrize("index", range(len(MASKED)))
def test_probabilities_are_the_softmax_s(pretrained, kind, index):
    model = pretrained(kind)
    filler = MaskFiller(model, top_k=4, batch_size=2)
    text, filled = MASKED[index], list(filler(MASKED))[index]
    assert filled.text == text and len(filled.masks) == text.count("[MASK]")
    positions = [mask.position for mask in filled.masks]
    assert {filled.tokens[p - 1] for p in positions} == {"[MASK]"}
    directly = np.exp(generator_log_probs(model, encode(model, text)))
    best = -np.sort(-directly[positions])[:, :4]
    shares = [[c.probability for c in m.candidates] for m in filled.masks]
    np.testing.assert_allclose(shares, best, atol=1e-6)
    candidates = [c for mask in filled.masks for c in mask.candidates]
    vocab = model.tokenizer.vocab
    ids = [vocab[candidate.token] for candidate in candidates]
    assert [candidate.token_id for candidate in candidates] == ids


@pytest.mark.parametrize(
    ("look", "message"),
    [
        (
            lambda model: list(MaskFiller(model)(["the [MASK] cat"])),
            r"'the \[MASK\] cat': the model's output probabilities is nan",
        ),
        (
            lambda model: list(TextScorer(model).score(["the cat"])),
            "'the cat', token 1: the model's output score is nan",
        ),
        (
            lambda model: TokenInspector(model).inspect("the cat"),
            "the inspected text: the model's output mlm_logits is nan",
        ),
    ],
    ids=["fill_mask", "score", "inspect_tokens"],
)
def test_damaged_weights_have_no_probabilities(folders, look, message):
    model = load_pretrained(folders("electra"))
    bias = model.model.masked_lm_head.output_bias
    bias.assign(bias * np.nan)
    refused(message, look, model)


def test_a_mask_is_one_token(pretrained):
    model = pretrained("electra")
    tokens = ["[CLS]", "the", "[MASK]", "[MASK]", "was", "[SEP]"]
    ids = [model.tokenizer.vocab[token] for token in tokens]
    assert encode(model, "the [MASK][MASK]was") == ids


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the cat", r"No \[MASK\] in 'the cat'"),
        ("[MASK]" + " the" * 40, "41 tokens; the model accepts at most 30"),
    ],
)
def test_texts_that_cannot_be_filled_are_refused(pretrained, text, message):
    refused(message, next, MaskFiller(pretrained("electra"))([text]))


def test_fill_mask_refuses_a_count_of_0_candidates(pretrained):
    refused("top_k is 0", MaskFiller, pretrained("electra"), top_k=0)


TEXTS = [
    "the cat is on the mat, and that was it.",
    "of",
    "",
    "a quick brown fox; (is it?) for the 3 dogs \u4e2d",
    "that was the end of it",
]
LONG = " ".join(["the", "of", "and", "is", "for", "that", "was"] * 13)


@pytest.mark.parametrize(
    ("kind", "method", "compute"),
    [
        ("electric", "electric", scoring.electric_scores),
        ("electric", "cloze", scoring.cloze_scores),
        ("two_tower", "auto", scoring.cloze_scores),
    ],
)
def test_a_text_has_the_same_score_alone_and_in_a_batch(
    pretrained, kind, method, compute
):
    model = pretrained(kind)

    def score_alone(text):
        features = padded([encode(model, text)])
        features = {n: tf.constant(value) for n, value in features.items()}
        # Other tests compare this function with the original's outputs.
        (score,) = compute(model.model, features)["score"].numpy()
        return score

    results = list(TextScorer(model, method, batch_size=2).score(TEXTS))
    assert [result.text for result in results] == TEXTS
    expected = [score_alone(text) for text in TEXTS]
    scores = [result.score for result in results]
    assert scores == pytest.approx(expected, abs=2e-4)


def test_electrics_discriminator_alone_scores_as_the_whole_model(pretrained):
    whole, alone = (
        np.concatenate([r.token_scores for r in TextScorer(model).score(TEXTS)])
        for model in map(pretrained, ("electric", "electric/discriminator"))
    )
    np.testing.assert_allclose(alone, whole, rtol=1e-6, atol=1e-6)


def test_a_text_without_tokens_scores_0(pretrained):
    scorer = TextScorer(pretrained("electric"))
    nothing, unknown = scorer.score(["  \u200b ", "the \u4e2d"])
    assert nothing.score == 0.0 and nothing.tokens == ()
    assert unknown.tokens == ("the", "[UNK]") and unknown.unknown == 1


@pytest.mark.parametrize("kind", ["mlm", "electra"])
def test_masked_lm_scores_mask_one_token(pretrained, kind):
    model = pretrained(kind)
    special = model.model.special
    expected = {}
    for text in TEXTS:
        ids = model.tokenizer.encode(text)
        row, expected[text] = [special.cls_id, *ids, special.sep_id], []
        for position, token in enumerate(ids, 1):
            masked = [*row[:position], special.mask_id, *row[position + 1 :]]
            log_probs = generator_log_probs(model, masked)
            expected[text].append(log_probs[position, token])
    results = list(TextScorer(model, batch_size=7).score(TEXTS))
    token_scores = {result.text: result.token_scores for result in results}
    assert differences(token_scores, expected, rtol=1e-7, atol=1e-5) == []
    sums = [sum(expected[result.text]) for result in results]
    scores = [result.score for result in results]
    assert scores == pytest.approx(sums, abs=1e-4)


def test_a_long_text_counts_every_token_once_in_context(pretrained):
    model = pretrained("electric")
    together = TextScorer(model, batch_size=4).score([*TEXTS, LONG, *TEXTS])
    result = list(together)[len(TEXTS)]
    assert result.text == LONG
    ids = model.tokenizer.encode(LONG)
    assert len(ids) == 91
    assert result.windows > 1 and len(result.token_scores) == len(ids)
    assert result.score == pytest.approx(sum(result.token_scores))
    # Tokens of the first window score as if the text ended with it.
    window = next(TextScorer(model).score([" ".join(LONG.split()[:30])]))
    first, alone = (scored.token_scores[:20] for scored in (result, window))
    np.testing.assert_allclose(first, alone, atol=1e-5)


@hypothesis.given(
    count=st.integers(0, 120), room=st.sampled_from([1, 2, 3, 7, 30])
)
def test_every_token_is_scored_once(count, room):
    cut = windows(count, room)
    scored = [n for w in cut for n in range(w.first, w.last)]
    assert scored == list(range(count))
    assert [w for w in cut if w.end - w.begin > room] == []
    assert [w for w in cut if not 0 <= w.begin <= w.first < w.last] == []
    assert [w for w in cut if not w.last <= w.end <= count] == []
    contexts = [(w.first - w.begin, w.end - w.last) for w in cut[1:-1]]
    assert [c for c in contexts if min(c) < room // 5] == []


def test_scoring_reads_texts_as_needed(pretrained):
    taken = []

    def texts():
        for number in range(10_000):
            taken.append(number)
            yield "the end"

    next(TextScorer(pretrained("two_tower"), batch_size=2).score(texts()))
    assert len(taken) < 100


@pytest.mark.parametrize(
    "name, method, message",
    [
        ("electra", "electric", "needs an Electric model"),
        ("electric/generator", "electric", "has no discriminator"),
        ("electric/discriminator", "cloze", "has no generator"),
        ("electra", "cloze", "Choose masked_lm"),
        ("electric", "masked_lm", "Choose cloze or electric"),
        ("uniform", "auto", "has no generator"),
        ("electra", "likelihood", "expected one of auto"),
    ],
)
def test_models_that_cannot_score_are_refused(
    pretrained, name, method, message
):
    refused(message, TextScorer, pretrained(name), method)


@pytest.fixture
def run(capsys, folders):
    """Return a function that runs a command and returns its output."""

    def call(command, kind, *arguments):
        arguments = ["", f"--model={folders(kind)}", *map(str, arguments)]
        assert command.main(command.parse_flags(arguments)) == 0
        return capsys.readouterr()

    return call


def test_inspect_tokens_prints_draws_and_writes(run, tmp_path):
    page, records = tmp_path / "page.html", tmp_path / "records.jsonl"
    texts = ["the cat was it", "the [MASK] of that"]
    flags = [f"--text={text}" for text in texts]
    flags += [f"--html={page}", f"--json={records}"]
    printed = run(inspect_tokens, "electra", *flags).out
    assert "\x1b" not in printed  # no colours outside a terminal
    assert "proposals" in printed and "verdict" in printed
    lines = records.read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == texts
    views = (printed, page.read_text())
    assert [view.count("ELECTRA, small generator") for view in views] == [2, 2]
    refused("already exists", run, inspect_tokens, "electra", *flags)
    same = [page, f"--html={page}", "--overwrite"]
    refused("an input", run, inspect_tokens, "electra", *same)


def test_inspect_tokens_prints_json_alone(run, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("of that\nthe cat\n")
    output = run(
        inspect_tokens, "electric", path, "--mask_words=cat", "--json=-"
    )
    assert json.loads(output.out)["text"] == "the cat"
    assert "texts.txt:1: found of that; expected another" in output.err
    flags = ["--text=the cat was it", "--mask_words=cat, it"]
    record = json.loads(run(inspect_tokens, "electric", *flags, "--json=-").out)
    masked = [t["token"] for t in record["tokens"] if t["proposal"]]
    assert masked == ["c", "##a", "##t", "i", "##t"]
    for more, output in (
        ("a.txt", "Remove --text or"),
        ("--mask_none", "--mask_no"),
    ):
        refused(output, run, inspect_tokens, "electra", *flags, more)


def test_fill_mask_prints_a_table_and_json(run, tmp_path):
    table = run(fill_mask, "electra", "--text=the [MASK].", "--top_k=3").out
    assert "[MASK] at token 2" in table and "likeliest: the " in table
    texts = tmp_path / "texts.txt"
    lines = "\ufeffthe [MASK]\r\n\n[MASK] [MASK] it\nthe\nit [MASK]\n"
    texts.write_bytes(lines.encode())
    printed = run(fill_mask, "electra", texts, "--output=-")
    records = [json.loads(line) for line in printed.out.splitlines()]
    assert [len(record["masks"]) for record in records] == [1, 2, 1]
    assert [record["line"] for record in records] == [1, 3, 5]
    assert records[0]["text"] == "the [MASK]"
    assert len(records[0]["masks"][0]["candidates"]) == 5
    assert "texts.txt:4: found the; expected another text: No [M" in printed.err
    refused(r"No \[MASK\]", run, fill_mask, "electra", "--text=the")


def test_scores_of_lines_name_their_lines(run, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_bytes(b"the cat was it\n\nof \xff that\nof that\n")
    printed = run(score, "electric", texts, "--token_scores")
    records = [json.loads(line) for line in printed.out.splitlines()]
    assert [record["line"] for record in records] == [1, 4]
    totals = [sum(s for _, s in record["token_scores"]) for record in records]
    assert totals == pytest.approx([record["score"] for record in records])
    assert "2 texts scored by electric" in printed.err
    assert "9 tokens," in printed.err


def test_score_copies_ids_and_reads_tables(run, tmp_path):
    table, records = tmp_path / "texts.tsv", tmp_path / "texts.jsonl"
    table.write_text("id\ttext\nu1\tthe cat\nu2\tof that\n")
    rows = '{"id": "u1", "text": "the cat"}\n{"id": "u2", "text": 7}\n'
    records.write_text(rows)
    output = tmp_path / "scores.tsv"
    arguments = (table, records, "--id_column=id", f"--output={output}")
    printed = run(score, "mlm", *arguments)
    lines = output.read_text().splitlines()
    header, *rows = (line.split("\t") for line in lines)
    assert header[:5] == ["file", "line", "id", "score", "text"]
    assert [row[2] for row in rows] == ["u1", "u2", "u1"]
    first_score, other = (float(rows[number][3]) for number in (0, 2))
    assert (
        first_score == pytest.approx(other, rel=1e-5)
        and rows[0][4] == rows[2][4]
    )
    assert "texts.jsonl:2: found the number 7; expected" in printed.err
    message = r"texts.jsonl:2: .*--strict"
    refused(message, run, score, "mlm", records, "--strict")
