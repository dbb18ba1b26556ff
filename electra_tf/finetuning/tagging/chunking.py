# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chunking as in CoNLL-2000.

Source: google-research/electra, finetune/tagging/tagging_tasks.py, Chunking.
"""

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.schema import TaskSpec
from electra_tf.finetuning.tagging.task import TaggingTask
from electra_tf.text.tokenization import FullTokenizer

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
    """Text chunking; word first, tag last of the columns.

    Args:
      config: the resolved hparams.
      tokenizer: splits the words.
    """

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(
            config, CHUNKING, tokenizer, type_change_starts_span=False
        )
