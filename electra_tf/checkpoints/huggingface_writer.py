# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face ELECTRA folders written, without transformers.

A checkpoint becomes the folders that transformers loads: one network in each,
`discriminator/` and `generator/` for a pre-trained model.
"""

import contextlib
import dataclasses
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import safetensors

from configure.errors import UserError, first_lines
from electra_tf.checkpoints import huggingface_config as configs
from electra_tf.checkpoints import huggingface_names as names
from electra_tf.checkpoints.huggingface_config import (
    SINGLE,
    WEIGHT_FILES,
    setting,
)
from electra_tf.checkpoints.huggingface_names import Network, Pair
from electra_tf.checkpoints.weights import STEP_NAME, TensorSpec, Weights

_TEMPORARY = ".part"
_MOST_LINES = 12
# The config comes last: without it there is no model to load.
_FILES = (
    SINGLE,
    configs.VOCAB,
    configs.TOKENIZER_CONFIG,
    configs.SPECIAL_TOKENS_MAP,
    configs.TOKENIZER,
    configs.CONFIG,
)


@dataclasses.dataclass(frozen=True)
class _Job:
    """A folder to be written."""

    folder: str
    network: Network
    sizes: Mapping[str, int]  # by config.json's keys
    config: Mapping[str, Any]  # contents of config.json

    @property
    def pairs(self) -> list[Pair]:
        """Tensors there and variables here."""
        return self.network.pairs(self.sizes)


@dataclasses.dataclass(frozen=True)
class WriteReport:
    """What was written and what was not."""

    folders: Mapping[str, str]  # architecture by folder
    tensors: Mapping[str, int]  # number by folder
    left_out: Mapping[str, str]  # what transformers cannot hold, and why
    notes: Mapping[str, str]  # remarks by subject

    def __str__(self) -> str:
        lines = [
            f"{folder}: {architecture}, {self.tensors[folder]} tensors"
            for folder, architecture in self.folders.items()
        ]
        lines += [f"  note: {k}: {v}" for k, v in self.notes.items()]
        left_out = [f"{name}: {why}" for name, why in self.left_out.items()]
        lines += first_lines(left_out, _MOST_LINES, "  left out: ")
        return "\n".join(lines)


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
    """
    if "://" in folder:
        raise UserError(
            f"{folder}: Hugging Face folders are written to a local disk only."
        )
    if part not in ("all", "discriminator", "generator"):
        raise UserError(
            f"part is {part!r}; expected all, discriminator or generator."
        )
    networks = names.networks_in(weights.contents, part)
    if not networks:
        wanted = "" if part == "all" else f"; there is no {part} to write"
        found = weights.contents.description
        raise UserError(f"{weights.path} holds {found}{wanted}.")
    hparams = {**weights.hparams, **(hparams or {})}
    vocab_file = vocab_file or weights.vocab_file
    jobs, vocab = [], None
    for network in networks:
        sizes = _sizes_of(weights, network, hparams)
        if vocab_file and vocab is None:
            vocab = configs.read_vocabulary(vocab_file, sizes["vocab_size"])
        pad = vocab[configs.PAD] if vocab else 0
        config = configs.make_config(network, sizes, hparams, pad)
        below = network.folder if part == "all" else ""
        jobs.append(_Job(os.path.join(folder, below), network, sizes, config))
    left_out = _left_out(weights, part, jobs, hparams)
    if left_out and not drop_unrepresentable:
        lines = [f"{name}: {why}" for name, why in left_out.items()]
        raise UserError(
            f"{weights.path}: a Hugging Face folder cannot hold all of it:\n"
            + "\n".join(first_lines(lines, _MOST_LINES))
            + "\nPass --drop_unrepresentable to leave this out."
        )
    for job in jobs:
        _check_variables(job, weights)
        _refuse_existing(job.folder, overwrite)
    with _temporary_files(jobs):
        for job in jobs:
            _write(job, weights, vocab_file, vocab, hparams)
        for job in jobs:
            _rename(job.folder)
    return WriteReport(
        {job.folder: job.network.architecture for job in jobs},
        {job.folder: len(job.pairs) for job in jobs},
        left_out,
        _remarks(weights, jobs, vocab is not None, hparams),
    )


def _sizes_of(
    weights: Weights, network: Network, hparams: Mapping[str, Any]
) -> dict[str, int]:
    """A network's sizes; refuses hparams of another model."""
    contents = weights.contents
    sizes = contents.tables(network.embeddings)
    sizes |= dataclasses.asdict(contents.stack(network.encoder))
    if network.architecture == names.TAGGING:
        head = contents.shapes[f"{network.head_scope}/dense/bias"]
        sizes[names.LABELS] = head[0]
    if network.encoder == "electra" and not hparams.get("debug"):
        for name, value in sizes.items():
            stated = setting(hparams, name)
            if stated is not None and stated != value:
                raise UserError(
                    f"{weights.path}: {name} is {value} by the weights' shapes"
                    f" but {stated} by the hparams; correct the hparams."
                )
    return sizes


def _left_out(
    weights: Weights, part: str, jobs: list[_Job], hparams: Mapping[str, Any]
) -> dict[str, str]:
    """Lists what the folders to be written cannot hold, and why."""
    unasked = {
        "all": (),
        "discriminator": (
            "generator/",
            "generator_predictions/",
            *names.TOWERS,
        ),
        "generator": ("electra/", "discriminator_predictions/"),
    }[part]
    covered = {n for job in jobs for pair in job.pairs for n in pair.ours}
    reasons = {
        name: names.why_unrepresentable(name, weights.contents)
        for name in weights.shapes
        if name not in covered and not name.startswith(unasked)
    }
    concerned = {*covered, *reasons}
    slots = [n for n in weights.slots if n.rpartition("/")[0] in concerned]
    if slots:
        reasons["Adam slots"] = (
            f"{len(slots)} of them; a Hugging Face folder holds weights only"
            " (--strip_optimizer leaves them out)"
        )
    act = setting(hparams, "hidden_act")
    generates = any(j.network.architecture == names.MASKED_LM for j in jobs)
    if generates and act not in (None, "gelu"):
        reasons[f"hidden_act {act} of generator_predictions"] = (
            "transformers has gelu there, whatever the config says"
        )
    return reasons


def _check_variables(job: _Job, weights: Weights) -> None:
    """Refuses missing variables, other shapes and other types."""
    lines = []
    for pair in job.pairs:
        wanted = pair.shape(job.sizes)
        for name in pair.ours:
            spec = weights.specs.get(name)
            if spec is None:
                lines.append(f"{name}: missing")
            elif spec.shape != wanted or spec.dtype != np.float32:
                lines.append(
                    f"{name}: {spec.dtype} {list(spec.shape)}, expected"
                    f" float32 {list(wanted)}"
                )
    if lines:
        title = f"{weights.path}: not a whole {job.network.architecture}:"
        raise UserError("\n".join([title, *first_lines(lines, _MOST_LINES)]))


def _remarks(
    weights: Weights,
    jobs: list[_Job],
    has_vocab: bool,
    hparams: Mapping[str, Any],
) -> dict[str, str]:
    """What a user may want to know beside."""
    notes = {}
    if STEP_NAME in weights.specs:
        step = weights.global_step
        notes[STEP_NAME] = f"{step}; not part of a model, left out"
    if not has_vocab:
        notes["vocabulary"] = (
            "none given (vocab_file), so there are no tokenizer files"
        )
    full = [job for job in jobs if job.network.encoder == "electra"]
    stated = setting(hparams, "num_attention_heads") is not None
    if full and not stated and "model_size" not in hparams:
        notes["num_attention_heads"] = (
            f"not stated; {full[-1].config['num_attention_heads']}, one for"
            " 64 hidden units, is assumed"
        )
    if hparams.get("electric_objective") and any(
        job.network.architecture == names.PRETRAINING for job in jobs
    ):
        notes["electric_objective"] = (
            "transformers gives Electric's energies without the generator's"
            " log-probabilities that training adds"
        )
    if len(full) == 2:
        notes["untied_generator=false"] = (
            "the one encoder is written to both folders"
        )
    return notes


def _refuse_existing(folder: str, overwrite: bool) -> None:
    for name in (*_FILES, *WEIGHT_FILES):
        path = os.path.join(folder, name)
        if os.path.exists(path) and not overwrite:
            raise UserError(
                f"{path} exists; choose another folder or pass --overwrite."
            )


@contextlib.contextmanager
def _temporary_files(jobs: list[_Job]) -> Iterator[None]:
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
    job: _Job,
    weights: Weights,
    vocab_file: str | None,
    vocab: Mapping[str, int] | None,
    hparams: Mapping[str, Any],
) -> None:
    """Writes a folder's files under temporary names."""
    bare = job.network.architecture == names.BARE
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

    specs = {
        name: TensorSpec(pair.their_shape(job.sizes), np.dtype(np.float32))
        for name, pair in by_name.items()
    }
    texts = {configs.CONFIG: job.config}
    if vocab:
        positions = job.sizes["max_position_embeddings"]
        texts |= configs.tokenizer_files(vocab, hparams, positions)
    path = os.path.join(job.folder, "")
    try:
        os.makedirs(job.folder, exist_ok=True)
        for name, content in texts.items():
            with open(path + name + _TEMPORARY, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2, ensure_ascii=False)
                file.write("\n")
        if vocab:
            shutil.copyfile(vocab_file, path + configs.VOCAB + _TEMPORARY)
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


def write_safetensors(
    path: str,
    specs: Mapping[str, TensorSpec],
    read: Callable[[str], np.ndarray],
) -> None:
    """Writes a safetensors file, holding one tensor at a time.

    The package's own writer wants all of them in memory at once. Its reader
    checks the result: header, offsets and size.

    Args:
      specs: shape and type (float32) of every tensor, in the file's order.

    Source: the safetensors format, https://github.com/huggingface/safetensors.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, spec in specs.items():
        start, end = end, end + spec.size_in_bytes
        header[name] = {
            "dtype": "F32",
            "shape": list(spec.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    try:
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.writelines(_buffers(specs, read))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error}.") from error
    with safetensors.safe_open(path, framework="np"):
        pass


def _buffers(
    specs: Mapping[str, TensorSpec], read: Callable[[str], np.ndarray]
) -> Iterable[memoryview]:
    for name, spec in specs.items():
        value = np.asarray(read(name), order="C")
        if value.shape != spec.shape or value.dtype != np.float32:
            raise ValueError(
                f"{name}: {value.dtype} {value.shape}, promised {spec}."
            )
        if sys.byteorder == "big":
            value = value.byteswap()
        yield memoryview(value.reshape(-1).view(np.uint8))
