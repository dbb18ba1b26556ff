# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Evaluation of a pre-training model on held-out data and on an exam.

`find_latest_checkpoint` finds the earlier run that an evaluation evaluates.
"""

import functools
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints import tf1
from electra_tf.checkpoints.hparam_changes import check_same_model
from electra_tf.data.input_pipeline import build_dataset
from electra_tf.metrics.finite_outputs import check_finite
from electra_tf.pretraining import exam as exams
from electra_tf.pretraining import metrics, two_stage, unigram
from electra_tf.pretraining.exam import Exam
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.training.checkpointing import read_config
from electra_tf.training.loop import EvalLoop
from electra_tf.training.threads import count_cores


def find_latest_checkpoint(
    model_dir: str, hparams: Mapping[str, object]
) -> str:
    """Return the path of a run's latest checkpoint, for an evaluation.

    Args:
      model_dir: folder of the evaluated run.
      hparams: hparams of the evaluation.

    Raises:
      UserError: no checkpoint exists, or it belongs to a different model.
    """
    try:
        path = tf1.find_checkpoint(model_dir)
    except UserError as error:
        raise UserError(
            f"do_eval: model_dir {model_dir} contains no checkpoint. Train the"
            " model first (do_train), or correct model_name, data_dir or"
            " model_dir."
            f" ({error})"
        ) from error
    run_settings = read_config(model_dir) or {}
    check_same_model(run_settings, hparams, path)
    return path


class Evaluation:
    """A repeatable evaluation of a model.

    All repetitions use the same random draws.
    """

    def __init__(
        self,
        model: PretrainingModel,
        strategy: tf.distribute.Strategy,
        should_stop: Callable[[], bool],
        warn: Callable[[str], None],
    ) -> None:
        """Prepare the evaluation, and read the exam but no other data.

        Args:
          model: model to evaluate, whose config names the data.
          strategy: strategy of the run.
          should_stop: function that returns whether to stop after a batch; see
            `EvalLoop`.
          warn: function of the text of a warning.

        Raises:
          UserError: the exam does not match the model.
        """
        config = model.config
        self._config, self._model, self._warn = config, model, warn
        self._exam: Exam | None = None
        if config.exam and config.detects_replacements:
            self._exam = Exam.read(config.exam)
            positions = model.encoder_config.max_position_embeddings
            self._exam.check(config.exam, model.vocab, positions)
        # Loops by stage, because the first stage has no discriminator to
        # evaluate.
        self._loops = {
            stage: EvalLoop(
                compute=functools.partial(model.compute, stage=stage),
                seed=config.seed,
                strategy=strategy,
                outputs=metrics.metric_inputs,
                prepare=model.prepare_rows,
                should_stop=should_stop,
                jit_compile=config.jit_compile,
                cores=count_cores(config, strategy),
            )
            for stage in (None, two_stage.GENERATOR, two_stage.DISCRIMINATOR)
        }

    def run(
        self, stage: int | None, on_batch: Callable[[float], None]
    ) -> dict[str, float]:
        """Return the metrics of the model with its current weights.

        Args:
          stage: stage of the training schedule.
          on_batch: function of the loss of each batch, in nats.

        Raises:
          UserError: an output is infinite or NaN.
        """
        config = self._config
        collected = metrics.PretrainingMetrics(
            mask_token_id=self._model.vocab["[MASK]"],
            disc_weight=config.disc_weight,
            token_counts=self._token_counts,
        )

        def add_batch(arrays: dict[str, np.ndarray], loss: float) -> None:
            # The largest of NaN logits is token 0, and NaN is below every
            # threshold, so accuracies would be finite.
            first = collected.examples + 1
            check_finite(arrays, lambda row: f"evaluation, row {first + row}")
            collected.update(arrays, loss)
            on_batch(loss)

        batches = build_dataset(config, config.eval_batch_size, training=False)
        counts = self._loops[stage].run(
            batches, add_batch, config.num_eval_steps
        )
        result = {**collected.result(), **counts}
        if self._exam and stage != two_stage.GENERATOR:
            result |= exams.sit_exam(
                self._discriminator_logits, self._exam, config.eval_batch_size
            )
        return result

    @functools.cached_property
    def _token_counts(self) -> np.ndarray | None:
        """Token counts of some training examples; None if unreadable.

        Only a baseline depends on the counts, and an evaluation may have no
        training data, or may read other lengths.
        """
        config = self._config
        vocab_size = self._model.encoder_config.vocab_size
        try:
            batches = build_dataset(config, config.train_batch_size, True)
            return unigram.count_tokens(batches, vocab_size)
        except UserError as error:
            if config.has_discriminator_head and config.disc_weight:
                self._warn(
                    "the baseline disc_auc_frequency_rank is left out, because"
                    " the tokens of the training data cannot be counted:"
                    f" {error}"
                )
            return None

    @functools.cached_property
    def _discriminator_logits(self) -> exams.DiscriminatorLogits:
        return exams.discriminator_logits(self._model)
