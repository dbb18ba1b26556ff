# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes a model as a SavedModel that takes raw text, for serving."""

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from configure import flags
from configure import hparams as hparam_rules
from configure.errors import UserError

if TYPE_CHECKING:
    from electra_tf.export.signatures import ServingModule

_PROG = "python -m electra_tf export_model"
_DESCRIPTION = """
Writes DIR/<version>/: a SavedModel with the tokenizer, the label names and the
settings inside, for TensorFlow Serving and for any program with tensorflow and
tensorflow_text; beside it MODEL_CARD.md. A fine-tuned model is exported with
the head of its task; of a pre-trained one say with --head what it is for.
"""
HEADS = ("task", "encoder", "replaced_tokens", "fill_mask", "electric")


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FrontDoorParser(
        prog=_PROG,
        usage="%(prog)s --model PATH --output_dir DIR [--head HEAD] ...\n"
        "       %(prog)s --check DIR/<version>",
        description=_DESCRIPTION,
    )
    _add_model_flags(parser.add_argument_group("the model"))
    _add_output_flags(parser.add_argument_group("what is written"))
    args = parser.parse_args(list(argv[1:]))
    if args.check is None:
        for name in ("model", "output_dir"):
            if getattr(args, name) is None:
                parser.error(f"--{name} is missing")
    return args


def _add_model_flags(group: Any) -> None:
    flags.add_flag(
        group,
        "model",
        metavar="PATH",
        help="folder of a fine-tuned model or a pre-training run, or a"
        " checkpoint of any kind",
    )
    flags.add_flag(
        group,
        "head",
        metavar="HEAD",
        choices=HEADS,
        help="task: what a fine-tuned model learned (its default); encoder:"
        " vectors, by TF Hub's convention; of pre-trained models also"
        " replaced_tokens (the discriminator), fill_mask (the generator, or a"
        " masked LM) and electric (Electric's scores)",
    )
    for name, metavar, text in (
        ("task", "NAME", "which task, where a model learned several"),
        ("task_config", "FILE", "where a task's JSON file is now"),
        ("vocab_file", "FILE", "default: the one beside the model"),
        ("hparams", "JSON", "hparams that win over the run's"),
    ):
        flags.add_flag(group, name, metavar=metavar, help=text)
    flags.add_flag(
        group,
        "max_seq_length",
        type=int,
        metavar="N",
        help="wordpieces that texts are cut to (default: as in fine-tuning;"
        " encoder: 128; other heads of pre-trained models: all positions)",
    )
    flags.add_flag(
        group,
        "rows_at_once",
        type=int,
        default=0,
        metavar="N",
        help="classification and regression: serve_text computes so many texts"
        " of similar length together, which is quicker on a processor (8 is"
        " good there); default 0: a whole batch, best on an accelerator",
    )
    flags.add_flag(
        group,
        "top_k",
        type=int,
        default=10,
        metavar="N",
        help="fill_mask: wordpieces for each mask (default: 10)",
    )


def _add_output_flags(group: Any) -> None:
    flags.add_flag(
        group,
        "output_dir",
        metavar="DIR",
        help="folder of all versions of the served model; made if need be",
    )
    flags.add_flag(
        group,
        "version",
        type=int,
        metavar="N",
        help="default: one more than the highest in DIR",
    )
    flags.boolean_argument(
        group,
        "overwrite",
        help="replace that version (without --version: the highest)",
    )
    flags.add_flag(
        group,
        "tflite",
        default="",
        metavar="KINDS",
        help="also LiteRT (TFLite) files for ids: float, dynamic (8-bit"
        " weights), or float,dynamic; size and change of outputs are reported",
    )
    flags.boolean_argument(
        group, "onnx", help="also an ONNX file for ids (needs the extra onnx)"
    )
    flags.add_flag(
        group,
        "check",
        metavar="FOLDER",
        help="write nothing: measure an exported version again and compare"
        " with its model card; status 1 where something differs",
    )


def main(args: argparse.Namespace) -> None:
    """Exports, or checks a card."""
    if args.check is not None:
        _check(args.check)
        return
    # TensorFlow only from here on.
    from electra_tf.export import lite, onnx_file, saved_model
    from electra_tf.export.card_check import write_card
    from electra_tf.export.saved_model import export

    saved_model.choose(args.output_dir, args.version, args.overwrite)
    kinds = lite.check_kinds(k for k in args.tflite.split(",") if k)
    if args.onnx:
        onnx_file.check_installed()
    _check_numbers(args)
    loaded, module = _load(args)
    facts: dict[str, Any] = {}

    def finish(folder: str) -> None:
        lite.write_lite(module, folder, kinds)
        if args.onnx:
            onnx_file.write_onnx(module, folder)
        facts.update(write_card(folder, loaded, module))

    folder = export(
        module, args.output_dir, args.version, args.overwrite, finish
    )
    _report(folder, facts["measured"])


def _check_numbers(args: argparse.Namespace) -> None:
    least_values = {"max_seq_length": 5, "top_k": 1, "rows_at_once": 0}
    for name, least in least_values.items():
        value = getattr(args, name)
        if value is not None and value < least:
            raise UserError(f"--{name}: expected {least} or more, got {value}.")


def _load(args: argparse.Namespace) -> tuple[Any, "ServingModule"]:
    """The model, and the module that is asked for."""
    from electra_tf.prediction.loading import is_finetuned

    if is_finetuned(args.model):
        return _load_finetuned(args)
    return _load_pretrained(args)


def _load_finetuned(args: argparse.Namespace) -> tuple[Any, "ServingModule"]:
    from electra_tf.export.encoder import EncoderModule
    from electra_tf.export.saved_model import make_task_module
    from electra_tf.prediction.loading import load_finetuned

    if args.head not in (None, "task", "encoder"):
        raise UserError(
            f"--head: {args.model} is fine-tuned, and has no {args.head}"
            " head; expected task or encoder. Give the pre-trained model's"
            " folder for that head."
        )
    given = _hparams(args)
    for name in ("task_config", "vocab_file", "max_seq_length"):
        if getattr(args, name) is not None:
            given[name] = getattr(args, name)
    loaded = load_finetuned(args.model, **given)
    if args.head == "encoder":
        _refuse_rows_at_once(args)
        return loaded, EncoderModule(loaded)
    return loaded, make_task_module(loaded, args.task, args.rows_at_once)


def _refuse_rows_at_once(args: argparse.Namespace) -> None:
    if args.rows_at_once:
        raise UserError(
            f"--rows_at_once: {args.model} is not exported with a head that"
            " answers once per text; leave it out."
        )


def _load_pretrained(args: argparse.Namespace) -> tuple[Any, "ServingModule"]:
    from electra_tf.export import pretrained_heads
    from electra_tf.export.encoder import EncoderModule
    from electra_tf.prediction.loading import load_pretrained

    heads = HEADS[1:]
    if args.head not in heads:
        what = "is missing" if args.head is None else f"is {args.head!r}"
        raise UserError(
            f"--head {what}, but {args.model} is not the folder of a"
            " fine-tuned model; say what the pre-trained model is for:"
            f" {', '.join(heads)}. (A fine-tuned model's folder has a"
            " config.json with task_names.)"
        )
    for name in ("task", "task_config"):
        if getattr(args, name) is not None:
            raise UserError(
                f"--{name}: {args.model} is not fine-tuned on any task; leave"
                " it out."
            )
    _refuse_rows_at_once(args)
    loaded = load_pretrained(args.model, args.vocab_file, _hparams(args))
    length = args.max_seq_length
    positions = loaded.model.encoder_config.max_position_embeddings
    if length is not None and length > positions:
        raise UserError(
            f"--max_seq_length is {length} but the model has {positions}"
            " positions; lower it."
        )
    if args.head == "encoder":
        return loaded, EncoderModule(loaded, length)
    if args.head == "replaced_tokens":
        return loaded, pretrained_heads.ReplacedTokensModule(loaded, length)
    if args.head == "electric":
        return loaded, pretrained_heads.ElectricModule(loaded, length)
    filler = pretrained_heads.FillMaskModule(loaded, length, args.top_k)
    return loaded, filler


def _hparams(args: argparse.Namespace) -> dict[str, Any]:
    if args.hparams is None:
        return {}
    return dict(hparam_rules.read_hparams(args.hparams))


def _report(folder: str, measured: dict[str, Any]) -> None:
    from electra_tf.export.conversions import ConversionReport

    task = measured["config"].get("task")
    print(f"{measured['kind']}{f' ({task})' if task else ''} -> {folder}")
    for name, specs in measured["signatures"].items():
        inputs = ", ".join(specs["inputs"])
        print(f"  {name}({inputs}) -> {', '.join(specs['outputs'])}")
    if labels := measured["labels"]:
        more = " ..." if len(labels) > 10 else ""
        print(f"  {len(labels)} labels: {', '.join(labels[:10])}{more}")
    for facts in measured["conversions"]:
        print(f"  {ConversionReport(**facts)}")
    print(f"  {os.path.join(folder, 'MODEL_CARD.md')}")


def _check(folder: str) -> None:
    from electra_tf.export.card_check import check_card

    problems = check_card(folder)
    if problems:
        lines = "".join(f"\n  {text}" for text in problems)
        raise UserError(
            f"{folder}: {len(problems)} statement(s) of MODEL_CARD.md are not"
            f" so:{lines}"
        )
    print(f"{folder}: MODEL_CARD.md says what is measured on the files")
