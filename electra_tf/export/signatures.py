# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What all exported modules have in common: inputs, config, signatures.

docs/export.md lists the signatures of each kind, and what they give.
"""

from __future__ import annotations

import abc
import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from electra_tf.finetuning.heads import Head
from electra_tf.finetuning.task import Task
from electra_tf.modeling.embeddings import checked_inputs
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.prediction.loading import FinetunedModel, PretrainedModel
from electra_tf.text.graph_tokenization import GraphTokenizer

Loaded = FinetunedModel | PretrainedModel
Outputs = dict[str, tf.Tensor]
Signatures = dict[str, Any]
# Hparams that say where files were: nobody else's business.
_PLACES = re.compile(
    r".*(_dir|_file|_checkpoint|_json|_pkl|_txt|_config)|(gcp|tpu)_.*"
)


class Inputs(NamedTuple):
    """What the encoder takes; all int32 [B, L]."""

    input_ids: tf.Tensor
    input_mask: tf.Tensor
    segment_ids: tf.Tensor


# Token ids to the inputs of the encoder, in the graph.


def pack(
    first: tf.RaggedTensor,
    second: tf.RaggedTensor | None,
    max_length: int | tf.Tensor,
    tokenizer: GraphTokenizer,
    width: int | tf.Tensor | None = None,
) -> tuple[Inputs, tf.Tensor]:
    """Joins ids [B, (T)] to `[CLS] first [SEP]` or `... [SEP] second [SEP]`.

    What does not fit is dropped from the end of the longer text, of the
    second where both are equally long. A second text without tokens is none.

    Args:
      max_length: most ids of a row, the special ones included.
      width: L; None: the length of the longest row.

    Returns:
      The inputs, and bool [B], whether something was dropped.

    Source: google-research/electra, finetune/classification/
      classification_tasks.py, featurize.
    """
    a = tf.cast(first.row_lengths(), tf.int32)
    b = tf.zeros_like(a)
    if second is not None:
        b = tf.cast(second.row_lengths(), tf.int32)
    kept_a, kept_b = kept_lengths(a, b, max_length)
    cls_column = tf.fill([tf.size(a), 1], tokenizer.cls_id)
    sep_column = tf.fill([tf.size(a), 1], tokenizer.sep_id)
    parts = [cls_column, cut(tf.cast(first, tf.int32), kept_a), sep_column]
    if second is not None:
        # A second text of which nothing is left has no [SEP] either.
        last = tf.RaggedTensor.from_tensor(sep_column)
        last = cut(last, tf.minimum(kept_b, 1))
        parts += [cut(tf.cast(second, tf.int32), kept_b), last]
    ids = tf.concat(parts, 1)
    lengths = tf.cast(ids.row_lengths(), tf.int32)
    if width is None:
        width = tf.reduce_max(tf.concat([lengths, [1]], 0))
    mask = tf.sequence_mask(lengths, width, tf.int32)
    segments = mask - tf.sequence_mask(kept_a + 2, width, tf.int32)
    dense = ids.to_tensor(0, shape=tf.stack([-1, width]))
    return Inputs(dense, mask, segments), (kept_a < a) | (kept_b < b)


def kept_lengths(
    a: tf.Tensor, b: tf.Tensor, max_length: int | tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """What is left of lengths [B] by dropping one by one, in closed form."""
    free = tf.maximum(max_length - 2 - tf.minimum(b, 1), 0)
    half = free // 2
    kept_a = tf.minimum(a, tf.maximum(free - b, free - half))
    return kept_a, tf.minimum(b, tf.maximum(free - a, half))


def cut(ids: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Keeps the first `lengths` [B] of each row of ids [B, (T)]."""
    places = tf.ragged.range(lengths, row_splits_dtype=ids.row_splits.dtype)
    return tf.gather(ids, places, batch_dims=1)


def given_or(given: tf.Tensor | None, derived: tf.Tensor) -> tf.Tensor:
    """Takes the second where the first is None or without elements."""
    if given is None:
        return derived
    return tf.cond(tf.size(given) > 0, lambda: given, lambda: derived)


def compute_in_groups(
    compute: Callable[[Inputs, tf.Tensor], Outputs],
    inputs: Inputs,
    extra: tf.Tensor,
    specs: Mapping[str, tf.TensorSpec],
    rows_at_once: int,
    by_length: bool = False,
) -> Outputs:
    """Computes rows in groups, one or two at a time, in bounded memory.

    Args:
      compute: from inputs [b, l] and rows of `extra` [b, ...] to outputs
        [b, ...] whose other axes are the same for every group; what it gives
        for a row does not depend on the other rows.
      inputs: int32 [B, L] each, padding at the end; B may be 0.
      specs: of each output, [None, ...].
      by_length: longest rows first, each group no wider than its longest row.
    """
    lengths = tf.reduce_sum(inputs.input_mask, 1)
    order = tf.range(tf.size(lengths))
    if by_length:
        order = tf.argsort(lengths, direction="DESCENDING", stable=True)

    def one(group: tf.Tensor) -> Outputs:
        rows = order[group * rows_at_once : (group + 1) * rows_at_once]
        part = Inputs(*(tf.gather(x, rows) for x in inputs))
        if by_length:
            # Of nothing the longest is the least int32.
            longest = tf.maximum(tf.reduce_max(tf.gather(lengths, rows)), 1)
            part = Inputs(*(x[:, :longest] for x in part))
        found = compute(part, tf.gather(extra, rows))
        return {name: found[name] for name in specs}

    # An empty batch is one group of nothing.
    groups = tf.maximum((tf.size(order) + rows_at_once - 1) // rows_at_once, 1)
    found = tf.map_fn(
        one,
        tf.range(groups),
        # Two short groups leave no thread idle.
        parallel_iterations=2 if by_length else 1,
        fn_output_signature={
            name: tf.RaggedTensorSpec(spec.shape, spec.dtype, ragged_rank=0)
            for name, spec in specs.items()
        },
    )
    back = tf.argsort(order)
    return {
        name: tf.ensure_shape(tf.gather(found[name].values, back), spec.shape)
        for name, spec in specs.items()
    }


class ServingModule(tf.Module, abc.ABC):
    """Base of what is written as a SavedModel.

    What its functions use of a model must be among `model_variables`: Keras
    layers are not tracked, since Keras would save functions of its own.
    """

    KIND: ClassVar[str]  # of head, as `describe` gives it
    # Whether segments that are not given are 1 at all tokens.
    ALL_SECOND: ClassVar[bool] = False

    def __init__(
        self,
        loaded: Loaded,
        sizes: EncoderConfig,
        variables: Sequence[tf.Variable],
        max_seq_length: int,
        labels: Sequence[str] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name=self.KIND)
        hparams = loaded.config
        self.loaded = loaded  # A plain class, so it is not tracked.
        self.max_seq_length = max_seq_length
        self.max_positions = sizes.max_position_embeddings
        self.rows = (sizes.vocab_size, sizes.type_vocab_size)
        config = {
            "kind": self.KIND,
            "labels": list(labels),
            "max_seq_length": max_seq_length,
            "max_positions": self.max_positions,
            "do_lower_case": hparams.do_lower_case,
            "strip_accents": hparams.strip_accents,
            **(extra or {}),
            "encoder": dataclasses.asdict(sizes),
            "hparams": {
                name: value
                for name, value in hparams.as_dict().items()
                if not _PLACES.fullmatch(name)
            },
        }
        self.config = lambda: config  # A dictionary would be tracked.
        self.model_variables = list(variables)
        self.tokenizer = GraphTokenizer(
            hparams.vocab_file, hparams.do_lower_case, hparams.strip_accents
        )
        self.kind = _text_variable(self.KIND, "kind")
        self.labels = _text_variable(list(labels), "labels")
        self.config_json = _text_variable(
            json.dumps(config, ensure_ascii=False), "config_json"
        )

    @abc.abstractmethod
    def compute(self, inputs: Inputs) -> Outputs:
        """From inputs [B, L] to named outputs, as the ids' signatures give."""

    def encode_text(self, text: tf.Tensor) -> tf.RaggedTensor:
        return self.tokenizer.encode(text)

    def compute_text(self, text: tf.Tensor) -> Outputs:
        """From strings [B] to named outputs, as `serve_text` gives them."""
        ids = self.encode_text(text)
        inputs, truncated = pack(ids, None, self.max_seq_length, self.tokenizer)
        return {**self.compute(inputs), "truncated": truncated}

    def text_signatures(self) -> Signatures:
        return {"serve_text": text_function(self.compute_text, 1)}

    def signatures(self) -> Signatures:
        @tf.function(input_signature=[], autograph=False)
        def describe() -> Outputs:
            return {
                "kind": self.kind.read_value(),
                "labels": self.labels.read_value(),
                "config": self.config_json.read_value(),
            }

        matrix = tf.TensorSpec([None, None], tf.int32)
        not_given = tf.zeros([0, 0], tf.int32)

        @tf.function(input_signature=[matrix] * 3, autograph=False)
        def serving_default(
            input_ids: tf.Tensor,
            input_mask: tf.Tensor = not_given,
            segment_ids: tf.Tensor = not_given,
        ) -> Outputs:
            given = self.complete(input_ids, input_mask, segment_ids)
            return self.compute(given)

        @tf.function(input_signature=[matrix], autograph=False)
        def serve_ids(input_ids: tf.Tensor) -> Outputs:
            return self.compute(self.complete(input_ids))

        return {
            "serving_default": serving_default,
            "serve_ids": serve_ids,
            **self.text_signatures(),
            "describe": describe,
        }

    def complete(
        self,
        input_ids: tf.Tensor,
        input_mask: tf.Tensor | None = None,
        segment_ids: tf.Tensor | None = None,
    ) -> Inputs:
        """Fills in what is absent, and refuses what the model cannot take.

        The ids say it all, since text never makes special tokens: padding is
        where [PAD] is, and the second segment follows the first [SEP] (or,
        with `ALL_SECOND`, is everywhere).
        """
        check = tf.debugging.assert_less_equal(
            tf.shape(input_ids)[1],
            self.max_positions,
            "input_ids: rows are longer than the model's"
            f" {self.max_positions} positions",
        )
        with tf.control_dependencies([check]):
            input_ids = tf.identity(input_ids)
        is_real = tf.cast(input_ids != self.tokenizer.pad_id, tf.int32)
        mask = second = given_or(input_mask, is_real)
        if not self.ALL_SECOND:
            is_sep = tf.cast(input_ids == self.tokenizer.sep_id, tf.int32)
            after = tf.minimum(tf.cumsum(is_sep, axis=1, exclusive=True), 1)
            second = after * mask
        own = (input_ids, mask, given_or(segment_ids, second), *self.rows)
        return Inputs(*checked_inputs(*own))

    def root(self) -> Any:
        return self

    def parts(self) -> dict[str, Any]:
        """Returns further objects, saved in folders of these names."""
        return {}


class TaskModule(ServingModule):
    """Encoder and one head of a fine-tuned model."""

    def __init__(self, loaded: FinetunedModel, task: Task) -> None:
        self.loaded, self.task = loaded, task
        super().__init__(
            loaded,
            loaded.model.encoder_config,
            [*loaded.model.encoder.variables, *self.head.variables],
            loaded.config.max_seq_length,
            task.head.labels,
            {"task": task.name, **self.extra_config()},
        )

    @property
    def head(self) -> Head:
        return self.loaded.model.heads[self.loaded.task_index(self.task.name)]

    def extra_config(self) -> dict[str, Any]:
        return {}

    def head_outputs(self, inputs: Inputs, **features: tf.Tensor) -> Outputs:
        """Runs encoder and head; `features` are the head's own."""
        encoded = self.loaded.model.encoder(*inputs, None)
        return self.head.logits(encoded, {**inputs._asdict(), **features})


def text_function(compute: Callable[..., Outputs], n_texts: int) -> Any:
    """A `tf.function` of strings [B], named as the arguments of `compute`."""
    strings = [tf.TensorSpec([None], tf.string)] * n_texts
    return tf.function(compute, input_signature=strings, autograph=False)


def _text_variable(value: str | list[str], name: str) -> tf.Variable:
    value = tf.constant(value, tf.string, shape=None if value else [0])
    return tf.Variable(value, trainable=False, name=name)
