# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Words to wordpieces in a graph, as `wordpiece.py` does in Python."""

from collections.abc import Mapping

import tensorflow as tf
import tensorflow_text as tf_text

from configure.errors import UserError
from electra_tf.text.vocab import UNK
from electra_tf.text.wordpiece import JOINER

# Longer words are unknown, as in `WordpieceTokenizer`.
MAX_CHARACTERS = 200
# tensorflow-text counts bytes; no word of `MAX_CHARACTERS` has more.
_MAX_BYTES = 4 * MAX_CHARACTERS
# tensorflow-text's limit for one piece, without the joiner.
_MAX_PIECE_BYTES = 256
# Cleaning removes it, so that no word of a text is equal to it.
_UNKNOWN_WORD = "\0"


class GraphWordpiece(tf.Module):
    """Splits words into the longest pieces the vocabulary holds.

    tensorflow-text's linear algorithm, given only the tokens that could ever
    match and words that it cannot take for anything else: so its differences
    from the original (limits in bytes, blank and repeated lines, words that
    begin with the joiner) do not show.

    Args:
      vocab: from token to id; must hold [UNK].

    Raises:
      UserError: a token is longer than tensorflow-text can hold.
    """

    def __init__(self, vocab: Mapping[str, int]):
        super().__init__()
        pieces = [UNK]
        pieces += [p for p in vocab if p != UNK and _can_match(p)]
        self._ids = tf.constant([vocab[piece] for piece in pieces], tf.int32)
        self._tokenizer = tf_text.FastWordpieceTokenizer(
            pieces,
            suffix_indicator=JOINER,
            max_bytes_per_word=_MAX_BYTES,
            token_out_type=tf.int32,
            unknown_token=UNK,
            no_pretokenization=True,
        )

    def split(
        self, words: tf.Tensor, lengths: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Splits words.

        Args:
          words: string [W], in UTF-8, without white space, not empty; those
            of several characters hold no punctuation.
          lengths: int [W], their numbers of characters.

        Returns:
          int32 [W, (pieces)]: the ids of each word's pieces, and the byte of
          the word at which each piece begins.
        """
        too_long = lengths > MAX_CHARACTERS
        words = tf.cond(
            tf.reduce_any(too_long),
            lambda: tf.where(too_long, _UNKNOWN_WORD, words),
            lambda: words,
        )
        pieces, starts, _ = self._tokenizer.tokenize_with_offsets(words)
        ids = tf.gather(self._ids, pieces.values)
        return pieces.with_values(ids), tf.cast(starts, tf.int32)


def _can_match(token: str) -> bool:
    """Whether greedy longest match can ever give a token.

    Only such tokens are handed over: tensorflow-text would refuse some of the
    others, and match some where a plain search does not.
    """
    piece = token.removeprefix(JOINER)
    if not 0 < len(piece) <= MAX_CHARACTERS or _UNKNOWN_WORD in piece:
        return False
    # "#" is punctuation, always a word by itself.
    if "#" in token.removeprefix(JOINER) and token != "#":
        return False
    if len(piece.encode()) > _MAX_PIECE_BYTES:
        raise UserError(
            f"The vocabulary's token {token!r} takes {len(piece.encode())}"
            f" bytes; in a graph tokens of up to {_MAX_PIECE_BYTES} bytes can"
            " be found. Take it out of the vocabulary, or put a short"
            " placeholder in its place."
        )
    return True
