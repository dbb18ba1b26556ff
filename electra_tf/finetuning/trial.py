# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The training of one model: fresh heads on the pre-trained encoder.

Source: google-research/electra, run_finetuning.py, ModelRunner.
"""

import dataclasses
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.text_tables import render_rows
from electra_tf.checkpoints import formats
from electra_tf.checkpoints.assignment import assign
from electra_tf.checkpoints.contents import HIDDEN
from electra_tf.checkpoints.weights import Weights
from electra_tf.finetuning import build
from electra_tf.finetuning.early_stopping import (
    patience_is_over,
    watched_metric,
)
from electra_tf.finetuning.evaluation import (
    Evaluator,
    Features,
    compute_function,
)
from electra_tf.finetuning.hparam_changes import SCORING, changed_hparams
from electra_tf.finetuning.inherited_heads import with_inherited_heads
from electra_tf.finetuning.initial_checkpoint import digest_weights
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.preprocessing import Preprocessor
from electra_tf.finetuning.task import TASK_FILE, Task
from electra_tf.metrics.direction import lower_is_better
from electra_tf.optimization.optimizer import AdamWeightDecay
from electra_tf.text.vocabulary import refuse_other_vocab
from electra_tf.training import checkpointing, workers
from electra_tf.training.console import Console, ShownValue, print_evaluation
from electra_tf.training.curves import Panel
from electra_tf.training.data_position import DataFingerprint
from electra_tf.training.loop import TOKENS, StepMetrics, TrainLoop
from electra_tf.training.preemption import PreemptionHandler
from electra_tf.training.run import Run
from electra_tf.training.run_files import RunFiles
from electra_tf.training.threads import count_cores

EXAMPLES = "examples"  # step value: number of rows that are not padding
_MAX_SCORE_PANELS = 6


class Trial(Run):
    """The training of one model, or the loading of a model to evaluate.

    The methods of training are in the order in which `Run.train` calls them.

    Attributes:
      evaluator: predicts with the current weights of the model.
    """

    config: FinetuningConfig
    model: FinetuningModel
    files = RunFiles(
        kind="fine-tuning",
        names=(TASK_FILE,),
        prefixes=("worker_",),
        suffixes=("_labels.json", "_label_mapping.json"),
    )
    shown = (
        ShownValue("loss", "loss"),
        ShownValue("loss_per_example", "per example"),
    )
    evaluation_hparams = SCORING

    def __init__(
        self,
        config: FinetuningConfig,
        weights: Weights | None,
        tasks: Sequence[Task],
        preprocessor: Preprocessor,
        strategy: tf.distribute.Strategy,
        console: Console,
        preemption: PreemptionHandler,
    ) -> None:
        """Build the model; read and write no files.

        Args:
          config: the settings of the trial.
          weights: the initial weights; None: random.
          tasks: the tasks to train on, with resolved labels.
          preprocessor: the data of the tasks.
          strategy: the devices.
          console: the console to print to.
          preemption: stops the training at signals.
        """
        self._weights = weights
        self._tasks = list(tasks)
        self._preprocessor = preprocessor
        self.title = f"{config.model_name} on {', '.join(config.task_names)}"
        super().__init__(config, strategy, console, preemption)
        self.evaluator = Evaluator(
            self.model,
            tasks,
            preprocessor,
            self.strategy,
            self.stop_requested,
        )

    def fine_tune(self) -> bool:
        """Train the model; return False if a signal stopped the training."""
        if "interrupted" in self.train():
            return False
        # Other workers wait for the checkpoint that the chief writes.
        workers.wait_for_workers(self.strategy)
        if self.best and (path := formats.find_best_checkpoint(self.directory)):
            checkpointing.restore_model(path, self.model, self.step)
            self.console.line(
                f"The best model by {self.config.keep_best}: {path}"
            )
        return True

    def load(self, path: str) -> None:
        """Load a trained model in order to evaluate it.

        Raises:
          UserError: the model was fine-tuned on other tasks or with other
            heads.
        """
        allowed = self.config.allow_missing
        try:
            weights, _ = with_inherited_heads(
                formats.open_weights(path), self._tasks
            )
            for task in self._tasks:
                task.check_head(weights.heads.get(task.name), path)
            coverage = assign(
                weights, self.model.variables, allow_missing=allowed
            )
        except UserError as error:
            raise UserError(
                f"{error}\n(Without do_train, init_checkpoint must be a model"
                f" fine-tuned on {', '.join(self.model.task_names)}.)"
            ) from error
        unused = [n for n in coverage.unexpected if f"/{HIDDEN}/" in n]
        if self.config.classification_head_layers == 1 and unused:
            raise UserError(
                f"{path}: its head has two layers (found {unused[0]}), but"
                " classification_head_layers is 1. Set"
                " classification_head_layers to 2."
            )
        self.step.assign(coverage.global_step or 0)
        self.console.line(f"Evaluating {coverage}")

    def build_model(self) -> FinetuningModel:
        return build.build_model(self.config, self._tasks)

    def prepare_training(self) -> tuple[tf.data.Dataset, int]:
        config = self.config
        evaluated_tasks = self._check_evaluations()
        with workers.in_turn(self.strategy):
            batches, num_steps = self._preprocessor.prepare_train()
        if not num_steps:
            raise UserError(
                f"num_train_epochs {config.num_train_epochs:g}: this part of"
                f" {batches.n_examples} examples is smaller than one batch"
                f" (train_batch_size {config.train_batch_size}). Raise"
                " num_train_epochs."
            )
        self._n_examples = batches.n_examples
        # The name of the record file identifies the data and the
        # preprocessing.
        facts = {"records": os.path.basename(batches.path)}
        if self._weights:
            facts["starting weights"] = digest_weights(self._weights)
        for task in self._tasks:
            if task.labels_path():
                facts[f"labels of {task.name}"] = task.resolved_labels
        self.data_fingerprint = DataFingerprint(facts)
        for task in evaluated_tasks:
            self.evaluator.prepare(task, "dev")
        with tf.device("/cpu:0"):
            batches = dataclasses.replace(batches, seed=config.seed)
            return batches(), num_steps

    def _check_evaluations(self) -> list[Task]:
        """Check data and metrics; return the tasks to evaluate.

        The check comes first, because missing data would stop the run only
        after training.
        """
        config = self.config
        watches = config.early_stopping_patience > 0
        if watches and len(self._tasks) > 1 and not config.keep_best:
            raise UserError(
                "early_stopping_patience: with several tasks the metric to"
                " watch is ambiguous. Name the metric with --keep_best, such as"
                " --keep_best sst_accuracy."
            )
        if not (config.do_eval or config.eval_every_n_steps):
            return []
        for task in self._tasks:
            task.check_split("dev")
        metric_names = [task.get_scorer().metric_names for task in self._tasks]
        if all(metric_names):
            self._check_keep_best(self._prefix_names(metric_names))
        return self._tasks

    def _check_keep_best(self, names: Collection[str]) -> None:
        """Raise a UserError if keep_best is not among the metrics."""
        metric = self.config.keep_best
        if metric and metric not in names:
            raise UserError(
                f"hparam keep_best: unknown metric {metric!r}; expected one of"
                f" {', '.join(names)}. Pass one of these metrics."
            )

    def _prefix_names(self, names: Iterable[Iterable[str]]) -> list[str]:
        """Return the names of all tasks' metrics.

        If there are several tasks, each name begins with the name of its task.
        """
        prefixed_names = []
        for task, task_names in zip(self._tasks, names, strict=True):
            prefix = f"{task.name}_" if len(self._tasks) > 1 else ""
            prefixed_names += [f"{prefix}{name}" for name in task_names]
        return prefixed_names

    def build_optimizer(self) -> AdamWeightDecay:
        return build.build_optimizer(
            self.config, self.model, self.intervals.total_steps
        )

    def start_fresh(self) -> None:
        if self._weights is None:
            self.console.line("Starting from random weights")
        else:
            coverage = build.load_weights(
                self.config, self._weights, self.model
            )
            self.console.line(f"Starting from the weights of {coverage}")

    def continue_from(self, path: str, with_position: bool = True) -> bool:
        before = checkpointing.read_config(self.directory) or {}
        now = self.config.as_dict()
        changes = changed_hparams(before, now)
        if model_vocab := formats.open_weights(path).vocab_file:
            refuse_other_vocab(self.config.vocab_file, model_vocab, path)
        if changes:
            listing = "".join(f"  {text}\n" for text in changes)
            raise UserError(
                f"{self.directory} contains a model fine-tuned with other"
                f" hparams:\n{listing}Restore these hparams to continue"
                " training, pass a --run_name for this run, or pass --overwrite"
                " to delete the model and start again."
            )
        former = self.data_fingerprint.former_facts(path, {})
        if changed_data := self.data_fingerprint.changes(former):
            raise UserError(
                f"{path} was trained on other data: {'; '.join(changed_data)}."
                " Restore the data to continue training, pass a --run_name for"
                " this run, or pass --overwrite to delete the model and start"
                " again. To evaluate the model as it is, set do_train to false."
            )
        # The data position in a checkpoint contains the path of the records, so
        # the position is lost if the folder moves.
        folder = now["preprocessed_data_dir"]
        former_folder = before.get("preprocessed_data_dir", folder)
        is_moved = os.path.abspath(former_folder) != os.path.abspath(folder)
        if is_moved:
            self.console.warning(
                "The records were moved, so training reads them from the start"
                " again"
            )
        has_position = super().continue_from(
            path, with_position and not is_moved
        )
        if is_moved:
            # The settings name the new folder from now on, so the checkpoint
            # must not contain the former folder.
            self.checkpoints.save()
        return has_position

    def write_settings(self, directory: str) -> None:
        for task in self._tasks:
            task.write_to_model(directory)
        # The label files come first, because the base class also writes their
        # digests.
        super().write_settings(directory)

    def describe_evaluation_data(self) -> str:
        parts = [self._preprocessor.digest(task, "dev") for task in self._tasks]
        parts += [f"{name} {getattr(self.config, name)}" for name in SCORING]
        return "; ".join(parts)

    def is_finished(self, evaluation_due: bool) -> bool:
        step = self.global_step
        if self._has_lost_patience():
            self.console.line(
                f"Training had already stopped early, at step {step:,}"
            )
            return True
        if step < self.intervals.total_steps or evaluation_due:
            return False
        self.console.line(f"Already trained to step {step:,}")
        return True

    def announce(self) -> None:
        config, line = self.config, self.console.line
        super().announce()
        line(
            f"{self.intervals.total_steps:,} steps of"
            f" {config.train_batch_size} examples:"
            f" {config.num_train_epochs:g} epochs of {self._n_examples:,}"
            f" (padding rows included); seed {config.seed}"
        )
        decay = "no layer-wise decay"
        if config.layerwise_lr_decay > 0:
            decay = f"layer-wise decay {config.layerwise_lr_decay:g}"
            if config.fix_layerwise_lr_decay:
                decay += ", corrected depths"
            else:
                decay += (
                    ", as in the original: the top layer is two levels below"
                    " the heads (fix_layerwise_lr_decay makes it one)"
                )
        line(f"Learning rates before warm-up and decay ({decay}):")
        rows = [["part", "depth", "multiplier", "rate", "variables"]]
        for layer in reversed(build.layer_rates(config, self.model)):
            rate = config.learning_rate * layer.multiplier
            rows.append(
                [
                    layer.part,
                    str(layer.depth),
                    f"{layer.multiplier:.6f}",
                    f"{rate:.4e}",
                    str(layer.num_variables),
                ]
            )
        for text in render_rows(rows, left=1):
            line(f"  {text}")
        if config.freeze_layers:
            line(
                f"  frozen: the embeddings and the {config.freeze_layers}"
                " lowest layers"
            )

    def build_loop(self) -> TrainLoop:
        config, n_tasks = self.config, len(self._tasks)

        def step_values(
            features: Features, outputs: Mapping[str, Any]
        ) -> Features:
            is_real = features["task_id"] < n_tasks
            tokens = tf.cast(features["input_mask"], tf.float32)
            return {
                TOKENS: tf.reduce_sum(tokens),
                EXAMPLES: tf.reduce_sum(tf.cast(is_real, tf.float32)),
            }

        return TrainLoop(
            micro_batches=config.gradient_accumulation_steps,
            cores=count_cores(config, self.strategy),
            jit_compile=config.jit_compile,
            loss_scale=self.loss_scale,
            element_spec=self.iterator.element_spec,
            compute=compute_function(self.model),
            variables=build.trained_variables(config, self.model),
            optimizer=self.optimizer,
            iterator=self.iterator,
            step=self.step,
            seed=config.seed,
            strategy=self.strategy,
            step_values=step_values,
            should_stop=self.stop_requested,
        )

    def losses(self, interval: StepMetrics) -> dict[str, float]:
        """Return the mean loss per batch, as the original does, and per row.

        Padding rows do not count as rows.
        """
        total = interval.sums["total_loss"]
        return {
            "loss": interval.mean("total_loss"),
            "loss_per_example": total / max(interval.sums[EXAMPLES], 1.0),
        }

    def evaluate(self) -> dict[str, float]:
        names: list[list[str]] = []
        values: list[float] = []
        for task in self._tasks:
            evaluation = self.evaluator.evaluate_task(task)
            metrics = evaluation.results | evaluation.details
            names.append(list(metrics))
            values += metrics.values()
        return dict(zip(self._prefix_names(names), values, strict=True))

    def record_evaluation(self, step: int, result: dict[str, float]) -> None:
        """Log an evaluation, keep the best model, decide on early stopping."""
        self._check_keep_best(result)
        self.eval_log.write(step, result)
        print_evaluation(self.console, step, result)
        self.keep_if_best(step, result)
        if step < self.intervals.total_steps and self._has_lost_patience():
            self.stopped_early = True
            metric = watched_metric(
                self.eval_log.rows, self._preferred_metric()
            )
            self.console.line(
                "Stopping early: the last"
                f" {self.config.early_stopping_patience} evaluations did not"
                f" improve {metric}"
            )

    def _preferred_metric(self) -> str | None:
        """Return keep_best, or the main metric of the first task."""
        return self.config.keep_best or self._tasks[0].main_metric

    def _has_lost_patience(self) -> bool:
        """Return whether the last evaluations did not improve the metric.

        Only the chief's log counts, because the logs of other workers may be
        incomplete.
        """
        is_over = patience_is_over(
            self.eval_log.rows,
            self.config.early_stopping_patience,
            self._preferred_metric(),
        )
        return bool(workers.gather(self.strategy, is_over)[0])

    def panels(self) -> tuple[Panel, ...]:
        rows = self.eval_log.rows
        names = [name for name in rows[-1] if name != "step"] if rows else []
        scores = [name for name in names if not lower_is_better(name)]
        losses = [name for name in names if name.endswith("loss")]
        dev_names = [*losses[:1], *scores[:_MAX_SCORE_PANELS]]
        return (
            # The training loss has its own panel, because the dev loss of
            # tagging has a different scale: twice the mean loss per word.
            Panel("Training loss per example", train="loss_per_example"),
            *(Panel(f"Dev {name}", evaluation=name) for name in dev_names),
            Panel("Gradient norm before clipping", "grad_norm", log_scale=True),
            Panel("Learning rate of the heads", "learning_rate"),
        )
