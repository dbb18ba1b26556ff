# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opening a checkpoint of any format, and `electra_config.json` beside it.

Weights without their sizes have to be guessed at. The file states them twice:
as hparams that rebuild the model, and under the names that BERT, bert4keras
and Hugging Face use, for programs that know those.
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
from electra_tf.checkpoints import hub
from electra_tf.checkpoints.contents import (
    DISCRIMINATOR,
    TRAINING_ONLY,
    TaskHead,
)
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
from electra_tf.text.tokenizer_settings import copy_settings
from electra_tf.text.vocabulary import is_bpe

ELECTRA_CONFIG = "electra_config.json"
# A vocabulary's name in a model's folder; the second is byte-level BPE's.
VOCAB_FILES = ("vocab.txt", "tokenizer.json")
BEST = "best"  # a run's folder of its best checkpoint
FORMAT_VERSION = 1
RELEASED = "reference"  # the name of the model that comes with the project

# Where another program, or a run, may have left the sizes; first come.
_CONFIGS = (ELECTRA_CONFIG, "bert_config.json", "config.json")
# The sizes, and what text and scores need to mean the same.
_KEPT = (*MODEL_HPARAMS, *TOKENIZER_HPARAMS, "mask_prob")
# How Hugging Face names files of weights, whole or in shards.
_HUGGING_FACE = re.compile(
    r"(model|pytorch_model).*(\.safetensors|\.bin|\.index\.json)"
)


def resolve_reference(path: str) -> str:
    """The folder of a model that is named, else the path.

    Names are `reference` and, for models of the hub, `hf:OWNER/NAME`.
    """
    if path.startswith(hub.PREFIX):
        return hub.fetch(path)
    if path != RELEASED or filesystem.exists(path):
        return path
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    user = sysconfig.get_preferred_scheme("user")  # pip's, without a venv
    shares = (sysconfig.get_path("data"), sysconfig.get_path("data", user))
    shares = (os.path.join(at, "share", "electra_tf") for at in shares)
    places = [os.path.join(at, "models", RELEASED) for at in (root, *shares)]
    for place in filter(filesystem.is_directory, places):
        return place
    raise UserError(
        f"{RELEASED}: the reference model is in none of {', '.join(places)}."
        f" It is the folder models/{RELEASED} of the project's repository; copy"
        " it to one of them, or give the path of your copy."
    )


def open_weights(path: str, with_training_state: bool = False) -> Weights:
    """Opens a checkpoint, told by its content, under the original's names.

    `hparams` and `vocab_file` come from files beside it, where there are any.
    What only the run itself has a use for is left out, unless it is to be
    `whole`.
    """
    from electra_tf.checkpoints import huggingface_reader, tf1, tf2

    path = resolve_reference(path)
    folder, name = os.path.split(path)
    if _HUGGING_FACE.fullmatch(name):
        read = huggingface_reader.find_weights(folder or ".")
        if name != os.path.basename(read) and "-of-" not in name:
            raise UserError(
                f"{path}: of this folder {read} is what is read; put {name}"
                " alone beside a config.json to take it."
            )
        return huggingface_reader.open_huggingface(folder or ".")
    if filesystem.is_directory(path):
        own = os.path.join(path, "config.json")
        if filesystem.is_directory(
            os.path.join(path, BEST)
        ) and filesystem.exists(own):
            if "task_names" in read_json(own):  # A fine-tuned model.
                return open_weights(
                    find_best_checkpoint(path), with_training_state
                )
        theirs, ours = (
            find_hugging_face_weights(path),
            tf1.list_checkpoints(path),
        )
        if theirs and ours:
            raise UserError(
                f"{path}: holds TensorFlow checkpoints ({', '.join(ours[:5])})"
                f" and Hugging Face weights ({theirs}); give the path of the"
                " one to take."
            )
        if theirs or (
            not ours and "config.json" in filesystem.list_directory(path)
        ):
            return huggingface_reader.open_huggingface(path)
    prefix = tf1.find_checkpoint(path)
    is_native = tf2.is_native(prefix)
    weights = (tf2.open_native if is_native else tf1.open_tf1)(prefix)
    folder = find_model_folder(os.path.dirname(prefix) or ".")
    weights.hparams = read_electra_config(folder)
    weights.heads = _read_heads(folder)
    weights.vocab_file = _vocab_of(folder)
    return weights if with_training_state else strip_training_state(weights)


def strip_training_state(weights: Weights, keep: str = "") -> Weights:
    """Leave out what only the run that wrote a checkpoint uses.

    These are a baseline, the head of `correction_weight`, and a discriminator
    that is still untrained. `keep` is one of `TRAINING_ONLY` that stays.
    """
    scopes = [scope for scope in TRAINING_ONLY if scope != keep]
    reasons = dict.fromkeys(scopes, "of use to the run alone")
    first = weights.hparams.get("two_stage_steps")
    step = weights.global_step if first else None
    if step is not None and step <= first:
        why = f"not trained up to step {first} (two_stage_steps)"
        reasons |= dict.fromkeys(DISCRIMINATOR, why)
    left = {
        name: why
        for name in weights.specs
        for start, why in reasons.items()
        if name.startswith(start)
    }
    if left:
        weights = select_tensors(weights, lambda name: name not in left)
        weights.dropped |= left
    return weights


def _vocab_of(folder: str) -> str | None:
    """The vocabulary in a model's folder, else the one that its run names."""
    own = find_vocab(folder)
    # Which says, too, where one should be and is not.
    check_digest(own or os.path.join(folder, VOCAB_FILES[0]))
    config = os.path.join(folder, "config.json")
    if own or not filesystem.exists(config):
        return own
    named = read_json(config).get("vocab_file") or ""
    # A data directory may have been moved as a whole: DIR/models/NAME.
    moved = os.path.join(folder, "..", "..", os.path.basename(named))
    places = (named, moved) if named else ()
    return next(filter(filesystem.exists, places), None)


def find_vocab(folder: str) -> str | None:
    """The vocabulary in a model's folder."""
    places = (os.path.join(folder, name) for name in VOCAB_FILES)
    return next(filter(filesystem.exists, places), None)


def vocab_name(vocab_file: str) -> str:
    """What a vocabulary is called in a model's folder."""
    return VOCAB_FILES[is_bpe(vocab_file)]


def find_hugging_face_weights(folder: str) -> str | None:
    """A file of weights in a folder, or in those of its two networks."""
    for part in ("", "discriminator", "generator"):
        inner = os.path.join(folder, part)
        if filesystem.is_directory(inner):
            for name in filesystem.list_directory(inner):
                if _HUGGING_FACE.fullmatch(name):
                    return os.path.join(part, name)
    return None


def digest_file(path: str) -> str:
    """Returns the file that changes with the weights, whatever they are.

    `path`: of opened weights (`Weights.path`).
    """
    index = f"{path}.index"  # with a checksum of each tensor
    if filesystem.exists(index):
        return index
    return os.path.join(path, find_hugging_face_weights(path) or "")


def describes_itself(path: str) -> bool:
    """Whether files at a path may state what a checkpoint's heads are.

    `path`: a folder, or a prefix or file in it, of whatever format.
    """
    name = os.path.basename(path)
    if filesystem.is_directory(path):
        if find_hugging_face_weights(path):
            return True
    elif _HUGGING_FACE.fullmatch(name):
        return filesystem.exists(path)
    own = os.path.join(find_model_folder(path), ELECTRA_CONFIG)
    return filesystem.exists(own) and "heads" in read_json(own)


def resolve_model_casing(
    weights: Weights, vocab_file: str, given: Mapping[str, Any]
) -> dict[str, bool]:
    """Return the casing of a model with a vocabulary; empty: nothing states it.

    The model's own folder comes first, then hparams that are `given`, then the
    file beside the vocabulary.

    Raises:
      UserError: the file beside a vocabulary from elsewhere contradicts the
        model or what is given.
    """
    own = {n: v for n, v in weights.hparams.items() if n in TOKENIZER_HPARAMS}
    if own and vocab_file == weights.vocab_file:
        return own
    given = {n: given[n] for n in TOKENIZER_HPARAMS if n in given}
    labels = {n: f"{n} of {weights.path}" for n in own}
    labels |= {n: f"hparam {n}" for n in given}
    casing = resolve_casing(vocab_file, own | given, labels)
    return casing if own or read_casing(vocab_file) else {}


# What lies beside the weights.


def complete_folder(
    directory: str,
    hparams: Mapping[str, Any],
    vocab_file: str | None,
    assumed: Iterable[str] = (),
    heads: Mapping[str, TaskHead] | None = None,
) -> None:
    """Writes settings (with casing), vocabulary, digests beside weights."""
    path = os.path.join(directory, ELECTRA_CONFIG)
    write_atomically(path, format_config(hparams, assumed, heads))
    own = os.path.join(directory, vocab_name(vocab_file or ""))
    if vocab_file and os.path.abspath(vocab_file) != os.path.abspath(own):
        write_atomically(own, read_bytes(vocab_file))
        copy_settings(vocab_file, directory)
    write_digests(directory)


def format_config(
    hparams: Mapping[str, Any],
    assumed: Iterable[str] = (),
    heads: Mapping[str, TaskHead] | None = None,
) -> str:
    """Returns the file's contents; `assumed` names hparams that are guesses."""
    config, sizes = complete_hparams(hparams), encoder_config(hparams)
    told = EXPERIMENTS.keys() - without_derived(config.as_dict()).keys()
    kept = {
        n: hparams.get(n, getattr(config, n)) for n in _KEPT if n not in told
    }
    kept["embedding_size"] = config.embedding_size or sizes.hidden_size
    contents = {
        "format_version": FORMAT_VERSION,
        **dataclasses.asdict(sizes),
        **{name: kept[name] for name in ("embedding_size", *TOKENIZER_HPARAMS)},
        "hparams": kept,
    }
    if hparams.get("two_stage_steps"):  # Which weights mean something.
        contents["hparams"] |= {
            name: hparams[name] for name in SCHEDULE_HPARAMS
        }
    if assumed := sorted(assumed):
        contents["assumed"] = assumed
    if heads:
        contents["heads"] = {
            name: {k: v for k, v in vars(head).items() if v is not None}
            for name, head in heads.items()
        }
    return json.dumps(contents, indent=2) + "\n"


def find_best_checkpoint(run: str) -> str | None:
    """Return the checkpoint in a run's folder `best`, or None without one.

    Raises a UserError if the folder is there but not whole: the latest
    checkpoint is another model, and must not answer in its place.
    """
    from electra_tf.checkpoints import tf1

    folder = os.path.join(run, BEST)
    if not filesystem.is_directory(folder):
        return None
    if prefix := tf1.find_latest(folder):
        return prefix
    state = os.path.join(folder, tf1.STATE)
    named = [os.path.basename(path) for path in tf1.list_recorded(folder)[-1:]]
    what = f"{state} names {named[0]}, whose index" if named else state
    latest = tf1.find_latest(run)
    other = f", or pass the latest checkpoint, {latest}" if latest else ""
    raise UserError(
        f"{folder}: incomplete: {what} is missing. Copy the folder again,"
        " continue the run if it was stopped while it wrote this folder"
        f"{other}."
    )


def find_model_folder(path: str) -> str:
    """Where a checkpoint's model is described: for a run's best, the run's.

    `path`: its folder, or its prefix.
    """
    path = resolve_reference(path)
    folder = (
        path if filesystem.is_directory(path) else os.path.dirname(path) or "."
    )
    whole = folder if filesystem.is_remote(folder) else os.path.abspath(folder)
    parent, name = os.path.split(whole.rstrip("/"))
    described = any(
        filesystem.exists(os.path.join(folder, n)) for n in _CONFIGS
    )
    return parent if name == BEST and not described else folder


def read_electra_config(directory: str) -> dict[str, Any]:
    """Reads what a model's folder says about its sizes, as hparams.

    Besides `electra_config.json` that may be `bert_config.json` or a
    `config.json`, with the keys of BERT, bert4keras or Hugging Face, or of a
    run. Empty where there is none.
    """
    for name in _CONFIGS:
        path = os.path.join(directory, name)
        if not filesystem.exists(path):
            continue
        given = read_json(path)
        try:
            if name == ELECTRA_CONFIG and "hparams" in given:
                return _own_hparams(given)
            if "model_size" in given:  # a run's own file
                known = (*_KEPT, *SCHEDULE_HPARAMS)
                given = {n: v for n, v in given.items() if n in known}
                given = without_derived(given)
            else:
                given = _hparams_of_keys(given)
            return PretrainingConfig.clean_hparams(given)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error
    return {}


def _read_heads(folder: str) -> dict[str, TaskHead]:
    """What the heads of a converted fine-tuned model are, where it is told."""
    path = os.path.join(folder, ELECTRA_CONFIG)
    given = read_json(path).get("heads", {}) if filesystem.exists(path) else {}
    try:
        heads = {}
        for name, head in given.items():
            lists = {
                k: tuple(head[k]) for k in ("labels", "range") if k in head
            }
            heads[name] = TaskHead(**{**head, **lists})
        return heads
    except (AttributeError, KeyError, TypeError) as error:
        raise UserError(f"{path}: heads: {error!r}.") from error


def _hparams_of_keys(given: Mapping[str, Any]) -> dict[str, Any]:
    """Translates the size keys of BERT, bert4keras and Hugging Face."""
    if "hidden_size" not in given:
        return {}
    known = [field.name for field in dataclasses.fields(EncoderConfig)]
    known.remove("vocab_size")
    hidden = given["hidden_size"]
    hparams = {
        "model_size": nearest_size(hidden)[0],
        "model_hparam_overrides": {n: given[n] for n in known if n in given},
        "embedding_size": given.get("embedding_size") or hidden,
    }
    stated = {n: given.get(n) for n in ("vocab_size", *TOKENIZER_HPARAMS)}
    return hparams | {n: v for n, v in stated.items() if v is not None}


def _own_hparams(given: Mapping[str, Any]) -> dict[str, Any]:
    """Reads `electra_config.json`; what was guessed is guessed, told, again."""
    version, assumed = given.get("format_version"), given.get("assumed", [])
    if version != FORMAT_VERSION:
        raise UserError(
            f"format_version is {version!r}; this version of the program reads"
            f" {FORMAT_VERSION}. Update the program, or correct the file."
        )
    if not isinstance(given["hparams"], dict):
        raise UserError("hparams: expected a JSON object.")
    if not isinstance(assumed, list):
        raise UserError("assumed: expected a list of names.")
    hparams = PretrainingConfig.clean_hparams(given["hparams"])
    # Whoever edits one of the two statements must not be half obeyed.
    for name, value in json.loads(format_config(hparams)).items():
        if name != "hparams" and name in given and given[name] != value:
            raise UserError(
                f"{name} is {given[name]!r}, but `hparams` make it {value!r};"
                " change `hparams` accordingly."
            )
    kept = {n: v for n, v in hparams.items() if n not in assumed}
    if overrides := kept.get("model_hparam_overrides"):
        kept["model_hparam_overrides"] = {
            n: v for n, v in overrides.items() if n not in assumed
        }
    return kept
