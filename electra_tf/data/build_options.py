# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Options of a build of pre-training records, and their flags."""

import argparse
import dataclasses
from typing import Annotated, Any

from configure import flags
from configure.bounds import BelowOne, Positive, Seed, at_least, at_most, one_of
from electra_tf.data import corpora
from electra_tf.text.casing import resolve_casing

MIN_SEQUENCE_LENGTH = 5  # wordpieces
_CASING_FLAGS = {
    "do_lower_case": "--do_lower_case",
    "strip_accents": "--do_strip_accents",
}
Draws = Annotated[str, one_of("stream", "document")]
_Length = Annotated[int, at_least(MIN_SEQUENCE_LENGTH), at_most(2**14)]


@dataclasses.dataclass(frozen=True)
class BuildOptions:
    """Options of a build; the defaults are the original's."""

    corpus: corpora.Corpus
    vocab_file: str
    output_dir: str

    # ---- Examples ----
    # Maximum number of tokens in an example, including [CLS] and [SEP].
    max_seq_length: _Length = 128
    # Number of worker processes.
    num_processes: Annotated[Positive, at_most(4096)] = 1
    # Lower-case the text; --no-lower-case keeps upper case. Default: value in
    # the tokenizer_config.json next to the vocabulary, otherwise true.
    do_lower_case: bool | None = None
    # Strip accents; --no-strip-accents keeps accents. Default: as for
    # --do-lower-case.
    do_strip_accents: bool | None = None

    # ---- Extensions (every default keeps what the original does) ----
    seed: Seed = 0  # seed of all random draws
    # stream: one stream of random numbers per process, as in the original;
    # document: one stream per document, which depends on seed, file and
    # position. With document, examples do not depend on the number of
    # processes, and large files are split at document boundaries.
    draws: Draws = "stream"
    # Number of record files.
    num_shards: Annotated[Positive, at_most(10**6)] = 1000
    # Continue a long line in the next example instead of dropping the rest of
    # the line.
    split_long_lines: bool = False
    # Share of documents that are held out for evaluation: their examples are
    # written to eval_data.tfrecord-*.
    held_out_fraction: BelowOne = 0.0
    # Remove earlier records (pretrain_data.tfrecord-*, eval_data.tfrecord-*,
    # manifest.json) from the output directory. Without this flag, the same
    # command continues an interrupted build.
    overwrite: bool = False
    # Stop at the first byte that is not UTF-8 instead of skipping such bytes.
    strict: bool = False
    # beam: run the build on Apache Beam (extra `beam`), by default in
    # num_processes local processes.
    runner: Annotated[str, one_of("processes", "beam")] = "processes"
    # Flags of Apache Beam, which must follow an equals sign:
    # --beam_options="--runner=DataflowRunner ..."
    beam_options: str = ""

    def with_casing(self) -> "BuildOptions":
        """Return the options with the vocabulary's casing in place of None.

        Raises:
          UserError: a flag contradicts the file next to the vocabulary.
        """
        flag_values = {
            "do_lower_case": self.do_lower_case,
            "strip_accents": self.do_strip_accents,
        }
        casing = resolve_casing(self.vocab_file, flag_values, _CASING_FLAGS)
        return dataclasses.replace(
            self,
            do_lower_case=casing["do_lower_case"],
            do_strip_accents=casing["strip_accents"],
        )


# Flags of the original's two programs that build records.
ORIGINAL_FLAGS = (
    "--max_seq_length",
    "--num_processes",
    "--do_lower_case",
    "--no_lower_case",
    "--do_strip_accents",
    "--no_strip_accents",
)
# Paths, which one program sets from flags and the other from --data_dir.
PATH_FIELDS = ("corpus", "vocab_file", "output_dir")


def add_corpus_flags(parser: flags.FlagParser) -> None:
    """Add the flags that choose the kind of corpus."""
    flags.add_field_flags(
        parser, corpora.Corpus, skip=("path", "blanks_separate_docs")
    )


def corpus_from(args: argparse.Namespace) -> corpora.Corpus:
    """Return the corpus that parsed flags describe."""
    corpus = corpora.Corpus(
        args.corpus_dir or "", **parsed_fields(corpora.Corpus, args)
    )
    if corpus.tfds_name and corpus.corpus_format == "auto":
        return dataclasses.replace(corpus, corpus_format="tfds")
    return corpus


def options_from(args: argparse.Namespace, **paths: Any) -> BuildOptions:
    """Return the build options of parsed flags; `paths` sets `PATH_FIELDS`."""
    return BuildOptions(**(parsed_fields(BuildOptions, args) | paths))


def parsed_fields(
    fields_class: type, args: argparse.Namespace
) -> dict[str, Any]:
    """Return those fields of a dataclass that parsed flags set, by name."""
    names = [field.name for field in dataclasses.fields(fields_class)]
    return {n: getattr(args, n) for n in names if hasattr(args, n)}
