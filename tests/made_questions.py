# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (letters of many scripts are the point here)
"""Generated questions in five languages, and the tokens of their answers.

The tokens come from the `tokenizers` library, which shares no code with this
project.
"""

import random
import unicodedata
from typing import NamedTuple

import pytest

# Words of each language, and their separators.
LANGUAGES = {
    "english": (
        "the fox saw a fox-like animal near foxhole in 1963 , and (that) fox's"
        " den was U.S. land .",
        [" ", " ", " ", "  ", "\n", "\t"],
    ),
    "german": (
        "Der Füchse Mäuse lebt im Wald Straße groß Überfluß in 1963 und der"
        " Fuchs , Bär (Bären) .",
        [" ", " ", " ", "  ", "\r\n"],
    ),
    "chinese": (
        "1963年 主教 河内 范廷颂 他 是 枢机 也是 。 ， “罪名” 成立 １２３"
        " ＡＢＣ 的 在",
        ["", "", "", " ", "\u3000"],
    ),
    "japanese": (
        "東京 は 日本 の 首都 です 。 ガラス が ドア ﾊﾞｽ パン ぺ 1963年 、 と"
        " 東京都",
        ["", "", "", " ", "\u3000"],
    ),
    "thai": (
        "กรุงเทพ เป็น เมือง ที่ ใหญ่ น้ำ ใน ประเทศ ไทย ๒๕๐๖ 1963 ก็ และ คนไทย",
        ["", "", "", " ", "  "],
    ),
}
# Texts that are in no vocabulary: emoji (with joiners), a letter of a different
# script, a word that is too long, and characters that cleaning removes.
ODD = ["😀", "👩\u200d🔬", "ꦗ", "z" * 201, "x\u200by", "\u200b", "…", "«q»"]
SETTINGS = [(False, False), (True, False), (True, True)]


class MadeQuestion(NamedTuple):
    """A question whose answer is characters of its passage."""

    question: str
    passage: str
    start: int  # index of the answer's first character
    end: int  # index after its last character


def make_questions(language: str, count: int, seed: int) -> list[MadeQuestion]:
    """Draw questions; most answers occur several times in their passage."""
    source = random.Random(f"{language} {seed}")
    text, separators = LANGUAGES[language]
    vocabulary = text.split(" ")
    made = []
    while len(made) < count:
        # Few different words, so that they repeat.
        sample = source.sample(vocabulary, 6) + source.sample(ODD, 2)
        passage, spans = "", []
        for word in source.choices(sample, k=source.randrange(4, 60)):
            spans.append((len(passage), len(passage) + len(word)))
            passage += word + source.choice(separators)
        first = source.randrange(len(spans))
        last = min(first + source.randrange(3), len(spans) - 1)
        start, end = spans[first][0], spans[last][1]
        if source.random() < 0.3:  # a part of a word
            end = source.randrange(start + 1, end + 1)
            start = source.randrange(start, end)
        question = " ".join(
            source.choices(vocabulary, k=source.randrange(1, 6))
        )
        if any(is_letter(char) for char in passage[start:end]):
            made.append(MadeQuestion(question, passage, start, end))
    return made


def is_letter(char: str) -> bool:
    """Return whether every setting keeps a character."""
    return unicodedata.category(char)[0] in "LNP"


def make_vocabulary() -> list[str]:
    """Return a vocabulary of characters and words; every fifth is missing."""
    chars, whole = set(), []
    for text, _ in LANGUAGES.values():
        whole += [word for word in text.split(" ")[::3] if len(word) < 6]
        for cased in (text, text.lower()):
            chars |= {*cased, *unicodedata.normalize("NFD", cased)} - {" "}
    known_chars = [char for i, char in enumerate(sorted(chars)) if i % 5]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    continuing = [f"##{char}" for char in known_chars]
    return list(dict.fromkeys([*special, *known_chars, *continuing, *whole]))


class LibraryTokenizer:
    """The `tokenizers` library's WordPiece, by the same settings."""

    def __init__(self, vocabulary, do_lower_case, strip_accents):
        tokenizers = pytest.importorskip("tokenizers")
        from tokenizers import models, normalizers, pre_tokenizers

        self._strips = do_lower_case and strip_accents
        self._tokenizer = tokenizers.Tokenizer(
            models.WordPiece(
                {token: number for number, token in enumerate(vocabulary)},
                unk_token="[UNK]",
                max_input_chars_per_word=200,
            )
        )
        self._tokenizer.normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=True,
            strip_accents=self._strips,
            lowercase=do_lower_case,
        )
        self._tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def __call__(self, text):
        """Return (token, start, end) for each token; `end` is exclusive."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return [
            (token, start, self._behind_accents(text, end))
            for token, (start, end) in zip(
                encoding.tokens, encoding.offsets, strict=True
            )
        ]

    def _behind_accents(self, text, end):
        """Return the end of a token with the accents that the library drops."""
        position = end
        while self._strips and position < len(text):
            kind = unicodedata.category(text[position])
            if kind == "Mn":
                end = position + 1
            elif kind[0] != "C":
                break
            position += 1
        return end


def pieces_under(pieces, start, end):
    """Return the first and last wordpiece with characters in a range."""
    shared = [i for i, (_, s, e) in enumerate(pieces) if s < end and e > start]
    return shared[0], shared[-1]
