# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts, words or wordpieces, from the encoder of any model.

Fine-tuned or pre-trained, of this project, the original or Hugging Face. Writes
FILE.npy (one vector a text) or FILE.npz (several; offsets say which belong to
which text), FILE.json that says how they were made, and FILE.rows.jsonl with
each text's line and, for words and wordpieces, what each vector is of. Note:
an encoder that was not fine-tuned knows nothing of sentences that mean the
same.
"""

import argparse
import itertools
import json
import os
from collections.abc import Sequence

from configure import flags
from configure.errors import UserError
from configure.json_text import read_hparams
from electra_tf import use_onednn
from electra_tf.commands import shared_flags
from electra_tf.files.atomic import write_atomically
from electra_tf.prediction import writer

_SEVERAL = ("words", "none")


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("embed", __doc__)
    shared_flags.add_model_flags(parser)
    shared_flags.add_input_flags(parser)
    flags.add_flags(
        parser,
        "the vectors",
        (
            *("part", "encoder", ("encoder", "generator")),
            "the discriminator's encoder (a masked LM's own), or the generator",
        ),
        (
            *("layers", "-1", "N,..."),
            "0: the embeddings' output, k: the k-th block's, -1: the last"
            " one's",
        ),
        (
            *("pooling", "mean", ("first", "mean", "max", *_SEVERAL)),
            "one vector a text: first (at [CLS]), mean or max over its"
            " wordpieces; several: words (mean of each word's) or none",
        ),
        (
            *("combine", "mean", ("mean", "concat")),
            "what becomes of several layers",
        ),
        shared_flags.BATCH_SIZE,
        (
            *("max_length", int, "N"),
            "wordpieces of a text; default: those of pre-training",
        ),
        (
            *("output", flags.REQUIRED, "FILE"),
            "ends in .npy or .npz; words and none need .npz",
        ),
        ("overwrite", False, "", "allow replacing the output files"),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Embeds."""
    several = args.pooling in _SEVERAL
    stem, end = os.path.splitext(args.output)
    if end not in (".npy", ".npz") or (several and end != ".npz"):
        ends = ".npz, since a text has several vectors"
        raise UserError(
            f"--output={args.output}: expected a name that ends in"
            f" {ends if several else '.npy or .npz'}"
        )
    try:
        args.layers = tuple(int(part) for part in args.layers.split(","))
    except ValueError:
        raise UserError(
            f"--layers={args.layers}: expected whole numbers, such as -2,-1"
        ) from None
    outputs = (args.output, f"{stem}.json", f"{stem}.rows.jsonl")
    shared_flags.check_files(args, *outputs)
    use_onednn(True)  # For batches of many texts.
    from electra_tf.prediction.embedding import Embedder

    given = read_hparams(args.hparams) if args.hparams else {}
    embedder = Embedder.from_pretrained(
        args.model,
        args.part,
        args.batch_size,
        args.max_length,
        args.vocab_file or given.pop("vocab_file", None),
        given,
    )
    run = shared_flags.Run(args)
    width = embedder.width(args.layers, args.combine)
    how = (args.layers, args.pooling, args.combine)
    rows = writer.answer_file(f"{stem}.rows.jsonl", "jsonl", args.overwrite)
    texts, n_cut = run.texts(), 0
    with run, rows as write, writer.VectorFile(args.output, width) as vectors:
        while some := list(itertools.islice(texts, args.batch_size * 16)):
            found = embedder.embed([text for _, text in some], *how)
            for (read, _), one in zip(some, found, strict=True):
                place = run.place_of(read)
                if one.units is not None:
                    place["units"] = one.units
                if one.cut:
                    place["cut"] = one.cut
                    n_cut += 1
                vectors.append(one.vectors.reshape(-1, width))
                write(place)
                run.count()
    stated = ("model", "part", "layers", "pooling", "combine")
    facts = {
        **{name: getattr(args, name) for name in stated},
        "max_length": embedder.max_length,
        "texts": run.rows,
        "vectors": vectors.rows,
        "width": width,
        "inputs": args.inputs or ["-"],
    }
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    write_atomically(f"{stem}.json", f"{text}\n")
    if n_cut:
        shared_flags.say(
            f"{n_cut:,} texts cut to {embedder.max_length} wordpieces"
        )
    run.say_summary("texts")
    shared_flags.say(f"{vectors.rows:,} vectors of {width} in {args.output}")
    return 0
