# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""ROUGE of a model's extractive summaries, and of baseline summaries."""

from __future__ import annotations

import collections
import functools
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from configure.errors import missing_extra
from electra_tf.metrics.scorers import (
    ANY_SCRIPT,
    Json,
    Metrics,
    Row,
    Scorer,
)
from electra_tf.text.measured_words import (
    VERSION,
    is_english,
    split_into_words,
)

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
# Summaries with which a model is compared; see `SummaryScorer`.
BASELINES = ("lead", "oracle", "random")

# Names that results contain for the two ways of splitting texts into words.
ROUGE_SCORE = "rouge-score"
WORDS_OF_ANY_SCRIPT = f"words of any script (version {VERSION})"
MEASURE = (
    f"ROUGE of {ROUGE_SCORE}'s words where the reference is in English, else of"
    f" {WORDS_OF_ANY_SCRIPT}"
)


class _Tokenizer(Protocol):
    """A tokenizer of rouge-score."""

    def tokenize(self, text: str) -> list[str]: ...


class _Score(Protocol):
    """A score of rouge-score."""

    fmeasure: float


class _RougeScorer(Protocol):
    """The scorer of rouge-score."""

    def score(self, target: str, prediction: str) -> Mapping[str, _Score]: ...


class SummarizedDocument(Protocol):
    """A document to summarize."""

    eid: int
    summary: str | None  # reference summary, required for metrics

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences of the document."""


class _AnyScript:
    """A tokenizer for rouge-score that keeps words of all scripts.

    ASCII words are split and stemmed by rouge-score's tokenizer, so ASCII texts
    get the same scores as from rouge-score.
    """

    def __init__(self, ascii_tokenizer: _Tokenizer) -> None:
        self._tokenize_ascii = ascii_tokenizer.tokenize

    def tokenize(self, text: str) -> list[str]:
        tokens = []
        for word in split_into_words(text):
            tokens += self._tokenize_ascii(word) if word.isascii() else [word]
        return tokens


@functools.cache
def _scorers() -> dict[str, tuple[_RougeScorer, Callable[[str], list[str]]]]:
    """Return a scorer and a tokenize function for each way of splitting texts.

    The scorers are rouge-score's.
    """
    try:
        from rouge_score import rouge_scorer, tokenizers
    except ImportError as error:
        subject = "rouge-score, which selects and scores sentences,"
        raise missing_extra(subject, "rouge", error) from error
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
    """Return the way of splitting a reference and its summaries into words.

    rouge-score's tokenizer treats all letters outside of a-z as spaces
    ("fiancée" becomes "fianc" and "e"). English texts are split with this
    tokenizer, because published numbers depend on it; other texts are split
    into words of any script.
    """
    english = is_english(reference)
    return ROUGE_SCORE if english else WORDS_OF_ANY_SCRIPT


@functools.lru_cache(2**16)
def rouge(reference: str, summary: str) -> Mapping[str, float]:
    """Return the ROUGE F-measures of a summary, in percent.

    ROUGE-Lsum treats each line of a text as a sentence.
    """
    scorer, _ = _scorers()[choose_splitting(reference)]
    scores = scorer.score(reference, summary)
    return {name: 100.0 * score.fmeasure for name, score in scores.items()}


@functools.lru_cache(2**16)
def find_oracle(
    sentences: tuple[str, ...], reference: str, limit: int
) -> tuple[int, ...]:
    """Return the sorted indices of the sentences of a greedy summary.

    Each step adds the sentence that raises ROUGE-1 + ROUGE-2 most, until no
    sentence raises the sum or the summary has `limit` sentences. Bigrams do not
    span two sentences.

    Source: Liu and Lapata (2019), BERTSUM, greedy_selection.
    """
    _, tokenize = _scorers()[choose_splitting(reference)]

    def grams(text: str) -> list[collections.Counter]:
        tokens = tokenize(text)
        pairs = itertools.pairwise(tokens)
        return [collections.Counter(tokens), collections.Counter(pairs)]

    reference_grams = grams(reference)
    grams_of_sentences = [grams(text) for text in sentences]

    def score(summary: list[collections.Counter]) -> float:
        total = 0.0
        for a, b in zip(summary, reference_grams, strict=True):
            total += 2.0 * (a & b).total() / max(1, a.total() + b.total())
        return total

    indices: list[int] = []
    summary, best = grams(""), 0.0
    while len(indices) < limit:
        extended = {}
        for i, sentence in enumerate(grams_of_sentences):
            if i not in indices:
                pairs = zip(summary, sentence, strict=True)
                extended[i] = [a + b for a, b in pairs]
        scores = {i: score(counts) for i, counts in extended.items()}
        top = max(scores, key=lambda i: scores[i], default=None)
        if top is None or scores[top] <= best:
            break
        indices.append(top)
        summary, best = extended[top], scores[top]
    return tuple(sorted(indices))


def choose(scores: Sequence[float], limit: int) -> list[int]:
    """Return the sorted indices of the `limit` highest scores."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    return sorted(order[:limit].tolist())


class SummaryScorer(Scorer):
    """Scorer of ROUGE, in percent, of the sentences that a model chooses.

    The details include ROUGE of the first sentences (`lead`), of the sentences
    of `find_oracle`, and of random sentences, which depend only on the
    document's number.
    """

    metric_names = (
        *ROUGE,
        "loss",
        *(f"{name}_{metric}" for name in BASELINES for metric in ROUGE),
        ANY_SCRIPT,
    )

    def __init__(
        self, documents: Sequence[SummarizedDocument], limit: int
    ) -> None:
        """Create a scorer that has no outputs yet.

        Args:
          documents: documents of the split.
          limit: maximum number of sentences in a summary.
        """
        super().__init__()
        self._documents = {document.eid: document for document in documents}
        self._limit = limit
        self._losses: list[float] = []
        # Log odds of choosing a sentence, by the document's `eid` and by the
        # sentence's number, from 1.
        self._odds: dict[int, dict[int, float]] = {}
        self._summaries: list[dict] = []  # computed on demand

    def update(self, results: Row) -> None:
        """Add the outputs of `SummarizationHead` for one window."""
        super().update(results)
        count = round(float(np.sum(results["labels_mask"])))
        no, yes = np.transpose(results["logits"][:count])
        odds = self._odds.setdefault(int(results["eid"]), {})
        odds.update(zip(results["numbers"][:count], yes - no, strict=True))
        self._losses.append(float(results["loss"]))
        self._summaries = []

    def get_loss(self) -> float:
        """Return the mean loss per window."""
        return float(np.mean(self._losses))

    def answer(self) -> dict[int, list[int]]:
        """Return the indices of the chosen sentences of each document."""
        indices = {}
        for eid, odds in sorted(self._odds.items()):
            scores = [odds[number] for number in sorted(odds)]
            indices[eid] = choose(scores, self._limit)
        return indices

    def final_answers(self) -> dict[str, str]:
        """Return the summary of each document, by the document's number."""
        summaries = {}
        for eid, indices in self.answer().items():
            sentences = self._documents[eid].sentences
            summaries[str(eid)] = "\n".join(sentences[i] for i in indices)
        return summaries

    def _get_results(self) -> Metrics:
        return [*self._means("model", ""), ("loss", self.get_loss())]

    def get_details(self) -> Metrics:
        """Return ROUGE of the baselines, and the count `any_script`."""
        means = (self._means(name, f"{name}_") for name in BASELINES)
        summaries = self._compute_summaries()
        count = sum(row["words"] != ROUGE_SCORE for row in summaries)
        return [*itertools.chain.from_iterable(means), (ANY_SCRIPT, count)]

    def baselines(self) -> dict[str, dict[str, float]]:
        """Return the ROUGE of summaries that consist of random sentences."""
        return {"chance": dict(self._means("random", ""))}

    def _means(self, name: str, prefix: str) -> Metrics:
        """Return the mean ROUGE scores of one kind of summary."""
        scores = [row[name]["rouge"] for row in self._compute_summaries()]
        return [
            (prefix + metric, float(np.mean([row[metric] for row in scores])))
            for metric in ROUGE
        ]

    def files(self) -> Mapping[str, Json]:
        """Return each document's summaries: sentence indices and ROUGE."""
        return {"summaries": self._compute_summaries()}

    def _compute_summaries(self) -> list[dict]:
        if not self._summaries:
            for eid, indices in self.answer().items():
                document = self._documents[eid]
                self._summaries.append(self._summarize(document, indices))
        return self._summaries

    def _summarize(
        self, document: SummarizedDocument, indices: list[int]
    ) -> dict:
        """Return the summaries of a document by the model and the baselines."""
        sentences, reference = document.sentences, document.summary
        if reference is None:
            raise ValueError(
                f"cannot compute ROUGE: document {document.eid} has no"
                " reference summary. Evaluate a split that has summaries"
            )
        every, limit = range(len(sentences)), self._limit
        drawn = random.Random(document.eid).sample(
            every, min(limit, len(every))
        )
        row: dict = {
            "document": document.eid,
            "words": choose_splitting(reference),
        }
        for name, sentence_indices in (
            ("model", indices),
            ("lead", every[:limit]),
            ("oracle", find_oracle(sentences, reference, limit)),
            ("random", sorted(drawn)),
        ):
            summary = "\n".join(sentences[i] for i in sentence_indices)
            row[name] = {
                "sentences": [*sentence_indices],
                "rouge": rouge(reference, summary),
            }
        return row
