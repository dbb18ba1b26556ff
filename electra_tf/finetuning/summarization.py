# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks that choose the sentences of a document which summarize it.

Rows are CNN/DailyMail's: a document, and a summary of several lines. Each
sentence is a yes or no, learned from the sentences that a greedy search for
ROUGE chooses.

Source: Liu and Lapata (2019), "Text Summarization with Pretrained Encoders".
Differs: a sentence's vector is the mean of its wordpieces', with its place in
the document beside it; no [CLS] and [SEP] between sentences.
"""

import dataclasses
from typing import Any

from configure.errors import UserError
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.finetuning.model import SummarizationHead
from electra_tf.finetuning.task import DescribedTask, Example
from electra_tf.metrics.summaries import SummaryScorer, find_oracle
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.words import place_words, split_sentences


@dataclasses.dataclass(kw_only=True)
class Document(Example):
    """A document in sentences."""

    sentences: tuple[str, ...]
    # Where each stands in the text, in characters; None: they were given.
    places: list[tuple[int, int]] | None = None
    # The reference, a sentence a line; None: not known.
    summary: str | None = None


def read_document(value: Any) -> dict[str, Any]:
    """Sentences (and places) of a text or a list of them; {}: there are none.

    Blank sentences of a list are left out.
    """
    if isinstance(value, str):
        places = split_sentences(value)
        sentences = tuple(value[start:end] for start, end in places)
    else:
        places, sentences = None, tuple(_lines(value))
    return {"sentences": sentences, "places": places} if sentences else {}


def _read_summary(value: Any) -> dict[str, Any]:
    lines = value.splitlines() if isinstance(value, str) else value
    kept = _lines(lines)
    return {"summary": "\n".join(kept)} if kept else {}


def _lines(value: Any) -> list[str]:
    """The texts of a list without blank ones; [] where it is no such list."""
    if not isinstance(value, list | tuple) or not all(
        isinstance(text, str) for text in value
    ):
        return []
    texts = (" ".join(text.split()) for text in value)
    return [text for text in texts if text]


class SummarizationTask(DescribedTask):
    """Reads documents and makes the inputs of them, long ones in windows.

    Windows hold whole sentences and do not overlap.
    """

    def __init__(self, *described: Any) -> None:
        super().__init__(*described)
        self._examples: dict[str, list[Document]] = {}

    def get_examples(self, split: str) -> list[Document]:
        if split not in self._examples:
            self._examples[split] = self._read(split)
        return self._examples[split]

    def _read(self, split: str) -> list[Document]:
        place, names = self._place(split), self.spec.columns
        if self._tfds is not None:
            names = self._tfds.columns
        rows, columns, _ = self._open(split)
        readers = {"text_a": (read_document, "a text, or a list of sentences")}
        if self.spec.labelled(self.spec.file_split(split)):
            readers["label"] = (_read_summary, "a summary of a line or more")
        examples = []
        for number, row in enumerate(rows):
            found, expected = row.found, row.expected
            values: dict[str, Any] = {}
            for column, (read, what) in readers.items():
                if expected:
                    break
                try:
                    cell = row.cells[columns[column]]
                except (IndexError, KeyError):
                    cell = None
                if not (value := read(cell)):
                    found = f"{names[column]} {cell!r}"
                    expected = f"{what} under {names[column]}"
                values |= value
            if expected:
                self.row_report.add(place, row.line, found, expected)
                continue
            examples.append(Document(eid=number, task_name=self.name, **values))
        if not examples:
            raise UserError(
                f"task {self.name}: no usable document in its {split} split"
                f" ({place}; bad rows: {len(self.row_report.rows)})"
            )
        return examples

    def featurize(
        self, example: Document, is_training: bool
    ) -> list[dict[str, Any]]:
        """Turns a document into the features of its windows.

        `sentence_ids` has the sentence of each token, `numbers` those of the
        window, dense from index 0; both count from 1 in the document.
        """
        length = self.config.max_seq_length
        rest = [[*self.tokenizer.encode(text)] for text in example.sentences]
        cut = sum(len(ids) > length - 2 for ids in rest)
        self.row_report.losses["sentences cut to max_seq_length"] += cut
        rest = [ids[: length - 2] for ids in rest]
        oracle: tuple[int, ...] = ()
        if example.summary is not None:
            oracle = find_oracle(
                example.sentences, example.summary, self.spec.sentences
            )

        def pad(values: list[Any]) -> list[Any]:
            return values + [0] * (length - len(values))

        windows, done = [], 0
        while rest:
            ids, places = place_words(
                rest[:length], self._cls_id, self._sep_id, length, False
            )
            count = len(places)
            numbers = [*range(done + 1, done + count + 1)]
            sizes = [len(pieces) for pieces in rest[:count]]
            owners = [0]
            for number, size in zip(numbers, sizes, strict=True):
                owners += [number] * size
            windows.append(
                self._inputs(ids, [0] * len(ids), example.eid)
                | {
                    f"{self.name}_{name}": pad(values)
                    for name, values in {
                        "sentence_ids": owners,
                        "numbers": numbers,
                        "labels": [int(n - 1 in oracle) for n in numbers],
                        "labels_mask": [1.0] * count,
                    }.items()
                }
            )
            rest, done = rest[count:], done + count
        return windows

    def get_feature_specs(self) -> list[FeatureSpec]:
        lists = [
            FeatureSpec(
                f"{self.name}_{name}",
                [self.config.max_seq_length],
                is_int_feature=name != "labels_mask",
                per_token=True,
            )
            for name in ("sentence_ids", "numbers", "labels", "labels_mask")
        ]
        return [FeatureSpec(f"{self.name}_eid", []), *lists]

    def build_head(
        self, encoder_config: EncoderConfig, seed: int
    ) -> SummarizationHead:
        return SummarizationHead(self.name, encoder_config.hidden_size, seed)

    def get_scorer(self, split: str = "dev") -> SummaryScorer:
        return SummaryScorer(self.get_examples(split), self.spec.sentences)
