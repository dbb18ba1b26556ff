#!/usr/bin/env python3
# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pre-train an ELECTRA model, or evaluate one; see `--help`.

Source: google-research/electra, run_pretraining.py, main.
"""

from argparse import Namespace
from functools import partial

from configure import flags
from configure.pretraining import PretrainingConfig


def main(parsed: tuple[PretrainingConfig, Namespace]) -> int:
    """Execute the run; return 0, or 128 + the signal that stopped the run."""
    # TensorFlow is imported late: --help and --print_config do not need it.
    from electra_tf.pretraining import runner

    config, _ = parsed
    result = runner.run(config)
    return 128 + result["interrupted"] if "interrupted" in result else 0


if __name__ == "__main__":
    flags.run_program(main, partial(flags.parse_config, PretrainingConfig))
