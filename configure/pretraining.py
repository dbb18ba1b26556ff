# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hparams of pre-training: defaults, derived values and errors.

`--help` prints the comment of each field.
"""

import dataclasses
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any

from configure import presets
from configure.bounds import (
    BelowOne,
    Bound,
    Natural,
    NonNegative,
    Positive,
    Ratio,
    Share,
    Size,
    at_most,
    one_of,
)
from configure.config import TrainingConfig, hparam_error
from configure.errors import UserError
from configure.experiments import (
    EXPERIMENTS,
    experiment_errors,
    replacement_errors,
    settle_experiments,
)
from configure.generator import GeneratorKind, generator_kind
from configure.objectives import OBJECTIVES, Objective, Positions
from configure.problems import Problem

# Values that `debug` sets unless the user chose a value.
_DEBUG_SETTINGS = {
    "train_batch_size": 8,
    "num_train_steps": 20,
    "eval_batch_size": 4,
    "iterations_per_loop": 1,
    "num_eval_steps": 2,
}

# Metrics of an evaluation that keep_best accepts.
_BEST_METRICS = (
    "loss",
    "masked_lm_loss",
    "masked_lm_accuracy",
    "masked_lm_accuracy_at_mask",
    "sampled_masked_lm_accuracy",
    "disc_loss",
    "disc_auc",
    "disc_auc_real_tokens",
    "disc_accuracy",
    "disc_precision",
    "disc_recall",
    "token_loss",
    "token_accuracy",
)
# Hparams for which None requests the derived value.
_NONE_IS_DERIVED = (
    "eval_tfrecords",
    "max_predictions_per_seq",
    "two_stage_steps",
)

_FRACTION = "a fraction above 0 and below 1 (0.15 for 15%)"
_MaskShare = Annotated[float, Bound(lambda value: 0 < value < 1, _FRACTION)]
_Times = Annotated[Ratio, at_most(100)]
_Preset = Annotated[str, one_of(*presets.preset_names())]


def _experiment(name: str) -> Any:
    return Annotated[str, one_of(*EXPERIMENTS[name])]


@dataclasses.dataclass(frozen=True)
class PretrainingConfig(TrainingConfig):
    """Hparams of pre-training, with the original's names and defaults.

    Make a config with `create`, which also derives values from other values.
    Creating a config reads only presets, so paths need not exist.

    Source: google-research/electra, configure_pretraining.py.
    Differs: values are converted to their declared types;
      `max_predictions_per_seq` can be set; presets exist; values that would
      fail later are rejected.
    """

    purpose = (
        "Pre-train or evaluate ELECTRA, Electric or a masked language model."
    )

    # ---- General ----
    model_name: str  # name of the model, which is saved in DATA_DIR/models/NAME
    # Folder of data and models. DATA_DIR/pretrain_tfrecords contains the
    # training records, and DATA_DIR/vocab.txt the vocabulary.
    data_dir: str
    debug: bool = False  # train a tiny model for a few steps, as a test
    do_train: bool = True  # pre-train the model
    # Evaluate generator and discriminator instead of training.
    do_eval: bool = False

    # ---- Loss functions ----
    # Replaced token detection. If both this hparam and electric_objective are
    # false, the model is a masked LM like BERT.
    electra_objective: bool = True
    # Objective of Electric, a noise-contrastive cloze model.
    electric_objective: bool = False
    gen_weight: NonNegative = 1.0  # weight of the masked LM (generator) loss
    # Weight of the discriminator's loss. Default: 50; 1 for replace_mlm and
    # all_tokens_mlm, whose second network has the loss of a masked LM.
    disc_weight: NonNegative = 50.0
    # Fraction of tokens that are chosen for masking.
    mask_prob: _MaskShare = 0.15

    # ---- Optimization ----
    learning_rate: NonNegative = 5e-4  # Peak learning rate; base, large: 2e-4.
    lr_decay_power: NonNegative = 1.0  # Power of the decay to zero; 1: linear.
    # Decoupled weight decay, except for LayerNorm and biases.
    weight_decay_rate: NonNegative = 0.01
    num_warmup_steps: Natural = 10000  # steps of linear warm-up; 0: none

    # ---- Training settings ----
    # Steps per call of the graph; values above 100 act as 100.
    iterations_per_loop: Positive = 200
    save_checkpoints_steps: Positive = 1000  # steps between checkpoints
    num_train_steps: Natural = 1000000  # total number of updates
    num_eval_steps: Positive = 100  # batches per evaluation
    # Number of latest checkpoints to keep; 0: all.
    keep_checkpoint_max: Natural | None = 5

    # ---- Generator settings ----
    uniform_generator: bool = False  # draw replacements uniformly at random
    two_tower_generator: bool = False  # use Electric's model as generator
    # Separate the networks' embedding tables.
    untied_generator_embeddings: bool = False
    untied_generator: bool = True  # false: both networks are the same
    # Number of generator layers, as a fraction of the discriminator's.
    generator_layers: _Times = 1.0
    # Hidden size of the generator, as a fraction of the discriminator's.
    generator_hidden_size: _Times = 0.25
    disallow_correct: bool = False  # never sample the original token
    temperature: Ratio = 1.0  # temperature of sampling from the generator

    # ---- Batch sizes ----
    max_seq_length: Size = 128  # tokens per example, as in the records
    train_batch_size: Size = 128  # examples per update, over all devices
    eval_batch_size: Size = 128  # examples per evaluation batch
    # Maximum number of tokens masked in an example. Default: int((mask_prob +
    # 0.005) * max_seq_length).
    max_predictions_per_seq: int | None = None

    # ---- Locations ----
    # Comma-separated patterns of the training records. Default:
    # <data_dir>/pretrain_tfrecords/pretrain_data.tfrecord*
    pretrain_tfrecords: str = ""
    # Vocabulary file; a .json file is the tokenizer.json of a byte-level BPE.
    # Default: <data_dir>/vocab.txt.
    vocab_file: str = ""
    model_dir: str = ""  # default: <data_dir>/models/<model_name>
    # The default folder is in the default model_dir, even if model_dir is set.
    results_txt: str = ""  # default: .../results/unsup_results.txt
    results_pkl: str = ""  # default: .../results/unsup_results.pkl

    # ---- The papers' experiments (default: from the switches above) ----
    # Objective: electra, mlm, electric, electra_15 (loss at masked positions
    # only), replace_mlm or all_tokens_mlm.
    objective: _experiment("objective") = None
    # Source of replacements: sized (a network of generator_hidden_size),
    # uniform, unigram (token counts) or two_tower.
    generator: _experiment("generator") = None
    # Embedding tables that generator and discriminator share: embeddings (all
    # tables and their norm), token (the token table), none, or
    # gradient_disentangled (the token table, without the discriminator's
    # gradient).
    embedding_sharing: _experiment("embedding_sharing") = None
    # Order of training: joint (both networks together), two_stage (first the
    # generator, then the discriminator, which starts from the generator's
    # weights) or adversarial (the generator maximizes the discriminator's
    # loss).
    training_schedule: _experiment("training_schedule") = None
    # Steps of the first stage of two_stage. Default: half of num_train_steps.
    two_stage_steps: Positive | None = None

    # ---- Easy starts and separate training of the networks ----
    # Steps over which the share of replacements drawn by token counts falls
    # from 1 to unigram_floor; 0: the generator draws all replacements. This
    # easy start follows Fast-ELECTRA (ICLR 2024).
    unigram_steps: Natural = 0
    unigram_floor: BelowOne = 0.0  # minimum share drawn by token counts
    # Peak rate of the variables that only the generator has; shared tables keep
    # learning_rate. Default: learning_rate. After Dong et al., ICML 2023.
    generator_learning_rate: NonNegative | None = None
    # Clip the gradients of the generator's variables, and of all other
    # variables, by separate norms, as DeBERTa's decoupled training does. False:
    # clip all gradients by one norm.
    clip_networks_apart: bool = False
    # Weight of a second discriminator loss, which predicts the original tokens
    # at the chosen positions from the corrupted text; 0: no such loss. After
    # COCO-LM (2021).
    correction_weight: NonNegative = 0.0

    # ---- Extensions (every default keeps the original's behavior) ----
    preset: _Preset | None = None  # published settings that replace defaults
    mask_without_replacement: bool = False  # choose distinct positions
    whole_word_mask: bool = False  # mask all wordpieces of a word
    # Fraction of the chosen tokens that are replaced with [MASK].
    mask_replace_prob: Share = 0.85
    # Patterns of held-out records. Default: eval_data.tfrecord* in the folders
    # of pretrain_tfrecords. If no file matches, evaluation reads the training
    # records, as in the original.
    eval_tfrecords: str | None = None
    # Raw text to train on instead of records: comma-separated patterns of files
    # with a sentence per line and a blank line between documents. Each epoch
    # splits and pairs the text differently.
    pretrain_text: str = ""
    eval_text: str = ""  # held-out raw text, in place of records
    # File written by draw_exam. Evaluations also score the discriminator on the
    # replacements in this file, which are the same for all runs.
    exam: str = ""
    # Make the order of examples depend only on the seed.
    deterministic_input: bool = True
    # Initial weights: a checkpoint of the original, of BERT or of this project,
    # a folder of transformers, or hf:OWNER/NAME. Steps and warm-up start at 0.
    init_checkpoint: str | None = None
    # Steps between checkpoints that are kept in addition to
    # keep_checkpoint_max; 0: none.
    keep_every_n_steps: Natural = 0
    # At the end, export discriminator and generator separately, without
    # optimizer slots.
    export_at_end: bool = True
    # Number of consecutive evaluations with a single predicted class that cause
    # a warning; 0: no warning.
    collapse_patience: Natural = 3
    # Number of steps after warm-up within which the discriminator must beat
    # guessing, or a warning is printed; 0: no warning. Healthy runs may take
    # 4,000 steps.
    collapse_window: Natural = 5000
    results_json: str = ""  # default: .../results/unsup_results.json

    @property
    def has_discriminator(self) -> bool:
        return self.electra_objective or self.electric_objective

    @property
    def objective_facts(self) -> Objective:
        """Description of the objective, with its positions and heads."""
        return OBJECTIVES[self.objective]

    @property
    def has_two_networks(self) -> bool:
        """Return whether a second network is trained on the replacements."""
        return self.objective_facts.has_two_networks

    @property
    def predicts_tokens(self) -> bool:
        """Return whether the second network is a separate masked LM."""
        return self.objective_facts.predicts is not Positions.NONE

    @property
    def token_positions(self) -> Positions:
        """Positions at which the second network predicts original tokens."""
        if self.corrects:
            return Positions.CHOSEN
        return self.objective_facts.predicts

    @property
    def detects_replacements(self) -> bool:
        """Return whether a discriminator learns to detect replaced tokens."""
        return self.has_discriminator and not self.electric_objective

    @property
    def corrects(self) -> bool:
        """Return whether the discriminator also predicts original tokens."""
        return self.correction_weight > 0

    @property
    def mixes_token_counts(self) -> bool:
        """Return whether some replacements are drawn by token counts."""
        return self.unigram_steps > 0 or self.unigram_floor > 0

    @property
    def has_discriminator_head(self) -> bool:
        """Return whether a head classifies tokens as replaced or original."""
        return self.objective_facts.has_discriminator_head

    @property
    def has_delta(self) -> bool:
        """Return whether the discriminator adds a delta to a shared table."""
        if self.embedding_sharing != "gradient_disentangled":
            return False
        kinds = (GeneratorKind.SMALL, GeneratorKind.TWO_TOWER)
        return generator_kind(self) in kinds

    @classmethod
    def _preset(cls, hparams: Mapping[str, Any]) -> Mapping[str, Any]:
        name = hparams.get("preset")
        return {} if name is None else presets.load_preset(name)["hparams"]

    @classmethod
    def _derived(
        cls, values: Mapping[str, Any], origins: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return values derived from experiments, paths, size and objective.

        Source: google-research/electra, configure_pretraining.py, which writes
          results below the default model_dir even if model_dir is set.
        """
        experiments = settle_experiments(values)
        values = {**values, **experiments}
        derived = experiments | _derived_paths(values)
        if values["objective"] in ("replace_mlm", "all_tokens_mlm"):
            # The default weight, 50, is for the loss of replaced token
            # detection.
            derived["disc_weight"] = 1.0
        if values["max_predictions_per_seq"] is None:
            derived["max_predictions_per_seq"] = int(
                (values["mask_prob"] + 0.005) * values["max_seq_length"]
            )
        if values["debug"]:
            derived.update(_DEBUG_SETTINGS)
        # A preset may deviate from the following rules for embedding_size and
        # two_tower_generator.
        preset_names = {
            n for n, origin in origins.items() if origin == "preset"
        }
        if (
            values["model_size"] == "small"
            and "embedding_size" not in preset_names
        ):
            derived["embedding_size"] = 128
        if values["training_schedule"] == "two_stage":
            # The second stage starts from the first stage's weights, so both
            # networks must have equal sizes.
            derived["generator_hidden_size"] = 1.0
            derived["embedding_size"] = None
            derived["two_stage_steps"] = values["num_train_steps"] // 2
        if (
            values["electric_objective"]
            and "two_tower_generator" not in preset_names
        ):
            derived["two_tower_generator"] = True
        return derived

    @classmethod
    def clean_hparams(cls, hparams: Mapping[str, Any]) -> dict[str, Any]:
        """Convert hparams, and drop each None that requests a derived value."""
        # Drop None before the conversion, because "none" is a value of
        # embedding_sharing that the conversion would turn into None.
        hparams = _without_none(hparams, EXPERIMENTS)
        return _without_none(super().clean_hparams(hparams), _NONE_IS_DERIVED)

    def _errors(self) -> Iterator[Problem]:
        predictions = self.max_predictions_per_seq
        if predictions is not None and predictions < 1:
            yield hparam_error(
                "max_predictions_per_seq",
                f"must be at least 1, got {predictions} (mask_prob"
                f" {self.mask_prob}, max_seq_length {self.max_seq_length})."
                " Raise mask_prob, or set max_predictions_per_seq to 1 or more",
            )
        metrics = self._available_metrics()
        if self.keep_best is not None and self.keep_best not in metrics:
            yield hparam_error(
                "keep_best",
                f"unknown metric {self.keep_best!r}; expected one of"
                f" {', '.join(metrics)}. Choose one of these metrics",
            )
        if self.keep_every_n_steps % self.save_checkpoints_steps:
            yield hparam_error(
                "keep_every_n_steps",
                f"{self.keep_every_n_steps} is not a multiple of"
                f" save_checkpoints_steps ({self.save_checkpoints_steps}), and"
                " only saved checkpoints can be kept; set a multiple",
            )
        yield from self._generator_errors()
        for text_name in ("pretrain_text", "eval_text"):
            records_name = text_name.replace("text", "tfrecords")
            text = getattr(self, text_name)
            records = getattr(self, records_name)
            if text and records and self.is_explicit(records_name):
                yield hparam_error(
                    text_name,
                    f"{text!r} cannot be combined with {records_name} ="
                    f" {records!r}; leave one of the two out",
                )
        yield from experiment_errors(self)
        yield from replacement_errors(self, generator_kind(self))
        yield from super()._errors()

    def _available_metrics(self) -> list[str]:
        """Return the metrics that an evaluation of this objective computes."""
        has_head = {
            "disc": self.has_discriminator and self.disc_weight > 0,
            "sampled": self.has_two_networks,
            "token": self.token_positions is not Positions.NONE,
        }
        return [
            name
            for name in _BEST_METRICS
            if has_head.get(name.split("_")[0], True)
        ]

    def _generator_errors(self) -> Iterator[Problem]:
        """Yield errors about generator settings that crash the original."""
        kind = generator_kind(self)
        if kind.is_fixed and not self.has_two_networks:
            is_unigram = kind is GeneratorKind.UNIGRAM
            name = "generator" if is_unigram else "uniform_generator"
            yield hparam_error(
                name,
                "this objective trains only the generator, but a"
                f" {kind.value} generator is fixed. Set electra_objective to"
                f" true, or remove {name}",
            )
        if self.electric_objective and not self.two_tower_generator:
            yield hparam_error(
                "two_tower_generator",
                "electric_objective requires the two-tower generator; leave"
                " two_tower_generator out",
            )
        if not self.two_tower_generator:
            return
        reason = " of electric_objective" if self.electric_objective else ""
        if not self.untied_generator:
            yield hparam_error(
                "untied_generator",
                f"the two-tower generator{reason} cannot share the"
                " discriminator's weights; leave untied_generator out",
            )
        if self.uniform_generator:
            yield hparam_error(
                "uniform_generator",
                "cannot be combined with the two-tower generator"
                f"{reason}; leave uniform_generator out",
            )
        if not self.has_discriminator:
            yield hparam_error(
                "two_tower_generator",
                "requires electra_objective or electric_objective, because a"
                " masked LM has no separate generator; leave"
                " two_tower_generator out",
            )

    def check_mode(self) -> None:
        """Raise a UserError unless the config either trains or evaluates.

        Source: google-research/electra, run_pretraining.py, train_or_eval.
        """
        if self.do_train == self.do_eval:
            raise UserError(
                f"do_train and do_eval are both {self.do_train}; expected one."
                " To evaluate, pass --do_train=false --do_eval=true"
            )

    def _warnings(self) -> Iterator[str]:
        yield from self._size_warnings()
        if self.do_train:
            yield from self._length_warnings()
        if self.exam and not self.detects_replacements:
            yield (
                f"exam has no effect, because objective {self.objective} only"
                " predicts tokens. Remove exam"
            )
        # The original silently ignores the following settings.
        overrides = self.model_hparam_overrides
        if overrides.get("vocab_size", self.vocab_size) != self.vocab_size:
            yield (
                f"vocab_size {self.vocab_size} is overridden by"
                f" {overrides['vocab_size']} in model_hparam_overrides. Remove"
                " one of these values"
            )
        if self.debug and overrides:
            yield (
                "debug replaces the sizes in model_hparam_overrides with tiny"
                " sizes. Remove debug or model_hparam_overrides"
            )
        ineffective = [
            name
            for name in (
                "generator_layers",
                "generator_hidden_size",
                "untied_generator_embeddings",
                "embedding_sharing",
            )
            if self.origins and self.is_explicit(name)
        ]
        kind = generator_kind(self)
        if ineffective and (kind.is_fixed or kind is GeneratorKind.FULL):
            yield (
                f"{', '.join(ineffective)}: ignored, because these hparams need"
                " a separate generator. Remove these hparams"
            )
        yield from super()._warnings()

    def _size_warnings(self) -> Iterator[str]:
        """Yield a warning about defaults that suit only the small model."""
        hidden_size = self.model_hparam_overrides.get("hidden_size", 768)
        if self.model_size == "small" or hidden_size < 512 or self.debug:
            return
        published = presets.load_preset(self.model_size)["hparams"]
        small = [
            f"{name} {getattr(self, name):g}"
            for name in published.keys() - {"num_train_steps"}
            if self.origins.get(name, "default") == "default"
            and getattr(self, name) not in (None, published[name])
        ]
        if small:
            yield (
                f"model_size is {self.model_size}, but these settings are those"
                f" of the small model: {', '.join(sorted(small))}. Larger"
                " discriminators collapsed at learning_rate 0.0005. Pass"
                f" --preset={self.model_size} for the paper's settings"
            )

    def _length_warnings(self) -> Iterator[str]:
        """Yield warnings about hparams that exceed the steps or row length."""
        steps, steps_name = self.num_train_steps, "num_train_steps"
        if first := self.two_stage_steps:
            steps = min(first, steps - first)
            steps_name = "the number of steps of the shorter stage,"
        if 0 < steps <= self.num_warmup_steps:
            yield (
                f"num_warmup_steps {self.num_warmup_steps} is not below"
                f" {steps_name} {steps}: the learning rate does not reach"
                f" {self.learning_rate:g}. Lower num_warmup_steps (a tenth of"
                f" the run is usual: {max(1, steps // 10)})"
            )
        if self.unigram_steps > steps > 0:
            yield (
                f"unigram_steps {self.unigram_steps} exceeds num_train_steps"
                f" {steps}: some replacements are still drawn by token counts"
                " at the end of training. Lower unigram_steps (a quarter of the"
                f" run is usual: {max(1, steps // 4)})"
            )
        if self.max_predictions_per_seq > self.max_seq_length:
            yield (
                f"max_predictions_per_seq {self.max_predictions_per_seq}"
                f" exceeds max_seq_length {self.max_seq_length}: the excess"
                " predictions are padding. Lower max_predictions_per_seq"
            )


def _derived_paths(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paths that are derived from data_dir."""
    data_dir = values["data_dir"]
    records = os.path.join(data_dir, "pretrain_tfrecords")
    patterns = values["pretrain_tfrecords"] or os.path.join(records, "")
    stripped = [pattern.strip() for pattern in patterns.split(",")]
    folders = dict.fromkeys(os.path.dirname(p) for p in stripped if p)
    model_dir = os.path.join(data_dir, "models", values["model_name"])
    results = os.path.join(model_dir, "results", "unsup_results")
    return {
        "pretrain_tfrecords": os.path.join(records, "pretrain_data.tfrecord*"),
        "eval_tfrecords": ",".join(
            os.path.join(folder, "eval_data.tfrecord*") for folder in folders
        ),
        "vocab_file": os.path.join(data_dir, "vocab.txt"),
        "model_dir": model_dir,
        "results_txt": f"{results}.txt",
        "results_pkl": f"{results}.pkl",
        "results_json": f"{results}.json",
    }


def _without_none(
    values: Mapping[str, Any], names: Collection[str]
) -> dict[str, Any]:
    """Return the values, but drop each None whose name is in `names`."""
    return {
        name: value
        for name, value in values.items()
        if value is not None or name not in names
    }


def without_derived(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """Return hparams without the experiments that other hparams determine.

    The result stays valid if a switch changes afterwards.
    """
    unset = dict.fromkeys(EXPERIMENTS)
    defaults = PretrainingConfig.default_hparams()
    implied = settle_experiments({**defaults, **hparams, **unset})
    return {
        name: value
        for name, value in hparams.items()
        if name not in EXPERIMENTS or value not in (None, implied[name])
    }


def derive_experiments(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's experiments; older versions may have saved `hparams`."""
    values = {**PretrainingConfig.default_hparams(), **hparams}
    settled = settle_experiments(values)
    return {name: settled[name] for name in EXPERIMENTS}
