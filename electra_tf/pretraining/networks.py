# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers of a pre-training model: generator, second network, heads.

The second network is the discriminator, or a masked LM for objectives that
predict tokens. In both cases its layers are called `discriminator`.
"""

import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from configure.generator import GeneratorKind, generator_kind
from configure.objectives import Positions
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.contents import CORRECTION_HEAD
from electra_tf.modeling.embeddings import DisentangledEmbeddings, Embeddings
from electra_tf.modeling.encoder import Encoder, EncoderOutput
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.heads import DiscriminatorHead, MaskedLMHead
from electra_tf.modeling.layers import Dense
from electra_tf.modeling.seeds import SeedStream
from electra_tf.modeling.two_towers import TwoTowerClozeTransformer
from electra_tf.plan.network_sizes import check_equal_sizes, list_networks
from electra_tf.pretraining import masking, sampling, unigram
from electra_tf.text.vocabulary import check_vocab, require_wordpiece
from electra_tf.training.replicas import BatchRows

INPUTS = ("input_ids", "input_mask", "segment_ids")
Features = dict[str, tf.Tensor]
# Value of a layer that the config does not need. The types of layers do not
# include None, because code that uses a layer is reached only with a config
# that needs the layer.
_ABSENT: Any = None


class Networks(tf_keras.Model):
    """Networks of a pre-training model, and the vocabulary that they share.

    The constructor creates all variables, under the original's names. A layer
    that the config does not need is None.

    Source: google-research/electra, run_pretraining.py, PretrainingModel.
    """

    def __init__(self, config: PretrainingConfig) -> None:
        super().__init__(name="pretraining")
        self.config = config
        self.kind = generator_kind(config)
        # Whether a head classifies tokens as replaced or original.
        self.discriminates = config.has_discriminator_head
        # Token counts by which replacements are drawn, int64 [V]. A unigram
        # generator without counts draws uniformly, and must not be used in
        # training.
        self.token_counts: np.ndarray | None = None
        self.encoder_config = EncoderConfig.of(config)
        vocab_size = self.encoder_config.vocab_size
        if config.whole_word_mask:
            require_wordpiece(config.vocab_file, "hparam whole_word_mask")
        self.vocab = check_vocab(config.vocab_file, vocab_size)
        self.special = masking.SpecialTokens.of(self.vocab, vocab_size)
        self.masking_rule = masking.MaskingRule.of(config)
        if config.training_schedule == "two_stage":
            check_equal_sizes(list_networks(config))
        self._build_embeddings()
        self._build_generator()
        self._build_second_network()
        self._build_reward_baseline()
        self.built = True

    # The constructor calls the following methods in a fixed order, because the
    # order of the variables determines how the gradients' norm is rounded.

    def _build_embeddings(self) -> None:
        config, encoder = self.config, self.encoder_config
        self.embeddings: Embeddings = _ABSENT
        if config.has_two_networks or self.kind is GeneratorKind.FULL:
            make = DisentangledEmbeddings if config.has_delta else Embeddings
            self.embeddings = make(
                "electra/embeddings", encoder, self._table_width, config.seed
            )

    @property
    def _table_width(self) -> int:
        """Width of the discriminator's token table."""
        return self.config.embedding_size or self.encoder_config.hidden_size

    def _build_generator(self) -> None:
        config, encoder = self.config, self.encoder_config
        self.generator: Encoder | TwoTowerClozeTransformer = _ABSENT
        self.masked_lm_head: MaskedLMHead = _ABSENT
        if self.kind.is_fixed:
            return
        if self.kind is GeneratorKind.FULL:
            self.generator = Encoder(
                "electra", encoder, self.embeddings, seed=config.seed
            )
            self.masked_lm_head = MaskedLMHead(
                "generator_predictions",
                encoder,
                encoder.hidden_size,
                self._table_width,
                config.seed,
            )
            return
        sizes = encoder.scaled(
            config.generator_hidden_size, config.generator_layers
        )
        if self.kind is GeneratorKind.TWO_TOWER:
            self.generator = TwoTowerClozeTransformer(
                "generator",
                sizes,
                self._generator_embeddings("generator_ltr", sizes),
                self._generator_embeddings("generator_rtl", sizes),
                config.seed,
            )
            head_scope, width = "cloze_predictions", 2 * sizes.hidden_size
        else:
            self.generator = Encoder(
                "generator",
                sizes,
                self._generator_embeddings("generator", sizes),
                seed=config.seed,
            )
            head_scope, width = "generator_predictions", sizes.hidden_size
        self.masked_lm_head = MaskedLMHead(
            head_scope,
            encoder,
            width,
            self._generator_tables.width,
            config.seed,
        )

    def _generator_embeddings(
        self, scope: str, sizes: EncoderConfig
    ) -> Embeddings:
        """Return the embeddings of a small generator or of a tower.

        Args:
          scope: scope of the network.
          sizes: sizes of the network.
        """
        config, shared = self.config, self.embeddings
        scope = f"{scope}/embeddings"
        if config.has_delta:
            return shared.shared
        if config.embedding_sharing == "none":
            return Embeddings(scope, sizes, sizes.hidden_size, config.seed)
        if config.embedding_sharing == "token":
            table = shared.word_embeddings
            return Embeddings(scope, sizes, shared.width, config.seed, table)
        return shared

    @property
    def _generator_tables(self) -> Embeddings:
        """Embeddings whose token table the generator's head shares."""
        if self.kind is GeneratorKind.TWO_TOWER:
            return self.generator.ltr.embeddings
        return self.generator.embeddings

    def _build_second_network(self) -> None:
        config, encoder = self.config, self.encoder_config
        self.discriminator: Encoder = _ABSENT
        self.discriminator_head: DiscriminatorHead = _ABSENT
        self.token_head: MaskedLMHead = _ABSENT
        if config.has_two_networks and self.kind is GeneratorKind.FULL:
            self.discriminator = self.generator
        elif config.has_two_networks:
            self.discriminator = Encoder(
                "electra", encoder, self.embeddings, seed=config.seed
            )
        if self.discriminates:
            self.discriminator_head = DiscriminatorHead(
                "discriminator_predictions", encoder, config.seed
            )
        if config.token_positions is not Positions.NONE:
            self.token_head = MaskedLMHead(
                CORRECTION_HEAD if config.corrects else "token_predictions",
                encoder,
                encoder.hidden_size,
                self._table_width,
                config.seed,
            )

    def _build_reward_baseline(self) -> None:
        self.reward_baseline: Dense = _ABSENT
        if self.config.training_schedule == "adversarial":
            self.reward_baseline = Dense(
                "reward_baseline",
                self.generator.sizes.hidden_size,
                1,
                stddev=0.02,
                seed=self.config.seed,
            )

    def generator_logits(
        self,
        features: Features,
        positions: tf.Tensor | None = None,
        dropout: SeedStream | None = None,
    ) -> tuple[tf.Tensor, list[EncoderOutput]]:
        """Run the generator (or the masked LM).

        Args:
          features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.
          positions: int32 [B, N], positions of predictions; None: all
            positions.
          dropout: seeds of all networks' dropout; None: no dropout.

        Returns:
          Logits, float32 [B, N or L, V], and the outputs of the encoder, or of
          the left and the right tower.
        """
        inputs = [features[name] for name in INPUTS]
        outputs = self.generator(
            *inputs, dropout.child("generator") if dropout else None
        )
        if self.kind is GeneratorKind.TWO_TOWER:
            vectors, *encoded = outputs
        else:
            vectors, encoded = outputs.sequence_output, [outputs]
        if positions is not None:
            vectors = tf.gather(vectors, positions, batch_dims=1)
        table = self._generator_tables.word_embeddings
        return self.masked_lm_head(vectors, table), encoded

    def fixed_logits(self) -> tf.Tensor:
        """Return the logits of a generator without variables, float32 [V]."""
        if self.token_counts is None:
            return tf.zeros([self.encoder_config.vocab_size])
        # The loss of a token that never occurs must be finite, too.
        counts = np.maximum(self.token_counts, 0.5)
        return tf.constant(np.log(counts), tf.float32)

    def sampling_logits(
        self,
        logits: tf.Tensor,
        true_ids: tf.Tensor,
        unigram_share: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Return the logits of the replacements' distribution, [B, N, V].

        Args:
          logits: float32 [B, N, V], logits of the generator.
          true_ids: int32 [B, N], ids that are never sampled with
            `disallow_correct`.
          unigram_share: float32 scalar; see `PretrainingModel.compute`.

        Raises:
          ValueError: a share is set, but the model has no token counts.
        """
        temperature = self.config.temperature
        disallowed = true_ids if self.config.disallow_correct else None
        counts = None
        if self.token_counts is not None:
            counts = unigram.drawable(self.token_counts, self.vocab)
        if unigram_share is not None:
            if counts is None:
                raise ValueError(
                    "unigram_share is set, but the model has no token counts."
                    " Set the model's attribute token_counts"
                )
            mix = functools.partial(
                sampling.mixture_logits,
                token_shares=counts / counts.sum(),
                share=unigram_share,
            )
            return sampling.sampling_logits(
                logits, temperature, disallowed, mix
            )
        if self.kind is GeneratorKind.UNIGRAM and counts is not None:
            logits = tf.where(counts > 0, logits, -np.inf)
        return sampling.sampling_logits(logits, temperature, disallowed)

    def encode_second(
        self,
        input_ids: tf.Tensor,
        features: Features,
        dropout: SeedStream | None,
    ) -> EncoderOutput:
        """Run the second network's encoder on corrupted ids, int32 [B, L].

        Args:
          input_ids: int32 [B, L], after replacement.
          features: `input_mask` and `segment_ids`, int32 [B, L].
          dropout: seeds of all networks' dropout; None: no dropout.
        """
        return self.discriminator(
            input_ids,
            features["input_mask"],
            features["segment_ids"],
            dropout.child("discriminator") if dropout else None,
        )

    def token_logits(self, vectors: tf.Tensor) -> tf.Tensor:
        """Run the second network's token head.

        Args:
          vectors: float32 [B, N or L, H].

        Returns:
          Logits, float32 [B, N or L, V].
        """
        return self.token_head(vectors, self.embeddings.word_embeddings)

    # A training loop calls the following methods, which `PretrainingModel`
    # defines.

    def compute(
        self, features: Features, **arguments: object
    ) -> dict[str, tf.Tensor]:
        """Return the outputs and losses of a batch."""
        raise NotImplementedError

    def scheduled(self, completed_updates: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the arguments of `compute` that depend only on the step."""
        raise NotImplementedError

    def prepare_rows(
        self, features: Features, batch: BatchRows
    ) -> tuple[dict[str, Features], dict[str, Features]]:
        """Return arguments of `compute`, computed before a batch is split."""
        raise NotImplementedError
