# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Question answering: windows over passages, and the task.

Answers are put together and scored in `electra_tf.metrics`.

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
from electra_tf.finetuning.heads import QuestionAnsweringHead
from electra_tf.finetuning.questions import Passage, QAExample, RawQuestion
from electra_tf.finetuning.row_report import explains_bad_rows
from electra_tf.finetuning.task import Task
from electra_tf.metrics.matching import MATCHES
from electra_tf.metrics.question_answering import (
    SpanScorer,
    Window,
    metric_names,
)
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.offsets import OffsetTokenizer

# A window's number is this times its example's, plus its place in the
# passage, so there can be no more windows than this.
MAX_WINDOWS = 1000
# Features hold numbers of windows as int32.
_MAX_EXAMPLES = 2**31 // MAX_WINDOWS - 1
_PASSAGES_KEPT = 1024
# What debug mode reads of a split.
DEBUG_PARAGRAPHS = 10
DEBUG_LINES = 11  # as the original; the header is one of them
DEBUG_QUESTIONS = 50


class Pieces(NamedTuple):
    """A passage in wordpieces."""

    tokens: list[str]
    words: list[int]  # for each, the word it belongs to
    # For each word, its first wordpiece; where a word has none, the next one's.
    starts: list[int]
    # With answer offsets, int32 [len(tokens), 2]: for each, its characters in
    # the passage, first and one past the last.
    spans: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class Cut:
    """A question with the windows over its passage."""

    query: list[str]  # the question's wordpieces, cut to `max_query_length`
    n_query_lost: int  # wordpieces cut off
    pieces: Pieces
    # Start and length of each window, in wordpieces of the passage.
    spans: list[tuple[int, int]]
    n_lost: int  # wordpieces of the passage that no window holds

    def tokens(self, number: int) -> list[str]:
        start, length = self.spans[number]
        part = self.pieces.tokens[start : start + length]
        return ["[CLS]", *self.query, "[SEP]", *part, "[SEP]"]

    def place(
        self, number: int, answer: tuple[int, int] | None
    ) -> tuple[int, int]:
        """Returns an answer's place in a window; (0, 0) if not wholly there."""
        start, length = self.spans[number]
        if answer is None or answer[0] < start or answer[1] >= start + length:
            return 0, 0
        shift = len(self.query) + 2 - start
        return answer[0] + shift, answer[1] + shift


def _windows_of_most_context(
    spans: list[tuple[int, int]], count: int
) -> np.ndarray:
    """Returns, for each wordpiece, the window that shows most around it.

    That is the window where the smaller of its left and right context is
    largest; of equal windows the first.

    Source: _check_is_max_context.
    """
    best = np.full(count, -1)
    best_score = np.full(count, -1.0)
    for number, (start, length) in enumerate(spans):
        left = np.arange(length)
        score = np.minimum(left, length - 1 - left) + 0.01 * length
        part = slice(start, start + length)
        better = score > best_score[part]
        best[part][better] = number
        best_score[part][better] = score[better]
    return best


class QATask(Task):
    """Finds answers in passages.

    A description without files finds `<split>.json` (MRQA: `.jsonl`, plain or
    `.gz`); in debug mode `<split>-debug.json`, if it is there.

    Differs: answers are filed by id in SQuAD's format whatever the task's
      name is; the original looks for "squad" in it.
    """

    needs_words = finds_files = True
    # What answers are compared by; None: by the official script's words.
    match: str | None = None

    def __init__(self, *described: Any) -> None:
        super().__init__(*described)
        self._check_lengths()
        self.version = self.spec.version
        default = None if self.spec.original else "words"
        self.match = self.spec.match or default
        self.v2 = self.version == "squad2"  # a question may have no answer
        self.get_examples = functools.cache(self.get_examples)
        self._pieces = functools.lru_cache(_PASSAGES_KEPT)(self._split)

    @functools.cached_property
    def _offsets(self) -> OffsetTokenizer:
        return OffsetTokenizer(self.tokenizer)

    @property
    def main_metric(self) -> str:
        if self.v2 and self.spec.metric == "exact_match":
            return "exact"  # SQuAD 2.0's name for it
        return self.spec.metric or "f1"

    @property
    def answer_offsets(self) -> bool:
        """Whether answers are characters at offsets, and not searched for.

        Source: google-research/electra searches, in training (qa_tasks.py,
          _improve_answer_span) and for answers (qa_metrics.py,
          get_final_text): it trains on an answer's first occurrence in its
          words, and answers with whole words where the search fails.
        Differs: in tasks of your own the offsets are used unless
          `answer_offsets` is false.
        """
        setting = self.config.answer_offsets
        return not self.spec.original if setting is None else setting

    @property
    def measure(self) -> str | None:
        """None: the official script's words."""
        return MATCHES.get(self.match)

    @property
    def min_length(self) -> int:
        """As many places as a beam keeps."""
        joint = self.config.joint_prediction
        return self.config.beam_size if joint else 1

    def get_feature_specs(self) -> list[FeatureSpec]:
        names = ("eid", "start_positions", "end_positions", "is_impossible")
        return [FeatureSpec(f"{self.name}_{name}", []) for name in names]

    def featurize(
        self, example: QAExample, is_training: bool
    ) -> list[dict[str, Any]]:
        """Turns a question into the features of its windows.

        A training window without the whole answer gets [CLS] as its answer,
        but is not called impossible.
        """
        cut, losses = self.cut(example), self.row_report.losses
        if cut.n_query_lost:
            losses["questions cut to max_query_length"] += 1
        if cut.n_lost:
            losses[f"passages longer than {MAX_WINDOWS} windows, cut"] += 1
            losses["wordpieces cut off such passages"] += cut.n_lost
        answer = None
        if is_training and not example.is_impossible:
            answer = self.answer_span(example, cut.pieces)
        windows, answered = [], False
        for number in range(len(cut.spans)):
            ids = self.tokenizer.convert_tokens_to_ids(cut.tokens(number))
            n_question = len(cut.query) + 2
            segment_ids = [0] * n_question + [1] * (len(ids) - n_question)
            eid = MAX_WINDOWS * example.eid + number
            features = self._inputs(ids, segment_ids, eid)
            if is_training:
                place = cut.place(number, answer)
                answered = answered or place != (0, 0)
                features |= {
                    f"{self.name}_start_positions": place[0],
                    f"{self.name}_end_positions": place[1],
                    f"{self.name}_is_impossible": int(example.is_impossible),
                }
            windows.append(features)
        if answer is not None and not answered:
            losses["training questions whose answer no window holds whole"] += 1
        return windows

    def build_head(
        self, encoder_config: EncoderConfig, seed: int
    ) -> QuestionAnsweringHead:
        width = encoder_config.hidden_size
        return QuestionAnsweringHead(self.name, width, self.config, seed)

    def get_scorer(self, split: str = "dev") -> SpanScorer:
        return self.scorer_of(self.get_examples(split))

    def metric_names(self) -> tuple[str, ...]:
        return metric_names(self.version, self.match)

    def scorer_of(self, examples: Sequence[QAExample]) -> SpanScorer:
        return SpanScorer(
            self.config,
            self.name,
            self.version,
            examples,
            self.windows,
            self.match,
        )

    def cut(self, example: QAExample) -> Cut:
        """Lays windows over an example's passage.

        Differs: windows beyond `MAX_WINDOWS` are left out, where the original
          gives them the numbers of the next example's.
        """
        whole = self.tokenizer.tokenize(example.question_text)
        query = whole[: self.config.max_query_length]
        pieces = self._pieces(example.passage)
        count = len(pieces.tokens)
        room = self.config.max_seq_length - len(query) - 3  # [CLS], twice [SEP]
        spans, start = [], 0
        while start < count and len(spans) < MAX_WINDOWS:
            length = min(count - start, room)
            spans.append((start, length))
            if start + length == count:
                break
            start += min(length, self.config.doc_stride)
        held = sum(spans[-1]) if spans else 0
        return Cut(query, len(whole) - len(query), pieces, spans, count - held)

    def windows(self, example: QAExample) -> list[Window]:
        """Returns an example's windows as scoring needs them."""
        cut = self.cut(example)
        best = _windows_of_most_context(cut.spans, len(cut.pieces.tokens))
        words = np.array(cut.pieces.words, np.int32)
        before = np.full(len(cut.query) + 2, -1)
        after = np.full(1, -1)
        windows = []
        for number, (start, length) in enumerate(cut.spans):
            part = slice(start, start + length)
            places = np.concatenate([before, best[part], after])
            windows.append(
                Window(
                    eid=MAX_WINDOWS * example.eid + number,
                    tokens=cut.tokens(number),
                    words=np.concatenate([before, words[part], after]),
                    max_context=places == number,
                    spans=self._window_spans(cut, part),
                )
            )
        return windows

    def _window_spans(self, cut: Cut, part: slice) -> np.ndarray | None:
        """Returns the characters of a window's wordpieces: int [L, 2]."""
        if cut.pieces.spans is None:
            return None
        around = ((len(cut.query) + 2, 1), (0, 0))  # [CLS] query [SEP], [SEP]
        return np.pad(cut.pieces.spans[part], around, constant_values=-1)

    def answer_span(
        self, example: QAExample, pieces: Pieces
    ) -> tuple[int, int]:
        """Returns the answer's first and last wordpiece in its passage.

        With answer offsets these are the wordpieces that share characters with
        it. Without, the answer's words may hold more than the answer, such as
        a bracket; if the wordpieces of the answer alone are among theirs, it is
        those.

        Source: _improve_answer_span.
        """
        if pieces.spans is not None:
            first, last = example.answer_span
            starts, ends = pieces.spans.T
            shared = np.flatnonzero((starts < last) & (ends > first))
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
        tokens, words, starts = [], [], []
        for number, word in enumerate(passage.words):
            starts.append(len(tokens))
            own = self.tokenizer.tokenize(word)
            tokens += own
            words += [number] * len(own)
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
        """Raises UnusableError if cleaning removes all of an answer."""
        text = example.orig_answer_text
        if example.answer_span and not self.tokenizer.tokenize(text):
            raise questions.UnusableError(
                f"answer {text!r}", "an answer that has a wordpiece"
            )

    def _name(self, fields: dict[str, Any]) -> Any:
        """Returns what a question is called in messages: its id."""
        first, second = (
            ("qid", "id") if self.version == "mrqa" else ("id", "qid")
        )
        return (
            fields.get(second) if fields.get(first) is None else fields[first]
        )

    def read_questions(self, split: str) -> Iterator[RawQuestion]:
        debug = self.config.debug
        if self._tfds is not None:
            return questions.read_tfds(
                *self._tfds.locate(split),
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
        del facts["spec"]  # It decides nothing else.
        # Records of an earlier version that searched stay what they are.
        return facts | ({"answers": "offsets"} if self.answer_offsets else {})

    def _path(self, split: str) -> str:
        if self.spec.files:
            return super()._path(split)
        end = ".jsonl" if self.version == "mrqa" else ".json"
        path = os.path.join(self.directory, split + end)
        if self.version == "mrqa":
            plain = filesystem.exists(path) or not filesystem.exists(
                f"{path}.gz"
            )
            return path if plain else f"{path}.gz"
        debug_path = os.path.join(self.directory, f"{split}-debug.json")
        if self.config.debug and filesystem.exists(debug_path):
            return debug_path
        return path

    def _check_lengths(self) -> None:
        """Raises unless windows have room for a passage and for the beam."""
        config = self.config
        length = config.max_seq_length
        if config.max_query_length + 3 >= length:
            raise UserError(
                f"task {self.name}: max_query_length {config.max_query_length}"
                f" leaves no room for a passage in max_seq_length {length};"
                " lower the one or raise the other"
            )
        if self.min_length > length:
            raise UserError(
                f"task {self.name}: beam_size {config.beam_size} is more than"
                f" the {length} positions of max_seq_length"
            )

    @explains_bad_rows
    def get_examples(self, split: str) -> list[QAExample]:
        """Reads a split; unusable questions leave no gap in the numbers."""
        report, examples = self.row_report, []
        keys: set[str] = set()
        n_failures = 0
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
            except questions.UnusableError as problem:
                n_failures += 1
                found, expected = problem.args
                found = f"question {self._name(raw.fields)!r}: {found}"
                report.add(raw.path, raw.line(), found, expected)
                continue
            if example.key in keys:
                found = f"id {example.key!r} once more"
                expected = (
                    "an id of its own (answers are filed by id; the last"
                    " question's counts)"
                )
                report.add(raw.path, raw.line(), found, expected, False)
            keys.add(example.key)
            examples.append(example)
        self._require_some(examples, split, "question")
        if len(examples) > _MAX_EXAMPLES:
            raise UserError(
                f"task {self.name}: {len(examples)} questions in its {split}"
                f" split; at most {_MAX_EXAMPLES} can be numbered, so split it"
            )
        losses = {
            "questions that make no example": n_failures,
            "questions about an empty passage": sum(
                not example.doc_tokens for example in examples
            ),
        }
        if split == "dev" and not self.v2:
            losses["questions without an answer, not scored"] = sum(
                not example.answers for example in examples
            )
        for what, count in losses.items():
            report.losses[f"{split}: {what}"] = count
        return examples
