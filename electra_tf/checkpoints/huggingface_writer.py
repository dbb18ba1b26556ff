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
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import safetensors

from configure.errors import UserError
from configure.formatting import limit_lines
from electra_tf.checkpoints import huggingface_layout as layout
from electra_tf.checkpoints.contents import HIDDEN, TOWERS
from electra_tf.checkpoints.formats import ELECTRA_CONFIG
from electra_tf.checkpoints.huggingface_layout import CONFIG, Network, Pair
from electra_tf.checkpoints.huggingface_tokenizer_files import tokenizer_files
from electra_tf.checkpoints.weights import (
    STEP_NAME,
    MemoryWeights,
    TensorSpec,
    View,
    Weights,
    check_shapes,
    repeat_segment_row,
    select_part,
)
from electra_tf.files.atomic import part_folder, write_atomically
from electra_tf.files.digests import DIGESTS_FILE, write_digests
from electra_tf.text.huggingface_tokenizer import (
    ADDED_TOKENS,
    SPECIAL_TOKENS_MAP,
    TOKENIZER,
)
from electra_tf.text.tokenizer_settings import TOKENIZER_CONFIG, read_settings
from electra_tf.text.vocabulary import (
    PAD,
    check_vocab,
    load_wordpieces,
    require_wordpiece,
)

_MOST_LINES = 12
# All that a folder may hold of an earlier model. The config is the last to be
# written and the first to go: without it there is no model to load.
_FILES = (
    *layout.WEIGHT_FILES,
    layout.VOCAB,
    TOKENIZER_CONFIG,
    SPECIAL_TOKENS_MAP,
    ADDED_TOKENS,
    TOKENIZER,
    ELECTRA_CONFIG,
    DIGESTS_FILE,
    CONFIG,
)


class _Job(NamedTuple):
    """A network to be written, and where."""

    below: str  # its folder in the one asked for; "" is that itself
    network: Network
    sizes: Mapping[str, int]  # by config.json's keys
    pairs: list[Pair]  # tensors there and variables here


class WriteReport(NamedTuple):
    """What was not written as it is."""

    left_out: dict[str, str]  # what transformers cannot hold, and why
    notes: dict[str, str]  # remarks by subject


def write_huggingface(
    weights: Weights,
    folder: str,
    part: str = "all",
    drop_unrepresentable: bool = False,
    vocab_file: str | None = None,
    hparams: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    electra_config: str | None = None,
    half_precision: bool = False,
) -> WriteReport:
    """Writes a checkpoint as folders for transformers.

    One tensor is in memory at a time. Files get their names when all of them
    are complete, each folder's config last. `electra_config` is the text of
    that file, which no program needs here. `half_precision` stores float16,
    half the bytes; readers widen it again.
    """
    if "://" in folder:
        raise UserError(
            f"{folder}: Hugging Face folders are written to a local disk only."
        )
    weights = select_part(weights, part)
    contents = weights.contents
    if contents.predicts_tokens and not contents.discriminates:
        if contents.generates:  # Each would be ElectraForMaskedLM.
            raise UserError(
                f"{weights.path}: is {contents.description}; a Hugging Face"
                " folder holds one masked LM. Write one network:"
                " --part=encoder or --part=generator."
            )
    if contents.shares_some_tables:
        raise UserError(
            f"{weights.path}: embedding_sharing is"
            f" {contents.embedding_sharing}, which the two folders of"
            " one model cannot say. Write each network to a folder of its own:"
            " --part=discriminator, --part=generator."
        )
    networks = _networks_in(weights)
    if not networks:
        found = weights.contents.description
        raise UserError(f"{weights.path} holds {found}.")
    hparams = {**weights.hparams, **(hparams or {})}
    vocab_file, vocab = vocab_file or weights.vocab_file, {}
    plain, weights = weights, _folded(weights, networks[0], half_precision)
    head = weights.heads.get(networks[0].task)
    split_words_like_original = bool(head) and head.kind == "tagging"
    split_words_like_original = (
        split_words_like_original and not head.as_elsewhere
    )
    jobs = []
    for network in networks:
        sizes = _sizes_of(weights, network, hparams)
        below = network.folder if part == "all" else ""
        jobs.append(_Job(below, network, sizes, network.pairs(sizes)))
    if vocab_file:
        require_wordpiece(vocab_file, "a Hugging Face folder")
        vocab = check_vocab(vocab_file, sizes["vocab_size"])
    act = layout.stated_settings(hparams).get("hidden_act", "gelu")
    if networks[-1].architecture == layout.MASKED_LM and act != "gelu":
        raise UserError(
            f"{weights.path}: hidden_act {act} of generator_predictions:"
            " transformers has gelu there, whatever the config says. Write the"
            " discriminator alone (--part=discriminator)."
        )
    left_out = _left_out(weights, jobs)
    if left_out and not drop_unrepresentable:
        lines = [f"{name}: {why}" for name, why in left_out.items()]
        raise UserError(
            f"{weights.path}: a Hugging Face folder cannot hold all of it:\n"
            + "\n".join(limit_lines(lines, _MOST_LINES))
            + "\nPass --drop_unrepresentable to leave this out."
        )
    pad_id = vocab.get(PAD, 0)
    configs = [
        layout.make_config(job.network, job.sizes, hparams, pad_id, head)
        for job in jobs
    ]
    if networks[0].needs_identity_layer:
        bias = plain.read(f"{networks[0].head_scope}/dense/bias")
        configs[0][layout.MARK]["bias"] = bias.tolist()
    # A model in the folder itself would hide those in its folders, and one
    # that is left in a folder would be taken for this model's.
    places = ["", *layout.FOLDERS] if jobs[0].below else [""]
    for job in jobs:
        specs = {
            name: TensorSpec(pair.shape(job.sizes), np.dtype(np.float32))
            for pair in job.pairs
            for name in pair.ours
        }
        if missing := [name for name in specs if name not in weights.specs]:
            what = f"{weights.path}: not a whole {job.network.architecture}"
            lines = [f"{what}, lacks", *limit_lines(missing, _MOST_LINES)]
            raise UserError("\n".join(lines))
        check_shapes(weights, specs)
    for below in places:
        for name in _FILES:
            path = os.path.join(folder, below, name)
            if os.path.exists(path) and not overwrite:
                raise UserError(
                    f"{path} exists; choose another folder or pass --overwrite."
                )
    # On the same disk, where there is a folder already.
    place = os.path.abspath(folder)
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    try:
        with part_folder(folder, place) as temporary:
            whole = os.path.join(temporary, "whole")
            for job, config in zip(jobs, configs, strict=True):
                made = os.path.join(whole, job.below)
                texts = {CONFIG: config}
                if vocab:
                    lengths = [job.sizes["max_position_embeddings"]]
                    lengths += [head.max_length] if head else []
                    lengths += [weights.max_length]
                    texts |= tokenizer_files(
                        load_wordpieces(vocab_file),
                        hparams,
                        min(filter(None, lengths)),
                        split_words_like_original,
                        read_settings(vocab_file),
                    )
                _write(job, weights, made, texts, half_precision)
                if vocab:
                    target = os.path.join(made, layout.VOCAB)
                    shutil.copyfile(vocab_file, target)
                write_digests(made)
            for below in {"", *(job.below for job in jobs)}:
                if electra_config:
                    target = os.path.join(whole, below, ELECTRA_CONFIG)
                    write_atomically(target, electra_config)
            if not os.path.exists(folder):  # At once, then.
                above = os.path.dirname(os.path.abspath(folder))
                os.makedirs(above, exist_ok=True)
                os.rename(whole, folder)
            else:
                for below in places:
                    made = os.path.join(whole, below)
                    _replace(made, os.path.join(folder, below))
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error}.") from error
    return WriteReport(left_out, _remarks(weights, jobs, hparams))


# Which networks can go there, and what has no place there.


def _networks_in(weights: Weights) -> list[Network]:
    found, contents = [], weights.contents
    generates = contents.has("generator_predictions/")
    if contents.discriminates:
        found.append(Network(layout.PRETRAINING))
    elif contents.has("electra/encoder/") and not generates:
        # With the first head that transformers has, else bare.
        for task in contents.tasks:
            if kind := _head_of(weights, task)[0]:
                two = contents.has(f"task_specific/{task}/{HIDDEN}/")
                first = HIDDEN if two else layout.IDENTITY
                found.append(Network(kind, task=task, first=first))
                break
        else:
            found.append(Network(layout.BARE))
    if generates:
        scopes = (
            "generator" if contents.has(f"generator/{inner}/") else "electra"
            for inner in ("encoder", "embeddings")
        )
        found.append(Network(layout.MASKED_LM, *scopes))
    return found


def _head_of(weights: Weights, task: str) -> tuple[str, str]:
    """The class there that has a task's head; empty where none has, and why."""
    contents, scope = weights.contents, f"task_specific/{task}"
    head = weights.heads.get(task)
    if contents.has(f"{scope}/qa_hidden/"):
        return "", "joint question-answering head: transformers has none"
    if contents.has(f"{scope}/dense_1/"):
        return layout.QUESTIONS, ""
    if head is None:
        return "", (
            "shapes do not tell a tagger from a classifier; convert the run's"
            " folder, whose config.json does"
        )
    if head.pooling != "first":
        return "", (
            f"pooling is {head.pooling}: transformers' head reads the first"
            " token"
        )
    if head.kind == "tagging":
        return layout.TAGGING, ""
    if head.kind in layout.PROBLEMS:
        return layout.SENTENCES, ""
    return "", f"transformers has no head for a task of type {head.kind}"


def _folded(weights: Weights, network: Network, half: bool) -> Weights:
    """Weights with which transformers' layers and inputs give our answers.

    A tagger's segments are all 1 here and all 0 there, so both get row 1. A
    sentence's one layer gets another before it: see `layout.identity_shift`.
    """
    scope, specs = network.head_scope, dict(weights.specs)
    if network.architecture == layout.TAGGING:
        return repeat_segment_row(weights, 1)
    if not network.needs_identity_layer:
        return weights
    last = weights.contents.stack("electra").num_hidden_layers - 1
    norm = f"electra/encoder/layer_{last}/output/LayerNorm"
    kernel = weights.read(f"{scope}/dense/kernel")
    shift = layout.identity_shift(
        weights.read(f"{norm}/gamma"), weights.read(f"{norm}/beta")
    )
    if half:  # The last bias, which stays float32, takes back what is stored.
        kernel = kernel.astype(np.float16).astype(np.float32)
        shift = shift.astype(np.float16).astype(np.float32)
    made = {"kernel": np.eye(len(shift), dtype=np.float32), "bias": shift}
    made = {f"{scope}/{layout.IDENTITY}/{n}": v for n, v in made.items()}

    def change(name: str, value: np.ndarray) -> np.ndarray:
        if name != f"{scope}/dense/bias":
            return value
        return layout.moved_bias(value, kernel, shift, -1)

    return View(weights, specs, change, MemoryWeights(made))


def _why_unrepresentable(name: str, weights: Weights) -> str:
    if name.startswith(TOWERS):
        return "two-tower generator: transformers has no such model"
    if name.startswith("token_predictions/"):
        return "the second network's masked LM: transformers has no such head"
    if not name.startswith("task_specific/"):
        return "no counterpart in transformers"
    _, task, layer, *_ = name.split("/")
    kind, why = _head_of(weights, task)
    if kind == layout.QUESTIONS and layer not in ("dense", "dense_1"):
        return "answerability classifier: transformers has none"
    return why or "second task; a folder holds one"


def _sizes_of(
    weights: Weights, network: Network, hparams: Mapping[str, Any]
) -> dict[str, int]:
    """A network's sizes; refuses hparams of another model."""
    contents = weights.contents
    sizes = contents.tables(network.embeddings)
    sizes |= dataclasses.asdict(contents.stack(network.encoder))
    if network.architecture in (layout.TAGGING, layout.SENTENCES):
        head = contents.shapes[f"{network.head_scope}/dense/bias"]
        sizes[layout.LABELS] = head[0]
    stated = layout.stated_settings(hparams)
    for name, value in sizes.items():
        if network.encoder == "electra" and stated.get(name, value) != value:
            raise UserError(
                f"{weights.path}: {name} is {value} by the weights' shapes but"
                f" {stated[name]} by the hparams; correct the hparams."
            )
    return sizes


def _left_out(weights: Weights, jobs: list[_Job]) -> dict[str, str]:
    covered = {n for job in jobs for pair in job.pairs for n in pair.ours}
    reasons = {
        name: _why_unrepresentable(name, weights)
        for name in weights.shapes
        if name not in covered
    }
    if weights.slots:
        reasons["Adam slots"] = (
            f"{len(weights.slots)} of them; a Hugging Face folder holds weights"
            " only (--strip_optimizer leaves them out)"
        )
    return reasons


def _remarks(
    weights: Weights, jobs: list[_Job], hparams: Mapping[str, Any]
) -> dict[str, str]:
    notes = {}
    if STEP_NAME in weights.specs:
        step = weights.global_step
        notes[STEP_NAME] = f"{step}; not part of a model, left out"
    if head := weights.heads.get(jobs[0].network.task):
        if not head.labels and layout.LABELS in jobs[0].sizes:
            notes["labels"] = "their names are not known: LABEL_0 and so on"
        if head.kind == "regression":
            notes.pop("labels", None)
            notes["regression"] = "answers are on the scale of training, 0 to 1"
    if jobs[0].network.architecture == layout.TAGGING:
        notes["token_type_embeddings"] = (
            "row 1, which tagging uses here, in all rows: transformers uses 0"
        )
    if jobs[0].network.needs_identity_layer:
        notes["classifier.dense"] = (
            "a shifted identity that GELU passes; logits differ by rounding"
        )
    discriminates = jobs[0].network.architecture == layout.PRETRAINING
    if hparams.get("electric_objective") and discriminates:
        notes["electric_objective"] = (
            "transformers gives Electric's energies without the generator's"
            " log-probabilities that training adds"
        )
    if len(jobs) == 2 and jobs[1].network.encoder == "electra":
        notes["untied_generator=false"] = (
            "the one encoder is written to both folders"
        )
    return notes


# Files.


def _write(
    job: _Job,
    weights: Weights,
    folder: str,
    texts: Mapping[str, Mapping[str, Any]],
    half_precision: bool,
) -> None:
    bare = job.network.architecture == layout.BARE
    # transformers saves a bare encoder without the prefix.
    lead = "electra." if bare else ""
    by_name = {pair.theirs.removeprefix(lead): pair for pair in job.pairs}
    narrow = np.float16 if half_precision else np.float32
    types = dict.fromkeys(by_name, narrow)
    types |= {"classifier.out_proj.bias": np.float32}
    os.makedirs(folder, exist_ok=True)
    for name, content in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2, ensure_ascii=False)
            file.write("\n")
    write_safetensors(
        os.path.join(folder, layout.SINGLE),
        {
            name: TensorSpec(pair.their_shape(job.sizes), np.dtype(types[name]))
            for name, pair in by_name.items()
        },
        lambda name: (
            by_name[name]
            .to_theirs([weights.read(ours) for ours in by_name[name].ours])
            .astype(types[name], copy=False)
        ),
    )


def _replace(made: str, folder: str) -> None:
    """Gives the files their place; an earlier model's files go first."""
    if os.path.isdir(made):
        os.makedirs(folder, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, CONFIG))
    for name in _FILES:
        new, path = os.path.join(made, name), os.path.join(folder, name)
        if os.path.exists(new):
            os.replace(new, path)
        elif os.path.exists(path):
            os.remove(path)


def write_safetensors(
    path: str,
    specs: Mapping[str, TensorSpec],
    read: Callable[[str], np.ndarray],
) -> None:
    """Writes a safetensors file, holding one tensor at a time.

    The package's own writer wants all of them in memory at once. Its reader
    checks the result: header, offsets and size. `specs` are in file order.

    Source: the safetensors format, https://github.com/huggingface/safetensors.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, spec in specs.items():
        start, end = end, end + spec.size_in_bytes
        header[name] = {
            "dtype": f"F{8 * spec.dtype.itemsize}",
            "shape": list(spec.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, spec in specs.items():
            value = np.asarray(read(name), order="C")
            if value.shape != spec.shape or value.dtype != spec.dtype:
                raise ValueError(
                    f"{name}: {value.dtype} {value.shape}, promised {spec}."
                )
            value = value.byteswap() if sys.byteorder == "big" else value
            file.write(memoryview(value.reshape(-1).view(np.uint8)))
        file.flush()
        os.fsync(file.fileno())
    with safetensors.safe_open(path, framework="np"):
        pass
