# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face ELECTRA folders, without PyTorch and without transformers.

transformers keeps one network in a folder, with `config.json`,
`model.safetensors` and tokenizer files. A pre-trained ELECTRA is two of them;
here a folder that holds both as `discriminator/` and `generator/` is read and
written as a whole.
"""

import contextlib
import dataclasses
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_config as configs
from electra_tf.checkpoints import huggingface_config as tokenizers
from electra_tf.checkpoints import huggingface_names as names
from electra_tf.checkpoints.huggingface_config import make_config, setting
from electra_tf.checkpoints.huggingface_names import Pair, Part
from electra_tf.checkpoints.safetensors_files import (
    SINGLE,
    WEIGHT_FILES,
    StoredTensors,
    open_stored,
    write_safetensors,
)
from electra_tf.checkpoints.weights import STEP_NAME, TensorSpec, Weights

# One folder as transformers saves it: one network, its config, its files.

_HEADS = (
    names.PRETRAINING,
    names.MASKED_LM,
    names.TAGGING,
    names.QUESTIONS,
)
_MOST_LINES = 8
_LAYER = re.compile(r"(?:electra\.)?encoder\.layer\.(\d+)\.")


@dataclasses.dataclass(frozen=True)
class Source:
    """Where one of our variables is in a folder.

    Attributes:
      stored: the folder's tensors.
      theirs: name of the tensor in its file.
      row: which row it is, None for all.
      transposed: whether to swap the axes.
      shape: of the variable.
    """

    stored: StoredTensors
    theirs: str
    row: int | None
    transposed: bool
    shape: tuple[int, ...]

    def read(self) -> np.ndarray:
        """Reads the values, float32, shaped as our variable."""
        value = self.stored.read(self.theirs)
        if self.row is not None:
            value = value[self.row : self.row + 1]
        return np.ascontiguousarray(value.T if self.transposed else value)


class Folder:
    """A folder with one model, checked against its config.

    Attributes:
      path: the folder.
      config: config.json, filled in.
      stored: the tensors.
      part: architecture and scopes, as far as the folder alone tells.
      sizes: by config.json's keys, with the number of labels.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.config = configs.read_config(path)
        self.stored = open_stored(path)
        self.part = self._find_part()
        self.sizes: dict[str, int] = dict(self.config)
        if self.part.architecture == names.TAGGING:
            head = self.stored.shapes.get("classifier.weight", (0,))
            self.sizes[names.LABELS] = head[0]
        self._files = self._match()
        self._check_tied()

    def _find_part(self) -> Part:
        architecture = names.architecture_of(self.stored.shapes)
        declared = self.config.get("architectures") or [None]
        if declared[0] in _HEADS:
            architecture = declared[0]
        if architecture == names.MASKED_LM:
            scopes = [
                configs.marked(self.config, key) or default
                for key, default in (
                    ("encoder", "generator"),
                    ("embeddings", "electra"),
                )
            ]
            if not set(scopes) <= {"electra", "generator"}:
                raise UserError(
                    f"{self.path}/{configs.CONFIG}: {configs.MARK}: expected"
                    f" 'electra' or 'generator', found {scopes}."
                )
            return Part(architecture, *scopes)
        task = configs.marked(self.config, "task")
        task = task or names.DEFAULT_TASKS.get(architecture, "")
        return Part(architecture, task=task)

    def pairs(self, part: Part | None = None) -> list[Pair]:
        """Tensors there and variables here."""
        return names.part_pairs(
            part or self.part,
            self.config["num_hidden_layers"],
            self.config["embedding_size"] != self.config["hidden_size"],
        )

    def _match(self) -> dict[str, str]:
        """Names in the file by names of today; refuses what is not there."""
        files, missing, differing = {}, [], []
        for pair in self.pairs():
            held = self.stored.shapes
            found = next(
                (n for n in names.spellings(pair.theirs) if n in held), None
            )
            if found is None:
                missing.append(pair.theirs)
                continue
            files[pair.theirs] = found
            wanted = pair.their_shape(self.sizes)
            if held[found] != wanted:
                differing.append(
                    f"{found}: {list(held[found])} in the file, {list(wanted)}"
                    f" by {configs.CONFIG} ({', '.join(pair.axes)})"
                )
        layers = self.config["num_hidden_layers"]
        differing += [
            f"{name}: of a layer that num_hidden_layers {layers} in"
            f" {configs.CONFIG} does not count"
            for name in self.stored.shapes
            if (found := _LAYER.match(name)) and int(found[1]) >= layers
        ]
        self._refuse(
            missing,
            f"lacks tensors that {self.part.architecture} of"
            f" {self.config['num_hidden_layers']} layers has",
        )
        self._refuse(differing, f"does not fit its {configs.CONFIG}")
        return files

    def _refuse(self, lines: list[str], what: str) -> None:
        if not lines:
            return
        shown = [f"  {line}" for line in lines[:_MOST_LINES]]
        if len(lines) > len(shown):
            shown.append(f"  ... and {len(lines) - len(shown)} more")
        raise UserError("\n".join([f"{self.stored.path} {what}:", *shown]))

    def _check_tied(self) -> None:
        """Refuses a masked LM that scores words by a table of its own."""
        table = self._files[names.WORD_TABLE]
        if (
            self.part.architecture != names.MASKED_LM
            or names.LM_HEAD not in self.stored.shapes
            or table == names.LM_HEAD
        ):
            return
        scores = self.stored.read(names.LM_HEAD)
        if not np.array_equal(scores, self.stored.read(table)):
            raise UserError(
                f"{self.stored.path}: {names.LM_HEAD} is not the table of token"
                " embeddings; in the original the two are one."
            )

    def sources(self, part: Part | None = None) -> dict[str, Source]:
        """Where every variable is."""
        sources = {}
        for pair in self.pairs(part):
            for i, ours in enumerate(pair.ours):
                sources[ours] = Source(
                    self.stored,
                    self._files[pair.theirs],
                    i if len(pair.ours) > 1 else None,
                    pair.transposed,
                    pair.shape(self.sizes),
                )
        return sources

    def dropped(self) -> dict[str, str]:
        """What is not used or not as stored, and why."""
        used = {*self._files.values(), names.LM_HEAD}
        notes = {
            name: reason
            for name in self.stored.shapes
            if name not in used and (reason := names.why_unused(name))
        }
        notes |= self.stored.conversions()
        notes |= configs.config_notes(self.config)
        return notes | tokenizers.tokenizer_notes(self.path)

    def hparams(self) -> dict[str, Any]:
        """Hparams that this folder alone states.

        A generator alone is described as that of a discriminator of its size.
        """
        hparams = configs.encoder_hparams(self.config)
        if self.part.encoder == "generator":
            hparams |= {"generator_hidden_size": 1.0, "generator_layers": 1.0}
        elif self.part.architecture == names.MASKED_LM:
            hparams |= {"electra_objective": False}
        if self.part.embeddings == "generator":
            hparams["untied_generator_embeddings"] = True
        return hparams | tokenizers.tokenizer_hparams(self.path)

    @property
    def vocab_file(self) -> str | None:
        """Path of the vocabulary, None where there is none."""
        path = os.path.join(self.path, tokenizers.VOCAB)
        return path if os.path.isfile(path) else None


def equal_tensors(
    one: Folder, other: Folder, pairs: Iterable[Pair]
) -> tuple[bool, str]:
    """Compares two folders tensor by tensor, up to the first difference."""
    first: Mapping[str, Source] = _by_theirs(one)
    second: Mapping[str, Source] = _by_theirs(other)
    for pair in pairs:
        a, b = first.get(pair.theirs), second.get(pair.theirs)
        if a is None or b is None or a.shape != b.shape:
            return False, pair.theirs
        if not np.array_equal(a.read(), b.read()):
            return False, pair.theirs
    return True, ""


def _by_theirs(folder: Folder) -> dict[str, Source]:
    sources = folder.sources()
    return {pair.theirs: sources[pair.ours[0]] for pair in folder.pairs()}


# What of a checkpoint a Hugging Face folder can hold.

# Tasks whose head, one dense layer, labels every token. A sentence classifier
# has the same shapes, but another layer at transformers.
TAGGING_TASKS = ("chunk",)

_TOWERS = ("generator_ltr/", "generator_rtl/", "cloze_predictions/")
_GENERATOR_ONLY = ("generator/", "generator_predictions/", *_TOWERS)
_DISCRIMINATOR_ONLY = ("electra/", "discriminator_predictions/")


def find_parts(weights: Weights, part: str) -> list[Part]:
    """Decides which folders are to be written."""
    if part not in ("all", "discriminator", "generator"):
        raise UserError(
            f"part is {part!r}; expected all, discriminator or generator."
        )
    held = weights.shapes
    found = []
    discriminates = _any(held, "discriminator_predictions/")
    generates = _any(held, "generator_predictions/")
    if part != "generator":
        if discriminates:
            found.append(Part(names.PRETRAINING))
        elif _any(held, "electra/encoder/") and not generates:
            found.append(_fine_tuned(held))
    if part != "discriminator" and generates:
        found.append(
            Part(
                names.MASKED_LM,
                _scope(held, "generator/encoder/"),
                _scope(held, "generator/embeddings/"),
            )
        )
    if not found:
        wanted = "" if part == "all" else f"; there is no {part} to write"
        raise UserError(
            f"{weights.path} holds {weights.contents.description}{wanted}."
        )
    return found


def unrepresentable(
    weights: Weights, part: str, covered: Iterable[str]
) -> dict[str, str]:
    """Lists what the folders to be written leave out."""
    unasked = {
        "all": (),
        "discriminator": _GENERATOR_ONLY,
        "generator": _DISCRIMINATOR_ONLY,
    }[part]
    covered = set(covered)
    held = weights.shapes
    reasons = {
        name: _why(name, held)
        for name in held
        if name not in covered and not name.startswith(unasked)
    }
    concerned = {*covered, *reasons}
    slots = [n for n in weights.slots if n.rpartition("/")[0] in concerned]
    if slots:
        reasons["Adam slots"] = (
            f"{len(slots)} of them; a Hugging Face folder holds weights only"
            " (--strip_optimizer leaves them out)"
        )
    return reasons


def step_note(weights: Weights) -> dict[str, str]:
    """Says where the step went.

    Returns:
      A note, or nothing where no step is stored.
    """
    if STEP_NAME not in weights.specs:
        return {}
    return {STEP_NAME: f"{weights.global_step}; not part of a model, left out"}


def _why(name: str, held: Mapping[str, object]) -> str:
    if name.startswith(_TOWERS):
        return "two-tower generator: transformers has no such model"
    if not name.startswith("task_specific/"):
        return "no counterpart in transformers"
    task = name.split("/")[1]
    if f"task_specific/{task}/qa_hidden/kernel" in held:
        return "joint question-answering head: transformers has none"
    if f"task_specific/{task}/dense_1/kernel" in held:
        if "/dense/" in name or "/dense_1/" in name:
            return "second task; a folder holds one"
        return "answerability classifier: transformers has none"
    if task in TAGGING_TASKS:
        return "second task; a folder holds one"
    return (
        "one dense layer on the first token: transformers' classifier has two"
    )


def _fine_tuned(held: Mapping[str, tuple[int, ...]]) -> Part:
    """Encoder with the first head that transformers has, else bare."""
    for task in _tasks(held):
        head = f"task_specific/{task}"
        if task in TAGGING_TASKS:
            return Part(names.TAGGING, task=task)
        kernels = [held.get(f"{head}/{n}/kernel") for n in ("dense", "dense_1")]
        if f"{head}/qa_hidden/kernel" not in held and None not in kernels:
            return Part(names.QUESTIONS, task=task)
    return Part(names.BARE)


def _tasks(held: Iterable[str]) -> list[str]:
    """Names of the fine-tuning tasks, in order."""
    tasks = {n.split("/")[1]: None for n in held if n.startswith("task_spec")}
    return list(tasks)


def _scope(held: Iterable[str], start: str) -> str:
    return "generator" if _any(held, start) else "electra"


def _any(held: Iterable[str], start: str) -> bool:
    return any(name.startswith(start) for name in held)


def sizes_of(weights: Weights, part: Part) -> dict[str, int]:
    """Reads a part's sizes off its shapes."""
    held = weights.shapes
    tables, encoder = f"{part.embeddings}/embeddings", f"{part.encoder}/encoder"
    where = {
        "vocab_size": (f"{tables}/word_embeddings", 0),
        "embedding_size": (f"{tables}/word_embeddings", 1),
        "type_vocab_size": (f"{tables}/token_type_embeddings", 0),
        "max_position_embeddings": (f"{tables}/position_embeddings", 0),
        "hidden_size": (f"{encoder}/layer_0/attention/self/query/kernel", 1),
        "intermediate_size": (f"{encoder}/layer_0/intermediate/dense/bias", 0),
    }
    if part.architecture == names.TAGGING:
        where[names.LABELS] = (f"{part.head_scope}/dense/bias", 0)
    missing = [name for name, _ in where.values() if name not in held]
    if missing:
        raise UserError(
            f"{weights.path} lacks {', '.join(dict.fromkeys(missing))}."
        )
    sizes = {key: held[name][axis] for key, (name, axis) in where.items()}
    start = f"{encoder}/layer_"
    layers = {
        name.removeprefix(start).split("/")[0]
        for name in held
        if name.startswith(start)
    }
    return sizes | {"num_hidden_layers": len(layers)}


# Which Hugging Face folders a checkpoint becomes, and whether it can.

_HUGGINGFACE_PLAN_MOST_LINES = 12


@dataclasses.dataclass(frozen=True)
class Job:
    """A folder to be written.

    Attributes:
      folder: its path.
      part: the network.
      sizes: by config.json's keys.
      config: contents of config.json.
    """

    folder: str
    part: Part
    sizes: Mapping[str, int]
    config: Mapping[str, Any]

    @property
    def pairs(self) -> list[Pair]:
        """Tensors there and variables here."""
        return names.part_pairs(
            self.part,
            self.sizes["num_hidden_layers"],
            self.sizes["embedding_size"] != self.sizes["hidden_size"],
        )


def make_jobs(
    weights: Weights,
    folder: str,
    part: str,
    vocab_file: str | None,
    hparams: Mapping[str, Any],
) -> tuple[list[Job], dict[str, int] | None]:
    """Decides what goes where.

    Args:
      vocab_file: path of the vocabulary, or None.
    """
    if "://" in folder:
        raise UserError(
            f"{folder}: Hugging Face folders are written to a local disk only."
        )
    jobs, vocab = [], None
    for found in find_parts(weights, part):
        sizes = sizes_of(weights, found)
        _check_hparams(weights, found, sizes, hparams)
        if vocab_file and vocab is None:
            vocab = tokenizers.read_vocabulary(vocab_file, sizes["vocab_size"])
        pad = vocab[tokenizers.PAD] if vocab else 0
        config = make_config(found, sizes, hparams, pad)
        below = found.folder if part == "all" else ""
        jobs.append(Job(os.path.join(folder, below), found, sizes, config))
    return jobs, vocab


def _check_hparams(
    weights: Weights,
    part: Part,
    sizes: Mapping[str, int],
    hparams: Mapping[str, Any],
) -> None:
    """Refuses hparams of another model."""
    if part.encoder != "electra" or hparams.get("debug"):
        return
    for name, value in sizes.items():
        stated = setting(hparams, name)
        if stated is not None and stated != value:
            raise UserError(
                f"{weights.path}: {name} is {value} by the weights' shapes but"
                f" {stated} by the hparams; correct the hparams."
            )


def check_job(job: Job, weights: Weights) -> None:
    """Refuses missing variables, other shapes and other types."""
    lines = []
    for pair in job.pairs:
        wanted = pair.shape(job.sizes)
        for name in pair.ours:
            spec = weights.specs.get(name)
            if spec is None:
                lines.append(f"  {name}: missing")
            elif spec.shape != wanted or spec.dtype != np.float32:
                lines.append(
                    f"  {name}: {spec.dtype} {list(spec.shape)}, expected"
                    f" float32 {list(wanted)}"
                )
    if lines:
        raise UserError(
            "\n".join(
                [
                    f"{weights.path}: not a whole {job.part.architecture}:",
                    *lines[:_HUGGINGFACE_PLAN_MOST_LINES],
                ]
            )
        )


def computed_otherwise(
    jobs: list[Job], hparams: Mapping[str, Any]
) -> dict[str, str]:
    """Names what transformers computes in another way."""
    act = setting(hparams, "hidden_act")
    if act in (None, "gelu"):
        return {}
    return {
        f"hidden_act {act} of generator_predictions": (
            "transformers has gelu there, whatever the config says"
        )
        for job in jobs
        if job.part.architecture == names.MASKED_LM
    }


def remarks(
    weights: Weights,
    jobs: list[Job],
    vocab: Mapping[str, int] | None,
    hparams: Mapping[str, Any],
) -> dict[str, str]:
    """What a user may want to know beside.

    Args:
      vocab: the vocabulary, or None.
    """
    notes = step_note(weights)
    if vocab is None:
        notes["vocabulary"] = (
            "none given (vocab_file), so there are no tokenizer files"
        )
    stated = setting(hparams, "num_attention_heads") is not None
    if not stated and "model_size" not in hparams:
        for job in jobs:
            if job.part.encoder == "electra":
                notes["num_attention_heads"] = (
                    f"not stated; {job.config['num_attention_heads']}, one for"
                    " 64 hidden units, is assumed"
                )
    if hparams.get("electric_objective") and any(
        job.part.architecture == names.PRETRAINING for job in jobs
    ):
        notes["electric_objective"] = (
            "transformers gives Electric's energies without the generator's"
            " log-probabilities that training adds"
        )
    if [j.part.encoder for j in jobs].count("electra") == 2:
        notes["untied_generator=false"] = (
            "the one encoder is written to both folders"
        )
    return notes


# Writing the folders that transformers loads.

_TEMPORARY = ".part"
_HUGGINGFACE_WRITER_MOST_LINES = 12
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
    """
    hparams = {**weights.hparams, **(hparams or {})}
    vocab_file = vocab_file or weights.vocab_file
    jobs, vocab = make_jobs(weights, folder, part, vocab_file, hparams)
    left_out = unrepresentable(
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
    if len(lines) > _HUGGINGFACE_WRITER_MOST_LINES:
        rest = len(lines) - _HUGGINGFACE_WRITER_MOST_LINES
        lines = [
            *lines[:_HUGGINGFACE_WRITER_MOST_LINES],
            f"  {title}... and {rest} more",
        ]
    return lines


__all__ = [
    "WriteReport",
    "is_huggingface",
    "open_huggingface",
    "write_huggingface",
]

_PARTS = ("discriminator", "generator")


def is_huggingface(folder: str) -> bool:
    """Whether a folder looks like one that transformers saved.

    Returns:
      True where weights or a config are under the names transformers uses,
      there or in `discriminator/` or `generator/`; what they hold is not
      looked at.
    """
    return _is_one(folder) or bool(_subfolders(folder))


def open_huggingface(folder: str) -> Weights:
    """Opens a model that transformers or `write_huggingface` saved."""
    if os.path.isfile(folder):
        folder = os.path.dirname(folder) or "."
    if not os.path.isdir(folder):
        raise UserError(f"{folder}: no such folder.")
    if _is_one(folder):
        return _HuggingFaceWeights.of_one(Folder(folder))
    found = _subfolders(folder)
    if not found:
        raise UserError(
            f"{folder}: no {configs.CONFIG} and no weights, neither here nor in"
            " discriminator/ or generator/."
        )
    parts = {part: Folder(os.path.join(folder, part)) for part in found}
    for name, architecture in zip(
        _PARTS, (names.PRETRAINING, names.MASKED_LM), strict=True
    ):
        if name in parts and parts[name].part.architecture != architecture:
            raise UserError(
                f"{parts[name].path} holds {parts[name].part.architecture};"
                f" expected the {name}, {architecture}."
            )
    if len(parts) == 1:
        return _HuggingFaceWeights.of_one(*parts.values())
    return _joined(folder, *(parts[name] for name in _PARTS))


class _HuggingFaceWeights(Weights):
    """Reads variables from one or two folders."""

    def __init__(
        self,
        path: str,
        sources: dict[str, Source],
        dropped: dict[str, str],
        hparams: dict[str, Any],
        vocab_file: str | None,
    ) -> None:
        float32 = np.dtype(np.float32)
        specs = {n: TensorSpec(s.shape, float32) for n, s in sources.items()}
        super().__init__(
            path, "huggingface", specs, dropped, hparams, vocab_file
        )
        self._sources = sources

    @classmethod
    def of_one(cls, folder: Folder) -> "_HuggingFaceWeights":
        """The weights of a single folder."""
        dropped = folder.dropped()
        if folder.part.encoder == "generator":
            dropped |= configs.generator_notes(folder.config)
        return cls(
            folder.path,
            folder.sources(),
            dropped,
            folder.hparams(),
            folder.vocab_file,
        )

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        return self._sources[name].read()


def _joined(
    path: str, discriminator: Folder, generator: Folder
) -> _HuggingFaceWeights:
    """The two networks of a pre-trained model, as the one that they were."""
    part = _generator_part(path, discriminator, generator)
    dropped = {
        f"{name}/{key}": reason
        for name, folder in zip(_PARTS, (discriminator, generator), strict=True)
        for key, reason in folder.dropped().items()
    }
    hparams = discriminator.hparams()
    if part.encoder == "electra":
        hparams["untied_generator"] = False
    else:
        hparams |= configs.generator_hparams(
            generator.config, discriminator.config
        )
        dropped |= configs.generator_notes(generator.config)
    if part.embeddings == "generator":
        hparams["untied_generator_embeddings"] = True
    dropped |= configs.differing_settings(
        generator.config, discriminator.config
    )
    return _HuggingFaceWeights(
        path,
        discriminator.sources() | generator.sources(part),
        dropped,
        hparams,
        discriminator.vocab_file or generator.vocab_file,
    )


def _generator_part(
    path: str, discriminator: Folder, generator: Folder
) -> Part:
    """Finds out what the generator shares with the discriminator."""
    tables = names.embedding_pairs("electra")
    width, hidden = (
        generator.config[key] for key in ("embedding_size", "hidden_size")
    )
    own = Part(names.MASKED_LM, "generator", "generator")
    if generator.part == own and width == hidden:
        return own
    equal, differing = equal_tensors(discriminator, generator, tables)
    if not equal:
        if width == hidden:
            return own
        raise UserError(
            f"{path}: {differing} of discriminator/ and generator/ differ, but"
            " in the original a generator either has the discriminator's"
            f" tables or its own, as wide as its hidden size ({hidden}, not"
            f" {width}). They are not of one model; read one part alone:"
            f" {os.path.join(path, 'discriminator')} or"
            f" {os.path.join(path, 'generator')}."
        )
    encoder = names.encoder_pairs(
        "electra",
        max(f.config["num_hidden_layers"] for f in (discriminator, generator)),
        width != hidden,
    )
    tied, _ = equal_tensors(discriminator, generator, encoder)
    return Part(names.MASKED_LM, "electra" if tied else "generator", "electra")


def _is_one(folder: str) -> bool:
    """Whether the folder itself has a model's files."""
    wanted = (configs.CONFIG, *WEIGHT_FILES)
    return any(os.path.isfile(os.path.join(folder, n)) for n in wanted)


def _subfolders(folder: str) -> list[str]:
    return [n for n in _PARTS if _is_one(os.path.join(folder, n))]
