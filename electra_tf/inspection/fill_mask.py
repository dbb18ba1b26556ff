# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which tokens fit where a text says [MASK]."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.data.records import FEATURE_NAMES
from electra_tf.modeling.graph_modes import inference
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.text.vocabulary import MASK
from electra_tf.text.wordpiece import JOINER


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A wordpiece for a mask, with the generator's probability (softmax)."""

    token: str
    token_id: int
    probability: float


@dataclasses.dataclass(frozen=True)
class FilledMask:
    """What fits one mask, the others unknown."""

    position: int  # among the text's tokens, from 1 ([CLS] is 0)
    candidates: tuple[Candidate, ...]  # the likeliest first


@dataclasses.dataclass(frozen=True)
class FilledText:
    """What fits the masks of one text."""

    text: str  # as given
    tokens: tuple[str, ...]  # its wordpieces, without [CLS] and [SEP]
    masks: tuple[FilledMask, ...]  # in order

    def best(self) -> str:
        """The text's wordpieces joined, each mask at its likeliest."""
        tokens = list(self.tokens)
        for mask in self.masks:
            tokens[mask.position - 1] = mask.candidates[0].token
        return " ".join(tokens).replace(f" {JOINER}", "")


class MaskFiller:
    """Fills masks with a generator or a masked LM, loaded once."""

    def __init__(
        self, pretrained: PretrainedModel, top_k: int = 5, batch_size: int = 32
    ) -> None:
        pretrained.require_generator("fill-mask")
        if top_k < 1:
            raise UserError(f"top_k is {top_k}; expected at least 1.")
        self.pretrained, self.batch_size = pretrained, batch_size
        model, names = pretrained.model, (*FEATURE_NAMES, "positions")
        top_k = min(top_k, model.encoder_config.vocab_size)
        spec = dict.fromkeys(names, tf.TensorSpec([None, None], tf.int32))

        @tf.function(input_signature=[spec])
        def compute(features: dict[str, tf.Tensor]) -> tuple[tf.Tensor, ...]:
            with inference():
                places = features["positions"]
                logits, _ = model.generator_logits(features, places)
            return tuple(tf.math.top_k(tf.nn.softmax(logits), top_k))

        self._compute = compute

    def __call__(self, texts: Iterable[str]) -> Iterator[FilledText]:
        """Fills the masks of texts with one "[MASK]" (a wordpiece) or more."""
        texts = iter(texts)
        while batch := list(itertools.islice(texts, self.batch_size)):
            yield from self._fill(batch)

    def _fill(self, texts: Sequence[str]) -> Iterator[FilledText]:
        rows = [self.encode(text) for text in texts]
        mask_id = self.pretrained.model.special.mask_id
        places = [[i for i, x in enumerate(r) if x == mask_id] for r in rows]
        positions = np.zeros([len(rows), max(map(len, places))], np.int32)
        for slots, found in zip(positions, places, strict=True):
            slots[: len(found)] = found
        values, ids = self._compute(padded(rows) | {"positions": positions})
        values, ids = values.numpy(), ids.numpy().tolist()
        to_tokens = self.pretrained.tokenizer.convert_ids_to_tokens
        for i, (text, row) in enumerate(zip(texts, rows, strict=True)):
            # Slots behind a text's own masks are empty.
            found = zip(places[i], ids[i], values[i], strict=False)
            masks = tuple(
                FilledMask(place, candidates(self.pretrained, *best))
                for place, *best in found
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
                f"No {MASK} in {shorten(text)!r}; write {MASK} where a token"
                " is to be found."
            )
        return ids


def encode(pretrained: PretrainedModel, text: str) -> list[int]:
    """[CLS], a text's ids and [SEP]; "[MASK]" is a token to be found.

    The tokenizer itself knows no special tokens: like the original's it splits
    "[MASK]" at its brackets, so that text cannot smuggle them in.
    """
    special, room = pretrained.model.special, pretrained.max_length - 2
    ids: list[int] = []
    for number, part in enumerate(text.split(MASK)):
        ids += [special.mask_id] if number else []
        ids += pretrained.tokenizer.encode(part)
    if len(ids) > room:
        raise UserError(
            f"{shorten(text)!r} has {len(ids)} tokens, and the model takes"
            f" {room} at once; give a part of it."
        )
    return [special.cls_id, *ids, special.sep_id]


def padded(rows: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Pads rows of ids to one segment: int32 [B, L], L the longest row's."""
    ids = np.zeros([len(rows), max(map(len, rows))], np.int32)
    mask = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
    segments = np.zeros_like(ids)
    return {"input_ids": ids, "input_mask": mask, "segment_ids": segments}


def candidates(
    pretrained: PretrainedModel, ids: Sequence[int], values: Sequence[float]
) -> tuple[Candidate, ...]:
    """Names token ids and their probabilities."""
    return tuple(
        Candidate(token_name(pretrained, i), i, float(p))
        for i, p in zip(ids, values, strict=True)
    )


def token_name(pretrained: PretrainedModel, token_id: int) -> str:
    """The wordpiece of an id; rows beyond the vocabulary have no name."""
    name = pretrained.tokenizer.inv_vocab.get(int(token_id))
    return f"[id {token_id}]" if name is None else name
