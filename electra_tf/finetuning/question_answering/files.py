# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Question answering tasks read from files, or from TFDS."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf import files as storage
from electra_tf.data import tables
from electra_tf.finetuning.question_answering import examples
from electra_tf.finetuning.question_answering.task import QATask
from electra_tf.finetuning.schema import TaskSpec
from electra_tf.text.tokenization import FullTokenizer

# What debug mode reads of a split.
DEBUG_PARAGRAPHS = 10
DEBUG_LINES = 11  # as the original; the header is one of them
DEBUG_QUESTIONS = 50

_TFDS_SPLITS = {"train": "train", "dev": "validation"}


class FileQATask(QATask):
    """A question answering task in the format of SQuAD or MRQA."""

    def __init__(
        self,
        config: FinetuningConfig,
        name: str,
        tokenizer: FullTokenizer,
        version: str,
        files: Mapping[str, str] | None = None,
        directory: str | None = None,
        tfds: str | None = None,
    ) -> None:
        super().__init__(config, name, tokenizer, version)
        self._files = files
        self._directory = directory or config.raw_data_dir(name)
        self._tfds = tfds if config.data_source == "tfds" else None
        if config.data_source == "tfds" and tfds is None:
            raise UserError(
                f"task {name}: not known to TensorFlow Datasets; use"
                " data_source=files"
            )

    def read_questions(self, split: str) -> Iterator[examples.RawQuestion]:
        """Reads a split; see `QATask.read_questions`."""
        debug = self.config.debug
        if self._tfds is not None:
            return examples.read_tfds(
                self._tfds,
                _TFDS_SPLITS.get(split, split),
                self.config.tfds_data_dir,
                DEBUG_QUESTIONS if debug else None,
            )
        path = self._path(split)
        if not storage.exists(path):
            raise UserError(
                f"{path}: no such file; the {split} split of task {self.name}"
                " is read from there"
            )
        if self.version == "mrqa":
            return examples.read_mrqa(
                path, self.row_report, DEBUG_LINES if debug else None
            )
        return examples.read_squad(
            path, self.row_report, DEBUG_PARAGRAPHS if debug else None
        )

    def has_split(self, split: str) -> bool:
        """Returns whether the split's file is there (TFDS: is known)."""
        if self._tfds is not None:
            return split in _TFDS_SPLITS
        if self._files is not None and split not in self._files:
            return False
        return storage.exists(self._path(split))

    def get_test_splits(self) -> list[str]:
        """Returns the splits that predictions are made for."""
        if self._files is None:
            return super().get_test_splits()
        return [split for split in self._files if "test" in split]

    def data_files(self, split: str) -> list[str] | None:
        """Returns the file that a split's features depend on."""
        if self._tfds is not None:
            return []
        path = self._path(split)
        return [path] if storage.exists(path) else None

    def fingerprint(self) -> dict[str, Any]:
        """Returns what decides the features besides hparams and files."""
        facts = super().fingerprint()
        if self._tfds is not None:
            facts["tfds"] = tables.tfds_identity(
                self._tfds, self.config.tfds_data_dir
            )
        return facts

    def _path(self, split: str) -> str:
        if self._files is not None:
            if split not in self._files:
                raise UserError(
                    f"task {self.name} has no {split} split (it has:"
                    f" {', '.join(self._files)})"
                )
            return os.path.join(self._directory, self._files[split])
        end = ".jsonl" if self.version == "mrqa" else ".json"
        path = os.path.join(self._directory, split + end)
        if self.version == "mrqa":
            plain = storage.exists(path) or not storage.exists(f"{path}.gz")
            return path if plain else f"{path}.gz"
        debug_path = os.path.join(self._directory, f"{split}-debug.json")
        if self.config.debug and storage.exists(debug_path):
            return debug_path
        return path


# SQuAD 1.1 and 2.0.


class SQuAD(FileQATask):
    """SQuAD 2.0: there may be no answer.

    Source: google-research/electra, finetune/qa/qa_tasks.py, SQuAD.
    """

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(
            config, "squad", tokenizer, "squad2", tfds="squad/v2.0"
        )


class SQuADv1(FileQATask):
    """SQuAD 1.1: every question has an answer.

    Source: google-research/electra, finetune/qa/qa_tasks.py, SQuADv1.
    """

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(config, "squadv1", tokenizer, "squad1", tfds="squad")


# Tasks of the MRQA 2019 shared task.


class NewsQA(FileQATask):
    """Questions about news articles."""

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(config, "newsqa", tokenizer, "mrqa")


class NaturalQuestions(FileQATask):
    """Questions typed into a search engine, answered from Wikipedia."""

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(config, "naturalqs", tokenizer, "mrqa")


class TriviaQA(FileQATask):
    """Trivia questions with web pages that may answer them."""

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(config, "triviaqa", tokenizer, "mrqa")


class SearchQA(FileQATask):
    """Quiz questions with what a search engine found."""

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(config, "searchqa", tokenizer, "mrqa")


# A question answering task of one's own, from its JSON description.


class CustomQATask(FileQATask):
    """A task as data.

    Differs: answers are filed by id in SQuAD's format whatever the task's
      name is; the original looks for "squad" in it.
    """

    def __init__(
        self,
        config: FinetuningConfig,
        spec: TaskSpec,
        tokenizer: FullTokenizer,
        directory: str | None = None,
    ) -> None:
        super().__init__(
            config,
            spec.name,
            tokenizer,
            spec.version,
            files=spec.files,
            directory=directory,
        )
        self._metric = spec.metric

    @property
    def main_metric(self) -> str:
        """The figure that counts when runs are compared."""
        if self.v2 and self._metric == "exact_match":
            return "exact"  # SQuAD 2.0's name for it
        return self._metric or super().main_metric


def make_task(
    config: FinetuningConfig,
    spec: TaskSpec,
    tokenizer: FullTokenizer,
    directory: str | None = None,
) -> CustomQATask:
    """Makes the task; see `CustomQATask`."""
    return CustomQATask(config, spec, tokenizer, directory)
