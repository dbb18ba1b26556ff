# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Number of examples that a pre-training run reads in an epoch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from electra_tf.data.input_files import InputFiles
from electra_tf.data.manifest import listed_shards, load_manifest
from electra_tf.data.raw_text import RawText
from electra_tf.data.tfrecords import count_records
from electra_tf.files import filesystem

if TYPE_CHECKING:
    from configure.pretraining import PretrainingConfig

# Maximum number of bytes that are read from records that no manifest lists.
_BYTES_COUNTED = 256 << 20


class ExampleCount(NamedTuple):
    """Number of training examples on disk."""

    examples: int
    exact: bool  # False: part of the count is an estimate
    files: int  # number of nonempty files


def count_training_examples(config: PretrainingConfig) -> ExampleCount:
    """Count the training examples of an epoch.

    Manifests contain the counts of their record files. Other record files are
    read only up to a limit, and text is only sampled; the remaining counts are
    estimated.
    """
    files = InputFiles.of(config)
    if hparam := files.text_hparam(training=True):
        text = RawText(config, hparam)
        sample = text.sample()
        examples = round(sample.examples * text.num_bytes / sample.bytes)
        is_exact = sample.bytes == text.num_bytes
        return ExampleCount(examples, is_exact, len(text.paths))
    paths = files.find_records(training=True).paths
    folders = {os.path.dirname(path) for path in paths}
    shards = {
        folder: listed_shards(load_manifest(folder)) for folder in folders
    }
    listed = counted = counted_bytes = skipped_bytes = 0
    for path in paths:
        folder, name = os.path.split(path)
        if shard := shards[folder].get(name):
            listed += shard["records"]
            continue
        records, num_bytes = count_records(path, _BYTES_COUNTED - counted_bytes)
        counted += records
        counted_bytes += num_bytes
        skipped_bytes += max(0, filesystem.file_size(path) - num_bytes)
    if counted_bytes:
        counted += round(counted * skipped_bytes / counted_bytes)
    return ExampleCount(listed + counted, not skipped_bytes, len(paths))
