# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""ELECTRA as one model: mask, generate, corrupt, discriminate, add losses."""

import functools
import inspect
import types
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from configure.errors import UserError
from configure.generator import GeneratorKind, generator_kind
from electra_tf.checkpoints.contents import CORRECTION_HEAD
from electra_tf.checkpoints.weights import ModelWeights
from electra_tf.modeling.embeddings import DisentangledEmbeddings, Embeddings
from electra_tf.modeling.encoder import Encoder, EncoderOutput
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.heads import DiscriminatorHead, MaskedLMHead
from electra_tf.modeling.layers import Dense, SeedStream, inference
from electra_tf.modeling.precision import LossScale
from electra_tf.modeling.two_towers import TwoTowerClozeTransformer
from electra_tf.optimization.optimizer import AdamWeightDecay
from electra_tf.plan.networks import check_equal_sizes
from electra_tf.pretraining import (
    keras_inputs,
    losses,
    masking,
    objectives,
    schedules,
    unigram,
)
from electra_tf.pretraining.keras_inputs import INPUTS, Features
from electra_tf.text.vocabulary import check_vocab, require_wordpiece
from electra_tf.training.loop import TOKENS, draws_seed
from electra_tf.training.replicas import (
    BatchRows,
    creation_scope,
    replica_seed,
    sum_over_replicas,
)

Outputs = dict[str, tf.Tensor]


def _sampling_noise(slots: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Uniform numbers for slots [B, N], [B, N, 2]."""
    seed = SeedStream(seed).seed("sampled_tokens")
    return tf.random.stateless_uniform([*tf.unstack(tf.shape(slots)), 2], seed)


UNIGRAM_SHARE = "unigram_share"
LOSSES = ("mlm_loss", "cloze_loss", "disc_loss", "token_loss", "policy_loss")


def step_values(
    features: dict[str, tf.Tensor], outputs: dict[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Scalars of a training step besides its total loss."""
    names = (*LOSSES, *schedules.REWARDS)
    values = {name: outputs[name] for name in names if name in outputs}
    mask = features["input_mask"]
    values[TOKENS] = tf.cast(tf.reduce_sum(mask), tf.float32)
    if "fake_is_fake_tokens" in outputs:
        replaced = tf.reduce_sum(outputs["fake_is_fake_tokens"] * mask)
        values["replaced_tokens"] = tf.cast(replaced, tf.float32)
    return values


def logged_losses(values: Collection[str]) -> dict[str, str]:
    """What logs call the losses among a step's values: name there -> here.

    `gen_loss` is what the generator is trained with: the cloze loss of two
    towers, that of policy gradients if adversarial, else the masked-LM loss.
    """
    names = {"loss": "total_loss", "gen_loss": "mlm_loss"}
    for name, more in (("cloze_loss", ()), ("policy_loss", schedules.REWARDS)):
        if name in values:
            names["gen_loss"] = name
            names |= {n: n for n in ("mlm_loss", *more)}
    return names | {n: n for n in ("disc_loss", "token_loss") if n in values}


class PretrainingModel(tf_keras.Model):
    """Generator and discriminator with their joint loss.

    All variables exist after the constructor, under the original's names.

    Source: google-research/electra, run_pretraining.py, PretrainingModel.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(name="pretraining")
        self.config = config
        self.kind = generator_kind(config)
        # Whether it says of tokens that they were replaced.
        self.discriminates = config.has_discriminator_head
        # Of a unigram generator, or of a mixture with one: int64 [V]. Without
        # them it draws uniformly, and must not be trained with.
        self.token_counts: np.ndarray | None = None
        self.encoder_config = EncoderConfig.of(config)
        vocab_size = self.encoder_config.vocab_size
        if config.whole_word_mask:
            require_wordpiece(config.vocab_file, "hparam whole_word_mask")
        self.vocab = check_vocab(config.vocab_file, vocab_size)
        self.special = masking.SpecialTokens.of(self.vocab, vocab_size)
        self.masking_rule = masking.MaskingRule(
            config.mask_prob,
            config.max_predictions_per_seq,
            config.mask_replace_prob,
            config.mask_without_replacement,
            config.whole_word_mask,
        )
        check_equal_sizes(config)
        self._build_parts()
        self.built = True
        self._loop: Any = None  # that of `compile`
        self._means: Mapping[str, tf_keras.metrics.Mean] = {}

    def _build_parts(self) -> None:
        config, encoder = self.config, self.encoder_config
        width = config.embedding_size or encoder.hidden_size
        seed = config.seed
        head = (encoder, encoder.hidden_size, width, seed)
        self.embeddings = None
        if config.has_two_networks or self.kind is GeneratorKind.FULL:
            kind = DisentangledEmbeddings if config.has_delta else Embeddings
            self.embeddings = kind("electra/embeddings", encoder, width, seed)
        self.generator = self.masked_lm_head = None
        self.discriminator = self.discriminator_head = self.token_head = None
        if self.kind is GeneratorKind.FULL:
            self.generator = Encoder(
                "electra", encoder, self.embeddings, seed=seed
            )
            self.masked_lm_head = MaskedLMHead("generator_predictions", *head)
        elif not self.kind.is_fixed:
            self._build_small_generator(encoder, seed)
        if config.has_two_networks:
            shared = self.kind is GeneratorKind.FULL
            self.discriminator = (
                self.generator
                if shared
                else Encoder("electra", encoder, self.embeddings, seed=seed)
            )
        if self.discriminates:
            self.discriminator_head = DiscriminatorHead(
                "discriminator_predictions", encoder, seed
            )
        if config.predicts_tokens:
            self.token_head = MaskedLMHead("token_predictions", *head)
        elif config.corrects:
            self.token_head = MaskedLMHead(CORRECTION_HEAD, *head)
        self.reward_baseline = None
        if config.training_schedule == "adversarial":
            width = self.generator.config.hidden_size
            self.reward_baseline = Dense(
                "reward_baseline", width, 1, stddev=0.02, seed=seed
            )

    def _build_small_generator(self, encoder: EncoderConfig, seed: int) -> None:
        config = self.config
        sizes = encoder.scaled(
            config.generator_hidden_size, config.generator_layers
        )

        def embeddings(scope: str) -> Embeddings:
            scope, both = f"{scope}/embeddings", self.embeddings
            if config.has_delta:
                return both.shared
            if config.embedding_sharing == "none":
                return Embeddings(scope, sizes, sizes.hidden_size, seed)
            if config.embedding_sharing == "token":
                table = both.word_embeddings
                return Embeddings(scope, sizes, both.width, seed, table)
            return both

        if self.kind is GeneratorKind.TWO_TOWER:
            self.generator = TwoTowerClozeTransformer(
                "generator",
                sizes,
                embeddings("generator_ltr"),
                embeddings("generator_rtl"),
                seed,
            )
            table_width = self.generator.ltr.embeddings.width
            head = ("cloze_predictions", encoder, 2 * sizes.hidden_size)
        else:
            self.generator = Encoder(
                "generator", sizes, embeddings("generator"), seed=seed
            )
            table_width = self.generator.embeddings.width
            head = ("generator_predictions", encoder, sizes.hidden_size)
        self.masked_lm_head = MaskedLMHead(*head, table_width, seed)

    def compute(
        self,
        features: Features,
        masked_inputs: Features | None = None,
        sampled_token_ids: tf.Tensor | None = None,
        training: bool = False,
        seed: tf.Tensor | None = None,
        weight_totals: Mapping[str, tf.Tensor] | None = None,
        stage: int | None = None,
        batch_rows: BatchRows | None = None,
        unigram_share: tf.Tensor | None = None,
    ) -> Outputs:
        """Runs the whole of Figure 2 on a batch.

        Args:
          features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`,
            not masked.
          sampled_token_ids: int32 [B, N], used instead of sampling.
          seed: int32 [2], such as the run's seed and the step; every draw of
            the call is a function of it. None means (config.seed, 0).
          stage: of two (see `schedules`): in the first no discriminator is
            run, in the second its loss is all; None for both networks.
          batch_rows: where these rows are in a larger batch, whose draws they
            take part in; None: they are all.
          unigram_share: float32 scalar in [0, 1], the share of replacements
            drawn by token counts (see `masking.mixture_logits`); None: the
            generator alone draws.

        Returns:
          Tensors by name. Always: `mlm_logits` [B, N, V], `mlm_loss`,
          `mlm_per_token_loss` [B, N], `mlm_preds` [B, N], the masked inputs
          (`masked_input_ids` [B, L], `masked_lm_positions`,
          `masked_lm_ids`, `masked_lm_weights` [B, N]), `total_loss`. With
          two towers: `cloze_logits` [B, L, V], `cloze_loss`,
          `cloze_per_token_loss`, `cloze_weights` and `cloze_preds`
          [B, L]. With a second network: `sampled_tokids` [B, N],
          `fake_input_ids` and `fake_is_fake_tokens` [B, L]. With a
          discriminator's head: `disc_logits` (for Electric with its offset),
          `disc_probs`, `disc_preds` [B, L]; with its loss: `disc_loss`,
          `disc_per_example_loss` [B]. With a second masked LM: `token_loss`,
          `token_logits` [B, N or L, V] and, without the last axis,
          `token_per_token_loss`, `token_preds`, `token_inputs`,
          `token_targets` and `token_weights`. Adversarial: what
          `schedules.adversarial_losses` returns. Layer outputs:
          `generator_layers` and `discriminator_layers`, [layers, B, L, H],
          the former a list of two for two towers. Losses are in nats.
        """
        if seed is None:
            seed = tf.constant([self.config.seed, 0], tf.int32)
        seeds = SeedStream(seed)
        dropout = seeds.child("dropout") if training else None
        if masked_inputs is None:
            masked_inputs = masking.mask_inputs(
                features, self.special, self.masking_rule, seeds
            )
        masked_inputs = {
            name: tf.convert_to_tensor(value)
            for name, value in masked_inputs.items()
        }
        outputs: Outputs = {
            "masked_input_ids": masked_inputs["input_ids"],
            **{n: v for n, v in masked_inputs.items() if n != "input_ids"},
        }
        totals = weight_totals or {}
        outputs |= self._generate(features, masked_inputs, dropout, totals)
        generator_loss = outputs.get("cloze_loss", outputs["mlm_loss"])
        outputs["total_loss"] = self.config.gen_weight * generator_loss
        if self.config.has_two_networks and stage != schedules.GENERATOR:
            if sampled_token_ids is None:
                logits = self.sampling_logits(
                    outputs["mlm_logits"],
                    masked_inputs["masked_lm_ids"],
                    unigram_share,
                )
                rows = batch_rows or BatchRows(seed, None, None)
                sampled_token_ids = masking.sample_from_softmax(
                    logits,
                    rows.draw(_sampling_noise, masked_inputs["masked_lm_ids"]),
                )
            sampled = tf.convert_to_tensor(sampled_token_ids)
            outputs |= objectives.learn_from_replacements(
                self, features, outputs, sampled, dropout, totals
            )
            if self.reward_baseline is not None:
                outputs |= schedules.adversarial_losses(
                    self, outputs, totals, unigram_share
                )
                loss = outputs["policy_loss"] + outputs["baseline_loss"]
                outputs["total_loss"] = self.config.gen_weight * loss
            if stage == schedules.DISCRIMINATOR:
                outputs["total_loss"] = 0.0
            learned = "token" if self.config.predicts_tokens else "disc"
            outputs["total_loss"] += (
                self.config.disc_weight * outputs[f"{learned}_loss"]
            )
            if self.config.corrects:
                outputs["total_loss"] += (
                    self.config.correction_weight * outputs["token_loss"]
                )
        return outputs

    def scheduled(self, completed_updates: tf.Tensor) -> Outputs:
        """Returns arguments of `compute` that depend on the step alone."""
        config = self.config
        if not config.mixes_token_counts:
            return {}
        return {
            UNIGRAM_SHARE: masking.unigram_share(
                completed_updates, config.unigram_steps, config.unigram_floor
            )
        }

    def prepare_rows(
        self, features: Features, batch: BatchRows
    ) -> tuple[dict[str, Features], dict[str, Features]]:
        """Draws masks and adds up weights before a batch is cut up."""

        def mask(rows: Features, seed: tf.Tensor) -> Features:
            return masking.mask_inputs(
                rows, self.special, self.masking_rule, SeedStream(seed)
            )

        masked = batch.draw(mask, {name: features[name] for name in INPUTS})
        totals = self.weight_totals(features, masked)
        return {"masked_inputs": masked}, {"weight_totals": totals}

    def weight_totals(self, features: Features, masked: Features) -> Features:
        """What the losses of a batch over all replicas are divided by."""
        weights = {
            "mlm": masked["masked_lm_weights"],
            "cloze": masking.candidates_mask(
                features["input_ids"], features["input_mask"], self.special
            ),
            **objectives.loss_weights(self.config, features, masked),
        }
        return {name: losses.global_sum(w) for name, w in weights.items()}

    def call(self, features: Features, training: bool = False) -> Outputs:
        keras_inputs.check_features(features)
        return self.compute(features, training=training)

    def generator_logits(
        self,
        features: Features,
        positions: tf.Tensor | None = None,
        dropout: SeedStream | None = None,
    ) -> tuple[tf.Tensor, list[EncoderOutput]]:
        """What the generator (or masked LM) expects of int32 [B, L] `features`.

        Float32 [B, N or L, V] logits, at `positions` [B, N] or all of them, and
        the outputs of its encoders.
        """
        inputs = [features[name] for name in INPUTS]
        found = self.generator(
            *inputs, dropout.child("generator") if dropout else None
        )
        if self.kind is GeneratorKind.TWO_TOWER:
            vectors, *encoded = found
            embeddings = self.generator.ltr.embeddings
        else:
            vectors, encoded = found.sequence_output, [found]
            embeddings = self.generator.embeddings
        if positions is not None:
            vectors = tf.gather(vectors, positions, batch_dims=1)
        table = embeddings.word_embeddings
        return self.masked_lm_head(vectors, table), encoded

    def sampling_logits(
        self,
        logits: tf.Tensor,
        true_ids: tf.Tensor,
        unigram_share: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Returns logits of the replacements' distribution, [B, N, V].

        Args:
          logits: float32 [B, N, V], the generator's.
          true_ids: int32 [B, N], which `disallow_correct` rules out.
          unigram_share: float32 scalar, see `compute`.
        """
        counts = None
        if self.token_counts is not None:
            counts = unigram.drawable(self.token_counts, self.vocab)
        disallowed = true_ids if self.config.disallow_correct else None
        if unigram_share is not None:
            if counts is None:
                raise ValueError("A unigram_share needs the model's counts.")
            mix = functools.partial(
                masking.mixture_logits,
                token_shares=counts / counts.sum(),
                share=unigram_share,
            )
            return masking.sampling_logits(
                logits, self.config.temperature, disallowed, mix
            )
        if self.kind is GeneratorKind.UNIGRAM and counts is not None:
            logits = tf.where(counts > 0, logits, -np.inf)
        return masking.sampling_logits(
            logits, self.config.temperature, disallowed
        )

    def token_logits(self, vectors: tf.Tensor) -> tf.Tensor:
        """What the second network's masked LM expects, [B, N or L, V]."""
        return self.token_head(vectors, self.embeddings.word_embeddings)

    # Keras's `fit`. Optimizer, step and means stay out of its sight, so that
    # the model's variables are those of a checkpoint.

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def compile(self, optimizer: Any = None, **settings: Any) -> None:
        """Prepares `fit` to make the updates of a run with this config.

        Args:
          optimizer: an `AdamWeightDecay` of the model's variables; None: the
            config's own, with its schedule.
          **settings: Keras's `run_eagerly`, `steps_per_execution` and
            `jit_compile`. Losses and metrics are the model's.
        """
        from electra_tf.pretraining import build  # it builds this model

        if self.config.training_schedule == "two_stage":
            raise UserError(
                "PretrainingModel.compile: training_schedule 'two_stage'"
                " trains other variables from step two_stage_steps"
                f" ({self.config.two_stage_steps}) on, which fit cannot; use"
                " run_pretraining.py, or another training_schedule."
            )
        known = ("run_eagerly", "steps_per_execution", "jit_compile")
        if unknown := [name for name in settings if name not in known]:
            raise UserError(
                f"PretrainingModel.compile: {unknown[0]} cannot be chosen, the"
                " model has losses and metrics of its own; expected optimizer,"
                f" {', '.join(known)}."
            )
        if not isinstance(optimizer, AdamWeightDecay | None):
            raise UserError(
                f"PretrainingModel.compile: optimizer is {optimizer!r};"
                " expected an AdamWeightDecay of the model's variables, or"
                " none for the config's."
            )
        strategy = self.distribute_strategy
        build.prepare_model(self.config, self)
        with creation_scope(strategy):
            super().compile(**settings)
            self.optimizer = optimizer or build.build_optimizer(
                self.config, self
            )
            self._step = tf.Variable(0, trainable=False, dtype=tf.int64)
            self._loop = build.build_train_loop(
                self.config,
                self,
                self.optimizer,
                iter(()),
                self._step,
                strategy,
                LossScale.of(self.config.mixed_precision),
            )
            names = ("loss", "gen_loss", "mlm_loss", "disc_loss", "token_loss")
            means = (*names, "replaced_share", *schedules.REWARDS)
            found = {name: tf_keras.metrics.Mean(name) for name in means}
            # Keras looks into a dict, and at attributes that it sees set.
            hidden = types.MappingProxyType(found)
            object.__setattr__(self, "_means", hidden)

    def fit(self, *arguments: Any, **settings: Any) -> Any:
        """Train as Keras does.

        Args:
          *arguments, **settings: Keras's own. The features stand alone, in a
            dict of integers [B, L]; no callback may set a learning rate.

        Raises:
          UserError: before the first step, for other features or callbacks.
        """
        given = inspect.signature(super().fit).bind(*arguments, **settings)
        keras_inputs.check_callbacks(given.arguments.get("callbacks"))
        keras_inputs.check_data(given.arguments.get("x"))
        return super().fit(*arguments, **settings)

    def evaluate(self, *arguments: Any, **settings: Any) -> Any:
        """Evaluate as Keras does; see `fit` for the features."""
        given = inspect.signature(super().evaluate).bind(*arguments, **settings)
        keras_inputs.check_data(given.arguments.get("x"))
        return super().evaluate(*arguments, **settings)

    def predict(self, *arguments: Any, **settings: Any) -> Any:
        """Predict as Keras does; see `fit` for the features."""
        given = inspect.signature(super().predict).bind(*arguments, **settings)
        keras_inputs.check_data(given.arguments.get("x"))
        return super().predict(*arguments, **settings)

    @property
    def metrics(self) -> Collection[tf_keras.metrics.Metric]:
        """What Keras resets between epochs; it would save a list."""
        return self._means.values()

    @property
    def global_step(self) -> int:
        return int(self._step)

    @tf.autograph.experimental.do_not_convert
    def train_step(self, data: Any) -> Outputs:
        """Makes one update; the epoch's means so far, and the last rates."""
        values = self._loop.update(keras_inputs.features_of(data))
        names = ("grad_norm", "learning_rate", UNIGRAM_SHARE)
        last = {name: values[name] for name in names if name in values}
        return self._add_means(values) | last

    @tf.autograph.experimental.do_not_convert
    def test_step(self, data: Any) -> Outputs:
        """Evaluates a batch; on one device, with a run's evaluation's draws."""
        features = keras_inputs.features_of(data)
        seed = draws_seed(self.config.seed, -1 - self._test_counter)
        seed = replica_seed(seed)
        with inference():
            outputs = self.compute(features, seed=seed)
        values = {
            "total_loss": outputs["total_loss"],
            **step_values(features, outputs),
        }
        summed = sum_over_replicas(list(values.values()))
        return self._add_means(dict(zip(values, summed, strict=True)))

    def _add_means(self, values: Outputs) -> Outputs:
        """Adds a step to the means; returns them under the logs' names."""
        named = logged_losses(values)
        names = list(named)
        for name, own in named.items():
            self._means[name].update_state(values[own])
        if "replaced_tokens" in values:
            names.append("replaced_share")
            self._means["replaced_share"].update_state(
                values["replaced_tokens"] / values[TOKENS], values[TOKENS]
            )
        return {name: self._means[name].result() for name in names}

    def save_pretrained(self, folder: str) -> str:
        """Writes weights, settings and vocabulary: what all commands read."""
        from electra_tf.pretraining import loading  # it builds this model

        step = self.global_step if self._loop else 0
        weights = ModelWeights(self.variables, step, folder)
        return loading.write_pretrained(weights, folder, self.config)

    def save(self, *_: Any, **__: Any) -> None:
        """Refuses: there is another way for each purpose."""
        raise UserError(
            "PretrainingModel.save: save_pretrained writes a folder that"
            " electra_tf.keras.Encoder.from_pretrained and all commands read;"
            " save_weights writes the weights alone."
        )

    def _generate(
        self,
        features: Features,
        masked: Features,
        dropout: SeedStream | None,
        totals: Features,
    ) -> Outputs:
        """Predicts the chosen positions; returns the mlm_* and cloze_* part."""
        positions = masked["masked_lm_positions"]
        outputs: Outputs = {}
        if self.kind.is_fixed:
            shape = tf.shape(positions)
            size = self.encoder_config.vocab_size
            likely = tf.zeros([size])
            if self.token_counts is not None:
                # A token that does not occur has a finite loss, too.
                counts = np.maximum(self.token_counts, 0.5)
                likely = tf.constant(np.log(counts), tf.float32)
            logits = tf.broadcast_to(likely, [shape[0], shape[1], size])
        elif self.kind is GeneratorKind.TWO_TOWER:
            outputs = self._cloze(features, dropout, totals)
            logits = tf.gather(outputs["cloze_logits"], positions, batch_dims=1)
        else:
            hidden = {**features, "input_ids": masked["input_ids"]}
            logits, (encoded,) = self.generator_logits(
                hidden, positions, dropout
            )
            outputs["generator_layers"] = encoded.all_layers
        ids, weights = masked["masked_lm_ids"], masked["masked_lm_weights"]
        return outputs | objectives.softmax_outputs(
            "mlm", logits, ids, weights, totals
        )

    def _cloze(
        self, features: Features, dropout: SeedStream | None, totals: Features
    ) -> Outputs:
        """Predicts every token from its two-sided context."""
        logits, towers = self.generator_logits(features, dropout=dropout)
        weights = masking.candidates_mask(
            features["input_ids"], features["input_mask"], self.special
        )
        weights = tf.cast(weights, tf.float32)
        outputs = objectives.softmax_outputs(
            "cloze", logits, features["input_ids"], weights, totals
        )
        outputs["cloze_weights"] = weights
        outputs["generator_layers"] = [tower.all_layers for tower in towers]
        return outputs
