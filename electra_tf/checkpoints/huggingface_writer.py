# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writing of Hugging Face ELECTRA folders, without transformers.

A checkpoint is written as folders that transformers loads. Each folder contains
one network: a pre-trained model is written to `discriminator/` and
`generator/`.
"""

import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from configure.errors import UserError
from configure.formatting import limit_lines
from electra_tf.checkpoints import huggingface_layout as layout
from electra_tf.checkpoints.contents import HIDDEN, TOWERS, TaskHead
from electra_tf.checkpoints.formats import ELECTRA_CONFIG
from electra_tf.checkpoints.huggingface_layout import CONFIG, Network, Pair
from electra_tf.checkpoints.huggingface_tokenizer_files import tokenizer_files
from electra_tf.checkpoints.huggingface_weight_files import write_safetensors
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
from electra_tf.text.settings_files import read_settings
from electra_tf.text.tokenizer_settings import TOKENIZER_CONFIG
from electra_tf.text.vocabulary import (
    PAD,
    check_vocab,
    load_wordpieces,
    require_wordpiece,
)

_MOST_LINES = 12  # maximum number of tensors that a message lists
# All files of a model that a folder may contain. The config is written last and
# removed first, because programs load only folders that have a config.
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


class _NetworkFiles(NamedTuple):
    """Planned contents of the folder of one network."""

    subfolder: str  # subfolder of the target folder; "" for the target itself
    network: Network
    sizes: Mapping[str, int]  # sizes by the keys of config.json
    pairs: list[Pair]  # tensors of transformers and variables of the original
    config: dict[str, Any]  # contents of config.json


@dataclasses.dataclass(frozen=True)
class _Plan:
    """Plan of a conversion, made before the first file is written."""

    weights: Weights  # weights, adapted to the layers of transformers
    folders: list[_NetworkFiles]
    hparams: Mapping[str, Any]

    @property
    def head(self) -> TaskHead | None:
        """Description of the fine-tuned task's head, if any."""
        return self.weights.heads.get(self.folders[0].network.task)

    @property
    def subfolders(self) -> list[str]:
        """Subfolders in which files of an earlier model are replaced.

        An earlier model in the target folder would hide the two networks in the
        subfolders, and a network that an earlier model left would be read as
        part of this model.
        """
        return ["", *layout.FOLDERS] if self.folders[0].subfolder else [""]


class WriteReport(NamedTuple):
    """Report on the contents that a written folder omits or changes."""

    # Variables that transformers cannot represent, with reasons.
    left_out: dict[str, str]
    notes: dict[str, str]  # remarks on changes, by subject


def write_huggingface(
    weights: Weights,
    folder: str,
    part: str = "all",
    drop_unrepresentable: bool = False,
    overwrite: bool = False,
    electra_config: str | None = None,
    half_precision: bool = False,
) -> WriteReport:
    """Write a checkpoint as folders for transformers.

    One tensor at a time is in memory. Files get their names once all files are
    complete, with each folder's config last.

    Args:
      weights: checkpoint, whose `hparams` and `vocab_file` become config.json
        and the tokenizer's files.
      part: part to write, one of `contents.PARTS`.
      drop_unrepresentable: leave out variables that transformers cannot
        represent.
      electra_config: contents of electra_config.json, which a later conversion
        reads.
      half_precision: store float16, in half the bytes; readers widen the
        values.

    Raises:
      UserError: transformers has no such model, hparams or vocabulary belong to
        a different model, or files would be replaced without `overwrite`.
    """
    if "://" in folder:
        raise UserError(
            f"{folder}: this path is remote; expected a local path for a"
            " Hugging Face folder. Pass a local path, and copy the written"
            " folder to the remote path."
        )
    weights = select_part(weights, part)
    _check_representable(weights)
    plan = _make_plan(weights, part == "all", half_precision)
    left_out = _left_out(plan)
    if left_out and not drop_unrepresentable:
        lines = [f"{name}: {reason}" for name, reason in left_out.items()]
        raise UserError(
            f"{weights.path}: a Hugging Face folder cannot represent the whole"
            " checkpoint:\n"
            + "\n".join(limit_lines(lines, _MOST_LINES))
            + "\nPass --drop_unrepresentable to leave these variables out."
        )
    _check_variables(plan)
    _check_free(folder, plan.subfolders, overwrite)
    # The temporary folder must be on the disk of the target folder, so it is
    # created in the nearest parent folder that exists.
    parent = os.path.abspath(folder)
    while not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    try:
        with part_folder(folder, parent) as temporary:
            complete = os.path.join(temporary, "whole")
            _write_folders(plan, complete, electra_config, half_precision)
            _install(complete, folder, plan.subfolders)
    except OSError as error:
        raise UserError(
            f"{folder}: the folder cannot be written: {error}. Pass a different"
            " path."
        ) from error
    return WriteReport(left_out, _notes(plan))


# Planning: the choice of networks and configs, and the search for variables
# that transformers cannot represent.


def _check_representable(weights: Weights) -> None:
    """Raise a UserError if Hugging Face folders cannot represent the model."""
    contents = weights.contents
    predicts_only = contents.predicts_tokens and not contents.discriminates
    if predicts_only and contents.generates:
        raise UserError(
            f"{weights.path} is {contents.description}; the checkpoint contains"
            " two masked LMs, but a Hugging Face folder can contain only one."
            " Pass --part=encoder or --part=generator to write one network."
        )
    if contents.shares_some_tables:
        raise UserError(
            f"{weights.path}: embedding_sharing is"
            f" {contents.embedding_sharing}, which the two folders of a model"
            " cannot represent. Write each network to a separate folder with"
            " --part=discriminator and --part=generator."
        )


def _make_plan(
    weights: Weights, is_whole_model: bool, half_precision: bool
) -> _Plan:
    """Return the plan of a conversion: networks, configs and adapted weights.

    Raises:
      UserError: no network can be written, or hparams or vocabulary contradict
        the shapes.
    """
    networks = _find_networks(weights)
    if not networks:
        raise UserError(
            f"{weights.path} is {weights.contents.description}; expected a"
            " discriminator, a generator or an encoder. Choose a different"
            " checkpoint."
        )
    hparams = weights.hparams
    fitting = _fit_to_transformers(weights, networks[0], half_precision)
    sizes = [_sizes_of(fitting, network, hparams) for network in networks]
    vocab: Mapping[str, int] = {}
    if weights.vocab_file:
        require_wordpiece(weights.vocab_file, "a Hugging Face folder")
        vocab = check_vocab(weights.vocab_file, sizes[-1]["vocab_size"])
    activation = layout.encoder_settings(hparams).get("hidden_act", "gelu")
    if networks[-1].architecture == layout.MASKED_LM and activation != "gelu":
        raise UserError(
            f"{weights.path}: hidden_act is {activation}, which the original"
            " also uses in the generator's head; expected gelu, because"
            " transformers always uses gelu in this head. Pass"
            " --part=discriminator to write only the discriminator."
        )
    pad_id = vocab.get(PAD, 0)
    head = weights.heads.get(networks[0].task)
    folders = [
        _NetworkFiles(
            network.folder if is_whole_model else "",
            network,
            network_sizes,
            network.pairs(network_sizes),
            layout.make_config(network, network_sizes, hparams, pad_id, head),
        )
        for network, network_sizes in zip(networks, sizes, strict=True)
    ]
    if networks[0].needs_identity_layer:
        bias = weights.read(f"{networks[0].head_scope}/dense/bias")
        folders[0].config[layout.MARK]["bias"] = bias.tolist()
    return _Plan(fitting, folders, hparams)


def _find_networks(weights: Weights) -> list[Network]:
    """Return the checkpoint's networks for which transformers has a class."""
    networks, contents = [], weights.contents
    generates = contents.has("generator_predictions/")
    if contents.discriminates:
        networks.append(Network(layout.PRETRAINING))
    elif contents.has("electra/encoder/") and not generates:
        networks.append(_find_task_network(weights))
    if generates:
        encoder = (
            "generator" if contents.has("generator/encoder/") else "electra"
        )
        embeddings = (
            "generator" if contents.has("generator/embeddings/") else "electra"
        )
        networks.append(Network(layout.MASKED_LM, encoder, embeddings))
    return networks


def _find_task_network(weights: Weights) -> Network:
    """Return the encoder's network with the first supported head, if any."""
    contents = weights.contents
    for task in contents.tasks:
        architecture, _ = _find_head_class(weights, task)
        if architecture:
            has_hidden = contents.has(f"task_specific/{task}/{HIDDEN}/")
            first_layer = HIDDEN if has_hidden else layout.IDENTITY
            return Network(architecture, task=task, first_layer=first_layer)
    return Network(layout.BARE)


def _find_head_class(weights: Weights, task: str) -> tuple[str, str]:
    """Return the transformers class of a task's head, or "" and the reason."""
    contents, scope = weights.contents, f"task_specific/{task}"
    head = weights.heads.get(task)
    if contents.has(f"{scope}/qa_hidden/"):
        return "", (
            "joint question-answering head, which transformers does not have"
        )
    if contents.has(f"{scope}/dense_1/"):
        return layout.QUESTIONS, ""
    if head is None:
        return "", (
            "shapes do not distinguish a tagger from a classifier; convert the"
            " run's folder, whose config.json names the task's type"
        )
    if head.pooling != "first":
        return "", (
            f"pooling is {head.pooling}, but transformers' head reads the"
            " first token"
        )
    if head.kind == "tagging":
        return layout.TAGGING, ""
    if head.kind in layout.PROBLEMS:
        return layout.SENTENCES, ""
    return "", f"transformers has no head for a task of type {head.kind}"


def _fit_to_transformers(
    weights: Weights, network: Network, half_precision: bool
) -> Weights:
    """Return weights with which transformers computes the same outputs.

    A tagger's segment ids are all 1 in this project and all 0 in transformers,
    so both rows of the segment table become row 1. A sentence head of one layer
    gets an additional first layer; see `layout.identity_shift`.
    """
    if network.architecture == layout.TAGGING:
        return repeat_segment_row(weights, 1)
    if not network.needs_identity_layer:
        return weights
    scope = network.head_scope
    last = weights.contents.stack("electra").num_hidden_layers - 1
    norm = f"electra/encoder/layer_{last}/output/LayerNorm"
    kernel = weights.read(f"{scope}/dense/kernel")
    shift = layout.identity_shift(
        weights.read(f"{norm}/gamma"), weights.read(f"{norm}/beta")
    )
    if half_precision:
        # The last bias must cancel the effect of the stored kernel and shift,
        # so both are rounded to float16 first.
        kernel = kernel.astype(np.float16).astype(np.float32)
        shift = shift.astype(np.float16).astype(np.float32)
    layer = f"{scope}/{layout.IDENTITY}"
    identity = MemoryWeights(
        {
            f"{layer}/kernel": np.eye(len(shift), dtype=np.float32),
            f"{layer}/bias": shift,
        }
    )

    def change(name: str, value: np.ndarray) -> np.ndarray:
        if name != f"{scope}/dense/bias":
            return value
        return layout.shift_bias(value, kernel, shift, -1)

    return View(weights, dict(weights.specs), change, identity)


def _sizes_of(
    weights: Weights, network: Network, hparams: Mapping[str, Any]
) -> dict[str, int]:
    """Return a network's sizes from its shapes, checked against hparams."""
    contents = weights.contents
    sizes = contents.tables(network.embeddings)
    sizes |= dataclasses.asdict(contents.stack(network.encoder))
    if network.architecture in (layout.TAGGING, layout.SENTENCES):
        bias_shape = contents.shapes[f"{network.head_scope}/dense/bias"]
        sizes[layout.LABELS] = bias_shape[0]
    stated = layout.encoder_settings(hparams)
    for name, value in sizes.items():
        if network.encoder == "electra" and stated.get(name, value) != value:
            raise UserError(
                f"{weights.path}: {name} is {value} according to the weights'"
                f" shapes, but {stated[name]} in the hparams. Correct the"
                " hparams."
            )
    return sizes


def _left_out(plan: _Plan) -> dict[str, str]:
    """Return the variables that the plan leaves out, with reasons."""
    weights = plan.weights
    covered = {
        name
        for folder in plan.folders
        for pair in folder.pairs
        for name in pair.variables
    }
    reasons = {
        name: _why_unrepresentable(name, weights)
        for name in weights.shapes
        if name not in covered
    }
    if weights.slots:
        reasons["Adam slots"] = (
            f"{len(weights.slots)} slots; a Hugging Face folder contains only"
            " weights (pass --strip_optimizer to leave out the slots)"
        )
    return reasons


def _why_unrepresentable(name: str, weights: Weights) -> str:
    """Return the reason why transformers has no tensor for a variable."""
    if name.startswith(TOWERS):
        return "two-tower generator, which transformers does not support"
    if name.startswith("token_predictions/"):
        return (
            "masked-LM head of the second network, which transformers does not"
            " have"
        )
    if not name.startswith("task_specific/"):
        return "no counterpart in transformers"
    _, task, layer, *_ = name.split("/")
    architecture, reason = _find_head_class(weights, task)
    if architecture == layout.QUESTIONS and layer not in ("dense", "dense_1"):
        return "answerability classifier, which transformers does not have"
    return reason or "head of a second task; a folder contains one task"


def _notes(plan: _Plan) -> dict[str, str]:
    """Return remarks on differences from the checkpoint, by subject."""
    notes, weights, first = {}, plan.weights, plan.folders[0]
    if STEP_NAME in weights.specs:
        notes[STEP_NAME] = (
            f"{weights.global_step}; left out, because a Hugging Face folder"
            " contains no step"
        )
    if plan.head and plan.head.kind == "regression":
        notes["regression"] = (
            "the head predicts numbers in the range of training, from 0 to 1"
        )
    elif plan.head and not plan.head.labels and layout.LABELS in first.sizes:
        notes["labels"] = (
            "the names of the labels are unknown; they are written as LABEL_0,"
            " LABEL_1 and so on"
        )
    if first.network.architecture == layout.TAGGING:
        notes["token_type_embeddings"] = (
            "all rows equal row 1, which this project uses for tagging;"
            " transformers uses row 0"
        )
    if first.network.needs_identity_layer:
        notes["classifier.dense"] = (
            "a shifted identity that GELU does not change; logits differ by"
            " rounding"
        )
    discriminates = first.network.architecture == layout.PRETRAINING
    if plan.hparams.get("electric_objective") and discriminates:
        notes["electric_objective"] = (
            "transformers returns Electric's energies without the generator's"
            " log-probabilities that training adds"
        )
    if len(plan.folders) == 2 and plan.folders[1].network.encoder == "electra":
        notes["untied_generator=false"] = (
            "the single encoder is written to both folders"
        )
    return notes


# Checks that run before the first file is written.


def _check_variables(plan: _Plan) -> None:
    """Raise a UserError if variables are missing or have unexpected shapes."""
    weights = plan.weights
    for folder in plan.folders:
        specs = {
            name: TensorSpec(
                pair.variable_shape(folder.sizes), np.dtype(np.float32)
            )
            for pair in folder.pairs
            for name in pair.variables
        }
        missing = [name for name in specs if name not in weights.specs]
        if missing:
            title = (
                f"{weights.path}: the checkpoint lacks variables of"
                f" {folder.network.architecture}:"
            )
            lines = [title, *limit_lines(missing, _MOST_LINES)]
            lines.append("Choose a different checkpoint.")
            raise UserError("\n".join(lines))
        check_shapes(weights, specs)


def _check_free(folder: str, subfolders: list[str], overwrite: bool) -> None:
    """Raise a UserError if files would be replaced without `overwrite`."""
    for subfolder in subfolders:
        for name in _FILES:
            path = os.path.join(folder, subfolder, name)
            if os.path.exists(path) and not overwrite:
                raise UserError(
                    f"{path} exists. Choose a different folder, or pass"
                    " --overwrite to replace it."
                )


# Writing and installing files.


def _write_folders(
    plan: _Plan,
    target: str,
    electra_config: str | None,
    half_precision: bool,
) -> None:
    """Write the files of all networks to a new folder."""
    vocab_file = plan.weights.vocab_file
    for folder in plan.folders:
        path = os.path.join(target, folder.subfolder)
        os.makedirs(path, exist_ok=True)
        contents = {CONFIG: folder.config}
        if vocab_file:
            contents |= _tokenizer_contents(plan, folder, vocab_file)
            shutil.copyfile(vocab_file, os.path.join(path, layout.VOCAB))
        for name, content in contents.items():
            _write_json(os.path.join(path, name), content)
        _write_tensors(
            os.path.join(path, layout.SINGLE),
            folder,
            plan.weights,
            half_precision,
        )
        write_digests(path)
    if electra_config:
        for subfolder in {"", *(folder.subfolder for folder in plan.folders)}:
            path = os.path.join(target, subfolder, ELECTRA_CONFIG)
            write_atomically(path, electra_config)


def _tokenizer_contents(
    plan: _Plan, folder: _NetworkFiles, vocab_file: str
) -> dict[str, dict[str, Any]]:
    """Return the contents of the tokenizer's files, by file name."""
    head = plan.head
    lengths = [folder.sizes["max_position_embeddings"], plan.weights.max_length]
    if head:
        lengths.append(head.max_length)
    is_tagger = head is not None and head.kind == "tagging"
    return tokenizer_files(
        load_wordpieces(vocab_file),
        plan.hparams,
        min(filter(None, lengths)),
        is_tagger and not head.as_elsewhere,
        read_settings(vocab_file),
    )


def _write_json(path: str, content: Mapping[str, Any]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2, ensure_ascii=False)
        file.write("\n")


def _write_tensors(
    path: str, folder: _NetworkFiles, weights: Weights, half_precision: bool
) -> None:
    """Write a network's safetensors file."""
    # The prefix is the encoder's name in a class with a head. An encoder alone
    # is saved under names that do not have the prefix.
    is_bare = folder.network.architecture == layout.BARE
    prefix = "electra." if is_bare else ""
    pairs = {pair.tensor.removeprefix(prefix): pair for pair in folder.pairs}
    stored_type = np.dtype(np.float16 if half_precision else np.float32)
    types = dict.fromkeys(pairs, stored_type)
    # The last bias must cancel the effect of the identity layer exactly, so it
    # stays float32.
    types["classifier.out_proj.bias"] = np.dtype(np.float32)

    def read(name: str) -> np.ndarray:
        pair = pairs[name]
        values = [weights.read(variable) for variable in pair.variables]
        return pair.to_tensor(values)

    specs = {
        name: TensorSpec(pair.tensor_shape(folder.sizes), types[name])
        for name, pair in pairs.items()
    }
    write_safetensors(path, specs, read)


def _install(complete: str, folder: str, subfolders: list[str]) -> None:
    """Move complete files to a folder; a new folder appears atomically."""
    if not os.path.exists(folder):
        parent = os.path.dirname(os.path.abspath(folder))
        os.makedirs(parent, exist_ok=True)
        os.rename(complete, folder)
        return
    for subfolder in subfolders:
        _replace_files(
            os.path.join(complete, subfolder), os.path.join(folder, subfolder)
        )


def _replace_files(source: str, folder: str) -> None:
    """Replace the files of an earlier model in a folder with new files."""
    if os.path.isdir(source):
        os.makedirs(folder, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, CONFIG))
    for name in _FILES:
        new, path = os.path.join(source, name), os.path.join(folder, name)
        if os.path.exists(new):
            os.replace(new, path)
        elif os.path.exists(path):
            os.remove(path)
