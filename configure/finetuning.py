# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every fine-tuning hyperparameter, its default, and the order of overrides.

The field comments are the documentation: `--help` prints them.
"""

import dataclasses
import os
import re
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from configure.errors import UserError
from configure.hparams import check_switches
from configure.pretraining_checks import (
    DEFAULT_MAX_POSITION_EMBEDDINGS,
    DISTRIBUTION_STRATEGIES,
    LR_READ_ORDERS,
    MODEL_SIZES,
)
from configure.saved_config import Draft, SavedConfig

# What a fine-tuning config may not say, and what it probably did not mean.

if typing.TYPE_CHECKING:
    pass

DATA_SOURCES = ("files", "tfds")
POOLINGS = ("first", "mean")
QUESTION_ANSWERING_TASKS = (
    "squad",
    "squadv1",
    "newsqa",
    "naturalqs",
    "triviaqa",
    "searchqa",
)

_CHOICES = {
    "model_size": MODEL_SIZES,
    "data_source": DATA_SOURCES,
    "pooling": POOLINGS,
    "lr_read_order": LR_READ_ORDERS,
    "distribution_strategy": DISTRIBUTION_STRATEGIES,
}
_AT_LEAST_ONE = (
    "num_trials",
    "embedding_size",
    "vocab_size",
    "save_checkpoints_steps",
    "iterations_per_loop",
    "train_batch_size",
    "eval_batch_size",
    "predict_batch_size",
    "max_query_length",
    "doc_stride",
    "n_best_size",
    "max_answer_length",
    "beam_size",
    "num_tpu_cores",
    "log_every_n_steps",
)
_AT_LEAST_ZERO = (
    "learning_rate",
    "weight_decay_rate",
    "answerable_weight",
    "n_writes_test",
    "seed",
    "shuffle_buffer_size",
    "freeze_layers",
    "eval_every_n_steps",
    "early_stopping_patience",
    "keep_checkpoint_max",
)
# [CLS] and [SEP] of a pair and one wordpiece of each text.
_SHORTEST_SEQUENCE = 5
_TASK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_task_names(names: Sequence[str]) -> None:
    """Raises for names that cannot be told apart or be part of a path."""
    if not names:
        raise UserError(
            'hparam task_names: give at least one task, such as ["mrpc"]'
        )
    for name in names:
        if not _TASK_NAME.fullmatch(name):
            raise UserError(
                f"hparam task_names: {name!r} is no task name; letters,"
                " digits, dots, dashes and underscores make one"
            )
        if names.count(name) > 1:
            raise UserError(f"hparam task_names: {name} is given twice")


def validate(config: "FinetuningConfig") -> None:
    """Raises for settings that cannot work."""
    check_task_names(config.task_names)
    for name, choices in _CHOICES.items():
        value = getattr(config, name)
        if value not in choices:
            raise UserError(
                f"hparam {name}: must be one of {', '.join(choices)},"
                f" got {value!r}"
            )
    _check_ranges(config)
    _check_lengths(config)
    _check_training(config)


def check_mode(config: "FinetuningConfig") -> None:
    """Raises unless there is something to do."""
    if not (config.do_train or config.do_eval or config.write_test_outputs):
        raise UserError(
            "Nothing to do: do_train, do_eval and write_test_outputs are all"
            " false; set one"
        )


def warnings(config: "FinetuningConfig") -> list[str]:
    """Returns what will run but is probably not meant."""
    found = []
    origin = config.origins.get("max_seq_length", "default")
    if "naturalqs" in config.task_names and origin == "default":
        found.append(
            "naturalqs keeps max_seq_length 128 and 3 epochs, as in the"
            " original, which gives the other question answering tasks 512"
            " and 2; set max_seq_length to 512"
        )
    if config.debug and config.init_checkpoint:
        found.append(
            "debug still starts from init_checkpoint"
            f" {config.init_checkpoint}, as in the original; set it to null"
            " for random weights"
        )
    if config.layerwise_lr_decay > 1:
        found.append(
            f"layerwise_lr_decay {config.layerwise_lr_decay:g} is above 1:"
            " lower layers learn faster than higher ones"
        )
    if config.do_train and config.learning_rate == 0:
        found.append("learning_rate is 0: no weight will change")
    if config.predict_batch_size != config.eval_batch_size:
        found.append(
            f"predict_batch_size {config.predict_batch_size} has no effect:"
            f" eval_batch_size {config.eval_batch_size} is used (the original"
            " loses examples where the two differ)"
        )
    if config.use_tpu and config.distribution_strategy not in ("auto", "tpu"):
        found.append(
            "use_tpu is set but distribution_strategy is"
            f" {config.distribution_strategy}, which is used"
        )
    return found


def _require(
    config: "FinetuningConfig", name: str, ok: bool, wanted: str
) -> None:
    if not ok:
        raise UserError(
            f"hparam {name}: must be {wanted}, got {getattr(config, name)}"
        )


def _check_ranges(config: "FinetuningConfig") -> None:
    for name in _AT_LEAST_ONE:
        value = getattr(config, name)
        _require(config, name, value is None or value >= 1, "at least 1")
    for name in _AT_LEAST_ZERO:
        value = getattr(config, name)
        _require(config, name, value is None or value >= 0, "at least 0")
    _require(config, "num_train_epochs", config.num_train_epochs > 0, "above 0")
    _require(
        config,
        "warmup_proportion",
        0 <= config.warmup_proportion <= 1,
        "a fraction from 0 to 1",
    )
    _require(config, "seed", config.seed < 2**31, "below 2147483648")


def _check_lengths(config: "FinetuningConfig") -> None:
    """Refuses lengths that no example fits, or that the model lacks."""
    length = config.max_seq_length
    _require(
        config,
        "max_seq_length",
        length >= _SHORTEST_SEQUENCE,
        f"at least {_SHORTEST_SEQUENCE}",
    )
    positions = config.model_hparam_overrides.get(
        "max_position_embeddings", DEFAULT_MAX_POSITION_EMBEDDINGS
    )
    if length > positions:
        raise UserError(
            f"hparam max_seq_length: {length} is longer than the position"
            f" table, max_position_embeddings = {positions}. Shorten it, or"
            " use a model pre-trained on longer examples"
        )
    if not set(config.task_names) & set(QUESTION_ANSWERING_TASKS):
        return
    if config.max_query_length + 3 >= length:
        raise UserError(
            f"hparam max_query_length: {config.max_query_length} wordpieces of"
            f" a question leave no room for its passage in max_seq_length"
            f" {length}; lower the one or raise the other"
        )
    if config.joint_prediction and config.beam_size > length:
        raise UserError(
            f"hparam beam_size: {config.beam_size} is more than the"
            f" {length} positions of max_seq_length"
        )


def _check_training(config: "FinetuningConfig") -> None:
    """Refuses combinations of training settings that cannot work."""
    check_switches(config)
    for name in ("keep_best", "early_stopping_patience"):
        if getattr(config, name) and not config.eval_every_n_steps:
            raise UserError(
                f"hparam {name}: needs evaluations while training; set"
                " eval_every_n_steps"
            )
    try:
        re.compile(config.allow_missing or "")
    except re.error as error:
        raise UserError(
            f"hparam allow_missing: {config.allow_missing!r} is not a regular"
            f" expression ({error})"
        ) from error


# Fine-tuning settings that follow from others: paths, tasks, sizes, debug.

# Tasks that get the longer inputs of question answering. The original looks
# for "squad" or "qa" in the name, which misses naturalqs.
_LONG_TASKS = ("squad", "squadv1", "newsqa", "triviaqa", "searchqa")

# What `debug` sets unless told otherwise.
_DEBUG_SETTINGS = {
    "save_checkpoints_steps": 1000000,
    "use_tfrecords_if_existing": False,
    "num_trials": 1,
    "iterations_per_loop": 1,
    "train_batch_size": 32,
    "num_train_epochs": 3.0,
    "log_examples": True,
}


def locations(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the default paths."""
    data_dir = values["data_dir"]
    model = os.path.join(data_dir, "models", values["model_name"])
    tasks = ",".join(values["task_names"])
    results = os.path.join(model, "results", f"{tasks}_results")
    records = os.path.join(model, "finetuning_tfrecords", f"{tasks}_tfrecords")
    return {
        "vocab_file": os.path.join(data_dir, "vocab.txt"),
        "init_checkpoint": model,
        "model_dir": os.path.join(model, "finetuning_models", f"{tasks}_model"),
        "preprocessed_data_dir": records,
        "results_txt": results + ".txt",
        "results_pkl": results + ".pkl",
        "results_json": results + ".json",
    }


def derived_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what follows from task, size and debug, in that order."""
    derived: dict[str, Any] = {}
    if len(values["task_names"]) == 1:
        derived.update(_task_defaults(values["task_names"][0]))
    if values["model_size"] == "large":
        derived.update(learning_rate=5e-5, layerwise_lr_decay=0.9)
    elif values["model_size"] == "small":
        derived["embedding_size"] = 128
    if values["debug"]:
        derived.update(_DEBUG_SETTINGS)
    return derived


def _task_defaults(task_name: str) -> dict[str, Any]:
    """Returns the settings of a task learned alone."""
    if task_name in ("rte", "sts"):
        return {"num_train_epochs": 10.0}
    if task_name in _LONG_TASKS:
        return {
            "max_seq_length": 512,
            "num_train_epochs": 2.0,
            "write_distill_outputs": False,
            "write_test_outputs": False,
        }
    if task_name == "chunk":
        return {"max_seq_length": 256}
    return {"num_train_epochs": 3.0}


# Origins that a value has without anybody asking for it.
_SETTLED_ORIGINS = frozenset({"default", "derived"})


@dataclasses.dataclass(frozen=True)
class FinetuningConfig(SavedConfig):
    """Fine-tuning hyperparameters; names and defaults are the original's.

    Make one with `create`, which also derives what depends on other values.
    Nothing here touches the disk, so paths need not exist.

    Example:
      >>> config = FinetuningConfig.create("small", "data", task_names=["rte"])
      >>> config.num_train_epochs, config.raw_data_dir("rte")
      (10.0, 'data/finetuning_data/rte')

    Source: google-research/electra, configure_finetuning.py.
    Differs: values are converted to their declared types; `vocab_file` is the
      one in `data_dir`, and a model's own is preferred where it is built; a
      task of one's own gets no defaults by what its name contains.
    """

    # ---- General ----
    model_name: str  # the pre-trained model, <data_dir>/models/<model_name>
    data_dir: str  # where the default locations of all files begin
    debug: bool = False  # little data: does everything run?
    log_examples: bool = False  # print a training example
    num_trials: int = 1  # how many train+eval runs to perform
    do_train: bool = True  # train
    do_eval: bool = True  # evaluate on the dev set
    keep_all_models: bool = True  # false: only keep the last trial's model

    # ---- Model ----
    model_size: str = "small"  # one of small, base, large
    # The tasks to learn; several are learned at once.
    task_names: list[str] = dataclasses.field(default_factory=lambda: ["chunk"])
    # Changes to the size's transformer: hidden_size, num_hidden_layers, ...
    model_hparam_overrides: dict[str, Any] = dataclasses.field(
        default_factory=dict
    )
    embedding_size: int | None = None  # small: 128; none: the hidden size
    vocab_size: int = 30522  # tokens in the vocabulary
    do_lower_case: bool = True  # is the text lower-cased?

    # ---- Training ----
    learning_rate: float = 1e-4  # peak rate (large: 5e-5)
    weight_decay_rate: float = 0.01  # decoupled; not on LayerNorm and biases
    # If above 0, each layer's rate is this times the one above's.
    # Large: 0.9.
    layerwise_lr_decay: float = 0.8
    # Passes over the training data. Default: 3; rte and sts 10, QA 2.
    num_train_epochs: float = 3.0
    warmup_proportion: float = 0.1  # fraction of training spent warming up
    save_checkpoints_steps: int = 1000000  # steps between checkpoints
    iterations_per_loop: int = 1000  # steps run between looks at the host
    # Use the records of an earlier run if they are of the same data and
    # settings.
    use_tfrecords_if_existing: bool = True

    # ---- Writing outputs ----
    write_test_outputs: bool = False  # predict the test set
    n_writes_test: int = 5  # ... in the first so many trials
    write_distill_outputs: bool = False  # no effect, as in the original

    # ---- Sizing ----

    # Wordpieces per example. Default: 128; QA 512, chunk 256.
    max_seq_length: int = 128
    train_batch_size: int = 32  # examples per update, over all devices
    eval_batch_size: int = 32  # examples per evaluation batch
    predict_batch_size: int = 32  # kept for the original's command lines
    # Where sentence order does not matter, train on both orders.
    double_unordered: bool = True

    # ---- Question answering ----
    max_query_length: int = 64  # most wordpieces of a question
    doc_stride: int = 128  # wordpieces between windows over a long passage
    n_best_size: int = 20  # answers per question to keep
    max_answer_length: int = 30  # most wordpieces of an answer
    answerable_classifier: bool = True  # learn whether there is an answer
    # ... from what the start logits point at, too
    answerable_uses_start_logits: bool = True
    answerable_weight: float = 0.5  # weight of that loss
    joint_prediction: bool = True  # an answer's end depends on its start
    beam_size: int = 20  # starts considered in joint prediction
    qa_na_threshold: float = -2.75  # null odds above this mean "no answer"

    # ---- TPU settings ----
    use_tpu: bool = False  # the same as distribution_strategy=tpu
    num_tpu_cores: int = 1  # kept for the original's command lines
    tpu_job_name: str | None = None  # worker job, where there are several
    tpu_name: str | None = None  # the Cloud TPU to use
    tpu_zone: str | None = None  # the zone it is in
    gcp_project: str | None = None  # the project it belongs to

    # ---- Locations ----

    # Default: the model's vocab.txt if it has one, else <data_dir>/vocab.txt.
    vocab_file: str = ""
    # Weights to start from: any kind of checkpoint, or another task's
    # fine-tuned model. Default: <data_dir>/models/<model_name>; none: random.
    init_checkpoint: str | None = None
    # Trial k is kept in <model_dir>_<k>.
    # Default: <data_dir>/models/<model_name>/finetuning_models/<tasks>_model
    model_dir: str = ""
    # Default: <data_dir>/models/<model_name>/finetuning_tfrecords/
    # <tasks>_tfrecords
    preprocessed_data_dir: str = ""
    results_txt: str = ""  # default: .../results/<tasks>_results.txt
    results_pkl: str = ""  # default: .../results/<tasks>_results.pkl

    # ---- Extensions ----
    # Not in the original; every default keeps what the original does, unless
    # the line says otherwise.
    seed: int = 0  # of every random draw in a run; trials differ from it
    results_json: str = ""  # default: .../results/<tasks>_results.json
    task_config: str | None = None  # JSON file that describes your own task
    data_source: str = "files"  # files, or tfds (TensorFlow Datasets)
    tfds_data_dir: str | None = None  # where TFDS keeps its data
    strip_accents: bool = True  # were accents stripped when lower-casing?
    strict_rows: bool = False  # stop at the first bad row
    # Tagging: cut off only what does not fit (the original cuts more).
    fix_tagging_truncation: bool = False
    # Tagging: case, accents and Chinese as everywhere else.
    fix_tagging_casing: bool = False
    # Tagging: keep a last sentence that no blank line follows.
    fix_last_sentence: bool = False
    # Give every level of layers its own rate (the original skips one).
    fix_layerwise_lr_decay: bool = False
    # Update k uses rate k ("after_increment", what the original does when
    # run) or rate k-1 ("before_increment").
    lr_read_order: str = "after_increment"
    adam_bias_correction: bool = False  # true: textbook Adam
    pooling: str = "first"  # sentence tasks read the first token, or the mean
    shuffle_buffer_size: int = 100  # examples shuffled among each other
    shuffle_whole_set: bool = False  # shuffle all examples, anew each epoch
    # Pad a batch to its longest row, rounded up to 16, not to
    # max_seq_length. On: the same results in less time.
    length_buckets: bool = True
    # Put examples of similar length into a batch when training: other batches
    # than without.
    group_by_length: bool = False
    # ... when evaluating: the same results in less time.
    group_eval_by_length: bool = True
    freeze_layers: int = 0  # lowest layers, with embeddings, that stay as is
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
    eval_every_n_steps: int = 0  # evaluate while training; 0: never
    keep_best: str | None = None  # metric whose best model is kept and scored
    # Evaluations without a better keep_best after which training stops; 0:
    # never stops early.
    early_stopping_patience: int = 0
    keep_checkpoint_max: int | None = 1  # newest checkpoints kept; 0: all
    # Regular expression: variables that init_checkpoint may lack, besides
    # the heads.
    allow_missing: str | None = None
    overwrite: bool = False  # allow replacing existing models and results
    # One of auto, one_device, mirrored, multi_worker, tpu.
    distribution_strategy: str = "auto"
    require_gpu: bool = False  # refuse to run without a GPU
    log_every_n_steps: int = 10  # steps between lines on the console

    settled_origins = _SETTLED_ORIGINS
    origins: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False, kw_only=True
    )

    def __post_init__(self):
        validate(self)

    @classmethod
    def _derive(cls, draft: Draft) -> None:
        check_task_names(draft.values["task_names"])
        draft.update(locations(draft.values), "derived")
        derived = derived_values(draft.values)
        draft.update(derived, "derived")

    def check_mode(self) -> None:
        """Raises unless there is something to do."""
        check_mode(self)

    def warnings(self) -> list[str]:
        """Returns what will run but is probably not meant, one text each."""
        return warnings(self)

    @property
    def pretrained_model_dir(self) -> str:
        """Directory of the pre-trained model; results go there, too."""
        return os.path.join(self.data_dir, "models", self.model_name)

    def raw_data_dir(self, task: str) -> str:
        """Returns the directory of a task's own files."""
        return os.path.join(self.data_dir, "finetuning_data", task)

    def qa_eval_file(self, task: str) -> str:
        """Returns where the scores of a question answering task go."""
        return self._qa_file(task, "eval")

    def qa_preds_file(self, task: str) -> str:
        """Returns where the answers to its questions go."""
        return self._qa_file(task, "preds")

    def qa_na_file(self, task: str) -> str:
        """Returns where the odds of having no answer go."""
        return self._qa_file(task, "null_odds")

    def test_predictions(self, task: str, split: str, trial: int | str) -> str:
        """Returns where a trial's predictions for a test split go."""
        name = f"{task}_{split}_{trial}_predictions.pkl"
        return os.path.join(self.pretrained_model_dir, "test_predictions", name)

    def _qa_file(self, task: str, kind: str) -> str:
        topdir = f"{','.join(self.task_names)}_qa"
        return os.path.join(
            self.pretrained_model_dir, "results", topdir, f"{task}_{kind}.json"
        )
