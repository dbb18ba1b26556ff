# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The index of a folder of texts: passages, and BM25 scores of their terms."""

import contextlib
import functools
import hashlib
import itertools
import json
import logging
import os
import tempfile
import tokenize
import unicodedata
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from configure.errors import UserError, missing_extra
from electra_tf.extras.ask.passages import SourcePassage, read_passages
from electra_tf.extras.ask.text_folder import find_texts
from electra_tf.files.atomic import part_folder
from electra_tf.files.digests import file_digest
from electra_tf.text.measured_words import (
    VERSION,
    split_into_terms,
    split_into_words,
)

# Script -> the language whose stemming rules apply to words in the script,
# unless --language names another language of this script.
_LANGUAGES = {
    "ARABIC": "arabic",
    "ARMENIAN": "armenian",
    "CYRILLIC": "russian",
    "DEVANAGARI": "hindi",
    "GREEK": "greek",
    "TAMIL": "tamil",
}
# Further languages that have a stemmer, and the scripts of these languages.
_SAME_SCRIPT = {"nepali": "DEVANAGARI", "serbian": "CYRILLIC"}
_FORMAT_VERSION = 3
# Names of the parts of an index file that this module writes; bm25s writes the
# other parts.
_ABOUT, _PASSAGES = "about.json", "passages.jsonl"
# The errors of reading an index file that is damaged or has another format. An
# ImportError means that bm25s is missing; making a new index then raises the
# error that names the extra.
_UNUSABLE = (
    zipfile.BadZipFile,
    KeyError,
    ValueError,
    EOFError,
    ImportError,
    OSError,
    RuntimeError,
    TypeError,
    AttributeError,
    IndexError,
    SyntaxError,  # raised for damaged NumPy headers, as is TokenError
    tokenize.TokenError,
    RecursionError,
)


class PassageIndex:
    """The passages of a corpus, and the BM25 scores of their terms.

    Terms are words, or pairs of letters in scripts without spaces; see
    `text.measured_words.split_into_terms`.
    """

    def __init__(
        self, passages: list[SourcePassage], language: str, searcher: Any = None
    ) -> None:
        """Index the passages, or use a searcher that has already indexed them.

        Args:
          passages: passages with at least one word each.
          language: the language of the stemmer; "none": words are not stemmed.
          searcher: the `bm25s.BM25` of an index file; None: make a new one.

        Raises:
          UserError: the language has no stemmer, or the extra is missing.
        """
        try:
            import bm25s
            import Stemmer
        except ImportError as error:
            packages = "bm25s or PyStemmer, which ask needs,"
            raise missing_extra(packages, "ask", error) from None
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        if language not in (known := ["none", *Stemmer.algorithms()]):
            raise UserError(
                f"--language={language}: expected one of"
                f" {', '.join(known)}. Pass one of these languages."
            )
        self.passages = passages
        self._language = language
        self._stemmers = {}
        if language != "none":
            for name in (language, *_LANGUAGES.values()):
                self._stemmers[name] = Stemmer.Stemmer(name)
        self._stem = functools.lru_cache(2**16)(self._stem)
        # Digest of the indexed texts; `open_index` sets it.
        self.texts_digest = ""
        self.searcher = searcher or bm25s.BM25()
        if searcher is None:
            terms = [self._split(source.passage) for source in passages]
            self.searcher.index(terms, show_progress=False)

    def search(self, question: str, count: int) -> list[tuple[int, float]]:
        """Return the passages that share terms with a question, best first.

        Args:
          question: the text of the question.
          count: the maximum number of passages.

        Returns:
          Indices into `passages`, with scores above 0.
        """
        vocabulary = self.searcher.vocab_dict
        terms = [term for term in self._split(question) if term in vocabulary]
        if not terms:
            return []
        scores = self.searcher.get_scores(terms)
        best = np.argsort(-scores, kind="stable")[:count]
        return [(int(i), float(scores[i])) for i in best if scores[i] > 0]

    def _split(self, text: str) -> list[str]:
        """Split a text into terms, and stem its words unless stemming is off.

        Stop words are kept, because a question may contain no other words.
        """
        pairs = split_into_terms(text)
        if not self._stemmers:
            return [term for term, _ in pairs]
        return [
            self._stem(term) if is_word else term for term, is_word in pairs
        ]

    def _stem(self, word: str) -> str:
        language = self._language
        if not word.isascii():
            language = _stemming_language(word[0], language)
        return self._stemmers[language].stemWord(word)


@functools.lru_cache(2**12)
def _stemming_language(letter: str, language: str) -> str:
    """Return the language whose rules stem words that begin with `letter`."""
    script = unicodedata.name(letter, "").partition(" ")[0]
    if _SAME_SCRIPT.get(language) == script:
        return language
    return _LANGUAGES.get(script, language)


def open_index(
    corpus: str, path: str, language: str, report: Callable[[str], None]
) -> PassageIndex:
    """Load the index of a folder, or make a new index if the file is unusable.

    An existing file is used if its digests are those of the current texts and
    all its parts are intact. Otherwise the new index is written to the file.

    Args:
      corpus: a folder of texts, or one text.
      path: the index file, outside the folder.
      language: see `PassageIndex`.
      report: called with a line for each kind of skipped file, and with a line
        if an index is made.

    Raises:
      UserError: the corpus has no passage, or a file cannot be read or written.
    """
    folder = find_texts(corpus)
    for line in folder.report():
        report(line)
    texts = folder.paths
    if os.path.abspath(path).startswith(
        os.path.join(os.path.abspath(corpus), "")
    ):
        raise UserError(
            f"{path}: the index is inside the folder of texts; expected a path"
            " outside this folder. Pass another --index."
        )
    about = {
        "version": _FORMAT_VERSION,
        "words": VERSION,
        "language": language,
        "files": {name: file_digest(text) for name, text in texts.items()},
    }
    digest = _json_sha256(about["files"])
    if os.path.exists(path) and (index := _load(path, about)):
        index.texts_digest = digest
        return index
    passages = [
        source
        for source in itertools.chain.from_iterable(
            itertools.starmap(read_passages, texts.items())
        )
        if split_into_words(source.passage)
    ]
    if not passages:
        raise UserError(
            f"{corpus}: found no passage in {len(texts)} files; expected text"
            " files, JSON lines (.jsonl) or SQuAD's format (.json). Pass"
            " another folder."
        )
    index = PassageIndex(passages, language)
    index.texts_digest = digest
    _save(path, about, index)
    report(
        f"{path}: indexed {len(passages):,} passages of {len(texts):,} files"
    )
    return index


def _json_sha256(value: Any) -> str:
    """Return the SHA-256 of a value's JSON."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _load(path: str, about: dict[str, Any]) -> PassageIndex | None:
    """Return the index in a file; None if the file is damaged or outdated."""
    with contextlib.suppress(*_UNUSABLE), zipfile.ZipFile(path) as packed:
        if json.loads(packed.read(_ABOUT)) != about:
            return None
        rows = packed.read(_PASSAGES).splitlines()
        passages = [SourcePassage(*json.loads(row)) for row in rows]
        import bm25s

        with tempfile.TemporaryDirectory() as folder:
            # A wrong checksum raises BadZipFile here.
            packed.extractall(folder)
            searcher = bm25s.BM25.load(folder)
        if all(map(_has_types, passages)) and _fits(searcher, len(passages)):
            index = PassageIndex(passages, about["language"], searcher)
            # bm25s reads some settings only at a search, so this search checks
            # them.
            index.search(passages[0].passage, 1)
            return index
    return None


def _has_types(source: SourcePassage) -> bool:
    """Return whether the fields of a stored passage have the right types."""
    return (
        isinstance(source.passage, str)
        and isinstance(source.file, str)
        and isinstance(source.id, str)
        and (source.line is None or type(source.line) is int)
    )


def _fits(searcher: Any, passages: int) -> bool:
    """Return whether a searcher has valid scores for all passages.

    Args:
      searcher: the searcher, read from a file.
      passages: the number of passages.
    """
    scores, offsets = searcher.scores["data"], searcher.scores["indptr"]
    indices = searcher.scores["indices"]
    terms = dict(searcher.vocab_dict)
    terms.pop("", None)  # bm25s adds this term, which no text contains
    return (
        searcher.scores["num_docs"] == passages
        and scores.shape == indices.shape
        and np.isfinite(scores).all()
        and offsets[0] == 0
        and offsets[-1] == len(indices)
        and (np.diff(offsets) >= 0).all()
        and (indices >= 0).all()
        and (indices < passages).all()
        and all(0 <= term < len(offsets) - 1 for term in terms.values())
    )


def _save(path: str, about: dict[str, Any], index: PassageIndex) -> None:
    """Write an index file, which gets its name once it is complete."""
    rows = "".join(f"{json.dumps(passage)}\n" for passage in index.passages)
    try:
        with part_folder(
            path, os.path.dirname(os.path.abspath(path))
        ) as folder:
            parts = os.path.join(folder, "parts")
            whole = os.path.join(folder, "whole")
            index.searcher.save(parts)
            with zipfile.ZipFile(whole, "w") as packed:
                packed.writestr(_ABOUT, json.dumps(about))
                packed.writestr(_PASSAGES, rows)
                for name in sorted(os.listdir(parts)):
                    packed.write(os.path.join(parts, name), name)
            os.replace(whole, path)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written: {error.strerror}. Pass another"
            " --index."
        ) from error
