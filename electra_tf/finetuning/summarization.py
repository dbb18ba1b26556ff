# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks that choose the sentences of a document which summarize it.

Each sentence is a yes or no, learned from those that a greedy search for ROUGE
chooses.

Source: Liu and Lapata (2019), "Text Summarization with Pretrained Encoders".
Differs: no [CLS] and [SEP] between sentences; see `SummarizationHead`.
"""

import dataclasses
import functools
from typing import Any

from electra_tf.data import values
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.finetuning.heads import SummarizationHead
from electra_tf.finetuning.row_report import explains_bad_rows
from electra_tf.finetuning.task import Example, Task
from electra_tf.metrics.summaries import MEASURE, SummaryScorer, find_oracle
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.sentences import split_sentences
from electra_tf.text.words import join_words


@dataclasses.dataclass(kw_only=True)
class Document(Example):
    """A text to be summarized."""

    text_fields = ("text",)
    text: str
    summary: str | None = None  # the reference, a sentence a line, if known

    @functools.cached_property
    def places(self) -> list[tuple[int, int]]:
        """Where its sentences begin and end, in characters."""
        return split_sentences(self.text)

    @functools.cached_property
    def sentences(self) -> tuple[str, ...]:
        return tuple(self.text[start:end] for start, end in self.places)


class SummarizationTask(Task):
    """Makes windows of whole sentences, none of them twice, of documents."""

    measure = MEASURE

    def __init__(self, *described: Any) -> None:
        super().__init__(*described)
        self.get_examples = functools.cache(self.get_examples)

    @explains_bad_rows
    def get_examples(self, split: str) -> list[Document]:
        place, examples = self._place(split), []
        names = (
            self._tfds or self.spec.find_split(split, self.directory)
        ).columns
        rows, columns, _ = self._open(split)
        wanted = {"text_a": "text"}
        if self.spec.has_labels(self.spec.resolve_split(split)):
            wanted["label"] = "summary"
        for number, row in enumerate(rows):
            found, expected, texts = row.content, row.expected, {}
            for column, what in wanted.items() if not found else ():
                try:
                    cell = row.cells[columns[column]]
                except (IndexError, KeyError):
                    cell = None
                texts[what] = values.as_text(cell)
                if not (texts[what] or "").strip():
                    found = f"{names[column]} {cell!r}"
                    expected = f"a {what} under {names[column]}"
                    break
            if found:
                self.row_report.add(place, row.line, found, expected)
            else:
                made = Document(eid=number, task_name=self.name, **texts)
                examples.append(made)
        self._require_some(examples, split, "document")
        return examples

    def featurize(
        self, example: Document, is_training: bool
    ) -> list[dict[str, Any]]:
        """Turns a document into the features of its windows."""
        length = self.config.max_seq_length
        whole = [[*self.tokenizer.encode(text)] for text in example.sentences]
        rest = [ids[: length - 2] for ids in whole]
        cut = sum(len(ids) > length - 2 for ids in whole)
        if cut:
            lost = "sentences cut to max_seq_length"
            self.row_report.losses[lost] += cut
        oracle: tuple[int, ...] = ()
        if example.summary is not None:
            most = self.spec.sentences
            oracle = find_oracle(example.sentences, example.summary, most)
            lost = "documents without a sentence that ROUGE finds in a summary"
            self.row_report.losses[lost] += not oracle
        windows, done = [], 0
        while done < len(rest):
            ids, places = join_words(
                rest[done : done + length],
                self._cls_id,
                self._sep_id,
                length,
                count_words=False,
            )
            own = range(done, done + len(places))
            inputs = self._inputs(ids, [0] * len(ids), example.eid)
            features = self._padded(
                labels=[int(i in oracle) for i in own],
                labels_mask=[1.0] * len(own),
                labeled_positions=places,
                numbers=[i + 1 for i in own],
            )
            windows.append(inputs | features)
            done += len(own)
        return windows

    def get_feature_specs(self) -> list[FeatureSpec]:
        return self._per_token(*SummarizationHead.labels, "labeled_positions")

    def build_head(
        self, encoder_config: EncoderConfig, seed: int
    ) -> SummarizationHead:
        return SummarizationHead(self.name, encoder_config.hidden_size, seed)

    def get_scorer(self, split: str = "dev") -> SummaryScorer:
        return SummaryScorer(self.get_examples(split), self.spec.sentences)
