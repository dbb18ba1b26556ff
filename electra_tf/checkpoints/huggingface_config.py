# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of a Hugging Face folder beside its weights: config, tokenizer.

Their settings as the original's hparams, and the other way.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from configure.errors import UserError
from electra_tf.checkpoints.contents import default_heads, nearest_size
from electra_tf.checkpoints.huggingface_names import (
    LABELS,
    MASKED_LM,
    TAGGING,
    Network,
)
from electra_tf.text.tokenization import (
    CLS,
    MASK,
    PAD,
    SEP,
    SPECIAL_TOKENS,
    UNK,
    load_vocab,
)

CONFIG = "config.json"
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
TORCH = "pytorch_model.bin"
TORCH_INDEX = "pytorch_model.bin.index.json"
WEIGHT_FILES = (SINGLE, INDEX, TORCH, TORCH_INDEX)
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


def read_json(path: str) -> dict[str, Any]:
    """Reads a JSON object."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not readable as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object.")
    return value


def read_config(folder: str) -> dict[str, Any]:
    """Reads and checks a folder's config.json."""
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
    """Names settings that change the outputs and have no counterpart here."""
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
    """Hparams of a model whose encoder is this one."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    usual = {"max_position_embeddings": 512, "type_vocab_size": 2, **SETTINGS}
    values = {name: config[name] for name in usual}
    values["hidden_act"] = _ACTIVATIONS.get(config["hidden_act"], "gelu")
    overrides = {n: v for n, v in values.items() if v != usual[n]}
    name, size = nearest_size(hidden)
    if (hidden, layers) != (size.hidden_size, size.num_hidden_layers):
        name = "small"
        overrides |= {"hidden_size": hidden, "num_hidden_layers": layers}
    derived = _derived(hidden)
    overrides |= {n: config[n] for n, v in derived.items() if config[n] != v}
    return {
        "model_size": name,
        "vocab_size": config["vocab_size"],
        "embedding_size": config["embedding_size"],
        "model_hparam_overrides": overrides,
    }


def _derived(hidden_size: int) -> dict[str, int]:
    """Sizes that follow the hidden size unless they are given."""
    return {
        "num_attention_heads": default_heads(hidden_size),
        "intermediate_size": 4 * hidden_size,
    }


def generator_hparams(
    generator: Mapping[str, Any], discriminator: Mapping[str, Any]
) -> dict[str, Any]:
    """The generator's sizes as shares of the discriminator's."""
    return {
        hparam: generator[key] / discriminator[key]
        for hparam, key in (
            ("generator_hidden_size", "hidden_size"),
            ("generator_layers", "num_hidden_layers"),
        )
    }


def generator_notes(generator: Mapping[str, Any]) -> dict[str, str]:
    """Names what the original derives for a generator otherwise."""
    hidden = generator["hidden_size"]
    return {
        f"generator's config.json: {name}": (
            f"{generator[name]} there; the original derives {value} from"
            f" hidden size {hidden} and so does this project, so that"
            " outputs will differ"
        )
        for name, value in _derived(hidden).items()
        if generator[name] != value
    }


def differing_settings(
    generator: Mapping[str, Any], discriminator: Mapping[str, Any]
) -> dict[str, str]:
    """Names settings that are one for both networks here, but differ there."""
    return {
        f"generator's config.json: {name}": (
            f"{generator[name]} there; here the discriminator's"
            f" {discriminator[name]} serves both"
        )
        for name in ("max_position_embeddings", "type_vocab_size", *SETTINGS)
        if generator[name] != discriminator[name]
    }


def marked(config: Mapping[str, Any], key: str) -> str:
    """Reads back what only our own folders say; empty where it is not."""
    mark = config.get(MARK)
    value = mark.get(key) if isinstance(mark, dict) else None
    return value if isinstance(value, str) else ""


# The original's hparams as a Hugging Face folder's config.json.


def setting(hparams: Mapping[str, Any], name: str) -> Any:
    """Looks a transformer setting up; None where it is not stated."""
    overrides = hparams.get("model_hparam_overrides") or {}
    if name == "num_attention_heads" and hparams.get("debug"):
        return 4  # the original's debug shape wins over the overrides
    return overrides.get(name, hparams.get(name))


def make_config(
    network: Network,
    sizes: Mapping[str, int],
    hparams: Mapping[str, Any],
    pad_token_id: int = 0,
) -> dict[str, Any]:
    """Describes a network as transformers wants it."""
    hidden = sizes["hidden_size"]
    heads = default_heads(hidden)
    if network.encoder == "electra":
        heads = setting(hparams, "num_attention_heads") or heads
    if hidden % heads:
        raise UserError(
            f"The hidden size ({hidden}) is not a multiple of the number of"
            f" attention heads ({heads}); set num_attention_heads in"
            " model_hparam_overrides."
        )
    stated = {name: setting(hparams, name) for name in SETTINGS}
    stated = {name: v for name, v in stated.items() if v is not None}
    config = {
        "architectures": [network.architecture],
        "model_type": "electra",
        **{name: sizes[name] for name in SIZES if name in sizes},
        "num_attention_heads": heads,
        **{**SETTINGS, **stated},
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
    if network.architecture == TAGGING:
        labels = [f"LABEL_{i}" for i in range(sizes[LABELS])]
        config["id2label"] = dict(enumerate(labels))
        config["label2id"] = {label: i for i, label in enumerate(labels)}
    mark: dict[str, Any] = {"version": 1}
    if network.architecture == MASKED_LM:
        mark |= {"encoder": network.encoder, "embeddings": network.embeddings}
    if network.task:
        mark["task"] = network.task
    return config | {MARK: mark}


# Tokenizer files of a Hugging Face folder: our settings in its words.

VOCAB = "vocab.txt"
TOKENIZER_CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS_MAP = "special_tokens_map.json"
TOKENIZER = "tokenizer.json"

_NAMES = {
    "unk_token": UNK,
    "sep_token": SEP,
    "pad_token": PAD,
    "cls_token": CLS,
    "mask_token": MASK,
}
# Longer words become [UNK]. transformers' own default is 100.
_LONGEST_WORD = 200


def tokenizer_hparams(folder: str) -> dict[str, bool]:
    """Reads `do_lower_case` and `strip_accents`, where stated."""
    path = os.path.join(folder, TOKENIZER_CONFIG)
    if not os.path.isfile(path):
        return {}
    config = read_json(path)
    lower = config.get("do_lower_case", True)
    hparams = {"do_lower_case": bool(lower)}
    # Null there means: as lower-casing says.
    if lower and config.get("strip_accents") is False:
        hparams["strip_accents"] = False
    return hparams


def tokenizer_notes(folder: str) -> dict[str, str]:
    """Names what of a folder's tokenizer has no counterpart here."""
    notes = {}
    path = os.path.join(folder, TOKENIZER_CONFIG)
    config = read_json(path) if os.path.isfile(path) else {}
    if config.get("strip_accents") and config.get("do_lower_case") is False:
        notes[f"{TOKENIZER_CONFIG}: strip_accents"] = (
            "strips accents without lower-casing; here they stay"
        )
    if config.get("tokenize_chinese_chars") is False:
        notes[f"{TOKENIZER_CONFIG}: tokenize_chinese_chars"] = (
            "false there; here Chinese characters are always words"
        )
    if not os.path.isfile(os.path.join(folder, VOCAB)) and os.path.isfile(
        os.path.join(folder, TOKENIZER)
    ):
        notes[TOKENIZER] = (
            f"holds the vocabulary; there is no {VOCAB}. `write_vocab` of"
            " electra_tf.checkpoints.huggingface_config makes one"
        )
    return notes


def write_vocab(folder: str, path: str) -> None:
    """Writes the vocabulary that is only in tokenizer.json, one a line."""
    source = os.path.join(folder, TOKENIZER)
    model = read_json(source).get("model") or {}
    vocab = model.get("vocab")
    if not isinstance(vocab, dict) or model.get("type") != "WordPiece":
        raise UserError(f"{source}: no WordPiece vocabulary.")
    tokens = sorted(vocab, key=vocab.get)
    if [vocab[token] for token in tokens] != list(range(len(tokens))):
        raise UserError(f"{source}: the vocabulary's ids have gaps.")
    try:
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{token}\n" for token in tokens)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error}.") from error


def read_vocabulary(vocab_file: str, vocab_size: int) -> dict[str, int]:
    """Reads a vocabulary to be shipped with a model."""
    vocab = load_vocab(vocab_file)
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing:
        raise UserError(f"{vocab_file} lacks {', '.join(missing)}.")
    needed = max(vocab.values()) + 1
    if needed > vocab_size:
        raise UserError(
            f"{vocab_file} has {needed} lines but the model's token table"
            f" {vocab_size} rows; give the vocabulary it was trained with."
        )
    return vocab


def tokenizer_files(
    vocab: Mapping[str, int], hparams: Mapping[str, Any], positions: int
) -> dict[str, dict[str, Any]]:
    """Makes the JSON files."""
    lower = bool(hparams.get("do_lower_case", True))
    strip = lower and bool(hparams.get("strip_accents", True))
    config = {
        "tokenizer_class": "ElectraTokenizer",
        "do_lower_case": lower,
        "strip_accents": strip,
        "tokenize_chinese_chars": True,
        "model_max_length": positions,
        **_NAMES,
    }
    return {
        TOKENIZER_CONFIG: config,
        SPECIAL_TOKENS_MAP: dict(_NAMES),
        TOKENIZER: _fast_tokenizer(vocab, lower, strip),
    }


def _fast_tokenizer(
    vocab: Mapping[str, int], lower: bool, strip: bool
) -> dict[str, Any]:
    """The `tokenizers` library's description of BERT's way to split text."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": vocab[token],
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token in sorted(SPECIAL_TOKENS, key=vocab.__getitem__)
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": strip,
            "lowercase": lower,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _post_processor(vocab),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": UNK,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": _LONGEST_WORD,
            "vocab": dict(vocab),
        },
    }


def _post_processor(vocab: Mapping[str, int]) -> dict[str, Any]:
    """[CLS] A [SEP], and [CLS] A [SEP] B [SEP]."""

    def token(name: str, segment: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": segment}}

    def text(name: str, segment: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": segment}}

    single = [token(CLS, 0), text("A", 0), token(SEP, 0)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, text("B", 1), token(SEP, 1)],
        "special_tokens": {
            name: {"id": name, "ids": [vocab[name]], "tokens": [name]}
            for name in (CLS, SEP)
        },
    }
