# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learns a WordPiece vocabulary from text and writes it, one token per line."""

import argparse
import os
import time
from collections.abc import Iterator, Sequence

from configure import flags
from configure.errors import UserError
from electra_tf import files
from electra_tf.data import build
from electra_tf.data.corpora import (
    Corpus,
    ReadingReport,
    list_sources,
    read_documents,
)
from electra_tf.text import vocab_builder


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser(
        prog="python -m electra_tf build_vocab",
        usage="%(prog)s CORPUS --output FILE\n"
        "       [--vocab-size N] [--no-lower-case] [--overwrite] ...",
        description=__doc__,
    )
    parser.add_argument(
        "corpus_dir",
        metavar="CORPUS",
        nargs="?",
        default="",
        help="directory of text files, or one file; none with --tfds_name",
    )
    flags.add_flags(
        parser,
        "the vocabulary",
        ("output", flags.REQUIRED, "FILE", "file to write"),
        ("overwrite", False, "", "replace the output if it exists"),
        ("vocab_size", 30522, "N", "tokens wanted, specials included"),
        ("num_unused", 99, "N", "[unused*] tokens to reserve"),
        ("min_count", 2, "N", "rarer characters and pairs get no token"),
        (
            *("max_characters", vocab_builder.MAX_CHARACTERS, "N"),
            "different characters at most; raise it for Chinese or Japanese",
        ),
    )
    flags.add_flags(
        parser,
        "words (use the same for the records)",
        ("do_lower_case", True, "", "lower-case (default: true)"),
        (
            *("do_strip_accents", True, ""),
            "drop accents when lower-casing (default: true)",
        ),
    )
    build.add_corpus_flags(parser)
    args = parser.parse_args(list(argv[1:]))
    if not args.corpus_dir and not args.tfds_name:
        parser.error("a CORPUS is required (or --tfds_name)")
    return args


def main(args: argparse.Namespace) -> None:
    """Counts words, learns the vocabulary, writes it and says how it fits."""
    started = time.monotonic()
    _refuse_existing(args.output, args.overwrite)
    report = ReadingReport()
    lines = _corpus_lines(build.corpus_from(args), report)
    counts = vocab_builder.count_words(
        lines, args.do_lower_case, args.do_strip_accents
    )
    tokens = vocab_builder.build_vocab(
        counts,
        args.vocab_size,
        num_unused=args.num_unused,
        min_count=args.min_count,
        max_characters=args.max_characters,
    )
    # Half a vocabulary looks like a whole one.
    files.write_atomically(
        args.output, "".join(f"{token}\n" for token in tokens)
    )
    coverage = vocab_builder.measure_coverage(tokens, counts)
    print(_summary(args, tokens, counts, coverage))
    print(f"  took           {time.monotonic() - started:,.1f} s")
    for name, (offset, left_out) in report.invalid.items():
        print(
            f"warning: {name}: {left_out} byte(s) not in UTF-8 were left out,"
            f" the first at byte {offset}"
        )


def _corpus_lines(corpus: Corpus, report: ReadingReport) -> Iterator[str]:
    listing = list_sources(corpus)
    if listing.nested_directories:
        print(
            "warning: directories in the corpus are not entered:"
            f" {', '.join(listing.nested_directories)}"
        )
    for source in listing.sources:
        for piece in read_documents(source, corpus, report):
            yield from piece.lines


def _refuse_existing(path: str, overwrite: bool) -> None:
    if files.is_directory(path):
        raise UserError(
            f"Output {path!r} is a directory; name a file, such as"
            f" {os.path.join(path, 'vocab.txt')}."
        )
    if files.exists(path) and not overwrite:
        raise UserError(
            f"Output {path!r} exists. Records made with it would no longer"
            " fit; choose another name, or add --overwrite."
        )


def _summary(
    args: argparse.Namespace,
    tokens: list[str],
    counts: dict[str, int],
    coverage: vocab_builder.Coverage,
) -> str:
    size = f"{len(tokens):,} tokens"
    if len(tokens) < args.vocab_size:
        size += (
            f"; {args.vocab_size:,} were wanted, but no other pair of pieces"
            f" occurs {args.min_count} times. Use more text, or set the model's"
            f" vocab_size to {len(tokens)}"
        )
    else:
        size += ", as wanted"
    return "\n".join(
        [
            f"Vocabulary written to {args.output}",
            f"  size           {size}",
            f"  words counted  {coverage.words:,} ({len(counts):,} different)",
            f"  unknown words  {coverage.unknown:,}"
            f" ({coverage.unknown_rate:.4%})",
            f"  pieces a word  {coverage.pieces_per_word:.3f}",
        ]
    )
