# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Words to pieces: greedy longest match against the vocabulary."""

from collections.abc import Collection

from electra_tf.text import basic

JOINER = "##"


class WordpieceTokenizer:
    """Splits words into the longest pieces the vocabulary holds.

    The vocabulary's longest piece is measured when the tokenizer is made;
    longer tokens added to `vocab` afterwards are not found.

    Args:
      vocab: the pieces (a mapping from piece to id serves); pieces that
        continue a word start with "##".
      unk_token: stands for a word that cannot be split.
      max_input_chars_per_word: longer words become `unk_token`.

    Source:
      model/tokenization.py `WordpieceTokenizer`.
    """

    def __init__(
        self,
        vocab: Collection[str],
        unk_token: str = "[UNK]",
        max_input_chars_per_word: int = 200,
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
        """Splits a word, or several between white space, into pieces.

        Args:
          text: what a `BasicTokenizer` returned: one token or several joined
            by white space.

        Returns:
          The pieces in order.
        """
        pieces = []
        for word in basic.as_text(text).split():
            pieces += self.split_word(word)
        return pieces

    def split_word(self, word: str) -> list[str]:
        """Splits one word into pieces.

        Args:
          word: a word without white space, not empty.

        Returns:
          Its pieces, or `[unk_token]`.
        """
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
