# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The encoder and the tokenizer as layers of a `tf_keras.Model`.

    tokenizer = Tokenizer.from_pretrained("models/small", max_seq_length=64)
    encoder = Encoder.from_pretrained("models/small")
    text = tf_keras.Input([], dtype="string")
    vectors = encoder(tokenizer(text))["pooled_output"]
    model = tf_keras.Model(text, tf_keras.layers.Dense(2)(vectors))

The file that `model.save` writes contains the weights and the vocabulary, so
the folder that they were loaded from may be deleted.
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from configure.errors import UserError
from electra_tf.export.signatures import pack
from electra_tf.modeling.embeddings import Embeddings, checked_inputs
from electra_tf.modeling.encoder import ComputePolicy
from electra_tf.modeling.encoder import Encoder as TransformerEncoder
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.seeds import SeedStream
from electra_tf.prediction.loading import load, read_settings, select_encoder
from electra_tf.pretraining.networks import INPUTS
from electra_tf.text.casing import resolve_casing
from electra_tf.text.graph_tokenization import GraphTokenizer
from electra_tf.text.settings_files import (
    read_settings as read_tokenizer_settings,
)
from electra_tf.text.tokenizer_settings import TokenizerSettings
from electra_tf.text.vocabulary import (
    check_tokens,
    check_vocab,
    load_wordpieces,
    require_wordpiece,
)

_CASING_ARGUMENTS = {
    "do_lower_case": "argument do_lower_case",
    "strip_accents": "argument strip_accents",
}

# name of an input in other libraries -> name in this project
_OTHER_NAMES = {
    "attention_mask": "input_mask",
    "input_type_ids": "segment_ids",
    "input_word_ids": "input_ids",
    "padding_mask": "input_mask",
    "token_ids": "input_ids",
    "token_type_ids": "segment_ids",
}
# The Keras layer arguments that `Encoder` accepts.
_LAYER_ARGUMENTS = ("name", "dtype", "trainable")
_PRECISIONS = ("float32", "bfloat16", "float16")


@tf_keras.saving.register_keras_serializable("electra_tf")
class Encoder(tf_keras.__internal__.layers.BaseRandomLayer):
    """An ELECTRA encoder that maps token ids [B, L] to vectors.

    Args:
      vocab_size: the number of rows of the token embedding table.
      embedding_size: the width of the embedding tables; None: the hidden size.
      pad_token_id: the id that means padding if the inputs have no mask; None:
        no id does.
      return_hidden_states: whether the outputs include `hidden_states`.
      return_attentions: whether the outputs include `attentions`.
      seed: the seed of dropout and of the initial weights; None: from Keras
        (`tf_keras.utils.set_random_seed`).
      **arguments: fields of `EncoderConfig`, such as `hidden_size`, and Keras's
        `name`, `trainable` and `dtype`. `dtype` is a policy: blocks compute in
        its compute dtype; all other computations, the weights and the outputs
        are float32.
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int | None = None,
        pad_token_id: int | None = 0,
        return_hidden_states: bool = False,
        return_attentions: bool = False,
        seed: int | None = None,
        **arguments: Any,
    ) -> None:
        layer_arguments = {
            name: arguments.pop(name)
            for name in _LAYER_ARGUMENTS
            if name in arguments
        }
        super().__init__(
            seed=seed, rng_type="stateful", autocast=False, **layer_arguments
        )
        if self.compute_dtype not in _PRECISIONS:
            raise ValueError(
                f"{self.name}: the compute dtype is {self.compute_dtype};"
                f" expected {', '.join(_PRECISIONS)}. Pass another dtype, such"
                " as 'mixed_bfloat16'."
            )
        config = EncoderConfig(vocab_size, **arguments)
        self.sizes = dataclasses.asdict(config)
        self.embedding_size = embedding_size or config.hidden_size
        self.pad_token_id = pad_token_id
        self.return_hidden_states = return_hidden_states
        self.return_attentions = return_attentions
        self.seed = seed
        # If the seed is None, Keras draws a seed.
        weights_seed = self._random_generator._create_seed(seed)
        embeddings = Embeddings(
            "electra/embeddings", config, self.embedding_size, weights_seed
        )
        encoder = TransformerEncoder(
            "electra", config, embeddings, seed=weights_seed
        )
        encoder.compute_policy = ComputePolicy(self.compute_dtype)
        # The lambda hides the encoder from Keras. Otherwise Keras would try to
        # save the encoder's functions, which fails because some of their
        # arguments are not tensors.
        self._encoder_of = lambda: encoder
        self._variables = {v.name.split(":")[0]: v for v in encoder.variables}
        self.build(None)

    @classmethod
    def from_pretrained(
        cls, path: str, vocab_file: str | None = None, **arguments: Any
    ) -> "Encoder":
        """Load the encoder of a model.

        Args:
          path: a run's folder or its `best`, a part under `export`, a
            checkpoint of any format, or a Hugging Face folder. The
            discriminator's encoder is loaded; without a discriminator, the
            generator's.
          vocab_file: the vocabulary; None: the file next to the checkpoint.
          **arguments: further arguments of the constructor.

        Raises:
          UserError: a size differs from the model's.
        """
        source = select_encoder(load(path, vocab_file), "a Keras layer", "any")
        sizes = dataclasses.asdict(source.sizes)
        sizes["embedding_size"] = source.embeddings.width
        for name, value in arguments.items():
            if value != sizes.get(name, value) and "dropout" not in name:
                raise UserError(
                    f"{path}: {name} is {value!r}; expected {sizes[name]}, as"
                    f" in the model. Remove the argument {name}, or call"
                    " Encoder(...) for a new encoder with random weights."
                )
        layer = cls(**(sizes | arguments))
        # Names are compared without the scope, which is the first part of a
        # name, because the stored scope may be the generator's.
        stored = {v.name.partition("/")[2]: v for v in source.variables}
        for variable in layer._encoder_of().variables:
            variable.assign(stored[variable.name.partition("/")[2]])
        return layer

    def call(self, inputs: Any, training: bool | None = None) -> dict[str, Any]:
        """Encode a batch.

        Args:
          inputs: int [B, L] ids, or a dict with `input_ids` and, optionally,
            `input_mask` (1: a real token) and `segment_ids` (default: 0).
          training: whether dropout is applied.

        Returns:
          Outputs by name, float32: `sequence_output` [B, L, H]; `pooled_output`
          [B, H], the first token's vector; and, if the constructor requested
          them, `hidden_states`, a tuple of the embeddings' and each block's
          output [B, L, H], and `attentions`, a tuple of each block's
          probabilities [B, A, L, L].
        """
        return self._encode(inputs, training)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        config = super().get_config()
        config.pop("rng_type")
        return config | {
            **self.sizes,
            "embedding_size": self.embedding_size,
            "pad_token_id": self.pad_token_id,
            "return_hidden_states": self.return_hidden_states,
            "return_attentions": self.return_attentions,
            "seed": self.seed,
        }

    @tf.autograph.experimental.do_not_convert
    def _encode(self, inputs: Any, training: bool | None) -> dict[str, Any]:
        seeds = None
        if training:
            seed = self._random_generator.make_seed_for_stateless_op()
            seeds = SeedStream(seed).child("dropout")
        encoded = self._encoder_of()(*self._complete(inputs), seeds)
        outputs = {
            "sequence_output": encoded.sequence_output,
            "pooled_output": encoded.pooled_output,
        }
        if self.return_hidden_states:
            layers = (encoded.embedding_output, *encoded.layers)
            outputs["hidden_states"] = _as_float32(layers)
        if self.return_attentions:
            outputs["attentions"] = _as_float32(encoded.attention_probs)
        return outputs

    def _complete(self, inputs: Any) -> tuple[tf.Tensor, ...]:
        """Return token ids, input mask and segment ids, int32 [B, L] each."""
        if not isinstance(inputs, Mapping):
            inputs = {"input_ids": inputs}
        for name in inputs:
            if name not in INPUTS:
                hint = _OTHER_NAMES.get(name)
                hint = f" (called {hint} here)" if hint else ""
                raise ValueError(
                    f"{self.name}: unknown input {name!r}{hint}; expected"
                    f" {', '.join(INPUTS)}. Rename or remove the input."
                )
        if "input_ids" not in inputs:
            raise ValueError(
                f"{self.name}: input_ids is missing from the inputs. Pass"
                " input_ids."
            )
        tensors = {n: tf.convert_to_tensor(v) for n, v in inputs.items()}
        for name, value in tensors.items():
            if not (value.dtype.is_integer or value.dtype.is_bool):
                raise ValueError(
                    f"{self.name}: {name} is {value.dtype.name}; expected"
                    " integers. Pass integers, for example from"
                    " tf_keras.Input([None], dtype='int32')."
                )
            if value.shape.rank not in (None, 2):
                raise ValueError(
                    f"{self.name}: {name} has shape {value.shape}; expected"
                    " [batch, length]. Reshape the inputs."
                )
        ids = tf.cast(tensors["input_ids"], tf.int32)
        mask = tensors.get("input_mask")
        if mask is None and self.pad_token_id is not None:
            mask = tf.not_equal(ids, self.pad_token_id)
        elif mask is None:
            mask = tf.ones_like(ids)
        segments = tensors.get("segment_ids", tf.zeros_like(ids))
        return checked_inputs(
            ids,
            mask,
            segments,
            self.sizes["vocab_size"],
            self.sizes["type_vocab_size"],
        )


def _as_float32(tensors: Sequence[tf.Tensor]) -> tuple[tf.Tensor, ...]:
    return tuple(tf.cast(tensor, tf.float32) for tensor in tensors)


@tf_keras.saving.register_keras_serializable("electra_tf")
class Tokenizer(tf_keras.layers.Layer):
    """A tokenizer in the graph that maps strings [B] to inputs of `Encoder`.

    Args:
      vocabulary: the path of a file, or the tokens in the order of their ids.
      do_lower_case: whether texts are lowercased; None: the value in
        `tokenizer_config.json` next to the vocabulary, or true.
      strip_accents: whether accents are removed; None: the value in
        `tokenizer_config.json`, or the value of `do_lower_case`.
      max_seq_length: L, [CLS] and [SEP] included; longer texts are cut.
      settings: fields of `TokenizerSettings`, such as added tokens; None: the
        values in the files next to the vocabulary, or the original's.
    """

    def __init__(
        self,
        vocabulary: str | os.PathLike | Sequence[str],
        do_lower_case: bool | None = None,
        strip_accents: bool | None = None,
        max_seq_length: int = 128,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        if int(max_seq_length) != max_seq_length or max_seq_length < 3:
            raise UserError(
                f"max_seq_length is {max_seq_length}; expected an integer of"
                " at least 3, for [CLS], a token and [SEP]. Pass a larger"
                " number."
            )
        if isinstance(vocabulary, str | os.PathLike):
            require_wordpiece(vocabulary, "a tokenizer in the graph")
            path = os.fspath(vocabulary)
            check_vocab(path)
            wordpieces = load_wordpieces(path)
            rules = read_tokenizer_settings(path)
        else:
            path = ""
            wordpieces = check_tokens("<tokens>", list(vocabulary))
            rules = TokenizerSettings()
        if settings is not None:
            rules = TokenizerSettings.from_json(settings)
        choices = {
            "do_lower_case": do_lower_case,
            "strip_accents": strip_accents,
        }
        casing = resolve_casing(path, choices, _CASING_ARGUMENTS)
        self.do_lower_case = casing["do_lower_case"]
        self.strip_accents = casing["strip_accents"]
        self.max_seq_length = max_seq_length
        tokenizer = GraphTokenizer(wordpieces, **casing, settings=rules)
        # The lambda hides the list from Keras, which would otherwise wrap each
        # of the 30,000 tokens.
        self._wordpieces_of = lambda: list(wordpieces)
        self._settings_of = lambda: rules
        self._vocabulary_of = lambda: list(rules.with_tokens(wordpieces))
        self._tokenizer_of = lambda: tokenizer

    @classmethod
    def from_pretrained(
        cls, path: str, vocab_file: str | None = None, **arguments: Any
    ) -> "Tokenizer":
        """Load a model's vocabulary and casing; see the method of `Encoder`."""
        settings = read_settings(path, vocab_file)
        require_wordpiece(settings.vocab_file, "a tokenizer in the graph")
        # The tokens are passed instead of a path, because the constructor would
        # read the casing from the files next to the path.
        stored = {
            "vocabulary": list(load_wordpieces(settings.vocab_file)),
            "do_lower_case": settings.do_lower_case,
            "strip_accents": settings.strip_accents,
            "settings": read_tokenizer_settings(settings.vocab_file).as_json(),
        }
        return cls(**(stored | arguments))

    @property
    def vocabulary(self) -> list[str]:
        """The tokens, in the order of their ids."""
        return self._vocabulary_of()

    def get_vocabulary(self) -> list[str]:
        """Return the tokens in the order of their ids."""
        return self._vocabulary_of()

    @tf.autograph.experimental.do_not_convert
    def detokenize(self, inputs: Any) -> tf.Tensor:
        """Return the texts of token ids, by graph operations.

        Args:
          inputs: int [B, L] or [L] ids, dense or ragged, or a dict that
            contains them as `input_ids`, such as the result of a call.

        Returns:
          string [B] or []. Wordpieces are joined to words; single spaces
          separate words and punctuation marks. [CLS], [SEP] and [PAD] are left
          out. Case, accents and white space that tokenization removed are
          lost.

        Raises:
          ValueError: the inputs are not integers, or have another shape.
          tf.errors.InvalidArgumentError: an id is outside the vocabulary.
        """
        if isinstance(inputs, Mapping):
            inputs = inputs["input_ids"]
        tokenizer = self._tokenizer_of()
        if isinstance(inputs, tf.RaggedTensor):
            inputs = inputs.to_tensor(tokenizer.pad_id)
        ids = tf.convert_to_tensor(inputs)
        if not ids.dtype.is_integer or ids.shape.rank not in (None, 1, 2):
            raise ValueError(
                f"{self.name}: detokenize got {ids.dtype.name} of shape"
                f" {ids.shape}; expected integers [batch, length] or [length]."
                " Pass the output of the tokenizer."
            )
        size = len(self._vocabulary_of())
        is_known = tf.reduce_all((ids >= 0) & (ids < tf.cast(size, ids.dtype)))
        message = (
            f"{self.name}: detokenize got an id outside the vocabulary;"
            f" expected ids from 0 to {size - 1}. Pass ids of this tokenizer."
        )
        with tf.control_dependencies(
            [tf.debugging.Assert(is_known, [message])]
        ):
            ids = tf.identity(tf.cast(ids, tf.int32))
        tokens = tokenizer.id_to_token(ids)
        continues = tf.strings.regex_full_match(tokens, "##.+")
        rest = tf.strings.regex_replace(tokens, "^##", "")
        pieces = tf.where(continues, rest, tf.strings.join([" ", tokens]))
        for number in (tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id):
            pieces = tf.where(tf.equal(ids, number), "", pieces)
        return tf.strings.strip(tf.strings.reduce_join(pieces, axis=-1))

    def call(self, inputs: Any) -> dict[str, tf.Tensor]:
        """Tokenize a batch.

        Args:
          inputs: texts, string [B] or [B, 1]; or a pair of texts, which becomes
            `[CLS] first [SEP] second [SEP]`.

        Returns:
          int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.
        """
        return self._tokenize(inputs)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return super().get_config() | {
            "vocabulary": self._wordpieces_of(),
            "do_lower_case": self.do_lower_case,
            "strip_accents": self.strip_accents,
            "max_seq_length": self.max_seq_length,
            "settings": self._settings_of().as_json(),
        }

    @tf.autograph.experimental.do_not_convert
    def _tokenize(self, inputs: Any) -> dict[str, tf.Tensor]:
        tokenizer = self._tokenizer_of()
        texts = [inputs]
        if isinstance(inputs, list | tuple):
            if not all(isinstance(text, str | bytes) for text in inputs):
                texts = list(inputs)
        if len(texts) > 2:
            raise ValueError(
                f"{self.name}: found {len(texts)} inputs; expected one tensor"
                " of texts, or a pair of such tensors. Pass one tensor, or a"
                " list of two tensors."
            )
        encoded = [tokenizer.encode(self._column(text)) for text in texts]
        packed, _ = pack(
            encoded[0],
            encoded[1] if len(encoded) == 2 else None,
            self.max_seq_length,
            tokenizer,
            self.max_seq_length,
        )
        shape = [None, self.max_seq_length]
        return {
            n: tf.ensure_shape(t, shape) for n, t in packed._asdict().items()
        }

    def _column(self, texts: Any) -> tf.Tensor:
        texts = tf.convert_to_tensor(texts)
        if texts.dtype != tf.string:
            raise ValueError(
                f"{self.name}: the inputs are {texts.dtype.name}; expected"
                " strings. Pass strings, for example from tf_keras.Input([],"
                " dtype='string')."
            )
        if texts.shape.rank == 0:
            return texts[None]
        if texts.shape.rank == 2 and texts.shape[1] == 1:
            return texts[:, 0]
        if texts.shape.rank != 1:
            raise ValueError(
                f"{self.name}: the strings have shape {texts.shape}; expected"
                " [batch]. Reshape the inputs."
            )
        return texts
