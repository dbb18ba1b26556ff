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
from electra_tf.finetuning.equal_labels import refuse_equal_labels
from electra_tf.finetuning.heads import TaggingHead
from electra_tf.finetuning.row_report import RowReport, explains_bad_rows
from electra_tf.finetuning.task import (
    Example,
    Task,
    is_encodable,
)
from electra_tf.metrics import tagging as scorers
from electra_tf.metrics.scorers import Scorer
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.bio_tags import read_spans, split_tag, write_tags
from electra_tf.text.words import WordAligner, join_words

if TYPE_CHECKING:
    from electra_tf.finetuning.task_description import SplitSpec

# the number of sentences that debug mode reads
DEBUG_SENTENCES = 101
# BIOES letter -> letters that other schemes use instead, likeliest first
_OTHER_LETTERS = {"S": "UBI", "E": "LI", "B": "I"}


@dataclasses.dataclass
class Sentence:
    """One sentence as read from the data."""

    path: str
    number: int  # number in the file, from 0; unusable sentences count, too
    words: list[str] = dataclasses.field(default_factory=list)
    # one tag per word; empty in a split without labels
    tags: list[str] = dataclasses.field(default_factory=list)
    # the line of each word in the file
    lines: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(kw_only=True)
class TaggingExample(Example):
    """One tagged sentence."""

    text_fields = ("words",)
    words: list[str]
    labels: list[int]  # label id of each word; all 0 in unlabelled data


class TaggingTask(Task):
    """A task that labels the words of sentences.

    Spans are learned as BIOES tags, even if the files use another scheme.

    Differs: the label map is JSON and always follows from the data; see
      `fix_tagging_truncation`, `fix_tagging_casing` and `fix_last_sentence`.
    """

    label_splits = ("train", "dev", "test")
    needs_words = True

    def __init__(
        self, *arguments: Any, type_change_starts_span: bool = True
    ) -> None:
        """Create the task.

        Args:
          *arguments: the arguments of `Task`.
          type_change_starts_span: whether an I tag of a different type starts
            a span; False: the tag continues the span, as in the original's
            chunking.
        """
        super().__init__(*arguments)
        self._type_change_starts_span = type_change_starts_span
        self._aligner = WordAligner(
            self.tokenizer, self.config.fix_tagging_casing
        )

    @property
    def is_token_level(self) -> bool:
        """Return whether each word has a class (part-of-speech tagging)."""
        return self.spec.tags == "words"

    @property
    def label_mapping(self) -> dict[str, int]:
        """The id of each label (BIOES tags, or classes of words)."""
        return self.resolved_labels

    @property
    def head(self) -> TaskHead:
        labels = sorted(self.label_mapping, key=self.label_mapping.__getitem__)
        as_elsewhere = self.config.fix_tagging_casing
        return TaskHead("tagging", tuple(labels), as_elsewhere=as_elsewhere)

    @explains_bad_rows
    def get_examples(self, split: str) -> list[TaggingExample]:
        sentences = self._read_sentences(split)
        if any(sentence.tags for sentence in sentences):
            self.resolve_labels()
        examples = []
        for sentence in sentences:
            label_ids = self._label_ids(sentence)
            if label_ids is not None:
                examples.append(
                    TaggingExample(
                        eid=sentence.number,
                        task_name=self.name,
                        line=sentence.lines[0],
                        words=sentence.words,
                        labels=label_ids,
                    )
                )
        self._require_examples(examples, split, "sentence")
        return examples

    def featurize(
        self, example: TaggingExample, is_training: bool
    ) -> dict[str, Any]:
        """Return features with labels at the words' first wordpieces.

        All segment ids are 1, as in the original.
        """
        length = self.config.max_seq_length
        fixes_truncation = self.config.fix_tagging_truncation
        input_ids, positions = join_words(
            [self._aligner.encode_word(word) for word in example.words],
            self._cls_id,
            self._sep_id,
            length,
            count_words=not fixes_truncation,
        )
        # A sentence may have more than `length` words, because some words have
        # no wordpieces.
        positions = positions[:length]
        n_cut = len(example.words) - len(positions)
        if n_cut:
            splits = "training" if is_training else "dev and test"
            loss = f"words cut off {splits} sentences beyond max_seq_length"
            if not fixes_truncation:
                loss += " (fix_tagging_truncation would cut off fewer words)"
            self.row_report.losses[loss] += n_cut

        segment_ids = [1] * len(input_ids)
        features = self._shared_features(input_ids, segment_ids, example.eid)
        return features | self._token_features(
            labels=example.labels[:length],
            labels_mask=[1.0] * len(positions),
            labeled_positions=positions,
        )

    def get_feature_specs(self) -> list[FeatureSpec]:
        return self._token_feature_specs(
            "labels", "labels_mask", "labeled_positions"
        )

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

    def label_names(self, example: TaggingExample) -> Iterable[str]:
        names = list(self.label_mapping)
        return [names[i] for i in example.labels]

    def fingerprint(self) -> dict[str, Any]:
        starts = self._type_change_starts_span
        return super().fingerprint() | {"type_change_starts_span": starts}

    def set_labels(self, labels: dict[str, int]) -> None:
        super().set_labels(labels)
        self._has_model_labels = False

    def set_model_labels(self, labels: Sequence[str]) -> None:
        """Set the labels of a trained head, in the order of its outputs."""
        self.set_labels({label: i for i, label in enumerate(labels)})
        self._has_model_labels = True

    def labels_path(self) -> str:
        prefix = "debug_" if self.config.debug else ""
        return os.path.join(
            self.config.preprocessed_data_dir,
            f"{prefix}{self.name}_label_mapping.json",
        )

    def _read_sentences(self, split: str) -> list[Sentence]:
        """Return the usable sentences of a split.

        Source: _get_labeled_sentences.
        """
        path = self._existing_path(split)
        file_format = tables.resolve_format(path, self.spec.format)
        split_spec = self.spec.find_split(split, self.directory)
        if file_format == "jsonl":
            all_sentences = _read_jsonl(split_spec, self.row_report)
        elif file_format == "conll":
            keep_last = self.config.fix_last_sentence
            all_sentences = _read_conll(
                split_spec, self.row_report, split, keep_last
            )
        else:
            raise UserError(
                f"{path}: the format is {file_format}; expected conll or jsonl"
                " for tasks of type tagging. Set format in the description."
            )
        sentences = []
        for sentence in all_sentences:
            if self._has_valid_tags(sentence):
                sentences.append(sentence)
            if self.config.debug and len(sentences) >= DEBUG_SENTENCES:
                break
        return sentences

    def _has_valid_tags(self, sentence: Sentence) -> bool:
        """Return whether all tags are valid; report invalid tags."""
        if self.is_token_level:
            return True
        is_valid = True
        for i, tag in enumerate(sentence.tags):
            try:
                split_tag(tag)
            except ValueError:
                self.row_report.add(
                    sentence.path,
                    sentence.lines[i],
                    f"tag {tag!r} of {sentence.words[i]!r}",
                    "O, B-TYPE, I-TYPE, E-TYPE or S-TYPE (the whole sentence"
                    " is left out)",
                )
                is_valid = False
        return is_valid

    def _sentence_labels(self, sentence: Sentence) -> list[str]:
        """Return the labels to learn, which are BIOES tags for spans."""
        if self.is_token_level:
            return sentence.tags
        spans = read_spans(sentence.tags, self._type_change_starts_span)
        return write_tags(spans, len(sentence.tags))

    def _label_ids(self, sentence: Sentence) -> list[int] | None:
        """Return label ids, or report an unknown label and return None."""
        if not sentence.tags:
            return [0] * len(sentence.words)
        labels = [*map(self._match_label, self._sentence_labels(sentence))]
        for i, label in enumerate(labels):
            if label not in self.label_mapping:
                self.row_report.add(
                    sentence.path,
                    sentence.lines[i],
                    f"label {label!r}",
                    f"one of: {join_names(self.label_mapping, 12)} (the whole"
                    " sentence is left out)",
                )
                return None
        return [self.label_mapping[label] for label in labels]

    def has_label_for(self, label: str) -> bool:
        """Return whether the task's labels can express a BIOES label."""
        return self._match_label(label) in self.label_mapping

    def _match_label(self, label: str) -> str:
        """Return a BIOES label in the scheme of the task's labels.

        A head that transformers trained may have BIO, IO or BILOU tags.
        """
        if label in self.label_mapping or self.is_token_level:
            return label
        letter, dash, span_type = label.partition("-")
        for other_letter in _OTHER_LETTERS.get(letter, ""):
            other_label = f"{other_letter}{dash}{span_type}"
            if other_label in self.label_mapping:
                return other_label
        return label

    @explains_bad_rows
    def find_labels(self) -> dict[str, int] | None:
        if self.spec.labels is not None:
            labels = set(self.spec.labels)
            if not self.is_token_level:
                labels = {f"{m}-{t}" for m in "BIES" for t in labels} | {"O"}
        else:
            labels = self._collect_labels()
        if not labels:
            return None
        return {label: i for i, label in enumerate(sorted(labels))}

    def _collect_labels(self) -> set[str]:
        """Return the labels in the data; empty if no labelled file exists.

        Raises:
          UserError: labelled files have no usable label.
        """
        labels: set[str] = set()
        splits = [s for s in self.label_splits if self.has_split(s)]
        for split in splits:
            for sentence in self._read_sentences(split):
                labels.update(self._sentence_labels(sentence))
        names = labels
        if not self.is_token_level:
            names = {split_tag(label)[1] for label in labels}
        refuse_equal_labels(self.name, sorted(names))
        labelled_splits = [s for s in splits if self.spec.has_labels(s)]
        if not labels and labelled_splits:
            paths = ", ".join(map(self._path, labelled_splits))
            raise UserError(
                f"task {self.name}: no usable labels in {paths}"
                f" ({self._lost_rows()}). Correct format and columns in the"
                " description."
            )
        return labels


def _read_conll(
    split_spec: SplitSpec, report: RowReport, split: str, keep_last: bool
) -> Iterator[Sentence]:
    """Yield the sentences of a CoNLL file and report bad lines."""
    columns = {"word": 0, "tag": -1, **split_spec.columns}
    if not split_spec.labelled:
        del columns["tag"]
    path = split_spec.path
    reader = conll.ConllReader(
        LineReader(path), columns, keeps_unended=keep_last
    )
    for item in reader:
        if isinstance(item, tables.Row):
            report.add(path, item.line, item.content, item.expected)
            continue
        words, tags = item.columns["word"], item.columns.get("tag", [])
        yield Sentence(path, item.number, words, tags, item.lines)
    for kind, count in reader.skipped.items():
        report.losses[f"{split}: {kind}"] = count


def _read_jsonl(split_spec: SplitSpec, report: RowReport) -> Iterator[Sentence]:
    """Yield the sentences of a file of JSON lines and report bad lines."""
    columns = {"word": "words", "tag": "tags", **split_spec.columns}
    path = split_spec.path
    for number, row in enumerate(tables.read_rows(path, "jsonl")):
        try:
            if row.expected:
                raise _BadCellError(row.content, row.expected)
            words = _read_texts(row, columns["word"], values.as_text)
            if not words:
                raise _BadCellError(
                    f"no word under {columns['word']}", "a list of texts"
                )
            tags: list[str] = []
            if split_spec.labelled:
                tags = _read_texts(row, columns["tag"], _read_tag)
                if len(tags) != len(words):
                    raise _BadCellError(
                        f"{len(tags)} {columns['tag']} for {len(words)} words",
                        f"as many {columns['tag']} as words",
                    )
        except _BadCellError as error:
            report.add(path, row.line, *error.args)
            continue
        yield Sentence(path, number, words, tags, [row.line] * len(words))


class _BadCellError(ValueError):
    """An error for an unusable cell.

    The arguments are the content that was found and the expected content.
    """


def _read_tag(value: Any) -> str | None:
    """Return a tag: a text without lone surrogates, or a number as text."""
    text = values.as_id(value)
    return text if text is not None and is_encodable(text) else None


def _read_texts(
    row: tables.Row, name: int | str, read: Callable[[Any], str | None]
) -> list[str]:
    """Return the texts of the list in a row's column.

    Args:
      row: the row.
      name: the column.
      read: function that returns the text of an item, or None.
    """
    expected = f"a list of texts under {name}"
    if not row.cells:
        raise _BadCellError("an empty line", expected)
    if name not in row.cells:
        raise _BadCellError(f"{row.cells}", expected)
    cell = row.cells[name]
    if not isinstance(cell, list):
        raise _BadCellError(f"{name} is {values.describe(cell)}", expected)
    texts = []
    for item in cell:
        text = read(item)
        if text is None:
            content = f"{values.describe(item)} in {name}"
            raise _BadCellError(content, expected)
        texts.append(text)
    return texts
