# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Score texts: the higher the score, the likelier the text.

A score is the sum of log-probabilities over a text's wordpieces, in nats.
"""

import argparse
import collections
import itertools
import math
from collections.abc import Sequence
from typing import Any

from configure import flags
from electra_tf.commands import shared_flags
from electra_tf.commands.input_stream import InputStream

# Mean loss, in nats, above which a perplexity is too large to be meaningful.
_MAX_NATS = 50


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("score", __doc__)
    shared_flags.add_model_flags(parser)
    shared_flags.add_input_flags(parser, sentences=True)
    flags.add_flags(
        parser,
        "the scores",
        (
            "method",
            "auto",
            ("auto", "electric", "cloze", "masked_lm"),
            "masked_lm computes one pass per token, the other methods one per"
            " text; auto: the first of these methods that the model supports",
        ),
        ("token_scores", False, "", "also write the score of each token"),
        shared_flags.BATCH_SIZE,
        *shared_flags.OUTPUT,
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Write the score of every text."""
    shared_flags.check_files(args)
    from electra_tf.inspection.text_scores import TextScorer

    model = shared_flags.load_model(args)
    scorer = TextScorer(model, args.method, args.batch_size)
    totals: collections.Counter[str] = collections.Counter()
    stream = InputStream(args)
    with stream, shared_flags.open_answers(args) as write:
        # The scorer reads some batches of texts before it yields their scores.
        texts, reads = itertools.tee(stream.texts())
        scores = scorer.score(text for _, text in texts)
        for result, (read, _) in zip(scores, reads, strict=False):
            answer: dict[str, Any] = {
                "score": result.score,
                "text": result.text,
                "tokens": len(result.tokens),
                "unknown_tokens": result.unknown,
            }
            if args.token_scores:
                pairs = zip(result.tokens, result.token_scores, strict=True)
                answer["token_scores"] = list(pairs)
            write({**stream.location(read), **answer})
            stream.count()
            totals["tokens"] += len(result.tokens)
            totals["score"] += result.score
            totals["unknown"] += result.unknown
            totals["divided"] += result.windows > 1
        stream.require_rows(f"texts scored by {scorer.method}", "scored")
    stream.report_summary(f"texts scored by {scorer.method}")
    _report_totals(totals, scorer.method)
    return 0


def _report_totals(totals: collections.Counter[str], method: str) -> None:
    """Print the mean score of a token, and reasons to distrust scores."""
    if totals["tokens"]:
        per_token = -totals["score"] / totals["tokens"]
        line = f"{totals['tokens']:,} tokens, {per_token:.3f} nats a token"
        # Electric's scores are not normalized, so their mean gives no
        # perplexity.
        if method != "electric" and per_token < _MAX_NATS:
            line += f" (pseudo-perplexity {math.exp(per_token):.1f})"
        shared_flags.report(line)
    if totals["unknown"]:
        shared_flags.report(
            f"{totals['unknown']:,} tokens are [UNK], so their scores mean"
            " little"
        )
    if totals["divided"]:
        shared_flags.report(
            f"{totals['divided']:,} texts are too long for the model, and were"
            " scored in overlapping windows"
        )
