# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""ELECTRA as one model: mask, generate, corrupt, discriminate, sum losses."""

from collections.abc import Mapping
from typing import TypedDict

import tensorflow as tf

from configure.generator import GeneratorKind
from configure.pretraining import PretrainingConfig
from electra_tf.modeling.seeds import SeedStream
from electra_tf.pretraining import losses, masking, sampling
from electra_tf.pretraining.build import prepare_model
from electra_tf.pretraining.keras_model import KerasModel, check_features
from electra_tf.pretraining.logged_values import UNIGRAM_SHARE
from electra_tf.pretraining.networks import INPUTS, Features
from electra_tf.pretraining.objectives import Objective
from electra_tf.pretraining.training_schedules import schedule_of
from electra_tf.pretraining.two_stage import DISCRIMINATOR, GENERATOR
from electra_tf.training.replicas import BatchRows

Outputs = dict[str, tf.Tensor]


class GeneratorOutputs(TypedDict, total=False):
    """Outputs of the generator.

    `cloze_*` are the outputs of two towers, which predict all tokens.
    """

    mlm_logits: tf.Tensor  # float32 [B, N, V]
    mlm_preds: tf.Tensor  # int32 [B, N]
    mlm_per_token_loss: tf.Tensor  # float32 [B, N], nats
    mlm_loss: tf.Tensor  # float32 scalar, nats per token
    cloze_logits: tf.Tensor  # float32 [B, L, V]
    cloze_preds: tf.Tensor  # int32 [B, L]
    cloze_per_token_loss: tf.Tensor  # float32 [B, L], nats
    cloze_weights: tf.Tensor  # float32 [B, L]
    cloze_loss: tf.Tensor  # float32 scalar, nats per token
    # [layers, B, L, H]; for two towers, a list of two tensors.
    generator_layers: tf.Tensor | list[tf.Tensor]


class PretrainingModel(KerasModel):
    """Generator and second network, with the loss of a config's objective.

    Source: google-research/electra, run_pretraining.py, PretrainingModel.
    """

    def __init__(self, config: PretrainingConfig) -> None:
        super().__init__(config)
        self.objective = Objective(
            config.objective_facts,
            config.token_positions,
            config.mask_prob,
            config.disc_weight,
            config.correction_weight,
        )
        self.schedule = schedule_of(
            config.training_schedule,
            config.num_train_steps,
            config.two_stage_steps,
        )

    def compute(  # type: ignore[override] # the base class names no arguments
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
        """Return the outputs and losses of a batch (the paper's Figure 2).

        Args:
          features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`,
            before masking.
          masked_inputs: result of `masking.mask_inputs`; None: masks are drawn.
          sampled_token_ids: int32 [B, N], replacements; None: replacements are
            sampled.
          training: whether dropout is applied.
          seed: int32 [2], such as the run's seed and the step, which determines
            all draws of the call. None: (config.seed, 0).
          weight_totals: float32 scalars, result of `weight_totals` for the
            batch of these rows; None: the rows are the whole batch.
          stage: stage of the schedule `two_stage`: in the first stage the
            discriminator does not run, and in the second stage the loss is the
            discriminator's. None: both networks run, with both losses.
          batch_rows: indices of these rows in a larger batch, for which
            replacements are drawn at once; None: the rows are the whole batch.
          unigram_share: float32 scalar in [0, 1], share of replacements drawn
            by token counts (see `sampling.mixture_logits`); None: the generator
            draws all replacements.

        Returns:
          Tensors by name: `masked_input_ids` [B, L], `masked_lm_positions`,
          `masked_lm_ids` and `masked_lm_weights` [B, N], the scalar
          `total_loss`, and the tensors of `GeneratorOutputs`,
          `objectives.SecondNetworkOutputs` and `adversarial.AdversarialOutputs`
          that the config requires.
        """
        if seed is None:
            seed = tf.constant([self.config.seed, 0], tf.int32)
        seeds = SeedStream(seed)
        dropout = seeds.child("dropout") if training else None
        if masked_inputs is None:
            masked_inputs = self._mask(features, seeds)
        masked = {n: tf.convert_to_tensor(v) for n, v in masked_inputs.items()}
        outputs: Outputs = {
            "masked_input_ids": masked["input_ids"],
            "masked_lm_positions": masked["masked_lm_positions"],
            "masked_lm_ids": masked["masked_lm_ids"],
            "masked_lm_weights": masked["masked_lm_weights"],
        }
        totals = weight_totals or {}
        outputs |= self._generate(features, masked, dropout, totals)
        if self.config.has_two_networks and stage != GENERATOR:
            if sampled_token_ids is None:
                rows = batch_rows or BatchRows(seed, None, None)
                sampled_token_ids = self._sample(outputs, rows, unigram_share)
            outputs |= self.objective.outputs(
                self,
                features,
                outputs,
                tf.convert_to_tensor(sampled_token_ids),
                dropout,
                totals,
            )
            adversarial = self.schedule.adversarial_outputs(
                self, outputs, totals, unigram_share
            )
            outputs |= adversarial or {}
        outputs["total_loss"] = self._total_loss(outputs, stage)
        return outputs

    def scheduled(self, completed_updates: tf.Tensor) -> Outputs:
        """Return the arguments of `compute` that depend only on the step.

        Args:
          completed_updates: int64 scalar.
        """
        config = self.config
        if not config.mixes_token_counts:
            return {}
        share = sampling.unigram_share(
            completed_updates, config.unigram_steps, config.unigram_floor
        )
        return {UNIGRAM_SHARE: share}

    def prepare_rows(
        self, features: Features, batch: BatchRows
    ) -> tuple[dict[str, Features], dict[str, Features]]:
        """Draw masks, and sum loss weights, before a batch is split.

        Args:
          features: int32 [B, L], rows of a replica.
          batch: indices of these rows in the whole batch.

        Returns:
          Arguments of `compute`: tensors [B, ...] by row, and tensors that all
          rows share.
        """

        def mask(rows: Features, seed: tf.Tensor) -> Features:
            return self._mask(rows, SeedStream(seed))

        masked = batch.draw(mask, {name: features[name] for name in INPUTS})
        totals = self.weight_totals(features, masked)
        return {"masked_inputs": masked}, {"weight_totals": totals}

    def weight_totals(
        self, features: Features, masked: Features
    ) -> dict[str, tf.Tensor]:
        """Return the sum of each loss's weights over all replicas.

        Args:
          features: int32 [B, L].
          masked: result of `masking.mask_inputs` for the features.
        """
        weights = {
            "mlm": masked["masked_lm_weights"],
            "cloze": self._candidates(features),
            **self.objective.loss_weights(features, masked),
        }
        return {name: losses.global_sum(w) for name, w in weights.items()}

    def call(self, features: Features, training: bool = False) -> Outputs:
        """Return the outputs of `compute`, after checking the features."""
        check_features(features)
        return self.compute(features, training=training)

    def _mask(self, features: Features, seeds: SeedStream) -> Features:
        return masking.mask_inputs(
            features, self.special, self.masking_rule, seeds
        )

    def _candidates(self, features: Features) -> tf.Tensor:
        """Return the positions that can be masked, bool [B, L]."""
        return masking.candidates_mask(
            features["input_ids"], features["input_mask"], self.special
        )

    def _generate(
        self,
        features: Features,
        masked: Features,
        dropout: SeedStream | None,
        totals: Mapping[str, tf.Tensor],
    ) -> GeneratorOutputs:
        """Predict the tokens at the chosen positions."""
        positions = masked["masked_lm_positions"]
        outputs = GeneratorOutputs()
        if self.kind.is_fixed:
            rows, slots = tf.unstack(tf.shape(positions))
            fixed = self.fixed_logits()
            logits = tf.broadcast_to(fixed, [rows, slots, fixed.shape[0]])
        elif self.kind is GeneratorKind.TWO_TOWER:
            outputs = self._predict_every_token(features, dropout, totals)
            logits = tf.gather(outputs["cloze_logits"], positions, batch_dims=1)
        else:
            hidden = {**features, "input_ids": masked["input_ids"]}
            logits, (encoded,) = self.generator_logits(
                hidden, positions, dropout
            )
            outputs["generator_layers"] = encoded.all_layers
        prediction = losses.predict(
            logits,
            masked["masked_lm_ids"],
            masked["masked_lm_weights"],
            totals.get("mlm"),
        )
        outputs["mlm_logits"] = logits
        outputs["mlm_preds"] = prediction.preds
        outputs["mlm_per_token_loss"] = prediction.per_token_loss
        outputs["mlm_loss"] = prediction.loss
        return outputs

    def _predict_every_token(
        self,
        features: Features,
        dropout: SeedStream | None,
        totals: Mapping[str, tf.Tensor],
    ) -> GeneratorOutputs:
        """Predict all tokens from their two-sided contexts, with two towers."""
        logits, towers = self.generator_logits(features, dropout=dropout)
        weights = tf.cast(self._candidates(features), tf.float32)
        prediction = losses.predict(
            logits, features["input_ids"], weights, totals.get("cloze")
        )
        return GeneratorOutputs(
            cloze_logits=logits,
            cloze_preds=prediction.preds,
            cloze_per_token_loss=prediction.per_token_loss,
            cloze_weights=weights,
            cloze_loss=prediction.loss,
            generator_layers=[tower.all_layers for tower in towers],
        )

    def _sample(
        self,
        outputs: Outputs,
        rows: BatchRows,
        unigram_share: tf.Tensor | None,
    ) -> tf.Tensor:
        """Return sampled replacements of the chosen tokens, int32 [B, N]."""
        true_ids = outputs["masked_lm_ids"]
        logits = self.sampling_logits(
            outputs["mlm_logits"], true_ids, unigram_share
        )
        uniform = rows.draw(_sampling_noise, true_ids)
        return sampling.sample_from_softmax(logits, uniform)

    def _total_loss(self, outputs: Outputs, stage: int | None) -> tf.Tensor:
        """Return the weighted sum of the losses of a stage."""
        total: tf.Tensor | float = 0.0
        if stage != DISCRIMINATOR:
            generator_loss = self.schedule.generator_loss(outputs)
            total = self.config.gen_weight * generator_loss
        if self.config.has_two_networks and stage != GENERATOR:
            for loss in self.objective.weighted_losses(outputs):
                total += loss
        return total


def _sampling_noise(slots: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Return uniform random numbers for slots [B, N], float32 [B, N, 2]."""
    seed = SeedStream(seed).seed("sampled_tokens")
    return tf.random.stateless_uniform([*tf.unstack(tf.shape(slots)), 2], seed)


def build_model(config: PretrainingConfig) -> PretrainingModel:
    """Return a model with initial weights, prepared for a run."""
    model = PretrainingModel(config)
    prepare_model(config, model)
    return model
