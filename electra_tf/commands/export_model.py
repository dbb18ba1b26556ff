# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Write a model as a SavedModel that takes raw text, for serving.

DIR/<version>/ contains the model with its tokenizer, label names and settings,
and a MODEL_CARD.md. TensorFlow Serving and any program with tensorflow and
tensorflow_text can load it. A fine-tuned model is exported with the head of its
task; for a pre-trained model --head selects the head.
"""

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from configure import flags
from configure.errors import UserError
from configure.hparams_json import read_hparams

if TYPE_CHECKING:
    from electra_tf.export.signatures import ServingModule

HEADS = ("task", "encoder", "replaced_tokens", "fill_mask", "electric")
_MINIMA = {"max_seq_length": 5, "top_k": 1, "rows_at_once": 0}


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser(
        "export_model",
        __doc__,
        usage="%(prog)s --model PATH --output_dir DIR [--head HEAD] ...\n"
        "       %(prog)s --check DIR/<version>",
    )
    _add_model_flags(parser)
    _add_output_flags(parser)
    args = parser.parse_args(list(argv[1:]))
    if args.check is None:
        for name in ("model", "output_dir"):
            if getattr(args, name) is None:
                parser.error(f"--{name} is missing. Pass --{name}, or --check")
    return args


def _add_model_flags(parser: argparse.ArgumentParser) -> None:
    flags.add_flags(
        parser,
        "the model",
        (
            "model",
            None,
            "PATH",
            "folder of a fine-tuned model or a pre-training run, or a"
            " checkpoint of any kind, such as a folder of transformers or"
            " hf:OWNER/NAME",
        ),
        (
            "head",
            None,
            HEADS,
            "task: the head of a fine-tuned model (default for such a model);"
            " encoder: vectors, by TF Hub's convention; only for pre-trained"
            " models: replaced_tokens (the discriminator), fill_mask (the"
            " generator, or a masked LM) and electric (Electric's scores)",
        ),
        ("task", None, "NAME", "the task to export, if the model has several"),
        ("task_config", None, "FILE", "new path of the task's JSON file"),
        (
            "vocab_file",
            None,
            "FILE",
            "vocabulary (default: the one next to the model)",
        ),
        ("hparams", None, "JSON", "hparams that override those of the run"),
        (
            "max_seq_length",
            int,
            "N",
            "maximum number of wordpieces in a text (default: as in"
            " fine-tuning; encoder: 128; other heads of pre-trained models: the"
            " number of positions)",
        ),
        (
            "rows_at_once",
            int,
            "N",
            "tasks with one answer per text: number of texts of similar length"
            " that serve_text computes together (default: 8, the fastest on a"
            " CPU); 0: a whole batch, best on an accelerator",
        ),
        (
            "top_k",
            int,
            "N",
            "fill_mask: number of wordpieces for each mask; default: 10",
        ),
    )


def _add_output_flags(parser: argparse.ArgumentParser) -> None:
    flags.add_flags(
        parser,
        "what is written",
        (
            "output_dir",
            None,
            "DIR",
            "folder of all versions of the exported model; created if missing",
        ),
        (
            "version",
            int,
            "N",
            "number of the version; default: one more than the highest in DIR",
        ),
        (
            "overwrite",
            False,
            "",
            "replace this version (without --version: the highest)",
        ),
        (
            "tflite",
            None,
            ("float", "dynamic", "float,dynamic"),
            "also write LiteRT (TFLite) files that take ids (dynamic: with"
            " 8-bit weights), and print their sizes and the changes of outputs",
        ),
        (
            "onnx",
            False,
            "",
            "also write an ONNX file that takes ids (requires the extra onnx)",
        ),
        (
            "int8",
            False,
            "",
            "also write files with 8-bit weights, which have about a quarter"
            " of the size: onnx/model_int8.onnx with --onnx, and"
            " lite/model_dynamic.tflite with --tflite",
        ),
        (
            "score_split",
            None,
            "SPLIT",
            "labelled split of the task, such as dev, on which the SavedModel"
            " and the files of --onnx and --tflite are scored; the card lists"
            " the metrics",
        ),
        (
            "check",
            None,
            "FOLDER",
            "write nothing, but compare an exported version with its model"
            " card; the exit status is 1 if a statement of the card is false",
        ),
    )


def main(args: argparse.Namespace) -> None:
    """Export a model, or check a model card."""
    # TensorFlow is imported late, because the import takes seconds.
    from electra_tf.export import conversions
    from electra_tf.export.card import check_card, write_card
    from electra_tf.export.formats import check_scoring
    from electra_tf.export.saved_model import choose_version, export

    if args.check is not None:
        if problems := check_card(args.check):
            lines = "".join(f"\n  {text}" for text in problems)
            raise UserError(
                f"{args.check}: {len(problems)} statement(s) of MODEL_CARD.md"
                f" are false:{lines}\nExport the model again."
            )
        print(f"{args.check}: MODEL_CARD.md agrees with the measurements")
        return
    _check_conversions(args)
    choose_version(args.output_dir, args.version, args.overwrite)
    if args.onnx:
        conversions.check_onnx_installed()
    for name, minimum in _MINIMA.items():
        value = getattr(args, name)
        if value is not None and value < minimum:
            raise UserError(
                f"--{name} is {value}; expected {minimum} or more. Pass a"
                " larger number."
            )
    loaded, module = _load(args)
    if args.score_split:
        check_scoring(module, args.score_split)
    facts: dict[str, Any] = {}

    def finish(folder: str) -> None:
        kinds = args.tflite.split(",") if args.tflite else []
        if kinds and args.int8 and "dynamic" not in kinds:
            kinds.append("dynamic")
        conversions.write_lite(module, folder, kinds)
        if args.onnx:
            conversions.write_onnx(module, folder, args.int8)
        facts.update(write_card(folder, loaded, module, args.score_split))

    folder = export(
        module, args.output_dir, args.version, args.overwrite, finish
    )
    _report(folder, facts)


def _check_conversions(args: argparse.Namespace) -> None:
    """Refuse flags that need a conversion if no conversion is requested."""
    for name in ("int8", "score_split"):
        if getattr(args, name) and not (args.onnx or args.tflite):
            raise UserError(
                f"--{name} requires the files of --onnx or --tflite, but"
                " neither is set. Pass --onnx or --tflite=float."
            )


def _load(args: argparse.Namespace) -> tuple[Any, "ServingModule"]:
    from electra_tf.export import heads
    from electra_tf.export.encoder import EncoderModule
    from electra_tf.export.saved_model import make_task_module
    from electra_tf.prediction import loading

    hparams = dict(read_hparams(args.hparams)) if args.hparams else {}
    is_finetuned = loading.is_finetuned(args.model)
    head = args.head or ("task" if is_finetuned else "missing")
    _check_head(head, is_finetuned, args)
    length = args.max_seq_length
    if is_finetuned:
        for name in ("task_config", "vocab_file", "max_seq_length"):
            if getattr(args, name) is not None:
                hparams[name] = getattr(args, name)
        loaded = loading.load_finetuned(args.model, **hparams)
        if head == "encoder":
            return loaded, EncoderModule(loaded)
        return loaded, make_task_module(loaded, args.task, args.rows_at_once)
    loaded = loading.load_pretrained(args.model, args.vocab_file, hparams)
    positions = loaded.model.encoder_config.max_position_embeddings
    if length is not None and length > positions:
        raise UserError(
            f"--max_seq_length is {length}, but the model has {positions}"
            f" positions. Pass {positions} or less."
        )
    if head == "fill_mask":
        return loaded, heads.FillMaskModule(loaded, length, args.top_k or 10)
    modules = {
        "encoder": EncoderModule,
        "replaced_tokens": heads.ReplacedTokensModule,
        "electric": heads.ElectricModule,
    }
    return loaded, modules[head](loaded, length)


def _check_head(
    head: str, is_finetuned: bool, args: argparse.Namespace
) -> None:
    """Refuse a head that the model does not have, and flags of other heads."""
    expected = HEADS[:2] if is_finetuned else HEADS[1:]
    if head not in expected:
        kind = "the" if is_finetuned else "not the"
        raise UserError(
            f"--head is {head}, but {args.model} is {kind} folder of a"
            " fine-tuned model (which has a config.json with task_names). Pass"
            f" --head={' or '.join(expected)}."
        )
    for name in ("task", "task_config", "rows_at_once"):
        if getattr(args, name) is not None and head != "task":
            raise UserError(
                f"--{name} applies to heads of fine-tuned models, but the head"
                f" is {head}. Remove --{name}."
            )
    if args.top_k and head != "fill_mask":
        raise UserError(
            f"--top_k applies to fill_mask, but the head is {head}. Remove"
            " --top_k."
        )


def _report(folder: str, facts: dict[str, Any]) -> None:
    """Print the signatures, conversions and formats of an export."""
    measured = facts["measured"]
    model = measured["model"]
    task = f" ({model['task']})" if "task" in model else ""
    print(f"{model['kind']}{task} -> {folder}")
    for name, specs in measured["signatures"].items():
        inputs = ", ".join(specs["inputs"])
        print(f"  {name}({inputs}) -> {', '.join(specs['outputs'])}")
    for name, change in measured["conversions"].items():
        print(
            f"  {name}: {change['bytes']:,} bytes; outputs change by"
            f" {change['largest_change']:.2g} at most,"
            f" {change['mean_change']:.2g} on average;"
            f" {change['same_choices']:.1%} of the choices are the same"
        )
    for name, row in facts["recorded"].get("formats", {}).items():
        cells = [
            f"{k} {v:.4g}"
            for k, v in row.items()
            if k != "bytes" and not isinstance(v, str)
        ]
        print(f"  {name}: {', '.join([row['weights'], *cells])}")
    print(f"  {os.path.join(folder, 'MODEL_CARD.md')}")
