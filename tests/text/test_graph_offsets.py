# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0

"""Where in a string the tokens of a graph come from."""

import itertools
import unicodedata

import hypothesis
import pytest
from hypothesis import strategies as st

from electra_tf.text import tokenization

LETTERS = (
    "abAB.,! \t\xadéÉßİΣ中가각ﬁ½…\u0301\u0308\u0323\u1b44\u302e\u034f\u200b"
    "\ufffd\u226e\u1fef\U0001d160\U0001d165\U0001f600"
)
TEXTS = st.one_of(
    st.text(st.sampled_from(LETTERS), max_size=14).map(str.encode),
    st.text(max_size=14).map(str.encode),
    st.lists(
        st.sampled_from([b"\xc3", b"\xff", b"a", b" ", "é".encode(), b"\xe4"])
    ).map(b"".join),
)


@pytest.fixture(scope="module")
def pairs(letter_pairs):
    return letter_pairs("abcdefghijklmnopqrstuvwxyz\U0001d158" + LETTERS)


def decompose(char, lower, strip):
    text = char.lower() if lower else char
    return unicodedata.normalize("NFD", text) if lower and strip else text


def stretch(found, lower, strip):
    """Lets characters end behind the dropped accents that follow them."""
    result = []
    for char, start, end in found:
        text = decompose(char, lower, strip)
        dropped = lower and strip and all(map(tokenization.is_accent, text))
        if dropped and result:
            # What is removed or dropped is no base.
            base = next((r for r in reversed(result) if r[3]), None)
            if base:
                base[2] = end
        kept = not dropped and not tokenization.is_removed(char)
        result.append([char, start, end, kept])
    return [tuple(r[:3]) for r in result]


def parts_of(found):
    """Characters between white space and ideographs, cleaned."""
    part = []
    for char, start, end in found:
        if tokenization.is_removed(char):
            continue
        if char.isspace() or tokenization.is_cjk(char):
            yield part
            part = []
            if tokenization.is_cjk(char):
                yield [(char, start, end)]
        else:
            part.append((char, start, end))
    yield part


def normalized(part, lower, strip):
    """(character, start, end) after lower-casing and decomposition."""
    text = "".join(char for char, _, _ in part)
    lowered = text.lower() if lower else text
    place, result = 0, []
    for char, start, end in part:
        size = len(char.lower()) if lower else 1
        piece = lowered[place : place + size]
        place += size
        if lower and strip:
            piece = unicodedata.normalize("NFD", piece)
        result += [(one, start, end) for one in piece]
    assert place == len(lowered)
    if not (lower and strip):
        return result
    for is_mark, run in itertools.groupby(
        list(enumerate(result)), lambda r: unicodedata.combining(r[1][0]) > 0
    ):
        run = list(run)
        if is_mark:
            first = run[0][0]
            moved = sorted(
                (r[1] for r in run), key=lambda r: unicodedata.combining(r[0])
            )
            result[first : first + len(moved)] = moved
    whole = "".join(char for char, _, _ in result)
    assert whole == unicodedata.normalize("NFD", lowered)
    return [r for r in result if not tokenization.is_accent(r[0])]


def reference(tokenizer, found, lower, strip):
    tokens = []
    for part in parts_of(stretch(found, lower, strip)):
        words, last = [], False
        for one in normalized(part, lower, strip):
            alone = tokenization.is_punctuation(one[0])
            if alone or last or not words:
                words.append([])
            words[-1].append(one)
            last = alone
        for word in words:
            tokens += pieces_of(tokenizer, word)
    return tokens


def pieces_of(tokenizer, word):
    text = "".join(char for char, _, _ in word)
    pieces = tokenizer.wordpiece_tokenizer.split_word(text)
    place = 0
    for piece in pieces:
        size = len(piece) - 2 if place else len(piece)
        own = word if piece == "[UNK]" else word[place : place + size]
        place += size
        yield (
            tokenizer.vocab[piece],
            min(start for _, start, _ in own),
            max(end for _, _, end in own),
        )


def found_in(graph, raws):
    parts = [part.to_list() for part in graph.encode_with_offsets(raws)]
    return [list(zip(*row, strict=True)) for row in zip(*parts, strict=True)]


@pytest.fixture(scope="module")
def check(pairs, reference_tokenizer):
    """Asserts that all settings give what the plain computation gives."""

    def run(raws):
        found = [reference_tokenizer.read_characters(raw) for raw in raws]
        for setting, (graph, plain) in pairs.items():
            wanted = [reference(plain, one, *setting) for one in found]
            for raw, tokens in zip(raws, wanted, strict=True):
                assert [token[0] for token in tokens] == plain.encode(raw)
            assert found_in(graph, raws) == wanted

    return run


@hypothesis.given(raws=st.lists(TEXTS, min_size=1, max_size=6))
def test_offsets_are_those_of_a_plain_computation(raws, check):
    check(raws)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("ab c", ["ab", "c"]),
        ("É, é!", ["É", ",", "é", "!"]),
        # An accent belongs to its letter, a removed character to nothing ...
        ("ae\u0301 b\u200b", ["a", "e\u0301", "b"]),
        # ... unless others of its token stand around it.
        ("a\u200bb", ["a\u200bb"]),
        ("\u0301a \u0301 b", ["a", "b"]),
        # One character, several tokens.
        ("가", ["가", "가"]),
        ("zzz☃ b", ["zzz☃", "b"]),
        ("中\u0301文", ["中\u0301", "文"]),
        ("a" * 201 + " b", ["a" * 201, "b"]),
    ],
)
def test_what_a_reader_sees_of_each_token(text, spans, pairs):
    raw = text.encode()
    [tokens] = found_in(pairs[True, True][0], [raw])
    assert [raw[start:end].decode() for _, start, end in tokens] == spans


def test_letters_whose_small_form_takes_other_bytes(check):
    letters = [
        char
        for char in map(chr, range(0x10000))
        if not 0xD800 <= ord(char) < 0xE000
        and len(char.encode()) != len(char.lower().encode())
    ]
    assert "\u023e" in letters
    check([f"{char} {char}b ab".encode() for char in letters])
