# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fill-mask: the likeliest tokens at each [MASK] of a text."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.data.tfrecords import FEATURE_NAMES
from electra_tf.metrics.finite_outputs import check_finite
from electra_tf.modeling.graph_modes import inference
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.text.vocabulary import MASK
from electra_tf.text.wordpiece import JOINER


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A wordpiece and the wordpiece's probability at a mask."""

    token: str
    token_id: int
    probability: float


@dataclasses.dataclass(frozen=True)
class FilledMask:
    """The candidates for one mask; the model sees all other masks as [MASK]."""

    position: int  # position among the text's tokens, from 1 ([CLS] is 0)
    candidates: tuple[Candidate, ...]  # by probability, highest first


@dataclasses.dataclass(frozen=True)
class FilledText:
    """The candidates for all masks of one text."""

    text: str  # the input
    tokens: tuple[str, ...]  # the text's wordpieces, without [CLS] and [SEP]
    masks: tuple[FilledMask, ...]  # in the order of the text

    def best(self) -> str:
        """Return the text with the likeliest token in place of each mask."""
        tokens = list(self.tokens)
        for mask in self.masks:
            tokens[mask.position - 1] = mask.candidates[0].token
        return " ".join(tokens).replace(f" {JOINER}", "")


class MaskFiller:
    """Filler of masks, with a generator or masked LM that is loaded once."""

    def __init__(
        self, pretrained: PretrainedModel, top_k: int = 5, batch_size: int = 32
    ) -> None:
        """Prepare the model.

        Args:
          pretrained: a model with a generator, or a masked LM.
          top_k: the number of candidates.
          batch_size: the number of texts that are computed at once.
        """
        pretrained.require_generator("fill-mask")
        if top_k < 1:
            raise UserError(
                f"top_k is {top_k}; expected at least 1. Pass a larger number."
            )
        self.pretrained, self.batch_size = pretrained, batch_size
        model, names = pretrained.model, (*FEATURE_NAMES, "positions")
        top_k = min(top_k, model.encoder_config.vocab_size)
        spec = dict.fromkeys(names, tf.TensorSpec([None, None], tf.int32))

        @tf.function(input_signature=[spec])
        def compute(features: dict[str, tf.Tensor]) -> tuple[tf.Tensor, ...]:
            with inference():
                positions = features["positions"]
                logits, _ = model.generator_logits(features, positions)
            return tuple(tf.math.top_k(tf.nn.softmax(logits), top_k))

        self._compute = compute

    def __call__(self, texts: Iterable[str]) -> Iterator[FilledText]:
        """Yield the candidates for the masks of each text.

        Args:
          texts: the texts, each with at least one "[MASK]" (a wordpiece).
        """
        texts = iter(texts)
        while batch := list(itertools.islice(texts, self.batch_size)):
            yield from self._fill(batch)

    def _fill(self, texts: Sequence[str]) -> Iterator[FilledText]:
        rows = [self.encode(text) for text in texts]
        mask_id = self.pretrained.model.special.mask_id
        masked = [_positions_of(mask_id, row) for row in rows]
        positions = np.zeros([len(rows), max(map(len, masked))], np.int32)
        for slots, row_positions in zip(positions, masked, strict=True):
            slots[: len(row_positions)] = row_positions
        values, ids = self._compute(padded(rows) | {"positions": positions})
        values, ids = values.numpy(), ids.numpy().tolist()
        check_finite(
            {"probabilities": values}, lambda row: shorten(repr(texts[row]))
        )
        to_tokens = self.pretrained.tokenizer.convert_ids_to_tokens
        for i, (text, row) in enumerate(zip(texts, rows, strict=True)):
            # Each row has as many slots as the text with the most masks, so
            # other texts have unused slots, which `zip` leaves out.
            slots = zip(masked[i], ids[i], values[i], strict=False)
            masks = tuple(
                FilledMask(position, candidates(self.pretrained, *best))
                for position, *best in slots
            )
            yield FilledText(text, tuple(to_tokens(row[1:-1])), masks)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text that contains [MASK].

        Raises:
          UserError: the text contains no [MASK].
        """
        ids = encode(self.pretrained, text)
        if self.pretrained.model.special.mask_id not in ids:
            raise UserError(
                f"No {MASK} in {shorten(text)!r}; expected at least one. Write"
                f" {MASK} where a token is to be predicted."
            )
        return ids


def _positions_of(token_id: int, row: Sequence[int]) -> list[int]:
    return [position for position, item in enumerate(row) if item == token_id]


def encode(pretrained: PretrainedModel, text: str) -> list[int]:
    """Return the ids of [CLS], a text and [SEP]; "[MASK]" is one token.

    The tokenizer itself splits "[MASK]" at its brackets, as the original's
    does, so that no text can contain special tokens.

    Raises:
      UserError: the text is longer than the model's input.
    """
    special, limit = pretrained.model.special, pretrained.max_length - 2
    ids: list[int] = []
    for number, part in enumerate(text.split(MASK)):
        if number:
            ids.append(special.mask_id)
        ids += pretrained.tokenizer.encode(part)
    if len(ids) > limit:
        raise UserError(
            f"{shorten(text)!r} has {len(ids)} tokens; the model accepts at"
            f" most {limit}. Pass a shorter text."
        )
    return [special.cls_id, *ids, special.sep_id]


def padded(rows: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Return the features of rows of ids, padded to the longest row.

    Returns:
      int32 [B, L] `input_ids`, `input_mask`, `segment_ids` (0).
    """
    ids = np.zeros([len(rows), max(map(len, rows))], np.int32)
    mask = np.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
    segments = np.zeros_like(ids)
    return {"input_ids": ids, "input_mask": mask, "segment_ids": segments}


def candidates(
    pretrained: PretrainedModel, ids: Sequence[int], values: Sequence[float]
) -> tuple[Candidate, ...]:
    """Return candidates made from token ids and probabilities."""
    return tuple(
        Candidate(token_name(pretrained, i), i, float(p))
        for i, p in zip(ids, values, strict=True)
    )


def token_name(pretrained: PretrainedModel, token_id: int) -> str:
    """Return the wordpiece of an id, or "[id N]" for an unknown id."""
    name = pretrained.tokenizer.inv_vocab.get(int(token_id))
    return f"[id {token_id}]" if name is None else name
