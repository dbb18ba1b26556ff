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
    encode_with_masks,
    framed,
    padded,
    room_for_tokens,
)
from electra_tf.modeling.layers import inference
from electra_tf.modeling.sequence_ops import gather_positions
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.text.tokenization import JOINER
from electra_tf.text.vocab import MASK


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A token for a mask.

    Attributes:
      token: the wordpiece.
      token_id: its id.
      probability: given by the generator's softmax, temperature 1.
    """

    token: str
    token_id: int
    probability: float


@dataclasses.dataclass(frozen=True)
class FilledMask:
    """What fits one mask.

    Attributes:
      position: index of the mask among the text's tokens, from 1 ([CLS] is
        0).
      candidates: the likeliest first.
    """

    position: int
    candidates: tuple[Candidate, ...]


@dataclasses.dataclass(frozen=True)
class FilledText:
    """What fits the masks of one text.

    Attributes:
      text: as given.
      tokens: its wordpieces, without [CLS] and [SEP].
      masks: an answer for each mask, in order. Each is for that mask alone,
        the others unknown.
    """

    text: str
    tokens: tuple[str, ...]
    masks: tuple[FilledMask, ...]

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
        """Fills the masks of texts.

        Args:
          texts: strings with one "[MASK]" or several, each one wordpiece.
        """
        texts = iter(texts)
        while batch := list(itertools.islice(texts, self.batch_size)):
            yield from self._fill(batch)

    def _fill(self, texts: Sequence[str]) -> list[FilledText]:
        rows = [self._encode(text) for text in texts]
        mask_id = self.pretrained.model.special.mask_id
        places = [[i for i, x in enumerate(r) if x == mask_id] for r in rows]
        positions = np.zeros([len(rows), max(map(len, places))], np.int32)
        for slots, found in zip(positions, places, strict=True):
            slots[: len(found)] = found
        outputs = self._compute(**padded(rows), positions=positions)
        probabilities, ids = (output.numpy() for output in outputs)
        return [
            self._filled(text, row, found, probabilities[i], ids[i])
            for i, (text, row, found) in enumerate(
                zip(texts, rows, places, strict=True)
            )
        ]

    def _encode(self, text: str) -> list[int]:
        ids = encode_with_masks(self.pretrained.tokenizer, text)
        if self.pretrained.model.special.mask_id not in ids:
            raise UserError(
                f"No {MASK} in {shortened(text)!r}; write {MASK} where a token"
                " is to be found."
            )
        check_length(self.pretrained, ids, text)
        return framed(self.pretrained, ids)

    def _filled(
        self,
        text: str,
        row: Sequence[int],
        places: Sequence[int],
        probabilities: np.ndarray,
        ids: np.ndarray,
    ) -> FilledText:
        tokenizer = self.pretrained.tokenizer
        masks = tuple(
            FilledMask(
                place,
                tuple(
                    Candidate(token_name(self.pretrained, i), int(i), float(p))
                    for i, p in zip(ids[slot], probabilities[slot], strict=True)
                ),
            )
            for slot, place in enumerate(places)
        )
        tokens = tokenizer.convert_ids_to_tokens(row[1:-1])
        return FilledText(text, tuple(tokens), masks)


def token_name(pretrained: PretrainedModel, token_id: int) -> str:
    """The wordpiece of an id; rows beyond the vocabulary have no name."""
    token_id = int(token_id)
    return pretrained.tokenizer.inv_vocab.get(token_id, f"[id {token_id}]")


def check_length(
    pretrained: PretrainedModel, ids: Sequence[int], text: str
) -> None:
    """Raises a UserError where a text does not fit the position table."""
    if len(ids) > room_for_tokens(pretrained):
        raise UserError(
            f"{shortened(text)!r} has {len(ids)} tokens, and the model takes"
            f" {room_for_tokens(pretrained)} at once; give a part of it."
        )


def shortened(text: str, length: int = 60) -> str:
    """The beginning of a long text, for messages."""
    return text if len(text) <= length else text[: length - 3] + "..."


def generator_logits(model: Any, features: Any, positions: Any) -> tf.Tensor:
    """Asks a generator (or masked LM) of any kind about some positions.

    Args:
      features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`.
      positions: int32 [B, N].

    Returns:
      float32 [B, N, V] logits.
    """
    inputs = [features[n] for n in ("input_ids", "input_mask", "segment_ids")]
    if model.kind is GeneratorKind.TWO_TOWER:
        vectors, _, _ = model.generator(*inputs)
        table = model.generator.ltr.embeddings.word_embeddings
    else:
        vectors = model.generator(*inputs).sequence_output
        table = model.generator.embeddings.word_embeddings
    return model.masked_lm_head(gather_positions(vectors, positions), table)


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
