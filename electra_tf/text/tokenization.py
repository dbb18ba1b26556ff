# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""End-to-end tokenization: text to wordpieces and their ids.

What a word becomes depends on that word alone, so the answer is remembered:
in running text nearly every word has been met before. Text is split at white
space and around the commonest marks, and each raw word is looked up; only a
word not met before is cleaned, lower-cased and split.
"""

import itertools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from configure.errors import UserError
from electra_tf.text import characters
from electra_tf.text.vocab import invert_vocab, load_vocab

# Text to words: cleaning, lower-casing, accents, punctuation.

_SPLITTING_CONTROLS = re.compile(f"[{characters.SPLITTING_CONTROLS}]")
# The commonest marks, as they stand in the text and set apart. Those of the
# second kind are among the characters that lower-casing looks past to see
# whether a sigma ends its word, so they are set apart only where no sigma is.
_MARKS = tuple((mark, f" {mark} ") for mark in ',"-;?!()')
_MARKS_IN_ASCII = (*_MARKS, *((mark, f" {mark} ") for mark in ".':"))
# In cleaned ASCII without spaces, what is not alphanumeric is punctuation.
_ASCII_PIECES = re.compile(r"[0-9A-Za-z]+|[^0-9A-Za-z]")


def as_text(text: str | bytes) -> str:
    """Makes a `str` of text; of bytes, what is not UTF-8 is left out.

    Source: model/tokenization.py `convert_to_unicode`.
    """
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise ValueError(f"Text must be str or bytes, not {type(text).__name__}.")


def split_raw_words(text: str) -> list[str]:
    """Splits text at white space and around the commonest marks.

    All other work is left to each word. Every later step looks at one word at
    a time, so splitting first changes nothing as long as it happens where the
    original would split: at the characters `str.split` knows, except the few
    controls that the original deletes before it splits; and on both sides of
    punctuation, which is always a token of its own ("end," and "end." both
    hold the word "end", which need then be worked out only once).
    """
    # Most lines are printable throughout, hence hold none of those controls.
    if not text.isprintable():
        text = _SPLITTING_CONTROLS.sub("", text)
    for mark, set_apart in _MARKS_IN_ASCII if text.isascii() else _MARKS:
        text = text.replace(mark, set_apart)
    return text.split()


class BasicTokenizer:
    """Splits text into words and punctuation marks.

    The settings are read when the tokenizer is made; changing the attributes
    afterwards has no effect.

    Source: model/tokenization.py `BasicTokenizer`.
    """

    def __init__(self, do_lower_case: bool = True, strip_accents: bool = True):
        self.do_lower_case = do_lower_case
        self.strip_accents = strip_accents
        self._decompose = bool(do_lower_case and strip_accents)
        self._cleaning = characters.CleaningTable()
        self._splitting = characters.SplittingTable(self._decompose)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits text into words and marks; none is empty or holds spaces."""
        tokens = []
        for word in split_raw_words(as_text(text)):
            tokens += self.split_word(word)
        return tokens

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


# Words to pieces: greedy longest match against the vocabulary.

JOINER = "##"
# Longer words are unknown.
MAX_WORD_LENGTH = 200


class WordpieceTokenizer:
    """Splits words into the longest pieces the vocabulary holds.

    The vocabulary's longest piece is measured when the tokenizer is made;
    longer tokens added to `vocab` afterwards are not found.

    Source: model/tokenization.py `WordpieceTokenizer`.
    """

    def __init__(
        self,
        vocab: Collection[str],
        unk_token: str = "[UNK]",
        max_input_chars_per_word: int = MAX_WORD_LENGTH,
    ):
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word
        # No match can be longer than the longest piece, so the search for one
        # need not begin at the word's end.
        self._longest_first = max(map(len, vocab), default=0)
        continuing = (len(piece) for piece in vocab if piece[:2] == JOINER)
        self._longest_next = max(continuing, default=0) - len(JOINER)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits a word, or several between white space, into pieces."""
        pieces = []
        for word in as_text(text).split():
            pieces += self.split_word(word)
        return pieces

    def split_word(self, word: str) -> list[str]:
        """Splits one word into pieces."""
        vocab = self.vocab
        length = len(word)
        if length > self.max_input_chars_per_word:
            return [self.unk_token]
        if word in vocab:
            return [word]
        pieces = []
        start, prefix, longest = 0, "", self._longest_first
        while start < length:
            for end in range(min(length, start + longest), start, -1):
                piece = prefix + word[start:end]
                if piece in vocab:
                    break
            else:
                return [self.unk_token]
            pieces.append(piece)
            start, prefix, longest = end, JOINER, self._longest_next
        return pieces


# Entries per memo. A full one takes some 25 MB; a process which only encodes
# fills the one of words. Twice as many were hardly faster on 36 MB of prose.
MEMO_ENTRIES = 2**17
# Longer words are rare and mostly unique: they would only fill the memo.
MEMO_WORD_LENGTH = 64

_Value = TypeVar("_Value")


class FullTokenizer:
    """Splits text into the wordpieces of a vocabulary.

    Settings and vocabulary are read when the tokenizer is made; changing the
    attributes afterwards has no effect on words already met.

    Source: model/tokenization.py `FullTokenizer`.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool = True,
        strip_accents: bool = True,
    ):
        self.vocab = load_vocab(vocab_file)
        self.inv_vocab = invert_vocab(self.vocab)
        self.basic_tokenizer = BasicTokenizer(do_lower_case, strip_accents)
        self.wordpiece_tokenizer = WordpieceTokenizer(self.vocab)
        # Two levels: "end/" and "end…" are different raw words that share the
        # work of splitting "end" into pieces.
        self._tokens_of_token = _Memo(self._tokenize_token)
        self._ids_of_token = _Memo(self._encode_token)
        whole = self._whole_words()
        self._tokens_of_word = _Memo(
            self._tokenize_word, {word: (word,) for word in whole}
        )
        self._ids_of_word = _Memo(
            self._encode_word, {word: (self.vocab[word],) for word in whole}
        )

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits text into wordpieces."""
        words = self._raw_words(text)
        return _chain(map(self._tokens_of_word.__getitem__, words))

    def encode(self, text: str | bytes) -> list[int]:
        """Splits text into wordpieces and returns their ids."""
        words = self._raw_words(text)
        return _chain(map(self._ids_of_word.__getitem__, words))

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Looks up the ids of wordpieces."""
        return convert_tokens_to_ids(self.vocab, tokens)

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Looks up the wordpieces of ids."""
        return convert_ids_to_tokens(self.inv_vocab, ids)

    def _raw_words(self, text: str | bytes) -> list[str]:
        text = as_text(text)
        # "End" and "end" are one word then. Elsewhere lower-casing has to wait
        # until the text is clean (see `BasicTokenizer`).
        if self.basic_tokenizer.do_lower_case and text.isascii():
            text = text.lower()
        return split_raw_words(text)

    def _whole_words(self) -> list[str]:
        """Plain words of the vocabulary: each stays as it is."""
        lower = self.basic_tokenizer.do_lower_case
        words = [
            word
            for word in self.vocab
            if word.isascii()
            and word.isalnum()
            and len(word) <= MEMO_WORD_LENGTH
            and not (lower and word != word.lower())
        ]
        return words[: MEMO_ENTRIES // 2]  # There must be room for others.

    def _tokenize_word(self, word: str) -> tuple[str, ...]:
        tokens = self.basic_tokenizer.split_word(word)
        return _gather(self._tokens_of_token, tokens)

    def _encode_word(self, word: str) -> tuple[int, ...]:
        tokens = self.basic_tokenizer.split_word(word)
        return _gather(self._ids_of_token, tokens)

    def _tokenize_token(self, token: str) -> tuple[str, ...]:
        return tuple(self.wordpiece_tokenizer.split_word(token))

    def _encode_token(self, token: str) -> tuple[int, ...]:
        pieces = self.wordpiece_tokenizer.split_word(token)
        try:
            return tuple(map(self.vocab.__getitem__, pieces))
        except KeyError:  # convert_tokens_to_ids says which token it is.
            return tuple(self.convert_tokens_to_ids(pieces))


def convert_tokens_to_ids(
    vocab: Mapping[str, int], tokens: Iterable[str]
) -> list[int]:
    """Looks up the ids of wordpieces.

    Source: model/tokenization.py `convert_tokens_to_ids`.

    Differs: an unknown token is named in a sentence, not in a bare `KeyError`.
    """
    tokens = list(tokens)
    try:
        return [vocab[token] for token in tokens]
    except KeyError:
        missing = next(token for token in tokens if token not in vocab)
        raise UserError(
            f"Token {missing!r} is not among the {len(vocab)} of the"
            " vocabulary. Add it to the vocabulary file, or use the file that"
            " the tokens were made with."
        ) from None


def convert_ids_to_tokens(
    inv_vocab: Mapping[int, str], ids: Iterable[int]
) -> list[str]:
    """Looks up the wordpieces of ids.

    Source: model/tokenization.py `convert_ids_to_tokens`.

    Differs: as in `convert_tokens_to_ids`.
    """
    ids = list(ids)
    try:
        return [inv_vocab[number] for number in ids]
    except KeyError:
        missing = next(number for number in ids if number not in inv_vocab)
        raise UserError(
            f"Id {missing} is not in the vocabulary, whose ids run from"
            f" {min(inv_vocab, default=0)} to {max(inv_vocab, default=0)}. Use"
            " the vocabulary file that the ids were made with."
        ) from None


class _Memo(dict):
    """Remembers what a function returned for each word, within bounds."""

    def __init__(
        self,
        compute: Callable[[str], Iterable],
        known: Mapping[str, Iterable] | None = None,
    ):
        super().__init__(known or {})
        self.compute = compute

    def __missing__(self, word: str) -> Iterable:
        value = self.compute(word)
        if len(word) <= MEMO_WORD_LENGTH:
            # Forgetting everything at once costs nothing on each hit, and the
            # frequent words are back within a few lines.
            if len(self) >= MEMO_ENTRIES:
                self.clear()
            self[word] = value
        return value

    def __reduce__(self) -> tuple:
        # A copy sent to another process starts empty.
        return _Memo, (self.compute,)


def _gather(memo: _Memo, tokens: list[str]) -> tuple:
    if len(tokens) == 1:  # the usual case; the memo of words remembers it
        return memo.compute(tokens[0])
    return tuple(_chain(map(memo.__getitem__, tokens)))


def _chain(parts: Iterable[Iterable[_Value]]) -> list[_Value]:
    return list(itertools.chain.from_iterable(parts))
