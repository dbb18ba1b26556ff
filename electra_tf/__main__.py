# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The program `python -m electra_tf COMMAND`, installed as `electra-tf`."""

import difflib
import importlib
import sys
from typing import NoReturn

import electra_tf
from configure import flags

# Descriptions of the original's programs, in the order of use.
PROGRAMS = {
    "build_pretraining_dataset.py": "build records from raw text",
    "build_openwebtext_pretraining_dataset.py": "build records of OpenWebText",
    "run_pretraining.py": "pre-train or evaluate a model",
    "run_finetuning.py": "fine-tune a model and evaluate it",
}
# Descriptions of the commands, by the title of their group. Each command is a
# module of `electra_tf.commands`; users can write dashes for underscores.
COMMAND_GROUPS = {
    "Train": {
        "demo": "pre-train a tiny ELECTRA on text that comes with Python",
        "build_vocab": "learn a WordPiece vocabulary from a corpus",
        "plan": "compute parameters, FLOPs, memory and time of a run",
        "run_glue": "fine-tune on every GLUE task whose data exist",
        "glue_submission": "check and zip test predictions for the benchmark",
    },
    "Checkpoints": {
        "convert_checkpoint": "convert checkpoints between formats",
        "compare_checkpoints": "compare two models' weights and outputs",
        "export_model": "write a model as SavedModel, LiteRT or ONNX",
    },
    "Use": {
        "predict": "predict answers for new data with a fine-tuned model",
        "embed": "compute vectors of texts with any model",
        "ask": "answer questions from a folder of texts, with sources",
        "serve": "serve an exported model over HTTP, with a web page",
        "inspect_tokens": "show masked, sampled and detected tokens of texts",
        "fill_mask": "list the likeliest tokens for each [MASK] in a text",
        "score": "score the likelihood of texts",
    },
    "Studies": {
        "study": "compare settings of pre-training over several seeds",
        "draw_exam": "draw replaced tokens that score any discriminator",
        "ensemble": "mix several models' predictions and measure the gain",
    },
}
COMMANDS = {
    name: text
    for commands in COMMAND_GROUPS.values()
    for name, text in commands.items()
}

# Commands that report progress on standard output; all other commands print
# their answers on standard output.
LOGGING = {
    "build_vocab",
    "convert_checkpoint",
    "demo",
    "export_model",
    "run_glue",
    "serve",
    "study",
}


def _help() -> str:
    """Return the page that names every program and command."""
    width = max(map(len, PROGRAMS))
    lines = ["usage: python -m electra_tf COMMAND ...  (COMMAND --help)", ""]
    lines.append("Pre-training and fine-tuning are programs (PROGRAM --help):")
    lines += [f"  {name:<{width}} {text}" for name, text in PROGRAMS.items()]
    width = max(map(len, COMMANDS))
    for title, commands in COMMAND_GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [
            f"  {name:<{width}} {text}" for name, text in commands.items()
        ]
    lines += [
        "",
        "help COMMAND   the help page of a command",
        "--version      the version",
    ]
    return "\n".join(lines)


def main() -> NoReturn:
    """Run the command that the first argument names."""
    if sys.argv[1:2] == ["help"]:  # `help COMMAND` means `COMMAND --help`.
        sys.argv[1:] = [*sys.argv[2:3], "--help"]
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("-h", "--help"):
        print(_help())
        sys.exit(0)
    if name == "--version":
        print(f"electra_tf {electra_tf.__version__}")
        sys.exit(0)
    module = name.replace("-", "_")
    if module not in COMMANDS:
        nearest = difflib.get_close_matches(module, COMMANDS, 1)
        hint = "Pass --help to list the commands."
        if nearest:
            hint = f"Did you mean {nearest[0]}?"
        print(f"error: no command {name!r}. {hint}", file=sys.stderr)
        sys.exit(2)
    command = importlib.import_module(f"electra_tf.commands.{module}")
    del sys.argv[1]
    is_log = module in LOGGING
    flags.run_program(command.main, command.parse_flags, is_log)


if __name__ == "__main__":
    main()
