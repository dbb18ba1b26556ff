# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learns a WordPiece vocabulary from text and writes it, one token per line."""

import argparse
import os
import time
from collections.abc import Iterator, Sequence

from configure import flags
from configure.errors import UserError
from electra_tf.data import build_options, corpora
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.text import casing, vocab_builder
from electra_tf.text.stripping import ScriptCounter, stripping_warnings

_REMEDIES = {
    "do_lower_case": "Pass --no-lower-case; records and models take it from"
    f" {casing.CASING_FILE}.",
    "strip_accents": "Pass --no-strip-accents; records and models take it from"
    f" {casing.CASING_FILE}.",
}


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("build_vocab", __doc__)
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
        ("strict", False, "", "stop at the first byte that is not UTF-8"),
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
    build_options.add_corpus_flags(parser)
    args = parser.parse_args(list(argv[1:]))
    if not args.corpus_dir and not args.tfds_name:
        parser.error("a CORPUS is required (or --tfds_name)")
    return args


def main(args: argparse.Namespace) -> None:
    """Counts words, learns the vocabulary, writes it and says how it fits."""
    started = time.monotonic()
    if filesystem.is_directory(args.output):
        raise UserError(
            f"Output {args.output!r} is a directory; name a file, such as"
            f" {os.path.join(args.output, 'vocab.txt')}."
        )
    if filesystem.exists(args.output) and not args.overwrite:
        raise UserError(
            f"Output {args.output!r} exists. Records made with it would no"
            " longer fit; choose another name, or add --overwrite."
        )
    _refuse_other_casing(args)
    report = corpora.ReadingReport(args.strict)
    lines = _corpus_lines(build_options.corpus_from(args), report)
    switches = (args.do_lower_case, args.do_strip_accents)
    letters = ScriptCounter(*switches)
    with report.in_errors():
        counts = vocab_builder.count_words(lines, *switches, letters)
        tokens = vocab_builder.build_vocab(
            counts,
            args.vocab_size,
            num_unused=args.num_unused,
            min_count=args.min_count,
            max_characters=args.max_characters,
        )
    # Half a vocabulary looks like a whole one.
    write_atomically(args.output, "".join(f"{token}\n" for token in tokens))
    casing_file = casing.write_casing(args.output, *switches)
    words, unknown, pieces = vocab_builder.measure_coverage(tokens, counts)
    size = f"{len(tokens):,} tokens, as wanted"
    if len(tokens) < args.vocab_size:
        size = (
            f"{len(tokens):,} tokens; {args.vocab_size:,} were wanted, but no"
            f" other pair of pieces occurs {args.min_count} times. Use more"
            f" text, or set the model's vocab_size to {len(tokens)}"
        )
    print(
        f"Vocabulary written to {args.output}, its casing to {casing_file}\n"
        f"  size           {size}\n"
        f"  words counted  {words:,} ({len(counts):,} different)\n"
        f"  unknown words  {unknown:,} ({unknown / words:.4%})\n"
        f"  pieces a word  {pieces / words:.3f}\n"
        f"  took           {time.monotonic() - started:,.1f} s"
    )
    lost = stripping_warnings(letters.scripts(), switches, _REMEDIES)
    invalid = corpora.invalid_bytes_warning(report.invalid, report.bytes_read)
    for line in [*lost, *invalid]:
        print(f"warning: {line}")


def _refuse_other_casing(args: argparse.Namespace) -> None:
    """Refuse to change the casing of another vocabulary in the folder."""
    before = casing.read_casing(args.output)
    if args.overwrite:
        return
    lower = args.do_lower_case
    after = {"do_lower_case": lower}
    after["strip_accents"] = lower and args.do_strip_accents
    if before not in ({}, after):
        raise UserError(
            f"{casing.casing_path(args.output)} states {before}, of another"
            f" vocabulary in its folder; that of {args.output} would be"
            f" {after}. Choose another folder, or pass --overwrite to replace"
            " it."
        )


def _corpus_lines(
    corpus: corpora.Corpus, report: corpora.ReadingReport
) -> Iterator[str]:
    listing = corpora.list_sources(corpus)
    if listing.nested_directories:
        print(
            "warning: directories in the corpus are not entered:"
            f" {', '.join(listing.nested_directories)}"
        )
    for source in listing.sources:
        for piece in corpora.read_documents(source, corpus, report):
            yield from piece.lines
