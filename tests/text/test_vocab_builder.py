# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learning vocabularies, by function and by command."""

import gzip
import itertools
import json
import pydoc_data.topics
import random

import pytest

from electra_tf.commands import build_vocab
from electra_tf.text import vocab_builder, vocabulary
from electra_tf.text.tokenization import FullTokenizer
from tests.conftest import refused


@pytest.fixture(scope="module")
def prose():
    topics = pydoc_data.topics.topics
    text = "\n".join(topics[name] for name in sorted(topics))
    return text[:150_000].split("\n")


@pytest.fixture(scope="module")
def word_counts(prose):
    return vocab_builder.count_words(prose)


def test_words_are_counted_as_the_tokenizer_splits_them():
    lines = ["The Café, the", "cafe\u200b!", b"caf\xc3\xa9 \xff"]
    counts = {"the": 2, "cafe": 3, ",": 1, "!": 1}
    assert vocab_builder.count_words(lines) == counts
    cased = vocab_builder.count_words(["The Café"], do_lower_case=False)
    assert cased == {"The": 1, "Café": 1}
    accented = vocab_builder.count_words(["The Café"], strip_accents=False)
    assert accented == {"the": 1, "café": 1}


@pytest.mark.parametrize(
    ("counts", "min_count", "pieces"),
    [
        # The merges are es (9), est (9, from ##es), then ow, low, ...
        (
            {"low": 5, "lower": 2, "newest": 6, "widest": 3},
            7,
            ["##es", "##est", "##ow", "low"],
        ),
        ({"ab": 1, "cd": 3}, 2, ["cd"]),  # too rare a pair
        ({"ab": 1}, 1, ["ab"]),
        ({"abé": 9, "cd": 3}, 2, ["cd"]),  # a character of no piece
    ],
)
def test_pairs_are_merged_from_frequent_to_rare(counts, min_count, pieces):
    alphabet = "abcdlowernstid"
    learned = vocab_builder.learn_pieces(
        counts, alphabet, 9, min_count=min_count
    )
    assert learned == pieces


def test_incremental_counts_equal_repeated_counting():
    generator = random.Random(7)
    word_counts = {}
    for _ in range(150):
        word = "".join(generator.choices("abc", k=generator.randint(1, 8)))
        word_counts[word] = generator.randint(1, 9)
    learned = vocab_builder.learn_pieces(word_counts, "abc", 60)
    assert learned == plain_merges(word_counts, 60)
    assert len(learned) == 60


def plain_merges(word_counts, max_pieces):
    split = {word: vocab_builder.spell(word) for word in word_counts}
    learned = {}
    while len(learned) < max_pieces:
        counts = {}
        for word, pieces in split.items():
            for pair in itertools.pairwise(pieces):
                counts[pair] = counts.get(pair, 0) + word_counts[word]
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merged = best[0] + best[1][2:]
        learned[merged] = None
        for word, pieces in split.items():
            joined = []
            for piece in pieces:
                if joined and (joined[-1], piece) == best:
                    joined[-1] = merged
                else:
                    joined.append(piece)
            split[word] = joined
    return list(learned)


def test_order_and_contents_of_a_vocabulary(word_counts):
    tokens = vocab_builder.build_vocab(word_counts, 1000, num_unused=7)
    assert tokens[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokens[5:12] == [f"[unused{n}]" for n in range(7)]
    assert len(tokens) == len(set(tokens)) == 1000
    frequent = {c for word, n in word_counts.items() if n >= 2 for c in word}
    assert {"e", "##e"} | frequent <= set(tokens) and "##," not in tokens
    items = list(word_counts.items())
    random.Random(3).shuffle(items)
    assert vocab_builder.build_vocab(dict(items), 1000, num_unused=7) == tokens


@pytest.mark.parametrize(
    ("counts", "settings", "tokens"),
    [
        (
            {"a": 5, "b": 4, "c": 4, "d": 9},
            {"max_characters": 3},
            ["a", "b", "d", "##a", "##b", "##d"],
        ),
        # The text has fewer pieces than vocab_size allows.
        ({"ab": 2}, {}, ["a", "b", "##a", "##b", "ab"]),
    ],
)
def test_the_most_frequent_characters_and_pieces_get_tokens(
    counts, settings, tokens
):
    learned = vocab_builder.build_vocab(counts, 50, num_unused=0, **settings)
    assert learned[5:] == tokens


def test_learned_vocabulary_passes_the_checks(prose, word_counts, write_vocab):
    tokens = vocab_builder.build_vocab(prose, 1200)
    path = write_vocab(*tokens)
    assert list(vocabulary.check_vocab(path)) == tokens
    tokenizer = FullTokenizer(path)
    split = [tokenizer.tokenize(line) for line in prose]
    coverage = vocab_builder.measure_coverage(tokens, word_counts)
    assert sum(map(len, split)) == coverage.pieces
    assert sum(line.count("[UNK]") for line in split) == coverage.unknown


@pytest.mark.parametrize(
    ("word_counts", "settings", "message"),
    [
        ({"a" * 201: 9}, {}, "no words"),
        ({"abc": 2}, {"vocab_size": 100}, "vocab_size 100 .*num_unused"),
        ({"a": 1}, {"min_count": 0}, "min_count is 0"),
    ],
)
def test_unusable_counts_and_settings_are_refused(
    word_counts, settings, message
):
    refused(message, vocab_builder.build_vocab, word_counts, **settings)


LINES = ["The low lower lowest tide, the widest tide."] * 3 + ["été Été"]


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    text = "\n".join(LINES).encode()
    (folder / "a.txt").write_bytes(text)
    (folder / "b.txt.gz").write_bytes(gzip.compress(text))
    (folder / "c.jsonl").write_text(json.dumps({"text": "\n".join(LINES)}))
    return folder


@pytest.fixture
def run(corpus, capsys):
    """Return a function that runs the command and returns its output."""

    def call(output, *flags):
        argv = ["build_vocab", str(corpus), f"--output={output}", *flags]
        build_vocab.main(build_vocab.parse_flags(argv))
        return capsys.readouterr().out

    return call


def test_the_command_writes_and_describes_a_vocabulary(run, tmp_path):
    output = tmp_path / "new" / "vocab.txt"
    report = run(output, "--vocab_size=60", "--num-unused", "3")
    tokens = list(vocabulary.check_vocab(str(output)))
    assert tokens[5:8] == ["[unused0]", "[unused1]", "[unused2]"]
    assert {"tide", "low", "ete"} <= set(tokens)
    assert "96 (9 different)" in report
    assert f"{len(tokens)} tokens" in report
    assert "0 (0.0000%)" in report
    names = sorted(path.name for path in output.parent.iterdir())
    assert names == ["tokenizer_config.json", "vocab.txt"]


def test_the_command_reports_bytes_that_are_not_utf_8(run, tmp_path, corpus):
    (corpus / "a.txt").write_bytes(b"low tide\nlow \xff tide\n")
    report = run(tmp_path / "v.txt")
    assert "are not UTF-8" in report
    assert "iconv -f" in report
    assert "a.txt: 1 bytes, the first at byte 13" in report


def test_with_strict_bytes_that_are_not_utf_8_are_refused(
    run, tmp_path, corpus
):
    (corpus / "a.txt").write_bytes(b"low tide\nlow \xff tide\n")
    refused("a.txt: byte 13 is not UTF-8", run, tmp_path / "v.txt", "--strict")


def test_the_command_replaces_no_file_without_overwrite(run, tmp_path):
    output = tmp_path / "vocab.txt"
    output.write_text("mine\n")
    refused("exists.*--overwrite", run, output)
    assert output.read_text() == "mine\n"


def test_the_command_refuses_a_directory(run, tmp_path):
    refused("is a directory", run, tmp_path)
