# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores texts with a pre-trained model.

Electric takes one pass a text. Other models: the two-tower cloze model (one
pass) or a masked LM (a pass a token).
"""

import argparse
import collections
import itertools
import json
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

from configure import flags
from electra_tf.commands import shared_flags


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser(
        prog="python -m electra_tf score",
        usage="%(prog)s --model DIR (FILE ... | --text SENTENCE ...)\n"
        "       [--method METHOD] [--output_format tsv|jsonl] [--output FILE]",
        description="Scores texts: the higher, the likelier. Scores are sums of"
        " log-probabilities over a text's wordpieces, in nats.",
    )
    shared_flags.add_model_flags(parser)
    shared_flags.add_text_flags(parser)
    flags.add_flags(
        parser,
        "the scores",
        (
            *("method", "auto", ("auto", "electric", "cloze", "masked_lm")),
            "one pass a text but for masked_lm, which takes one a token; auto:"
            " the first that the model offers",
        ),
        (
            *("with_cloze", False, ""),
            "give the two-tower cloze score beside Electric's",
        ),
        ("token_scores", False, "", "write each token's score (jsonl only)"),
        (
            *("output_format", "tsv", ("tsv", "jsonl")),
            "tsv: id, score (and the cloze score), text",
        ),
        shared_flags.OUTPUT,
        shared_flags.BATCH_SIZE,
    )
    args = parser.parse_args(list(argv[1:]))
    if args.batch_size < 1:
        parser.error(f"--batch_size={args.batch_size}: expected 1 or more")
    if args.token_scores and args.output_format != "jsonl":
        parser.error("--token_scores needs --output_format=jsonl")
    return args


def main(args: argparse.Namespace) -> int:
    """Scores every text."""
    texts = shared_flags.read_texts(args)
    import tqdm

    from electra_tf.inspection.text_scores import TextScorer

    scorer = TextScorer(
        shared_flags.load_model(args),
        args.method,
        args.batch_size,
        args.with_cloze,
    )
    texts, given = itertools.tee(texts)  # at most some batches apart
    totals: collections.Counter[str] = collections.Counter()
    begin = time.monotonic()
    with shared_flags.opened(args.output) as file:
        shown = None if sys.stderr.isatty() else True
        scores = tqdm.tqdm(
            scorer.score(text for _, text in texts),
            unit=" texts",
            leave=False,
            disable=shown,
        )
        for result, (name, _) in zip(scores, given, strict=False):
            file.write(_line(name, result, args) + "\n")
            totals["texts"] += 1
            totals["tokens"] += len(result.tokens)
            totals["score"] += result.score
            totals["unknown"] += result.unknown
            totals["divided"] += result.windows > 1
    _say_totals(totals, scorer.method, time.monotonic() - begin)
    return 0


def _line(name: str, result: Any, args: argparse.Namespace) -> str:
    if args.output_format == "tsv":
        numbers = [result.score]
        if result.cloze_score is not None:
            numbers.append(result.cloze_score)
        scores = [f"{number:.4f}" for number in numbers]
        return "\t".join([name, *scores, result.text])
    record: dict[str, Any] = {
        "id": name,
        "text": result.text,
        "score": result.score,
        "tokens": len(result.tokens),
        "unknown_tokens": result.unknown,
    }
    if result.cloze_score is not None:
        record["cloze_score"] = result.cloze_score
    if args.token_scores:
        pairs = zip(result.tokens, result.token_scores, strict=True)
        record["token_scores"] = list(pairs)
        if result.cloze_token_scores is not None:
            record["cloze_token_scores"] = list(result.cloze_token_scores)
    return json.dumps(record, ensure_ascii=False)


def _say_totals(totals: dict[str, Any], method: str, seconds: float) -> None:
    line = (
        f"{totals['texts']:,} texts, {totals['tokens']:,} tokens scored by"
        f" {method}, {totals['texts'] / max(seconds, 1e-9):.1f} texts/s"
    )
    if totals["tokens"]:
        per_token = -totals["score"] / totals["tokens"]
        line += f", {per_token:.3f} nats a token"
        # Electric's are not normalized: their mean is no entropy.
        if method != "electric" and per_token < 50:
            line += f" (pseudo-perplexity {math.exp(per_token):.1f})"
    print(line, file=sys.stderr)
    if totals["unknown"]:
        print(
            f"{totals['unknown']:,} tokens are [UNK]: the vocabulary lacks"
            " them, and their scores say little.",
            file=sys.stderr,
        )
    if totals["divided"]:
        print(
            f"{totals['divided']:,} texts are longer than the model's position"
            " table and were scored in overlapping windows.",
            file=sys.stderr,
        )
