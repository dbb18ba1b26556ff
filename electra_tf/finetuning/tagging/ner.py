# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Named entities and parts of speech in CoNLL columns.

Not in the original. Files: `train.txt`, `dev.txt`, `test.txt` in
`finetuning_data/ner` and `finetuning_data/pos`.
"""

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.schema import TaskSpec
from electra_tf.finetuning.tagging.task import TaggingTask
from electra_tf.text.tokenization import FullTokenizer

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
    """Named entity recognition; word first, tag last of the columns.

    Args:
      config: the resolved hparams.
      tokenizer: splits the words.
    """

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(config, NAMED_ENTITIES, tokenizer)


class PartsOfSpeech(TaggingTask):
    """Part-of-speech tagging; word first, tag second of the columns.

    Args:
      config: the resolved hparams.
      tokenizer: splits the words.
    """

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(config, PARTS_OF_SPEECH, tokenizer)
