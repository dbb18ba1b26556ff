# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The exported module that tags each word.

`serve_text` splits texts into words as `text/words.py` does, and `serve_words`
takes words in the format of the task's files. docs/export.md lists the outputs.

Source: google-research/electra, finetune/tagging.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from electra_tf.export import signatures
from electra_tf.finetuning.tagging import TaggingTask
from electra_tf.prediction.loading import FinetunedModel
from electra_tf.text.graph_normalization import (
    GraphNormalizer,
    GraphWordSplitter,
    ragged,
)
from electra_tf.text.graph_tokenization import GraphTokenizer, GraphWordpiece
from electra_tf.text.settings_files import read_settings
from electra_tf.text.vocabulary import load_wordpieces

WINDOWS_AT_ONCE = 32


class Windows(NamedTuple):
    """The windows of all sentences in a batch, in the sentences' order.

    Every word is in exactly one window, and the words of all windows are the
    words of all sentences, in order.
    """

    inputs: signatures.Inputs  # int32 [W, L] each; segments are 1 at all tokens
    # int32 [W, (P)], the position of each word's first wordpiece
    positions: tf.RaggedTensor
    # int32 [B], the number of words that training and evaluation would read
    n_read: tf.Tensor


def place_words(
    pieces: tf.RaggedTensor,
    n_words: tf.Tensor,
    max_length: int,
    count_words: bool,
    tokenizer: GraphTokenizer,
) -> Windows:
    """Divide sentences into windows: `[CLS] pieces [SEP]`.

    Args:
      pieces: int32 [N, (T)], ids of the wordpieces of all words.
      n_words: int32 [B], the number of words of each sentence.
      max_length: the maximum number of ids of a window.
      count_words: whether each word takes one further position, as in the
        original.
      tokenizer: the tokenizer, for the ids of special tokens.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      featurize.
    Differs: a word that is longer than a window loses only its end.
    """
    sizes = tf.cast(pieces.row_lengths(), tf.int32)
    n_read = _count_read(sizes, n_words, max_length, count_words)
    sizes = tf.minimum(sizes, max_length - 2)
    before = tf.concat([[0], tf.cumsum(sizes)], 0)  # [N + 1]
    first = _first_words(before, n_words, n_read, max_length - 2)
    splits = tf.concat([first, [tf.size(sizes)]], 0)

    # The wordpieces of a window are consecutive, so row splits define windows.
    pieces = signatures.cut(pieces, sizes)
    ids = ragged(pieces.values, tf.gather(before, splits))
    inputs, _ = signatures.pack(ids, None, max_length, tokenizer)
    starts = ragged(before[:-1], splits)
    begin = tf.gather(tf.gather(before, first), starts.value_rowids())
    return Windows(
        inputs._replace(segment_ids=inputs.input_mask),
        starts.with_values(starts.values - begin + 1),
        n_read,
    )


def _count_read(
    sizes: tf.Tensor, n_words: tf.Tensor, max_length: int, count_words: bool
) -> tf.Tensor:
    """Return the number of words [B] that training and evaluation read."""
    n_rows = tf.size(n_words)
    sentence = tf.repeat(tf.range(n_rows), n_words)
    before = tf.cumsum(sizes, exclusive=True)
    start = tf.math.unsorted_segment_min(before, sentence, n_rows)
    before += 1 - tf.gather(start, sentence)  # [CLS] included
    fits = before + sizes <= max_length - 1  # one position is for [SEP]
    if count_words:
        reserved = tf.gather(n_words, sentence) + 2
        fits &= reserved + before + 1 <= max_length
    return tf.math.unsorted_segment_sum(
        tf.cast(fits, tf.int32), sentence, n_rows
    )


def _first_words(
    before: tf.Tensor, n_words: tf.Tensor, n_read: tf.Tensor, capacity: int
) -> tf.Tensor:
    """Return the first word of each window: int32 [W], ascending.

    Indices count the words over all sentences.

    Args:
      before: int32 [N + 1], the number of wordpieces before each word.
      n_words: int32 [B], the number of words of each sentence.
      n_read: int32 [B], the number of words of each sentence's first window.
      capacity: the number of wordpieces of a window.
    """
    ends = tf.cumsum(n_words)

    def mark(word: tf.Tensor, is_first: tf.Tensor) -> tf.Tensor:
        at = word[:, tf.newaxis]
        return tf.tensor_scatter_nd_update(is_first, at, word == word)

    def lay(word: tf.Tensor, is_first: tf.Tensor) -> tuple[tf.Tensor, ...]:
        reached = tf.gather(before, word) + capacity
        fitting = tf.searchsorted(before, reached, side="right") - 1
        return tf.minimum(fitting, ends), mark(word, is_first)

    # The loop also marks the ends of sentences, which is harmless, because a
    # sentence ends at the first word of the next sentence, or after all words.
    begins = ends - n_words
    _, is_first = tf.while_loop(
        lambda word, _: tf.reduce_any(word < ends),
        lay,
        (begins + n_read, mark(begins, tf.zeros_like(before, tf.bool))),
        parallel_iterations=1,
    )
    return tf.cast(tf.where(is_first[:-1])[:, 0], tf.int32)


class LowercaseWordEncoder(tf.Module):
    """An encoder that gives words the same ids as `text.words.WordAligner`.

    By default, the aligner lower-cases words and strips their accents for every
    model, and does not split Chinese characters.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      tokenize_and_align.
    """

    def __init__(self, vocab_file: str) -> None:
        super().__init__()
        self._normalizer = GraphNormalizer(ideographs_apart=False)
        self._wordpiece = GraphWordpiece(
            load_wordpieces(vocab_file), read_settings(vocab_file)
        )

    def encode(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids [N, (T)] of strings [N]; invalid UTF-8 is left out."""
        tokens = self._normalizer.split(self._normalizer.decode(words))
        lengths = tokens.splits[1:] - tokens.splits[:-1]
        pieces = self._wordpiece.split_words(tokens.values, lengths)
        return ragged(
            pieces.ids, tf.gather(pieces.splits, tokens.string_splits)
        )


class TaggingModule(signatures.TaskModule):
    """A module that tags each word."""

    KIND = "tagging"
    ALL_SECOND = True

    def __init__(self, loaded: FinetunedModel, task: TaggingTask) -> None:
        super().__init__(loaded, task)
        # The ids of words must be the same as in training (see `WordAligner`).
        self._encoder = self.tokenizer
        if not loaded.config.fix_tagging_casing:
            self._encoder = LowercaseWordEncoder(loaded.config.vocab_file)
        self._splitter = GraphWordSplitter()

    def extra_config(self) -> dict[str, Any]:
        names = ("fix_tagging_casing", "fix_tagging_truncation")
        hparams = {name: getattr(self.loaded.config, name) for name in names}
        return {"tags": self.task.spec.tags, **hparams}

    def compute(self, inputs: signatures.Inputs) -> signatures.Outputs:
        shape = tf.shape(inputs.input_ids)
        positions = tf.broadcast_to(tf.range(shape[1])[tf.newaxis], shape)
        return self._answer(self._logits(inputs, positions)["logits"])

    def scored_outputs(
        self, outputs: signatures.Outputs, features: Mapping[str, tf.Tensor]
    ) -> signatures.Outputs:
        positions = features[f"{self.task.name}_labeled_positions"]
        logits = tf.gather(outputs["logits"], positions, batch_dims=1)
        return {"logits": logits, "predictions": tf.argmax(logits, -1)}

    def compute_words(self, words: tf.RaggedTensor) -> signatures.Outputs:
        """Return the tags of words, string [B, (N)]."""
        config = self.loaded.config
        n_words = tf.cast(words.row_lengths(), tf.int32)
        windows = place_words(
            self._encoder.encode(words.values),
            n_words,
            config.max_seq_length,
            not config.fix_tagging_truncation,
            self.tokenizer,
        )
        n_labels = self.labels.shape[0]
        logits = signatures.compute_in_groups(
            self._logits,
            windows.inputs,
            windows.positions.to_tensor(),
            {"logits": tf.TensorSpec([None, None, n_labels], tf.float32)},
            WINDOWS_AT_ONCE,
        )["logits"]
        is_word = tf.sequence_mask(windows.positions.row_lengths())
        logits = tf.boolean_mask(logits, is_word)
        answers = self._answer(logits)
        padding = dict.fromkeys(answers) | {"tag_ids": -1}
        answers = {
            name: words.with_values(value).to_tensor(padding[name])
            for name, value in answers.items()
        }
        return {**answers, "n_words": n_words, "n_read": windows.n_read}

    def compute_text(self, text: tf.Tensor) -> signatures.Outputs:
        spans = self._splitter.split(text)
        return {
            "words": spans.words.to_tensor(),
            "starts": spans.starts.to_tensor(-1),
            "ends": spans.ends.to_tensor(-1),
            **self.compute_words(spans.words),
        }

    def text_signatures(self) -> signatures.Signatures:
        serve_words = signatures.text_function(
            lambda words: self.compute_words(split_given_words(words)), 1
        )
        return {**super().text_signatures(), "serve_words": serve_words}

    def _logits(
        self, inputs: signatures.Inputs, positions: tf.Tensor
    ) -> signatures.Outputs:
        """Return the head's `logits` [B, P, C] at positions [B, P]."""
        features = {f"{self.task.name}_labeled_positions": positions}
        return self.head_outputs(inputs, **features)

    def _answer(self, logits: tf.Tensor) -> signatures.Outputs:
        """Return tags and probabilities for logits [..., C]."""
        tag_ids = tf.argmax(logits, -1, output_type=tf.int32)
        return {
            "tags": tf.gather(self.labels, tag_ids),
            "tag_ids": tag_ids,
            "probabilities": tf.nn.softmax(logits),
            "logits": logits,
        }


def split_given_words(sentences: tf.Tensor) -> tf.RaggedTensor:
    """Split sentences, string [B], into their words, string [B, (N)].

    Line feeds separate words, which may be empty; strings without a line feed
    are split at spaces. An empty string has no words.
    """
    without = tf.strings.regex_replace(sentences, "\n", "")
    spaced = tf.strings.regex_replace(sentences, "^ +| +$", "")
    spaced = tf.strings.regex_replace(spaced, " +", "\n")
    lines = tf.where(without == sentences, spaced, sentences)
    split = tf.strings.split(lines, "\n")
    # Splitting an empty string returns one empty word.
    is_word = tf.repeat(lines != "", split.row_lengths())
    return tf.ragged.boolean_mask(split, split.with_values(is_word))
