# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Question answering: the task, and windows over passages.

`electra_tf.metrics.question_answering` finds and scores answers.

Source: google-research/electra, finetune/qa/qa_tasks.py.
"""

import dataclasses
import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from configure.errors import UserError
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.files import filesystem
from electra_tf.finetuning import questions
from electra_tf.finetuning.heads import (
    AnswerHeadSettings,
    QuestionAnsweringHead,
)
from electra_tf.finetuning.questions import Passage, QAExample, RawQuestion
from electra_tf.finetuning.row_report import explains_bad_rows
from electra_tf.finetuning.task import Task
from electra_tf.metrics.answer_selection import AnswerRule, Window
from electra_tf.metrics.matching import MATCHES
from electra_tf.metrics.question_answering import SpanScorer, metric_names
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.basic_tokenizer import BasicTokenizer
from electra_tf.text.offsets import OffsetTokenizer

# The id of a window is MAX_WINDOWS times the number of the example, plus the
# index of the window in the passage, so no passage can have more windows.
MAX_WINDOWS = 1000
# The maximum number of examples in a split. The limit exists because features
# store the ids of windows as int32.
_MAX_EXAMPLES = 2**31 // MAX_WINDOWS - 1
_CACHED_PASSAGES = 1024
# The limits of the data that debug mode reads.
DEBUG_PARAGRAPHS = 10
DEBUG_LINES = 11  # including the header, as in the original
DEBUG_QUESTIONS = 50


class Pieces(NamedTuple):
    """The wordpieces of a passage."""

    tokens: list[str]
    words: list[int]  # word index of each wordpiece
    # Index of each word's first wordpiece; for a word without wordpieces, index
    # of the next word's first wordpiece.
    starts: list[int]
    # Int32 [len(tokens), 2], offsets in the passage: of each wordpiece's first
    # character, and of the character after the wordpiece. None: answers are
    # searched instead of located by offsets.
    spans: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class WindowedQuestion:
    """A question with the windows over its passage."""

    query: list[str]  # the question's wordpieces, cut to `max_query_length`
    n_query_cut: int  # wordpieces that were cut off the question
    pieces: Pieces
    # Start and length of each window, in wordpieces of the passage.
    spans: list[tuple[int, int]]
    n_cut: int  # wordpieces of the passage outside all windows

    def tokens(self, number: int) -> list[str]:
        """Return the wordpieces of a window: [CLS] query [SEP] part [SEP]."""
        start, length = self.spans[number]
        part = self.pieces.tokens[start : start + length]
        return ["[CLS]", *self.query, "[SEP]", *part, "[SEP]"]

    def locate(
        self, number: int, answer: tuple[int, int] | None
    ) -> tuple[int, int]:
        """Return an answer's first and last position in a window.

        The result is (0, 0) if the window does not contain the whole answer.
        """
        start, length = self.spans[number]
        if answer is None or answer[0] < start or answer[1] >= start + length:
            return 0, 0
        shift = len(self.query) + 2 - start
        return answer[0] + shift, answer[1] + shift


def _windows_of_most_context(
    spans: Sequence[tuple[int, int]], count: int
) -> np.ndarray:
    """Return, for each wordpiece, the window in which its context is largest.

    The result is int [count]. The context is the smaller of the left and the
    right context; of several equal windows, the first is chosen.

    Source: _check_is_max_context.
    """
    best = np.full(count, -1)
    best_score = np.full(count, -1.0)
    for number, (start, length) in enumerate(spans):
        left = np.arange(length)
        score = np.minimum(left, length - 1 - left) + 0.01 * length
        part = slice(start, start + length)
        is_better = score > best_score[part]
        best[part][is_better] = number
        best_score[part][is_better] = score[is_better]
    return best


class QATask(Task):
    """A task that finds answers in passages.

    If the description names no files, the task reads `<split>.json` (MRQA:
    `.jsonl`, plain or `.gz`), and in debug mode `<split>-debug.json`, if it
    exists.

    Differs: answers are written by id in SQuAD's format for every task; the
      original does so only if the task's name contains "squad".
    """

    needs_words = True
    finds_files = True
    # The units in which answers are compared; None: the official script's
    # words.
    match: str | None = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._check_lengths()
        self.version = self.spec.version
        default = None if self.spec.original else "words"
        self.match = self.spec.match or default
        # whether some questions have no answer
        self.v2 = self.version == "squad2"
        self.get_examples = functools.cache(self.get_examples)
        self._pieces = functools.lru_cache(_CACHED_PASSAGES)(self._split)

    @functools.cached_property
    def _offsets(self) -> OffsetTokenizer:
        return OffsetTokenizer(self.tokenizer)

    @property
    def main_metric(self) -> str:
        if self.v2 and self.spec.metric == "exact_match":
            return "exact"  # the metric's name in SQuAD 2.0
        return self.spec.metric or "f1"

    @property
    def answer_offsets(self) -> bool:
        """Return whether character offsets locate answers, not a search.

        Source: google-research/electra searches in training (qa_tasks.py,
          _improve_answer_span) and in prediction (qa_metrics.py,
          get_final_text): it trains on an answer's first occurrence in its
          words, and predicts whole words if the search fails.
        Differs: your own tasks use the offsets unless `answer_offsets` is
          false.
        """
        setting = self.config.answer_offsets
        return not self.spec.original if setting is None else setting

    @property
    def measure(self) -> str | None:
        """The description of `match`; None: words of the official script."""
        return MATCHES.get(self.match)

    @property
    def min_length(self) -> int:
        """The minimum length of a batch: a beam needs `beam_size` positions."""
        return self.config.beam_size if self.config.joint_prediction else 1

    def get_feature_specs(self) -> list[FeatureSpec]:
        names = ("eid", "start_positions", "end_positions", "is_impossible")
        return [FeatureSpec(f"{self.name}_{name}", []) for name in names]

    def featurize(
        self, example: QAExample, is_training: bool
    ) -> list[dict[str, Any]]:
        """Return the features of a question's windows.

        A training window that cuts or misses the answer gets [CLS] as its
        answer, but still counts as possible.
        """
        windowed, losses = self.window(example), self.row_report.losses
        if windowed.n_query_cut:
            losses["questions cut to max_query_length"] += 1
        if windowed.n_cut:
            losses[f"passages cut after {MAX_WINDOWS} windows"] += 1
            loss = f"wordpieces cut off passages after {MAX_WINDOWS} windows"
            losses[loss] += windowed.n_cut
        answer = None
        if is_training and not example.is_impossible:
            answer = self.answer_span(example, windowed.pieces)
        windows, is_answered = [], False
        for number in range(len(windowed.spans)):
            tokens = windowed.tokens(number)
            ids = self.tokenizer.convert_tokens_to_ids(tokens)
            n_question = len(windowed.query) + 2
            segment_ids = [0] * n_question + [1] * (len(ids) - n_question)
            eid = MAX_WINDOWS * example.eid + number
            features = self._shared_features(ids, segment_ids, eid)
            if is_training:
                start, end = windowed.locate(number, answer)
                is_answered = is_answered or (start, end) != (0, 0)
                features |= {
                    f"{self.name}_start_positions": start,
                    f"{self.name}_end_positions": end,
                    f"{self.name}_is_impossible": int(example.is_impossible),
                }
            windows.append(features)
        if answer is not None and not is_answered:
            loss = (
                "training questions whose answer is not within a single window"
            )
            losses[loss] += 1
        return windows

    def build_head(
        self, encoder_config: EncoderConfig, seed: int
    ) -> QuestionAnsweringHead:
        width = encoder_config.hidden_size
        config = self.config
        settings = AnswerHeadSettings(
            config.joint_prediction,
            config.beam_size,
            config.max_seq_length,
            config.answerable_classifier,
            config.answerable_uses_start_logits,
            config.answerable_weight,
        )
        return QuestionAnsweringHead(self.name, width, settings, seed)

    def get_scorer(self, split: str = "dev") -> SpanScorer:
        return self.scorer_of(self.get_examples(split))

    def metric_names(self) -> tuple[str, ...]:
        return metric_names(self.version, self.match)

    def scorer_of(self, examples: Sequence[QAExample]) -> SpanScorer:
        """Return a new scorer of predictions on examples."""
        config = self.config
        rule = AnswerRule(
            config.n_best_size,
            config.max_answer_length,
            config.joint_prediction,
            config.answerable_classifier,
            config.qa_na_threshold,
        )
        return SpanScorer(
            rule,
            BasicTokenizer(config.do_lower_case, config.strip_accents),
            self.name,
            self.version,
            examples,
            self.windows,
            self.match,
        )

    def window(self, example: QAExample) -> WindowedQuestion:
        """Return an example with the windows over its passage.

        Differs: windows beyond `MAX_WINDOWS` are left out; the original gives
          them the ids of the next example's windows.
        """
        question = self.tokenizer.tokenize(example.question_text)
        query = question[: self.config.max_query_length]
        pieces = self._pieces(example.passage)
        count = len(pieces.tokens)
        # [CLS] and two [SEP] take the other positions.
        max_length = self.config.max_seq_length - len(query) - 3
        spans: list[tuple[int, int]] = []
        start = 0
        while start < count and len(spans) < MAX_WINDOWS:
            length = min(count - start, max_length)
            spans.append((start, length))
            if start + length == count:
                break
            start += min(length, self.config.doc_stride)
        n_covered = sum(spans[-1]) if spans else 0
        return WindowedQuestion(
            query,
            len(question) - len(query),
            pieces,
            spans,
            count - n_covered,
        )

    def windows(self, example: QAExample) -> list[Window]:
        """Return an example's windows for the scorer."""
        windowed = self.window(example)
        pieces = windowed.pieces
        best = _windows_of_most_context(windowed.spans, len(pieces.tokens))
        words = np.array(pieces.words, np.int32)
        before = np.full(len(windowed.query) + 2, -1)
        after = np.full(1, -1)
        windows = []
        for number, (start, length) in enumerate(windowed.spans):
            part = slice(start, start + length)
            best_windows = np.concatenate([before, best[part], after])
            windows.append(
                Window(
                    eid=MAX_WINDOWS * example.eid + number,
                    tokens=windowed.tokens(number),
                    words=np.concatenate([before, words[part], after]),
                    max_context=best_windows == number,
                    spans=_window_spans(windowed, part),
                )
            )
        return windows

    def answer_span(
        self, example: QAExample, pieces: Pieces
    ) -> tuple[int, int]:
        """Return the answer's first and last wordpiece in its passage.

        With answer offsets, the span covers the wordpieces that share
        characters with the answer. Without offsets, the span covers the
        answer's words; if the wordpieces of the answer's text are inside that
        span, the span of the text is returned, because the words may contain
        more than the answer, such as a bracket.

        Source: _improve_answer_span.
        """
        if pieces.spans is not None:
            answer_start, answer_end = example.answer_span
            starts, ends = pieces.spans.T
            shared = np.flatnonzero(
                (starts < answer_end) & (ends > answer_start)
            )
            return int(shared[0]), int(shared[-1])
        start = pieces.starts[example.start_position]
        if example.end_position < len(example.doc_tokens) - 1:
            end = pieces.starts[example.end_position + 1] - 1
        else:
            end = len(pieces.tokens) - 1
        answer = self.tokenizer.tokenize(example.orig_answer_text)
        if answer:
            for first in range(start, end + 2 - len(answer)):
                if pieces.tokens[first : first + len(answer)] == answer:
                    return first, first + len(answer) - 1
        return start, end

    def _split(self, passage: Passage) -> Pieces:
        if self.answer_offsets:
            return self._split_with_offsets(passage)
        tokens: list[str] = []
        words: list[int] = []
        starts: list[int] = []
        for number, word in enumerate(passage.words):
            starts.append(len(tokens))
            word_tokens = self.tokenizer.tokenize(word)
            tokens += word_tokens
            words += [number] * len(word_tokens)
        return Pieces(tokens, words, starts)

    def _split_with_offsets(self, passage: Passage) -> Pieces:
        pieces = self._offsets.tokenize(passage.text)
        words = [passage.word_at(piece.start) for piece in pieces]
        starts = np.searchsorted(words, range(len(passage.words))).tolist()
        spans = [(piece.start, piece.end) for piece in pieces]
        return Pieces(
            [piece.token for piece in pieces],
            words,
            starts,
            np.array(spans, np.int32).reshape(-1, 2),
        )

    def _check_pieces(self, example: QAExample) -> None:
        """Raise UnusableError if cleaning removes the whole answer."""
        text = example.orig_answer_text
        if example.answer_span and not self.tokenizer.tokenize(text):
            raise questions.UnusableError(
                f"answer {text!r}",
                "an answer with characters that tokenization keeps",
            )

    def _question_id(self, fields: dict[str, Any]) -> Any:
        """Return the id by which messages name a question."""
        names = ("qid", "id") if self.version == "mrqa" else ("id", "qid")
        first, second = (fields.get(name) for name in names)
        return second if first is None else first

    def read_questions(self, split: str) -> Iterator[RawQuestion]:
        """Yield the questions of a split."""
        debug = self.config.debug
        if self._tfds is not None:
            name, tfds_split = self._tfds.locate(split)
            return questions.read_tfds(
                name,
                tfds_split,
                self.config.tfds_data_dir,
                DEBUG_QUESTIONS if debug else None,
            )
        path = self._existing_path(split)
        if self.version == "mrqa":
            return questions.read_mrqa(
                path, self.row_report, DEBUG_LINES if debug else None
            )
        return questions.read_squad(
            path, self.row_report, DEBUG_PARAGRAPHS if debug else None
        )

    def has_split(self, split: str) -> bool:
        if self._tfds is not None:
            return split in ("train", "dev")
        if self.spec.files and split not in self.spec.files:
            return False
        return filesystem.exists(self._path(split))

    def fingerprint(self) -> dict[str, Any]:
        facts = super().fingerprint() | {"version": self.version}
        # Of the description's fields, only the version changes features.
        del facts["spec"]
        if self.answer_offsets:
            # This key is set only with offsets, so that records of earlier
            # versions, which searched for answers, remain valid.
            facts["answers"] = "offsets"
        return facts

    def _path(self, split: str) -> str:
        if self.spec.files:
            return super()._path(split)
        suffix = ".jsonl" if self.version == "mrqa" else ".json"
        path = os.path.join(self.directory, split + suffix)
        if self.version == "mrqa":
            is_plain = filesystem.exists(path)
            is_plain = is_plain or not filesystem.exists(f"{path}.gz")
            return path if is_plain else f"{path}.gz"
        debug_path = os.path.join(self.directory, f"{split}-debug.json")
        if self.config.debug and filesystem.exists(debug_path):
            return debug_path
        return path

    def _check_lengths(self) -> None:
        """Raise a UserError unless windows have room for passage and beam."""
        config = self.config
        length = config.max_seq_length
        if config.max_query_length + 3 >= length:
            raise UserError(
                f"task {self.name}: max_query_length {config.max_query_length}"
                f" leaves no room for a passage in max_seq_length {length}."
                " Lower max_query_length or raise max_seq_length."
            )
        if self.min_length > length:
            raise UserError(
                f"task {self.name}: beam_size {config.beam_size} exceeds the"
                f" {length} positions of max_seq_length. Lower beam_size."
            )

    @explains_bad_rows
    def get_examples(self, split: str) -> list[QAExample]:
        """Return the examples of a split, numbered without gaps."""
        report = self.row_report
        examples: list[QAExample] = []
        keys: set[str] = set()
        n_unusable = 0
        for raw in self.read_questions(split):
            try:
                example = questions.make_example(
                    raw.fields,
                    raw.passage,
                    task_name=self.name,
                    eid=len(examples),
                    is_training=split == "train",
                    version=self.version,
                    answer_offsets=self.answer_offsets,
                )
                self._check_pieces(example)
            except questions.UnusableError as error:
                n_unusable += 1
                problem, expected = error.args
                content = (
                    f"question {self._question_id(raw.fields)!r}: {problem}"
                )
                report.add(raw.path, raw.line(), content, expected)
                continue
            if example.key in keys:
                report.add(
                    raw.path,
                    raw.line(),
                    f"id {example.key!r} of an earlier question",
                    "a unique id (answers are stored by id, so the last"
                    " question with an id counts)",
                    skipped=False,
                )
            keys.add(example.key)
            examples.append(example)
        self._require_examples(examples, split, "question")
        if len(examples) > _MAX_EXAMPLES:
            raise UserError(
                f"task {self.name}: the {split} split has {len(examples)}"
                f" questions; expected at most {_MAX_EXAMPLES}. Divide the"
                " file."
            )
        self._count_losses(examples, split, n_unusable)
        return examples

    def _count_losses(
        self, examples: Sequence[QAExample], split: str, n_unusable: int
    ) -> None:
        """Record the counts of unused and of unscored questions."""
        losses = self.row_report.losses
        loss = f"{split}: questions skipped because of errors in their data"
        losses[loss] = n_unusable
        loss = f"{split}: questions whose passage is empty"
        losses[loss] = sum(not example.doc_tokens for example in examples)
        if split == "dev" and not self.v2:
            loss = f"{split}: unscored questions, whose answers are missing"
            losses[loss] = sum(not example.answers for example in examples)


def _window_spans(windowed: WindowedQuestion, part: slice) -> np.ndarray | None:
    """Return the character offsets of a window's wordpieces, int [L, 2].

    Wordpieces outside the passage have the offsets -1.
    """
    if windowed.pieces.spans is None:
        return None
    n_question = len(windowed.query) + 2  # [CLS] query [SEP]
    return np.pad(
        windowed.pieces.spans[part],
        ((n_question, 1), (0, 0)),
        constant_values=-1,
    )
