# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writing the original's TF1 checkpoints.

The original's Saver keys tensors by variable name in TensorFlow's V2 files;
so does this, without a graph or a session.
"""

import os
from collections.abc import Iterator

import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints.weights import Weights, without_optimizer

# Tensors are held in memory until their data file is written; each further
# file adds one to the set.
_BYTES_PER_FILE = 512 * 2**20


def write_tf1(
    weights: Weights,
    prefix: str,
    strip_optimizer: bool = False,
    overwrite: bool = False,
    bytes_per_file: int = _BYTES_PER_FILE,
) -> None:
    """Writes tensors as the original's checkpoint, names and types as they are.

    The files appear under their names when they are complete, the index last:
    without an index there is no checkpoint. The file `checkpoint` then names
    it the newest.

    Args:
      weights: what to write, read one by one.
      prefix: of the files, such as "dir/model.ckpt-1000".
      strip_optimizer: whether the Adam slots are left out.
      overwrite: whether files of that prefix may be replaced.
      bytes_per_file: a new data file is begun beyond this; memory is bounded
        by about twice as much.

    Raises:
      UserError: if there is such a checkpoint already, the place cannot be
        written, or the source cannot be read.

    Source: TensorFlow's Saver (`SaveV2`, and `MergeV2Checkpoints` as with
    `sharded=True`), which the original's Estimator uses.
    """
    if strip_optimizer:
        weights = without_optimizer(weights)
    directory = os.path.dirname(prefix)
    existing = files_of(prefix)
    if existing and not overwrite:
        raise UserError(
            f"{prefix}: there is a checkpoint already ({existing[0]}); choose"
            " another name or pass --overwrite."
        )
    partial = prefix + ".part"
    _remove_tree(partial)  # What a killed process may have left.
    try:
        tf.io.gfile.makedirs(partial)
        merged = _write_shards(weights, partial, bytes_per_file)
        # An old index must not be seen beside new data.
        for path in existing:
            tf.io.gfile.remove(path)
        for path in files_of(merged, index_last=True):
            suffix = path[len(merged) :]
            tf.io.gfile.rename(path, prefix + suffix, overwrite=True)
        _record_newest(directory or ".", os.path.basename(prefix))
    except (OSError, tf.errors.OpError) as error:
        raise UserError(f"{prefix} cannot be written: {error}") from error
    finally:
        _remove_tree(partial)


def files_of(prefix: str, index_last: bool = False) -> list[str]:
    """Lists the files of a checkpoint.

    Args:
      prefix: of the files.
      index_last: whether the index comes last instead of first.

    Returns:
      Those that exist.
    """
    directory, name = os.path.split(prefix)
    if not tf.io.gfile.isdir(directory or "."):
        return []
    found = [
        os.path.join(directory, entry)
        for entry in tf.io.gfile.listdir(directory or ".")
        if entry == f"{name}.index" or entry.startswith(f"{name}.data-")
    ]
    return sorted(
        found, key=lambda path: (path.endswith(".index") == index_last, path)
    )


def _write_shards(weights: Weights, directory: str, limit: int) -> str:
    """Writes the data group by group; returns the prefix of the whole."""
    shards = []
    for group in _groups(weights, limit):
        shard = os.path.join(directory, f"shard_{len(shards)}")
        values = [tf.constant(weights.read(name)) for name in group]
        tf.raw_ops.SaveV2(
            prefix=shard,
            tensor_names=group,
            shape_and_slices=[""] * len(group),
            tensors=values,
        )
        del values
        shards.append(shard)
    merged = os.path.join(directory, "merged")
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=shards,
        destination_prefix=merged,
        delete_old_dirs=False,
    )
    return merged


def _groups(weights: Weights, limit: int) -> Iterator[list[str]]:
    """Names whose tensors together stay under a limit, or are one alone."""
    group: list[str] = []
    size = 0
    for name, spec in weights.specs.items():
        if group and size + spec.size_in_bytes > limit:
            yield group
            group, size = [], 0
        group.append(name)
        size += spec.size_in_bytes
    if not group:
        raise UserError(f"{weights.path}: nothing to write: no tensors.")
    yield group


def _record_newest(directory: str, name: str) -> None:
    """Writes the file `checkpoint`, as a Saver does after each save."""
    state = tf.train.get_checkpoint_state(directory)
    paths = state.all_model_checkpoint_paths if state else []
    names = [os.path.basename(path) for path in paths]
    names = [
        other
        for other in dict.fromkeys(names)
        if other != name
        and tf.io.gfile.exists(os.path.join(directory, other + ".index"))
    ]
    lines = [f'model_checkpoint_path: "{name}"']
    lines += [f'all_model_checkpoint_paths: "{n}"' for n in [*names, name]]
    path = os.path.join(directory, "checkpoint")
    with tf.io.gfile.GFile(path + ".tmp", "w") as file:
        file.write("\n".join(lines) + "\n")
    tf.io.gfile.rename(path + ".tmp", path, overwrite=True)


def _remove_tree(path: str) -> None:
    if tf.io.gfile.exists(path):
        tf.io.gfile.rmtree(path)
