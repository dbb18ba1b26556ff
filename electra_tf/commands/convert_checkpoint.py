# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes a checkpoint in another format, or a part of it.

Between the original's TF1 files, this project's and Hugging Face folders, in
every direction; from BERT's TF1 files, too. Every tensor is either written bit
for bit or listed with the reason.
"""

import argparse
import json
import os
from typing import Any

from configure import flags
from configure import hparams as hparam_rules
from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.commands.convert_flags import parse_flags
from electra_tf.commands.convert_place import (
    Place,
    check_place,
    choose_place,
    content,
    file_sizes,
    write_bytes,
)
from electra_tf.text.vocab import check_vocab


def main(args: argparse.Namespace) -> None:
    """Converts, and says what was read, dropped and written.

    Args:
      args: parsed flags.

    Raises:
      UserError: the source cannot be read or does not fit what was asked for,
        or files are there already. Nothing has been written then.
    """
    # TensorFlow only from here on.
    from electra_tf.checkpoints.formats import open_weights
    from electra_tf.commands import convert_report

    source = open_weights(args.source)
    hparams, assumed = _hparams(source, args)
    weights, changes = _changed(source, args)
    place = choose_place(args, source.global_step)
    vocab_file = args.vocab_file or source.vocab_file
    vocab_notes = _check_vocab(vocab_file, weights, args.source)
    guessed = [name for text in assumed for name in _names(text)]
    check_place(
        source.path, place, hparams, guessed, vocab_file, args.overwrite
    )
    dropped, notes = _write(weights, place, hparams, guessed, vocab_file, args)
    notes += vocab_notes
    dropped = {**weights.dropped, **dropped}
    unknown = convert_report.unknown_variables(source)
    kept = [name for name in unknown if name not in dropped]
    report = {
        "from": convert_report.describe(source),
        "to": _described(weights, place),
        "part": args.part,
        "files": file_sizes(place),
        "changes": changes,
        "dropped": convert_report.by_reason(dropped),
        "unknown": unknown,
        "unknown_fate": "kept under their names" if kept else "left out",
        "notes": notes,
        "assumed": assumed,
        "hparams": hparams,
    }
    write_bytes(place.report, f"{json.dumps(report, indent=2)}\n".encode())
    print(convert_report.screen(report))
    print(f"Report   {place.report}")


def _hparams(
    source: Any, args: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """The hparams of the result's config, and what of them is a guess."""
    from electra_tf.checkpoints import hparams_check, sizes

    hparams = sizes.infer_hparams(source.shapes)
    assumed = sizes.not_inferable(source.shapes)
    given: dict[str, Any] = {}
    if args.hparams is not None:
        read = hparam_rules.read_hparams(args.hparams)
        read = PretrainingConfig.explicit_hparams(read)
        for name in ("model_name", "data_dir"):
            read.pop(name, None)
        given = PretrainingConfig.clean_hparams(read)
    for stated, where in (
        (source.hparams, f"the config beside {source.path}"),
        (given, "--hparams"),
    ):
        hparams_check.check_shapes(source.shapes, stated, where)
        hparams = hparams_check.merged(hparams, stated)
    if args.extend_positions is not None:
        hparams["model_hparam_overrides"] = {
            **hparams.get("model_hparam_overrides", {}),
            "max_position_embeddings": args.extend_positions,
        }
    stated = {**source.hparams, **given}
    stated |= stated.get("model_hparam_overrides", {})
    if source.hparams:  # A config leaves out what is as usual.
        stated.setdefault("hidden_act", "gelu")
    assumed = [a for a in assumed if not _is_stated(a, stated)]
    return hparams, assumed


def _is_stated(assumption: str, stated: dict[str, Any]) -> bool:
    return all(name in stated for name in _names(assumption))


def _names(assumption: str) -> list[str]:
    """The hparams that a line of `sizes.not_inferable` is about."""
    return assumption.split(":")[0].split(", ")


def _changed(source: Any, args: argparse.Namespace) -> tuple[Any, list[str]]:
    """The tensors to write, and what was done to them."""
    from electra_tf.checkpoints import parts, positions
    from electra_tf.checkpoints.weights import without_optimizer

    weights, changes = source, []
    if args.extend_positions is not None:
        weights = positions.extend_positions(weights, args.extend_positions)
        changes.append(
            positions.describe_extension(source, args.extend_positions)
        )
    weights = parts.select_part(weights, args.part)
    if args.strip_optimizer:
        slots = len(weights.slots)
        weights = without_optimizer(weights)
        changes.append(f"{slots} Adam slots left out (--strip_optimizer)")
    return weights, changes


def _check_vocab(
    vocab_file: str | None, weights: Any, source: str
) -> list[str]:
    """Raises a UserError where tokens have no row; remarks on spare rows."""
    from electra_tf.checkpoints.measured import measure

    if vocab_file is None:
        return []
    rows = measure(weights.shapes).vocab_size
    tokens = max(check_vocab(vocab_file).values()) + 1
    if tokens > rows:
        raise UserError(
            f"{vocab_file}: {tokens} tokens, but {source} has embeddings of"
            f" {rows}. Give the vocabulary it was trained with as"
            " --vocab_file."
        )
    if tokens == rows:
        return []
    return [
        f"{vocab_file} has {tokens} tokens, the embeddings {rows} rows: is it"
        " the vocabulary of this model?"
    ]


def _write(
    weights: Any,
    place: Place,
    hparams: dict[str, Any],
    guessed: list[str],
    vocab_file: str | None,
    args: argparse.Namespace,
) -> tuple[dict[str, str], list[str]]:
    """Writes everything; returns what the format left out, and remarks."""
    from electra_tf.checkpoints import electra_config, native, tf1

    dropped: dict[str, str] = {}
    notes: list[str] = []
    if place.format == "huggingface":
        from electra_tf.checkpoints.huggingface import write_huggingface

        report = write_huggingface(
            weights,
            place.path,
            part="all" if args.part == "encoder" else args.part,
            drop_unrepresentable=args.drop_unrepresentable,
            vocab_file=vocab_file,
            hparams=hparams,
            overwrite=args.overwrite,
        )
        dropped |= report.left_out
        if reason := dropped.pop("Adam slots", None):
            dropped |= dict.fromkeys(weights.slots, reason)
        notes += [f"{name}: {text}" for name, text in report.notes.items()]
    elif place.format == "native":
        native.write_native(weights, place.path, overwrite=args.overwrite)
        if weights.global_step is None:
            notes.append("no step was stored: it is 0 in the result")
    else:
        tf1.write_tf1(weights, place.path, overwrite=args.overwrite)
    for folder in _model_folders(place):
        electra_config.write_electra_config(folder, hparams, guessed)
    if vocab_file is not None and place.format != "huggingface":
        path = os.path.join(place.folder, electra_config.VOCAB_FILE)
        write_bytes(path, content(vocab_file))
    if vocab_file is None:
        notes.append("no vocabulary is known; give one as --vocab_file")
    if not weights.slots and place.format != "huggingface":
        notes.append(
            "no Adam slots: training starts from it with --init_checkpoint"
        )
    return dropped, notes


def _model_folders(place: Place) -> list[str]:
    """The folder written to, and those of the two networks in it."""
    parts = ("discriminator", "generator")
    inner = [os.path.join(place.folder, part) for part in parts]
    if place.format != "huggingface":
        return [place.folder]
    return [place.folder, *filter(os.path.isdir, inner)]


def _described(weights: Any, place: Place) -> dict[str, Any]:
    """Counts what was written; a Hugging Face folder is looked at again."""
    from electra_tf.commands import convert_report

    if place.format == "huggingface":
        from electra_tf.checkpoints.huggingface import open_huggingface

        weights = open_huggingface(place.path)
    described = convert_report.describe(weights)
    return {**described, "path": place.path, "kind": place.format}


if __name__ == "__main__":
    flags.run_front_door(main, parse_flags)
