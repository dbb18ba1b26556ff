# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The looking glass: one sentence on its way through Figure 2 of the paper.

What was masked, what the generator proposed, what was sampled, and what the
discriminator says of every token. Runs `PretrainingModel.compute`, the code of
training; only the positions are drawn without replacement, so that each shows
one sample.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import GeneratorKind
from electra_tf.inspection.fill_mask import (
    Candidate,
    check_length,
    token_name,
)
from electra_tf.inspection.glass import (
    CHOSEN,
    DRAWN,
    LEFT_OUT,
    NONE,
    Choice,
    Glass,
    Judgement,
    Proposal,
    TokenView,
)
from electra_tf.inspection.glass_positions import (
    chosen_inputs,
    drawn_inputs,
    untouched_inputs,
)
from electra_tf.inspection.model_kind import (
    describe,
    kind_name,
    samples_uniformly,
)
from electra_tf.inspection.sentences import encode_with_masks, framed, padded
from electra_tf.pretraining import sampling, scoring
from electra_tf.pretraining.loading import PretrainedModel


class LookingGlass:
    """Shows what a model does with sentences; loaded once.

    Args:
      mask_prob: share of the tokens that is masked; None for the model's.
    """

    def __init__(
        self,
        pretrained: PretrainedModel,
        top_k: int = 5,
        seed: int = 0,
        mask_prob: float | None = None,
    ) -> None:
        self.pretrained = pretrained
        self.seed = seed
        vocab_size = pretrained.model.encoder_config.vocab_size
        self.top_k = min(top_k, vocab_size)
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
        self._judges = not pretrained.lacks_discriminator()
        if not self._proposes and not self._judges:
            raise UserError(
                f"{pretrained.path}: holds neither a generator nor a"
                " discriminator with its head; there is nothing to look at."
            )

    def look(
        self, text: str, choice: Choice | None = None, number: int = 0
    ) -> Glass:
        """Follows one sentence.

        Args:
          text: the sentence; "[MASK]" in it stands for a token that nobody
            knows.
          choice: what to mask; None, or an empty one, draws.
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
        masking = DRAWN
        if choice.nothing or not self._samples:
            masked, masking = untouched_inputs(features), NONE
            if choice.is_made:
                raise UserError(
                    "Positions were chosen, but nothing can be proposed there:"
                    f" {self.pretrained.lacks_generator()}."
                )
        elif choice.is_made or model.special.mask_id in ids:
            masking = CHOSEN
            masked = chosen_inputs(
                self.pretrained, features, choice.words, choice.positions
            )
        else:
            masked = drawn_inputs(
                self.pretrained, features, self.mask_prob, seed
            )
        outputs = self._compute(features, masked, seed)
        return Glass(
            text=text,
            model=self.pretrained.path,
            kind=kind_name(self.pretrained),
            global_step=self.pretrained.global_step,
            masking=masking,
            seed=self.seed,
            tokens=self._views(features, masked, outputs, masking),
            notes=tuple(describe(self.pretrained)),
        )

    def _compute(
        self,
        features: dict[str, tf.Tensor],
        masked: dict[str, tf.Tensor],
        seed: tf.Tensor,
    ) -> dict[str, np.ndarray]:
        model = self.pretrained.model
        outputs = model.compute(features, masked_inputs=masked, seed=seed)
        if self._judges and self.pretrained.is_electric:
            outputs["energies"] = scoring.discriminator_energies(
                model, {**features, "input_ids": outputs["fake_input_ids"]}
            )
        if "sampled_tokids" in outputs:
            outputs["sampling_logits"] = sampling.sampling_logits(
                outputs["mlm_logits"],
                self.pretrained.config.temperature,
                masked["masked_lm_ids"]
                if self.pretrained.config.disallow_correct
                else None,
            )
        kept = (
            "mlm_logits",
            "sampling_logits",
            "sampled_tokids",
            "fake_input_ids",
            "fake_is_fake_tokens",
            "disc_probs",
            "energies",
        )
        return {n: outputs[n].numpy()[0] for n in kept if n in outputs}

    def _views(
        self,
        features: dict[str, tf.Tensor],
        masked: dict[str, tf.Tensor],
        outputs: dict[str, np.ndarray],
        masking: str,
    ) -> tuple[TokenView, ...]:
        special = self.pretrained.model.special
        ids = features["input_ids"].numpy()[0]
        # A discriminator without weights of its own judges nothing.
        judged = outputs.get("fake_input_ids", ids) if self._judges else ids
        slots = {
            int(position): slot
            for slot, (position, weight) in enumerate(
                zip(
                    masked["masked_lm_positions"].numpy()[0],
                    masked["masked_lm_weights"].numpy()[0],
                    strict=True,
                )
            )
            if weight > 0
        }
        shown = masked["input_ids"].numpy()[0]
        views = []
        for position, token_id in enumerate(ids):
            slot = slots.get(position)
            proposal = None
            if slot is not None:
                proposal = self._proposal(
                    int(token_id), int(shown[position]), slot, outputs
                )
            views.append(
                TokenView(
                    position=position,
                    token=self._name(token_id),
                    judged=self._name(judged[position]),
                    special=token_id in (special.cls_id, special.sep_id),
                    proposal=proposal,
                    judgement=self._judgement(
                        int(token_id), position, outputs, masking
                    ),
                )
            )
        return tuple(views)

    def _name(self, token_id: int) -> str:
        return token_name(self.pretrained, token_id)

    def _proposal(
        self,
        token_id: int,
        shown_id: int,
        slot: int,
        outputs: dict[str, np.ndarray],
    ) -> Proposal:
        probabilities = _softmax(outputs["mlm_logits"][slot])
        candidates: tuple[Candidate, ...] = ()
        if self._proposes:
            best = np.argsort(-probabilities, kind="stable")[: self.top_k]
            candidates = tuple(
                Candidate(self._name(i), int(i), float(probabilities[i]))
                for i in best
            )
        known = token_id != self.pretrained.model.special.mask_id
        sampled = sampled_probability = None
        if self._judges:
            sampled_id = int(outputs["sampled_tokids"][slot])
            sampled = self._name(sampled_id)
            sampled_probability = float(
                _softmax(outputs["sampling_logits"][slot])[sampled_id]
            )
        above = int((probabilities > probabilities[token_id]).sum())
        sees_masks = self.pretrained.model.kind is not GeneratorKind.TWO_TOWER
        return Proposal(
            shown=self._name(shown_id) if sees_masks else LEFT_OUT,
            candidates=candidates,
            true_probability=float(probabilities[token_id]) if known else None,
            true_rank=above + 1 if known and self._proposes else None,
            sampled=sampled,
            sampled_probability=sampled_probability,
        )

    def _judgement(
        self,
        token_id: int,
        position: int,
        outputs: dict[str, np.ndarray],
        masking: str,
    ) -> Judgement | None:
        if not self._judges:
            return None
        special = self.pretrained.model.special
        log_probability = None
        if "energies" in outputs and token_id not in (
            special.cls_id,
            special.sep_id,
        ):
            log_probability = -float(outputs["energies"][position])
        # Electric's offset takes the generator, which may not be there.
        probable = self._proposes or not self.pretrained.is_electric
        labelled = masking != NONE and token_id != special.mask_id
        return Judgement(
            float(outputs["disc_probs"][position]) if probable else None,
            bool(outputs["fake_is_fake_tokens"][position])
            if labelled
            else None,
            log_probability,
        )


def _softmax(logits: Sequence[float] | np.ndarray) -> np.ndarray:
    shifted = np.asarray(logits, np.float64)
    shifted = np.exp(shifted - shifted.max())
    return shifted / shifted.sum()
