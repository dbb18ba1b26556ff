# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer of graph operations, which a SavedModel can contain."""

import dataclasses
import functools
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from configure.errors import UserError
from electra_tf.text import characters, vocabulary
from electra_tf.text import graph_normalization as flag
from electra_tf.text import library_characters as library
from electra_tf.text.graph_added_tokens import AddedTokens
from electra_tf.text.graph_normalization import (
    Decoded,
    GraphNormalizer,
    Table,
    Words,
    build_table,
    ragged,
    utf8_lengths,
    where,
)
from electra_tf.text.settings_files import read_settings
from electra_tf.text.tokenizer_settings import LIBRARY, TokenizerSettings
from electra_tf.text.vocabulary import UNK
from electra_tf.text.wordpiece import JOINER

_ORIGINAL = TokenizerSettings()
# Token that no text matches: cleaning removes this private character, and plain
# text does not contain the character.
_UNKNOWN = "\ue000"
_MAX_PIECE_BYTES = 256  # tensorflow-text's limit for a piece without joiner


class Pieces(NamedTuple):
    """Wordpieces of a batch of strings."""

    splits: tf.Tensor  # int32 [B + 1], index of each string's first piece
    ids: tf.Tensor  # int32 [T], ids of the pieces
    # int32 [T], first byte of each piece in its string.
    starts: tf.Tensor
    ends: tf.Tensor  # int32 [T], byte after each piece


class GraphWordpiece(tf.Module):
    """Splitter of words into wordpieces by greedy longest match, in a graph.

    Runs tensorflow-text's linear algorithm on tokens that can match and on
    words for which the algorithm equals the original's. Differences of the
    algorithm (limits in bytes, blank and repeated lines, words that begin with
    the joiner) therefore have no effect.
    """

    def __init__(
        self,
        vocab: Mapping[str, int],
        settings: TokenizerSettings = _ORIGINAL,
    ):
        super().__init__()
        self._longest = settings.max_word_length
        # Without cleaning, words can contain the private character, but no word
        # contains a space.
        self.unknown = _UNKNOWN if settings.clean_text else " "
        tokens = _matchable(vocab, settings)
        ids = [vocab[UNK], *map(vocab.__getitem__, tokens)]
        self._ids = tf.constant(ids, tf.int32)
        self._of_words = self._make_tokenizer(tokens, no_pretokenization=True)
        self._of_text = self._make_tokenizer(tokens, no_pretokenization=False)

    def split_words(self, words: tf.Tensor, lengths: tf.Tensor) -> Pieces:
        """Split words into pieces; an unknown word is a single piece.

        Args:
          words: string [W], nonempty UTF-8 without white space; each
            punctuation mark is a separate word.
          lengths: int [W], number of characters of each word.

        Returns:
          Pieces; `ends` is undefined for unknown words.
        """
        too_long = lengths > self._longest
        words = tf.cond(
            tf.reduce_any(too_long),
            lambda: tf.where(too_long, self.unknown, words),
            lambda: words,
        )
        return self._split(self._of_words, words)

    def split_plain_text(self, texts: tf.Tensor) -> Pieces:
        """Split normalized texts [B] without words over the maximum length."""
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
        self, tokens: list[str], no_pretokenization: bool
    ) -> tf_text.FastWordpieceTokenizer:
        unknown = self.unknown if no_pretokenization else _UNKNOWN
        # The algorithm requires a token besides the unknown token. The last
        # token meets this requirement, and matches no text.
        return tf_text.FastWordpieceTokenizer(
            [unknown, *tokens, 2 * unknown],
            suffix_indicator=JOINER,
            # The limit counts bytes, of which a character has at most four.
            max_bytes_per_word=4 * self._longest,
            token_out_type=tf.int32,
            unknown_token=unknown,
            no_pretokenization=no_pretokenization,
        )


def _matchable(
    vocab: Collection[str], settings: TokenizerSettings
) -> list[str]:
    """Return the tokens that greedy longest match can find.

    Other tokens are left out, because tensorflow-text rejects some of these
    tokens, and would match some where greedy longest match does not.
    """
    letters = set().union(*vocab)
    classes = library if settings.characters == LIBRARY else characters
    foreign = {
        c
        for c in letters
        if classes.is_whitespace(c)
        or (settings.clean_text and classes.is_removed(c))
        or (settings.characters != LIBRARY and c.isspace())
    }
    # A punctuation mark is always a separate word, so a piece with a mark and
    # further characters matches no text.
    unjoined = foreign.union(filter(classes.is_punctuation, letters))
    tokens = []
    for token in vocab:
        piece = token.removeprefix(JOINER)
        barred = unjoined if len(token) > 1 else foreign
        fits = 0 < len(piece) <= settings.max_word_length
        if fits and barred.isdisjoint(piece):
            tokens.append(token)
            size = len(piece.encode())
            if size > _MAX_PIECE_BYTES:
                raise UserError(
                    f"The vocabulary's token {token!r} has {size} bytes;"
                    f" expected at most {_MAX_PIECE_BYTES}, the limit of the"
                    " tokenizer in a graph. Remove the token from the"
                    " vocabulary, or replace it with a short placeholder."
                )
    return tokens


# `plain_characters` tests only code points below this limit. Most higher code
# points are rare ideographs, or characters that tensorflow-text treats
# differently from Python.
_MAX_TESTED = 0x20000
# Pattern of a character that can be inside a word: a long run of such
# characters can be a word above the length limit. The pattern also excludes the
# most frequent ideographs and the most frequent Chinese and Japanese
# punctuation marks, because Chinese and Japanese text has no white space.
_NO_BREAK = r"[^\t\n\r -/:-@\[-`{-~\x{3001}\x{3002}\x{ff0c}\x{4e00}-\x{9fff}]"


class PlainTextTokenizer(tf.Module):
    """Fast tokenizer of strings that tensorflow-text tokenizes correctly."""

    def __init__(
        self,
        wordpiece: GraphWordpiece,
        do_lower_case: bool,
        strip_accents: bool,
        settings: TokenizerSettings = _ORIGINAL,
        tokens: AddedTokens | None = None,
    ):
        super().__init__()
        self._normalizer = _Normalizer(do_lower_case, strip_accents)
        self._wordpiece = wordpiece
        casing = (do_lower_case, do_lower_case and strip_accents)
        settings = dataclasses.replace(
            settings, added_tokens=(), never_split=()
        )
        plain = plain_characters(*casing, settings)
        if tokens:
            # A character at which an added token can begin is not plain.
            raw, folded = map(sorted, tokens.first_characters())
            table = build_table(*casing, True, settings)
            folded_plain = _characters_of(plain, table)
            may_begin = np.isin(plain, raw) | np.isin(folded_plain, folded)
            plain = plain[~may_begin]
        self._plain = f"[{_ranges(plain)}]*"
        self._longest = settings.max_word_length
        self._long = f"(?s:.*{_NO_BREAK}{{{self._longest + 1}}}.*)"

    def accepts(self, strings: tf.Tensor) -> tf.Tensor:
        """Return whether `split` accepts each string (any bytes): bool [B]."""
        plain = tf.strings.regex_full_match(strings, self._plain)
        return tf.cond(
            tf.reduce_any(tf.strings.length(strings) > self._longest),
            lambda: plain & ~tf.strings.regex_full_match(strings, self._long),
            lambda: plain,
        )

    def split(self, strings: tf.Tensor, with_offsets: bool) -> Pieces:
        """Split strings into wordpieces; `accepts` must accept all strings."""
        texts, offsets = self._normalizer.normalize(strings, with_offsets)
        pieces = self._wordpiece.split_plain_text(texts)
        if not with_offsets:
            return pieces._replace(starts=pieces.ids[:0], ends=pieces.ids[:0])
        # Each string has one offset for each of its bytes, and one for the end
        # of the string.
        counts = pieces.splits[1:] - pieces.splits[:-1]
        firsts = tf.repeat(tf.cast(offsets.row_splits[:-1], tf.int32), counts)
        source_bytes = tf.cast(offsets.values, tf.int32)
        return pieces._replace(
            starts=tf.gather(source_bytes, firsts + pieces.starts),
            ends=tf.gather(source_bytes, firsts + pieces.ends),
        )


class _Normalizer(tf.Module):
    """Normalizer of tensorflow-text, which lower-cases and strips accents."""

    def __init__(self, do_lower_case: bool, strip_accents: bool):
        super().__init__()
        strip = bool(do_lower_case and strip_accents)
        self._lower_first = bool(do_lower_case and not strip)
        self._normalizer = tf_text.FastBertNormalizer(strip)

    def normalize(
        self, strings: tf.Tensor, with_offsets: bool
    ) -> tuple[tf.Tensor, tf.RaggedTensor | None]:
        """Return normalized texts; offsets int64 [B, (bytes + 1)] or None."""
        if self._lower_first:
            strings = tf.strings.lower(strings, encoding="utf-8")
        if with_offsets:
            return self._normalizer.normalize_with_offsets(strings)
        return self._normalizer.normalize(strings), None


def _characters_of(codes: np.ndarray, table: Table) -> np.ndarray:
    """Return the normalized form of each code point, int32 [N]."""
    return _rows_of(codes, table) & flag.CHARACTER


def _rows_of(codes: np.ndarray, table: Table) -> np.ndarray:
    page, offset = codes >> flag.PAGE_BITS, codes % (1 << flag.PAGE_BITS)
    return table.rows[table.pages[page] + offset]


@functools.lru_cache(maxsize=4)
def plain_characters(
    do_lower_case: bool,
    strip_accents: bool,
    settings: TokenizerSettings = _ORIGINAL,
) -> np.ndarray:
    """Return the code points that tensorflow-text treats as Python does.

    Each code point becomes a single character, so that tensorflow-text's byte
    offsets are exact. The result is int64 [N], sorted.
    """
    table = build_table(do_lower_case, strip_accents, True, settings)
    codes = np.setdiff1d(np.arange(1, _MAX_TESTED), [ord(_UNKNOWN)])
    rows = _rows_of(codes, table)
    becomes_one = (rows & flag.RARE) == 0
    codes, rows = codes[becomes_one], rows[becomes_one]
    tested = _between_letters(codes)
    expected = _between_letters(rows & flag.CHARACTER)
    with tf.device("/CPU:0"):
        normalizer = _Normalizer(do_lower_case, strip_accents)
        texts, _ = normalizer.normalize(tested, with_offsets=False)
        pieces = tf_text.FastWordpieceTokenizer(
            ["a", "[UNK]"], token_out_type=tf.int32
        ).tokenize(texts)
    spaces = (rows & flag.SPACE) != 0
    num_words = np.where(spaces, 2, np.where(rows & flag.ALONE, 3, 1))
    same = spaces | (texts.numpy() == expected)
    same &= pieces.row_lengths().numpy() == num_words
    if do_lower_case and not strip_accents:
        # If accents are kept, tensorflow-text reports no offsets of
        # lower-casing, so lower-casing must not change lengths in bytes.
        same &= [
            len(text) == len(lowered)
            for text, lowered in zip(tested, expected, strict=True)
        ]
        # The lower-case form of a capital sigma depends on its neighbors, so a
        # test of the single character is not enough.
        same &= codes != ord("\u03a3")
    return codes[same]


def _between_letters(codes: np.ndarray) -> np.ndarray:
    return np.array([f"a{chr(code)}b".encode() for code in codes], object)


def _ranges(codes: np.ndarray) -> str:
    """Format code points as ranges for a regular expression's `[...]`."""
    breaks = np.flatnonzero(np.diff(codes) != 1) + 1
    return "".join(
        f"\\x{{{part[0]:x}}}-\\x{{{part[-1]:x}}}"
        for part in np.split(codes, breaks)
    )


_STRINGS = [tf.TensorSpec([None], tf.string)]
_IDS = [tf.TensorSpec(None, tf.int32)]


class GraphTokenizer(tf.Module):
    """Tokenizer of graph operations with the ids of `FullTokenizer`.

    The tokenizer can be called eagerly, in a `tf.function`, and from a
    SavedModel, which contains the vocabulary and all tables. To load such a
    SavedModel, a program needs only `tensorflow` and `tensorflow_text`.

    Source: model/tokenization.py `FullTokenizer`.
    """

    def __init__(
        self,
        vocab: str | Mapping[str, int],
        do_lower_case: bool = True,
        strip_accents: bool = True,
        settings: TokenizerSettings | None = None,
    ):
        """Load a vocabulary and build the tables of its tokenizer.

        Args:
          vocab: path of a vocabulary, or wordpieces and their ids.
          do_lower_case, strip_accents: casing of the vocabulary.
          settings: other settings of the tokenizer; None: the settings in the
            files next to the vocabulary, or the original's settings if there
            are no such files.
        """
        super().__init__(name="graph_tokenizer")
        if isinstance(vocab, str):
            path, vocab = vocab, vocabulary.load_wordpieces(vocab)
            vocabulary.refuse_missing_specials(path, vocab)
            settings = settings or read_settings(path)
        settings, wordpieces = settings or _ORIGINAL, vocab
        vocab = settings.with_tokens(dict(wordpieces))
        self.cls_id = vocab[vocabulary.CLS]
        self.sep_id = vocab[vocabulary.SEP]
        self.pad_id = vocab[vocabulary.PAD]
        self.unk_id = vocab[vocabulary.UNK]
        self.mask_id = vocab[vocabulary.MASK]
        self.vocab_size = max(vocab.values()) + 1
        casing = (bool(do_lower_case), bool(strip_accents))
        added_tokens = None
        if settings.added_tokens or settings.never_split:
            strip = settings.strips(*casing)
            added_tokens = AddedTokens(settings, casing[0], strip, vocab)
        self.normalizer = GraphNormalizer(
            *casing, settings=settings, tokens=added_tokens
        )
        self._wordpiece = GraphWordpiece(wordpieces, settings)
        self._plain = PlainTextTokenizer(
            self._wordpiece, *casing, settings, added_tokens
        )
        tokens = [vocabulary.UNK] * self.vocab_size
        for token, token_id in vocab.items():
            tokens[token_id] = token
        self._tokens = tf.constant(tokens)

    @tf.function(input_signature=_STRINGS, autograph=False)
    def encode(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of strings.

        Args:
          strings: string [B], any bytes.

        Returns:
          int32 [B, (T)], equal to the ids of `FullTokenizer`.
        """
        pieces = self._split(strings, with_offsets=False)
        return ragged(pieces.ids, pieces.splits)

    @tf.function(input_signature=_STRINGS, autograph=False)
    def encode_with_offsets(
        self, strings: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Return the ids of strings, and the bytes that each token spans.

        Stripped accents belong to the preceding character. A removed character
        belongs to a token only if other characters of the token are on both
        sides. A character that becomes several characters may belong to several
        tokens. An unknown word is a single token.

        Args:
          strings: string [B], any bytes.

        Returns:
          ids: int32 [B, (T)], as `encode` returns.
          starts: int32 [B, (T)], first byte of each token in its string.
          ends: int32 [B, (T)], byte after the last character of each token.
        """
        pieces = self._split(strings, with_offsets=True)
        return tuple(ragged(part, pieces.splits) for part in pieces[1:])

    @tf.function(input_signature=_IDS, autograph=False)
    def id_to_token(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the tokens of ids of any shape; [UNK] for unknown ids."""
        is_known = (ids >= 0) & (ids < self.vocab_size)
        return tf.gather(self._tokens, tf.where(is_known, ids, self.unk_id))

    def _split(self, strings: tf.Tensor, with_offsets: bool) -> Pieces:
        """Split each string with the fastest tokenizer that is exact for it."""
        is_plain = self._plain.accepts(strings)
        plain_rows, other_rows = where(is_plain), where(~is_plain)
        plain_strings = tf.gather(strings, plain_rows)
        plain_pieces = self._plain.split(plain_strings, with_offsets)

        def with_others() -> Pieces:
            other_strings = tf.gather(strings, other_rows)
            other_pieces = self._split_any(other_strings, with_offsets)
            rows = tf.concat([plain_rows, other_rows], axis=0)
            return _interleave(plain_pieces, other_pieces, rows)

        return tf.cond(
            tf.reduce_all(is_plain), lambda: plain_pieces, with_others
        )

    def _split_any(self, strings: tf.Tensor, with_offsets: bool) -> Pieces:
        decoded = self.normalizer.decode(strings)
        batch = self.normalizer.split(decoded)
        lengths = batch.splits[1:] - batch.splits[:-1]
        is_added = batch.added >= 0
        values = tf.where(is_added, self._wordpiece.unknown, batch.values)
        pieces = self._wordpiece.split_words(values, lengths)
        # Each added token was replaced with an unknown word, which is one
        # piece. The id of the added token now replaces the id of this piece.
        indices = tf.gather(pieces.splits[:-1], where(is_added))
        added = tf.boolean_mask(batch.added, is_added)
        ids = tf.tensor_scatter_nd_update(
            pieces.ids, indices[:, tf.newaxis], added
        )
        pieces = pieces._replace(ids=ids)
        starts = ends = pieces.ids[:0]
        if with_offsets:
            starts, ends = _spans(decoded, batch, pieces)
        splits = tf.gather(pieces.splits, batch.string_splits)
        return Pieces(splits, pieces.ids, starts, ends)


def _interleave(first: Pieces, second: Pieces, rows: tf.Tensor) -> Pieces:
    """Join the pieces of two groups of strings in the order of the batch.

    Args:
      first, second: pieces of the first and the second group.
      rows: int32 [B], batch rows of the first group, then of the second group.
    """
    order = tf.math.invert_permutation(rows)
    begins = tf.concat(
        [first.splits, second.splits[1:] + first.splits[-1]], axis=0
    )
    lengths = tf.gather(begins[1:] - begins[:-1], order)
    splits = tf.concat([[0], tf.cumsum(lengths)], axis=0)
    # Index of each piece of the result among the pieces of both groups.
    shifts = tf.repeat(tf.gather(begins, order) - splits[:-1], lengths)
    sources = tf.range(splits[-1]) + shifts
    parts = []
    for pair in zip(first[1:], second[1:], strict=True):
        values = tf.concat(pair, axis=0)
        # Without offsets, the tensors of starts and ends are empty.
        parts.append(tf.gather(values, sources[: tf.size(values)]))
    return Pieces(splits, *parts)


def _spans(
    decoded: Decoded, batch: Words, pieces: Pieces
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the first byte of each piece, and the byte after its last byte."""
    # Positions of characters in the concatenated bytes of all words.
    positions = tf.cumsum(utf8_lengths(batch.characters), exclusive=True)
    word_positions = tf.gather(positions, batch.splits[:-1])
    counts = pieces.splits[1:] - pieces.splits[:-1]
    piece_positions = tf.repeat(word_positions, counts) + pieces.starts
    # Pieces cover all characters, so each piece ends where the next begins.
    indices = tf.searchsorted(piece_positions, positions, side="right") - 1
    starts = tf.gather(decoded.starts, batch.sources)
    ends = tf.gather(decoded.ends, batch.sources)
    # Canonical ordering moves marks, so the first character of a piece is not
    # always the leftmost in the text.
    starts = tf.math.segment_min(starts, indices)
    return starts, tf.math.segment_max(ends, indices)
