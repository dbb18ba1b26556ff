# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draw an exam: the same replaced tokens in held-out text for every run.

A trained generator and token frequencies replace tokens at the same positions.
Pre-training with --exam=FILE scores the discriminator on these tokens at each
evaluation, so that runs with different generators can be compared.
"""

import argparse
import os
from collections.abc import Sequence

from configure import flags
from configure.text_tables import render_rows
from electra_tf.prediction import writer


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("draw_exam", __doc__)
    parser.add_argument("output", metavar="FILE.npz", help="file to write")
    flags.add_flags(
        parser,
        "the text",
        (
            "pretrain_tfrecords",
            flags.REQUIRED,
            "PATTERNS",
            "training records, whose tokens are counted",
        ),
        (
            "eval_tfrecords",
            None,
            "PATTERNS",
            "held-out records (default: eval_data.tfrecord* next to the"
            " training records)",
        ),
        (
            "max_seq_length",
            128,
            "N",
            "wordpieces per example, as in the records",
        ),
        (
            "examples",
            1000,
            "N",
            "number of rows to take from the start of the held-out records",
        ),
    )
    flags.add_flags(
        parser,
        "the replacements",
        (
            "generator",
            "reference",
            "DIR",
            "folder of a pre-trained model, whose generator draws the tokens",
        ),
        (
            "vocab_file",
            None,
            "FILE",
            "vocabulary of the records, which must have the same tokens as"
            " the generator's (default: the vocabulary next to the generator)",
        ),
        ("mask_prob", 0.15, "P", "share of the tokens that are replaced"),
        ("seed", 1, "N", "random seed"),
        ("overwrite", False, "", "replace the file if it exists"),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> None:
    """Draw the exam, write it and print its digest."""
    writer.check_free(args.output, bool(args.overwrite))
    # TensorFlow is imported late, because --help does not need it.
    from configure.errors import UserError
    from configure.pretraining import PretrainingConfig
    from electra_tf.data.record_checks import check_records
    from electra_tf.pretraining.exam import SOURCES, draw_exam
    from electra_tf.pretraining.loading import load_pretrained

    if args.examples < 1:
        raise UserError(
            f"--examples={args.examples}: expected 1 or more. Pass a larger"
            " number."
        )
    loaded = load_pretrained(args.generator, args.vocab_file)
    positions = loaded.model.encoder_config.max_position_embeddings
    if args.max_seq_length > positions:
        raise UserError(
            f"--max_seq_length={args.max_seq_length}: the generator of"
            f" {args.generator} has {positions} positions; expected as many"
            " wordpieces or fewer. Pass a smaller number and records of that"
            " length, or a different --generator."
        )
    records = {"pretrain_tfrecords": args.pretrain_tfrecords}
    if args.eval_tfrecords:
        records["eval_tfrecords"] = args.eval_tfrecords
    config = PretrainingConfig.create(
        "exam",
        os.path.dirname(args.output) or ".",
        **records,
        vocab_file=loaded.config.vocab_file,
        vocab_size=loaded.config.vocab_size,
        do_lower_case=loaded.config.do_lower_case,
        strip_accents=loaded.config.strip_accents,
        model_hparam_overrides={"max_position_embeddings": positions},
        max_seq_length=args.max_seq_length,
        mask_prob=args.mask_prob,
        seed=args.seed,
    )
    for training in (True, False):
        check_records(config, training)
    exam = draw_exam(loaded, config, args.examples, args.seed)
    exam.write(args.output)
    real = exam.arrays["input_mask"].sum()
    table = [
        ["  digest", exam.digest],
        ["  tokens", f"{real:,} in {args.examples:,} rows"],
    ]
    for source in SOURCES:
        share = exam.arrays[f"{source}_labels"].sum() / real
        table.append([f"  {source}", f"{share:.2%} of the tokens replaced"])
    print(f"Exam written to {args.output}")
    print("\n".join(render_rows(table)))
