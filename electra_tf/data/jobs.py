# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The jobs of a build: parts of a corpus that workers process in one go."""

from typing import Any, NamedTuple

from electra_tf.data import corpora
from electra_tf.data.build_options import BuildOptions

# With draws=document the jobs may be smaller than a worker's share: the workers
# then end at about the same time, and an interrupted build loses less.
_JOBS_PER_PROCESS = 8
_PIECES_PER_JOB = 4
_SMALLEST_PIECE = 1 << 16  # bytes
_BYTES_COUNTED = 1 << 20  # text whose letters are counted, about
_BYTES_PER_EXAMPLE = 1000  # of a TFDS data set, roughly


class Job(NamedTuple):
    """The part of a build that one worker processes in one go."""

    index: int  # its number among `count` jobs
    count: int  # number of jobs of the build
    sources: list[corpora.Source]  # the text to read
    attempt: str = ""  # in temporary names, if a job may run twice at once
    every: int = 1  # the letters of one line in this many are counted


# The result of a finished job: `counts` that sum up over jobs; `invalid`, by
# file name [offset of the first undecodable byte, number]; `shards` and
# `held_out_shards`, name, records and bytes of each; `scripts`, the letters of
# some of the lines (electra_tf/text/changed_letters.py).
JobReport = dict[str, Any]


def count_jobs(options: BuildOptions, sources: list[corpora.Source]) -> int:
    """Return the number of jobs of a build."""
    if options.draws == "stream":
        return options.num_processes
    count = options.num_processes * _JOBS_PER_PROCESS
    if options.corpus.corpus_format != "tfds":
        # A job without text would write empty shards.
        pieces = 0
        for source in sources:
            if corpora.can_be_cut(source, options.corpus):
                pieces += -(-source.size // _SMALLEST_PIECE)
            else:
                pieces += 1
        count = min(count, max(options.num_processes, pieces))
    return min(options.num_shards, count)


def plan_jobs(
    options: BuildOptions, sources: list[corpora.Source], num_jobs: int
) -> list[Job]:
    """Cut a build into jobs."""
    total = sum(source.size for source in sources)
    is_tfds = options.corpus.corpus_format == "tfds"
    num_bytes = total * _BYTES_PER_EXAMPLE if is_tfds else total
    every = max(1, num_bytes // _BYTES_COUNTED)
    if options.draws == "stream" and not is_tfds:
        parts = sources
    else:
        per_job = 1 if options.draws == "stream" else _PIECES_PER_JOB
        aim = max(1, -(-total // (num_jobs * per_job)))
        if not is_tfds:
            aim = max(aim, _SMALLEST_PIECE)
        parts = []
        for source in sources:
            count = -(-source.size // aim)
            parts += corpora.split_source(source, options.corpus, count)
    return [
        Job(index, num_jobs, parts[index::num_jobs], every=every)
        for index in range(num_jobs)
    ]
