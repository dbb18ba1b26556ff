# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Words to wordpieces in a graph, as `wordpiece.py` does in Python."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import tensorflow as tf
import tensorflow_text as tf_text

from configure.errors import UserError
from electra_tf.text import characters
from electra_tf.text.tokenization import JOINER
from electra_tf.text.vocab import UNK

# Longer words are unknown, as in `WordpieceTokenizer`.
MAX_CHARACTERS = 200
# tensorflow-text counts bytes; no word of `MAX_CHARACTERS` has more.
_MAX_BYTES = 4 * MAX_CHARACTERS
# tensorflow-text's limit for one piece, without the joiner.
_MAX_PIECE_BYTES = 256
# A private character: cleaning removes it, so that it is in no word of a text.
_UNKNOWN = "\ue000"


class Pieces(NamedTuple):
    """Wordpieces, grouped by the strings that they are of.

    Attributes:
      splits: int32 [B + 1], where the pieces of each string begin.
      ids: int32 [T], the pieces' ids.
      starts: int32 [T], the byte of the string at which each piece begins.
      ends: int32 [T], the byte after it.
    """

    splits: tf.Tensor
    ids: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


class GraphWordpiece(tf.Module):
    """Splits words into the longest pieces the vocabulary holds.

    tensorflow-text's linear algorithm, given only the tokens that could ever
    match and words that it cannot take for anything else: so its differences
    from the original (limits in bytes, blank and repeated lines, words that
    begin with the joiner) do not show.

    Args:
      vocab: from token to id; must hold [UNK].
    """

    def __init__(self, vocab: Mapping[str, int]):
        super().__init__()
        tokens = _matchable(vocab)
        ids = [vocab[UNK], *map(vocab.__getitem__, tokens)]
        self._ids = tf.constant(ids, tf.int32)
        self._of_words = _make_tokenizer(tokens, no_pretokenization=True)
        self._of_text = _make_tokenizer(tokens, no_pretokenization=False)

    def split_words(self, words: tf.Tensor, lengths: tf.Tensor) -> Pieces:
        """Splits words.

        Args:
          words: string [W], in UTF-8, without white space, not empty; those
            of several characters hold no punctuation.
          lengths: int [W], their numbers of characters.

        Returns:
          The pieces of each word; one, the word, where it is unknown (but its
          `ends` is then not to be relied on).
        """
        too_long = lengths > MAX_CHARACTERS
        words = tf.cond(
            tf.reduce_any(too_long),
            lambda: tf.where(too_long, _UNKNOWN, words),
            lambda: words,
        )
        return self._split(self._of_words, words)

    def split_plain_text(self, texts: tf.Tensor) -> Pieces:
        """Splits texts at white space and punctuation, then into pieces.

        Args:
          texts: string [B], in UTF-8, normalized, with no word longer than
            `MAX_CHARACTERS`.
        """
        return self._split(self._of_text, texts)

    def _split(
        self, tokenizer: tf_text.FastWordpieceTokenizer, texts: tf.Tensor
    ) -> Pieces:
        pieces, starts, ends = tokenizer.tokenize_with_offsets(texts)
        return Pieces(
            tf.cast(pieces.row_splits, tf.int32),
            tf.gather(self._ids, pieces.values),
            tf.cast(starts.values, tf.int32),
            tf.cast(ends.values, tf.int32),
        )


def _make_tokenizer(
    tokens: list[str], no_pretokenization: bool
) -> tf_text.FastWordpieceTokenizer:
    # It wants at least one token besides the unknown one: give it one that
    # cannot match either, with the same id.
    return tf_text.FastWordpieceTokenizer(
        [_UNKNOWN, *tokens, 2 * _UNKNOWN],
        suffix_indicator=JOINER,
        max_bytes_per_word=_MAX_BYTES,
        token_out_type=tf.int32,
        unknown_token=_UNKNOWN,
        no_pretokenization=no_pretokenization,
    )


def _matchable(vocab: Collection[str]) -> list[str]:
    """Tokens that greedy longest match can ever give.

    Only these are handed over: tensorflow-text would refuse some of the
    others, and match some where a plain search does not.
    """
    letters = set().union(*vocab)
    foreign = {c for c in letters if c.isspace() or characters.is_removed(c)}
    # Punctuation is always a word by itself.
    unjoined = foreign.union(filter(characters.is_punctuation, letters))
    tokens = []
    for token in vocab:
        piece = token.removeprefix(JOINER)
        barred = unjoined if len(token) > 1 else foreign
        if 0 < len(piece) <= MAX_CHARACTERS and barred.isdisjoint(piece):
            _check_size(token, piece)
            tokens.append(token)
    return tokens


def _check_size(token: str, piece: str) -> None:
    size = len(piece.encode())
    if size > _MAX_PIECE_BYTES:
        raise UserError(
            f"The vocabulary's token {token!r} takes {size} bytes; in a graph"
            f" tokens of up to {_MAX_PIECE_BYTES} bytes can be found. Take it"
            " out of the vocabulary, or put a short placeholder in its place."
        )
