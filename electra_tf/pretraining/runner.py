# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs of pre-training: training, or evaluation of a checkpoint."""

import contextlib
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from configure.errors import UserError
from configure.generator import GeneratorKind, generator_kind
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import tf1
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.hparam_changes import check_same_model, list_changes
from electra_tf.checkpoints.sizes import MODEL_HPARAMS
from electra_tf.data.example_count import count_training_examples
from electra_tf.data.fingerprints import (
    DATA,
    DATA_HPARAMS,
    DATA_PATHS,
    data_fingerprint,
    files_fingerprint,
    input_fingerprints,
)
from electra_tf.data.input_files import InputFiles
from electra_tf.data.input_pipeline import build_dataset
from electra_tf.data.manifest import load_manifest
from electra_tf.data.record_checks import check_records, locate_damage
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json
from electra_tf.pretraining import collapse, metrics, two_stage, unigram
from electra_tf.pretraining.build import (
    Optimizer,
    build_optimizer,
    build_train_loop,
)
from electra_tf.pretraining.evaluation import (
    Evaluation,
    find_latest_checkpoint,
)
from electra_tf.pretraining.exam import Exam
from electra_tf.pretraining.initial_checkpoint import load_initial_checkpoint
from electra_tf.pretraining.logged_values import SHOWN_VALUES, log_row
from electra_tf.pretraining.model import PretrainingModel, build_model
from electra_tf.pretraining.saving import EXPORT, export_parts
from electra_tf.pretraining.two_stage import TwoStageLoop
from electra_tf.text.casing import with_vocab_casing
from electra_tf.text.vocabulary import (
    check_vocab,
    check_vocab_size,
    refuse_other_vocab,
)
from electra_tf.training import checkpointing
from electra_tf.training.console import (
    Console,
    Progress,
    print_evaluation_with_baselines,
    print_start,
)
from electra_tf.training.curves import Panel
from electra_tf.training.data_position import DataFingerprint
from electra_tf.training.devices import create_strategy
from electra_tf.training.loop import StepMetrics, TrainLoop
from electra_tf.training.preemption import PreemptionHandler
from electra_tf.training.replicas import worker_rows
from electra_tf.training.result_files import write_results
from electra_tf.training.run import Run
from electra_tf.training.run_files import RunFiles
from electra_tf.training.threads import set_threads
from electra_tf.training.workers import (
    current_worker,
    refuse_differences,
    reports_lost_workers,
)

# Columns of the evaluation log that are not metrics.
_LOG_COLUMNS = ("step", "one_class_evaluations")
# Hparams that define the metrics of an evaluation. Metrics of the masked LM do
# not depend on the sampled replacements, and only the loss depends on weights.
_MASKING = (
    "mask_prob",
    "mask_replace_prob",
    "mask_without_replacement",
    "max_predictions_per_seq",
    "max_seq_length",
    "whole_word_mask",
)
_SAMPLING = ("disallow_correct", "temperature")
_LOSS_WEIGHTS = ("correction_weight", "disc_weight", "gen_weight")


def run(
    config: PretrainingConfig, console: Console | None = None
) -> dict[str, float]:
    """Train a model, or evaluate its latest checkpoint.

    Training continues from the latest checkpoint.

    Args:
      config: config of the run.
      console: console to print to; None: standard output.

    Returns:
      The last training row, evaluation and `global_step`; if a signal stopped
      the run, also the signal's number as `interrupted`.

    Source: google-research/electra, run_pretraining.py, train_or_eval.
    Differs: continues runs, evaluates while training, and writes the results
    files; `debug` does not delete the model directory unless `overwrite` is
    set.
    """
    config.check_mode()
    if config.do_eval:
        config = _with_run_settings(config)
    config = with_vocab_casing(config)
    # The numbers of threads must be set before TensorFlow's runtime starts.
    set_threads(
        config.threads, config.micro_batch_size, config.lets_cores_share
    )
    console = console or Console()
    _check_vocabulary(config)
    check_records(config, training=config.do_train)
    if config.do_train and config.eval_every_n_steps:
        check_records(config, training=False)
    strategy = create_strategy(config)
    preemption = PreemptionHandler(config.preemption_seconds)
    with reports_lost_workers(strategy):
        if current_worker(strategy).total > 1:
            refuse_differences(
                strategy, config.as_dict(), _worker_inputs(config)
            )
        print_start(console, config, strategy)
        try:
            if config.do_eval:
                path = find_latest_checkpoint(
                    config.model_dir, config.as_dict()
                )
                evaluation = PretrainingRun(
                    config, strategy, console, preemption
                )
                return evaluation.evaluate_checkpoint(path)
            with preemption:
                training = PretrainingRun(config, strategy, console, preemption)
                return training.train()
        except UserError as error:
            if not isinstance(error.__cause__, tf.errors.DataLossError):
                raise
            # TensorFlow's error does not name the file.
            damage = locate_damage(InputFiles.of(config), config.do_train)
            raise UserError(f"{error} {damage}") from error


def _with_run_settings(config: PretrainingConfig) -> PretrainingConfig:
    """Return the config with the settings of the evaluated run."""
    run_settings = checkpointing.read_config(config.model_dir) or {}
    excluded = {"model_dir"}
    for text in ("pretrain_text", "eval_text"):
        # Raw text would take precedence over records. If the user sets raw text
        # or records, the run's values of both hparams are therefore ignored.
        pair = {text, text.replace("text", "tfrecords")}
        if any(config.is_explicit(name) for name in pair):
            excluded |= pair
    return config.with_run_settings(run_settings, excluded)


def _check_vocabulary(config: PretrainingConfig) -> None:
    """Raise a UserError if the vocabulary differs from that of the weights."""
    check_vocab_size(
        config.vocab_file,
        len(check_vocab(config.vocab_file)),
        config.token_rows,
        config.implied_rows_origin,
    )
    path = config.init_checkpoint if config.do_train else None
    if not (config.do_train and config.overwrite):
        path = tf1.find_latest(config.model_dir) or path
    if path and (stored := open_weights(path).vocab_file):
        refuse_other_vocab(config.vocab_file, stored, path)


def _worker_inputs(config: PretrainingConfig) -> dict[str, str | None]:
    """Return fingerprints of files that must be equal on all workers."""
    fingerprints: dict[str, str | None] = {
        **input_fingerprints(
            {name: getattr(config, name) for name in DATA},
            config.vocab_file,
            config.init_checkpoint,
        )
    }
    if config.exam:
        fingerprints["exam"] = Exam.read(config.exam).digest
    # Paths must be equal, too, because a checkpoint's data position contains
    # them.
    if config.do_train:
        hparams = data_fingerprint(config.as_dict())
        for name in DATA_PATHS:
            fingerprints[f"path of {name}"] = hparams.get(name)
    return fingerprints


def watch_loss(
    config: PretrainingConfig, earlier: Sequence[Mapping[str, float]] = ()
) -> collapse.LossWatch:
    """Return a `LossWatch` for the discriminator of a run.

    Args:
      config: config of the run.
      earlier: rows of its training log so far.
    """
    # Only electra's loss is comparable with the loss of guessing: the losses of
    # other objectives cover fewer tokens, or have an offset in the logits.
    window = config.collapse_window if config.objective == "electra" else 0
    kind, share = generator_kind(config), config.generator_hidden_size
    if kind is GeneratorKind.FULL:
        share = 1.0
    # A warning suggests a smaller generator only if the generator has a width
    # and the networks may differ in size, as two stages do not allow.
    if kind.is_fixed or config.two_stage_steps:
        share = 0.0
    first_step = config.num_warmup_steps + (config.two_stage_steps or 0)
    return collapse.LossWatch(window, first_step, share, earlier)


class PretrainingRun(Run):
    """A run of pre-training."""

    files = RunFiles(
        kind="training",
        names=("results", EXPORT, unigram.TOKEN_COUNTS),
        prefixes=("worker_", "results/unsup_results"),
    )
    shown = SHOWN_VALUES
    evaluation_hparams = (
        "eval_tfrecords",
        "eval_text",
        "num_eval_steps",
        "eval_batch_size",
    )
    config: PretrainingConfig
    model: PretrainingModel
    optimizer: Optimizer

    def __init__(
        self,
        config: PretrainingConfig,
        strategy: tf.distribute.Strategy,
        console: Console,
        preemption: PreemptionHandler,
    ) -> None:
        """Build the model without writing files."""
        self.title = f"{config.model_name}: pre-training"
        super().__init__(config, strategy, console, preemption)
        self._evaluation = Evaluation(
            self.model, strategy, self.stop_requested, console.warning
        )

    def build_model(self) -> PretrainingModel:
        return build_model(self.config)

    def write_settings(self, directory: str) -> None:
        """Write the settings, and the token counts for drawing replacements."""
        if (counts := self.model.token_counts) is not None:
            path = os.path.join(directory, unigram.TOKEN_COUNTS)
            text = json.dumps({"counts": counts.tolist()})
            write_atomically(path, f"{text}\n")
        super().write_settings(directory)

    def prepare_training(self) -> tuple[tf.data.Dataset, int]:
        config = self.config
        self._print_model()
        fingerprint = data_fingerprint(config.as_dict())
        files = InputFiles.of(config)
        source = files.text_hparam(training=True) or DATA_PATHS[0]
        fingerprint[f"files of {source}"] = files_fingerprint(
            getattr(config, source)
        )
        self.data_fingerprint = DataFingerprint(fingerprint)
        worker = current_worker(self.strategy)
        batches = build_dataset(
            config, config.train_batch_size, training=True, worker=worker
        )
        return batches, config.num_train_steps

    def build_optimizer(self) -> Optimizer:
        return build_optimizer(self.config, self.model)

    def describe_evaluation_data(self) -> str:
        config, files = self.config, InputFiles.of(self.config)
        source = files.text_hparam(training=False)
        paths = getattr(config, source) if source else None
        paths = paths or files.find_records(training=False).paths
        fingerprint = files_fingerprint(paths)
        return (
            f"{fingerprint}; {config.num_eval_steps} x {config.eval_batch_size}"
        )

    def settings_of_metric(self, metric: str) -> dict[str, object]:
        names = [*_MASKING]
        if not metric.startswith("masked_lm"):
            names += _SAMPLING
        if metric == "loss":
            names += _LOSS_WEIGHTS
        return {name: getattr(self.config, name) for name in names}

    def start_fresh(self) -> None:
        load_initial_checkpoint(self.model, self.directory, self.console)

    def continue_from(self, path: str, with_position: bool = True) -> bool:
        """Restore a checkpoint; return whether its data position was restored.

        If the data changed, the position is ignored.
        """
        previous = checkpointing.read_config(self.directory) or {}
        if previous:  # Earlier versions lacked this hparam.
            previous.setdefault("pretrain_text", "")
        current = self.config.as_dict()
        check_same_model(previous, current, path)
        assert self.data_fingerprint is not None  # set by `prepare_training`
        former = self.data_fingerprint.former_facts(
            path, data_fingerprint(previous)
        )
        changes = self.data_fingerprint.changes(former)
        positioned = super().continue_from(path, with_position=not changes)
        if initial := self.config.init_checkpoint:
            if previous.get("init_checkpoint", initial) == initial:
                self.console.line(
                    f"  init_checkpoint {initial} is not read again"
                )
            else:
                self.console.warning(
                    f"init_checkpoint {initial} is not read, because the run"
                    f" continues from its own step {self.global_step:,}. To"
                    " start from init_checkpoint, choose a different"
                    f" model_name, or pass --overwrite to delete"
                    f" {self.directory}."
                )
        if changes:
            self.console.warning(
                "reading the records from the start again, because the data or"
                f" the order of reading changed: {'; '.join(changes)}"
            )
            other_data = any(x.startswith("files of ") for x in changes)
            # Text instead of records, or records instead of text.
            was_text = bool(former.get("pretrain_text"))
            other_data |= was_text != bool(self.config.pretrain_text)
            counts = os.path.join(self.directory, unigram.TOKEN_COUNTS)
            if other_data and filesystem.exists(counts):
                use = "replacements are still drawn"
                if self.model.token_counts is None:
                    use = "a later start with unigram_steps would draw"
                self.console.warning(
                    f"{unigram.TOKEN_COUNTS} has the token counts of the"
                    f" earlier data, by which {use}. Pass --overwrite to start"
                    " again with counts of the current data."
                )
        elif not positioned:
            self.console.warning(
                "the checkpoint has no data position; reading the records from"
                " the start"
            )
        reported = {*MODEL_HPARAMS, *DATA_HPARAMS, "overwrite", "do_train"}
        others = tuple(name for name in current if name not in reported)
        for change in list_changes(previous, current, others):
            self.console.line(f"  changed since the last start: {change}")
        return positioned

    def is_finished(self, evaluation_due: bool) -> bool:
        self._print_epochs()
        steps = self.config.num_train_steps
        if self.global_step < steps:
            return False
        text = (
            f"Already trained to step {self.global_step:,} (num_train_steps"
            f" {steps:,}): no steps remain. Raise num_train_steps to train"
            " further, choose a different model_name, or pass --overwrite to"
            f" delete {self.directory} and start again."
        )
        if self.config.debug:
            text += " In debug mode, the original always deletes the directory."
        self.console.line(text)
        return not evaluation_due

    def announce(self) -> None:
        super().announce()
        if self._stage == two_stage.GENERATOR:
            self.console.line(
                "Only the generator is trained up to step"
                f" {self.config.two_stage_steps:,}. Then the discriminator"
                " starts from the generator's weights, and only the"
                " discriminator is trained"
            )

    @property
    def _stage(self) -> int | None:
        return self.model.schedule.stage_at(self.global_step)

    def build_loop(self) -> TrainLoop | TwoStageLoop:
        batches = worker_rows(
            self.iterator, self.strategy, self.config.train_batch_size
        )
        return build_train_loop(
            self.config,
            self.model,
            self.optimizer,
            batches,
            self.step,
            self.strategy,
            loss_scale=self.loss_scale,
            should_stop=self.stop_requested,
            worker=current_worker(self.strategy),
        )

    def losses(self, interval: StepMetrics) -> dict[str, float]:
        return log_row(interval, self._stage)

    def open_logs(self) -> None:
        """Open the logs, and start to watch the discriminator's loss."""
        super().open_logs()
        self._loss_watch = watch_loss(self.config, self.train_log.rows)

    def check_row(self, row: Mapping[str, float]) -> None:
        """Print a warning if the discriminator does not learn."""
        if message := self._loss_watch.update(row):
            self.console.warning(message)

    def evaluate(
        self, on_batch: Callable[[float], None] = lambda loss: None
    ) -> dict[str, float]:
        """Return the metrics of the model with its current weights.

        Args:
          on_batch: function of the loss of each batch, in nats.
        """
        return self._evaluation.run(self._stage, on_batch)

    def record_evaluation(self, step: int, result: dict[str, float]) -> None:
        stage = self.model.schedule.stage_at(step)
        row = {"stage": stage, **result} if stage else dict(result)
        patience = self.config.collapse_patience
        if not self.config.has_discriminator:
            # All-Tokens MLM can correctly copy every token, so predicting one
            # class for all tokens is not a collapse.
            patience = 0
        watch = collapse.CollapseWatch(patience, self.eval_log.rows)
        count = watch.update(result)
        if "disc_loss" in result:
            row["one_class_evaluations"] = count
        self.eval_log.write(step, row)
        print_evaluation_with_baselines(
            self.console, step, result, metrics.BASELINES
        )
        if watch.message:
            self.console.warning(watch.message)
        # In the first stage no model can be the best, because the discriminator
        # is untrained.
        if stage == two_stage.GENERATOR:
            self.draw_curves()
        else:
            self.keep_if_best(step, result)
        if step >= self.config.num_train_steps and self.is_chief:
            write_results(self.console, self.config, step, result)

    def panels(self) -> Sequence[Panel]:
        return metrics.PANELS

    def finish(self, again: bool = False) -> None:
        """Export the two networks, and write missing results of a killed run.

        Args:
          again: whether the run had already ended; then only missing files are
            written.
        """
        if not self.is_chief:
            return
        config, step = self.config, self.global_step
        rows = self.eval_log.rows
        if again and rows and rows[-1]["step"] == step:
            results = {}
            # A missing or corrupt file is written again.
            with contextlib.suppress(UserError):
                results = read_json(config.results_json)
            if results.get("step") != step:
                row = {
                    name: value
                    for name, value in rows[-1].items()
                    if name not in _LOG_COLUMNS
                }
                write_results(self.console, config, step, row)
        if config.export_at_end:
            for prefix in export_parts(
                self.model, step, self.output, only_missing=again
            ):
                self.console.line(f"Wrote {prefix} (weights only)")

    def evaluate_checkpoint(self, path: str) -> dict[str, float]:
        """Evaluate a checkpoint, and write the results files.

        Returns:
          The metrics and `global_step`.
        """
        config, console = self.config, self.console
        self._print_model()
        checkpointing.restore_model(path, self.model, self.step)
        console.line(f"Evaluating {path} (step {self.global_step:,})")
        console.heading("Running evaluation")
        steps = config.num_eval_steps
        progress, numbers = Progress(0, steps), itertools.count(1)

        def print_progress(loss: float) -> None:
            number = next(numbers)
            if number % 10 == 0 or number == steps:
                console.line(progress.line(number, {"loss": f"{loss:.4f}"}))

        result = self.evaluate(print_progress)
        if self.is_chief:
            write_results(console, config, self.global_step, result)
        return {**result, "global_step": self.global_step}

    def _print_model(self) -> None:
        variables = self.model.variables
        count = sum(variable.shape.num_elements() for variable in variables)
        self.console.line(
            f"Model: {count:,} parameters in {len(variables)} variables"
        )

    def _print_epochs(self) -> None:
        """Print the number of examples, and the number of epochs if known."""
        config = self.config
        count = config.num_train_steps * config.train_batch_size
        text = (
            f"Training: {config.num_train_steps:,} steps of"
            f" {config.train_batch_size} examples = {count:,} examples"
        )
        if config.pretrain_text:
            examples = count_training_examples(config).examples
            epochs = count / examples
            text = f"{text}, about {epochs:.1f} epochs of the raw text"
        else:
            paths = InputFiles.of(config).find_records(training=True).paths
            folders = {os.path.dirname(path) for path in paths}
            if all(load_manifest(folder) for folder in folders):
                examples = count_training_examples(config).examples
                epochs = count / examples
                text = f"{text}, {epochs:.1f} epochs of {examples:,} examples"
        self.console.line(text)
