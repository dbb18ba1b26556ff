# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes a checkpoint in another format, or a part of it.

Between the original's TF1 files, this project's and Hugging Face folders, in
every direction; from BERT's TF1 files, too. Every tensor is either written bit
for bit or listed with the reason.
"""

import argparse
import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from configure import flags
from configure import hparams as hparam_rules
from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf import files
from electra_tf.checkpoints.weights import (
    Weights,
    describe_extension,
    extend_positions,
    select_part,
    without_optimizer,
)
from electra_tf.text.vocab import check_vocab

# The command line of convert_checkpoint.

FORMATS = ("tf1", "native", "huggingface")
PARTS = ("all", "discriminator", "generator", "encoder")


def make_parser() -> flags.FrontDoorParser:
    """Describes the command line."""
    parser = flags.FrontDoorParser(
        prog="python -m electra_tf convert_checkpoint",
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
    """Reads the command line."""
    return make_parser().parse_args(list(argv[1:]))


# Where convert_checkpoint writes, and what must not be replaced there.

_REPORT = "conversion.json"
_HUGGING_FACE_SUFFIXES = (".safetensors", ".bin")


@dataclasses.dataclass(frozen=True)
class Place:
    """Where the result goes.

    Attributes:
      path: a prefix, or a Hugging Face folder.
      format: of the result.
    """

    path: str
    format: str

    @property
    def folder(self) -> str:
        """Where config and vocabulary go."""
        if self.format == "huggingface":
            return self.path
        return os.path.dirname(self.path) or "."

    @property
    def report(self) -> str:
        """Path of the JSON report."""
        if self.format == "huggingface":
            return os.path.join(self.path, _REPORT)
        return f"{self.path}.{_REPORT}"


def choose_place(args: argparse.Namespace, step: int | None) -> Place:
    """Settles the format and the prefix or folder.

    Args:
      step: of the source, None where it has none.
    """
    target, chosen = args.target, args.format
    if target.endswith(_HUGGING_FACE_SUFFIXES):
        if chosen not in (None, "huggingface"):
            raise UserError(
                f"--to {target}: a Hugging Face file name, but --format is"
                f" {chosen}."
            )
        return Place(os.path.dirname(target) or ".", "huggingface")
    if chosen is None:
        chosen = "tf1"
        if files.is_directory(target):
            from electra_tf.checkpoints.huggingface_reader import is_huggingface

            chosen = "huggingface" if is_huggingface(target) else "tf1"
    if chosen == "huggingface":
        return Place(target.rstrip("/") or "/", chosen)
    if target.endswith("/") or files.is_directory(target):
        name = "model.ckpt" if step is None else f"model.ckpt-{step}"
        target = os.path.join(target, name)
    return Place(target.removesuffix(".index"), chosen)


def check_place(
    source: str,
    place: Place,
    hparams: dict[str, Any],
    guessed: list[str],
    vocab_file: str | None,
    overwrite: bool,
) -> None:
    """Refuses to replace what is not the same, before anything is written.

    Args:
      vocab_file: vocabulary to put beside, or None.
    """
    from electra_tf.checkpoints import electra_config, tf1

    if os.path.abspath(place.path) == os.path.abspath(source):
        raise UserError(
            f"--to {place.path} is the checkpoint that is read; choose another"
            " place."
        )
    text = electra_config.config_text(hparams, guessed)
    texts = {electra_config.FILE_NAME: text.encode()}
    if vocab_file is not None:
        texts[electra_config.VOCAB_FILE] = content(vocab_file)
    differing = [
        path
        for name, text in texts.items()
        if files.exists(path := os.path.join(place.folder, name))
        and content(path) != text
    ]
    if place.format != "huggingface":
        differing += tf1.files_of(place.path)
    if differing and not overwrite:
        raise UserError(
            f"{differing[0]} exists and would be replaced; choose another"
            " place, or add --overwrite."
        )


def file_sizes(place: Place) -> dict[str, int]:
    """Returns bytes by file, for what a conversion wrote."""
    from electra_tf.checkpoints import electra_config, tf1

    if place.format == "huggingface":
        paths = [
            os.path.join(folder, name)
            for part in ("", "discriminator", "generator")
            if files.is_directory(folder := os.path.join(place.path, part))
            for name in files.list_directory(folder)
        ]
        paths = [path for path in paths if not files.is_directory(path)]
    else:
        names = (electra_config.FILE_NAME, electra_config.VOCAB_FILE)
        paths = tf1.files_of(place.path)
        paths += [os.path.join(place.folder, name) for name in names]
    return {
        os.path.relpath(path, place.folder): files.file_size(path)
        for path in paths
        if files.exists(path)
    }


def content(path: str) -> bytes:
    """Reads a file."""
    with files.open_file(path, "rb") as file:
        return file.read()


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file, under another name until it is complete."""
    with files.open_file(path + ".tmp", "wb") as file:
        file.write(content)
    files.rename(path + ".tmp", path)


# What a conversion did: one screen, and the whole of it as JSON.

# Scopes of the original's models; other names are kept, but said.
_KNOWN_SCOPES = (
    "electra/",
    "generator/",
    "generator_ltr/",
    "generator_rtl/",
    "generator_predictions/",
    "cloze_predictions/",
    "discriminator_predictions/",
    "task_specific/",
)
_MOST_NAMES = 3


def describe(weights: Weights) -> dict[str, Any]:
    """Counts what a checkpoint holds.

    Returns:
      Path, kind, and numbers of tensors, variables, parameters, slots and
      bytes, and the step (None where not stored).
    """
    shapes = weights.shapes
    return {
        "path": weights.path,
        "kind": weights.kind,
        "tensors": len(weights.specs),
        "variables": len(shapes),
        "parameters": sum(
            int(np.prod(shape, dtype=np.int64)) for shape in shapes.values()
        ),
        "slots": len(weights.slots),
        "global_step": weights.global_step,
        "bytes": sum(s.size_in_bytes for s in weights.specs.values()),
    }


def unknown_variables(weights: Weights) -> list[str]:
    """Lists variables that no model of the original has."""
    return weights.contents.unknown


def by_reason(dropped: Mapping[str, str]) -> dict[str, list[str]]:
    """Groups names by why they were left out."""
    grouped: dict[str, list[str]] = {}
    for name, reason in dropped.items():
        grouped.setdefault(reason, []).append(name)
    return grouped


def screen(report: Mapping[str, Any]) -> str:
    """Lays a report out for reading."""
    source, result = report["from"], report["to"]
    lines = [f"Read     {source['path']}", *_counts(source)]
    lines.append(f"Written  {result['path']} (part: {report['part']})")
    lines += _counts(result)
    for name, size in report["files"].items():
        lines.append(f"  {size:>14,} bytes  {name}")
    lines += [f"Changed  {text}" for text in report["changes"]]
    for reason, names in report["dropped"].items():
        lines.append(f"Dropped  {_some(names)}: {reason}")
    if report["unknown"]:
        lines.append(
            f"Unknown  {_some(report['unknown'])}: of no model of the"
            f" original's; {report['unknown_fate']}"
        )
    lines += [f"Note     {text}" for text in report["notes"]]
    lines += [f"Assumed  {text}" for text in report["assumed"]]
    return "\n".join(lines)


def _counts(side: Mapping[str, Any]) -> list[str]:
    step = side["global_step"]
    return [
        f"  {side['kind']}: {side['variables']} variables with"
        f" {side['parameters']:,} parameters, {side['slots']} Adam slots,"
        f" step {'not stored' if step is None else step}"
    ]


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def main(args: argparse.Namespace) -> None:
    """Converts, and says what was read, dropped and written."""
    # TensorFlow only from here on.
    from electra_tf.checkpoints.formats import open_weights

    pass

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
    unknown = unknown_variables(source)
    kept = [name for name in unknown if name not in dropped]
    report = {
        "from": describe(source),
        "to": _described(weights, place),
        "part": args.part,
        "files": file_sizes(place),
        "changes": changes,
        "dropped": by_reason(dropped),
        "unknown": unknown,
        "unknown_fate": "kept under their names" if kept else "left out",
        "notes": notes,
        "assumed": assumed,
        "hparams": hparams,
    }
    write_bytes(place.report, f"{json.dumps(report, indent=2)}\n".encode())
    print(screen(report))
    print(f"Report   {place.report}")


def _hparams(
    source: Any, args: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """The hparams of the result's config, and what of them is a guess."""
    from electra_tf.checkpoints.contents import merged

    hparams = source.contents.hparams()
    assumed = source.contents.assumptions()
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
        source.contents.check_hparams(stated, where)
        hparams = merged(hparams, stated)
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
    weights, changes = source, []
    if args.extend_positions is not None:
        weights = extend_positions(weights, args.extend_positions)
        changes.append(describe_extension(source, args.extend_positions))
    weights = select_part(weights, args.part)
    if args.strip_optimizer:
        slots = len(weights.slots)
        weights = without_optimizer(weights)
        changes.append(f"{slots} Adam slots left out (--strip_optimizer)")
    return weights, changes


def _check_vocab(
    vocab_file: str | None, weights: Any, source: str
) -> list[str]:
    """Raises a UserError where tokens have no row; remarks on spare rows."""
    if vocab_file is None:
        return []
    rows = weights.contents.sizes.vocab_size
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
    from electra_tf.checkpoints import electra_config, tf1, tf2

    dropped: dict[str, str] = {}
    notes: list[str] = []
    if place.format == "huggingface":
        from electra_tf.checkpoints.huggingface_writer import write_huggingface

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
        tf2.write_native(weights, place.path, overwrite=args.overwrite)
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
    pass

    if place.format == "huggingface":
        from electra_tf.checkpoints.huggingface_reader import open_huggingface

        weights = open_huggingface(place.path)
    described = describe(weights)
    return {**described, "path": place.path, "kind": place.format}
