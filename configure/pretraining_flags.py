# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line of `run_pretraining.py`."""

import argparse
import os
from collections.abc import Sequence

from configure import presets
from configure.flags import (
    FrontDoorParser,
    add_flag,
    add_hparam_flags,
    add_name_flags,
    checked_config,
    read_layers,
)
from configure.pretraining import PretrainingConfig


def pretraining_parser(prog: str | None = None) -> FrontDoorParser:
    """Returns the parser of `run_pretraining.py`."""
    prog = prog or "run_pretraining.py"
    parser = FrontDoorParser(
        prog=prog,
        usage=f"{prog} --data-dir DIR --model-name NAME [--preset PRESET]\n"
        "       [--hparams JSON] [--print_config] [--any_hparam VALUE ...]",
        description="Pre-trains ELECTRA, Electric or a masked language model,"
        " or evaluates one. Running the same command again continues where it"
        " stopped. Later sources win: defaults, --preset, --hparams, flags."
        " Dashes and underscores are the same in flag names. Booleans take"
        " --flag, --noflag and --flag=false.",
    )
    main = parser.add_argument_group("Front door")
    add_name_flags(
        main,
        "where data and models live; records are read from"
        " DIR/pretrain_tfrecords, the vocabulary from DIR/vocab.txt",
        "the model's name; it is kept in DIR/models/NAME",
        "the one written beside the checkpoints will do",
    )
    add_flag(
        main,
        "preset",
        metavar="PRESET",
        default=argparse.SUPPRESS,
        help="published settings to start from: "
        + ", ".join(presets.preset_names()),
    )
    add_flag(
        main,
        "print_config",
        action="store_true",
        help="print every value and where it came from, and stop",
    )
    add_hparam_flags(
        parser,
        PretrainingConfig,
        {"data_dir", "model_name", "preset"},
    )
    return parser


def parse_pretraining_args(
    argv: Sequence[str], parser: FrontDoorParser | None = None
) -> tuple[PretrainingConfig, argparse.Namespace]:
    """Turns a command line into a config.

    `--help` and `--print_config` print and exit.

    Raises:
      SystemExit: a flag that does not exist or a missing one (status 2), or
        a request to print something (status 0).
    """
    parser = parser or pretraining_parser(os.path.basename(argv[0]))
    args = parser.parse_args(list(argv[1:]))
    given = read_layers(PretrainingConfig, args, parser)
    config = PretrainingConfig.from_layers(
        *given.names,
        [(given.origin, given.in_file), ("flag", given.flags)],
        names_origin="flag",
    )
    return checked_config(config, args), args
