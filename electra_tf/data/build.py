# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds of pre-training records from a corpus."""

import contextlib
import dataclasses
import functools
import os
import random
import time
import typing
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from configure.bounds import check_bounds
from configure.errors import UserError, append_to_errors
from configure.formatting import join_names
from electra_tf.data import build_report, corpora
from electra_tf.data.build_options import BuildOptions
from electra_tf.data.corpora import ReadingReport
from electra_tf.data.jobs import (
    Job,
    JobReport,
    RunJobs,
    count_jobs,
    plan_jobs,
    run_jobs,
)
from electra_tf.data.manifest import (
    BUILD_FILES,
    MANIFEST_NAME,
    find_differences,
    load_manifest,
    new_manifest,
    save_manifest,
)
from electra_tf.data.segments import (
    ExampleBuilder,
    Segments,
    document_bits,
    document_draws,
)
from electra_tf.data.tfrecords import (
    HELD_OUT_PREFIX,
    TEMPORARY_PREFIX,
    TRAINING_PREFIX,
    ShardSet,
    open_encoder,
)
from electra_tf.files import filesystem
from electra_tf.files.locks import LOCK_FILE, folder_lock
from electra_tf.text import opening, tokenization, vocabulary
from electra_tf.text.changed_letters import ScriptCounter


def build_records(options: BuildOptions) -> dict[str, Any]:
    """Build the pre-training records of a corpus, and return the manifest.

    After an interruption, the same call runs the remaining jobs.

    Source: build_pretraining_dataset.py, main.
    Differs: does not delete other files in the output directory; see
      BuildOptions.overwrite.
    """
    options = options.with_casing()
    _check_options(options)
    run = _choose_runner(options)
    listing = corpora.list_sources(options.corpus)
    num_jobs = count_jobs(options, listing.sources)
    manifest = new_manifest(options, listing, num_jobs)
    with contextlib.ExitStack() as lock:
        manifest = _open_output(options, manifest, lock)
        if manifest["complete"]:
            print(
                f"{options.output_dir}: the build is already complete (names"
                " and sizes of the corpus files are unchanged)."
            )
            print("\n".join(build_report.summary(manifest)))
            return manifest
        for line in build_report.warnings_before(options, listing):
            print(line)
        jobs = plan_jobs(options, listing.sources, manifest["num_jobs"])
        _build(options, manifest, jobs, run)
    return manifest


def _build(
    options: BuildOptions,
    manifest: dict[str, Any],
    jobs: list[Job],
    run: RunJobs,
) -> None:
    """Run the unfinished jobs, and complete the manifest."""
    remaining = [job for job in jobs if str(job.index) not in manifest["jobs"]]
    if len(remaining) < len(jobs):
        num_done = len(jobs) - len(remaining)
        print(f"Continuing: {num_done} of {len(jobs)} jobs are done.")
    started = time.monotonic()

    def on_done(job: Job, report: JobReport) -> None:
        manifest["jobs"][str(job.index)] = report
        save_manifest(options.output_dir, manifest)

    with append_to_errors(lambda: build_report.invalid_bytes(manifest)):
        run(RecordJobRunner(options), remaining, on_done)
        _complete(options, manifest)
    seconds = time.monotonic() - started
    print("\n".join(build_report.summary(manifest, seconds)))


def _check_options(options: BuildOptions) -> None:
    hints = typing.get_type_hints(BuildOptions, include_extras=True)
    for name, declared in hints.items():
        check_bounds(name, getattr(options, name), declared)
    if vocabulary.is_bpe(options.vocab_file):
        # The tokenizer is opened here, because the error of a worker would not
        # name the file.
        open_tokenizer(options)
    if options.draws == "stream" and options.num_processes > options.num_shards:
        raise UserError(
            f"num_processes is {options.num_processes}, but num_shards is"
            f" {options.num_shards}; --draws=stream requires at least one shard"
            " per process. Lower --num_processes, or raise --num_shards."
        )


def _choose_runner(options: BuildOptions) -> RunJobs:
    """Return the function that runs the jobs of a build."""
    if options.runner != "beam":
        return run_jobs
    # Beam is imported here, because its import takes seconds and few users
    # install it.
    from electra_tf.data import beam

    # Opening the pipeline checks Beam's flags before any job runs.
    return functools.partial(beam.run_jobs, beam.open_pipeline(options))


def _open_output(
    options: BuildOptions,
    requested: dict[str, Any],
    lock: contextlib.ExitStack,
) -> dict[str, Any]:
    """Lock the output directory, and return its existing or new manifest.

    Raises:
      UserError: the directory contains other files, or cannot be written to.
    """
    directory = options.output_dir
    try:
        filesystem.make_directory(directory)
        names = sorted({*filesystem.list_directory(directory)} - {LOCK_FILE})
        if os.access(directory, os.W_OK):
            lock.enter_context(folder_lock(directory))
        if options.overwrite:
            for name in filter(BUILD_FILES.fullmatch, names):
                filesystem.remove(os.path.join(directory, name))
            existing = None
        else:
            existing = load_manifest(directory)
            # Temporary files do not count, because a build may have been killed
            # before it wrote its first manifest.
            names = [n for n in names if not n.startswith(TEMPORARY_PREFIX)]
            if existing is None and names:
                raise UserError(
                    f"output_dir {directory!r} contains files"
                    f" ({join_names(names, 3)}), but {MANIFEST_NAME} is"
                    " missing. Choose an empty directory, or pass --overwrite,"
                    " which removes only pretrain_data.tfrecord-*,"
                    f" eval_data.tfrecord-* and {MANIFEST_NAME} from this"
                    " directory."
                )
        if existing is None:
            save_manifest(directory, requested)
            return requested
    except OSError as error:
        raise UserError(
            f"output_dir {directory!r} cannot be written to:"
            f" {error.strerror or error}. Choose a different directory."
        ) from error
    if lines := find_differences(existing, requested):
        raise UserError(
            f"output_dir {directory!r} contains records of a different build:\n"
            "  "
            + "\n  ".join(lines)
            + "\nChoose a different directory, or pass --overwrite to remove"
            " these records."
        )
    if not existing["complete"]:
        # If the directory is not writable, this write fails before any work is
        # done.
        save_manifest(directory, existing)
    return existing


def _complete(options: BuildOptions, manifest: dict[str, Any]) -> None:
    """Sum the counts of all jobs, and mark the manifest as complete."""
    totals: Counter = Counter()
    for job in manifest["jobs"].values():
        totals.update(job["counts"])
    manifest["counts"] = dict(totals)
    if not totals["examples"]:
        num_documents = totals["documents"] + totals["held_out_documents"]
        raise UserError(
            f"{num_documents} documents with {totals['lines']} lines contain no"
            " training example; expected at least one. Correct --corpus_dir,"
            " --corpus_format or --held_out_fraction, and run again with"
            " --overwrite."
        )
    for name in filesystem.list_directory(options.output_dir):
        if name.startswith(TEMPORARY_PREFIX) and BUILD_FILES.fullmatch(name):
            filesystem.remove(os.path.join(options.output_dir, name))
    manifest["complete"] = True
    save_manifest(options.output_dir, manifest)


def open_tokenizer(options: BuildOptions) -> tokenization.Tokenizer:
    """Return the tokenizer of a build."""
    options = options.with_casing()
    return opening.open_tokenizer(
        options.vocab_file, options.do_lower_case, options.do_strip_accents
    )


class RecordJobRunner:
    """A runner of the jobs of one build; see `jobs.JobRunner`."""

    def __init__(self, options: BuildOptions) -> None:
        self.options = options

    def prepare(self) -> None:
        """Open the tokenizer, once in each process."""
        self._tokenizer = open_tokenizer(self.options)

    def run(self, job: Job) -> JobReport:
        """Run a job in the process that called `prepare`."""
        return run_job(self.options, job, self._tokenizer, Progress(job))


_SECONDS_BETWEEN_REPORTS = 5.0


class Progress:
    """Printer of progress, which prints at most one line every five seconds."""

    def __init__(self, job: Job):
        self._label = f"Job {job.index + 1} of {job.count}:"
        self._started = self._last = time.monotonic()

    def __call__(self, share: float, num_examples: int) -> None:
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_REPORTS or not share:
            return
        self._last = now
        elapsed = now - self._started
        eta = elapsed / share - elapsed
        print(
            f"{self._label} {100 * share:.1f}%, ELAPSED: {elapsed:.0f}s, "
            f"ETA: {eta:.0f}s, {num_examples:,} examples written",
            flush=True,
        )


def run_job(
    options: BuildOptions,
    job: Job,
    tokenizer: tokenization.Tokenizer,
    on_progress: Callable[[float, int], None],
) -> JobReport:
    """Run a job from start to end, and return its report.

    Args:
      on_progress: function that is called with the share of the text read, and
        the number of examples written, so far.

    Source: build_pretraining_dataset.py, write_examples.
    """
    try:
        writer = ExampleWriter(options, job, tokenizer)
        sources = list(job.sources)
        if options.draws == "stream":
            writer.random.shuffle(sources)
        total = sum(s.end - s.start for s in sources) or 1
        done = 0

        def on_document() -> None:
            share = (done + writer.reading.units_read) / total
            # The bytes of compressed sources are counted after unpacking, so
            # the share could exceed 1.
            share = min(1.0, share)
            on_progress(share, writer.training.shards.num_records)

        for source in sources:
            with writer.reading.in_errors():
                writer.write(source, on_document)
            done += source.end - source.start
        return writer.finish()
    except OSError as error:
        raise UserError(
            f"{error.filename or options.output_dir}:"
            f" {error.strerror or error}. Check permissions, free space and the"
            " limit on open files (ulimit -n)."
        ) from error


@dataclasses.dataclass
class _Split:
    """Builder and shards of either the training or the held-out documents."""

    builder: ExampleBuilder
    shards: ShardSet
    documents: int = 0


class ExampleWriter:
    """A writer that distributes a job's examples over the job's shards.

    Source: build_pretraining_dataset.py, ExampleWriter and write_examples.
    """

    def __init__(
        self,
        options: BuildOptions,
        job: Job,
        tokenizer: tokenization.Tokenizer,
    ):
        self.random = random.Random(options.seed + job.index)
        self.reading = ReadingReport(options.strict)
        self._options, self._job, self._tokenizer = options, job, tokenizer
        self._letters = None
        if not vocabulary.is_bpe(options.vocab_file):
            casing = options.with_casing()
            self._letters = ScriptCounter(
                casing.do_lower_case, casing.do_strip_accents
            )
        self._encoder = open_encoder(tokenizer.vocab, options.max_seq_length)
        names = ("lines", "lines_over_length", "unknown_tokens")
        self._counts = dict.fromkeys(names, 0)
        indices = list(range(job.index, options.num_shards, job.count))
        self.training = self._new_split(
            TRAINING_PREFIX, self.random, indices, options.num_shards
        )
        seed = document_bits("held out", options.seed, "", str(job.index))
        indices = [job.index] if options.held_out_fraction else []
        self._held_out = self._new_split(
            HELD_OUT_PREFIX, random.Random(seed), indices, job.count
        )

    def _new_split(
        self, prefix: str, stream: random.Random, indices: list[int], count: int
    ) -> _Split:
        options = self._options
        builder = ExampleBuilder(
            options.max_seq_length, stream, options.split_long_lines
        )
        shards = ShardSet(
            options.output_dir, prefix, indices, count, self._job.attempt
        )
        return _Split(builder, shards)

    def write(
        self, source: corpora.Source, on_document: Callable[[], object] = int
    ) -> None:
        """Write a source's examples; call `on_document` after each document."""
        seed = self._options.seed
        by_document = self._options.draws == "document"
        shuffle = None if by_document else self.random
        self.reading.units_read = 0
        position = None
        for piece in corpora.read_documents(
            source, self._options.corpus, self.reading, shuffle
        ):
            if position is None:
                position = piece.position
                split = self._choose_split(source.name, position)
                if by_document:
                    draws = document_draws(seed, source.name, position)
                    split.builder.restart(draws)
            self._add_lines(split, piece.lines)
            if piece.is_last:
                self._write_examples(split, split.builder.flush())
                position = None
                on_document()

    def _choose_split(self, name: str, position: str) -> _Split:
        split, share = self.training, self._options.held_out_fraction
        if share:
            draw = document_bits("choose", self._options.seed, name, position)
            if draw < share * 2.0**64:
                split = self._held_out
        split.documents += 1
        return split

    def _add_lines(self, split: _Split, lines: list[str]) -> None:
        counts, unknown_id = (
            self._counts,
            self._tokenizer.vocab[vocabulary.UNK],
        )
        room = self._options.max_seq_length - 2
        counts["lines"] += len(lines)
        for line in lines:
            if self._letters and self._is_sampled(line):
                self._letters.add(line)
            ids = self._tokenizer.encode(line)
            counts["lines_over_length"] += len(ids) > room
            counts["unknown_tokens"] += ids.count(unknown_id)
            self._write_examples(split, split.builder.add(ids))

    def _is_sampled(self, line: str) -> bool:
        """Return whether the letters of a line are counted.

        The sample depends only on the texts of lines, not on the number of
        processes.
        """
        if self._job.every == 1:
            return True
        checksum = zlib.crc32(line.encode("utf-8", "ignore"))
        return not checksum % self._job.every

    def _write_examples(self, split: _Split, examples: list[Segments]) -> None:
        for first, second in examples:
            split.shards.write(self._encoder.encode(first, second))

    def finish(self) -> JobReport:
        """Close the shards, give them final names, and return the report."""
        training, held_out = self.training, self._held_out
        training.shards.close()
        held_out.shards.close()
        # Both sets of shards are closed first, so that a failed job leaves no
        # file with a final name.
        shards = training.shards.publish()
        held_out_shards = held_out.shards.publish()
        builders = [training.builder, held_out.builder]
        invalid = self.reading.invalid
        counts = {
            **self._counts,
            "documents": training.documents,
            "held_out_documents": held_out.documents,
            "tokens": sum(b.tokens_in for b in builders),
            "tokens_dropped": sum(b.tokens_dropped for b in builders),
            "examples": training.shards.num_records,
            "held_out_examples": held_out.shards.num_records,
            "bytes": self.reading.bytes_read,
            "invalid_bytes": sum(count for _, count in invalid.values()),
        }
        report = {"counts": counts, "invalid": invalid, "shards": shards}
        if self._letters:
            report["scripts"] = self._letters.scripts()
        return report | {"held_out_shards": held_out_shards}
