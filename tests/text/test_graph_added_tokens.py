# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of transformers in the graph: ids and places of their tokens."""

import pytest

from electra_tf.text.graph_tokenization import GraphTokenizer
from electra_tf.text.offsets import OffsetTokenizer
from electra_tf.text.tokenization import FullTokenizer
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
    found = ids.to_list()
    wrong = [
        t for t, a, b in zip(drawn, found, expected, strict=True) if a != b
    ]
    assert wrong == []
    assert graph.encode(drawn).to_list() == expected
    return drawn, starts.to_list(), ends.to_list()


@pytest.mark.parametrize(
    "setting",
    [
        (True, None, True, True, "special"),
        (True, True, True, True, "normalized"),
        (False, True, False, False, "normalized"),
        (True, False, True, True, "none"),
    ],
)
def test_the_graph_gives_the_library_s_ids(folder, setting):  # noqa: F811
    lower, strip, chinese, clean, added = setting
    made = library_tokenizer(lower, strip, chinese, clean)
    add(made, ADDED[added])
    made.save(str(folder / "tokenizer.json"))
    drawn, starts, ends = check_graph(made, folder, lower, strip, 300, added)
    # Places are those of Python's tokenizer.
    ours = FullTokenizer(
        str(folder / "vocab.txt"), lower, strip is None or strip
    )
    python = OffsetTokenizer(ours)
    for text, first, last in zip(drawn, starts, ends, strict=True):
        pieces = python.tokenize(text)
        spans = [(p.start, p.end) for p in pieces]
        expected = [
            tuple(len(text[:place].encode()) for place in span)
            for span in spans
        ]
        assert list(zip(first, last, strict=True)) == expected, ascii(text)


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


def test_the_graph_splits_no_word_that_is_never_split(folder):  # noqa: F811
    content = {"never_split": ["Fox", "covid", "[E1]"]}
    write(folder, "tokenizer_config.json", content)
    path = str(folder / "vocab.txt")
    ours, graph = FullTokenizer(path), GraphTokenizer(path)
    drawn = [
        *("the Fox", "Fox, fox", "\u56fdFox\u56fd", "F\u200box", "COVID"),
        *("[E1] [E1]x x[E1] Fox-covid", "cov\u0301id the[E1]", "Fox"),
        *texts(300, "never"),
    ]
    assert graph.encode(drawn).to_list() == [ours.encode(t) for t in drawn]
