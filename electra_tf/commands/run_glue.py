# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tune a model on all GLUE tasks and average the scores."""

from argparse import Namespace
from collections.abc import Sequence

from configure import flags
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.glue_tasks import GLUE_TASKS

_PROG = "python -m electra_tf run_glue"


def parse_flags(argv: Sequence[str]) -> tuple[FinetuningConfig, Namespace]:
    """Parse the command line, which has the flags of `run_finetuning.py`."""
    parser = flags.config_parser(FinetuningConfig, _PROG)
    parser.usage = (
        f"{_PROG}\n"
        "       --data-dir DIR --model-name NAME [--hparams JSON]\n"
        "       [--num_trials N] [--write_test_outputs]\n"
        "       [--any_hparam VALUE ...]"
    )
    parser.description = (
        "Fine-tune a pre-trained model on each of the nine GLUE tasks whose"
        " data exist (or on --task_names), list the missing tasks, and write"
        " scores and averages to results/glue.txt and .json. Values that depend"
        " on the task, such as num_train_epochs, are derived for each task."
        " Running the same command again continues an interrupted run."
    )
    return flags.parse_config(
        FinetuningConfig, argv, parser, {"task_names": list(GLUE_TASKS)}
    )


def main(parsed: tuple[FinetuningConfig, Namespace]) -> int:
    """Fine-tune the model on all tasks.

    Returns:
      The exit status: 1 if a task failed, 128 + the signal's number if stopped.
    """
    # TensorFlow is imported late: --help and --print_config do not need it.
    from electra_tf.finetuning.glue_suite import GlueSuite

    config, _ = parsed
    result = GlueSuite(config).run()
    if "interrupted" in result:
        return 128 + result["interrupted"]
    return int(any(o.state == "failed" for o in result["outcomes"].values()))
