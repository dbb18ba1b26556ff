# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a model's scores for windows of passages to answers and figures.

Answers are scored as SQuAD 1.1 and 2.0 and MRQA 2019 do; SQuAD's scores are
computed by the official scripts of tf-models-official.

Source: google-research/electra, finetune/qa/qa_metrics.py,
squad_official_eval_v1.py, squad_official_eval.py (of which these scripts are
versions, too) and mrqa_official_eval.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.metrics.matching import encode_answers, keeps_script
from electra_tf.metrics.scorers import ANY_SCRIPT, Metrics, Scorer
from electra_tf.text.basic_tokenizer import BasicTokenizer

# Null odds of a question without any window.
NO_WINDOW = np.float32(1000000)
# Outputs of the head that spans are made of, by whether prediction is joint.
SPAN_OUTPUTS = {
    True: (
        *("start_top_log_probs", "start_top_index"),
        *("end_top_log_probs", "end_top_index"),
    ),
    False: ("start_logits", "end_logits"),
}


class Question(Protocol):
    """A question, as scoring sees it."""

    key: str  # its id in predictions
    answers: tuple[str, ...]  # the texts that count as right, or none
    doc_tokens: list[str]  # the passage's words
    passage_text: str  # the passage; read where windows have spans


class Window(NamedTuple):
    """Part of a passage behind its question, as the model sees it."""

    eid: int  # the number that the model's outputs for it carry
    tokens: list[str]  # special ones among them, without padding
    # Int [len(tokens)], the passage's word each belongs to; -1 for none.
    words: np.ndarray
    # Bool [len(tokens)], whether no other window shows more around each.
    max_context: np.ndarray
    # Int [len(tokens), 2], the characters of the passage under each, first and
    # one past the last, -1 for none; None: answers are searched in the words.
    spans: np.ndarray | None = None


class Answer(NamedTuple):
    """A candidate answer."""

    text: str  # as it stands in the passage
    start_score: float  # of its first wordpiece: a logit or a log probability
    end_score: float  # of its last wordpiece
    words: tuple[int, int] | None = None  # the passage's, first and last
    # Its characters in the passage; None where it was searched in the words.
    span: tuple[int, int] | None = None

    @property
    def score(self) -> float:
        """The sum that answers are ordered by, in the scores' precision."""
        return self.start_score + self.end_score


class _Spans(NamedTuple):
    """Candidates of one or several windows; one row each."""

    window: np.ndarray
    start: np.ndarray
    end: np.ndarray
    start_score: np.ndarray  # float32
    end_score: np.ndarray  # float32


def find_answers(
    config: FinetuningConfig,
    windows: Sequence[Window],
    outputs: Sequence[Mapping[str, Any]],
    doc_tokens: Sequence[str],
    tokenizer: BasicTokenizer,
    passage: str | None = None,
) -> list[Answer]:
    """Returns the `n_best_size` best different texts, best first.

    "empty" if there are none. With a passage an answer is the characters under
    its wordpieces (`Window.spans`); without, `project_to_passage` searches it.
    """
    pairs = enumerate(zip(windows, outputs, strict=True))
    parts = [_allowed_spans(config, number, *pair) for number, pair in pairs]
    if not parts:
        return [Answer("empty", 0.0, 0.0)]
    spans = _Spans(*map(np.concatenate, zip(*parts, strict=True)))
    # Equal scores stay in the order of windows, starts and ends.
    order = np.argsort(-(spans.start_score + spans.end_score), kind="stable")
    answers: dict[str, Answer] = {}
    for row in order:
        if len(answers) >= config.n_best_size:
            break
        window = windows[spans.window[row]]
        start, end = spans.start[row], spans.end[row]
        place = None
        if passage is not None:
            place = _characters(window, start, end)
            text = passage[slice(*place)]
        else:
            text = _searched_text(window, start, end, doc_tokens, tokenizer)
        if text not in answers:
            scores = spans.start_score[row], spans.end_score[row]
            words = int(window.words[start]), int(window.words[end])
            answers[text] = Answer(text, *scores, words, place)
    return list(answers.values()) or [Answer("empty", 0.0, 0.0)]


def _characters(window: Window, start: int, end: int) -> tuple[int, int]:
    """Returns the characters under wordpieces, `start` to `end` included."""
    part = window.spans[start : end + 1]
    return int(part[:, 0].min()), int(part[:, 1].max())


def _searched_text(
    window: Window,
    start: int,
    end: int,
    doc_tokens: Sequence[str],
    tokenizer: BasicTokenizer,
) -> str:
    """Returns an answer as the original finds it in the passage's words."""
    words = doc_tokens[window.words[start] : window.words[end] + 1]
    joined = " ".join(window.tokens[start : end + 1])
    joined = joined.replace(" ##", "").replace("##", "")
    joined = " ".join(joined.split())
    return project_to_passage(joined, " ".join(words), tokenizer)


def probabilities(answers: Sequence[Answer]) -> list[float]:
    """Returns the softmax over the scores of at least one answer."""
    scores = np.array([answer.score for answer in answers], np.float64)
    odds = np.exp(scores - scores.max())
    return (odds / odds.sum()).tolist()


def _allowed_spans(
    config: FinetuningConfig,
    number: int,
    window: Window,
    output: Mapping[str, Any],
) -> _Spans:
    """The window's candidates that can be answers."""
    names = SPAN_OUTPUTS[config.joint_prediction]
    given = [np.asarray(output[name]) for name in names]
    if config.joint_prediction:
        # The beam: each start with the ends that follow from it.
        start_score, start, end_score, end = given
        grid = (start[:, None], end, start_score[:, None], end_score)
        grid = np.broadcast_arrays(*grid)
    else:  # Each of the best starts with each of the best ends.
        best = [
            np.argsort(-logits, kind="stable")[: config.n_best_size]
            for logits in given
        ]
        grid = [*np.meshgrid(*best, indexing="ij")]
        grid += [logits[at] for logits, at in zip(given, grid, strict=True)]
    start, end, start_score, end_score = (part.ravel() for part in grid)
    count = len(window.tokens)
    inside = (start < count) & (end < count)
    first, last = np.where(inside, start, 0), np.where(inside, end, 0)
    length = end - start + 1
    allowed = (
        inside
        & (window.words[first] >= 0)
        & (window.words[last] >= 0)
        & window.max_context[first]
        & (length >= 1)
        & (length <= config.max_answer_length)
    )
    kept = [part[allowed] for part in (start, end, start_score, end_score)]
    return _Spans(np.full(len(kept[0]), number), *kept)


def project_to_passage(
    answer: str, passage: str, tokenizer: BasicTokenizer
) -> str:
    """Finds the part of a passage that a tokenized answer stands for.

    Tokenizing lower-cases, splits punctuation off and may drop accents. The
    passage is tokenized in the same way, the answer is looked for in the
    result, and its first and last character are carried back by counting
    characters that are not spaces. It is the whole passage where tokenizing
    changed the number of characters or the answer cannot be found.
    """
    tokenized = " ".join(tokenizer.tokenize(passage))
    start = tokenized.find(answer)
    if start < 0:
        return passage
    end = start + len(answer) - 1
    passage_places = [i for i, c in enumerate(passage) if c != " "]
    places = [i for i, c in enumerate(tokenized) if c != " "]
    if len(passage_places) != len(places):
        return passage
    numbers = {place: number for number, place in enumerate(places)}
    if start not in numbers or end not in numbers:
        return passage
    first = passage_places[numbers[start]]
    return passage[first : passage_places[numbers[end]] + 1]


def metric_names(version: str, match: str | None) -> tuple[str, ...]:
    """Return the names of the figures of a task by version and `match`."""
    names = (*_FIGURES[version], "loss", "questions", "windows")
    return names if match is None else (*names, ANY_SCRIPT)


class SpanScorer(Scorer):
    """Puts the windows of each question together, and scores the answers.

    Differs: windows may come in any order. Only what the answers need is
      kept of a window's outputs. The best answers with their probabilities,
      which the original computes and drops, are among the files.
    """

    def __init__(
        self,
        config: FinetuningConfig,
        name: str,
        version: str,
        examples: Sequence[Question],
        windows_of: Callable[[Any], list[Window]],
        match: str | None = None,
    ) -> None:
        """`match`: as of `metrics.matching`; None for the official script."""
        super().__init__()
        self._updated = True  # There may be questions without a window.
        self._config = config
        self._name = name
        self._version = version
        self._match = match
        self.metric_names = metric_names(version, match)
        self._examples = examples
        self._windows_of = windows_of
        self._tokenizer = BasicTokenizer(
            config.do_lower_case, config.strip_accents
        )
        self._outputs: dict[int, dict[str, np.ndarray]] = {}
        self._losses: dict[int, float] = {}
        # By question's id, once `answer` was called: its best answer, the odds
        # that there is none ("squad2" only), and its answers, best first.
        self.predictions: dict[str, str] = {}
        self.null_odds: dict[str, float] = {}
        self.best: dict[str, list[Answer]] = {}
        self.scores: dict[str, float] = {}  # in the official script's order

    def update(self, results: Mapping[str, Any]) -> None:
        """Takes `eid`, `loss`, `answerable_logit`, and logits or the beam."""
        super().update(results)
        eid = int(results["eid"])
        self._losses[eid] = float(results["loss"])
        names = SPAN_OUTPUTS[self._config.joint_prediction]
        kept = {name: np.array(results[name]) for name in names}
        if self._version == "squad2" and self._config.answerable_classifier:
            kept["null_score"] = np.float32(results["answerable_logit"])
        elif self._version == "squad2":
            start, end = results["start_logits"][0], results["end_logits"][0]
            kept["null_score"] = np.float32(start) + np.float32(end)
        self._outputs[eid] = kept

    def get_loss(self) -> float:
        losses = [self._losses[eid] for eid in sorted(self._losses)]
        return sum(losses) / max(1, len(losses))

    def get_details(self) -> Metrics:
        details = [
            ("loss", self.get_loss()),
            ("questions", len(self._examples)),
            ("windows", len(self._losses)),
        ]
        if self._match is not None:
            encoded = [
                question
                for question in self._examples
                if not keeps_script(self._match, question)
            ]
            details.append((ANY_SCRIPT, len(encoded)))
        return details

    def single_prediction(self) -> str | None:
        """The one answer given throughout, though the expected ones differ."""
        self.get_results()
        expected = {example.answers for example in self._examples}
        found = set(self.final_answers().values())
        if len(expected) > 1 and len(found) == 1:
            return found.pop()
        return None

    def baselines(self) -> dict[str, dict[str, float]]:
        """Return, for SQuAD 2.0, the figures of answering no question."""
        if self._version != "squad2":
            return {}
        keys = [example.key for example in self._examples]
        scores = evaluate_squad2(
            self._examples,
            dict.fromkeys(keys, ""),
            dict.fromkeys(keys, 1.0),
            0.0,
        )
        return {"majority": scores}

    def final_answers(self) -> dict[str, str]:
        """Answers by question's id, "" where none is predicted.

        Source: google-research/electra, run_finetuning.py, run_finetuning.
        """
        threshold = self._config.qa_na_threshold
        return {
            key: "" if self.null_odds.get(key, -np.inf) > threshold else text
            for key, text in self.predictions.items()
        }

    def answer(self) -> None:
        self.predictions, self.null_odds, self.best = {}, {}, {}
        for example in self._examples:
            windows = self._windows_of(example)
            for window in windows:
                if window.eid not in self._outputs:
                    raise ValueError(
                        f"{self._name}: no outputs for window {window.eid}; the"
                        " predictions are not those of the split that is scored"
                    )
            outputs = [self._outputs[window.eid] for window in windows]
            by_offset = bool(windows) and windows[0].spans is not None
            answers = find_answers(
                self._config,
                windows,
                outputs,
                example.doc_tokens,
                self._tokenizer,
                example.passage_text if by_offset else None,
            )
            self.best[example.key], chosen = answers, answers[0]
            if self._version == "squad2":
                # Where only no answer may be the best, the best other one is
                # taken: it is the odds that decide.
                chosen = next((a for a in answers if a.text), chosen)
                odds = min([NO_WINDOW, *(o["null_score"] for o in outputs)])
                if not self._config.answerable_classifier:
                    odds = odds - chosen.start_score - chosen.end_score
                self.null_odds[example.key] = float(odds)
            self.predictions[example.key] = chosen.text

    def files(self) -> dict[str, Any]:
        """Answers, odds of having none, best answers, figures; for JSON."""
        self.get_results()
        best = {
            key: [
                {
                    "text": answer.text,
                    "probability": share,
                    "start_logit": float(answer.start_score),
                    "end_logit": float(answer.end_score),
                }
                for answer, share in zip(
                    answers, probabilities(answers), strict=True
                )
            ]
            for key, answers in self.best.items()
        }
        found = {"preds": self.predictions, "nbest": best}
        if self._version == "squad2":
            found["null_odds"] = self.null_odds
        return found | {"eval": self.scores}

    def _get_results(self) -> Metrics:
        self.answer()
        questions, predictions = encode_answers(
            self._match, self._examples, self.predictions
        )
        if self._version == "squad2":
            threshold = self._config.qa_na_threshold
            self.scores = evaluate_squad2(
                questions, predictions, self.null_odds, threshold
            )
        else:
            evaluate = {"squad1": evaluate_squad1, "mrqa": evaluate_mrqa}
            self.scores = evaluate[self._version](questions, predictions)
        return sorted(self.scores.items())


# Scores of answers.

# Names of the original's script -> names of tf-models-official's.
_BEST = {
    f"best_{name}": f"final_{name}"
    for name in ("exact", "exact_thresh", "f1", "f1_thresh")
}
_GROUPS = ("", "HasAns_", "NoAns_")
_OF_GROUPS = [p + n for p in _GROUPS for n in ("exact", "f1", "total")]
# What can be asked of an evaluation, by the kind of its files.
_FIGURES = {
    "squad1": ("exact_match", "f1"),
    "mrqa": ("exact_match", "f1"),
    "squad2": (*_OF_GROUPS, *_BEST),
}
# Of two texts: whether they are the same once lower-cased, without punctuation,
# articles and extra spaces; and F1 of their words, 0 to 1.
exact_match = squad_evaluate_v1_1._exact_match_score
f1_score = squad_evaluate_v1_1._f1_score


def evaluate_squad1(
    questions: Sequence[Question], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Scores answers to questions that all have one.

    Differs: the original fails at a question without answers.
    """
    answered = [question for question in questions if question.answers]
    _require_answers(answered, len(questions))
    scores = squad_evaluate_v1_1.evaluate(_dataset(answered), predictions)
    # As in the original's script, which multiplies before it divides.
    matches = round(scores["exact_match"] * len(answered))
    return {
        "exact_match": 100.0 * matches / len(answered),
        "f1": 100.0 * scores["final_f1"],
    }


def evaluate_squad2(
    questions: Sequence[Question],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float],
    threshold: float,
) -> dict[str, float]:
    """Scores answers where a question may have none."""
    predicted = [q for q in questions if q.key in predictions]
    _require_answers(predicted, len(questions))
    dataset = _dataset(predicted)
    # The script's threshold is fixed at 1.
    decided = {key: 2.0 * (odds > threshold) for key, odds in null_odds.items()}
    at_threshold = squad_evaluate_v2_0.evaluate(dataset, predictions, decided)
    at_best = squad_evaluate_v2_0.evaluate(dataset, predictions, null_odds)
    scores = {n: at_threshold[n] for n in _OF_GROUPS if n in at_threshold}
    return scores | {name: at_best[own] for name, own in _BEST.items()}


def _dataset(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """The questions as the scripts read them."""
    qas = [
        {"id": q.key, "answers": [{"text": text} for text in q.answers]}
        for q in questions
    ]
    return [{"paragraphs": [{"qas": qas}]}]


def evaluate_mrqa(
    questions: Sequence[Question], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Compares predictions with the best fitting expected answer each."""
    answers = {question.key: question.answers for question in questions}
    scored = [key for key in answers if key in predictions and answers[key]]
    _require_answers(scored, len(answers))
    matches = f1 = 0.0
    for key in scored:
        found = predictions[key]
        matches += max(exact_match(found, answer) for answer in answers[key])
        f1 += max(f1_score(found, answer) for answer in answers[key])
    return {
        "exact_match": 100.0 * matches / len(scored),
        "f1": 100.0 * f1 / len(scored),
    }


def _require_answers(scored: list[Any], n_questions: int) -> None:
    if not scored:
        raise UserError(
            f"none of {n_questions} questions has both a prediction and an"
            " expected answer, so there is nothing to score; evaluate on a"
            " split with answers"
        )
