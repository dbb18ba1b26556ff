# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`electra_config.json`: a model's sizes and its tokenizer, beside the weights.

Weights without their sizes have to be guessed at. The file states them twice:
as hparams that rebuild the model, and under the names that BERT, bert4keras
and Hugging Face use, for programs that know those.
"""

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from configure.config import parse_json
from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf import files
from electra_tf.checkpoints.contents import (
    MODEL_HPARAMS,
    as_config,
    encoder_config,
    nearest_size,
)
from electra_tf.modeling.encoder_config import EncoderConfig

FILE_NAME = "electra_config.json"
VOCAB_FILE = "vocab.txt"
FORMAT_VERSION = 1

# Beyond the sizes: what text and scores need to mean the same.
_KEPT = (
    *MODEL_HPARAMS,
    "do_lower_case",
    "strip_accents",
    "mask_prob",
)
_SIZE_KEYS = tuple(
    field.name
    for field in dataclasses.fields(EncoderConfig)
    if field.name != "vocab_size"
)
# Where another program, or a run, may have left the sizes; first come.
_FILES = (FILE_NAME, "bert_config.json", "config.json")


def write_electra_config(
    directory: str, hparams: Mapping[str, Any], assumed: Iterable[str] = ()
) -> str:
    """Writes the file, replacing an older one."""
    path = os.path.join(directory, FILE_NAME)
    files.write_atomically(path, config_text(hparams, assumed))
    return path


def config_text(hparams: Mapping[str, Any], assumed: Iterable[str] = ()) -> str:
    """Returns the file's contents for hparams; see `write_electra_config`."""
    kept = {name: hparams[name] for name in _KEPT if name in hparams}
    config = as_config(kept)
    defaults = PretrainingConfig.default_hparams()
    tokenizer = {
        name: kept.setdefault(name, defaults[name])
        for name in ("do_lower_case", "strip_accents")
    }
    kept["embedding_size"] = _embedding_size(kept)
    sizes = dataclasses.asdict(encoder_config(kept))
    contents = {
        "format_version": FORMAT_VERSION,
        **sizes,
        "embedding_size": kept["embedding_size"],
        **tokenizer,
        "hparams": {
            name: kept.get(name, getattr(config, name, None)) for name in _KEPT
        },
    }
    if assumed := sorted(assumed):
        contents["assumed"] = assumed
    return json.dumps(contents, indent=2, sort_keys=False) + "\n"


def read_electra_config(directory: str) -> dict[str, Any]:
    """Reads what a model's folder says about its sizes, as hparams.

    Besides `electra_config.json` that may be `bert_config.json` or a
    `config.json`, with the keys of BERT, bert4keras or Hugging Face, or of a
    run. Empty where there is none.
    """
    for name in _FILES:
        path = os.path.join(directory, name)
        if files.exists(path):
            return _parse(path, name == FILE_NAME)
    return {}


def _hparams_of_keys(given: Mapping[str, Any]) -> dict[str, Any]:
    """Translates the size keys of BERT, bert4keras and Hugging Face."""
    if "hidden_size" not in given:
        return {}
    overrides = {k: given[k] for k in _SIZE_KEYS if k in given}
    hparams: dict[str, Any] = {
        "model_size": nearest_size(overrides["hidden_size"])[0]
    }
    width = given.get("embedding_size") or given["hidden_size"]
    hparams |= {"model_hparam_overrides": overrides, "embedding_size": width}
    for name in ("vocab_size", "do_lower_case", "strip_accents"):
        if given.get(name) is not None:
            hparams[name] = given[name]
    return PretrainingConfig.clean_hparams(hparams)


def _parse(path: str, is_ours: bool) -> dict[str, Any]:
    given = parse_json(files.read_text(path), path)
    try:
        if is_ours and "hparams" in given:
            return _parse_ours(given)
        if "model_size" in given:  # a run's own file
            kept = {n: v for n, v in given.items() if n in _KEPT}
            return PretrainingConfig.clean_hparams(kept)
        return _hparams_of_keys(given)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _parse_ours(given: Mapping[str, Any]) -> dict[str, Any]:
    version = given.get("format_version")
    if version != FORMAT_VERSION:
        raise UserError(
            f"format_version is {version!r}; this version of the program reads"
            f" {FORMAT_VERSION}. Update the program, or correct the file."
        )
    if not isinstance(given["hparams"], dict):
        raise UserError("hparams: expected a JSON object.")
    hparams = PretrainingConfig.clean_hparams(given["hparams"])
    # Whoever edits one of the two statements must not be half obeyed.
    for name, value in json.loads(config_text(hparams)).items():
        if name != "hparams" and name in given and given[name] != value:
            raise UserError(
                f"{name} is {given[name]!r}, but `hparams` make it {value!r};"
                " change `hparams` accordingly."
            )
    return _without_guesses(hparams, given.get("assumed", []))


def _without_guesses(hparams: dict[str, Any], assumed: Any) -> dict[str, Any]:
    """Leaves out what was guessed, so that it is guessed, and told, again."""
    if not isinstance(assumed, list):
        raise UserError("assumed: expected a list of names.")
    overrides = hparams.get("model_hparam_overrides") or {}
    kept = {n: v for n, v in hparams.items() if n not in assumed}
    if "model_hparam_overrides" in kept:
        kept["model_hparam_overrides"] = {
            n: v for n, v in overrides.items() if n not in assumed
        }
    return kept


def unseen_differences(
    stored: Mapping[str, Any], given: Mapping[str, Any]
) -> list[str]:
    """Compares what changes the outputs but does not show in shapes."""
    if not stored:
        return []
    old, new = encoder_config(stored), encoder_config(given)
    pairs = [
        (name, getattr(old, name), getattr(new, name))
        for name in ("num_attention_heads", "hidden_act")
    ]
    pairs += [
        (name, stored[name], given[name])
        for name in ("do_lower_case", "strip_accents")
        if name in stored and name in given
    ]
    return [
        f"{name}: {a} beside the checkpoint, {b} here"
        for name, a, b in pairs
        if a != b
    ]


def _embedding_size(hparams: Mapping[str, Any]) -> int:
    width = as_config(hparams).embedding_size
    return width or encoder_config(hparams).hidden_size
