# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Convert a checkpoint, or a part of one, to another format.

The command converts between TF1 files of the original, checkpoints of this
project and Hugging Face folders in every direction, and from TF1 files of BERT.
The format of SOURCE is inferred from its content. Every tensor is either
written bit for bit or listed with the reason why it is not.
"""

import argparse
import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from configure import flags
from configure.config import TOKENIZER_HPARAMS
from configure.errors import UserError
from configure.formatting import join_names
from configure.hparams_json import read_hparams
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
    with_description,
)
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.reading import read_bytes
from electra_tf.text.settings_files import read_settings
from electra_tf.text.tokenizer_settings import TOKENIZER_CONFIG, settings_text
from electra_tf.text.vocabulary import check_vocab, refuse_other_vocab

FORMATS = ("tf1", "native", "huggingface")
_REPORT = "conversion.json"
_HUGGING_FACE_SUFFIXES = (".safetensors", ".bin")


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("convert_checkpoint", __doc__)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="prefix (dir/model.ckpt-1000), folder or hf:OWNER/NAME to read",
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="path of the result. huggingface: a folder; tf1 and native: a"
        " prefix, or a folder in which model.ckpt-<step> is written (an"
        " existing folder, or a path that ends in a slash)",
    )
    _add_file_flags(parser)
    _add_content_flags(parser)
    return parser.parse_args(list(argv[1:]))


def _add_file_flags(parser: argparse.ArgumentParser) -> None:
    flags.add_flags(
        parser,
        "files",
        (
            "output_format",
            None,
            FORMATS,
            "default: huggingface if TARGET is a Hugging Face folder or"
            " .safetensors file, otherwise tf1, which this project also reads",
        ),
        (
            "vocab_file",
            None,
            "FILE",
            "vocabulary, which is copied next to the result as vocab.txt"
            " (default: the vocabulary next to SOURCE)",
        ),
        (
            "hparams",
            None,
            "JSON",
            "hparams that the shapes of tensors do not determine, as a JSON"
            ' object or a .json file, such as {"model_hparam_overrides":'
            ' {"num_attention_heads": 4}}; these values override a config next'
            " to SOURCE",
        ),
        ("overwrite", False, "", "replace files of an earlier conversion"),
    )


def _add_content_flags(parser: argparse.ArgumentParser) -> None:
    flags.add_flags(
        parser,
        "what is written",
        (
            "part",
            "all",
            PARTS,
            "part of the model to write; encoder: the transformer of the"
            " discriminator (or of a masked LM) without a head. Tied embeddings"
            " are written with every part",
        ),
        (
            "strip_optimizer",
            False,
            "",
            "leave out the Adam slots (two thirds of a training checkpoint)",
        ),
        (
            "drop_unrepresentable",
            False,
            "",
            "list and leave out tensors that the format cannot hold; without"
            " this flag such a tensor is an error",
        ),
        (
            "half_precision",
            False,
            "",
            "round weights to float16, which halves the size; only for Hugging"
            " Face folders",
        ),
        (
            "task",
            None,
            "NAME",
            "new name of the task whose head SOURCE contains (default: the old"
            " name; a head of transformers is named chunk, squad or after its"
            " type)",
        ),
        (
            "extend_positions",
            int,
            "N",
            "change the position tables to N rows: new rows repeat the table"
            " from its start, and surplus rows are removed",
        ),
    )


class _Target(NamedTuple):
    """The path and format of the result."""

    path: str  # prefix of a checkpoint, or a Hugging Face folder
    format: str  # one of FORMATS

    @property
    def is_hugging_face(self) -> bool:
        """Return whether `path` is a folder that contains only the result."""
        return self.format == "huggingface"

    @property
    def folder(self) -> str:
        """The folder that contains the result."""
        if self.is_hugging_face:
            return self.path
        return os.path.dirname(self.path) or "."

    @property
    def report(self) -> str:
        """The path of the report."""
        separator = os.sep if self.is_hugging_face else "."
        return f"{self.path}{separator}{_REPORT}"

    @property
    def unfinished_mark(self) -> str:
        """The path of a file that exists until the report is written."""
        return f"{self.report}.unfinished"


class _Description(NamedTuple):
    """The metadata that is written next to the weights of the result."""

    hparams: dict[str, Any]
    assumptions: list[str]  # lines such as "hidden_act: gelu assumed"
    vocab_file: str | None
    heads: dict[str, TaskHead]  # by task; empty for Hugging Face folders

    @property
    def assumed_names(self) -> list[str]:
        """The names of the hparams that are assumed."""
        return [n for text in self.assumptions for n in _hparams_in(text)]

    @property
    def config_text(self) -> str:
        """The content of `electra_config.json`."""
        return formats.format_config(
            self.hparams, self.assumed_names, self.heads
        )


def main(args: argparse.Namespace) -> None:
    """Convert the checkpoint, and print a report of its tensors."""
    source = formats.open_weights(args.source)
    if source.contents.tasks and not source.heads:
        # The module, which loads all tasks, is imported late, because few
        # conversions need it.
        from electra_tf.prediction.loading import read_heads

        source.heads = read_heads(source, args.source)
    hparams, assumptions = _infer_hparams(source, args)
    weights, changes = _change_weights(source, args)
    target = _choose_target(args, source.global_step)
    if args.half_precision and not target.is_hugging_face:
        raise UserError(
            f"--half_precision: the format {target.format} stores float32 for"
            " further training. Pass --output_format=huggingface, or remove"
            " --half_precision."
        )
    vocab_file = args.vocab_file or source.vocab_file
    notes = _check_vocabulary(vocab_file, weights, source)
    heads = {} if target.is_hugging_face else _heads_in(weights)
    description = _Description(hparams, assumptions, vocab_file, heads)
    overwrite = args.overwrite or _was_interrupted(source.path, target)
    _check_free(source.path, target, _sidecars(description, target), overwrite)
    with _unfinished_mark(source.path, target):
        if target.is_hugging_face:
            dropped, remarks = _write_hugging_face(
                weights, target.path, description, args, overwrite
            )
        else:
            dropped = {}
            remarks = _write_tensorflow(weights, target, description, overwrite)
    if vocab_file is None:
        remarks.append("the vocabulary is unknown. Pass --vocab_file")
    result = _reopened(target.path) if target.is_hugging_face else weights
    unknown = source.contents.unknown
    report = {
        "from": {"path": source.path, "kind": source.kind, **source.counts()},
        "to": {"path": target.path, "kind": target.format, **result.counts()},
        "part": args.part,
        "changes": changes,
        "dropped": _group_by_reason(weights.dropped, dropped),
        "unknown": [name for name in unknown if name in result.specs],
        "notes": remarks + notes,
        "assumed": assumptions,
        "hparams": hparams,
    }
    write_atomically(target.report, json.dumps(report, indent=2) + "\n")
    filesystem.remove(target.unfinished_mark)
    print(_format_report(report), f"Report   {target.report}", sep="\n")


def _infer_hparams(
    source: Weights, args: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """Return the result's hparams, and a line for each assumed hparam."""
    hparams = source.contents.hparams()
    from_flag: dict[str, Any] = {}
    if args.hparams is not None:
        explicit = PretrainingConfig.explicit_hparams(
            read_hparams(args.hparams)
        )
        for name in ("model_name", "data_dir"):
            explicit.pop(name, None)
        from_flag = PretrainingConfig.clean_hparams(explicit)
    vocab_file = args.vocab_file or source.vocab_file or ""
    casing = formats.resolve_model_casing(source, vocab_file, from_flag)
    for stated, origin in (
        (casing, f"the casing next to {vocab_file}"),
        (source.hparams, f"the config next to {source.path}"),
        (from_flag, "--hparams"),
    ):
        source.contents.check_hparams(stated, origin)
        hparams = merge_hparams(hparams, stated)
    if args.extend_positions is not None:
        hparams["model_hparam_overrides"] = {
            **hparams.get("model_hparam_overrides", {}),
            "max_position_embeddings": args.extend_positions,
        }
    stated = {**casing, **source.hparams, **from_flag}
    stated |= stated.get("model_hparam_overrides", {})
    # A config may omit the usual activation, so gelu is not an assumption.
    if source.hparams:
        stated.setdefault("hidden_act", "gelu")
    # A single line of the assumptions covers all tokenizer hparams.
    if set(TOKENIZER_HPARAMS) & stated.keys():
        stated |= dict.fromkeys(TOKENIZER_HPARAMS, True) | stated
    assumptions = [
        text
        for text in source.contents.assumptions()
        if not all(name in stated for name in _hparams_in(text))
    ]
    return hparams, assumptions


def _hparams_in(assumption: str) -> list[str]:
    """Return the hparams that a line of `Contents.assumptions` names."""
    return assumption.split(":")[0].split(", ")


def _change_weights(
    source: Weights, args: argparse.Namespace
) -> tuple[Weights, list[str]]:
    """Apply the flags to the tensors; return the result, and its changes."""
    weights, changes = source, []
    if args.task is not None:
        weights, former = rename_task(weights, args.task)
        changes.append(f"the head of {former} is renamed to {args.task}")
    if args.extend_positions is not None:
        weights = extend_positions(weights, args.extend_positions)
        changes.append(describe_extension(source, args.extend_positions))
    weights = select_part(weights, args.part)
    if args.strip_optimizer:
        slots = weights.slots
        weights = select_tensors(weights, lambda name: name not in slots)
        changes.append(
            f"{len(slots)} Adam slots are left out (--strip_optimizer)"
        )
    kinds = [head.kind for head in source.heads.values()]
    if source.kind == "huggingface" and "tagging" in kinds:
        changes.append(
            "all rows of the segment table are set to row 0, because taggers"
            " of transformers use only row 0"
        )
    return weights, changes


def _heads_in(weights: Weights) -> dict[str, TaskHead]:
    """Return the descriptions of the heads that the tensors include."""
    tasks = weights.contents.tasks
    return {task: h for task, h in weights.heads.items() if task in tasks}


def _check_vocabulary(
    vocab_file: str | None, weights: Weights, source: Weights
) -> list[str]:
    """Refuse a vocabulary of a different model; return notes on the size."""
    if vocab_file is None:
        return []
    notes = []
    n_rows = weights.contents.sizes.vocab_size
    n_tokens = len(check_vocab(vocab_file, n_rows))
    if n_tokens < n_rows:
        notes.append(
            f"{vocab_file} has {n_tokens} tokens, but the embeddings have"
            f" {n_rows} rows. Check that the file belongs to this model"
        )
    if source.vocab_file:
        refuse_other_vocab(vocab_file, source.vocab_file, source.path)
    return notes


def _choose_target(args: argparse.Namespace, step: int | None) -> _Target:
    """Return the path and format of the result.

    `step` names a checkpoint in a folder; None: the source stores no step.
    """
    path, output_format = args.target, args.output_format
    if path.endswith(_HUGGING_FACE_SUFFIXES):
        if output_format not in (None, "huggingface"):
            raise UserError(
                f"TARGET {path} is the name of a Hugging Face file; expected a"
                f" prefix, because --output_format is {output_format}. Pass a"
                " prefix, or --output_format=huggingface."
            )
        return _Target(os.path.dirname(path) or ".", "huggingface")
    if output_format is None:
        exists = formats.find_hugging_face_weights(path)
        output_format = "huggingface" if exists else "tf1"
    if output_format == "huggingface":
        return _Target(path.rstrip("/") or "/", output_format)
    if path.endswith("/") or filesystem.is_directory(path):
        name = "model.ckpt" if step is None else f"model.ckpt-{step}"
        path = os.path.join(path, name)
    return _Target(path.removesuffix(".index"), output_format)


def _sidecars(description: _Description, target: _Target) -> dict[str, bytes]:
    """Return the content that existing files next to the weights must have."""
    vocab_file = description.vocab_file
    sidecars = {formats.ELECTRA_CONFIG: description.config_text.encode()}
    if vocab_file is None:
        return sidecars
    name = formats.vocab_name(vocab_file)
    # The writer of a Hugging Face folder checks vocab.txt itself.
    if not (target.is_hugging_face and name == "vocab.txt"):
        sidecars[name] = read_bytes(vocab_file)
    settings = settings_text(read_settings(vocab_file))
    if settings and not target.is_hugging_face:
        sidecars[TOKENIZER_CONFIG] = settings.encode()
    return sidecars


def _check_free(
    source: str,
    target: _Target,
    sidecars: Mapping[str, bytes],
    overwrite: bool,
) -> None:
    """Raise a UserError if files with other content would be replaced.

    `source` is the path of the checkpoint to read.
    """
    if os.path.realpath(target.path) == os.path.realpath(source):
        raise UserError(
            f"TARGET {target.path} is also the SOURCE. Choose another TARGET."
        )
    if filesystem.exists(os.path.join(target.folder, formats.TRAIN_LOG)):
        raise UserError(
            f"{target.folder} is the folder of a run; the run would continue"
            " from the new checkpoint. Choose another TARGET."
        )
    has_vocab = not sidecars.keys().isdisjoint(formats.VOCAB_FILES)
    if not has_vocab and not target.is_hugging_face:
        vocab = formats.find_vocab(target.folder)
        if vocab:
            raise UserError(
                f"the vocabulary of SOURCE is unknown, but the result would be"
                f" read with {vocab} next to TARGET. Pass --vocab_file, or"
                " choose another TARGET."
            )
    differing = []
    for name, content in sidecars.items():
        path = os.path.join(target.folder, name)
        if filesystem.exists(path) and read_bytes(path) != content:
            differing.append(path)
    if not target.is_hugging_face:
        # TensorFlow is imported late: Hugging Face folders do not need it.
        from electra_tf.checkpoints.tf1 import list_files

        differing += list_files(target.path)
    if differing and not overwrite:
        raise UserError(
            f"{differing[0]} exists and would be replaced. Choose another"
            " TARGET, or pass --overwrite."
        )


def _mark_content(source: str) -> str:
    return json.dumps({"from": source})


def _was_interrupted(source: str, target: _Target) -> bool:
    """Return whether an earlier run of this conversion was killed.

    The incomplete files of that run can then be replaced.
    """
    mark = target.unfinished_mark
    if not filesystem.exists(mark):
        return False
    return read_bytes(mark) == _mark_content(source).encode()


@contextlib.contextmanager
def _unfinished_mark(source: str, target: _Target) -> Iterator[None]:
    """Mark a conversion as unfinished while files are written.

    An error removes the mark, and also the folder if it is new. Without an
    error the mark stays until the report is written.
    """
    is_new = not filesystem.exists(target.folder)
    write_atomically(target.unfinished_mark, _mark_content(source))
    try:
        yield
    except Exception:
        filesystem.remove(target.unfinished_mark)
        # The folder may contain other files, which are kept.
        with contextlib.suppress(OSError):
            if is_new:
                os.rmdir(target.folder)
        raise


def _write_hugging_face(
    weights: Weights,
    path: str,
    description: _Description,
    args: argparse.Namespace,
    overwrite: bool,
) -> tuple[dict[str, str], list[str]]:
    """Write a Hugging Face folder; return the tensors left out, and notes."""
    # The module is imported late, because other conversions do not need it.
    from electra_tf.checkpoints.huggingface_writer import write_huggingface

    report = write_huggingface(
        with_description(weights, description.hparams, description.vocab_file),
        path,
        part=args.part,
        drop_unrepresentable=args.drop_unrepresentable,
        overwrite=overwrite,
        electra_config=description.config_text,
        half_precision=args.half_precision,
    )
    dropped = dict(report.left_out)
    reason = dropped.pop("Adam slots", None)
    if reason:
        dropped |= dict.fromkeys(weights.slots, reason)
    return dropped, [f"{name}: {text}" for name, text in report.notes.items()]


def _write_tensorflow(
    weights: Weights,
    target: _Target,
    description: _Description,
    overwrite: bool,
) -> list[str]:
    """Write a TensorFlow checkpoint with its config; return notes."""
    # TensorFlow is imported late: Hugging Face folders do not need it.
    from electra_tf.checkpoints import tf1, tf2

    def complete() -> None:
        formats.complete_folder(
            target.folder,
            description.hparams,
            description.vocab_file,
            description.assumed_names,
            description.heads,
        )

    notes = []
    if target.format == "native":
        tf2.write_native(weights, target.path, overwrite, complete)
        if weights.global_step is None:
            notes.append(
                "SOURCE stores no step, so training continues from step 0"
            )
    else:
        tf1.write_tf1(weights, target.path, overwrite, complete=complete)
        if weights.contents.shares_some_tables:
            notes.append(
                f"embedding_sharing {weights.contents.embedding_sharing}: the"
                " original can fine-tune this discriminator, but has no such"
                " generator. Do not continue pre-training with the original"
            )
    if not weights.slots:
        notes.append(
            "the result has no Adam slots. Pass --init_checkpoint to start"
            " training from the result"
        )
    return notes


def _reopened(folder: str) -> Weights:
    """Open the written checkpoint, to report its readable tensors."""
    # The module is imported late, because other conversions do not need it.
    from electra_tf.checkpoints.huggingface_reader import open_huggingface

    return open_huggingface(folder)


def _group_by_reason(
    not_converted: Mapping[str, str], not_representable: Mapping[str, str]
) -> dict[str, list[str]]:
    """Return the names of dropped tensors by the reason and its remedy.

    Args:
      not_converted: names of tensors outside the conversion, with reasons.
      not_representable: names of tensors that the result's format cannot hold,
        with reasons.
    """
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in {**not_converted, **not_representable}.items():
        remedy = _remedy(reason, name in not_representable)
        names_by_reason.setdefault(reason + remedy, []).append(name)
    return names_by_reason


def _remedy(reason: str, is_unrepresentable: bool) -> str:
    """Return a remedy for tensors that were dropped for `reason`."""
    if "--" in reason:
        return ""
    if is_unrepresentable:
        return " (pass --output_format=native to keep these tensors)"
    if reason.startswith("not of the "):
        return " (pass --part=all to keep these tensors)"
    return " (keep SOURCE to use these tensors)"


def _format_report(report: Mapping[str, Any]) -> str:
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
            f"Unknown  {join_names(report['unknown'], 3)}: no model of the"
            " original has these variables; their names are kept"
        )
    lines += [f"Note     {text}" for text in report["notes"]]
    lines += [f"Assumed  {text}" for text in report["assumed"]]
    return "\n".join(lines)
