# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the looking glass shows of one sentence, as data."""

import dataclasses
from typing import Any

from electra_tf.inspection.fill_mask import Candidate

DRAWN, CHOSEN, NONE = "drawn", "chosen", "none"
# What a two-tower generator sees in a token's place when it predicts it.
LEFT_OUT = "(left out)"


@dataclasses.dataclass(frozen=True)
class Choice:
    """What is to be masked, if it is not drawn.

    Attributes:
      words: every occurrence of these words; or
      positions: these tokens, counted from 1 ([CLS] is 0).
      nothing: mask nothing; the text is judged as it is.
    """

    words: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()
    nothing: bool = False

    @property
    def is_made(self) -> bool:
        """Whether anything was chosen."""
        return bool(self.words or self.positions)


@dataclasses.dataclass(frozen=True)
class Proposal:
    """What happened at a masked position.

    Attributes:
      shown: what the generator saw there: "[MASK]", the token itself
        (training leaves some in sight), or `LEFT_OUT`.
      candidates: the generator's likeliest tokens.
      true_probability: what it gave the original token; None where the text
        itself said [MASK].
      true_rank: place of the original token among all, from 1; None likewise.
      sampled: what was drawn; None without a discriminator.
      sampled_probability: what the generator gave it, after temperature.
    """

    shown: str
    candidates: tuple[Candidate, ...]
    true_probability: float | None
    true_rank: int | None
    sampled: str | None = None
    sampled_probability: float | None = None


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What the discriminator says of a token.

    Attributes:
      replaced_probability: sigmoid of its logit; None for Electric without
        its generator.
      is_replaced: the label in training; None where the text said [MASK] or
        nothing was masked.
      log_probability: Electric only: log P(token | context), in nats.
    """

    replaced_probability: float | None
    is_replaced: bool | None
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
class TokenView:
    """One token.

    Attributes:
      position: in the input; [CLS] is 0.
      token: the original wordpiece.
      judged: the wordpiece that the discriminator saw.
      special: whether it is [CLS] or [SEP].
      proposal: None where nothing was masked.
      judgement: None without a discriminator.
    """

    position: int
    token: str
    judged: str
    special: bool
    proposal: Proposal | None
    judgement: Judgement | None


@dataclasses.dataclass(frozen=True)
class Glass:
    """One sentence.

    Attributes:
      text: as given.
      model: path of the checkpoint.
      kind: of model, in words.
      global_step: updates done, or None where not known.
      masking: "drawn", "chosen" or "none".
      seed: of the draws.
      tokens: all of them, [CLS] and [SEP] included.
      notes: what does not apply to this model, and what to know besides.
    """

    text: str
    model: str
    kind: str
    global_step: int | None
    masking: str
    seed: int
    tokens: tuple[TokenView, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON can hold it; verdicts included."""
        record = dataclasses.asdict(self)
        for token, view in zip(record["tokens"], self.tokens, strict=True):
            if view.judgement is not None:
                token["judgement"]["verdict"] = view.judgement.verdict
        return record

    def count(self, verdict: str) -> int:
        """How many tokens have a verdict."""
        return sum(
            view.judgement is not None and view.judgement.verdict == verdict
            for view in self.tokens
        )
