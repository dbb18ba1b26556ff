#!/usr/bin/env python3
# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds pre-training records from the archives of OpenWebText.

Source: google-research/electra, build_openwebtext_pretraining_dataset.py.
"""

import argparse
import os

from configure import flags
from electra_tf.data import build_flags
from electra_tf.data.corpora import Corpus
from electra_tf.data.dataset_build import build_records


def parse_flags(argv: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = build_flags.make_parser(
        "Builds pre-training records from OpenWebText: the archives in"
        " DIR/openwebtext with the vocabulary DIR/vocab.txt, into"
        " DIR/pretrain_tfrecords. Archives are read in memory; nothing is"
        " extracted to disk.",
        "--data-dir DIR",
    )
    flags.add_flag(
        parser,
        "data_dir",
        required=True,
        metavar="DIR",
        help="holds vocab.txt and openwebtext/; the records go there",
    )
    build_flags.add_example_flags(parser)
    build_flags.add_extension_flags(parser)
    return parser.parse_args(argv[1:])


def main(args: argparse.Namespace) -> None:
    """Builds the records."""
    corpus = Corpus(
        path=os.path.join(args.data_dir, "openwebtext"),
        corpus_format="openwebtext",
        blanks_separate_docs=False,
    )
    build_records(
        build_flags.options_from(
            args,
            corpus,
            os.path.join(args.data_dir, "vocab.txt"),
            os.path.join(args.data_dir, "pretrain_tfrecords"),
        )
    )


if __name__ == "__main__":
    flags.run_front_door(main, parse_flags)
