# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A whole build: its flags, its jobs on workers, its manifest and report."""

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import json
import multiprocessing
import os
import re
import sys
import time
import typing
import unicodedata
from collections import Counter
from collections.abc import Callable
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import electra_tf
from configure import flags
from configure.bounds import check_bounds
from configure.errors import UserError, append_to_errors
from configure.formatting import join_names
from electra_tf.data import corpora, workers
from electra_tf.data.archives import Limits
from electra_tf.data.build_options import BuildOptions
from electra_tf.data.corpora import Listing
from electra_tf.data.example_writer import (
    HELD_OUT_PREFIX,
    TEMPORARY_PREFIX,
    TRAINING_PREFIX,
    Job,
    JobReport,
    run_job,
)
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json
from electra_tf.files.locks import LOCK_FILE, folder_lock
from electra_tf.text import tokenization
from electra_tf.text.stripping import stripping_warnings, sum_of_scripts

# With draws=document the jobs may be smaller than a worker's share: the workers
# then end together, and a build that is interrupted loses less.
_JOBS_PER_PROCESS = 8
_PIECES_PER_JOB = 4
_SMALLEST_PIECE = 1 << 16
_BYTES_COUNTED = 1 << 20  # about so much text shows what its letters are
_BYTES_PER_EXAMPLE = 1000  # of a TFDS data set, roughly


def build_records(options: BuildOptions) -> dict[str, Any]:
    """Builds the pre-training records of a corpus; returns the manifest.

    Running it again after an interruption does what is left to do.

    Source: build_pretraining_dataset.py, main.
    Differs: never wipes the output directory; see BuildOptions.overwrite.
    """
    with contextlib.ExitStack() as held:
        return _build_records(options, held)


def _build_records(
    options: BuildOptions, held: contextlib.ExitStack
) -> dict[str, Any]:
    options = options.with_casing()
    _check_options(options)
    run = run_jobs
    if options.runner == "beam":
        # Imported here because Beam's import takes seconds, and few have it.
        from electra_tf.data import beam

        # Refuses its flags before any work.
        run = functools.partial(beam.run_jobs, beam.open_pipeline(options))
    listing = corpora.list_sources(options.corpus)
    manifest = _manifest(options, listing, _num_jobs(options, listing.sources))
    manifest = _open_output(options, manifest, held)
    if manifest["complete"]:
        print(
            f"{options.output_dir}: already complete, nothing to do (the"
            " corpus has the same names and sizes)."
        )
        print("\n".join(summary(manifest)))
        return manifest
    for line in _warnings_before(options, listing):
        print(line)
    jobs = plan_jobs(options, listing.sources, manifest["num_jobs"])
    left = [job for job in jobs if str(job.index) not in manifest["jobs"]]
    if len(left) < len(jobs):
        print(f"Continuing: {len(jobs) - len(left)} of {len(jobs)} jobs done.")
    started = time.monotonic()

    def on_done(job: Job, report: JobReport) -> None:
        manifest["jobs"][str(job.index)] = report
        save_manifest(options.output_dir, manifest)

    with append_to_errors(lambda: _invalid_lines(manifest)):
        run(options, left, on_done)
        _complete(options, manifest)
    print("\n".join(summary(manifest, time.monotonic() - started)))
    return manifest


def _check_options(options: BuildOptions) -> None:
    hints = typing.get_type_hints(BuildOptions, include_extras=True)
    for name, declared in hints.items():
        check_bounds(name, getattr(options, name), declared)
    if tokenization.is_bpe(options.vocab_file):
        open_tokenizer(options)  # A worker could not say what is wrong.
    if options.draws == "stream" and options.num_processes > options.num_shards:
        raise UserError(
            f"num_processes is {options.num_processes} and num_shards "
            f"{options.num_shards}: with draws=stream each process writes its "
            "own shards. Take fewer processes or more shards."
        )


def _num_jobs(options: BuildOptions, sources: list[corpora.Source]) -> int:
    if options.draws == "stream":
        return options.num_processes
    wanted = options.num_processes * _JOBS_PER_PROCESS
    if options.corpus.corpus_format != "tfds":
        # A job without text would write empty shards.
        cut = [s for s in sources if corpora.can_be_cut(s, options.corpus)]
        pieces = sum(-(-source.size // _SMALLEST_PIECE) for source in cut)
        pieces += len(sources) - len(cut)
        wanted = min(wanted, max(options.num_processes, pieces))
    return min(options.num_shards, wanted)


def plan_jobs(
    options: BuildOptions, sources: list[corpora.Source], num_jobs: int
) -> list[Job]:
    """Cuts a build into jobs."""
    size = sum(source.size for source in sources)
    if options.corpus.corpus_format == "tfds":
        size *= _BYTES_PER_EXAMPLE
    every = max(1, size // _BYTES_COUNTED)
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
        Job(index, num_jobs, parts[index::num_jobs], every=every)
        for index in range(num_jobs)
    ]


# What was built and how: `manifest.json` beside the records.

MANIFEST_NAME = "manifest.json"
MANIFEST_FORMAT = 1
_NAMES = (
    rf"{MANIFEST_NAME}|({TRAINING_PREFIX}|{HELD_OUT_PREFIX})"
    r"\.tfrecord-\d+-of-\d+"
)
_OWN_NAMES = re.compile(
    rf"{_NAMES}|{re.escape(TEMPORARY_PREFIX)}"
    rf"([0-9a-f]+-)?({_NAMES}|job-\d+\.json)"
)


def _manifest(
    options: BuildOptions, listing: Listing, num_jobs: int
) -> dict[str, Any]:
    """The manifest before any job is done."""
    # Everything that decides what the records hold.
    settings = dataclasses.asdict(options)
    settings |= settings.pop("corpus")
    settings["strip_accents"] = settings.pop("do_strip_accents")
    other = [field.name for field in dataclasses.fields(Limits)]
    other += ["path", "vocab_file", "output_dir", "tfds_data_dir"]
    other += ["overwrite", "strict", "runner", "beam_options"]
    other += ["num_processes"] * (options.draws != "stream")
    for name in other:
        del settings[name]
    sources = [[source.name, source.size] for source in listing.sources]
    names = json.dumps(sources).encode()
    return {
        "format": MANIFEST_FORMAT,
        "written_by": f"electra_tf {electra_tf.__version__}",
        "complete": False,
        "settings": settings,
        "vocabulary": {
            "hash": tokenization.vocab_hash(options.vocab_file),
            "size": len(tokenization.check_vocab(options.vocab_file)),
        },
        "corpus": {
            "fingerprint": hashlib.blake2b(names, digest_size=16).hexdigest(),
            "num_files": len(sources),
            "num_bytes": sum(size for _, size in sources),
            "files": sources,
        },
        "tokenizer": {
            "do_lower_case": options.do_lower_case,
            "strip_accents": options.do_strip_accents,
            "unicode_version": unicodedata.unidata_version,
        },
        "num_jobs": num_jobs,
        "jobs": {},
        "counts": {},
    }


def load_manifest(directory: str) -> dict[str, Any] | None:
    """Reads a directory's manifest; None if there is none."""
    path = os.path.join(directory, MANIFEST_NAME)
    if not filesystem.exists(path):
        return None
    try:
        manifest = read_json(path)
        if manifest["format"] == MANIFEST_FORMAT:
            return manifest
        reason = "another program or version wrote it"
    except (ValueError, TypeError, KeyError) as error:
        reason = repr(error)
    raise UserError(
        f"{path} is not a manifest of format {MANIFEST_FORMAT} ({reason})."
        " Choose another directory or build again with --overwrite."
    )


def save_manifest(directory: str, manifest: dict[str, Any]) -> None:
    """Writes the manifest under a temporary name, then renames it."""
    # Laid out for people only at the end: that takes ten times as long, and
    # an unfinished one is written after each job.
    indent = 1 if manifest["complete"] else None
    # Jobs end in another order each time.
    jobs = dict(sorted(manifest["jobs"].items(), key=lambda job: int(job[0])))
    write_atomically(
        os.path.join(directory, MANIFEST_NAME),
        json.dumps(manifest | {"jobs": jobs}, indent=indent) + "\n",
        temporary=os.path.join(directory, TEMPORARY_PREFIX + MANIFEST_NAME),
    )


def _differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Lines such as "seed: built with 1, asked for 2"; none: go on building."""
    lines = []
    for name, value in wanted["settings"].items():
        before = found["settings"].get(name)
        if before != value:
            lines.append(f"{name}: built with {before!r}, asked for {value!r}")
    if found["vocabulary"]["hash"] != wanted["vocabulary"]["hash"]:
        lines.append(
            "vocab_file: another vocabulary of "
            f"{found['vocabulary']['size']} tokens, now "
            f"{wanted['vocabulary']['size']}"
        )
    # Newer tables know more characters: the same text gives other tokens.
    before, now = (
        manifest.get("tokenizer", {}).get("unicode_version")
        for manifest in (found, wanted)
    )
    if before != now:
        lines.append(f"Python's Unicode tables: built with {before}, now {now}")
    if found["corpus"]["fingerprint"] != wanted["corpus"]["fingerprint"]:
        before, now = (
            set(map(tuple, manifest["corpus"]["files"]))
            for manifest in (found, wanted)
        )
        changed = join_names(sorted({name for name, _ in before ^ now}))
        lines.append(
            f"corpus: files added, removed or of another size: {changed}"
        )
    return lines


def _open_output(
    options: BuildOptions, wanted: dict, held: contextlib.ExitStack
) -> dict:
    """The manifest to go on with; refuses a directory of something else."""
    directory = options.output_dir
    try:
        filesystem.make_directory(directory)
        names = sorted({*filesystem.list_directory(directory)} - {LOCK_FILE})
        if os.access(directory, os.W_OK):
            held.enter_context(folder_lock(directory))
        if options.overwrite:
            for name in filter(_OWN_NAMES.fullmatch, names):
                filesystem.remove(os.path.join(directory, name))
            found = None
        else:
            found = load_manifest(directory)
            # A build may have been killed before its first was whole.
            names = [n for n in names if not n.startswith(TEMPORARY_PREFIX)]
            if found is None and names:
                raise UserError(
                    f"output_dir {directory!r} is not empty"
                    f" ({join_names(names, 3)}) and has no {MANIFEST_NAME}."
                    " Give an empty directory, or --overwrite, which removes"
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
    if lines := _differences(found, wanted):
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
    for name in filesystem.list_directory(options.output_dir):
        if name.startswith(TEMPORARY_PREFIX) and _OWN_NAMES.fullmatch(name):
            filesystem.remove(os.path.join(options.output_dir, name))
    manifest["complete"] = True
    save_manifest(options.output_dir, manifest)


# Runs the jobs of a build on worker processes and shows how far they are.

_SECONDS_BETWEEN_REPORTS = 5.0


class Progress:
    """Prints at most one progress line every few seconds."""

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


def open_tokenizer(options: BuildOptions) -> tokenization.Tokenizer:
    """The tokenizer of a build."""
    options = options.with_casing()
    return tokenization.open_tokenizer(
        options.vocab_file, options.do_lower_case, options.do_strip_accents
    )


_tokenizer: tokenization.Tokenizer  # of this process


def _prepare(options: BuildOptions) -> None:
    global _tokenizer
    _tokenizer = open_tokenizer(options)


def _prepare_worker(options: BuildOptions) -> None:
    workers.become_worker()
    _prepare(options)


def _run(options: BuildOptions, job: Job) -> JobReport:
    return run_job(options, job, _tokenizer, Progress(job))


def run_jobs(
    options: BuildOptions,
    jobs: list[Job],
    on_done: Callable[[Job, JobReport], None],
) -> None:
    """Runs jobs, on worker processes if there is more than one."""
    num_workers = min(options.num_processes, len(jobs))
    if num_workers <= 1:
        _prepare(options)
        for job in jobs:
            on_done(job, _run(options, job))
        return
    others = multiprocessing.active_children()
    pool = futures.ProcessPoolExecutor(
        num_workers,
        multiprocessing.get_context(_start_method()),
        _prepare_worker,
        (options,),
    )
    try:
        with workers.interrupts_later():
            running = {pool.submit(_run, options, job): job for job in jobs}
        for done in futures.as_completed(running):
            on_done(running[done], done.result())
    except BrokenProcessPool as error:
        raise UserError(
            "A worker process ended (killed, or out of memory?). Finished jobs"
            " are kept; run the same command again to go on."
        ) from error
    finally:
        for worker in multiprocessing.active_children():
            if worker not in others:
                worker.terminate()
        pool.shutdown()


def _start_method() -> str:
    """Forking is instant, but not safe once TensorFlow runs its threads."""
    methods = multiprocessing.get_all_start_methods()
    safe = sys.platform == "linux" and "tensorflow" not in sys.modules
    return "fork" if safe and "fork" in methods else "spawn"


# What a build tells its user before and after, in one screen.

_REMEDIES = {
    "do_lower_case": "Pass --no-lower-case to build_vocab and to this program,"
    " and --do_lower_case=false to run_pretraining.py.",
    "strip_accents": "Pass --no-strip-accents to build_vocab and to this"
    " program, and --strip_accents=false to run_pretraining.py.",
}
# Fewer examples than this in a shard make training crawl from file to file.
_EXAMPLES_PER_SHARD = 100


def _warnings_before(options: BuildOptions, listing: Listing) -> list[str]:
    lines = []
    if listing.nested_directories:
        names = join_names(listing.nested_directories)
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
    names = """documents lines lines_over_length tokens unknown_tokens
        tokens_dropped examples""".split()
    if settings["held_out_fraction"]:
        names += ["held_out_documents", "held_out_examples"]
    lines = []
    for name in names:
        line = f"  {name.replace('_', ' '):<20} {counts[name]:>12,}"
        if name in ("unknown_tokens", "tokens_dropped"):
            line += f"  ({counts[name] / max(1, counts['tokens']):.2%})"
        lines.append(line)
    lines.append(f"  {'shards':<20} {settings['num_shards']:>12,}")
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
    told = [*_lost_letters(manifest), *_invalid_lines(manifest)]
    return lines + [f"WARNING: {line}" for line in told]


def _invalid_lines(manifest: dict[str, Any]) -> list[str]:
    """Return what the finished jobs left out as no UTF-8."""
    invalid: dict[str, list[int]] = {}
    counts: Counter = Counter()
    for job in manifest["jobs"].values():
        counts.update(job["counts"])
        for name, (offset, count) in job["invalid"].items():
            entry = invalid.setdefault(name, [offset, 0])
            entry[0] = min(entry[0], offset)
            entry[1] += count
    # Builds of earlier versions did not count.
    read = counts.get("bytes", manifest["corpus"]["num_bytes"])
    return corpora.told_invalid(invalid, read)


def _lost_letters(manifest: dict[str, Any]) -> list[str]:
    jobs = manifest["jobs"].values()
    scripts = sum_of_scripts(job.get("scripts", {}) for job in jobs)
    settings = manifest["settings"]
    casing = (settings["do_lower_case"], settings["strip_accents"])
    return stripping_warnings(scripts, casing, _REMEDIES)


# The flags of the two programs that build.

ORIGINAL_FLAGS = (
    *("--max_seq_length", "--num_processes"),
    *("--do_lower_case", "--no_lower_case"),
    *("--do_strip_accents", "--no_strip_accents"),
)
PLACES = ("corpus", "vocab_file", "output_dir")


def add_corpus_flags(parser: flags.FlagParser) -> None:
    """Adds what chooses among kinds of corpora."""
    flags.add_field_flags(
        parser, corpora.Corpus, skip=("path", "blanks_separate_docs")
    )


def corpus_from(args: argparse.Namespace) -> corpora.Corpus:
    """Collects parsed flags; a TFDS data set needs only its name."""
    corpus = corpora.Corpus(
        args.corpus_dir or "", **given_fields(corpora.Corpus, args)
    )
    if corpus.tfds_name and corpus.corpus_format == "auto":
        return dataclasses.replace(corpus, corpus_format="tfds")
    return corpus


def options_from(args: argparse.Namespace, **places: Any) -> BuildOptions:
    """Collects parsed flags."""
    return BuildOptions(**{**given_fields(BuildOptions, args), **places})


def given_fields(
    fields_class: type, args: argparse.Namespace
) -> dict[str, Any]:
    """The fields that flags of a command line set."""
    names = [field.name for field in dataclasses.fields(fields_class)]
    return {n: getattr(args, n) for n in names if hasattr(args, n)}
