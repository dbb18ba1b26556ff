# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Write vectors of texts, words or wordpieces from the encoder of any model.

The model may be fine-tuned or pre-trained, of this project, the original or
Hugging Face. The command writes FILE.npy (one vector per text) or FILE.npz
(several vectors per text, and the offset of each text's first vector),
FILE.json with the settings, and FILE.rows.jsonl with each text's line and, for
words and wordpieces, the unit of each vector. Note: an encoder that was not
fine-tuned has not learned which sentences have the same meaning.
"""

import argparse
import contextlib
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from configure import flags
from configure.errors import UserError
from configure.hparams_json import read_hparams
from electra_tf import use_onednn
from electra_tf.commands import shared_flags
from electra_tf.commands.input_stream import InputStream
from electra_tf.files.atomic import write_atomically
from electra_tf.prediction import writer

if TYPE_CHECKING:
    from electra_tf.prediction.embedding import Embedded, Embedder
    from electra_tf.prediction.reader import Read

# The values of --pooling that make several vectors per text.
_SEVERAL_VECTORS = ("words", "none")
# Number of batches whose texts are sorted together, so that the texts of a
# batch have similar lengths.
_BATCHES_AT_ONCE = 16
_STATED_FLAGS = ("model", "part", "layers", "pooling", "combine")


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("embed", __doc__)
    shared_flags.add_model_flags(parser)
    shared_flags.add_input_flags(parser)
    flags.add_flags(
        parser,
        "the vectors",
        (
            "part",
            "encoder",
            ("encoder", "generator"),
            "encoder: the discriminator, or the only network of a masked LM;"
            " generator: the network that proposes replacements",
        ),
        (
            "layers",
            "-1",
            "N,...",
            "layers to use: 0 is the output of the embeddings, k the output of"
            " block k, and -1 the output of the last block",
        ),
        (
            "pooling",
            "mean",
            ("first", "mean", "max", *_SEVERAL_VECTORS),
            "first (the vector at [CLS]), mean and max (over all wordpieces)"
            " make one vector per text; words (mean over a word's wordpieces)"
            " makes one per word, and none one per wordpiece",
        ),
        (
            "combine",
            "mean",
            ("mean", "concat"),
            "how several layers become one vector",
        ),
        shared_flags.BATCH_SIZE,
        (
            "max_length",
            int,
            "N",
            "maximum number of wordpieces in a text; longer texts are cut"
            " (default: the length of pre-training)",
        ),
        (
            "output",
            flags.REQUIRED,
            "FILE",
            "output file, whose name ends in .npy or .npz; --pooling=words and"
            " --pooling=none require .npz",
        ),
        ("overwrite", False, "", "replace the output files if they exist"),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Write the vectors of all texts."""
    stem = _check_output_name(args)
    args.layers = _parse_layers(args.layers)
    rows_path = f"{stem}.rows.jsonl"
    shared_flags.check_files(args, args.output, f"{stem}.json", rows_path)
    use_onednn(True)  # oneDNN speeds up batches of many texts.
    from electra_tf.prediction.embedding import Embedder

    hparams = read_hparams(args.hparams) if args.hparams else {}
    embedder = Embedder.from_pretrained(
        args.model,
        args.part,
        args.batch_size,
        args.max_length,
        args.vocab_file or hparams.pop("vocab_file", None),
        hparams,
    )
    stream = InputStream(args)
    width = embedder.width(args.layers, args.combine)
    cut_texts = 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(stream)
        write = stack.enter_context(
            writer.answer_file(rows_path, "jsonl", args.overwrite)
        )
        vectors = stack.enter_context(writer.VectorFile(args.output, width))
        for read, embedded in _embed(args, embedder, stream):
            row = stream.location(read)
            if embedded.units is not None:
                row["units"] = embedded.units
            if embedded.cut:
                row["cut"] = embedded.cut
                cut_texts += 1
            vectors.append(embedded.vectors.reshape(-1, width))
            write(row)
            stream.count()
        stream.require_rows("texts", "embedded")
    facts = {
        **{name: getattr(args, name) for name in _STATED_FLAGS},
        "max_length": embedder.max_length,
        "texts": stream.rows,
        "vectors": vectors.rows,
        "width": width,
        "inputs": args.inputs or ["-"],
    }
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    write_atomically(f"{stem}.json", f"{text}\n")
    if cut_texts:
        shared_flags.report(
            f"{cut_texts:,} texts were cut to {embedder.max_length} wordpieces"
        )
    stream.report_summary("texts")
    shared_flags.report(
        f"Wrote {vectors.rows:,} vectors of width {width} to {args.output}"
    )
    return 0


def _check_output_name(args: argparse.Namespace) -> str:
    """Return --output without its ending, which must fit --pooling."""
    stem, ending = os.path.splitext(args.output)
    if args.pooling in _SEVERAL_VECTORS:
        if ending != ".npz":
            raise UserError(
                f"--output={args.output}: expected a name that ends in .npz,"
                f" because --pooling={args.pooling} makes several vectors per"
                " text. Pass another --output."
            )
    elif ending not in (".npy", ".npz"):
        raise UserError(
            f"--output={args.output}: expected a name that ends in .npy or"
            " .npz. Pass another --output."
        )
    return stem


def _parse_layers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UserError(
            f"--layers={text}: expected whole numbers, such as -2,-1. Correct"
            " the numbers."
        ) from None


def _embed(
    args: argparse.Namespace, embedder: "Embedder", stream: InputStream
) -> "Iterator[tuple[Read, Embedded]]":
    """Yield each usable line with its vectors."""
    texts = stream.texts()
    count = args.batch_size * _BATCHES_AT_ONCE
    while chunk := list(itertools.islice(texts, count)):
        embedded_texts = embedder.embed(
            [text for _, text in chunk], args.layers, args.pooling, args.combine
        )
        reads = [read for read, _ in chunk]
        yield from zip(reads, embedded_texts, strict=True)
