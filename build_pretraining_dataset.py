# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds pre-training records (TFRecord) from raw text."""

import argparse
import sys

from absl import app

from configure.errors import UserError
from electra_tf.data import build_flags
from electra_tf.data.corpora import Corpus
from electra_tf.data.dataset_build import build_records

_EXAMPLE = """
example:
  python build_pretraining_dataset.py --corpus-dir=corpus \\
    --vocab-file=vocab.txt --output-dir=data/pretrain_tfrecords \\
    --num-processes=4 --draws=document --held-out-fraction=0.01
"""


def parse_flags(argv: list[str]) -> argparse.Namespace:
    """Reads the command line.

    Args:
      argv: program name and flags.

    Returns:
      The flags' values. Leftover arguments end the program with an error.
    """
    parser = build_flags.make_parser(
        f"{__doc__}\n\n{build_flags.CORPUS_NOTE}{_EXAMPLE}",
        "--corpus-dir DIR --vocab-file FILE --output-dir DIR",
    )
    files = parser.add_argument_group("files")
    flag = build_flags.add_flag
    flag(files, "corpus_dir", default="", help="Directory of text files.")
    flag(files, "vocab_file", required=True, help="Vocabulary.")
    flag(files, "output_dir", required=True, help="Where records go.")
    flag(
        files,
        "blanks_separate_docs",
        type=build_flags.to_bool,
        nargs="?",
        const=True,
        default=True,
        help="Whether a blank line ends a document; otherwise each file is "
        "one document.",
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
    """Builds the records; a user's mistake ends in one line, exit code 1."""
    corpus = Corpus(
        path=args.corpus_dir,
        corpus_format=args.corpus_format,
        blanks_separate_docs=args.blanks_separate_docs,
        text_field=args.text_field,
        tfds_name=args.tfds_name,
        tfds_split=args.tfds_split,
        tfds_data_dir=args.tfds_data_dir,
    )
    try:
        build_records(
            build_flags.options_from(
                args, corpus, args.vocab_file, args.output_dir
            )
        )
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("Interrupted; the same command continues.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    app.run(main, flags_parser=parse_flags)
