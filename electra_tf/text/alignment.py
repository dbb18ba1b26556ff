# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wordpieces of each word by itself, for labels that belong to words."""

import unicodedata
from collections.abc import Sequence

from electra_tf.text import characters
from electra_tf.text.tokenization import MEMO_ENTRIES, FullTokenizer


class WordAligner:
    """Splits each word of a sentence into wordpieces.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      tokenize_and_align.
    """

    def __init__(
        self, tokenizer: FullTokenizer, as_elsewhere: bool = False
    ) -> None:
        self._tokenizer = tokenizer
        self._as_elsewhere = as_elsewhere
        self._splitting = characters.SplittingTable(drop_accents=True)
        self._memo: dict[str, list[int]] = {}

    def encode_word(self, word: str) -> list[int]:
        """Returns the ids of a word's pieces.

        Returns:
          Its ids; none where cleaning leaves nothing of the word.
        """
        ids = self._memo.get(word)
        if ids is None:
            if self._as_elsewhere:
                ids = self._tokenizer.encode(word)
            else:
                ids = self._tokenizer.convert_tokens_to_ids(self._split(word))
            if len(self._memo) >= MEMO_ENTRIES:
                self._memo.clear()
            self._memo[word] = ids
        return ids

    def _split(self, word: str) -> list[str]:
        kept = [c for c in word if not characters.is_removed(c)]
        plain = [" " if characters.is_whitespace(c) else c for c in kept]
        word = unicodedata.normalize("NFD", "".join(plain).lower())
        pieces = []
        for token in word.translate(self._splitting).split():
            pieces += self._tokenizer.wordpiece_tokenizer.split_word(token)
        return pieces


def place_words(
    words: Sequence[Sequence[int]],
    cls_id: int,
    sep_id: int,
    max_length: int,
    count_words: bool = True,
) -> tuple[list[int], list[int]]:
    """Joins the pieces of a sentence's words, as far as they fit.

    Args:
      cls_id: id of [CLS].
      sep_id: id of [SEP].
      count_words: cut as the original does: where the number of *words* of
        the whole sentence does not fit behind the pieces so far. Long
        sentences lose far more than they must, and may be left with [SEP]
        alone, without even [CLS].

    Returns:
      Ids ending in [SEP], and the place of the first piece of each word that
      fits (the next piece's, for a word without any).

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      featurize.
    Differs: a word of more pieces than fit is cut; the original stops.
    """
    reserved = len(words) + 2 if count_words else 0
    ids: list[int] = []
    places: list[int] = []
    for i, pieces in enumerate([[cls_id], *words, [sep_id]]):
        is_word = 0 < i <= len(words)
        # One place is for the [SEP] at the end.
        overflows = is_word and len(ids) + len(pieces) > max_length - 1
        if overflows or reserved + len(ids) + 1 > max_length:
            ids.append(sep_id)
            break
        if is_word:
            places.append(len(ids))
        ids += pieces
    return ids, places
