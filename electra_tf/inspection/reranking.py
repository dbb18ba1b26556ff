# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""n-best lists in a new order: the recognizer's score plus the model's.

A recognizer or translator offers hypotheses with scores of its own; the new
score is

    base score + weight * score of the text,

both logarithms, and the weight is tuned on lists whose right answers are
known.

Source: Electric paper, section 3 (re-ranking speech recognition); Salazar et
al. 2020, "Masked Language Model Scoring", section 3, for the interpolation.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from configure.errors import UserError
from electra_tf.inspection.text_scoring import TextScore, TextScorer
from electra_tf.inspection.word_errors import WordErrors, word_errors

# What is tried when a weight is tuned: 0, and twelve a decade around 1.
WEIGHTS = (0.0, *(10 ** (step / 12) for step in range(-36, 25)))


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One of the texts offered.

    Attributes:
      list_id: of the n-best list that it is in.
      text: the text.
      base_score: what the recognizer gave it, higher is better; None where
        none was given, which counts as 0.
    """

    list_id: str
    text: str
    base_score: float | None = None


@dataclasses.dataclass(frozen=True)
class Scored:
    """A hypothesis with its score.

    Attributes:
      hypothesis: as given.
      text_score: of its text.
      place: its place in the list as given, from 0.
    """

    hypothesis: Hypothesis
    text_score: TextScore
    place: int

    def combined(self, weight: float) -> float:
        """Base score + weight * score."""
        base = self.hypothesis.base_score or 0.0
        return base + weight * self.text_score.score


NBest = list[Scored]


def score_lists(
    scorer: TextScorer, hypotheses: Iterable[Hypothesis]
) -> Iterator[NBest]:
    """Scores hypotheses and gathers them into their lists."""
    ahead, behind = itertools.tee(hypotheses)
    scores = scorer.score(hypothesis.text for hypothesis in ahead)
    pairs = zip(behind, scores, strict=True)
    seen: set[str] = set()
    for list_id, group in itertools.groupby(pairs, lambda p: p[0].list_id):
        if list_id in seen:
            raise UserError(
                f"n-best list {list_id!r}: its hypotheses are not one after"
                " the other; sort the file by id."
            )
        seen.add(list_id)
        yield [
            Scored(hypothesis, score, place)
            for place, (hypothesis, score) in enumerate(group)
        ]


def reranked(scored: NBest, weight: float) -> NBest:
    """Sorts a list by the combined score, the best first."""
    return sorted(scored, key=lambda s: -s.combined(weight))


@dataclasses.dataclass(frozen=True)
class Tuning:
    """What came of tuning a weight.

    Attributes:
      weight: the best; of equally good ones the smallest.
      errors: with it.
      base: of the base scores alone (weight 0).
      oracle: if the best hypothesis were always chosen.
      tried: errors by weight.
    """

    weight: float
    errors: WordErrors
    base: WordErrors
    oracle: WordErrors
    tried: Mapping[float, WordErrors]


def tune_weight(
    lists: Sequence[NBest],
    references: Mapping[str, str],
    weights: Sequence[float] = WEIGHTS,
    count: Callable[[str, str], WordErrors] = word_errors,
) -> Tuning:
    """Finds the weight with which fewest words are wrong."""
    if not lists:
        raise UserError("No n-best lists to tune the weight on.")
    errors = [_errors(scored, references, count) for scored in lists]
    tried = {}
    for weight in sorted({0.0, *weights}):
        chosen = (
            of_list[reranked(scored, weight)[0].place]
            for scored, of_list in zip(lists, errors, strict=True)
        )
        tried[weight] = sum(chosen, WordErrors())
    # `min` keeps the first, hence the smallest.
    best = min(tried, key=lambda weight: tried[weight].rate)
    oracle = sum(
        (min(of_list, key=lambda e: e.errors) for of_list in errors),
        WordErrors(),
    )
    return Tuning(best, tried[best], tried[0.0], oracle, tried)


def errors_of(
    lists: Iterable[NBest], references: Mapping[str, str], weight: float
) -> WordErrors:
    """Counts the errors of the lists' best hypotheses."""
    total = WordErrors()
    for scored in lists:
        best = reranked(scored, weight)[0].hypothesis
        total += word_errors(_reference(references, best.list_id), best.text)
    return total


def _errors(
    scored: NBest,
    references: Mapping[str, str],
    count: Callable[[str, str], WordErrors],
) -> list[WordErrors]:
    reference = _reference(references, scored[0].hypothesis.list_id)
    return [count(reference, one.hypothesis.text) for one in scored]


def _reference(references: Mapping[str, str], list_id: str) -> str:
    if list_id not in references:
        raise UserError(f"n-best list {list_id!r} has no reference.")
    return references[list_id]
