# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text to wordpieces and ids: characters, the vocabulary, the tokenizers.

What a word becomes depends on that word alone, so the answer is remembered:
in running text nearly every word has been met before. Text is split at white
space and around the commonest marks, and each raw word is looked up; only a
word not met before is cleaned, lower-cased and split.

Source: google-research/electra, model/tokenization.py, under the same names
where no other is said.
"""

from __future__ import annotations

import abc
import hashlib
import itertools
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.files.digests import check_digest, file_sha256
from electra_tf.files.reading import read_text
from electra_tf.text.memo import MEMO_ENTRIES, MEMO_WORD_LENGTH, Memo
from electra_tf.text.tokenizer_settings import (
    LIBRARY,
    digest_of,
    read_settings,
)
from electra_tf.text.wordpiece import WordpieceTokenizer, as_text, chain

if TYPE_CHECKING:
    from electra_tf.text.library_tokenizer import AddedTokenSplitter

# The classes of characters that tokenization tells apart.

# Inclusive ranges of the code points that become words of their own. These are
# the blocks of CJK ideographs as they stood in 2018; hiragana, katakana, hangul
# and the extensions added since are not in them.
CJK_RANGES = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)

# Control characters at which `str.split()` nevertheless splits. They are to be
# deleted, which joins their neighbours, so this must happen before any split.
SPLITTING_CONTROLS = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"

_SPACING_CONTROLS = frozenset("\t\n\r")


def is_whitespace(char: str) -> bool:
    """Whether a character becomes a space. Source: `_is_whitespace`."""
    return char in _SPACING_CONTROLS or unicodedata.category(char) == "Zs"


def is_removed(char: str) -> bool:
    """Whether cleaning deletes a character: C* and U+FFFD, not tab, line ends.

    Source: `_is_control`, `BasicTokenizer._clean_text`.
    """
    if char in _SPACING_CONTROLS:
        return False
    return char == "\ufffd" or unicodedata.category(char).startswith("C")


def is_punctuation(char: str) -> bool:
    """Whether a character is a token by itself. Source: `_is_punctuation`."""
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char).startswith("P")


def is_cjk(char: str) -> bool:
    """Whether a character is an ideograph. Source: `_is_chinese_char`."""
    code_point = ord(char)
    return any(first <= code_point <= last for first, last in CJK_RANGES)


def is_accent(char: str) -> bool:
    """Whether NFD text loses it with accents. Source: `_run_strip_accents`."""
    return unicodedata.category(char) == "Mn"


class _Table(dict):
    """A `str.translate` table whose rows are worked out when first wanted."""

    def __init__(self, row: Callable[[str], str | None]):
        """Takes what a character becomes; None deletes it."""
        super().__init__()
        self._row = row

    def __missing__(self, code_point: int) -> str | int | None:
        char = chr(code_point)
        row = self._row(char)
        # A character that stays goes in as a number: `translate` is quicker.
        self[code_point] = code_point if row == char else row
        return self[code_point]

    def __reduce__(self) -> tuple:
        return _Table, (self._row,)


def _clean(char: str) -> str | None:
    """Deletes what is removed, makes spaces plain, sets ideographs apart."""
    if is_removed(char):
        return None
    if is_whitespace(char):
        return " "
    return f" {char} " if is_cjk(char) else char


def _set_apart(char: str) -> str:
    return f" {char} " if is_punctuation(char) else char


def _set_apart_and_strip(char: str) -> str | None:
    return None if is_accent(char) else _set_apart(char)


def splitting_table(drop_accents: bool) -> _Table:
    """A table that sets punctuation apart; optionally drops accents."""
    return _Table(_set_apart_and_strip if drop_accents else _set_apart)


# Vocabulary files: one token per line, its id the number of lines before it.

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS


def load_wordpieces(path: str) -> dict[str, int]:
    """Return the tokens that words are cut into, with their ids."""
    require_wordpiece(path, "text in exports and inspection")
    return {token: number for number, token in enumerate(_read_tokens(path))}


def load_vocab(path: str) -> dict[str, int]:
    """Read a vocabulary as the original does, whatever is in it.

    Added tokens, of which the files beside it tell, come last.
    """
    return read_settings(path).with_tokens(load_wordpieces(path))


def check_vocab(path: str, vocab_size: int | None = None) -> dict[str, int]:
    """Read a vocabulary and refuse one that cannot serve so large a model."""
    if is_bpe(path):
        from electra_tf.text.bpe import read_vocab  # It builds on this module.

        vocab = read_vocab(path)
    else:
        vocab = check_tokens(path, _read_tokens(path))
        vocab = read_settings(path).with_tokens(vocab)
    if vocab_size is not None and len(vocab) > vocab_size:
        raise UserError(
            f"{path} holds {len(vocab)} tokens but the model has {vocab_size};"
            " use the vocabulary that it was trained with (for a new model set"
            f" vocab_size to {len(vocab)})."
        )
    return vocab


def check_vocab_size(config: Any, count: int) -> None:
    """Raises where nobody asked for more rows than there are tokens."""
    overrides = config.model_hparam_overrides
    rows = overrides.get("vocab_size", config.vocab_size)
    origin = config.origins.get("vocab_size", "argument")
    asked = "vocab_size" in overrides or (
        config.is_stated("vocab_size") and origin != "checkpoint"
    )
    if count < rows and not asked:
        raise UserError(
            f"{config.vocab_file} holds {count} tokens, but vocab_size is"
            f" {rows} ({origin}). Give the vocab_file that belongs to the"
            f" model, or set vocab_size to {count}; to {rows} where the"
            " model has rows to spare"
        )


def check_tokens(path: str, tokens: list[str]) -> dict[str, int]:
    """Numbers tokens, and refuses those that cannot serve."""
    if not any(tokens):
        raise UserError(
            f"Vocabulary file {path} is empty. Expected one token per line."
        )
    if blank := [n for n, token in enumerate(tokens, 1) if not token]:
        raise UserError(
            f"Vocabulary file {path} has {len(blank)} blank line(s):"
            f" {join_names(blank, 3)}. Every line counts as a token; delete"
            " blank lines, or put a token on them if ids after them must stay."
        )
    if damaged := [n for n, token in enumerate(tokens, 1) if "\0" in token]:
        raise UserError(
            f"Vocabulary file {path} has zero bytes on {len(damaged)} line(s):"
            f" {join_names(damaged, 3)}. No text has them; copy the file again."
        )
    vocab: dict[str, int] = {}
    repeats = []
    for number, token in enumerate(tokens):
        if (first := vocab.setdefault(token, number)) != number:
            repeats.append(
                f"line {number + 1} repeats {token!r} of line {first + 1}"
            )
    if repeats:
        raise UserError(
            f"Vocabulary file {path} has {len(repeats)} duplicate token(s):"
            f" {join_names(repeats, 3)}. Each token must have one id; remove or"
            " rename the repeats."
        )
    refuse_missing_specials(path, tokens)
    if tokens[0] != PAD:
        raise UserError(
            f"Vocabulary file {path}, line {tokens.index(PAD) + 1}: [PAD] must"
            f" be the first line (id 0), because records are padded with 0;"
            f" line 1 is {tokens[0]!r}."
        )
    return vocab


def is_bpe(vocab_file: str | os.PathLike) -> bool:
    """Whether a vocabulary is byte-level BPE's tokenizer.json, by its name."""
    return os.fspath(vocab_file).endswith(".json")


def vocab_hash(path: str) -> str:
    """Return the SHA-256 of the file's bytes, as `sha256sum` prints it.

    Settings next to it change it if they are `distinctive`: a vocabulary in a
    plain folder of transformers equals its copy.
    """
    digest = _read(path, file_sha256)
    if settings := digest_of(read_settings(path).distinctive):
        return hashlib.sha256(f"{digest} {settings}".encode()).hexdigest()
    return digest


def refuse_other_vocab(path: str, known: str, owner: str) -> None:
    """Raises unless a vocabulary is the one that a model was made with."""
    if is_bpe(path) or is_bpe(known):
        if vocab_hash(path) != vocab_hash(known):
            raise UserError(
                f"{path}: another vocabulary than {known}, that of {owner};"
                " use that one as vocab_file"
            )
        return
    pair = (_read_tokens(path), _read_tokens(known))
    for number, (ours, theirs) in enumerate(itertools.zip_longest(*pair), 1):
        if ours != theirs:
            raise UserError(
                f"{path}:{number}: found {ours!r}; expected {theirs!r}, as in"
                f" {known}, the vocabulary of {owner}. Use that one as"
                " vocab_file; where other tokens took the place of unused ones"
                " on purpose, replace it"
            )
    ours, theirs = (read_settings(p).distinctive for p in (path, known))
    for name in sorted({**ours, **theirs}):
        if ours.get(name) != theirs.get(name):
            raise UserError(
                f"{path}: the tokenizer's setting {name} differs from that of"
                f" {known}, the vocabulary of {owner}. Use that one as"
                " vocab_file, or copy the files beside it, too."
            )


def require_wordpiece(vocab_file: str, what: str) -> None:
    """Refuses byte-level BPE for what cannot do with it."""
    if is_bpe(vocab_file):
        raise UserError(
            f"{vocab_file} is byte-level BPE, which serves pre-training and"
            f" tasks on sentences; {what} needs a WordPiece vocabulary, a"
            " vocab.txt"
        )


def _read_tokens(path: str) -> list[str]:
    # Only "\n" ends a line: `str.splitlines` would break tokens apart at other
    # characters, and shift all ids after them. Chinese vocabularies have a line
    # of U+2028 alone, which no text's token is.
    lines = _read(path, read_text).split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.strip() or "\u2028" * ("\u2028" in line) for line in lines]


def _read(path: str, read: Callable[[str], Any]) -> Any:
    check_digest(os.fspath(path))
    try:
        return read(os.fspath(path))
    except UserError as error:
        raise UserError(
            f"Vocabulary file {error}. Expected a file such as vocab.txt, one"
            " token per line, in UTF-8."
        ) from error


def refuse_missing_specials(path: str, tokens: Collection[str]) -> None:
    """Raises unless all special tokens are there."""
    if missing := [token for token in SPECIAL_TOKENS if token not in tokens]:
        hint = ""
        if next(iter(tokens), "").startswith("\ufeff"):
            hint = " Line 1 starts with a byte order mark; remove it."
        raise UserError(
            f"Vocabulary file {path} ({len(tokens)} lines) lacks"
            f" {', '.join(missing)}. A WordPiece vocabulary must hold"
            f" {' '.join(SPECIAL_TOKENS)}, each on a line of its own.{hint}"
        )


# Text to words: cleaning, lower-casing, accents, punctuation.

_SPLITTING_CONTROLS = re.compile(f"[{SPLITTING_CONTROLS}]")
# The commonest marks, as they stand in the text and set apart. Those of the
# second kind are among the characters that lower-casing looks past to see
# whether a sigma ends its word, so they are set apart only where no sigma is.
_MARKS = tuple((mark, f" {mark} ") for mark in ',"-;?!()')
_MARKS_IN_ASCII = (*_MARKS, *((mark, f" {mark} ") for mark in ".':"))
# In cleaned ASCII without spaces, what is not alphanumeric is punctuation.
_ASCII_PIECES = re.compile(r"[0-9A-Za-z]+|[^0-9A-Za-z]")


def split_raw_words(text: str) -> list[str]:
    """Splits text at white space and around the commonest marks.

    Every later step looks at one word at a time, so splitting first changes
    nothing as long as it happens where the original would split: at the
    characters `str.split` knows, except the few controls that the original
    deletes before it splits; and on both sides of punctuation, which is always
    a token of its own.
    """
    # Most lines are printable throughout, hence hold none of those controls.
    if not text.isprintable():
        text = _SPLITTING_CONTROLS.sub("", text)
    for mark, set_apart in _MARKS_IN_ASCII if text.isascii() else _MARKS:
        text = text.replace(mark, set_apart)
    return text.split()


class BasicTokenizer:
    """Splits text into words and punctuation marks."""

    def __init__(self, do_lower_case: bool = True, strip_accents: bool = True):
        self.do_lower_case = do_lower_case
        self.strip_accents = strip_accents
        self._decompose = bool(do_lower_case and strip_accents)
        self._cleaning = _Table(_clean)
        self._splitting = splitting_table(self._decompose)

    def tokenize(self, text: str | bytes) -> list[str]:
        return chain(map(self.split_word, split_raw_words(as_text(text))))

    def raw_words(self, text: str) -> list[str]:
        """Split a text into words that can be looked at one by one."""
        # "End" and "end" are one word then. Elsewhere lower-casing has to wait
        # until the text is clean.
        if self.do_lower_case and text.isascii():
            text = text.lower()
        return split_raw_words(text)

    def split_word(self, word: str) -> list[str]:
        """Does to one word of `split_raw_words` all that remains to be done."""
        if not word.isascii():
            return self._split_any(word)
        if not word.isprintable():
            word = word.translate(self._cleaning)
        if self.do_lower_case:
            word = word.lower()
        return _ASCII_PIECES.findall(word)

    def _split_any(self, word: str) -> list[str]:
        tokens = []
        # Lower-casing must see each cleaned word whole and alone: a sigma is
        # final or not by its neighbours.
        for part in word.translate(self._cleaning).split():
            if self.do_lower_case:
                part = part.lower()
            if self._decompose:
                part = unicodedata.normalize("NFD", part)
            tokens += part.translate(self._splitting).split()
        return tokens


class Tokenizer(abc.ABC):
    """Text to ids: WordPiece's (`FullTokenizer`) or byte-level BPE's."""

    vocab: dict[str, int]  # special tokens under WordPiece's names
    inv_vocab: dict[int, str]

    @abc.abstractmethod
    def encode(self, text: str | bytes) -> list[int]:
        """Splits text into tokens and returns their ids."""

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Looks up the ids of wordpieces.

        Differs: an unknown token is named in a sentence, not in a `KeyError`.
        """
        try:
            return [self.vocab[token] for token in tokens]
        except KeyError as error:
            raise UserError(
                f"Token {error.args[0]!r} is not among the {len(self.vocab)} of"
                " the vocabulary. Add it to the vocabulary file, or use the"
                " file that the tokens were made with."
            ) from None

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Looks up the wordpieces of ids."""
        try:
            return [self.inv_vocab[number] for number in ids]
        except KeyError as error:
            raise UserError(
                f"Id {error.args[0]} is not in the vocabulary, whose ids run"
                f" from {min(self.inv_vocab, default=0)} to"
                f" {max(self.inv_vocab, default=0)}. Use the vocabulary file"
                " that the ids were made with."
            ) from None


def open_tokenizer(
    vocab_file: str,
    do_lower_case: bool | None = None,
    strip_accents: bool | None = None,
) -> Tokenizer:
    """The tokenizer of a vocab.txt, or of byte-level BPE's tokenizer.json.

    None: as the file beside the vocabulary states, otherwise true.
    """
    do_lower_case, strip_accents = _casing(
        vocab_file, do_lower_case, strip_accents
    )
    if is_bpe(vocab_file):
        from electra_tf.text.bpe import BpeTokenizer  # As in `check_vocab`.

        return BpeTokenizer(vocab_file, do_lower_case, strip_accents)
    return FullTokenizer(vocab_file, do_lower_case, strip_accents)


def _casing(
    vocab_file: str, do_lower_case: bool | None, strip_accents: bool | None
) -> tuple[bool, bool]:
    """Fill in what is not stated from the file beside a vocabulary."""
    if do_lower_case is not None and strip_accents is not None:
        return do_lower_case, strip_accents
    from electra_tf.text.casing import read_casing  # It builds on this module.

    stated = read_casing(vocab_file)
    if do_lower_case is None:
        do_lower_case = stated.get("do_lower_case", True)
    if strip_accents is None:
        strip_accents = stated.get("strip_accents", True)
    return do_lower_case, strip_accents


class FullTokenizer(Tokenizer):
    """Splits text into the wordpieces of a vocabulary.

    Casing that is None is that of the file beside the vocabulary, and other
    settings there are followed (see `tokenizer_settings`). Changing the
    attributes of a made tokenizer has no effect on words that it has met.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool | None = None,
        strip_accents: bool | None = None,
    ):
        casing = _casing(vocab_file, do_lower_case, strip_accents)
        self.settings = settings = read_settings(vocab_file)
        wordpieces = load_wordpieces(vocab_file)
        self.vocab = settings.with_tokens(wordpieces)
        self.inv_vocab = {number: token for token, number in self.vocab.items()}
        self.wordpiece_tokenizer = WordpieceTokenizer(
            wordpieces, max_input_chars_per_word=settings.max_word_length
        )
        # Cuts texts at added tokens; None: there are none.
        self.splitter: AddedTokenSplitter | None = None
        if settings.characters == LIBRARY:
            # It builds on this module.
            from electra_tf.text import library_tokenizer as library

            strip = settings.strips(*casing)
            self.basic_tokenizer = library.LibraryBasicTokenizer(
                settings, casing[0], strip
            )
            self.splitter = library.AddedTokenSplitter(
                settings, self.basic_tokenizer, self.vocab
            )
        else:
            self.basic_tokenizer = BasicTokenizer(*casing)
        # Two levels: "end/" and "end…" are different raw words that share the
        # work of splitting "end" into pieces.
        self._pieces_of_token = Memo(self.wordpiece_tokenizer.split_word)
        known = {word: (self.vocab[word],) for word in self._whole_words()}
        self._ids_of_word = Memo(self._encode_word, known)
        self._pieces_of_word = Memo(self._split_word)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Split a text into tokens."""
        if self.splitter:
            return self.convert_ids_to_tokens(self.encode(text))
        words = self.basic_tokenizer.raw_words(as_text(text))
        return chain(map(self._pieces_of_word.__getitem__, words))

    def encode(self, text: str | bytes) -> list[int]:
        text, ids_of = as_text(text), self._ids_of_word.__getitem__
        if not self.splitter:
            return chain(map(ids_of, self.basic_tokenizer.raw_words(text)))
        ids: list[int] = []
        for part in self.splitter.split(text):
            if isinstance(part, int):
                ids.append(part)
            else:
                words = self.basic_tokenizer.raw_words(part)
                ids += chain(map(ids_of, words))
        return ids

    def _whole_words(self) -> list[str]:
        """Plain words of the vocabulary: each stays as it is."""
        lower = self.basic_tokenizer.do_lower_case
        longest = min(MEMO_WORD_LENGTH, self.settings.max_word_length)
        words = [
            word
            for word in self.wordpiece_tokenizer.vocab
            if word.isascii()
            and word.isalnum()
            and len(word) <= longest
            and not (lower and word != word.lower())
        ]
        return words[: MEMO_ENTRIES // 2]  # There must be room for others.

    def _split_word(self, word: str) -> tuple[str, ...]:
        tokens = self.basic_tokenizer.split_word(word)
        if len(tokens) == 1:  # the usual case; the memo of words remembers it
            return tuple(self.wordpiece_tokenizer.split_word(tokens[0]))
        return tuple(chain(map(self._pieces_of_token.__getitem__, tokens)))

    def _encode_word(self, word: str) -> tuple[int, ...]:
        return tuple(self.convert_tokens_to_ids(self._split_word(word)))
