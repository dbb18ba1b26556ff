# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The original's TF1 checkpoints, and BERT's: found, read and written."""

import contextlib
import difflib
import itertools
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints.contents import DELTA_TABLE, TABLE
from electra_tf.checkpoints.hub import hub_hint
from electra_tf.checkpoints.weights import (
    TensorSpec,
    Weights,
    match_tables,
)
from electra_tf.files.atomic import write_atomically
from electra_tf.files.reading import read_text

STATE = "checkpoint"  # the file that names a directory's checkpoints
# Only files of TensorFlow 2, keyed by Python objects, hold it.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"

# Finding a checkpoint's files from what a user typed.

# What a user may have copied from a directory listing.
_FILE_SUFFIX = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")


def find_checkpoint(path: str) -> str:
    """Returns the prefix of a checkpoint given as prefix, file or directory."""
    # In ram:// a prefix passes for a folder.
    if tf.io.gfile.isdir(path) and not tf.io.gfile.exists(f"{path}.index"):
        prefix = _newest(path)
    else:
        prefix = _FILE_SUFFIX.sub("", path)
        if not tf.io.gfile.exists(prefix + ".index"):
            raise UserError(_no_index_message(path, prefix))
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
            return prefix
    first = f"{min(set(range(int(total))) - there):05d}"
    raise UserError(
        f"{prefix}: {len(there)} of its {int(total)} data files are there;"
        f" {name}.data-{first}-of-{total} is missing. Copy the checkpoint"
        " again."
    )


def list_checkpoints(directory: str) -> list[str]:
    """Lists the last parts of the prefixes of a directory's checkpoints."""
    return [
        name.removesuffix(".index")
        for name in _names_in(directory)
        if name.endswith(".index")
    ]


def list_recorded(directory: str) -> list[str]:
    """The prefixes that the file `checkpoint` names, the newest last.

    All are in the directory, whatever the file says: the directory may have
    been moved, and a file that came with it must not lead elsewhere.
    """
    path = os.path.join(directory, STATE)
    if not tf.io.gfile.exists(path):
        return []
    read_text(path)  # An error that names it, unless it is text.
    try:
        state = tf.train.get_checkpoint_state(directory)
    except ValueError:  # It names none.
        state = None
    if state is None:
        raise UserError(
            f"{path} is damaged. Correct it to name the newest checkpoint of"
            ' the folder (a line: model_checkpoint_path: "model.ckpt-100"), or'
            " remove it."
        )
    paths = [*state.all_model_checkpoint_paths, state.model_checkpoint_path]
    names = [os.path.basename(name) for name in paths]
    older = [name for name in dict.fromkeys(names) if name != names[-1]]
    return [os.path.join(directory, name) for name in (*older, names[-1])]


def find_latest(directory: str) -> str | None:
    """The checkpoint that a directory names the newest, if it is there."""
    named = list_recorded(directory)
    if named and tf.io.gfile.exists(named[-1] + ".index"):
        return named[-1]
    return None


def _newest(directory: str) -> str:
    if prefix := find_latest(directory):
        return prefix
    # Released folders hold files without a `checkpoint` state file.
    found = list_checkpoints(directory)
    if named := list_recorded(directory):
        if older := [n for n in map(os.path.basename, named) if n in found]:
            raise UserError(
                f"{os.path.join(directory, STATE)} names"
                f" {os.path.basename(named[-1])}, whose files are missing; to"
                f" take another, give its path: {', '.join(older)}."
            )
        stated = tf.train.get_checkpoint_state(directory).model_checkpoint_path
        if tf.io.gfile.exists(stated + ".index"):
            raise UserError(
                f"{os.path.join(directory, STATE)} names {stated}, which is not"
                " in that folder; give its own path if it is the one to take."
            )
    if len(found) == 1:
        return os.path.join(directory, found[0])
    if found:
        raise UserError(
            f"{directory}: several checkpoints ({', '.join(found)}) and no"
            " `checkpoint` file that names the newest; give the one to take."
        )
    for name in _names_in(directory):
        if ".data-" in name:
            prefix = os.path.join(directory, _FILE_SUFFIX.sub("", name))
            raise UserError(_no_index_message(directory, prefix))
    raise UserError(
        f"{directory}: no checkpoint in this directory; expected files "
        "named model.ckpt-<step>.index beside their data."
    )


def _no_index_message(path: str, prefix: str) -> str:
    directory, name = os.path.split(prefix)
    message = f"{path}: no such checkpoint ({prefix}.index missing)."
    data = [n for n in _names_in(directory) if n.startswith(f"{name}.data-")]
    if data:
        return (
            f"{message} {data[0]} is there: it was copied in part. Copy"
            f" {name}.index, too."
        )
    # The nearest first.
    found = list_checkpoints(directory)
    if near := difflib.get_close_matches(name, found, n=5, cutoff=0):
        others = f" (of {len(found)})" if len(found) > len(near) else ""
        where = directory or "this directory"
        return f"{message} Nearest in {where}{others}: {', '.join(near)}."
    if not tf.io.gfile.isdir(directory or "."):
        message = f"{message} There is no directory {directory}."
        return message + hub_hint(path)
    return message


def _names_in(directory: str) -> list[str]:
    if not tf.io.gfile.isdir(directory or "."):
        return []
    names = tf.io.gfile.listdir(directory or ".")
    return sorted(name.rstrip("/") for name in names)


# Reading.


class TensorFlowWeights(Weights):
    """Tensors of a TensorFlow checkpoint under names of ours."""

    def __init__(
        self,
        prefix: str,
        kind: str,
        keys: Mapping[str, str],
        dropped: dict[str, str],
    ) -> None:
        """Takes the file's keys by the original's names."""
        self._reader = load_reader(prefix)
        self._keys = dict(keys)
        shapes = self._reader.get_variable_to_shape_map()
        dtypes = self._reader.get_variable_to_dtype_map()
        specs = {
            name: TensorSpec(
                tuple(shapes[key]), np.dtype(dtypes[key].as_numpy_dtype)
            )
            for name, key in self._keys.items()
        }
        super().__init__(prefix, kind, specs, dropped)

    def read(self, name: str) -> np.ndarray:
        try:
            return np.asarray(self._reader.get_tensor(self._keys[name]))
        except (tf.errors.OpError, IndexError, ValueError) as error:
            # A cut data file gives an IndexError.
            raise UserError(
                f"{self.path}: cannot read {name}: {error}. The data file is"
                " damaged, cut short or missing; copy the checkpoint again."
            ) from error


def load_reader(prefix: str) -> Any:
    """Returns TensorFlow's reader of a checkpoint's index."""
    try:
        # `tf.train.load_checkpoint` takes a prefix for a folder in ram://.
        return tf.compat.v1.train.NewCheckpointReader(prefix)
    except (tf.errors.OpError, ValueError) as error:
        why = "Its .index file is damaged or cut short; copy it again."
        if set("[*?") & set(prefix):
            why = "Rename the folder: TensorFlow takes [, * and ? for patterns."
        raise UserError(
            f"{prefix}: unreadable checkpoint: {error}. {why}"
        ) from error


def open_tf1(path: str) -> Weights:
    """Opens the original's checkpoint, or BERT's under ELECTRA's names."""
    prefix = find_checkpoint(path)
    names = sorted(load_reader(prefix).get_variable_to_shape_map())
    if OBJECT_GRAPH in names:
        raise UserError(
            f"{prefix}: a TensorFlow 2 checkpoint of another project: keyed by"
            " its Python objects, whose names this one does not know. Expected"
            " a TF1 checkpoint of the original (or of BERT), one of this"
            " project's, or a Hugging Face folder."
        )
    if not any(name.startswith("bert/embeddings/") for name in names):
        keys = {name: name for name in names}
        if DELTA_TABLE in keys:  # Their sum is there for other programs.
            keys.pop(TABLE, None)
        return TensorFlowWeights(prefix, "tf1", keys, {})
    dropped = {
        name: why
        for name in names
        for start, why in _BERT_ALONE.items()
        if name.startswith(start)
    }
    keys = {}
    for name in names:
        if name not in dropped:
            ours = re.sub("^bert/", "electra/", name)
            head = "^cls/predictions/(transform/)?"
            keys[re.sub(head, "generator_predictions/", ours)] = name
    return TensorFlowWeights(prefix, "bert", keys, dropped)


_BERT_ALONE = {
    "bert/pooler/": "BERT's pooler: ELECTRA uses the first token's vector",
    "cls/seq_relationship/": "BERT's next-sentence head: ELECTRA has none",
}


# Writing.

# Tensors are held in memory until their data file is written; each further
# file adds one to the set.
_BYTES_PER_FILE = 512 * 2**20


def write_tf1(
    weights: Weights,
    prefix: str,
    overwrite: bool = False,
    bytes_per_file: int = _BYTES_PER_FILE,
    complete: Callable[[], None] | None = None,
) -> None:
    """Writes tensors as the original's checkpoint, names and types as they are.

    The files appear under their names when they are complete, the index last:
    without an index there is no checkpoint. The file `checkpoint` then names
    it the newest. `complete` writes what goes beside it.

    Source: TensorFlow's Saver (`SaveV2`, and `MergeV2Checkpoints` as with
    `sharded=True`), which the original's Estimator uses.
    """
    weights = match_tables(weights, {*weights.specs, TABLE})
    if (existing := list_files(prefix)) and not overwrite:
        raise UserError(
            f"{prefix}: there is a checkpoint already ({existing[0]}); choose"
            " another name or pass --overwrite."
        )
    partial = prefix + ".part"
    remove_tree(partial)  # What a killed process may have left.
    try:
        tf.io.gfile.makedirs(partial)
        merged = _write_shards(weights, partial, bytes_per_file)
        replace_files(merged, prefix, complete)
        directory, name = os.path.split(prefix)
        names = map(os.path.basename, list_recorded(directory or "."))
        there = set(list_checkpoints(directory)) - {name}
        others = [other for other in names if other in there]
        record_latest(directory or ".", [*others, name])
    except (OSError, tf.errors.OpError) as error:
        raise UserError(f"{prefix} cannot be written: {error}") from error
    finally:
        remove_tree(partial)


def list_files(prefix: str) -> list[str]:
    """Lists the files of a checkpoint, the index first."""
    directory, name = os.path.split(prefix)
    found = [
        os.path.join(directory, entry)
        for entry in _names_in(directory)
        if entry == f"{name}.index" or entry.startswith(f"{name}.data-")
    ]
    return sorted(found, key=lambda path: (not path.endswith(".index"), path))


def remove_checkpoint(prefix: str) -> None:
    """Deletes a checkpoint's files; without the index, it does not count."""
    for path in list_files(prefix):
        tf.io.gfile.remove(path)


def replace_files(
    written: str, prefix: str, complete: Callable[[], None] | None = None
) -> None:
    """Gives a checkpoint its name: the index goes first and comes last."""
    index, kept = f"{prefix}.index", f"{written}.replaced"
    if replaces := tf.io.gfile.exists(index):  # No old index beside new data.
        tf.io.gfile.rename(index, kept, overwrite=True)
    try:
        if complete:
            complete()
    except BaseException:
        if replaces:  # Nothing of the old weights is gone yet.
            tf.io.gfile.rename(kept, index)
        raise
    remove_checkpoint(prefix)
    for path in reversed(list_files(written)):
        suffix = path[len(written) :]
        tf.io.gfile.rename(path, prefix + suffix, overwrite=True)
    if replaces:
        tf.io.gfile.remove(kept)


def record_latest(directory: str, prefixes: list[str]) -> None:
    """Writes the file `checkpoint`, as a Saver does: the newest is last."""
    names = [os.path.basename(prefix) for prefix in prefixes]
    lines = [f'model_checkpoint_path: "{names[-1]}"'] if names else []
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
    write_atomically(os.path.join(directory, STATE), "\n".join(lines) + "\n")


def _write_shards(weights: Weights, directory: str, limit: int) -> str:
    """Writes the data group by group; returns the prefix of the whole."""
    if not weights.specs:
        raise UserError(f"{weights.path}: nothing to write: no tensors.")
    shards, start, starts = [], 0, {}
    for name, spec in weights.specs.items():
        starts[name] = start
        start += spec.size_in_bytes
    for _, group in itertools.groupby(starts, lambda n: starts[n] // limit):
        names = list(group)
        shards.append(os.path.join(directory, f"shard_{len(shards)}"))
        tf.raw_ops.SaveV2(
            prefix=shards[-1],
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.constant(weights.read(name)) for name in names],
        )
    merged = os.path.join(directory, "merged")
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=shards,
        destination_prefix=merged,
        delete_old_dirs=False,
    )
    return merged


def remove_tree(path: str) -> None:
    """Removes a folder, which may not be there."""
    with contextlib.suppress(tf.errors.OpError):
        tf.io.gfile.rmtree(path)
