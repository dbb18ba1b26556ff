# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A whole build: its flags, its jobs on workers, its manifest and report."""

import argparse
import dataclasses
import multiprocessing
import os
import queue
import sys
import time
import traceback
import typing
import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Any

from configure import flags
from configure.config import check_bounds
from configure.errors import UserError, listed
from electra_tf import files
from electra_tf.data import corpora
from electra_tf.data.corpora import Listing
from electra_tf.data.example_writer import (
    BuildOptions,
    Job,
    JobReport,
    run_job,
)
from electra_tf.data.records import (
    MANIFEST_NAME,
    TEMPORARY_PREFIX,
    differences,
    is_own_file,
    load_manifest,
    new_manifest,
    save_manifest,
)
from electra_tf.text.tokenization import FullTokenizer, check_vocab, vocab_hash

Say = Callable[[str], None]

# With draws=document the jobs may be smaller than a worker's share: the workers
# then end together, and a build that is interrupted loses less.
_JOBS_PER_PROCESS = 8
_PIECES_PER_JOB = 4
_SMALLEST_PIECE = 1 << 16


def build_records(options: BuildOptions, say: Say = print) -> dict[str, Any]:
    """Builds the pre-training records of a corpus.

    Running it again after an interruption does what is left to do.

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
        "strip_accents": options.do_strip_accents,
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
        manifest["jobs"][str(job.index)] = dataclasses.asdict(report)
        save_manifest(options.output_dir, manifest)

    run_jobs(options, left, on_done, say)
    _complete(options, manifest)
    for line in summary(manifest, time.monotonic() - started):
        say(line)
    return manifest


def _check_options(options: BuildOptions) -> None:
    """Refuses values that cannot work."""
    hints = typing.get_type_hints(BuildOptions, include_extras=True)
    for name, declared in hints.items():
        check_bounds(name, getattr(options, name), declared)
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
        "strip_accents": options.do_strip_accents,
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
    """Cuts a build into jobs."""
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
        files.make_directory(directory)
        names = files.list_directory(directory)
        if options.overwrite:
            for name in filter(is_own_file, names):
                files.remove(os.path.join(directory, name))
            found = None
        else:
            found = load_manifest(directory)
            if found is None and names:
                raise UserError(
                    f"output_dir {directory!r} is not empty"
                    f" ({listed(names, 3)}) and has no {MANIFEST_NAME}. Give an"
                    " empty directory, or --overwrite, which removes"
                    " pretrain_data.tfrecord-*, eval_data.tfrecord-* and"
                    f" {MANIFEST_NAME} there and nothing else."
                )
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
        # Fails before the work rather than after it.
        save_manifest(directory, found)
    return found


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
    for name in files.list_directory(options.output_dir):
        if name.startswith(TEMPORARY_PREFIX) and is_own_file(name):
            files.remove(os.path.join(options.output_dir, name))
    manifest["complete"] = True
    save_manifest(options.output_dir, manifest)


# Runs the jobs of a build on worker processes and shows how far they are.

_SECONDS_BETWEEN_REPORTS = 5.0


class _Progress:
    """Passes on at most one progress line every few seconds."""

    def __init__(self, job: Job, say: Say):
        self._label = f"Job {job.index + 1} of {job.count}:"
        self._say = say
        self._started = self._last = time.monotonic()

    def __call__(self, share: float, num_examples: int) -> None:
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_REPORTS or not share:
            return
        self._last = now
        elapsed = now - self._started
        eta = elapsed / share - elapsed
        self._say(
            f"{self._label} {100 * share:.1f}%, ELAPSED: {elapsed:.0f}s, "
            f"ETA: {eta:.0f}s, {num_examples:,} examples written"
        )


def run_jobs(
    options: BuildOptions,
    jobs: list[Job],
    on_done: Callable[[Job, JobReport], None],
    say: Say,
) -> None:
    """Runs jobs, on worker processes if there is more than one."""
    tokenizer = FullTokenizer(
        options.vocab_file, options.do_lower_case, options.do_strip_accents
    )
    num_workers = min(options.num_processes, len(jobs))
    if num_workers > 1:
        _run_on_workers(options, tokenizer, jobs, num_workers, on_done, say)
        return
    for job in jobs:
        report = run_job(options, job, tokenizer, _Progress(job, say))
        on_done(job, report)


def _run_on_workers(
    options, tokenizer, jobs, num_workers, on_done, say
) -> None:
    context = multiprocessing.get_context(_start_method())
    waiting = context.SimpleQueue()
    messages = context.Queue()
    for job in jobs:
        waiting.put(job)
    for _ in range(num_workers):
        waiting.put(None)
    workers = [
        context.Process(
            target=_work,
            args=(options, tokenizer, waiting, messages),
            daemon=True,
        )
        for _ in range(num_workers)
    ]
    try:
        for worker in workers:
            worker.start()
        left = len(jobs)
        while left:
            message = _next_message(messages, workers)
            if message[0] == "say":
                say(message[1])
            elif message[0] == "done":
                on_done(message[1], message[2])
                left -= 1
            elif message[0] == "user error":
                raise UserError(message[1])
            else:
                raise RuntimeError(f"A worker failed:\n{message[1]}")
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()


def _start_method() -> str:
    """Forking is instant, but not safe once TensorFlow runs its threads."""
    methods = multiprocessing.get_all_start_methods()
    safe = sys.platform == "linux" and "tensorflow" not in sys.modules
    return "fork" if safe and "fork" in methods else "spawn"


def _next_message(messages, workers) -> tuple:
    while True:
        try:
            return messages.get(timeout=0.5)
        except queue.Empty:
            for worker in workers:
                # None: running. 0: no jobs were left for it.
                if worker.exitcode:
                    raise UserError(
                        f"A worker process ended with code {worker.exitcode} "
                        "(killed, or out of memory?). Finished jobs are kept; "
                        "run the same command again to go on."
                    ) from None


def _work(
    options: BuildOptions, tokenizer: FullTokenizer, waiting, messages
) -> None:
    """What a worker process does."""
    try:
        while (job := waiting.get()) is not None:
            progress = _Progress(job, lambda line: messages.put(("say", line)))
            report = run_job(options, job, tokenizer, progress)
            messages.put(("done", job, report))
    except KeyboardInterrupt:
        pass
    except UserError as error:
        messages.put(("user error", str(error)))
    except Exception:
        messages.put(("failed", traceback.format_exc()))


# What a build tells its user before and after, in one screen.

# Fewer examples than this in a shard make training crawl from file to file.
_EXAMPLES_PER_SHARD = 100
_NAMES_SHOWN = 5


def warnings_before(options: BuildOptions, listing: Listing) -> list[str]:
    """Warnings that need no reading."""
    lines = []
    if listing.nested_directories:
        names = listed(listing.nested_directories)
        lines.append(
            f"WARNING: {len(listing.nested_directories)} directories inside "
            f"{options.corpus.path} are not read: {names}"
        )
    num_files = len(listing.sources)
    if (
        options.draws == "stream"
        and options.corpus.corpus_format != "tfds"
        and num_files < options.num_processes
    ):
        lines.append(
            f"WARNING: {num_files} files for {options.num_processes} "
            "processes: the others have nothing to do. --draws=document "
            "splits files at document boundaries."
        )
    if options.draws == "document" and options.num_shards == 1:
        lines.append("WARNING: num_shards is 1: only one process can write.")
    return lines


def summary(manifest: dict[str, Any], seconds: float = 0.0) -> list[str]:
    """The closing report."""
    counts, settings = manifest["counts"], manifest["settings"]
    tokens = max(1, counts["tokens"])
    length = settings["max_seq_length"]

    def share(name: str) -> str:
        return f"{counts[name]:>12,}  ({100 * counts[name] / tokens:.2f}%)"

    lines = [
        f"  documents            {counts['documents']:>12,}",
        f"  lines                {counts['lines']:>12,}",
        f"  lines over {length:<4} tokens{counts['lines_over_length']:>11,}",
        f"  tokens               {counts['tokens']:>12,}",
        f"  unknown tokens       {share('unknown_tokens')}",
        f"  tokens dropped       {share('tokens_dropped')}",
        f"  examples             {counts['examples']:>12,}",
        f"  shards               {settings['num_shards']:>12,}",
    ]
    if settings["held_out_fraction"]:
        lines += [
            f"  held-out documents   {counts['held_out_documents']:>12,}",
            f"  held-out examples    {counts['held_out_examples']:>12,}",
        ]
    if seconds:
        rate = counts["examples"] / seconds
        lines.append(f"  {seconds:.1f} s, {rate:,.0f} examples/s")
    return ["Done.", *lines, *_warnings_after(manifest)]


def _warnings_after(manifest: dict[str, Any]) -> list[str]:
    counts, settings = manifest["counts"], manifest["settings"]
    lines = []
    useful = max(1, counts["examples"] // _EXAMPLES_PER_SHARD)
    if settings["num_shards"] > useful:
        empty = max(0, settings["num_shards"] - counts["examples"])
        lines.append(
            f"WARNING: {settings['num_shards']} shards for "
            f"{counts['examples']:,} examples"
            + (f" (at least {empty} are empty)" if empty else "")
            + f"; training reads {useful} shards or fewer faster: "
            f"--num_shards={useful}"
        )
    if counts["tokens_dropped"] > 0.01 * counts["tokens"]:
        lines.append(
            f"WARNING: {counts['tokens_dropped']:,} tokens at the ends of "
            "lines did not fit and were dropped, as in the original; "
            "--split_long_lines keeps them."
        )
    if counts["unknown_tokens"] > 0.05 * counts["tokens"]:
        lines.append(
            "WARNING: more than 5% of the tokens are [UNK]: does the "
            "vocabulary fit the text and --do-lower-case?"
        )
    if settings["held_out_fraction"] and not counts["held_out_examples"]:
        lines.append(
            "WARNING: held_out_fraction selected no document; raise it or "
            "give more documents."
        )
    return lines + _invalid_lines(manifest)


def _invalid_lines(manifest: dict[str, Any]) -> list[str]:
    invalid: dict[str, list[int]] = {}
    for job in manifest["jobs"].values():
        for name, (offset, count) in job["invalid"].items():
            entry = invalid.setdefault(name, [offset, 0])
            entry[0] = min(entry[0], offset)
            entry[1] += count
    lines = [
        f"WARNING: {name}: {count} bytes are not UTF-8 and were left out, "
        f"the first at byte {offset}"
        for name, (offset, count) in sorted(invalid.items())
    ]
    if len(lines) > _NAMES_SHOWN:
        rest = len(lines) - _NAMES_SHOWN
        lines[_NAMES_SHOWN:] = [
            f"WARNING: {rest} more files with such bytes: see manifest.json"
        ]
    return lines


# The flags of the two programs that build.

CORPUS_NOTE = (
    "The corpus: one sentence per line, a blank line between documents, UTF-8."
    " Lines longer than an example lose their tail (see --split_long_lines);"
    " the closing report counts what was lost. Sentences of one document are"
    " packed into two segments per example."
)
_PLACES = ("corpus", "vocab_file", "output_dir")


def add_build_flags(parser: flags.FlagParser) -> None:
    """Adds what both programs take; the original's spellings work."""
    flags.add_field_flags(parser, BuildOptions, skip=_PLACES)


def add_corpus_flags(parser: flags.FlagParser) -> None:
    """Adds what chooses among kinds of corpora."""
    flags.add_field_flags(
        parser, corpora.Corpus, skip=("path", "blanks_separate_docs")
    )


def corpus_from(args: argparse.Namespace) -> corpora.Corpus:
    """Collects parsed flags; a TFDS data set needs only its name."""
    names = [field.name for field in dataclasses.fields(corpora.Corpus)]
    given = {name: value for name, value in vars(args).items() if name in names}
    if args.tfds_name and args.corpus_format == "auto":
        given["corpus_format"] = "tfds"
    return corpora.Corpus(args.corpus_dir or "", **given)


def options_from(
    args: argparse.Namespace,
    corpus: corpora.Corpus,
    vocab_file: str,
    output_dir: str,
) -> BuildOptions:
    """Collects parsed flags."""
    names = [f.name for f in dataclasses.fields(BuildOptions)]
    given = {name: getattr(args, name) for name in names if name not in _PLACES}
    return BuildOptions(corpus, vocab_file, output_dir, **given)
