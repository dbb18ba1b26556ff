# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shows what a pre-trained model does with sentences, token by token.

What was masked, what the generator proposed, what was sampled, and what the
discriminator predicts: in colour here, and as an HTML page or JSON. For
ELECTRA, Electric and masked LMs; what does not apply to a model is said.
"""

import argparse
import contextlib
import dataclasses
import functools
import io
from collections.abc import Sequence

from configure import flags
from configure.errors import UserError
from electra_tf.commands import shared_flags
from electra_tf.files.atomic import write_atomically
from electra_tf.prediction.writer import answer_file


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("inspect_tokens", __doc__)
    shared_flags.add_model_flags(parser)
    shared_flags.add_input_flags(parser, sentences=True)
    flags.add_flags(
        parser,
        "what is masked (default: drawn)",
        (
            *("mask_words", None, "WORDS"),
            "mask every occurrence of these words, separated by commas; [MASK]"
            " in a text works, too",
        ),
        ("mask_none", False, "", "mask nothing: look at the text as it is"),
        ("seed", 0, "N", "of positions and samples"),
    )
    flags.add_flags(
        parser,
        "what is shown",
        ("top_k", 5, "N", "proposals a position"),
        ("html", None, "FILE", "write a page"),
        shared_flags.OUTPUT[-1],
        (
            *("json", None, "FILE"),
            "write JSON, a sentence a line; - prints it instead",
        ),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Looks at every sentence."""
    words = (args.mask_words or "").split(",")
    words = tuple(filter(None, map(str.strip, words)))
    if words and args.mask_none:
        raise UserError("--mask_none contradicts --mask_words; give one.")
    shared_flags.check_files(args, args.html, args.json)
    import rich.console

    from electra_tf.inspection.fill_mask import encode
    from electra_tf.inspection.tables import inspection_view
    from electra_tf.inspection.token_inspection import TokenInspector

    model = shared_flags.load_model(args)
    inspector = TokenInspector(model, args.top_k, args.seed)
    console = rich.console.Console()
    # Nothing of the page is printed; it is as wide as a window.
    page = rich.console.Console(
        record=True, file=io.StringIO(), width=100, no_color=False
    )
    records = contextlib.nullcontext()
    if args.json:
        records = answer_file(args.json, "jsonl", overwrite=True)
    with shared_flags.Run(args, bar=False) as run, records as write:
        usable = run.texts(functools.partial(encode, model))
        for number, (read, text) in enumerate(usable):
            try:
                seen = inspector.inspect(text, words, args.mask_none, number)
            except UserError as error:
                run.refuse_text(read, error)
                continue
            view = inspection_view(seen)
            if args.json != "-":
                console.print(view)
            if args.html:
                page.print(view)
            if write is not None:
                write(dataclasses.asdict(seen))
    if args.html:
        write_atomically(args.html, page.export_html())
    return 0
