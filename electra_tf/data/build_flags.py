# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Command-line flags of the two programs that build records.

The original's spellings work (`--corpus-dir`), and so do underscores.
"""

import argparse
from typing import Any

from absl.flags import argparse_flags

from electra_tf.data.corpora import CORPUS_FORMATS, Corpus
from electra_tf.data.example_writer import DRAWS, BuildOptions

_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0", "")

CORPUS_NOTE = """\
The corpus: one sentence per line, a blank line between documents, UTF-8.
Lines longer than an example lose their tail (see --split-long-lines); the
closing report counts what was lost. Sentences of one document are packed into
two segments per example.
"""


def make_parser(description: str, usage: str) -> argparse.ArgumentParser:
    """A parser whose help keeps its line breaks and that never guesses.

    Args:
      description: the first lines of `--help`.
      usage: the flags to show in the usage line.

    Returns:
      The parser, without flags.
    """
    return argparse_flags.ArgumentParser(
        description=description,
        usage=f"%(prog)s {usage} [flags]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_flag(
    group: Any,
    name: str,
    *,
    dest: str = "",
    **settings: Any,
) -> None:
    """Adds a flag in both spellings, with dashes and with underscores.

    Args:
      group: parser or argument group.
      name: with underscores, without the leading dashes.
      dest: attribute; the name if empty.
      **settings: as for add_argument; `help` gets the default appended.
    """
    spellings = list(
        dict.fromkeys([f"--{name.replace('_', '-')}", f"--{name}"])
    )
    default = settings.get("default")
    if default not in (None, "") and "help" in settings:
        settings["help"] += f" (default: {default})"
    if "action" not in settings:
        settings.setdefault("metavar", "VALUE")
    group.add_argument(*spellings, dest=dest or name, **settings)


def to_bool(text: str) -> bool:
    """Reads "True", "false", "1", "no", ...; the empty string is False.

    Differs: the original takes any non-empty string, even "False", as true.
    """
    lowered = text.strip().lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise argparse.ArgumentTypeError(
        f"{text!r} is neither true nor false; give True or False"
    )


def add_example_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of the original that both programs share."""
    group = parser.add_argument_group("examples")
    add_flag(
        group,
        "max_seq_length",
        type=int,
        default=128,
        help="Tokens per example, [CLS] and [SEP] included.",
    )
    add_flag(
        group,
        "num_processes",
        type=int,
        default=1,
        help="Worker processes.",
    )
    for name, dest, value, text in (
        ("do_lower_case", "do_lower_case", True, "Lower-case (default)."),
        ("no_lower_case", "do_lower_case", False, "Keep upper case."),
        ("do_strip_accents", "strip_accents", True, "Drop accents (default)."),
        ("no_strip_accents", "strip_accents", False, "Keep accents."),
    ):
        action = "store_true" if value else "store_false"
        add_flag(group, name, dest=dest, action=action, help=text)
    parser.set_defaults(do_lower_case=True, strip_accents=True)


def add_extension_flags(parser: argparse.ArgumentParser) -> None:
    """Flags the original does not have; the defaults keep its behaviour."""
    group = parser.add_argument_group("extensions")
    add_flag(group, "seed", type=int, default=0, help="Of all randomness.")
    add_flag(
        group,
        "draws",
        choices=DRAWS,
        default="stream",
        metavar="|".join(DRAWS),
        help="stream: one stream of random numbers per process, as in the "
        "original. document: drawn from seed, file and document, so the "
        "examples do not depend on the number of processes, and big files "
        "are split at document boundaries.",
    )
    add_flag(
        group,
        "num_shards",
        type=int,
        default=1000,
        help="Record files written.",
    )
    add_flag(
        group,
        "split_long_lines",
        type=to_bool,
        nargs="?",
        const=True,
        default=False,
        help="Continue a long line in the next example; drop nothing.",
    )
    add_flag(
        group,
        "held_out_fraction",
        type=float,
        default=0.0,
        help="Share of documents that goes to eval_data.tfrecord-* instead.",
    )
    add_flag(
        group,
        "overwrite",
        action="store_true",
        help="Remove earlier records (pretrain_data.tfrecord-*, "
        "eval_data.tfrecord-*, manifest.json) of the output directory; "
        "otherwise the same command continues a build.",
    )


def add_corpus_flags(parser: argparse.ArgumentParser) -> None:
    """Extensions that choose among kinds of corpora."""
    group = parser.add_argument_group("kinds of corpora (extensions)")
    add_flag(
        group,
        "corpus_format",
        choices=CORPUS_FORMATS,
        default="auto",
        metavar="|".join(CORPUS_FORMATS),
        help="auto goes by file name: .jsonl, archives (.tar, .tar.xz, .xz, "
        "...), anything else text; .gz is unpacked.",
    )
    add_flag(
        group,
        "text_field",
        default="text",
        help="Field of JSONL records or TFDS examples.",
    )
    add_flag(group, "tfds_name", default="", help="TFDS data set by name.")
    add_flag(group, "tfds_split", default="train", help="Its split.")
    add_flag(
        group, "tfds_data_dir", default="", help="Where TFDS keeps its data."
    )


def options_from(
    args: argparse.Namespace, corpus: Corpus, vocab_file: str, output_dir: str
) -> BuildOptions:
    """Collects parsed flags.

    Args:
      args: with the flags of `add_example_flags` and `add_extension_flags`.
      corpus: what to read.
      vocab_file: path.
      output_dir: path.

    Returns:
      The options of a build.
    """
    return BuildOptions(
        corpus=corpus,
        vocab_file=vocab_file,
        output_dir=output_dir,
        max_seq_length=args.max_seq_length,
        do_lower_case=args.do_lower_case,
        strip_accents=args.strip_accents,
        num_processes=args.num_processes,
        num_shards=args.num_shards,
        seed=args.seed,
        draws=args.draws,
        split_long_lines=args.split_long_lines,
        held_out_fraction=args.held_out_fraction,
        overwrite=args.overwrite,
    )
