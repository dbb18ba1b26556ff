# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where convert_checkpoint writes, and what must not be replaced there."""

import argparse
import dataclasses
import os
from typing import Any

from configure.errors import UserError
from electra_tf.data import storage

_REPORT = "conversion.json"
_HUGGING_FACE_SUFFIXES = (".safetensors", ".bin")


@dataclasses.dataclass(frozen=True)
class Place:
    """Where the result goes.

    Attributes:
      path: a prefix, or a Hugging Face folder.
      format: of the result.
    """

    path: str
    format: str

    @property
    def folder(self) -> str:
        """Where config and vocabulary go."""
        if self.format == "huggingface":
            return self.path
        return os.path.dirname(self.path) or "."

    @property
    def report(self) -> str:
        """Path of the JSON report."""
        if self.format == "huggingface":
            return os.path.join(self.path, _REPORT)
        return f"{self.path}.{_REPORT}"


def choose_place(args: argparse.Namespace, step: int | None) -> Place:
    """Settles the format and the prefix or folder.

    Args:
      args: parsed flags.
      step: of the source, None where it has none.

    Returns:
      The place.
    """
    target, chosen = args.target, args.format
    if target.endswith(_HUGGING_FACE_SUFFIXES):
        if chosen not in (None, "huggingface"):
            raise UserError(
                f"--to {target}: a Hugging Face file name, but --format is"
                f" {chosen}."
            )
        return Place(os.path.dirname(target) or ".", "huggingface")
    if chosen is None:
        chosen = "tf1"
        if storage.is_directory(target):
            from electra_tf.checkpoints.huggingface import is_huggingface

            chosen = "huggingface" if is_huggingface(target) else "tf1"
    if chosen == "huggingface":
        return Place(target.rstrip("/") or "/", chosen)
    if target.endswith("/") or storage.is_directory(target):
        name = "model.ckpt" if step is None else f"model.ckpt-{step}"
        target = os.path.join(target, name)
    return Place(target.removesuffix(".index"), chosen)


def check_place(
    source: str,
    place: Place,
    hparams: dict[str, Any],
    guessed: list[str],
    vocab_file: str | None,
    overwrite: bool,
) -> None:
    """Refuses to replace what is not the same, before anything is written.

    Args:
      source: path of what is read.
      place: where the result goes.
      hparams: of the result's config.
      guessed: names of those that nothing states.
      vocab_file: vocabulary to put beside, or None.
      overwrite: whether files may be replaced.

    Raises:
      UserError: for files in the way.
    """
    from electra_tf.checkpoints import electra_config, tf1_writer

    if os.path.abspath(place.path) == os.path.abspath(source):
        raise UserError(
            f"--to {place.path} is the checkpoint that is read; choose another"
            " place."
        )
    text = electra_config.config_text(hparams, guessed)
    texts = {electra_config.FILE_NAME: text.encode()}
    if vocab_file is not None:
        texts[electra_config.VOCAB_FILE] = content(vocab_file)
    differing = [
        path
        for name, text in texts.items()
        if storage.exists(path := os.path.join(place.folder, name))
        and content(path) != text
    ]
    if place.format != "huggingface":
        differing += tf1_writer.files_of(place.path)
    if differing and not overwrite:
        raise UserError(
            f"{differing[0]} exists and would be replaced; choose another"
            " place, or add --overwrite."
        )


def file_sizes(place: Place) -> dict[str, int]:
    """Returns bytes by file, for what a conversion wrote.

    Args:
      place: where.
    """
    from electra_tf.checkpoints import electra_config, tf1_writer

    if place.format == "huggingface":
        paths = [
            os.path.join(folder, name)
            for part in ("", "discriminator", "generator")
            if storage.is_directory(folder := os.path.join(place.path, part))
            for name in storage.list_directory(folder)
        ]
        paths = [path for path in paths if not storage.is_directory(path)]
    else:
        names = (electra_config.FILE_NAME, electra_config.VOCAB_FILE)
        paths = tf1_writer.files_of(place.path)
        paths += [os.path.join(place.folder, name) for name in names]
    return {
        os.path.relpath(path, place.folder): storage.file_size(path)
        for path in paths
        if storage.exists(path)
    }


def content(path: str) -> bytes:
    """Reads a file."""
    with storage.open_file(path, "rb") as file:
        return file.read()


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file, under another name until it is complete."""
    with storage.open_file(path + ".tmp", "wb") as file:
        file.write(content)
    storage.rename(path + ".tmp", path)
