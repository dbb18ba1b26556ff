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
    "build_pretraining_dataset.py": "pre-training records from raw text",
    "build_openwebtext_pretraining_dataset.py": "records from OpenWebText",
    "run_pretraining.py": "pre-train a model, or evaluate one",
    "run_finetuning.py": "fine-tune a model on tasks, evaluate, predict",
}
# Modules of `electra_tf.commands`; a dash may stand for the underscore.
COMMANDS = {
    "demo": "pre-train a tiny ELECTRA on prose that Python itself carries",
    "build_vocab": "learn a WordPiece vocabulary from a corpus",
    "plan": "what a run will take: parameters, FLOPs, memory, time",
    "study": "arms x seeds: pre-trained, fine-tuned, compared, in pieces",
    "draw_exam": "the same replaced tokens for every discriminator",
    "convert_checkpoint": "the original's, Hugging Face's, our own: any to any",
    "compare_checkpoints": "two models' weights and outputs, side by side",
    "run_glue": "fine-tune on every GLUE task whose data is there",
    "glue_submission": "check and zip test predictions for the benchmark",
    "predict": "a fine-tuned model's answers for new data",
    "ensemble": "several models' predictions as one, and what that gains",
    "embed": "vectors of texts, from any model",
    "export_model": "a SavedModel that takes raw text; LiteRT, ONNX",
    "ask": "questions to a folder of texts, answered with their sources",
    "serve": "an exported model over HTTP, with a page to try it",
    "inspect_tokens": "what is masked, sampled and found, token by token",
    "fill_mask": "which tokens fit where a text has [MASK]",
    "score": "how likely a model finds texts",
}

# Their standard output reports what they do; the others' has answers.
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
    lines += ["", "Commands:"]
    lines += [f"  {name:<{width}} {text}" for name, text in COMMANDS.items()]
    lines += ["", "help COMMAND   its help", "--version      the version"]
    return "\n".join(lines)


def main() -> NoReturn:
    """Runs the command that the first argument names."""
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
        close = difflib.get_close_matches(module, COMMANDS, 1)
        hint = f"did you mean {close[0]}?" if close else "--help lists them."
        print(f"error: no command {name!r}; {hint}", file=sys.stderr)
        sys.exit(2)
    command = importlib.import_module(f"electra_tf.commands.{module}")
    del sys.argv[1]
    is_log = module in LOGGING
    flags.run_program(command.main, command.parse_flags, is_log)


if __name__ == "__main__":
    main()
