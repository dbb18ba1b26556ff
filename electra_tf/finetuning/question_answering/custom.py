# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A question answering task of one's own, from its JSON description."""

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.question_answering.files import FileQATask
from electra_tf.finetuning.schema import TaskSpec
from electra_tf.text.tokenization import FullTokenizer


class CustomQATask(FileQATask):
    """A task as data.

    Args:
      config: the resolved hparams.
      spec: the task; `version`, `files` and `metric` count.
      tokenizer: splits questions and passages.
      directory: what relative paths start from.

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
