# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face ELECTRA folders, without PyTorch and without transformers.

transformers keeps one network in a folder, with `config.json`,
`model.safetensors` and tokenizer files. A pre-trained ELECTRA is two of them;
here a folder that holds both as `discriminator/` and `generator/` is read and
written as a whole.
"""

import os
from typing import Any

import numpy as np

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_config as configs
from electra_tf.checkpoints import huggingface_names as names
from electra_tf.checkpoints.huggingface_folder import (
    Folder,
    Source,
    equal_tensors,
)
from electra_tf.checkpoints.huggingface_names import Part
from electra_tf.checkpoints.huggingface_parts import what_part
from electra_tf.checkpoints.huggingface_writer import (
    WriteReport,
    write_huggingface,
)
from electra_tf.checkpoints.stored_tensors import WEIGHT_FILES
from electra_tf.checkpoints.weights import TensorSpec, Weights

__all__ = [
    "WriteReport",
    "is_huggingface",
    "open_huggingface",
    "what_part",
    "write_huggingface",
]

_PARTS = ("discriminator", "generator")


def is_huggingface(folder: str) -> bool:
    """Whether a folder looks like one that transformers saved.

    Args:
      folder: any path.

    Returns:
      True where weights or a config are under the names transformers uses,
      there or in `discriminator/` or `generator/`; what they hold is not
      looked at.
    """
    return _is_one(folder) or bool(_subfolders(folder))


def open_huggingface(folder: str) -> Weights:
    """Opens a model that transformers or `write_huggingface` saved.

    Args:
      folder: of a discriminator, a generator, a bare encoder, a tagger or a
        question answerer; or one that holds `discriminator/` and `generator/`.
        A file in it will do as well.

    Returns:
      Its tensors under the original's names. A generator's encoder is
      "generator/...", unless the folder says that it was saved from a model
      whose only network is "electra/...".

    Raises:
      UserError: if something is missing, damaged or contradictory, or
        generator and discriminator are not of one model.
    """
    if os.path.isfile(folder):
        folder = os.path.dirname(folder) or "."
    if not os.path.isdir(folder):
        raise UserError(f"{folder}: no such folder.")
    if _is_one(folder):
        return _HuggingFaceWeights.of_one(Folder(folder))
    found = _subfolders(folder)
    if not found:
        raise UserError(
            f"{folder}: no {configs.CONFIG} and no weights, neither here nor in"
            " discriminator/ or generator/."
        )
    parts = {part: Folder(os.path.join(folder, part)) for part in found}
    for name, architecture in zip(
        _PARTS, (names.PRETRAINING, names.MASKED_LM), strict=True
    ):
        if name in parts and parts[name].part.architecture != architecture:
            raise UserError(
                f"{parts[name].path} holds {parts[name].part.architecture};"
                f" expected the {name}, {architecture}."
            )
    if len(parts) == 1:
        return _HuggingFaceWeights.of_one(*parts.values())
    return _joined(folder, *(parts[name] for name in _PARTS))


class _HuggingFaceWeights(Weights):
    """Reads variables from one or two folders."""

    def __init__(
        self,
        path: str,
        sources: dict[str, Source],
        dropped: dict[str, str],
        hparams: dict[str, Any],
        vocab_file: str | None,
    ) -> None:
        float32 = np.dtype(np.float32)
        specs = {n: TensorSpec(s.shape, float32) for n, s in sources.items()}
        super().__init__(
            path, "huggingface", specs, dropped, hparams, vocab_file
        )
        self._sources = sources

    @classmethod
    def of_one(cls, folder: Folder) -> "_HuggingFaceWeights":
        """The weights of a single folder."""
        dropped = folder.dropped()
        if folder.part.encoder == "generator":
            dropped |= configs.generator_notes(folder.config)
        return cls(
            folder.path,
            folder.sources(),
            dropped,
            folder.hparams(),
            folder.vocab_file,
        )

    def read(self, name: str) -> np.ndarray:
        """See the base class."""
        return self._sources[name].read()


def _joined(
    path: str, discriminator: Folder, generator: Folder
) -> _HuggingFaceWeights:
    """The two networks of a pre-trained model, as the one that they were."""
    part = _generator_part(path, discriminator, generator)
    dropped = {
        f"{name}/{key}": reason
        for name, folder in zip(_PARTS, (discriminator, generator), strict=True)
        for key, reason in folder.dropped().items()
    }
    hparams = discriminator.hparams()
    if part.encoder == "electra":
        hparams["untied_generator"] = False
    else:
        hparams |= configs.generator_hparams(
            generator.config, discriminator.config
        )
        dropped |= configs.generator_notes(generator.config)
    if part.embeddings == "generator":
        hparams["untied_generator_embeddings"] = True
    dropped |= configs.differing_settings(
        generator.config, discriminator.config
    )
    return _HuggingFaceWeights(
        path,
        discriminator.sources() | generator.sources(part),
        dropped,
        hparams,
        discriminator.vocab_file or generator.vocab_file,
    )


def _generator_part(
    path: str, discriminator: Folder, generator: Folder
) -> Part:
    """Finds out what the generator shares with the discriminator."""
    tables = names.embedding_pairs("electra")
    width, hidden = (
        generator.config[key] for key in ("embedding_size", "hidden_size")
    )
    own = Part(names.MASKED_LM, "generator", "generator")
    if generator.part == own and width == hidden:
        return own
    equal, differing = equal_tensors(discriminator, generator, tables)
    if not equal:
        if width == hidden:
            return own
        raise UserError(
            f"{path}: {differing} of discriminator/ and generator/ differ, but"
            " in the original a generator either has the discriminator's"
            f" tables or its own, as wide as its hidden size ({hidden}, not"
            f" {width}). They are not of one model; read one part alone:"
            f" {os.path.join(path, 'discriminator')} or"
            f" {os.path.join(path, 'generator')}."
        )
    encoder = names.encoder_pairs(
        "electra",
        max(f.config["num_hidden_layers"] for f in (discriminator, generator)),
        width != hidden,
    )
    tied, _ = equal_tensors(discriminator, generator, encoder)
    return Part(names.MASKED_LM, "electra" if tied else "generator", "electra")


def _is_one(folder: str) -> bool:
    """Whether the folder itself has a model's files."""
    wanted = (configs.CONFIG, *WEIGHT_FILES)
    return any(os.path.isfile(os.path.join(folder, n)) for n in wanted)


def _subfolders(folder: str) -> list[str]:
    return [n for n in _PARTS if _is_one(os.path.join(folder, n))]
