# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads a config class's comments, so that `--help` says what the code says.

The conventions, inside a dataclass body:

  # ---- Section ----            starts a section
  # Text right below it          introduces the section
  # Text above a field           belongs to that field
  name: int = 3  # text          and so does this
"""

import functools
import inspect
import re
from typing import Any, NamedTuple

_SECTION = re.compile(r"^    # -{4} (?P<title>.+) -{4}$")
_COMMENT = re.compile(r"^    # (?P<text>.*)$")
_FIELD = re.compile(r"^    (?P<name>[a-z]\w*): ")


class Section(NamedTuple):
    """One headed group of fields.

    Attributes:
      title: the heading.
      intro: text below the heading, may be empty.
      notes: field name to its comment, in the order declared.
    """

    title: str
    intro: str
    notes: dict[str, str]


@functools.cache
def read_sections(config_class: type[Any]) -> tuple[Section, ...]:
    """Returns the sections of a config class.

    Args:
      config_class: a dataclass whose source can be read.

    Returns:
      Its sections, in the order of the source. Without source (a frozen
      application) there are none.
    """
    try:
        lines = inspect.getsource(config_class).splitlines()
    except (OSError, TypeError):
        return ()
    sections: list[Section] = []
    pending: list[str] = []
    below_heading = False
    for line in lines:
        if heading := _SECTION.match(line):
            sections.append(Section(heading["title"], "", {}))
            pending, below_heading = [], True
        elif not sections:
            continue
        elif comment := _COMMENT.match(line):
            if below_heading:
                last = sections[-1]
                intro = f"{last.intro} {comment['text']}".strip()
                sections[-1] = last._replace(intro=intro)
            else:
                pending.append(comment["text"])
        else:
            below_heading = False
            if field := _FIELD.match(line):
                _, _, trailing = line.partition("  # ")
                note = " ".join([*pending, trailing]).strip()
                sections[-1].notes[field["name"]] = note
                pending = []
            elif line.startswith("    def "):
                break
    return tuple(sections)
