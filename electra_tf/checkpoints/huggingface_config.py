# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face folder's config.json as the original's hparams."""

import os
from collections.abc import Mapping
from typing import Any

from configure.errors import UserError
from electra_tf.checkpoints.stored_tensors import read_json

CONFIG = "config.json"
# What we add to config.json: facts that its own keys cannot say.
MARK = "electra_tf"

# Defaults of transformers' ElectraConfig; a saved file states all of them.
SIZES = {
    "vocab_size": 30522,
    "embedding_size": 128,
    "hidden_size": 256,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}
SETTINGS = {
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "initializer_range": 0.02,
}
LAYER_NORM_EPSILON = 1e-12
_ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **{name: name for name in ("relu", "tanh", "linear")},
}
_NEAR_GELU = ("gelu_new", "gelu_fast", "gelu_pytorch_tanh")
_MODEL_SIZES = {
    (256, 12): "small",
    (768, 12): "base",
    (1024, 24): "large",
}


def read_config(folder: str) -> dict[str, Any]:
    """Reads and checks a folder's config.json.

    Args:
      folder: of one model.

    Returns:
      Its contents; sizes and settings that it leaves out are filled in as
      transformers does.

    Raises:
      UserError: if it is missing, is of another model or cannot be one of the
        original's.
    """
    path = os.path.join(folder, CONFIG)
    if not os.path.isfile(path):
        raise UserError(
            f"{folder}: no {CONFIG}. It states the model's sizes and belongs"
            " to the weights; download the whole folder."
        )
    given = read_json(path)
    if given.get("model_type") != "electra":
        raise UserError(
            f"{path}: model_type is {given.get('model_type')!r}; expected"
            " 'electra'."
        )
    config = {**SIZES, **SETTINGS, **given}
    for name in SIZES:
        value = config[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(
                f"{path}: {name} is {value!r}; expected a number above 0."
            )
    if config["hidden_size"] % config["num_attention_heads"]:
        raise UserError(
            f"{path}: hidden_size {config['hidden_size']} is not a multiple of"
            f" num_attention_heads {config['num_attention_heads']}."
        )
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise UserError(
            f"{path}: position_embedding_type is"
            f" {config['position_embedding_type']!r}; the original has"
            " 'absolute' only."
        )
    if config["hidden_act"] not in (*_ACTIVATIONS, *_NEAR_GELU):
        raise UserError(
            f"{path}: hidden_act is {config['hidden_act']!r}; expected one of"
            f" {', '.join(_ACTIVATIONS)}."
        )
    return config


def config_notes(config: Mapping[str, Any]) -> dict[str, str]:
    """Names settings that change the outputs and have no counterpart here.

    Args:
      config: from `read_config`.

    Returns:
      What is done instead, by setting.
    """
    notes = {}
    epsilon = config.get("layer_norm_eps", LAYER_NORM_EPSILON)
    if epsilon != LAYER_NORM_EPSILON:
        notes["config.json: layer_norm_eps"] = (
            f"{epsilon} there, always {LAYER_NORM_EPSILON} here; outputs will"
            " differ"
        )
    if config["hidden_act"] in _NEAR_GELU:
        notes["config.json: hidden_act"] = (
            f"{config['hidden_act']} there, the exact gelu here; outputs will"
            " differ by some 1e-3"
        )
    if config.get("is_decoder"):
        notes["config.json: is_decoder"] = (
            "attention to the left only there, in both directions here"
        )
    return notes


def encoder_hparams(config: Mapping[str, Any]) -> dict[str, Any]:
    """Hparams of a model whose encoder is this one.

    Args:
      config: of a discriminator, a bare encoder or a masked LM.

    Returns:
      `PretrainingConfig`'s names and values.
    """
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    overrides = table_overrides(config)
    size = _MODEL_SIZES.get((hidden, layers))
    if size is None:
        overrides |= {"hidden_size": hidden, "num_hidden_layers": layers}
    derived = {
        "num_attention_heads": default_heads(hidden),
        "intermediate_size": 4 * hidden,
    }
    overrides |= {n: config[n] for n, v in derived.items() if config[n] != v}
    return {
        "model_size": size or "small",
        "vocab_size": config["vocab_size"],
        "embedding_size": config["embedding_size"],
        "model_hparam_overrides": overrides,
    }


def table_overrides(config: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides that generator and discriminator have in common.

    Args:
      config: of either.

    Returns:
      Contents for `model_hparam_overrides`.
    """
    usual = {"max_position_embeddings": 512, "type_vocab_size": 2, **SETTINGS}
    values = {name: config[name] for name in usual}
    values["hidden_act"] = _ACTIVATIONS.get(config["hidden_act"], "gelu")
    return {n: v for n, v in values.items() if v != usual[n]}


def generator_hparams(
    generator: Mapping[str, Any], discriminator: Mapping[str, Any]
) -> dict[str, Any]:
    """The generator's sizes as shares of the discriminator's.

    Args:
      generator: its config.
      discriminator: the other's.

    Returns:
      `generator_hidden_size` and `generator_layers`.
    """
    shares = {
        "generator_hidden_size": "hidden_size",
        "generator_layers": "num_hidden_layers",
    }
    return {
        hparam: generator[key] / discriminator[key]
        for hparam, key in shares.items()
    }


def generator_notes(generator: Mapping[str, Any]) -> dict[str, str]:
    """Names what the original derives for a generator otherwise.

    Args:
      generator: its config.

    Returns:
      What is done instead, by setting.
    """
    hidden, notes = generator["hidden_size"], {}
    derived = {
        "num_attention_heads": default_heads(hidden),
        "intermediate_size": 4 * hidden,
    }
    for name, value in derived.items():
        if generator[name] != value:
            notes[f"generator's config.json: {name}"] = (
                f"{generator[name]} there; the original derives {value} from"
                f" hidden size {hidden} and so does this project, so that"
                " outputs will differ"
            )
    return notes


def differing_settings(
    generator: Mapping[str, Any], discriminator: Mapping[str, Any]
) -> dict[str, str]:
    """Names settings that are one for both networks here, but differ there.

    Args:
      generator: its config.
      discriminator: the other's.

    Returns:
      What is done instead, by setting.
    """
    return {
        f"generator's config.json: {name}": (
            f"{generator[name]} there; here the discriminator's"
            f" {discriminator[name]} serves both"
        )
        for name in ("max_position_embeddings", "type_vocab_size", *SETTINGS)
        if generator[name] != discriminator[name]
    }


def default_heads(hidden_size: int) -> int:
    """Attention heads that the original derives from a hidden size.

    Args:
      hidden_size: width of the encoder.

    Returns:
      One for every 64 units, at least one.

    Source: google-research/electra, run_pretraining.py, get_generator_config.
    """
    return max(1, hidden_size // 64)


def marked(config: Mapping[str, Any], key: str) -> str:
    """Reads back what only our own folders say.

    Args:
      config: of a folder.
      key: "encoder", "embeddings" or "task".

    Returns:
      The value; empty where there is none.
    """
    mark = config.get(MARK)
    value = mark.get(key) if isinstance(mark, dict) else None
    return value if isinstance(value, str) else ""
