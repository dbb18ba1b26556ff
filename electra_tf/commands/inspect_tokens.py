# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shows what a pre-trained model does with sentences, token by token.

What was masked, what the generator proposed, what was sampled, and what the
discriminator says: in colour here, and as an HTML page or JSON.
"""

import argparse
import io
import json
from collections.abc import Sequence
from typing import Any

from configure import flags
from configure.errors import UserError
from electra_tf.commands import shared_flags
from electra_tf.files import write_atomically


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser(
        prog="python -m electra_tf inspect_tokens",
        usage="%(prog)s\n"
        "       --model DIR (FILE ... | --text SENTENCE ...)\n"
        "       [--mask_words WORDS | --mask_positions NUMBERS | --mask_none]\n"
        "       [--html FILE] [--json FILE]",
        description="Shows, for each sentence, what was masked, what the"
        " generator proposed, what was sampled, and what the discriminator"
        " predicts of every token. For ELECTRA, Electric and masked LMs;"
        " what does not apply to a model is said.",
    )
    shared_flags.add_model_flags(parser)
    shared_flags.add_text_flags(parser)
    flags.add_flags(
        parser,
        "what is masked (default: drawn)",
        (
            *("mask_words", None, "WORDS"),
            "mask every occurrence of these words, separated by commas; [MASK]"
            " in a text works, too",
        ),
        (
            *("mask_positions", None, "NUMBERS"),
            "mask these tokens, separated by commas; the first is 1",
        ),
        ("mask_none", False, "", "mask nothing: look at the text as it is"),
        ("mask_prob", float, "SHARE", "of tokens drawn; default: the model's"),
        ("seed", 0, "N", "of positions and samples"),
    )
    flags.add_flags(
        parser,
        "what is shown",
        ("top_k", 5, "N", "proposals a position"),
        (
            *("color", "auto", ("auto", "always", "never")),
            "auto: to a terminal, unless NO_COLOR is set",
        ),
        ("html", None, "FILE", "write a page; a file is replaced"),
        (
            *("json", None, "FILE"),
            "write JSON, a sentence a line; - prints it instead",
        ),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Looks at every sentence."""
    choice = _choice(args)
    texts = [text for _, text in shared_flags.read_texts(args) if text.strip()]
    import rich.console

    from electra_tf.inspection.tables import inspection_view
    from electra_tf.inspection.token_inspection import TokenInspector

    inspector = TokenInspector(
        shared_flags.load_model(args), args.top_k, args.seed, args.mask_prob
    )
    forced = {"always": True, "never": False}.get(args.color)
    console = rich.console.Console(
        force_terminal=forced,
        no_color=None if forced is None else not forced,
    )
    # Nothing of the page is printed; it is as wide as a window.
    page = rich.console.Console(
        record=True, file=io.StringIO(), width=100, no_color=False
    )
    with shared_flags.opened(args.json) as records:
        for number, text in enumerate(texts):
            seen = inspector.inspect(text, choice, number)
            view = inspection_view(seen)
            if args.json != "-":
                console.print(view)
            if args.html:
                page.print(view)
            if records is not None:
                record = json.dumps(seen.as_dict(), ensure_ascii=False)
                records.write(record + "\n")
                records.flush()
    if args.html:
        write_atomically(args.html, page.export_html())
    return 0


def _choice(args: argparse.Namespace) -> Any:
    from electra_tf.inspection.token_inspection import Choice

    words, positions = (
        tuple(filter(None, map(str.strip, (given or "").split(","))))
        for given in (args.mask_words, args.mask_positions)
    )
    try:
        positions = tuple(map(int, positions))
    except ValueError as error:
        raise UserError(
            f"--mask_positions={args.mask_positions}: expected whole numbers"
            " separated by commas, such as 3,4."
        ) from error
    choice = Choice(words, positions, args.mask_none)
    if choice.is_made and choice.nothing:
        raise UserError("--mask_none: and yet something is to be masked.")
    return choice
