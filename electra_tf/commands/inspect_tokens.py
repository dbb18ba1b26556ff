# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shows what a pre-trained model does with sentences, token by token.

What was masked, what the generator proposed, what was sampled, and what the
discriminator says: in colour here, and as an HTML page or JSON.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence

from configure import flags
from configure.errors import UserError
from electra_tf.commands.inspection_flags import (
    add_input_flags,
    add_model_flags,
    lines_of,
    load_model,
    written,
)

_PROG = "python -m electra_tf inspect_tokens"


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FrontDoorParser(
        prog=_PROG,
        usage=f"{_PROG}\n"
        "       --model DIR (--text SENTENCE ... | --input FILE)\n"
        "       [--mask_words WORDS | --mask_positions NUMBERS | --mask_none]\n"
        "       [--html FILE] [--json FILE]",
        description="Shows, for each sentence, what was masked, what the"
        " generator proposed, what was sampled, and the discriminator's"
        " judgement of every token. For ELECTRA, Electric and masked LMs;"
        " what does not apply to a model is said.",
    )
    add_model_flags(parser)
    add_input_flags(parser)
    masks = parser.add_argument_group("What is masked (default: drawn)")
    flags.add_flag(
        masks,
        "mask_words",
        metavar="WORDS",
        help="mask every occurrence of these words, separated by commas;"
        " [MASK] in a text works, too",
    )
    flags.add_flag(
        masks,
        "mask_positions",
        metavar="NUMBERS",
        help="mask these tokens, separated by commas; the first is 1",
    )
    flags.boolean_argument(
        masks, "mask_none", False, "mask nothing: judge the text as it is"
    )
    flags.add_flag(
        masks,
        "mask_prob",
        metavar="SHARE",
        type=float,
        help="share of tokens drawn (default: the model's)",
    )
    flags.add_flag(
        masks,
        "seed",
        metavar="INT",
        type=int,
        default=0,
        help="of positions and samples (default 0)",
    )
    shown = parser.add_argument_group("What is shown")
    flags.add_flag(
        shown,
        "top_k",
        metavar="INT",
        type=int,
        default=5,
        help="proposals a position (default 5)",
    )
    flags.add_flag(
        shown,
        "color",
        metavar="WHEN",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto (to a terminal, unless NO_COLOR is set), always or never",
    )
    flags.add_flag(
        shown, "html", metavar="FILE", help="write a page; a file is replaced"
    )
    flags.add_flag(
        shown,
        "json",
        metavar="FILE",
        help="write JSON, a sentence a line; - prints it instead",
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Looks at every sentence."""
    from electra_tf.inspection.glass import Choice, Glass
    from electra_tf.inspection.glass_page import page
    from electra_tf.inspection.glass_terminal import draw
    from electra_tf.inspection.terminal import Paint, wants_colour
    from electra_tf.inspection.token_inspection import LookingGlass

    choice = Choice(
        words=tuple(_split(args.mask_words)),
        positions=tuple(_positions(args.mask_positions)),
        nothing=args.mask_none,
    )
    if choice.is_made and choice.nothing:
        raise UserError("--mask_none: and yet something is to be masked.")
    texts = lines_of(args)
    glass = LookingGlass(
        load_model(args), args.top_k, args.seed, args.mask_prob
    )
    paint = Paint(wants_colour(args.color, sys.stdout))
    width = shutil.get_terminal_size().columns

    def looks() -> Iterator[Glass]:
        for number, text in enumerate(texts):
            seen = glass.look(text, choice, number)
            record = json.dumps(seen.as_dict(), ensure_ascii=False)
            if args.json == "-":
                print(record, flush=True)
            else:
                print(draw(seen, paint, width), flush=True)
            if records is not None:
                records.write(record + "\n")
            yield seen

    with (
        written(args.json if args.json != "-" else None) as records,
        written(args.html) as document,
    ):
        if document is None:
            for _ in looks():
                pass
        else:
            for piece in page(looks()):
                document.write(piece)
    return 0


def _split(words: str | None) -> list[str]:
    parts = [word.strip() for word in (words or "").split(",")]
    return [word for word in parts if word]


def _positions(text: str | None) -> list[int]:
    try:
        return [int(part) for part in _split(text)]
    except ValueError as error:
        raise UserError(
            f"--mask_positions={text}: expected whole numbers separated by"
            " commas, such as 3,4."
        ) from error
