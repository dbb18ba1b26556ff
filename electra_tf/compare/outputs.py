# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From two checkpoints to the differences of their outputs on the same text.

Positions to mask and replacements are drawn once, from the first model, and
given to both; dropout is off. So equal weights give equal numbers, and what
differs is due to the weights. One model is in memory at a time.
"""

import dataclasses
import gc
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import GeneratorKind
from electra_tf.checkpoints.contents import merged
from electra_tf.checkpoints.weights import Weights
from electra_tf.compare.differences import ForwardDifference
from electra_tf.data.example_writer import ExampleBuilder
from electra_tf.data.records import (
    FEATURE_NAMES,
    BrokenRecordError,
    ExampleEncoder,
    decode_example,
    read_records,
)
from electra_tf.pretraining.loading import (
    SETTINGS,
    LoadedModel,
    model_config,
    model_hparams,
)
from electra_tf.text.tokenization import (
    CLS,
    SEP,
    FullTokenizer,
    load_vocab,
    vocab_hash,
)

# What logits are called here, by the model's name for them.
LOGITS = {
    "mlm_logits": "generator logits",
    "disc_logits": "discriminator logits",
}
MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
_ALL_OUTPUTS = "outputs"
_DEFAULT_LENGTH = 128
# Examples in one forward pass: bounds what attention takes.
_BATCH_SIZE = 8

Features = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Request:
    """On what to compare."""

    lines: Callable[[], Iterable[str]]  # gives the text
    records: str | None = None  # globs of pre-training records instead
    vocab_file: str | None = None  # None for the one beside a checkpoint
    # What the checkpoints do not state; wins over what they do.
    hparams: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    # Wordpieces per example of the text; None for the default, or fewer where
    # a position table is shorter.
    length: int | None = None
    count: int = 32  # examples
    seed: int = 0  # of all draws


@dataclasses.dataclass
class Outcome:
    """What came of it."""

    forward: ForwardDifference | None = None  # where a pass was possible
    not_compared: dict[str, str] = dataclasses.field(default_factory=dict)
    # Differences that have no place in `forward`.
    problems: list[str] = dataclasses.field(default_factory=list)
    # What else a reader should know.
    notes: list[str] = dataclasses.field(default_factory=list)


def compare_on_text(
    a: Weights, b: Weights, request: Request, shapes_agree: bool = True
) -> Outcome:
    """Builds a model of each, one at a time, and runs both on the same text."""
    try:
        hparams = _both_hparams(a, b, request.hparams)
    except UserError as error:
        return Outcome(not_compared={_ALL_OUTPUTS: _one_line(error)})
    tokens = [h["vocab_size"] for h in hparams]
    if tokens[0] != tokens[1]:
        why = f"vocab_size is {tokens[0]} in A and {tokens[1]} in B"
        return Outcome(not_compared={_ALL_OUTPUTS: why})
    if request.vocab_file is None and (why := _other_vocabulary(a, b)):
        return Outcome(not_compared={_ALL_OUTPUTS: why}, problems=[why])
    outcome = Outcome(notes=assumptions([a, b], request.hparams))
    vocab_file = find_vocab_file(request, a, b)
    rows = min(w.contents.sizes.max_position_embeddings for w in (a, b))
    length, cut = _length(request, rows)
    outcome.notes += cut
    configs = [model_config(h, vocab_file, length) for h in hparams]
    config = configs[0]
    if request.records:
        features = features_from_records(
            request.records, request.count, config.vocab_size, rows
        )
    else:
        case = (config.do_lower_case, config.strip_accents)
        tokenizer = FullTokenizer(vocab_file, *case)
        features = features_from_lines(
            request.lines(), tokenizer, length, request.count, request.seed
        )
    try:
        loaded = LoadedModel("A", a, config)
        absent = lacks(loaded)
        runs = list(_run_first(loaded, features, request.seed))
        # One model at a time: let A go before B comes.
        del loaded
        gc.collect()
        loaded = LoadedModel("B", b, configs[1])
        found = ForwardDifference(not_compared=lacks(loaded) | absent)
        _compare_second(found, loaded, runs)
        outcome.forward = found
    except UserError as error:
        if shapes_agree:
            raise
        outcome.not_compared[_ALL_OUTPUTS] = _one_line(error)
    return outcome


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
        is_masked_lm = not (
            found[other].get("electra_objective", True)
            or found[other].get("electric_objective", False)
        )
        if headless[i] and not headless[other] and is_masked_lm:
            found[i] |= {"electra_objective": False, "uniform_generator": False}
    return found


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
    if sizes.generator_kind is GeneratorKind.TWO_TOWER:
        kept += ("electra_objective", "electric_objective")
    hparams = {n: giver.hparams[n] for n in kept if n in giver.hparams}
    return hparams | {"model_hparam_overrides": overrides}


def _length(request: Request, rows: int) -> tuple[int, list[str]]:
    """Wordpieces per example, and what there is to say about them."""
    length = request.length or _DEFAULT_LENGTH
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


def find_vocab_file(request: Request, *checkpoints: Weights) -> str:
    """The vocabulary that was asked for, or one beside a checkpoint."""
    given = (request.vocab_file, request.hparams.get("vocab_file"))
    beside = (weights.vocab_file for weights in checkpoints)
    for path in (*given, *beside):
        if path:
            return path
    paths = " and ".join(weights.path for weights in checkpoints)
    raise UserError(
        f"No vocabulary beside {paths}; give the one that they were trained"
        " with: --vocab_file=FILE."
    )


def _other_vocabulary(a: Weights, b: Weights) -> str | None:
    """Says where the vocabularies beside two checkpoints differ."""
    paths = (a.vocab_file, b.vocab_file)
    if not all(paths) or vocab_hash(paths[0]) == vocab_hash(paths[1]):
        return None
    tokens = [list(load_vocab(path)) for path in paths]
    for line, (first, second) in enumerate(zip(*tokens, strict=False), 1):
        if first != second:
            return (
                f"the vocabularies differ, first in line {line}:"
                f" {first!r} | {second!r}"
            )
    return f"the vocabularies have {len(tokens[0])} and {len(tokens[1])} tokens"


def assumptions(
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


# The inputs: int32 [B, L] `input_ids`, `input_mask` and `segment_ids`.


def features_from_lines(
    lines: Iterable[str],
    tokenizer: FullTokenizer,
    length: int,
    count: int,
    seed: int,
) -> Features:
    """Makes examples of text, as pre-training does."""
    builder = ExampleBuilder(length, random.Random(seed), split_long_lines=True)
    examples = []
    for line in lines:
        ids = tokenizer.encode(line)
        examples += builder.add(ids) if ids else builder.flush()
        if len(examples) >= count:
            break
    examples = (examples + builder.flush())[:count]
    if not examples:
        raise UserError("The text to compare on holds no words.")
    vocab = tokenizer.vocab
    encoder = ExampleEncoder(
        length, vocab[CLS], vocab[SEP], max(vocab.values()) + 1
    )
    return _stacked([decode_example(encoder.encode(*e)) for e in examples])


def _stacked(rows: Sequence[Mapping[str, list[int]]]) -> Features:
    return {
        name: np.array([row[name] for row in rows], np.int32)
        for name in FEATURE_NAMES
    }


def features_from_records(
    patterns: str, count: int, vocab_size: int, max_length: int
) -> Features:
    """Takes the first examples of pre-training records."""
    where = f"--records={patterns!r}"
    paths = [
        path
        for pattern in patterns.split(",")
        for path in sorted(tf.io.gfile.glob(pattern.strip()))
    ]
    if not paths:
        raise UserError(f"No record file matches {where}.")
    rows = list(itertools.islice(_records(paths), count))
    if not rows:
        raise UserError(f"The files of {where} are empty.")
    lengths = {len(row[name]) for row in rows for name in FEATURE_NAMES}
    if len(lengths) > 1:
        raise UserError(
            f"{where}: records of different lengths {sorted(lengths)}; choose"
            " files of one."
        )
    features = _stacked(rows)
    ids = features["input_ids"]
    if ids.min() < 0 or ids.max() >= vocab_size:
        raise UserError(
            f"{where}: token ids from {ids.min()} to {ids.max()}, but the"
            f" models' vocab_size is {vocab_size}; they belong to another"
            " vocabulary."
        )
    if ids.shape[1] > max_length:
        raise UserError(
            f"{where}: examples of {ids.shape[1]} wordpieces, but the models"
            f" have {max_length} positions; choose shorter ones."
        )
    return features


def _records(paths: Iterable[str]) -> Iterator[dict[str, list[int]]]:
    for path in paths:
        try:
            for row in map(decode_example, read_records(path)):
                absent = [name for name in FEATURE_NAMES if name not in row]
                if absent:
                    raise UserError(
                        f"{path}: no int64 feature {absent[0]!r}; are these"
                        " pre-training records?"
                    )
                yield row
        except BrokenRecordError as error:
            raise UserError(f"{error}: {path} is damaged.") from error


# The forward passes.


def lacks(loaded: LoadedModel) -> dict[str, str]:
    """Names the layers and logits that a model cannot give, and why."""
    reasons = {
        "generator layers": loaded.lack_of_generator(False),
        "generator logits": loaded.lack_of_generator(True),
        "discriminator layers": loaded.lack_of_discriminator(False),
        "discriminator logits": loaded.lack_of_discriminator(True),
    }
    return {name: why for name, why in reasons.items() if why}


def run_model(
    loaded: LoadedModel,
    features: Features,
    masked_inputs: Features | None = None,
    sampled_token_ids: np.ndarray | None = None,
    seed: tf.Tensor | None = None,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Runs a model without dropout; what it is not given, it draws.

    Returns:
      Its outputs by name, and the layers of its complete networks, float32
      [layers, tokens, H] without padding.
    """
    outputs = loaded.model.compute(
        {name: tf.constant(features[name]) for name in FEATURE_NAMES},
        masked_inputs,
        sampled_token_ids,
        training=False,
        seed=seed,
    )
    absent, found = lacks(loaded), {}
    if "generator layers" not in absent:
        stacks = outputs["generator_layers"]
        stacks = stacks if isinstance(stacks, list) else [stacks]
        found = dict(zip(loaded.generator_networks, stacks, strict=True))
    if "discriminator layers" not in absent:
        found["discriminator"] = outputs["discriminator_layers"]
    real = features["input_mask"] > 0
    return (
        {n: x.numpy() for n, x in outputs.items() if tf.is_tensor(x)},
        {name: layers.numpy()[:, real] for name, layers in found.items()},
    )


def add_logits(
    found: ForwardDifference, name: str, a: np.ndarray, b: np.ndarray
) -> None:
    """Adds logits, [predictions, V] or [tokens], and what they decide."""
    found.add_output(LOGITS[name], a, b)
    if name == "mlm_logits":
        found.add_agreement("most likely word", a.argmax(-1), b.argmax(-1))
    else:
        found.add_agreement("replaced or not", a > 0, b > 0)


@dataclasses.dataclass
class _BatchRun:
    """What a model made of a batch, and of what."""

    features: Features  # not masked
    masked_inputs: Features  # what was shown, and what was to predict
    sampled_token_ids: np.ndarray | None  # int32 [B, N]
    layers: dict[str, np.ndarray]  # float32 [layers, tokens, H] by network
    # float32 [predictions, V] and [tokens], by the model's name for them.
    logits: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    losses: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def add_loss(self, name: str, losses: Any, weights: np.ndarray) -> None:
        """Keeps the sum of the weighted losses, and that of the weights."""
        weights = np.asarray(weights, np.float64)
        total = (np.asarray(losses, np.float64) * weights).sum()
        self.losses[name] = np.array([total, weights.sum() + 1e-6])


def _run(loaded: LoadedModel, features: Features, *given: Any) -> _BatchRun:
    outputs, layers = run_model(loaded, features, *given)
    real, weights = features["input_mask"] > 0, outputs["masked_lm_weights"]
    masked = {name: outputs[name] for name in MASKED}
    masked["input_ids"] = outputs["masked_input_ids"]
    run = _BatchRun(features, masked, outputs.get("sampled_tokids"), layers)
    absent = lacks(loaded)
    if "generator logits" not in absent:
        run.logits["mlm_logits"] = outputs["mlm_logits"][weights > 0]
        losses = outputs["mlm_per_token_loss"]
        run.add_loss("masked LM loss", losses, weights)
        if "cloze_per_token_loss" in outputs:
            losses = outputs["cloze_per_token_loss"]
            run.add_loss("cloze loss", losses, outputs["cloze_weights"])
    if "discriminator logits" not in absent:
        logits = outputs["disc_logits"]
        run.logits["disc_logits"] = logits[real]
        losses = tf.nn.sigmoid_cross_entropy_with_logits(
            outputs["fake_is_fake_tokens"].astype(np.float32), logits
        )
        run.add_loss("discriminator loss", losses, real)
    return run


def _run_first(
    loaded: LoadedModel, features: Features, seed: int
) -> Iterator[_BatchRun]:
    """Runs the model that masks and samples."""
    starts = range(0, len(features["input_ids"]), _BATCH_SIZE)
    for i, start in enumerate(starts):
        batch = {n: v[start : start + _BATCH_SIZE] for n, v in features.items()}
        yield _run(loaded, batch, None, None, tf.constant([seed, i], tf.int32))


def _compare_second(
    found: ForwardDifference, loaded: LoadedModel, runs: list[_BatchRun]
) -> None:
    """Runs the other model on the same inputs and compares as it goes."""
    sums: dict[str, np.ndarray] = {}
    counts = dict.fromkeys(("examples", "length", "tokens", "predictions"), 0)
    while runs:
        a = runs.pop(0)
        b = _run(loaded, a.features, a.masked_inputs, a.sampled_token_ids)
        for network in dict.fromkeys([*a.layers, *b.layers]):
            if network in a.layers and network in b.layers:
                found.add_layers(network, a.layers[network], b.layers[network])
                continue
            # Towers on one side only; what is absent is named already.
            has, other = ("A", "B") if network in a.layers else ("B", "A")
            found.not_compared.setdefault(
                f"{network} layers", f"{has} has this network, {other} not"
            )
        for name in sorted(a.logits.keys() & b.logits.keys(), reverse=True):
            add_logits(found, name, a.logits[name], b.logits[name])
        for name in a.losses.keys() & b.losses.keys():
            pair = np.array([a.losses[name], b.losses[name]])
            sums[name] = sums.get(name, 0) + pair
        counts["examples"] += len(a.features["input_ids"])
        counts["length"] = a.features["input_ids"].shape[1]
        counts["tokens"] += int(a.features["input_mask"].sum())
        counts["predictions"] += int(a.masked_inputs["masked_lm_weights"].sum())
    found.inputs = counts
    found.losses = {
        name: tuple(float(x) for x in total[:, 0] / total[:, 1])
        for name, total in sorted(sums.items(), reverse=True)
    }
