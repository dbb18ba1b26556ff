# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of the Hugging Face hub by name: `hf:OWNER/NAME[@REVISION]`.

`huggingface_hub` (extra `hub`) downloads them. Its cache, its settings
(HF_HOME, HF_ENDPOINT, HF_TOKEN) and its offline switch (HF_HUB_OFFLINE) apply.
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

PREFIX = "hf:"
_MODEL = re.compile(r"hf:([\w.-]+/[\w.-]+)(?:@([^@\s]+))?", re.ASCII)
# What this project reads of a folder besides the weights.
_DESCRIPTIONS = (
    layout.CONFIG,
    layout.VOCAB,
    TOKENIZER,
    TOKENIZER_CONFIG,
    SPECIAL_TOKENS_MAP,
    ADDED_TOKENS,
    "electra_config.json",
    DIGESTS_FILE,
)
_SECONDS = 20  # that an answer of the hub may take
_logger = logging.getLogger(__name__)


@functools.cache
def fetch(name: str) -> str:
    """Returns the local folder of a model of the hub, downloaded if need be.

    Only files that this project reads are downloaded: descriptions, tokenizer
    files and one form of the weights. If the hub cannot be reached, a copy in
    the cache is used, and a warning logged.
    """
    match = _MODEL.fullmatch(name)
    if not match:
        raise UserError(
            f"{name}: expected {PREFIX}OWNER/NAME or"
            f" {PREFIX}OWNER/NAME@REVISION, such as"
            " hf:google/electra-small-discriminator."
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
            " HF_HUB_OFFLINE is set. Unset HF_HUB_OFFLINE to download it."
        )
    try:
        return _download(name, repository, revision)
    except UserError:
        raise
    except Exception as error:
        return _copy_or_error(name, repository, revision, error)


def hub_hint(path: str) -> str:
    """Returns a sentence for a missing path that may name a model of the hub.

    transformers takes OWNER/NAME, here it is a path; empty for other paths.
    """
    name = PREFIX + path
    if not _MODEL.fullmatch(name) or filesystem.exists(os.path.dirname(path)):
        return ""
    return f" For the model of the Hugging Face hub, pass {name}."


def model_name(path: str) -> str:
    """Returns the name of the model in a folder: NAME for one of the cache."""
    path = os.path.abspath(path)
    found = re.search(r"models--.+?--([^/]+)/snapshots/[^/]+$", path)
    return found[1] if found else os.path.basename(path)


def _download(name: str, repository: str, revision: str | None) -> str:
    from huggingface_hub import HfApi, snapshot_download

    api = HfApi()
    info = api.model_info(repository, revision=revision, timeout=_SECONDS)
    held = [sibling.rfilename for sibling in info.siblings or ()]
    wanted = _wanted(held)
    if not any(os.path.basename(n) in layout.WEIGHT_FILES for n in wanted):
        raise UserError(
            f"{name}: no weights that can be read (it has"
            f" {', '.join(sorted(held)[:8]) or 'no files'}); expected"
            f" {layout.SINGLE} or {layout.TORCH}. Choose another model, or save"
            f" it as {layout.SINGLE}."
        )
    return snapshot_download(
        repository, revision=revision, allow_patterns=wanted
    )


def _wanted(held: Sequence[str]) -> list[str]:
    """Returns the files to download: of a folder, else of its two networks."""
    parts = [""] if layout.CONFIG in held else [f"{n}/" for n in layout.FOLDERS]
    wanted: list[str] = []
    for part in parts:
        own = [n.removeprefix(part) for n in held if n.startswith(part)]
        wanted += [part + n for n in own if n in _DESCRIPTIONS]
        weights = next((n for n in layout.WEIGHT_FILES if n in own), "")
        if weights:
            wanted.append(part + weights)
        if weights.endswith(".index.json"):
            stem, _, end = weights.removesuffix(".index.json").rpartition(".")
            shard = re.compile(rf"{stem}-\d+-of-\d+\.{end}")
            wanted += [part + n for n in own if shard.fullmatch(n)]
    return wanted


def _cached(repository: str, revision: str | None) -> str | None:
    """Returns the cached folder; None where there is no usable copy."""
    from huggingface_hub import try_to_load_from_cache

    configs = [layout.CONFIG, *(f"{n}/{layout.CONFIG}" for n in layout.FOLDERS)]
    for config in configs:
        path = try_to_load_from_cache(repository, config, revision=revision)
        if isinstance(path, str):
            folder = path.removesuffix(config).rstrip("/")
            break
    else:
        return None
    held = [
        os.path.relpath(os.path.join(place, name), folder)
        for place, _, names in os.walk(folder)
        for name in names
    ]
    named = {os.path.basename(name) for name in _wanted(held)}
    return folder if named & {*layout.WEIGHT_FILES} else None


def _copy_or_error(
    name: str, repository: str, revision: str | None, error: Exception
) -> str:
    """Returns the cached folder if the hub is out of reach, else raises."""
    from huggingface_hub import constants, errors

    log_in = "log in with `hf auth login`, or set HF_TOKEN"
    if isinstance(error, errors.GatedRepoError):
        problem = (
            "access is restricted. Accept its terms at"
            f" {constants.ENDPOINT}/{repository} and {log_in}."
        )
    elif isinstance(error, errors.RepositoryNotFoundError):
        problem = (
            "the hub has no such model, or it is private. Check the spelling;"
            f" for a private model {log_in}."
        )
    elif isinstance(error, errors.RevisionNotFoundError):
        problem = (
            f"the model has no revision {revision!r}. Pass a branch, a tag or a"
            f" commit, or leave @{revision} out."
        )
    elif isinstance(error, errors.HFValidationError):
        problem = f"not a name of the hub ({_first_line(error)}). Correct it."
    else:
        what = f"{type(error).__name__}: {_first_line(error)}"
        if folder := _cached(repository, revision):
            _logger.warning(
                "%s: the hub cannot be reached (%s); the copy in the cache is"
                " used: %s",
                *(name, what, folder),
            )
            return folder
        problem = (
            f"the hub ({constants.ENDPOINT}) cannot be reached ({what}), and"
            f" the cache ({constants.HF_HUB_CACHE}) has no copy. Check the"
            " connection, or download the folder and pass its path."
        )
    raise UserError(f"{name}: {problem}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no message"
