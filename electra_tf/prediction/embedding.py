# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts, words and wordpieces, from any encoder.

    embedder = Embedder.from_pretrained("models/small")
    embedder("A text.").shape                      # (256,)
    embedder(["One.", "Two."], layers=(-2, -1), pooling="first")

A pre-trained ELECTRA encoder separates replaced tokens from real tokens. The
encoder was not trained to represent similar sentences by similar vectors.
Fine-tune it before using distances between sentence vectors.
"""

import bisect
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.data.tfrecords import FEATURE_NAMES
from electra_tf.finetuning.heads import mean_over_tokens
from electra_tf.modeling.encoder import Encoder
from electra_tf.prediction import batch_runner
from electra_tf.prediction.loading import load, select_encoder
from electra_tf.text import tokenization, vocabulary
from electra_tf.text.offsets import OffsetTokenizer, Piece
from electra_tf.text.wordpiece import JOINER
from electra_tf.text.words import split_words

SEVERAL = ("words", "none")  # poolings that return several vectors per text
POOLINGS = ("first", "mean", "max", *SEVERAL)
COMBINATIONS = ("mean", "concat")
PARTS = ("encoder", "generator")


@dataclasses.dataclass(frozen=True)
class Embedded:
    """The vectors of one text.

    Attributes:
      vectors: float32 [H]; with pooling "words" or "none", [N, H].
      units: the words of the text, or the wordpieces with [CLS] and [SEP], that
        the N vectors represent; None for one vector.
      cut: the number of wordpieces beyond the maximum length, which were cut
        off.
    """

    vectors: np.ndarray
    units: list[str] | None
    cut: int


class _Text(NamedTuple):
    """The encoder's input for one text."""

    ids: list[int]
    words: list[str]
    starts: list[int]  # index of the first wordpiece of each word
    cut: int  # number of wordpieces that were cut off


class Embedder:
    """An embedder, which maps texts to vectors.

    Attributes:
      encoder: the encoder.
      size: the hidden size of the encoder, H.
      max_length: the maximum number of wordpieces, [CLS] and [SEP] included.
      batch_size: the maximum number of rows of a batch.
    """

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: tokenization.FullTokenizer,
        max_length: int,
        batch_size: int = 32,
    ) -> None:
        self.encoder, self._tokenizer = encoder, tokenizer
        self.size = encoder.sizes.hidden_size
        self.max_length, self.batch_size = max_length, batch_size
        self._offsets = OffsetTokenizer(tokenizer)
        self._cls_id = tokenizer.vocab[vocabulary.CLS]
        self._sep_id = tokenizer.vocab[vocabulary.SEP]
        self._functions: dict[Any, batch_runner.PackedFunction] = {}

    @classmethod
    def from_pretrained(
        cls,
        path: str,
        part: str = "encoder",
        batch_size: int = 32,
        max_length: int | None = None,
        vocab_file: str | None = None,
        hparams: Mapping[str, Any] | None = None,
    ) -> "Embedder":
        """Load an encoder.

        Args:
          path: a run's folder, or a checkpoint.
          part: one of `PARTS`.
          batch_size: the maximum number of rows of a batch.
          max_length: the maximum number of wordpieces of a text; None: the
            number of the model's positions.
          vocab_file: the vocabulary; None: the model's own.
          hparams: hparams for a checkpoint without a config.
        """
        if part not in PARTS:
            raise UserError(
                f"part {part!r}: expected one of {', '.join(PARTS)}."
                " Choose one of these parts."
            )
        loaded = load(path, vocab_file, hparams)
        vocabulary.require_wordpiece(loaded.config.vocab_file, "embed")
        encoder = select_encoder(loaded, f"--part={part}", part)
        positions = encoder.sizes.max_position_embeddings
        if max_length is not None and not 3 <= max_length <= positions:
            raise UserError(
                f"max_length {max_length}: expected 3 to {positions}, the"
                " number of the model's positions. Pass a value in this range."
            )
        length = max_length or loaded.max_length or positions
        return cls(encoder, loaded.tokenizer, length, batch_size)

    def __call__(
        self,
        texts: str | Iterable[str],
        layers: int | Sequence[int] = -1,
        pooling: str = "mean",
        combine: str = "mean",
    ) -> np.ndarray | list[np.ndarray]:
        """Return the vectors of one text or of several texts; see `embed`.

        Returns:
          float32: [H] for one text and [N, H] for several. With pooling "words"
          or "none", which have several vectors per text, [T, H] for one text
          and a list of such arrays for several.
        """
        is_single = isinstance(texts, str | bytes)
        texts = [texts] if is_single else texts
        embedded = self.embed(texts, layers, pooling, combine)
        vectors = [text.vectors for text in embedded]
        if is_single:
            return vectors[0]
        if pooling in SEVERAL:
            return vectors
        width = self.width(layers, combine)
        return np.reshape(vectors, [-1, width]).astype(np.float32)

    def embed(
        self,
        texts: Iterable[str | bytes],
        layers: int | Sequence[int] = -1,
        pooling: str = "mean",
        combine: str = "mean",
    ) -> list[Embedded]:
        """Return vectors of texts, and the units that the vectors represent.

        Args:
          texts: the texts.
          layers: one layer, or several: 0 is the output of the embeddings, k
            the output of block k, -1 the output of the last block.
          pooling: "first" (the vector at [CLS]), "mean" and "max" over all
            wordpieces with [CLS] and [SEP], "words" (the mean of each word's
            wordpieces), or "none".
          combine: "mean" or "concat", if there are several layers.
        """
        function = self._function(layers, pooling, combine)
        texts = list(texts)
        inputs = [self._tokenize(text) for text in texts]
        rows = [
            {"input_ids": text.ids, "input_mask": [1] * len(text.ids)}
            for text in inputs
        ]
        lengths = [len(text.ids) for text in inputs]
        outputs = batch_runner.run_in_batches(
            function,
            rows,
            lengths,
            self.batch_size,
            self.max_length,
            lambda row: shorten(repr(texts[row])),
        )
        return [
            self._pool(text, row_outputs["vectors"], pooling)
            for text, row_outputs in zip(inputs, outputs, strict=True)
        ]

    def width(
        self, layers: int | Sequence[int] = -1, combine: str = "mean"
    ) -> int:
        """Return the length of a vector."""
        if combine == "concat":
            return self.size * len(self._layer_indices(layers))
        return self.size

    def _tokenize(self, text: str | bytes) -> _Text:
        if isinstance(text, bytes):
            text = text.decode("utf-8", "ignore")
        if not isinstance(text, str):
            raise UserError(
                f"texts: an item is {text!r:.80}; expected a str or bytes. Pass"
                " texts only."
            )
        most = self.max_length - 2
        ids: list[int] = []
        words, starts, total = [], [], 0
        for word, word_ids in self._split(text):
            total += len(word_ids)
            if word_ids and len(ids) < most:
                words.append(word)
                starts.append(len(ids) + 1)
                ids += word_ids[: most - len(ids)]
        ids = [self._cls_id, *ids, self._sep_id]
        return _Text(ids, words, starts, total + 2 - len(ids))

    def _split(self, text: str) -> Iterator[tuple[str, list[int]]]:
        """Yield the words of a text and the ids of their wordpieces."""
        # Words are not tokenized one by one, because the lower-case form of a
        # sigma depends on the letters of neighboring words.
        vocab, pieces = self._tokenizer.vocab, self._offsets.tokenize(text)
        if self._tokenizer.splitter:
            groups = _groups_by_joiner(text, pieces)
        else:
            groups = _groups_by_word(text, pieces)
        for word, group in groups:
            yield word, [vocab[piece.token] for piece in group]

    def _pool(self, text: _Text, vectors: np.ndarray, pooling: str) -> Embedded:
        """Return the vectors of a text from the outputs of the graph."""
        if pooling not in SEVERAL:
            return Embedded(vectors, None, text.cut)
        if pooling == "none":
            units = self._tokenizer.convert_ids_to_tokens(text.ids)
            return Embedded(vectors[: len(text.ids)].copy(), units, text.cut)
        if not text.words:
            empty = np.zeros([0, vectors.shape[-1]], np.float32)
            return Embedded(empty, [], text.cut)
        sums = np.add.reduceat(vectors[: len(text.ids) - 1], text.starts, 0)
        ends = [*text.starts[1:], len(text.ids) - 1]
        counts = np.subtract(ends, text.starts)[:, None]
        means = (sums / counts).astype(np.float32)
        return Embedded(means, text.words, text.cut)

    def _layer_indices(self, layers: int | Sequence[int]) -> tuple[int, ...]:
        """Return indices into the outputs of the embeddings and all blocks."""
        numbers = (layers,) if isinstance(layers, int) else tuple(layers)
        count = len(self.encoder.blocks)
        for layer in numbers:
            if not -count - 1 <= layer <= count:
                raise UserError(
                    f"layer {layer}: expected 1 to {count} (or -{count} to"
                    " -1), or 0 for the embeddings. Choose one of these layers."
                )
        if not numbers:
            raise UserError(
                "layers: found none; expected at least one. Pass a layer."
            )
        return tuple(layer % (count + 1) for layer in numbers)

    def _function(
        self, layers: int | Sequence[int], pooling: str, combine: str
    ) -> batch_runner.PackedFunction:
        for name, value, supported in (
            ("pooling", pooling, POOLINGS),
            ("combine", combine, COMBINATIONS),
        ):
            if value not in supported:
                raise UserError(
                    f"{name} {value!r}: expected one of"
                    f" {', '.join(supported)}. Choose one of these values."
                )
        # A word's vector is the mean of its wordpieces' vectors, computed
        # outside the graph.
        pooling = "none" if pooling == "words" else pooling
        key = (self._layer_indices(layers), pooling, combine)
        if key not in self._functions:
            self._functions[key] = batch_runner.PackedFunction(
                FEATURE_NAMES[:2],
                lambda features: self._compute(features, *key),
            )
        return self._functions[key]

    def _compute(
        self,
        features: dict[str, tf.Tensor],
        layers: tuple[int, ...],
        pooling: str,
        combine: str,
    ) -> dict[str, tf.Tensor]:
        ids, mask = features["input_ids"], features["input_mask"]
        encoded = self.encoder(ids, mask, tf.zeros_like(ids))
        all_outputs = (encoded.embedding_output, *encoded.layers)
        outputs = [all_outputs[layer] for layer in layers]
        if combine == "concat":
            sequence = tf.concat(outputs, -1)
        else:
            sequence = tf.add_n(outputs) / len(outputs)
        if pooling == "first":
            return {"vectors": sequence[:, 0]}
        if pooling == "mean":
            return {"vectors": mean_over_tokens(sequence, mask)}
        if pooling == "max":
            lowest = tf.fill(tf.shape(sequence), sequence.dtype.min)
            unpadded = tf.where(mask[..., None] > 0, sequence, lowest)
            return {"vectors": tf.reduce_max(unpadded, 1)}
        return {"vectors": sequence}


def _groups_by_word(
    text: str, pieces: Iterable[Piece]
) -> Iterator[tuple[str, list[Piece]]]:
    """Yield each word of `split_words` that has wordpieces, with the pieces."""
    spans = split_words(text)
    starts = [start for start, _ in spans]

    def word_of(piece: Piece) -> int:
        return bisect.bisect_right(starts, piece.start) - 1

    for index, group in itertools.groupby(pieces, word_of):
        start, end = spans[index]
        yield text[start:end], list(group)


def _groups_by_joiner(
    text: str, pieces: Iterable[Piece]
) -> Iterator[tuple[str, list[Piece]]]:
    """Yield the words that the joiners of wordpieces show, with the pieces.

    Tokenizers of the library `tokenizers` split texts differently from
    `split_words`.
    """
    groups: list[list[Piece]] = []
    for piece in pieces:
        if not groups or not piece.token.startswith(JOINER):
            groups.append([])
        groups[-1].append(piece)
    for group in groups:
        start = min(piece.start for piece in group)
        end = max(piece.end for piece in group)
        yield text[start:end], group
