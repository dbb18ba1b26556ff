# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tokenizer as a graph: strings in, ids out, inside a SavedModel."""

import dataclasses
import functools
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from configure.errors import UserError
from electra_tf.text import graph_normalization as flag
from electra_tf.text import tokenization
from electra_tf.text import tokenizers_characters as library
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
from electra_tf.text.tokenization import UNK
from electra_tf.text.tokenizer_settings import (
    LIBRARY,
    TokenizerSettings,
    read_settings,
)
from electra_tf.text.wordpiece import JOINER

# Words to wordpieces, as `WordpieceTokenizer` does in Python.

_ORIGINAL = TokenizerSettings()
# A private character: cleaning removes it, and no plain text has it.
_UNKNOWN = "\ue000"
# tensorflow-text's limit for one piece, without the joiner.
_MAX_PIECE_BYTES = 256


class Pieces(NamedTuple):
    """Wordpieces, grouped by the strings that they are of."""

    splits: tf.Tensor  # int32 [B + 1], where the pieces of each string begin
    ids: tf.Tensor  # int32 [T], the pieces' ids
    # int32 [T], the byte of the string at which each piece begins.
    starts: tf.Tensor
    ends: tf.Tensor  # int32 [T], the byte after it


class GraphWordpiece(tf.Module):
    """Splits words into the longest pieces the vocabulary holds.

    tensorflow-text's linear algorithm, given only the tokens that could ever
    match and words that it cannot take for anything else: so its differences
    from the original (limits in bytes, blank and repeated lines, words that
    begin with the joiner) do not show.
    """

    def __init__(
        self,
        vocab: Mapping[str, int],
        settings: TokenizerSettings = _ORIGINAL,
    ):
        super().__init__()
        self._longest = settings.max_word_length
        # Without cleaning a word may have a private character.
        self.unknown = _UNKNOWN if settings.clean_text else " "
        tokens = _matchable(vocab, settings)
        ids = [vocab[UNK], *map(vocab.__getitem__, tokens)]
        self._ids = tf.constant(ids, tf.int32)
        self._of_words = self._make_tokenizer(tokens, no_pretokenization=True)
        self._of_text = self._make_tokenizer(tokens, no_pretokenization=False)

    def split_words(self, words: tf.Tensor, lengths: tf.Tensor) -> Pieces:
        """The pieces of each word; one, the word, where it is unknown.

        Its `ends` is then not to be relied on. `words`: string [W], in UTF-8,
        without white space, not empty; those of several characters hold no
        punctuation. `lengths`: int [W], their numbers of characters.
        """
        too_long = lengths > self._longest
        words = tf.cond(
            tf.reduce_any(too_long),
            lambda: tf.where(too_long, self.unknown, words),
            lambda: words,
        )
        return self._split(self._of_words, words)

    def split_plain_text(self, texts: tf.Tensor) -> Pieces:
        """Splits normalized UTF-8 [B] without words that are too long."""
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
        # It wants at least one token besides the unknown one: give it one that
        # cannot match either, with the same id.
        return tf_text.FastWordpieceTokenizer(
            [unknown, *tokens, 2 * unknown],
            suffix_indicator=JOINER,
            # It counts bytes; no word has more.
            max_bytes_per_word=4 * self._longest,
            token_out_type=tf.int32,
            unknown_token=unknown,
            no_pretokenization=no_pretokenization,
        )


def _matchable(
    vocab: Collection[str], settings: TokenizerSettings
) -> list[str]:
    """Tokens that greedy longest match can ever give.

    Only these are handed over: tensorflow-text would refuse some of the
    others, and match some where a plain search does not.
    """
    letters = set().union(*vocab)
    classes = tokenization if settings.characters != LIBRARY else library
    foreign = {
        c
        for c in letters
        if classes.is_whitespace(c)
        or (settings.clean_text and classes.is_removed(c))
        or (settings.characters != LIBRARY and c.isspace())
    }
    # Punctuation is always a word by itself.
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
                    f"The vocabulary's token {token!r} takes {size} bytes; in a"
                    f" graph tokens of up to {_MAX_PIECE_BYTES} bytes can be"
                    " found. Take it out of the vocabulary, or put a short"
                    " placeholder in its place."
                )
    return tokens


# The strings that tensorflow-text's fast tokenizer gets right.

# Beyond are ideographs too rare to be worth the asking, and nothing else that
# comes out right.
_ASKED = 0x20000
# Text with a part that may be one long word. Text without white space is common
# in some scripts, so their most usual punctuation and ideographs end it, too.
_NO_BREAK = r"[^\t\n\r -/:-@\[-`{-~\x{3001}\x{3002}\x{ff0c}\x{4e00}-\x{9fff}]"


class PlainTextTokenizer(tf.Module):
    """Tokenizes plain strings, fast."""

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
        if tokens:  # Whatever a token may begin with is not plain.
            raw, folded = map(sorted, tokens.first_characters())
            becomes = _characters_of(
                plain, build_table(*casing, True, settings)
            )
            plain = plain[~np.isin(plain, raw) & ~np.isin(becomes, folded)]
        self._plain = f"[{_ranges(plain)}]*"
        self._longest = settings.max_word_length
        self._long = f"(?s:.*{_NO_BREAK}{{{self._longest + 1}}}.*)"

    def accepts(self, strings: tf.Tensor) -> tf.Tensor:
        """Which strings (of any bytes) `split` may be given: bool [B]."""
        plain = tf.strings.regex_full_match(strings, self._plain)
        return tf.cond(
            tf.reduce_any(tf.strings.length(strings) > self._longest),
            lambda: plain & ~tf.strings.regex_full_match(strings, self._long),
            lambda: plain,
        )

    def split(self, strings: tf.Tensor, with_offsets: bool) -> Pieces:
        """Splits strings, all of which `accepts` takes, into wordpieces."""
        texts, offsets = self._normalizer.normalize(strings, with_offsets)
        pieces = self._wordpiece.split_plain_text(texts)
        if not with_offsets:
            return pieces._replace(starts=pieces.ids[:0], ends=pieces.ids[:0])
        # One offset a byte and one for the end.
        counts = pieces.splits[1:] - pieces.splits[:-1]
        firsts = tf.repeat(tf.cast(offsets.row_splits[:-1], tf.int32), counts)
        places = tf.cast(offsets.values, tf.int32)
        return pieces._replace(
            starts=tf.gather(places, firsts + pieces.starts),
            ends=tf.gather(places, firsts + pieces.ends),
        )


class _Normalizer(tf.Module):
    """Lower-cases and strips accents as tensorflow-text does."""

    def __init__(self, do_lower_case: bool, strip_accents: bool):
        super().__init__()
        strip = bool(do_lower_case and strip_accents)
        self._lower_first = bool(do_lower_case and not strip)
        self._normalizer = tf_text.FastBertNormalizer(strip)

    def normalize(
        self, strings: tf.Tensor, with_offsets: bool
    ) -> tuple[tf.Tensor, tf.RaggedTensor | None]:
        """The texts [B] and, if wanted, offsets [B, (bytes + 1)]."""
        if self._lower_first:
            strings = tf.strings.lower(strings, encoding="utf-8")
        if with_offsets:
            return self._normalizer.normalize_with_offsets(strings)
        return self._normalizer.normalize(strings), None


def _characters_of(codes: np.ndarray, table: Table) -> np.ndarray:
    """Return the character that each of some code points becomes, int64 [N]."""
    page, place = codes >> flag.PAGE_BITS, codes % (1 << flag.PAGE_BITS)
    return table.rows[table.pages[page] + place] & flag.CHARACTER


@functools.lru_cache(maxsize=4)
def plain_characters(
    do_lower_case: bool,
    strip_accents: bool,
    settings: TokenizerSettings = _ORIGINAL,
) -> np.ndarray:
    """Sorted int64 [N]: code points that tensorflow-text treats as Python does.

    And of which each becomes one character.
    """
    table = build_table(do_lower_case, strip_accents, True, settings)
    codes = np.setdiff1d(np.arange(1, _ASKED), [ord(_UNKNOWN)])
    page, place = codes >> flag.PAGE_BITS, codes % (1 << flag.PAGE_BITS)
    rows = table.rows[table.pages[page] + place]
    # Each becomes one character by itself, so that tensorflow-text's offsets,
    # made from those of bytes, are ours.
    plain = (rows & flag.RARE) == 0
    codes, rows = codes[plain], rows[plain]
    asked = _between_letters(codes)
    expected = _between_letters(rows & flag.CHARACTER)
    with tf.device("/CPU:0"):
        normalizer = _Normalizer(do_lower_case, strip_accents)
        texts, _ = normalizer.normalize(asked, with_offsets=False)
        words = tf_text.FastWordpieceTokenizer(
            ["a", "[UNK]"], token_out_type=tf.int32
        ).tokenize(texts)
    spaces = (rows & flag.SPACE) != 0
    n_words = np.where(spaces, 2, np.where(rows & flag.ALONE, 3, 1))
    same = spaces | (texts.numpy() == expected)
    same &= words.row_lengths().numpy() == n_words
    if do_lower_case and not strip_accents:
        # Lower-casing by itself keeps no offsets, so lengths must not change.
        same &= [len(a) == len(b) for a, b in zip(asked, expected, strict=True)]
        # What a capital sigma becomes depends on its neighbours then.
        same &= codes != ord("\u03a3")
    return codes[same]


def _between_letters(codes: np.ndarray) -> np.ndarray:
    return np.array([f"a{chr(code)}b".encode() for code in codes], object)


def _ranges(codes: np.ndarray) -> str:
    """A regular expression's character class, without its brackets."""
    breaks = np.flatnonzero(np.diff(codes) != 1) + 1
    return "".join(
        f"\\x{{{part[0]:x}}}-\\x{{{part[-1]:x}}}"
        for part in np.split(codes, breaks)
    )


_STRINGS = [tf.TensorSpec([None], tf.string)]
_IDS = [tf.TensorSpec(None, tf.int32)]


class GraphTokenizer(tf.Module):
    """Gives the ids of `FullTokenizer` on every string, by graph operations.

    It can be called eagerly, inside a `tf.function`, and from a SavedModel,
    which holds the vocabulary and all tables; a program that loads it needs
    `tensorflow` and `tensorflow_text`, nothing else.

    Source: model/tokenization.py `FullTokenizer`.
    """

    def __init__(
        self,
        vocab: str | Mapping[str, int],
        do_lower_case: bool = True,
        strip_accents: bool = True,
        settings: TokenizerSettings | None = None,
    ):
        """Load a vocabulary.

        Args:
          vocab: a file, or the wordpieces and their ids.
          settings: what else its tokenizer does; default: what the files
            beside the vocabulary say, else the original's.
        """
        super().__init__(name="graph_tokenizer")
        if isinstance(vocab, str):
            path, vocab = vocab, tokenization.load_wordpieces(vocab)
            tokenization.refuse_missing_specials(path, vocab)
            settings = settings or read_settings(path)
        settings, wordpieces = settings or _ORIGINAL, vocab
        vocab = settings.with_tokens(dict(wordpieces))
        self.cls_id = vocab[tokenization.CLS]
        self.sep_id = vocab[tokenization.SEP]
        self.pad_id = vocab[tokenization.PAD]
        self.unk_id = vocab[tokenization.UNK]
        self.mask_id = vocab[tokenization.MASK]
        self.vocab_size = max(vocab.values()) + 1
        casing = (bool(do_lower_case), bool(strip_accents))
        tokens = None
        if settings.added_tokens or settings.never_split:
            strip = settings.strips(*casing)
            tokens = AddedTokens(settings, casing[0], strip, vocab)
        self.normalizer = GraphNormalizer(
            *casing, settings=settings, tokens=tokens
        )
        self._wordpiece = GraphWordpiece(wordpieces, settings)
        self._plain = PlainTextTokenizer(
            self._wordpiece, *casing, settings, tokens
        )
        tokens = [tokenization.UNK] * self.vocab_size
        for token, number in vocab.items():
            tokens[number] = token
        self._tokens = tf.constant(tokens)

    @tf.function(input_signature=_STRINGS, autograph=False)
    def encode(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """From strings [B], any bytes, to `FullTokenizer`'s ids [B, (T)]."""
        pieces = self._split(strings, with_offsets=False)
        return ragged(pieces.ids, pieces.splits)

    @tf.function(input_signature=_STRINGS, autograph=False)
    def encode_with_offsets(
        self, strings: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Splits strings into wordpieces; says where each comes from.

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
        return tuple(ragged(part, pieces.splits) for part in pieces[1:])

    @tf.function(input_signature=_IDS, autograph=False)
    def id_to_token(self, ids: tf.Tensor) -> tf.Tensor:
        """The tokens of ids (any shape); [UNK] outside the vocabulary."""
        known = (ids >= 0) & (ids < self.vocab_size)
        return tf.gather(self._tokens, tf.where(known, ids, self.unk_id))

    def _split(self, strings: tf.Tensor, with_offsets: bool) -> Pieces:
        """Gives each string to the fastest way that is right for it."""
        plain = self._plain.accepts(strings)
        places, others = where(plain), where(~plain)
        pieces = self._plain.split(tf.gather(strings, places), with_offsets)

        def with_others() -> Pieces:
            rest = self._split_any(tf.gather(strings, others), with_offsets)
            order = tf.concat([places, others], axis=0)
            return _interleave(pieces, rest, order)

        return tf.cond(tf.reduce_all(plain), lambda: pieces, with_others)

    def _split_any(self, strings: tf.Tensor, with_offsets: bool) -> Pieces:
        decoded = self.normalizer.decode(strings)
        words = self.normalizer.split(decoded)
        lengths = words.splits[1:] - words.splits[:-1]
        is_added = words.added >= 0
        values = tf.where(is_added, self._wordpiece.unknown, words.values)
        pieces = self._wordpiece.split_words(values, lengths)
        # An unknown word is one piece.
        places = tf.gather(pieces.splits[:-1], where(is_added))[:, tf.newaxis]
        added = tf.boolean_mask(words.added, is_added)
        ids = tf.tensor_scatter_nd_update(pieces.ids, places, added)
        pieces = pieces._replace(ids=ids)
        starts = ends = pieces.ids[:0]
        if with_offsets:
            starts, ends = _spans(decoded, words, pieces)
        splits = tf.gather(pieces.splits, words.string_splits)
        return Pieces(splits, pieces.ids, starts, ends)


def _interleave(one: Pieces, two: Pieces, places: tf.Tensor) -> Pieces:
    """Joins pieces of strings that belong at `places` (int32 [B])."""
    order = tf.math.invert_permutation(places)
    firsts = tf.concat([one.splits, two.splits[1:] + one.splits[-1]], axis=0)
    lengths = tf.gather(firsts[1:] - firsts[:-1], order)
    splits = tf.concat([[0], tf.cumsum(lengths)], axis=0)
    # For each piece of the result, where it is now.
    moved = tf.repeat(tf.gather(firsts, order) - splits[:-1], lengths)
    sources = tf.range(splits[-1]) + moved
    pairs = zip(one[1:], two[1:], strict=True)
    values = [tf.concat(pair, axis=0) for pair in pairs]
    # Offsets that nobody wants are empty.
    parts = [tf.gather(v, sources[: tf.size(v)]) for v in values]
    return Pieces(splits, *parts)


def _spans(
    decoded: Decoded, words: Words, pieces: Pieces
) -> tuple[tf.Tensor, tf.Tensor]:
    """Bytes of the strings that each piece came from."""
    # Where each character begins, in the bytes of all words put together.
    places = tf.cumsum(utf8_lengths(words.characters), exclusive=True)
    word_places = tf.gather(places, words.splits[:-1])
    counts = pieces.splits[1:] - pieces.splits[:-1]
    piece_places = tf.repeat(word_places, counts) + pieces.starts
    # Pieces leave no character out, so each ends where the next begins.
    numbers = tf.searchsorted(piece_places, places, side="right") - 1
    starts = tf.gather(decoded.starts, words.sources)
    ends = tf.gather(decoded.ends, words.sources)
    # Marks may have changed places: the first is not always the leftmost.
    starts = tf.math.segment_min(starts, numbers)
    return starts, tf.math.segment_max(ends, numbers)
