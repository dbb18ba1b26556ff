# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writing the folders that transformers loads."""

import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_config as configs
from electra_tf.checkpoints import huggingface_names as names
from electra_tf.checkpoints import huggingface_parts as parts
from electra_tf.checkpoints import huggingface_tokenizer as tokenizers
from electra_tf.checkpoints.huggingface_plan import (
    Job,
    check_job,
    computed_otherwise,
    make_jobs,
    remarks,
)
from electra_tf.checkpoints.safetensors_files import write_safetensors
from electra_tf.checkpoints.stored_tensors import SINGLE, WEIGHT_FILES
from electra_tf.checkpoints.weights import TensorSpec, Weights

_TEMPORARY = ".part"
_MOST_LINES = 12
# The config comes last: without it there is no model to load.
_FILES = (
    SINGLE,
    tokenizers.VOCAB,
    tokenizers.TOKENIZER_CONFIG,
    tokenizers.SPECIAL_TOKENS_MAP,
    tokenizers.TOKENIZER,
    configs.CONFIG,
)


@dataclasses.dataclass(frozen=True)
class WriteReport:
    """What was written and what was not.

    Attributes:
      folders: architecture by folder.
      tensors: number of tensors in each folder.
      left_out: reasons by name, for what transformers cannot hold.
      notes: remarks by subject.
    """

    folders: Mapping[str, str]
    tensors: Mapping[str, int]
    left_out: Mapping[str, str]
    notes: Mapping[str, str]

    def __str__(self) -> str:
        lines = [
            f"{folder}: {architecture}, {self.tensors[folder]} tensors"
            for folder, architecture in self.folders.items()
        ]
        lines += [f"  note: {k}: {v}" for k, v in self.notes.items()]
        return "\n".join([*lines, *_listed("left out: ", self.left_out)])


def write_huggingface(
    weights: Weights,
    folder: str,
    part: str = "all",
    drop_unrepresentable: bool = False,
    vocab_file: str | None = None,
    hparams: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> WriteReport:
    """Writes a checkpoint as folders for transformers.

    One tensor is in memory at a time. Files get their names when all of them
    are complete, each folder's config last.

    Args:
      weights: of any format.
      folder: where to. With part "all" a pre-trained model becomes
        `discriminator/` and `generator/` in it, as far as it has them;
        anything else goes directly into it.
      part: "all", "discriminator" or "generator".
      drop_unrepresentable: leave out what transformers has no place for,
        instead of refusing.
      vocab_file: vocabulary to put beside; default the one that comes with
        the weights.
      hparams: `PretrainingConfig`'s names, over those that come with the
        weights; number of heads, dropout and activation do not show in
        shapes.
      overwrite: whether files of an earlier model may be replaced.

    Returns:
      The report.

    Raises:
      UserError: if there is something to leave out, something is missing, the
        hparams do not fit, or files are there already.
    """
    hparams = {**weights.hparams, **(hparams or {})}
    vocab_file = vocab_file or weights.vocab_file
    jobs, vocab = make_jobs(weights, folder, part, vocab_file, hparams)
    left_out = parts.unrepresentable(
        weights, part, (n for job in jobs for p in job.pairs for n in p.ours)
    )
    left_out |= computed_otherwise(jobs, hparams)
    if left_out and not drop_unrepresentable:
        lines = _listed("", left_out)
        raise UserError(
            f"{weights.path}: a Hugging Face folder cannot hold all of it:\n"
            + "\n".join(lines)
            + "\nPass --drop_unrepresentable to leave this out."
        )
    for job in jobs:
        check_job(job, weights)
        _refuse_existing(job.folder, overwrite)
    with _temporary_files(jobs):
        for job in jobs:
            _write(job, weights, vocab_file, vocab, hparams)
        for job in jobs:
            _rename(job.folder)
    return WriteReport(
        {job.folder: job.part.architecture for job in jobs},
        {job.folder: len(job.pairs) for job in jobs},
        left_out,
        remarks(weights, jobs, vocab, hparams),
    )


def _refuse_existing(folder: str, overwrite: bool) -> None:
    for name in (*_FILES, *WEIGHT_FILES):
        path = os.path.join(folder, name)
        if os.path.exists(path) and not overwrite:
            raise UserError(
                f"{path} exists; choose another folder or pass --overwrite."
            )


@contextlib.contextmanager
def _temporary_files(jobs: list[Job]) -> Iterator[None]:
    """Removes unfinished files, and folders made for them, on failure."""
    made = []
    for job in jobs:
        folder = job.folder.rstrip("/")
        while folder and not os.path.isdir(folder):
            made.append(folder)
            folder = os.path.dirname(folder)
    try:
        yield
    except BaseException:
        for job in jobs:
            for name in _FILES:
                with contextlib.suppress(OSError):
                    os.remove(os.path.join(job.folder, name + _TEMPORARY))
        for folder in sorted(set(made), key=len, reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        raise


def _write(
    job: Job,
    weights: Weights,
    vocab_file: str | None,
    vocab: Mapping[str, int] | None,
    hparams: Mapping[str, Any],
) -> None:
    """Writes a folder's files under temporary names."""
    bare = job.part.architecture == names.BARE
    by_name = {
        # transformers saves a bare encoder without the prefix.
        pair.theirs.removeprefix("electra." if bare else ""): pair
        for pair in job.pairs
    }

    def read(name: str) -> np.ndarray:
        pair = by_name[name]
        values = [weights.read(ours) for ours in pair.ours]
        if pair.transposed:
            values = [value.T for value in values]
        return values[0] if len(values) == 1 else np.concatenate(values)

    float32 = np.dtype(np.float32)
    specs = {
        name: TensorSpec(pair.their_shape(job.sizes), float32)
        for name, pair in by_name.items()
    }
    texts = {configs.CONFIG: job.config}
    if vocab:
        positions = job.sizes["max_position_embeddings"]
        texts |= tokenizers.tokenizer_files(vocab, hparams, positions)
    path = os.path.join(job.folder, "")
    try:
        os.makedirs(job.folder, exist_ok=True)
        for name, content in texts.items():
            with open(path + name + _TEMPORARY, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2, ensure_ascii=False)
                file.write("\n")
        if vocab:
            shutil.copyfile(vocab_file, path + tokenizers.VOCAB + _TEMPORARY)
    except OSError as error:
        raise UserError(f"{job.folder}: cannot be written: {error}.") from error
    write_safetensors(path + SINGLE + _TEMPORARY, specs, read)


def _rename(folder: str) -> None:
    """Gives the files their names; an earlier model's files go first."""
    # The config first: what a kill leaves behind is not taken for a model.
    paths = [os.path.join(folder, name) for name in (*WEIGHT_FILES, *_FILES)]
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, configs.CONFIG))
    for path in dict.fromkeys(paths):
        if os.path.exists(path + _TEMPORARY):
            os.replace(path + _TEMPORARY, path)
        elif os.path.exists(path):
            os.remove(path)


def _listed(title: str, reasons: Mapping[str, str]) -> list[str]:
    """Lines of names with reasons, the long tail counted."""
    lines = [f"  {title}{name}: {why}" for name, why in reasons.items()]
    if len(lines) > _MOST_LINES:
        rest = len(lines) - _MOST_LINES
        lines = [*lines[:_MOST_LINES], f"  {title}... and {rest} more"]
    return lines
