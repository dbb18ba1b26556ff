# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The original's hparams as a Hugging Face folder's config.json."""

from collections.abc import Mapping
from typing import Any

from configure.errors import UserError
from electra_tf.checkpoints.huggingface_config import (
    LAYER_NORM_EPSILON,
    MARK,
    SETTINGS,
    SIZES,
    default_heads,
)
from electra_tf.checkpoints.huggingface_names import (
    LABELS,
    MASKED_LM,
    TAGGING,
    Part,
)


def setting(hparams: Mapping[str, Any], name: str) -> Any:
    """Looks a transformer setting up.

    Args:
      hparams: with `model_hparam_overrides`, or with the names themselves.
      name: such as "num_attention_heads".

    Returns:
      The value, None where it is not stated.
    """
    overrides = hparams.get("model_hparam_overrides") or {}
    if name == "num_attention_heads" and hparams.get("debug"):
        return 4  # the original's debug shape wins over the overrides
    return overrides.get(name, hparams.get(name))


def make_config(
    part: Part,
    sizes: Mapping[str, int],
    hparams: Mapping[str, Any],
    pad_token_id: int = 0,
) -> dict[str, Any]:
    """Describes a part as transformers wants it.

    Args:
      part: which architecture and scopes.
      sizes: by config.json's keys, heads apart; `LABELS` for a tagger.
      hparams: settings that shapes do not show; may be empty.
      pad_token_id: of the vocabulary.

    Returns:
      Contents of config.json.

    Raises:
      UserError: if the heads do not divide the hidden size.
    """
    hidden = sizes["hidden_size"]
    heads = default_heads(hidden)
    if part.encoder == "electra":
        heads = setting(hparams, "num_attention_heads") or heads
    if hidden % heads:
        raise UserError(
            f"The hidden size ({hidden}) is not a multiple of the number of"
            f" attention heads ({heads}); set num_attention_heads in"
            " model_hparam_overrides."
        )
    settings = {
        name: default
        if setting(hparams, name) is None
        else setting(hparams, name)
        for name, default in SETTINGS.items()
    }
    config = {
        "architectures": [part.architecture],
        "model_type": "electra",
        **{name: sizes[name] for name in SIZES if name in sizes},
        "num_attention_heads": heads,
        **settings,
        "layer_norm_eps": LAYER_NORM_EPSILON,
        "position_embedding_type": "absolute",
        "classifier_dropout": None,
        "summary_type": "first",
        "summary_use_proj": True,
        "summary_activation": "gelu",
        "summary_last_dropout": 0.1,
        "pad_token_id": pad_token_id,
        "tie_word_embeddings": True,
    }
    if part.architecture == TAGGING:
        labels = [f"LABEL_{i}" for i in range(sizes[LABELS])]
        config["id2label"] = dict(enumerate(labels))
        config["label2id"] = {label: i for i, label in enumerate(labels)}
    return config | {MARK: _mark(part)}


def _mark(part: Part) -> dict[str, Any]:
    mark: dict[str, Any] = {"version": 1}
    if part.architecture == MASKED_LM:
        mark |= {"encoder": part.encoder, "embeddings": part.embeddings}
    if part.task:
        mark["task"] = part.task
    return mark
