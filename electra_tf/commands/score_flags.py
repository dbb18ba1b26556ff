# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line of `score`."""

from configure import flags
from electra_tf.commands.inspection_flags import add_model_flags

_PROG = "python -m electra_tf.commands.score"


def parser() -> flags.FrontDoorParser:
    """Returns the parser."""
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
    return parser


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
