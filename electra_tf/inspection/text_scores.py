# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Likelihoods of texts according to Electric, a cloze model or a masked LM.

Electric and the two-tower cloze model score all tokens of a text in one pass. A
masked LM masks one token at a time and needs one pass per token.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.formatting import shorten
from configure.generator import GeneratorKind
from electra_tf.inspection.fill_mask import padded
from electra_tf.metrics.finite_outputs import check_finite
from electra_tf.modeling.graph_modes import inference
from electra_tf.pretraining import scoring
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.pretraining.losses import softmax_cross_entropy
from electra_tf.pretraining.networks import Networks
from electra_tf.text.vocabulary import UNK

METHODS = ("auto", "electric", "cloze", "masked_lm")
# The number of batches whose inputs are sorted by length together.
_BATCHES_AT_ONCE = 16


class _Text(NamedTuple):
    """A text that is not yet scored, with the ids of its tokens."""

    text: str
    ids: list[int]
    windows: int


@dataclasses.dataclass(frozen=True)
class TextScore:
    """The likelihood of a text; all scores are in nats."""

    text: str
    score: float  # sum of `token_scores`
    tokens: tuple[str, ...]  # the wordpieces of the text
    # log-probability of each token in its context
    token_scores: tuple[float, ...]
    unknown: int  # the number of [UNK]s, each of which hides a word
    windows: int  # the number of windows in which the text was scored


class Window(NamedTuple):
    """A window over a text's tokens, and the tokens to score in the window.

    All values are indices in the text.
    """

    begin: int  # the first token
    end: int  # one past the last token
    first: int  # the first token that is scored
    last: int  # one past the last token that is scored


def windows(count: int, limit: int) -> list[Window]:
    """Return overlapping windows in which every token is scored exactly once.

    Args:
      count: the number of the text's tokens.
      limit: the maximum number of tokens in a window.
    """
    if count <= limit:
        return [Window(0, count, 0, count)] if count else []
    begins = [*range(0, count - limit, max(1, limit // 2)), count - limit]
    result: list[Window] = []
    first = 0
    for begin, following in zip(begins, [*begins[1:], None], strict=True):
        end = begin + limit
        last = count if following is None else (following + end + 1) // 2
        result.append(Window(begin, end, first, last))
        first = last
    return result


class _Row(NamedTuple):
    """An input of the model, and the range of tokens to score."""

    text: int  # the index of the text among the unscored texts
    shown: list[int]  # the ids of a window between [CLS] and [SEP]
    offset: int  # a token's index in the text minus its index in `shown`
    first: int  # the first token of the text that is scored
    last: int  # one past the last token that is scored


class TextScorer:
    """Scorer of texts, with a pre-trained model that is loaded once.

    Source: Electric: `electra_tf.pretraining.scoring`; masked_lm: Salazar et
    al. 2020, "Masked Language Model Scoring", section 2.
    """

    def __init__(
        self,
        pretrained: PretrainedModel,
        method: str = "auto",
        batch_size: int = 32,
    ) -> None:
        """Prepare the model.

        Args:
          pretrained: the model.
          method: one of METHODS; "auto": the best method for the model.
          batch_size: the number of inputs that are computed at once.

        Raises:
          UserError: the model does not support the method.
        """
        self.pretrained = pretrained
        self.method = _resolve_method(pretrained, method)
        self.batch_size = batch_size
        self._compute = _graph(pretrained.model, self.method)

    def score(self, texts: Iterable[str]) -> Iterator[TextScore]:
        """Yield the scores of texts in order; an empty text scores 0."""
        pending: list[_Text] = []
        rows: list[_Row] = []
        for text in texts:
            ids = self.pretrained.tokenizer.encode(text)
            parts = windows(len(ids), self.pretrained.max_length - 2)
            for window in parts:
                rows += self._rows(len(pending), ids, window)
            pending.append(_Text(text, ids, len(parts)))
            if len(rows) >= self.batch_size * _BATCHES_AT_ONCE:
                yield from self._score_pending(pending, rows)
                pending, rows = [], []
        yield from self._score_pending(pending, rows)

    def _rows(
        self, number: int, ids: Sequence[int], window: Window
    ) -> list[_Row]:
        """Return the inputs that score a window's tokens."""
        special = self.pretrained.model.special
        tokens = ids[window.begin : window.end]
        shown = [special.cls_id, *tokens, special.sep_id]
        offset = window.begin - 1
        if self.method != "masked_lm":
            return [_Row(number, shown, offset, window.first, window.last)]
        return [
            _Row(number, shown, offset, token, token + 1)
            for token in range(window.first, window.last)
        ]

    def _score_pending(
        self, texts: list[_Text], rows: list[_Row]
    ) -> Iterator[TextScore]:
        scores = [np.zeros([len(text.ids)]) for text in texts]
        # Sorting puts rows of similar length together, which saves padding.
        rows = sorted(rows, key=lambda row: len(row.shown))
        for start in range(0, len(rows), self.batch_size):
            batch = rows[start : start + self.batch_size]
            for row, values in zip(batch, self._run(batch), strict=True):
                if self.method != "masked_lm":
                    values = values[row.first - row.offset :]
                count = row.last - row.first
                scores[row.text][row.first : row.last] = values[:count]
        tokenizer = self.pretrained.tokenizer
        for text, token_scores in zip(texts, scores, strict=True):
            check_finite(
                {"score": token_scores},
                functools.partial(_describe_token, text),
            )
            yield TextScore(
                text=text.text,
                score=math.fsum(token_scores),
                tokens=tuple(tokenizer.convert_ids_to_tokens(text.ids)),
                token_scores=tuple(token_scores.tolist()),
                unknown=text.ids.count(tokenizer.vocab[UNK]),
                windows=text.windows,
            )

    def _run(self, rows: Sequence[_Row]) -> np.ndarray:
        """Return scores of all tokens [B, L], or of masked tokens [B, 1]."""
        features = padded([row.shown for row in rows])
        if self.method == "masked_lm":
            positions = np.array([[row.first - row.offset] for row in rows])
            ids = features["input_ids"]
            features["targets"] = np.take_along_axis(ids, positions, 1)
            mask_id = self.pretrained.model.special.mask_id
            np.put_along_axis(ids, positions, mask_id, 1)
            features["positions"] = positions.astype(np.int32)
        return self._compute(features).numpy()


def _describe_token(text: _Text, token: int) -> str:
    return f"{shorten(repr(text.text))}, token {token + 1}"


def _resolve_method(pretrained: PretrainedModel, method: str) -> str:
    """Resolve "auto" to a method; check that the model supports the method."""
    two_towers = pretrained.model.kind is GeneratorKind.TWO_TOWER
    if method not in METHODS:
        raise UserError(
            f"method {method!r}: expected one of {', '.join(METHODS)}."
            " Choose one of these methods."
        )
    if method == "auto":
        if pretrained.is_electric and not pretrained.lacks_discriminator():
            method = "electric"
        else:
            method = "cloze" if two_towers else "masked_lm"
    if method == "electric":
        if not pretrained.is_electric:
            raise UserError(
                f"{pretrained.path}: method 'electric' needs an Electric"
                " model, but the model has a different objective. Choose"
                " cloze (for two towers) or masked_lm."
            )
        pretrained.require_discriminator("scoring")
    else:
        pretrained.require_generator(f"the {method} score")
    if method == "cloze" and not two_towers:
        raise UserError(
            f"{pretrained.path}: method 'cloze' needs a two-tower cloze model,"
            " but this generator is a masked LM. Choose masked_lm."
        )
    if method == "masked_lm" and two_towers:
        raise UserError(
            f"{pretrained.path}: method 'masked_lm' needs a masked LM, but"
            " this generator has two towers. Choose cloze or electric."
        )
    return method


def _graph(
    networks: Networks, method: str
) -> Callable[[dict[str, np.ndarray]], tf.Tensor]:
    """Return a graph that computes scores for any batch size and length."""
    names = ["input_ids", "input_mask", "segment_ids"]
    if method == "masked_lm":
        names += ["positions", "targets"]
    spec = dict.fromkeys(names, tf.TensorSpec([None, None], tf.int32))

    @tf.function(input_signature=[spec])
    def compute(features: dict[str, tf.Tensor]) -> tf.Tensor:
        with inference():
            if method == "masked_lm":
                positions = features["positions"]
                logits, _ = networks.generator_logits(features, positions)
                return -softmax_cross_entropy(logits, features["targets"])
            if method == "cloze":
                return scoring.cloze_scores(networks, features)["token_scores"]
            return scoring.electric_scores(networks, features)["token_scores"]

    return compute
