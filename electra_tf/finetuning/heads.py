# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The heads of tasks, which compute outputs and losses.

Source: google-research/electra, get_prediction_module in
finetune/classification/classification_tasks.py, finetune/qa/qa_tasks.py and
finetune/tagging/tagging_tasks.py.
"""

import abc
import dataclasses
import math
from collections.abc import Callable, Mapping

import tensorflow as tf

from electra_tf.checkpoints.contents import HIDDEN
from electra_tf.modeling.activations import gelu
from electra_tf.modeling.dropout import dropout
from electra_tf.modeling.encoder import EncoderOutput
from electra_tf.modeling.layers import Dense, ScopedLayer
from electra_tf.modeling.seeds import SeedStream

Tensors = Mapping[str, tf.Tensor]
# The seeds of dropout during training; None: no dropout.
Dropout = SeedStream | None

# The rate of dropout on the vectors of texts and sentences. The rate is a
# constant in the original, too.
DROPOUT_RATE = 0.1
QA_HIDDEN_SIZE = 512
# The value added to the logits of positions that cannot hold an answer.
_MASKED = -1000.0


class Head(ScopedLayer, abc.ABC):
    """Base class of heads; variables have the original's names.

    All tensors have the shape [B, ...].
    """

    # The names of the label features. The prefix of these names, the task's
    # name, is left out.
    labels: tuple[str, ...] = ()

    def __init__(self, task_name: str, seed: int = 0) -> None:
        super().__init__(f"task_specific/{task_name}", seed)
        self.task_name = task_name

    @abc.abstractmethod
    def logits(
        self, encoded: EncoderOutput, features: Tensors, dropout: Dropout = None
    ) -> dict[str, tf.Tensor]:
        """Return the outputs; `features` needs labels only in training."""

    @abc.abstractmethod
    def loss(
        self, outputs: Tensors, features: Tensors, training: bool = False
    ) -> tf.Tensor:
        """Return the losses of the outputs, float32 [B]."""

    def compute(
        self, encoded: EncoderOutput, features: Tensors, dropout: Dropout = None
    ) -> dict[str, tf.Tensor]:
        """Return the tensors for scorers: `loss`, outputs, labels, `eid`."""
        outputs = self.logits(encoded, features, dropout)
        results = {
            "loss": self.loss(outputs, features, dropout is not None),
            **outputs,
        }
        for name in (*self.labels, "eid"):
            results[name] = self.feature(features, name)
        return results

    def feature(self, features: Tensors, name: str) -> tf.Tensor:
        """Return a feature of this head's task."""
        return features[f"{self.task_name}_{name}"]

    def dropped(
        self, vectors: tf.Tensor, site: str, seeds: Dropout
    ) -> tf.Tensor:
        """Apply dropout to the vectors of texts or sentences in training."""
        if seeds is None:
            return vectors
        seed = seeds.child(self.scope).seed(site)
        return dropout(vectors, DROPOUT_RATE, seed)


class SentenceHead(Head):
    """Base class of heads with one or two dense layers on a text's vector.

    Source: for two layers, transformers, modeling_electra.py,
      ElectraClassificationHead, and the study of Mercier (2021).
    """

    labels = ("label_ids",)

    def __init__(
        self,
        task_name: str,
        hidden_size: int,
        units: int = 1,
        pooling: str = "first",
        seed: int = 0,
        layers: int = 1,
    ) -> None:
        super().__init__(task_name, seed)
        self.units, self.pooling = units, pooling
        self.hidden = None
        if layers == 2:
            scope, width = f"{self.scope}/{HIDDEN}", hidden_size
            self.hidden = Dense(scope, width, width, "gelu", seed=seed)
        self.dense = Dense(f"{self.scope}/dense", hidden_size, units, seed=seed)

    def sentence_output(
        self, encoded: EncoderOutput, features: Tensors, seeds: Dropout = None
    ) -> tf.Tensor:
        """Return the output of the last dense layer, float32 [B, units]."""
        vectors = encoded.pooled_output  # [B, H]
        if self.pooling == "mean":
            vectors = mean_over_tokens(
                encoded.sequence_output, features["input_mask"]
            )
        vectors = self.dropped(vectors, "sentence", seeds)
        if self.hidden is not None:
            vectors = self.dropped(self.hidden(vectors), HIDDEN, seeds)
        return self.dense(vectors)

    def logits(
        self, encoded: EncoderOutput, features: Tensors, dropout: Dropout = None
    ) -> dict[str, tf.Tensor]:
        return self.named(self.sentence_output(encoded, features, dropout))

    @abc.abstractmethod
    def named(self, output: tf.Tensor) -> dict[str, tf.Tensor]:
        """Convert the output of the dense layer to named outputs."""


class ClassificationHead(SentenceHead):
    """A head that predicts one class; `units` is the number of classes."""

    def named(self, output: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return `logits` [B, units] and the best class, `predictions` [B]."""
        return {"logits": output, "predictions": tf.argmax(output, -1)}

    def loss(
        self, outputs: Tensors, features: Tensors, training: bool = False
    ) -> tf.Tensor:
        labels = tf.one_hot(self.feature(features, "label_ids"), self.units)
        return -tf.reduce_sum(labels * tf.nn.log_softmax(outputs["logits"]), -1)


class RegressionHead(SentenceHead):
    """A head that predicts one number and is trained on the squared error."""

    labels = ("targets",)

    def named(self, output: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return `predictions` [B], on the scale of the targets."""
        return {"predictions": tf.squeeze(output, -1)}

    def loss(
        self, outputs: Tensors, features: Tensors, training: bool = False
    ) -> tf.Tensor:
        targets = self.feature(features, "targets")
        return tf.square(outputs["predictions"] - targets)


class MultiLabelHead(SentenceHead):
    """A head that predicts any number of the `units` labels for a text."""

    def named(self, output: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return `logits` and `predictions` (0 or 1), both [B, units]."""
        predictions = tf.cast(output > 0.0, tf.int64)
        return {"logits": output, "predictions": predictions}

    def loss(
        self, outputs: Tensors, features: Tensors, training: bool = False
    ) -> tf.Tensor:
        label_ids = self.feature(features, "label_ids")  # [B, units]
        losses = tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.cast(label_ids, tf.float32), logits=outputs["logits"]
        )
        return tf.reduce_sum(losses, -1)


class TaggingHead(Head):
    """A head that labels each word by the vector of its first wordpiece.

    In tensors of words, [B, L], word i of a sentence is at index i.
    """

    labels = ("labels", "labels_mask")

    def __init__(
        self, task_name: str, hidden_size: int, num_labels: int, seed: int = 0
    ) -> None:
        super().__init__(task_name, seed)
        self.num_labels = num_labels
        scope = f"{self.scope}/dense"
        self.dense = Dense(scope, hidden_size, num_labels, seed=seed)

    def logits(
        self, encoded: EncoderOutput, features: Tensors, dropout: Dropout = None
    ) -> dict[str, tf.Tensor]:
        """Return `logits` [B, L, num_labels] and `predictions` [B, L]."""
        logits = self.dense(self.vectors(encoded, features, dropout))
        return {"logits": logits, "predictions": tf.argmax(logits, -1)}

    def vectors(
        self, encoded: EncoderOutput, features: Tensors, dropout: Dropout
    ) -> tf.Tensor:
        """Return the vectors to classify, [B, L, width]."""
        positions = self.feature(features, "labeled_positions")
        return tf.gather(encoded.sequence_output, positions, batch_dims=1)

    def loss(
        self, outputs: Tensors, features: Tensors, training: bool = False
    ) -> tf.Tensor:
        labels = self.feature(features, "labels")
        losses = tf.nn.softmax_cross_entropy_with_logits(
            labels=tf.one_hot(labels, self.num_labels), logits=outputs["logits"]
        )
        mask = self.feature(features, "labels_mask")
        return tf.reduce_sum(losses * mask, -1)


class SummarizationHead(TaggingHead):
    """A tagging head that selects sentences instead of labelling words.

    The vector of a sentence is the mean over its wordpieces, followed by the
    logarithms of its number in the document and of its length, because
    summaries prefer first and long sentences regardless of the content.
    """

    labels = (*TaggingHead.labels, "numbers")

    def __init__(self, task_name: str, hidden_size: int, seed: int = 0) -> None:
        super().__init__(task_name, hidden_size + 2, 2, seed)

    def vectors(
        self, encoded: EncoderOutput, features: Tensors, dropout: Dropout
    ) -> tf.Tensor:
        """Return the vectors of sentences, [B, S, width].

        The features also need `<task>_numbers` [B, S]: the number of each
        sentence in the document, from 1, and 0 for padding.
        """
        numbers = self.feature(features, "numbers")
        starts = self.feature(features, "labeled_positions")
        mask = features["input_mask"]
        last = tf.reduce_sum(mask, -1, keepdims=True) - 1  # index of [SEP]
        after = tf.pad(numbers[:, 1:], [[0, 0], [0, 1]])
        ends = tf.roll(starts, -1, 1)
        ends = tf.where(after > 0, ends, last)[:, :, tf.newaxis]
        positions = tf.range(tf.shape(mask)[1])
        is_inside = (positions >= starts[:, :, tf.newaxis]) & (positions < ends)
        is_inside = tf.cast(is_inside, tf.float32)  # [B, S, L]
        counts = tf.reduce_sum(is_inside, -1, keepdims=True)
        weights = is_inside / tf.maximum(counts, 1.0)
        means = tf.matmul(weights, encoded.sequence_output)
        means = self.dropped(means, "sentence", dropout)
        number = tf.cast(tf.maximum(numbers, 1), tf.float32)[:, :, tf.newaxis]
        lengths = tf.math.log(1.0 + counts)
        return tf.concat([means, tf.math.log(number), lengths], -1)


@dataclasses.dataclass(frozen=True)
class AnswerHeadSettings:
    """The hparams of a head that predicts answers."""

    joint_prediction: bool  # whether the score of an end depends on the start
    beam_size: int  # number of starts in a beam of joint prediction
    max_seq_length: int  # L in the shapes of tensors
    answerable_classifier: bool  # whether the head predicts answerability
    # whether the answerability classifier also uses hidden states weighted by
    # the start logits
    answerable_uses_start_logits: bool
    answerable_weight: float  # weight of the answerability loss


class QuestionAnsweringHead(Head):
    """A head that predicts start, end and existence of an answer.

    With joint prediction, the score of an end depends on a start: in training
    on the true start, otherwise on each of the `beam_size` best starts.

    Differs: the hidden layer adds the contributions of start and token, for one
      start at a time. This gives the same numbers with 1 / `beam_size` of the
      multiplications and the memory.
    """

    labels = ("start_positions", "end_positions")

    def __init__(
        self,
        task_name: str,
        hidden_size: int,
        settings: AnswerHeadSettings,
        seed: int = 0,
    ) -> None:
        super().__init__(task_name, seed)
        self.settings = settings
        self._n_unnamed = 0
        self.start = self._dense(hidden_size, 1)
        self.qa_hidden, width = None, hidden_size
        if settings.joint_prediction:
            scope, width = f"{self.scope}/qa_hidden", QA_HIDDEN_SIZE
            self.qa_hidden = Dense(scope, 2 * hidden_size, width, seed=seed)
        self.end = self._dense(width)
        self.answerable_hidden = self.answerable = None
        if settings.answerable_classifier:
            width = hidden_size
            if settings.answerable_uses_start_logits:
                self.answerable_hidden = self._dense(
                    2 * hidden_size, QA_HIDDEN_SIZE, "gelu"
                )
                width = QA_HIDDEN_SIZE
            self.answerable = self._dense(width)

    def logits(
        self, encoded: EncoderOutput, features: Tensors, dropout: Dropout = None
    ) -> dict[str, tf.Tensor]:
        """Return the logits of starts, of ends and of "no answer".

        Training with joint prediction needs `<task>_start_positions`.

        Returns:
          `start_logits`, `end_logits` [B, L]; `answerable_logit` [B], higher
          if there is no answer; and, for a beam of size K,
          `start_top_log_probs`, `start_top_index` [B, K];
          `end_top_log_probs`, `end_top_index` [B, K, K]. An output is zeros if
          the settings or the mode do not require it.
        """
        hidden = encoded.sequence_output
        # The mask, [B, L], is 0 at [CLS], at the passage and at its [SEP], and
        # -1000 elsewhere.
        input_mask = tf.cast(features["input_mask"], tf.float32)
        allowed = input_mask * tf.cast(features["segment_ids"], tf.float32)
        allowed += tf.one_hot(0, tf.shape(allowed)[1])
        mask = _MASKED * (1.0 - allowed)
        start_logits = tf.squeeze(self.start(hidden), -1) + mask  # [B, L]
        batch, size = tf.shape(hidden)[0], self.settings.beam_size
        beam = {
            "start_top_log_probs": tf.zeros([batch, size]),
            "start_top_index": tf.zeros([batch, size], tf.int32),
            "end_top_log_probs": tf.zeros([batch, size, size]),
            "end_top_index": tf.zeros([batch, size, size], tf.int32),
        }
        if not self.settings.joint_prediction:
            end_logits = tf.squeeze(self.end(hidden), -1) + mask
        else:
            log_probs, index = tf.nn.top_k(
                tf.nn.log_softmax(start_logits), self.settings.beam_size
            )
            beam |= {"start_top_log_probs": log_probs, "start_top_index": index}
            end_logits_of = self._end_given_start(hidden, mask)
            if dropout is not None:  # in training
                starts = self.feature(features, "start_positions")
                end_logits = end_logits_of(starts)
            else:
                beam |= self._search_ends(index, end_logits_of)
                end_logits = tf.zeros_like(start_logits)
        answerable_logit = tf.zeros_like(start_logits[:, 0])
        if self.answerable is not None:
            vectors = hidden[:, 0]
            if self.answerable_hidden is not None:
                weights = tf.nn.softmax(start_logits)  # [B, L]
                start = tf.reduce_sum(tf.expand_dims(weights, -1) * hidden, 1)
                vectors = tf.concat([vectors, start], -1)
                vectors = self.answerable_hidden(vectors)
            answerable_logit = tf.squeeze(self.answerable(vectors), -1)
        return {
            "start_logits": start_logits,
            "end_logits": end_logits,
            "answerable_logit": answerable_logit,
            **beam,
        }

    def loss(
        self, outputs: Tensors, features: Tensors, training: bool = False
    ) -> tf.Tensor:
        """Return the mean of start and end loss plus the answerability loss."""
        cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
        starts = self.feature(features, "start_positions")
        losses = cross_entropy(starts, outputs["start_logits"])
        if self.settings.joint_prediction and not training:
            # In evaluation, the original uses zeros as end logits. The loss of
            # zeros is log(L).
            losses += math.log(self.settings.max_seq_length)
        else:
            ends = self.feature(features, "end_positions")
            losses += cross_entropy(ends, outputs["end_logits"])
        losses /= 2.0
        if self.answerable is not None:
            impossible = self.feature(features, "is_impossible")
            loss = tf.nn.sigmoid_cross_entropy_with_logits(
                tf.cast(impossible, tf.float32), outputs["answerable_logit"]
            )
            losses += loss * self.settings.answerable_weight
        return losses

    def _dense(
        self, in_width: int, units: int = 1, activation: str | None = None
    ) -> Dense:
        """Return a layer with the next default name of TF1, such as dense_1."""
        suffix = f"_{self._n_unnamed}" if self._n_unnamed else ""
        self._n_unnamed += 1
        name = f"{self.scope}/dense{suffix}"
        return Dense(name, in_width, units, activation, seed=self.seed)

    def _end_given_start(
        self, hidden: tf.Tensor, mask: tf.Tensor
    ) -> Callable[[tf.Tensor], tf.Tensor]:
        """Return a function that maps starts [B] to end logits [B, L]."""
        start_kernel, token_kernel = tf.split(self.qa_hidden.kernel, 2)
        from_tokens = tf.einsum("blh,hu->blu", hidden, token_kernel)

        def end_logits(starts: tf.Tensor) -> tf.Tensor:
            vectors = tf.gather(hidden, starts, batch_dims=1)
            from_start = tf.matmul(vectors, start_kernel)
            from_start = tf.nn.bias_add(from_start, self.qa_hidden.bias)
            # [B, L, 512]
            inner = gelu(from_tokens + tf.expand_dims(from_start, 1))
            return tf.squeeze(self.end(inner), -1) + mask

        return end_logits

    def _search_ends(
        self, starts: tf.Tensor, end_logits_of: Callable[[tf.Tensor], tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """Return the best ends for each of the best `starts` [B, K]."""
        # Each start waits for the previous start, so that only one start's
        # activations are in memory. `tf.while_loop` is not used, because LiteRT
        # cannot convert loops that collect tensors.
        log_probs, index = [], []
        for number in range(self.settings.beam_size):
            with tf.control_dependencies(log_probs[-1:]):
                logits = end_logits_of(tf.identity(starts[:, number]))
                best = tf.math.top_k(
                    tf.nn.log_softmax(logits), self.settings.beam_size
                )
            log_probs.append(best.values)
            index.append(best.indices)
        return {
            "end_top_log_probs": tf.stack(log_probs, 1),
            "end_top_index": tf.stack(index, 1),
        }


def mean_over_tokens(sequence: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Return the mean vector of each row's unmasked tokens, [B, H].

    The mean is 0 for a row without tokens.
    """
    weights = tf.cast(mask, sequence.dtype)[..., None]  # [B, L, 1]
    total = tf.reduce_sum(sequence * weights, 1)
    return total / tf.maximum(tf.reduce_sum(weights, 1), 1.0)
