# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`python -m electra_tf COMMAND`, installed also as `electra-tf COMMAND`."""

import difflib
import importlib
import sys
from typing import NoReturn

import electra_tf
from configure import flags

# The original's programs, in the order of their use.
PROGRAMS = {
    "build_pretraining_dataset.py": "records from raw text",
    "build_openwebtext_pretraining_dataset.py": "records from OpenWebText",
    "run_pretraining.py": "pre-train a model, or evaluate one",
    "run_finetuning.py": "fine-tune on tasks, evaluate, predict",
}
# Title -> modules of `electra_tf.commands`; a dash may replace the underscore.
COMMAND_GROUPS = {
    "Train": {
        "demo": "pre-train a tiny ELECTRA on text that comes with Python",
        "build_vocab": "learn a WordPiece vocabulary from a corpus",
        "plan": "parameters, FLOPs, memory and time of a run",
        "run_glue": "fine-tune on every GLUE task whose data exist",
        "glue_submission": "check and zip test predictions for the benchmark",
    },
    "Checkpoints": {
        "convert_checkpoint": "between the formats of ELECTRA checkpoints",
        "compare_checkpoints": "two models' weights and outputs, side by side",
        "export_model": "a SavedModel that takes raw text; LiteRT, ONNX",
    },
    "Use": {
        "predict": "a fine-tuned model's answers for new data",
        "embed": "vectors of texts, from any model",
        "ask": "answers with sources from a folder of texts",
        "serve": "an exported model over HTTP, with a page to try it",
        "inspect_tokens": "masked, sampled and detected tokens of texts",
        "fill_mask": "the likeliest tokens for each [MASK] in a text",
        "score": "the likelihood of texts",
    },
    "Studies": {
        "study": "pre-train and fine-tune arms x seeds, and compare them",
        "draw_exam": "the same replaced tokens for every discriminator",
        "ensemble": "mix several models' predictions and measure the gain",
    },
}
COMMANDS = {
    name: text
    for commands in COMMAND_GROUPS.values()
    for name, text in commands.items()
}

# Commands whose standard output reports progress; the others' is the answer.
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
    if sys.argv[1:2] == ["help"]:  # `help COMMAND` is `COMMAND --help`.
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
        hint = "--help lists the commands."
        if nearest:
            hint = f"did you mean {nearest[0]}?"
        print(f"error: no command {name!r}; {hint}", file=sys.stderr)
        sys.exit(2)
    command = importlib.import_module(f"electra_tf.commands.{module}")
    del sys.argv[1]
    is_log = module in LOGGING
    flags.run_program(command.main, command.parse_flags, is_log)


if __name__ == "__main__":
    main()
