# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts, words or wordpieces, from any encoder."""

import argparse
import itertools
import json
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from configure import flags, hparams
from configure.errors import UserError
from electra_tf.commands import file_flags
from electra_tf.prediction import writer
from electra_tf.prediction.progress import Progress

if TYPE_CHECKING:
    from electra_tf.prediction.embedding import Embedder

_PROG = "python -m electra_tf embed"
_DESCRIPTION = """
Vectors of texts, words or wordpieces, from the encoder of any model: fine-tuned
or pre-trained, of this project, the original or Hugging Face. Writes
FILE.npy (one vector a text) or FILE.npz (several; offsets say which belong to
which text), FILE.json that says how they were made, and FILE.rows.jsonl with
each text's line and, for words and wordpieces, what each vector is of. Note:
an encoder that was not fine-tuned knows nothing of sentences that mean the
same.
"""
_POOLINGS = ("first", "mean", "max", "words", "none")
_COLUMNS = {"text": ["text", "text_a", "sentence", 0]}


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FrontDoorParser(
        prog=_PROG,
        usage="%(prog)s --model PATH [FILE ...] --output FILE.npy ...",
        description=_DESCRIPTION,
    )
    group = parser.add_argument_group("the model")
    flags.add_flag(
        group,
        "model",
        required=True,
        metavar="PATH",
        help="folder of a fine-tuned model or a pre-training run, or a"
        " checkpoint of any kind",
    )
    flags.add_flag(
        group,
        "part",
        default="encoder",
        choices=("encoder", "generator"),
        metavar="NAME",
        help="encoder (the discriminator's; of a masked LM its own) or"
        " generator (default: encoder)",
    )
    flags.add_flag(
        group,
        "vocab_file",
        metavar="FILE",
        help="default: the one beside the model",
    )
    flags.add_flag(
        group,
        "hparams",
        metavar="JSON",
        help="hparams that no file states, such as num_attention_heads in"
        " model_hparam_overrides",
    )
    file_flags.add_input_flags(parser)
    _add_vector_flags(parser.add_argument_group("the vectors"))
    return parser.parse_args(list(argv[1:]))


def _add_vector_flags(group: Any) -> None:
    flags.add_flag(
        group,
        "layers",
        default="-1",
        metavar="N,...",
        help="0: the embeddings' output, k: the k-th block's, -1: the last"
        " one's (default: -1)",
    )
    flags.add_flag(
        group,
        "pooling",
        default="mean",
        choices=_POOLINGS,
        metavar="NAME",
        help="one vector a text: first (at [CLS]), mean or max over its"
        " wordpieces; several: words (mean of each word's) or none"
        " (default: mean)",
    )
    flags.add_flag(
        group,
        "combine",
        default="mean",
        choices=("mean", "concat"),
        metavar="NAME",
        help="what becomes of several layers (default: mean)",
    )
    for name, default, text in (
        ("batch_size", 32, "texts computed at once"),
        ("max_length", None, "wordpieces of a text; default: all positions"),
    ):
        end = "" if default is None else f" (default: {default})"
        flags.add_flag(
            group,
            name,
            type=int,
            default=default,
            metavar="N",
            help=text + end,
        )
    flags.add_flag(
        group,
        "output",
        required=True,
        metavar="FILE",
        help="ends in .npy or .npz; words and none need .npz",
    )
    flags.boolean_argument(
        group, "overwrite", help="allow replacing the output files"
    )


def main(args: argparse.Namespace) -> int:
    """Embeds."""
    several = args.pooling in ("words", "none")
    stem, end = os.path.splitext(args.output)
    if end not in (".npy", ".npz") or (several and end != ".npz"):
        raise UserError(
            f"--output={args.output}: expected a name that ends in"
            f" {'.npz, since a text has several vectors' if several else ''}"
            f"{'' if several else '.npy or .npz'}"
        )
    args.layers = _layers(args.layers)
    for path in (args.output, f"{stem}.json", f"{stem}.rows.jsonl"):
        writer.check_free(path, args.overwrite)
    file_flags.check_inputs(args)
    from electra_tf.prediction.embedding import Embedder

    given = hparams.read_hparams(args.hparams) if args.hparams else {}
    embedder = Embedder.from_pretrained(
        args.model,
        args.part,
        args.batch_size,
        args.max_length,
        args.vocab_file,
        **given,
    )
    return _embed(args, embedder, stem)


def _layers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UserError(
            f"--layers={text}: expected whole numbers, such as -2,-1"
        ) from None


def _embed(args: argparse.Namespace, embedder: "Embedder", stem: str) -> int:
    from electra_tf.prediction.vector_files import VectorFile

    started = time.monotonic()
    columns = file_flags.chosen_columns(args.columns, _COLUMNS)
    sources = file_flags.make_sources(args, columns)
    progress = Progress(sources, args.progress)
    bad = file_flags.BadLines(args.strict, progress.say)
    width = embedder.width(args.layers, args.combine)
    cut = 0
    how = (args.layers, args.pooling, args.combine)
    rows_file = writer.AnswerFile(f"{stem}.rows.jsonl", "jsonl", args.overwrite)
    lines = _texts(sources, bad)
    pool = args.batch_size * 16
    try:
        with rows_file, VectorFile(args.output, width) as vectors:
            while some := list(itertools.islice(lines, pool)):
                found = embedder.embed([text for _, text in some], *how)
                for (read, _), one in zip(some, found, strict=True):
                    place = file_flags.place_of(read, len(sources) > 1)
                    if one.units is not None:
                        place["units"] = one.units
                    if one.cut:
                        place["cut"] = one.cut
                    cut += bool(one.cut)
                    vectors.append(one.vectors.reshape(-1, width))
                    rows_file.write(place)
                    progress.update()
            count = vectors.rows
    finally:
        progress.close()
    _write_description(args, embedder, f"{stem}.json", progress.rows, count)
    if cut:
        file_flags.say(f"{cut:,} texts cut to {embedder.max_length} wordpieces")
    seconds = time.monotonic() - started
    file_flags.say(
        file_flags.summary("texts", progress, seconds, bad.count, sources)
    )
    file_flags.say(f"{count:,} vectors of {width} in {args.output}")
    return 0


def _texts(sources: Sequence[Any], bad: file_flags.BadLines) -> Any:
    for read, values in file_flags.good_lines(sources, bad):
        if isinstance(values["text"], str):
            yield read, values["text"]
        else:
            bad.add(read, repr(values["text"])[:80], "a text")


def _write_description(
    args: argparse.Namespace,
    embedder: "Embedder",
    path: str,
    texts: int,
    vectors: int,
) -> None:
    facts = {
        "model": args.model,
        "part": args.part,
        "layers": list(args.layers),
        "pooling": args.pooling,
        "combine": args.combine,
        "max_length": embedder.max_length,
        "texts": texts,
        "vectors": vectors,
        "width": embedder.width(args.layers, args.combine),
        "inputs": args.inputs or ["-"],
    }
    with open(path + writer.PART, "w", encoding="utf-8") as file:
        file.write(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    os.replace(path + writer.PART, path)
