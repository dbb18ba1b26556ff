# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks of the MRQA 2019 shared task.

Source: google-research/electra, finetune/qa/qa_tasks.py, MRQATask.
Differs: `<split>.jsonl.gz`, as the shared task hands it out, is read, too.
"""

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.question_answering.files import FileQATask
from electra_tf.text.tokenization import FullTokenizer


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
