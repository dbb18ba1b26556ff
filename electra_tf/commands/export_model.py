# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes a model as a SavedModel that takes raw text, for serving.

DIR/<version>/ holds the tokenizer, the label names and the settings, too, for
TensorFlow Serving and for any program with tensorflow and tensorflow_text;
beside it MODEL_CARD.md. A fine-tuned model is exported with the head of its
task; of a pre-trained one say with --head what it is for.
"""

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from configure import flags
from configure.errors import UserError
from configure.json_text import read_hparams

if TYPE_CHECKING:
    from electra_tf.export.signatures import ServingModule

HEADS = ("task", "encoder", "replaced_tokens", "fill_mask", "electric")
_LEAST = {"max_seq_length": 5, "top_k": 1, "rows_at_once": 0}


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser(
        "export_model",
        __doc__,
        usage="%(prog)s --model PATH --output_dir DIR [--head HEAD] ...\n"
        "       %(prog)s --check DIR/<version>",
    )
    flags.add_flags(
        parser,
        "the model",
        (
            *("model", None, "PATH"),
            "folder of a fine-tuned model or a pre-training run, or a"
            " checkpoint of any kind, such as a folder of transformers or"
            " hf:OWNER/NAME",
        ),
        (
            *("head", None, HEADS),
            "task: what a fine-tuned model learned (its default); encoder:"
            " vectors, by TF Hub's convention; of pre-trained models also"
            " replaced_tokens (the discriminator), fill_mask (the generator, or"
            " a masked LM) and electric (Electric's scores)",
        ),
        ("task", None, "NAME", "which, where a model learned several"),
        ("task_config", None, "FILE", "where a task's JSON file is now"),
        ("vocab_file", None, "FILE", "default: the one beside the model"),
        ("hparams", None, "JSON", "hparams that win over the run's"),
        (
            *("max_seq_length", int, "N"),
            "wordpieces that texts are cut to (default: as in fine-tuning;"
            " encoder: 128; other heads of pre-trained models: their own)",
        ),
        (
            *("rows_at_once", 0, "N"),
            "classification and regression: serve_text computes so many texts"
            " of similar length together, which is quicker on a processor (8 is"
            " good there); 0: a whole batch, best on an accelerator",
        ),
        ("top_k", int, "N", "fill_mask: wordpieces for each mask; default: 10"),
    )
    flags.add_flags(
        parser,
        "what is written",
        (
            *("output_dir", None, "DIR"),
            "folder of all versions of the served model; made if need be",
        ),
        ("version", int, "N", "default: one more than the highest in DIR"),
        (
            *("overwrite", False, ""),
            "replace that version (without --version: the highest)",
        ),
        (
            *("tflite", None, ("float", "dynamic", "float,dynamic")),
            "also LiteRT (TFLite) files for ids (dynamic: 8-bit weights); size"
            " and change of outputs are told",
        ),
        (
            *("onnx", False, ""),
            "also an ONNX file for ids (needs the extra onnx)",
        ),
        (
            *("check", None, "FOLDER"),
            "write nothing: measure an exported version again and compare with"
            " its model card; status 1 where something differs",
        ),
    )
    args = parser.parse_args(list(argv[1:]))
    if args.check is None:
        for name in ("model", "output_dir"):
            if getattr(args, name) is None:
                parser.error(f"--{name} is missing")
    return args


def main(args: argparse.Namespace) -> None:
    """Exports, or checks a card."""
    # TensorFlow only from here on.
    from electra_tf.export import conversions
    from electra_tf.export.card import check_card, write_card
    from electra_tf.export.saved_model import choose, export

    if args.check is not None:
        if problems := check_card(args.check):
            lines = "".join(f"\n  {text}" for text in problems)
            raise UserError(
                f"{args.check}: {len(problems)} statement(s) of MODEL_CARD.md"
                f" are not so:{lines}"
            )
        print(f"{args.check}: MODEL_CARD.md says what is measured on the files")
        return
    choose(args.output_dir, args.version, args.overwrite)
    if args.onnx:
        conversions.check_onnx_installed()
    for name, least in _LEAST.items():
        value = getattr(args, name)
        if value is not None and value < least:
            raise UserError(f"--{name}: expected {least} or more, got {value}.")
    loaded, module = _load(args)
    facts: dict[str, Any] = {}

    def finish(folder: str) -> None:
        kinds = args.tflite.split(",") if args.tflite else []
        conversions.write_lite(module, folder, kinds)
        if args.onnx:
            conversions.write_onnx(module, folder)
        facts.update(write_card(folder, loaded, module))

    folder = export(
        module, args.output_dir, args.version, args.overwrite, finish
    )
    _report(folder, facts["measured"])


def _load(args: argparse.Namespace) -> tuple[Any, "ServingModule"]:
    from electra_tf.export import heads
    from electra_tf.export.encoder import EncoderModule
    from electra_tf.export.saved_model import make_task_module
    from electra_tf.prediction import loading

    given = dict(read_hparams(args.hparams)) if args.hparams else {}
    finetuned = loading.is_finetuned(args.model)
    head = args.head or ("task" if finetuned else "missing")
    known = HEADS[:2] if finetuned else HEADS[1:]
    if head not in known:
        raise UserError(
            f"--head is {head}, but {args.model} is"
            f" {'' if finetuned else 'not '}the folder of a fine-tuned model;"
            f" expected {' or '.join(known)}. (A fine-tuned model's folder has"
            " a config.json with task_names.)"
        )
    for name in ("task", "task_config", "rows_at_once"):
        if getattr(args, name) and head != "task":
            raise UserError(
                f"--{name} is for the head of a fine-tuned model, and the head"
                f" is {head}; leave it out."
            )
    if args.top_k and head != "fill_mask":
        raise UserError(f"--top_k is for fill_mask, and the head is {head}.")
    length = args.max_seq_length
    if finetuned:
        names = ("task_config", "vocab_file", "max_seq_length")
        stated = {name: getattr(args, name) for name in names}
        given |= {name: x for name, x in stated.items() if x is not None}
        loaded = loading.load_finetuned(args.model, **given)
        if head == "encoder":
            return loaded, EncoderModule(loaded)
        return loaded, make_task_module(loaded, args.task, args.rows_at_once)
    loaded = loading.load_pretrained(args.model, args.vocab_file, given)
    positions = loaded.model.encoder_config.max_position_embeddings
    if length is not None and length > positions:
        raise UserError(
            f"--max_seq_length is {length} but the model has {positions}"
            " positions; lower it."
        )
    if head == "fill_mask":
        return loaded, heads.FillMaskModule(loaded, length, args.top_k or 10)
    modules = {
        "encoder": EncoderModule,
        "replaced_tokens": heads.ReplacedTokensModule,
        "electric": heads.ElectricModule,
    }
    return loaded, modules[head](loaded, length)


def _report(folder: str, measured: dict[str, Any]) -> None:
    model = measured["model"]
    task = f" ({model['task']})" if "task" in model else ""
    print(f"{model['kind']}{task} -> {folder}")
    for name, specs in measured["signatures"].items():
        inputs = ", ".join(specs["inputs"])
        print(f"  {name}({inputs}) -> {', '.join(specs['outputs'])}")
    for name, facts in measured["conversions"].items():
        print(
            f"  {name}: {facts['bytes']:,} bytes; outputs change by"
            f" {facts['largest_change']:.2g} at most,"
            f" {facts['mean_change']:.2g} on average;"
            f" {facts['same_choices']:.1%} of the choices are the same"
        )
    print(f"  {os.path.join(folder, 'MODEL_CARD.md')}")
