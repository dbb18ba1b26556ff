# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How likely a text is: by Electric, a two-tower cloze model, a masked LM.

Electric and the cloze model score all tokens of a text in one pass; a masked
LM takes one for each token, which is masked in it.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.generator import GeneratorKind
from electra_tf.inspection.fill_mask import padded
from electra_tf.modeling.graph_modes import inference
from electra_tf.pretraining import scoring
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.pretraining.losses import softmax_cross_entropy
from electra_tf.text.vocabulary import UNK

METHODS = ("auto", "electric", "cloze", "masked_lm")
# Texts are gathered until there are so many batches, and sorted by length.
_BATCHES_AT_ONCE = 16

_Held = tuple[str, list[int], int]  # text, tokens, number of stretches


@dataclasses.dataclass(frozen=True)
class TextScore:
    """How likely a text is; all scores are in nats."""

    text: str
    score: float  # sum of `token_scores`
    tokens: tuple[str, ...]  # wordpieces
    token_scores: tuple[float, ...]  # log-probability of each in its context
    unknown: int  # [UNK]s, which the model cannot tell apart
    windows: int  # stretches that a long text was scored in


class Window(NamedTuple):
    """A stretch of a text's tokens, and which of them it answers for."""

    begin: int  # index in the text of its first token
    end: int  # after its last token
    first: int  # of the first token that it answers for
    last: int  # after the last one


def windows(count: int, room: int) -> list[Window]:
    """Divides a text of more tokens than fit beside [CLS] and [SEP]."""
    if count <= room:
        return [Window(0, count, 0, count)] if count else []
    begins = [*range(0, count - room, max(1, room // 2)), count - room]
    found: list[Window] = []
    for begin, following in zip(begins, [*begins[1:], None], strict=True):
        end = begin + room
        last = count if following is None else (following + end + 1) // 2
        found.append(Window(begin, end, found[-1].last if found else 0, last))
    return found


class _Row(NamedTuple):
    """One input of the model."""

    text: int  # its number
    shown: list[int]  # a stretch of its tokens, [CLS] before, [SEP] after
    offset: int  # place of a token in the text, less its place in `shown`
    first: int  # of the text's tokens that are asked for
    last: int  # after the last one


class TextScorer:
    """Scores texts with a pre-trained model, loaded once.

    Source: Electric: `electra_tf.pretraining.scoring`; masked_lm: Salazar et
    al. 2020, "Masked Language Model Scoring", section 2.
    """

    def __init__(
        self,
        pretrained: PretrainedModel,
        method: str = "auto",
        batch_size: int = 32,
    ) -> None:
        self.pretrained = pretrained
        self.method = _settled(pretrained, method)
        self.batch_size = batch_size
        self._compute = _graph(pretrained.model, self.method)

    def score(self, texts: Iterable[str]) -> Iterator[TextScore]:
        """Scores texts in order, as they come; without tokens, 0."""
        held: list[_Held] = []
        rows: list[_Row] = []
        special = self.pretrained.model.special
        for text in texts:
            ids = self.pretrained.tokenizer.encode(text)
            stretches = windows(len(ids), self.pretrained.max_length - 2)
            for w in stretches:
                shown = [special.cls_id, *ids[w.begin : w.end], special.sep_id]
                asked = [(w.first, w.last)]
                if self.method == "masked_lm":
                    asked = [(i, i + 1) for i in range(w.first, w.last)]
                rows += [_Row(len(held), shown, w.begin - 1, *a) for a in asked]
            held.append((text, ids, len(stretches)))
            if len(rows) >= self.batch_size * _BATCHES_AT_ONCE:
                yield from self._score_held(held, rows)
                held, rows = [], []
        yield from self._score_held(held, rows)

    def _score_held(
        self, held: list[_Held], rows: list[_Row]
    ) -> Iterator[TextScore]:
        scores = [np.zeros([len(ids)]) for _, ids, _ in held]
        # Like lengths together: less padding.
        rows = sorted(rows, key=lambda row: len(row.shown))
        for start in range(0, len(rows), self.batch_size):
            batch = rows[start : start + self.batch_size]
            for row, found in zip(batch, self._run(batch), strict=True):
                if self.method != "masked_lm":
                    found = found[row.first - row.offset :]
                count = row.last - row.first
                scores[row.text][row.first : row.last] = found[:count]
        tokenizer = self.pretrained.tokenizer
        for (text, ids, stretches), values in zip(held, scores, strict=True):
            yield TextScore(
                text=text,
                score=math.fsum(values),
                tokens=tuple(tokenizer.convert_ids_to_tokens(ids)),
                token_scores=tuple(values.tolist()),
                unknown=ids.count(tokenizer.vocab[UNK]),
                windows=stretches,
            )

    def _run(self, rows: Sequence[_Row]) -> np.ndarray:
        """Scores of all tokens [B, L], or of the one that is masked [B, 1]."""
        features = padded([row.shown for row in rows])
        if self.method == "masked_lm":
            places = np.array([[row.first - row.offset] for row in rows])
            ids = features["input_ids"]
            features["targets"] = np.take_along_axis(ids, places, 1)
            mask_id = self.pretrained.model.special.mask_id
            np.put_along_axis(ids, places, mask_id, 1)
            features["positions"] = places.astype(np.int32)
        return self._compute(features).numpy()


def _settled(pretrained: PretrainedModel, method: str) -> str:
    """The method by name; raises UserError for a model that lacks it."""
    two_towers = pretrained.model.kind is GeneratorKind.TWO_TOWER
    if method not in METHODS:
        raise UserError(
            f"method {method!r}: expected one of {', '.join(METHODS)}."
        )
    if method == "auto":
        if pretrained.is_electric and not pretrained.lacks_discriminator():
            method = "electric"
        else:
            method = "cloze" if two_towers else "masked_lm"
    if method == "electric":
        if not pretrained.is_electric:
            raise UserError(
                f"{pretrained.path}: not an Electric model, whose discriminator"
                " alone gives likelihoods; choose cloze (two towers) or"
                " masked_lm."
            )
        pretrained.require_discriminator("scoring")
    else:
        pretrained.require_generator(f"the {method} score")
    if method == "cloze" and not two_towers:
        raise UserError(
            f"{pretrained.path}: the cloze score is that of a two-tower cloze"
            " model, and this generator is a masked LM; choose masked_lm."
        )
    if method == "masked_lm" and two_towers:
        raise UserError(
            f"{pretrained.path}: its two towers need no masks; choose cloze,"
            " or electric."
        )
    return method


def _graph(
    model: tf.Module, method: str
) -> Callable[[dict[str, np.ndarray]], tf.Tensor]:
    """One graph for every batch size and length."""
    names = ["input_ids", "input_mask", "segment_ids"]
    if method == "masked_lm":
        names += ["positions", "targets"]
    spec = dict.fromkeys(names, tf.TensorSpec([None, None], tf.int32))

    @tf.function(input_signature=[spec])
    def compute(features: dict[str, tf.Tensor]) -> tf.Tensor:
        with inference():
            if method == "masked_lm":
                places = features["positions"]
                logits, _ = model.generator_logits(features, places)
                return -softmax_cross_entropy(logits, features["targets"])
            if method == "cloze":
                return scoring.cloze_scores(model, features)["token_scores"]
            return scoring.electric_scores(model, features)["token_scores"]

    return compute
