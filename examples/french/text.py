# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""French prose from a Debian package, and names in it as CoNLL columns.

  python text.py HTML_DIR CORPUS_FILE NER_DIR

The Debian Handbook (GPL-2+ or CC BY-SA 3.0), one sentence a line, one page a
document. A tagger's data needs people; here a rule stands in for them: a
capital inside a sentence begins a name (NOM), digits are a number (NUM).
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
    """Collects the text of paragraphs."""

    def __init__(self) -> None:
        """Starts an empty page."""
        super().__init__()
        self.blocks, self._skipped = [""], 0

    def handle_starttag(self, tag: str, attrs: list) -> None:
        """A paragraph begins; code and scripts are no prose."""
        self._skipped += tag in SKIPPED
        if tag in BLOCKS:
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        """What follows a paragraph is another one."""
        self._skipped -= tag in SKIPPED
        if tag in BLOCKS:
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        """Adds running text."""
        if not self._skipped:
            self.blocks[-1] += data


def sentences(page: pathlib.Path) -> list[str]:
    """The sentences of a page: of paragraphs with a full stop, 6 words on."""
    prose = Prose()
    prose.feed(page.read_text(encoding="utf-8"))
    blocks = (" ".join(block.split()) for block in prose.blocks)
    lines = (line for b in blocks if "." in b for line in SENTENCE.split(b))
    return [line for line in lines if len(line.split()) >= 6]


def tags(line: str) -> list[tuple[str, str]]:
    """(word, tag) pairs in IOB2."""
    pairs, last = [], "O"
    for i, word in enumerate(WORD.findall(line)):
        kind = "O"
        if word[0].isdigit():
            kind = "NUM"
        elif i and word[0].isupper() and pairs[-1][0] not in ".:«!?":
            kind = "NOM"
        inside = kind == last and kind != "O"
        pairs.append((word, "O" if kind == "O" else "BI"[inside] + "-" + kind))
        last = kind
    return pairs


def main(html_dir: str, corpus: str, ner: str) -> None:
    """Writes the corpus, and sentences of four in five for the tagger."""
    pages = sorted(pathlib.Path(html_dir).glob("*.html"))
    # The same page may be cut at two depths: a sentence counts once.
    seen: set[str] = set()
    documents = []
    for page in pages:
        new = [s for s in sentences(page) if s not in seen]
        seen.update(new)
        if len(new) > 2:
            documents.append(new)
    text = "\n\n".join("\n".join(lines) for lines in documents)
    pathlib.Path(corpus).write_text(text + "\n", encoding="utf-8")
    for split, kept in (("train", range(1, 4)), ("dev", range(4, 5))):
        blocks = [
            "\n".join(f"{word} {tag}" for word, tag in tags(line))
            for i, lines in enumerate(documents)
            if i % 5 in kept
            for line in lines
        ]
        target = pathlib.Path(ner, f"{split}.txt")
        target.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    print(f"{len(documents)} documents, {len(seen):,} sentences")


if __name__ == "__main__":
    main(*sys.argv[1:])
