# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every pre-training hyperparameter, its default, and the order of overrides.

The field comments are the documentation: `--help` prints them.
"""

import dataclasses
import enum
import os
from collections.abc import Mapping
from typing import Any

from configure import presets, pretraining_checks
from configure.saved_config import NAMES, Draft, Layers, SavedConfig

# Origins that a value has without anybody asking for it.
_SETTLED_ORIGINS = frozenset({"default", "preset", "derived"})

# What `debug` sets unless told otherwise.
_DEBUG_SETTINGS = {
    "train_batch_size": 8,
    "num_train_steps": 20,
    "eval_batch_size": 4,
    "iterations_per_loop": 1,
    "num_eval_steps": 2,
}


@dataclasses.dataclass(frozen=True)
class PretrainingConfig(SavedConfig):
    """Pre-training hyperparameters; names and defaults are the original's.

    Make one with `create`, which also derives what depends on other values.
    Nothing here touches the disk, so paths need not exist.

    Example:
      >>> config = PretrainingConfig.create("tiny", "data", mask_prob="0.2")
      >>> config.mask_prob, config.max_predictions_per_seq
      (0.2, 26)
      >>> config.origins["mask_prob"], config.origins["learning_rate"]
      ('argument', 'default')

    Source: google-research/electra, configure_pretraining.py.
    Differs: values are converted to their declared types,
      `max_predictions_per_seq` can be given, there are presets, and settings
      that could only crash later are refused here.
    """

    # ---- General ----
    model_name: str  # a name for the model; the default model_dir ends in it
    data_dir: str  # where the default locations of all files begin
    debug: bool = False  # a tiny model for a few steps: does everything run?
    do_train: bool = True  # pre-train
    do_eval: bool = False  # evaluate the generator and discriminator instead

    # ---- Loss functions ----
    # ELECTRA or Electric? With both false, a masked LM like BERT's.
    electra_objective: bool = True  # replaced token detection
    electric_objective: bool = False  # noise-contrastive cloze model
    gen_weight: float = 1.0  # weight of the masked LM (generator) loss
    disc_weight: float = 50.0  # weight of the discriminator loss
    mask_prob: float = 0.15  # fraction of tokens masked out and replaced

    # ---- Optimization ----
    learning_rate: float = 5e-4  # peak rate (base and large want 2e-4)
    lr_decay_power: float = 1.0  # 1 is linear decay to zero
    weight_decay_rate: float = 0.01  # decoupled; not on LayerNorm and biases
    num_warmup_steps: int = 10000  # steps of linear warm-up; 0 means none

    # ---- Training settings ----
    iterations_per_loop: int = 200  # steps run between looks at the host
    save_checkpoints_steps: int = 1000  # steps between checkpoints
    num_train_steps: int = 1000000  # optimizer updates in all
    num_eval_steps: int = 100  # batches in one evaluation
    keep_checkpoint_max: int | None = 5  # newest checkpoints kept; 0: all

    # ---- Model settings ----
    model_size: str = "small"  # one of small, base, large
    # Changes to the size's transformer: hidden_size, num_hidden_layers, ...
    model_hparam_overrides: dict[str, Any] = dataclasses.field(
        default_factory=dict
    )
    embedding_size: int | None = None  # small: 128; none: the hidden size
    vocab_size: int = 30522  # tokens in the vocabulary
    do_lower_case: bool = True  # was the text lower-cased?

    # ---- Generator settings ----
    uniform_generator: bool = False  # replacements drawn uniformly at random
    two_tower_generator: bool = False  # a two-tower cloze model generates
    untied_generator_embeddings: bool = False  # generator has its own tables
    untied_generator: bool = True  # false: one network plays both parts
    generator_layers: float = 1.0  # fraction of the discriminator's layers
    generator_hidden_size: float = 0.25  # fraction of its hidden size
    disallow_correct: bool = False  # never sample the original token
    temperature: float = 1.0  # of sampling from the generator

    # ---- Batch sizes ----
    max_seq_length: int = 128  # wordpieces per example, as in the records
    train_batch_size: int = 128  # examples per update, over all devices
    eval_batch_size: int = 128  # examples per evaluation batch
    # Most tokens masked in one example.
    # Default: int((mask_prob + 0.005) * max_seq_length).
    max_predictions_per_seq: int | None = None

    # ---- TPU settings ----
    use_tpu: bool = False  # the same as distribution_strategy=tpu
    num_tpu_cores: int = 1  # kept for the original's command lines
    tpu_job_name: str | None = None  # worker job, where there are several
    tpu_name: str | None = None  # the Cloud TPU to use
    tpu_zone: str | None = None  # the zone it is in
    gcp_project: str | None = None  # the project it belongs to

    # ---- Locations ----

    # Patterns of the training records, separated by commas. Default:
    # <data_dir>/pretrain_tfrecords/pretrain_data.tfrecord*
    pretrain_tfrecords: str = ""
    vocab_file: str = ""  # default: <data_dir>/vocab.txt
    model_dir: str = ""  # default: <data_dir>/models/<model_name>
    # Results go beside the default model_dir, even when model_dir is given.
    results_txt: str = ""  # default: .../results/unsup_results.txt
    results_pkl: str = ""  # default: .../results/unsup_results.pkl

    # ---- Extensions ----
    # Not in the original; every default keeps what the original does.
    preset: str | None = None  # named settings that act as new defaults
    seed: int = 0  # of every random draw in a run
    strip_accents: bool = True  # were accents stripped when lower-casing?
    mask_without_replacement: bool = False  # draw distinct positions
    whole_word_mask: bool = False  # mask all the wordpieces of a word
    mask_replace_prob: float = 0.85  # chosen positions that show [MASK]
    # Update k uses rate k ("after_increment", what the original does when
    # run) or rate k-1 ("before_increment").
    lr_read_order: str = "after_increment"
    adam_bias_correction: bool = False  # true: textbook Adam
    eval_every_n_steps: int = 0  # evaluate while training; 0: never
    # Held-out records. Default:
    # <data_dir>/pretrain_tfrecords/eval_data.tfrecord*; where nothing
    # matches, evaluation reads pretrain_tfrecords as the original does.
    eval_tfrecords: str | None = None
    log_every_n_steps: int = 10  # steps between lines on the console
    shuffle_buffer_size: int = 100  # examples shuffled among each other
    deterministic_input: bool = True  # same seed, same order of examples
    # One of auto, one_device, mirrored, multi_worker, tpu.
    distribution_strategy: str = "auto"
    require_gpu: bool = False  # refuse to run without a GPU
    gradient_accumulation_steps: int = 1  # parts a batch is computed in
    # XLA makes one program of a step: other draws, and slower on CPUs.
    jit_compile: bool = False
    threads: int = 0  # CPU threads of an operation; 0: TensorFlow's choice
    # bf16 or fp16: transformer blocks compute in half precision; weights,
    # norms, softmaxes and losses stay float32. Empty: all in float32.
    mixed_precision: str = ""
    # Training keeps only the inputs of transformer blocks and computes the
    # rest again: less memory, more time, the same results but for the last
    # digits. Null: where it would take too much of the machine's memory
    # otherwise (never on accelerators).
    recompute_grad: bool | None = None
    overwrite: bool = False  # allow replacing an existing model_dir
    # Weights to start from: a checkpoint of the original, of BERT or of ours,
    # or a Hugging Face folder. Steps and warm-up start at 0.
    init_checkpoint: str | None = None
    # Regular expression: variables that init_checkpoint may lack.
    allow_missing: str | None = None
    # Checkpoints at its multiples are kept beyond keep_checkpoint_max; 0: none.
    keep_every_n_steps: int = 0
    # Metric whose best evaluation is kept in <model_dir>/best.
    keep_best: str | None = None
    # At the end, write discriminator and generator apart, without slots.
    export_at_end: bool = True
    # Evaluations in a row that predict one class before it is reported.
    collapse_patience: int = 3
    results_json: str = ""  # default: .../results/unsup_results.json

    settled_origins = _SETTLED_ORIGINS
    origins: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False, kw_only=True
    )

    def __post_init__(self):
        pretraining_checks.validate(self)

    @classmethod
    def _begin(cls, draft: Draft, layers: Layers) -> None:
        names = {name: draft.values[name] for name in NAMES}
        draft.update(_default_locations(**names), "derived")
        for _, given in layers:
            draft.values["preset"] = given.get("preset", draft.values["preset"])
        if draft.values["preset"] is not None:
            preset = presets.load_preset(draft.values["preset"])
            draft.update(cls.clean_hparams(preset["hparams"]), "preset")

    @classmethod
    def _derive(cls, draft: Draft) -> None:
        draft.update(_derived_values(draft.values, draft.origins), "derived")

    def check_mode(self) -> None:
        """Raises unless exactly one of training and evaluation is asked for.

        Source: google-research/electra, run_pretraining.py, train_or_eval.
        """
        pretraining_checks.check_mode(self)

    def warnings(self) -> list[str]:
        """Returns what will run but is probably not meant, one text each."""
        return pretraining_checks.warnings(self)


def _default_locations(model_name: str, data_dir: str) -> dict[str, Any]:
    """Returns the default paths.

    Source: google-research/electra, configure_pretraining.py: the results
      directory is that of the default model_dir, whatever model_dir is set to.
    """
    records = os.path.join(data_dir, "pretrain_tfrecords")
    model_dir = os.path.join(data_dir, "models", model_name)
    results = os.path.join(model_dir, "results", "unsup_results")
    return {
        "pretrain_tfrecords": os.path.join(records, "pretrain_data.tfrecord*"),
        "eval_tfrecords": os.path.join(records, "eval_data.tfrecord*"),
        "vocab_file": os.path.join(data_dir, "vocab.txt"),
        "model_dir": model_dir,
        "results_txt": results + ".txt",
        "results_pkl": results + ".pkl",
        "results_json": results + ".json",
    }


def _derived_values(
    values: Mapping[str, Any], origins: Mapping[str, str]
) -> dict[str, Any]:
    """Returns what follows from the first pass, in the original's order."""
    derived = {}
    if values["max_predictions_per_seq"] is None:
        derived["max_predictions_per_seq"] = int(
            (values["mask_prob"] + 0.005) * values["max_seq_length"]
        )
    if values["debug"]:
        derived.update(_DEBUG_SETTINGS)
    # A preset that names these two means them.
    if (
        values["model_size"] == "small"
        and origins["embedding_size"] != "preset"
    ):
        derived["embedding_size"] = 128
    if (
        values["electric_objective"]
        and origins["two_tower_generator"] != "preset"
    ):
        derived["two_tower_generator"] = True
    return derived


# Which generator: small, tied, masked-LM only, uniform or two-tower.


class GeneratorKind(enum.Enum):
    """How replacements are proposed."""

    UNIFORM = "uniform"  # every word alike; no variables
    SMALL = "small"  # a smaller masked LM, scope "generator"
    TWO_TOWER = "two_tower"  # Electric's cloze model
    FULL = "full"  # the full-size masked LM, scope "electra"


def generator_kind(config: Any) -> GeneratorKind:
    """Reads the kind from the hparams, in the original's order of precedence.

    Source: google-research/electra, run_pretraining.py, PretrainingModel.
    """
    discriminates = config.electra_objective or config.electric_objective
    if config.uniform_generator:
        kind = GeneratorKind.UNIFORM
    elif discriminates and config.untied_generator:
        kind = (
            GeneratorKind.TWO_TOWER
            if config.two_tower_generator
            else GeneratorKind.SMALL
        )
    else:
        kind = GeneratorKind.FULL
    return kind
