# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains or evaluates a model from a resolved configuration."""

import os
from typing import Any

import numpy as np
import orbit
import tensorflow as tf
import tf_keras

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import electra_config, tf1
from electra_tf.checkpoints.contents import MODEL_HPARAMS
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.restore import assign
from electra_tf.checkpoints.weights import (
    ModelWeights,
    select_part,
    variables_by_name,
)
from electra_tf.data.input_pipeline import build_dataset
from electra_tf.data.record_checks import check_records
from electra_tf.data.records import load_manifest
from electra_tf.pretraining import metrics
from electra_tf.pretraining.build import (
    TOKENS,
    build_model,
    build_optimizer,
    build_train_loop,
)
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.training import checkpointing, loop, summaries
from electra_tf.training import strategy as strategies
from electra_tf.training.loop import EvalLoop, LossScale, StepMetrics
from electra_tf.training.run_directory import remove_run
from electra_tf.training.session import (
    PreemptionHandler,
    Reporting,
    Schedule,
    TrainingSession,
    under_train,
)
from electra_tf.training.summaries import Console, Panel, Progress

# What a pre-training run shows of itself: rows, lines, curves, start page.


PANELS = (
    Panel(
        "Generator loss (nats per masked token)",
        train="gen_loss",
        evaluation="masked_lm_loss",
    ),
    Panel(
        "Generator accuracy at [MASK]",
        evaluation="masked_lm_accuracy_at_mask",
        baselines=(
            ("masked_lm_most_frequent_accuracy", "most frequent token"),
        ),
    ),
    Panel(
        "Discriminator loss (nats per token)",
        train="disc_loss",
        evaluation="disc_loss",
    ),
    Panel(
        "Discriminator AUC, real tokens",
        evaluation="disc_auc_real_tokens",
        baselines=(("disc_auc_frequency_rank", "rarity of the token"),),
        chance=0.5,
    ),
    Panel(
        "Replaced tokens (share)",
        train="replaced_share",
        evaluation="replaced_share",
    ),
    Panel("Gradient norm before clipping", train="grad_norm", log_scale=True),
    Panel("Learning rate", train="learning_rate"),
    Panel("Real tokens per second", train="tokens_per_second"),
)


def log_row(interval: StepMetrics) -> dict[str, float]:
    """The row of an interval: means of losses, share, norm, last rate.

    `gen_loss` is the loss that the generator is trained with: the cloze loss
    for a two-tower generator, else the masked-LM loss.
    """
    row = {"loss": interval.mean("total_loss")}
    trained_with = "cloze_loss" if "cloze_loss" in interval.sums else "mlm_loss"
    row["gen_loss"] = interval.mean(trained_with)
    if trained_with == "cloze_loss":
        row["mlm_loss"] = interval.mean("mlm_loss")
    if "disc_loss" in interval.sums:
        row["disc_loss"] = interval.mean("disc_loss")
        row["replaced_share"] = (
            interval.sums["replaced_tokens"] / interval.sums[TOKENS]
        )
    row |= loop.log_values(interval)
    row["learning_rate"] = interval.last["learning_rate"]
    return row


def shown_items(row: dict[str, Any]) -> dict[str, str]:
    """Items of the progress line, after the original's step, rate and times."""
    shown = {"loss": f"{row['loss']:.4f}", "gen": f"{row['gen_loss']:.4f}"}
    if "disc_loss" in row:
        shown["disc"] = f"{row['disc_loss']:.4f}"
        shown["replaced"] = f"{100 * row['replaced_share']:.1f}%"
    shown["grad norm"] = f"{row['grad_norm']:.2f}"
    shown["lr"] = f"{row['learning_rate']:.2e}"
    shown |= loop.shown_items(row)
    if row["tokens_per_second"] is not None:
        shown["tokens/s"] = f"{row['tokens_per_second']:,.0f}"
    return shown


def print_start(
    console: Console,
    config: PretrainingConfig,
    strategy: tf.distribute.Strategy,
) -> None:
    """Prints the configuration, the devices and what is probably not meant."""
    console.heading("Config:")
    console.table(config.as_dict())
    console.line()
    console.line(strategies.describe(strategy))
    for text in config.warnings():
        console.warning(text)


def print_model(console: Console, model: tf_keras.Model) -> None:
    """Prints how many parameters there are."""
    count = sum(variable.shape.num_elements() for variable in model.variables)
    console.line(
        f"Model: {count:,} parameters in {len(model.variables)} variables"
    )


def print_epochs(console: Console, config: PretrainingConfig) -> None:
    """Prints how often the run sees each example, if a manifest tells."""
    counted = config.num_train_steps * config.train_batch_size
    examples = _num_examples(config)
    text = (
        f"Training: {config.num_train_steps:,} steps of"
        f" {config.train_batch_size} examples = {counted:,} examples"
    )
    if examples:
        text += f", {counted / examples:.1f} epochs of {examples:,}"
    console.line(text)


def evaluation_summary(metrics: dict[str, float]) -> list[str]:
    """One short paragraph of an evaluation: numbers beside their baselines."""

    def beside(name: str, baseline: str, says: str) -> str | None:
        if name not in metrics:
            return None
        text = f"{name} {metrics[name]:.4f}"
        if baseline in metrics:
            text += f" ({says}: {metrics[baseline]:.4f})"
        return text

    return [
        text
        for text in (
            beside(
                "masked_lm_accuracy_at_mask",
                "masked_lm_most_frequent_accuracy",
                "always the most frequent token",
            ),
            beside(
                "disc_auc_real_tokens",
                "disc_auc_frequency_rank",
                "ranked by rarity",
            ),
        )
        if text
    ]


def _num_examples(config: PretrainingConfig) -> int | None:
    found: set[str] = {
        os.path.dirname(pattern)
        for pattern in config.pretrain_tfrecords.split(",")
    }
    total = 0
    for directory in found:
        manifest = load_manifest(directory)
        if manifest is None or "examples" not in manifest["counts"]:
            return None
        total += int(manifest["counts"]["examples"])
    return total


# The two networks apart, without optimizer, for whoever uses the model.

DIRECTORY = "export"


def export_parts(
    config: PretrainingConfig,
    model: PretrainingModel,
    step: int,
    directory: str,
) -> list[str]:
    """Writes `<directory>/export/discriminator` and `.../generator`.

    Each holds a checkpoint in the original's format, `electra_config.json` and
    `vocab.txt`: all that fine-tuning, or another program, needs. An earlier
    export of the same run is replaced.
    """
    weights = ModelWeights(variables_by_name(model.variables), step, directory)
    written = []
    for name in ("discriminator", "generator"):
        if not weights.contents.holds(name):
            continue
        folder = os.path.join(directory, DIRECTORY, name)
        prefix = os.path.join(folder, "model.ckpt")
        tf1.write_tf1(select_part(weights, name), prefix, overwrite=True)
        electra_config.write_electra_config(folder, config.as_dict())
        tf.io.gfile.copy(
            config.vocab_file, os.path.join(folder, "vocab.txt"), overwrite=True
        )
        written.append(prefix)
    return written


# The directory of a model: what may be in it, and what must stay the same.

# The saved data position means something only while these stay.
DATA_HPARAMS = (
    "deterministic_input",
    "max_seq_length",
    "pretrain_tfrecords",
    "seed",
    "shuffle_buffer_size",
    "train_batch_size",
)


def check_same_model(
    before: dict[str, Any], now: dict[str, Any], path: str
) -> None:
    """Raises UserError naming the model hparams that changed."""
    differing = checkpointing.changed(before, now, MODEL_HPARAMS)
    if differing:
        raise UserError(
            f"checkpoint {path} was trained with other model hparams:\n"
            + "".join(f"  {text}\n" for text in differing)
            + "Set them as they were, choose another model_name, or use"
            " --overwrite to delete that model and start anew."
        )


def prepare(path: str, overwrite: bool, console: Console) -> None:
    """Makes the model directory; with `overwrite`, deletes it first."""
    try:
        if overwrite and tf.io.gfile.exists(path):
            remove_run(
                path,
                "training",
                names=("results", DIRECTORY),
                prefixes=("worker_",),
                lead="--overwrite: ",
            )
            console.line(f"--overwrite: deleted {path}")
        tf.io.gfile.makedirs(path)
    except (OSError, tf.errors.OpError) as error:
        raise UserError(
            f"model_dir {path} cannot be written: {error}. Choose another"
            " model_dir or data_dir, or correct its permissions."
        ) from error


def worker_directory(model_dir: str) -> str:
    """Where a worker that is not the chief puts its unused copy."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return os.path.join(model_dir, f"worker_{resolver.task_id}")


# Evaluating a model on held-out records, and the files that come of it.


def evaluate_newest(
    config: PretrainingConfig,
    strategy: tf.distribute.Strategy,
    console: Console,
) -> dict[str, Any]:
    """Evaluates the newest checkpoint and writes the results files."""
    try:
        path = tf1.find_checkpoint(config.model_dir)
    except UserError as error:
        raise UserError(
            f"do_eval: there is no checkpoint in {config.model_dir} that could"
            " be evaluated; train the model first (do_train), or correct"
            f" model_name, data_dir or model_dir. ({error})"
        ) from error
    before = checkpointing.read_config(config.model_dir) or {}
    check_same_model(before, config.as_dict(), path)
    with strategies.creation_scope(strategy):
        model = build_model(config)
        global_step = orbit.utils.create_global_step()
    print_model(console, model)
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
    """The evaluation of a model on the held-out records."""
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
    """Prints an evaluation as the original does, and writes its files."""
    for text in summaries.lines({**result, "global_step": step}):
        console.line(f"  {text}")
    replaced = tf.io.gfile.exists(config.results_json)
    summaries.write_results(
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


def run(
    config: PretrainingConfig, console: Console | None = None
) -> dict[str, Any]:
    """Trains (continuing where it stopped) or evaluates the newest checkpoint.

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
    strategy = strategies.from_config(config)
    print_start(console, config, strategy)
    if config.do_eval:
        return evaluate_newest(config, strategy, console)
    with PreemptionHandler() as interruption:
        return _Training(config, strategy, console, interruption).run()


class _Training:
    """The parts of one training run, put together."""

    def __init__(
        self,
        config: PretrainingConfig,
        strategy: tf.distribute.Strategy,
        console: Console,
        interruption: PreemptionHandler,
    ) -> None:
        self._config = config
        self._strategy = strategy
        self._console = console
        self._interruption = interruption
        self._directory = config.model_dir
        # Workers other than the chief keep their copies out of its way.
        self._output = self._directory
        if not strategies.is_chief(strategy):
            self._output = worker_directory(config.model_dir)
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
        if strategies.is_chief(self._strategy):
            prepare(self._directory, config.overwrite, console)
        strategies.from_chief(self._strategy, 0)  # Only now the others look.
        tf.io.gfile.makedirs(self._output)
        self._open_checkpoints()
        step = self._restore()
        checkpointing.write_config(self._output, config.to_json())
        electra_config.write_electra_config(self._output, config.as_dict())
        self._open_logs(step)
        print_epochs(console, config)
        evaluation_due = self._schedule.evaluates_at(step) and not any(
            row["step"] == step for row in self._eval_log.rows
        )
        self._agree_on_start(step)
        evaluation_due = bool(
            strategies.from_chief(self._strategy, evaluation_due)
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
        for prefix in export_parts(
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
        print_model(self._console, self._model)
        dataset = build_dataset(config, config.train_batch_size, training=True)
        with tf.device("/cpu:0"):
            self._iterator = iter(dataset)
        self._interval = StepMetrics()

    def _agree_on_start(self, step: int) -> None:
        """Waits until all workers have read the directory; none may differ."""
        if step != (first := strategies.from_chief(self._strategy, step)):
            raise UserError(
                f"this worker would start at step {step:,}, the first one at"
                f" step {first:,}: model_dir {self._directory} must be one"
                " directory that all workers share."
            )

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
        check_same_model(before, now, path)
        moved = checkpointing.changed(before, now, DATA_HPARAMS)
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
            *DATA_HPARAMS,
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
        for text in electra_config.unseen_differences(
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
            self._best = checkpointing.BestCheckpoint(
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
            evaluator = build_evaluator(
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
                row=log_row,
                shown=shown_items,
                tokens=TOKENS,
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
        for text in evaluation_summary(result):
            self._console.line(f"  {text}")
        if self._collapse.message:
            self._console.warning(self._collapse.message)
        if self._best and (text := self._best.update(step, result)):
            self._console.line(f"  {text}")
        self._draw()
        chief = strategies.is_chief(self._strategy)
        if step >= self._config.num_train_steps and chief:
            write_results(self._config, result, step, self._console)

    def _draw(self) -> None:
        summaries.draw_curves(
            self._output,
            PANELS,
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
