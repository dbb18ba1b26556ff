# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hparams of fine-tuning: defaults, derived values and errors.

`--help` prints the comment of each field.
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
from configure.config import TrainingConfig, hparam_error
from configure.errors import UserError
from configure.hparams_json import read_hparams
from configure.problems import Problem
from configure.validation import check_value

# Question answering tasks whose default max_seq_length is 512. The original
# recognizes these tasks by "squad" or "qa" in the name, and thus omits
# naturalqs.
_LONG_TASKS = ("squad", "squadv1", "newsqa", "triviaqa", "searchqa")
_TASK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

# Derived values of tasks that are trained alone.
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
# Values that `debug` sets unless the user chose a value.
_DEBUG_SETTINGS = {
    "save_checkpoints_steps": 1000000,
    "use_tfrecords_if_existing": False,
    "num_trials": 1,
    "iterations_per_loop": 1,
    "train_batch_size": 32,
    "num_train_epochs": 3.0,
    "log_examples": True,
}

# The minimum length holds [CLS], two [SEP] and a wordpiece of each of the two
# texts.
_Length = Annotated[Size, at_least(5)]
_Source = Annotated[str, one_of("files", "tfds")]
_Trials = Annotated[
    int, Bound(lambda n: n != 0, "positive, or negative for no limit")
]
_Pooling = Annotated[str, one_of("first", "mean")]
_HeadLayers = Annotated[int, Bound(lambda n: n in (1, 2), "1 or 2")]


@dataclasses.dataclass(frozen=True)
class FinetuningConfig(TrainingConfig):
    """Hparams of fine-tuning, with the original's names and defaults.

    Make a config with `create`, which also derives values from other values.
    Creating a config reads no file, so missing paths are accepted.

    Source: google-research/electra, configure_finetuning.py.
    Differs: values are converted to their declared types; `vocab_file` defaults
      to the vocabulary of the model, then to that of `data_dir`; the names of
      your own tasks imply no defaults.
    """

    purpose = (
        "Fine-tune a pre-trained model on tasks, evaluate it, and predict test"
        " sets."
    )

    # ---- General ----
    # Name of the pre-trained model in DATA_DIR/models/NAME, where the results
    # are written, too.
    model_name: str
    # Folder of data and models. DATA_DIR/finetuning_data/TASK contains the
    # files of a task.
    data_dir: str
    debug: bool = False  # train a tiny model on little data, as a test
    log_examples: bool = False  # print one example of the training data
    # Number of trials, each of which trains and evaluates a model. Negative:
    # repeat until the program is stopped.
    num_trials: _Trials = 1
    do_train: bool = True  # train a model in each trial
    do_eval: bool = True  # evaluate on the dev set
    keep_all_models: bool = True  # false: keep only the last trial's model
    # Names of the tasks; one model learns all of them.
    task_names: list[str] = dataclasses.field(default_factory=lambda: ["chunk"])

    # ---- Training ----
    learning_rate: NonNegative = 1e-4  # peak learning rate; large: 5e-5
    # Decoupled weight decay, except for LayerNorm and biases.
    weight_decay_rate: NonNegative = 0.01
    # Ratio of a layer's learning rate to that of the layer above; 0 or less:
    # all layers have the same rate. Large: 0.9.
    layerwise_lr_decay: float = 0.8
    # Number of passes over the training data. Default: 3; rte and sts 10, most
    # question answering tasks 2.
    num_train_epochs: Ratio = 3.0
    # Fraction of training steps spent warming up.
    warmup_proportion: Share = 0.1
    save_checkpoints_steps: Positive = 1000000  # steps between checkpoints
    # Steps per call of the graph; values above 100 act as 100.
    iterations_per_loop: Positive = 1000
    # Reuse the TFRecords of an earlier run if data and settings are equal.
    use_tfrecords_if_existing: bool = True

    # ---- Writing outputs ----
    write_test_outputs: bool = False  # write predictions of the test sets
    # Number of trials, counted from the first, that write test predictions.
    n_writes_test: Natural = 5
    write_distill_outputs: bool = False  # no effect, as in the original

    # ---- Sizing ----
    # Maximum number of tokens in an example. Default: 128; chunk 256; summaries
    # and most question answering tasks 512.
    max_seq_length: _Length = 128
    train_batch_size: Size = 32  # examples per update, over all devices
    eval_batch_size: Size = 32  # examples per evaluation batch
    # No effect; accepted for the original's command lines.
    predict_batch_size: Positive = 32
    # Train on both orders of a sentence pair if the task ignores the order.
    double_unordered: bool = True

    # ---- Question answering ----
    max_query_length: Positive = 64  # Maximum number of tokens in a question.
    # Number of tokens between the starts of two windows over a long passage.
    doc_stride: Positive = 128
    # Number of answers that are kept for each question.
    n_best_size: Positive = 20
    max_answer_length: Positive = 30  # Maximum number of tokens in an answer.
    # Learn whether a question has an answer.
    answerable_classifier: bool = True
    # Let answerable_classifier also use the hidden states, weighted by the
    # start logits.
    answerable_uses_start_logits: bool = True
    # Weight of the loss of answerable_classifier.
    answerable_weight: NonNegative = 0.5
    # Predict the end of an answer from its start.
    joint_prediction: bool = True
    # Number of starts that joint prediction considers.
    beam_size: Positive = 20
    # Predict no answer if the odds of no answer are above this threshold.
    qa_na_threshold: float = -2.75

    # ---- Locations ----
    # Vocabulary file. Default: vocab.txt of the model, otherwise
    # <data_dir>/vocab.txt.
    vocab_file: str = ""
    # Initial weights: a checkpoint of any format, hf:OWNER/NAME, or a model
    # fine-tuned on another task. Default: <data_dir>/models/<model_name>. None:
    # random weights.
    init_checkpoint: str | None = None
    # Prefix of the folders <model_dir>_<k>, in which trial k is saved. Default:
    # <data_dir>/models/<model_name>/finetuning_models/<tasks>_model
    model_dir: str = ""
    # Folder of the TFRecords. Default:
    # <data_dir>/models/<model_name>/finetuning_tfrecords/<tasks>_tfrecords
    preprocessed_data_dir: str = ""
    results_txt: str = ""  # default: .../results/<tasks>_results.txt
    results_pkl: str = ""  # default: .../results/<tasks>_results.pkl

    # ---- Extensions (defaults as the original's, but for comments) ----
    # Name that separates runs on the same tasks: names of models, results and
    # predictions contain <tasks>_<run_name> instead of <tasks>.
    run_name: str = ""
    results_json: str = ""  # default: .../results/<tasks>_results.json
    task_config: str | None = None  # JSON file that describes your own task
    # Accept files outside the folder of task_config.
    allow_outside_files: bool = False
    data_source: _Source = "files"  # source of data; tfds: TensorFlow Datasets
    tfds_data_dir: str | None = None  # data_dir of TensorFlow Datasets
    strict_rows: bool = False  # stop at the first invalid row
    # Tagging: truncate a sentence only if it exceeds max_seq_length (the
    # original truncates more).
    fix_tagging_truncation: bool = False
    # Tagging: process case, accents and Chinese characters as other tasks do.
    fix_tagging_casing: bool = False
    # Tagging: keep a last sentence that no blank line follows.
    fix_last_sentence: bool = False
    # Place the heads one level above the top layer in layer-wise decay (the
    # original places them two levels above).
    fix_layerwise_lr_decay: bool = False
    # Question answering: train on the characters at an answer's offset, and
    # predict the characters of the predicted tokens. The original searches for
    # the words in both cases, and uses their first occurrence. Unset: true for
    # your own tasks, and false for the original's (squad, squadv1, MRQA).
    answer_offsets: bool | None = None
    # Input of sentence-level heads: the hidden state of the first token, or the
    # mean of all hidden states.
    pooling: _Pooling = "first"
    # Number of layers in sentence-level heads. 2: as in transformers, a dense
    # layer as wide as the model, GELU, and dropout before the last layer.
    classification_head_layers: _HeadLayers = 1
    # Predict the majority label of WNLI's training data instead of learning
    # WNLI.
    wnli_majority: bool = False
    # Shuffle all examples, in a new order each epoch.
    shuffle_whole_set: bool = False
    # Pad batches to their longest row instead of max_seq_length: same results
    # in less time.
    length_buckets: bool = True
    # Train on the real tokens of a batch without its padding: less time if the
    # lengths of rows differ, more time if they do not. Dropout draws differ.
    skip_padding: bool = False
    # Group training examples of similar length, which changes the batches.
    group_by_length: bool = False
    # Group evaluation examples of similar length: same results in less time.
    group_eval_by_length: bool = True
    # Number of lowest layers that are not trained; 1 or more also freezes the
    # embeddings.
    freeze_layers: Natural = 0
    # Number of evaluations without a better keep_best metric after which
    # training stops; 0: no early stopping.
    early_stopping_patience: Natural = 0
    # Number of latest checkpoints to keep; 0: all.
    keep_checkpoint_max: Natural | None = 1

    @classmethod
    def command_line_layers(
        cls, hparams: Mapping[str, Any]
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the hparams in the JSON file of `task_config`."""
        path = hparams.get("task_config")
        if path is None:
            return []
        spec = read_hparams(str(path), "--task_config")
        task_hparams = spec.get("hparams", {})
        check_value(task_hparams, dict, f"{path}: hparams")
        if isinstance(spec.get("name"), str):
            task_hparams = {"task_names": [spec["name"]], **task_hparams}
        return [("task_config", task_hparams)]

    @classmethod
    def _derived(
        cls, values: Mapping[str, Any], origins: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return values derived from data_dir, task, size, casing and debug."""
        derived = _derived_paths(values)
        if len(values["task_names"]) == 1:
            task = values["task_names"][0]
            derived |= _TASK_SETTINGS.get(task, {"num_train_epochs": 3.0})
        if values["model_size"] == "large":
            derived.update(learning_rate=5e-5, layerwise_lr_decay=0.9)
        elif values["model_size"] == "small":
            derived["embedding_size"] = 128
        if not (values["do_lower_case"] and values["strip_accents"]):
            # Published models are uncased, so none of their scores change.
            derived["fix_tagging_casing"] = True
        if values["debug"]:
            derived.update(_DEBUG_SETTINGS)
        return derived

    def _errors(self) -> Iterator[Problem]:
        if not self.task_names:
            yield hparam_error(
                "task_names",
                'is empty; list at least one task, such as ["mrpc"]',
            )
        for name in self.task_names:
            if not _TASK_NAME.fullmatch(name):
                yield hparam_error(
                    "task_names",
                    f"{name!r} is not a task name; use letters, digits, dots,"
                    " dashes and underscores",
                )
            if self.task_names.count(name) > 1:
                yield hparam_error(
                    "task_names", f"{name} is listed twice; remove one"
                )
        if self.run_name and not _TASK_NAME.fullmatch(self.run_name):
            yield hparam_error(
                "run_name",
                f"{self.run_name!r} cannot be part of file names; use letters,"
                " digits, dots, dashes and underscores",
            )
        if self.early_stopping_patience and not self.eval_every_n_steps:
            yield hparam_error(
                "early_stopping_patience",
                f"{self.early_stopping_patience} requires evaluations during"
                " training, but eval_every_n_steps is 0; set eval_every_n_steps"
                " above 0",
            )
        if self.skip_padding and self.jit_compile:
            yield hparam_error(
                "skip_padding",
                "true, but jit_compile is true, too: XLA would compile again"
                " for each number of tokens; set one of them to false",
            )
        if self.wnli_majority and "wnli" not in self.task_names:
            yield hparam_error(
                "wnli_majority",
                f"wnli is not among task_names ({', '.join(self.task_names)});"
                " leave wnli_majority out",
            )
        yield from super()._errors()

    def check_mode(self) -> None:
        """Raise a UserError unless the config trains, evaluates or predicts."""
        if not (self.do_train or self.do_eval or self.write_test_outputs):
            raise UserError(
                "Nothing to do: do_train, do_eval and write_test_outputs are"
                " all false; set one of them to true."
            )

    def _warnings(self) -> Iterator[str]:
        origin = self.origins.get("max_seq_length", "default")
        if "naturalqs" in self.task_names and origin == "default":
            yield (
                "naturalqs keeps max_seq_length 128 and 3 epochs, as in the"
                " original; the other question answering tasks have 512 and 2."
                " Set max_seq_length to 512"
            )
        if self.debug and self.init_checkpoint:
            yield (
                f"debug starts from init_checkpoint {self.init_checkpoint}, as"
                " in the original; set init_checkpoint to null for random"
                " weights"
            )
        if self.layerwise_lr_decay > 1:
            yield (
                f"layerwise_lr_decay {self.layerwise_lr_decay:g} is above 1:"
                " lower layers learn faster than higher layers. Set"
                " layerwise_lr_decay to 1 or less"
            )
        if self.predict_batch_size != self.eval_batch_size:
            yield (
                f"predict_batch_size {self.predict_batch_size} has no effect:"
                f" eval_batch_size {self.eval_batch_size} is used (the original"
                " loses examples if the two differ). Set eval_batch_size"
                " instead"
            )
        yield from super()._warnings()

    @property
    def pretrained_model_dir(self) -> str:
        """Folder of the pre-trained model, which also contains the results."""
        return os.path.join(self.data_dir, "models", self.model_name)

    def raw_data_dir(self, task: str) -> str:
        """Return the folder of a task's data files."""
        return os.path.join(self.data_dir, "finetuning_data", task)

    def qa_file(self, task: str, kind: str) -> str:
        """Return the path of a file that a task's evaluation writes.

        Args:
          task: name of a question answering task.
          kind: content of the JSON file: preds, nbest, null_odds or eval.
        """
        folder = f"{_run_stem(self.task_names, self.run_name)}_qa"
        return os.path.join(
            self.pretrained_model_dir, "results", folder, f"{task}_{kind}.json"
        )

    def test_predictions(self, task: str, split: str, trial: int | str) -> str:
        """Return the path of a trial's test predictions."""
        stem = _run_stem([task], self.run_name)
        name = f"{stem}_{split}_{trial}_predictions.pkl"
        return os.path.join(self.pretrained_model_dir, "test_predictions", name)


def _derived_paths(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paths that are derived from data_dir."""
    data_dir = values["data_dir"]
    model = os.path.join(data_dir, "models", values["model_name"])
    tasks = ",".join(values["task_names"])
    stem = _run_stem(values["task_names"], values["run_name"])
    results = os.path.join(model, "results", f"{stem}_results")
    return {
        "vocab_file": os.path.join(data_dir, "vocab.txt"),
        "init_checkpoint": model,
        "model_dir": os.path.join(model, "finetuning_models", f"{stem}_model"),
        "preprocessed_data_dir": os.path.join(
            model, "finetuning_tfrecords", f"{tasks}_tfrecords"
        ),
        "results_txt": f"{results}.txt",
        "results_pkl": f"{results}.pkl",
        "results_json": f"{results}.json",
    }


def _run_stem(task_names: list[str], run_name: str) -> str:
    """Return the prefix of a run's file names: its tasks and run_name."""
    stem = ",".join(task_names)
    return f"{stem}_{run_name}" if run_name else stem
