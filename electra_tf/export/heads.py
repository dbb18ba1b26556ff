# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exported modules for heads that read a whole text, or a pair of texts.

Fine-tuned models return one answer per text. Pre-trained models find replaced
tokens, fill in masks or score texts; their tokens include [CLS] and [SEP], and
padding is "" and 0. docs/export.md lists the outputs.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import tensorflow as tf

from configure.errors import UserError
from electra_tf.export import signatures
from electra_tf.finetuning.task import Task
from electra_tf.prediction.loading import FinetunedModel, PretrainedModel
from electra_tf.pretraining.scoring import electric_scores

# Number of rows in a group. Groups of 8 rows are the fastest on CPUs: each
# group is only as wide as its longest row, and its tensors stay in the cache.
# docs/performance.md has the measurement.
ROWS_AT_ONCE = 8


class TextModule(signatures.TaskModule):
    """Base class of modules with one answer per text or pair."""

    def __init__(
        self,
        loaded: FinetunedModel,
        task: Task,
        rows_at_once: int = ROWS_AT_ONCE,
    ) -> None:
        # The number of texts of similar length that are computed together; 0:
        # all texts.
        self.rows_at_once = rows_at_once
        self.has_pairs = task.may_have_pairs
        self.pairs_are_optional = task.pairs_are_optional
        super().__init__(loaded, task)

    def extra_config(self) -> dict[str, Any]:
        return {
            "pairs": self.has_pairs,
            "pooling": self.loaded.config.pooling,
            "rows_at_once": self.rows_at_once,
        }

    @abc.abstractmethod
    def answer(self, outputs: tf.Tensor) -> signatures.Outputs:
        """Return the answers from a head's outputs, float32 [B, units]."""

    def compute(self, inputs: signatures.Inputs) -> signatures.Outputs:
        return self.answer(self._head_output(inputs))

    def scored_outputs(
        self, outputs: signatures.Outputs, features: Mapping[str, tf.Tensor]
    ) -> signatures.Outputs:
        return self.head.named(outputs["logits"])

    def compute_text(
        self, text: tf.Tensor, text_pair: tf.Tensor | None = None
    ) -> signatures.Outputs:
        """Return the answers for strings [B], and whether ids were dropped."""
        second = None if text_pair is None else self.encode_text(text_pair)
        first, most = self.encode_text(text), self.max_seq_length
        inputs, truncated = signatures.pack(first, second, most, self.tokenizer)
        if self.rows_at_once:
            outputs = signatures.compute_in_groups(
                lambda part, _: {"": self._head_output(part)},
                inputs,
                inputs.input_ids,
                {"": tf.TensorSpec([None, self.head.units], tf.float32)},
                self.rows_at_once,
                by_length=True,
            )[""]
        else:
            outputs = self._head_output(inputs)
        return {**self.answer(outputs), "truncated": truncated}

    def text_signatures(self) -> signatures.Signatures:
        # TensorFlow names the inputs after the arguments of `compute`.
        compute, count = self.compute_text, 2
        if self.pairs_are_optional:
            compute = self._compute_text_or_pair()
        elif not self.has_pairs:
            compute, count = (lambda text: self.compute_text(text)), 1
        return {"serve_text": signatures.text_function(compute, count)}

    def _compute_text_or_pair(self) -> Callable[..., signatures.Outputs]:
        """Return a function like `compute_text` with optional second texts."""
        not_given = tf.constant([], tf.string)

        def compute(
            text: tf.Tensor, text_pair: tf.Tensor = not_given
        ) -> signatures.Outputs:
            empty = tf.fill(tf.shape(text), "")
            return self.compute_text(
                text, signatures.value_or_default(text_pair, empty)
            )

        return compute

    def _head_output(self, inputs: signatures.Inputs) -> tf.Tensor:
        encoded = self.loaded.model.encoder(*inputs, None)
        return self.head.sentence_output(encoded, inputs._asdict())


class ClassificationModule(TextModule):
    """The module of heads that predict one class per text or pair."""

    KIND = "classification"

    def answer(self, outputs: tf.Tensor) -> signatures.Outputs:
        label_id = tf.argmax(outputs, -1, output_type=tf.int32)
        return {
            "label": tf.gather(self.labels, label_id),
            "label_id": label_id,
            "probabilities": tf.nn.softmax(outputs),
            "logits": outputs,
        }


class MultiLabelModule(TextModule):
    """The module of heads that predict a set of labels per text or pair."""

    KIND = "multilabel"

    def extra_config(self) -> dict[str, Any]:
        separator = self.task.spec.label_separator
        return {**super().extra_config(), "label_separator": separator}

    def answer(self, outputs: tf.Tensor) -> signatures.Outputs:
        """Return the labels with a probability above 0.5."""
        chosen = outputs > 0.0
        rows = tf.shape(outputs)[0]
        names = tf.repeat(self.labels.read_value()[None], rows, 0)
        names = tf.ragged.boolean_mask(names, chosen)
        separator = self.task.spec.label_separator
        return {
            "label": tf.strings.reduce_join(names, -1, separator=separator),
            "chosen": tf.cast(chosen, tf.int32),
            "probabilities": tf.sigmoid(outputs),
            "logits": outputs,
        }


class RegressionModule(TextModule):
    """The module of heads that predict one number per text or pair."""

    KIND = "regression"

    def extra_config(self) -> dict[str, Any]:
        return {**super().extra_config(), "range": [*self.task.value_range]}

    def answer(self, outputs: tf.Tensor) -> signatures.Outputs:
        """Return the number on the task's scale, and on a scale from 0 to 1."""
        scaled = tf.squeeze(outputs, -1)
        return {"value": self.task.unscale(scaled), "scaled": scaled}

    def scored_outputs(
        self, outputs: signatures.Outputs, features: Mapping[str, tf.Tensor]
    ) -> signatures.Outputs:
        return self.head.named(outputs["scaled"][:, tf.newaxis])


class PretrainedModule(signatures.ServingModule):
    """Base class of modules of pre-trained models, with one head."""

    PART: ClassVar[str] = "discriminator"
    # True: the model must be an Electric model; False: the model must not be an
    # Electric model; None: all models are accepted.
    IS_ELECTRIC: ClassVar[bool | None] = None

    def __init__(
        self,
        loaded: PretrainedModel,
        max_seq_length: int | None = None,
        **extra: Any,
    ) -> None:
        if self.IS_ELECTRIC not in (None, loaded.is_electric):
            raise UserError(
                f"--head: {loaded.path} is an Electric model. Pass"
                " --head=electric."
                if loaded.is_electric
                else f"{loaded.path}: the hparams do not describe an Electric"
                " model, so the discriminator's logits are not energies."
                " For an Electric model, pass"
                " --hparams='{\"electric_objective\": true}'."
            )
        purpose, model = f"export of {self.KIND}", loaded.model
        if self.PART == "generator":
            loaded.require_generator(purpose)
            layers = [model.generator, model.masked_lm_head]
        else:
            loaded.require_discriminator(purpose)
            layers = [model.discriminator, model.discriminator_head]
        # Two towers can share embeddings, but `model_variables` must contain
        # each variable only once.
        variables = {id(v): v for layer in layers for v in layer.variables}
        sizes = model.encoder_config
        length = max_seq_length or loaded.max_length
        super().__init__(
            loaded, sizes, [*variables.values()], length, extra=extra
        )

    def tokens_of(self, inputs: signatures.Inputs) -> tf.Tensor:
        """Return the tokens [B, L] of a batch; "" at padding."""
        tokens = self.tokenizer.id_to_token(inputs.input_ids)
        return tf.where(inputs.input_mask > 0, tokens, "")


class ReplacedTokensModule(PretrainedModule):
    """The module of discriminators, which detect replaced tokens."""

    KIND = "replaced_tokens"
    IS_ELECTRIC = False

    def compute(self, inputs: signatures.Inputs) -> signatures.Outputs:
        """Return tokens [B, L] and the probability that each was replaced."""
        model = self.loaded.model
        encoded = model.discriminator(*inputs, None)
        logits = model.discriminator_head(encoded.sequence_output)
        real = tf.cast(inputs.input_mask, tf.float32)
        return {
            "tokens": self.tokens_of(inputs),
            "replaced": tf.sigmoid(logits) * real,
        }


class ElectricModule(PretrainedModule):
    """The module of Electric models, which score a text in one pass."""

    KIND = "electric"
    IS_ELECTRIC = True

    def compute(self, inputs: signatures.Inputs) -> signatures.Outputs:
        """Return log-likelihoods of texts [B] and of tokens [B, L], in nats."""
        scores = electric_scores(self.loaded.model, inputs._asdict())
        count = tf.reduce_sum(tf.cast(scores["scored"], tf.int32), -1)
        return {
            "score": scores["score"],
            "token_scores": scores["token_scores"],
            "scored_tokens": count,
            "tokens": self.tokens_of(inputs),
        }


class FillMaskModule(PretrainedModule):
    """The module of generators and masked LMs, which fill in masks."""

    KIND = "fill_mask"
    PART = "generator"

    def __init__(
        self,
        loaded: PretrainedModel,
        max_seq_length: int | None = None,
        top_k: int = 10,
    ) -> None:
        # A small vocabulary has fewer tokens than the requested candidates.
        self.top_k = min(top_k, loaded.model.encoder_config.vocab_size)
        super().__init__(loaded, max_seq_length, top_k=self.top_k)

    def encode_text(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of strings [B]; "[MASK]" becomes one id."""
        parts = tf.strings.split(text, "[MASK]")  # [B, (parts)]
        ids = self.tokenizer.encode(parts.values)
        mask = tf.fill([tf.size(parts.values), 1], self.tokenizer.mask_id)
        # A mask follows every part of a text, so the mask after the last part
        # is removed.
        rows = parts.with_values(tf.concat([ids, mask], 1)).merge_dims(1, 2)
        return signatures.cut(rows, tf.cast(rows.row_lengths(), tf.int32) - 1)

    def compute(self, inputs: signatures.Inputs) -> signatures.Outputs:
        """Return the K best tokens [B, M, K] for up to M masks of each row."""
        is_mask = inputs.input_ids == self.tokenizer.mask_id
        is_mask &= inputs.input_mask > 0
        masks = tf.reduce_sum(tf.cast(is_mask, tf.int32), -1)  # [B]
        n_masks = tf.reduce_max(tf.concat([masks, [1]], 0))
        order = tf.argsort(tf.cast(~is_mask, tf.int32), stable=True)
        used = tf.sequence_mask(masks, n_masks)  # [B, M]
        positions = tf.where(used, order[:, :n_masks], 0)
        logits, _ = self.loaded.model.generator_logits(
            inputs._asdict(), positions
        )
        best, ids = tf.math.top_k(tf.nn.softmax(logits), self.top_k)
        shown = used[..., None]
        return {
            "tokens": tf.where(shown, self.tokenizer.id_to_token(ids), ""),
            "token_ids": tf.where(shown, ids, 0),
            "probabilities": tf.where(shown, best, 0.0),
            "positions": positions,
            "masks": masks,
        }
