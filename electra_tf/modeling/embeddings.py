# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Embeddings of token ids: tables of tokens, segments and positions."""

import tensorflow as tf

from electra_tf.modeling.dropout import dropout
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.layers import LayerNorm, ScopedLayer
from electra_tf.modeling.seeds import SeedStream


class Embeddings(ScopedLayer):
    """Normalized sums of token, segment and position vectors.

    Generator and discriminator share either one instance (paper section 3.2),
    including the layer norm, or only `word_embeddings`.

    Source: google-research/electra, model/modeling.py, embedding_lookup and
    embedding_postprocessor.

    Args:
      scope: TF1 scope of the tables.
      sizes: sizes of the encoder that reads the vectors.
      width: E, width of the tables.
      seed: seed of the initial values.
      word_embeddings: an existing token table, [V, E]; None creates one.
    """

    def __init__(
        self,
        scope: str,
        sizes: EncoderConfig,
        width: int,
        seed: int = 0,
        word_embeddings: tf.Variable | None = None,
    ) -> None:
        super().__init__(scope, seed)
        self.sizes, self.width = sizes, width
        if word_embeddings is None:
            word_embeddings = self._table("word_embeddings", sizes.vocab_size)
        self.word_embeddings = word_embeddings
        self.token_type_embeddings = self._table(
            "token_type_embeddings", sizes.type_vocab_size
        )
        self.position_embeddings = self._table(
            "position_embeddings", sizes.max_position_embeddings
        )
        self.layer_norm = LayerNorm(scope, width, seed, sizes.layer_norm_eps)

    def _table(self, name: str, rows: int) -> tf.Variable:
        stddev = self.sizes.initializer_range
        return self.scoped_weight(name, [rows, self.width], "normal", stddev)

    def call(
        self,
        input_ids: tf.Tensor,
        segment_ids: tf.Tensor,
        seeds: SeedStream | None = None,
    ) -> tf.Tensor:
        """Map int32 ids [B, L] to float32 vectors [B, L, E].

        If `seeds` is not None, dropout is applied.

        Raises:
          ValueError: L exceeds the rows of the position table.
        """
        length = input_ids.shape[1]
        limit = self.sizes.max_position_embeddings
        if length is not None and length > limit:
            raise ValueError(
                f"The sequence has {length} wordpieces, but the position table"
                f" has {limit} rows. Lower max_seq_length, or raise"
                " max_position_embeddings in model_hparam_overrides."
            )
        if length is None:
            length = tf.shape(input_ids)[1]
        output = self.look_up(input_ids)  # [B, L, E]
        # A matrix product keeps the gradient dense, as in the original; sparse
        # gradients would change the norm used for clipping.
        flat = tf.reshape(segment_ids, [-1])
        segments = tf.one_hot(flat, self.sizes.type_vocab_size)
        segments = tf.matmul(segments, self.token_type_embeddings)
        output += tf.reshape(segments, tf.shape(output))
        output += self.position_embeddings[:length]  # [L, E]
        output = self.layer_norm(output)
        seed = seeds.seed("embeddings") if seeds else None
        return dropout(output, self.sizes.hidden_dropout_prob, seed)

    def look_up(self, input_ids: tf.Tensor) -> tf.Tensor:
        """Return the token table's rows for the ids, float32 [B, L, E]."""
        return _rows(self.word_embeddings, input_ids)


class DisentangledEmbeddings(Embeddings):
    """A discriminator's embeddings: the generator's token table plus a delta.

    Only the masked LM trains the generator's table, and only the
    discriminator's loss trains the delta, which starts at zero. Both losses
    train segments, positions and the layer norm, which are shared.

    Source: DeBERTaV3 (He et al., ICLR 2023), section 3.3.
    """

    def __init__(
        self, scope: str, sizes: EncoderConfig, width: int, seed: int = 0
    ) -> None:
        super(Embeddings, self).__init__(scope, seed)
        self.sizes, self.width = sizes, width
        shape = [sizes.vocab_size, width]
        generator_table = self.scoped_weight(
            "shared_word_embeddings",
            shape,
            "normal",
            sizes.initializer_range,
            drawn_as="word_embeddings",
        )
        self.delta = self.scoped_weight("word_embeddings_delta", shape, "zeros")
        self.shared = Embeddings(scope, sizes, width, seed, generator_table)
        self.token_type_embeddings = self.shared.token_type_embeddings
        self.position_embeddings = self.shared.position_embeddings
        self.layer_norm = self.shared.layer_norm

    @property
    def word_embeddings(self) -> tf.Tensor:
        """Token table that the discriminator uses, float32 [V, E]."""
        return tf.stop_gradient(self.shared.word_embeddings) + self.delta

    def look_up(self, input_ids: tf.Tensor) -> tf.Tensor:
        # Only the batch's rows of the shared table and of the delta are read,
        # so that the gradient of the delta contains only these rows.
        shared = _rows(self.shared.word_embeddings, input_ids)
        return tf.stop_gradient(shared) + _rows(self.delta, input_ids)

    def folded(self) -> Embeddings:
        """Return embeddings with one token table and equal outputs."""
        plain = Embeddings(self.scope, self.sizes, self.width, self.seed)
        values = [self.word_embeddings, *self.shared.variables[1:]]
        for variable, value in zip(plain.variables, values, strict=True):
            variable.assign(value)
        return plain


def _rows(table: tf.Variable | tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Return rows of a table, [*ids.shape, E].

    TensorFlow's gather from a variable makes all later reads of that variable
    copy it: 15 MB for a table of 30,522 rows of 128.
    """
    return tf.gather(tf.convert_to_tensor(table), ids)


def checked_inputs(
    ids: tf.Tensor,
    mask: tf.Tensor,
    segments: tf.Tensor,
    vocab_size: int,
    type_vocab_size: int,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Check a user's ids, mask and segments, and return them as int32 [B, L].

    The graph raises an InvalidArgumentError for different shapes, which
    TensorFlow might broadcast, and for ids and segments beyond the tables, for
    which a GPU would read zeros.
    """
    segments = tf.cast(segments, tf.int32)
    checks = [
        tf.debugging.assert_equal(
            tf.shape(tensor),
            tf.shape(ids),
            f"{name}: the shape differs from the shape of input_ids",
        )
        for name, tensor in (("input_mask", mask), ("segment_ids", segments))
    ]
    for name, tensor, rows in (
        ("input_ids", ids, vocab_size),
        ("segment_ids", segments, type_vocab_size),
    ):
        is_valid = tf.reduce_all((tensor >= 0) & (tensor < rows))
        message = (
            f"{name}: a value is out of range; expected values from 0 to"
            f" {rows - 1}. Correct the values:"
        )
        checks.append(tf.debugging.Assert(is_valid, [message, tensor]))
    with tf.control_dependencies([c for c in checks if c is not None]):
        mask = tf.cast(tf.cast(mask, tf.bool), tf.int32)
        return tf.identity(ids), mask, tf.identity(segments)
