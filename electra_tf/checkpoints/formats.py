# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opening of checkpoints in any format, and the file `electra_config.json`.

Shapes alone do not determine a model. `electra_config.json` next to a
checkpoint therefore contains the sizes twice: as hparams, from which this
project builds the model, and for other programs under the names of BERT,
bert4keras and Hugging Face.
"""

import dataclasses
import json
import os
import re
import sysconfig
from collections.abc import Iterable, Mapping
from typing import Any

from configure.config import TOKENIZER_HPARAMS
from configure.errors import UserError
from configure.pretraining import (
    EXPERIMENTS,
    PretrainingConfig,
    without_derived,
)
from electra_tf.checkpoints.contents import (
    DISCRIMINATOR,
    TRAINING_ONLY,
    TaskHead,
)
from electra_tf.checkpoints.huggingface_layout import HUB_PREFIX
from electra_tf.checkpoints.sizes import (
    MODEL_HPARAMS,
    SCHEDULE_HPARAMS,
    complete_hparams,
    encoder_config,
    nearest_size,
)
from electra_tf.checkpoints.weights import Weights, select_tensors
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import check_digest, write_digests
from electra_tf.files.json_files import read_json
from electra_tf.files.reading import read_bytes
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.casing import read_casing, resolve_casing
from electra_tf.text.settings_files import copy_settings
from electra_tf.text.vocabulary import is_bpe

ELECTRA_CONFIG = "electra_config.json"
# Names of the vocabulary's file in a model's folder: the first for WordPiece,
# the second for byte-level BPE.
VOCAB_FILES = ("vocab.txt", "tokenizer.json")
# File name of a run's log, and the subfolder of the run's best checkpoint.
TRAIN_LOG = "train_log.jsonl"
BEST = "best"
FORMAT_VERSION = 1
RELEASED = "reference"  # name of the model that is part of the project

# Files that may state a model's sizes. Conversions of this project, other
# programs, or runs write these files. The first file that exists is read.
_CONFIGS = (ELECTRA_CONFIG, "bert_config.json", "config.json")
# Hparams in electra_config.json: the sizes, and settings that change the
# interpretation of text and scores.
_CONFIG_HPARAMS = (*MODEL_HPARAMS, *TOKENIZER_HPARAMS, "mask_prob")
# Names of Hugging Face's weight files, whole or sharded.
_HUGGING_FACE_FILE = re.compile(
    r"(model|pytorch_model).*(\.safetensors|\.bin|\.index\.json)"
)


def resolve_reference(path: str) -> str:
    """Return a named model's local folder; return any other path unchanged.

    Names are `reference` and, for models of the hub, `hf:OWNER/NAME`.

    Raises:
      UserError: the named model cannot be found.
    """
    if path.startswith(HUB_PREFIX):
        # The import is here, because only names of hub models need the module.
        from electra_tf.checkpoints import hub

        return hub.fetch(path)
    if path != RELEASED or filesystem.exists(path):
        return path
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    # Outside of virtual environments, pip may install to the user's folders.
    user = sysconfig.get_preferred_scheme("user")
    data = (sysconfig.get_path("data"), sysconfig.get_path("data", user))
    shares = (os.path.join(path, "share", "electra_tf") for path in data)
    folders = [os.path.join(top, "models", RELEASED) for top in (root, *shares)]
    for folder in filter(filesystem.is_directory, folders):
        return folder
    raise UserError(
        f"{RELEASED}: the reference model is in none of {', '.join(folders)}."
        f" Copy the folder models/{RELEASED} of the project's repository to one"
        " of these folders, or pass the path of your copy."
    )


def open_weights(path: str, with_training_state: bool = False) -> Weights:
    """Open a checkpoint of any format; its tensors get the original's names.

    `hparams` and `vocab_file` of the result come from files next to the
    weights.

    Args:
      path: prefix, file, folder, `reference` or `hf:OWNER/NAME`. The format is
        inferred from the content.
      with_training_state: whether to include variables that only the run itself
        uses.

    Raises:
      UserError: the path contains no checkpoint, several checkpoints or a
        corrupt checkpoint.
    """
    # These imports are here, because TensorFlow's import takes seconds.
    from electra_tf.checkpoints import huggingface_reader, tf1, tf2

    path = resolve_reference(path)
    folder, name = os.path.split(path)
    if _HUGGING_FACE_FILE.fullmatch(name):
        _check_is_read(path)
        return huggingface_reader.open_huggingface(folder or ".")
    if filesystem.is_directory(path):
        if _is_finetuned_run(path):
            best = find_best_checkpoint(path)
            return open_weights(best, with_training_state)
        hugging_face_file = find_hugging_face_weights(path)
        prefixes = tf1.list_checkpoints(path)
        if hugging_face_file and prefixes:
            raise UserError(
                f"{path}: contains both TensorFlow checkpoints"
                f" ({', '.join(prefixes[:5])}) and Hugging Face weights"
                f" ({hugging_face_file}); expected one format. Pass the path of"
                " the checkpoint to read."
            )
        has_config = "config.json" in filesystem.list_directory(path)
        if hugging_face_file or (has_config and not prefixes):
            return huggingface_reader.open_huggingface(path)
    prefix = tf1.find_checkpoint(path)
    opener = tf2.open_native if tf2.is_native(prefix) else tf1.open_tf1
    weights = opener(prefix)
    folder = find_model_folder(os.path.dirname(prefix) or ".")
    weights.hparams = read_electra_config(folder)
    weights.heads = _read_heads(folder)
    weights.vocab_file = _find_run_vocab(folder)
    return weights if with_training_state else strip_training_state(weights)


def _check_is_read(path: str) -> None:
    """Raise a UserError if loading the folder would ignore this weight file."""
    from electra_tf.checkpoints.huggingface_weight_files import find_weights

    folder, name = os.path.split(path)
    weights_file = find_weights(folder or ".")
    if name != os.path.basename(weights_file) and "-of-" not in name:
        raise UserError(
            f"{path}: this folder is read from {weights_file}; expected {name}"
            f" to be the only weight file. Copy {name} and config.json to a"
            " separate folder, and pass the path of this folder."
        )


def _is_finetuned_run(path: str) -> bool:
    """Return whether a folder is a fine-tuning run with a best checkpoint."""
    config = os.path.join(path, "config.json")
    if not filesystem.is_directory(os.path.join(path, BEST)):
        return False
    return filesystem.exists(config) and "task_names" in read_json(config)


def strip_training_state(weights: Weights, keep: str = "") -> Weights:
    """Return the weights without variables that only the run itself uses.

    The removed variables are the baseline of adversarial training, the head of
    `correction_weight`, and a discriminator that is not yet trained.

    Args:
      keep: scope in `TRAINING_ONLY` whose variables are kept; "": none.
    """
    scopes = [scope for scope in TRAINING_ONLY if scope != keep]
    reasons = dict.fromkeys(scopes, "used only during pre-training")
    first_stage = weights.hparams.get("two_stage_steps")
    step = weights.global_step if first_stage else None
    if step is not None and step <= first_stage:
        reason = f"not trained before step {first_stage} (two_stage_steps)"
        reasons |= dict.fromkeys(DISCRIMINATOR, reason)
    stripped = {
        name: reason
        for name in weights.specs
        for prefix, reason in reasons.items()
        if name.startswith(prefix)
    }
    if stripped:
        weights = select_tensors(weights, lambda name: name not in stripped)
        weights.dropped |= stripped
    return weights


def _find_run_vocab(folder: str) -> str | None:
    """Return the path of the vocabulary of a model's folder or run, or None."""
    vocab_file = find_vocab(folder)
    # This check also reports a vocabulary that is missing but has a digest.
    check_digest(vocab_file or os.path.join(folder, VOCAB_FILES[0]))
    config = os.path.join(folder, "config.json")
    if vocab_file or not filesystem.exists(config):
        return vocab_file
    of_run = read_json(config).get("vocab_file")
    if not of_run:
        return None
    if not isinstance(of_run, str):
        raise UserError(
            f"{config}: vocab_file is {of_run!r}; expected the path of a"
            " vocabulary. Correct this field."
        )
    # If the data directory DIR was moved as a whole, the vocabulary is still
    # two levels above the model's folder DIR/models/NAME.
    moved = os.path.join(folder, "..", "..", os.path.basename(of_run))
    return next(filter(filesystem.exists, (of_run, moved)), None)


def find_vocab(folder: str) -> str | None:
    """Return the path of the vocabulary in a model's folder, or None."""
    paths = (os.path.join(folder, name) for name in VOCAB_FILES)
    return next(filter(filesystem.exists, paths), None)


def vocab_name(vocab_file: str) -> str:
    """Return the name that a vocabulary's file gets in a model's folder."""
    return VOCAB_FILES[is_bpe(vocab_file)]


def find_hugging_face_weights(folder: str) -> str | None:
    """Return the relative path of a folder's Hugging Face weights, or None.

    The file may be in a subfolder, `discriminator` or `generator`.
    """
    for part in ("", "discriminator", "generator"):
        part_folder = os.path.join(folder, part)
        if filesystem.is_directory(part_folder):
            for name in filesystem.list_directory(part_folder):
                if _HUGGING_FACE_FILE.fullmatch(name):
                    return os.path.join(part, name)
    return None


def digest_file(path: str) -> str:
    """Return the path of a file that changes whenever the weights change.

    The argument is the path of opened weights (`Weights.path`).
    """
    index = f"{path}.index"  # contains a checksum of each tensor
    if filesystem.exists(index):
        return index
    return os.path.join(path, find_hugging_face_weights(path) or "")


def describes_itself(path: str) -> bool:
    """Return whether a checkpoint has a file that can describe its heads.

    The path is a folder, or a prefix or file in a folder, of any format.
    """
    name = os.path.basename(path)
    if filesystem.is_directory(path):
        if find_hugging_face_weights(path):
            return True
    elif _HUGGING_FACE_FILE.fullmatch(name):
        return filesystem.exists(path)
    config = os.path.join(find_model_folder(path), ELECTRA_CONFIG)
    return filesystem.exists(config) and "heads" in read_json(config)


def resolve_model_casing(
    weights: Weights, vocab_file: str, hparams: Mapping[str, Any]
) -> dict[str, bool]:
    """Return the casing hparams of a model and its vocabulary; {} if unknown.

    The sources are, in order of precedence, the model's folder, `hparams` and
    the file next to the vocabulary.

    Raises:
      UserError: the file next to a vocabulary in a different folder contradicts
        the model or `hparams`.
    """
    of_model = {
        name: value
        for name, value in weights.hparams.items()
        if name in TOKENIZER_HPARAMS
    }
    if of_model and vocab_file == weights.vocab_file:
        return of_model
    explicit = {n: hparams[n] for n in TOKENIZER_HPARAMS if n in hparams}
    origins = {name: f"{name} of {weights.path}" for name in of_model}
    origins |= {name: f"hparam {name}" for name in explicit}
    casing = resolve_casing(vocab_file, of_model | explicit, origins)
    return casing if of_model or read_casing(vocab_file) else {}


# Files next to the weights.


def complete_folder(
    directory: str,
    hparams: Mapping[str, Any],
    vocab_file: str | None,
    assumed: Iterable[str] = (),
    heads: Mapping[str, TaskHead] | None = None,
) -> None:
    """Write config, vocabulary and digests next to weights.

    Args:
      directory: folder of the weights.
      hparams: hparams of the model, including the casing.
      vocab_file: vocabulary, which is copied with its tokenizer settings.
      assumed: names of hparams that were assumed.
      heads: heads of fine-tuned tasks, by task name.
    """
    path = os.path.join(directory, ELECTRA_CONFIG)
    write_atomically(path, format_config(hparams, assumed, heads))
    if vocab_file:
        copy = os.path.join(directory, vocab_name(vocab_file))
        if os.path.abspath(vocab_file) != os.path.abspath(copy):
            write_atomically(copy, read_bytes(vocab_file))
            copy_settings(vocab_file, directory)
    write_digests(directory)


def format_config(
    hparams: Mapping[str, Any],
    assumed: Iterable[str] = (),
    heads: Mapping[str, TaskHead] | None = None,
) -> str:
    """Return the contents of `electra_config.json`; see `complete_folder`."""
    config, sizes = complete_hparams(hparams), encoder_config(hparams)
    derived = EXPERIMENTS.keys() - without_derived(config.as_dict()).keys()
    stored = {
        name: hparams.get(name, getattr(config, name))
        for name in _CONFIG_HPARAMS
        if name not in derived
    }
    stored["embedding_size"] = config.embedding_size or sizes.hidden_size
    contents = {
        "format_version": FORMAT_VERSION,
        **dataclasses.asdict(sizes),
        "embedding_size": stored["embedding_size"],
        **{name: stored[name] for name in TOKENIZER_HPARAMS},
        "hparams": stored,
    }
    # The schedule is stored, because it determines which weights are trained.
    if hparams.get("two_stage_steps"):
        for name in SCHEDULE_HPARAMS:
            stored[name] = hparams[name]
    assumed_names = sorted(assumed)
    if assumed_names:
        contents["assumed"] = assumed_names
    if heads:
        contents["heads"] = {
            name: _without_none(vars(head)) for name, head in heads.items()
        }
    return json.dumps(contents, indent=2) + "\n"


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def find_best_checkpoint(run: str) -> str | None:
    """Return the checkpoint in a run's folder `best`, or None.

    The result is None if this folder does not exist.

    Raises:
      UserError: the folder exists but is incomplete. The latest checkpoint is a
        different model, and must not silently replace the best checkpoint.
    """
    from electra_tf.checkpoints import tf1

    folder = os.path.join(run, BEST)
    if not filesystem.is_directory(folder):
        return None
    if prefix := tf1.find_latest(folder):
        return prefix
    state = os.path.join(folder, tf1.STATE)
    problem = f"{state} is missing"
    recorded = tf1.list_recorded(folder)
    if recorded:
        name = os.path.basename(recorded[-1])
        problem = f"{state} names {name}, whose index is missing"
    latest = tf1.find_latest(run)
    remedy = "continue the run to complete this folder"
    if latest:
        remedy += f", or pass the path of the latest checkpoint ({latest})"
    raise UserError(
        f"{folder}: this folder is incomplete, because {problem}. If the folder"
        f" was copied, copy the whole folder again; otherwise {remedy}."
    )


def find_model_folder(path: str) -> str:
    """Return the folder whose files describe a checkpoint's model.

    The best checkpoint of a run is described by files in the run's folder.

    Args:
      path: folder or prefix of the checkpoint.
    """
    path = resolve_reference(path)
    folder = (
        path if filesystem.is_directory(path) else os.path.dirname(path) or "."
    )
    full_path = folder
    if not filesystem.is_remote(folder):
        full_path = os.path.abspath(folder)
    parent, name = os.path.split(full_path.rstrip("/"))
    is_described = any(
        filesystem.exists(os.path.join(folder, n)) for n in _CONFIGS
    )
    return parent if name == BEST and not is_described else folder


def read_electra_config(directory: str) -> dict[str, Any]:
    """Return the hparams in a model's folder; {} if it has no config.

    The config is `electra_config.json`, `bert_config.json` or `config.json`.
    The config's keys may be those of this project, BERT, bert4keras, Hugging
    Face or a run.

    Raises:
      UserError: a value is invalid, or the file contradicts itself.
    """
    for name in _CONFIGS:
        path = os.path.join(directory, name)
        if not filesystem.exists(path):
            continue
        stated = read_json(path)
        try:
            if name == ELECTRA_CONFIG and "hparams" in stated:
                return _parse_electra_config(stated)
            if "model_size" in stated:  # a run's config.json
                names = (*_CONFIG_HPARAMS, *SCHEDULE_HPARAMS)
                hparams = {n: v for n, v in stated.items() if n in names}
                hparams = without_derived(hparams)
            else:
                hparams = _translate_keys(stated)
            return PretrainingConfig.clean_hparams(hparams)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error
    return {}


def _read_heads(folder: str) -> dict[str, TaskHead]:
    """Return the heads that `electra_config.json` describes, by task name."""
    path = os.path.join(folder, ELECTRA_CONFIG)
    if not filesystem.exists(path):
        return {}
    heads = {}
    try:
        for name, stated in read_json(path).get("heads", {}).items():
            fields = dict(stated)
            for key in ("labels", "range"):
                if key in fields:
                    fields[key] = tuple(fields[key])
            heads[name] = TaskHead(**fields)
        return heads
    except (AttributeError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: the field `heads` is invalid ({error!r}); expected an"
            " object that maps each task's name to the fields of its head."
            " Correct this field, or convert the model again."
        ) from error


def _translate_keys(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Convert keys of BERT, bert4keras and Hugging Face to hparams."""
    if "hidden_size" not in stated:
        return {}
    names = [field.name for field in dataclasses.fields(EncoderConfig)]
    names.remove("vocab_size")
    hidden = stated["hidden_size"]
    hparams = {
        "model_size": nearest_size(hidden)[0],
        "model_hparam_overrides": {n: stated[n] for n in names if n in stated},
        "embedding_size": stated.get("embedding_size") or hidden,
    }
    optional = {n: stated.get(n) for n in ("vocab_size", *TOKENIZER_HPARAMS)}
    return hparams | _without_none(optional)


def _parse_electra_config(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hparams of `electra_config.json` that were not assumed.

    Assumed hparams are left out, so that the reader assumes and reports them
    again.
    """
    version, assumed = stated.get("format_version"), stated.get("assumed", [])
    if version != FORMAT_VERSION:
        raise UserError(
            f"format_version is {version!r}; expected {FORMAT_VERSION}. Update"
            " electra_tf, or correct the file."
        )
    if not isinstance(stated["hparams"], dict):
        raise UserError(
            f"hparams is {stated['hparams']!r}; expected a JSON object. Correct"
            " this field."
        )
    if not isinstance(assumed, list):
        raise UserError(
            f"assumed is {assumed!r}; expected a list of names. Correct this"
            " field."
        )
    hparams = PretrainingConfig.clean_hparams(stated["hparams"])
    # The file contains sizes twice. If a user edited one copy, only some
    # readers would see the change.
    for name, value in json.loads(format_config(hparams)).items():
        if name != "hparams" and name in stated and stated[name] != value:
            raise UserError(
                f"{name} is {stated[name]!r}, but `hparams` imply {value!r}."
                " Correct one of the two values."
            )
    certain = {n: v for n, v in hparams.items() if n not in assumed}
    overrides = certain.get("model_hparam_overrides")
    if overrides:
        certain["model_hparam_overrides"] = {
            n: v for n, v in overrides.items() if n not in assumed
        }
    return certain
