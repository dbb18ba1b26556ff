#!/usr/bin/env python3
# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a pre-trained model on tasks and evaluates it: see `--help`.

Source: google-research/electra, run_finetuning.py, main.
"""

from argparse import Namespace
from functools import partial

from configure import flags
from configure.finetuning import FinetuningConfig


def main(parsed: tuple[FinetuningConfig, Namespace]) -> int:
    """Runs; exits with 128 + the signal's number when asked to stop early."""
    # After the flags: --help and --print_config need no TensorFlow.
    from electra_tf.finetuning import runner

    config, _ = parsed
    result = runner.run(config)
    return 128 + result["interrupted"] if "interrupted" in result else 0


if __name__ == "__main__":
    flags.run_program(main, partial(flags.parse_config, FinetuningConfig))
