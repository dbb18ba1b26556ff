# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds pre-training records (TFRecord) from OpenWebText archives.

Reads `<data-dir>/vocab.txt` and the archives in `<data-dir>/openwebtext`
(each member is one document; nothing is extracted to disk); writes
`<data-dir>/pretrain_tfrecords`.
"""

import argparse
import os
import sys

from absl import app

from configure.errors import UserError
from electra_tf.data import build_flags
from electra_tf.data.corpora import Corpus
from electra_tf.data.dataset_build import build_records


def parse_flags(argv: list[str]) -> argparse.Namespace:
    """Reads the command line.

    Args:
      argv: program name and flags.

    Returns:
      The flags' values. Leftover arguments end the program with an error.
    """
    parser = build_flags.make_parser(__doc__, "--data-dir DIR")
    build_flags.add_flag(
        parser, "data_dir", required=True, help="Vocabulary and archives."
    )
    build_flags.add_example_flags(parser)
    build_flags.add_extension_flags(parser)
    return parser.parse_args(argv[1:])


def main(args: argparse.Namespace) -> None:
    """Builds the records; a user's mistake ends in one line, exit code 1."""
    corpus = Corpus(
        path=os.path.join(args.data_dir, "openwebtext"),
        corpus_format="openwebtext",
        blanks_separate_docs=False,
    )
    try:
        build_records(
            build_flags.options_from(
                args,
                corpus,
                os.path.join(args.data_dir, "vocab.txt"),
                os.path.join(args.data_dir, "pretrain_tfrecords"),
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
