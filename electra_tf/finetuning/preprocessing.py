# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Examples -> features -> cached records -> batches."""

import json
import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.data import storage
from electra_tf.data.feature_spec import (
    FeatureSpec,
    encode_example,
    shared_feature_specs,
)
from electra_tf.finetuning import record_cache
from electra_tf.finetuning.batches import Batches
from electra_tf.finetuning.rows import RowReport
from electra_tf.finetuning.task import Example, Task

# Raised whenever the same data and settings make other records.
_FORMAT = 1
# Hparams that decide what the records hold.
_DECIDING = (
    "task_names",
    "max_seq_length",
    "do_lower_case",
    "strip_accents",
    "double_unordered",
    "debug",
    "data_source",
    "fix_tagging_truncation",
    "fix_tagging_casing",
    "fix_last_sentence",
    "max_query_length",
    "doc_stride",
)
_PROGRESS_EVERY = 20000


class Preprocessor:
    """Loads, featurizes, caches and batches the data of tasks.

    Cached records carry a fingerprint of everything they depend on (data,
    hparams, vocabulary, batch size) in their name, so records of other data
    or settings are never used.

    Args:
      config: the resolved hparams.
      tasks: the tasks that are learned together; every record has the
        features of all of them.

    Source: google-research/electra, finetune/preprocessing.py.
    Differs: the cache is checked; the order comes from an explicit random
      stream; evaluation loses no examples.
    """

    def __init__(self, config: FinetuningConfig, tasks: Sequence[Task]) -> None:
        self._config = config
        self._tasks = list(tasks)
        self._by_name = {task.name: task for task in tasks}
        self._known_specs: list[FeatureSpec] | None = None
        self._printed: set[tuple[str, str]] = set()

    @property
    def feature_specs(self) -> list[FeatureSpec]:
        """Every feature of a record: the shared ones, then task by task."""
        if self._known_specs is None:
            specs = shared_feature_specs(self._config.max_seq_length)
            for task in self._tasks:
                specs += task.get_feature_specs()
            names = [spec.name for spec in specs]
            twice = {name for name in names if names.count(name) > 1}
            if twice:
                raise UserError(
                    "two tasks have features of the same name:"
                    f" {', '.join(sorted(twice))}; rename a task"
                )
            self._known_specs = specs
        return self._known_specs

    def prepare_train(
        self, order: random.Random | None = None
    ) -> tuple[Batches, int]:
        """Prepares the training data of all tasks.

        Args:
          order: shuffles the examples before they are written; a fresh
            stream of the config's seed by default.

        Returns:
          What makes the data set, and the number of steps of all epochs.

        Raises:
          UserError: data is missing or unusable.
        """
        order = order or random.Random(self._config.seed)
        return self._prepare(self._tasks, "train", order)

    def prepare_predict(
        self, tasks: Sequence[Task], split: str
    ) -> tuple[Batches, int]:
        """Prepares a split for evaluation or prediction.

        Args:
          tasks: the tasks to predict, among those of this preprocessor.
          split: the split.

        Returns:
          What makes the data set, and its number of batches.

        Raises:
          UserError: data is missing or unusable.
        """
        return self._prepare(list(tasks), split, None)

    def _prepare(
        self, tasks: list[Task], split: str, order: random.Random | None
    ) -> tuple[Batches, int]:
        config, training = self._config, order is not None
        batch_size = (
            config.train_batch_size if training else config.eval_batch_size
        )
        fingerprint = self._fingerprint(tasks, split, order, batch_size)
        name = "_".join(sorted(task.name for task in tasks)) + f"_{split}"
        prefix = os.path.join(
            config.preprocessed_data_dir,
            f"{name}-{record_cache.digest(fingerprint)[:12]}",
        )
        metadata = None
        if config.use_tfrecords_if_existing and fingerprint["data"] is not None:
            metadata = record_cache.read_metadata(prefix, fingerprint)
            reports = metadata["reports"].values() if metadata else []
            if config.strict_rows and any(r["rows"] for r in reports):
                metadata = None  # reading again stops at the bad row
        if metadata is None:
            metadata = self._write(tasks, split, order, prefix, batch_size)
            metadata["fingerprint"] = fingerprint
            record_cache.write_metadata(prefix, metadata)
        else:
            print(f"Using the records of an earlier run: {prefix}.tfrecord")
            for task in tasks:
                task.row_report.absorb(**metadata["reports"][task.name])
        self._print_reports(tasks, metadata["reports"])
        n_examples = metadata["n_examples"]
        steps = n_examples // batch_size
        if training:
            steps = int(steps * config.num_train_epochs)
        batches = Batches(
            f"{prefix}.tfrecord",
            self.feature_specs,
            n_examples,
            batch_size,
            config.max_seq_length,
            training,
            shuffle_buffer_size=config.shuffle_buffer_size,
            shuffle_whole_set=config.shuffle_whole_set,
            by_length=config.group_by_length
            if training
            else config.group_eval_by_length and config.length_buckets,
            trim=config.length_buckets,
            shortest=self._shortest(),
            seed=config.seed,
        )
        return batches, steps

    def _write(
        self,
        tasks: list[Task],
        split: str,
        order: random.Random | None,
        prefix: str,
        batch_size: int,
    ) -> dict[str, Any]:
        """Writes the records; returns their metadata."""
        before = {task.name: task.row_report.as_dict() for task in tasks}
        examples = [e for task in tasks for e in task.get_examples(split)]
        if order is not None:
            order.shuffle(examples)
        storage.make_directory(os.path.dirname(prefix))
        path = f"{prefix}.tfrecord"
        temporary = f"{path}.{os.getpid()}.tmp"
        count = 0
        try:
            with tf.io.TFRecordWriter(temporary) as writer:
                for features in self._featurized(examples, order is not None):
                    example = encode_example(self.feature_specs, features)
                    writer.write(example.SerializeToString())
                    count += 1
                padding = -count % batch_size
                # A task_id that no task has marks a row as padding.
                nobody = {"task_id": len(self._config.task_names)}
                example = encode_example(self.feature_specs, nobody)
                for _ in range(padding):
                    writer.write(example.SerializeToString())
        except tf.errors.OpError as error:
            raise UserError(
                f"{path}: cannot be written: {error.message}"
            ) from error
        storage.rename(temporary, path)
        print(
            f"{os.path.basename(path)}: {count} records of {len(examples)}"
            f" examples, {padding} padding rows"
        )
        reports = {
            task.name: _difference(
                before[task.name], task.row_report, task.data_files(split) or []
            )
            for task in tasks
        }
        return {
            "n_examples": count + padding,
            "n_padding": padding,
            "n_bytes": storage.file_size(path),
            "reports": reports,
        }

    def _featurized(
        self, examples: list[Example], is_training: bool
    ) -> Iterator[dict[str, Any]]:
        for number, example in enumerate(examples):
            if number and number % _PROGRESS_EVERY == 0:
                print(f"Writing example {number} of {len(examples)}")
            log = self._config.log_examples and number < 1
            task = self._by_name[example.task_name]
            found = task.featurize(example, is_training, log)
            yield from found if isinstance(found, list) else [found]

    def _fingerprint(
        self,
        tasks: list[Task],
        split: str,
        order: random.Random | None,
        batch_size: int,
    ) -> dict[str, Any]:
        """Returns all that the records depend on, as plain values."""
        facts: dict[str, Any] = {
            "format": _FORMAT,
            "split": split,
            "batch_size": batch_size,
            "order": record_cache.digest(repr(order.getstate()))
            if order
            else None,
            "hparams": {n: getattr(self._config, n) for n in _DECIDING},
            "features": [repr(spec) for spec in self.feature_specs],
            "tasks": [task.fingerprint() for task in tasks],
            "vocabulary": [
                record_cache.digest(list(task.tokenizer.vocab.items()))
                for task in tasks
                if task.tokenizer is not None
            ],
        }
        files = [task.data_files(split) for task in tasks]
        facts["data"] = None
        if all(paths is not None for paths in files):
            facts["data"] = {
                p: record_cache.hash_file(p) for part in files for p in part
            }
        return json.loads(json.dumps(facts))

    def _print_reports(
        self, tasks: list[Task], reports: dict[str, dict[str, Any]]
    ) -> None:
        """Prints what was not printed before."""
        for task in tasks:
            rows = [
                row
                for row in reports[task.name]["rows"]
                if (task.name, str(row)) not in self._printed
            ]
            self._printed.update((task.name, str(row)) for row in rows)
            report = RowReport()
            report.absorb(rows, reports[task.name]["losses"])
            for line in report.summary(task.name):
                print(line)

    def _shortest(self) -> int:
        """Returns the least length of a batch: beams need places."""
        config = self._config
        finds_answers = any(
            spec.name.endswith("_start_positions")
            for spec in self.feature_specs
        )
        if finds_answers and config.joint_prediction:
            return config.beam_size
        return 1


def _difference(
    before: dict[str, Any], report: RowReport, own_files: Sequence[str]
) -> dict[str, list | dict]:
    """Returns what a report says of some files, or has learned since."""
    now = report.as_dict()
    known = {str(row) for row in before["rows"]}
    losses = {
        what: count - before["losses"].get(what, 0)
        for what, count in now["losses"].items()
    }
    return {
        "rows": [
            row
            for row in now["rows"]
            if row["path"] in own_files or str(row) not in known
        ],
        "losses": {what: count for what, count in losses.items() if count},
    }
