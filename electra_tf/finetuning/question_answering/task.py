# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What all question answering tasks have in common."""

import abc
from collections.abc import Iterator, Sequence
from typing import Any

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.finetuning.heads import QuestionAnsweringHead
from electra_tf.finetuning.question_answering.examples import (
    QAExample,
    RawQuestion,
    UnusableError,
    make_example,
)
from electra_tf.finetuning.question_answering.featurization import (
    MAX_WINDOWS,
    Cut,
    WindowCutter,
    check_lengths,
    window_eid,
)
from electra_tf.finetuning.task import Task
from electra_tf.metrics.question_answering import SpanScorer
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.tokenization import FullTokenizer

# Features hold numbers of windows as int32.
_MAX_EXAMPLES = 2**31 // MAX_WINDOWS - 1


class QATask(Task):
    """Finds answers in passages.

    Attributes:
      v2: whether a question may have no answer.

    Source: google-research/electra, finetune/qa/qa_tasks.py, QATask.
    """

    def __init__(
        self,
        config: FinetuningConfig,
        name: str,
        tokenizer: FullTokenizer,
        version: str,
    ) -> None:
        super().__init__(config, name, tokenizer)
        check_lengths(config, name)
        self.version = version
        self.v2 = version == "squad2"
        self._examples: dict[str, list[QAExample]] = {}
        self._cutter = WindowCutter(
            tokenizer,
            config.max_seq_length,
            config.max_query_length,
            config.doc_stride,
        )

    @abc.abstractmethod
    def read_questions(self, split: str) -> Iterator[RawQuestion]:
        """Reads a split's questions in order."""

    @property
    def main_metric(self) -> str:
        """The figure that counts when runs are compared."""
        return "f1"

    @property
    def min_length(self) -> int:
        """The fewest places of a row: a beam needs as many as it keeps."""
        joint = self.config.joint_prediction
        return self.config.beam_size if joint else 1

    def get_examples(self, split: str) -> list[QAExample]:
        """Reads a split; see `Task.get_examples`.

        Unusable questions are left out without a gap in the numbers.
        """
        if split not in self._examples:
            self._examples[split] = self._make_examples(split)
        return self._examples[split]

    def get_feature_specs(self) -> list[FeatureSpec]:
        """Returns window number, answer span and whether there is none."""
        return [
            FeatureSpec(f"{self.name}_eid", []),
            FeatureSpec(f"{self.name}_start_positions", []),
            FeatureSpec(f"{self.name}_end_positions", []),
            FeatureSpec(f"{self.name}_is_impossible", []),
        ]

    def featurize(
        self, example: QAExample, is_training: bool, log: bool = False
    ) -> list[dict[str, Any]]:
        """Turns a question into the features of its windows.

        A training window without the whole answer gets [CLS] as its answer,
        but is not called impossible.

        Source: google-research/electra, finetune/qa/qa_tasks.py, featurize.
        """
        cut = self._cutter.cut(example)
        self._count_losses(cut)
        answer = None
        if is_training and not example.is_impossible:
            answer = self._cutter.answer_span(example, cut.pieces)
        windows, answered = [], False
        for number in range(len(cut.spans)):
            features = self._window_features(example, cut, number)
            if is_training:
                place = _place_in_window(cut, number, answer)
                answered = answered or place != (0, 0)
                features[f"{self.name}_start_positions"] = place[0]
                features[f"{self.name}_end_positions"] = place[1]
                features[f"{self.name}_is_impossible"] = int(
                    example.is_impossible
                )
            windows.append(features)
            if log:
                self._print(example, cut, number, features)
        if answer is not None and not answered:
            self.row_report.count_loss(
                "training questions whose answer no window holds whole"
            )
        return windows

    def build_head(
        self, encoder_config: EncoderConfig, seed: int
    ) -> QuestionAnsweringHead:
        """Returns a fresh head; see `Task.build_head`."""
        config = self.config
        return QuestionAnsweringHead(
            self.name,
            encoder_config.hidden_size,
            max_seq_length=config.max_seq_length,
            beam_size=config.beam_size,
            joint_prediction=config.joint_prediction,
            answerable_classifier=config.answerable_classifier,
            answerable_uses_start_logits=config.answerable_uses_start_logits,
            answerable_weight=config.answerable_weight,
            seed=seed,
        )

    def get_scorer(self, split: str = "dev") -> SpanScorer:
        """Returns a fresh scorer of a split's answers."""
        return self.scorer_of(self.get_examples(split))

    def scorer_of(self, examples: Sequence[QAExample]) -> SpanScorer:
        """Returns a fresh scorer of answers."""
        return SpanScorer(
            self.config,
            self.name,
            self.version,
            examples,
            self._cutter.windows,
        )

    def fingerprint(self) -> dict[str, Any]:
        """Returns plain values, besides hparams, that decide the features."""
        return super().fingerprint() | {"version": self.version}

    def _make_examples(self, split: str) -> list[QAExample]:
        examples: list[QAExample] = []
        keys: set[str] = set()
        n_failures = 0
        for raw in self.read_questions(split):
            try:
                example = make_example(
                    raw.fields,
                    raw.passage,
                    task_name=self.name,
                    eid=len(examples),
                    is_training=split == "train",
                    version=self.version,
                )
            except UnusableError as problem:
                n_failures += 1
                found = f"question {raw.fields.get('id')!r}: {problem.found}"
                self.row_report.add(
                    raw.path, raw.line(), found, problem.expected
                )
                continue
            if example.key in keys:
                self.row_report.add(
                    raw.path,
                    raw.line(),
                    f"id {example.key!r} once more",
                    "an id of its own (answers are filed by id; the last"
                    " question's counts)",
                    skipped=False,
                )
            keys.add(example.key)
            examples.append(example)
        self._check_count(split, len(examples))
        self._note(split, examples, n_failures)
        return examples

    def _check_count(self, split: str, count: int) -> None:
        if not count:
            raise UserError(
                f"task {self.name}: no usable question in its {split} split"
                f" (bad rows: {len(self.row_report.rows)})"
            )
        if count > _MAX_EXAMPLES:
            raise UserError(
                f"task {self.name}: {count} questions in its {split} split;"
                f" at most {_MAX_EXAMPLES} can be numbered, so split it"
            )

    def _note(
        self, split: str, examples: list[QAExample], n_failures: int
    ) -> None:
        """Counts what a split loses or lacks."""
        self.row_report.set_loss(
            f"{split}: questions that make no example", n_failures
        )
        empty = sum(not example.doc_tokens for example in examples)
        self.row_report.set_loss(
            f"{split}: questions about an empty passage", empty
        )
        if split == "dev" and not self.v2:
            unanswered = sum(not example.answers for example in examples)
            self.row_report.set_loss(
                f"{split}: questions without an answer, not scored", unanswered
            )

    def _count_losses(self, cut: Cut) -> None:
        if cut.n_query_lost:
            self.row_report.count_loss("questions cut to max_query_length")
        if cut.n_lost:
            self.row_report.count_loss(
                f"passages longer than {MAX_WINDOWS} windows, cut"
            )
            self.row_report.count_loss(
                "wordpieces cut off such passages", cut.n_lost
            )

    def _window_features(
        self, example: QAExample, cut: Cut, number: int
    ) -> dict[str, Any]:
        tokens = cut.tokens(number)
        n_question = len(cut.query) + 2
        padding = [0] * (self.config.max_seq_length - len(tokens))
        in_passage = [1] * (len(tokens) - n_question)
        return {
            "input_ids": self.tokenizer.convert_tokens_to_ids(tokens) + padding,
            "input_mask": [1] * len(tokens) + padding,
            "segment_ids": [0] * n_question + in_passage + padding,
            "task_id": self.config.task_names.index(self.name),
            f"{self.name}_eid": window_eid(example, number),
        }

    def _print(
        self,
        example: QAExample,
        cut: Cut,
        number: int,
        features: dict[str, Any],
    ) -> None:
        print(f"{self.name} example {example.eid}, window {number}")
        print(f"  tokens: {' '.join(cut.tokens(number))}")
        print(f"  input_ids: {' '.join(map(str, features['input_ids']))}")
        start = features.get(f"{self.name}_start_positions")
        end = features.get(f"{self.name}_end_positions")
        print(f"  answer: {start} to {end} ({example.orig_answer_text!r})")


def _place_in_window(
    cut: Cut, number: int, answer: tuple[int, int] | None
) -> tuple[int, int]:
    """The answer's place in a window; (0, 0) if it is not wholly there."""
    start, length = cut.spans[number]
    if answer is None or answer[0] < start or answer[1] >= start + length:
        return 0, 0
    shift = len(cut.query) + 2 - start
    return answer[0] + shift, answer[1] + shift
