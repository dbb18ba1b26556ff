# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores texts with a pre-trained model, and re-ranks n-best lists.

Electric takes one pass a text. Other models: the two-tower cloze model (one
pass) or a masked LM (a pass a token).
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from configure import flags
from configure.errors import UserError
from electra_tf.commands.inspection_flags import (
    Reading,
    add_model_flags,
    check_readable,
    load_model,
    read_lines,
    written,
)

# The command line of `score`.

_PROG = "python -m electra_tf score"


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FrontDoorParser(
        prog=_PROG,
        usage=f"{_PROG}\n"
        "       --model DIR --input FILE [--output FILE] [--method METHOD]\n"
        "       [--rerank (--weight NUMBER | --references FILE) [--best]]",
        description="Scores texts: the higher, the likelier. Scores are sums of"
        " log-probabilities over a text's wordpieces, in nats. With --rerank,"
        " sorts n-best lists by base score + weight * score.",
    )
    add_model_flags(parser)
    _add_text_flags(parser)
    _add_score_flags(parser)
    _add_rerank_flags(parser)
    return parser.parse_args(list(argv[1:]))


def _add_text_flags(parser: flags.FrontDoorParser) -> None:
    group = parser.add_argument_group("The texts")
    flags.add_flag(
        group,
        "input",
        metavar="FILE",
        required=True,
        help="texts of any number; - is standard input",
    )
    flags.add_flag(
        group,
        "format",
        metavar="FORMAT",
        choices=("auto", "lines", "tsv", "jsonl"),
        default="auto",
        help="lines (a text each), tsv (id, text, perhaps base score), jsonl"
        ' ({"id", "text", "score"}), or auto: by the name\'s ending',
    )
    flags.add_flag(
        group,
        "output",
        metavar="FILE",
        default="-",
        help="where the scores go: JSON for jsonl, else TSV; a file is"
        " replaced (default: printed)",
    )


def _add_score_flags(parser: flags.FrontDoorParser) -> None:
    group = parser.add_argument_group("The score")
    flags.add_flag(
        group,
        "method",
        metavar="METHOD",
        choices=("auto", "electric", "cloze", "masked_lm"),
        default="auto",
        help="electric (one pass a text), cloze (the two-tower model, one"
        " pass), masked_lm (one pass a token), or auto: the first that the"
        " model offers",
    )
    flags.boolean_argument(
        group,
        "with_cloze",
        False,
        "give the two-tower cloze score beside Electric's",
    )
    flags.boolean_argument(
        group,
        "token_scores",
        False,
        "write JSON with each token's score",
    )
    flags.add_flag(
        group,
        "batch_size",
        metavar="INT",
        type=int,
        default=32,
        help="inputs at a time (default 32)",
    )


def _add_rerank_flags(parser: flags.FrontDoorParser) -> None:
    group = parser.add_argument_group("n-best lists")
    flags.boolean_argument(
        group,
        "rerank",
        False,
        "sort each list (the texts of one id) by base score + weight * score",
    )
    flags.add_flag(
        group,
        "weight",
        metavar="NUMBER",
        type=float,
        help="of the model's score; 0 leaves the base scores alone",
    )
    flags.add_flag(
        group,
        "references",
        metavar="FILE",
        help="the right texts (tsv or jsonl with the lists' ids, or line n"
        " for list n): reports word errors, and tunes the weight unless it is"
        " given. All lists are held in memory then",
    )
    flags.boolean_argument(
        group, "best", False, "write only the best text of each list"
    )


# How far scoring has come, on standard error.

if TYPE_CHECKING:
    from electra_tf.inspection.reranking import NBest

# Seconds between two lines, on a terminal and in a log.
_ON_TERMINAL, _IN_LOG = 0.5, 30.0


class ScoreProgress:
    """Counts texts and tokens as they go by.

    Args:
      clock: seconds, increasing.
    """

    def __init__(
        self,
        stream: TextIO,
        method: str,
        reading: Reading,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._method, self._reading = stream, method, reading
        self._clock = clock
        self._begin = self._last = clock()
        self._texts = self._tokens = self._unknown = self._divided = 0
        self._total = 0.0

    def watch(self, lists: "Iterable[NBest]") -> "Iterator[NBest]":
        """Passes lists on, counting; says now and then how far it is."""
        pause = _ON_TERMINAL if self._stream.isatty() else _IN_LOG
        for scored in lists:
            for one in scored:
                result = one.text_score
                self._texts += 1
                self._tokens += len(result.tokens)
                self._unknown += result.unknown
                self._divided += result.windows > 1
                self._total += result.score
            yield scored
            if self._clock() - self._last > pause:
                self._last = self._clock()
                self._say(self._line())

    def close(self) -> None:
        """Says what there was in all."""
        line = self._line(at_end=True)
        if self._tokens:
            per_token = -self._total / self._tokens
            line += f", {per_token:.3f} nats a token"
            # Electric's are not normalized: their mean is no entropy.
            if self._method != "electric" and per_token < 50:
                line += f" (pseudo-perplexity {math.exp(per_token):.1f})"
        self._say(line, end="\n")
        if self._unknown:
            self._stream.write(
                f"{self._unknown:,} tokens are [UNK]: the vocabulary lacks"
                " them, and their scores say little.\n"
            )
        if self._divided:
            self._stream.write(
                f"{self._divided:,} texts are longer than the model's position"
                " table and were scored in overlapping windows.\n"
            )
        self._stream.flush()

    def _line(self, at_end: bool = False) -> str:
        seconds = max(self._clock() - self._begin, 1e-9)
        share = self._reading.share
        head = "" if share is None or at_end else f"{100 * share:.0f}% read: "
        return (
            f"{head}{self._texts:,} texts, {self._tokens:,} tokens scored by"
            f" {self._method}, {self._texts / seconds:.1f} texts/s"
        )

    def _say(self, line: str, end: str = "") -> None:
        terminal = self._stream.isatty()
        lead = "\r\x1b[K" if terminal else ""
        self._stream.write(f"{lead}{line}{end if terminal else chr(10)}")
        self._stream.flush()


if TYPE_CHECKING:
    from electra_tf.inspection.reranking import NBest, Scored


def main(args: argparse.Namespace) -> int:
    """Scores every text, re-ranks if asked to."""
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
