# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text data sets of TensorFlow Datasets, read by name.

TensorFlow and TFDS are imported only when such a corpus is asked for.
"""

from collections.abc import Iterator
from typing import Any

from configure.errors import UserError
from electra_tf.data.text_reading import (
    Piece,
    ReadingReport,
    lines_of,
    read_pieces,
)


def _tfds():
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise UserError(
            "corpus_format tfds needs TensorFlow Datasets: "
            "pip install tensorflow-datasets"
        ) from error
    return tfds


def _builder(name: str, data_dir: str):
    tfds = _tfds()
    try:
        return tfds.builder(name, data_dir=data_dir or None)
    except (tfds.core.DatasetNotFoundError, ValueError) as error:
        raise UserError(f"tfds_name {name!r}: {error}") from error


def count_examples(name: str, split: str, data_dir: str) -> int:
    """Downloads and prepares a data set if need be.

    Args:
      name: such as "wikipedia/20230601.en" or "lm1b".
      split: such as "train" or "train[:10%]".
      data_dir: where TFDS keeps its data; empty for its default.

    Returns:
      The number of examples of the split.

    Raises:
      UserError: for an unknown name or split, or if preparing fails.
    """
    builder = _builder(name, data_dir)
    try:
        builder.download_and_prepare()
    except Exception as error:  # what a download raises depends on its site
        raise UserError(
            f"tfds_name {name!r} cannot be downloaded and prepared: {error}"
        ) from error
    try:
        return builder.info.splits[split].num_examples
    except (KeyError, ValueError) as error:
        known = ", ".join(builder.info.splits)
        raise UserError(
            f"tfds_split {split!r} is not a split of {name} (it has: {known})."
        ) from error


def read_examples(
    source: Any,
    split: str,
    data_dir: str,
    text_field: str,
    blanks_separate_docs: bool,
    report: ReadingReport,
) -> Iterator[Piece]:
    """Reads a range of a split in its stored order.

    Args:
      source: `corpora.Source` whose `start` and `end` count examples.
      split: the split that the range is of.
      data_dir: see `count_examples`.
      text_field: feature with the text; "a/b" reaches into nested ones.
      blanks_separate_docs: see `corpora`.
      report: told about undecodable bytes and progress.

    Yields:
      Pieces of documents; each example is at least one document.

    Raises:
      UserError: if there is no such text feature.
    """
    tfds = _tfds()
    builder = _builder(source.path, data_dir)
    # One file after the other: the position of an example is its identity.
    read_config = tfds.ReadConfig(
        interleave_cycle_length=1, try_autocache=False
    )
    dataset = builder.as_dataset(
        split=split, shuffle_files=False, read_config=read_config
    )
    dataset = dataset.skip(source.start).take(source.end - source.start)
    for index, example in enumerate(tfds.as_numpy(dataset), source.start):
        yield from read_pieces(
            lines_of(_text(example, text_field, source.name)),
            f"{source.name}[{index}]",
            0,
            blanks_separate_docs,
            report,
            prefix=f"{index}:",
            count_units=False,
        )
        report.units_read += 1


def _text(example: dict, text_field: str, name: str) -> bytes:
    value = example
    for part in text_field.split("/"):
        if not isinstance(value, dict) or part not in value:
            raise UserError(
                f"{name} has no feature {text_field!r} (it has: "
                f"{', '.join(example)}); name one with --text_field."
            )
        value = value[part]
    if not isinstance(value, bytes):
        raise UserError(
            f"{name}: feature {text_field!r} is {type(value).__name__}, "
            "expected text."
        )
    return value
