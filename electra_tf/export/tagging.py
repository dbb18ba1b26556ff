# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Modules that give each word a tag.

`serve_words` takes `words` [B]: the words of a sentence, just as the task's
files have them, with a line feed between them, so that they may hold spaces; in
a string without a line feed spaces separate them. `serve_text` takes
`text` [B] and finds the words itself, as `text/word_spans.py` does: white
space separates them, punctuation marks and Chinese characters are words of
their own. (What the files of most tasks have as a word, such as "U.S.", may be
several then; who wants other words, gives words.)

Both give, with N the most words of a sentence and C tags:

  tags           string [B, N], "" behind a sentence's last word
  tag_ids        int32 [B, N], -1 behind the last word
  probabilities  float32 [B, N, C]
  logits         float32 [B, N, C]
  n_words        int32 [B]
  n_read         int32 [B]: so many words, from the first one, have the tags
                 that evaluation gives them. It cuts off the others, since the
                 sentence is too long for max_seq_length; here they are tagged
                 in windows of their own.

and `serve_text`, of each word, -1 behind the last one in `starts` and `ends`:

  words          string [B, N]
  starts, ends   int32 [B, N], its bytes in the text, end exclusive

The signatures on ids give `logits` and `probabilities` [B, L, C] and `tags`
[B, L] of every position; those at words' first wordpieces are the words'.
Segments that are not given are 1 at all tokens, as the task has them.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from electra_tf.export.packing import Inputs
from electra_tf.export.signatures import Outputs, Signatures
from electra_tf.export.tagging_windows import place_words
from electra_tf.export.tagging_words import LowercaseWordEncoder
from electra_tf.export.task_module import TaskModule
from electra_tf.export.window_batches import compute_in_batches
from electra_tf.finetuning.tagging.task import TaggingTask
from electra_tf.prediction.loading import FinetunedModel
from electra_tf.text.graph_word_spans import GraphWordSplitter


class TaggingModule(TaskModule):
    """A tag per word.

    Args:
      loaded: the model.
      task: one of its tagging tasks.

    Source: google-research/electra, finetune/tagging.
    """

    KIND = "tagging"

    def __init__(self, loaded: FinetunedModel, task: TaggingTask) -> None:
        super().__init__(loaded, task)
        # Words are tokenized as `WordAligner` does it.
        self._encoder = self.tokenizer
        if not loaded.config.fix_tagging_casing:
            self._encoder = LowercaseWordEncoder(loaded.config.vocab_file)
        self._splitter = GraphWordSplitter()

    def label_names(self) -> list[str]:
        """Returns the tags, in the order of the head's outputs."""
        names = {i: tag for tag, i in self.task.label_mapping.items()}
        return [names[i] for i in range(len(names))]

    def extra_config(self) -> dict[str, Any]:
        """Adds what decides how words are read."""
        config = self.loaded.config
        return {
            "tags": self.task.spec.tags,
            "fix_tagging_casing": config.fix_tagging_casing,
            "fix_tagging_truncation": config.fix_tagging_truncation,
        }

    def complete(
        self,
        input_ids: tf.Tensor,
        input_mask: tf.Tensor | None = None,
        segment_ids: tf.Tensor | None = None,
    ) -> Inputs:
        """As the base class, but with segments that are 1 at all tokens."""
        inputs = super().complete(input_ids, input_mask, segment_ids)
        if segment_ids is None:
            return inputs._replace(segment_ids=inputs.input_mask)
        segments = tf.cond(
            tf.size(segment_ids) > 0,
            lambda: inputs.segment_ids,
            lambda: inputs.input_mask,
        )
        return inputs._replace(segment_ids=segments)

    def compute(self, inputs: Inputs) -> Outputs:
        """From inputs [B, L] to the tags of all positions."""
        shape = tf.shape(inputs.input_ids)
        positions = tf.broadcast_to(tf.range(shape[1])[tf.newaxis], shape)
        return self._answer(self._logits(inputs, positions))

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
        n_labels = len(self.settings.labels)
        found = compute_in_batches(
            lambda inputs, positions: {
                "logits": self._logits(inputs, positions)
            },
            windows.inputs,
            windows.positions,
            {"logits": tf.TensorSpec([None, None, n_labels], tf.float32)},
        )
        places = tf.shape(windows.positions)[1]
        logits = tf.boolean_mask(
            found["logits"], tf.sequence_mask(windows.n_words, places)
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

    def signatures(self) -> Signatures:
        """See the base class."""
        strings = tf.TensorSpec([None], tf.string)

        @tf.function(input_signature=[strings])
        def serve_text(text: tf.Tensor) -> Outputs:
            return self.compute_text(text)

        @tf.function(input_signature=[strings])
        def serve_words(words: tf.Tensor) -> Outputs:
            return self.compute_words(split_given_words(words))

        return {
            **self.ids_signatures(self.compute),
            "serve_text": serve_text,
            "serve_words": serve_words,
            **self.describe_signature(),
        }

    def _logits(self, inputs: Inputs, positions: tf.Tensor) -> tf.Tensor:
        """The head's logits [B, P, C] at positions [B, P]."""
        name, nothing = self.task.name, tf.zeros_like(positions)
        features = {
            f"{name}_labeled_positions": positions,
            f"{name}_labels": nothing,
            f"{name}_labels_mask": tf.cast(nothing, tf.float32),
        }
        return self.head_outputs(inputs, **features)["logits"]

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
    """Splits sentences that come as words.

    Args:
      sentences: string [B], words with line feeds between them, which may be
        empty; or, in strings without a line feed, with spaces.

    Returns:
      string [B, (N)]; no words of an empty string.
    """
    without = tf.strings.regex_replace(sentences, "\n", "")
    spaced = tf.strings.regex_replace(sentences, "^ +| +$", "")
    spaced = tf.strings.regex_replace(spaced, " +", "\n")
    lines = tf.where(without == sentences, spaced, sentences)
    split = tf.strings.split(lines, "\n")
    # Splitting nothing gives one empty word.
    some = tf.repeat(lines != "", split.row_lengths())
    return tf.ragged.boolean_mask(split, split.with_values(some))
