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
from configure.pretraining import GeneratorKind
from electra_tf.inspection.fill_mask import generator_logits
from electra_tf.inspection.sentences import (
    framed,
    padded,
    room_for_tokens,
    windows,
)
from electra_tf.modeling.layers import inference
from electra_tf.pretraining import scoring
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.pretraining.losses import softmax_cross_entropy
from electra_tf.text.tokenization import UNK

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
    # Of the two-tower cloze model, where asked for.
    cloze_token_scores: tuple[float, ...] | None = None

    @property
    def cloze_score(self) -> float | None:
        """The sum of the cloze model's, where asked for."""
        if self.cloze_token_scores is None:
            return None
        return math.fsum(self.cloze_token_scores)


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
        with_cloze: bool = False,
    ) -> None:
        self.pretrained = pretrained
        self.method = _settled(pretrained, method, with_cloze)
        self.batch_size = batch_size
        self._computed = {self.method} | ({"cloze"} if with_cloze else set())
        self._compute = _graph(pretrained.model, self.method, with_cloze)

    def score(self, texts: Iterable[str]) -> Iterator[TextScore]:
        """Scores texts in order, as they come; without tokens, 0."""
        held: list[_Held] = []
        rows: list[_Row] = []
        for text in texts:
            ids = self.pretrained.tokenizer.encode(text)
            stretches = windows(len(ids), room_for_tokens(self.pretrained))
            for w in stretches:
                shown = framed(self.pretrained, ids[w.begin : w.end])
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
        scores = [
            {method: np.zeros([len(ids)]) for method in self._computed}
            for _, ids, _ in held
        ]
        # Like lengths together: less padding.
        rows = sorted(rows, key=lambda row: len(row.shown))
        for start in range(0, len(rows), self.batch_size):
            batch = rows[start : start + self.batch_size]
            for method, values in self._run(batch).items():
                for row, found in zip(batch, values, strict=True):
                    if self.method != "masked_lm":
                        first, last = row.first, row.last
                        found = found[first - row.offset : last - row.offset]
                    scores[row.text][method][row.first : row.last] = found
        tokenizer = self.pretrained.tokenizer
        for (text, ids, n_windows), by_method in zip(held, scores, strict=True):
            found = {name: tuple(x.tolist()) for name, x in by_method.items()}
            own = found.pop(self.method)
            yield TextScore(
                text=text,
                score=math.fsum(own),
                tokens=tuple(tokenizer.convert_ids_to_tokens(ids)),
                token_scores=own,
                unknown=ids.count(tokenizer.vocab[UNK]),
                windows=n_windows,
                cloze_token_scores=found.get("cloze"),
            )

    def _run(self, rows: Sequence[_Row]) -> dict[str, np.ndarray]:
        """Scores of all tokens, or of the one that is masked, by method."""
        features = padded([row.shown for row in rows])
        if self.method == "masked_lm":
            places = np.array([[row.first - row.offset] for row in rows])
            ids = features["input_ids"]
            targets = np.take_along_axis(ids, places, 1)
            mask_id = self.pretrained.model.special.mask_id
            np.put_along_axis(ids, places, mask_id, 1)
            features["positions"] = places.astype(np.int32)
            features["targets"] = targets
        outputs = self._compute(features)
        return {method: values.numpy() for method, values in outputs.items()}


def _settled(pretrained: PretrainedModel, method: str, with_cloze: bool) -> str:
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
    if with_cloze and method != "electric":
        raise UserError(
            f"The cloze score stands beside Electric's; the method is {method}."
        )
    if method == "electric":
        if not pretrained.is_electric:
            raise UserError(
                f"{pretrained.path}: not an Electric model; only Electric's"
                " discriminator gives likelihoods (ELECTRA's tells real from"
                " replaced, against its own generator). Methods for other"
                " models: cloze (two towers), masked_lm."
            )
        pretrained.require_discriminator("scoring")
    if method != "electric" or with_cloze:
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
    model: tf.Module, method: str, with_cloze: bool
) -> Callable[[dict[str, np.ndarray]], dict[str, tf.Tensor]]:
    """One graph for every batch size and length."""
    names = ["input_ids", "input_mask", "segment_ids"]
    if method == "masked_lm":
        names += ["positions", "targets"]
    spec = {name: tf.TensorSpec([None, None], tf.int32) for name in names}

    @tf.function(input_signature=[spec])
    def compute(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        with inference():
            if method == "masked_lm":
                return {method: _masked_scores(model, features)}
            if method == "cloze":
                outputs = scoring.cloze_scores(model, features)
                return {method: outputs["cloze_token_scores"]}
            outputs = scoring.electric_scores(model, features, with_cloze)
        found = {method: outputs["token_scores"]}
        if with_cloze:
            found["cloze"] = outputs["cloze_token_scores"]
        return found

    return compute


def _masked_scores(
    model: tf.Module, features: dict[str, tf.Tensor]
) -> tf.Tensor:
    """Log-probabilities [B, 1] of `targets` at the masked `positions`."""
    logits = generator_logits(model, features, features["positions"])
    return -softmax_cross_entropy(logits, features["targets"])
