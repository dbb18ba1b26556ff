# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains or evaluates a model from a resolved configuration."""

import os
from typing import Any

import orbit
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import electra_config, hparams_check
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.hparams_check import MODEL_HPARAMS
from electra_tf.checkpoints.restore import assign
from electra_tf.data.input_pipeline import build_dataset, check_records
from electra_tf.pretraining import (
    evaluation,
    metrics,
    model_directory,
    parts_export,
    report,
)
from electra_tf.pretraining.build import (
    build_model,
    build_optimizer,
    build_train_loop,
)
from electra_tf.training import best, checkpointing, curves, summaries
from electra_tf.training import strategy as strategies
from electra_tf.training.interruption import Interruption
from electra_tf.training.interval import Interval
from electra_tf.training.loss_scale import LossScale
from electra_tf.training.progress import Console
from electra_tf.training.session import (
    Reporting,
    Schedule,
    TrainingSession,
    under_train,
)


def run(
    config: PretrainingConfig, console: Console | None = None
) -> dict[str, Any]:
    """Trains (continuing where it stopped) or evaluates the newest checkpoint.

    Args:
      config: with exactly one of `do_train` and `do_eval`.
      console: where progress goes; standard output by default.

    Returns:
      The last evaluation's metrics by name, the last training row under
      `train_<name>`, and `global_step`; `interrupted`, the signal's number,
      is there when the run was asked to stop early.

    Raises:
      UserError: for anything the user can put right; nothing has been removed
        or written when it concerns the settings, records or devices.

    Source: google-research/electra, run_pretraining.py, train_or_eval.
    Differs: continues, evaluates while training, writes the results files;
    `debug` does not delete the model directory unless `overwrite` is set.
    """
    config.check_mode()
    strategies.use_threads(config.threads)  # Before TensorFlow starts.
    console = console or Console()
    check_records(config, training=config.do_train)
    if config.do_train and config.eval_every_n_steps:
        check_records(config, training=False)
    name = config.distribution_strategy
    strategy = strategies.create_strategy(
        "tpu" if name == "auto" and config.use_tpu else name,
        require_gpu=config.require_gpu,
        tpu_name=config.tpu_name,
        tpu_zone=config.tpu_zone,
        gcp_project=config.gcp_project,
        tpu_job_name=config.tpu_job_name,
    )
    strategies.check_jit_compile(strategy, config.jit_compile)
    if config.do_train:
        strategies.check_parts(
            strategy,
            config.train_batch_size,
            config.gradient_accumulation_steps,
        )
    report.print_start(console, config, strategy)
    if config.do_eval:
        return evaluation.evaluate_newest(config, strategy, console)
    with Interruption() as interruption:
        return _Training(config, strategy, console, interruption).run()


class _Training:
    """The parts of one training run, put together."""

    def __init__(
        self,
        config: PretrainingConfig,
        strategy: tf.distribute.Strategy,
        console: Console,
        interruption: Interruption,
    ) -> None:
        self._config = config
        self._strategy = strategy
        self._console = console
        self._interruption = interruption
        self._directory = config.model_dir
        # Workers other than the chief keep their copies out of its way.
        self._output = self._directory
        if not strategies.is_chief(strategy):
            self._output = model_directory.worker_directory(config.model_dir)
        self._schedule = Schedule(
            total_steps=config.num_train_steps,
            log_every=config.log_every_n_steps,
            save_every=config.save_checkpoints_steps,
            eval_every=config.eval_every_n_steps,
            eval_steps=config.num_eval_steps,
            most_per_chunk=config.iterations_per_loop,
        )

    def run(self) -> dict[str, Any]:
        """Builds, restores, trains."""
        config, console = self._config, self._console
        self._build()
        # Not before: settings that make no model must not cost the old one.
        model_directory.prepare(self._output, config.overwrite, console)
        self._open_checkpoints()
        step = self._restore()
        checkpointing.write_config(self._output, config.to_json())
        electra_config.write_electra_config(self._output, config.as_dict())
        self._open_logs(step)
        report.print_epochs(console, config)
        evaluation_due = self._schedule.evaluates_at(step) and not any(
            row["step"] == step for row in self._eval_log.rows
        )
        if step >= config.num_train_steps:
            self._say_finished(step)
            if not evaluation_due:
                return self._last_results(step)
        console.heading("Running training")
        result = self._session().run(evaluate_first=evaluation_due)
        if "interrupted" in result:
            self._say_interrupted()
        else:
            self._draw()
            self._export()
        return {**result, "global_step": int(self._step.numpy())}

    def _export(self) -> None:
        """Writes the two networks apart at the end of a run."""
        if not self._config.export_at_end:
            return
        if not strategies.is_chief(self._strategy):
            return
        for prefix in parts_export.export_parts(
            self._config, self._model, int(self._step.numpy()), self._output
        ):
            self._console.line(f"Wrote {prefix} (weights only)")

    def _build(self) -> None:
        config = self._config
        with strategies.creation_scope(self._strategy):
            self._model = build_model(config)
            self._optimizer = build_optimizer(config, self._model)
            self._step = orbit.utils.create_global_step()
            self._loss_scale = LossScale.of(config.mixed_precision)
        report.print_model(self._console, self._model)
        dataset = build_dataset(config, config.train_batch_size, training=True)
        with tf.device("/cpu:0"):
            self._iterator = iter(dataset)
        self._interval = Interval()

    def _open_checkpoints(self) -> None:
        self._checkpoints = checkpointing.Checkpoints(
            self._directory,
            model=self._model,
            optimizer=self._optimizer,
            step=self._step,
            position={"iterator": self._iterator, "interval": self._interval},
            keep=self._config.keep_checkpoint_max,
            keep_every=self._config.keep_every_n_steps,
            write_directory=self._output,
            extras={"loss_scale": self._loss_scale} if self._loss_scale else {},
        )

    def _restore(self) -> int:
        """Loads the newest checkpoint, if any; returns the step."""
        path = self._checkpoints.latest
        if path is None:
            self._warn_of_stray_checkpoints()
            if self._config.init_checkpoint:
                self._load_initial_weights()
            return 0
        before = checkpointing.read_config(self._directory) or {}
        now = self._config.as_dict()
        model_directory.check_same_model(before, now, path)
        moved = checkpointing.changed(before, now, model_directory.DATA_HPARAMS)
        positioned = self._checkpoints.restore(path, with_position=not moved)
        step = int(self._step.numpy())
        self._console.line(f"Continuing from {path} (step {step:,})")
        if self._config.init_checkpoint:
            self._console.line(
                f"  init_checkpoint {self._config.init_checkpoint} is not read"
                " again"
            )
        if not (moved or positioned):
            self._console.warning(
                "the checkpoint holds no data position; the records are read"
                " from their start"
            )
        if moved:
            self._console.warning(
                "the records are read from their start again, because these"
                f" settings changed: {'; '.join(moved)}"
            )
        told = {
            *MODEL_HPARAMS,
            *model_directory.DATA_HPARAMS,
            "overwrite",
            "do_train",
        }
        others = tuple(name for name in now if name not in told)
        for text in checkpointing.changed(before, now, others):
            self._console.line(f"  changed since then: {text}")
        return step

    def _load_initial_weights(self) -> None:
        """Takes the weights of another run; steps and warm-up start at 0.

        Slots stay behind: kept without the step they belong to, or left at
        zero without a warm-up, they make the first updates too large.
        """
        weights = open_weights(self._config.init_checkpoint)
        report = assign(
            weights,
            self._model.variables,
            allow_missing=self._config.allow_missing,
        )
        self._console.line(f"Starting from the weights of {report}")
        if "electra/encoder/layer_0/output/dense/bias" not in weights.shapes:
            return  # A generator alone: its own heads, not the model's.
        for text in hparams_check.unseen_differences(
            weights.hparams, self._config.as_dict()
        ):
            self._console.warning(
                f"{text}; the weights were trained with the former, so set it"
                " unless the change is meant"
            )

    def _warn_of_stray_checkpoints(self) -> None:
        """Released models come without the file that names the newest."""
        pattern = os.path.join(self._directory, "*.index")
        if found := tf.io.gfile.glob(pattern):
            self._console.warning(
                f"{', '.join(sorted(found)[:3])}: not read, since no file"
                f" `checkpoint` in {self._directory} names the newest one;"
                " training starts from fresh weights."
            )

    def _open_logs(self, step: int) -> None:
        path = self._output
        self._train_log = summaries.JsonLines(
            os.path.join(path, summaries.TRAIN_LOG), step
        )
        self._eval_log = summaries.JsonLines(
            os.path.join(path, summaries.EVAL_LOG), step
        )
        self._train_board = summaries.TensorBoard(path, "train", step)
        self._eval_board = summaries.TensorBoard(path, "eval", step)
        self._collapse = metrics.CollapseWatch(
            self._config.collapse_patience, self._eval_log.rows
        )
        self._best = None
        if self._config.keep_best:
            self._best = best.BestKeeper(
                path, self._config.keep_best, self._checkpoints
            )

    def _session(self) -> TrainingSession:
        config = self._config
        trainer = build_train_loop(
            config,
            self._model,
            self._optimizer,
            self._iterator,
            self._step,
            self._strategy,
            loss_scale=self._loss_scale,
            should_stop=self._interruption.requested,
        )
        evaluator = None
        if config.eval_every_n_steps:
            evaluator = evaluation.build_evaluator(
                config,
                self._model,
                self._strategy,
                should_stop=self._interruption.requested,
            )
        return TrainingSession(
            schedule=self._schedule,
            trainer=trainer,
            evaluator=evaluator,
            checkpoints=self._checkpoints,
            interval=self._interval,
            interruption=self._interruption,
            reporting=Reporting(
                row=report.log_row,
                shown=report.shown_items,
                tokens=report.TOKENS,
                train_sinks=(self._train_log, self._train_board),
                evaluated=self._evaluated,
            ),
            console=self._console,
            step=self._step,
            seed=config.seed,
            directory=self._output,
            strategy=self._strategy,
        )

    def _evaluated(self, step: int, result: dict[str, float]) -> None:
        """Logs one evaluation; writes the results files after the last."""
        row = dict(result)
        in_a_row = self._collapse.update(result)
        if "disc_accuracy" in result:
            row["one_class_evaluations"] = in_a_row
        self._eval_log.write(step, row)
        self._eval_board.write(step, row)
        self._console.line(f"Evaluation at step {step:,}:")
        for text in report.evaluation_summary(result):
            self._console.line(f"  {text}")
        if self._collapse.message:
            self._console.warning(self._collapse.message)
        if self._best and (text := self._best.update(step, result)):
            self._console.line(f"  {text}")
        self._draw()
        chief = strategies.is_chief(self._strategy)
        if step >= self._config.num_train_steps and chief:
            evaluation.write_results(self._config, result, step, self._console)

    def _draw(self) -> None:
        curves.draw_curves(
            self._output,
            report.PANELS,
            self._train_log.rows,
            self._eval_log.rows,
            f"{self._config.model_name}: pre-training",
        )

    def _say_finished(self, step: int) -> None:
        self._console.line(
            f"Already trained to step {step:,} (num_train_steps"
            f" {self._config.num_train_steps:,}): nothing left to train. Raise"
            " num_train_steps to train on, choose another model_name, or use"
            f" --overwrite to delete {self._directory} and start anew"
            + (
                " (the original does that by itself in debug mode)."
                if self._config.debug
                else "."
            )
        )

    def _say_interrupted(self) -> None:
        self._console.line(
            f"Stopped at step {int(self._step.numpy()):,}; saved"
            f" {self._checkpoints.latest}. Run the same command again to"
            " continue from there."
        )

    def _last_results(self, step: int) -> dict[str, Any]:
        """What the logs say of a run that needs no more training."""
        last: dict[str, Any] = {}
        if self._train_log.rows:
            last.update(under_train(self._train_log.rows[-1]))
        if self._eval_log.rows:
            last.update(self._eval_log.rows[-1])
        last.pop("step", None)
        return {**last, "global_step": step}
