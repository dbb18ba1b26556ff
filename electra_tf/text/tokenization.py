# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenization of text into wordpieces and ids.

The pieces of a word depend only on the word, so they are cached: in
running text nearly every word has occurred before. Text is split at white space
and around frequent punctuation marks, and each raw word is looked up; only a
new word is cleaned, lower-cased and split.

Source: google-research/electra, model/tokenization.py, under the same names
unless a docstring names another.
"""

import abc
from collections.abc import Iterable

from configure.errors import UserError
from electra_tf.text.basic_tokenizer import BasicTokenizer
from electra_tf.text.casing import read_casing
from electra_tf.text.library_tokenizer import (
    AddedTokenSplitter,
    LibraryBasicTokenizer,
)
from electra_tf.text.memo import MEMO_ENTRIES, MEMO_WORD_LENGTH, Memo
from electra_tf.text.settings_files import read_settings
from electra_tf.text.tokenizer_settings import LIBRARY
from electra_tf.text.vocabulary import load_wordpieces
from electra_tf.text.wordpiece import WordpieceTokenizer, as_text, chain


class Tokenizer(abc.ABC):
    """Base class of the WordPiece and the byte-level BPE tokenizers."""

    vocab: dict[str, int]  # special tokens are named as in WordPiece
    inv_vocab: dict[int, str]

    @abc.abstractmethod
    def encode(self, text: str | bytes) -> list[int]:
        """Split a text into tokens and return their ids."""

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of tokens.

        Differs: an unknown token raises a UserError, not a `KeyError`.
        """
        try:
            return [self.vocab[token] for token in tokens]
        except KeyError as error:
            raise UserError(
                f"Token {error.args[0]!r} is not in the vocabulary of"
                f" {len(self.vocab)} tokens. Use the vocabulary that produced"
                " the tokens, or add the token to the vocabulary."
            ) from None

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens of ids."""
        try:
            return [self.inv_vocab[number] for number in ids]
        except KeyError as error:
            raise UserError(
                f"Id {error.args[0]} is not in the vocabulary; expected an id"
                f" from {min(self.inv_vocab, default=0)} to"
                f" {max(self.inv_vocab, default=0)}. Use the vocabulary that"
                " produced the ids."
            ) from None


def complete_casing(
    vocab_file: str, do_lower_case: bool | None, strip_accents: bool | None
) -> tuple[bool, bool]:
    """Return the casing, with None replaced by the vocabulary's casing."""
    if do_lower_case is not None and strip_accents is not None:
        return do_lower_case, strip_accents
    stated = read_casing(vocab_file)
    if do_lower_case is None:
        do_lower_case = stated.get("do_lower_case", True)
    if strip_accents is None:
        strip_accents = stated.get("strip_accents", True)
    return do_lower_case, strip_accents


class FullTokenizer(Tokenizer):
    """WordPiece tokenizer of a vocab.txt.

    A casing of None is read from the file next to the vocabulary. Other
    settings in this file apply, too (see `tokenizer_settings`). A change of the
    tokenizer's attributes does not affect words that were already split.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool | None = None,
        strip_accents: bool | None = None,
    ):
        casing = complete_casing(vocab_file, do_lower_case, strip_accents)
        self.settings = settings = read_settings(vocab_file)
        wordpieces = load_wordpieces(vocab_file)
        self.vocab = settings.with_tokens(wordpieces)
        self.inv_vocab = {number: token for token, number in self.vocab.items()}
        self.wordpiece_tokenizer = WordpieceTokenizer(
            wordpieces, max_input_chars_per_word=settings.max_word_length
        )
        # Splitter of texts at added tokens; None: the original's tokenizer,
        # which has no added tokens.
        self.splitter: AddedTokenSplitter | None = None
        if settings.characters == LIBRARY:
            strip = settings.strips(*casing)
            self.basic_tokenizer = LibraryBasicTokenizer(
                settings, casing[0], strip
            )
            self.splitter = AddedTokenSplitter(
                settings, self.basic_tokenizer, self.vocab
            )
        else:
            self.basic_tokenizer = BasicTokenizer(*casing)
        # Two levels of caches: "end/" and "end…" are different raw words that
        # share the pieces of "end".
        self._pieces_of_token = Memo(self.wordpiece_tokenizer.split_word)
        whole = {word: (self.vocab[word],) for word in self._whole_words()}
        self._ids_of_word = Memo(self._encode_word, whole)
        self._pieces_of_word = Memo(self._split_word)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Split a text into wordpieces."""
        if self.splitter:
            return self.convert_ids_to_tokens(self.encode(text))
        raw_words = self.basic_tokenizer.raw_words(as_text(text))
        return chain(map(self._pieces_of_word.__getitem__, raw_words))

    def encode(self, text: str | bytes) -> list[int]:
        """Split a text into wordpieces and return their ids."""
        text, ids_of = as_text(text), self._ids_of_word.__getitem__
        if not self.splitter:
            return chain(map(ids_of, self.basic_tokenizer.raw_words(text)))
        ids: list[int] = []
        for part in self.splitter.split(text):
            if isinstance(part, int):
                ids.append(part)
            else:
                raw_words = self.basic_tokenizer.raw_words(part)
                ids += chain(map(ids_of, raw_words))
        return ids

    def _whole_words(self) -> list[str]:
        """Return words of the vocabulary that tokenization leaves unchanged."""
        lower = self.basic_tokenizer.do_lower_case
        longest = min(MEMO_WORD_LENGTH, self.settings.max_word_length)
        whole_words = [
            word
            for word in self.wordpiece_tokenizer.vocab
            if word.isascii()
            and word.isalnum()
            and len(word) <= longest
            and not (lower and word != word.lower())
        ]
        # These words fill at most half of the memo, so that the memo has room
        # for the other words of texts.
        return whole_words[: MEMO_ENTRIES // 2]

    def _split_word(self, word: str) -> tuple[str, ...]:
        tokens = self.basic_tokenizer.split_word(word)
        # A single token, the usual case, needs no second memo, because the memo
        # of raw words stores the result.
        if len(tokens) == 1:
            return tuple(self.wordpiece_tokenizer.split_word(tokens[0]))
        return tuple(chain(map(self._pieces_of_token.__getitem__, tokens)))

    def _encode_word(self, word: str) -> tuple[int, ...]:
        return tuple(self.convert_tokens_to_ids(self._split_word(word)))
