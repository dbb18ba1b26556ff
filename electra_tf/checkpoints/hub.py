# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of the Hugging Face hub by name: `hf:OWNER/NAME[@REVISION]`.

The package `huggingface_hub` (extra `hub`) downloads the models. The cache and
the environment variables of the package (HF_HOME, HF_ENDPOINT, HF_TOKEN,
HF_HUB_OFFLINE) apply.
"""

import functools
import logging
import os
import re
from collections.abc import Sequence

from configure.errors import UserError, missing_extra
from electra_tf.checkpoints import huggingface_layout as layout
from electra_tf.files import filesystem
from electra_tf.files.digests import DIGESTS_FILE
from electra_tf.text.huggingface_tokens import (
    ADDED_TOKENS,
    SPECIAL_TOKENS_MAP,
    TOKENIZER,
)
from electra_tf.text.tokenizer_settings import TOKENIZER_CONFIG

PREFIX = layout.HUB_PREFIX
_MODEL = re.compile(r"hf:([\w.-]+/[\w.-]+)(?:@([^@\s]+))?", re.ASCII)
# Files that this project reads in addition to the weights.
_DESCRIPTION_FILES = (
    layout.CONFIG,
    layout.VOCAB,
    TOKENIZER,
    TOKENIZER_CONFIG,
    SPECIAL_TOKENS_MAP,
    ADDED_TOKENS,
    "electra_config.json",
    DIGESTS_FILE,
)
_TIMEOUT = 20  # seconds to wait for an answer from the hub
_logger = logging.getLogger(__name__)


@functools.cache
def fetch(name: str) -> str:
    """Return the local folder of a hub model; download missing files.

    Only files that this project reads are downloaded: configs, tokenizer files
    and one format of the weights. If the hub cannot be reached, a copy in the
    cache is used, and a warning is logged.

    Raises:
      UserError: the name is malformed, or the hub has no such model, or neither
        the hub nor the cache can provide the model.
    """
    match = _MODEL.fullmatch(name)
    if not match:
        raise UserError(
            f"{name}: not the name of a model on the hub; expected"
            f" {PREFIX}OWNER/NAME or {PREFIX}OWNER/NAME@REVISION. Pass a name"
            " such as hf:google/electra-small-discriminator."
        )
    try:
        from huggingface_hub import constants
    except ImportError as error:
        raise missing_extra(f"{name}: huggingface_hub", "hub", error) from error
    repository, revision = match.groups()
    if constants.HF_HUB_OFFLINE:
        if folder := _cached(repository, revision):
            return folder
        raise UserError(
            f"{name}: not in the cache ({constants.HF_HUB_CACHE}), and"
            " HF_HUB_OFFLINE is set. Unset HF_HUB_OFFLINE to download the"
            " model."
        )
    try:
        return _download(name, repository, revision)
    except UserError:
        raise
    except Exception as error:
        return _copy_or_error(name, repository, revision, error)


def hub_hint(path: str) -> str:
    """Return a hint for a missing path that could name a model of the hub.

    OWNER/NAME is a model in transformers, but a path in this project. For other
    paths the hint is empty.
    """
    name = PREFIX + path
    if not _MODEL.fullmatch(name) or filesystem.exists(os.path.dirname(path)):
        return ""
    return f" To use this model of the Hugging Face hub, pass {name}."


def model_name(path: str) -> str:
    """Return the name of the model in a folder, which can be in the cache."""
    path = os.path.abspath(path)
    match = re.search(r"models--.+?--([^/]+)/snapshots/[^/]+$", path)
    return match[1] if match else os.path.basename(path)


def _download(name: str, repository: str, revision: str | None) -> str:
    from huggingface_hub import HfApi, snapshot_download

    api = HfApi()
    info = api.model_info(repository, revision=revision, timeout=_TIMEOUT)
    available = [sibling.rfilename for sibling in info.siblings or ()]
    needed = _files_to_read(available)
    if not any(os.path.basename(n) in layout.WEIGHT_FILES for n in needed):
        raise UserError(
            f"{name}: no weights in a readable format (available:"
            f" {', '.join(sorted(available)[:8]) or 'no files'}); expected"
            f" {layout.SINGLE} or {layout.TORCH}. Choose a different model, or"
            f" save the model as {layout.SINGLE}."
        )
    return snapshot_download(
        repository, revision=revision, allow_patterns=needed
    )


def _files_to_read(available: Sequence[str]) -> list[str]:
    """Return the available files that this project reads."""
    prefixes = [""]
    if layout.CONFIG not in available:
        prefixes = [f"{name}/" for name in layout.FOLDERS]
    needed: list[str] = []
    for prefix in prefixes:
        names = [
            path.removeprefix(prefix)
            for path in available
            if path.startswith(prefix)
        ]
        needed += [prefix + n for n in names if n in _DESCRIPTION_FILES]
        weights = next((n for n in layout.WEIGHT_FILES if n in names), "")
        if weights:
            needed.append(prefix + weights)
        if weights.endswith(".index.json"):
            stem, _, end = weights.removesuffix(".index.json").rpartition(".")
            shard = re.compile(rf"{stem}-\d+-of-\d+\.{end}")
            needed += [prefix + n for n in names if shard.fullmatch(n)]
    return needed


def _cached(repository: str, revision: str | None) -> str | None:
    """Return a model's folder in the cache; None without a usable copy."""
    from huggingface_hub import try_to_load_from_cache

    configs = [layout.CONFIG, *(f"{n}/{layout.CONFIG}" for n in layout.FOLDERS)]
    for config in configs:
        path = try_to_load_from_cache(repository, config, revision=revision)
        if isinstance(path, str):
            folder = path.removesuffix(config).rstrip("/")
            break
    else:
        return None
    available = [
        os.path.relpath(os.path.join(directory, name), folder)
        for directory, _, names in os.walk(folder)
        for name in names
    ]
    needed = {os.path.basename(path) for path in _files_to_read(available)}
    return folder if needed & {*layout.WEIGHT_FILES} else None


def _copy_or_error(
    name: str, repository: str, revision: str | None, error: Exception
) -> str:
    """Return the model's folder in the cache if the hub is unreachable.

    Raises:
      UserError: the cache has no copy, or the hub refuses the request.
    """
    from huggingface_hub import constants, errors

    log_in = "log in with `hf auth login` or set HF_TOKEN"
    if isinstance(error, errors.GatedRepoError):
        problem = (
            "access to the model is restricted. Accept the terms at"
            f" {constants.ENDPOINT}/{repository}, and then {log_in}."
        )
    elif isinstance(error, errors.RepositoryNotFoundError):
        problem = (
            "the hub has no such model, or the model is private. Correct the"
            f" spelling, or {log_in} to read a private model."
        )
    elif isinstance(error, errors.RevisionNotFoundError):
        problem = (
            f"the model has no revision {revision!r}. Pass a branch, a tag or a"
            f" commit, or remove @{revision}."
        )
    elif isinstance(error, errors.HFValidationError):
        problem = (
            f"not the name of a model on the hub ({_first_line(error)})."
            " Correct the spelling."
        )
    else:
        cause = f"{type(error).__name__}: {_first_line(error)}"
        if folder := _cached(repository, revision):
            _logger.warning(
                "%s: the hub cannot be reached (%s); using the copy in the"
                " cache: %s",
                name,
                cause,
                folder,
            )
            return folder
        problem = (
            f"the hub ({constants.ENDPOINT}) cannot be reached ({cause}), and"
            f" the cache ({constants.HF_HUB_CACHE}) has no copy of the model."
            " Check the connection, or download the folder and pass its path."
        )
    raise UserError(f"{name}: {problem}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no message"
