# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains or evaluates a model from a resolved configuration."""

import contextlib
import functools
import itertools
import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import tf1
from electra_tf.checkpoints.assignment import assign
from electra_tf.checkpoints.contents import CORRECTION_HEAD
from electra_tf.checkpoints.formats import (
    open_weights,
    strip_training_state,
)
from electra_tf.checkpoints.sizes import (
    MODEL_HPARAMS,
    check_same_model,
    list_changes,
    list_unseen_differences,
)
from electra_tf.checkpoints.weights import Weights
from electra_tf.data.example_count import count_training_examples
from electra_tf.data.fingerprints import (
    DATA,
    DATA_HPARAMS,
    DATA_PATHS,
    data_fingerprint,
    files_fingerprint,
    input_fingerprints,
)
from electra_tf.data.input_pipeline import build_dataset
from electra_tf.data.manifest import load_manifest
from electra_tf.data.record_checks import check_records, locate_damage
from electra_tf.data.record_files import find_record_files, text_hparam
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json
from electra_tf.pretraining import exam as exams
from electra_tf.pretraining import collapse, metrics, schedules, unigram
from electra_tf.pretraining.build import (
    NETWORKS,
    build_optimizer,
    build_train_loop,
)
from electra_tf.pretraining.exam import Exam
from electra_tf.pretraining.logged_values import UNIGRAM_SHARE, logged_losses
from electra_tf.pretraining.model import PretrainingModel, build_model
from electra_tf.pretraining.saving import EXPORT, export_parts
from electra_tf.text.casing import with_vocab_casing
from electra_tf.text.vocabulary import (
    check_vocab,
    check_vocab_size,
    refuse_other_vocab,
)
from electra_tf.training import checkpointing
from electra_tf.training.devices import create_strategy
from electra_tf.training.loop import (
    TOKENS,
    EvalLoop,
    StepMetrics,
    TrainLoop,
)
from electra_tf.training.preemption import PreemptionHandler
from electra_tf.training.replicas import worker_rows
from electra_tf.training.run import Run
from electra_tf.training.run_files import RunFiles
from electra_tf.training.summaries import (
    Console,
    Panel,
    Progress,
    ShownValue,
    print_evaluation_with_baselines,
    print_start,
    write_results,
)
from electra_tf.training.threads import count_cores, set_threads
from electra_tf.training.workers import (
    current_worker,
    refuse_differences,
    reports_lost_workers,
)

# No BERT holds these, or of these sizes.
_BERT_LACKS = "^(generator|(cloze|discriminator|token)_predictions)"


def run(
    config: PretrainingConfig, console: Console | None = None
) -> dict[str, Any]:
    """Trains (continuing where it stopped) or evaluates the newest checkpoint.

    Source: google-research/electra, run_pretraining.py, train_or_eval.
    Differs: continues, evaluates while training, writes the results files;
    `debug` does not delete the model directory unless `overwrite` is set.
    """
    config.check_mode()
    if config.do_eval:
        before = checkpointing.read_config(config.model_dir) or {}
        skip = {"model_dir"}
        for text in ("pretrain_text", "eval_text"):
            pair = {text, text.replace("text", "tfrecords")}
            skip |= pair if any(map(config.is_explicit, pair)) else set()
        config = config.with_run_settings(before, skip)
    config = with_vocab_casing(config)
    set_threads(config)  # Before TensorFlow starts.
    console = console or Console()
    _check_vocabulary(config)
    check_records(config, training=config.do_train)
    if config.do_train and config.eval_every_n_steps:
        check_records(config, training=False)
    strategy = create_strategy(config)
    preemption = PreemptionHandler(config.preemption_seconds)
    with reports_lost_workers(strategy):
        if current_worker(strategy).count > 1:
            facts = input_fingerprints(
                {name: getattr(config, name) for name in DATA},
                config.vocab_file,
                config.init_checkpoint,
            )
            if config.exam:
                facts["exam"] = Exam.read(config.exam).digest
            if config.do_train:  # A checkpoint's position holds the paths.
                read = data_fingerprint(config.as_dict())
                facts |= {f"path of {n}": read.get(n) for n in DATA_PATHS}
            refuse_differences(strategy, config, facts)
        print_start(console, config, strategy)
        if config.do_eval:
            path = _newest_checkpoint(config)
            evaluation = PretrainingRun(config, strategy, console, preemption)
            return evaluation.evaluate_checkpoint(path)
        try:
            with preemption:
                run = PretrainingRun(config, strategy, console, preemption)
                return run.train()
        except UserError as error:
            if not isinstance(error.__cause__, tf.errors.DataLossError):
                raise
            # TensorFlow names no file.
            raise UserError(f"{error} {locate_damage(config)}") from error


def _check_vocabulary(config: PretrainingConfig) -> None:
    """Refuses a vocabulary that is not that of the model to go on with."""
    check_vocab_size(config, len(check_vocab(config.vocab_file)))
    path = config.init_checkpoint if config.do_train else None
    if not (config.do_train and config.overwrite):
        path = tf1.find_latest(config.model_dir) or path
    own = open_weights(path).vocab_file if path else None
    if own:
        refuse_other_vocab(config.vocab_file, own, path)


class PretrainingRun(Run):
    """A run of pre-training."""

    config: PretrainingConfig
    model: PretrainingModel
    files = RunFiles(
        kind="training",
        names=("results", EXPORT, unigram.TOKEN_COUNTS),
        prefixes=("worker_", "results/unsup_results"),
    )
    shown = (
        ShownValue("loss", "loss"),
        ShownValue("gen_loss", "gen"),
        ShownValue("stage", "stage", "{:.4g}"),
        *(ShownValue(name, name, "{:.4g}") for name in schedules.REWARDS),
        ShownValue("disc_loss", "disc"),
        ShownValue("token_loss", "token"),
        ShownValue("replaced_share", "replaced", "{:.1%}"),
        ShownValue(UNIGRAM_SHARE, "by counts", "{:.1%}"),
    )

    def __init__(self, config: PretrainingConfig, *others: Any) -> None:
        self.title = f"{config.model_name}: pre-training"
        super().__init__(config, *others)

    def build_model(self) -> PretrainingModel:
        model = build_model(self.config)
        if self._exam:
            positions = model.encoder_config.max_position_embeddings
            self._exam.check(self.config.exam, model.vocab, positions)
        return model

    def write_settings(self, directory: str) -> None:
        """Writes them, and the counts that replacements are drawn by."""
        if (counts := self.model.token_counts) is not None:
            path = os.path.join(directory, unigram.TOKEN_COUNTS)
            text = json.dumps({"counts": counts.tolist()})
            write_atomically(path, f"{text}\n")
        super().write_settings(directory)

    def prepare_training(self) -> tuple[tf.data.Dataset, int]:
        config = self.config
        self._print_model()
        facts = data_fingerprint(config.as_dict())
        read = text_hparam(config, training=True) or DATA_PATHS[0]
        facts[f"files of {read}"] = files_fingerprint(getattr(config, read))
        self.data_fingerprint = checkpointing.DataFingerprint(facts)
        worker = current_worker(self.strategy)
        batches = build_dataset(
            config, config.train_batch_size, training=True, worker=worker
        )
        return batches, config.num_train_steps

    def build_optimizer(self) -> Any:
        return build_optimizer(self.config, self.model)

    def describe_evaluation_data(self) -> str:
        config, text = self.config, text_hparam(self.config, training=False)
        read = getattr(config, text) if text else None
        read = read or find_record_files(config, training=False).paths
        data = files_fingerprint(read)
        return f"{data}; {config.num_eval_steps} x {config.eval_batch_size}"

    def start_fresh(self) -> None:
        """Takes `init_checkpoint`'s weights, if given; steps start at 0.

        Slots stay behind: kept without the step they belong to, or left at
        zero without a warm-up, they make the first updates too large.
        """
        # Released models come without the file that names the newest.
        pattern = os.path.join(self.directory, "*.index")
        if found := tf.io.gfile.glob(pattern):
            self.console.warning(
                f"{', '.join(sorted(found)[:3])}: not read, since no file"
                f" `checkpoint` in {self.directory} names the newest one;"
                " training starts from fresh weights."
            )
        if not self.config.init_checkpoint:
            return
        weights = self._initial_weights()
        allowed = [self.config.allow_missing]
        if weights.kind == "bert":
            allowed.append(_BERT_LACKS)
        if self.config.corrects:  # Only checkpoints of runs hold this head.
            allowed.append(f"^{CORRECTION_HEAD}/")
        allowed = "|".join(filter(None, allowed))
        variables = self.model.variables
        report = assign(weights, variables, allow_missing=allowed)
        self.console.line(f"Starting from the weights of {report}")
        if "electra/encoder/layer_0/output/dense/bias" not in weights.shapes:
            return  # A generator alone: its own heads, not the model's.
        for text in list_unseen_differences(
            weights.hparams, self.config.as_dict()
        ):
            self.console.warning(
                f"{text}; the weights were trained with the former, so set it"
                " unless the change is meant"
            )

    def _initial_weights(self) -> Weights:
        """Open `init_checkpoint`, with its correction head if this run has one.

        The head is of use to no other reader of a checkpoint.
        """
        path, scope = self.config.init_checkpoint, f"{CORRECTION_HEAD}/"
        weights = open_weights(path)
        if self.config.corrects and any(
            name.startswith(scope) for name in weights.dropped
        ):
            whole = open_weights(path, with_training_state=True)
            return strip_training_state(whole, keep=scope)
        return weights

    def continue_from(self, path: str, with_position: bool = True) -> bool:
        """Restores; where the data changed, they are read from their start."""
        before = checkpointing.read_config(self.directory) or {}
        if before:  # Earlier versions had no such hparam.
            before.setdefault("pretrain_text", "")
        now = self.config.as_dict()
        check_same_model(before, now, path)
        moved = self.data_fingerprint.changes(path, data_fingerprint(before))
        positioned = super().continue_from(path, with_position=not moved)
        if self.config.init_checkpoint:
            self.console.line(
                f"  init_checkpoint {self.config.init_checkpoint} is not read"
                " again"
            )
        if not (moved or positioned):
            self.console.warning(
                "the checkpoint holds no data position; the records are read"
                " from their start"
            )
        if moved:
            self.console.warning(
                "the records are read from their start again, because the data"
                f" or how it is read changed: {'; '.join(moved)}"
            )
        told = {*MODEL_HPARAMS, *DATA_HPARAMS, "overwrite", "do_train"}
        others = tuple(name for name in now if name not in told)
        for text in list_changes(before, now, others):
            self.console.line(f"  changed since then: {text}")
        return positioned

    def is_finished(self, evaluation_due: bool) -> bool:
        self._print_epochs()
        steps = self.config.num_train_steps
        if self.global_step < steps:
            return False
        self.console.line(
            f"Already trained to step {self.global_step:,} (num_train_steps"
            f" {steps:,}): nothing left to train. Raise"
            " num_train_steps to train on, choose another model_name, or use"
            f" --overwrite to delete {self.directory} and start anew"
            + " (the original does that by itself in debug mode)"
            * self.config.debug
            + "."
        )
        return not evaluation_due

    def announce(self) -> None:
        super().announce()
        if self._stage == schedules.GENERATOR:
            self.console.line(
                "The generator alone; from step"
                f" {self.config.two_stage_steps:,} on the discriminator alone,"
                " which starts from its weights"
            )

    @property
    def _stage(self) -> int | None:
        return self.model.schedule.stage_at(self.global_step)

    def build_loop(self) -> TrainLoop:
        return build_train_loop(
            self.config,
            self.model,
            self.optimizer,
            worker_rows(
                self.iterator, self.strategy, self.config.train_batch_size
            ),
            self.step,
            self.strategy,
            loss_scale=self.loss_scale,
            should_stop=self.stop_requested,
            worker=current_worker(self.strategy),
        )

    def losses(self, taken: StepMetrics) -> dict[str, float]:
        """Means of the losses, and the share of replaced tokens."""
        row = {"stage": self._stage} if self._stage else {}
        names = logged_losses(taken.sums)
        row |= {name: taken.mean(own) for name, own in names.items()}
        if "replaced_tokens" in taken.sums:
            replaced = taken.sums["replaced_tokens"]
            row["replaced_share"] = replaced / taken.sums[TOKENS]
        if UNIGRAM_SHARE in taken.last:
            row[UNIGRAM_SHARE] = taken.last[UNIGRAM_SHARE]
        for network in NETWORKS:
            if (name := f"{network}_grad_norm") in taken.sums:
                row[name] = taken.update_mean(name)
        return row

    @functools.cached_property
    def _eval_loops(self) -> dict[int | None, EvalLoop]:
        """By stage: a first one has no discriminator to evaluate."""
        return {
            stage: EvalLoop(
                compute=functools.partial(self.model.compute, stage=stage),
                seed=self.config.seed,
                strategy=self.strategy,
                outputs=metrics.metric_inputs,
                prepare=self.model.prepare_rows,
                should_stop=self.stop_requested,
                jit_compile=self.config.jit_compile,
                cores=count_cores(self.config, self.strategy),
            )
            for stage in (None, schedules.GENERATOR, schedules.DISCRIMINATOR)
        }

    @functools.cached_property
    def _token_counts(self) -> np.ndarray | None:
        config = self.config
        try:
            batches = build_dataset(config, config.train_batch_size, True)
        except UserError:
            return None  # Evaluating where only held-out records are.
        vocab_size = self.model.encoder_config.vocab_size
        return unigram.count_tokens(batches, vocab_size)

    def open_logs(self) -> None:
        super().open_logs()
        self._loss_watch = collapse.LossWatch(self.config, self.train_log.rows)

    def check_row(self, row: dict[str, Any]) -> None:
        """Warns where the discriminator's loss says that it learns nothing."""
        if text := self._loss_watch.update(row):
            self.console.warning(text)

    def evaluate(
        self, on_batch: Callable[[float], None] = lambda loss: None
    ) -> dict[str, float]:
        config = self.config
        found = metrics.PretrainingMetrics(
            mask_token_id=self.model.vocab["[MASK]"],
            disc_weight=config.disc_weight,
            token_counts=self._token_counts,
        )

        def take(arrays: dict[str, np.ndarray], loss: float) -> None:
            found.update(arrays, loss)
            on_batch(loss)

        batches = build_dataset(config, config.eval_batch_size, training=False)
        loop = self._eval_loops[self._stage]
        counts = loop.run(batches, take, config.num_eval_steps)
        result = {**found.result(), **counts}
        if self._exam and self._stage != schedules.GENERATOR:
            result |= exams.sit_exam(
                self._discriminator_logits, self._exam, config.eval_batch_size
            )
        return result

    @functools.cached_property
    def _discriminator_logits(self) -> Callable[..., tf.Tensor]:
        return exams.discriminator_logits(self.model)

    @functools.cached_property
    def _exam(self) -> Exam | None:
        """The exam, for objectives that detect replaced tokens."""
        config = self.config
        detects = config.has_discriminator and not config.electric_objective
        return Exam.read(config.exam) if config.exam and detects else None

    def record_evaluation(self, step: int, result: dict[str, float]) -> None:
        stage = self.model.schedule.stage_at(step)
        row = {"stage": stage, **result} if stage else dict(result)
        # Copying every token may well be right.
        patience = self.config.collapse_patience * self.config.has_discriminator
        watch = collapse.CollapseWatch(patience, self.eval_log.rows)
        in_a_row = watch.update(result)
        if "disc_loss" in result:
            row["one_class_evaluations"] = in_a_row
        self.eval_log.write(step, row)
        print_evaluation_with_baselines(
            self.console, step, result, metrics.BASELINES
        )
        if watch.message:
            self.console.warning(watch.message)
        if stage == schedules.GENERATOR:  # No model to fine-tune yet.
            self.draw_curves()
        else:
            self.keep_if_best(step, result)
        if step >= self.config.num_train_steps and self.is_chief:
            write_results(self.console, self.config, step, result)

    def panels(self) -> tuple[Panel, ...]:
        return metrics.PANELS

    def finish(self, again: bool = False) -> None:
        """Writes the two networks apart, and results that a kill prevented."""
        config, step = self.config, self.global_step
        rows = self.eval_log.rows if again and self.is_chief else []
        if rows and rows[-1]["step"] == step:
            results = {}
            with contextlib.suppress(UserError):  # Missing, or damaged.
                results = read_json(config.results_json)
            if results.get("step") != step:
                of_log = ("step", "one_class_evaluations")
                row = {n: v for n, v in rows[-1].items() if n not in of_log}
                write_results(self.console, config, step, row)
        if config.export_at_end and self.is_chief:
            for prefix in export_parts(
                config, self.model, step, self.output, only_missing=again
            ):
                self.console.line(f"Wrote {prefix} (weights only)")

    def evaluate_checkpoint(self, path: str) -> dict[str, Any]:
        config, console = self.config, self.console
        self._print_model()
        checkpointing.restore_model(path, self.model, self.step)
        console.line(f"Evaluating {path} (step {self.global_step:,})")
        console.heading("Running evaluation")
        most = config.num_eval_steps
        progress, numbers = Progress(0, most), itertools.count(1)

        def on_batch(loss: float) -> None:
            number = next(numbers)
            if number % 10 == 0 or number == most:
                console.line(progress.line(number, {"loss": f"{loss:.4f}"}))

        result = self.evaluate(on_batch)
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
        """Prints how often the run sees each example, if manifests tell."""
        config = self.config
        counted = config.num_train_steps * config.train_batch_size
        text = (
            f"Training: {config.num_train_steps:,} steps of"
            f" {config.train_batch_size} examples = {counted:,} examples"
        )
        if config.pretrain_text:
            examples = count_training_examples(config).examples
            text += f", about {counted / examples:.1f} epochs of raw text"
        else:
            paths = find_record_files(config, training=True).paths
            if all(map(load_manifest, set(map(os.path.dirname, paths)))):
                examples = count_training_examples(config).examples
                text += f", {counted / examples:.1f} epochs of {examples:,}"
        self.console.line(text)


def _newest_checkpoint(config: PretrainingConfig) -> str:
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
    return path
