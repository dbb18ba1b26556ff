# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of labelled data sets of TensorFlow Datasets, read by name.

TensorFlow and TFDS are imported only when such a data set is asked for.
"""

from collections.abc import Iterator
from typing import Any

from configure.errors import UserError
from electra_tf.data.tables import Row


def _builder(name: str, data_dir: str | None) -> Any:
    """Returns a data set's builder, downloaded and prepared."""
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise UserError(
            "data_source tfds needs TensorFlow Datasets: pip install"
            " tensorflow-datasets"
        ) from error
    try:
        builder = tfds.builder(name, data_dir=data_dir or None)
    except (tfds.core.DatasetNotFoundError, ValueError) as error:
        raise UserError(f"TFDS data set {name!r}: {error}") from error
    try:
        builder.download_and_prepare()
    except Exception as error:  # what a download raises depends on its site
        raise UserError(
            f"TFDS data set {name!r} cannot be downloaded and prepared:"
            f" {error}. Put a prepared one into tfds_data_dir, or read files"
            " with data_source=files"
        ) from error
    return builder


def identity(name: str, data_dir: str | None) -> str:
    """Returns name, configuration and version of a data set, preparing it.

    Args:
      data_dir: where TFDS keeps its data; None for its default.
    """
    builder = _builder(name, data_dir)
    return f"{builder.info.full_name} ({builder.info.dataset_size} bytes)"


def label_names(
    name: str, feature: str, data_dir: str | None
) -> list[str] | None:
    """Names of a class label in order, or None for other features."""
    features = _builder(name, data_dir).info.features
    if feature not in features:
        raise UserError(
            f"TFDS data set {name} has no feature {feature!r} (it has:"
            f" {', '.join(features)})"
        )
    return getattr(features[feature], "names", None)


def read_rows(
    name: str, split: str, data_dir: str | None, max_rows: int | None = None
) -> Iterator[Row]:
    """Reads a split in its stored order.

    Args:
      max_rows: stop after so many rows; None reads all.
    """
    import tensorflow_datasets as tfds

    builder = _builder(name, data_dir)
    if split not in builder.info.splits:
        raise UserError(
            f"TFDS data set {name} has no split {split!r} (it has:"
            f" {', '.join(builder.info.splits)})"
        )
    # One file after the other: the position of an example is its identity.
    read_config = tfds.ReadConfig(
        interleave_cycle_length=1, try_autocache=False
    )
    dataset = builder.as_dataset(
        split=split, shuffle_files=False, read_config=read_config
    )
    if max_rows is not None:
        dataset = dataset.take(max_rows)
    for number, example in enumerate(tfds.as_numpy(dataset), 1):
        yield Row(number, _plain(example))


def _plain(value: Any) -> Any:
    """Turns NumPy and bytes into plain Python values, nested ones too."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value
