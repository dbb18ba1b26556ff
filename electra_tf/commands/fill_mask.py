# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Says which tokens fit where a text has [MASK].

Asks the generator of an ELECTRA, a masked LM, or a two-tower cloze model.
"""

import argparse
import dataclasses
import json
from collections.abc import Sequence

from configure import flags
from electra_tf.commands import shared_flags


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser(
        prog="python -m electra_tf fill_mask",
        usage="%(prog)s\n"
        "       --model DIR (FILE ... | --text SENTENCE ...)\n"
        "       [--top_k INT] [--output_format table|json] [--output FILE]",
        description="Says which tokens fit where a text has [MASK], and with"
        " which probability. Each [MASK] is one wordpiece; several in a text"
        " are answered each by itself.",
    )
    shared_flags.add_model_flags(parser)
    shared_flags.add_text_flags(parser)
    flags.add_flags(
        parser,
        "the answers",
        ("top_k", 5, "N", "tokens a mask"),
        (
            *("output_format", "table", ("table", "json")),
            "json: one object a line",
        ),
        shared_flags.OUTPUT,
        shared_flags.BATCH_SIZE,
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Fills the masks of every text."""
    texts = shared_flags.read_texts(args)
    import rich.console

    from electra_tf.inspection.fill_mask import MaskFiller
    from electra_tf.inspection.tables import filled_view

    filler = MaskFiller(
        shared_flags.load_model(args), args.top_k, args.batch_size
    )
    with shared_flags.opened(args.output) as file:
        console = rich.console.Console(file=file)
        for filled in filler(text for _, text in texts if text.strip()):
            if args.output_format == "json":
                record = dataclasses.asdict(filled) | {"best": filled.best()}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                file.flush()
            else:
                console.print(filled_view(filled))
    return 0
