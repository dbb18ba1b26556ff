#!/usr/bin/env python3
# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Build pre-training records from the archives of OpenWebText.

Source: google-research/electra, build_openwebtext_pretraining_dataset.py.
"""

import argparse
import os

from configure import flags
from electra_tf.data import build_options
from electra_tf.data.archives import Limits
from electra_tf.data.build import build_records
from electra_tf.data.corpora import Corpus


def parse_flags(argv: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser(
        originals=("--data_dir", *build_options.ORIGINAL_FLAGS),
        description="Build pre-training records from OpenWebText. The command"
        " reads the archives in DIR/openwebtext and the vocabulary"
        " DIR/vocab.txt, and writes the records to DIR/pretrain_tfrecords."
        " Archives are read in memory; nothing is extracted to disk.",
        usage="%(prog)s --data-dir DIR [flags]",
    )
    flags.add_flags(
        parser,
        "files",
        (
            "data_dir",
            flags.REQUIRED,
            "DIR",
            "folder that contains vocab.txt and openwebtext/, and to which"
            " records are written",
        ),
    )
    flags.add_field_flags(
        parser, build_options.BuildOptions, skip=build_options.PATH_FIELDS
    )
    flags.add_field_flags(parser, Limits)
    return parser.parse_args(argv[1:])


def main(args: argparse.Namespace) -> None:
    """Build the records."""
    options = build_options.options_from(
        args,
        corpus=Corpus(
            os.path.join(args.data_dir, "openwebtext"),
            blanks_separate_docs=False,
            corpus_format="openwebtext",
            **build_options.parsed_fields(Limits, args),
        ),
        vocab_file=os.path.join(args.data_dir, "vocab.txt"),
        output_dir=os.path.join(args.data_dir, "pretrain_tfrecords"),
    )
    build_records(options)


if __name__ == "__main__":
    flags.run_program(main, parse_flags)
