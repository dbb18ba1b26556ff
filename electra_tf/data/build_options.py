# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Options of a build of pre-training records."""

import dataclasses
from typing import Annotated

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
    """What to build, from what, into where; defaults as the original's."""

    corpus: corpora.Corpus
    vocab_file: str
    output_dir: str

    # ---- Examples ----
    # Tokens per example, [CLS] and [SEP] included.
    max_seq_length: _Length = 128
    num_processes: Annotated[Positive, at_most(4096)] = 1  # worker processes
    # --no-lower-case keeps upper case. Default: as tokenizer_config.json
    # beside the vocabulary states, otherwise true.
    do_lower_case: bool | None = None
    # --no-strip-accents keeps them. Default: likewise.
    do_strip_accents: bool | None = None

    # ---- Extensions (every default keeps what the original does) ----
    seed: Seed = 0  # of all randomness
    # stream: one stream of random numbers per process, as in the original;
    # document: drawn from seed, file and document, so the examples do not
    # depend on the number of processes, and big files are split at document
    # boundaries.
    draws: Draws = "stream"
    num_shards: Annotated[Positive, at_most(10**6)] = 1000  # record files
    # Continue a long line in the next example; drop nothing.
    split_long_lines: bool = False
    # Share of documents that goes to eval_data.tfrecord-* instead.
    held_out_fraction: BelowOne = 0.0
    # Remove earlier records (pretrain_data.tfrecord-*, eval_data.tfrecord-*,
    # manifest.json) of the output directory; otherwise the same command
    # continues a build.
    overwrite: bool = False
    # Stop at the first byte that is not UTF-8, instead of leaving it out.
    strict: bool = False
    # beam: Apache Beam runs the build (extra `beam`), by default in
    # num_processes processes here.
    runner: Annotated[str, one_of("processes", "beam")] = "processes"
    # Beam's own flags, after an =: --beam_options="--runner=DataflowRunner ..."
    beam_options: str = ""

    def with_casing(self) -> "BuildOptions":
        """Return options whose casing is given, or that of the vocabulary.

        Raises:
          UserError: a flag contradicts the file beside the vocabulary.
        """
        given = {
            "do_lower_case": self.do_lower_case,
            "strip_accents": self.do_strip_accents,
        }
        casing = resolve_casing(self.vocab_file, given, _CASING_FLAGS)
        return dataclasses.replace(
            self,
            do_lower_case=casing["do_lower_case"],
            do_strip_accents=casing["strip_accents"],
        )
