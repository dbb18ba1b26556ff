# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Summaries made of a document's sentences: oracles, ROUGE, baselines."""

import collections
import functools
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from configure.errors import missing_extra
from electra_tf.metrics.scorers import ANY_SCRIPT, Metrics, Scorer
from electra_tf.text.measured_words import (
    VERSION,
    is_english,
    split_into_words,
)

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
# What stands beside a model: see `SummaryScorer`.
BASELINES = ("lead", "oracle", "random")


# How texts were split, as results name it.
ROUGE_SCORE = "rouge-score"
WORDS_OF_ANY_SCRIPT = f"words of any script (version {VERSION})"
MEASURE = (
    f"ROUGE of {ROUGE_SCORE}'s words where the reference is in English, else of"
    f" {WORDS_OF_ANY_SCRIPT}"
)


class _AnyScript:
    """A tokenizer for rouge-score that leaves the words of no script out.

    Words in a-z and 0-9 alone are those of rouge-score's own tokenizer, stems
    among them, so that texts in ASCII have its numbers.
    """

    def __init__(self, ascii_tokenizer: Any) -> None:
        self._tokenize_ascii = ascii_tokenizer.tokenize

    def tokenize(self, text: str) -> list[str]:
        tokens = []
        for word in split_into_words(text):
            tokens += self._tokenize_ascii(word) if word.isascii() else [word]
        return tokens


@functools.cache
def _scorers() -> dict[str, tuple[Any, Callable[[str], list[str]]]]:
    """Return rouge-score's scorer and tokenizer for each way of splitting."""
    try:
        from rouge_score import rouge_scorer, tokenizers
    except ImportError as error:
        what = "summaries are labelled and scored by rouge-score, which"
        raise missing_extra(what, "rouge", error) from error
    default = tokenizers.DefaultTokenizer(use_stemmer=True)
    return {
        name: (
            rouge_scorer.RougeScorer(ROUGE, tokenizer=tokenizer),
            tokenizer.tokenize,
        )
        for name, tokenizer in (
            (ROUGE_SCORE, default),
            (WORDS_OF_ANY_SCRIPT, _AnyScript(default)),
        )
    }


def choose_splitting(reference: str) -> str:
    """Return how summaries are split that are compared with a reference.

    rouge-score's tokenizer takes every letter outside of a-z for a space. So
    it is kept for English, where published numbers have "fiancée" as "fianc"
    and "e"; everything else is split into words of any script.
    """
    english = is_english(reference)
    return ROUGE_SCORE if english else WORDS_OF_ANY_SCRIPT


@functools.lru_cache(2**16)
def rouge(reference: str, summary: str) -> Mapping[str, float]:
    """Return a summary's F-measures, in percent; for ROUGE-Lsum by lines."""
    scorer, _ = _scorers()[choose_splitting(reference)]
    scores = scorer.score(reference, summary)
    return {name: 100.0 * score.fmeasure for name, score in scores.items()}


@functools.lru_cache(2**16)
def find_oracle(
    sentences: tuple[str, ...], reference: str, most: int
) -> tuple[int, ...]:
    """Choose sentences one by one, each raising ROUGE-1 + ROUGE-2 most.

    At most so many, fewer where no other raises it; in their order. Bigrams
    do not reach from one sentence into the next.

    Source: Liu and Lapata (2019), BERTSUM, greedy_selection.
    """
    _, tokenize = _scorers()[choose_splitting(reference)]

    def grams(text: str) -> list[collections.Counter]:
        tokens = tokenize(text)
        pairs = itertools.pairwise(tokens)
        return [collections.Counter(tokens), collections.Counter(pairs)]

    wanted, own = grams(reference), [grams(text) for text in sentences]

    def score(counts: list[collections.Counter]) -> float:
        return sum(
            2.0 * (have & want).total() / max(1, have.total() + want.total())
            for have, want in zip(counts, wanted, strict=True)
        )

    chosen: list[int] = []
    have, best = grams(""), 0.0
    while len(chosen) < most:
        tried = {
            i: [a + b for a, b in zip(have, counts, strict=True)]
            for i, counts in enumerate(own)
            if i not in chosen
        }
        top = max(tried, key=lambda i: score(tried[i]), default=None)
        if top is None or score(tried[top]) <= best:
            break
        chosen.append(top)
        have, best = tried[top], score(tried[top])
    return tuple(sorted(chosen))


def choose(scores: Sequence[float], most: int) -> list[int]:
    """The sentences of the highest scores, in their order."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    return sorted(order[:most].tolist())


class SummaryScorer(Scorer):
    """ROUGE of the best sentences of each document, in percent.

    Among the details is what the first sentences give (`lead`), those of
    `find_oracle`, and random ones, always the same. Documents have `eid`,
    `sentences` and, for figures, a `summary`.
    """

    metric_names = (
        *ROUGE,
        "loss",
        *(f"{name}_{figure}" for name in BASELINES for figure in ROUGE),
        ANY_SCRIPT,
    )

    def __init__(self, documents: Sequence[Any], most: int) -> None:
        super().__init__()
        self._documents = {document.eid: document for document in documents}
        self._most = most
        self._losses: list[float] = []
        self._odds: dict[int, dict[int, float]] = {}
        self._rows: list[dict[str, Any]] = []  # once they are computed

    def update(self, results: Mapping[str, Any]) -> None:
        """Takes in one window, as `SummarizationHead` gives it."""
        super().update(results)
        count = round(float(np.sum(results["labels_mask"])))
        odds = np.subtract(*np.transpose(results["logits"][:count])[::-1])
        own = self._odds.setdefault(int(results["eid"]), {})
        own.update(zip(results["numbers"][:count], odds, strict=True))
        self._losses.append(float(results["loss"]))
        self._rows = []

    def get_loss(self) -> float:
        return float(np.mean(self._losses))

    def answer(self) -> dict[int, list[int]]:
        """The sentences chosen of each document, counted from 0."""
        return {
            eid: choose([found[n] for n in sorted(found)], self._most)
            for eid, found in sorted(self._odds.items())
        }

    def final_answers(self) -> dict[str, str]:
        """The summary of each document, by its number."""
        return {
            str(eid): "\n".join(self._documents[eid].sentences[i] for i in own)
            for eid, own in self.answer().items()
        }

    def _get_results(self) -> Metrics:
        return [*self._means("model", ""), ("loss", self.get_loss())]

    def get_details(self) -> Metrics:
        means = (self._means(name, f"{name}_") for name in BASELINES)
        rows = self.files()["summaries"]
        count = len([row for row in rows if row["words"] != ROUGE_SCORE])
        return [*itertools.chain.from_iterable(means), (ANY_SCRIPT, count)]

    def baselines(self) -> dict[str, dict[str, float]]:
        """Return the figures of sentences that are drawn uniformly."""
        return {"chance": dict(self._means("random", ""))}

    def _means(self, name: str, lead: str) -> Metrics:
        rows = [row[name]["rouge"] for row in self.files()["summaries"]]
        return [(lead + f, float(np.mean([r[f] for r in rows]))) for f in ROUGE]

    def files(self) -> Mapping[str, Any]:
        """Every document's summaries, their sentences and ROUGE."""
        for eid, chosen in () if self._rows else self.answer().items():
            document = self._documents[eid]
            sentences, reference = document.sentences, document.summary
            every, most = range(len(sentences)), self._most
            drawn = random.Random(eid).sample(every, min(most, len(every)))
            row: dict[str, Any] = {"document": eid}
            row["words"] = choose_splitting(reference)
            for name, numbers in {
                "model": chosen,
                "lead": every[:most],
                "oracle": find_oracle(sentences, reference, most),
                "random": sorted(drawn),
            }.items():
                summary = "\n".join(sentences[i] for i in numbers)
                scores = rouge(reference, summary)
                row[name] = {"sentences": [*numbers], "rouge": scores}
            self._rows.append(row)
        return {"summaries": self._rows}
