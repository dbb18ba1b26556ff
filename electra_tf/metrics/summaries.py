# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Summaries made of a document's sentences: oracles, ROUGE, baselines.

Source: Liu and Lapata (2019), BERTSUM: labels by greedy ROUGE, three sentences.
"""

import collections
import functools
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from configure.errors import UserError
from electra_tf.metrics.scorers import Figures, Scorer

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
# What stands beside a model: see `SummaryScorer`.
BASELINES = ("lead", "oracle", "random")


class Document(Protocol):
    """An example of a summarization task, as scoring sees it."""

    eid: int  # its number; fixes the random sentences, too
    sentences: tuple[str, ...]
    summary: str | None  # the reference, a sentence a line; None: not known


@functools.cache
def _package() -> tuple[Any, Callable[[str], list[str]]]:
    """The scorer of rouge-score, and how it tokenizes."""
    try:
        from rouge_score import rouge_scorer, tokenizers
    except ImportError as error:
        raise UserError(
            "summaries are labelled and scored by the package rouge-score,"
            f" which cannot be imported ({error}): pip install"
            ' "electra_tf[rouge]", or from a checkout: pip install .[rouge]'
        ) from error
    tokenizer = tokenizers.DefaultTokenizer(use_stemmer=True)
    scorer = rouge_scorer.RougeScorer(ROUGE, tokenizer=tokenizer)
    return scorer, tokenizer.tokenize


@functools.lru_cache(2**16)
def rouge(reference: str, summary: str) -> Mapping[str, float]:
    """F-measures of a summary, in percent, as rouge-score has them.

    ROUGE-Lsum takes each line for a sentence.
    """
    found = _package()[0].score(reference, summary)
    return {name: 100.0 * score.fmeasure for name, score in found.items()}


@functools.lru_cache(2**16)
def find_oracle(
    sentences: tuple[str, ...], reference: str, most: int
) -> tuple[int, ...]:
    """Chooses sentences one by one, each raising ROUGE-1 + ROUGE-2 most.

    At most so many, fewer where no other raises it; in their order. Bigrams
    do not reach from one sentence into the next.
    """
    tokenize = _package()[1]

    def grams(text: str) -> list[collections.Counter]:
        tokens = tokenize(text)
        pairs = itertools.pairwise(tokens)
        return [collections.Counter(tokens), collections.Counter(pairs)]

    wanted, own = grams(reference), [grams(text) for text in sentences]
    chosen: list[int] = []
    have, best = grams(""), 0.0
    while len(chosen) < most:
        tried = {
            i: [h + o for h, o in zip(have, counts, strict=True)]
            for i, counts in enumerate(own)
            if i not in chosen
        }
        scores = {
            i: sum(
                2.0 * (h & w).total() / max(1, h.total() + w.total())
                for h, w in zip(counts, wanted, strict=True)
            )
            for i, counts in tried.items()
        }
        top = max(scores, key=scores.__getitem__, default=None)
        if top is None or scores[top] <= best:
            break
        chosen.append(top)
        have, best = tried[top], scores[top]
    return tuple(sorted(chosen))


def choose(scores: Sequence[float], most: int) -> list[int]:
    """The sentences of the highest scores, in their order."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    return sorted(order[:most].tolist())


def join(sentences: Sequence[str], chosen: Sequence[int]) -> str:
    """A summary: the chosen sentences, one a line."""
    return "\n".join(sentences[i] for i in chosen)


class SummaryScorer(Scorer):
    """ROUGE of the best sentences of each document, in percent.

    Among the details is what the first sentences give (`lead`), the best ones
    that greedy search finds with the reference at hand (`oracle`), and random
    ones, always the same (`random`); all of at most `most` sentences.
    """

    figures = (
        *ROUGE,
        "loss",
        *(f"{name}_{figure}" for name in BASELINES for figure in ROUGE),
    )

    def __init__(self, documents: Sequence[Document], most: int) -> None:
        super().__init__()
        self._documents = {document.eid: document for document in documents}
        self._most = most
        self._losses: list[float] = []
        self._rows: list[dict[str, Any]] = []  # once they are computed
        self._logits: dict[int, dict[int, float]] = collections.defaultdict(
            dict
        )

    def update(self, results: Mapping[str, Any]) -> None:
        """Takes in one window: `eid`, `loss`, and of [L] the others.

        `logits`, `labels_mask` and `numbers`, from 1 in the document, are
        dense from index 0. Windows may come in any order.
        """
        super().update(results)
        count = round(float(np.sum(results["labels_mask"])))
        logits = np.asarray(results["logits"])[:count].tolist()
        numbers = np.asarray(results["numbers"])[:count].tolist()
        own = self._logits[int(results["eid"])]
        own.update(zip(numbers, logits, strict=True))
        self._losses.append(float(results["loss"]))
        self._rows = []

    def get_loss(self) -> float:
        return float(np.mean(self._losses))

    def answer(self) -> dict[int, list[int]]:
        """The sentences chosen of each document, counted from 0."""
        return {
            eid: choose([found[n] for n in sorted(found)], self._most)
            for eid, found in sorted(self._logits.items())
        }

    def final_answers(self) -> dict[str, str]:
        """The summary of each document, by its number."""
        return {
            str(eid): join(self._documents[eid].sentences, chosen)
            for eid, chosen in self.answer().items()
        }

    def _get_results(self) -> Figures:
        return [*self._means("model"), ("loss", self.get_loss())]

    def get_details(self) -> Figures:
        return [
            (f"{name}_{figure}", value)
            for name in BASELINES
            for figure, value in self._means(name)
        ]

    def files(self) -> Mapping[str, Any]:
        """Every document's summaries, their sentences and ROUGE."""
        return {"summaries": self._scored()}

    def _means(self, name: str) -> Figures:
        rows = [row[name]["rouge"] for row in self._scored()]
        return [(f, float(np.mean([row[f] for row in rows]))) for f in ROUGE]

    def _scored(self) -> list[dict[str, Any]]:
        if self._rows:
            return self._rows
        for eid, chosen in self.answer().items():
            document = self._documents[eid]
            sentences, reference = document.sentences, document.summary
            every, most = range(len(sentences)), self._most
            drawn = random.Random(eid).sample(every, min(most, len(every)))
            row: dict[str, Any] = {"document": eid}
            for name, numbers in {
                "model": chosen,
                "lead": every[:most],
                "oracle": find_oracle(sentences, reference, most),
                "random": sorted(drawn),
            }.items():
                summary = join(sentences, numbers)
                row[name] = {
                    "sentences": [*numbers],
                    "summary": summary,
                    "rouge": rouge(reference, summary),
                }
            self._rows.append(row)
        return self._rows
