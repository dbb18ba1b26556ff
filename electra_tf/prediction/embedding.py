# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts, words and wordpieces, from any encoder.

    embedder = Embedder.from_pretrained("models/small")
    embedder("A text.").shape                      # (256,)
    embedder(["One.", "Two."], layers=(-2, -1), pooling="first")

A raw ELECTRA encoder tells replaced tokens from real ones; it was never taught
that similar sentences have similar vectors. Fine-tune it, or expect little of
distances between its sentence vectors.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.data.records import FEATURE_NAMES
from electra_tf.finetuning.heads import mean_over_tokens
from electra_tf.modeling.encoder import Encoder
from electra_tf.prediction import batch_runner
from electra_tf.prediction.loading import load, select_encoder
from electra_tf.text import tokenization, vocabulary
from electra_tf.text.offsets import OffsetTokenizer, Piece
from electra_tf.text.wordpiece import JOINER
from electra_tf.text.words import split_words

SEVERAL = ("words", "none")  # poolings that make several vectors a text
POOLINGS = ("first", "mean", "max", *SEVERAL)
COMBINATIONS = ("mean", "concat")
PARTS = ("encoder", "generator")


@dataclasses.dataclass(frozen=True)
class Embedded:
    """The vectors of one text."""

    vectors: np.ndarray  # float32 [H], or with pooling "words" or "none" [N, H]
    # What the N rows are of: words as they stand in the text, or wordpieces,
    # [CLS] and [SEP] among them; None for one vector.
    units: list[str] | None
    cut: int  # wordpieces that did not fit into the model, and are not in it


class _Text(NamedTuple):
    """A text as the encoder takes it; `starts` of each word's first piece."""

    ids: list[int]
    words: list[str]
    starts: list[int]
    cut: int


class Embedder:
    """Turns texts into vectors; `size` is the encoder's H."""

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: tokenization.FullTokenizer,
        max_length: int,
        batch_size: int = 32,
    ) -> None:
        self.encoder, self._tokenizer = encoder, tokenizer
        self.size = encoder.config.hidden_size
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
        """Loads an encoder; texts are cut to its positions, or max_length."""
        if part not in PARTS:
            raise UserError(
                f"part {part!r}: expected one of {', '.join(PARTS)}"
            )
        loaded = load(path, vocab_file, hparams)
        vocabulary.require_wordpiece(loaded.config.vocab_file, "embed")
        encoder = select_encoder(loaded, f"--part={part}", part)
        positions = encoder.config.max_position_embeddings
        if max_length is not None and not 3 <= max_length <= positions:
            raise UserError(
                f"max_length {max_length}: expected 3 to {positions}, the"
                " positions of the model"
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
        """Returns the vectors of one text or of several; see `embed`.

        Float32: [H] for one text and [N, H] for several; with pooling "words"
        or "none", which make several vectors a text, [T, H] or a list of them.
        """
        alone = isinstance(texts, str | bytes)
        texts = [texts] if alone else texts
        found = self.embed(texts, layers, pooling, combine)
        vectors = [one.vectors for one in found]
        if alone:
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
        """Returns vectors and what they are of.

        Args:
          pooling: "first" (the vector at [CLS]), "mean" and "max" over all
            wordpieces with [CLS] and [SEP], "words" (the mean of each word's
            pieces), or "none".
          layers: which layer, or which ones: 0 is the embeddings' output,
            k the k-th block's, -1 the last block's.
          combine: "mean" or "concat", what becomes of several layers.
        """
        function = self._function(layers, pooling, combine)
        made = [self._text(text) for text in texts]
        rows = [
            {"input_ids": text.ids, "input_mask": [1] * len(text.ids)}
            for text in made
        ]
        lengths = [len(text.ids) for text in made]
        outputs = batch_runner.run_in_batches(
            function, rows, lengths, self.batch_size, self.max_length
        )
        return [
            self._embedded(text, found["vectors"], pooling)
            for text, found in zip(made, outputs, strict=True)
        ]

    def width(
        self, layers: int | Sequence[int] = -1, combine: str = "mean"
    ) -> int:
        chosen = self._layers(layers)
        return self.size * (len(chosen) if combine == "concat" else 1)

    def _text(self, text: str | bytes) -> _Text:
        if isinstance(text, bytes):
            text = text.decode("utf-8", "ignore")
        if not isinstance(text, str):
            raise UserError(f"found {text!r:.80}; expected a text")
        most = self.max_length - 2
        ids: list[int] = []
        words, starts, total = [], [], 0
        for word, pieces in self._words(text):
            total += len(pieces)
            if pieces and len(ids) < most:
                words.append(word)
                starts.append(len(ids) + 1)
                ids += pieces[: most - len(ids)]
        ids = [self._cls_id, *ids, self._sep_id]
        return _Text(ids, words, starts, total + 2 - len(ids))

    def _words(self, text: str) -> Iterator[tuple[str, list[int]]]:
        """Yields the words of a text and the ids of their pieces."""
        if not self._tokenizer.splitter:
            for first, last in split_words(text):
                yield text[first:last], self._tokenizer.encode(text[first:last])
            return
        # Of other rules than the original's: words follow from the pieces.
        vocab = self._tokenizer.vocab
        groups: list[list[Piece]] = []
        for piece in self._offsets.tokenize(text):
            if not groups or not piece.token.startswith(JOINER):
                groups.append([])
            groups[-1].append(piece)
        for group in groups:
            first = min(piece.start for piece in group)
            last = max(piece.end for piece in group)
            yield text[first:last], [vocab[piece.token] for piece in group]

    def _embedded(
        self, text: _Text, vectors: np.ndarray, pooling: str
    ) -> Embedded:
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

    def _layers(self, layers: int | Sequence[int]) -> tuple[int, ...]:
        """Places among the embeddings' output and the blocks'."""
        chosen = (layers,) if isinstance(layers, int) else tuple(layers)
        count = len(self.encoder.blocks)
        for layer in chosen:
            if not -count - 1 <= layer <= count:
                raise UserError(
                    f"layer {layer}: the encoder has layers 1 to {count} (or"
                    f" -{count} to -1), and 0, the embeddings"
                )
        if not chosen:
            raise UserError("layers: name at least one")
        return tuple(layer % (count + 1) for layer in chosen)

    def _function(
        self, layers: int | Sequence[int], pooling: str, combine: str
    ) -> batch_runner.PackedFunction:
        for name, value, known in (
            ("pooling", pooling, POOLINGS),
            ("combine", combine, COMBINATIONS),
        ):
            if value not in known:
                raise UserError(
                    f"{name} {value!r}: expected one of {', '.join(known)}"
                )
        # Words are put together from wordpieces, outside the graph.
        pooling = "none" if pooling == "words" else pooling
        key = (self._layers(layers), pooling, combine)
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
        every = (encoded.embedding_output, *encoded.layers)
        chosen = [every[layer] for layer in layers]
        if combine == "concat":
            sequence = tf.concat(chosen, -1)
        else:
            sequence = tf.add_n(chosen) / len(chosen)
        if pooling == "first":
            return {"vectors": sequence[:, 0]}
        if pooling == "mean":
            return {"vectors": mean_over_tokens(sequence, mask)}
        if pooling == "max":
            lowest = tf.fill(tf.shape(sequence), sequence.dtype.min)
            kept = tf.where(mask[..., None] > 0, sequence, lowest)
            return {"vectors": tf.reduce_max(kept, 1)}
        return {"vectors": sequence}
