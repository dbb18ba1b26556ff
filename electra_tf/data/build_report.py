# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a build tells its user before and after, in one screen."""

from typing import Any

from electra_tf.data.corpora import Listing
from electra_tf.data.example_writer import BuildOptions

# Fewer examples than this in a shard make training crawl from file to file.
_EXAMPLES_PER_SHARD = 100
_NAMES_SHOWN = 5


def warnings_before(options: BuildOptions, listing: Listing) -> list[str]:
    """Warnings that need no reading.

    Args:
      options: of the build.
      listing: the files of the corpus.

    Returns:
      Lines to show; empty if all is well.
    """
    lines = []
    if listing.nested_directories:
        names = _some(listing.nested_directories)
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
    """The closing report.

    Args:
      manifest: of a complete build.
      seconds: how long this run took; 0 leaves it out.

    Returns:
      Lines to show.
    """
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


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    rest = len(names) - _NAMES_SHOWN
    return shown + (f" and {rest} more" if rest > 0 else "")
