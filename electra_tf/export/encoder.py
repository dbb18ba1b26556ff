# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The bare encoder, by TF Hub's convention for text encoders.

    preprocess = hub.KerasLayer("exported/1/preprocessor")
    encoder = hub.KerasLayer("exported/1", trainable=True)
    vectors = encoder(preprocess(tf.constant(["A text."])))["pooled_output"]

The encoder is called with a dict of int32 [B, L] `input_word_ids`,
`input_mask` and `input_type_ids`, and gives `pooled_output` [B, H] (also as
`default`; the first token's vector: ELECTRA has no pooler layer),
`sequence_output` [B, L, H] and `encoder_outputs`, a list of [B, L, H], one a
block. With training=True dropout applies, drawn anew at each call.

The preprocessor turns strings [B] into that dict, all rows being
max_seq_length long. For pairs, or another length:

    tokenize = hub.KerasLayer(preprocess.resolved_object.tokenize)
    pack = hub.KerasLayer(preprocess.resolved_object.bert_pack_inputs,
                          arguments={"seq_length": 64})
    inputs = pack([tokenize(first), tokenize(second)])

What does not fit is dropped as in fine-tuning. Differs from the convention in
one case: a second text without tokens gets no [SEP], as in fine-tuning.

The encoder is a served model, too: `serving_default`, `serve_ids` and
`serve_text` (`text` [B]) give `pooled_output`, `sequence_output` and
`input_mask`; the last also `truncated`.

Source: https://www.tensorflow.org/hub/common_saved_model_apis/text
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import GeneratorKind
from electra_tf.export.signatures import (
    Inputs,
    Outputs,
    ServingModule,
    Settings,
    Signatures,
    pack,
    public_hparams,
)
from electra_tf.modeling.seeds import SeedStream
from electra_tf.modeling.transformer import Encoder
from electra_tf.prediction.loading import FinetunedModel, PretrainedModel

PREPROCESSOR = "preprocessor"
_RAGGED = tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int64)


class EncoderModule(ServingModule):
    """An encoder without a head.

    Args:
      max_seq_length: what texts are cut to; None: the fine-tuned model's, or
        128.
    """

    KIND = "encoder"

    def __init__(
        self,
        loaded: FinetunedModel | PretrainedModel,
        max_seq_length: int | None = None,
    ) -> None:
        encoder = _encoder_of(loaded)
        # In a function, so that it is not tracked and saved.
        self._encoder_of = lambda: encoder
        config, sizes = loaded.config, encoder.config
        if max_seq_length is None:
            finetuned = isinstance(loaded, FinetunedModel)
            max_seq_length = config.max_seq_length if finetuned else 128
        settings = Settings(
            kind=self.KIND,
            vocab_file=config.vocab_file,
            do_lower_case=config.do_lower_case,
            strip_accents=config.strip_accents,
            max_seq_length=min(max_seq_length, sizes.max_position_embeddings),
            max_positions=sizes.max_position_embeddings,
            config={
                "encoder": dataclasses.asdict(sizes),
                "hparams": public_hparams(config),
            },
        )
        super().__init__(settings, encoder.variables)

    def compute(self, inputs: Inputs) -> Outputs:
        """From inputs [B, L] to the vectors of the signatures."""
        encoded = self._encoder_of()(*inputs, None)
        return {
            "pooled_output": encoded.pooled_output,
            "sequence_output": encoded.sequence_output,
            "input_mask": inputs.input_mask,
        }

    def signatures(self) -> Signatures:
        """See the base class."""
        strings = tf.TensorSpec([None], tf.string)

        @tf.function(input_signature=[strings], autograph=False)
        def serve_text(text: tf.Tensor) -> Outputs:
            inputs, truncated = pack(
                self.tokenizer.encode(text),
                None,
                self.settings.max_seq_length,
                self.tokenizer.cls_id,
                self.tokenizer.sep_id,
            )
            return {**self.compute(inputs), "truncated": truncated}

        return {
            **self.ids_signatures(self.compute),
            "serve_text": serve_text,
            **self.describe_signature(),
        }

    def root(self) -> tf.train.Checkpoint:
        """Returns a callable object of the convention."""
        root = tf.train.Checkpoint(
            tokenizer=self.tokenizer,
            kind=self.kind,
            labels=self.labels,
            config_json=self.config_json,
        )
        root.variables = self.model_variables
        root.trainable_variables = self.model_variables
        root.regularization_losses = []
        # TF Hub looks for this name on the object.
        root.__call__ = self._traced_call()
        return root

    def parts(self) -> dict[str, Any]:
        """Returns the preprocessor."""
        return {PREPROCESSOR: make_preprocessor(self)}

    def _traced_call(self) -> Any:
        encoder = self._encoder_of()

        @tf.function(autograph=False)
        def call(
            inputs: dict[str, tf.Tensor], training: bool = False
        ) -> dict[str, Any]:
            dropout = None
            if training:
                seed = tf.random.uniform([2], 0, 2**31 - 1, tf.int32)
                dropout = SeedStream(seed).child("dropout")
            encoded = encoder(
                inputs["input_word_ids"],
                inputs["input_mask"],
                inputs["input_type_ids"],
                dropout,
            )
            return {
                "default": encoded.pooled_output,
                "pooled_output": encoded.pooled_output,
                "sequence_output": encoded.sequence_output,
                "encoder_outputs": list(encoded.layers),
            }

        matrix = tf.TensorSpec([None, None], tf.int32)
        names = ("input_word_ids", "input_mask", "input_type_ids")
        for training in (False, True):
            call.get_concrete_function(dict.fromkeys(names, matrix), training)
        return call


def make_preprocessor(module: ServingModule) -> tf.train.Checkpoint:
    """Returns a preprocessor of the convention."""
    tokenizer, length = module.tokenizer, module.settings.max_seq_length
    strings = tf.TensorSpec([None], tf.string)

    def pack_hub(
        segments: list[tf.RaggedTensor], seq_length: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        first, second = (*segments, None)[:2]
        special = (tokenizer.cls_id, tokenizer.sep_id)
        inputs, _ = pack(first, second, seq_length, *special, width=seq_length)
        return {
            "input_word_ids": inputs.input_ids,
            "input_mask": inputs.input_mask,
            "input_type_ids": inputs.segment_ids,
        }

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

    for inputs in ([_RAGGED], [_RAGGED, _RAGGED], _RAGGED):
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

    root = tf.train.Checkpoint(tokenizer=tokenizer)
    root.__call__ = call
    root.tokenize = tf.train.Checkpoint()
    root.tokenize.__call__ = tokenize
    root.tokenize.get_special_tokens_dict = tf.train.Checkpoint()
    root.tokenize.get_special_tokens_dict.__call__ = special_tokens
    root.bert_pack_inputs = tf.train.Checkpoint()
    root.bert_pack_inputs.__call__ = bert_pack_inputs
    return root


def _encoder_of(loaded: FinetunedModel | PretrainedModel) -> Encoder:
    if isinstance(loaded, FinetunedModel):
        return loaded.model.encoder
    if loaded.model.discriminator is not None:
        why = loaded.loaded.lack_of_discriminator(with_head=False)
        if why is None:
            return loaded.model.discriminator
    elif loaded.model.kind is GeneratorKind.FULL:
        why = loaded.loaded.lack_of_generator(with_head=False)
        if why is None:
            return loaded.model.generator
    else:
        why = f"{loaded.path} has no discriminator"
    raise UserError(
        f"{why}; export of the encoder needs one. Give the run's model"
        " directory, or a checkpoint that holds it."
    )
