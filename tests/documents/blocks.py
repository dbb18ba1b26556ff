# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Code blocks of documents: commands, Python, files, and their outputs.

- A `bash` or `python` block is executed.
- A `text` block is the output of the executed block before it. A line "..."
  stands for any lines, "..." inside of a line for any text. All else must be
  printed, in this order and without a line between, from the first line to
  the last one.
- A `json` block after a line that ends with a file's name and a colon is the
  content of this file.
- Blocks of other languages and without one are illustrations.

Two outputs are equal if they are after `normalized`: numbers may differ, for
sizes are smaller in tests and kernels of other processors round differently,
and so may white space and the lengths of bars and rules, which follow them.
"""

import dataclasses
import re

from tests.conftest import ROOT

NUMBER = re.compile(r"[-<]?\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?")
REPEATED = re.compile(r"([^\w\s.])\1+")
FENCE = re.compile(r"^ *```(\w*)$")


@dataclasses.dataclass
class Block:
    """A block that is executed, or the content of a file."""

    language: str
    line: int  # number of the block's first line in the document
    text: str
    file: str = ""  # name of the file that the block fills
    output: str | None = None


def blocks_of(document):
    """Return the blocks of a document that tests execute or write."""
    blocks, lines, fence = [], [], None
    previous = ""
    text = (ROOT / document).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if fence is None and match:
            fence, lines = (match[1], number + 1), []
        elif fence is not None and line.strip() == "```":
            language, start = fence
            content = "\n".join(lines) + "\n"
            name = re.search(r"`([\w/.]+)`:$", previous)
            if language in ("bash", "python"):
                blocks.append(Block(language, start, content))
            elif language == "json" and name:
                blocks.append(Block(language, start, content, name[1]))
            elif language == "text":
                blocks[-1].output = content
            fence = None
        elif fence is not None:
            lines.append(line)
        elif line.strip():
            previous = line.rstrip()
    return blocks


def normalized(line):
    """Return a line without numbers, repeated marks and white space."""
    line = REPEATED.sub(r"\1", NUMBER.sub("0", line))
    return " ".join(line.split())


def normalized_lines(text):
    """Return the normalized lines of a text, without blank ones."""
    lines = [normalized(line) for line in text.splitlines()]
    return [line for line in lines if line]


def pattern_of(shown):
    """Return a regular expression of the lines of an output."""
    pattern = ""
    for line in normalized_lines(shown):
        if line == "...":
            pattern += r"(?:.*\n)*"
        else:
            parts = [re.escape(part) for part in line.split("...")]
            pattern += ".*".join(parts) + r"\n"
    return pattern


def difference(shown, printed):
    """Return the difference of an output from the output shown, or ""."""
    lines = normalized_lines(printed)
    if re.fullmatch(pattern_of(shown), "".join(f"{line}\n" for line in lines)):
        return ""
    for line in normalized_lines(shown):
        parts = [re.escape(part) for part in line.split("...")]
        pattern = ".*".join(parts)
        if line != "..." and not any(re.fullmatch(pattern, p) for p in lines):
            return f"not printed: {line}"
    return "the lines are printed in another order, or with others between"
