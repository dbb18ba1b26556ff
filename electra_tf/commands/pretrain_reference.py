# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Recreates the longer pre-training run of docs/results.md.

Reads `data/pretrain_corpus` of the reference data (ELECTRA_TF_REFERENCE, by
default ../shared), learns a vocabulary and trains in two phases, as BERT did:
the preset "reference_short" on sequences of 32, then "reference" on sequences
of 128, starting from the first phase's weights. Run again, it continues.

  python -m electra_tf pretrain_reference [--data_dir=runs]
"""

import argparse
import os
from collections.abc import Sequence
from typing import Any

from configure import flags
from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.commands import build_vocab
from electra_tf.data.build import build_records
from electra_tf.data.corpora import Corpus
from electra_tf.data.example_writer import BuildOptions

FIRST, SECOND = "reference_short", "reference"


def build(reference: str, config: PretrainingConfig) -> None:
    """Builds vocabulary and records; 2% of the documents are held out."""
    corpus = os.path.join(reference, "data", "pretrain_corpus")
    if not os.path.isdir(corpus):
        raise UserError(
            f"{corpus}: no such directory. Set ELECTRA_TF_REFERENCE to the "
            "directory that holds data/pretrain_corpus."
        )
    if not os.path.exists(config.vocab_file):
        os.makedirs(config.data_dir, exist_ok=True)
        build_vocab.main(
            build_vocab.parse_flags(
                [
                    "build_vocab",
                    corpus,
                    f"--output={config.vocab_file}",
                    f"--vocab_size={config.vocab_size}",
                    "--num_unused=20",
                ]
            )
        )
    build_records(
        BuildOptions(
            corpus=Corpus(corpus),
            vocab_file=config.vocab_file,
            output_dir=os.path.dirname(config.pretrain_tfrecords),
            max_seq_length=config.max_seq_length,
            num_processes=2,
            num_shards=512,
            draws="document",
            held_out_fraction=0.02,
        )
    )


def phase(
    data_dir: str, preset: str, model_name: str, **hparams: Any
) -> PretrainingConfig:
    """The configuration of one phase."""
    length = PretrainingConfig.create("", "", preset=preset).max_seq_length
    records = os.path.join(data_dir, f"pretrain_tfrecords_{length}")
    return PretrainingConfig.create(
        model_name,
        data_dir,
        preset=preset,
        pretrain_tfrecords=os.path.join(records, "pretrain_data.tfrecord*"),
        eval_tfrecords=os.path.join(records, "eval_data.tfrecord*"),
        **hparams,
    )


def lengthen(trained: str, output: str, positions: int) -> None:
    """Gives the first phase's model room for the second's sequences."""
    from electra_tf.checkpoints.formats import open_weights
    from electra_tf.checkpoints.tf2 import write_native
    from electra_tf.checkpoints.weights import (
        extend_positions,
        without_optimizer,
    )

    if not os.path.exists(output + ".index"):
        weights = without_optimizer(open_weights(trained))
        write_native(extend_positions(weights, positions), output)


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser(
        prog="python -m electra_tf pretrain_reference",
        description="Recreates the longer pre-training run of"
        " docs/results.md. Run again, it continues.",
    )
    flags.add_flags(
        parser,
        "the run",
        ("data_dir", "runs", "DIR", "where everything goes"),
        ("model_name", SECOND, "NAME", "of the model"),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Builds and trains."""
    reference = os.environ.get("ELECTRA_TF_REFERENCE", "../shared")
    short = PretrainingConfig.create("", "", preset=FIRST)
    first = phase(
        args.data_dir,
        FIRST,
        f"{args.model_name}_short",
        # No longer than its sequences: `lengthen` repeats trained rows only.
        model_hparam_overrides={
            **short.model_hparam_overrides,
            "max_position_embeddings": short.max_seq_length,
        },
    )
    longer = os.path.join(f"{first.model_dir}_longer", "model.ckpt")
    second = phase(
        args.data_dir, SECOND, args.model_name, init_checkpoint=longer
    )
    for config in (first, second):
        build(reference, config)
    from electra_tf.pretraining import runner  # TensorFlow only from here on

    result = runner.run(first)
    if "interrupted" not in result:
        sizes = second.model_hparam_overrides
        lengthen(first.model_dir, longer, sizes["max_position_embeddings"])
        result = runner.run(second)
    if "interrupted" in result:
        return 128 + int(result["interrupted"])
    return 0
