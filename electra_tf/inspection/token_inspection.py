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
from electra_tf.modeling.seeds import SeedStream
from electra_tf.pretraining import scoring
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.pretraining.masking import MaskingRule, mask_inputs
from electra_tf.text.wordpiece import JOINER

DRAWN, CHOSEN, NONE = "drawn", "chosen", "none"
# What a two-tower generator sees in a token's place when it predicts it.
LEFT_OUT = "(left out)"
_GENERATORS = {
    GeneratorKind.SMALL: "small generator",
    GeneratorKind.FULL: "one network for both parts",
    GeneratorKind.TWO_TOWER: "two-tower generator",
    GeneratorKind.UNIFORM: "uniform generator",
    GeneratorKind.UNIGRAM: "unigram generator",
}

Features = dict[str, tf.Tensor]


@dataclasses.dataclass
class Proposal:
    """What happened at a masked position."""

    # What the generator saw there: "[MASK]", the token itself (training leaves
    # some in sight), or `LEFT_OUT`.
    shown: str
    candidates: tuple[Candidate, ...]  # the generator's likeliest
    # What it gave the original token, and that token's place among all, from
    # 1; None where the text itself said [MASK].
    true_probability: float | None = None
    true_rank: int | None = None
    sampled: str | None = None  # None without a discriminator
    sampled_probability: float | None = None  # after temperature


@dataclasses.dataclass
class Prediction:
    """What the discriminator says of a token."""

    # Sigmoid of its logit; None for Electric without its generator.
    replaced_probability: float | None
    # Training's label; None where the text said [MASK], or nothing was masked.
    is_replaced: bool | None
    # Electric only: log P(token | context), in nats.
    log_probability: float | None = None
    # "real", "found", "missed", "false alarm", or "fake": "real" and "fake"
    # where there is no label, "" where there is no probability.
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
    """One token."""

    position: int  # in the input; [CLS] is 0
    token: str  # the original wordpiece
    input_token: str  # the wordpiece that the discriminator saw
    special: bool  # [CLS] or [SEP]
    proposal: Proposal | None  # None where nothing was masked
    prediction: Prediction | None  # None without a discriminator


@dataclasses.dataclass
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


class TokenInspector:
    """Shows what a model does with sentences; loaded once."""

    def __init__(
        self, pretrained: PretrainedModel, top_k: int = 5, seed: int = 0
    ) -> None:
        if top_k < 1:
            raise UserError(f"top_k is {top_k}; expected at least 1.")
        self.pretrained, self.top_k, self.seed = pretrained, top_k, seed
        model = pretrained.model
        self._proposes = not pretrained.lacks_generator()
        # A discriminator that was saved alone looks the same; so a uniform
        # generator counts only where somebody said so, a unigram one where
        # there are counts.
        is_uniform = model.kind is GeneratorKind.UNIFORM
        is_fixed = is_uniform and "uniform_generator" in pretrained.stated
        is_fixed = is_fixed or model.token_counts is not None
        self._is_fixed = model.discriminates and is_fixed
        self._discriminates = not pretrained.lacks_discriminator()
        if not self._proposes and not self._discriminates:
            raise UserError(
                f"{pretrained.path}: holds neither a generator nor a"
                " discriminator with its head; there is nothing to look at."
            )
        self._kind, self._notes = self._kind_and_notes()

    def inspect(
        self,
        text: str,
        words: Sequence[str] = (),
        nothing: bool = False,
        number: int = 0,
    ) -> TokenInspection:
        """Follows sentence `number`; each has draws of its own.

        "[MASK]" in the text stands for a token that nobody knows. `words` masks
        every occurrence of these instead of drawing, `nothing` masks nothing:
        the text is looked at as it is.
        """
        model = self.pretrained.model
        ids = encode(self.pretrained, text)
        if len(ids) == 2:
            raise UserError(f"{text!r}: no tokens to look at.")
        features = {n: tf.constant(v) for n, v in padded([ids]).items()}
        seed = tf.constant([self.seed, number], tf.int32)
        mask_id = model.special.mask_id
        if nothing or not (self._proposes or self._is_fixed):
            if words:
                raise UserError(
                    "Words were chosen, but nothing can be proposed there:"
                    f" {self.pretrained.lacks_generator()}."
                )
            masking, masked = NONE, _masked_at(features, [], 0)
        elif words or mask_id in ids:
            places = {i for i, token in enumerate(ids) if token == mask_id}
            for word in words:
                places.update(self._places_of(word, ids))
            masking = CHOSEN
            masked = _masked_at(features, sorted(places), mask_id)
        else:
            # As in training, but distinct positions.
            share = self.pretrained.config.mask_prob
            rule = MaskingRule(
                share,
                max(1, math.ceil(len(ids) * share)),
                model.masking_rule.replace_prob,
                without_replacement=True,
                whole_words=model.masking_rule.whole_words,
            )
            masking, stream = DRAWN, SeedStream(seed)
            masked = mask_inputs(features, model.special, rule, stream)
        outputs = self._compute(features, masked, seed)
        return TokenInspection(
            text=text,
            model=self.pretrained.path,
            kind=self._kind,
            global_step=self.pretrained.global_step,
            masking=masking,
            seed=self.seed,
            tokens=self._tokens(ids, masked, outputs, masking != NONE),
            notes=tuple(self._notes),
        )

    def _places_of(self, word: str, ids: Sequence[int]) -> list[int]:
        """Positions of a word's pieces, wherever it stands as a whole word."""
        tokenizer = self.pretrained.tokenizer
        tokens = tokenizer.convert_ids_to_tokens(ids)
        pieces = tokenizer.tokenize(word)
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
                f"mask_words: {word!r} ({' '.join(pieces) or 'no tokens'}) is"
                f" not in the text, whose tokens are: {' '.join(tokens[1:-1])}"
            )
        return places

    def _compute(
        self, features: Features, masked: Features, seed: tf.Tensor
    ) -> dict[str, np.ndarray]:
        """The sentence's outputs, one for each slot or each token."""
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
        wanted = ("mlm_logits", "sampling_logits", "sampled_tokids")
        wanted += ("fake_input_ids", "fake_is_fake_tokens", "disc_probs")
        return {
            name: outputs[name].numpy()[0]
            for name in (*wanted, "energies")
            if name in outputs
        }

    def _tokens(
        self,
        ids: Sequence[int],
        masked: Features,
        outputs: dict[str, np.ndarray],
        is_labelled: bool,
    ) -> tuple[InspectedToken, ...]:
        special = self.pretrained.model.special
        # A discriminator without weights of its own says nothing.
        inputs = outputs["fake_input_ids"] if self._discriminates else ids
        shown = masked["input_ids"].numpy()[0]
        positions = masked["masked_lm_positions"].numpy()[0].tolist()
        used = masked["masked_lm_weights"].numpy()[0] > 0
        slots = {p: slot for slot, p in enumerate(positions) if used[slot]}
        found = []
        for i, token_id in enumerate(ids):
            is_special = token_id in (special.cls_id, special.sep_id)
            proposal = prediction = None
            if i in slots:
                proposal = self._proposal(token_id, shown[i], slots[i], outputs)
            if self._discriminates:
                probability = log_probability = label = None
                # Electric's offset takes the generator, which may be absent.
                if self._proposes or not self.pretrained.is_electric:
                    probability = float(outputs["disc_probs"][i])
                if is_labelled and token_id != special.mask_id:
                    label = bool(outputs["fake_is_fake_tokens"][i])
                if "energies" in outputs and not is_special:
                    log_probability = -float(outputs["energies"][i])
                prediction = Prediction(probability, label, log_probability)
            names = (self._name(token_id), self._name(inputs[i]))
            found.append(
                InspectedToken(i, *names, is_special, proposal, prediction)
            )
        return tuple(found)

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
        found = Proposal(
            shown=self._name(shown_id) if sees_masks else LEFT_OUT,
            candidates=candidates(self.pretrained, best, shares[best]),
        )
        if token_id != model.special.mask_id:
            found.true_probability = float(shares[token_id])
            if self._proposes:
                found.true_rank = int((shares > shares[token_id]).sum()) + 1
        if self._discriminates:
            sampled = int(outputs["sampled_tokids"][slot])
            shares = softmax(np.float64(outputs["sampling_logits"][slot]))
            found.sampled = self._name(sampled)
            found.sampled_probability = float(shares[sampled])
        return found

    def _kind_and_notes(self) -> tuple[str, list[str]]:
        """The kind, as "ELECTRA, small generator", and what is special."""
        pretrained, kind = self.pretrained, self.pretrained.model.kind
        is_electric = pretrained.is_electric
        name = pretrained.config.objective_facts.title
        if pretrained.model.discriminator is None:
            title = name
        elif not self._discriminates:
            title = f"{name}'s generator alone"
        elif not (self._proposes or self._is_fixed):
            title = f"{name}'s discriminator alone"
        else:
            title = f"{name}, {_GENERATORS[kind]}"
        notes = {
            "A masked LM proposes and nothing more: no token is sampled and"
            " there is no discriminator.": title == "masked LM",
            "The checkpoint holds no discriminator: nothing is sampled for"
            " it.": title.endswith("generator alone"),
            "The checkpoint holds no generator: nothing is masked, and the text"
            " is looked at as it is.": title.endswith("discriminator alone"),
            "A uniform generator proposes nothing in particular: every word of"
            " the vocabulary has the same probability.": self._is_fixed
            and kind is GeneratorKind.UNIFORM,
            "A unigram generator proposes the same everywhere: a word as often"
            " as it is in the records.": self._is_fixed
            and kind is GeneratorKind.UNIGRAM,
            "What is not copied is shown as replaced.": self._discriminates
            and pretrained.config.predicts_tokens,
            "The two-tower generator sees no [MASK]: it predicts each token"
            " from all the others, which it reads as they are.": kind
            is GeneratorKind.TWO_TOWER,
            "Electric counts every sampled token as replaced, even one equal to"
            " the original; log P is minus the discriminator's raw"
            " logit.": is_electric,
            "Electric's probability of a replacement takes the generator's;"
            " without it only log P is shown.": is_electric
            and not self._proposes,
        }
        assumed = [f"Not stated anywhere: {t}." for t in pretrained.assumptions]
        return title, assumed + [text for text, said in notes.items() if said]


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
