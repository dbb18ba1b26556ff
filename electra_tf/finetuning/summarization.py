# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Extractive summarization: tasks that choose sentences of a document.

Each sentence has a binary label. In training, the label is 1 for the sentences
that a greedy search for the highest ROUGE chooses.

Source: Liu and Lapata (2019), "Text Summarization with Pretrained Encoders".
Differs: sentences are not separated by [CLS] and [SEP]; see
  `SummarizationHead`.
"""

import dataclasses
import functools
from typing import Any

from electra_tf.data import tables, values
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.finetuning.heads import SummarizationHead
from electra_tf.finetuning.row_report import explains_bad_rows
from electra_tf.finetuning.task import Example, Table, Task
from electra_tf.metrics.summaries import MEASURE, SummaryScorer, find_oracle
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.sentences import split_sentences
from electra_tf.text.words import join_words


@dataclasses.dataclass(kw_only=True)
class Document(Example):
    """A text to be summarized."""

    text_fields = ("text",)
    text: str
    # the reference summary, one sentence per line; None: unknown
    summary: str | None = None

    @functools.cached_property
    def sentence_spans(self) -> list[tuple[int, int]]:
        """The start and end of each sentence, in characters."""
        return split_sentences(self.text)

    @functools.cached_property
    def sentences(self) -> tuple[str, ...]:
        return tuple(self.text[start:end] for start, end in self.sentence_spans)


class _BadDocumentError(ValueError):
    """An error for an unusable cell.

    The arguments are the content that was found and the expected content.
    """


class SummarizationTask(Task):
    """A summarization task whose windows hold whole sentences without overlap.

    A sentence that is longer than a window is cut.
    """

    measure = MEASURE

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.get_examples = functools.cache(self.get_examples)

    @explains_bad_rows
    def get_examples(self, split: str) -> list[Document]:
        location, examples = self._location(split), []
        table = self._open(split)
        fields = {"text_a": "text"}
        if self.spec.has_labels(self.spec.resolve_split(split)):
            fields["label"] = "summary"
        for number, row in enumerate(table.rows):
            try:
                texts = self._read_texts(split, row, table, fields)
            except _BadDocumentError as error:
                self.row_report.add(location, row.line, *error.args)
                continue
            examples.append(Document(eid=number, task_name=self.name, **texts))
        self._require_examples(examples, split, "document")
        return examples

    def _read_texts(
        self, split: str, row: tables.Row, table: Table, fields: dict[str, str]
    ) -> dict[str, str]:
        """Return the texts of a row, keyed by the names of `Document`'s fields.

        Args:
          split: the split.
          row: the row.
          table: the table of the row.
          fields: purpose of a column -> field of `Document`.
        """
        if row.content:
            raise _BadDocumentError(row.content, row.expected)
        source = self._tfds or self.spec.find_split(split, self.directory)
        texts = {}
        for purpose, field in fields.items():
            try:
                cell = row.cells[table.columns[purpose]]
            except (IndexError, KeyError):
                cell = None
            text = values.as_text(cell)
            if text is None or not text.strip():
                name = source.columns[purpose]
                raise _BadDocumentError(
                    f"{name} {cell!r}", f"a {field} under {name}"
                )
            texts[field] = text
        return texts

    def featurize(
        self, example: Document, is_training: bool
    ) -> list[dict[str, Any]]:
        """Return the features of a document's windows."""
        length = self.config.max_seq_length
        max_tokens = length - 2  # [CLS] and [SEP]
        sentences, n_cut = [], 0
        for text in example.sentences:
            ids = [*self.tokenizer.encode(text)]
            if len(ids) > max_tokens:
                n_cut += 1
            sentences.append(ids[:max_tokens])
        if n_cut:
            loss = "sentences cut to max_seq_length"
            self.row_report.losses[loss] += n_cut
        oracle = self._find_oracle(example)
        windows, n_done = [], 0
        while n_done < len(sentences):
            input_ids, positions = join_words(
                sentences[n_done : n_done + length],
                self._cls_id,
                self._sep_id,
                length,
                count_words=False,
            )
            numbers = range(n_done, n_done + len(positions))
            features = self._shared_features(
                input_ids, [0] * len(input_ids), example.eid
            )
            features |= self._token_features(
                labels=[int(number in oracle) for number in numbers],
                labels_mask=[1.0] * len(numbers),
                labeled_positions=positions,
                numbers=[number + 1 for number in numbers],
            )
            windows.append(features)
            n_done += len(numbers)
        return windows

    def _find_oracle(self, document: Document) -> tuple[int, ...]:
        """Return the indices of the sentences to choose, from 0."""
        if document.summary is None:
            return ()
        oracle = find_oracle(
            document.sentences, document.summary, self.spec.sentences
        )
        loss = "documents whose sentences share no word with the summary"
        self.row_report.losses[loss] += 0 if oracle else 1
        return oracle

    def get_feature_specs(self) -> list[FeatureSpec]:
        return self._token_feature_specs(
            *SummarizationHead.labels, "labeled_positions"
        )

    def build_head(
        self, encoder_config: EncoderConfig, seed: int
    ) -> SummarizationHead:
        return SummarizationHead(self.name, encoder_config.hidden_size, seed)

    def get_scorer(self, split: str = "dev") -> SummaryScorer:
        return SummaryScorer(self.get_examples(split), self.spec.sentences)
