# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (look-alike letters are the point here)
"""The fast tokenizer equals the plain one on every string."""

import sys
import unicodedata

import hypothesis
import hypothesis.strategies as st
import pytest

from electra_tf.text.tokenization import BasicTokenizer, FullTokenizer

SETTINGS = [(True, True), (True, False), (False, True), (False, False)]

# Characters whose neighbours matter: the sigmas, what counts as cased or is
# skipped around them, marks that change order, what lower-casing lengthens,
# what splits, joins or vanishes, and both sides of each class.
TRICKY = (
    "aAbBzZ09 \t\n\r.,:;'’·-_\"?!()#$^`~[]"
    "ΣσςΑαΌİıIiẞßſKÅǅÿŸ"
    "\u0300\u0301\u0307\u0308\u0323\u0327\u0345\u05b0\u093c\u20dd\u1734"
    "\x00\x01\x0b\x0c\x1c\x1d\x1e\x1f\x7f\x85\xa0\xad\ufeff\ufffd\ufffe"
    "\u2000\u200b\u200d\u2028\u2029\u202f\u3000\u180e\ue000"
    "中文\u33ff\u3400\uf900\U00020000\U0002ceaf\U0002f800한가각가あテｱ"
    "½²ﬁ…№€§«»¿、。\u037e\u0387\u1fef\u1ffd\U0001f600\U0001fae8\U00010400"
)
any_text = st.text() | st.text(alphabet=TRICKY, max_size=40)
surrogate_text = st.text(st.characters(exclude_categories=[]), max_size=20)

VOCABULARIES = [
    ["[UNK]"],
    ["[PAD]", "[UNK]", "a", "##a", "aa", "##aaa", "σ", "##ς", "##σ", "中"],
    ["[UNK]", "##", "#", "", "[", "]", "mask", "##k", "e", "##e", "é", "##é"],
    ["[UNK]", "[UNK]", "a", "a", "b", "##b ", " c", "0", "##9", ".", "。"],
    ["[UNK]", "i", "##i", "\u0307", "##\u0307", "ᄀ", "##ᅡ", "가", "가", "ß"],
]
small_vocabularies = st.lists(
    st.text(alphabet="abσςé中.#", min_size=1, max_size=3).flatmap(
        lambda piece: st.sampled_from([piece, f"##{piece}"])
    ),
    max_size=30,
)


@pytest.fixture(scope="module")
def fast():
    return {setting: BasicTokenizer(*setting) for setting in SETTINGS}


@hypothesis.settings(max_examples=400)
@hypothesis.given(text=any_text | surrogate_text | st.binary(max_size=60))
def test_words_equal_the_plain_tokenizers(fast, reference_tokenizer, text):
    for setting, tokenizer in fast.items():
        expected = reference_tokenizer.basic_tokenize(text, *setting)
        assert tokenizer.tokenize(text) == expected


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_character_in_context(fast, reference_tokenizer, setting):
    for text in character_contexts():
        expected = reference_tokenizer.basic_tokenize(text, *setting)
        assert fast[setting].tokenize(text) == expected


def character_contexts():
    """Texts that together hold every assigned character in a few places.

    Of the large uniform classes (ideographs, Hangul, private use and
    unassigned code points) every 97th serves.
    """
    text = []
    for code_point in range(sys.maxunicode + 1):
        char = chr(code_point)
        category = unicodedata.category(char)
        uniform = category in ("Lo", "Cn", "Co", "Cs") and code_point > 0x3000
        if uniform and code_point % 97:
            continue
        text.append(f"{char} Éa{char}Σ{char}. {char}\u0301\u0323")
        if len(text) == 200:
            yield " ".join(text)
            text = []
    yield " ".join(text)


@hypothesis.settings(max_examples=800)
@hypothesis.given(
    lines=st.sampled_from(VOCABULARIES)
    | small_vocabularies.map(lambda pieces: ["[UNK]", *pieces]),
    setting=st.sampled_from(SETTINGS),
    text=any_text | st.text(alphabet="abσςΣé中.# A", max_size=30),
)
def test_pieces_equal_for_odd_vocabularies(
    reference_tokenizer, tmp_path_factory, lines, setting, text
):
    path = tmp_path_factory.getbasetemp() / "odd_vocab.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = FullTokenizer(str(path), *setting)
    vocab = {token.strip(): number for number, token in enumerate(lines)}
    assert tokenizer.vocab == vocab
    pieces = reference_tokenizer.tokenize(text, vocab, *setting)
    assert tokenizer.tokenize(text) == pieces
    assert tokenizer.encode(text) == [vocab[piece] for piece in pieces]
