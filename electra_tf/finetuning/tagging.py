# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks with a label per word, from CoNLL columns or JSON lines.

Source: google-research/electra, finetune/tagging/tagging_tasks.py.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.checkpoints.contents import TaskHead
from electra_tf.data import conll, tables, values
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.files.lines import LineReader
from electra_tf.finetuning.heads import TaggingHead
from electra_tf.finetuning.row_report import RowReport, explains_bad_rows
from electra_tf.finetuning.task import (
    Example,
    Task,
    is_whole,
    refuse_equal_labels,
)
from electra_tf.metrics import tagging as scorers
from electra_tf.metrics.scorers import Scorer
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.tagging import read_spans, split_tag, write_tags
from electra_tf.text.words import WordAligner, join_words

if TYPE_CHECKING:
    from electra_tf.finetuning.task_spec import SplitSpec

# Sentences read in debug mode.
DEBUG_SENTENCES = 101
# Letters of other schemes that mark what one of BIOES marks, likeliest first.
_INSTEAD = {"S": "UBI", "E": "LI", "B": "I"}


@dataclasses.dataclass
class Sentence:
    """One sentence as read."""

    path: str
    number: int  # its number in the file, from 0, unusable ones counted
    words: list[str] = dataclasses.field(default_factory=list)
    # Of the words; empty in a split without labels.
    tags: list[str] = dataclasses.field(default_factory=list)
    lines: list[int] = dataclasses.field(default_factory=list)  # one a word


@dataclasses.dataclass(kw_only=True)
class TaggingExample(Example):
    """One tagged sentence."""

    text_fields = ("words",)
    words: list[str]
    labels: list[int]  # the id of each word's label; empty without labels


class TaggingTask(Task):
    """Reads sentences and makes the inputs of them.

    Spans are learned as tags of the BIOES scheme, whatever the files' scheme.

    Differs: the label map is JSON and always that of the data; see
      `fix_tagging_truncation`, `fix_tagging_casing` and `fix_last_sentence`.
    """

    label_splits = ("train", "dev", "test")
    needs_words = True

    def __init__(
        self, *described: Any, type_change_starts_span: bool = True
    ) -> None:
        super().__init__(*described)
        self._type_change_starts_span = type_change_starts_span
        self._aligner = WordAligner(
            self.tokenizer, self.config.fix_tagging_casing
        )

    @property
    def is_token_level(self) -> bool:
        """Whether each word has a class of its own, as in part-of-speech."""
        return self.spec.tags == "words"

    @property
    def label_mapping(self) -> dict[str, int]:
        """The id of each label (BIOES tags, or classes of words)."""
        return self.known_labels

    @property
    def head(self) -> TaskHead:
        labels = sorted(self.label_mapping, key=self.label_mapping.__getitem__)
        as_elsewhere = self.config.fix_tagging_casing
        return TaskHead("tagging", tuple(labels), as_elsewhere=as_elsewhere)

    @explains_bad_rows
    def get_examples(self, split: str) -> list[TaggingExample]:
        examples = [
            TaggingExample(
                eid=sentence.number,
                task_name=self.name,
                line=sentence.lines[0],
                words=sentence.words,
                labels=labels,
            )
            for sentence in self._read(split)
            if (labels := self._label_ids(sentence)) is not None
        ]
        self._require_some(examples, split, "sentence")
        return examples

    def featurize(
        self, example: TaggingExample, is_training: bool
    ) -> dict[str, Any]:
        """Labels stand at words' first wordpieces; segment ids are all one."""
        length = self.config.max_seq_length
        fixed = self.config.fix_tagging_truncation
        input_ids, positions = join_words(
            [self._aligner.encode_word(word) for word in example.words],
            self._cls_id,
            self._sep_id,
            length,
            count_words=not fixed,
        )
        positions = positions[:length]  # Words may have no wordpiece.
        cut = len(example.words) - len(positions)
        if cut:
            remedy = "" if fixed else " (fewer with fix_tagging_truncation)"
            which = "train" if is_training else "dev and test"
            lost = f"words (of {which}) cut off as too long for max_seq_length"
            self.row_report.losses[lost + remedy] += cut

        segment_ids = [1] * len(input_ids)
        inputs = self._inputs(input_ids, segment_ids, example.eid)
        return inputs | self._padded(
            labels=example.labels[:length],
            labels_mask=[1.0] * len(positions),
            labeled_positions=positions,
        )

    def get_feature_specs(self) -> list[FeatureSpec]:
        return self._per_token("labels", "labels_mask", "labeled_positions")

    def build_head(
        self, encoder_config: EncoderConfig, seed: int
    ) -> TaggingHead:
        return TaggingHead(
            self.name,
            encoder_config.hidden_size,
            len(self.label_mapping),
            seed=seed,
        )

    def get_scorer(self, split: str = "dev") -> Scorer:
        if self.is_token_level or self.spec.metric == "accuracy":
            return scorers.WordAccuracyScorer()
        return scorers.EntityLevelF1Scorer(self.label_mapping)

    def labels_of(self, example: TaggingExample) -> Iterable[str]:
        names = list(self.label_mapping)
        return [names[i] for i in example.labels]

    def fingerprint(self) -> dict[str, Any]:
        starts = self._type_change_starts_span
        return super().fingerprint() | {"type_change_starts_span": starts}

    def use_labels(self, found: dict[str, int]) -> None:
        super().use_labels(found)
        self._labels_of_model = False

    def use_labels_of_model(self, labels: Sequence[str]) -> None:
        """Takes the labels of a trained head, in the order of its outputs."""
        self.use_labels({label: i for i, label in enumerate(labels)})
        self._labels_of_model = True

    def labels_path(self) -> str:
        debug = "debug_" if self.config.debug else ""
        return os.path.join(
            self.config.preprocessed_data_dir,
            f"{debug}{self.name}_label_mapping.json",
        )

    def _read(self, split: str) -> list[Sentence]:
        """A split's good sentences. Source: _get_labeled_sentences."""
        kind = tables.resolve_format(
            self._existing_path(split), self.spec.format
        )
        place = self.spec.find_split(split, self.directory)
        if kind == "jsonl":
            found = _read_jsonl(place, self.row_report)
        elif kind == "conll":
            keep_last = self.config.fix_last_sentence
            found = _read_conll(place, self.row_report, split, keep_last)
        else:
            raise UserError(
                f"{place.path}: a tagging task is read from conll columns or"
                " jsonl; give its format"
            )
        sentences = []
        for sentence in found:
            if self._has_good_tags(sentence):
                sentences.append(sentence)
            if self.config.debug and len(sentences) >= DEBUG_SENTENCES:
                break
        return sentences

    def _has_good_tags(self, sentence: Sentence) -> bool:
        if self.is_token_level:
            return True
        good = True
        for i, tag in enumerate(sentence.tags):
            try:
                split_tag(tag)
            except ValueError:
                self.row_report.add(
                    sentence.path,
                    sentence.lines[i],
                    f"tag {tag!r} of {sentence.words[i]!r}",
                    "O, or B-TYPE, I-TYPE, E-TYPE, S-TYPE (the sentence is"
                    " left out)",
                )
                good = False
        return good

    def _labels_of(self, sentence: Sentence) -> list[str]:
        """Returns the labels that are learned: BIOES for spans."""
        if self.is_token_level:
            return sentence.tags
        found = read_spans(sentence.tags, self._type_change_starts_span)
        return write_tags(found, len(sentence.tags))

    def _label_ids(self, sentence: Sentence) -> list[int] | None:
        """Returns label ids, or None (reported) if a label is unknown."""
        if not sentence.tags:
            return [0] * len(sentence.words)
        labels = [*map(self._known_label, self._labels_of(sentence))]
        for i, label in enumerate(labels):
            if label not in self.label_mapping:
                self.row_report.add(
                    sentence.path,
                    sentence.lines[i],
                    f"label {label!r}",
                    f"one of: {join_names(self.label_mapping, 12)} (the"
                    " sentence is left out)",
                )
                return None
        return [self.label_mapping[label] for label in labels]

    def knows(self, label: str) -> bool:
        """Whether a label of the BIOES scheme has one of those in use."""
        return self._known_label(label) in self.label_mapping

    def _known_label(self, label: str) -> str:
        """Returns a label of the BIOES scheme in that of the labels in use.

        A head of transformers may know BIO, IO or BILOU tags alone.
        """
        if label in self.label_mapping or self.is_token_level:
            return label
        letter, dash, kind = label.partition("-")
        others = (f"{x}{dash}{kind}" for x in _INSTEAD.get(letter, ""))
        known = (name for name in others if name in self.label_mapping)
        return next(known, label)

    @explains_bad_rows
    def find_labels(self) -> dict[str, int] | None:
        labels: set[str] = set()
        if self.spec.labels is not None:
            labels = set(self.spec.labels)
            if not self.is_token_level:
                marks = {f"{m}-{t}" for m in "BIES" for t in labels}
                labels = marks | {"O"}
        else:
            splits = [s for s in self.label_splits if self.has_split(s)]
            for split in splits:
                for sentence in self._read(split):
                    labels.update(self._labels_of(sentence))
            if self.is_token_level:
                refuse_equal_labels(self.name, sorted(labels))
            labelled = [s for s in splits if self.spec.has_labels(s)]
            if not labels and labelled:
                paths = ", ".join(map(self._path, labelled))
                raise UserError(
                    f"task {self.name}: no usable labels in {paths}"
                    f" ({self._lost_rows()}); check format and columns"
                )
            if not labels:
                return None
        return {label: i for i, label in enumerate(sorted(labels))}


def _read_conll(
    place: SplitSpec, report: RowReport, split: str, keep_last: bool
) -> Iterator[Sentence]:
    columns = {"word": 0, "tag": -1, **place.columns}
    if not place.labelled:
        del columns["tag"]
    reader = conll.ConllReader(
        LineReader(place.path), columns, keeps_unended=keep_last
    )
    for item in reader:
        if isinstance(item, tables.Row):
            report.add(place.path, item.line, item.content, item.expected)
            continue
        words, tags = item.columns["word"], item.columns.get("tag", [])
        yield Sentence(place.path, item.number, words, tags, item.lines)
    for kind, count in reader.skipped.items():
        report.losses[f"{split}: {kind}"] = count


def _read_jsonl(place: SplitSpec, report: RowReport) -> Iterator[Sentence]:
    columns = {"word": "words", "tag": "tags", **place.columns}
    for number, row in enumerate(tables.read_rows(place.path, "jsonl")):
        try:
            if row.expected:
                raise _BadCellError(row.content, row.expected)
            words = _texts_under(row, columns["word"], values.as_text)
            if not words:
                raise _BadCellError(
                    f"no word under {columns['word']}", "a list of texts"
                )
            tags: list[str] = []
            if place.labelled:
                tags = _texts_under(row, columns["tag"], _as_tag)
                if len(tags) != len(words):
                    raise _BadCellError(
                        f"{len(tags)} {columns['tag']} of {len(words)} words",
                        f"as many {columns['tag']} as words",
                    )
        except _BadCellError as problem:
            report.add(place.path, row.line, *problem.args)
            continue
        yield Sentence(place.path, number, words, tags, [row.line] * len(words))


class _BadCellError(ValueError):
    """A cell that cannot be used: what was found, what was expected."""


def _as_tag(value: Any) -> str | None:
    """Read a tag: a text of whole characters, or a whole number."""
    text = values.as_id(value)
    return text if text is not None and is_whole(text) else None


def _texts_under(
    row: tables.Row, name: int | str, read: Callable[[Any], str | None]
) -> list[str]:
    """Return the texts that a row's cell of that name lists."""
    expected = f"a list of texts under {name}"
    if not row.cells:
        raise _BadCellError("an empty line", expected)
    if name not in row.cells:
        raise _BadCellError(f"{row.cells}", expected)
    cell = row.cells[name]
    if not isinstance(cell, list):
        raise _BadCellError(f"{name} is {values.describe(cell)}", expected)
    texts = []
    for value in cell:
        text = read(value)
        if text is None:
            found = f"{values.describe(value)} in {name}"
            raise _BadCellError(found, expected)
        texts.append(text)
    return texts
