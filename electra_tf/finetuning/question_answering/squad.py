# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""SQuAD 1.1 and 2.0."""

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.question_answering.files import FileQATask
from electra_tf.text.tokenization import FullTokenizer


class SQuAD(FileQATask):
    """SQuAD 2.0: there may be no answer.

    Args:
      config: the resolved hparams.
      tokenizer: splits questions and passages.

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

    Args:
      config: the resolved hparams.
      tokenizer: splits questions and passages.

    Source: google-research/electra, finetune/qa/qa_tasks.py, SQuADv1.
    """

    def __init__(
        self, config: FinetuningConfig, tokenizer: FullTokenizer
    ) -> None:
        super().__init__(config, "squadv1", tokenizer, "squad1", tfds="squad")
