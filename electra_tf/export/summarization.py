# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chooses the sentences that summarize a text, long ones in windows.

docs/export.md says what `serve_text` gives. The signatures on ids take each row
for one sentence, its document's first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from electra_tf.export.signatures import (
    Inputs,
    Outputs,
    TaskModule,
    compute_in_groups,
)
from electra_tf.export.tagging import place_words
from electra_tf.text.words import SENTENCE_BREAKS

_WINDOWS_AT_ONCE = 32


class Sentences(NamedTuple):
    """The sentences of a batch of texts, as they stand there."""

    texts: tf.RaggedTensor  # string [B, (N)]
    starts: tf.RaggedTensor  # int32 [B, (N)], in bytes
    ends: tf.RaggedTensor  # int32 [B, (N)], the byte after each


def split_sentences(texts: tf.Tensor) -> Sentences:
    """Splits strings [B] as `text.words.split_sentences` does."""
    marked = texts
    for pattern, instead in SENTENCE_BREAKS:
        marked = tf.strings.regex_replace(marked, pattern, instead)
    lines = tf.strings.split(marked, "\n")
    sizes = tf.strings.length(lines.values)
    before = tf.cumsum(sizes + 1, exclusive=True)  # with the line feeds
    row = lines.value_rowids()
    starts = before - tf.gather(before, tf.gather(lines.row_starts(), row))
    without = tf.strings.regex_replace(lines.values, r"^[ \t\r\f\v]+", "")
    starts += sizes - tf.strings.length(without)
    kept = tf.strings.length(tf.strings.strip(lines.values))
    found = tf.strings.substr(tf.gather(texts, row), starts, kept)
    found = tf.strings.unicode_transcode(
        found, "UTF-8", "UTF-8", errors="ignore"
    )
    some = lines.with_values(kept > 0)
    return Sentences(
        *(
            tf.ragged.boolean_mask(lines.with_values(values), some)
            for values in (found, starts, starts + kept)
        )
    )


class SummarizationModule(TaskModule):
    """The best sentences of a text."""

    KIND = "summarization"

    def extra_config(self) -> dict[str, Any]:
        return {"sentences": self.task.spec.sentences}

    def compute(self, inputs: Inputs) -> Outputs:
        """From rows [B, L], each a sentence, to logits and probabilities."""
        ids, tokenizer = inputs.input_ids, self.tokenizer
        is_text = (ids != tokenizer.cls_id) & (ids != tokenizer.sep_id)
        owners = inputs.input_mask * tf.cast(is_text, tf.int32)
        ones = tf.ones_like(ids[:, :1])
        logits = self._logits(inputs, owners, ones)[:, 0]
        return {"logits": logits, "probabilities": tf.sigmoid(logits)}

    def compute_text(self, text: tf.Tensor) -> Outputs:
        """From strings [B] to their summaries and all their sentences."""
        sentences = split_sentences(text)
        texts = sentences.texts
        n_sentences = tf.cast(texts.row_lengths(), tf.int32)
        windows = place_words(
            self.encode_text(texts.values),
            n_sentences,
            self.max_seq_length,
            False,
            self.tokenizer.cls_id,
            self.tokenizer.sep_id,
        )
        # Windows have the sentences of all texts, in order.
        numbers = tf.ragged.range(1, n_sentences + 1).values
        numbers = windows.positions.with_values(numbers).to_tensor()
        mask = windows.inputs.input_mask
        inputs = windows.inputs._replace(segment_ids=tf.zeros_like(mask))
        width = tf.shape(mask)[1]
        extra = [_owners(windows.positions, numbers, mask), numbers]
        logits = compute_in_groups(
            lambda part, extra: {
                "": self._logits(part, extra[:, :width], extra[:, width:])
            },
            inputs,
            tf.concat(extra, 1),
            {"": tf.TensorSpec([None, None], tf.float32)},
            _WINDOWS_AT_ONCE,
        )[""]
        logits = texts.with_values(tf.boolean_mask(logits, numbers > 0))
        is_sentence = tf.sequence_mask(n_sentences)
        dense = logits.to_tensor(float("-inf"))
        most = tf.minimum(self.task.spec.sentences, tf.shape(dense)[1])
        best = tf.math.top_k(dense, most).indices
        chosen = tf.reduce_sum(tf.one_hot(best, tf.shape(dense)[1]), 1) > 0
        chosen &= is_sentence
        kept = texts.with_values(tf.boolean_mask(chosen, is_sentence))
        summary = tf.ragged.boolean_mask(texts, kept)
        return {
            "summary": tf.strings.reduce_join(summary, -1, separator="\n"),
            "sentences": texts.to_tensor(),
            "starts": sentences.starts.to_tensor(-1),
            "ends": sentences.ends.to_tensor(-1),
            "probabilities": tf.where(is_sentence, tf.sigmoid(dense), 0.0),
            "chosen": tf.cast(chosen, tf.int32),
            "n_sentences": n_sentences,
        }

    def _logits(
        self, inputs: Inputs, owners: tf.Tensor, numbers: tf.Tensor
    ) -> tf.Tensor:
        """The head's logits [B, S]; see `SummarizationHead.logits`."""
        features = {"sentence_ids": owners, "numbers": numbers}
        named = {f"{self.task.name}_{n}": x for n, x in features.items()}
        return self.head_outputs(inputs, **named)["logits"]


def _owners(
    positions: tf.RaggedTensor, numbers: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
    """The sentence of each token [W, L]; 0 for [CLS], [SEP] and padding."""
    places = tf.broadcast_to(tf.range(tf.shape(mask)[1]), tf.shape(mask))
    # One more column, for a window of nothing.
    starts = positions.to_tensor(tf.int32.max)
    starts = tf.pad(starts, [[0, 0], [0, 1]], constant_values=tf.int32.max)
    owner = tf.searchsorted(starts, places, side="right")
    numbers = tf.pad(numbers, [[0, 0], [1, 0]])
    owners = tf.gather(numbers, owner, batch_dims=1)
    # The [SEP] behind all sentences.
    return owners * tf.pad(mask[:, 1:], [[0, 0], [0, 1]])
