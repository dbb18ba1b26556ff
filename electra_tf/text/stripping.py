# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts the letters that lower-casing and accent stripping change.

To strip accents, text is decomposed (NFD) and its nonspacing marks are left
out. In English that costs nothing, elsewhere letters: the vowel signs of Hindi
and Thai, the voicing marks of Japanese, the tones of Vietnamese; and Hangul
syllables come apart. What a character becomes is computed from the character,
so that the counts hold for every script of Unicode.
"""

import collections
import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from electra_tf.text.tokenization import is_accent

# A warning needs a script of at least this share of the letters, of which at
# least this share changes.
SHARE = 0.01
LATIN = "Latin"
TURKISH = "the Turkish i"
# Marks that tell words apart and not just their pronunciation: hook above, horn
# and dot below. So do two marks on one letter.
_TONE_MARKS = frozenset("\u0309\u031b\u0323")
_TURKISH_LETTERS = frozenset("İı")
_SCRIPTS = {
    "HIRAGANA": "Japanese kana",
    "KATAKANA": "Japanese kana",
    "CJK": "Chinese characters",
}
_WIDTHS = ("FULLWIDTH", "HALFWIDTH")
_EXAMPLES = 3  # characters that a warning shows

# By script: `letters`, `changed`, and `characters`, the commonest changed ones
# with their counts. It is kept in JSON.
Scripts = dict[str, dict[str, Any]]


def normalized(char: str, do_lower_case: bool, strip_accents: bool) -> str:
    """Return what tokenization makes of a letter."""
    if not do_lower_case:
        return char
    lower = char.lower()
    if not strip_accents:
        return lower
    decomposed = unicodedata.normalize("NFD", lower)
    return "".join(part for part in decomposed if not is_accent(part))


def script_of(char: str) -> str:
    """Return the name of a letter's script, "" for marks of all scripts."""
    words = re.split("[ -]", unicodedata.name(char, ""))
    if words[0] in _WIDTHS:
        words = words[1:]
    if words[0] == "COMBINING":
        return ""
    return _SCRIPTS.get(words[0], words[0].capitalize())


@functools.lru_cache(maxsize=1 << 16)
def _changes(
    char: str, do_lower_case: bool, strip_accents: bool
) -> tuple[tuple[str, bool], ...]:
    """Return the groups that count a character: (script, does it change)."""
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
    """Counts characters of text, and sums them up by script."""

    def __init__(self, do_lower_case: bool, strip_accents: bool) -> None:
        self._casing = (do_lower_case, strip_accents)
        self._characters: collections.Counter[str] = collections.Counter()

    def add(self, text: str, count: int = 1) -> None:
        """Count a text, which occurs `count` times."""
        # Marks that follow their letter are one character with it.
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        if count == 1:
            self._characters.update(text)
            return
        for char in text:
            self._characters[char] += count

    def scripts(self) -> Scripts:
        """Return the counts of every script, in the order of their names."""
        found: Scripts = {}
        for char, count in self._characters.items():
            for script, changes in _changes(char, *self._casing):
                empty = {"letters": 0, "changed": 0, "characters": {}}
                entry = found.setdefault(script, empty)
                entry["letters"] += count
                if changes:
                    entry["changed"] += count
                    entry["characters"][char] = count
        for entry in found.values():
            entry["characters"] = _commonest(entry["characters"])
        return dict(sorted(found.items()))


def _commonest(counts: Mapping[str, int]) -> dict[str, int]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[:_EXAMPLES])


def sum_of_scripts(parts: Iterable[Scripts]) -> Scripts:
    """Add up the counts of several texts."""
    found: Scripts = {}
    for part in parts:
        for script, counts in part.items():
            empty = {"letters": 0, "changed": 0, "characters": {}}
            entry = found.setdefault(script, empty)
            entry["letters"] += counts["letters"]
            entry["changed"] += counts["changed"]
            for char, count in counts["characters"].items():
                known = entry["characters"].get(char, 0)
                entry["characters"][char] = known + count
    for entry in found.values():
        entry["characters"] = _commonest(entry["characters"])
    return dict(sorted(found.items()))


def stripping_warnings(
    scripts: Scripts, casing: tuple[bool, bool], remedies: Mapping[str, str]
) -> list[str]:
    """Return a warning for each script of which too much changes.

    Args:
      scripts: the counts, made with this casing.
      casing: do_lower_case, strip_accents.
      remedies: by the name of the hparam, a sentence with the switch to set.
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
            what = f"Lower-casing changes {TURKISH}"
            shown += "; I becomes i, not \u0131"
            remedy = remedies["do_lower_case"]
        else:
            what = f"Stripping accents changes {changed / letters:.1%} of the"
            what += f" letters of {script}"
            remedy = remedies["strip_accents"]
        warnings.append(
            f"{what} ({changed:,} of {letters:,} counted: {shown}). {remedy}"
            " See docs/own_language.md."
        )
    return warnings


def _shown(char: str, result: str) -> str:
    # A mark by itself needs something to stand on.
    if is_accent(char):
        char = f"\u25cc{char}"
    if not result:
        return f"{char} is lost"
    if len(result) > 1 and script_of(result[0]) == "Hangul":
        return f"{char} becomes {len(result)} jamo"
    return f"{char} becomes {result}"
