# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes a checkpoint in another format, or a part of it.

Between the original's TF1 files, this project's and Hugging Face folders, in
every direction; from BERT's TF1 files, too. What SOURCE holds is told from its
content. Every tensor is either written bit for bit or listed with the reason.
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from configure import flags
from configure.config import TOKENIZER_HPARAMS
from configure.errors import UserError
from configure.formatting import join_names
from configure.json_text import read_hparams
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import formats
from electra_tf.checkpoints.contents import PARTS, TaskHead
from electra_tf.checkpoints.sizes import merge_hparams
from electra_tf.checkpoints.weights import (
    Weights,
    describe_counts,
    describe_extension,
    extend_positions,
    rename_task,
    select_part,
    select_tensors,
)
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.reading import read_bytes
from electra_tf.text.tokenizer_settings import (
    TOKENIZER_CONFIG,
    read_settings,
    settings_text,
)
from electra_tf.text.vocabulary import check_vocab, refuse_other_vocab

FORMATS = ("tf1", "native", "huggingface")
_REPORT = "conversion.json"
_HUGGING_FACE_SUFFIXES = (".safetensors", ".bin")


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("convert_checkpoint", __doc__)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="prefix (dir/model.ckpt-1000), folder, or hf:OWNER/NAME to read",
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="for tf1 and native a prefix, or a folder (existing, or ending in"
        " a slash) that gets model.ckpt-<step>; for huggingface a folder",
    )
    flags.add_flags(
        parser,
        "files",
        (
            *("output_format", None, FORMATS),
            "default: huggingface if TARGET is such a folder or .safetensors"
            " file already, otherwise tf1, which this project reads, too",
        ),
        (
            *("vocab_file", None, "FILE"),
            "put beside the result as vocab.txt (default: the one beside the"
            " source)",
        ),
        (
            *("hparams", None, "JSON"),
            "what shapes do not show, as a JSON object or a .json file, such as"
            ' {"model_hparam_overrides": {"num_attention_heads": 4}}; wins'
            " over a config beside the source",
        ),
        ("overwrite", False, "", "replace files of an earlier conversion"),
    )
    flags.add_flags(
        parser,
        "what is written",
        (
            *("part", "all", PARTS),
            "encoder is the discriminator's transformer (a masked LM's, too)"
            " without a head. Tied embeddings go into either part",
        ),
        (
            *("strip_optimizer", False, ""),
            "leave out the Adam slots (two thirds of a training checkpoint)",
        ),
        (
            *("drop_unrepresentable", False, ""),
            "leave out what the format cannot hold, instead of refusing; each"
            " is listed",
        ),
        (
            *("half_precision", False, ""),
            "round to float16, half the bytes; in Hugging Face folders alone",
        ),
        (
            "task",
            None,
            "NAME",
            "name of the task whose head SOURCE holds (default: the one that it"
            " has, or for transformers' heads chunk, squad or their type)",
        ),
        (
            *("extend_positions", int, "N"),
            "make the position tables N rows long: new rows repeat the table"
            " from its start, surplus rows are cut",
        ),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> None:
    """Converts, and says what was read, dropped and written."""
    source = formats.open_weights(args.source)
    source.heads = source.heads or _heads(source, args.source)
    hparams, assumed = _hparams(source, args)
    weights, changes, rows = source, [], args.extend_positions
    if args.task is not None:
        weights, former = rename_task(weights, args.task)
        changes.append(f"the head of {former} is that of {args.task} (--task)")
    if rows is not None:
        weights = extend_positions(weights, rows)
        changes.append(describe_extension(source, rows))
    weights = select_part(weights, args.part)
    if args.strip_optimizer:
        slots = weights.slots
        weights = select_tensors(weights, lambda name: name not in slots)
        changes.append(f"{len(slots)} Adam slots left out (--strip_optimizer)")
    path, form = _choose_place(args, source.global_step)
    is_folder = form == "huggingface"
    kinds = [head.kind for head in source.heads.values()]
    if source.kind == "huggingface" and "tagging" in kinds:
        changes.append("segments: row 0, all that transformers' taggers see")
    if args.half_precision and not is_folder:
        raise UserError(
            f"--half_precision: {form} keeps float32, to train on from; add"
            " --output_format=huggingface."
        )
    vocab_file = args.vocab_file or source.vocab_file
    notes = []
    if vocab_file is not None:
        rows = weights.contents.sizes.vocab_size
        if (tokens := len(check_vocab(vocab_file, rows))) < rows:
            notes.append(
                f"{vocab_file} has {tokens} tokens, the embeddings {rows} rows:"
                " is it the vocabulary of this model?"
            )
        if known := source.vocab_file:
            refuse_other_vocab(vocab_file, known, source.path)
    guessed = [name for text in assumed for name in _names(text)]
    beside = {
        formats.ELECTRA_CONFIG: formats.format_config(
            hparams, guessed, {} if is_folder else _heads_held(weights)
        ).encode()
    }
    if vocab_file is not None:
        beside[formats.vocab_name(vocab_file)] = read_bytes(vocab_file)
        settings = settings_text(read_settings(vocab_file))
        if settings and not is_folder:
            beside[TOKENIZER_CONFIG] = settings.encode()
    folder = path if is_folder else os.path.dirname(path) or "."
    if is_folder:  # Its own writer puts the vocabulary there.
        beside.pop("vocab.txt", None)
    place = f"{path}{os.sep if is_folder else '.'}{_REPORT}"
    begun, known = f"{place}.unfinished", json.dumps({"from": source.path})
    # What a conversion that was killed has left may go.
    if filesystem.exists(begun) and read_bytes(begun) == known.encode():
        args.overwrite = True
    _check_free(source.path, path, is_folder, folder, beside, args.overwrite)
    is_new = not filesystem.exists(folder)
    write_atomically(begun, known)
    try:
        dropped, remarks = _write(
            weights, path, form, hparams, vocab_file, guessed, args
        )
    except Exception:
        filesystem.remove(begun)
        with contextlib.suppress(OSError):  # It is not empty.
            if is_new:
                os.rmdir(folder)
        raise
    reasons: dict[str, list[str]] = {}
    for name, reason in {**weights.dropped, **dropped}.items():
        remedy = _remedy(reason, is_written=name in dropped)
        reasons.setdefault(reason + remedy, []).append(name)
    if is_folder:  # What was written is looked at again.
        from electra_tf.checkpoints.huggingface_reader import open_huggingface

        weights = open_huggingface(path)
    kept = weights.specs
    report = {
        "from": {"path": source.path, "kind": source.kind, **source.counts()},
        "to": {"path": path, "kind": form, **weights.counts()},
        "part": args.part,
        "changes": changes,
        "dropped": reasons,
        "unknown": [name for name in source.contents.unknown if name in kept],
        "notes": remarks + notes,
        "assumed": assumed,
        "hparams": hparams,
    }
    write_atomically(place, json.dumps(report, indent=2) + "\n")
    filesystem.remove(begun)
    print(_screen(report), f"Report   {place}", sep="\n")


def _heads(source: Weights, path: str) -> dict[str, TaskHead]:
    """What heads of tasks are: by their run's config, else by their names."""
    from electra_tf.finetuning.built_in import BUILT_IN
    from electra_tf.prediction import loading

    if not source.contents.tasks:
        return {}
    if loading.is_finetuned(path):
        tasks = loading.read_run(path)[-1]
        return {
            task.name: dataclasses.replace(
                task.head, max_length=task.config.max_seq_length
            )
            for task in tasks
        }
    known = (task for task in source.contents.tasks if task in BUILT_IN)
    return {
        task: TaskHead(BUILT_IN[task].type, BUILT_IN[task].labels or ())
        for task in known
    }


def _remedy(reason: str, is_written: bool) -> str:
    """Returns what keeps something that a conversion drops.

    `is_written`: the format of the result cannot hold it; else it is not part
    of what is converted.
    """
    if "--" in reason:
        return ""
    if is_written:
        return " (--output_format=native keeps it)"
    if reason.startswith("not of the "):
        return " (--part=all keeps it)"
    return " (keep SOURCE to use it)"


def _heads_held(weights: Weights) -> dict[str, TaskHead]:
    tasks = weights.contents.tasks
    return {task: h for task, h in weights.heads.items() if task in tasks}


def _hparams(
    source: Weights, args: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """The hparams of the result's config, and what of them is a guess."""
    hparams = source.contents.hparams()
    given: dict[str, Any] = {}
    if args.hparams is not None:
        read = PretrainingConfig.explicit_hparams(read_hparams(args.hparams))
        for name in ("model_name", "data_dir"):
            read.pop(name, None)
        given = PretrainingConfig.clean_hparams(read)
    vocab_file = args.vocab_file or source.vocab_file or ""
    casing = formats.resolve_model_casing(source, vocab_file, given)
    for stated, where in (
        (casing, f"the casing beside {vocab_file}"),
        (source.hparams, f"the config beside {source.path}"),
        (given, "--hparams"),
    ):
        source.contents.check_hparams(stated, where)
        hparams = merge_hparams(hparams, stated)
    if args.extend_positions is not None:
        hparams["model_hparam_overrides"] = {
            **hparams.get("model_hparam_overrides", {}),
            "max_position_embeddings": args.extend_positions,
        }
    stated = {**casing, **source.hparams, **given}
    stated |= stated.get("model_hparam_overrides", {})
    if source.hparams:  # A config leaves out what is as usual.
        stated.setdefault("hidden_act", "gelu")
    if set(TOKENIZER_HPARAMS) & stated.keys():  # One line is about both.
        stated |= dict.fromkeys(TOKENIZER_HPARAMS, True) | stated
    assumed = [
        text
        for text in source.contents.assumptions()
        if not all(name in stated for name in _names(text))
    ]
    return hparams, assumed


def _names(assumption: str) -> list[str]:
    """The hparams that a line of `Contents.assumptions` is about."""
    return assumption.split(":")[0].split(", ")


# Where the result goes, and what must not be replaced there.


def _choose_place(
    args: argparse.Namespace, step: int | None
) -> tuple[str, str]:
    target, chosen = args.target, args.output_format
    if target.endswith(_HUGGING_FACE_SUFFIXES):
        if chosen not in (None, "huggingface"):
            raise UserError(
                f"{target}: a Hugging Face file name, but --output_format is"
                f" {chosen}."
            )
        return os.path.dirname(target) or ".", "huggingface"
    if chosen is None:
        chosen = (
            "huggingface"
            if formats.find_hugging_face_weights(target)
            else "tf1"
        )
    if chosen == "huggingface":
        return target.rstrip("/") or "/", chosen
    if target.endswith("/") or filesystem.is_directory(target):
        name = "model.ckpt" if step is None else f"model.ckpt-{step}"
        target = os.path.join(target, name)
    return target.removesuffix(".index"), chosen


def _check_free(
    source: str,
    path: str,
    is_folder: bool,
    folder: str,
    beside: Mapping[str, bytes],
    overwrite: bool,
) -> None:
    """Refuses to replace what is not the same, before anything is written."""
    from electra_tf.checkpoints.tf1 import list_files
    from electra_tf.training.summaries import TRAIN_LOG

    if os.path.realpath(path) == os.path.realpath(source):
        raise UserError(
            f"{path} is the checkpoint that is read; choose another place."
        )
    if filesystem.exists(os.path.join(folder, TRAIN_LOG)):
        raise UserError(
            f"{folder} is the folder of a run, which would go on from what is"
            " written there; choose another."
        )
    if not beside.keys() & {*formats.VOCAB_FILES} and not is_folder:
        if other := formats.find_vocab(folder):
            raise UserError(
                f"{other} would be taken for this model's, whose vocabulary is"
                " not known; give it as --vocab_file, or choose another place."
            )
    differing = [
        there
        for name, content in beside.items()
        if filesystem.exists(there := os.path.join(folder, name))
        and read_bytes(there) != content
    ]
    differing += [] if is_folder else list_files(path)
    if differing and not overwrite:
        raise UserError(
            f"{differing[0]} exists and would be replaced; choose another"
            " place, or add --overwrite."
        )


def _write(
    weights: Weights,
    path: str,
    form: str,
    hparams: dict[str, Any],
    vocab_file: str | None,
    assumed: Sequence[str],
    args: argparse.Namespace,
) -> tuple[dict[str, str], list[str]]:
    """Writes the tensors; returns what the format left out, and remarks."""
    from electra_tf.checkpoints import tf1, tf2

    dropped, notes = {}, []
    folder = os.path.dirname(path) or "."
    complete = functools.partial(
        formats.complete_folder,
        *(folder, hparams, vocab_file, assumed, _heads_held(weights)),
    )
    if form == "huggingface":
        from electra_tf.checkpoints.huggingface_writer import write_huggingface

        report = write_huggingface(
            weights,
            path,
            part=args.part,
            drop_unrepresentable=args.drop_unrepresentable,
            vocab_file=vocab_file,
            hparams=hparams,
            overwrite=args.overwrite,
            electra_config=formats.format_config(hparams, assumed),
            half_precision=args.half_precision,
        )
        dropped |= report.left_out
        if reason := dropped.pop("Adam slots", None):
            dropped |= dict.fromkeys(weights.slots, reason)
        notes += [f"{name}: {text}" for name, text in report.notes.items()]
    elif form == "native":
        tf2.write_native(weights, path, args.overwrite, complete)
        if weights.global_step is None:
            notes.append("no step was stored; training on from it starts at 0")
    else:
        tf1.write_tf1(weights, path, args.overwrite, complete=complete)
        if weights.contents.shares_some_tables:
            notes.append(
                f"embedding_sharing {weights.contents.embedding_sharing}: the"
                " original fine-tunes this discriminator, but has no such"
                " generator; do not train it on with the original"
            )
    if vocab_file is None:
        notes.append("no vocabulary is known; give one as --vocab_file")
    if not weights.slots and form != "huggingface":
        notes.append(
            "no Adam slots: training starts from it with --init_checkpoint"
        )
    return dropped, notes


def _screen(report: Mapping[str, Any]) -> str:
    source, result = report["from"], report["to"]
    lines = [
        f"Read     {source['path']}",
        f"  {source['kind']}: {describe_counts(source)}",
        f"Written  {result['path']} (part: {report['part']})",
        f"  {result['kind']}: {describe_counts(result)}",
    ]
    lines += [f"Changed  {text}" for text in report["changes"]]
    for reason, names in report["dropped"].items():
        lines.append(f"Dropped  {join_names(names, 3)}: {reason}")
    if report["unknown"]:
        lines.append(
            f"Unknown  {join_names(report['unknown'], 3)}: of no model of the"
            " original's; kept under their names"
        )
    lines += [f"Note     {text}" for text in report["notes"]]
    lines += [f"Assumed  {text}" for text in report["assumed"]]
    return "\n".join(lines)
