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
from electra_tf.text.graph_plain_text import PlainTextTokenizer
from electra_tf.text.graph_wordpiece import GraphWordpiece, Pieces

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
        self._plain = PlainTextTokenizer(
            self._wordpiece, do_lower_case, strip_accents
        )
        tokens = [vocabularies.UNK] * self.vocab_size
        for token, number in vocab.items():
            tokens[number] = token
        self._tokens = tf.constant(tokens)

    @tf.function(input_signature=_STRINGS, autograph=False)
    def encode(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Splits strings into wordpieces and returns their ids.

        Args:
          strings: string [B], of any bytes; what is not UTF-8 is left out.

        Returns:
          int32 [B, (T)], for each string what `FullTokenizer.encode` returns,
          without [CLS] and [SEP].
        """
        pieces = self._split(strings, with_offsets=False)
        return _ragged(pieces.ids, pieces.splits)

    @tf.function(input_signature=_STRINGS, autograph=False)
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
        pieces = self._split(strings, with_offsets=True)
        splits = pieces.splits
        return (
            _ragged(pieces.ids, splits),
            _ragged(pieces.starts, splits),
            _ragged(pieces.ends, splits),
        )

    @tf.function(input_signature=_IDS, autograph=False)
    def id_to_token(self, ids: tf.Tensor) -> tf.Tensor:
        """Looks up the tokens of ids.

        Args:
          ids: int32 [...], any shape.

        Returns:
          string [...], the tokens; "[UNK]" for an id outside the vocabulary.
        """
        known = (ids >= 0) & (ids < self.vocab_size)
        return tf.gather(self._tokens, tf.where(known, ids, self.unk_id))

    def _split(self, strings: tf.Tensor, with_offsets: bool) -> Pieces:
        """Gives each string to the fastest way that is right for it."""
        plain = self._plain.accepts(strings)
        places, others = _where(plain), _where(~plain)
        pieces = self._plain.split(tf.gather(strings, places), with_offsets)

        def with_others() -> Pieces:
            rest = self._split_any(tf.gather(strings, others), with_offsets)
            return _interleave(
                pieces, rest, tf.concat([places, others], axis=0)
            )

        return tf.cond(tf.reduce_all(plain), lambda: pieces, with_others)

    def _split_any(self, strings: tf.Tensor, with_offsets: bool) -> Pieces:
        decoded = self._normalizer.decode(strings)
        words = self._normalizer.split(decoded)
        lengths = words.splits[1:] - words.splits[:-1]
        pieces = self._wordpiece.split_words(words.values, lengths)
        none = pieces.ids[:0]
        starts, ends = (
            _spans(decoded, words, pieces) if with_offsets else (none, none)
        )
        splits = tf.gather(pieces.splits, words.string_splits)
        return Pieces(splits, pieces.ids, starts, ends)


def _ragged(values: tf.Tensor, splits: tf.Tensor) -> tf.RaggedTensor:
    return tf.RaggedTensor.from_row_splits(
        values, tf.cast(splits, tf.int64), validate=False
    )


def _interleave(one: Pieces, two: Pieces, places: tf.Tensor) -> Pieces:
    """Joins pieces of some strings and of others.

    Args:
      one: pieces of some strings.
      two: pieces of the others.
      places: int32 [B], where each of these strings belongs.

    Returns:
      Pieces of all strings, in their places.
    """
    order = tf.math.invert_permutation(places)
    firsts = tf.concat([one.splits, two.splits[1:] + one.splits[-1]], axis=0)
    lengths = tf.gather(firsts[1:] - firsts[:-1], order)
    splits = tf.concat([[0], tf.cumsum(lengths)], axis=0)
    # For each piece of the result, where it is now.
    moved = tf.repeat(tf.gather(firsts, order) - splits[:-1], lengths)
    sources = tf.range(splits[-1]) + moved
    values = [
        tf.concat(pair, axis=0) for pair in zip(one[1:], two[1:], strict=True)
    ]
    # Offsets that nobody wants are empty.
    return Pieces(
        splits, *(tf.gather(v, sources[: tf.size(v)]) for v in values)
    )


def _spans(
    decoded: Decoded, words: Words, pieces: Pieces
) -> tuple[tf.Tensor, tf.Tensor]:
    """Bytes of the strings that each piece came from."""
    lengths = utf8_lengths(words.characters)
    # Where each character begins, in the bytes of all words put together.
    places = tf.cumsum(lengths, exclusive=True)
    word_places = tf.gather(places, words.splits[:-1])
    counts = pieces.splits[1:] - pieces.splits[:-1]
    piece_places = tf.repeat(word_places, counts) + pieces.starts
    # Pieces leave no character out, so each ends where the next begins.
    numbers = tf.searchsorted(piece_places, places, side="right") - 1
    starts = tf.gather(decoded.starts, words.sources)
    ends = tf.gather(decoded.ends, words.sources)
    # Marks may have changed places: the first is not always the leftmost.
    return (
        tf.math.segment_min(starts, numbers),
        tf.math.segment_max(ends, numbers),
    )


def _where(mask: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.where(mask)[:, 0], tf.int32)


def _refuse_missing_specials(vocab: dict[str, int], path: str) -> None:
    missing = [t for t in vocabularies.SPECIAL_TOKENS if t not in vocab]
    if missing:
        raise UserError(
            f"Vocabulary file {path} lacks {', '.join(missing)}. A WordPiece"
            f" vocabulary must hold {' '.join(vocabularies.SPECIAL_TOKENS)},"
            " each on a line of its own."
        )
