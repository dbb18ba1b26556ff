# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Warnings of a build, and its closing report."""

from collections import Counter
from typing import Any

from configure.formatting import join_names
from electra_tf.data import corpora
from electra_tf.data.build_options import BuildOptions
from electra_tf.data.corpora import Listing
from electra_tf.text.changed_letters import stripping_warnings, sum_of_scripts

_REMEDIES = {
    "do_lower_case": "Pass --no-lower-case to build_vocab and to this program,"
    " and --do_lower_case=false to run_pretraining.py.",
    "strip_accents": "Pass --no-strip-accents to build_vocab and to this"
    " program, and --strip_accents=false to run_pretraining.py.",
}
# Minimum number of examples per shard. With fewer examples per shard, training
# spends most of its time opening files.
_EXAMPLES_PER_SHARD = 100


def warnings_before(options: BuildOptions, listing: Listing) -> list[str]:
    """Return the warnings about options and files to print before a build."""
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
            f"WARNING: there are {num_files} files for {options.num_processes}"
            " processes, so some processes are idle. Pass --draws=document to"
            " split files at document boundaries."
        )
    if options.draws == "document" and options.num_shards == 1:
        lines.append(
            "WARNING: num_shards is 1, so only one process can write."
            " Raise --num_shards."
        )
    return lines


def summary(manifest: dict[str, Any], seconds: float = 0.0) -> list[str]:
    """Return the lines of the closing report: counts, time, warnings.

    Args:
      manifest: manifest of a complete build.
      seconds: duration of the build; 0: not reported.
    """
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
    warnings = []
    useful = max(1, counts["examples"] // _EXAMPLES_PER_SHARD)
    if settings["num_shards"] > useful:
        empty = max(0, settings["num_shards"] - counts["examples"])
        emptiness = f" (at least {empty} shards are empty)" if empty else ""
        warnings.append(
            f"{settings['num_shards']} shards for {counts['examples']:,}"
            f" examples are too many{emptiness}. More than {useful} shards do"
            f" not speed up training. Pass --num_shards={useful}."
        )
    if counts["tokens_dropped"] > 0.01 * counts["tokens"]:
        warnings.append(
            f"{counts['tokens_dropped']:,} tokens at the ends of lines did not"
            " fit into examples and were dropped, as in the original. Pass"
            " --split_long_lines to keep these tokens."
        )
    if counts["unknown_tokens"] > 0.05 * counts["tokens"]:
        warnings.append(
            "more than 5% of the tokens are [UNK]. Check that the vocabulary"
            " and --do-lower-case fit the text."
        )
    if settings["held_out_fraction"] and not counts["held_out_examples"]:
        warnings.append(
            "held_out_fraction selected no document. Raise --held_out_fraction"
            ", or add documents."
        )
    warnings += _stripping_warnings(manifest)
    warnings += invalid_bytes(manifest)
    return [f"WARNING: {line}" for line in warnings]


def invalid_bytes(manifest: dict[str, Any]) -> list[str]:
    """Return the lines of a warning about invalid UTF-8 that jobs skipped."""
    invalid: dict[str, list[int]] = {}
    counts: Counter = Counter()
    for job in manifest["jobs"].values():
        counts.update(job["counts"])
        for name, (offset, count) in job["invalid"].items():
            entry = invalid.setdefault(name, [offset, 0])
            entry[0] = min(entry[0], offset)
            entry[1] += count
    # Manifests of earlier versions do not contain this count.
    bytes_read = counts.get("bytes", manifest["corpus"]["num_bytes"])
    return corpora.invalid_bytes_warning(invalid, bytes_read)


def _stripping_warnings(manifest: dict[str, Any]) -> list[str]:
    """Return warnings about scripts in which normalization changes letters."""
    jobs = manifest["jobs"].values()
    scripts = sum_of_scripts(job.get("scripts", {}) for job in jobs)
    settings = manifest["settings"]
    casing = (settings["do_lower_case"], settings["strip_accents"])
    return stripping_warnings(scripts, casing, _REMEDIES)
