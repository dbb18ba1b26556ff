# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Evaluating a model on held-out records, and the files that come of it."""

from typing import Any

import numpy as np
import orbit
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import tf1
from electra_tf.data.input_pipeline import build_dataset
from electra_tf.pretraining import metrics, model_directory, report
from electra_tf.pretraining.build import build_model
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.training import checkpointing, results
from electra_tf.training import strategy as strategies
from electra_tf.training.loop import EvalLoop
from electra_tf.training.progress import Console, Progress


def evaluate_newest(
    config: PretrainingConfig,
    strategy: tf.distribute.Strategy,
    console: Console,
) -> dict[str, Any]:
    """Evaluates the newest checkpoint and writes the results files.

    Args:
      config: says which model and which records.
      strategy: where it runs.
      console: where progress goes.

    Returns:
      The metrics by name, and `global_step`.

    Raises:
      UserError: there is no checkpoint, or it is of another model.
    """
    try:
        path = tf1.find_checkpoint(config.model_dir)
    except UserError as error:
        raise UserError(
            f"do_eval: there is no checkpoint in {config.model_dir} that could"
            " be evaluated; train the model first (do_train), or correct"
            f" model_name, data_dir or model_dir. ({error})"
        ) from error
    before = checkpointing.read_config(config.model_dir) or {}
    model_directory.check_same_model(before, config.as_dict(), path)
    with strategies.creation_scope(strategy):
        model = build_model(config)
        global_step = orbit.utils.create_global_step()
    report.print_model(console, model)
    checkpointing.restore_model(path, model, global_step)
    step = int(global_step.numpy())
    console.line(f"Evaluating {path} (step {step:,})")
    console.heading("Running evaluation")
    progress = Progress(0, config.num_eval_steps)

    def on_batch(batches: int, loss: float) -> None:
        if batches % 10 == 0 or batches == config.num_eval_steps:
            console.line(progress.line(batches, {"loss": f"{loss:.4f}"}))

    evaluator = build_evaluator(config, model, strategy, on_batch=on_batch)
    result = evaluator.evaluate(tf.constant(config.num_eval_steps))
    if strategies.is_chief(strategy):
        write_results(config, result, step, console)
    return {**result, "global_step": step}


def build_evaluator(
    config: PretrainingConfig,
    model: PretrainingModel,
    strategy: tf.distribute.Strategy,
    **hooks: Any,
) -> EvalLoop:
    """The evaluation of a model on the held-out records.

    Args:
      config: says which records, how many batches, and the seed.
      model: what is evaluated, with the weights it has at that time.
      strategy: where it runs.
      **hooks: further arguments of `EvalLoop`.

    Returns:
      The loop; each call of its `evaluate` reads and masks the same.
    """
    counts: list[np.ndarray] = []

    def create_metrics() -> metrics.PretrainingMetrics:
        if not counts:  # Once; only when an evaluation really comes.
            counts.append(_corpus_counts(config, model))
        return metrics.PretrainingMetrics(
            mask_token_id=model.vocab["[MASK]"],
            disc_weight=config.disc_weight,
            token_counts=counts[0],
        )

    return EvalLoop(
        compute=model.compute,
        create_dataset=lambda: build_dataset(
            config, config.eval_batch_size, training=False
        ),
        seed=config.seed,
        strategy=strategy,
        outputs=metrics.metric_inputs,
        create_metrics=create_metrics,
        jit_compile=config.jit_compile,
        **hooks,
    )


def _corpus_counts(
    config: PretrainingConfig, model: PretrainingModel
) -> np.ndarray | None:
    """How often each token occurs in training examples; None without any."""
    try:
        batches = build_dataset(config, config.train_batch_size, training=True)
    except UserError:
        return None  # Evaluating where only held-out records are.
    return metrics.count_tokens(batches, model.encoder_config.vocab_size)


def write_results(
    config: PretrainingConfig,
    result: dict[str, float],
    step: int,
    console: Console,
) -> None:
    """Prints an evaluation as the original does, and writes its files.

    Args:
      config: names the files.
      result: metrics by name.
      step: updates done by the weights that were evaluated.
      console: where the lines go.
    """
    for text in results.lines({**result, "global_step": step}):
        console.line(f"  {text}")
    replaced = tf.io.gfile.exists(config.results_json)
    results.write_results(
        {**result, "global_step": step},
        txt=config.results_txt,
        pkl=config.results_pkl,
        json_path=config.results_json,
        config=config.as_dict(),
        step=step,
    )
    verb = "Replaced the earlier results in" if replaced else "Wrote"
    console.line(
        f"{verb} {config.results_txt}, {config.results_pkl} and"
        f" {config.results_json}"
    )
