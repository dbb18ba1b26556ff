#!/usr/bin/env python3
# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds pre-training records (TFRecord) from raw text.

Source: google-research/electra, build_pretraining_dataset.py, main.
"""

import argparse

from configure import flags
from electra_tf.data import build_flags
from electra_tf.data.corpora import Corpus
from electra_tf.data.dataset_build import build_records


def parse_flags(argv: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = build_flags.make_parser(
        f"Builds pre-training records from raw text. {build_flags.CORPUS_NOTE}",
        "--corpus-dir DIR --vocab-file FILE --output-dir DIR",
        "For example: --num-processes=4 --draws=document"
        " --held-out-fraction=0.01",
    )
    files = parser.add_argument_group("files")
    build_flags.add_default_flag(
        files, "corpus_dir", "directory of text files", "", metavar="DIR"
    )
    for name, help in (
        ("vocab_file", "vocabulary, one token a line"),
        ("output_dir", "where the records go"),
    ):
        flags.add_flag(files, name, required=True, help=help, metavar="PATH")
    flags.boolean_argument(
        files,
        "blanks_separate_docs",
        default=True,
        help="whether a blank line ends a document (default: true); otherwise"
        " each file is one document",
    )
    build_flags.add_example_flags(parser)
    build_flags.add_corpus_flags(parser)
    build_flags.add_extension_flags(parser)
    args = parser.parse_args(argv[1:])
    if args.tfds_name and args.corpus_format == "auto":
        args.corpus_format = "tfds"
    if not args.corpus_dir and args.corpus_format != "tfds":
        parser.error("--corpus-dir is required (or --tfds-name)")
    return args


def main(args: argparse.Namespace) -> None:
    """Builds the records."""
    corpus = Corpus(
        path=args.corpus_dir,
        corpus_format=args.corpus_format,
        blanks_separate_docs=args.blanks_separate_docs,
        text_field=args.text_field,
        tfds_name=args.tfds_name,
        tfds_split=args.tfds_split,
        tfds_data_dir=args.tfds_data_dir,
    )
    build_records(
        build_flags.options_from(args, corpus, args.vocab_file, args.output_dir)
    )


if __name__ == "__main__":
    flags.run_front_door(main, parse_flags)
