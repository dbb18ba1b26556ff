# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Recreates the longer pre-training run of docs/results.md.

Reads `data/pretrain_corpus` and `data/vocab/vocab.txt` of the reference data
(ELECTRA_TF_REFERENCE, by default ../shared), builds records with two
processes and trains the preset "reference". Run again, it continues.

  python -m electra_tf.commands.pretrain_reference [--data_dir=runs]
"""

import argparse
import os
import shutil
import sys

from absl import app
from absl.flags import argparse_flags

from configure import flags
from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.data.corpora import Corpus
from electra_tf.data.dataset_build import build_records
from electra_tf.data.example_writer import BuildOptions

PRESET = "reference"


def build(reference: str, data_dir: str) -> None:
    """Builds the records of the reference corpus, 2% of documents held out.

    Args:
      reference: directory with `data/pretrain_corpus` and `data/vocab`.
      data_dir: where the vocabulary and the records go.

    Raises:
      UserError: if the corpus is not there.
    """
    corpus = os.path.join(reference, "data", "pretrain_corpus")
    if not os.path.isdir(corpus):
        raise UserError(
            f"{corpus}: no such directory. Set ELECTRA_TF_REFERENCE to the "
            "directory that holds data/pretrain_corpus."
        )
    os.makedirs(data_dir, exist_ok=True)
    vocab_file = os.path.join(data_dir, "vocab.txt")
    shutil.copyfile(
        os.path.join(reference, "data", "vocab", "vocab.txt"), vocab_file
    )
    build_records(
        BuildOptions(
            corpus=Corpus(corpus),
            vocab_file=vocab_file,
            output_dir=os.path.join(data_dir, "pretrain_tfrecords"),
            num_processes=2,
            num_shards=16,
            draws="document",
            held_out_fraction=0.02,
        )
    )


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse_flags.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    flags.add_flag(
        parser, "data_dir", default="runs", help="Where everything goes."
    )
    flags.add_flag(
        parser, "model_name", default=PRESET, help="Name of the model."
    )
    return parser.parse_args(argv[1:])


def main(args: argparse.Namespace) -> None:
    """Builds and trains; a user's mistake ends in one line, exit code 1."""
    reference = os.environ.get("ELECTRA_TF_REFERENCE", "../shared")
    try:
        build(reference, args.data_dir)
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        from electra_tf.pretraining import runner

        config = PretrainingConfig.create(
            args.model_name, args.data_dir, preset=PRESET
        )
        result = runner.run(config)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    if "interrupted" in result:
        sys.exit(128 + int(result["interrupted"]))


if __name__ == "__main__":
    app.run(main, flags_parser=_parse)
