# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Head for where an answer starts and ends, and whether there is one."""

import math
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from electra_tf.modeling.encoder import EncoderOutput
from electra_tf.modeling.layers import Dense, ScopedLayer, gelu
from electra_tf.modeling.seeds import SeedStream

HIDDEN_SIZE = 512
# Added to logits of positions where no answer can be.
_MASKED = -1000.0


class QuestionAnsweringHead(ScopedLayer):
    """Start logits; end logits given a start, or on their own; answerability.

    With joint prediction the end is scored given the start: in training the
    true one, else each of the `beam_size` best.

    Args:
      answerable_uses_start_logits: whether it sees what the start logits
        point at.

    Source: google-research/electra, finetune/qa/qa_tasks.py,
      get_prediction_module.
    Differs: the start's and the token's share of the hidden layer are
      computed one by one, for one start at a time: the same numbers at a
      `beam_size`-th of the multiplications and the memory.
    """

    def __init__(
        self,
        task_name: str,
        hidden_size: int,
        *,
        max_seq_length: int,
        beam_size: int = 20,
        joint_prediction: bool = True,
        answerable_classifier: bool = True,
        answerable_uses_start_logits: bool = True,
        answerable_weight: float = 0.5,
        seed: int = 0,
    ) -> None:
        super().__init__(f"task_specific/{task_name}", seed)
        self.task_name, self.hidden_size = task_name, hidden_size
        self.max_seq_length, self.beam_size = max_seq_length, beam_size
        self.joint_prediction = joint_prediction
        self.answerable_classifier = answerable_classifier
        self.answerable_uses_start_logits = answerable_uses_start_logits
        self.answerable_weight = answerable_weight
        self._n_unnamed = 0
        self.start = self._dense(hidden_size, 1)
        self.qa_hidden = None
        if joint_prediction:
            self.qa_hidden = Dense(
                f"{self.scope}/qa_hidden",
                2 * hidden_size,
                HIDDEN_SIZE,
                seed=seed,
            )
        self.end = self._dense(HIDDEN_SIZE if joint_prediction else hidden_size)
        self.answerable_hidden = self.answerable = None
        if answerable_classifier:
            width = hidden_size
            if answerable_uses_start_logits:
                self.answerable_hidden = self._dense(
                    2 * hidden_size, HIDDEN_SIZE, "gelu"
                )
                width = HIDDEN_SIZE
            self.answerable = self._dense(width)

    def compute(
        self,
        encoded: EncoderOutput,
        features: Mapping[str, tf.Tensor],
        training: bool,
        dropout: SeedStream | None,
        percent_done: tf.Tensor | None,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Losses and answers; see `task.Head`.

        Outputs, K being the beam: `start_logits`, `end_logits` [B, L];
        `answerable_logit` [B], higher where there is no answer;
        `start_top_log_probs`, `start_top_index` [B, K];
        `end_top_log_probs`, `end_top_index` [B, K, K]. Those that the
        settings or the mode do not give are zeros.
        """
        del dropout, percent_done  # There is no dropout here.
        name, hidden = self.task_name, encoded.sequence_output
        starts = features[f"{name}_start_positions"]
        ends = features[f"{name}_end_positions"]
        mask = _answer_mask(features)
        start_logits = tf.squeeze(self.start(hidden), -1) + mask  # [B, L]
        beam = self._empty_beam(tf.shape(hidden)[0])
        if not self.joint_prediction:
            end_logits = tf.squeeze(self.end(hidden), -1) + mask
        else:
            log_probs, index = tf.nn.top_k(
                tf.nn.log_softmax(start_logits), self.beam_size
            )
            beam |= {"start_top_log_probs": log_probs, "start_top_index": index}
            if training:
                end_logits = self._end_logits(hidden, starts) + mask
            else:
                beam |= self._search_ends(hidden, index, mask)
                end_logits = tf.zeros_like(start_logits)
        losses = _position_losses(start_logits, starts)
        if self.joint_prediction and not training:
            # What zero logits give: the original's evaluation has no better.
            losses += math.log(self.max_seq_length)
        else:
            losses += _position_losses(end_logits, ends)
        losses /= 2.0
        answerable_logit = tf.zeros_like(losses)
        if self.answerable is not None:
            answerable_logit = self._answerable_logit(hidden, start_logits)
            impossible = features[f"{name}_is_impossible"]
            losses += (
                tf.nn.sigmoid_cross_entropy_with_logits(
                    tf.cast(impossible, tf.float32), answerable_logit
                )
                * self.answerable_weight
            )
        return losses, {
            "loss": losses,
            "start_logits": start_logits,
            "end_logits": end_logits,
            "answerable_logit": answerable_logit,
            "start_positions": starts,
            "end_positions": ends,
            **beam,
            "eid": features[f"{name}_eid"],
        }

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "task_name": self.task_name,
            "hidden_size": self.hidden_size,
            "max_seq_length": self.max_seq_length,
            "beam_size": self.beam_size,
            "joint_prediction": self.joint_prediction,
            "answerable_classifier": self.answerable_classifier,
            "answerable_uses_start_logits": self.answerable_uses_start_logits,
            "answerable_weight": self.answerable_weight,
            "seed": self.seed,
        }

    def _dense(
        self, in_width: int, units: int = 1, activation: str | None = None
    ) -> Dense:
        """Makes the next layer that the original leaves without a name."""
        suffix = f"_{self._n_unnamed}" if self._n_unnamed else ""
        self._n_unnamed += 1
        return Dense(
            f"{self.scope}/dense{suffix}",
            in_width,
            units,
            activation,
            seed=self.seed,
        )

    def _empty_beam(self, batch: tf.Tensor) -> dict[str, tf.Tensor]:
        size = self.beam_size
        return {
            "start_top_log_probs": tf.zeros([batch, size]),
            "start_top_index": tf.zeros([batch, size], tf.int32),
            "end_top_log_probs": tf.zeros([batch, size, size]),
            "end_top_index": tf.zeros([batch, size, size], tf.int32),
        }

    def _end_logits(self, hidden: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
        """End logits [B, L] given one start [B] a row, not masked."""
        start_kernel, token_kernel = tf.split(self.qa_hidden.kernel, 2)
        return self._end_logits_of(
            tf.einsum("blh,hu->blu", hidden, token_kernel),
            tf.gather(hidden, starts, batch_dims=1),
            start_kernel,
        )

    def _end_logits_of(
        self,
        from_tokens: tf.Tensor,
        start_vectors: tf.Tensor,
        start_kernel: tf.Tensor,
    ) -> tf.Tensor:
        """End logits [B, L] of the hidden layer's two shares."""
        from_start = tf.matmul(start_vectors, start_kernel)
        from_start = tf.nn.bias_add(from_start, self.qa_hidden.bias)
        inner = gelu(from_tokens + tf.expand_dims(from_start, 1))  # [B, L, 512]
        return tf.squeeze(self.end(inner), -1)

    def _search_ends(
        self, hidden: tf.Tensor, starts: tf.Tensor, mask: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The best ends of each start in the beam [B, K]."""
        start_kernel, token_kernel = tf.split(self.qa_hidden.kernel, 2)
        from_tokens = tf.einsum("blh,hu->blu", hidden, token_kernel)

        # One start's activations at a time: each waits for the one before. No
        # loop, since those that collect tensors cannot become LiteRT's.
        log_probs, index = [], []
        for number in range(self.beam_size):
            with tf.control_dependencies(log_probs[-1:]):
                start = tf.identity(starts[:, number])
                vectors = tf.gather(hidden, start, batch_dims=1)
                logits = self._end_logits_of(from_tokens, vectors, start_kernel)
                best = tf.math.top_k(
                    tf.nn.log_softmax(logits + mask), self.beam_size
                )
            log_probs.append(best.values)
            index.append(best.indices)
        return {
            "end_top_log_probs": tf.stack(log_probs, 1),
            "end_top_index": tf.stack(index, 1),
        }

    def _answerable_logit(
        self, hidden: tf.Tensor, start_logits: tf.Tensor
    ) -> tf.Tensor:
        """One logit [B] a row: is there no answer?"""
        vectors = hidden[:, 0]
        if self.answerable_hidden is not None:
            weights = tf.nn.softmax(start_logits)  # [B, L]
            start = tf.reduce_sum(tf.expand_dims(weights, -1) * hidden, 1)
            vectors = self.answerable_hidden(tf.concat([vectors, start], -1))
        return tf.squeeze(self.answerable(vectors), -1)


def _answer_mask(features: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """0 at [CLS], the passage and its [SEP]; else -1000. float32 [B, L]."""
    input_mask = tf.cast(features["input_mask"], tf.float32)
    allowed = input_mask * tf.cast(features["segment_ids"], tf.float32)
    allowed += tf.one_hot(0, tf.shape(allowed)[1])
    return _MASKED * (1.0 - allowed)


def _position_losses(logits: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Cross-entropies [B] of logits [B, L] and positions [B]."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(positions, logits)
