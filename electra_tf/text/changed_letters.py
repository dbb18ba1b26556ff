# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts of letters that lower-casing and accent stripping change.

To strip accents, text is decomposed (NFD) and its nonspacing marks are deleted.
English loses nothing. Hindi and Thai lose vowel signs, Japanese loses voicing
marks, Vietnamese loses tones, and Hangul syllables become several characters.
The changes are computed for each character, so the counts are exact for
every script of Unicode.
"""

import collections
import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from electra_tf.text.characters import is_accent

# A warning is printed for each script that has at least this share of all
# letters, if at least this share of the script's letters changes.
SHARE = 0.01
LATIN = "Latin"
TURKISH = "the Turkish i"
# Vietnamese marks that distinguish words and not only pronunciations: hook
# above, horn and dot below. Two marks on a letter distinguish words, too.
_TONE_MARKS = frozenset("\u0309\u031b\u0323")
_TURKISH_LETTERS = frozenset("İı")
_SCRIPTS = {
    "HIRAGANA": "Japanese kana",
    "KATAKANA": "Japanese kana",
    "CJK": "Chinese characters",
}
_WIDTHS = ("FULLWIDTH", "HALFWIDTH")
_EXAMPLES = 3  # number of characters that a warning lists

# For each script, the number of letters (`letters`), the number of changed
# letters (`changed`), and the counts of the most frequent changed characters
# (`characters`). Manifests contain this dictionary as JSON.
Scripts = dict[str, dict[str, Any]]


def normalized(char: str, do_lower_case: bool, strip_accents: bool) -> str:
    """Return a letter after lower-casing and accent stripping."""
    if not do_lower_case:
        return char
    lower = char.lower()
    if not strip_accents:
        return lower
    decomposed = unicodedata.normalize("NFD", lower)
    return "".join(part for part in decomposed if not is_accent(part))


def script_of(char: str) -> str:
    """Return the name of a letter's script, or "" for a combining mark."""
    parts = re.split("[ -]", unicodedata.name(char, ""))
    script = parts[1] if parts[0] in _WIDTHS else parts[0]
    if script == "COMBINING":
        return ""
    return _SCRIPTS.get(script, script.capitalize())


@functools.lru_cache(maxsize=1 << 16)
def _changes(
    char: str, do_lower_case: bool, strip_accents: bool
) -> tuple[tuple[str, bool], ...]:
    """Return for each script of a letter whether the letter changes."""
    if unicodedata.category(char)[0] not in "LM":
        return ()
    script = script_of(char)
    if not script:
        return ()
    lower = char.lower() if do_lower_case else char
    changes = normalized(char, do_lower_case, strip_accents) != lower
    if script != LATIN:
        return ((script, changes),)
    marks = [c for c in unicodedata.normalize("NFD", char) if is_accent(c)]
    tonal = len(marks) > 1 or not _TONE_MARKS.isdisjoint(marks)
    groups = [(LATIN, changes and tonal)]
    if char in _TURKISH_LETTERS:
        groups.append((TURKISH, do_lower_case and char == "İ"))
    return tuple(groups)


class ScriptCounter:
    """Counter of the characters of texts, with totals by script."""

    def __init__(self, do_lower_case: bool, strip_accents: bool) -> None:
        self._casing = (do_lower_case, strip_accents)
        self._characters: collections.Counter[str] = collections.Counter()

    def add(self, text: str, count: int = 1) -> None:
        """Count a text that occurs `count` times."""
        # NFC joins a letter and its marks into one character where possible, so
        # that the letter is counted together with its marks.
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        if count == 1:
            self._characters.update(text)
            return
        for char in text:
            self._characters[char] += count

    def scripts(self) -> Scripts:
        """Return the counts of all scripts, sorted by name."""
        scripts: Scripts = {}
        for char, count in self._characters.items():
            for script, changes in _changes(char, *self._casing):
                entry = scripts.setdefault(script, _no_counts())
                entry["letters"] += count
                if changes:
                    entry["changed"] += count
                    entry["characters"][char] = count
        return _sorted_with_examples(scripts)


def _no_counts() -> dict[str, Any]:
    return {"letters": 0, "changed": 0, "characters": {}}


def _sorted_with_examples(scripts: Scripts) -> Scripts:
    """Sort scripts by name, and keep each script's most frequent characters."""
    for entry in scripts.values():
        entry["characters"] = _most_frequent(entry["characters"])
    return dict(sorted(scripts.items()))


def _most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[:_EXAMPLES])


def sum_of_scripts(parts: Iterable[Scripts]) -> Scripts:
    """Return the sums of the counts of several texts."""
    total: Scripts = {}
    for part in parts:
        for script, counts in part.items():
            entry = total.setdefault(script, _no_counts())
            entry["letters"] += counts["letters"]
            entry["changed"] += counts["changed"]
            for char, count in counts["characters"].items():
                previous = entry["characters"].get(char, 0)
                entry["characters"][char] = previous + count
    return _sorted_with_examples(total)


def stripping_warnings(
    scripts: Scripts, casing: tuple[bool, bool], remedies: Mapping[str, str]
) -> list[str]:
    """Return a warning for each script with too many changed letters.

    Args:
      scripts: counts that were computed with `casing`.
      casing: values of do_lower_case and strip_accents.
      remedies: for each hparam, a sentence that names the flag to set.
    """
    total = sum(c["letters"] for s, c in scripts.items() if s != TURKISH)
    warnings = []
    for script, counts in scripts.items():
        letters, changed = counts["letters"], counts["changed"]
        if letters < SHARE * total or changed < max(1, SHARE * letters):
            continue
        shown = ", ".join(
            _shown(char, normalized(char, *casing))
            for char in counts["characters"]
        )
        if script == TURKISH:
            change = f"Lower-casing changes {TURKISH}"
            shown += "; I becomes i, not \u0131"
            remedy = remedies["do_lower_case"]
        else:
            change = (
                f"Stripping accents changes {changed / letters:.1%} of the"
                f" letters of {script}"
            )
            remedy = remedies["strip_accents"]
        warnings.append(
            f"{change} ({changed:,} of {letters:,} counted: {shown})."
            f" {remedy} See docs/own_language.md."
        )
    return warnings


def _shown(char: str, result: str) -> str:
    # A mark without a letter is printed on a dotted circle.
    if is_accent(char):
        char = f"\u25cc{char}"
    if not result:
        return f"{char} is lost"
    if len(result) > 1 and script_of(result[0]) == "Hangul":
        return f"{char} becomes {len(result)} jamo"
    return f"{char} becomes {result}"
