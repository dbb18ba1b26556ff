# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""One folder as transformers saves it: one network, its config, its files."""

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_config as configs
from electra_tf.checkpoints import huggingface_names as names
from electra_tf.checkpoints import huggingface_tokenizer as tokenizers
from electra_tf.checkpoints.huggingface_names import Pair, Part
from electra_tf.checkpoints.safetensors_files import open_stored
from electra_tf.checkpoints.stored_tensors import StoredTensors

_HEADS = (
    names.PRETRAINING,
    names.MASKED_LM,
    names.TAGGING,
    names.QUESTIONS,
)
_MOST_LINES = 8
_LAYER = re.compile(r"(?:electra\.)?encoder\.layer\.(\d+)\.")


@dataclasses.dataclass(frozen=True)
class Source:
    """Where one of our variables is in a folder.

    Attributes:
      stored: the folder's tensors.
      theirs: name of the tensor in its file.
      row: which row it is, None for all.
      transposed: whether to swap the axes.
      shape: of the variable.
    """

    stored: StoredTensors
    theirs: str
    row: int | None
    transposed: bool
    shape: tuple[int, ...]

    def read(self) -> np.ndarray:
        """Reads the values, float32, shaped as our variable."""
        value = self.stored.read(self.theirs)
        if self.row is not None:
            value = value[self.row : self.row + 1]
        return np.ascontiguousarray(value.T if self.transposed else value)


class Folder:
    """A folder with one model, checked against its config.

    Attributes:
      path: the folder.
      config: config.json, filled in.
      stored: the tensors.
      part: architecture and scopes, as far as the folder alone tells.
      sizes: by config.json's keys, with the number of labels.

    Args:
      path: of a directory.

    Raises:
      UserError: if config or weights are missing, damaged or do not agree.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.config = configs.read_config(path)
        self.stored = open_stored(path)
        self.part = self._find_part()
        self.sizes: dict[str, int] = dict(self.config)
        if self.part.architecture == names.TAGGING:
            head = self.stored.shapes.get("classifier.weight", (0,))
            self.sizes[names.LABELS] = head[0]
        self._files = self._match()
        self._check_tied()

    def _find_part(self) -> Part:
        architecture = names.architecture_of(self.stored.shapes)
        declared = self.config.get("architectures") or [None]
        if declared[0] in _HEADS:
            architecture = declared[0]
        if architecture == names.MASKED_LM:
            scopes = [
                configs.marked(self.config, key) or default
                for key, default in (
                    ("encoder", "generator"),
                    ("embeddings", "electra"),
                )
            ]
            if not set(scopes) <= {"electra", "generator"}:
                raise UserError(
                    f"{self.path}/{configs.CONFIG}: {configs.MARK}: expected"
                    f" 'electra' or 'generator', found {scopes}."
                )
            return Part(architecture, *scopes)
        task = configs.marked(self.config, "task")
        task = task or names.DEFAULT_TASKS.get(architecture, "")
        return Part(architecture, task=task)

    def pairs(self, part: Part | None = None) -> list[Pair]:
        """Tensors there and variables here.

        Args:
          part: other scopes than the folder's own.

        Returns:
          All pairs.
        """
        return names.part_pairs(
            part or self.part,
            self.config["num_hidden_layers"],
            self.config["embedding_size"] != self.config["hidden_size"],
        )

    def _match(self) -> dict[str, str]:
        """Names in the file by names of today; refuses what is not there."""
        files, missing, differing = {}, [], []
        for pair in self.pairs():
            held = self.stored.shapes
            found = next(
                (n for n in names.spellings(pair.theirs) if n in held), None
            )
            if found is None:
                missing.append(pair.theirs)
                continue
            files[pair.theirs] = found
            wanted = pair.their_shape(self.sizes)
            if held[found] != wanted:
                differing.append(
                    f"{found}: {list(held[found])} in the file, {list(wanted)}"
                    f" by {configs.CONFIG} ({', '.join(pair.axes)})"
                )
        layers = self.config["num_hidden_layers"]
        differing += [
            f"{name}: of a layer that num_hidden_layers {layers} in"
            f" {configs.CONFIG} does not count"
            for name in self.stored.shapes
            if (found := _LAYER.match(name)) and int(found[1]) >= layers
        ]
        self._refuse(
            missing,
            f"lacks tensors that {self.part.architecture} of"
            f" {self.config['num_hidden_layers']} layers has",
        )
        self._refuse(differing, f"does not fit its {configs.CONFIG}")
        return files

    def _refuse(self, lines: list[str], what: str) -> None:
        if not lines:
            return
        shown = [f"  {line}" for line in lines[:_MOST_LINES]]
        if len(lines) > len(shown):
            shown.append(f"  ... and {len(lines) - len(shown)} more")
        raise UserError("\n".join([f"{self.stored.path} {what}:", *shown]))

    def _check_tied(self) -> None:
        """Refuses a masked LM that scores words by a table of its own."""
        table = self._files[names.WORD_TABLE]
        if (
            self.part.architecture != names.MASKED_LM
            or names.LM_HEAD not in self.stored.shapes
            or table == names.LM_HEAD
        ):
            return
        scores = self.stored.read(names.LM_HEAD)
        if not np.array_equal(scores, self.stored.read(table)):
            raise UserError(
                f"{self.stored.path}: {names.LM_HEAD} is not the table of token"
                " embeddings; in the original the two are one."
            )

    def sources(self, part: Part | None = None) -> dict[str, Source]:
        """Where every variable is.

        Args:
          part: other scopes than the folder's own.

        Returns:
          By the original's names, in its order.
        """
        sources = {}
        for pair in self.pairs(part):
            for i, ours in enumerate(pair.ours):
                sources[ours] = Source(
                    self.stored,
                    self._files[pair.theirs],
                    i if len(pair.ours) > 1 else None,
                    pair.transposed,
                    pair.shape(self.sizes),
                )
        return sources

    def dropped(self) -> dict[str, str]:
        """What is not used or not as stored, and why."""
        used = {*self._files.values(), names.LM_HEAD}
        notes = {
            name: reason
            for name in self.stored.shapes
            if name not in used and (reason := names.why_unused(name))
        }
        notes |= self.stored.conversions()
        notes |= configs.config_notes(self.config)
        return notes | tokenizers.tokenizer_notes(self.path)

    def hparams(self) -> dict[str, Any]:
        """Hparams that this folder alone states.

        A generator alone is described as that of a discriminator of its size.
        """
        hparams = configs.encoder_hparams(self.config)
        if self.part.encoder == "generator":
            hparams |= {"generator_hidden_size": 1.0, "generator_layers": 1.0}
        elif self.part.architecture == names.MASKED_LM:
            hparams |= {"electra_objective": False}
        if self.part.embeddings == "generator":
            hparams["untied_generator_embeddings"] = True
        return hparams | tokenizers.tokenizer_hparams(self.path)

    @property
    def vocab_file(self) -> str | None:
        """Path of the vocabulary, None where there is none."""
        path = os.path.join(self.path, tokenizers.VOCAB)
        return path if os.path.isfile(path) else None


def equal_tensors(
    one: Folder, other: Folder, pairs: Iterable[Pair]
) -> tuple[bool, str]:
    """Compares two folders tensor by tensor, up to the first difference.

    Args:
      one: a folder.
      other: another.
      pairs: which tensors.

    Returns:
      Whether all are equal to the bit, and the name of the first that is not.
    """
    first: Mapping[str, Source] = _by_theirs(one)
    second: Mapping[str, Source] = _by_theirs(other)
    for pair in pairs:
        a, b = first.get(pair.theirs), second.get(pair.theirs)
        if a is None or b is None or a.shape != b.shape:
            return False, pair.theirs
        if not np.array_equal(a.read(), b.read()):
            return False, pair.theirs
    return True, ""


def _by_theirs(folder: Folder) -> dict[str, Source]:
    sources = folder.sources()
    return {pair.theirs: sources[pair.ours[0]] for pair in folder.pairs()}
