# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Recreates the longer pre-training run of docs/results.md.

Reads `data/pretrain_corpus` of the reference data (ELECTRA_TF_REFERENCE, by
default ../shared), learns a vocabulary, builds records with two processes and
trains the preset "reference". Run again, it continues.

  python -m electra_tf.commands.pretrain_reference [--data_dir=runs]
"""

import argparse
import os
from collections.abc import Sequence

from configure import flags
from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.commands import build_vocab
from electra_tf.data.corpora import Corpus
from electra_tf.data.dataset_build import build_records
from electra_tf.data.example_writer import BuildOptions

PRESET = "reference"
VOCAB_SIZE = 4096  # the preset's


def build(reference: str, data_dir: str) -> None:
    """Builds vocabulary and records; 2% of the documents are held out.

    Args:
      reference: directory with `data/pretrain_corpus`.
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
    vocab_file = os.path.join(data_dir, "vocab.txt")
    if not os.path.exists(vocab_file):
        os.makedirs(data_dir, exist_ok=True)
        build_vocab.main(
            build_vocab.parse_flags(
                [
                    "build_vocab",
                    f"--corpus_dir={corpus}",
                    f"--output={vocab_file}",
                    f"--vocab_size={VOCAB_SIZE}",
                    "--num_unused=20",
                ]
            )
        )
    build_records(
        BuildOptions(
            corpus=Corpus(corpus),
            vocab_file=vocab_file,
            output_dir=os.path.join(data_dir, "pretrain_tfrecords"),
            num_processes=2,
            num_shards=512,
            draws="document",
            held_out_fraction=0.02,
        )
    )


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line.

    Args:
      argv: program name and flags.

    Returns:
      The flags' values.
    """
    parser = flags.FrontDoorParser(
        prog="python -m electra_tf.commands.pretrain_reference",
        description="Recreates the longer pre-training run of"
        " docs/results.md. Run again, it continues.",
    )
    for name, default, text in (
        ("data_dir", "runs", "where everything goes"),
        ("model_name", PRESET, "name of the model"),
    ):
        flags.add_flag(
            parser,
            name,
            default=default,
            metavar="NAME",
            help=f"{text} (default: {default})",
        )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Builds and trains.

    Args:
      args: parsed flags.

    Returns:
      The exit status: 0, or 128 and the signal's number.

    Raises:
      UserError: the reference corpus is missing, or the run cannot continue.
    """
    build(os.environ.get("ELECTRA_TF_REFERENCE", "../shared"), args.data_dir)
    from electra_tf.pretraining import runner  # TensorFlow only from here on

    config = PretrainingConfig.create(
        args.model_name, args.data_dir, preset=PRESET
    )
    result = runner.run(config)
    if "interrupted" in result:
        return 128 + int(result["interrupted"])
    return 0


if __name__ == "__main__":
    flags.run_front_door(main, parse_flags)
