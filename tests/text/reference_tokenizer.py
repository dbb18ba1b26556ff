# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (similar letters are intended)
"""A plain implementation of the tokenizer, which shares no code with it."""

import unicodedata

CJK = (
    list(range(0x3400, 0x4DC0))
    + list(range(0x4E00, 0xA000))
    + list(range(0xF900, 0xFB00))
    + list(range(0x20000, 0x2A6E0))
    + list(range(0x2A700, 0x2CEB0))
    + list(range(0x2F800, 0x2FA20))
)
CJK = frozenset(map(chr, CJK))
ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
# Characters that rules of the tokenizer name, alone or with a neighbour: the
# sigmas, cased and ignorable characters around sigmas, marks that normalization
# reorders, letters that lower-casing lengthens, characters that split words,
# join words or are removed, and the limits of classes.
TELLING = (
    "aAbBzZ0129 \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x7f\x85\xad\xa0\0\x01"
    ".,:;'’·-_\"?!()#$^`~[]‘؟।၊‿―“”…№€§«»¿、。"
    "ΣσςΑαΆΐİıIiÉéẞßſŒœÅǅÿŸªºµ½²Œǅʼ™ȷЙйїيآকা়়ّড়ក়ึำไກຳ가각힣한ㄱあテパｱｶﾞ"
    "中文豈﨎㍿ﬁ\u0300\u0301\u0307\u0308\u0323\u0327\u034f\u0345\u05b0\u0651"
    "\u093c\u0c4d\u1b44\u1734\u302e\u302f\u20dd\ufe0f\u2000\u200b\u200d\u2028"
    "\u2029\u202f\u3000\u180e\u33ff\u3400\uf900\ufeff\ufffd\ufffe\ue000\u1fef"
    "\u1ffd\u037e\u0387\u2126\u212a\u212b\u226e\u1e9e\u1e9b\u0130\u0149\u01f0"
    "\U0001d165\U0001d15e\U0001d16d\U00020000\U0002ceaf\U0002f800\U000e0100"
    "\U0001f600\U0001fae8\U0001f1e9\U00010400\U0010ffff"
    "K\u038c\u0915\u093e\u1100\u1161\u11a8"
)


def tokenize(text, vocab, do_lower_case=True, strip_accents=True):
    pieces = []
    for word in basic_tokenize(text, do_lower_case, strip_accents):
        pieces.extend(wordpieces(word, vocab))
    return pieces


def basic_tokenize(text, do_lower_case=True, strip_accents=True):
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="ignore")
    spaced = ""
    for char in clean(text):
        spaced += " " + char + " " if char in CJK else char
    parts = []
    for word in spaced.split():
        if do_lower_case:
            word = word.lower()
        if do_lower_case and strip_accents:
            word = without_accents(word)
        parts.extend(at_punctuation(word))
    # Lower-casing or decomposition may yield white space.
    return " ".join(parts).split()


def clean(text):
    cleaned = ""
    for char in text:
        category = unicodedata.category(char)
        if char in "\t\n\r" or category == "Zs":
            cleaned += " "
        elif char in "\0\ufffd" or category[0] == "C":
            pass
        else:
            cleaned += char
    return cleaned


def without_accents(word):
    return "".join(
        char
        for char in unicodedata.normalize("NFD", word)
        if unicodedata.category(char) != "Mn"
    )


def at_punctuation(word):
    parts, part = [], ""
    for char in word:
        if unicodedata.category(char)[0] == "P" or char in ASCII_PUNCTUATION:
            parts += [part, char]
            part = ""
        else:
            part += char
    return [part for part in [*parts, part] if part]


def wordpieces(word, vocab):
    if len(word) > 200:
        return ["[UNK]"]
    pieces, rest = [], word
    while rest:
        prefix = "##" if pieces else ""
        for length in range(len(rest), 0, -1):
            if prefix + rest[:length] in vocab:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + rest[:length])
        rest = rest[length:]
    return pieces


def read_characters(raw):
    """Return the characters of UTF-8 bytes with first and next byte.

    Bytes that are not UTF-8 are left out.
    """
    position, result = 0, []
    while position < len(raw):
        for size in (1, 2, 3, 4):
            try:
                char = raw[position : position + size].decode()
            except UnicodeDecodeError:
                continue
            if char:
                result.append((char, position, position + size))
                position += size
                break
        else:
            position += 1
    text = "".join(char for char, _, _ in result)
    assert text == raw.decode("utf-8", "ignore")
    return result
