# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Says which tokens fit where a text has [MASK], and with which probability.

Asks the generator of an ELECTRA, a masked LM, or a two-tower cloze model. Each
[MASK] is one wordpiece; several in a text are answered each by itself. Without
--output tables are shown.
"""

import argparse
import contextlib
import dataclasses
import itertools
from collections.abc import Sequence

from configure import flags
from electra_tf.commands import shared_flags


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("fill_mask", __doc__)
    shared_flags.add_model_flags(parser)
    shared_flags.add_input_flags(parser, sentences=True)
    flags.add_flags(
        parser,
        "the answers",
        ("top_k", 5, "N", "tokens a mask"),
        shared_flags.BATCH_SIZE,
        *shared_flags.OUTPUT,
    )
    parser.set_defaults(output=None)
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Fills the masks of every text."""
    shared_flags.check_files(args)
    import rich.console

    from electra_tf.inspection.fill_mask import MaskFiller
    from electra_tf.inspection.tables import filled_view

    model = shared_flags.load_model(args)
    filler = MaskFiller(model, args.top_k, args.batch_size)
    console, out = rich.console.Console(), contextlib.nullcontext()
    if args.output:
        out = shared_flags.answers(args)
    with shared_flags.Run(args, bar=bool(args.output)) as run, out as write:
        texts, given = itertools.tee(run.texts(filler.encode))
        masks_filled = filler(text for _, text in texts)
        for filled, (read, _) in zip(masks_filled, given, strict=False):
            if write is None:
                console.print(filled_view(filled))
            else:
                record = dataclasses.asdict(filled) | {"best": filled.best()}
                write({**run.place_of(read), **record})
            run.count()
    return 0
