# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reader of the data sets of TensorFlow Datasets.

TensorFlow Datasets is imported only when a data set is read.
"""

from collections.abc import Iterator
from typing import Any

from configure.errors import UserError
from electra_tf.data.tables import Row


def open_builder(name: str, data_dir: str | None) -> Any:
    """Download and prepare a data set, and return its builder.

    Args:
      name: name of the data set, such as "glue/mrpc".
      data_dir: folder of prepared data sets; None or "": default folder.

    Raises:
      UserError: the data set does not exist, or cannot be downloaded.
    """
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise UserError(
            "Data from tfds requires the package tensorflow-datasets. Install"
            " the package: pip install tensorflow-datasets"
        ) from error
    try:
        builder = tfds.builder(name, data_dir=data_dir or None)
    except (tfds.core.DatasetNotFoundError, ValueError) as error:
        raise UserError(f"TFDS data set {name!r}: {error}") from error
    try:
        builder.download_and_prepare()
    # The class of the error depends on the site that hosts the data.
    except Exception as error:
        raise UserError(
            f"TFDS data set {name!r} cannot be downloaded and prepared:"
            f" {error}. Copy a prepared data set to tfds_data_dir, or read the"
            " data from files."
        ) from error
    return builder


def identify(name: str, data_dir: str | None) -> str:
    """Return name, configuration, version and size of a data set."""
    builder = open_builder(name, data_dir)
    return f"{builder.info.full_name} ({builder.info.dataset_size} bytes)"


def label_names(
    name: str, feature: str, data_dir: str | None
) -> list[str] | None:
    """Return the class names of a label feature; None for other features."""
    features = open_builder(name, data_dir).info.features
    if feature not in features:
        raise UserError(
            f"TFDS data set {name} has no feature {feature!r}. Use one of these"
            f" features: {', '.join(features)}."
        )
    return getattr(features[feature], "names", None)


def read_examples(
    builder: Any, split: str, start: int = 0, stop: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the examples in a range of a split, in their stored order."""
    import tensorflow_datasets as tfds

    # Files are read one after the other, because the position of an example
    # identifies the example.
    read_config = tfds.ReadConfig(
        interleave_cycle_length=1, try_autocache=False
    )
    dataset = builder.as_dataset(
        split=split, shuffle_files=False, read_config=read_config
    )
    if start:
        dataset = dataset.skip(start)
    if stop is not None:
        dataset = dataset.take(stop - start)
    yield from tfds.as_numpy(dataset)


def read_rows(
    name: str, split: str, data_dir: str | None, max_rows: int | None = None
) -> Iterator[Row]:
    """Yield the examples of a split as rows."""
    builder = open_builder(name, data_dir)
    if split not in builder.info.splits:
        raise UserError(
            f"TFDS data set {name} has no split {split!r}. Use one of these"
            f" splits: {', '.join(builder.info.splits)}."
        )
    examples = read_examples(builder, split, stop=max_rows)
    for number, example in enumerate(examples, 1):
        yield Row(number, _to_python(example))


def _to_python(value: Any) -> Any:
    """Convert NumPy values and bytes to plain Python values."""
    if isinstance(value, dict):
        return {name: _to_python(item) for name, item in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "tolist"):
        return _to_python(value.tolist())
    if isinstance(value, list):
        return [_to_python(item) for item in value]
    return value
