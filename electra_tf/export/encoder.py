# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Export of an encoder without a head, and of its preprocessor, for TF Hub.

One case differs from TF Hub's convention: a second text without tokens gets no
[SEP], as in fine-tuning.

Source: https://www.tensorflow.org/hub/common_saved_model_apis/text
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from electra_tf.export import signatures
from electra_tf.modeling.seeds import SeedStream
from electra_tf.prediction.loading import FinetunedModel, select_encoder

PREPROCESSOR = "preprocessor"
# TF Hub's names of the fields of `Inputs`, in the order of the fields.
_NAMES = ("input_word_ids", "input_mask", "input_type_ids")


class EncoderModule(signatures.ServingModule):
    """An exported encoder without a head."""

    KIND = "encoder"

    def __init__(
        self, loaded: signatures.Loaded, max_seq_length: int | None = None
    ) -> None:
        encoder = select_encoder(loaded, "export of the encoder")
        # TensorFlow would track an attribute, so a closure holds the encoder.
        self._get_encoder = lambda: encoder
        if max_seq_length is None:
            max_seq_length = loaded.config.max_seq_length
            if not isinstance(loaded, FinetunedModel):
                max_seq_length = min(max_seq_length, 128)
        length = min(max_seq_length, encoder.sizes.max_position_embeddings)
        super().__init__(loaded, encoder.sizes, encoder.variables, length)

    def compute(self, inputs: signatures.Inputs) -> signatures.Outputs:
        encoded = self._get_encoder()(*inputs, None)
        return {
            "pooled_output": encoded.pooled_output,
            "sequence_output": encoded.sequence_output,
            "input_mask": inputs.input_mask,
        }

    def parts(self) -> dict[str, Any]:
        return {PREPROCESSOR: make_preprocessor(self)}

    def root(self) -> tf.train.Checkpoint:
        """Return the encoder as a callable object, by TF Hub's convention."""
        encoder = self._get_encoder()

        # With training=True every call draws a new dropout mask.
        @tf.function(autograph=False)
        def call(
            inputs: dict[str, tf.Tensor], training: bool = False
        ) -> dict[str, Any]:
            dropout = None
            if training:
                seed = tf.random.uniform([2], 0, 2**31 - 1, tf.int32)
                dropout = SeedStream(seed).child("dropout")
            encoded = encoder(*(inputs[name] for name in _NAMES), dropout)
            return {
                "default": encoded.pooled_output,
                "pooled_output": encoded.pooled_output,
                "sequence_output": encoded.sequence_output,
                "encoder_outputs": list(encoded.layers),
            }

        matrix = tf.TensorSpec([None, None], tf.int32)
        for training in (False, True):
            call.get_concrete_function(dict.fromkeys(_NAMES, matrix), training)
        root = _callable(
            call,
            tokenizer=self.tokenizer,
            kind=self.kind,
            labels=self.labels,
            config_json=self.config_json,
        )
        root.variables = root.trainable_variables = self.model_variables
        root.regularization_losses = []
        return root


def _callable(function: Any, **parts: Any) -> tf.train.Checkpoint:
    """Return an object that TF Hub can call: it runs `function`."""
    checkpoint = tf.train.Checkpoint(**parts)
    checkpoint.__call__ = function
    return checkpoint


def make_preprocessor(module: signatures.ServingModule) -> tf.train.Checkpoint:
    """Return an object that converts strings to inputs, as TF Hub expects."""
    tokenizer, length = module.tokenizer, module.max_seq_length
    strings = tf.TensorSpec([None], tf.string)

    def pack_hub(
        segments: list[tf.RaggedTensor], seq_length: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        first, second = (*segments, None)[:2]
        inputs, _ = signatures.pack(
            first, second, seq_length, tokenizer, seq_length
        )
        return dict(zip(_NAMES, inputs, strict=True))

    @tf.function(input_signature=[strings], autograph=False)
    def tokenize(sentences: tf.Tensor) -> tf.RaggedTensor:
        return tokenizer.encode(sentences)

    @tf.function(input_signature=[strings], autograph=False)
    def call(sentences: tf.Tensor) -> dict[str, tf.Tensor]:
        return pack_hub([tokenizer.encode(sentences)], length)

    @tf.function(autograph=False)
    def bert_pack_inputs(
        inputs: list[tf.RaggedTensor] | tf.RaggedTensor,
        seq_length: int | tf.Tensor = length,
    ) -> dict[str, tf.Tensor]:
        segments = inputs if isinstance(inputs, list) else [inputs]
        return pack_hub(segments, seq_length)

    ragged = tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int64)
    for inputs in ([ragged], [ragged, ragged], ragged):
        for size in (length, tf.TensorSpec([], tf.int32)):
            bert_pack_inputs.get_concrete_function(inputs, size)

    @tf.function(input_signature=[], autograph=False)
    def special_tokens() -> dict[str, tf.Tensor]:
        return {
            "vocab_size": tf.constant(tokenizer.vocab_size),
            "start_of_sequence_id": tf.constant(tokenizer.cls_id),
            "end_of_segment_id": tf.constant(tokenizer.sep_id),
            "padding_id": tf.constant(tokenizer.pad_id),
            "mask_id": tf.constant(tokenizer.mask_id),
        }

    special = _callable(special_tokens)
    return _callable(
        call,
        tokenizer=tokenizer,
        tokenize=_callable(tokenize, get_special_tokens_dict=special),
        bert_pack_inputs=_callable(bert_pack_inputs),
    )
