# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From token ids to vectors: the embeddings of generator and discriminator."""

import tensorflow as tf

from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.layers import (
    LayerNorm,
    ScopedLayer,
    SeedStream,
    dropout,
)


class Embeddings(ScopedLayer):
    """Sums token, segment and position vectors, normalizes, drops out.

    The generator and the discriminator share one instance (paper section
    3.2), and with it the layer norm; or only `word_embeddings`, [V, width].

    Source: google-research/electra, model/modeling.py, embedding_lookup and
    embedding_postprocessor.
    """

    def __init__(
        self,
        scope: str,
        config: EncoderConfig,
        width: int,
        seed: int = 0,
        word_embeddings: tf.Variable | None = None,
    ) -> None:
        super().__init__(scope, seed)
        self.config, self.width = config, width

        def table(name: str, rows: int) -> tf.Variable:
            stddev = config.initializer_range
            return self.scoped_weight(name, [rows, width], "normal", stddev)

        if word_embeddings is None:
            word_embeddings = table("word_embeddings", config.vocab_size)
        self.word_embeddings = word_embeddings
        self.token_type_embeddings = table(
            "token_type_embeddings", config.type_vocab_size
        )
        self.position_embeddings = table(
            "position_embeddings", config.max_position_embeddings
        )
        self.layer_norm = LayerNorm(scope, width, seed, config.layer_norm_eps)

    def call(
        self,
        input_ids: tf.Tensor,
        segment_ids: tf.Tensor,
        seeds: SeedStream | None = None,
    ) -> tf.Tensor:
        """Maps int32 [B, L] ids to float32 [B, L, E]; dropout with `seeds`."""
        length = input_ids.shape[1]
        limit = self.config.max_position_embeddings
        if length is not None and length > limit:
            raise ValueError(
                f"The sequence is {length} wordpieces long but the position "
                f"table has {limit} rows; lower max_seq_length or raise "
                "max_position_embeddings in model_hparam_overrides."
            )
        if length is None:
            length = tf.shape(input_ids)[1]
        output = self.look_up(input_ids)  # [B, L, E]
        # A product keeps the gradient dense, as in the original: the norm
        # used for clipping depends on that.
        flat = tf.reshape(segment_ids, [-1])
        segments = tf.one_hot(flat, self.config.type_vocab_size)
        segments = tf.matmul(segments, self.token_type_embeddings)
        output += tf.reshape(segments, tf.shape(output))
        output += self.position_embeddings[:length]  # [L, E]
        output = self.layer_norm(output)
        seed = seeds.seed("embeddings") if seeds else None
        return dropout(output, self.config.hidden_dropout_prob, seed)

    def look_up(self, input_ids: tf.Tensor) -> tf.Tensor:
        """The tokens' rows of the table, float32 [B, L, E]."""
        return tf.gather(self.word_embeddings, input_ids)


class DisentangledEmbeddings(Embeddings):
    """A discriminator's embeddings; its token table is the generator's + delta.

    The masked LM alone trains the generator's table, the discriminator's loss
    delta, which starts at zero. Segments, positions and layer norm are shared
    and trained by both.

    Source: DeBERTaV3 (He et al., ICLR 2023), section 3.3.
    """

    def __init__(
        self, scope: str, config: EncoderConfig, width: int, seed: int = 0
    ) -> None:
        super(Embeddings, self).__init__(scope, seed)
        self.config, self.width = config, width
        shape, stddev = [config.vocab_size, width], config.initializer_range
        words = "word_embeddings"
        generators = self.scoped_weight(
            f"shared_{words}", shape, "normal", stddev, drawn_as=words
        )
        self.delta = self.scoped_weight(f"{words}_delta", shape, "zeros")
        self.shared = Embeddings(scope, config, width, seed, generators)
        self.token_type_embeddings = self.shared.token_type_embeddings
        self.position_embeddings = self.shared.position_embeddings
        self.layer_norm = self.shared.layer_norm

    @property
    def word_embeddings(self) -> tf.Tensor:
        """float32 [V, E]."""
        return tf.stop_gradient(self.shared.word_embeddings) + self.delta

    def look_up(self, input_ids: tf.Tensor) -> tf.Tensor:
        # Rows alone; so is delta's gradient, as of any table that is read so.
        shared = tf.gather(self.shared.word_embeddings, input_ids)
        return tf.stop_gradient(shared) + tf.gather(self.delta, input_ids)

    def folded(self) -> Embeddings:
        """The same with one token table, for what is not trained."""
        plain = Embeddings(self.scope, self.config, self.width, self.seed)
        values = [self.word_embeddings, *self.shared.variables[1:]]
        for variable, value in zip(plain.variables, values, strict=True):
            variable.assign(value)
        return plain


def checked_inputs(
    ids: tf.Tensor, mask: tf.Tensor, segments: tf.Tensor, rows: int, types: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """A user's ids, mask and segments as int32 [B, L]; the mask 0 and 1.

    Refused where they would be computed with as another's: shapes that are not
    alike, ids and segments that the model has no row for (a GPU takes zeros).
    """
    segments = tf.cast(segments, tf.int32)
    checks = [
        tf.debugging.assert_equal(
            tf.shape(given), tf.shape(ids), f"{name}: not of input_ids' shape"
        )
        for name, given in (("input_mask", mask), ("segment_ids", segments))
    ]
    for name, given, count in (
        ("input_ids", ids, rows),
        ("segment_ids", segments, types),
    ):
        known = tf.reduce_all((given >= 0) & (given < count))
        what = f"{name}: expected 0 to {count - 1}"
        checks.append(tf.debugging.Assert(known, [what, given]))
    with tf.control_dependencies([c for c in checks if c is not None]):
        mask = tf.cast(tf.cast(mask, tf.bool), tf.int32)
        return tf.identity(ids), mask, tf.identity(segments)
