# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line of `run_finetuning.py`."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from configure import hparams
from configure.errors import UserError
from configure.finetuning import (
    FinetuningConfig,
    default_hparams,
    explicit_hparams,
    field_types,
)
from configure.flags import (
    FrontDoorParser,
    add_flag,
    add_hparam_flags,
    format_config,
)


def finetuning_parser(prog: str | None = None) -> FrontDoorParser:
    """Returns the parser of `run_finetuning.py`.

    Args:
      prog: the program's name in messages.
    """
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
    add_flag(
        main,
        "data_dir",
        metavar="DIR",
        help="where data and models live; a task's files are read from"
        " DIR/finetuning_data/TASK",
    )
    add_flag(
        main,
        "model_name",
        metavar="NAME",
        help="the pre-trained model, DIR/models/NAME; results go there, too",
    )
    add_flag(
        main,
        "hparams",
        metavar="JSON",
        help="hyperparameters as a JSON object, or the path of a .json file"
        " (the one written beside a fine-tuned model will do)",
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
        field_types(),
        default_hparams(),
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

    Args:
      argv: the program's name, then its arguments, as absl passes them.
      parser: with the flags of `finetuning_parser`; that one by default.
      defaults: hparams of the program itself, that all others win over.

    Returns:
      The resolved config, and the parsed flags.

    Raises:
      UserError: a value that cannot be.
      SystemExit: a flag that does not exist or a missing one (status 2), or
        a request to print something (status 0).
    """
    if parser is None:
        parser = finetuning_parser(os.path.basename(argv[0]))
    args = parser.parse_args(list(argv[1:]))
    in_file: dict[str, Any] = {}
    origin = "json"
    if args.hparams is not None:
        in_file = explicit_hparams(hparams.read_hparams(args.hparams))
        if args.hparams.strip().endswith(".json"):
            origin = "file"
    names = {}
    for name in ("data_dir", "model_name"):
        value = in_file.pop(name, None)
        names[name] = getattr(args, name) or value
    missing = [f"--{n.replace('_', '-')}" for n, v in names.items() if not v]
    if missing and not args.print_config:
        parser.error(f"missing {' and '.join(missing)}")
    flags = {n: getattr(args, n) for n in field_types() if hasattr(args, n)}
    for name in names:
        del flags[name]
    task_file = flags.get("task_config", in_file.get("task_config"))
    config = FinetuningConfig.from_layers(
        names["model_name"] or "MODEL_NAME",
        names["data_dir"] or "DATA_DIR",
        [
            ("program", defaults or {}),
            ("task_config", task_file_hparams(task_file)),
            (origin, in_file),
            ("flag", flags),
        ],
        names_origin="flag",
    )
    if args.print_config:
        print(format_config(config))
        for text in config.warnings():
            print(f"warning: {text}", file=sys.stderr)
        raise SystemExit(0)
    config.check_mode()
    return config, args


def task_file_hparams(path: str | None) -> dict[str, Any]:
    """Returns the hparams that a task's JSON file brings along.

    Args:
      path: the value of `task_config`, or None.

    Returns:
      The file's "hparams", and the task's name as `task_names`.

    Raises:
      UserError: the file cannot be read, or its "hparams" is no object.
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
