# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores texts with a pre-trained model, and re-ranks n-best lists.

Electric takes one pass a text. Other models: the two-tower cloze model (one
pass) or a masked LM (a pass a token).
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from configure import flags
from configure.errors import UserError
from electra_tf.commands.inspection_flags import (
    Reading,
    check_readable,
    load_model,
    read_lines,
    written,
)
from electra_tf.commands.score_flags import parser
from electra_tf.commands.score_progress import ScoreProgress

if TYPE_CHECKING:
    from electra_tf.inspection.reranking import NBest, Scored


def main(args: argparse.Namespace) -> int:
    """Scores every text, re-ranks if asked to.

    Args:
      args: parsed flags.

    Returns:
      The exit status.
    """
    # TensorFlow only from here on.
    from electra_tf.inspection import nbest_files, reranking, scorers

    form = _settle(args)
    references = None
    if args.references:
        check_readable(args.references)
        references = nbest_files.read_references(
            read_lines(args.references),
            nbest_files.format_of(args.references),
            args.references,
        )
    pretrained = load_model(args)
    for text in pretrained.assumptions:
        print(f"Not stated anywhere: {text}.", file=sys.stderr)
    scorer = scorers.make_scorer(
        pretrained, args.method, args.batch_size, args.with_cloze
    )
    reading = Reading(args.input)
    progress = ScoreProgress(sys.stderr, scorer.method, reading)
    hypotheses = nbest_files.read_hypotheses(
        read_lines(args.input, reading), form, args.input
    )
    lists = progress.watch(reranking.score_lists(scorer, hypotheses))
    with written(args.output) as file:
        if not args.rerank:
            for scored in lists:
                _write(file, scored, args, form, None)
        elif references is None:
            for scored in lists:
                scored = reranking.reranked(scored, args.weight)
                _write(file, scored, args, form, args.weight)
        else:
            held = list(lists)
            weight = _settled_weight(held, references, args.weight)
            for scored in held:
                scored = reranking.reranked(scored, weight)
                _write(file, scored, args, form, weight)
    progress.close()
    return 0


def _settle(args: argparse.Namespace) -> str:
    """Checks flags against each other; returns the input's format."""
    from electra_tf.inspection import nbest_files

    check_readable(args.input)
    form = args.format
    if form == "auto":
        form = nbest_files.format_of(args.input)
    if args.batch_size < 1:
        raise UserError(f"--batch_size={args.batch_size}: expected 1 or more.")
    if not args.rerank:
        for name in ("weight", "references", "best"):
            if getattr(args, name) not in (None, False):
                raise UserError(f"--{name} is for --rerank.")
        return form
    if form == nbest_files.LINES:
        raise UserError(
            "--rerank: lines of text are no n-best lists; give --format=tsv"
            " (id, text, base score) or --format=jsonl."
        )
    if args.weight is None and not args.references:
        raise UserError(
            "--rerank takes --weight=NUMBER, or --references=FILE to tune it."
        )
    if args.weight is not None and not 0 <= args.weight < float("inf"):
        raise UserError(f"--weight={args.weight}: expected 0 or more.")
    return form


def _settled_weight(
    lists: "list[NBest]", references: dict[str, str], weight: float | None
) -> float:
    """Tunes the weight unless it is given; says what comes of it."""
    from electra_tf.inspection.reranking import tune_weight

    weights = {} if weight is None else {"weights": [weight]}
    tuning = tune_weight(lists, references, **weights)
    chosen = tuning.weight if weight is None else weight
    print(
        f"word errors of {len(lists):,} lists: {tuning.base} by the base"
        f" scores alone, {tuning.tried[chosen]} with weight {chosen:.4g}"
        f"{' (tuned here)' if weight is None else ''}, {tuning.oracle} if the"
        " best were always chosen",
        file=sys.stderr,
    )
    return chosen


def _write(
    file: TextIO,
    scored: "NBest",
    args: argparse.Namespace,
    form: str,
    weight: float | None,
) -> None:
    for line in _lines(scored[:1] if args.best else scored, args, form, weight):
        file.write(line + "\n")


def _lines(
    scored: "Iterable[Scored]",
    args: argparse.Namespace,
    form: str,
    weight: float | None,
) -> Iterator[str]:
    from electra_tf.inspection import nbest_files

    as_json = args.token_scores or form == nbest_files.JSONL
    for one in scored:
        if as_json:
            record = nbest_files.record_of(one, weight, args.token_scores)
            yield json.dumps(record, ensure_ascii=False)
        else:
            yield nbest_files.text_line(one, form, weight)


if __name__ == "__main__":
    flags.run_front_door(main, parser())
