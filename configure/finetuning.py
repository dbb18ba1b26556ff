# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every fine-tuning hyperparameter, its default, and the order of overrides.

The field comments are the documentation: `--help` prints them.
"""

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from configure.bounds import (
    Bound,
    Natural,
    NonNegative,
    Positive,
    Ratio,
    Share,
    Size,
    at_least,
    one_of,
)
from configure.config import TrainingConfig
from configure.errors import UserError
from configure.json_text import read_hparams

# Question answering tasks that get longer inputs. The original looks for
# "squad" or "qa" in the name, which misses naturalqs.
_LONG_TASKS = ("squad", "squadv1", "newsqa", "triviaqa", "searchqa")
_TASK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

# The settings of a task learned alone.
_TASK_SETTINGS: dict[str, dict[str, Any]] = {
    "rte": {"num_train_epochs": 10.0},
    "sts": {"num_train_epochs": 10.0},
    "chunk": {"max_seq_length": 256},
    "summarization": {"max_seq_length": 512, "num_train_epochs": 3.0},
}
for _name in _LONG_TASKS:
    _TASK_SETTINGS[_name] = {
        "max_seq_length": 512,
        "num_train_epochs": 2.0,
        "write_distill_outputs": False,
        "write_test_outputs": False,
    }
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
_Length = Annotated[Size, at_least(5)]
_Source = Annotated[str, one_of("files", "tfds")]
_Trials = Annotated[int, Bound(lambda n: n != 0, "1 or more, or negative")]
_Pooling = Annotated[str, one_of("first", "mean")]
_HeadLayers = Annotated[int, Bound(lambda n: n in (1, 2), "1 or 2")]


@dataclasses.dataclass(frozen=True)
class FinetuningConfig(TrainingConfig):
    """Fine-tuning hyperparameters; names and defaults are the original's.

    Make one with `create`, which also derives what depends on other values.
    Nothing here touches the disk, so paths need not exist.

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
    debug: bool = False  # a tiny model, little data: does everything run?
    log_examples: bool = False  # print a training example
    # How many train+eval runs to perform; negative: until it is stopped.
    num_trials: _Trials = 1
    do_train: bool = True  # train
    do_eval: bool = True  # evaluate on the dev set
    keep_all_models: bool = True  # false: only keep the last trial's model
    # The tasks to learn; several are learned at once.
    task_names: list[str] = dataclasses.field(default_factory=lambda: ["chunk"])

    # ---- Training ----
    learning_rate: NonNegative = 1e-4  # peak rate (large: 5e-5)
    # Decoupled; not on LayerNorm and biases.
    weight_decay_rate: NonNegative = 0.01
    # If above 0, each layer's rate is this times the one above's.
    # Large: 0.9.
    layerwise_lr_decay: float = 0.8
    # Passes over the training data. Default: 3; rte and sts 10, most QA 2.
    num_train_epochs: Ratio = 3.0
    warmup_proportion: Share = 0.1  # fraction of training spent warming up
    save_checkpoints_steps: Positive = 1000000  # steps between checkpoints
    iterations_per_loop: Positive = 1000  # a call of the graph; above 100: 100
    # Use the records of an earlier run if they are of the same data and
    # settings.
    use_tfrecords_if_existing: bool = True

    # ---- Writing outputs ----
    write_test_outputs: bool = False  # predict the test set
    n_writes_test: Natural = 5  # ... in the first so many trials
    write_distill_outputs: bool = False  # no effect, as in the original

    # ---- Sizing ----
    # Wordpieces per example. Default: 128; chunk 256; summaries, most QA 512.
    max_seq_length: _Length = 128
    train_batch_size: Size = 32  # examples per update, over all devices
    eval_batch_size: Size = 32  # examples per evaluation batch
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

    # ---- Locations ----
    # Default: the model's vocab.txt if it has one, else <data_dir>/vocab.txt.
    vocab_file: str = ""
    # Weights to start from: any kind of checkpoint, hf:OWNER/NAME, or another
    # task's fine-tuned model. Default: <data_dir>/models/<model_name>; none:
    # random.
    init_checkpoint: str | None = None
    # Trial k is kept in <model_dir>_<k>.
    # Default: <data_dir>/models/<model_name>/finetuning_models/<tasks>_model
    model_dir: str = ""
    # Default: <data_dir>/models/<model_name>/finetuning_tfrecords/
    # <tasks>_tfrecords
    preprocessed_data_dir: str = ""
    results_txt: str = ""  # default: .../results/<tasks>_results.txt
    results_pkl: str = ""  # default: .../results/<tasks>_results.pkl

    # ---- Extensions (defaults keep what the original does, or say so) ----
    # Keeps apart runs on the same tasks: in models, results and predictions
    # <tasks>_<run_name> stands for <tasks>.
    run_name: str = ""
    results_json: str = ""  # default: .../results/<tasks>_results.json
    task_config: str | None = None  # JSON file that describes your own task
    allow_outside_files: bool = False  # that file may name some elsewhere
    data_source: _Source = "files"  # tfds: TensorFlow Datasets
    tfds_data_dir: str | None = None  # where TFDS keeps its data
    strict_rows: bool = False  # stop at the first bad row
    # Tagging: cut off only what does not fit (the original cuts more).
    fix_tagging_truncation: bool = False
    # Tagging: case, accents and Chinese as everywhere else.
    fix_tagging_casing: bool = False
    # Tagging: keep a last sentence that no blank line follows.
    fix_last_sentence: bool = False
    # Give every level of layers its own rate (the original skips one).
    fix_layerwise_lr_decay: bool = False
    # Question answering: train on the characters at an answer's offset, and
    # answer with those under the predicted wordpieces. The original searches
    # both in the words, and finds the first occurrence. Unset: in tasks of your
    # own, not in the original's (squad, squadv1, MRQA).
    answer_offsets: bool | None = None
    # Sentence tasks read the first token, or the mean.
    pooling: _Pooling = "first"
    # Layers of sentence tasks' heads; 2: a dense layer with GELU, as wide as
    # the model, and dropout before the last, as in transformers.
    classification_head_layers: _HeadLayers = 1
    # WNLI is not learned: its answers are the majority of its training labels.
    wnli_majority: bool = False
    shuffle_whole_set: bool = False  # shuffle all examples, anew each epoch
    # Pad a batch to its longest row, not to max_seq_length. On: the same
    # results in less time.
    length_buckets: bool = True
    # Put examples of similar length into a batch when training: other batches
    # than without.
    group_by_length: bool = False
    # ... when evaluating: the same results in less time.
    group_eval_by_length: bool = True
    # Lowest layers, with embeddings, that stay as is.
    freeze_layers: Natural = 0
    # Evaluations without a better keep_best after which training stops; 0:
    # never stops early.
    early_stopping_patience: Natural = 0
    keep_checkpoint_max: Natural | None = 1  # newest checkpoints kept; 0: all

    @classmethod
    def command_line_layers(
        cls, given: Mapping[str, Any]
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """The hparams of a task's JSON file."""
        path = given.get("task_config")
        if path is None:
            return []
        spec = read_hparams(str(path), "--task_config")
        brought = spec.get("hparams", {})
        if not isinstance(brought, dict):
            raise UserError(
                f"{path}: hparams: expected an object of hparams, got"
                f" {brought!r}"
            )
        if isinstance(spec.get("name"), str):
            brought = {"task_names": [spec["name"]], **brought}
        return [("task_config", brought)]

    @classmethod
    def _derived(
        cls, values: Mapping[str, Any], origins: Mapping[str, str]
    ) -> dict[str, Any]:
        """Paths, and what follows from task, size and debug, in that order."""
        data_dir = values["data_dir"]
        model = os.path.join(data_dir, "models", values["model_name"])
        tasks = ",".join(values["task_names"])
        run = _run_stem(values["task_names"], values["run_name"])
        results = os.path.join(model, "results", f"{run}_results")
        derived = {
            "vocab_file": os.path.join(data_dir, "vocab.txt"),
            "init_checkpoint": model,
            "model_dir": os.path.join(
                model, "finetuning_models", f"{run}_model"
            ),
            "preprocessed_data_dir": os.path.join(
                model, "finetuning_tfrecords", f"{tasks}_tfrecords"
            ),
            **{
                f"results_{e}": f"{results}.{e}" for e in ("txt", "pkl", "json")
            },
        }
        if len(values["task_names"]) == 1:
            task = values["task_names"][0]
            derived |= _TASK_SETTINGS.get(task, {"num_train_epochs": 3.0})
        if values["model_size"] == "large":
            derived.update(learning_rate=5e-5, layerwise_lr_decay=0.9)
        elif values["model_size"] == "small":
            derived["embedding_size"] = 128
        if not (values["do_lower_case"] and values["strip_accents"]):
            derived["fix_tagging_casing"] = True  # published ones are uncased
        if values["debug"]:
            derived.update(_DEBUG_SETTINGS)
        return derived

    def _problems(self) -> Iterator[str]:
        if not self.task_names:
            yield 'task_names: give at least one task, such as ["mrpc"]'
        for name in self.task_names:
            if not _TASK_NAME.fullmatch(name):
                yield (
                    f"task_names: {name!r} is no task name; letters, digits,"
                    " dots, dashes and underscores make one"
                )
            if self.task_names.count(name) > 1:
                yield f"task_names: {name} is given twice"
        if self.run_name and not _TASK_NAME.fullmatch(self.run_name):
            yield (
                f"run_name: {self.run_name!r} would be part of file names;"
                " letters, digits, dots, dashes and underscores make one"
            )
        if self.early_stopping_patience and not self.eval_every_n_steps:
            yield (
                "early_stopping_patience: needs evaluations while training;"
                " set eval_every_n_steps"
            )
        if self.wnli_majority and "wnli" not in self.task_names:
            yield (
                "wnli_majority: wnli is not among task_names"
                f" ({', '.join(self.task_names)}); leave wnli_majority out"
            )
        yield from super()._problems()

    def check_mode(self) -> None:
        if not (self.do_train or self.do_eval or self.write_test_outputs):
            raise UserError(
                "Nothing to do: do_train, do_eval and write_test_outputs are"
                " all false; set one"
            )

    def _doubts(self) -> Iterator[str]:
        origin = self.origins.get("max_seq_length", "default")
        if "naturalqs" in self.task_names and origin == "default":
            yield (
                "naturalqs keeps max_seq_length 128 and 3 epochs, as in the"
                " original, which gives the other question answering tasks 512"
                " and 2; set max_seq_length to 512"
            )
        if self.debug and self.init_checkpoint:
            yield (
                f"debug still starts from init_checkpoint"
                f" {self.init_checkpoint}, as in the original; set it to null"
                " for random weights"
            )
        if self.layerwise_lr_decay > 1:
            yield (
                f"layerwise_lr_decay {self.layerwise_lr_decay:g} is above 1:"
                " lower layers learn faster than higher ones"
            )
        if self.predict_batch_size != self.eval_batch_size:
            yield (
                f"predict_batch_size {self.predict_batch_size} has no effect:"
                f" eval_batch_size {self.eval_batch_size} is used (the original"
                " loses examples where the two differ)"
            )
        yield from super()._doubts()

    @property
    def pretrained_model_dir(self) -> str:
        """Directory of the pre-trained model; results go there, too."""
        return os.path.join(self.data_dir, "models", self.model_name)

    def raw_data_dir(self, task: str) -> str:
        return os.path.join(self.data_dir, "finetuning_data", task)

    def qa_file(self, task: str, kind: str) -> str:
        topdir = f"{_run_stem(self.task_names, self.run_name)}_qa"
        return os.path.join(
            self.pretrained_model_dir, "results", topdir, f"{task}_{kind}.json"
        )

    def test_predictions(self, task: str, split: str, trial: int | str) -> str:
        stem = _run_stem([task], self.run_name)
        name = f"{stem}_{split}_{trial}_predictions.pkl"
        return os.path.join(self.pretrained_model_dir, "test_predictions", name)


def _run_stem(task_names: list[str], run_name: str) -> str:
    """What names of files begin with: the tasks, and the run's own name."""
    return ",".join(task_names) + (f"_{run_name}" if run_name else "")
