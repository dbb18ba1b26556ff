# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every fine-tuning hyperparameter, its default, and the order of overrides.

The field comments are the documentation: `--help` prints them.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from configure import finetuning_checks, finetuning_defaults
from configure.saved_config import Draft, SavedConfig

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
        finetuning_checks.validate(self)

    @classmethod
    def _derive(cls, draft: Draft) -> None:
        finetuning_checks.check_task_names(draft.values["task_names"])
        draft.update(finetuning_defaults.locations(draft.values), "derived")
        derived = finetuning_defaults.derived_values(draft.values)
        draft.update(derived, "derived")

    def check_mode(self) -> None:
        """Raises unless there is something to do.

        Raises:
          UserError: neither training, evaluation nor test outputs are asked
            for.
        """
        finetuning_checks.check_mode(self)

    def warnings(self) -> list[str]:
        """Returns what will run but is probably not meant, one text each."""
        return finetuning_checks.warnings(self)

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
