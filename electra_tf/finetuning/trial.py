# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""One trial: fresh heads on the pre-trained model, trained and scored.

Source: google-research/electra, run_finetuning.py, ModelRunner and
write_classification_outputs.
"""

import dataclasses
import json
import math
import os
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints import formats, sizes
from electra_tf.checkpoints.assignment import assign
from electra_tf.checkpoints.contents import HIDDEN
from electra_tf.checkpoints.weights import Weights
from electra_tf.files.atomic import write_atomically
from electra_tf.finetuning import build
from electra_tf.finetuning.inheritance import with_inherited_heads
from electra_tf.finetuning.initial_checkpoint import digest_weights
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.preprocessing import Batches, Preprocessor
from electra_tf.finetuning.task import TASK_FILE, Task
from electra_tf.metrics.direction import lower_is_better
from electra_tf.metrics.scorers import Scorer
from electra_tf.metrics.statistics import from_json, main_metric
from electra_tf.text.vocabulary import refuse_other_vocab
from electra_tf.training import checkpointing, summaries, workers
from electra_tf.training.loop import TOKENS, EvalLoop, StepMetrics, TrainLoop
from electra_tf.training.run import Run
from electra_tf.training.run_files import RunFiles
from electra_tf.training.summaries import Console, Panel, ShownValue
from electra_tf.training.threads import count_cores

EXAMPLES = "examples"
# A trained model stays what it is when these change.
FREE_HPARAMS = frozenset(
    """
    allow_outside_files data_dir distribution_strategy do_eval do_train
    early_stopping_patience eval_batch_size eval_every_n_steps gcp_project
    group_eval_by_length iterations_per_loop keep_all_models keep_checkpoint_max
    log_every_n_steps log_examples max_answer_length model_dir n_best_size
    n_writes_test num_tpu_cores num_trials on_nonfinite overwrite
    predict_batch_size preemption_seconds preprocessed_data_dir qa_na_threshold
    recompute_grad require_gpu results_json results_pkl results_txt run_name
    save_checkpoints_steps strict strict_rows tfds_data_dir threads tpu_job_name
    tpu_name tpu_zone use_tfrecords_if_existing use_tpu vocab_file
    write_distill_outputs write_test_outputs
    """.split()
)
# But its figures do not when these do.
SCORING = ("max_answer_length", "n_best_size", "qa_na_threshold")
Features = dict[str, tf.Tensor]
Row = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """A model's scores on a split of a task."""

    task: str
    results: dict[str, float]  # the original's figures, in its order
    details: dict[str, float]  # figures beyond them
    # What the model says of every example, where it always says the same; else
    # None.
    collapse: str | None
    scorer: Scorer  # with the predictions that were scored


class Evaluator:
    """Predicts splits of tasks with a model as it is at the time."""

    def __init__(
        self,
        config: FinetuningConfig,
        model: FinetuningModel,
        tasks: Sequence[Task],
        preprocessor: Preprocessor,
        strategy: tf.distribute.Strategy,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._config = config
        self._preprocessor = preprocessor
        self._strategy = strategy
        self._batches: dict[str, Batches] = {}
        self._task_names = [task.name for task in tasks]
        self._loop = EvalLoop(
            outputs=self._flat_outputs,
            batch_size=config.eval_batch_size,
            compute=compute_of(model),
            seed=config.seed,
            strategy=strategy,
            should_stop=should_stop,
            jit_compile=config.jit_compile,
            cores=count_cores(config, strategy),
        )

    def evaluate_task(self, task: Task, split: str = "dev") -> Evaluation:
        """Evaluates a task on a split; writes the files that its scorer has."""
        scorer = task.get_scorer(split)
        self.predict(task, split, scorer.update)
        results = {name: float(value) for name, value in scorer.get_results()}
        for kind, value in scorer.files().items():
            path = self._config.qa_file(task.name, kind)
            self.write(path, json.dumps(value))
        return Evaluation(
            task.name,
            results,
            {name: float(value) for name, value in scorer.get_details()},
            _collapse(task, scorer),
            scorer,
        )

    def predict(
        self, task: Task, split: str, take: Callable[[Row], None]
    ) -> None:
        """Hands the outputs for each example of a split to a function."""
        number, lead = self._task_names.index(task.name), f"{task.name}/"

        def take_rows(arrays: Row, loss: float) -> None:
            own = {
                name.removeprefix(lead): values
                for name, values in arrays.items()
                if name.startswith(lead)
            }
            # Rows of padding are of no task.
            for row in np.flatnonzero(arrays["task_id"] == number):
                take({name: values[row] for name, values in own.items()})

        batches = self.prepare(task, split)
        if batches.n_examples:  # Empty passages have no windows.
            with tf.device("/cpu:0"):
                self._loop.run(batches(), take_rows)

    def _flat_outputs(
        self, features: Features, outputs: Mapping[str, Any]
    ) -> Features:
        flat = {"task_id": features["task_id"]}
        for name in self._task_names:
            for key, value in outputs[name].items():
                flat[f"{name}/{key}"] = value
        return flat

    def prepare(self, task: Task, split: str) -> Batches:
        """Reads a split, once."""
        key = f"{task.name}/{split}"
        if key not in self._batches:
            with workers.in_turn(self._strategy):
                found, _ = self._preprocessor.prepare_predict([task], split)
            self._batches[key] = found
        return self._batches[key]

    def write(self, path: str, content: str | bytes) -> None:
        """Writes a file, as the only one of several workers."""
        if workers.current_worker(self._strategy).is_chief:
            write_atomically(path, content)


def compute_of(model: FinetuningModel) -> Callable[..., dict[str, Any]]:
    """A model's outputs, with its loss named as the loops want it."""

    def compute(
        features: Features, seed: tf.Tensor, training: bool
    ) -> dict[str, Any]:
        outputs = model.compute(features, training, seed)
        return {**outputs, "total_loss": outputs["loss"]}

    return compute


def _collapse(task: Task, scorer: Scorer) -> str | None:
    single = scorer.single_prediction()
    if single is None:
        return None
    names = task.head.labels
    if single == "":
        return "every prediction is that there is no answer"
    if names and isinstance(single, int):
        return f"every prediction is {names[single]!r}"
    return f"every prediction is {single!r}"


def write_test_outputs(
    config: FinetuningConfig,
    evaluator: Evaluator,
    task: Task,
    trial: int,
    console: Console,
) -> None:
    """Predicts a task's test splits.

    Questions are answered; of other tasks each example's number has logits
    (classes), a number from 0 to 1 or labels.

    Differs: questions are answered with the test examples; all tasks are
    supported.
    """
    for split in task.get_test_splits():
        if not task.has_split(split):
            console.warning(
                f"{task.name}: there is no {split} split to predict; skipped"
            )
            continue
        path = config.test_predictions(task.name, split, trial)
        scorer = task.get_scorer(split)
        if hasattr(scorer, "final_answers"):
            evaluator.predict(task, split, scorer.update)
            scorer.answer()
            found = scorer.final_answers()
            evaluator.write(path, json.dumps(found) + "\n")
        else:
            found = _test_outputs(evaluator, task, split)
            evaluator.write(path, pickle.dumps(found))
        console.line(
            f"{task.name}, {split}: {len(found)} predictions in {path}"
        )


def _test_outputs(
    evaluator: Evaluator, task: Task, split: str
) -> dict[int, Any]:
    found: dict[int, Any] = {}

    def take(row: Row) -> None:
        value = row["logits" if "logits" in row else "predictions"]
        if "labels_mask" in row:
            n_words = round(float(np.sum(row["labels_mask"])))
            value = row["predictions"][:n_words]
        found[int(row["eid"])] = value

    evaluator.predict(task, split, take)
    return dict(sorted(found.items()))


def changed_hparams(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Texts `name: old -> new` of what makes another model."""
    places = [os.path.join(of.get("data_dir", ""), "") for of in (before, now)]

    def placed(value: Any) -> Any:  # That directory may be moved.
        for place in places if isinstance(value, str) else ():
            value = value.removeprefix(place)
        return value

    before, now = ({n: placed(v) for n, v in x.items()} for x in (before, now))
    names = tuple(name for name in now if name not in FREE_HPARAMS)
    return sizes.list_changes(before, now, names)


def watched_figure(
    rows: Sequence[Mapping[str, float]], wanted: str | None = None
) -> str:
    """The figure to compare by: `wanted`, F1, or the first that is no loss."""
    names = [name for name in rows[0] if name != "step"]
    if wanted in names:
        return wanted
    # After the loss come details, by which trials are not compared.
    results = names[: [*names, "loss"].index("loss")]
    scores = [name for name in results if not lower_is_better(name)]
    return main_metric(scores or names)


def patience_is_over(
    rows: Sequence[Mapping[str, float]],
    patience: int,
    wanted: str | None = None,
) -> bool:
    """Whether the last `patience` evaluations (0: never) are no better.

    A figure that was undefined (None in a log) is worse than all others.
    """
    if not patience or not rows:
        return False
    name = watched_figure(rows, wanted)
    sign = -1 if lower_is_better(name) else 1
    found = from_json(row[name] for row in rows)
    values = [sign * v if math.isfinite(v) else -math.inf for v in found]
    return len(values) - 1 - values.index(max(values)) >= patience


class Trial(Run):
    """Trains one model on `weights` (None: random ones), and evaluates it."""

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

    def __init__(
        self,
        config: FinetuningConfig,
        weights: Weights | None,
        tasks: Sequence[Task],
        preprocessor: Preprocessor,
        *others: Any,
    ) -> None:
        self._weights = weights
        self._tasks = list(tasks)
        self._preprocessor = preprocessor
        self.title = f"{config.model_name} on {', '.join(config.task_names)}"
        super().__init__(config, *others)
        self.evaluator = Evaluator(
            config,
            self.model,
            tasks,
            preprocessor,
            self.strategy,
            self.stop_requested,
        )

    def load(self, path: str) -> None:
        allowed = self.config.allow_missing
        try:
            opened = formats.open_weights(path)
            weights, _ = with_inherited_heads(opened, self._tasks)
            for task in self._tasks:
                task.check_head(weights.heads.get(task.name), path)
            found = assign(weights, self.model.variables, allow_missing=allowed)
        except UserError as error:
            raise UserError(
                f"{error}\n(Without do_train, init_checkpoint must be a model"
                f" fine-tuned on {', '.join(self.model.task_names)}.)"
            ) from error
        unused = [n for n in found.unexpected if f"/{HIDDEN}/" in n]
        if self.config.classification_head_layers == 1 and unused:
            raise UserError(
                f"{path} has {unused[0]}: its head has two layers; set"
                " classification_head_layers to 2."
            )
        self.step.assign(found.global_step or 0)
        self.console.line(f"Evaluating {found}")

    def fine_tune(self) -> bool:
        """Trains the model to evaluate; False where it was asked to stop."""
        if "interrupted" in self.train():
            return False
        workers.wait_for_workers(self.strategy)  # The chief has written it.
        if self.best and (path := formats.find_best_checkpoint(self.directory)):
            checkpointing.restore_model(path, self.model, self.step)
            self.console.line(
                f"The best model by {self.config.keep_best}: {path}"
            )
        return True

    def build_model(self) -> FinetuningModel:
        return build.build_model(self.config, self._tasks)

    def prepare_training(self) -> tuple[tf.data.Dataset, int]:
        watches = self.config.early_stopping_patience > 0
        if watches and self._tasks[1:] and not self.config.keep_best:
            raise UserError(
                "early_stopping_patience: with several tasks keep_best says"
                " which figure is watched, as in --keep_best sst_accuracy"
            )
        evaluates = self.config.do_eval or self.config.eval_every_n_steps
        evaluated = self._tasks if evaluates else []
        # What is wrong with them is not found out afterwards.
        for task in evaluated:
            task.check_split("dev")
        figures = [task.get_scorer().metric_names for task in evaluated]
        if figures and all(figures):
            self._check_keep_best(self._named(figures))
        with workers.in_turn(self.strategy):
            batches, num_steps = self._preprocessor.prepare_train()
        if not num_steps:
            raise UserError(
                f"num_train_epochs {self.config.num_train_epochs:g} of"
                f" {batches.n_examples} examples make no step of"
                f" train_batch_size {self.config.train_batch_size}; raise"
                " num_train_epochs."
            )
        self._n_examples = batches.n_examples
        # Of the data and of what makes examples of them; and the classes.
        facts = {"records": os.path.basename(batches.path)}
        if self._weights:
            facts["starting weights"] = digest_weights(self._weights)
        for task in self._tasks:
            if task.labels_path():
                facts[f"labels of {task.name}"] = task.known_labels
        self.data_fingerprint = checkpointing.DataFingerprint(facts)
        for task in evaluated:
            self.evaluator.prepare(task, "dev")
        with tf.device("/cpu:0"):
            batches = dataclasses.replace(batches, seed=self.config.seed)
            return batches(), num_steps

    def describe_evaluation_data(self) -> str:
        told = [f"{name} {getattr(self.config, name)}" for name in SCORING]
        dev = (self._preprocessor.digest(task, "dev") for task in self._tasks)
        return "; ".join([*dev, *told])

    def _check_keep_best(self, figures: Iterable[str]) -> None:
        wanted = self.config.keep_best
        if wanted and wanted not in figures:
            raise UserError(
                f"hparam keep_best: there is no figure {wanted!r}; the"
                f" evaluation gives: {', '.join(figures)}"
            )

    def _named(self, figures: Iterable[Iterable[str]]) -> list[str]:
        """Names of all tasks' figures, with the task's where it is needed."""
        lead = "{0}_{1}" if len(self._tasks) > 1 else "{1}"
        return [
            lead.format(task.name, name)
            for task, names in zip(self._tasks, figures, strict=True)
            for name in names
        ]

    def build_optimizer(self) -> Any:
        return build.build_optimizer(
            self.config, self.model, self.schedule.total_steps
        )

    def start_fresh(self) -> None:
        if self._weights is None:
            self.console.line("Starting from random weights")
        else:
            found = build.load_weights(self.config, self._weights, self.model)
            self.console.line(f"Starting from the weights of {found}")

    def continue_from(self, path: str, with_position: bool = True) -> bool:
        before = checkpointing.read_config(self.directory) or {}
        now = self.config.as_dict()
        differing = changed_hparams(before, now)
        if own := formats.open_weights(path).vocab_file:
            refuse_other_vocab(self.config.vocab_file, own, path)
        if differing:
            raise UserError(
                f"{self.directory} holds a model fine-tuned with other"
                " hparams:\n"
                + "".join(f"  {text}\n" for text in differing)
                + "Set them as they were to continue it, give this run a"
                " --run_name, or use --overwrite to delete it and start anew."
            )
        if moved := self.data_fingerprint.changes(path, {}):
            raise UserError(
                f"{path} was made with other training data:"
                f" {'; '.join(moved)}. Put them back to continue it, give this"
                " run a --run_name, or use --overwrite to delete it and start"
                " anew; to evaluate it as it is, set do_train to false."
            )
        place = now["preprocessed_data_dir"]  # Positions hold it.
        was = before.get("preprocessed_data_dir", place)
        if moved := os.path.abspath(was) != os.path.abspath(place):
            self.console.warning(
                "the records were moved: they are read from their start again"
            )
        found = super().continue_from(path, with_position and not moved)
        if moved:  # Before the settings name the new place.
            self.checkpoints.save()
        return found

    def write_settings(self, directory: str) -> None:
        for task in self._tasks:
            task.keep(directory)
        super().write_settings(directory)  # with digests of the labels, too

    def is_finished(self, evaluation_due: bool) -> bool:
        step = self.global_step
        if self._is_over():
            self.console.line(
                f"Training had already stopped early, at step {step:,}"
            )
            return True
        if step < self.schedule.total_steps or evaluation_due:
            return False
        self.console.line(f"Already trained to step {step:,}")
        return True

    def announce(self) -> None:
        config = self.config
        super().announce()
        self.console.line(
            f"{self.schedule.total_steps:,} steps of"
            f" {config.train_batch_size} examples:"
            f" {config.num_train_epochs:g} epochs of {self._n_examples:,}"
            f" (rows of padding included); seed {config.seed}"
        )
        how = "no layer-wise decay"
        if config.layerwise_lr_decay > 0:
            how = f"layer-wise decay {config.layerwise_lr_decay:g}"
            if config.fix_layerwise_lr_decay:
                how += ", corrected depths"
            else:
                how += ", as in the original: the top layer is two levels below"
                how += " the heads (fix_layerwise_lr_decay makes it one)"
        line = self.console.line
        line(f"Learning rates before warm-up and decay ({how}):")
        line("  part         depth  multiplier        rate  variables")
        for row in reversed(build.layer_rates(config, self.model)):
            rate = config.learning_rate * row.multiplier
            line(
                f"  {row.part:<11}  {row.depth:>5}  {row.multiplier:>10.6f}"
                f"  {rate:>10.4e}  {row.num_variables:>9}"
            )
        if config.freeze_layers:
            line(
                f"  frozen: the embeddings and the {config.freeze_layers}"
                " lowest layers"
            )

    def build_loop(self) -> TrainLoop:
        config, num_tasks = self.config, len(self._tasks)

        def step_values(
            features: Features, outputs: Mapping[str, Any]
        ) -> Features:
            real = features["task_id"] < num_tasks
            tokens = tf.cast(features["input_mask"], tf.float32)
            return {
                TOKENS: tf.reduce_sum(tokens),
                EXAMPLES: tf.reduce_sum(tf.cast(real, tf.float32)),
            }

        return TrainLoop(
            micro_batches=config.gradient_accumulation_steps,
            cores=count_cores(config, self.strategy),
            jit_compile=config.jit_compile,
            loss_scale=self.loss_scale,
            element_spec=self.iterator.element_spec,
            compute=compute_of(self.model),
            variables=build.trained_variables(config, self.model),
            optimizer=self.optimizer,
            iterator=self.iterator,
            step=self.step,
            seed=config.seed,
            strategy=self.strategy,
            step_values=step_values,
            should_stop=self.stop_requested,
        )

    def losses(self, taken: StepMetrics) -> dict[str, float]:
        """Means of batches' sums, as the original prints them; per example."""
        total = taken.sums["total_loss"]
        return {
            "loss": taken.mean("total_loss"),
            "loss_per_example": total / max(taken.sums[EXAMPLES], 1.0),
        }

    def evaluate(self) -> dict[str, float]:
        found = [self.evaluator.evaluate_task(task) for task in self._tasks]
        figures = [one.results | one.details for one in found]
        values = (value for own in figures for value in own.values())
        return dict(zip(self._named(figures), values, strict=True))

    def record_evaluation(self, step: int, result: dict[str, float]) -> None:
        """Logs an evaluation; keeps the best; stops if nothing gets better."""
        self._check_keep_best(result)
        self.eval_log.write(step, result)
        summaries.print_evaluation(self.console, step, result)
        self.keep_if_best(step, result)
        if step < self.schedule.total_steps and self._is_over():
            self.stopped_early = True
            figure = watched_figure(self.eval_log.rows, self._wanted())
            self.console.line(
                f"Stopping early: {self.config.early_stopping_patience}"
                f" evaluations without a better {figure}"
            )

    def _wanted(self) -> str | None:
        """The figure that was asked for, or the only task's main one."""
        return self.config.keep_best or self._tasks[0].main_metric

    def _is_over(self) -> bool:
        config, rows = self.config, self.eval_log.rows
        patience = config.early_stopping_patience
        over = patience_is_over(rows, patience, self._wanted())
        return bool(
            workers.gather(self.strategy, over)[0]
        )  # as the chief's log says

    def panels(self) -> tuple[Panel, ...]:
        rows = self.eval_log.rows
        figures = [name for name in rows[-1] if name != "step"] if rows else []
        scores = [name for name in figures if not lower_is_better(name)]
        losses = [name for name in figures if name.endswith("loss")]
        return (
            # Apart from the dev loss: tagging's is one of words, doubled.
            Panel("Training loss per example", train="loss_per_example"),
            *(Panel(f"Dev {name}", evaluation=name) for name in losses[:1]),
            *(Panel(f"Dev {name}", evaluation=name) for name in scores[:6]),
            Panel("Gradient norm before clipping", "grad_norm", log_scale=True),
            Panel("Learning rate of the heads", "learning_rate"),
        )
