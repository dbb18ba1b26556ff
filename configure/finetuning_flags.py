# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line of `run_finetuning.py`."""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any

from configure import hparams
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.flags import (
    FrontDoorParser,
    add_flag,
    add_hparam_flags,
    add_name_flags,
    checked_config,
    read_layers,
)


def finetuning_parser(prog: str | None = None) -> FrontDoorParser:
    """Returns the parser of `run_finetuning.py`."""
    prog = prog or "run_finetuning.py"
    parser = FrontDoorParser(
        prog=prog,
        usage=f"{prog} --data-dir DIR --model-name NAME [--hparams JSON]\n"
        "       [--task_names TASK,...] [--task_config FILE] [--print_config]\n"
        "       [--any_hparam VALUE ...]",
        description="Fine-tunes a pre-trained model on tasks, evaluates it,"
        " and predicts test sets. Running the same command again continues"
        " where it stopped. Later sources win: defaults (also those of"
        " --task_config), --hparams, flags. Dashes and underscores are the"
        " same in flag names. Booleans take --flag, --noflag and"
        " --flag=false.",
    )
    main = parser.add_argument_group("Front door")
    add_name_flags(
        main,
        "where data and models live; a task's files are read from"
        " DIR/finetuning_data/TASK",
        "the pre-trained model, DIR/models/NAME; results go there, too",
        "the one written beside a fine-tuned model will do",
    )
    add_flag(
        main,
        "print_config",
        action="store_true",
        help="print every value and where it came from, and stop",
    )
    add_hparam_flags(
        parser,
        FinetuningConfig,
        {"data_dir", "model_name"},
    )
    return parser


def parse_finetuning_args(
    argv: Sequence[str],
    parser: FrontDoorParser | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> tuple[FinetuningConfig, argparse.Namespace]:
    """Turns a command line into a config.

    `--help` and `--print_config` print and exit.

    Raises:
      SystemExit: a flag that does not exist or a missing one (status 2), or
        a request to print something (status 0).
    """
    if parser is None:
        parser = finetuning_parser(os.path.basename(argv[0]))
    args = parser.parse_args(list(argv[1:]))
    given = read_layers(FinetuningConfig, args, parser)
    task_file = given.flags.get("task_config", given.in_file.get("task_config"))
    config = FinetuningConfig.from_layers(
        *given.names,
        [
            ("program", defaults or {}),
            ("task_config", task_file_hparams(task_file)),
            (given.origin, given.in_file),
            ("flag", given.flags),
        ],
        names_origin="flag",
    )
    return checked_config(config, args), args


def task_file_hparams(path: str | None) -> dict[str, Any]:
    """Returns the hparams that a task's JSON file brings along.

    Args:
      path: the value of `task_config`, or None.
    """
    if path is None:
        return {}
    if not str(path).endswith(".json"):
        raise UserError(
            f"hparam task_config: expected the path of a .json file, got"
            f" {path!r}"
        )
    spec = hparams.read_hparams(str(path))
    given = spec.get("hparams", {})
    if not isinstance(given, dict):
        raise UserError(
            f"{path}: hparams: expected an object of hparams, got {given!r}"
        )
    if isinstance(spec.get("name"), str):
        given = {"task_names": [spec["name"]], **given}
    return given
