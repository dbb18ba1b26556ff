# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finding a TensorFlow checkpoint's files from what a user typed."""

import difflib
import os
import re
from collections.abc import Iterator

import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints.weights import Weights, without_optimizer

# What a user may have copied from a directory listing.
_FILE_SUFFIX = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")
_DATA_FILE = re.compile(r"\.data-\d{5}-of-\d{5}$")
_MOST_SHOWN = 5


def find_checkpoint(path: str) -> str:
    """Returns the prefix of a checkpoint given as prefix, file or directory."""
    if tf.io.gfile.isdir(path):
        return _newest(path)
    prefix = _FILE_SUFFIX.sub("", path)
    if not tf.io.gfile.exists(prefix + ".index"):
        raise UserError(_no_index_message(path, prefix))
    _check_data_files(prefix)
    return prefix


def checkpoints_in(directory: str) -> list[str]:
    """Lists the checkpoints of a directory.

    Returns:
      Their prefixes' last parts, sorted; none where there is no directory.
    """
    suffix = ".index"
    return sorted(
        name.removesuffix(suffix)
        for name in _names_in(directory)
        if name.endswith(suffix)
    )


def _newest(directory: str) -> str:
    state = tf.train.get_checkpoint_state(directory)
    if state is not None:
        # The folder may have been moved since: its own files come first.
        name = os.path.basename(state.model_checkpoint_path)
        here = os.path.join(directory, name)
        for prefix in (here, state.model_checkpoint_path):
            if tf.io.gfile.exists(prefix + ".index"):
                _check_data_files(prefix)
                return prefix
    # Released folders hold files without a `checkpoint` state file.
    found = checkpoints_in(directory)
    if len(found) == 1:
        prefix = os.path.join(directory, found[0])
        _check_data_files(prefix)
        return prefix
    if found:
        raise UserError(
            f"{directory}: several checkpoints ({', '.join(found)}) and no"
            " `checkpoint` file that names the newest; give the one to take."
        )
    data = [n for n in _names_in(directory) if _DATA_FILE.search(n)]
    if data:
        name = _FILE_SUFFIX.sub("", data[0])
        raise UserError(
            f"{directory}: {data[0]} is there without {name}.index: it was"
            f" copied in part. Copy {name}.index, too."
        )
    raise UserError(
        f"{directory}: no checkpoint in this directory; expected files "
        "named model.ckpt-<step>.index beside their data."
    )


def _no_index_message(path: str, prefix: str) -> str:
    directory, name = os.path.split(prefix)
    data = [n for n in _names_in(directory) if n.startswith(f"{name}.data-")]
    if data:
        return (
            f"{path}: no such checkpoint ({prefix}.index missing), though"
            f" {data[0]} is there: it was copied in part. Copy {name}.index,"
            " too."
        )
    message = f"{path}: no such checkpoint ({prefix}.index missing)."
    near = _near(name, checkpoints_in(directory))
    if near:
        where = directory or "this directory"
        message += f" In {where} there are: {', '.join(near)}."
    elif not tf.io.gfile.isdir(directory or "."):
        message += f" There is no directory {directory}."
    return message


def _near(name: str, found: list[str]) -> list[str]:
    """The likely ones, the likeliest first; all of them where few."""
    if not found:
        return []
    close = difflib.get_close_matches(name, found, n=_MOST_SHOWN, cutoff=0.6)
    if len(found) <= _MOST_SHOWN:
        close += [other for other in found if other not in close]
    return close or [*found[:_MOST_SHOWN], f"... ({len(found)} in all)"]


def _check_data_files(prefix: str) -> None:
    """Raises a UserError unless every data file of the set is there."""
    directory, name = os.path.split(prefix)
    pattern = re.compile(re.escape(name) + r"\.data-(\d{5})-of-(\d{5})$")
    matches = [m for n in _names_in(directory) if (m := pattern.match(n))]
    if not matches:
        raise UserError(
            f"{prefix}: its data file ({name}.data-00000-of-00001) is missing;"
            " copy it beside the .index file."
        )
    for total in {m[2] for m in matches}:
        there = {int(m[1]) for m in matches if m[2] == total}
        if len(there) == int(total):
            return
    first = f"{min(set(range(int(total))) - there):05d}"
    raise UserError(
        f"{prefix}: {len(there)} of its {int(total)} data files are there;"
        f" {name}.data-{first}-of-{total} is missing. Copy the checkpoint"
        " again."
    )


def _names_in(directory: str) -> list[str]:
    if not tf.io.gfile.isdir(directory or "."):
        return []
    names = tf.io.gfile.listdir(directory or ".")
    return sorted(name.rstrip("/") for name in names)


# Writing the original's TF1 checkpoints.

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
    """Lists the files of a checkpoint."""
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
