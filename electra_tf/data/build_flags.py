# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Command-line flags of the two programs that build records.

The original's spellings work (`--corpus-dir`), and so do underscores.
"""

import argparse
from typing import Any

from configure.flags import FrontDoorParser, add_flag, boolean_argument
from electra_tf.data.corpora import CORPUS_FORMATS, Corpus
from electra_tf.data.example_writer import DRAWS, BuildOptions

CORPUS_NOTE = (
    "The corpus: one sentence per line, a blank line between documents, UTF-8."
    " Lines longer than an example lose their tail (see --split_long_lines);"
    " the closing report counts what was lost. Sentences of one document are"
    " packed into two segments per example."
)


def make_parser(
    description: str, usage: str, epilog: str = ""
) -> FrontDoorParser:
    """A parser for a program that builds records."""
    return FrontDoorParser(
        description=description,
        usage=f"%(prog)s {usage} [flags]",
        epilog=epilog,
    )


def add_default_flag(
    group: Any, name: str, help: str, default: Any, **settings: Any
) -> None:
    """Adds a flag whose help says its default."""
    settings.setdefault("metavar", "VALUE")
    shown = f"{help} (default: {default})" if default != "" else help
    add_flag(group, name, help=shown, default=default, **settings)


def add_example_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of the original that both programs share."""
    group = parser.add_argument_group("examples")
    add_default_flag(
        group,
        "max_seq_length",
        "tokens per example, [CLS] and [SEP] included",
        128,
        type=int,
    )
    add_default_flag(group, "num_processes", "worker processes", 1, type=int)
    boolean_argument(
        group,
        "do_lower_case",
        default=True,
        help="lower-case (default); --no-lower-case keeps upper case",
        negative_names=["no_lower_case"],
    )
    boolean_argument(
        group,
        "do_strip_accents",
        default=True,
        help="drop accents (default); --no-strip-accents keeps them",
        negative_names=["no_strip_accents"],
    )


def add_extension_flags(parser: argparse.ArgumentParser) -> None:
    """Flags the original does not have; the defaults keep its behaviour."""
    group = parser.add_argument_group("extensions")
    add_default_flag(group, "seed", "of all randomness", 0, type=int)
    add_default_flag(
        group,
        "draws",
        "stream: one stream of random numbers per process, as in the original."
        " document: drawn from seed, file and document, so the examples do not"
        " depend on the number of processes, and big files are split at"
        " document boundaries",
        "stream",
        choices=DRAWS,
        metavar="|".join(DRAWS),
    )
    add_default_flag(
        group, "num_shards", "record files written", 1000, type=int
    )
    boolean_argument(
        group,
        "split_long_lines",
        help="continue a long line in the next example; drop nothing",
    )
    add_default_flag(
        group,
        "held_out_fraction",
        "share of documents that goes to eval_data.tfrecord-* instead",
        0.0,
        type=float,
    )
    boolean_argument(
        group,
        "overwrite",
        help="remove earlier records (pretrain_data.tfrecord-*,"
        " eval_data.tfrecord-*, manifest.json) of the output directory;"
        " otherwise the same command continues a build",
    )


def add_corpus_flags(parser: argparse.ArgumentParser) -> None:
    """Extensions that choose among kinds of corpora."""
    group = parser.add_argument_group("kinds of corpora (extensions)")
    add_default_flag(
        group,
        "corpus_format",
        "auto goes by file name: .jsonl, archives (.tar, .tar.xz, .xz, ...),"
        " anything else text; .gz is unpacked",
        "auto",
        choices=CORPUS_FORMATS,
        metavar="|".join(CORPUS_FORMATS),
    )
    add_default_flag(
        group, "text_field", "field of JSONL records or TFDS examples", "text"
    )
    add_default_flag(group, "tfds_name", "TFDS data set by name", "")
    add_default_flag(group, "tfds_split", "its split", "train")
    add_default_flag(group, "tfds_data_dir", "where TFDS keeps its data", "")


def options_from(
    args: argparse.Namespace, corpus: Corpus, vocab_file: str, output_dir: str
) -> BuildOptions:
    """Collects parsed flags."""
    return BuildOptions(
        corpus=corpus,
        vocab_file=vocab_file,
        output_dir=output_dir,
        max_seq_length=args.max_seq_length,
        do_lower_case=args.do_lower_case,
        strip_accents=args.do_strip_accents,
        num_processes=args.num_processes,
        num_shards=args.num_shards,
        seed=args.seed,
        draws=args.draws,
        split_long_lines=args.split_long_lines,
        held_out_fraction=args.held_out_fraction,
        overwrite=args.overwrite,
    )
