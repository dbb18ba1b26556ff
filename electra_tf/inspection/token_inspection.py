# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inspection of each token of a sentence, as in the ELECTRA paper's Figure 2.

An inspection shows the masked tokens, the generator's proposals, the samples
and the discriminator's prediction for every token. The numbers come from
`PretrainingModel.compute`, as in training; only the positions are drawn without
replacement, so that each position shows one sample.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from scipy.special import softmax

from configure.errors import UserError
from configure.generator import GeneratorKind
from electra_tf.inspection.fill_mask import (
    Candidate,
    candidates,
    encode,
    padded,
    token_name,
)
from electra_tf.metrics.finite_outputs import check_finite
from electra_tf.modeling.seeds import SeedStream
from electra_tf.pretraining import scoring
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.pretraining.masking import MaskingRule, mask_inputs
from electra_tf.text.wordpiece import JOINER

DRAWN, CHOSEN, NONE = "drawn", "chosen", "none"
# Text that is shown instead of the input of a two-tower generator, because this
# generator does not see the token to predict.
LEFT_OUT = "(left out)"
_GENERATORS = {
    GeneratorKind.SMALL: "small generator",
    GeneratorKind.FULL: "one network as generator and discriminator",
    GeneratorKind.TWO_TOWER: "two-tower generator",
    GeneratorKind.UNIFORM: "uniform generator",
    GeneratorKind.UNIGRAM: "unigram generator",
}

# The outputs that an inspection reads, if the model has them.
_OUTPUTS = (
    "mlm_logits",
    "sampling_logits",
    "sampled_tokids",
    "fake_input_ids",
    "fake_is_fake_tokens",
    "disc_probs",
    "energies",
)

Features = dict[str, tf.Tensor]


@dataclasses.dataclass
class Proposal:
    """The generator's prediction at a masked position."""

    # The generator's input: "[MASK]", the token itself (training leaves some
    # chosen tokens unmasked), or `LEFT_OUT`.
    shown: str
    # The generator's likeliest tokens; none for a uniform or unigram generator.
    candidates: tuple[Candidate, ...]
    # Probability and rank (from 1) of the original token. Both are None if the
    # text itself has [MASK] at the position. The rank is also None for a
    # uniform or unigram generator.
    true_probability: float | None = None
    true_rank: int | None = None
    sampled: str | None = None  # None: the model has no discriminator
    # the sampled token's probability, with logits divided by the temperature
    sampled_probability: float | None = None


@dataclasses.dataclass
class Prediction:
    """The discriminator's prediction for a token."""

    # The sigmoid of the logit; None for Electric without its generator.
    replaced_probability: float | None
    # The training label; None if the text has [MASK] here, or if no token is
    # masked.
    is_replaced: bool | None
    # Electric only: log P(token | context), in nats.
    log_probability: float | None = None
    # "real", "found", "missed" or "false alarm"; without a label "real" or
    # "fake"; "" without a probability.
    verdict: str = dataclasses.field(default="", init=False)

    def __post_init__(self) -> None:
        if self.replaced_probability is not None:
            self.verdict = {
                None: ("real", "fake"),
                False: ("real", "false alarm"),
                True: ("missed", "found"),
            }[self.is_replaced][self.replaced_probability > 0.5]


@dataclasses.dataclass
class InspectedToken:
    """The inspection of one token."""

    position: int  # position in the input; [CLS] is 0
    token: str  # the original wordpiece
    input_token: str  # the discriminator's input
    special: bool  # whether the token is [CLS] or [SEP]
    proposal: Proposal | None  # None: the position was not chosen
    prediction: Prediction | None  # None: the model has no discriminator


@dataclasses.dataclass
class TokenInspection:
    """The inspection of one sentence."""

    text: str
    model: str  # the path of the model
    kind: str  # the kind of the model, such as "ELECTRA, small generator"
    global_step: int | None  # completed updates, if known
    masking: str  # how positions were chosen: "drawn", "chosen" or "none"
    seed: int
    tokens: tuple[InspectedToken, ...]  # [CLS] and [SEP] included
    notes: tuple[str, ...]  # sentences about the model


class TokenInspector:
    """Inspector of sentences, with a model that is loaded once."""

    def __init__(
        self, pretrained: PretrainedModel, top_k: int = 5, seed: int = 0
    ) -> None:
        """Prepare the inspection.

        Args:
          pretrained: the model.
          top_k: the number of candidates of the generator.
          seed: the seed of positions and samples.

        Raises:
          UserError: the model has neither generator nor discriminator.
        """
        if top_k < 1:
            raise UserError(
                f"top_k is {top_k}; expected at least 1. Pass a larger number."
            )
        self.pretrained, self.top_k, self.seed = pretrained, top_k, seed
        model = pretrained.model
        self._proposes = not pretrained.lacks_generator()
        # A uniform or unigram generator has no variables, so the variables do
        # not show whether the model has such a generator. Such a generator is
        # used only if hparams name it or token counts exist.
        is_uniform = model.kind is GeneratorKind.UNIFORM
        is_fixed = is_uniform and "uniform_generator" in pretrained.stated
        is_fixed = is_fixed or model.token_counts is not None
        self._is_fixed = model.discriminates and is_fixed
        self._discriminates = not pretrained.lacks_discriminator()
        if not self._proposes and not self._discriminates:
            raise UserError(
                f"{pretrained.path}: found no complete network; expected a"
                " generator, or a discriminator with its head. Pass a"
                " checkpoint of pre-training."
            )

    def inspect(
        self,
        text: str,
        words: Sequence[str] = (),
        nothing: bool = False,
        number: int = 0,
    ) -> TokenInspection:
        """Inspect a sentence.

        Args:
          text: the sentence; "[MASK]" in it is an unknown token.
          words: words of the text; every occurrence is masked. Empty: positions
            are drawn.
          nothing: whether to mask no token.
          number: the number of the sentence, which determines its random draws.

        Raises:
          UserError: the text has no tokens, or does not contain one of the
            words.
        """
        ids = encode(self.pretrained, text)
        if len(ids) == 2:
            raise UserError(
                f"{text!r}: no tokens; expected at least one. Pass another"
                " text."
            )
        features = {n: tf.constant(v) for n, v in padded([ids]).items()}
        seed = tf.constant([self.seed, number], tf.int32)
        masking, masked = self._mask(ids, features, words, nothing, seed)
        outputs = self._compute(features, masked, seed)
        return TokenInspection(
            text=text,
            model=self.pretrained.path,
            kind=self._kind(),
            global_step=self.pretrained.global_step,
            masking=masking,
            seed=self.seed,
            tokens=self._tokens(ids, masked, outputs, masking != NONE),
            notes=tuple(self._notes()),
        )

    def _mask(
        self,
        ids: Sequence[int],
        features: Features,
        words: Sequence[str],
        nothing: bool,
        seed: tf.Tensor,
    ) -> tuple[str, Features]:
        """Return how positions were chosen, and the masked inputs."""
        model = self.pretrained.model
        mask_id = model.special.mask_id
        if nothing or not (self._proposes or self._is_fixed):
            if words and nothing:
                raise UserError(
                    "mask_words and nothing exclude each other. Pass only one"
                    " of these arguments."
                )
            if words:
                raise UserError(
                    "mask_words: masked words need a generator, but"
                    f" {self.pretrained.lacks_generator()}. Remove mask_words,"
                    " or pass a checkpoint with a generator."
                )
            return NONE, _masked_at(features, [], 0)
        if words or mask_id in ids:
            positions = {i for i, token in enumerate(ids) if token == mask_id}
            for word in words:
                positions.update(self._word_positions(word, ids))
            return CHOSEN, _masked_at(features, sorted(positions), mask_id)
        # Training draws positions with replacement. Here each position must be
        # drawn at most once, because the inspection shows one sample for each.
        share = self.pretrained.config.mask_prob
        rule = MaskingRule(
            share,
            max(1, math.ceil(len(ids) * share)),
            model.masking_rule.replace_prob,
            without_replacement=True,
            whole_words=model.masking_rule.whole_words,
        )
        stream = SeedStream(seed)
        return DRAWN, mask_inputs(features, model.special, rule, stream)

    def _word_positions(self, word: str, ids: Sequence[int]) -> list[int]:
        """Return the positions of all wordpieces at a word's occurrences."""
        tokenizer = self.pretrained.tokenizer
        tokens = tokenizer.convert_ids_to_tokens(ids)
        pieces = tokenizer.tokenize(word)
        positions: list[int] = []
        # The search skips [CLS] and [SEP], which belong to no word.
        for start in range(1, len(tokens) - len(pieces)):
            end = start + len(pieces)
            if list(tokens[start:end]) == pieces and not (
                tokens[end].startswith(JOINER)
            ):
                positions += range(start, end)
        if not positions or not pieces:
            raise UserError(
                f"mask_words: {word!r} ({' '.join(pieces) or 'no tokens'}) is"
                " not in the text. Choose words from the tokens of the text:"
                f" {' '.join(tokens[1:-1])}"
            )
        return positions

    def _compute(
        self, features: Features, masked: Features, seed: tf.Tensor
    ) -> dict[str, np.ndarray]:
        """Return a sentence's outputs, per masked position or per token."""
        model = self.pretrained.model
        outputs = model.compute(features, masked_inputs=masked, seed=seed)
        if self._discriminates and self.pretrained.is_electric:
            outputs["energies"] = scoring.discriminator_energies(
                model, {**features, "input_ids": outputs["fake_input_ids"]}
            )
        if "sampled_tokids" in outputs:
            outputs["sampling_logits"] = model.sampling_logits(
                outputs["mlm_logits"], masked["masked_lm_ids"]
            )
        arrays = {
            name: outputs[name].numpy() for name in _OUTPUTS if name in outputs
        }
        # A unigram generator's logits of tokens that it never draws are -inf.
        bounded = {n: a for n, a in arrays.items() if n != "sampling_logits"}
        check_finite(bounded, lambda row: "the inspected text")
        return {name: array[0] for name, array in arrays.items()}

    def _tokens(
        self,
        ids: Sequence[int],
        masked: Features,
        outputs: dict[str, np.ndarray],
        is_labelled: bool,
    ) -> tuple[InspectedToken, ...]:
        special = self.pretrained.model.special
        # Without a loaded discriminator, the original tokens are shown as its
        # input.
        inputs = outputs["fake_input_ids"] if self._discriminates else ids
        shown = masked["input_ids"].numpy()[0]
        positions = masked["masked_lm_positions"].numpy()[0].tolist()
        used = masked["masked_lm_weights"].numpy()[0] > 0
        slots = {p: slot for slot, p in enumerate(positions) if used[slot]}
        tokens = []
        for position, token_id in enumerate(ids):
            proposal = prediction = None
            if position in slots:
                proposal = self._proposal(
                    token_id, shown[position], slots[position], outputs
                )
            if self._discriminates:
                prediction = self._prediction(
                    token_id, position, outputs, is_labelled
                )
            tokens.append(
                InspectedToken(
                    position=position,
                    token=self._name(token_id),
                    input_token=self._name(inputs[position]),
                    special=token_id in (special.cls_id, special.sep_id),
                    proposal=proposal,
                    prediction=prediction,
                )
            )
        return tuple(tokens)

    def _prediction(
        self,
        token_id: int,
        position: int,
        outputs: dict[str, np.ndarray],
        is_labelled: bool,
    ) -> Prediction:
        special = self.pretrained.model.special
        is_special = token_id in (special.cls_id, special.sep_id)
        probability = log_probability = label = None
        # Electric's probability depends on the generator, which the checkpoint
        # may lack.
        if self._proposes or not self.pretrained.is_electric:
            probability = float(outputs["disc_probs"][position])
        if is_labelled and token_id != special.mask_id:
            label = bool(outputs["fake_is_fake_tokens"][position])
        if "energies" in outputs and not is_special:
            log_probability = -float(outputs["energies"][position])
        return Prediction(probability, label, log_probability)

    def _name(self, token_id: int) -> str:
        return token_name(self.pretrained, token_id)

    def _proposal(
        self,
        token_id: int,
        shown_id: int,
        slot: int,
        outputs: dict[str, np.ndarray],
    ) -> Proposal:
        model = self.pretrained.model
        shares = softmax(np.float64(outputs["mlm_logits"][slot]))
        best = np.argsort(-shares, kind="stable")[: self.top_k].tolist()
        best = best if self._proposes else []
        sees_masks = model.kind is not GeneratorKind.TWO_TOWER
        proposal = Proposal(
            shown=self._name(shown_id) if sees_masks else LEFT_OUT,
            candidates=candidates(self.pretrained, best, shares[best]),
        )
        if token_id != model.special.mask_id:
            proposal.true_probability = float(shares[token_id])
            if self._proposes:
                proposal.true_rank = int((shares > shares[token_id]).sum()) + 1
        if self._discriminates:
            sampled = int(outputs["sampled_tokids"][slot])
            shares = softmax(np.float64(outputs["sampling_logits"][slot]))
            proposal.sampled = self._name(sampled)
            proposal.sampled_probability = float(shares[sampled])
        return proposal

    def _kind(self) -> str:
        """Return the kind of the model, such as "ELECTRA, small generator"."""
        pretrained = self.pretrained
        name = pretrained.config.objective_facts.title
        if pretrained.model.discriminator is None:
            return name
        if not self._discriminates:
            return f"{name}'s generator alone"
        if not (self._proposes or self._is_fixed):
            return f"{name}'s discriminator alone"
        return f"{name}, {_GENERATORS[pretrained.model.kind]}"

    def _notes(self) -> list[str]:
        """Return notes on assumptions, missing networks and outputs."""
        pretrained, kind = self.pretrained, self.pretrained.model.kind
        notes = [f"No file states this: {a}." for a in pretrained.assumptions]
        if pretrained.model.discriminator is None:
            notes.append(
                "A masked LM has no discriminator, so no token is sampled."
            )
        elif not self._discriminates:
            notes.append(
                "The checkpoint has no discriminator, so no token is sampled."
            )
        elif not (self._proposes or self._is_fixed):
            notes.append(
                "The checkpoint has no generator, so no token is masked, and"
                " the text is inspected unchanged."
            )
        if self._is_fixed and kind is GeneratorKind.UNIFORM:
            notes.append(
                "A uniform generator gives every token of the vocabulary the"
                " same probability."
            )
        if self._is_fixed and kind is GeneratorKind.UNIGRAM:
            notes.append(
                "A unigram generator gives a token the same probability at all"
                " positions: its frequency in the records."
            )
        if self._discriminates and pretrained.config.predicts_tokens:
            notes.append(
                "The second network predicts tokens: a token that it does not"
                " copy from its input is shown as replaced."
            )
        if kind is GeneratorKind.TWO_TOWER:
            notes.append(
                "The two-tower generator reads no [MASK]: each token is"
                " predicted from all other tokens."
            )
        if pretrained.is_electric:
            notes.append(
                "Electric labels every sampled token as replaced, even a token"
                " equal to the original; log P is minus the discriminator's"
                " raw logit."
            )
        if pretrained.is_electric and not self._proposes:
            notes.append(
                "Electric's probability of a replacement depends on the"
                " generator, so without a generator only log P is shown."
            )
        return notes


def _masked_at(
    features: Features, positions: Sequence[int], mask_id: int
) -> Features:
    """Return the inputs with [MASK] at `positions` of the only row."""
    ids = features["input_ids"].numpy()
    masked = ids.copy()
    masked[0, list(positions)] = mask_id
    # The model requires at least one slot. Position 0 with weight 0 marks an
    # unused slot.
    slots = np.zeros([1, max(1, len(positions))], np.int32)
    slots[0, : len(positions)] = positions
    weights = (slots > 0).astype(np.float32)
    return {
        "input_ids": tf.constant(masked),
        "masked_lm_positions": tf.constant(slots),
        "masked_lm_ids": tf.constant((ids[0][slots] * weights).astype("int32")),
        "masked_lm_weights": tf.constant(weights),
    }
