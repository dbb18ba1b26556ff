# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learn a WordPiece vocabulary from text and write it, one token per line."""

import argparse
import os
import time
from collections.abc import Iterator, Sequence

from configure import flags
from configure.errors import UserError
from configure.text_tables import render_rows
from electra_tf.data import build_options, corpora
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.text import casing, vocab_builder
from electra_tf.text.changed_letters import ScriptCounter, stripping_warnings

# hparam that strips accents -> remedy that keeps the accents
_REMEDIES = {
    "do_lower_case": "Pass --no-lower-case; records and models read this"
    f" setting from {casing.CASING_FILE}.",
    "strip_accents": "Pass --no-strip-accents; records and models read this"
    f" setting from {casing.CASING_FILE}.",
}


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("build_vocab", __doc__)
    parser.add_argument(
        "corpus_dir",
        metavar="CORPUS",
        nargs="?",
        default="",
        help="directory of text files, or one file; omitted with --tfds_name",
    )
    flags.add_flags(
        parser,
        "the vocabulary",
        ("output", flags.REQUIRED, "FILE", "file to write"),
        ("overwrite", False, "", "replace the output if it exists"),
        ("strict", False, "", "stop at the first byte that is not UTF-8"),
        (
            "vocab_size",
            30522,
            "N",
            "number of tokens, including special tokens",
        ),
        ("num_unused", 99, "N", "number of [unused*] tokens to reserve"),
        (
            "min_count",
            2,
            "N",
            "number of times that a character, or a pair of pieces, must"
            " occur to become a token",
        ),
        (
            "max_characters",
            vocab_builder.MAX_CHARACTERS,
            "N",
            "maximum number of different characters; pass a larger number for"
            " Chinese or Japanese",
        ),
    )
    flags.add_flags(
        parser,
        "how text is split into words (use the same for the records)",
        ("do_lower_case", True, "", "lower-case the text (default: true)"),
        (
            "do_strip_accents",
            True,
            "",
            "drop accents when lower-casing (default: true)",
        ),
    )
    build_options.add_corpus_flags(parser)
    args = parser.parse_args(list(argv[1:]))
    if not args.corpus_dir and not args.tfds_name:
        parser.error(
            "found no corpus; expected CORPUS or --tfds_name. Pass a CORPUS"
        )
    return args


def main(args: argparse.Namespace) -> None:
    """Count words, learn the vocabulary, write it and print its coverage."""
    started = time.monotonic()
    _check_output(args)
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
    # The file is written atomically, because no program could detect that a
    # vocabulary is incomplete.
    write_atomically(args.output, "".join(f"{token}\n" for token in tokens))
    casing_file = casing.write_casing(args.output, *switches)
    total, unknown, pieces = vocab_builder.measure_coverage(tokens, counts)
    size = f"{len(tokens):,} tokens"
    if len(tokens) < args.vocab_size:
        size += (
            f"; --vocab_size is {args.vocab_size:,}, but no other pair of"
            f" pieces occurs {args.min_count} times. Use more text, or set the"
            f" model's vocab_size to {len(tokens)}"
        )
    table = [
        ["  size", size],
        ["  words counted", f"{total:,} ({len(counts):,} different)"],
        ["  unknown words", f"{unknown:,} ({unknown / total:.4%})"],
        ["  pieces a word", f"{pieces / total:.3f}"],
        ["  took", f"{time.monotonic() - started:,.1f} s"],
    ]
    print(
        f"Wrote the vocabulary to {args.output}, and its casing to"
        f" {casing_file}"
    )
    print("\n".join(render_rows(table)))
    stripped = stripping_warnings(letters.scripts(), switches, _REMEDIES)
    invalid = corpora.invalid_bytes_warning(report.invalid, report.bytes_read)
    for line in [*stripped, *invalid]:
        print(f"warning: {line}")


def _check_output(args: argparse.Namespace) -> None:
    """Raise a UserError if the output is a directory or may not be replaced."""
    if filesystem.is_directory(args.output):
        raise UserError(
            f"--output={args.output!r} is a directory; expected the name of a"
            " file. Pass a name such as"
            f" {os.path.join(args.output, 'vocab.txt')}."
        )
    if filesystem.exists(args.output) and not args.overwrite:
        raise UserError(
            f"--output={args.output!r} exists, and existing records would not"
            " fit a new vocabulary. Pass another --output, or --overwrite to"
            " replace it."
        )


def _refuse_other_casing(args: argparse.Namespace) -> None:
    """Raise a UserError if the casing file of the folder would change."""
    if args.overwrite:
        return
    before = casing.read_casing(args.output)
    after = {
        "do_lower_case": args.do_lower_case,
        "strip_accents": args.do_lower_case and args.do_strip_accents,
    }
    if before not in ({}, after):
        raise UserError(
            f"{casing.casing_path(args.output)}: another vocabulary in this"
            f" folder uses {before}; {args.output} would use {after}. Choose"
            " another folder, or pass --overwrite to replace the file."
        )


def _corpus_lines(
    corpus: corpora.Corpus, report: corpora.ReadingReport
) -> Iterator[str]:
    """Yield the lines of all documents; print the skipped directories."""
    listing = corpora.list_sources(corpus)
    if listing.nested_directories:
        print(
            "warning: these directories within the corpus were skipped:"
            f" {', '.join(listing.nested_directories)}"
        )
    for source in listing.sources:
        for document in corpora.read_documents(source, corpus, report):
            yield from document.lines
