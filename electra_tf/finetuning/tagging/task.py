# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks with a label per word: the label map, words to wordpieces."""

import dataclasses
import os
from typing import Any

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf import files
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.finetuning import heads, rows
from electra_tf.finetuning.heads import Head
from electra_tf.finetuning.schema import TaskSpec
from electra_tf.finetuning.tagging.sentences import Sentence, read_sentences
from electra_tf.finetuning.task import Example, Task
from electra_tf.metrics import scorers
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.words import (
    WordAligner,
    place_words,
    read_spans,
    split_tag,
    write_tags,
)

CUT_WORDS = "words (of {split}) cut off as too long for max_seq_length{remedy}"


@dataclasses.dataclass(kw_only=True)
class TaggingExample(Example):
    """One tagged sentence.

    Attributes:
      words: its words.
      labels: the id of each word's label; empty without labels.
    """

    words: list[str]
    labels: list[int]


class TaggingTask(Task):
    """Reads sentences and makes the inputs of them.

    Spans are learned as tags of the BIOES scheme, whatever the files' scheme.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py.
    Differs: the label map is JSON and always that of the data; see
      `fix_tagging_truncation`, `fix_tagging_casing` and `fix_last_sentence`.
    """

    def __init__(
        self,
        config: FinetuningConfig,
        spec: TaskSpec,
        tokenizer: FullTokenizer,
        directory: str | None = None,
        type_change_starts_span: bool = True,
    ) -> None:
        super().__init__(config, spec.name, tokenizer)
        if config.data_source == "tfds":
            raise UserError(
                f"task {spec.name}: tagging tasks are read from files; use"
                " data_source=files"
            )
        self.spec = spec
        self.directory = directory or config.raw_data_dir(spec.name)
        self._type_change_starts_span = type_change_starts_span
        self._aligner = WordAligner(tokenizer, config.fix_tagging_casing)
        special = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
        self._cls_id, self._sep_id = special
        self._label_mapping: dict[str, int] | None = None

    @property
    def is_token_level(self) -> bool:
        """Whether each word has a class of its own, as in part-of-speech."""
        return self.spec.tags == "words"

    @property
    def label_mapping(self) -> dict[str, int]:
        """The id of each label (BIOES tags, or classes of words)."""
        if self._label_mapping is None:
            self._label_mapping = rows.find_or_load(
                self.labels_path(), self._find_labels, self.name
            )
        return self._label_mapping

    def use_labels(self, found: Any) -> None:
        """Takes the id of each label; see `Task.use_labels`."""
        self._label_mapping = dict(found)

    def get_examples(self, split: str) -> list[TaggingExample]:
        """Reads a split; see `Task.get_examples`."""
        examples = []
        for sentence in self._read(split):
            labels = self._label_ids(sentence)
            if labels is not None:
                examples.append(
                    TaggingExample(
                        eid=sentence.number,
                        task_name=self.name,
                        words=sentence.words,
                        labels=labels,
                    )
                )
        if not examples:
            path = self.spec.split(split, self.directory).path
            raise UserError(
                f"task {self.name}: no usable sentence in its {split} split"
                f" ({path}; bad rows: {len(self.row_report.rows)})"
            )
        return examples

    @property
    def main_metric(self) -> str | None:
        """The metric that the description names; None: the first."""
        return self.spec.metric

    def get_test_splits(self) -> list[str]:
        """Returns the splits that predictions are written for."""
        return [s for s in self.spec.files if "test" in s]

    def get_dev_splits(self) -> list[str]:
        """Returns the labelled splits besides train and test, "dev" first."""
        others = [
            s
            for s in self.spec.files
            if self.spec.labelled(s) and s not in ("train", "dev")
        ]
        return ["dev", *(s for s in others if "test" not in s)]

    def has_split(self, split: str) -> bool:
        """Returns whether the split's file is there."""
        if split not in self.spec.files:
            return False
        return files.exists(self.spec.split(split, self.directory).path)

    def featurize(
        self, example: TaggingExample, is_training: bool, log: bool = False
    ) -> dict[str, Any]:
        """Turns a sentence into the inputs of encoder and head.

        Only the first wordpiece of a word has its label. Segment ids are one
        at all tokens, unlike in every other task.
        """
        input_ids, positions = self._place(example.words)
        cut = len(example.words) - len(positions)
        if cut:
            fixed = self.config.fix_tagging_truncation
            remedy = "" if fixed else " (fewer with fix_tagging_truncation)"
            which = "train" if is_training else "dev and test"
            self.row_report.count_loss(
                CUT_WORDS.format(split=which, remedy=remedy), cut
            )
        length = self.config.max_seq_length

        def pad(values: list[Any]) -> list[Any]:
            return values + [0] * (length - len(values))

        if log:
            print(f"{self.name} example {example.eid}")
            tokens = self.tokenizer.convert_ids_to_tokens(input_ids)
            print(f"  tokens: {' '.join(tokens)}")
            print(f"  labels: {example.labels}")
        return {
            "input_ids": pad(input_ids),
            "input_mask": pad([1] * len(input_ids)),
            "segment_ids": pad([1] * len(input_ids)),
            "task_id": self.config.task_names.index(self.name),
            f"{self.name}_eid": example.eid,
            f"{self.name}_labels": pad(example.labels[:length]),
            f"{self.name}_labels_mask": pad([1.0] * len(positions)),
            f"{self.name}_labeled_positions": pad(positions),
        }

    def get_feature_specs(self) -> list[FeatureSpec]:
        """Returns `eid`, and the rest of shape [L]; see `featurize`."""
        length = [self.config.max_seq_length]

        def per_token(name: str, is_int: bool = True) -> FeatureSpec:
            return FeatureSpec(
                f"{self.name}_{name}",
                length,
                is_int_feature=is_int,
                per_token=True,
            )

        return [
            FeatureSpec(f"{self.name}_eid", []),
            per_token("labels"),
            per_token("labels_mask", is_int=False),
            per_token("labeled_positions"),
        ]

    def build_head(self, encoder_config: EncoderConfig, seed: int) -> Head:
        """Returns a dense layer to the labels; see `Task.build_head`."""
        return heads.TaggingHead(
            self.name,
            encoder_config.hidden_size,
            len(self.label_mapping),
            seed=seed,
        )

    def get_scorer(self, split: str = "dev") -> scorers.Scorer:
        """Returns F1 of spans, or the accuracy of words."""
        if self.is_token_level or self.spec.metric == "accuracy":
            return scorers.WordAccuracyScorer()
        return scorers.EntityLevelF1Scorer(self.label_mapping)

    def data_files(self, split: str) -> list[str] | None:
        """Returns the files that a split's features depend on."""
        if split not in self.spec.files:
            return None
        splits = dict.fromkeys([split, *self._label_splits()])
        paths = [
            self.spec.split(s, self.directory).path
            for s in splits
            if self.has_split(s)
        ]
        return list(dict.fromkeys(paths))

    def fingerprint(self) -> dict[str, Any]:
        """Returns the description of the task."""
        return super().fingerprint() | {
            "spec": repr(self.spec),
            "type_change_starts_span": self._type_change_starts_span,
        }

    def _place(self, words: list[str]) -> tuple[list[int], list[int]]:
        """Returns token ids, and the position of each word that fits."""
        return place_words(
            [self._aligner.encode_word(word) for word in words],
            self._cls_id,
            self._sep_id,
            self.config.max_seq_length,
            count_words=not self.config.fix_tagging_truncation,
        )

    def _read(self, split: str) -> list[Sentence]:
        return read_sentences(
            self.spec,
            split,
            self.directory,
            self.row_report,
            self._check_tag,
            self.config.fix_last_sentence,
            self.config.debug,
        )

    def _check_tag(self, tag: str) -> str:
        if not self.is_token_level:
            try:
                split_tag(tag)
            except ValueError:
                raise ValueError("O, or B-TYPE, I-TYPE, E-TYPE, S-TYPE") from (
                    None
                )
        return tag

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
        ids = []
        for i, label in enumerate(self._labels_of(sentence)):
            if label not in self.label_mapping:
                self.row_report.add(
                    sentence.path,
                    sentence.lines[i],
                    f"label {label!r}",
                    f"one of: {', '.join(list(self.label_mapping)[:12])} ..."
                    " (the sentence is left out)",
                )
                return None
            ids.append(self.label_mapping[label])
        return ids

    def _label_splits(self) -> list[str]:
        wanted = ("train", "dev", "test")
        return [s for s in wanted if s in self.spec.files]

    def _find_labels(self) -> dict[str, int] | None:
        labels: set[str] = set()
        if self.spec.labels is not None:
            labels = set(self.spec.labels)
            if not self.is_token_level:
                marks = {f"{m}-{t}" for m in "BIES" for t in labels}
                labels = marks | {"O"}
        else:
            for split in self._label_splits():
                if self.has_split(split) and self.spec.labelled(split):
                    for sentence in self._read(split):
                        labels.update(self._labels_of(sentence))
            if not labels:
                return None
        return {label: i for i, label in enumerate(sorted(labels))}

    def labels_path(self) -> str:
        """Returns where the label map is kept."""
        debug = "debug_" if self.config.debug else ""
        return os.path.join(
            self.config.preprocessed_data_dir,
            f"{debug}{self.name}_label_mapping.json",
        )


# Chunking as in CoNLL-2000.

CHUNKING = TaskSpec.from_dict(
    {
        "name": "chunk",
        "type": "tagging",
        "files": {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"},
        "format": "conll",
        "splits": {"test": {"labelled": True}},
    }
)


class Chunking(TaggingTask):
    """Text chunking; word first, tag last of the columns."""

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(
            config, CHUNKING, tokenizer, type_change_starts_span=False
        )


# Named entities and parts of speech in CoNLL columns.

_COLUMNS = {
    "type": "tagging",
    "files": {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"},
    "format": "conll",
    "splits": {"test": {"labelled": True}},
}
NAMED_ENTITIES = TaskSpec.from_dict({**_COLUMNS, "name": "ner"})
# CoNLL-2003 has the part of speech second; so do files of two columns.
PARTS_OF_SPEECH = TaskSpec.from_dict(
    {**_COLUMNS, "name": "pos", "tags": "words", "columns": {"tag": 1}}
)


class NamedEntities(TaggingTask):
    """Named entity recognition; word first, tag last of the columns."""

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(config, NAMED_ENTITIES, tokenizer)


class PartsOfSpeech(TaggingTask):
    """Part-of-speech tagging; word first, tag second of the columns."""

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(config, PARTS_OF_SPEECH, tokenizer)
