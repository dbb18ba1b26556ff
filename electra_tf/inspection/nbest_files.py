# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines of a file <-> hypotheses: plain text, TSV or JSON."""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from configure.errors import UserError
from electra_tf.inspection.reranking import Hypothesis, Scored

LINES, TSV, JSONL = FORMATS = ("lines", "tsv", "jsonl")


def format_of(path: str) -> str:
    """The format that a file's name suggests: `.tsv`, `.jsonl`, else lines."""
    for name in (TSV, JSONL):
        if path.endswith(f".{name}"):
            return name
    return LINES


def read_hypotheses(
    lines: Iterable[str], form: str, where: str
) -> Iterator[Hypothesis]:
    """Reads texts with their ids and scores.

    Args:
      form: "lines": a text each, blank ones included, whose id is its number;
        "tsv": id, text and, if there is one, the base score; "jsonl": objects
        with `text` and, if they have them, `id` and `score`.
    """
    scored: bool | None = None
    for number, line in enumerate(lines, 1):
        place = f"{where}, line {number}"
        if form == LINES:
            yield Hypothesis(str(number), line)
            continue
        if not line.strip():
            raise UserError(f"{place}: blank; expected {_EXPECTED[form]}.")
        parse = _from_columns if form == TSV else _from_object
        hypothesis = parse(line, number, place)
        if scored is None:
            scored = hypothesis.base_score is not None
        if scored != (hypothesis.base_score is not None):
            raise UserError(
                f"{place}: {'no' if scored else 'a'} base score, unlike the"
                " lines before; give all of them one, or none."
            )
        yield hypothesis


def read_references(lines: Iterable[str], form: str, where: str) -> dict:
    """Reads the right texts by list id."""
    references: dict[str, str] = {}
    for hypothesis in read_hypotheses(lines, form, where):
        if hypothesis.list_id in references:
            raise UserError(f"{where}: id {hypothesis.list_id!r} twice.")
        references[hypothesis.list_id] = hypothesis.text
    return references


def text_line(scored: Scored, form: str, weight: float | None) -> str:
    """Writes a scored text as a line of TSV.

    Args:
      weight: None, or the weight with which the combined score is written in
        the last column.
    """
    hypothesis, result = scored.hypothesis, scored.text_score
    numbers = [result.score]
    if result.cloze_score is not None:
        numbers.append(result.cloze_score)
    scores = [f"{number:.4f}" for number in numbers]
    if form == LINES:
        return "\t".join([*scores, hypothesis.text])
    if weight is not None:
        scores.append(f"{scored.combined(weight):.4f}")
    base = hypothesis.base_score
    head = [hypothesis.list_id, hypothesis.text]
    return "\t".join([*head, *([] if base is None else [f"{base:g}"]), *scores])


def record_of(
    scored: Scored, weight: float | None, with_tokens: bool
) -> dict[str, Any]:
    """Makes an object for JSON of a scored text.

    Args:
      weight: None, or the weight of the combined score.
    """
    hypothesis, result = scored.hypothesis, scored.text_score
    record: dict[str, Any] = {
        "id": hypothesis.list_id,
        "text": hypothesis.text,
        "score": result.score,
        "tokens": len(result.tokens),
        "unknown_tokens": result.unknown,
    }
    if hypothesis.base_score is not None:
        record["base_score"] = hypothesis.base_score
    if result.cloze_score is not None:
        record["cloze_score"] = result.cloze_score
    if weight is not None:
        record["combined_score"] = scored.combined(weight)
    if with_tokens:
        record["token_scores"] = list(
            zip(result.tokens, result.token_scores, strict=True)
        )
        if result.cloze_token_scores is not None:
            record["cloze_token_scores"] = list(result.cloze_token_scores)
    return record


_EXPECTED = {
    TSV: "id<TAB>text, and perhaps <TAB>base score",
    JSONL: 'an object such as {"id": "1", "text": "...", "score": -3.5}',
}


def _from_columns(line: str, number: int, place: str) -> Hypothesis:
    columns = line.split("\t")
    if len(columns) not in (2, 3):
        raise UserError(
            f"{place}: {len(columns)} columns; expected {_EXPECTED[TSV]}."
        )
    base = None
    if len(columns) == 3:
        base = _number(columns[2], place)
    return Hypothesis(columns[0], columns[1], base)


def _from_object(line: str, number: int, place: str) -> Hypothesis:
    try:
        given = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{place}: not JSON: {error}") from error
    if not isinstance(given, dict) or not isinstance(given.get("text"), str):
        raise UserError(f"{place}: expected {_EXPECTED[JSONL]}.")
    base = given.get("score")
    if base is not None:
        base = _number(base, place)
    return Hypothesis(str(given.get("id", number)), given["text"], base)


def _number(value: Any, place: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UserError(
            f"{place}: base score {value!r}; expected a finite number."
        )
    return number
