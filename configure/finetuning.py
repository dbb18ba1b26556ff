# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every fine-tuning hyperparameter, its default, and the order of overrides.

The field comments are the documentation: `--help` prints them.
"""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from configure.config import (
    ModelSize,
    Natural,
    NonNegative,
    Positive,
    Precision,
    Ratio,
    ReadOrder,
    Seed,
    Share,
    Strategy,
    TrainingConfig,
    at_least,
    one_of,
    read_hparams,
)
from configure.errors import UserError

_QUESTION_ANSWERING_TASKS = (
    "squad",
    "squadv1",
    "newsqa",
    "naturalqs",
    "triviaqa",
    "searchqa",
)
# Those that get longer inputs. The original looks for "squad" or "qa" in the
# name, which misses naturalqs.
_LONG_TASKS = ("squad", "squadv1", "newsqa", "triviaqa", "searchqa")
_TASK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

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

# [CLS] and [SEP] of a pair and one wordpiece of each text.
_Length = Annotated[int, at_least(5)]
_Source = Annotated[str, one_of("files", "tfds")]
_Pooling = Annotated[str, one_of("first", "mean")]


@dataclasses.dataclass(frozen=True)
class FinetuningConfig(TrainingConfig):
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

    purpose = (
        "Fine-tunes a pre-trained model on tasks, evaluates it, and predicts"
        " test sets."
    )

    # ---- General ----

    # The pre-trained model, DATA_DIR/models/NAME; results go there, too.
    model_name: str
    # Where data and models live; a task's files are read from
    # DIR/finetuning_data/TASK.
    data_dir: str
    debug: bool = False  # little data: does everything run?
    log_examples: bool = False  # print a training example
    num_trials: Positive = 1  # how many train+eval runs to perform
    do_train: bool = True  # train
    do_eval: bool = True  # evaluate on the dev set
    keep_all_models: bool = True  # false: only keep the last trial's model

    # ---- Model ----
    model_size: ModelSize = "small"  # the paper's sizes
    # The tasks to learn; several are learned at once.
    task_names: list[str] = dataclasses.field(default_factory=lambda: ["chunk"])
    # Changes to the size's transformer: hidden_size, num_hidden_layers, ...
    model_hparam_overrides: dict[str, Any] = dataclasses.field(
        default_factory=dict
    )
    embedding_size: Positive | None = None  # small: 128; none: the hidden size
    vocab_size: Positive = 30522  # tokens in the vocabulary
    do_lower_case: bool = True  # is the text lower-cased?

    # ---- Training ----
    learning_rate: NonNegative = 1e-4  # peak rate (large: 5e-5)
    # Decoupled; not on LayerNorm and biases.
    weight_decay_rate: NonNegative = 0.01
    # If above 0, each layer's rate is this times the one above's.
    # Large: 0.9.
    layerwise_lr_decay: float = 0.8
    # Passes over the training data. Default: 3; rte and sts 10, QA 2.
    num_train_epochs: Ratio = 3.0
    warmup_proportion: Share = 0.1  # fraction of training spent warming up
    save_checkpoints_steps: Positive = 1000000  # steps between checkpoints
    iterations_per_loop: Positive = 1000  # steps run between looks at the host
    # Use the records of an earlier run if they are of the same data and
    # settings.
    use_tfrecords_if_existing: bool = True

    # ---- Writing outputs ----
    write_test_outputs: bool = False  # predict the test set
    n_writes_test: Natural = 5  # ... in the first so many trials
    write_distill_outputs: bool = False  # no effect, as in the original

    # ---- Sizing ----

    # Wordpieces per example. Default: 128; QA 512, chunk 256.
    max_seq_length: _Length = 128
    train_batch_size: Positive = 32  # examples per update, over all devices
    eval_batch_size: Positive = 32  # examples per evaluation batch
    predict_batch_size: Positive = 32  # kept for the original's command lines
    # Where sentence order does not matter, train on both orders.
    double_unordered: bool = True

    # ---- Question answering ----
    max_query_length: Positive = 64  # most wordpieces of a question
    doc_stride: Positive = 128  # wordpieces between windows over a long passage
    n_best_size: Positive = 20  # answers per question to keep
    max_answer_length: Positive = 30  # most wordpieces of an answer
    answerable_classifier: bool = True  # learn whether there is an answer
    # ... from what the start logits point at, too
    answerable_uses_start_logits: bool = True
    answerable_weight: NonNegative = 0.5  # weight of that loss
    joint_prediction: bool = True  # an answer's end depends on its start
    beam_size: Positive = 20  # starts considered in joint prediction
    qa_na_threshold: float = -2.75  # null odds above this mean "no answer"

    # ---- TPU settings ----
    use_tpu: bool = False  # the same as distribution_strategy=tpu
    num_tpu_cores: Positive = 1  # kept for the original's command lines
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
    seed: Seed = 0  # of every random draw in a run; trials differ from it
    results_json: str = ""  # default: .../results/<tasks>_results.json
    task_config: str | None = None  # JSON file that describes your own task
    data_source: _Source = "files"  # tfds: TensorFlow Datasets
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
    lr_read_order: ReadOrder = "after_increment"
    adam_bias_correction: bool = False  # true: textbook Adam
    # Sentence tasks read the first token, or the mean.
    pooling: _Pooling = "first"
    shuffle_buffer_size: Natural = 100  # examples shuffled among each other
    shuffle_whole_set: bool = False  # shuffle all examples, anew each epoch
    # Pad a batch to its longest row, rounded up to 16, not to
    # max_seq_length. On: the same results in less time.
    length_buckets: bool = True
    # Put examples of similar length into a batch when training: other batches
    # than without.
    group_by_length: bool = False
    # ... when evaluating: the same results in less time.
    group_eval_by_length: bool = True
    # Lowest layers, with embeddings, that stay as is.
    freeze_layers: Natural = 0
    gradient_accumulation_steps: Positive = 1  # parts a batch is computed in
    # XLA makes one program of a step: other draws, and slower on CPUs.
    jit_compile: bool = False
    threads: Natural = 0  # CPU threads of an operation; 0: TensorFlow's choice
    # bf16 or fp16: transformer blocks compute in half precision; weights,
    # norms, softmaxes and losses stay float32. Empty: all in float32.
    mixed_precision: Precision = ""
    # Training keeps only the inputs of transformer blocks and computes the
    # rest again: less memory, more time, the same results but for the last
    # digits. Null: where it would take too much of the machine's memory
    # otherwise (never on accelerators).
    recompute_grad: bool | None = None
    eval_every_n_steps: Natural = 0  # evaluate while training; 0: never
    keep_best: str | None = None  # metric whose best model is kept and scored
    # Evaluations without a better keep_best after which training stops; 0:
    # never stops early.
    early_stopping_patience: Natural = 0
    keep_checkpoint_max: Natural | None = 1  # newest checkpoints kept; 0: all
    # Regular expression: variables that init_checkpoint may lack, besides
    # the heads.
    allow_missing: str | None = None
    overwrite: bool = False  # allow replacing existing models and results
    distribution_strategy: Strategy = "auto"  # which devices share the work
    require_gpu: bool = False  # refuse to run without a GPU
    log_every_n_steps: Positive = 10  # steps between lines on the console

    @classmethod
    def command_line_layers(
        cls, given: Mapping[str, Any]
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """The hparams of a task's JSON file."""
        path = given.get("task_config")
        return [] if path is None else [("task_config", _task_hparams(path))]

    @classmethod
    def _derived(
        cls, values: Mapping[str, Any], origins: Mapping[str, str]
    ) -> dict[str, Any]:
        """Paths, and what follows from task, size and debug, in that order."""
        _check_task_names(values["task_names"])
        data_dir = values["data_dir"]
        model = os.path.join(data_dir, "models", values["model_name"])
        tasks = ",".join(values["task_names"])
        results = os.path.join(model, "results", f"{tasks}_results")
        derived = {
            "vocab_file": os.path.join(data_dir, "vocab.txt"),
            "init_checkpoint": model,
            "model_dir": os.path.join(
                model, "finetuning_models", f"{tasks}_model"
            ),
            "preprocessed_data_dir": os.path.join(
                model, "finetuning_tfrecords", f"{tasks}_tfrecords"
            ),
            "results_txt": results + ".txt",
            "results_pkl": results + ".pkl",
            "results_json": results + ".json",
        }
        if len(values["task_names"]) == 1:
            derived.update(_task_defaults(values["task_names"][0]))
        if values["model_size"] == "large":
            derived.update(learning_rate=5e-5, layerwise_lr_decay=0.9)
        elif values["model_size"] == "small":
            derived["embedding_size"] = 128
        if values["debug"]:
            derived.update(_DEBUG_SETTINGS)
        return derived

    def _check(self) -> None:
        _check_task_names(self.task_names)
        if self.early_stopping_patience and not self.eval_every_n_steps:
            raise UserError(
                "hparam early_stopping_patience: needs evaluations while"
                " training; set eval_every_n_steps"
            )
        if not set(self.task_names) & set(_QUESTION_ANSWERING_TASKS):
            return
        length = self.max_seq_length
        if self.max_query_length + 3 >= length:
            raise UserError(
                f"hparam max_query_length: {self.max_query_length} wordpieces"
                " of a question leave no room for its passage in"
                f" max_seq_length {length}; lower the one or raise the other"
            )
        if self.joint_prediction and self.beam_size > length:
            raise UserError(
                f"hparam beam_size: {self.beam_size} is more than the {length}"
                " positions of max_seq_length"
            )

    def check_mode(self) -> None:
        """Raises unless there is something to do."""
        if not (self.do_train or self.do_eval or self.write_test_outputs):
            raise UserError(
                "Nothing to do: do_train, do_eval and write_test_outputs are"
                " all false; set one"
            )

    def warnings(self) -> list[str]:
        """What will run but is probably not meant, one text each."""
        found = []
        origin = self.origins.get("max_seq_length", "default")
        if "naturalqs" in self.task_names and origin == "default":
            found.append(
                "naturalqs keeps max_seq_length 128 and 3 epochs, as in the"
                " original, which gives the other question answering tasks 512"
                " and 2; set max_seq_length to 512"
            )
        if self.debug and self.init_checkpoint:
            found.append(
                "debug still starts from init_checkpoint"
                f" {self.init_checkpoint}, as in the original; set it to null"
                " for random weights"
            )
        if self.layerwise_lr_decay > 1:
            found.append(
                f"layerwise_lr_decay {self.layerwise_lr_decay:g} is above 1:"
                " lower layers learn faster than higher ones"
            )
        if self.predict_batch_size != self.eval_batch_size:
            found.append(
                f"predict_batch_size {self.predict_batch_size} has no effect:"
                f" eval_batch_size {self.eval_batch_size} is used (the original"
                " loses examples where the two differ)"
            )
        return [*found, *super().warnings()]

    @property
    def pretrained_model_dir(self) -> str:
        """Directory of the pre-trained model; results go there, too."""
        return os.path.join(self.data_dir, "models", self.model_name)

    def raw_data_dir(self, task: str) -> str:
        """The directory of a task's own files."""
        return os.path.join(self.data_dir, "finetuning_data", task)

    def qa_file(self, task: str, kind: str) -> str:
        """Where a question answering task's answers, odds ... go."""
        topdir = f"{','.join(self.task_names)}_qa"
        return os.path.join(
            self.pretrained_model_dir, "results", topdir, f"{task}_{kind}.json"
        )

    def test_predictions(self, task: str, split: str, trial: int | str) -> str:
        """Where a trial's predictions for a test split go."""
        name = f"{task}_{split}_{trial}_predictions.pkl"
        return os.path.join(self.pretrained_model_dir, "test_predictions", name)


def _check_task_names(names: Sequence[str]) -> None:
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


def _task_defaults(task_name: str) -> dict[str, Any]:
    """The settings of a task learned alone."""
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


def _task_hparams(path: str) -> dict[str, Any]:
    """The hparams that a task's JSON file brings along."""
    if not str(path).endswith(".json"):
        raise UserError(
            f"hparam task_config: expected the path of a .json file, got"
            f" {path!r}"
        )
    spec = read_hparams(str(path))
    given = spec.get("hparams", {})
    if not isinstance(given, dict):
        raise UserError(
            f"{path}: hparams: expected an object of hparams, got {given!r}"
        )
    if isinstance(spec.get("name"), str):
        given = {"task_names": [spec["name"]], **given}
    return given
