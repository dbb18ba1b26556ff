# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores texts: the higher, the likelier.

Scores are sums of log-probabilities over a text's wordpieces, in nats.
"""

import argparse
import collections
import itertools
import math
from collections.abc import Sequence
from typing import Any

from configure import flags
from electra_tf.commands import shared_flags


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("score", __doc__)
    shared_flags.add_model_flags(parser)
    shared_flags.add_input_flags(parser, sentences=True)
    flags.add_flags(
        parser,
        "the scores",
        (
            *("method", "auto", ("auto", "electric", "cloze", "masked_lm")),
            "one pass a text but for masked_lm, which takes one a token; auto:"
            " the first that the model offers",
        ),
        ("token_scores", False, "", "write each token's score, too"),
        shared_flags.BATCH_SIZE,
        *shared_flags.OUTPUT,
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Scores every text."""
    shared_flags.check_files(args)
    from electra_tf.inspection.text_scores import TextScorer

    model = shared_flags.load_model(args)
    scorer = TextScorer(model, args.method, args.batch_size)
    totals: collections.Counter[str] = collections.Counter()
    run = shared_flags.Run(args)
    with run, shared_flags.answers(args) as write:
        texts, given = itertools.tee(run.texts())  # at most batches apart
        scores = scorer.score(text for _, text in texts)
        for result, (read, _) in zip(scores, given, strict=False):
            answer: dict[str, Any] = {
                "score": result.score,
                "text": result.text,
                "tokens": len(result.tokens),
                "unknown_tokens": result.unknown,
            }
            if args.token_scores:
                pairs = zip(result.tokens, result.token_scores, strict=True)
                answer["token_scores"] = list(pairs)
            write({**run.place_of(read), **answer})
            run.count()
            totals["tokens"] += len(result.tokens)
            totals["score"] += result.score
            totals["unknown"] += result.unknown
            totals["divided"] += result.windows > 1
    run.say_summary(f"texts scored by {scorer.method}")
    if totals["tokens"]:
        per_token = -totals["score"] / totals["tokens"]
        line = f"{totals['tokens']:,} tokens, {per_token:.3f} nats a token"
        # Electric's are not normalized: their mean is no entropy.
        if scorer.method != "electric" and per_token < 50:
            line += f" (pseudo-perplexity {math.exp(per_token):.1f})"
        shared_flags.say(line)
    for count, what in (
        (totals["unknown"], "tokens are [UNK]: their scores say little"),
        (totals["divided"], "texts were scored in overlapping windows"),
    ):
        if count:
            shared_flags.say(f"{count:,} {what}")
    return 0
