# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The exported module that chooses the sentences of a summary.

Long texts are read in windows. docs/export.md lists the outputs of
`serve_text`. The signatures that take ids treat each row as the first
sentence of a document.
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
from electra_tf.export.tagging import WINDOWS_AT_ONCE, place_words
from electra_tf.text.graph_normalization import utf8_lengths
from electra_tf.text.sentences import BREAK, SENTENCE_BREAKS


def split_sentences(texts: tf.Tensor) -> list[tf.RaggedTensor]:
    """Split strings [B] as `text.sentences.split_sentences` does.

    Bytes that are not UTF-8 are left out before the texts are split.

    Returns:
      The sentences, string [B, (N)], and their starts and ends in bytes, int32
      [B, (N)] each; ends are exclusive.
    """
    valid_texts = tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="ignore"
    )
    marked = valid_texts
    for pattern, replacement in SENTENCE_BREAKS:
        marked = tf.strings.regex_replace(marked, pattern, replacement)
    lines = tf.strings.split(marked, "\n")
    goes_on = tf.strings.regex_full_match(lines.values, f"(?s).*{BREAK}")
    values = tf.strings.regex_replace(lines.values, f"{BREAK}$", "")
    lines = lines.with_values(values)
    sizes = tf.strings.length(values)
    # A line feed of the text takes one byte; an inserted line feed takes none.
    spans = tf.where(goes_on, sizes, sizes + 1)
    before = tf.cumsum(spans, exclusive=True)
    row = lines.value_rowids()
    starts = before - tf.gather(before, tf.gather(lines.row_starts(), row))
    without = tf.strings.regex_replace(lines.values, r"^[ \t\r\f\v]+", "")
    starts += sizes - tf.strings.length(without)
    lengths = tf.strings.length(tf.strings.strip(lines.values))
    sentences = tf.strings.substr(tf.gather(valid_texts, row), starts, lengths)
    is_sentence = lines.with_values(lengths > 0)
    sentences, starts, lengths = (
        tf.ragged.boolean_mask(lines.with_values(part), is_sentence)
        for part in (sentences, starts, lengths)
    )
    # The offsets in the valid texts become offsets in the texts.
    valid = _find_valid_bytes(texts)
    first = starts.values + tf.gather(valid.before, starts.value_rowids())
    last = first + lengths.values - 1
    return [
        sentences,
        sentences.with_values(tf.gather(valid.offsets, first)),
        sentences.with_values(tf.gather(valid.offsets, last) + 1),
    ]


class _ValidBytes(NamedTuple):
    """The bytes of strings that are valid UTF-8."""

    before: tf.Tensor  # int32 [B], number of valid bytes before each string
    offsets: tf.Tensor  # int32 [T], offset of each valid byte in its string


def _find_valid_bytes(strings: tf.Tensor) -> _ValidBytes:
    """Return the bytes of strings [B] that `unicode_transcode` keeps."""
    splits, codes, starts = tf.raw_ops.UnicodeDecodeWithOffsets(
        input=strings,
        input_encoding="UTF-8",
        errors="ignore",
        Tsplits=tf.int64,  # With int32, this kernel aborts.
    )
    starts, sizes = tf.cast(starts, tf.int32), utf8_lengths(codes)
    counts = tf.concat([[0], tf.cumsum(sizes)], 0)
    offsets = tf.ragged.range(starts, starts + sizes).values
    return _ValidBytes(tf.gather(counts, splits[:-1]), offsets)


class SummarizationModule(TaskModule):
    """A module that returns the best sentences of a text."""

    KIND = "summarization"

    def extra_config(self) -> dict[str, Any]:
        return {"sentences": self.task.spec.sentences}

    def compute(self, inputs: Inputs) -> Outputs:
        """Return the outputs of rows [B, L] that are one sentence each."""
        ones = tf.ones_like(inputs.input_ids[:, :1])
        logits = self._logits(inputs, tf.concat([ones, ones], 1))[:, 0]
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)[:, 1]}

    def compute_text(self, text: tf.Tensor) -> Outputs:
        """Return summaries and all sentences of strings [B]."""
        texts, starts, ends = split_sentences(text)
        n_sentences = tf.cast(texts.row_lengths(), tf.int32)
        windows = place_words(
            self.encode_text(texts.values),
            n_sentences,
            self.max_seq_length,
            False,
            self.tokenizer,
        )
        # Windows contain the sentences of all texts in order, so the numbers of
        # the sentences can be arranged like the positions.
        numbers = tf.ragged.range(1, n_sentences + 1).values
        numbers = windows.positions.with_values(numbers).to_tensor()
        inputs = windows.inputs
        logits = compute_in_groups(
            lambda part, extra: {"": self._logits(part, extra)},
            inputs._replace(segment_ids=tf.zeros_like(inputs.segment_ids)),
            tf.concat([windows.positions.to_tensor(), numbers], 1),
            {"": tf.TensorSpec([None, None, 2], tf.float32)},
            WINDOWS_AT_ONCE,
        )[""]
        shares = tf.nn.softmax(tf.boolean_mask(logits, numbers > 0))[:, 1]
        shares = texts.with_values(shares).to_tensor(-1.0)
        width, is_sentence = tf.shape(shares)[1], shares >= 0
        n_chosen = tf.minimum(self.task.spec.sentences, width)
        best = tf.math.top_k(shares, n_chosen).indices
        chosen = tf.reduce_sum(tf.one_hot(best, width), 1) > 0
        chosen &= is_sentence
        in_summary = texts.with_values(tf.boolean_mask(chosen, is_sentence))
        summary = tf.ragged.boolean_mask(texts, in_summary)
        return {
            "summary": tf.strings.reduce_join(summary, -1, separator="\n"),
            "sentences": texts.to_tensor(),
            "starts": starts.to_tensor(-1),
            "ends": ends.to_tensor(-1),
            "probabilities": tf.maximum(shares, 0.0),
            "chosen": tf.cast(chosen, tf.int32),
            "n_sentences": n_sentences,
        }

    def _logits(self, inputs: Inputs, extra: tf.Tensor) -> tf.Tensor:
        """Return logits [B, S, 2] for positions and numbers of sentences.

        `extra` is int32 [B, 2 S], first all positions, then all numbers.
        """
        positions, numbers = tf.split(extra, 2, 1)
        features = {f"{self.task.name}_labeled_positions": positions}
        features[f"{self.task.name}_numbers"] = numbers
        return self.head_outputs(inputs, **features)["logits"]
