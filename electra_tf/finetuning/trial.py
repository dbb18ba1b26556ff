# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""One trial: a fresh head on the pre-trained model, trained to the end."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orbit
import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import electra_config
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.restore import assign
from electra_tf.checkpoints.weights import Weights
from electra_tf.finetuning import report, scoring, start
from electra_tf.finetuning.build import (
    build_model,
    build_optimizer,
    layer_rates,
    load_weights,
    trained_variables,
)
from electra_tf.finetuning.preprocessing import Preprocessor
from electra_tf.finetuning.scoring import FinetuningLoop
from electra_tf.finetuning.task import Task
from electra_tf.metrics.trials import lower_is_better
from electra_tf.training import checkpointing, summaries
from electra_tf.training import strategy as strategies
from electra_tf.training.loop import (
    LossScale,
    StepMetrics,
    TrainingInterruptedError,
)
from electra_tf.training.session import (
    PreemptionHandler,
    Reporting,
    Schedule,
    TrainingSession,
)
from electra_tf.training.summaries import Console

# The logs of one trial, and the picture drawn from them.


class TrialLogs:
    """Rows of training and of evaluations, in files and for TensorBoard."""

    def __init__(self, directory: str, step: int, title: str) -> None:
        self._directory = directory
        self._title = title
        self._train, self._evaluations = (
            summaries.JsonLines(os.path.join(directory, name), step)
            for name in (summaries.TRAIN_LOG, summaries.EVAL_LOG)
        )
        self._train_board, self._evaluation_board = (
            summaries.TensorBoard(directory, name, step)
            for name in ("train", "eval")
        )

    @property
    def train_sinks(self) -> tuple[Any, ...]:
        """What takes the rows of training."""
        return (self._train, self._train_board)

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        """The rows of the evaluations so far."""
        return self._evaluations.rows

    def write_evaluation(self, step: int, result: dict[str, float]) -> None:
        """Takes an evaluation."""
        self._evaluations.write(step, result)
        self._evaluation_board.write(step, result)

    def draw(self) -> None:
        """Draws the curves anew."""
        rows = self._evaluations.rows
        figures = [name for name in rows[-1] if name != "step"] if rows else []
        summaries.draw_curves(
            self._directory,
            report.panels(figures),
            self._train.rows,
            rows,
            self._title,
        )


# When evaluations no longer get better.


class Patience:
    """Watches one figure of the evaluations while training.

    It knows nothing but the rows of the log, so a continued run decides as one
    that never stopped.

    Args:
      figure: what is watched; None means the main one, F1 or else the first
        that is no loss.
    """

    def __init__(self, evaluations: int, figure: str | None = None) -> None:
        self._evaluations = evaluations
        self._figure = figure

    def figure(self, rows: Sequence[Mapping[str, float]]) -> str:
        """Returns the name of what is watched.

        Args:
          rows: of the log of evaluations, at least one.
        """
        if self._figure:
            return self._figure
        names = [name for name in rows[0] if name != "step"]
        scores = [name for name in names if not lower_is_better(name)]
        return "f1" if "f1" in scores else (scores or names)[0]

    def is_over(self, rows: Sequence[Mapping[str, float]]) -> bool:
        """Returns whether training should stop.

        Args:
          rows: of the log of evaluations, in order.
        """
        if not self._evaluations or not rows:
            return False
        name = self.figure(rows)
        sign = -1 if lower_is_better(name) else 1
        values = [sign * row[name] for row in rows]
        since_best = len(values) - 1 - values.index(max(values))
        return since_best >= self._evaluations


class Trial:
    """Trains one model, continuing where an earlier run stopped.

    Args:
      weights: what it starts from; None for random weights.
    """

    def __init__(
        self,
        config: FinetuningConfig,
        weights: Weights | None,
        tasks: Sequence[Task],
        preprocessor: Preprocessor,
        strategy: tf.distribute.Strategy,
        console: Console,
        interruption: PreemptionHandler,
    ) -> None:
        self._config = config
        self._weights = weights
        self._tasks = list(tasks)
        self._preprocessor = preprocessor
        self._strategy = strategy
        self._console = console
        self._interruption = interruption
        self._directory = config.model_dir
        self._stopped_early = False
        self._patience = Patience(
            config.early_stopping_patience, config.keep_best
        )
        with strategies.creation_scope(strategy):
            self.model = build_model(config, tasks)
            self._step = orbit.utils.create_global_step()
        self.evaluator = scoring.Evaluator(
            config,
            self.model,
            tasks,
            preprocessor,
            strategy,
            interruption.requested,
        )

    @property
    def global_step(self) -> int:
        """Updates done by the weights that the model has."""
        return int(self._step.numpy())

    def load(self, path: str) -> None:
        """Loads a model that is only evaluated."""
        try:
            found = assign(
                open_weights(path),
                self.model.variables,
                allow_missing=self._config.allow_missing,
            )
        except UserError as error:
            raise UserError(
                f"{error}\n(Without do_train, init_checkpoint must be a model"
                f" fine-tuned on {', '.join(self.model.task_names)}.)"
            ) from error
        self._step.assign(found.global_step or 0)
        self._console.line(f"Evaluating {found}")

    def train(self) -> bool:
        """Trains to the end; afterwards the model is the one to evaluate.

        Returns:
          False where the run was asked to stop before the end.
        """
        batches, num_steps = self._preprocessor.prepare_train()
        if not num_steps:
            raise UserError(
                f"num_train_epochs {self._config.num_train_epochs:g} of"
                f" {batches.n_examples} examples make no step of"
                f" train_batch_size {self._config.train_batch_size}; raise"
                " num_train_epochs."
            )
        self._build_training(batches, num_steps)
        # Not before: what makes no model must not cost the old one.
        if self._config.overwrite and start.remove(self._directory):
            self._console.line(f"--overwrite: deleted {self._directory}")
        self._restore()
        self._write_settings()
        self._open_logs()
        if not self._is_finished():
            self._say_plan(batches.n_examples)
            session = self._session()
            result = session.run(evaluate_first=self._evaluation_due())
            if "interrupted" in result and not self._stopped_early:
                self._console.line(
                    f"Stopped at step {self.global_step:,}; saved"
                    f" {self._checkpoints.latest}. Run the same command again"
                    " to continue from there."
                )
                return False
            self._logs.draw()
        if self._best:
            self._load_best()
        return True

    def _build_training(
        self, batches: Callable[..., tf.data.Dataset], num_steps: int
    ) -> None:
        config = self._config
        with strategies.creation_scope(self._strategy):
            self._optimizer = build_optimizer(config, self.model, num_steps)
            self._loss_scale = LossScale.of(config.mixed_precision)
        with tf.device("/cpu:0"):
            dataset = batches(seed=config.seed)
            self._iterator = iter(dataset)
        self._element_spec = dataset.element_spec
        self._interval = StepMetrics()
        self._num_steps = num_steps
        self._schedule = Schedule(
            total_steps=num_steps,
            log_every=config.log_every_n_steps,
            save_every=config.save_checkpoints_steps,
            eval_every=config.eval_every_n_steps,
            eval_steps=-1,
            most_per_chunk=config.iterations_per_loop,
        )
        self._checkpoints = checkpointing.Checkpoints(
            self._directory,
            model=self.model,
            optimizer=self._optimizer,
            step=self._step,
            position={"iterator": self._iterator, "interval": self._interval},
            keep=config.keep_checkpoint_max,
            extras={"loss_scale": self._loss_scale} if self._loss_scale else {},
        )

    def _restore(self) -> None:
        """Loads the newest checkpoint, else the starting weights."""
        path = self._checkpoints.latest
        if path is not None:
            start.check_same_run(self._directory, self._config.as_dict())
            self._checkpoints.restore(path)
            self._console.line(
                f"Continuing from {path} (step {self.global_step:,})"
            )
        elif self._weights is not None:
            found = load_weights(self._config, self._weights, self.model)
            self._console.line(f"Starting from the weights of {found}")
        else:
            self._console.line("Starting from random weights")

    def _write_settings(self) -> None:
        """Writes what the model is, vocabulary and labels, beside it."""
        start.make(self._directory)
        config = self._config
        checkpointing.write_config(self._directory, config.to_json())
        electra_config.write_electra_config(self._directory, config.as_dict())
        vocab = os.path.join(self._directory, start.VOCAB_FILE)
        tf.io.gfile.copy(config.vocab_file, vocab, overwrite=True)
        for task in self._tasks:
            kept = task.labels_path()
            if kept is not None and tf.io.gfile.exists(kept):
                own = os.path.join(self._directory, os.path.basename(kept))
                tf.io.gfile.copy(kept, own, overwrite=True)

    def _open_logs(self) -> None:
        step = self.global_step
        title = f"{self._config.model_name} on"
        self._logs = TrialLogs(
            self._directory,
            step,
            f"{title} {', '.join(self._config.task_names)}",
        )
        self._best = None
        if self._config.keep_best:
            self._best = checkpointing.BestCheckpoint(
                self._directory, self._config.keep_best, self._checkpoints
            )

    def _is_finished(self) -> bool:
        if self._patience.is_over(self._logs.evaluations):
            self._console.line(
                "Training had already stopped early, at step"
                f" {self.global_step:,}"
            )
            return True
        if self.global_step >= self._num_steps and not self._evaluation_due():
            self._console.line(f"Already trained to step {self.global_step:,}")
            return True
        return False

    def _evaluation_due(self) -> bool:
        """Whether the run stopped before an evaluation was through."""
        step = self.global_step
        return self._schedule.evaluates_at(step) and not any(
            row["step"] == step for row in self._logs.evaluations
        )

    def _say_plan(self, n_examples: int) -> None:
        config = self._config
        self._console.heading("Running training")
        self._console.line(
            f"{self._num_steps:,} steps of {config.train_batch_size} examples:"
            f" {config.num_train_epochs:g} epochs of {n_examples:,}"
            f" (rows of padding included); seed {config.seed}"
        )
        rates = layer_rates(config, self.model)
        report.print_rates(self._console, config, rates)

    def _session(self) -> TrainingSession:
        config = self._config
        trainer = FinetuningLoop(
            parts=config.gradient_accumulation_steps,
            jit_compile=config.jit_compile,
            loss_scale=self._loss_scale,
            element_spec=self._element_spec,
            compute=self._compute,
            variables=trained_variables(config, self.model),
            optimizer=self._optimizer,
            iterator=self._iterator,
            step=self._step,
            seed=config.seed,
            strategy=self._strategy,
            step_values=functools.partial(
                report.step_values, num_tasks=len(self._tasks)
            ),
            should_stop=self._interruption.requested,
        )
        return TrainingSession(
            schedule=self._schedule,
            trainer=trainer,
            evaluator=self.evaluator,
            checkpoints=self._checkpoints,
            interval=self._interval,
            interruption=self._interruption,
            reporting=Reporting(
                row=report.log_row,
                shown=report.shown_items,
                tokens=report.TOKENS,
                train_sinks=self._logs.train_sinks,
                evaluated=self._evaluated,
            ),
            console=self._console,
            step=self._step,
            seed=config.seed,
            directory=self._directory,
            strategy=self._strategy,
        )

    def _compute(
        self, features: dict[str, tf.Tensor], seed: tf.Tensor, training: bool
    ) -> dict[str, Any]:
        outputs = self.model.compute(features, training, seed)
        return scoring.with_total_loss(outputs)

    def _evaluated(self, step: int, result: dict[str, float]) -> None:
        """Logs an evaluation; keeps the best; stops if nothing gets better."""
        if self._config.keep_best:
            scoring.check_figure(self._config.keep_best, result, "keep_best")
        self._logs.write_evaluation(step, result)
        shown = ", ".join(f"{k} {v:.4f}" for k, v in result.items())
        self._console.line(f"Evaluation at step {step:,}: {shown}")
        if self._best and (text := self._best.update(step, result)):
            self._console.line(f"  {text}")
        self._logs.draw()
        if step < self._num_steps and self._patience.is_over(
            self._logs.evaluations
        ):
            self._stopped_early = True
            figure = self._patience.figure(self._logs.evaluations)
            self._console.line(
                f"Stopping early: {self._config.early_stopping_patience}"
                f" evaluations without a better {figure}"
            )
            # The session saves and leaves, as it does for a signal.
            raise TrainingInterruptedError

    def _load_best(self) -> None:
        kept = os.path.join(self._directory, checkpointing.DIRECTORY)
        path = tf.train.latest_checkpoint(kept)
        if path is None:
            return
        checkpointing.restore_model(path, self.model, self._step)
        self._console.line(
            f"The best model by {self._config.keep_best}: {path}"
        )
