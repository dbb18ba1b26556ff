# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From token ids to vectors and logits: embeddings, encoder, towers, heads."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.layers import (
    Dense,
    LayerNorm,
    ScopedLayer,
    SeedStream,
    dropout,
    dropout_alone,
    static_or_dynamic_shape,
)


@dataclasses.dataclass(frozen=True)
class ComputePolicy:
    """How an encoder's blocks are computed; the weights are float32 always."""

    # Of the blocks' matrix products and of what is between them. Layer norms,
    # softmaxes, embeddings and heads are float32 always.
    dtype: str = "float32"
    # Of each block only the input is kept for the gradient, its activations
    # are computed again (activation checkpointing).
    remat: bool = False

    @classmethod
    def of(cls, config: Any, remat: bool) -> "ComputePolicy":
        """Reads the hparam `mixed_precision`."""
        dtype = {"": "float32", "bf16": "bfloat16", "fp16": "float16"}
        return cls(dtype[config.mixed_precision], remat)


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


# The original adds this instead of minus infinity. A query that may see no key
# at all then falls back to the raw scores over all positions; keep it so.
MASKED_SCORE = -10000.0


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


def attention_bias(
    input_mask: tf.Tensor, direction: str | None = None
) -> tf.Tensor:
    """What is added to attention scores: float32, -10000 to hide keys, else 0.

    Of an int32 [B, L] mask, 1 for real tokens. [B, 1, 1, L] shows all of them,
    [B, 1, L, L] those at or before the query for the direction "ltr", those at
    or after it for "rtl".

    Source: google-research/electra, model/modeling.py,
    create_attention_mask_from_input_mask and BertModel.
    """
    # Not [:, None, None, :], which LiteRT has no operation for.
    visible = tf.expand_dims(tf.cast(input_mask, tf.float32)[:, None], 1)
    if direction is not None:
        if direction not in ("ltr", "rtl"):
            raise ValueError(f"direction must be ltr or rtl, not {direction!r}")
        length = tf.shape(input_mask)[1]
        band = (-1, 0) if direction == "ltr" else (0, -1)
        visible *= tf.linalg.band_part(tf.ones([length, length]), *band)
    return (1.0 - visible) * MASKED_SCORE


class SelfAttention(ScopedLayer):
    """Projects to queries, keys and values and mixes the values.

    Source: google-research/electra, model/modeling.py, attention_layer.
    """

    def __init__(
        self, scope: str, config: EncoderConfig, seed: int = 0
    ) -> None:
        super().__init__(scope, seed)
        self.config = config
        hidden, stddev = config.hidden_size, config.initializer_range
        self.query, self.key, self.value = (
            Dense(f"{scope}/{name}", hidden, hidden, stddev=stddev, seed=seed)
            for name in ("query", "key", "value")
        )

    def call(
        self,
        hidden: tf.Tensor,
        bias: tf.Tensor,
        seeds: SeedStream | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Attends from every position to every visible position.

        `hidden` is float32 or half precision [B, L, H]; so are the mixed values
        and, [B, A, L, L], the attention probabilities after dropout. `bias` of
        `attention_bias`, [B, 1, 1 or L, L], and the softmax are float32.
        """
        batch, length, width = static_or_dynamic_shape(hidden)
        heads, size = self.config.num_attention_heads, self.config.size_per_head

        def split_heads(tensor: tf.Tensor) -> tf.Tensor:
            tensor = tf.reshape(tensor, [batch, length, heads, size])
            return tf.transpose(tensor, [0, 2, 1, 3])  # [B, A, L, D]

        scale = 1.0 / math.sqrt(size)
        # A power of two (64 units a head) scales the query, L / D times fewer
        # elements, to the same bits. Other factors would round differently,
        # and Electric's rows without visible keys magnify that 1,000 times.
        # Half precision would overflow rather.
        scale_query = math.frexp(scale)[0] == 0.5 or hidden.dtype.size < 4
        query = self.query(hidden)
        query = split_heads(query * scale if scale_query else query)
        # A key bias adds the same number to all of a query's scores, which
        # softmax does not see: its true gradient is zero, and what summing in
        # float32 gives is rounding noise.
        key = split_heads(self.key(hidden, train_bias=False))
        value = split_heads(self.value(hidden))
        scores = tf.matmul(query, key, transpose_b=True)  # [B, A, L, L]
        if not scale_query:
            scores *= scale
        seed = seeds.seed("attention_probs") if seeds else None
        rate = self.config.attention_probs_dropout_prob
        probs = _attention_probs(scores, bias, rate, seed)
        mixed = tf.transpose(tf.matmul(probs, value), [0, 2, 1, 3])
        return tf.reshape(mixed, [batch, length, width]), probs


def _attention_probs(
    scores: tf.Tensor, bias: tf.Tensor, rate: float, seed: tf.Tensor | None
) -> tf.Tensor:
    """Softmax of `scores` + `bias` over the last axis, then dropout.

    Without dropout, TensorFlow's own softmax and its gradient. Else, with p the
    softmax, d what dropout makes of it and u the gradient of d, the
    gradient of the scores is u d - p sum(u d): the mask need not be kept.
    """

    def softmax(scores: tf.Tensor) -> tf.Tensor:
        wide = tf.nn.softmax(tf.cast(scores, bias.dtype) + bias)
        return tf.cast(wide, scores.dtype)

    if seed is None or not rate:
        return softmax(scores)

    @tf.custom_gradient
    def dropped_softmax(scores: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        probs = softmax(scores)
        dropped = dropout_alone(probs, rate, seed)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            upstream, mixed = (
                tf.cast(tensor, bias.dtype) for tensor in (upstream, dropped)
            )
            weighted = upstream * mixed
            total = tf.reduce_sum(weighted, -1, keepdims=True)
            change = weighted - tf.cast(probs, bias.dtype) * total
            return tf.cast(change, scores.dtype)

        return dropped, gradient

    return dropped_softmax(scores)


class TransformerBlock(ScopedLayer):
    """Self-attention and feed-forward, each added and then normalized.

    Source: google-research/electra, model/modeling.py, transformer_model.
    """

    def __init__(
        self, scope: str, config: EncoderConfig, seed: int = 0
    ) -> None:
        super().__init__(scope, seed)
        self.config = config
        hidden, inner = config.hidden_size, config.intermediate_size
        stddev = config.initializer_range

        def dense(name: str, *arguments: Any) -> Dense:
            scoped = f"{scope}/{name}/dense"
            return Dense(scoped, *arguments, stddev=stddev, seed=seed)

        self.attention = SelfAttention(f"{scope}/attention/self", config, seed)
        self.attention_output = dense("attention/output", hidden, hidden)
        epsilon = config.layer_norm_eps
        self.attention_norm = LayerNorm(
            f"{scope}/attention/output", hidden, seed, epsilon
        )
        self.intermediate = dense(
            "intermediate", hidden, inner, config.hidden_act
        )
        self.output_dense = dense("output", inner, hidden)
        self.output_norm = LayerNorm(f"{scope}/output", hidden, seed, epsilon)

    def call(
        self,
        hidden: tf.Tensor,
        bias: tf.Tensor,
        seeds: SeedStream | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Runs the block; arguments and results as of `SelfAttention`."""
        rate = self.config.hidden_dropout_prob

        def seed(site: str) -> tf.Tensor | None:
            return seeds.seed(site) if seeds else None

        mixed, probs = self.attention(hidden, bias, seeds)
        mixed = self.attention_output(mixed)
        hidden = self.attention_norm(
            mixed, hidden, rate, seed("attention_output")
        )
        inner = self.intermediate(hidden)  # [B, L, intermediate_size]
        inner = self.output_dense(inner)
        return self.output_norm(inner, hidden, rate, seed("output")), probs


class EncoderOutput(NamedTuple):
    """What an encoder gives for a batch.

    All float32, except that `layers` and `attention_probs` have the dtype the
    blocks compute in.
    """

    embedding_output: tf.Tensor  # [B, L, H], after the projection
    layers: tuple[tf.Tensor, ...]  # one [B, L, H] a block
    # One [B, A, L, L] a block; none in training with remat.
    attention_probs: tuple[tf.Tensor, ...]

    @property
    def sequence_output(self) -> tf.Tensor:
        """Output of the last block, [B, L, H]."""
        last = self.layers[-1] if self.layers else self.embedding_output
        return tf.cast(last, tf.float32)

    @property
    def pooled_output(self) -> tf.Tensor:
        """Vector of the first token, [B, H]; there is no pooler layer."""
        return self.sequence_output[:, 0]

    @property
    def all_layers(self) -> tf.Tensor:
        """All blocks' outputs stacked, [layers, B, L, H]."""
        return tf.cast(tf.stack(self.layers, 0), tf.float32)


class Encoder(ScopedLayer):
    """BERT-style encoder, as generator, discriminator or tower.

    `direction` is None, "ltr" or "rtl"; see `attention_bias`.

    Source: google-research/electra, model/modeling.py, BertModel.
    """

    def __init__(
        self,
        scope: str,
        config: EncoderConfig,
        embeddings: Embeddings,
        direction: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(scope, seed)
        self.config = config
        self.embeddings = embeddings
        self.direction = direction
        self.compute_policy = ComputePolicy()
        self.embeddings_project = None
        if embeddings.width != config.hidden_size:
            widths = (embeddings.width, config.hidden_size)
            self.embeddings_project = Dense(
                f"{scope}/embeddings_project", *widths, seed=seed
            )
        self.blocks = [
            TransformerBlock(f"{scope}/encoder/layer_{i}", config, seed)
            for i in range(config.num_hidden_layers)
        ]

    def call(
        self,
        input_ids: tf.Tensor,
        input_mask: tf.Tensor,
        segment_ids: tf.Tensor,
        seeds: SeedStream | None = None,
    ) -> EncoderOutput:
        """Encodes a batch, int32 [B, L] each; dropout with `seeds`."""
        if seeds is not None:
            seeds = seeds.child(self.scope)
        hidden = self.embeddings(input_ids, segment_ids, seeds)
        if self.embeddings_project is not None:
            hidden = self.embeddings_project(hidden)  # [B, L, H]
        embedding_output = hidden
        bias = attention_bias(input_mask, self.direction)
        layers, all_probs = [], []
        hidden = tf.cast(hidden, self.compute_policy.dtype)
        for i, block in enumerate(self.blocks):
            inner = seeds.child(f"layer_{i}") if seeds else None
            if inner is not None and self.compute_policy.remat:
                hidden = _rematerialized(block, hidden, bias, inner)
            else:
                hidden, probs = block(hidden, bias, inner)
                all_probs.append(probs)
            layers.append(hidden)
        return EncoderOutput(embedding_output, tuple(layers), tuple(all_probs))


def _rematerialized(
    block: TransformerBlock,
    hidden: tf.Tensor,
    bias: tf.Tensor,
    seeds: SeedStream,
) -> tf.Tensor:
    """Runs a block of which only the input is kept for its gradient.

    The second computation repeats the first: `seeds` fixes all its draws.
    """
    return tf.recompute_grad(lambda x: block(x, bias, seeds)[0])(hidden)


def set_compute_policy(model: tf.Module, policy: ComputePolicy) -> None:
    """Says how all encoders of a model compute."""
    for module in model.submodules:
        if isinstance(module, Encoder):
            module.compute_policy = policy


class TwoTowerClozeTransformer(ScopedLayer):
    """Predicts each token from its left and right context, never itself.

    Source: google-research/electra, run_pretraining.py,
    TwoTowerClozeTransformer; Electric paper (EMNLP 2020) section 2.3.
    """

    def __init__(
        self,
        scope: str,
        config: EncoderConfig,
        ltr_embeddings: Embeddings,
        rtl_embeddings: Embeddings,
        seed: int = 0,
    ) -> None:
        super().__init__(scope, seed)
        self.config = config
        self.ltr = Encoder(f"{scope}_ltr", config, ltr_embeddings, "ltr", seed)
        self.rtl = Encoder(f"{scope}_rtl", config, rtl_embeddings, "rtl", seed)

    def call(
        self,
        input_ids: tf.Tensor,
        input_mask: tf.Tensor,
        segment_ids: tf.Tensor,
        seeds: SeedStream | None = None,
    ) -> tuple[tf.Tensor, EncoderOutput, EncoderOutput]:
        """Encodes a batch, not masked, in both directions.

        Returns float32 [B, L, 2H], where position i holds the left tower's
        vector of i - 1 and the right tower's of i + 1, and both towers'
        outputs. The shift is a rotation, as in the original: the first position
        sees the last and the other way round, both outside the loss.
        """
        inputs = (input_ids, input_mask, segment_ids, seeds)
        ltr, rtl = self.ltr(*inputs), self.rtl(*inputs)
        left = tf.roll(ltr.sequence_output, 1, axis=1)
        right = tf.roll(rtl.sequence_output, -1, axis=1)
        return tf.concat([left, right], -1), ltr, rtl


# The heads of pre-training.


class MaskedLMHead(ScopedLayer):
    """Vectors to vocabulary logits through a tied embedding table.

    Source: google-research/electra, run_pretraining.py, get_token_logits.
    """

    def __init__(
        self,
        scope: str,
        config: EncoderConfig,
        in_width: int,
        embedding_width: int,
        seed: int = 0,
    ) -> None:
        super().__init__(scope, seed)
        self.config = config
        self.embedding_width = embedding_width
        how = (config.hidden_act, config.initializer_range, seed)
        self.dense = Dense(f"{scope}/dense", in_width, embedding_width, *how)
        self.layer_norm = LayerNorm(
            scope, embedding_width, seed, config.layer_norm_eps
        )
        self.output_bias = self.scoped_weight(
            "output_bias", [config.vocab_size], "zeros"
        )

    def call(self, vectors: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
        """Scores every word of the vocabulary for every vector.

        From vectors, float32 [B, N or L, in_width], and the token embeddings,
        float32 [V, E], to logits, float32 [B, N or L, V].
        """
        hidden = self.layer_norm(self.dense(vectors))
        flat = tf.reshape(hidden, [-1, self.embedding_width])
        logits = tf.matmul(flat, table, transpose_b=True)
        logits = tf.nn.bias_add(logits, self.output_bias)
        count = tf.shape(vectors)[1]
        return tf.reshape(logits, [-1, count, self.config.vocab_size])


class DiscriminatorHead(ScopedLayer):
    """One logit a token: was it replaced?

    Source: google-research/electra, run_pretraining.py,
    _get_discriminator_output.
    """

    def __init__(
        self, scope: str, config: EncoderConfig, seed: int = 0
    ) -> None:
        super().__init__(scope, seed)
        hidden = config.hidden_size
        how = (config.hidden_act, config.initializer_range, seed)
        self.dense = Dense(f"{scope}/dense", hidden, hidden, *how)
        self.dense_1 = Dense(f"{scope}/dense_1", hidden, 1, seed=seed)

    def call(self, sequence_output: tf.Tensor) -> tf.Tensor:
        """Maps float32 [B, L, H] to float32 [B, L] logits."""
        return tf.squeeze(self.dense_1(self.dense(sequence_output)), -1)
