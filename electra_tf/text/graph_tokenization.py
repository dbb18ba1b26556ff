# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tokenizer as a graph: strings in, ids out, inside a SavedModel."""

import tensorflow as tf

from configure.errors import UserError
from electra_tf.text import vocab as vocabularies
from electra_tf.text.graph_normalization import (
    Decoded,
    GraphNormalizer,
    Words,
    utf8_lengths,
)
from electra_tf.text.graph_wordpiece import GraphWordpiece

_STRINGS = [tf.TensorSpec([None], tf.string)]
_IDS = [tf.TensorSpec(None, tf.int32)]


class GraphTokenizer(tf.Module):
    """Gives the ids of `FullTokenizer` on every string, by graph operations.

    It can be called eagerly, inside a `tf.function`, and from a SavedModel,
    which holds the vocabulary and all tables; a program that loads it needs
    `tensorflow` and `tensorflow_text`, nothing else.

    Args:
      vocab_file: path of the vocabulary, one token per line.
      do_lower_case: whether to lower-case.
      strip_accents: whether a lower-casing tokenizer drops accents.

    Attributes:
      cls_id, sep_id, pad_id, unk_id, mask_id: ids of the special tokens.

    Raises:
      UserError: the vocabulary cannot be read, lacks a special token, or has
        a token of more than 256 bytes.

    Source:
      model/tokenization.py `FullTokenizer`.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool = True,
        strip_accents: bool = True,
    ):
        super().__init__(name="graph_tokenizer")
        vocab = vocabularies.load_vocab(vocab_file)
        _refuse_missing_specials(vocab, vocab_file)
        self.cls_id = vocab[vocabularies.CLS]
        self.sep_id = vocab[vocabularies.SEP]
        self.pad_id = vocab[vocabularies.PAD]
        self.unk_id = vocab[vocabularies.UNK]
        self.mask_id = vocab[vocabularies.MASK]
        self.vocab_size = max(vocab.values()) + 1
        self._normalizer = GraphNormalizer(do_lower_case, strip_accents)
        self._wordpiece = GraphWordpiece(vocab)
        tokens = [vocabularies.UNK] * self.vocab_size
        for token, number in vocab.items():
            tokens[number] = token
        self._tokens = tf.constant(tokens)

    @tf.function(input_signature=_STRINGS)
    def encode(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Splits strings into wordpieces and returns their ids.

        Args:
          strings: string [B], of any bytes; what is not UTF-8 is left out.

        Returns:
          int32 [B, (T)], for each string what `FullTokenizer.encode` returns,
          without [CLS] and [SEP].
        """
        words = self._normalizer.split(self._normalizer.decode(strings))
        pieces, _ = self._split_words(words)
        return _by_string(pieces.values, pieces, words)

    @tf.function(input_signature=_STRINGS)
    def encode_with_offsets(
        self, strings: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Splits strings into wordpieces; says where each comes from.

        Args:
          strings: as for `encode`.

        Returns:
          ids: int32 [B, (T)], as `encode` returns.
          starts: int32 [B, (T)], the byte of the string at which the first
            character begins that a token came from.
          ends: int32 [B, (T)], the byte after the last such character.
            Dropped accents count with the character before them; removed
            characters only where they stand between others of the token. One
            character that becomes several may belong to several tokens. An
            unknown word is a token as a whole.
        """
        decoded = self._normalizer.decode(strings)
        words = self._normalizer.split(decoded)
        pieces, first_bytes = self._split_words(words)
        starts, ends = _spans(decoded, words, first_bytes)
        return (
            _by_string(pieces.values, pieces, words),
            _by_string(starts, pieces, words),
            _by_string(ends, pieces, words),
        )

    @tf.function(input_signature=_IDS)
    def id_to_token(self, ids: tf.Tensor) -> tf.Tensor:
        """Looks up the tokens of ids.

        Args:
          ids: int32 [...], any shape.

        Returns:
          string [...], the tokens; "[UNK]" for an id outside the vocabulary.
        """
        known = (ids >= 0) & (ids < self.vocab_size)
        return tf.gather(self._tokens, tf.where(known, ids, self.unk_id))

    def _split_words(
        self, words: Words
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        lengths = words.splits[1:] - words.splits[:-1]
        return self._wordpiece.split(words.values, lengths)


def _by_string(
    values: tf.Tensor, pieces: tf.RaggedTensor, words: Words
) -> tf.RaggedTensor:
    """Groups what belongs to pieces by the strings they are in."""
    return tf.RaggedTensor.from_row_splits(
        values,
        tf.gather(pieces.row_splits, words.string_splits),
        validate=False,
    )


def _spans(
    decoded: Decoded, words: Words, first_bytes: tf.RaggedTensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Bytes of the strings that each piece came from."""
    lengths = utf8_lengths(words.characters)
    # Where each character begins, in the bytes of all words put together.
    places = tf.cumsum(lengths, exclusive=True)
    word_places = tf.gather(places, words.splits[:-1])
    piece_places = (
        tf.repeat(word_places, first_bytes.row_lengths()) + first_bytes.values
    )
    # Pieces leave no character out, so each ends where the next begins.
    pieces = tf.searchsorted(piece_places, places, side="right") - 1
    starts = tf.gather(decoded.starts, words.sources)
    ends = tf.gather(decoded.ends, words.sources)
    # Marks may have changed places: the first is not always the leftmost.
    return (
        tf.math.segment_min(starts, pieces),
        tf.math.segment_max(ends, pieces),
    )


def _refuse_missing_specials(vocab: dict[str, int], path: str) -> None:
    missing = [t for t in vocabularies.SPECIAL_TOKENS if t not in vocab]
    if missing:
        raise UserError(
            f"Vocabulary file {path} lacks {', '.join(missing)}. A WordPiece"
            f" vocabulary must hold {' '.join(vocabularies.SPECIAL_TOKENS)},"
            " each on a line of its own."
        )
