# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line of convert_checkpoint."""

import argparse
from collections.abc import Sequence

from configure import flags

FORMATS = ("tf1", "native", "huggingface")
PARTS = ("all", "discriminator", "generator", "encoder")


def make_parser() -> flags.FrontDoorParser:
    """Describes the command line.

    Returns:
      The parser.
    """
    parser = flags.FrontDoorParser(
        prog="python -m electra_tf.commands.convert_checkpoint",
        usage="%(prog)s --from PATH --to PATH\n"
        "       [--format tf1|native|huggingface] [--part PART]\n"
        "       [--strip_optimizer] [--overwrite] ...",
        description="Writes a checkpoint in another format, or a part of it."
        " What PATH holds is told from its content: a TF1 checkpoint of the"
        " original or of BERT, one of this project's runs, or a Hugging Face"
        " folder.",
    )
    _add_file_flags(parser.add_argument_group("files"))
    change = parser.add_argument_group("what is written")
    flags.add_flag(
        change,
        "part",
        choices=PARTS,
        default="all",
        help="encoder is the discriminator's transformer (a masked LM's, too)"
        " without a head. Tied embeddings go into either part (default: all)",
    )
    flags.boolean_argument(
        change,
        "strip_optimizer",
        help="leave out the Adam slots (two thirds of a training checkpoint)",
    )
    flags.boolean_argument(
        change,
        "drop_unrepresentable",
        help="leave out what the format cannot hold, instead of refusing;"
        " each is listed",
    )
    flags.add_flag(
        change,
        "extend_positions",
        type=int,
        metavar="N",
        help="make the position tables N rows long: new rows repeat the table"
        " from its start, surplus rows are cut",
    )
    return parser


def _add_file_flags(group: argparse._ArgumentGroup) -> None:
    source = group.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="PATH",
        help="prefix (dir/model.ckpt-1000) or folder to read",
    )
    source.shown_as = "--from"
    target = group.add_argument(
        "--to",
        dest="target",
        required=True,
        metavar="PATH",
        help="for tf1 and native a prefix, or a folder (existing, or ending in"
        " a slash) that gets model.ckpt-<step>; for huggingface a folder",
    )
    target.shown_as = "--to"
    flags.add_flag(
        group,
        "format",
        choices=FORMATS,
        help="to write (default: huggingface if --to is such a folder or"
        " .safetensors file already, otherwise tf1, which this project's"
        " programs read, too)",
    )
    flags.add_flag(
        group,
        "vocab_file",
        metavar="FILE",
        help="put beside the result as vocab.txt (default: the one beside"
        " the source)",
    )
    flags.add_flag(
        group,
        "hparams",
        metavar="JSON",
        help="what shapes do not show, as a JSON object or a .json file, such"
        ' as {"model_hparam_overrides": {"num_attention_heads": 4}};'
        " wins over a config beside the source",
    )
    flags.boolean_argument(
        group, "overwrite", help="replace files of an earlier conversion"
    )


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line.

    Args:
      argv: program name and flags.

    Returns:
      The flags' values. A mistake ends the program with status 2.
    """
    return make_parser().parse_args(list(argv[1:]))
