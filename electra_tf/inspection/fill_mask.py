# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which tokens fit where a text says [MASK]."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import GeneratorKind
from electra_tf.inspection.sentences import (
    check_length,
    encode_with_masks,
    framed,
    padded,
    shortened,
)
from electra_tf.modeling.layers import inference
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.text.tokenization import JOINER, MASK


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
        return join_wordpieces(tokens)


def join_wordpieces(tokens: Iterable[str]) -> str:
    """Joins wordpieces with blanks, continuations without."""
    text = ""
    for token in tokens:
        if token.startswith(JOINER) and text:
            text += token.removeprefix(JOINER)
        else:
            text += f" {token}" if text else token
    return text


class MaskFiller:
    """Fills masks with a generator or a masked LM, loaded once."""

    def __init__(
        self, pretrained: PretrainedModel, top_k: int = 5, batch_size: int = 32
    ) -> None:
        pretrained.require_generator("fill-mask")
        if top_k < 1:
            raise UserError(f"top_k is {top_k}; expected at least 1.")
        self.pretrained = pretrained
        self.top_k = min(top_k, pretrained.model.encoder_config.vocab_size)
        self.batch_size = batch_size
        self._compute = _top_candidates(pretrained.model, self.top_k)

    def __call__(self, texts: Iterable[str]) -> Iterator[FilledText]:
        """Fills the masks of texts with one "[MASK]" (a wordpiece) or more."""
        texts = iter(texts)
        while batch := list(itertools.islice(texts, self.batch_size)):
            yield from self._fill(batch)

    def _fill(self, texts: Sequence[str]) -> Iterator[FilledText]:
        rows = [self._encode(text) for text in texts]
        mask_id = self.pretrained.model.special.mask_id
        places = [[i for i, x in enumerate(r) if x == mask_id] for r in rows]
        positions = np.zeros([len(rows), max(map(len, places))], np.int32)
        for slots, found in zip(positions, places, strict=True):
            slots[: len(found)] = found
        values, ids = self._compute(**padded(rows), positions=positions)
        values, ids = values.numpy(), ids.numpy().tolist()
        to_tokens = self.pretrained.tokenizer.convert_ids_to_tokens
        for i, (text, row) in enumerate(zip(texts, rows, strict=True)):
            masks = tuple(
                FilledMask(
                    place,
                    candidates(self.pretrained, ids[i][slot], values[i][slot]),
                )
                for slot, place in enumerate(places[i])
            )
            yield FilledText(text, tuple(to_tokens(row[1:-1])), masks)

    def _encode(self, text: str) -> list[int]:
        ids = encode_with_masks(self.pretrained.tokenizer, text)
        if self.pretrained.model.special.mask_id not in ids:
            raise UserError(
                f"No {MASK} in {shortened(text)!r}; write {MASK} where a token"
                " is to be found."
            )
        check_length(self.pretrained, ids, text)
        return framed(self.pretrained, ids)


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
    token_id = int(token_id)
    return pretrained.tokenizer.inv_vocab.get(token_id, f"[id {token_id}]")


def generator_logits(model: Any, features: Any, positions: Any) -> tf.Tensor:
    """A generator's (or masked LM's) logits at some positions.

    Takes int32 [B, L] features and int32 [B, N]; returns float32 [B, N, V].
    """
    inputs = [features[n] for n in ("input_ids", "input_mask", "segment_ids")]
    if model.kind is GeneratorKind.TWO_TOWER:
        vectors, _, _ = model.generator(*inputs)
        table = model.generator.ltr.embeddings.word_embeddings
    else:
        vectors = model.generator(*inputs).sequence_output
        table = model.generator.embeddings.word_embeddings
    return model.masked_lm_head(
        tf.gather(vectors, positions, batch_dims=1), table
    )


def _top_candidates(model: Any, top_k: int) -> Any:
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids] * 4)
    def compute(
        input_ids: tf.Tensor,
        input_mask: tf.Tensor,
        segment_ids: tf.Tensor,
        positions: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        features = {
            "input_ids": input_ids,
            "input_mask": input_mask,
            "segment_ids": segment_ids,
        }
        with inference():
            logits = generator_logits(model, features, positions)
        top = tf.math.top_k(tf.nn.softmax(logits), top_k)
        return top.values, top.indices

    return compute
