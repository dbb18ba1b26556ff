# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers from a folder of texts: BM25 finds passages, a model reads them."""

import contextlib
import functools
import itertools
import json
import logging
import os
import re
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from configure.errors import UserError, missing_extra
from configure.formatting import join_names, shorten
from electra_tf.data import tables, values
from electra_tf.extras.ask.text_folder import find_texts
from electra_tf.files.atomic import part_folder
from electra_tf.files.digests import file_digest
from electra_tf.files.lines import LineReader
from electra_tf.finetuning import questions
from electra_tf.finetuning.question_answering import QATask
from electra_tf.finetuning.row_report import RowReport
from electra_tf.metrics.matching import answer_encoder
from electra_tf.metrics.question_answering import exact_match, f1_score
from electra_tf.prediction.predictor import Predictor
from electra_tf.text.measured_words import (
    SPACELESS_LETTERS,
    VERSION,
    split_into_terms,
    split_into_words,
)

PASSAGE_WORDS = 200
RANKS = (1, 5, 20)  # How far down the gold passage is looked for.
_WEIGHTS = np.linspace(0.0, 1.0, 51)
_FOLDS = 5
NO_WORD = "no word of the question is in the index"
# In scripts without spaces each letter, with what stands on and behind it,
# counts as a word of a passage.
_LETTER = rf"(?!\d)(?=[{SPACELESS_LETTERS}])[^\W_]"
_WORD = re.compile(rf"\S(?:(?!{_LETTER})\S)*\s*")
_WORDS_OF_A_PASSAGE = re.compile(rf"(?:{_WORD.pattern}){{1,{PASSAGE_WORDS}}}")
# Whose stems words get of a script that --language is not written in.
_LANGUAGES = {
    "ARABIC": "arabic",
    "ARMENIAN": "armenian",
    "CYRILLIC": "russian",
    "DEVANAGARI": "hindi",
    "GREEK": "greek",
    "TAMIL": "tamil",
}
_SAME_SCRIPT = {"nepali": "DEVANAGARI", "serbian": "CYRILLIC"}
_TEXT_KEYS = ("text", "context", "passage")  # of a line of JSON
# What an index raises that cannot be used; without bm25s making one says so.
_UNUSABLE = (zipfile.BadZipFile, KeyError, ValueError, EOFError, ImportError)
_UNUSABLE += (OSError, RuntimeError, TypeError, AttributeError, IndexError)


class SourcePassage(NamedTuple):
    """A part of a text that may hold an answer."""

    file: str  # its name within the folder
    line: int | None  # where it starts, from 1; None in SQuAD's format
    id: str  # as the file has it; in SQuAD's format title/number
    passage: str


def check_question(question: Any, place: str) -> None:
    """Raises unless a question has words to look for."""
    if not isinstance(question, str) or not split_into_words(question):
        raise UserError(
            f"{place}: found {shorten(repr(question))}; expected a"
            " question with words"
        )


def read_passages(name: str, path: str) -> Iterator[SourcePassage]:
    """The passages of a file; one that is not named as JSON is text."""
    kind = os.path.splitext(re.sub(r"\.(gz|xz)$", "", name))[1].lower()
    if kind == ".json":
        yield from _read_squad(name, path)
    elif kind not in (".jsonl", ".ndjson"):
        yield from _cut_text(name, path)
    else:
        for line, row in tables.read_objects(path):
            texts = [row[n] for n in _TEXT_KEYS if isinstance(row.get(n), str)]
            if not texts:
                found = f"the keys {join_names(row)}"
                for key in _TEXT_KEYS:
                    if row.get(key) is not None:
                        found = f"{key} is {values.described(row[key])}"
                raise UserError(
                    f"{path}:{line}: found {found}; expected a text under"
                    f" {' or '.join(_TEXT_KEYS)}"
                )
            key = "" if row.get("id") is None else row["id"]
            yield SourcePassage(
                name, line, values.as_id(key) or str(key), texts[0]
            )


def _read_squad(name: str, path: str) -> Iterator[SourcePassage]:
    if not name.lower().endswith(".json"):
        raise UserError(
            f"{path}: packed; expected SQuAD's format unpacked (gunzip, unxz)"
        )
    for number, article in enumerate(questions.read_articles(path)[1]):
        try:
            title = article.get("title", number)
            texts = [one["context"] + "" for one in article["paragraphs"]]
        except (AttributeError, KeyError, TypeError):
            raise UserError(
                f"{path}: data[{number}]: found {shorten(article)};"
                " expected an article with paragraphs, each with a context"
            ) from None
        for place, text in enumerate(texts):
            yield SourcePassage(name, None, f"{title}/{place}", text)


def _cut_text(name: str, path: str) -> Iterator[SourcePassage]:
    """Cuts at blank lines, and where a passage would have too many words."""
    held: list[str] = []
    start = size = 0
    lines = itertools.chain(LineReader(path).texts(), [""])
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise UserError(
                f"{path}:{number}: found a byte 0, as in binary files; expected"
                " text"
            )
        for piece in _WORDS_OF_A_PASSAGE.findall(line) or [""]:
            words = len(_WORD.findall(piece))
            if held and (not words or size + words > PASSAGE_WORDS):
                yield SourcePassage(name, start, "", "\n".join(held))
                held, size = [], 0
            if words:
                start = start if held else number
                held.append(piece)
                size += words


class PassageIndex:
    """The passages of a corpus, and BM25's scores of each for each term.

    Terms are words, or pairs of letters in scripts without spaces; see
    `text.measured_words.split_into_terms`.
    """

    def __init__(
        self, passages: list[SourcePassage], language: str, searcher: Any = None
    ) -> None:
        """`searcher`: as it was kept; None makes it, which takes time."""
        try:
            import bm25s
            import Stemmer
        except ImportError as error:
            what = "ask needs bm25s and PyStemmer, one of which"
            raise missing_extra(what, "ask", error) from None
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        if language not in (known := ["none", *Stemmer.algorithms()]):
            raise UserError(
                f"--language={language}: expected one of {', '.join(known)}"
            )
        self.passages = passages
        self._stemmers = {
            name: Stemmer.Stemmer(name)
            for name in (language, *_LANGUAGES.values())
            if language != "none"
        }
        self._language = language
        self._stem = functools.lru_cache(2**16)(self._stem)
        self.searcher = searcher or bm25s.BM25()
        if searcher is None:
            terms = [self._split(one.passage) for one in passages]
            self.searcher.index(terms, show_progress=False)

    def search(self, question: str, count: int) -> list[tuple[int, float]]:
        """Return places and scores of passages that share terms, best first."""
        terms = [
            term
            for term in self._split(question)
            if term in self.searcher.vocab_dict
        ]
        if not terms:
            return []
        scores = self.searcher.get_scores(terms)
        best = np.argsort(-scores, kind="stable")[:count]
        return [(int(i), float(scores[i])) for i in best if scores[i] > 0]

    def _split(self, text: str) -> list[str]:
        """Return terms; stop words stay, as a question may have no others."""
        pairs = split_into_terms(text)
        if not self._stemmers:
            return [term for term, _ in pairs]
        return [self._stem(term) if whole else term for term, whole in pairs]

    def _stem(self, word: str) -> str:
        language = self._language
        if not word.isascii():
            language = _stemming_language(word[0], language)
        return self._stemmers[language].stemWord(word)


@functools.lru_cache(2**12)
def _stemming_language(letter: str, language: str) -> str:
    """Return whose stems words get that begin with a letter."""
    script = unicodedata.name(letter, "").partition(" ")[0]
    of_script = _SAME_SCRIPT.get(language) == script
    return language if of_script else _LANGUAGES.get(script, language)


def open_index(
    place: str, path: str, language: str, say: Callable[[str], None]
) -> PassageIndex:
    """The index of a folder or file: read from `path`, or made and kept there.

    It is read if the texts' digests in it are what they are now, and all its
    parts have their checksums.
    """
    folder = find_texts(place)
    for line in folder.report():
        say(line)
    texts = folder.paths
    own, whole = (os.path.join(os.path.abspath(p), "") for p in (path, place))
    if own.startswith(whole):
        raise UserError(f"{path}: lies among the texts; choose another --index")
    digests = {name: file_digest(own) for name, own in texts.items()}
    about = {
        "version": 3,
        "words": VERSION,
        "language": language,
        "files": digests,
    }
    if os.path.exists(path) and (index := _load(path, about)):
        return index
    passages = itertools.chain(*itertools.starmap(read_passages, texts.items()))
    found = [one for one in passages if split_into_words(one.passage)]
    if not found:
        raise UserError(
            f"{place}: no passage in {len(texts)} files; expected a folder of"
            " text, JSON lines (.jsonl) or SQuAD's format (.json)"
        )
    index = PassageIndex(found, language)
    _save(path, about, index)
    say(f"{path}: indexed {len(found):,} passages of {len(texts):,} files")
    return index


def _load(path: str, about: dict[str, Any]) -> PassageIndex | None:
    """Return the index of a file; None if it is of other texts or damaged."""
    with contextlib.suppress(*_UNUSABLE), zipfile.ZipFile(path) as packed:
        if json.loads(packed.read("about.json")) != about:
            return None
        rows = packed.read("passages.jsonl").splitlines()
        passages = [SourcePassage(*json.loads(row)) for row in rows]
        import bm25s

        with tempfile.TemporaryDirectory() as folder:
            packed.extractall(folder)  # It checks the checksums.
            searcher = bm25s.BM25.load(folder)
        if _is_whole(passages, searcher):
            return PassageIndex(passages, about["language"], searcher)
    return None


def _is_whole(passages: list[SourcePassage], searcher: Any) -> bool:
    """Return whether the parts of an index fit each other."""
    data, indices, indptr = (
        searcher.scores[name] for name in ("data", "indices", "indptr")
    )
    terms = searcher.vocab_dict
    return (
        all(
            isinstance(one.passage, str)
            and isinstance(one.file, str)
            and isinstance(one.id, str)
            and (one.line is None or type(one.line) is int)
            for one in passages
        )
        and searcher.scores["num_docs"] == len(passages)
        and data.shape == indices.shape
        and np.isfinite(data).all()
        and indptr[0] == 0
        and indptr[-1] == len(indices)
        and (np.diff(indptr) >= 0).all()
        and (indices >= 0).all()
        and (indices < len(passages)).all()
        and all(
            0 <= place < len(indptr) - 1
            for term, place in terms.items()
            if term  # bm25s adds an empty one, which no text has.
        )
    )


def _save(path: str, about: dict[str, Any], index: PassageIndex) -> None:
    rows = "".join(f"{json.dumps(passage)}\n" for passage in index.passages)
    place = os.path.dirname(os.path.abspath(path))
    try:
        with part_folder(path, place) as folder:
            parts, whole = (os.path.join(folder, n) for n in ("parts", "whole"))
            index.searcher.save(parts)
            with zipfile.ZipFile(whole, "w") as packed:
                packed.writestr("about.json", json.dumps(about))
                packed.writestr("passages.jsonl", rows)
                for name in sorted(os.listdir(parts)):
                    packed.write(os.path.join(parts, name), name)
            os.replace(whole, path)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written: {error.strerror}. Pass another"
            " --index."
        ) from error


class Asker:
    """Answers questions from a corpus; `count` passages are read for each.

    A score is (1 - weight) * reader + weight * retrieval: what the model gives
    its span, less its odds of no answer where it knows them, and what BM25
    gives the passage.
    """

    def __init__(
        self, index: PassageIndex, predictor: Predictor, count: int
    ) -> None:
        if not isinstance(predictor.task, QATask):
            raise UserError(
                f"{predictor.loaded.folder}: found the task"
                f" {predictor.task.name}; expected a model of question"
                " answering, such as run_finetuning makes of squad"
            )
        self.index, self.predictor, self.count = index, predictor, count

    def read(self, asked: Sequence[str]) -> list[list[dict[str, Any]]]:
        """Each question's answers in its passages, plain values for JSON."""
        pairs = [
            (number, self.index.passages[place], score)
            for number, question in enumerate(asked)
            for place, score in self.index.search(question, self.count)
        ]
        said = self.predictor([(asked[n], one.passage) for n, one, _ in pairs])
        found: list[list[dict[str, Any]]] = [[] for _ in asked]
        for (number, passage, score), own in zip(pairs, said, strict=True):
            if own.pop("n_best"):  # else there is no span at all
                parts = {
                    "answerable": bool(own["answer"]),
                    "reader_score": own["score"] - own.get("null_odds", 0.0),
                    "retrieval_score": score,
                }
                found[number].append({**own, **parts, **passage._asdict()})
        return found

    def ask(self, asked: Sequence[str], weight: float) -> list[dict[str, Any]]:
        """The best answer to each question, with its source, and the others."""
        # Whatever is found: a TSV file has the columns of its first answer.
        names = "score probability start end reader_score retrieval_score"
        known = [*names.split(), *SourcePassage._fields]
        known += ["null_odds"] * self.predictor.task.v2
        nothing = dict.fromkeys(known) | {"answer": "", "answerable": False}
        answers = []
        for question, found in zip(asked, self.read(asked), strict=True):
            best, *others = ordered(found, weight) or [nothing]
            answer = {"question": question, **best, "others": others}
            answer["reason"] = None
            if not found and not self.index.search(question, 1):
                answer |= {"answerable": None, "reason": NO_WORD}
            answers.append(answer)
        return answers


def ordered(
    found: Sequence[Mapping[str, Any]], weight: float
) -> list[dict[str, Any]]:
    """With their mixed scores, the best first, those without an answer last."""
    scored = []
    for one in found:
        reader, retrieval = one["reader_score"], one["retrieval_score"]
        score = (1.0 - weight) * reader + weight * retrieval
        scored.append({**one, "score": score})
    return sorted(scored, key=lambda one: (not one["answer"], -one["score"]))


def read_known(
    path: str, say: Callable[[str], None]
) -> list[questions.QAExample]:
    """Questions with their answers and passages, in SQuAD's format."""
    found, report = [], RowReport()
    own = {"eid": 0, "task_name": "", "is_training": False, "version": "squad2"}
    for raw in questions.read_squad(path, report):
        try:
            found.append(questions.make_example(raw.fields, raw.passage, **own))
        except questions.UnusableError as error:
            report.add(path, raw.line(), *error.args)
    for line in report.summary("questions"):
        say(line)
    if not found:
        raise UserError(f"{path}: found no question; expected some to fit on")
    return found


def fit(
    asker: Asker, known: Sequence[questions.QAExample], most: int
) -> dict[str, Any]:
    """The weight of the best F1, with what retrieval finds and loses.

    Passages are searched for all questions, and read for at most `most`, taken
    evenly. `retrieved` is cross-validated: each fold takes the best weight of
    the others, and questions about one passage share a fold.
    """
    match = asker.predictor.task.match
    score = functools.partial(_score, match)
    passages = (questions.Passage(o.passage) for o in asker.index.passages)
    own = [" ".join(one.words) for one in passages]
    gold = [" ".join(one.doc_tokens) for one in known]
    there, ranks = set(own), []
    for one, text in zip(known, gold, strict=True):
        if text in there:
            found = asker.index.search(one.question_text, max(RANKS))
            texts = [own[place] for place, _ in found]
            ranks.append(texts.index(text) if text in texts else max(RANKS))
    first = {n: [rank < n for rank in ranks] for n in RANKS}
    step = max(1.0, len(known) / most)
    taken = [int(i * step) for i in range(min(most, len(known)))]
    asked = [known[i].question_text for i in taken]
    # [questions, weights, exact match and F1], in percent
    scores = np.array(
        [
            [score(known[i], ordered(found, weight)) for weight in _WEIGHTS]
            for i, found in zip(taken, asker.read(asked), strict=True)
        ]
    )
    folds = np.array([zlib.crc32(gold[i].encode()) % _FOLDS for i in taken])
    mixed = np.empty([len(taken), 2])
    for fold in range(_FOLDS):
        rest = scores[folds != fold] if (folds != fold).any() else scores
        best = rest[:, :, 1].mean(0).argmax()
        mixed[folds == fold] = scores[folds == fold, best]
    said = asker.predictor([(known[i].question_text, gold[i]) for i in taken])
    reading = [score(known[i], [s]) for i, s in zip(taken, said, strict=True)]
    figures = {
        "gold": np.mean(reading, 0),
        "retrieved": mixed.mean(0),
        "reader_alone": scores[:, 0].mean(0),
        "retrieval_alone": scores[:, -1].mean(0),
        "lost": np.mean(reading - mixed, 0),
        "lost_standard_error": np.std(reading - mixed, 0) / len(taken) ** 0.5,
    }
    return {
        "weight": float(_WEIGHTS[scores[:, :, 1].mean(0).argmax()]),
        "match": match or "SQuAD's script",
        "questions": len(known),
        "gold_indexed": len(ranks),
        **{f"gold_in_first_{n}": np.mean(a) for n, a in first.items() if a},
        "passages_read": asker.count,
        "questions_read": len(taken),
        **{
            name: dict(zip(("exact_match", "f1"), pair.tolist(), strict=True))
            for name, pair in figures.items()
        },
    }


def _score(
    match: str | None,
    known: questions.QAExample,
    answers: Sequence[Mapping[str, Any]],
) -> tuple[float, float]:
    """Return exact match and F1 of the first answer, in percent."""
    encode = answer_encoder(match, known)
    answer = encode(answers[0]["answer"]) if answers else ""
    if not known.answers:
        right = 0.0 if answer else 100.0
        return right, right
    expected = [encode(one) for one in known.answers]
    exact = max(exact_match(answer, one) for one in expected)
    f1 = max(f1_score(answer, one) for one in expected)
    return 100.0 * exact, 100.0 * f1


class AskedCorpus:
    """An asker as the server sees a model, and that model's one signature."""

    name, version, kind, labels = "ask", 1, "retrieval", ()

    def __init__(self, asker: Asker, weight: float) -> None:
        self._asker, self._weight = asker, weight
        self.signatures, self.metadata, self.defaults = {}, {}, {}
        self.signatures["serve_text"] = self
        self.config = {"passages": asker.count, "weight": weight}
        self.inputs = {"question": tf.TensorSpec([None], tf.string)}
        self.outputs = ["answer"]

    def __call__(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Each answer is the JSON of `Asker.ask`."""
        asked = [text.decode("utf-8", "ignore") for text in arrays["question"]]
        for text in asked:
            try:
                check_question(text, "question")
            except UserError as error:  # The server answers it with 400.
                words = (None, None, str(error))
                raise tf.errors.InvalidArgumentError(*words) from error
        answers = self._asker.ask(asked, self._weight)
        found = [json.dumps(one).encode() for one in answers]
        return {"answer": np.array(found, object)}
