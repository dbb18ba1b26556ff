# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Show the predictions of a pre-trained model for sentences, token by token.

The output shows the masked tokens, the generator's proposals, the sampled
tokens and the discriminator's predictions, in color on the screen, as an HTML
page, or as JSON. The command supports ELECTRA, Electric and masked LMs, and
notes which parts do not apply to the model.
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
from electra_tf.commands.input_stream import InputStream
from electra_tf.files.atomic import write_atomically
from electra_tf.prediction.writer import answer_file

_PAGE_WIDTH = 100  # width of the HTML page in characters


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("inspect_tokens", __doc__)
    shared_flags.add_model_flags(parser)
    shared_flags.add_input_flags(parser, sentences=True)
    flags.add_flags(
        parser,
        "the masked tokens (default: drawn at random)",
        (
            "mask_words",
            None,
            "WORDS",
            "words, separated by commas, that are masked at each occurrence;"
            " a [MASK] in the text is also masked",
        ),
        ("mask_none", False, "", "mask nothing: show the text as it is"),
        ("seed", 0, "N", "random seed of positions and samples"),
    )
    flags.add_flags(
        parser,
        "the output",
        ("top_k", 5, "N", "number of proposals listed for each position"),
        ("html", None, "FILE", "write an HTML page to this file"),
        shared_flags.OVERWRITE,
        (
            "json",
            None,
            "FILE",
            "write JSON, one sentence per line, to this file; -: print it",
        ),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Show or write the predictions for every sentence."""
    masked_words = (args.mask_words or "").split(",")
    masked_words = tuple(filter(None, map(str.strip, masked_words)))
    if masked_words and args.mask_none:
        raise UserError(
            "--mask_none and --mask_words exclude each other. Remove one of the"
            " two flags."
        )
    shared_flags.check_files(args, args.html, args.json)
    import rich.console

    from electra_tf.inspection.fill_mask import encode
    from electra_tf.inspection.tables import inspection_view
    from electra_tf.inspection.token_inspection import TokenInspector

    model = shared_flags.load_model(args)
    inspector = TokenInspector(model, args.top_k, args.seed)
    console = rich.console.Console()
    # The page is recorded instead of printed, so its width is fixed.
    page = rich.console.Console(
        record=True, file=io.StringIO(), width=_PAGE_WIDTH, no_color=False
    )
    records = contextlib.nullcontext()
    if args.json:
        records = answer_file(args.json, "jsonl", overwrite=True)
    with InputStream(args, bar=False) as stream, records as write:
        usable = stream.texts(functools.partial(encode, model))
        for number, (read, text) in enumerate(usable):
            try:
                inspection = inspector.inspect(
                    text, masked_words, args.mask_none, number
                )
            except UserError as error:
                stream.refuse_text(read, error)
                continue
            view = inspection_view(inspection)
            if args.json != "-":
                console.print(view)
            if args.html:
                page.print(view)
            if write is not None:
                write(dataclasses.asdict(inspection))
            stream.count()
        stream.require_rows("texts", "inspected")
    if args.html:
        write_atomically(args.html, page.export_html())
    return 0
