# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of transformers in the graph: ids and positions of tokens."""

import pytest

from electra_tf.text.graph_tokenization import GraphTokenizer
from electra_tf.text.offsets import OffsetTokenizer
from electra_tf.text.tokenization import FullTokenizer
from tests.conftest import marked_slow
from tests.text.test_huggingface_tokenizer import (
    ADDED,
    SETTINGS,
    add,
    folder,  # noqa: F401  (a fixture)
    library_tokenizer,
    texts,
    write,
)


def check_graph(made, folder, lower, strip, count, seed):  # noqa: F811
    drawn = texts(count, seed)
    graph = GraphTokenizer(
        str(folder / "vocab.txt"), lower, strip is None or strip
    )
    expected = [made.encode(t, add_special_tokens=False).ids for t in drawn]
    ids, starts, ends = graph.encode_with_offsets(drawn)
    different = [
        text
        for text, row, expected_row in zip(
            drawn, ids.to_list(), expected, strict=True
        )
        if row != expected_row
    ]
    assert different == []
    assert graph.encode(drawn).to_list() == expected
    return drawn, starts.to_list(), ends.to_list()


@pytest.mark.parametrize(
    "setting",
    [
        (True, True, True, True, "normalized"),
        *marked_slow(
            (True, None, True, True, "special"),
            (False, True, False, False, "normalized"),
            (True, False, True, True, "none"),
        ),
    ],
)
def test_ids_equal_the_library_s_and_positions_python_s(folder, setting):  # noqa: F811
    lower, strip, chinese, clean, added = setting
    made = library_tokenizer(lower, strip, chinese, clean)
    add(made, ADDED[added])
    made.save(str(folder / "tokenizer.json"))
    drawn, starts, ends = check_graph(made, folder, lower, strip, 300, added)
    tokenizer = OffsetTokenizer(
        FullTokenizer(str(folder / "vocab.txt"), lower, strip is None or strip)
    )
    different = []
    for text, first, last in zip(drawn, starts, ends, strict=True):
        pieces = tokenizer.tokenize(text)
        expected_first = [len(text[: p.start].encode()) for p in pieces]
        expected_last = [len(text[: p.end].encode()) for p in pieces]
        if first != expected_first or last != expected_last:
            different.append(ascii(text))
    assert different == []


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("lower", "strip", "chinese", "clean", "added"), SETTINGS
)
def test_the_graph_gives_the_library_s_ids_of_many_texts(
    folder,  # noqa: F811
    lower,
    strip,
    chinese,
    clean,
    added,
):
    made = library_tokenizer(lower, strip, chinese, clean)
    add(made, ADDED[added])
    made.save(str(folder / "tokenizer.json"))
    check_graph(made, folder, lower, strip, 5000, "many")


@pytest.mark.slow
def test_the_graph_does_not_split_never_split_words(folder):  # noqa: F811
    content = {"never_split": ["Fox", "covid", "[E1]"]}
    write(folder, "tokenizer_config.json", content)
    path = str(folder / "vocab.txt")
    tokenizer, graph = FullTokenizer(path), GraphTokenizer(path)
    drawn = [
        "the Fox",
        "Fox, fox",
        "\u56fdFox\u56fd",
        "F\u200box",
        "COVID",
        "[E1] [E1]x x[E1] Fox-covid",
        "cov\u0301id the[E1]",
        "Fox",
    ]
    drawn += texts(300, "never")
    expected = list(map(tokenizer.encode, drawn))
    assert graph.encode(drawn).to_list() == expected
