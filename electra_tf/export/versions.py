# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The served folder: numbered versions, each complete or not there.

TensorFlow Serving loads the highest number, and may look at any moment. So a
version is written under a name that is no number, and renamed when complete.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import tensorflow as tf

from configure.errors import UserError

_SAVED_MODEL = "saved_model.pb"


def existing(output_dir: str) -> list[int]:
    """Returns the versions in a served folder, the lowest first.

    Args:
      output_dir: the folder; need not exist.
    """
    if not tf.io.gfile.isdir(output_dir):
        return []
    names = [name.rstrip("/") for name in tf.io.gfile.listdir(output_dir)]
    return sorted(int(name) for name in names if name.isdecimal())


def choose(output_dir: str, version: int | None, overwrite: bool) -> int:
    """Decides what number an export gets.

    Args:
      output_dir: the folder of all versions.
      version: the number asked for; None: the next, or with `overwrite` the
        highest there is.
      overwrite: whether that may be replaced.

    Returns:
      The number.

    Raises:
      UserError: the place is taken, or is no folder of versions.
    """
    if tf.io.gfile.exists(output_dir) and not tf.io.gfile.isdir(output_dir):
        raise UserError(
            f"--output_dir: {output_dir} is a file; name a folder, which gets"
            " <version>/saved_model.pb."
        )
    _refuse_strangers(output_dir)
    there = existing(output_dir)
    if version is None:
        highest = max(there, default=0)
        version = max(highest, 1) if overwrite else highest + 1
    if version < 1:
        raise UserError(f"--version: expected 1 or more, got {version}.")
    folder = os.path.join(output_dir, str(version))
    if version in there and tf.io.gfile.listdir(folder):
        if not overwrite:
            raise UserError(
                f"{folder} is there already; choose another --version (the"
                f" next is {max(there) + 1}), or replace it with --overwrite."
            )
        if not tf.io.gfile.exists(os.path.join(folder, _SAVED_MODEL)):
            raise UserError(
                f"{folder} holds no {_SAVED_MODEL}, so it is no export;"
                " --overwrite replaces exports only. Choose another"
                " --output_dir."
            )
    return version


@contextlib.contextmanager
def writing(
    output_dir: str, version: int | None, overwrite: bool
) -> Iterator[tuple[str, str]]:
    """Gives a folder to write a version to; it gets its name at the end.

    Args:
      output_dir: the folder of all versions; made if need be.
      version: see `choose`.
      overwrite: see `choose`.

    Yields:
      The folder to write to, and the one it will be.

    Raises:
      UserError: as `choose`, and if it cannot be written.
    """
    number = choose(output_dir, version, overwrite)
    final = os.path.join(output_dir, str(number))
    part = os.path.join(output_dir, f"{number}.part")
    try:
        if tf.io.gfile.exists(part):  # of an export that was killed
            tf.io.gfile.rmtree(part)
        tf.io.gfile.makedirs(part)
    except (OSError, tf.errors.OpError) as error:
        raise UserError(
            f"--output_dir: {output_dir} cannot be written: {error}"
        ) from error
    try:
        yield part, final
        if tf.io.gfile.exists(final):
            tf.io.gfile.rmtree(final)
        tf.io.gfile.rename(part, final)
    except (OSError, tf.errors.OpError) as error:
        raise UserError(f"{final} cannot be written: {error}") from error
    finally:
        if tf.io.gfile.exists(part):
            tf.io.gfile.rmtree(part)


def _refuse_strangers(output_dir: str) -> None:
    """Raises where a folder holds what is no export."""
    if not tf.io.gfile.isdir(output_dir):
        return
    names = [name.rstrip("/") for name in tf.io.gfile.listdir(output_dir)]
    others = sorted(
        name
        for name in names
        if not (name.isdecimal() or name.removesuffix(".part").isdecimal())
        and not name.startswith(".")
    )
    if others:
        raise UserError(
            f"--output_dir: {output_dir} holds other files"
            f" ({', '.join(others[:3])}); expected a folder of exported"
            " versions, or one that is not there yet."
        )
