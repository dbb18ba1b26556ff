# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From two checkpoints, or one and a recording, to differences of outputs."""

import dataclasses
import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.contents import TWO_TOWERS, merged
from electra_tf.checkpoints.weights import Weights
from electra_tf.compare.forward import ForwardDifference
from electra_tf.compare.inputs import features_from_lines, features_from_records
from electra_tf.compare.outputs import absent_parts, compare_second, run_first
from electra_tf.compare.recorded_outputs import compare_with_recording
from electra_tf.compare.recording import read_recording
from electra_tf.pretraining.loading import (
    SETTINGS,
    LoadedModel,
    model_config,
    model_hparams,
)
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.vocab import load_vocab, vocab_hash

ALL_OUTPUTS = "outputs"
DEFAULT_LENGTH = 128


@dataclasses.dataclass(frozen=True)
class Request:
    """On what to compare.

    Attributes:
      lines: gives the text, unless there are records.
      records: glob patterns of pre-training records, or None.
      vocab_file: path, or None for the one beside a checkpoint.
      hparams: what the checkpoints do not state; wins over what they do.
      length: wordpieces per example of the text; None for `DEFAULT_LENGTH`,
        or fewer where a position table is shorter.
      count: number of examples.
      seed: of all draws.
    """

    lines: Callable[[], Iterable[str]]
    records: str | None = None
    vocab_file: str | None = None
    hparams: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    length: int | None = None
    count: int = 32
    seed: int = 0


@dataclasses.dataclass
class Outcome:
    """What came of it.

    Attributes:
      forward: the differences; None where no forward pass was possible.
      not_compared: what was left out, and why.
      problems: differences that have no place in `forward`.
      notes: what else a reader should know.
    """

    forward: ForwardDifference | None = None
    not_compared: dict[str, str] = dataclasses.field(default_factory=dict)
    problems: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)


def compare_on_text(
    a: Weights, b: Weights, request: Request, shapes_agree: bool = True
) -> Outcome:
    """Builds a model of each, one at a time, and runs both on the same text."""
    try:
        hparams = _both_hparams(a, b, request.hparams)
    except UserError as error:
        return Outcome(not_compared={ALL_OUTPUTS: _one_line(error)})
    tokens = [h["vocab_size"] for h in hparams]
    if tokens[0] != tokens[1]:
        why = f"vocab_size is {tokens[0]} in A and {tokens[1]} in B"
        return Outcome(not_compared={ALL_OUTPUTS: why})
    if request.vocab_file is None and (why := _other_vocabulary(a, b)):
        return Outcome(not_compared={ALL_OUTPUTS: why}, problems=[why])
    outcome = Outcome(notes=_assumptions([a, b], request.hparams))
    vocab_file = _vocab_file(request, a, b)
    rows = min(w.contents.sizes.max_position_embeddings for w in (a, b))
    length, cut = _length(request, rows)
    outcome.notes += cut
    configs = [model_config(h, vocab_file, length) for h in hparams]
    features = _features(request, configs[0], rows)
    try:
        outcome.forward = _run_both((a, b), configs, features, request.seed)
    except UserError as error:
        if shapes_agree:
            raise
        outcome.not_compared[ALL_OUTPUTS] = _one_line(error)
    return outcome


def compare_on_recording(a: Weights, path: str, request: Request) -> Outcome:
    """Compares one checkpoint with recorded outputs."""
    recording = read_recording(path)
    # What is recorded with the outputs describes the whole model.
    stated = dict(recording.hparams) or model_hparams(a)
    beside = stated.pop("vocab_file", None)
    hparams = merged(stated, request.hparams)
    if not request.vocab_file and not request.hparams.get("vocab_file"):
        request = dataclasses.replace(request, vocab_file=beside)
    length = recording.arrays["input_ids"].shape[1]
    config = model_config(hparams, _vocab_file(request, a), length)
    loaded = LoadedModel("A", a, config)
    return Outcome(
        forward=compare_with_recording(loaded, recording),
        notes=_assumptions({"A": a}, {**recording.hparams, **request.hparams}),
    )


def _run_both(
    both: tuple[Weights, Weights],
    configs: list[PretrainingConfig],
    features: Mapping[str, np.ndarray],
    seed: int,
) -> ForwardDifference:
    loaded = LoadedModel("A", both[0], configs[0])
    absent = absent_parts(loaded)
    runs = run_first(loaded, features, seed)
    # One model at a time: let A go before B comes.
    del loaded
    gc.collect()
    return compare_second(LoadedModel("B", both[1], configs[1]), runs, absent)


def _both_hparams(
    a: Weights, b: Weights, given: Mapping[str, Any]
) -> list[dict[str, Any]]:
    found = []
    for weights, other in ((a, b), (b, a)):
        hparams = model_hparams(weights)
        hparams = merged(hparams, _unshown_hparams(other, weights))
        found.append(merged(hparams, given))
    # An encoder without heads is run as what the other one's encoder is.
    headless = [weights.contents.is_headless for weights in (a, b)]
    for i, other in ((0, 1), (1, 0)):
        if headless[i] and not headless[other] and _is_masked_lm(found[other]):
            found[i] |= {"electra_objective": False, "uniform_generator": False}
    return found


def _is_masked_lm(hparams: Mapping[str, Any]) -> bool:
    return not (
        hparams.get("electra_objective", True)
        or hparams.get("electric_objective", False)
    )


def _unshown_hparams(giver: Weights, taker: Weights) -> dict[str, Any]:
    """What shapes cannot tell, where only the giver's configuration does."""
    if taker.hparams or not giver.hparams:
        return {}
    sizes = giver.contents.sizes
    same = sizes.encoder == taker.contents.sizes.encoder
    names = ("hidden_act", *(("num_attention_heads",) if same else ()))
    stated = giver.hparams.get("model_hparam_overrides") or {}
    overrides = {name: stated[name] for name in names if name in stated}
    kept = SETTINGS
    if sizes.generator_scope == TWO_TOWERS:
        kept += ("electra_objective", "electric_objective")
    hparams = {n: giver.hparams[n] for n in kept if n in giver.hparams}
    return hparams | {"model_hparam_overrides": overrides}


def _length(request: Request, rows: int) -> tuple[int, list[str]]:
    """Wordpieces per example, and what there is to say about them."""
    length = request.length or DEFAULT_LENGTH
    if length <= rows or request.records:  # Records bring their own length.
        return min(length, rows), []
    if request.length:
        raise UserError(
            f"--max_seq_length is {length}, but the models have {rows}"
            f" positions; give {rows} or less."
        )
    return rows, [
        f"Examples are of {rows} wordpieces, not {length}: the models have"
        " no more positions"
    ]


def _features(
    request: Request, config: PretrainingConfig, rows: int
) -> dict[str, np.ndarray]:
    if request.records:
        return features_from_records(
            request.records, request.count, config.vocab_size, rows
        )
    tokenizer = FullTokenizer(
        config.vocab_file, config.do_lower_case, config.strip_accents
    )
    return features_from_lines(
        request.lines(),
        tokenizer,
        config.max_seq_length,
        request.count,
        request.seed,
    )


def _vocab_file(request: Request, *checkpoints: Weights) -> str:
    beside = (weights.vocab_file for weights in checkpoints)
    for path in (
        request.vocab_file,
        request.hparams.get("vocab_file"),
        *beside,
    ):
        if path:
            return path
    paths = " and ".join(weights.path for weights in checkpoints)
    raise UserError(
        f"No vocabulary beside {paths}; give the one that they were trained"
        " with: --vocab_file=FILE."
    )


def _other_vocabulary(a: Weights, b: Weights) -> str | None:
    if not a.vocab_file or not b.vocab_file:
        return None
    if vocab_hash(a.vocab_file) == vocab_hash(b.vocab_file):
        return None
    return _first_difference(
        list(load_vocab(a.vocab_file)), list(load_vocab(b.vocab_file))
    )


def _first_difference(a: list[str], b: list[str]) -> str:
    for line, (first, second) in enumerate(zip(a, b, strict=False), 1):
        if first != second:
            return (
                f"the vocabularies differ, first in line {line}:"
                f" {first!r} | {second!r}"
            )
    return f"the vocabularies have {len(a)} and {len(b)} tokens"


def _assumptions(
    checkpoints: Sequence[Weights], given: Mapping[str, Any]
) -> list[str]:
    """Says what the shapes do not show where nothing states it either."""
    if given:
        return []
    silent = {
        label: "; ".join(weights.contents.assumptions())
        for label, weights in zip("AB", checkpoints, strict=False)
        if not weights.hparams
    }
    remedy = " (--hparams can state it)"
    if 0 < len(silent) < len(checkpoints):
        (silent_one,) = silent
        stating = "B" if silent_one == "A" else "A"
        text = f"{silent_one} has no configuration: {stating}'s heads,"
        return [f"{text} activation and tokenizer are used for both{remedy}"]
    if len(set(silent.values())) == 1:
        silent = {" and ".join(silent): next(iter(silent.values()))}
    return [f"Of {label}{remedy}: {text}" for label, text in silent.items()]


def _one_line(error: UserError) -> str:
    return " ".join(str(error).split())
