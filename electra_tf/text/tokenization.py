# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""End-to-end tokenization: text to wordpieces and their ids.

What a word becomes depends on that word alone, so the answer is remembered:
in running text nearly every word has been met before. Text is split at white
space and around the commonest marks, and each raw word is looked up; only a
word not met before is cleaned, lower-cased and split.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from configure.errors import UserError
from electra_tf.text.basic import BasicTokenizer, as_text, split_raw_words
from electra_tf.text.vocab import invert_vocab, load_vocab
from electra_tf.text.wordpiece import WordpieceTokenizer

__all__ = [
    "BasicTokenizer",
    "FullTokenizer",
    "WordpieceTokenizer",
    "convert_ids_to_tokens",
    "convert_tokens_to_ids",
]

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

    Args:
      vocab_file: path of the vocabulary, one token per line.
      do_lower_case: whether to lower-case.
      strip_accents: whether a lower-casing tokenizer drops accents.

    Raises:
      UserError: the vocabulary cannot be read.

    Source:
      model/tokenization.py `FullTokenizer`.
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
        # Two floors: "end/" and "end…" are different raw words that share the
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
        """Splits text into wordpieces.

        Args:
          text: any string, or bytes in UTF-8 (what is not UTF-8 is left out).

        Returns:
          The wordpieces in order.
        """
        words = self._raw_words(text)
        return _chain(map(self._tokens_of_word.__getitem__, words))

    def encode(self, text: str | bytes) -> list[int]:
        """Splits text into wordpieces and returns their ids.

        Args:
          text: as for `tokenize`.

        Returns:
          What `convert_tokens_to_ids(tokenize(text))` returns, faster.

        Raises:
          UserError: a word is unknown and the vocabulary has no [UNK].
        """
        words = self._raw_words(text)
        return _chain(map(self._ids_of_word.__getitem__, words))

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Looks up the ids of wordpieces.

        Args:
          tokens: wordpieces of the vocabulary.

        Returns:
          Their ids, in order.

        Raises:
          UserError: a token is not in the vocabulary.
        """
        return convert_tokens_to_ids(self.vocab, tokens)

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Looks up the wordpieces of ids.

        Args:
          ids: ids of the vocabulary (Python or NumPy integers).

        Returns:
          The wordpieces, in order.

        Raises:
          UserError: an id is not in the vocabulary.
        """
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

    Args:
      vocab: from token to id.
      tokens: wordpieces of the vocabulary.

    Returns:
      Their ids, in order.

    Raises:
      UserError: a token is not in the vocabulary.

    Source:
      model/tokenization.py `convert_tokens_to_ids`.

    Differs:
      An unknown token is named in a sentence, not in a bare `KeyError`.
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

    Args:
      inv_vocab: from id to token.
      ids: ids of the vocabulary.

    Returns:
      The wordpieces, in order.

    Raises:
      UserError: an id is not in the vocabulary.

    Source:
      model/tokenization.py `convert_ids_to_tokens`.

    Differs:
      As in `convert_tokens_to_ids`.
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
