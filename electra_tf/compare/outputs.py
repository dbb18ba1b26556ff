# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Comparison of the outputs of two checkpoints on the same text.

Both models use the masked positions and the replacements that the first model
draws, and dropout is off. Equal weights therefore give equal numbers, and all
differences are due to the weights.
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
from electra_tf.data.segments import ExampleBuilder
from electra_tf.data.tfrecords import (
    FEATURE_NAMES,
    decode_example,
    open_encoder,
)
from electra_tf.pretraining.loading import (
    SETTINGS,
    LoadedModel,
    model_config,
    model_hparams,
)
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.text import tokenization, vocabulary
from electra_tf.text.casing import read_casing

# The names of logits in reports, keyed by the names of the model's outputs.
LOGITS = {
    "mlm_logits": "generator logits",
    "disc_logits": "discriminator logits",
    "token_logits": "second masked LM's logits",
}
# For each loss of logits: the model's name of the logits, the name of the loss
# in reports, the prefix of the output that contains the loss of each token, and
# the output that contains the weights of the tokens.
_LOSSES = (
    ("mlm_logits", "masked LM loss", "mlm", "masked_lm_weights"),
    ("mlm_logits", "cloze loss", "cloze", "cloze_weights"),
    ("token_logits", "second masked LM's loss", "token", "token_weights"),
)
MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
_ALL_OUTPUTS = "outputs"
_DEFAULT_LENGTH = 128
# Examples per forward pass; a small number limits the memory of attention.
_BATCH_SIZE = 8

Features = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Request:
    """The settings of a comparison."""

    lines: Callable[
        [], Iterable[str]
    ]  # a function that returns the lines of the text
    vocab_file: str | None = None  # None: the vocabulary next to a checkpoint
    # These values replace the hparams that checkpoints state.
    hparams: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    # Wordpieces per example; None: 128, or the length of the position table if
    # the table is shorter.
    length: int | None = None
    count: int = 32  # number of examples
    seed: int = 0  # the seed of all draws


@dataclasses.dataclass
class Outcome:
    """The result of a comparison."""

    # None if no forward pass was possible
    forward: ForwardDifference | None = None
    not_compared: dict[str, str] = dataclasses.field(default_factory=dict)
    # The problems that were found before the forward pass.
    problems: list[str] = dataclasses.field(default_factory=list)
    # Notes for the reader, such as assumed hparams.
    notes: list[str] = dataclasses.field(default_factory=list)


def compare_on_text(
    a: Weights, b: Weights, request: Request, shapes_agree: bool = True
) -> Outcome:
    """Build two models and run both on the same text.

    If `shapes_agree`, an error in the forward pass is raised; otherwise the
    error becomes the reason why the outputs were not compared.
    """
    try:
        hparams = _both_hparams(a, b, request.hparams)
    except UserError as error:
        return Outcome(not_compared={_ALL_OUTPUTS: _one_line(error)})
    sizes = [h["vocab_size"] for h in hparams]
    if sizes[0] != sizes[1]:
        reason = f"vocab_size is {sizes[0]} in A and {sizes[1]} in B"
        return Outcome(not_compared={_ALL_OUTPUTS: reason})
    if request.vocab_file is None:
        reason = _vocabulary_difference(a, b)
        if reason:
            not_compared = {_ALL_OUTPUTS: reason}
            return Outcome(not_compared=not_compared, problems=[reason])
    outcome = Outcome(notes=assumptions([a, b], request.hparams))
    outcome.notes += _casing_notes(a, b)
    vocab_file = find_vocab_file(request, a, b)
    if vocabulary.is_bpe(vocab_file):
        outcome.not_compared[_ALL_OUTPUTS] = (
            f"{vocab_file} is byte-level BPE; expected a WordPiece vocabulary"
        )
        return outcome
    hparams = [read_casing(vocab_file) | stated for stated in hparams]
    rows = min(w.contents.sizes.max_position_embeddings for w in (a, b))
    length = request.length or _DEFAULT_LENGTH
    if length > rows and request.length:
        raise UserError(
            f"--max_seq_length is {length}, but the models have {rows}"
            f" positions. Pass --max_seq_length={rows} or less."
        )
    if length > rows:
        outcome.notes.append(
            f"Examples have {rows} wordpieces instead of {length}, because a"
            f" model has only {rows} positions"
        )
        length = rows
    configs = [model_config(h, vocab_file, length) for h in hparams]
    config = configs[0]
    tokenizer = tokenization.FullTokenizer(
        vocab_file, config.do_lower_case, config.strip_accents
    )
    features = features_from_lines(
        request.lines(), tokenizer, length, request.count, request.seed
    )
    try:
        model_a = LoadedModel("A", a, PretrainingModel(config))
        model_b = LoadedModel("B", b, PretrainingModel(configs[1]))
        outcome.forward = _compare_batches(
            model_a, model_b, features, request.seed
        )
    except UserError as error:
        if shapes_agree:
            raise
        outcome.not_compared[_ALL_OUTPUTS] = _one_line(error)
    return outcome


def _casing_notes(a: Weights, b: Weights) -> list[str]:
    """Return a note for each tokenizer hparam that differs between A and B."""
    notes = []
    for name in TOKENIZER_HPARAMS:
        stated = [weights.hparams.get(name) for weights in (a, b)]
        if None not in stated and stated[0] != stated[1]:
            notes.append(
                f"{name} is {stated[0]} in A and {stated[1]} in B; both models"
                " read the text as A's tokenizer splits it"
            )
    return notes


def _both_hparams(
    a: Weights, b: Weights, overriding: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the hparams of both models; `overriding` takes precedence."""
    both = []
    for weights, other in ((a, b), (b, a)):
        hparams = model_hparams(weights)
        hparams = merge_hparams(hparams, _hparams_of_other(other, weights))
        both.append(merge_hparams(hparams, overriding))
    # A masked LM has only one network. An encoder without heads is compared
    # with this network, so the encoder's hparams must describe a masked LM,
    # too.
    headless = [weights.contents.is_headless for weights in (a, b)]
    for i, other in ((0, 1), (1, 0)):
        is_masked_lm = not complete_hparams(both[other]).has_two_networks
        if headless[i] and not headless[other] and is_masked_lm:
            both[i] |= {"electra_objective": False, "uniform_generator": False}
    return both


def _hparams_of_other(other: Weights, weights: Weights) -> dict[str, Any]:
    """Return the hparams that a model without hparams takes from `other`.

    The result contains only hparams that cannot be inferred from the shapes of
    variables, and is empty if `weights` state hparams.
    """
    if weights.hparams or not other.hparams:
        return {}
    sizes = other.contents.sizes
    has_same_encoder = sizes.encoder == weights.contents.sizes.encoder
    stated = other.hparams.get("model_hparam_overrides") or {}
    overrides = {
        name: stated[name]
        for name in UNSEEN_SIZES
        if name in stated
        and (has_same_encoder or name != "num_attention_heads")
    }
    names = SETTINGS
    if sizes.generator_kind is GeneratorKind.TWO_TOWER:
        names += ("electra_objective", "electric_objective")
    hparams = {n: other.hparams[n] for n in names if n in other.hparams}
    return hparams | {"model_hparam_overrides": overrides}


def find_vocab_file(request: Request, *checkpoints: Weights) -> str:
    """Return the path of the vocabulary.

    A requested vocabulary takes precedence over a checkpoint's vocabulary.
    """
    candidates = [request.vocab_file, request.hparams.get("vocab_file")]
    candidates += [weights.vocab_file for weights in checkpoints]
    for path in candidates:
        if path:
            return path
    paths = " and ".join(weights.path for weights in checkpoints)
    raise UserError(
        f"{paths}: found no vocabulary next to the weights; expected the"
        " vocabulary of their training. Pass --vocab_file=FILE."
    )


def _vocabulary_difference(a: Weights, b: Weights) -> str | None:
    """Return a message if the vocabularies of A and B differ, otherwise None.

    The result is None, too, if a vocabulary is unknown.
    """
    if a.vocab_file and b.vocab_file:
        try:
            vocabulary.refuse_other_vocab(a.vocab_file, b.vocab_file, "B")
        except UserError as error:
            return _one_line(error)
    return None


def assumptions(
    checkpoints: Sequence[Weights], stated: Mapping[str, Any]
) -> list[str]:
    """Return a note for each checkpoint whose hparams are partly assumed.

    `stated` contains hparams from a flag or a recording; values are assumed
    only if `stated` is empty.
    """
    assumed = {
        label: "; ".join(weights.contents.assumptions())
        for label, weights in zip("AB", checkpoints, strict=False)
        if not (weights.hparams or stated)
    }
    if 0 < len(assumed) < len(checkpoints):
        text = (
            "both models use the number of attention heads, the activation and"
            " the tokenizer settings of the other checkpoint"
        )
        assumed = dict.fromkeys(assumed, text)
    return [
        f"{label} has no configuration: {text}. Pass --hparams to replace"
        " assumed values"
        for label, text in assumed.items()
    ]


def _one_line(error: UserError) -> str:
    return " ".join(str(error).split())


# Examples, as int32 [B, L] `input_ids`, `input_mask` and `segment_ids`.


def features_from_lines(
    lines: Iterable[str],
    tokenizer: tokenization.FullTokenizer,
    length: int,
    count: int,
    seed: int,
) -> Features:
    """Return the features of examples that are made as in pre-training."""
    builder = ExampleBuilder(length, random.Random(seed), split_long_lines=True)
    examples = []
    for line in lines:
        ids = tokenizer.encode(line)
        examples += builder.add(ids) if ids else builder.flush()
        if len(examples) >= count:
            break
    examples = (examples + builder.flush())[:count]
    if not examples:
        raise UserError(
            "--text: the text contains no words; expected at least one word."
            " Pass a different file with --text."
        )
    encoder = open_encoder(tokenizer.vocab, length)
    rows = [decode_example(encoder.encode(*e)) for e in examples]
    return {
        name: np.array([row[name] for row in rows], np.int32)
        for name in FEATURE_NAMES
    }


# Forward passes of both models.


def lacks(loaded: LoadedModel) -> dict[str, str]:
    """Return the missing layers and logits of a model, each with the reason."""
    reasons = {
        "generator layers": loaded.lacks_generator(False),
        "generator logits": loaded.lacks_generator(True),
        "discriminator layers": loaded.lacks_discriminator(False),
        "discriminator logits": loaded.lacks_discriminator(corrected=True),
    }
    if loaded.model.token_head is not None:
        reasons[LOGITS["token_logits"]] = loaded.lacks_token_head()
    return {name: reason for name, reason in reasons.items() if reason}


def run_model(
    loaded: LoadedModel,
    features: Features,
    masked_inputs: Features | None = None,
    sampled_token_ids: np.ndarray | None = None,
    seed: tf.Tensor | None = None,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Run a model without dropout.

    Args:
      features: the inputs, int32 [B, L] each.
      masked_inputs: masked positions, ids and weights; None: the model draws
        them.
      sampled_token_ids: the replacements; None: the model draws them.
      seed: the seed of all draws, int32 [2].

    Returns:
      The outputs by name, and the layers of complete networks, float32 [layers,
      tokens, H] without padding.
    """
    outputs = loaded.model.compute(
        {name: tf.constant(features[name]) for name in FEATURE_NAMES},
        masked_inputs,
        sampled_token_ids,
        training=False,
        seed=seed,
    )
    absent, layers = lacks(loaded), {}
    if "generator layers" not in absent:
        stacks = outputs["generator_layers"]
        stacks = stacks if isinstance(stacks, list) else [stacks]
        layers = dict(zip(loaded.generator_networks, stacks, strict=True))
    if "discriminator layers" not in absent:
        layers["discriminator"] = outputs["discriminator_layers"]
    real = features["input_mask"] > 0
    return (
        {n: x.numpy() for n, x in outputs.items() if tf.is_tensor(x)},
        {name: stack.numpy()[:, real] for name, stack in layers.items()},
    )


def add_logits(
    forward: ForwardDifference, name: str, a: np.ndarray, b: np.ndarray
) -> None:
    """Compare logits, [predictions, V] or [tokens], and resulting decisions."""
    forward.add_output(LOGITS[name], a, b)
    if name == "disc_logits":
        add_equal(forward.agreement, "replaced or not", a > 0, b > 0)
        return
    decision = "most likely word"
    if name == "token_logits":
        decision = f"second masked LM's {decision}"
    add_equal(forward.agreement, decision, a.argmax(-1), b.argmax(-1))


def _losses(
    outputs: Mapping[str, np.ndarray], real: np.ndarray
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return, for each loss, the weighted sum over tokens and the weights' sum.

    The keys are the model's name of the logits and the reports' name of the
    loss.
    """
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
    """Compare both models; A draws the masked positions and replacements."""
    forward = ForwardDifference(not_compared=lacks(b) | lacks(a))
    n_tokens = n_predictions = 0
    sums: dict[str, np.ndarray] = {}
    n_examples, length = features["input_ids"].shape
    for i, start in enumerate(range(0, n_examples, _BATCH_SIZE)):
        batch = {n: v[start : start + _BATCH_SIZE] for n, v in features.items()}
        draw = tf.constant([seed, i], tf.int32)
        outputs_a, layers_a = run_model(a, batch, seed=draw)
        masked = {name: outputs_a[name] for name in MASKED}
        masked["input_ids"] = outputs_a["masked_input_ids"]
        outputs_b, layers_b = run_model(
            b, batch, masked, outputs_a.get("sampled_tokids")
        )
        _add_layers(forward, layers_a, layers_b)
        real, weights = batch["input_mask"] > 0, masked["masked_lm_weights"]
        masks = {"mlm_logits": weights > 0, "disc_logits": real}
        if "token_weights" in outputs_a and "token_weights" in outputs_b:
            masks["token_logits"] = outputs_a["token_weights"] > 0
        for name, mask in masks.items():
            if LOGITS[name] not in forward.not_compared:
                logits_a, logits_b = outputs_a[name], outputs_b[name]
                add_logits(forward, name, logits_a[mask], logits_b[mask])
        sums_a, sums_b = _losses(outputs_a, real), _losses(outputs_b, real)
        for logits, name in sums_a.keys() & sums_b.keys():
            if LOGITS[logits] not in forward.not_compared:
                pair = [sums_a[logits, name], sums_b[logits, name]]
                sums[name] = sums.get(name, 0) + np.array(pair)
        n_tokens += int(real.sum())
        n_predictions += int(weights.sum())
    forward.inputs = {
        "examples": n_examples,
        "length": length,
        "tokens": n_tokens,
        "predictions": n_predictions,
    }
    forward.losses = {
        name: tuple(float(x) for x in total[:, 0] / total[:, 1])
        for name, total in sorted(sums.items(), reverse=True)
    }
    return forward


def _add_layers(
    forward: ForwardDifference,
    layers_a: Mapping[str, np.ndarray],
    layers_b: Mapping[str, np.ndarray],
) -> None:
    """Compare the layers of the networks that both models have.

    Networks of only one model are added to `not_compared`.
    """
    for network in dict.fromkeys([*layers_a, *layers_b]):
        if network in layers_a and network in layers_b:
            forward.add_layers(network, layers_a[network], layers_b[network])
            continue
        # `setdefault` keeps an earlier, more exact reason, such as missing
        # weights of the network.
        has, other = ("A", "B") if network in layers_a else ("B", "A")
        reason = f"{has} has this network, but {other} does not"
        forward.not_compared.setdefault(f"{network} layers", reason)
