# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Preprocessing of tasks: from examples to features and cached records."""

import collections
import functools
import hashlib
import itertools
import json
import os
import random
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.formatting import join_names
from electra_tf.data import feature_spec
from electra_tf.data.fingerprints import input_fingerprints
from electra_tf.data.tfrecords import frame_record
from electra_tf.files import filesystem
from electra_tf.files.atomic import atomic_file, write_atomically
from electra_tf.files.digests import file_sha256
from electra_tf.files.json_files import read_json
from electra_tf.finetuning.batches import (
    BUCKET_WIDTH,
    Batches,
)
from electra_tf.finetuning.row_report import BadRow, RowReport
from electra_tf.finetuning.task import Example, Task
from electra_tf.text.changed_letters import (
    ScriptCounter,
    Scripts,
    stripping_warnings,
)
from electra_tf.text.settings_files import read_settings
from electra_tf.text.vocabulary import is_bpe, vocab_hash

_PROGRESS_EVERY = 20000
# The version of the format of records. Raise this number with each change of
# the code that makes different records from the same data and settings. Version
# 2 changed how CoNLL lines and lists in cells are read.
_FORMAT = 2
# The approximate number of characters that are checked against the model's
# casing, from the first training example on.
_CHARACTERS_COUNTED = 1 << 20
_REMEDIES = {
    "do_lower_case": "Start from a model that was pre-trained with"
    " --do_lower_case=false.",
    "strip_accents": "Start from a model that was pre-trained with"
    " --strip_accents=false.",
}
# The hparams that change the content of records.
_DECIDING = tuple(
    """
    task_names max_seq_length do_lower_case strip_accents double_unordered debug
    data_source fix_tagging_truncation fix_tagging_casing fix_last_sentence
    max_query_length doc_stride
    """.split()
)


class Preprocessor:
    """The preprocessor of tasks: it featurizes, caches and batches data.

    The names of cached records contain a fingerprint of everything that the
    records depend on (data, hparams, vocabulary, batch size), so that records
    of other data or settings are never used.

    Source: google-research/electra, finetune/preprocessing.py.
    Differs: the cache is checked; the order follows from an explicit random
      stream; evaluation loses no examples.
    """

    def __init__(self, config: FinetuningConfig, tasks: Sequence[Task]) -> None:
        self._config = config
        self._tasks = list(tasks)
        self._by_name = {task.name: task for task in tasks}
        self._printed_warnings: set[str] = set()
        # (task, split) -> label -> count
        self._label_counts: dict[tuple[str, str], dict[str, int]] = {}

    @functools.cached_property
    def feature_specs(self) -> list[feature_spec.FeatureSpec]:
        """The specifications of shared features, then of tasks' features."""
        specs = feature_spec.shared_feature_specs(self._config.max_seq_length)
        for task in self._tasks:
            specs += task.get_feature_specs()
        names = [spec.name for spec in specs]
        duplicates = {name for name in names if names.count(name) > 1}
        if duplicates:
            raise UserError(
                "task_names: two tasks have features of the same name:"
                f" {', '.join(sorted(duplicates))}. Rename one of the tasks."
            )
        return specs

    def facts(self) -> dict[str, Any]:
        """Return labels and file digests; both must be equal on all workers."""
        data, labels = {}, {}
        for task in self._tasks:
            if task.labels_path():
                task.resolve_labels()
                labels[f"{task.name}, labels"] = task.resolved_labels
            for split in ("train", *task.get_dev_splits()):
                paths = ",".join(task.data_files(split) or ())
                data[f"{task.name}, {split}"] = paths
        config = self._config
        return labels | input_fingerprints(
            data, config.vocab_file, config.init_checkpoint
        )

    def prepare_train(
        self, order: random.Random | None = None
    ) -> tuple[Batches, int]:
        """Return the batches of the training data and the number of steps.

        Args:
          order: the random stream that draws the order of the examples; None: a
            stream from the seed.
        """
        order = order or random.Random(self._config.seed)
        return self._prepare(self._tasks, "train", order)

    def prepare_predict(
        self, tasks: Sequence[Task], split: str
    ) -> tuple[Batches, int]:
        """Return the batches of a split of tasks and the number of steps."""
        return self._prepare(list(tasks), split, None)

    def _prepare(
        self, tasks: list[Task], split: str, order: random.Random | None
    ) -> tuple[Batches, int]:
        config, is_training = self._config, order is not None
        batch_size = config.eval_batch_size
        if is_training:
            batch_size = config.train_batch_size
        # Labels are resolved first, because features depend on them.
        for task in self._tasks:
            task.resolve_labels()
        path, n_examples = self._prepare_records(
            tasks, split, order, batch_size
        )
        n_steps = n_examples // batch_size
        by_length = config.group_eval_by_length and config.length_buckets
        if is_training:
            n_steps = int(n_steps * config.num_train_epochs)
            by_length = config.group_by_length
        # XLA compiles a program for each length, so there should be few
        # lengths.
        compiles = config.jit_compile or config.use_tpu
        batches = Batches(
            path,
            self.feature_specs,
            n_examples,
            batch_size,
            config.max_seq_length,
            is_training,
            shuffle_buffer_size=config.shuffle_buffer_size,
            shuffle_whole_set=config.shuffle_whole_set,
            by_length=by_length,
            trim=config.length_buckets,
            shortest=max(task.min_length for task in self._tasks),
            multiple=BUCKET_WIDTH if compiles else 1,
            seed=config.seed,
        )
        return batches, n_steps

    def _prepare_records(
        self,
        tasks: list[Task],
        split: str,
        order: random.Random | None,
        batch_size: int,
    ) -> tuple[str, int]:
        """Return the record file and its number of records.

        The file is written unless an earlier run wrote it. Bad rows, letters
        that the casing changes and unknown labels are printed in either case.
        """
        config = self._config
        fingerprint = self._fingerprint(tasks, split, order, batch_size)
        name = "_".join(sorted(task.name for task in tasks)) + f"_{split}"
        prefix = os.path.join(
            config.preprocessed_data_dir, f"{name}-{_digest(fingerprint)[:12]}"
        )
        metadata = None
        if config.use_tfrecords_if_existing and fingerprint["data"] is not None:
            metadata = _read_metadata(prefix, fingerprint)
            reports = metadata["reports"].values() if metadata else []
            is_strict = config.strict_rows or config.strict
            if is_strict and any(report["rows"] for report in reports):
                # The data is read again, because a strict run must stop at the
                # bad row.
                metadata = None
        if metadata is None:
            metadata = self._write(tasks, split, order, prefix, batch_size)
            _write_metadata(prefix, metadata | {"fingerprint": fingerprint})
        else:
            print(f"Using the records of an earlier run: {prefix}.tfrecord")
            for task in tasks:
                task.row_report.absorb(**metadata["reports"][task.name])
        self._print_reports(metadata["reports"])
        self._check_letters(metadata.get("scripts", {}))
        for name, counts in metadata.get("labels", {}).items():
            if split == "dev" and (name, split) not in self._label_counts:
                self._check_labels(name, counts)
            self._label_counts[name, split] = counts
        return f"{prefix}.tfrecord", metadata["n_examples"]

    def _write(
        self,
        tasks: list[Task],
        split: str,
        order: random.Random | None,
        prefix: str,
        batch_size: int,
    ) -> dict[str, Any]:
        """Write the records and return their metadata."""
        before = {task.name: task.row_report.as_dict() for task in tasks}
        examples = [e for task in tasks for e in task.get_examples(split)]
        counts = {task.name: collections.Counter() for task in tasks}
        for example in examples:
            task = self._by_name[example.task_name]
            counts[task.name].update(task.label_names(example))
        scripts: Scripts = {}
        if order is not None:
            scripts = self._count_scripts(examples)
            order.shuffle(examples)
        path = f"{prefix}.tfrecord"
        n_records = 0
        with atomic_file(path, f"{path}.{os.getpid()}.tmp") as file:
            for features in self._featurized(examples, order is not None):
                example = feature_spec.encode_example(
                    self.feature_specs, features
                )
                file.write(frame_record(example.SerializeToString()))
                n_records += 1
            n_padding = -n_records % batch_size
            # Padding rows get a task id that belongs to no task.
            features = {"task_id": len(self._config.task_names)}
            example = feature_spec.encode_example(self.feature_specs, features)
            file.write(frame_record(example.SerializeToString()) * n_padding)
        print(
            f"Wrote {os.path.basename(path)}: {n_records} records of"
            f" {len(examples)} examples, {n_padding} padding rows"
        )
        reports = {
            task.name: _difference(
                before[task.name],
                task.row_report,
                split,
                task.data_files(split) or [],
            )
            for task in tasks
        }
        return {
            "n_examples": n_records + n_padding,
            "reports": reports,
            "labels": counts,
            "scripts": scripts,
        }

    def _count_scripts(self, examples: list[Example]) -> Scripts:
        """Count the letters of each script in the first training examples."""
        config, n_left = self._config, _CHARACTERS_COUNTED
        if is_bpe(config.vocab_file):
            return {}
        letters = ScriptCounter(config.do_lower_case, config.strip_accents)
        for example in examples:
            for text in example.texts():
                letters.add(text)
                n_left -= len(text)
            if n_left < 0:
                break
        return letters.scripts()

    def _featurized(
        self, examples: list[Example], is_training: bool
    ) -> Iterator[dict[str, Any]]:
        """Yield the features of each row of the examples."""
        for number, example in enumerate(examples):
            if number and number % _PROGRESS_EVERY == 0:
                print(f"Writing example {number} of {len(examples)}")
            task = self._by_name[example.task_name]
            rows = task.featurize(example, is_training)
            if not isinstance(rows, list):
                rows = [rows]
            if self._config.log_examples and not number:
                print(f"The first example: {example}")
                for features in rows:
                    _show(features, task)
            yield from rows

    def digest(self, task: Task, split: str) -> str:
        """Return a digest of everything that a task's examples depend on."""
        return _digest(self._fingerprint([task], split, None, 0))[:12]

    def _fingerprint(
        self,
        tasks: list[Task],
        split: str,
        order: random.Random | None,
        batch_size: int,
    ) -> dict[str, Any]:
        """Return everything that records depend on, as plain values."""
        facts: dict[str, Any] = {
            "format": _FORMAT,
            "split": split,
            "batch_size": batch_size,
            "order": _digest(repr(order.getstate())) if order else None,
            "hparams": {n: getattr(self._config, n) for n in _DECIDING},
            "features": [repr(spec) for spec in self.feature_specs],
            "tasks": [task.fingerprint() for task in tasks],
            "vocabulary": vocab_hash(self._config.vocab_file),
            "tokenizer": read_settings(self._config.vocab_file).beyond_casing,
            "unicode": unicodedata.unidata_version,
        }
        paths = [task.data_files(split) for task in tasks]
        facts["data"] = None
        if None not in paths:
            all_paths = itertools.chain.from_iterable(paths)
            facts["data"] = [file_sha256(path) for path in all_paths]
        return json.loads(json.dumps(facts))

    def _check_letters(self, scripts: Scripts) -> None:
        """Warn once about letters that the model's casing changes."""
        casing = (self._config.do_lower_case, self._config.strip_accents)
        for text in stripping_warnings(scripts, casing, _REMEDIES):
            if self._config.strict:
                raise UserError(f"{text} (Stopped by --strict.)")
            if text not in self._printed_warnings:
                print(f"WARNING: {text}")
            self._printed_warnings.add(text)

    def _check_labels(self, name: str, dev: dict[str, int]) -> None:
        """Warn about labels of dev examples that no training example has."""
        train = self._label_counts.get((name, "train"), {})
        unknown = {label: n for label, n in dev.items() if label not in train}
        if not (train and unknown):
            return
        listing = join_names(f"{label!r} {n:,}" for label, n in unknown.items())
        text = (
            f"{name}: {sum(unknown.values()):,} of {sum(dev.values()):,}"
            " labels in the dev split are missing from the training examples"
            f" ({listing}), so a model cannot learn these labels. Correct these"
            " labels, or add training examples that have these labels"
        )
        if self._config.strict:
            raise UserError(f"{text}. (Stopped by --strict.)")
        print(f"WARNING: {text}")

    def _print_reports(self, reports: dict[str, dict[str, Any]]) -> None:
        """Print new bad rows, and the counts of other content that was lost."""
        for name, values in reports.items():
            report = self._by_name[name].row_report
            rows = report.unprinted(BadRow(**row) for row in values["rows"])
            report.mark_printed(rows)
            for line in report.summary(name, rows, values["losses"]):
                print(line)


def _show(features: dict[str, Any], task: Task) -> None:
    """Print the features of an example, without the padding."""
    length = sum(features["input_mask"])
    ids = features["input_ids"][:length]
    tokens = task.tokenizer.convert_ids_to_tokens(ids)
    print(f"  tokens: {' '.join(tokens)}")
    for name, value in features.items():
        shown = [value] if isinstance(value, int | float) else value[:length]
        print(f"  {name}: {' '.join(map(str, shown))}")


def _difference(
    before: dict[str, Any],
    report: RowReport,
    split: str,
    split_files: Sequence[str],
) -> dict[str, list | dict]:
    """Return the bad rows and losses of a report that concern a split.

    The result contains the rows and losses of the split, and everything that
    `before`, an earlier state of the report, does not contain.
    """
    now = report.as_dict()
    old_rows, old_losses = before["rows"], before["losses"]
    losses = {
        # The counts of this split are complete: they include lost content that
        # an earlier reading of the split counted.
        k: n if k.startswith(f"{split}: ") else n - old_losses.get(k, 0)
        for k, n in now["losses"].items()
    }
    return {
        "rows": [
            row
            for row in now["rows"]
            if row["path"] in split_files or row not in old_rows
        ],
        "losses": {kind: count for kind, count in losses.items() if count},
    }


def _write_metadata(prefix: str, metadata: dict[str, Any]) -> None:
    """Write metadata with the digests that `_read_metadata` checks."""
    metadata |= {"sha256": file_sha256(f"{prefix}.tfrecord")}
    # JSON may change the types of values, so the digest covers the converted
    # values.
    metadata = json.loads(json.dumps(metadata))
    metadata["digest"] = _digest(metadata)
    path = f"{prefix}.metadata"
    text = json.dumps(metadata, indent=1) + "\n"
    write_atomically(path, text, f"{path}.{os.getpid()}.tmp")


def _read_metadata(
    prefix: str, fingerprint: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the metadata if the records are intact and have `fingerprint`.

    Otherwise None is returned. If a byte of the records or of the metadata
    changed, a warning is printed.
    """
    records, path = f"{prefix}.tfrecord", f"{prefix}.metadata"
    if not (filesystem.exists(records) and filesystem.exists(path)):
        return None
    try:
        metadata = read_json(path)
    except UserError:
        metadata = {}
    damaged = None
    if metadata.pop("digest", None) != _digest(metadata):
        damaged = path
    elif metadata["sha256"] != file_sha256(records):
        damaged = records
    if damaged:
        print(
            f"WARNING: {damaged}: the checksum differs, because the file was"
            " changed or an earlier version wrote it. The records are written"
            " again."
        )
        return None
    return metadata if metadata["fingerprint"] == fingerprint else None


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
