# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A whole build: plan the jobs, run them on workers, keep the manifest."""

import os
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Any

from configure.errors import UserError
from electra_tf.data import corpora, storage, worker_pool
from electra_tf.data.build_report import summary, warnings_before
from electra_tf.data.example_builder import MIN_SEQUENCE_LENGTH
from electra_tf.data.example_writer import (
    DRAWS,
    BuildOptions,
    Job,
    JobReport,
)
from electra_tf.data.manifest import (
    MANIFEST_NAME,
    differences,
    is_own_file,
    load_manifest,
    new_manifest,
    save_manifest,
)
from electra_tf.text.vocab import check_vocab, vocab_hash

# With draws=document the jobs may be smaller than a worker's share: the workers
# then end together, and a build that is interrupted loses less.
_JOBS_PER_PROCESS = 8
_PIECES_PER_JOB = 4
_SMALLEST_PIECE = 1 << 16

Say = Callable[[str], None]


def build_records(options: BuildOptions, say: Say = print) -> dict[str, Any]:
    """Builds the pre-training records of a corpus.

    Running it again after an interruption does what is left to do.

    Args:
      options: what to build.
      say: takes lines of progress and the closing report.

    Returns:
      The manifest, as written to `manifest.json`.

    Raises:
      UserError: for anything the user can put right: options, corpus,
        vocabulary, output directory.

    Source: build_pretraining_dataset.py, main.
    Differs: never wipes the output directory; see BuildOptions.overwrite.
    """
    _check_options(options)
    vocab = check_vocab(options.vocab_file)
    listing = corpora.list_sources(options.corpus)
    num_jobs = _num_jobs(options, listing.sources)
    wanted = new_manifest(
        _settings(options),
        {"hash": vocab_hash(options.vocab_file), "size": len(vocab)},
        [(source.name, source.size) for source in listing.sources],
        num_jobs,
    )
    wanted["tokenizer"] = {
        "do_lower_case": options.do_lower_case,
        "strip_accents": options.strip_accents,
        "unicode_version": unicodedata.unidata_version,
    }
    manifest = _open_output(options, wanted)
    if manifest["complete"]:
        say(f"{options.output_dir}: already complete, nothing to do.")
        for line in summary(manifest):
            say(line)
        return manifest
    for line in warnings_before(options, listing):
        say(line)
    jobs = plan_jobs(options, listing.sources, manifest["num_jobs"])
    left = [job for job in jobs if str(job.index) not in manifest["jobs"]]
    if len(left) < len(jobs):
        say(f"Continuing: {len(jobs) - len(left)} of {len(jobs)} jobs done.")
    started = time.monotonic()

    def on_done(job: Job, report: JobReport) -> None:
        manifest["jobs"][str(job.index)] = {
            "counts": report.counts,
            "invalid": report.invalid,
            "shards": report.shards,
            "held_out_shards": report.held_out_shards,
        }
        save_manifest(options.output_dir, manifest)

    worker_pool.run_jobs(options, left, on_done, say)
    _complete(options, manifest)
    for line in summary(manifest, time.monotonic() - started):
        say(line)
    return manifest


def _check_options(options: BuildOptions) -> None:
    """Refuses values that cannot work."""
    if options.draws not in DRAWS:
        raise UserError(
            f"draws is {options.draws!r}; expected one of {', '.join(DRAWS)}."
        )
    for name, lowest in (
        ("max_seq_length", MIN_SEQUENCE_LENGTH),
        ("num_processes", 1),
        ("num_shards", 1),
    ):
        value = getattr(options, name)
        if value < lowest:
            raise UserError(f"{name} is {value}; it must be {lowest} or more.")
    if not 0 <= options.held_out_fraction < 1:
        raise UserError(
            f"held_out_fraction is {options.held_out_fraction}; it is the "
            "share of documents kept for evaluation: 0 or more, less than 1."
        )
    if options.draws == "stream" and options.num_processes > options.num_shards:
        raise UserError(
            f"num_processes is {options.num_processes} and num_shards "
            f"{options.num_shards}: with draws=stream each process writes its "
            "own shards. Take fewer processes or more shards."
        )


def _settings(options: BuildOptions) -> dict[str, Any]:
    """Everything that decides what the records hold."""
    corpus = options.corpus
    settings = {
        "max_seq_length": options.max_seq_length,
        "blanks_separate_docs": corpus.blanks_separate_docs,
        "do_lower_case": options.do_lower_case,
        "strip_accents": options.strip_accents,
        "num_shards": options.num_shards,
        "seed": options.seed,
        "draws": options.draws,
        "split_long_lines": options.split_long_lines,
        "held_out_fraction": options.held_out_fraction,
        "corpus_format": corpus.corpus_format,
        "text_field": corpus.text_field,
        "tfds_name": corpus.tfds_name,
        "tfds_split": corpus.tfds_split,
    }
    if options.draws == "stream":
        settings["num_processes"] = options.num_processes
    return settings


def _num_jobs(options: BuildOptions, sources: list[corpora.Source]) -> int:
    if options.draws == "stream":
        return options.num_processes
    wanted = options.num_processes * _JOBS_PER_PROCESS
    if options.corpus.corpus_format != "tfds":
        # A job without text would write empty shards.
        pieces = sum(-(-source.size // _SMALLEST_PIECE) for source in sources)
        wanted = min(wanted, max(options.num_processes, pieces))
    return min(options.num_shards, wanted)


def plan_jobs(
    options: BuildOptions, sources: list[corpora.Source], num_jobs: int
) -> list[Job]:
    """Cuts a build into jobs.

    Args:
      options: of the build.
      sources: all files, sorted by name.
      num_jobs: how many jobs.

    Returns:
      The jobs. With draws=stream job j has every num_jobs-th file beginning
      with the j-th, as in the original. With draws=document files are also
      split at document boundaries and the parts dealt out in turn.
    """
    if options.draws == "stream" and options.corpus.corpus_format != "tfds":
        parts = sources
    else:
        per_job = 1 if options.draws == "stream" else _PIECES_PER_JOB
        total = sum(source.size for source in sources)
        aim = max(1, -(-total // (num_jobs * per_job)))
        if options.corpus.corpus_format != "tfds":
            aim = max(aim, _SMALLEST_PIECE)
        parts = []
        for source in sources:
            count = -(-source.size // aim)
            parts += corpora.split_source(source, options.corpus, count)
    return [
        Job(index, num_jobs, parts[index::num_jobs])
        for index in range(num_jobs)
    ]


def _open_output(options: BuildOptions, wanted: dict) -> dict:
    """The manifest to go on with; refuses a directory of something else."""
    directory = options.output_dir
    try:
        storage.make_directory(directory)
        names = storage.list_directory(directory)
        if options.overwrite:
            for name in filter(is_own_file, names):
                storage.remove(os.path.join(directory, name))
            found = None
        else:
            found = load_manifest(directory)
            if found is None and names:
                _refuse_foreign(directory, names)
        if found is None:
            save_manifest(directory, wanted)
            return wanted
    except OSError as error:
        raise UserError(
            f"output_dir {directory!r} cannot be written to: "
            f"{error.strerror or error}."
        ) from error
    if lines := differences(found, wanted):
        raise UserError(
            f"output_dir {directory!r} holds records of another build:\n  "
            + "\n  ".join(lines)
            + "\nGive another directory, or --overwrite to remove them."
        )
    if not found["complete"]:
        _check_writable(directory, found)
    return found


def _refuse_foreign(directory: str, names: list[str]) -> None:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    raise UserError(
        f"output_dir {directory!r} is not empty ({', '.join(names[:3])}{more})"
        f" and has no {MANIFEST_NAME}. Give an empty directory, or "
        "--overwrite, which removes pretrain_data.tfrecord-*, "
        f"eval_data.tfrecord-* and {MANIFEST_NAME} there and nothing else."
    )


def _check_writable(directory: str, manifest: dict) -> None:
    """Fails before the work rather than after it."""
    save_manifest(directory, manifest)


def _complete(options: BuildOptions, manifest: dict) -> None:
    totals: Counter = Counter()
    for job in manifest["jobs"].values():
        totals.update(job["counts"])
    manifest["counts"] = dict(totals)
    if not totals["examples"]:
        raise UserError(
            f"No training example came out of {totals['lines']} lines in "
            f"{totals['documents'] + totals['held_out_documents']} documents. "
            "Is this the right corpus_dir, corpus_format or "
            "held_out_fraction? Run again with --overwrite after the change."
        )
    for name in storage.list_directory(options.output_dir):
        if name.startswith(".tmp-") and is_own_file(name):
            storage.remove(os.path.join(options.output_dir, name))
    manifest["complete"] = True
    save_manifest(options.output_dir, manifest)
