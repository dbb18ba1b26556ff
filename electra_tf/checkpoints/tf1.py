# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Search, reading and writing of TF1 checkpoints, including BERT's."""

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
from electra_tf.checkpoints.weights import (
    TensorSpec,
    Weights,
    match_tables,
)
from electra_tf.files.atomic import write_atomically
from electra_tf.files.reading import read_text

STATE = "checkpoint"  # file that lists a directory's checkpoints
# Key that only checkpoints of TensorFlow 2 contain.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"

# Search for the files of a checkpoint at a path that a user passed.

# A user may pass the name of a file instead of the prefix.
_FILE_SUFFIX = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")


def find_checkpoint(path: str) -> str:
    """Return the prefix of the checkpoint at a user's path.

    Args:
      path: prefix, file of the checkpoint, or directory.

    Raises:
      UserError: the checkpoint or one of its files does not exist.
    """
    # In ram://, TensorFlow's `isdir` is true even for a prefix.
    if tf.io.gfile.isdir(path) and not tf.io.gfile.exists(f"{path}.index"):
        prefix = _latest(path)
    else:
        prefix = _FILE_SUFFIX.sub("", path)
        if not tf.io.gfile.exists(prefix + ".index"):
            raise UserError(_no_index_message(path, prefix))
    directory, name = os.path.split(prefix)
    pattern = re.compile(re.escape(name) + r"\.data-(\d{5})-of-(\d{5})$")
    matches = [m for n in _names_in(directory) if (m := pattern.match(n))]
    if not matches:
        raise UserError(
            f"{prefix}: the data file {name}.data-00000-of-00001 is missing."
            " Copy this file to the folder of the .index file."
        )
    for total in {m[2] for m in matches}:
        numbers = {int(m[1]) for m in matches if m[2] == total}
        if len(numbers) == int(total):
            return prefix
    first = f"{min(set(range(int(total))) - numbers):05d}"
    raise UserError(
        f"{prefix}: only {len(numbers)} of {int(total)} data files exist;"
        f" {name}.data-{first}-of-{total} is missing. Copy the checkpoint"
        " again."
    )


def list_checkpoints(directory: str) -> list[str]:
    """Return the names of the checkpoints in a folder."""
    return [
        name.removesuffix(".index")
        for name in _names_in(directory)
        if name.endswith(".index")
    ]


def list_recorded(directory: str) -> list[str]:
    """Return the prefixes that the file `checkpoint` lists, the latest last.

    Only the names of the checkpoints in the file are used, because the
    directory may have been moved, and paths in a copied file must not lead to a
    different directory.

    Raises:
      UserError: the file is corrupt.
    """
    path = os.path.join(directory, STATE)
    if not tf.io.gfile.exists(path):
        return []
    read_text(path)  # raises a UserError if the file is not UTF-8
    try:
        state = tf.train.get_checkpoint_state(directory)
    except ValueError:  # The file lists no checkpoint.
        state = None
    if state is None:
        raise UserError(
            f"{path}: corrupt; expected a line such as model_checkpoint_path:"
            ' "model.ckpt-100" that names the latest checkpoint of the'
            " folder. Correct or remove this file."
        )
    paths = [*state.all_model_checkpoint_paths, state.model_checkpoint_path]
    names = [os.path.basename(name) for name in paths]
    older = [name for name in dict.fromkeys(names) if name != names[-1]]
    return [os.path.join(directory, name) for name in (*older, names[-1])]


def find_latest(directory: str) -> str | None:
    """Return the latest recorded checkpoint, or None if it does not exist."""
    recorded = list_recorded(directory)
    if recorded and tf.io.gfile.exists(recorded[-1] + ".index"):
        return recorded[-1]
    return None


def _latest(directory: str) -> str:
    """Return the latest checkpoint of a directory, or raise a UserError."""
    if prefix := find_latest(directory):
        return prefix
    # Released models contain no file `checkpoint`, so the files of all
    # checkpoints in the directory are listed.
    names = list_checkpoints(directory)
    if recorded := list_recorded(directory):
        if older := [n for n in map(os.path.basename, recorded) if n in names]:
            raise UserError(
                f"{os.path.join(directory, STATE)} names"
                f" {os.path.basename(recorded[-1])}, whose files are missing."
                f" Pass the path of an older checkpoint: {', '.join(older)}."
            )
        stated = tf.train.get_checkpoint_state(directory).model_checkpoint_path
        if tf.io.gfile.exists(stated + ".index"):
            raise UserError(
                f"{os.path.join(directory, STATE)} names {stated}, which is not"
                f" in the same folder. Pass the path {stated} to read this"
                " checkpoint."
            )
    if len(names) == 1:
        return os.path.join(directory, names[0])
    if names:
        raise UserError(
            f"{directory}: several checkpoints ({', '.join(names)}), but no"
            " file `checkpoint` that names the latest. Pass the path of one"
            " checkpoint."
        )
    for name in _names_in(directory):
        if ".data-" in name:
            prefix = os.path.join(directory, _FILE_SUFFIX.sub("", name))
            raise UserError(_no_index_message(directory, prefix))
    raise UserError(
        f"{directory}: no checkpoint in this directory; expected files"
        " model.ckpt-<step>.index next to their data. Correct the path."
    )


def _no_index_message(path: str, prefix: str) -> str:
    """Return the error message for a missing index, with similar names."""
    directory, name = os.path.split(prefix)
    message = f"{path}: no such checkpoint ({prefix}.index is missing)."
    data = [n for n in _names_in(directory) if n.startswith(f"{name}.data-")]
    if data:
        return (
            f"{message} {data[0]} exists: the checkpoint was copied only"
            f" partly. Copy {name}.index, too."
        )
    names = list_checkpoints(directory)
    # `get_close_matches` returns the most similar name first.
    near = difflib.get_close_matches(name, names, n=5, cutoff=0)
    if near:
        total = f" (of {len(names)})" if len(names) > len(near) else ""
        folder = directory or "this directory"
        return (
            f"{message} Pass one of the nearest names in {folder}{total}:"
            f" {', '.join(near)}."
        )
    if not tf.io.gfile.isdir(directory or "."):
        # The import is here, because only this message needs the module.
        from electra_tf.checkpoints.hub import hub_hint

        return (
            f"{message} The directory {directory} does not exist. Correct the"
            f" path.{hub_hint(path)}"
        )
    return f"{message} Correct the path."


def _names_in(directory: str) -> list[str]:
    if not tf.io.gfile.isdir(directory or "."):
        return []
    names = tf.io.gfile.listdir(directory or ".")
    return sorted(name.rstrip("/") for name in names)


# Reading of checkpoints.


class TensorFlowWeights(Weights):
    """Tensors of a TensorFlow checkpoint under the original's names."""

    def __init__(
        self,
        prefix: str,
        kind: str,
        keys: Mapping[str, str],
        dropped: dict[str, str],
    ) -> None:
        """Set the path of the checkpoint and the keys of its tensors.

        Args:
          prefix: prefix of the checkpoint.
          kind: format of the checkpoint: "tf1", "native" or "bert".
          keys: keys in the file, by the original's names.
          dropped: keys in the file that are left out, with reasons.
        """
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
            # A truncated data file raises an IndexError.
            raise UserError(
                f"{self.path}: cannot read {name}: {error}. The data file is"
                " corrupt, truncated or missing. Copy the checkpoint again."
            ) from error


def load_reader(prefix: str) -> Any:
    """Return TensorFlow's reader for a checkpoint."""
    try:
        # In ram://, `tf.train.load_checkpoint` treats a prefix as a folder.
        return tf.compat.v1.train.NewCheckpointReader(prefix)
    except (tf.errors.OpError, ValueError) as error:
        remedy = "The .index file is corrupt or truncated. Copy the file again."
        if set("[*?") & set(prefix):
            remedy = (
                "Rename the folder: TensorFlow treats [, * and ? as patterns."
            )
        raise UserError(
            f"{prefix}: unreadable checkpoint: {error}. {remedy}"
        ) from error


def open_tf1(path: str) -> Weights:
    """Open a TF1 checkpoint; BERT's variables get ELECTRA's names."""
    prefix = find_checkpoint(path)
    names = sorted(load_reader(prefix).get_variable_to_shape_map())
    if OBJECT_GRAPH in names:
        raise UserError(
            f"{prefix}: a TensorFlow 2 checkpoint of a different project, keyed"
            " by its Python objects; expected a TF1 checkpoint of the original"
            " (or of BERT), a checkpoint of this project, or a Hugging Face"
            " folder. Choose a different checkpoint."
        )
    if not any(name.startswith("bert/embeddings/") for name in names):
        keys = {name: name for name in names}
        if DELTA_TABLE in keys:
            # This table is a sum, which is stored only for other programs.
            keys.pop(TABLE, None)
        return TensorFlowWeights(prefix, "tf1", keys, {})
    dropped = {
        name: reason
        for name in names
        for prefix_in_bert, reason in _BERT_ONLY.items()
        if name.startswith(prefix_in_bert)
    }
    keys = {}
    for name in names:
        if name not in dropped:
            renamed = re.sub("^bert/", "electra/", name)
            head = "^cls/predictions/(transform/)?"
            keys[re.sub(head, "generator_predictions/", renamed)] = name
    return TensorFlowWeights(prefix, "bert", keys, dropped)


# Prefixes of BERT's variables that ELECTRA does not have, with reasons.
_BERT_ONLY = {
    "bert/pooler/": "BERT's pooler; ELECTRA uses the first token's vector",
    "cls/seq_relationship/": "BERT's next-sentence head; not in ELECTRA",
}


# Writing of checkpoints.

# Maximum size of a data file. All tensors of a file are in memory while the
# file is written.
_BYTES_PER_FILE = 512 * 2**20


def write_tf1(
    weights: Weights,
    prefix: str,
    overwrite: bool = False,
    bytes_per_file: int = _BYTES_PER_FILE,
    complete: Callable[[], None] | None = None,
) -> None:
    """Write a checkpoint in the original's format; keep names and types.

    Files get their names once they are complete, and the index comes last,
    because readers ignore a checkpoint without index. The file `checkpoint`
    then records the checkpoint as the latest.

    Args:
      prefix: prefix of the files.
      overwrite: replace a checkpoint with the same prefix.
      bytes_per_file: size at which a new data file is started.
      complete: function that writes the files next to the checkpoint.

    Raises:
      UserError: files exist or cannot be written.

    Source: TensorFlow's Saver (`SaveV2`, and `MergeV2Checkpoints` as with
    `sharded=True`), which the original's Estimator uses.
    """
    weights = match_tables(weights, {*weights.specs, TABLE})
    if (existing := list_files(prefix)) and not overwrite:
        raise UserError(
            f"{prefix}: this checkpoint exists ({existing[0]}). Choose a"
            " different name, or pass --overwrite."
        )
    partial = prefix + ".part"
    remove_tree(partial)  # A killed process may have left this folder.
    try:
        tf.io.gfile.makedirs(partial)
        merged = _write_shards(weights, partial, bytes_per_file)
        replace_files(merged, prefix, complete)
        directory, name = os.path.split(prefix)
        recorded = map(os.path.basename, list_recorded(directory or "."))
        existing = set(list_checkpoints(directory)) - {name}
        others = [other for other in recorded if other in existing]
        record_latest(directory or ".", [*others, name])
    except (OSError, tf.errors.OpError) as error:
        raise UserError(
            f"{prefix} cannot be written: {error}. Choose a different path."
        ) from error
    finally:
        remove_tree(partial)


def list_files(prefix: str) -> list[str]:
    """Return the files of a checkpoint, the index first."""
    directory, name = os.path.split(prefix)
    paths = [
        os.path.join(directory, entry)
        for entry in _names_in(directory)
        if entry == f"{name}.index" or entry.startswith(f"{name}.data-")
    ]
    return sorted(paths, key=lambda path: (not path.endswith(".index"), path))


def remove_checkpoint(prefix: str) -> None:
    """Remove a checkpoint's files, the index first."""
    for path in list_files(prefix):
        tf.io.gfile.remove(path)


def replace_files(
    written: str, prefix: str, complete: Callable[[], None] | None = None
) -> None:
    """Move a checkpoint to its final prefix; replace an earlier checkpoint.

    The old index is removed first and the new index comes last, so that an
    index is never next to the data of a different checkpoint.

    Args:
      written: prefix of the complete checkpoint.
      prefix: final prefix of the checkpoint.
      complete: function that writes the files next to the checkpoint.
    """
    index, old_index = f"{prefix}.index", f"{written}.replaced"
    replaces = tf.io.gfile.exists(index)
    if replaces:
        tf.io.gfile.rename(index, old_index, overwrite=True)
    try:
        if complete:
            complete()
    except BaseException:
        if replaces:  # The old weights are complete, and stay usable.
            tf.io.gfile.rename(old_index, index)
        raise
    remove_checkpoint(prefix)
    for path in reversed(list_files(written)):
        suffix = path[len(written) :]
        tf.io.gfile.rename(path, prefix + suffix, overwrite=True)
    if replaces:
        tf.io.gfile.remove(old_index)


def record_latest(directory: str, prefixes: list[str]) -> None:
    """Write the file `checkpoint` as TensorFlow's Saver does.

    The last of the prefixes is recorded as the latest checkpoint.
    """
    names = [os.path.basename(prefix) for prefix in prefixes]
    lines = [f'model_checkpoint_path: "{names[-1]}"'] if names else []
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
    write_atomically(os.path.join(directory, STATE), "\n".join(lines) + "\n")


def _write_shards(weights: Weights, directory: str, limit: int) -> str:
    """Write the data in shards, and return the merged checkpoint's prefix."""
    if not weights.specs:
        raise UserError(
            f"{weights.path}: no tensors to write. Choose a different"
            " checkpoint."
        )
    shards, start = [], 0
    offsets = {}  # bytes
    for name, spec in weights.specs.items():
        offsets[name] = start
        start += spec.size_in_bytes
    for _, group in itertools.groupby(offsets, lambda n: offsets[n] // limit):
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
    """Remove a folder if it exists."""
    with contextlib.suppress(tf.errors.OpError):
        tf.io.gfile.rmtree(path)
