# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every pre-training hyperparameter, its default, and the order of overrides.

The field comments are the documentation: `--help` prints them.
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
from configure.config import TrainingConfig
from configure.errors import UserError
from configure.experiments import (
    EXPERIMENTS,
    problems,
    replacement_problems,
    settle,
)
from configure.generator import GeneratorKind, generator_kind
from configure.objectives import OBJECTIVES, Objective, Positions

# What `debug` sets unless told otherwise.
_DEBUG_SETTINGS = {
    "train_batch_size": 8,
    "num_train_steps": 20,
    "eval_batch_size": 4,
    "iterations_per_loop": 1,
    "num_eval_steps": 2,
}

# Metrics of an evaluation that can choose the best checkpoint.
_BEST_METRICS = tuple(
    """
    loss masked_lm_loss masked_lm_accuracy masked_lm_accuracy_at_mask
    sampled_masked_lm_accuracy disc_loss disc_auc disc_auc_real_tokens
    disc_accuracy disc_precision disc_recall token_loss token_accuracy
    """.split()
)

_BETWEEN = "a fraction above 0 and below 1 (0.15 for 15%)"
_MaskShare = Annotated[float, Bound(lambda value: 0 < value < 1, _BETWEEN)]
_Times = Annotated[Ratio, at_most(100)]
_Preset = Annotated[str, one_of(*presets.preset_names())]


def _experiment(name: str) -> Any:
    return Annotated[str, one_of(*EXPERIMENTS[name])]


@dataclasses.dataclass(frozen=True)
class PretrainingConfig(TrainingConfig):
    """Pre-training hyperparameters; names and defaults are the original's.

    Make one with `create`, which also derives what depends on other values.
    Nothing here touches the disk, so paths need not exist.

    Source: google-research/electra, configure_pretraining.py.
    Differs: values are converted to their declared types,
      `max_predictions_per_seq` can be given, there are presets, and settings
      that could only crash later are refused here.
    """

    purpose = (
        "Pre-trains ELECTRA, Electric or a masked language model, or evaluates"
        " one."
    )

    # ---- General ----
    model_name: str  # the model's name; it is kept in DATA_DIR/models/NAME
    # Where data and models live: records in DIR/pretrain_tfrecords, the
    # vocabulary in DIR/vocab.txt.
    data_dir: str
    debug: bool = False  # a tiny model for a few steps: does everything run?
    do_train: bool = True  # pre-train
    do_eval: bool = False  # evaluate the generator and discriminator instead

    # ---- Loss functions ----
    # Replaced token detection. With this and electric_objective false, a
    # masked LM like BERT's.
    electra_objective: bool = True
    electric_objective: bool = False  # noise-contrastive cloze model
    gen_weight: NonNegative = 1.0  # weight of the masked LM (generator) loss
    # Weight of the discriminator loss. Default: 50; 1 for replace_mlm and
    # all_tokens_mlm, whose second network has a masked LM's loss.
    disc_weight: NonNegative = 50.0
    mask_prob: _MaskShare = 0.15  # fraction of tokens masked out and replaced

    # ---- Optimization ----
    learning_rate: NonNegative = 5e-4  # peak rate (base and large want 2e-4)
    lr_decay_power: NonNegative = 1.0  # 1 is linear decay to zero
    # Decoupled; not on LayerNorm and biases.
    weight_decay_rate: NonNegative = 0.01
    num_warmup_steps: Natural = 10000  # steps of linear warm-up; 0 means none

    # ---- Training settings ----
    iterations_per_loop: Positive = 200  # steps between looks, at most 100
    save_checkpoints_steps: Positive = 1000  # steps between checkpoints
    num_train_steps: Natural = 1000000  # optimizer updates in all
    num_eval_steps: Positive = 100  # batches in one evaluation
    keep_checkpoint_max: Natural | None = 5  # newest checkpoints kept; 0: all

    # ---- Generator settings ----
    uniform_generator: bool = False  # replacements drawn uniformly at random
    two_tower_generator: bool = False  # a two-tower cloze model generates
    untied_generator_embeddings: bool = False  # generator has its own tables
    untied_generator: bool = True  # false: one network plays both parts
    generator_layers: _Times = 1.0  # fraction of the discriminator's layers
    generator_hidden_size: _Times = 0.25  # fraction of its hidden size
    disallow_correct: bool = False  # never sample the original token
    temperature: Ratio = 1.0  # of sampling from the generator

    # ---- Batch sizes ----
    max_seq_length: Size = 128  # wordpieces per example, as in the records
    train_batch_size: Size = 128  # examples per update, over all devices
    eval_batch_size: Size = 128  # examples per evaluation batch
    # Most tokens masked in one example.
    # Default: int((mask_prob + 0.005) * max_seq_length).
    max_predictions_per_seq: int | None = None

    # ---- Locations ----
    # Patterns of the training records, separated by commas. Default:
    # <data_dir>/pretrain_tfrecords/pretrain_data.tfrecord*
    pretrain_tfrecords: str = ""
    # Default: <data_dir>/vocab.txt. A .json is byte-level BPE's tokenizer.json.
    vocab_file: str = ""
    model_dir: str = ""  # default: <data_dir>/models/<model_name>
    # Results go beside the default model_dir, even when model_dir is given.
    results_txt: str = ""  # default: .../results/unsup_results.txt
    results_pkl: str = ""  # default: .../results/unsup_results.pkl

    # ---- The papers' experiments (unset: as the switches above say) ----
    # electra, mlm, electric, electra_15 (loss at masked positions alone),
    # replace_mlm or all_tokens_mlm.
    objective: _experiment("objective") = None
    # Where replacements come from: sized (a network of
    # generator_hidden_size), uniform, unigram (token counts) or two_tower.
    generator: _experiment("generator") = None
    # What generator and discriminator share: embeddings (all tables and their
    # norm), token (the token table), none, or gradient_disentangled (the
    # token table, without the discriminator's gradient).
    embedding_sharing: _experiment("embedding_sharing") = None
    # joint; two_stage (the generator first, then the discriminator from its
    # weights); or adversarial (the generator raises the discriminator's loss).
    training_schedule: _experiment("training_schedule") = None
    # Steps of the first stage of two_stage. Default: half of num_train_steps.
    two_stage_steps: Positive | None = None

    # ---- Replacements that begin easy, networks that learn apart ----
    # Steps over which the share of replacements that are drawn by token
    # counts falls from 1 to 0 (or unigram_floor); 0: by the generator alone.
    # An easy start, after Fast-ELECTRA (ICLR 2024).
    unigram_steps: Natural = 0
    unigram_floor: BelowOne = 0.0  # the share does not fall below it
    # Peak rate of the variables that only the generator has; tables that both
    # networks share keep learning_rate. Default: learning_rate. After Dong et
    # al., ICML 2023.
    generator_learning_rate: NonNegative | None = None
    # Clip the generator's own gradients by their own norm, and those of the
    # discriminator and the shared tables by theirs, as DeBERTa's decoupled
    # training does. False: all by one norm.
    clip_networks_apart: bool = False
    # Weight of a second discriminator loss: the original tokens at the chosen
    # positions, predicted from the corrupted text; 0: no such head. After
    # COCO-LM (2021).
    correction_weight: NonNegative = 0.0

    # ---- Extensions (every default keeps what the original does) ----
    preset: _Preset | None = None  # published settings as new defaults
    mask_without_replacement: bool = False  # draw distinct positions
    whole_word_mask: bool = False  # mask all the wordpieces of a word
    mask_replace_prob: Share = 0.85  # of the chosen, shown as [MASK]
    # Held-out records. Default: eval_data.tfrecord* beside pretrain_tfrecords;
    # where nothing matches, evaluation reads these, as the original does.
    eval_tfrecords: str | None = None
    # Raw text to train on instead of records: patterns of files, separated by
    # commas, a sentence a line, a blank line between documents. Every epoch
    # cuts and pairs it anew.
    pretrain_text: str = ""
    eval_text: str = ""  # held-out text to evaluate on instead of records
    # A file of draw_exam: evaluations also score the discriminator on its
    # replacements, which are the same for every run.
    exam: str = ""
    deterministic_input: bool = True  # same seed, same order of examples
    # Weights to start from: a checkpoint of the original, of BERT or of ours,
    # a folder of transformers, or hf:OWNER/NAME. Steps and warm-up start at 0.
    init_checkpoint: str | None = None
    # Checkpoints at its multiples are kept beyond keep_checkpoint_max; 0: none.
    keep_every_n_steps: Natural = 0
    # At the end, write discriminator and generator apart, without slots.
    export_at_end: bool = True
    # Evaluations in a row that predict one class before it is reported.
    collapse_patience: Natural = 3
    # Steps after the warm-up in which the discriminator's loss is no better
    # than guessing before it is reported; 0: never. Healthy starts may take
    # 4,000 steps.
    collapse_window: Natural = 5000
    results_json: str = ""  # default: .../results/unsup_results.json

    @property
    def has_discriminator(self) -> bool:
        return self.electra_objective or self.electric_objective

    @property
    def objective_facts(self) -> Objective:
        """The facts of `objective`: its positions and heads."""
        return OBJECTIVES[self.objective]

    @property
    def has_two_networks(self) -> bool:
        """Whether a second network learns from the replacements."""
        return self.objective_facts.has_two_networks

    @property
    def predicts_tokens(self) -> bool:
        """Whether the second network is a masked LM of its own."""
        return self.objective_facts.predicts is not Positions.NONE

    @property
    def token_positions(self) -> Positions:
        """Where the second network predicts the original tokens."""
        if self.corrects:
            return Positions.CHOSEN
        return self.objective_facts.predicts

    @property
    def detects_replacements(self) -> bool:
        """Whether a discriminator learns replaced token detection."""
        return self.has_discriminator and not self.electric_objective

    @property
    def corrects(self) -> bool:
        """Whether the discriminator also predicts the original tokens."""
        return self.correction_weight > 0

    @property
    def mixes_token_counts(self) -> bool:
        """Whether some training replacements are drawn by token counts."""
        return self.unigram_steps > 0 or self.unigram_floor > 0

    @property
    def has_discriminator_head(self) -> bool:
        """Whether a head classifies tokens as replaced or original."""
        return self.objective_facts.has_discriminator_head

    @property
    def has_delta(self) -> bool:
        """Whether the discriminator adds a token table to the generator's."""
        wanted = self.embedding_sharing == "gradient_disentangled"
        kinds = (GeneratorKind.SMALL, GeneratorKind.TWO_TOWER)
        return wanted and generator_kind(self) in kinds

    @classmethod
    def _preset(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        name = given.get("preset")
        return {} if name is None else presets.load_preset(name)["hparams"]

    @classmethod
    def _derived(
        cls, values: Mapping[str, Any], origins: Mapping[str, str]
    ) -> dict[str, Any]:
        """In the original's order.

        Source: google-research/electra, configure_pretraining.py: the results
          directory is that of the default model_dir, whatever model_dir is.
        """
        experiments = settle(values)
        values = {**values, **experiments}
        data_dir = values["data_dir"]
        records = os.path.join(data_dir, "pretrain_tfrecords")
        given = values["pretrain_tfrecords"] or os.path.join(records, "")
        patterns = filter(None, map(str.strip, given.split(",")))
        folders = dict.fromkeys(map(os.path.dirname, patterns))
        model_dir = os.path.join(data_dir, "models", values["model_name"])
        results = os.path.join(model_dir, "results", "unsup_results")
        derived = {
            **experiments,
            "pretrain_tfrecords": os.path.join(
                records, "pretrain_data.tfrecord*"
            ),
            "eval_tfrecords": ",".join(
                os.path.join(folder, "eval_data.tfrecord*")
                for folder in folders
            ),
            "vocab_file": os.path.join(data_dir, "vocab.txt"),
            "model_dir": model_dir,
            **{
                f"results_{e}": f"{results}.{e}" for e in ("txt", "pkl", "json")
            },
        }
        if values["objective"] in ("replace_mlm", "all_tokens_mlm"):
            derived["disc_weight"] = 1.0  # 50 is for detecting replacements.
        if values["max_predictions_per_seq"] is None:
            derived["max_predictions_per_seq"] = int(
                (values["mask_prob"] + 0.005) * values["max_seq_length"]
            )
        if values["debug"]:
            derived.update(_DEBUG_SETTINGS)
        # A preset that names these two means them.
        preset = [
            name for name, origin in origins.items() if origin == "preset"
        ]
        if values["model_size"] == "small" and "embedding_size" not in preset:
            derived["embedding_size"] = 128
        if values["training_schedule"] == "two_stage":  # Equal sizes.
            derived |= {"generator_hidden_size": 1.0, "embedding_size": None}
            derived["two_stage_steps"] = values["num_train_steps"] // 2
        if values["electric_objective"] and "two_tower_generator" not in preset:
            derived["two_tower_generator"] = True
        return derived

    @classmethod
    def clean_hparams(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Leaves out a None that asks for the derived value."""
        derived = "eval_tfrecords max_predictions_per_seq two_stage_steps"

        def without_none(names: Collection[str], of: Mapping) -> dict[str, Any]:
            return {
                n: v for n, v in of.items() if not (n in names and v is None)
            }

        # First: "none" is a text where embedding_sharing is asked for.
        clean = super().clean_hparams(without_none(EXPERIMENTS, given))
        return without_none(derived.split(), clean)

    def _problems(self) -> Iterator[str]:
        """Adds the combinations that crash in the original."""
        most = self.max_predictions_per_seq
        if most is not None and most < 1:
            yield (
                f"max_predictions_per_seq: {most} means that no token is ever"
                f" masked (mask_prob {self.mask_prob}, max_seq_length"
                f" {self.max_seq_length}); give at least 1"
            )
        needs = {
            "disc": self.has_discriminator and self.disc_weight > 0,
            "sampled": self.has_two_networks,
            "token": self.token_positions is not Positions.NONE,
        }
        metrics = [n for n in _BEST_METRICS if needs.get(n.split("_")[0], True)]
        if self.keep_best is not None and self.keep_best not in metrics:
            yield (
                f"keep_best: must be one of {', '.join(metrics)}, got"
                f" {self.keep_best!r}"
            )
        if self.keep_every_n_steps % self.save_checkpoints_steps:
            yield (
                "keep_every_n_steps: must be a multiple of"
                f" save_checkpoints_steps ({self.save_checkpoints_steps}), got"
                f" {self.keep_every_n_steps}: only what is saved can be kept"
            )
        if generator_kind(self).is_fixed and not self.has_two_networks:
            unigram = self.generator == "unigram"
            name = "generator: 'unigram'" if unigram else "uniform_generator:"
            yield (
                f"{name} needs electra_objective, since without a"
                " discriminator there is nothing to train; choose one"
            )
        if self.electric_objective and not self.two_tower_generator:
            yield (
                "two_tower_generator: electric_objective needs the two-tower"
                " generator; leave two_tower_generator out"
            )
        if self.two_tower_generator:
            why = " (asked for by electric_objective)" * self.electric_objective
            if not self.untied_generator:
                yield (
                    f"untied_generator: the two-tower generator{why} cannot"
                    " share the discriminator's weights; leave"
                    " untied_generator out"
                )
            if self.uniform_generator:
                yield (
                    "uniform_generator: cannot be combined with the two-tower"
                    f" generator{why}; choose one"
                )
            if not self.has_discriminator:
                yield (
                    "two_tower_generator: needs electra_objective or"
                    " electric_objective; a masked LM has no separate generator"
                )
        for text in ("pretrain_text", "eval_text"):
            records = text.replace("text", "tfrecords")
            given = getattr(self, text), getattr(self, records)
            if all(given) and self.is_stated(records):
                yield (
                    f"{text}: {given[0]!r} and {records} = {given[1]!r} are"
                    " both given; leave one of the two out"
                )
        yield from problems(self)
        yield from replacement_problems(self, generator_kind(self).value)
        yield from super()._problems()

    def check_mode(self) -> None:
        """Raises unless exactly one of training and evaluation is asked for.

        Source: google-research/electra, run_pretraining.py, train_or_eval.
        """
        if self.do_train == self.do_eval:
            raise UserError(
                "Exactly one of `do_train` or `do_eval` must be True."
                f" Both are {self.do_train}: to evaluate, give"
                " --do_train=false --do_eval=true"
            )

    def _doubts(self) -> Iterator[str]:
        hidden_size = self.model_hparam_overrides.get("hidden_size", 768)
        if self.model_size != "small" and hidden_size >= 512 and not self.debug:
            # Somebody who asked for a value has said what they want.
            wanted = presets.load_preset(self.model_size)["hparams"]
            left = [
                f"{name} {getattr(self, name):g}"
                for name in wanted.keys() - {"num_train_steps"}
                if self.origins.get(name, "default") == "default"
                and getattr(self, name) not in (None, wanted[name])
            ]
            if left:
                yield (
                    f"model_size is {self.model_size} but these are the small"
                    f" model's settings: {', '.join(sorted(left))}. The"
                    f" paper's are one flag away: --preset={self.model_size}."
                    " At learning_rate 0.0005 larger discriminators collapsed"
                )
        steps, what = self.num_train_steps, "num_train_steps"
        if first := self.two_stage_steps:
            steps, what = min(first, steps - first), "the steps of a stage,"
        if 0 < steps <= self.num_warmup_steps and self.do_train:
            yield (
                f"num_warmup_steps {self.num_warmup_steps} is not below"
                f" {what} {steps}: the learning rate"
                f" never reaches {self.learning_rate:g}. Lower num_warmup_steps"
                f" (a tenth of the run is usual: {max(1, steps // 10)})"
            )
        if self.unigram_steps > steps > 0 and self.do_train:
            yield (
                f"unigram_steps {self.unigram_steps} is beyond num_train_steps"
                f" {steps}: the run never reaches the generator alone. Lower"
                f" unigram_steps (a quarter of the run: {max(1, steps // 4)})"
            )
        if self.max_predictions_per_seq > self.max_seq_length and self.do_train:
            yield (
                f"max_predictions_per_seq {self.max_predictions_per_seq} is"
                f" more than max_seq_length {self.max_seq_length}: the rest is"
                " padding"
            )
        if self.exam and not self.detects_replacements:
            yield (
                f"exam: no effect with objective {self.objective}, which"
                " detects no replaced tokens"
            )
        # As in the original, something else makes these void.
        overrides = self.model_hparam_overrides
        if overrides.get("vocab_size", self.vocab_size) != self.vocab_size:
            yield (
                f"vocab_size {self.vocab_size} gives way to"
                f" {overrides['vocab_size']} in model_hparam_overrides"
            )
        if self.debug and overrides:
            yield "debug replaces sizes of model_hparam_overrides by tiny ones"
        ours = "generator_layers generator_hidden_size"
        ours += " untied_generator_embeddings embedding_sharing"
        given = [n for n in ours.split() if self.origins and self.is_stated(n)]
        kind = generator_kind(self)
        if given and (kind.is_fixed or kind is GeneratorKind.FULL):
            yield (
                f"{', '.join(given)}: no effect, since there is no separate"
                " generator network with these settings"
            )
        yield from super()._doubts()


def beyond_switches(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out the experiments that the other hparams tell by themselves.

    What is left stays right when a switch is changed afterwards.
    """
    silent = dict.fromkeys(EXPERIMENTS)
    values = {**PretrainingConfig.default_hparams(), **hparams, **silent}
    told = settle(values)
    return {
        name: value
        for name, value in hparams.items()
        if name not in EXPERIMENTS or value not in (None, told[name])
    }


def settled_experiments(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """The four experiments of a run that may be older than these hparams."""
    values = {**PretrainingConfig.default_hparams(), **hparams}
    found = settle(values)
    return {name: found[name] for name in EXPERIMENTS}
