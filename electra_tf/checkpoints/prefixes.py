# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finding a TensorFlow checkpoint's files from what a user typed."""

import difflib
import os
import re

import tensorflow as tf

from configure.errors import UserError

# What a user may have copied from a directory listing.
_FILE_SUFFIX = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")
_DATA_FILE = re.compile(r"\.data-\d{5}-of-\d{5}$")
_MOST_SHOWN = 5


def find_checkpoint(path: str) -> str:
    """Returns the prefix of a checkpoint given as prefix, file or directory.

    Args:
      path: "dir/model.ckpt-1000", one of its files ("....index"), or a
        directory, whose newest is taken.

    Returns:
      The prefix.

    Raises:
      UserError: if there is none (the message offers near ones), several and
        none is named the newest, or one with files missing.
    """
    if tf.io.gfile.isdir(path):
        return _newest(path)
    prefix = _FILE_SUFFIX.sub("", path)
    if not tf.io.gfile.exists(prefix + ".index"):
        raise UserError(_no_index_message(path, prefix))
    _check_data_files(prefix)
    return prefix


def checkpoints_in(directory: str) -> list[str]:
    """Lists the checkpoints of a directory.

    Args:
      directory: any path.

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
