# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Extract French prose from a Debian package, with names as CoNLL columns.

  python text.py HTML_DIR CORPUS_FILE NER_DIR

The text is the Debian Handbook (GPL-2+ or CC BY-SA 3.0), with one sentence per
line and one document per page. People label the real data of a tagger; here a
rule replaces them: a capital inside a sentence begins a name (NOM), digits are
a number (NUM).
"""

import html.parser
import pathlib
import re
import sys

SKIPPED = {"script", "style", "pre", "title", "nav"}
BLOCKS = {"p", "li", "h1", "h2", "h3", "td", "dd", "dt", "div"}
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-ZÀÂÇÉÈÊÎÔ«])")
WORD = re.compile(r"\w+(?:[-.]\w+)*|[^\w\s]")


class Prose(html.parser.HTMLParser):
    """Collector of the text of paragraphs."""

    def __init__(self) -> None:
        """Start an empty page."""
        super().__init__()
        self.blocks, self._skipped = [""], 0

    def handle_starttag(self, tag: str, attrs: list) -> None:
        """Begin a paragraph, or skip code and scripts."""
        self._skipped += tag in SKIPPED
        if tag in BLOCKS:
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        """End a paragraph."""
        self._skipped -= tag in SKIPPED
        if tag in BLOCKS:
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        """Append text to the paragraph."""
        if not self._skipped:
            self.blocks[-1] += data


def sentences(page: pathlib.Path) -> list[str]:
    """Return the sentences of at least 6 words in a page's paragraphs."""
    prose = Prose()
    prose.feed(page.read_text(encoding="utf-8"))
    blocks = (" ".join(block.split()) for block in prose.blocks)
    lines = (line for b in blocks if "." in b for line in SENTENCE.split(b))
    return [line for line in lines if len(line.split()) >= 6]


def tags(line: str) -> list[tuple[str, str]]:
    """Return (word, tag) pairs in IOB2."""
    pairs, last = [], "O"
    for i, word in enumerate(WORD.findall(line)):
        kind = "O"
        if word[0].isdigit():
            kind = "NUM"
        elif i and word[0].isupper() and pairs[-1][0] not in ".:«!?":
            kind = "NOM"
        prefix = "I" if kind == last else "B"
        pairs.append((word, "O" if kind == "O" else f"{prefix}-{kind}"))
        last = kind
    return pairs


def main(html_dir: str, corpus: str, ner: str) -> None:
    """Write the corpus, and four of five documents for the tagger."""
    pages = sorted(pathlib.Path(html_dir).glob("*.html"))
    # Two pages may share a section, so each sentence is used once.
    seen: set[str] = set()
    documents = []
    for page in pages:
        new = [s for s in sentences(page) if s not in seen]
        seen.update(new)
        if len(new) > 2:
            documents.append(new)
    text = "\n\n".join("\n".join(lines) for lines in documents)
    pathlib.Path(corpus).write_text(text + "\n", encoding="utf-8")
    for split, folds in (("train", range(1, 4)), ("dev", range(4, 5))):
        blocks = [
            "\n".join(f"{word} {tag}" for word, tag in tags(line))
            for i, lines in enumerate(documents)
            if i % 5 in folds
            for line in lines
        ]
        target = pathlib.Path(ner, f"{split}.txt")
        target.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    print(f"{len(documents)} documents, {len(seen):,} sentences")


if __name__ == "__main__":
    main(*sys.argv[1:])
