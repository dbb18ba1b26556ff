# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From two checkpoints to the differences of their outputs on the same text.

Positions to mask and replacements are drawn once, from the first model, and
given to both; dropout is off. So equal weights give equal numbers, and what
differs is due to the weights.
"""

import dataclasses
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.config import TOKENIZER_HPARAMS
from configure.errors import UserError
from configure.generator import GeneratorKind
from electra_tf.checkpoints.sizes import (
    UNSEEN_SIZES,
    complete_hparams,
    merge_hparams,
)
from electra_tf.checkpoints.weights import Weights
from electra_tf.compare.differences import ForwardDifference, add_equal
from electra_tf.data.records import (
    FEATURE_NAMES,
    decode_example,
    open_encoder,
)
from electra_tf.data.segments import ExampleBuilder
from electra_tf.pretraining.loading import (
    SETTINGS,
    LoadedModel,
    model_config,
    model_hparams,
)
from electra_tf.text import tokenization, vocabulary
from electra_tf.text.casing import read_casing

# What logits are called here, by the model's name for them.
LOGITS = {
    "mlm_logits": "generator logits",
    "disc_logits": "discriminator logits",
    "token_logits": "second masked LM's logits",
}
# Of logits: a loss, its prefix among the outputs, and its weights.
_LOSSES = (
    ("mlm_logits", "masked LM loss", "mlm", "masked_lm_weights"),
    ("mlm_logits", "cloze loss", "cloze", "cloze_weights"),
    ("token_logits", "second masked LM's loss", "token", "token_weights"),
)
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
    """Builds a model of each and runs both on the same text."""
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
    for name in TOKENIZER_HPARAMS:
        said = [w.hparams.get(name) for w in (a, b)]
        if None not in said and said[0] != said[1]:
            why = f"{name} is {said[0]} in A, {said[1]} in B; both read A's ids"
            outcome.notes.append(why)
    vocab_file = find_vocab_file(request, a, b)
    if vocabulary.is_bpe(vocab_file):
        outcome.not_compared[_ALL_OUTPUTS] = f"{vocab_file} is byte-level BPE"
        return outcome
    hparams = [read_casing(vocab_file) | stated for stated in hparams]
    rows = min(w.contents.sizes.max_position_embeddings for w in (a, b))
    length = request.length or _DEFAULT_LENGTH
    if length > rows and request.length:
        raise UserError(
            f"--max_seq_length is {length}, but the models have {rows}"
            f" positions; give {rows} or less."
        )
    if length > rows:
        outcome.notes.append(
            f"Examples are of {rows} wordpieces, not {length}: the models have"
            " no more positions"
        )
        length = rows
    configs = [model_config(h, vocab_file, length) for h in hparams]
    config = configs[0]
    case = (config.do_lower_case, config.strip_accents)
    tokenizer = tokenization.FullTokenizer(vocab_file, *case)
    features = features_from_lines(
        request.lines(), tokenizer, length, request.count, request.seed
    )
    try:
        models = (LoadedModel("A", a, config), LoadedModel("B", b, configs[1]))
        outcome.forward = _compare_batches(*models, features, request.seed)
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
        unshown = _unshown_hparams(other, weights)
        found.append(
            merge_hparams(merge_hparams(model_hparams(weights), unshown), given)
        )
    # An encoder without heads is run as what the other one's encoder is.
    headless = [weights.contents.is_headless for weights in (a, b)]
    for i, other in ((0, 1), (1, 0)):
        is_masked_lm = not complete_hparams(found[other]).has_two_networks
        if headless[i] and not headless[other] and is_masked_lm:
            found[i] |= {"electra_objective": False, "uniform_generator": False}
    return found


def _unshown_hparams(giver: Weights, taker: Weights) -> dict[str, Any]:
    """What shapes cannot tell, where only the giver's configuration does."""
    if taker.hparams or not giver.hparams:
        return {}
    sizes = giver.contents.sizes
    same = sizes.encoder == taker.contents.sizes.encoder
    names = [n for n in UNSEEN_SIZES if same or n != "num_attention_heads"]
    stated = giver.hparams.get("model_hparam_overrides") or {}
    overrides = {name: stated[name] for name in names if name in stated}
    kept = SETTINGS
    if sizes.generator_kind is GeneratorKind.TWO_TOWER:
        kept += ("electra_objective", "electric_objective")
    hparams = {n: giver.hparams[n] for n in kept if n in giver.hparams}
    return hparams | {"model_hparam_overrides": overrides}


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
    if a.vocab_file and b.vocab_file:
        try:
            vocabulary.refuse_other_vocab(a.vocab_file, b.vocab_file, "B")
        except UserError as error:
            return _one_line(error)
    return None


def assumptions(
    checkpoints: Sequence[Weights], given: Mapping[str, Any]
) -> list[str]:
    """Says what the shapes do not show where nothing states it either."""
    silent = {
        label: "; ".join(weights.contents.assumptions())
        for label, weights in zip("AB", checkpoints, strict=False)
        if not (weights.hparams or given)
    }
    if 0 < len(silent) < len(checkpoints):
        what = "the other's heads, activation and tokenizer are used for both"
        silent = dict.fromkeys(silent, what)
    return [
        f"{label} has no configuration: {text} (--hparams can state it)"
        for label, text in silent.items()
    ]


def _one_line(error: UserError) -> str:
    return " ".join(str(error).split())


# The inputs: int32 [B, L] `input_ids`, `input_mask` and `segment_ids`.


def features_from_lines(
    lines: Iterable[str],
    tokenizer: tokenization.FullTokenizer,
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
    encoder = open_encoder(tokenizer.vocab, length)
    rows = [decode_example(encoder.encode(*e)) for e in examples]
    return {
        name: np.array([row[name] for row in rows], np.int32)
        for name in FEATURE_NAMES
    }


# The forward passes.


def lacks(loaded: LoadedModel) -> dict[str, str]:
    """Names the layers and logits that a model cannot give, and why."""
    reasons = {
        "generator layers": loaded.lacks_generator(False),
        "generator logits": loaded.lacks_generator(True),
        "discriminator layers": loaded.lacks_discriminator(False),
        "discriminator logits": loaded.lacks_discriminator(corrected=True),
    }
    if loaded.model.token_head is not None:
        reasons[LOGITS["token_logits"]] = loaded.lacks_token_head()
    return {name: why for name, why in reasons.items() if why}


def run_model(
    loaded: LoadedModel,
    features: Features,
    masked_inputs: Features | None = None,
    sampled_token_ids: np.ndarray | None = None,
    seed: tf.Tensor | None = None,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Runs a model without dropout; what it is not given, it draws.

    Returns its outputs by name, and the layers of its complete networks,
    float32 [layers, tokens, H] without padding.
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
    if name != "disc_logits":
        whose = "second masked LM's " if name == "token_logits" else ""
        what = f"{whose}most likely word"
        add_equal(found.agreement, what, a.argmax(-1), b.argmax(-1))
    else:
        add_equal(found.agreement, "replaced or not", a > 0, b > 0)


def _losses(
    outputs: Mapping[str, np.ndarray], real: np.ndarray
) -> dict[tuple[str, str], tuple[float, float]]:
    """Sums of weighted losses, and of the weights, by logits and name."""
    losses = {
        (logits, name): (outputs[f"{prefix}_per_token_loss"], outputs[weights])
        for logits, name, prefix, weights in _LOSSES
        if f"{prefix}_per_token_loss" in outputs
    }
    if "disc_loss" in outputs:
        labels = outputs["fake_is_fake_tokens"].astype(np.float32)
        losses["disc_logits", "discriminator loss"] = (
            tf.nn.sigmoid_cross_entropy_with_logits(
                labels, outputs["disc_logits"]
            ).numpy(),
            outputs.get("disc_weights", real),
        )
    return {
        key: ((np.float64(x) * w).sum(), np.float64(w).sum() + 1e-6)
        for key, (x, w) in losses.items()
    }


def _compare_batches(
    a: LoadedModel, b: LoadedModel, features: Features, seed: int
) -> ForwardDifference:
    """Runs both on the same inputs; A masks and samples."""
    found = ForwardDifference(not_compared=lacks(b) | lacks(a))
    tokens = predictions = 0
    sums: dict[str, np.ndarray] = {}
    rows, length = features["input_ids"].shape
    for i, start in enumerate(range(0, rows, _BATCH_SIZE)):
        batch = {n: v[start : start + _BATCH_SIZE] for n, v in features.items()}
        draw = tf.constant([seed, i], tf.int32)
        of_a, layers_a = run_model(a, batch, seed=draw)
        masked = {name: of_a[name] for name in MASKED}
        masked["input_ids"] = of_a["masked_input_ids"]
        of_b, layers_b = run_model(b, batch, masked, of_a.get("sampled_tokids"))
        for network in dict.fromkeys([*layers_a, *layers_b]):
            if network in layers_a and network in layers_b:
                found.add_layers(network, layers_a[network], layers_b[network])
                continue
            # Towers on one side only; what is absent is named already.
            has, other = ("A", "B") if network in layers_a else ("B", "A")
            found.not_compared.setdefault(
                f"{network} layers", f"{has} has this network, {other} not"
            )
        real, weights = batch["input_mask"] > 0, masked["masked_lm_weights"]
        places = {"mlm_logits": weights > 0, "disc_logits": real}
        if of_a.keys() & of_b.keys() & {"token_weights"}:
            places["token_logits"] = of_a["token_weights"] > 0
        for name, used in places.items():
            if LOGITS[name] not in found.not_compared:
                add_logits(found, name, of_a[name][used], of_b[name][used])
        sums_a, sums_b = _losses(of_a, real), _losses(of_b, real)
        for logits, name in sums_a.keys() & sums_b.keys():
            if LOGITS[logits] not in found.not_compared:
                pair = [sums_a[logits, name], sums_b[logits, name]]
                sums[name] = sums.get(name, 0) + np.array(pair)
        tokens += int(real.sum())
        predictions += int(weights.sum())
    found.inputs = {
        **{"examples": rows, "length": length},
        **{"tokens": tokens, "predictions": predictions},
    }
    found.losses = {
        name: tuple(float(x) for x in total[:, 0] / total[:, 1])
        for name, total in sorted(sums.items(), reverse=True)
    }
    return found
