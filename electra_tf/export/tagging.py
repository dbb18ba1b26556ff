# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Modules that give each word a tag.

`serve_text` finds the words as `text/words.py` does, `serve_words` takes
them as the task's files have them; docs/export.md says what comes back.

Source: google-research/electra, finetune/tagging.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from electra_tf.export.signatures import (
    Inputs,
    Outputs,
    Signatures,
    TaskModule,
    compute_in_groups,
    text_function,
)
from electra_tf.finetuning.tagging import TaggingTask
from electra_tf.prediction.loading import FinetunedModel
from electra_tf.text.graph_normalization import (
    GraphNormalizer,
    GraphWordSplitter,
)
from electra_tf.text.graph_tokenization import GraphWordpiece
from electra_tf.text.tokenization import load_vocab

_WINDOWS_AT_ONCE = 32


class Windows(NamedTuple):
    """The windows of a batch of sentences, one after the other.

    Every word is in exactly one window, and the words of all windows are the
    words of all sentences, in order.
    """

    inputs: Inputs  # int32 [W, L] each; segments are 1 at all tokens
    # Int32 [W, P], of each word's first wordpiece; 0 for none.
    positions: tf.Tensor
    n_words: tf.Tensor  # int32 [W], words in each window
    # Int32 [B], words that training and evaluation would read.
    n_read: tf.Tensor


def place_words(
    pieces: tf.RaggedTensor,
    n_words: tf.Tensor,
    max_length: int,
    count_words: bool,
    cls_id: int,
    sep_id: int,
) -> Windows:
    """Lays windows over sentences: `[CLS] pieces [SEP]`.

    Args:
      pieces: int32 [N, (T)], ids of the wordpieces of all words.
      n_words: int32 [B], words of each sentence.
      count_words: whether words take from the length, as in the original.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      featurize.
    Differs: nothing is cut off but the end of a word that is longer than a
      whole window.
    """
    sizes = tf.cast(pieces.row_lengths(), tf.int32)
    n_read = _count_read(sizes, n_words, max_length, count_words)
    sizes = tf.minimum(sizes, max_length - 2)
    before = tf.concat([[0], tf.cumsum(sizes)], 0)  # [N + 1]
    first = _first_words(before, n_words, n_read, max_length - 2)
    last = tf.concat([first[1:], [tf.size(sizes)]], 0)
    words = last - first
    window = tf.repeat(tf.range(tf.size(first)), words)
    place = before[:-1] - tf.gather(tf.gather(before, first), window) + 1
    lengths = tf.gather(before, last) - tf.gather(before, first)  # [W]

    width = tf.reduce_max(tf.concat([lengths, [0]], 0)) + 2
    column = tf.range(width)[tf.newaxis]  # [1, L]
    # The wordpieces of a window follow each other, only its end may be cut.
    source = tf.cast(tf.gather(pieces.row_splits, first), tf.int32)
    values = tf.concat([tf.cast(pieces.values, tf.int32), [0]], 0)
    index = tf.minimum(source[:, tf.newaxis] + column - 1, tf.size(values) - 1)
    end = lengths[:, tf.newaxis] + 1
    ids = tf.gather(values, tf.maximum(index, 0))
    ids = tf.where(column == 0, cls_id, tf.where(column == end, sep_id, ids))
    mask = tf.cast(column <= end, tf.int32)
    positions = tf.RaggedTensor.from_row_lengths(place, words, validate=False)
    return Windows(
        Inputs(ids * mask, mask, mask), positions.to_tensor(), words, n_read
    )


def _count_read(
    sizes: tf.Tensor, n_words: tf.Tensor, max_length: int, count_words: bool
) -> tf.Tensor:
    """How many words of each sentence [B] training and evaluation read."""
    sentence = tf.repeat(tf.range(tf.size(n_words)), n_words)
    total = tf.cumsum(sizes)
    start = tf.cumsum(n_words, exclusive=True)
    before_all = tf.concat([[0], total], 0)
    length = total - tf.gather(tf.gather(before_all, start), sentence) + 1
    fits = length <= max_length - 1  # with [CLS]; one place is for [SEP]
    if count_words:
        reserved = tf.gather(n_words, sentence) + 2
        fits &= reserved + length - sizes + 1 <= max_length
    return tf.math.unsorted_segment_sum(
        tf.cast(fits, tf.int32), sentence, tf.size(n_words)
    )


def _first_words(
    before: tf.Tensor, n_words: tf.Tensor, n_read: tf.Tensor, most: int
) -> tf.Tensor:
    """The first word of each window, counted through all sentences.

    Args:
      before: int32 [N + 1], wordpieces before each word.
      n_read: int32 [B], words of each sentence's first window.
      most: wordpieces of a window.

    Returns:
      int32 [W], rising.
    """
    ends = tf.cumsum(n_words)
    begins = ends - n_words
    firsts = tf.TensorArray(tf.int32, 1, dynamic_size=True, infer_shape=False)
    # A sentence none of whose words is read has no first window.
    firsts = firsts.write(0, tf.boolean_mask(begins, n_read > 0))

    def lay(
        number: tf.Tensor, word: tf.Tensor, found: tf.TensorArray
    ) -> tuple[tf.Tensor, tf.Tensor, tf.TensorArray]:
        found = found.write(number, tf.boolean_mask(word, word < ends))
        reached = tf.gather(before, word) + most
        fitting = tf.searchsorted(before, reached, side="right") - 1
        return number + 1, tf.minimum(fitting, ends), found

    _, _, firsts = tf.while_loop(
        lambda _, word, __: tf.reduce_any(word < ends),
        lay,
        (1, begins + n_read, firsts),
        parallel_iterations=1,
    )
    return tf.sort(tf.reshape(firsts.concat(), [-1]))


class LowercaseWordEncoder(tf.Module):
    """Gives the ids that `text.words.WordAligner` gives by default.

    It always lower-cases and drops accents, whatever the model, and leaves
    Chinese characters together. The tokenizer itself gives the ids that it
    gives `as_elsewhere`.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      tokenize_and_align.
    """

    def __init__(self, vocab_file: str) -> None:
        super().__init__()
        self._normalizer = GraphNormalizer(ideographs_apart=False)
        self._wordpiece = GraphWordpiece(load_vocab(vocab_file))

    def encode(self, words: tf.Tensor) -> tf.RaggedTensor:
        """From strings [N] to ids [N, (T)]; what is not UTF-8 is left out."""
        tokens = self._normalizer.split(self._normalizer.decode(words))
        lengths = tokens.splits[1:] - tokens.splits[:-1]
        pieces = self._wordpiece.split_words(tokens.values, lengths)
        splits = tf.gather(pieces.splits, tokens.string_splits)
        return tf.RaggedTensor.from_row_splits(
            pieces.ids, splits, validate=False
        )


class TaggingModule(TaskModule):
    """A tag per word."""

    KIND = "tagging"
    ALL_SECOND = True

    def __init__(self, loaded: FinetunedModel, task: TaggingTask) -> None:
        super().__init__(loaded, task)
        # Words are tokenized as `WordAligner` does it.
        self._encoder = self.tokenizer
        if not loaded.config.fix_tagging_casing:
            self._encoder = LowercaseWordEncoder(loaded.config.vocab_file)
        self._splitter = GraphWordSplitter()

    def label_names(self) -> list[str]:
        """Returns the tags, in the order of the head's outputs."""
        mapping = self.task.label_mapping
        return sorted(mapping, key=mapping.get)

    def extra_config(self) -> dict[str, Any]:
        """Adds what decides how words are read."""
        config = self.loaded.config
        return {
            "tags": self.task.spec.tags,
            "fix_tagging_casing": config.fix_tagging_casing,
            "fix_tagging_truncation": config.fix_tagging_truncation,
        }

    def compute(self, inputs: Inputs) -> Outputs:
        """From inputs [B, L] to the tags of all positions."""
        shape = tf.shape(inputs.input_ids)
        positions = tf.broadcast_to(tf.range(shape[1])[tf.newaxis], shape)
        return self._answer(self._logits(inputs, positions)["logits"])

    def compute_words(self, words: tf.RaggedTensor) -> Outputs:
        """From words, string [B, (N)], to their tags; see the module."""
        config, tokenizer = self.loaded.config, self.tokenizer
        n_words = tf.cast(words.row_lengths(), tf.int32)
        windows = place_words(
            self._encoder.encode(words.values),
            n_words,
            config.max_seq_length,
            not config.fix_tagging_truncation,
            tokenizer.cls_id,
            tokenizer.sep_id,
        )
        n_labels = self.labels.shape[0]
        logits = compute_in_groups(
            self._logits,
            windows.inputs,
            windows.positions,
            {"logits": tf.TensorSpec([None, None, n_labels], tf.float32)},
            _WINDOWS_AT_ONCE,
        )["logits"]
        places = tf.shape(windows.positions)[1]
        logits = tf.boolean_mask(
            logits, tf.sequence_mask(windows.n_words, places)
        )
        logits.set_shape([None, n_labels])
        return {
            **{
                name: words.with_values(value).to_tensor(
                    -1 if name == "tag_ids" else None
                )
                for name, value in self._answer(logits).items()
            },
            "n_words": n_words,
            "n_read": windows.n_read,
        }

    def compute_text(self, text: tf.Tensor) -> Outputs:
        """From strings [B] to words, places and tags; see the module."""
        spans = self._splitter.split(text)
        return {
            "words": spans.words.to_tensor(),
            "starts": spans.starts.to_tensor(-1),
            "ends": spans.ends.to_tensor(-1),
            **self.compute_words(spans.words),
        }

    def text_signatures(self) -> Signatures:
        """Adds `serve_words`."""
        return {
            **super().text_signatures(),
            "serve_words": text_function(
                lambda words: self.compute_words(split_given_words(words)), 1
            ),
        }

    def _logits(self, inputs: Inputs, positions: tf.Tensor) -> Outputs:
        """The head's outputs at positions [B, P]: `logits` [B, P, C]."""
        features = {f"{self.task.name}_labeled_positions": positions}
        return self.head_outputs(inputs, **features)

    def _answer(self, logits: tf.Tensor) -> Outputs:
        """Tags and probabilities of logits [..., C]."""
        tag_ids = tf.argmax(logits, -1, output_type=tf.int32)
        return {
            "tags": tf.gather(self.labels, tag_ids),
            "tag_ids": tag_ids,
            "probabilities": tf.nn.softmax(logits),
            "logits": logits,
        }


def split_given_words(sentences: tf.Tensor) -> tf.RaggedTensor:
    """Splits sentences that come as words, string [B], to string [B, (N)].

    Line feeds stand between words, which may be empty; in strings without a
    line feed spaces do. An empty string has no words.
    """
    without = tf.strings.regex_replace(sentences, "\n", "")
    spaced = tf.strings.regex_replace(sentences, "^ +| +$", "")
    spaced = tf.strings.regex_replace(spaced, " +", "\n")
    lines = tf.where(without == sentences, spaced, sentences)
    split = tf.strings.split(lines, "\n")
    # Splitting nothing gives one empty word.
    some = tf.repeat(lines != "", split.row_lengths())
    return tf.ragged.boolean_mask(split, split.with_values(some))
