#!/usr/bin/env python3
# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Build pre-training records (TFRecord) from raw text.

Source: google-research/electra, build_pretraining_dataset.py, main.
"""

import argparse

from configure import flags
from electra_tf.data import build_options
from electra_tf.data.build import build_records


def parse_flags(argv: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser(
        originals=(
            "--corpus_dir",
            "--vocab_file",
            "--output_dir",
            "--blanks_separate_docs",
            *build_options.ORIGINAL_FLAGS,
        ),
        description="Build pre-training records from raw text in UTF-8, with"
        " one sentence per line and a blank line between documents. If a line"
        " is longer than an example, its last tokens are dropped (see"
        " --split_long_lines), and the final report counts them. Sentences of"
        " one document are packed into two segments per example.",
        usage="%(prog)s --corpus-dir DIR --vocab-file FILE --output-dir DIR"
        " [flags]",
        epilog="For example: --num-processes=4 --draws=document"
        " --held-out-fraction=0.01",
    )
    flags.add_flags(
        parser,
        "files",
        ("corpus_dir", None, "PATH", "folder of text files"),
        (
            "vocab_file",
            flags.REQUIRED,
            "PATH",
            "vocabulary, one token per line",
        ),
        (
            "output_dir",
            flags.REQUIRED,
            "PATH",
            "folder for the records",
        ),
        (
            "blanks_separate_docs",
            True,
            "",
            "whether a blank line ends a document (default: true); otherwise"
            " each file is one document",
        ),
    )
    flags.add_field_flags(
        parser, build_options.BuildOptions, skip=build_options.PATH_FIELDS
    )
    build_options.add_corpus_flags(parser)
    args = parser.parse_args(argv[1:])
    if not args.corpus_dir and args.corpus_format != "tfds":
        if not args.tfds_name:
            parser.error(
                "found no corpus; expected --corpus-dir or --tfds-name. Pass"
                " one"
            )
    return args


def main(args: argparse.Namespace) -> None:
    """Build the records."""
    corpus = build_options.corpus_from(args)
    build_records(build_options.options_from(args, corpus=corpus))


if __name__ == "__main__":
    flags.run_program(main, parse_flags)
