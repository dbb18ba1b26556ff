# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""One sentence on its way through Figure 2 of the paper, token by token.

What was masked, what the generator proposed, what was sampled, and what the
discriminator says of every token. Runs `PretrainingModel.compute`, the code of
training; only the positions are drawn without replacement, so that each shows
one sample.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import GeneratorKind
from electra_tf.inspection.fill_mask import Candidate, candidates, token_name
from electra_tf.inspection.sentences import (
    check_length,
    encode_with_masks,
    framed,
    padded,
)
from electra_tf.modeling.layers import SeedStream
from electra_tf.pretraining import scoring
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.pretraining.masking import (
    MaskingRule,
    mask_inputs,
    sampling_logits,
)
from electra_tf.text.tokenization import JOINER

DRAWN, CHOSEN, NONE = "drawn", "chosen", "none"
# What a two-tower generator sees in a token's place when it predicts it.
LEFT_OUT = "(left out)"

# Outputs that are looked at, one for each masked position or each token.
_PER_SLOT = ("mlm_logits", "sampling_logits", "sampled_tokids")
_PER_TOKEN = (
    "fake_input_ids",
    "fake_is_fake_tokens",
    "disc_probs",
    "energies",
)
_GENERATORS = {
    GeneratorKind.SMALL: "small generator",
    GeneratorKind.FULL: "one network for both parts",
    GeneratorKind.TWO_TOWER: "two-tower generator",
}

Features = dict[str, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Choice:
    """What is to be masked, if it is not drawn."""

    words: tuple[str, ...] = ()  # every occurrence of these words; or
    positions: tuple[int, ...] = ()  # these tokens, from 1 ([CLS] is 0)
    nothing: bool = False  # the text is looked at as it is

    @property
    def is_made(self) -> bool:
        """Whether anything was chosen."""
        return bool(self.words or self.positions)


@dataclasses.dataclass(frozen=True)
class Proposal:
    """What happened at a masked position."""

    # What the generator saw there: "[MASK]", the token itself (training leaves
    # some in sight), or `LEFT_OUT`.
    shown: str
    candidates: tuple[Candidate, ...]  # the generator's likeliest
    # What it gave the original token, and that token's place among all, from
    # 1; None where the text itself said [MASK].
    true_probability: float | None
    true_rank: int | None
    sampled: str | None = None  # None without a discriminator
    sampled_probability: float | None = None  # after temperature


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What the discriminator says of a token."""

    # Sigmoid of its logit; None for Electric without its generator.
    replaced_probability: float | None
    # Training's label; None where the text said [MASK], or nothing was masked.
    is_replaced: bool | None
    # Electric only: log P(token | context), in nats.
    log_probability: float | None = None

    @property
    def verdict(self) -> str:
        """One of "real", "found", "missed", "false alarm", or "fake".

        "real" and "fake" where there is no label to compare with, "" where
        there is no probability.
        """
        if self.replaced_probability is None:
            return ""
        says = self.replaced_probability > 0.5
        if self.is_replaced is None:
            return "fake" if says else "real"
        if self.is_replaced:
            return "found" if says else "missed"
        return "false alarm" if says else "real"


@dataclasses.dataclass(frozen=True)
class InspectedToken:
    """One token."""

    position: int  # in the input; [CLS] is 0
    token: str  # the original wordpiece
    input_token: str  # the wordpiece that the discriminator saw
    special: bool  # [CLS] or [SEP]
    proposal: Proposal | None  # None where nothing was masked
    prediction: Prediction | None  # None without a discriminator


@dataclasses.dataclass(frozen=True)
class TokenInspection:
    """One sentence."""

    text: str
    model: str
    kind: str  # of model, in words
    global_step: int | None  # updates done, where known
    masking: str  # "drawn", "chosen" or "none"
    seed: int
    tokens: tuple[InspectedToken, ...]  # with [CLS] and [SEP]
    notes: tuple[str, ...]  # what does not apply, and what to know besides

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON can hold it; verdicts included."""
        record = dataclasses.asdict(self)
        for token, seen in zip(record["tokens"], self.tokens, strict=True):
            if seen.prediction is not None:
                token["prediction"]["verdict"] = seen.prediction.verdict
        return record

    def count(self, verdict: str) -> int:
        """How many tokens have a verdict."""
        return sum(
            seen.prediction is not None and seen.prediction.verdict == verdict
            for seen in self.tokens
        )


class TokenInspector:
    """Shows what a model does with sentences; loaded once."""

    def __init__(
        self,
        pretrained: PretrainedModel,
        top_k: int = 5,
        seed: int = 0,
        mask_prob: float | None = None,
    ) -> None:
        self.pretrained = pretrained
        self.seed = seed
        self.top_k = min(top_k, pretrained.model.encoder_config.vocab_size)
        self.mask_prob = (
            pretrained.config.mask_prob if mask_prob is None else mask_prob
        )
        if top_k < 1 or not 0.0 < self.mask_prob < 1.0:
            raise UserError(
                f"top_k {top_k}, mask_prob {self.mask_prob}: expected at least"
                " 1, and a share between 0 and 1."
            )
        self._proposes = not pretrained.lacks_generator()
        self._samples = self._proposes or samples_uniformly(pretrained)
        self._discriminates = not pretrained.lacks_discriminator()
        if not self._proposes and not self._discriminates:
            raise UserError(
                f"{pretrained.path}: holds neither a generator nor a"
                " discriminator with its head; there is nothing to look at."
            )

    def inspect(
        self, text: str, choice: Choice | None = None, number: int = 0
    ) -> TokenInspection:
        """Follows sentence `number`; each has draws of its own.

        "[MASK]" in the text stands for a token that nobody knows.
        """
        choice = choice or Choice()
        tokenizer, model = self.pretrained.tokenizer, self.pretrained.model
        ids = encode_with_masks(tokenizer, text)
        if not ids:
            raise UserError(f"{text!r}: no tokens to look at.")
        check_length(self.pretrained, ids, text)
        features = {
            name: tf.constant(value)
            for name, value in padded([framed(self.pretrained, ids)]).items()
        }
        seed = tf.constant([self.seed, number], tf.int32)
        if choice.nothing or not self._samples:
            if choice.is_made:
                raise UserError(
                    "Positions were chosen, but nothing can be proposed there:"
                    f" {self.pretrained.lacks_generator()}."
                )
            masking, masked = NONE, _masked_at(features, [], 0)
        elif choice.is_made or model.special.mask_id in ids:
            masking = CHOSEN
            masked = _chosen_inputs(self.pretrained, features, choice)
        else:
            masking, masked = DRAWN, self._drawn_inputs(features, seed)
        outputs = self._compute(features, masked, seed)
        kind, notes = kind_and_notes(self.pretrained)
        return TokenInspection(
            text=text,
            model=self.pretrained.path,
            kind=kind,
            global_step=self.pretrained.global_step,
            masking=masking,
            seed=self.seed,
            tokens=self._tokens(features, masked, outputs, masking),
            notes=tuple(notes),
        )

    def _drawn_inputs(self, features: Features, seed: tf.Tensor) -> Features:
        """Draws positions as training does, but distinct ones."""
        model = self.pretrained.model
        length = int(features["input_ids"].shape[1])
        rule = MaskingRule(
            self.mask_prob,
            max(1, math.ceil(length * self.mask_prob)),
            model.masking_rule.replace_prob,
            without_replacement=True,
            whole_words=model.masking_rule.whole_words,
        )
        return mask_inputs(features, model.special, rule, SeedStream(seed))

    def _compute(
        self, features: Features, masked: Features, seed: tf.Tensor
    ) -> dict[str, np.ndarray]:
        model, config = self.pretrained.model, self.pretrained.config
        outputs = model.compute(features, masked_inputs=masked, seed=seed)
        if self._discriminates and self.pretrained.is_electric:
            outputs["energies"] = scoring.discriminator_energies(
                model, {**features, "input_ids": outputs["fake_input_ids"]}
            )
        if "sampled_tokids" in outputs:
            outputs["sampling_logits"] = sampling_logits(
                outputs["mlm_logits"],
                config.temperature,
                masked["masked_lm_ids"] if config.disallow_correct else None,
            )
        wanted = {*_PER_SLOT, *_PER_TOKEN} & outputs.keys()
        return {name: outputs[name].numpy()[0] for name in wanted}

    def _tokens(
        self,
        features: Features,
        masked: Features,
        outputs: dict[str, np.ndarray],
        masking: str,
    ) -> tuple[InspectedToken, ...]:
        special = self.pretrained.model.special
        ids = features["input_ids"].numpy()[0].tolist()
        # A discriminator without weights of its own says nothing.
        inputs = outputs["fake_input_ids"] if self._discriminates else ids
        shown = masked["input_ids"].numpy()[0]
        positions = masked["masked_lm_positions"].numpy()[0].tolist()
        used = masked["masked_lm_weights"].numpy()[0] > 0
        slots = {p: slot for slot, p in enumerate(positions) if used[slot]}
        found = []
        for position, token_id in enumerate(ids):
            is_special = token_id in (special.cls_id, special.sep_id)
            proposal = prediction = None
            if position in slots:
                there = _at(slots[position], _PER_SLOT, outputs)
                proposal = self._proposal(token_id, shown[position], there)
            if self._discriminates:
                there = _at(position, _PER_TOKEN, outputs)
                labelled = masking != NONE and token_id != special.mask_id
                prediction = self._prediction(is_special, labelled, there)
            found.append(
                InspectedToken(
                    position,
                    self._name(token_id),
                    self._name(inputs[position]),
                    is_special,
                    proposal,
                    prediction,
                )
            )
        return tuple(found)

    def _name(self, token_id: int) -> str:
        return token_name(self.pretrained, token_id)

    def _proposal(
        self, token_id: int, shown_id: int, there: dict[str, np.ndarray]
    ) -> Proposal:
        model = self.pretrained.model
        probabilities = _softmax(there["mlm_logits"])
        best = []
        if self._proposes:
            order = np.argsort(-probabilities, kind="stable")
            best = order[: self.top_k].tolist()
        sampled = sampled_probability = None
        if self._discriminates:
            sampled_id = int(there["sampled_tokids"])
            sampled = self._name(sampled_id)
            shares = _softmax(there["sampling_logits"])
            sampled_probability = float(shares[sampled_id])
        known = token_id != model.special.mask_id
        above = int((probabilities > probabilities[token_id]).sum())
        sees_masks = model.kind is not GeneratorKind.TWO_TOWER
        return Proposal(
            shown=self._name(shown_id) if sees_masks else LEFT_OUT,
            candidates=candidates(self.pretrained, best, probabilities[best]),
            true_probability=float(probabilities[token_id]) if known else None,
            true_rank=above + 1 if known and self._proposes else None,
            sampled=sampled,
            sampled_probability=sampled_probability,
        )

    def _prediction(
        self, is_special: bool, labelled: bool, there: dict[str, np.ndarray]
    ) -> Prediction:
        log_probability = None
        if "energies" in there and not is_special:
            log_probability = -float(there["energies"])
        # Electric's offset takes the generator, which may not be there.
        probable = self._proposes or not self.pretrained.is_electric
        return Prediction(
            float(there["disc_probs"]) if probable else None,
            bool(there["fake_is_fake_tokens"]) if labelled else None,
            log_probability,
        )


def _at(
    place: int, names: Sequence[str], outputs: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    return {name: outputs[name][place] for name in names if name in outputs}


def samples_uniformly(pretrained: PretrainedModel) -> bool:
    """Whether replacements are drawn from all words alike.

    A discriminator that was saved alone looks the same; so it counts only
    where somebody said so.
    """
    return (
        pretrained.model.kind is GeneratorKind.UNIFORM
        and pretrained.model.discriminates
        and "uniform_generator" in pretrained.stated
    )


def kind_and_notes(pretrained: PretrainedModel) -> tuple[str, list[str]]:
    """The kind, as "ELECTRA, small generator", and what is special to it."""
    model, is_electric = pretrained.model, pretrained.is_electric
    name = "Electric" if is_electric else "ELECTRA"
    notes = [f"Not stated anywhere: {t}." for t in pretrained.assumptions]
    if not model.discriminates:
        kind = "masked LM"
        notes.append(
            "A masked LM proposes and nothing more: no token is sampled and"
            " there is no discriminator."
        )
    elif pretrained.lacks_discriminator():
        kind = f"{name}'s generator alone"
        notes.append(
            "The checkpoint holds no discriminator: nothing is sampled for it."
        )
    elif samples_uniformly(pretrained):
        kind = f"{name}, uniform generator"
        notes.append(
            "A uniform generator proposes nothing in particular: every word of"
            " the vocabulary has the same probability."
        )
    elif pretrained.lacks_generator():
        kind = f"{name}'s discriminator alone"
        notes.append(
            "The checkpoint holds no generator: nothing is masked, and the text"
            " is looked at as it is."
        )
    else:
        kind = f"{name}, {_GENERATORS[model.kind]}"
    if model.kind is GeneratorKind.TWO_TOWER:
        notes.append(
            "The two-tower generator sees no [MASK]: it predicts each token"
            " from all the others, which it reads as they are."
        )
    if is_electric:
        notes.append(
            "Electric counts every sampled token as replaced, even one equal to"
            " the original; log P is minus the discriminator's raw logit."
        )
    if is_electric and pretrained.lacks_generator():
        notes.append(
            "Electric's probability of a replacement takes the generator's;"
            " without it only log P is shown."
        )
    return kind, notes


def _chosen_inputs(
    pretrained: PretrainedModel, features: Features, choice: Choice
) -> Features:
    """Masks what somebody chose, and where the text says [MASK], too."""
    mask_id = pretrained.model.special.mask_id
    ids = features["input_ids"].numpy()[0].tolist()
    chosen = {i for i, token in enumerate(ids) if token == mask_id}
    for position in choice.positions:
        if not 1 <= position <= len(ids) - 2:
            raise UserError(
                f"position {position}: the text has tokens 1 to"
                f" {len(ids) - 2} (0 is [CLS])."
            )
        chosen.add(position)
    tokens = pretrained.tokenizer.convert_ids_to_tokens(ids)
    for word in choice.words:
        chosen.update(_places_of(pretrained, word, tokens))
    return _masked_at(features, sorted(chosen), mask_id)


def _places_of(
    pretrained: PretrainedModel, word: str, tokens: Sequence[str]
) -> list[int]:
    """Positions of a word's pieces, wherever it stands as a whole word."""
    pieces = pretrained.tokenizer.tokenize(word)
    places: list[int] = []
    # [CLS] and [SEP] are in no word.
    for start in range(1, len(tokens) - len(pieces)):
        end = start + len(pieces)
        if list(tokens[start:end]) == pieces and not (
            tokens[end].startswith(JOINER)
        ):
            places += range(start, end)
    if not places or not pieces:
        raise UserError(
            f"mask_words: {word!r} ({' '.join(pieces) or 'no tokens'}) is not"
            f" in the text, whose tokens are: {' '.join(tokens[1:-1])}"
        )
    return places


def _masked_at(
    features: Features, positions: Sequence[int], mask_id: int
) -> Features:
    ids = features["input_ids"].numpy()
    masked = ids.copy()
    masked[0, list(positions)] = mask_id
    # One slot at least: position 0 with weight 0 is an unused one.
    slots = np.zeros([1, max(1, len(positions))], np.int32)
    slots[0, : len(positions)] = positions
    weights = (slots > 0).astype(np.float32)
    return {
        "input_ids": tf.constant(masked),
        "masked_lm_positions": tf.constant(slots),
        "masked_lm_ids": tf.constant((ids[0][slots] * weights).astype("int32")),
        "masked_lm_weights": tf.constant(weights),
    }


def _softmax(logits: np.ndarray) -> np.ndarray:
    shifted = np.asarray(logits, np.float64)
    shifted = np.exp(shifted - shifted.max())
    return shifted / shifted.sum()
