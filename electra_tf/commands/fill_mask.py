# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""List the likeliest tokens for each [MASK] in a text.

The probabilities are those of a generator of ELECTRA, a masked LM, or a
two-tower cloze model. Each [MASK] stands for one wordpiece and is filled
independently of the others. Without --output the tokens are shown in tables.
"""

import argparse
import contextlib
import dataclasses
import itertools
from collections.abc import Sequence

from configure import flags
from electra_tf.commands import shared_flags
from electra_tf.commands.input_stream import InputStream


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("fill_mask", __doc__)
    shared_flags.add_model_flags(parser)
    shared_flags.add_input_flags(parser, sentences=True)
    flags.add_flags(
        parser,
        "the answers",
        ("top_k", 5, "N", "number of tokens listed for each [MASK]"),
        shared_flags.BATCH_SIZE,
        *shared_flags.OUTPUT,
    )
    parser.set_defaults(output=None)
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Fill the masks of every text."""
    shared_flags.check_files(args)
    import rich.console

    from electra_tf.inspection.fill_mask import MaskFiller
    from electra_tf.inspection.tables import filled_view

    model = shared_flags.load_model(args)
    filler = MaskFiller(model, args.top_k, args.batch_size)
    console, output = rich.console.Console(), contextlib.nullcontext()
    if args.output:
        output = shared_flags.open_answers(args)
    stream = InputStream(args, bar=bool(args.output))
    with stream, output as write:
        texts, reads = itertools.tee(stream.texts(filler.encode))
        masks_filled = filler(text for _, text in texts)
        for filled, (read, _) in zip(masks_filled, reads, strict=False):
            if write is None:
                console.print(filled_view(filled))
            else:
                record = dataclasses.asdict(filled) | {"best": filled.best()}
                write({**stream.location(read), **record})
            stream.count()
        stream.require_rows("texts", "filled")
    return 0
