# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The base of all exported modules: inputs, config and signatures.

docs/export.md lists the signatures of each kind and their outputs.
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
# Names of the hparams that an exported config leaves out, because the values
# (such as paths) refer to the machine of the run.
_PATH_HPARAMS = re.compile(
    r".*(_dir|_file|_checkpoint|_json|_pkl|_txt|_config)|(gcp|tpu)_.*"
)


class Inputs(NamedTuple):
    """Inputs of the encoder; all int32 [B, L]."""

    input_ids: tf.Tensor
    input_mask: tf.Tensor
    segment_ids: tf.Tensor


# Conversion of token ids to inputs of the encoder, in the graph.


def pack(
    first: tf.RaggedTensor,
    second: tf.RaggedTensor | None,
    max_length: int | tf.Tensor,
    tokenizer: GraphTokenizer,
    width: int | tf.Tensor | None = None,
) -> tuple[Inputs, tf.Tensor]:
    """Join ids to `[CLS] first [SEP]` or `[CLS] first [SEP] second [SEP]`.

    Ids that do not fit are dropped from the end of the longer text, or of the
    second text if both are equally long. A second text without tokens is left
    out.

    Args:
      first: ids of the first text, [B, (T)].
      second: ids of the second text, [B, (T)], or None.
      max_length: the maximum number of ids of a row, special tokens included.
      tokenizer: the tokenizer, for the ids of special tokens.
      width: width L of the inputs; None: the length of the longest row.

    Returns:
      The inputs, and bool [B]: whether ids were dropped.

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
        # A second text without ids gets no [SEP].
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
    """Return the lengths [B] to which two texts are cut.

    The formula gives the lengths that remain if ids are dropped one by one from
    the longer text.
    """
    free = tf.maximum(max_length - 2 - tf.minimum(b, 1), 0)
    half = free // 2
    kept_a = tf.minimum(a, tf.maximum(free - b, free - half))
    return kept_a, tf.minimum(b, tf.maximum(free - a, half))


def cut(ids: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Return the first `lengths` [B] ids of each row of ids [B, (T)]."""
    indices = tf.ragged.range(lengths, row_splits_dtype=ids.row_splits.dtype)
    return tf.gather(ids, indices, batch_dims=1)


def value_or_default(value: tf.Tensor | None, default: tf.Tensor) -> tf.Tensor:
    """Return the default if the value is None or has no elements."""
    if value is None:
        return default
    return tf.cond(tf.size(value) > 0, lambda: value, lambda: default)


def compute_in_groups(
    compute: Callable[[Inputs, tf.Tensor], Outputs],
    inputs: Inputs,
    extra: tf.Tensor,
    specs: Mapping[str, tf.TensorSpec],
    rows_at_once: int,
    by_length: bool = False,
) -> Outputs:
    """Compute outputs in groups of rows, to limit the memory of large batches.

    Args:
      compute: a function from inputs [b, l] and rows of `extra` [b, ...] to
        outputs [b, ...]. The other axes must be equal in every group, and the
        outputs of a row must not depend on other rows.
      inputs: the inputs, int32 [B, L] each, padded at the end; B may be 0.
      extra: further inputs, [B, ...].
      specs: the specification of each output, [None, ...].
      rows_at_once: the number of rows of a group.
      by_length: whether to compute the longest rows first; each group is then
        as wide as its longest row.

    Returns:
      The outputs [B, ...] by name, in the order of the inputs.
    """
    lengths = tf.reduce_sum(inputs.input_mask, 1)
    order = tf.range(tf.size(lengths))
    if by_length:
        order = tf.argsort(lengths, direction="DESCENDING", stable=True)

    def compute_group(group: tf.Tensor) -> Outputs:
        rows = order[group * rows_at_once : (group + 1) * rows_at_once]
        part = Inputs(*(tf.gather(x, rows) for x in inputs))
        if by_length:
            # The maximum of no rows would be the smallest int32.
            longest = tf.maximum(tf.reduce_max(tf.gather(lengths, rows)), 1)
            part = Inputs(*(x[:, :longest] for x in part))
        outputs = compute(part, tf.gather(extra, rows))
        return {name: outputs[name] for name in specs}

    # An empty batch becomes one group without rows, so there is always a group.
    groups = tf.maximum((tf.size(order) + rows_at_once - 1) // rows_at_once, 1)
    outputs = tf.map_fn(
        compute_group,
        tf.range(groups),
        # Two groups that run in parallel use all threads, even if the rows of
        # the groups are short.
        parallel_iterations=2 if by_length else 1,
        fn_output_signature={
            name: tf.RaggedTensorSpec(spec.shape, spec.dtype, ragged_rank=0)
            for name, spec in specs.items()
        },
    )
    original_order = tf.argsort(order)
    return {
        name: tf.ensure_shape(
            tf.gather(outputs[name].values, original_order), spec.shape
        )
        for name, spec in specs.items()
    }


class ServingModule(tf.Module, abc.ABC):
    """Base class of modules that are written as a SavedModel.

    All variables that the functions use must be among `model_variables`: Keras
    layers are not tracked, because Keras would save further functions.
    """

    KIND: ClassVar[str]  # kind of the head, in the output of `describe`
    # Whether the default segment id is 1 for all tokens.
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
        # TensorFlow does not track attributes of a plain object, so the model's
        # layers stay untracked.
        self.loaded = loaded
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
                if not _PATH_HPARAMS.fullmatch(name)
            },
        }
        # TensorFlow would track a dictionary, so a closure holds the config.
        self.config = lambda: config
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
        """Return the outputs of signatures that take ids, for inputs [B, L]."""

    def encode_text(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids [B, (T)] of strings [B]."""
        return self.tokenizer.encode(text)

    def compute_text(self, text: tf.Tensor) -> Outputs:
        """Return the outputs of `serve_text` for strings [B]."""
        ids = self.encode_text(text)
        inputs, truncated = pack(ids, None, self.max_seq_length, self.tokenizer)
        return {**self.compute(inputs), "truncated": truncated}

    def text_signatures(self) -> Signatures:
        """Return the functions that take text, by name."""
        return {"serve_text": text_function(self.compute_text, 1)}

    def signatures(self) -> Signatures:
        """Return all functions that a SavedModel serves, by name."""

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
            inputs = self.complete(input_ids, input_mask, segment_ids)
            return self.compute(inputs)

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
        """Add missing inputs; refuse values outside the model's tables.

        Text never becomes special tokens, so the ids determine the other
        inputs: [PAD] is padding, and the second segment follows the first
        [SEP]. With `ALL_SECOND`, the second segment covers all tokens.
        """
        check = tf.debugging.assert_less_equal(
            tf.shape(input_ids)[1],
            self.max_positions,
            "input_ids: the rows are too long; expected at most the model's"
            f" {self.max_positions} positions. Pass shorter rows",
        )
        with tf.control_dependencies([check]):
            input_ids = tf.identity(input_ids)
        is_real = tf.cast(input_ids != self.tokenizer.pad_id, tf.int32)
        mask = second = value_or_default(input_mask, is_real)
        if not self.ALL_SECOND:
            is_sep = tf.cast(input_ids == self.tokenizer.sep_id, tf.int32)
            after = tf.minimum(tf.cumsum(is_sep, axis=1, exclusive=True), 1)
            second = after * mask
        segments = value_or_default(segment_ids, second)
        return Inputs(*checked_inputs(input_ids, mask, segments, *self.rows))

    def root(self) -> Any:
        """Return the object to save."""
        return self

    def parts(self) -> dict[str, Any]:
        """Return further objects to save, by the names of their folders."""
        return {}


class TaskModule(ServingModule):
    """Base class of modules of fine-tuned models, with one head."""

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
        """The head of the task."""
        return self.loaded.model.heads[self.loaded.task_index(self.task.name)]

    def extra_config(self) -> dict[str, Any]:
        """Return the part of the config that only this kind of module has."""
        return {}

    def scored_outputs(
        self, outputs: Outputs, features: Mapping[str, tf.Tensor]
    ) -> Outputs | None:
        """Return the head's outputs that the loss and the scorer require.

        Args:
          outputs: the numeric outputs of `serving_default`.
          features: the features of the task, [B, ...].

        Returns:
          The outputs; None if `serving_default` does not determine them.
        """
        return None

    def head_outputs(self, inputs: Inputs, **features: tf.Tensor) -> Outputs:
        """Run the encoder and the head, which also takes `features`."""
        encoded = self.loaded.model.encoder(*inputs, None)
        return self.head.logits(encoded, {**inputs._asdict(), **features})


def text_function(compute: Callable[..., Outputs], n_texts: int) -> Any:
    """Return `compute` as a `tf.function` of `n_texts` strings [B]."""
    strings = [tf.TensorSpec([None], tf.string)] * n_texts
    return tf.function(compute, input_signature=strings, autograph=False)


def _text_variable(value: str | list[str], name: str) -> tf.Variable:
    value = tf.constant(value, tf.string, shape=None if value else [0])
    return tf.Variable(value, trainable=False, name=name)
